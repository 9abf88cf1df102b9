/* Tests the pieces of src/cert/enclose*.c one at a time, where no other term can cover for a
 * missing one: points moved to the edge of the radius a piece is given, which it must carry on.
 * Looks at the room's own header. Single roundings: test_enclose_roundings.c. */
#include "enclose_bench.h"

/* ---- a flow and a point at its edge ---- */

static flow random_flow(bench *b, size_t rows, size_t cols, double rho)
{
    flow x;
    assert_int_equal(enclose_flow_new(&x, &b->c, rows, cols, NULL), PARE_OK);
    for (size_t i = 0; i < rows * cols; i++) {
        x.x.v[i] = pare_rng_normal(&b->r);
        if (b->wide) x.lo.v[i] = x.x.v[i] * 0x1p-53 * (pare_rng_uniform(&b->r) - 0.5);
    }
    for (size_t e = 0; e < ENGINES; e++)
        for (size_t i = 0; i < rows; i++) x.r[e][i] = rho;
    return x;
}

static quad middle(const flow *x, size_t i, size_t k)
{
    return (quad)pare_row(&x->x, i)[k] + (x->wide ? (quad)pare_row(&x->lo, i)[k] : 0);
}

/* The midpoints of x, every row moved by its radius: along one axis, or anywhere. */
static qmat at_the_edge(bench *b, const flow *x, bool along_axis)
{
    qmat y = q_new(b->a, x->x.rows, x->x.cols);
    const size_t axis = (size_t)pare_rng_below(&b->r, x->x.cols);
    for (size_t i = 0; i < y.n; i++) {
        quad *const v = y.v + i * y.d, length = 0;
        for (size_t k = 0; k < y.d; k++) {
            v[k] = along_axis ? (k == axis) * (pare_rng_below(&b->r, 2) ? 1 : -1)
                              : (quad)pare_rng_normal(&b->r);
            length += v[k] * v[k];
        }
        length = q_sqrt(length);
        for (size_t k = 0; k < y.d; k++) v[k] = middle(x, i, k) + v[k] / length * (quad)x->r[0][i];
    }
    return y;
}

/* Largest |y - exact| / radius over the rows, which must not pass 1. */
static double ratio(const flow *y, const qmat *exact)
{
    double most = 0;
    assert_int_equal(y->x.rows * y->x.cols, exact->n * exact->d);
    for (size_t i = 0; i < exact->n; i++) {
        quad s = 0;
        for (size_t k = 0; k < exact->d; k++) {
            const quad d = exact->v[i * exact->d + k] - middle(y, i, k);
            s += d * d;
        }
        const double moved = (double)q_sqrt(s);
        assert_le(moved, y->r[0][i] + 1e-31);      /* 113 bits place the edge itself no better */
        assert_le(y->r[0][i], y->r[1][i] + 1e-12); /* the narrower engine is never closer */
        most = fmax(most, moved / y->r[0][i]);
    }
    return most;
}

static const double radii_tried[] = {1e-22, 1e-7, 1e-3, 0.3}; /* the first: for wide flows */
enum { RADII = 4, TRIES = 400 };

static void a_map_carries_its_distance(void **state)
{
    (void)state;
    double best = 0;
    for (uint64_t t = 0; t < TRIES; t++) {
        bench b;
        bench_start(&b, t);
        maker k = {.m = b.m, .r = b.r, .sigma = 3};
        b.m->embedding.map.w = matrix(&k, 2, 2);
        bench_ready(&b, 3);
        const flow x = random_flow(&b, 3, 2, radii_tried[t % RADII]);
        const qmat edge = at_the_edge(&b, &x, false);
        flow y;
        assert_int_equal(
            enclose_dense(&y, &b.c, &x, &b.m->embedding.map.w, NULL, &b.norms->map, NULL), PARE_OK);
        const qmat exact = q_dense(b.a, &edge, &b.m->embedding.map.w, 0, 2, NULL);
        best = fmax(best, ratio(&y, &exact));
        bench_end(&b);
    }
    assert_true(best > 0.95);
}

static void norms_carry_their_distance(void **state)
{
    (void)state;
    double best[5] = {0};
    for (uint64_t t = 0; t < 8 * TRIES; t++) {
        bench b;
        bench_start(&b, t);
        maker k = {.m = b.m, .r = b.r, .sigma = 3};
        pare_norm n = some_norm(&k, 2 + t % 3);
        if (pare_has(&n.gain) && t % 2 == 0) n.gain = weight(&k, 1, 2 + t % 3, 20, 0.1);
        bench_ready(&b, 3);
        b.r = pare_rng_at(t, 2);
        flow x = random_flow(&b, 3, 2 + t % 3, radii_tried[t % RADII]);
        qmat edge = at_the_edge(&b, &x, false);
        assert_int_equal(enclose_norm(&x, &b.c, &n, NULL), PARE_OK);
        q_norm(&edge, &n);
        best[n.kind] = fmax(best[n.kind], ratio(&x, &edge));
        bench_end(&b);
    }
    for (size_t i = 0; i < 5; i++) assert_true(best[i] > 0.9);
}

static void activations_carry_their_distance(void **state)
{
    (void)state;
    for (int act = PARE_ACT_RELU; act <= PARE_ACT_TANH; act++) {
        double best = 0;
        for (uint64_t t = 0; t < TRIES; t++) {
            bench b;
            bench_start(&b, t);
            bench_ready(&b, 3);
            flow x = random_flow(&b, 3, 1 + t % 2, radii_tried[t % RADII]);
            qmat edge = at_the_edge(&b, &x, false);
            enclose_act(&x, (pare_act)act, NULL);
            for (size_t i = 0; i < edge.n * edge.d; i++)
                edge.v[i] = q_act((pare_act)act, edge.v[i]);
            best = fmax(best, ratio(&x, &edge));
            bench_end(&b);
        }
        assert_true(best > 0.8);
    }
}

static void skips_carry_their_distance(void **state)
{
    (void)state;
    double best = 0;
    for (uint64_t t = 0; t < 2 * TRIES; t++) {
        bench b;
        bench_start(&b, t);
        maker k = {.m = b.m, .r = b.r, .sigma = 3};
        b.block.attn = (pare_attn){.kind = PARE_ATTN_ZERO, .din = 2, .dout = 2};
        b.block.attn.skip = some_skip(&k, 2, 2);
        bench_ready(&b, 2);
        b.r = pare_rng_at(t, 3);
        const flow x = random_flow(&b, 2, 2, radii_tried[t % RADII]);
        const qmat edge = at_the_edge(&b, &x, t % 2 == 0);
        flow y = random_flow(&b, 2, 2, radii_tried[t % RADII]);
        qmat exact = at_the_edge(&b, &y, t % 2 == 0);
        assert_int_equal(
            enclose_skip(&y, &b.c, &x, &b.block.attn.skip, &b.norms->attn[0].skip, NULL), PARE_OK);
        q_skip(b.a, &exact, &edge, &b.block.attn.skip);
        best = fmax(best, ratio(&y, &exact));
        bench_end(&b);
    }
    assert_true(best > 0.95);
}

/* Gate and up read an axis each, so that either may be the one that moves. */
static void gated_products_carry_both_distances(void **state)
{
    (void)state;
    double best[2] = {0};
    for (uint64_t t = 0; t < 4 * TRIES; t++) {
        bench b;
        bench_start(&b, t);
        const double size[2] = {t % 2 ? 10 : 0.1, t % 2 ? 0.1 : 10};
        const double gate[] = {size[0], 0}, up_w[] = {0, size[1]}, one[] = {1};
        pare_dense layers[3] = {{.w = {PARE_F64, 1, 2, gate}},
                                {.w = {PARE_F64, 1, 2, up_w}},
                                {.w = {PARE_F64, 1, 1, one}}};
        b.block.ffn = (pare_ffn){.kind = PARE_FFN_GATED,
                                 .din = 2,
                                 .dout = 1,
                                 .nlayers = 3,
                                 .layers = layers,
                                 .act = PARE_ACT_NONE};
        bench_ready(&b, 1);
        const flow x = random_flow(&b, 1, 2, radii_tried[t / 2 % RADII]);
        const qmat edge = at_the_edge(&b, &x, true);
        flow y;
        assert_int_equal(enclose_ffn(&y, &b.c, &x, &b.block.ffn, &b.norms->ffn[0], NULL), PARE_OK);
        const qmat exact = q_ffn(b.a, &edge, &b.block.ffn);
        best[t % 2] = fmax(best[t % 2], ratio(&y, &exact));
        bench_end(&b);
    }
    assert_true(best[0] > 0.95 && best[1] > 0.95);
}

/* Queries, keys and values read an axis each; one of the three is made to matter most. */
static double worst_attention(pare_attn_kind kind, size_t leading, size_t tokens, double rho)
{
    double best = 0;
    for (uint64_t t = 0; t < TRIES; t++) {
        bench b;
        bench_start(&b, 1000 * leading + t);
        double w[3];
        for (size_t i = 0; i < 3; i++) w[i] = i == leading ? 3 : 0.5;
        if (leading < 2) w[2] = 2; /* scores matter only where values differ */
        const double q[] = {w[0], 0, 0}, k[] = {0, w[1], 0}, v[] = {0, 0, w[2]};
        const double o[] = {1}, bq[] = {1.25}, join[] = {0.5, 0.5, 0.5, 1};
        pare_attn *const at = &b.block.attn;
        b.head = (pare_head){.dk = 1, .dv = 1, .scale = 1};
        *at = (pare_attn){.kind = kind, .din = 3, .dout = 1, .nheads = 1, .heads = &b.head};
        const bool fixed = kind == PARE_ATTN_CONSTQ || kind == PARE_ATTN_POOL;
        if (!fixed) at->wq = (pare_weight){PARE_F64, 1, 3, q};
        if (fixed) at->bq = (pare_weight){PARE_F64, 1, 1, bq};
        at->wk = (pare_weight){PARE_F64, 1, 3, k};
        at->wv = (pare_weight){PARE_F64, 1, 3, v};
        if (kind == PARE_ATTN_POOL)
            at->matrix = (pare_weight){PARE_F64, 1, 4, join};
        else
            at->wo = (pare_weight){PARE_F64, 1, 1, o};
        bench_ready(&b, tokens);
        const flow z = random_flow(&b, tokens, 3, rho);
        for (size_t corner = 0; corner < 12; corner++) {
            const qmat edge = at_the_edge(&b, &z, true);
            flow y;
            assert_int_equal(enclose_attn(&y, &b.c, &z, at, &b.norms->attn[0], NULL), PARE_OK);
            const qmat exact = q_attn(b.a, &edge, b.m, at, NULL);
            best = fmax(best, ratio(&y, &exact));
        }
        bench_end(&b);
    }
    return best;
}

static void heads_carry_the_distances_of_queries_keys_and_values(void **state)
{
    (void)state;
    for (size_t leading = 0; leading < 3; leading++)
        for (size_t i = 0; i < RADII; i++) {
            const double found = worst_attention(PARE_ATTN_EXACT, leading, 2, radii_tried[i]);
            assert_true(found > (i < 3 ? 0.5 : 0.25));
        }
    assert_true(worst_attention(PARE_ATTN_EXACT, 0, 3, 2) > 0.2); /* beyond small movements */
    assert_true(worst_attention(PARE_ATTN_CONSTQ, 1, 2, 1e-3) > 0.5);
    assert_true(worst_attention(PARE_ATTN_MEANQ, 0, 2, 1e-3) > 0.4);
    assert_true(worst_attention(PARE_ATTN_POOL, 2, 2, 1e-3) > 0.4);
}

static void means_carry_the_mean_distance(void **state)
{
    (void)state;
    double best = 0;
    for (uint64_t t = 0; t < TRIES; t++) {
        bench b;
        bench_start(&b, t);
        bench_ready(&b, 3);
        flow x = random_flow(&b, 3, 1, 0), y;
        for (size_t i = 0; i < 3; i++)
            for (size_t e = 0; e < ENGINES; e++) x.r[e][i] = 0.1 * (double)(i + 1);
        const qmat edge = at_the_edge(&b, &x, true);
        assert_int_equal(enclose_mean(&y, &b.c, &x, NULL), PARE_OK);
        const qmat exact = q_uniform(b.a, &edge, b.m, NULL);
        best = fmax(best, ratio(&y, &exact));
        bench_end(&b);
    }
    assert_true(best > 0.99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_map_carries_its_distance),
        cmocka_unit_test(norms_carry_their_distance),
        cmocka_unit_test(activations_carry_their_distance),
        cmocka_unit_test(skips_carry_their_distance),
        cmocka_unit_test(gated_products_carry_both_distances),
        cmocka_unit_test(heads_carry_the_distances_of_queries_keys_and_values),
        cmocka_unit_test(means_carry_the_mean_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
