/* Tests src/depth/unreachable.c: Theorem D.1 is false for EVERY one-layer network. */
#include "depth_nets.h"

static const double deep[2][2] = {{3, -2}, {-3, 1}};

/* Width k d, entries divided by k: W kron J / k (queries: J / k^2), inputs repeated k times. */
static pare_model *replicated(const double (*layers)[2], size_t n, size_t k)
{
    pare_rng r = pare_rng_at(0, 0);
    const net_shape s = {.layers = n, .heads = 1, .d = k, .eta = 0, .beta = 1};
    pare_model *const m = net_of(&r, &s);
    for (size_t b = 0; b < n; b++) {
        pare_attn *const at = &m->blocks[b].attn;
        double *const q = net_room(m, k * k), *const key = net_room(m, k * k);
        double *const v = net_room(m, k * k);
        for (size_t i = 0; i < k * k; i++) {
            q[i] = layers[b][0] / (double)(k * k);
            key[i] = 1 / (double)k;
            v[i] = layers[b][1] / (double)k;
        }
        at->wq.data = q, at->wk.data = key, at->wv.data = v;
    }
    return m;
}

static void every_one_layer_network_is_far_from_a_deep_one(void **state)
{
    (void)state;
    depth_lower low;
    pare_err err = {0};
    assert_ok(depth_lower_bound(&low, deep, 2, 2, 32, &err), &err);
    print_message("every one-layer network is at least %.4f away\n", low.lb);
    assert_true(low.lb >= 0.93);
    assert_le(low.lb, 0.94); /* what a finer grid tends to */
    /* replicated 1000 times all hypotheses of the theorem hold, and what it says is far less */
    const depth_paper p = depth_paper_of(.003, 2, 1, 2);
    assert_true(p.holds && p.bound < .1 && p.claim < .01);
    assert_true(low.lb > 9 * p.bound);
}

/* One-layer networks that try hard: none is closer than the bound. */
static void no_search_comes_closer(void **state)
{
    (void)state;
    depth_lower low;
    pare_err err = {0};
    assert_ok(depth_lower_bound(&low, deep, 2, 2, 20, &err), &err);
    pare_model *const f = replicated(deep, 2, 1);
    enum { GRID = 13, HEADS = 4 };
    double best = INFINITY;
    pare_rng r = pare_rng_at(3, 0);
    double heads[HEADS][2], x[2], y[2];
    for (size_t h = 0; h < HEADS; h++) heads[h][0] = heads[h][1] = 0;
    for (size_t t = 0; t < 800; t++) {
        double old[HEADS][2], far = 0;
        memcpy(old, heads, sizeof old);
        for (size_t h = 0; h < HEADS; h++)
            for (size_t i = 0; i < 2; i++) heads[h][i] += (t ? .3 : 0) * pare_rng_normal(&r);
        for (size_t i = 0; i < GRID * GRID; i++) {
            x[0] = 4 * (double)(i / GRID) / (GRID - 1) - 2,
            x[1] = 4 * (double)(i % GRID) / (GRID - 1) - 2;
            net_run(y, f, x, 2, 1);
            double out = x[0];
            for (size_t h = 0; h < HEADS; h++) {
                const double p = 1 / (1 + exp(-heads[h][0] * x[0] * (x[0] - x[1])));
                out += heads[h][1] * (p * x[0] + (1 - p) * x[1]);
            }
            far = fmax(far, fabs(out - y[0]));
        }
        if (far < best)
            best = far;
        else
            memcpy(heads, old, sizeof old);
    }
    print_message("best found %.3f, none can be below %.3f\n", best, low.lb);
    assert_le(low.lb, best + 0.05); /* the search looks at a grid, the bound at the box */
    assert_le(best, 3);
    pare_model_free(f);
}

/* A stored model, replicated or not: the coarser grid loses little. */
static void a_stored_model_has_its_bound_at_any_width(void **state)
{
    (void)state;
    const depth_domain box = {2, -1}, narrow = {2, 1};
    for (size_t k = 1; k <= 9; k += 4) {
        pare_model *const f = replicated(deep, 2, k);
        pare_model *const g = collapsed(f, PARE_ONE_PARALLEL, 0, NULL);
        depth_lower low, less;
        pare_err err = {0};
        assert_true(depth_lower_applies(f, g));
        assert_ok(depth_lower_model(&low, f, &box, NULL, &err), &err);
        assert_ok(depth_lower_model(&less, f, &narrow, NULL, &err), &err);
        print_message("width %zu: %.4f, tokens at most 1 apart: %.4f\n", k, low.lb, less.lb);
        assert_true(low.lb > .9 && low.lb < .9305); /* what the fine grid has */
        assert_true(less.lb > 0 && less.lb < low.lb);
        pare_model_free(g);
        pare_model_free(f);
    }
}

/* Largest |f - g| over two tokens with all entries alike: where the bound looks. */
static double farthest(const pare_model *f, const pare_model *g, size_t d, double box)
{
    double far = 0, x[8];
    for (int i = -12; i <= 12; i++)
        for (int j = -12; j <= 12; j++) {
            for (size_t k = 0; k < 2 * d; k++) x[k] = box * (k < d ? i : j) / 12;
            far = fmax(far, net_apart(f, g, x, 2, d));
        }
    return far;
}

/* Random nets against their collapses, and against one-layer nets that a search brings near. */
static void no_one_layer_network_is_nearer_than_the_bound(void **state)
{
    (void)state;
    static const pare_collapse kinds[] = {PARE_ONE_KEEP, PARE_ONE_PARALLEL, PARE_ONE_UNIFORM,
                                          PARE_ONE_PARALLEL_UNIFORM};
    double closest = INFINITY;
    for (uint64_t seed = 0; seed < 8; seed++) {
        pare_rng r = pare_rng_at(seed, 0);
        const net_shape s = {.layers = 2 + pare_rng_below(&r, 2),
                             .heads = 1 + pare_rng_below(&r, 2),
                             .d = 1 + pare_rng_below(&r, 3),
                             .eta = seed % 2 ? 1 : .3,
                             .beta = 1,
                             .law = seed % 3 ? LAW_GAUSS : LAW_SIGNS};
        pare_model *const f = net_of(&r, &s);
        const depth_domain box = {1, -1};
        depth_lower low;
        pare_err err = {0};
        assert_ok(depth_lower_model(&low, f, &box, NULL, &err), &err);
        for (size_t k = 0; k < 4; k++) {
            pare_model *const g = collapsed(f, kinds[k], 0, NULL);
            assert_true(depth_lower_applies(f, g));
            pare_weight *const w = &g->blocks[0].attn.wv; /* f's own, or none (uniform) */
            double *const v = pare_has(w) ? net_room(g, w->rows * w->cols) : NULL;
            for (size_t i = 0; v && i < w->rows * w->cols; i++) v[i] = pare_weight_at(w, i);
            if (v) *w = (pare_weight){PARE_F64, w->rows, w->cols, v};
            double best = farthest(f, g, s.d, 1);
            for (size_t t = 0; t < 12 && v; t++) {
                const size_t at = pare_rng_below(&r, w->rows * w->cols);
                const double old = v[at];
                v[at] += best * pare_rng_normal(&r);
                const double now = farthest(f, g, s.d, 1);
                if (now < best)
                    best = now;
                else
                    v[at] = old;
            }
            if (!(low.lb <= best * (1 + 1e-12)))
                fail_msg("seed %u, %s: %g is below %g", (unsigned)seed,
                         pare_collapse_names[kinds[k]], best, low.lb);
            if (low.lb > 1e-9) closest = fmin(closest, best / low.lb);
            pare_model_free(g);
        }
        pare_model_free(f);
    }
    print_message("closest network found: %.3g times the bound\n", closest);
    assert_true(closest < 3);
}

static void it_speaks_of_bare_networks_without_biases_alone(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(1, 0);
    const net_shape plain = {.layers = 2, .heads = 1, .d = 2, .eta = .3, .beta = 1};
    net_shape other = plain;
    pare_model *const f = net_of(&r, &plain), *const g = collapsed(f, PARE_ONE_UNIFORM, 0, NULL);
    assert_true(depth_lower_applies(f, g) && !depth_lower_applies(f, f));
    other.bias = .1;
    pare_model *const biased = net_of(&r, &other);
    assert_false(depth_lower_applies(biased, g) || depth_lower_applies(f, biased));
    other = plain, other.pattern = PARE_CAUSAL;
    pare_model *const masked = net_of(&r, &other);
    assert_false(depth_lower_applies(masked, g));
    other = plain, other.no_skip = true;
    pare_model *const bare = net_of(&r, &other);
    assert_false(depth_lower_applies(bare, g));
    other = plain, other.d = 65;
    pare_model *const wide = net_of(&r, &other);
    assert_false(depth_lower_applies(wide, g));
    pare_model *const all[] = {f, g, biased, masked, bare, wide};
    for (size_t i = 0; i < 6; i++) pare_model_free(all[i]);
}

static void a_one_layer_network_is_reachable(void **state)
{
    (void)state;
    static const double shallow[1][2] = {{3, -2}};
    depth_lower low;
    pare_err err = {0};
    assert_ok(depth_lower_bound(&low, shallow, 1, 2, 16, &err), &err);
    assert_le(low.lb, 1e-12);
    assert_ok(depth_lower_bound(&low, deep, 2, 0, 16, &err), &err);
    assert_true(low.lb == 0);
    assert_ok(depth_lower_bound(&low, deep, 2, NAN, 16, &err), &err);
    assert_true(low.lb == 0);
}

static void replication_divides_entries_and_changes_nothing(void **state)
{
    (void)state;
    enum { K = 50 };
    pare_model *const f = replicated(deep, 2, 1), *const g = replicated(deep, 2, K);
    const double x[] = {1, .3};
    double wide[2 * K], y[2], z[2 * K];
    for (size_t i = 0; i < 2 * K; i++) wide[i] = x[i / K];
    net_run(y, f, x, 2, 1);
    net_run(z, g, wide, 2, K);
    for (size_t i = 0; i < 2 * K; i++) assert_near(z[i], y[i / K], 1e-9);
    const pare_weight *const v = &f->blocks[0].attn.wv, *const w = &g->blocks[0].attn.wv;
    assert_near(pare_norm_max(w).v, pare_norm_max(v).v / K, 1e-15);
    assert_near(pare_norm_max_row(w).v, pare_norm_max_row(v).v, 1e-12); /* what theory looks at */
    pare_model_free(g);
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_one_layer_network_is_far_from_a_deep_one),
        cmocka_unit_test(no_search_comes_closer),
        cmocka_unit_test(a_stored_model_has_its_bound_at_any_width),
        cmocka_unit_test(no_one_layer_network_is_nearer_than_the_bound),
        cmocka_unit_test(it_speaks_of_bare_networks_without_biases_alone),
        cmocka_unit_test(a_one_layer_network_is_reachable),
        cmocka_unit_test(replication_divides_entries_and_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
