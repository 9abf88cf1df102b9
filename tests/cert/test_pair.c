/* Tests src/cert/pair*.c: no input of a ball is worse than was proven, and the bound is not
 * needlessly large. Models are as wild as model.h allows (tests/support/enclose_models.h). */
#include "pair_models.h"

enum { MODELS = 300, RANDOM = 30, STARTS = 3 };

static const double radii_tried[] = {0, 1e-6, 1e-3, 0.03, 0.3};

static pare_ball prove(const pair_case *t, double radius, pare_ball_norm norm)
{
    pare_ball b;
    pare_err err = {0};
    pare_input in = t->in;
    const pare_inputs set = {1, &in};
    assert_ok(pare_prove_ball(&b, t->f, t->g, &set,
                              (pare_neighborhood){.radius = radius, .norm = norm}, NULL, &err),
              &err);
    assert_null(b.refused);
    return b;
}

/* found <= proven, up to what the search's own f64 pass rounds. */
static void holds(const pair_case *t, const char *what, double seen, pare_ub proven, double size)
{
    if (seen <= proven.v * (1 + 1e-9) + 1e-11 * (1 + size)) return;
    print_error("seed %llu: %s found %.17g, proven %.17g\n", (unsigned long long)t->seed, what,
                seen, proven.v);
    fail();
}

static void no_input_of_a_ball_is_worse_than_proven(void **state)
{
    (void)state;
    size_t tried = 0, finite = 0, certain = 0, close = 0;
    for (uint64_t seed = 0; seed < MODELS; seed++) {
        pair_case t;
        static const double sigmas[] = {0.2, 0.6, 1.2};
        pair_open(&t, seed, sigmas[seed % 3], seed % 5 == 4 ? 5 : 1);
        const double radius = radii_tried[seed % 5];
        const pare_ball_norm norm = seed / 5 % 2 ? PARE_BALL_TWO : PARE_BALL_MAX;
        const pare_ball b = prove(&t, radius, norm);
        const found w = search(&t, radius, norm, RANDOM, STARTS);
        holds(&t, "entry", w.apart, b.apart, w.moves);
        holds(&t, "row", w.rows2, b.rows2, w.moves);
        holds(&t, "move", w.moves, b.moves, w.moves);
        if (pare_model_outputs(t.f) == 2) holds(&t, "difference", w.difference, b.difference, 0);
        if (b.certain == b.rows) assert_false(w.relabeled);
        tried += w.tried;
        finite += isfinite(b.apart.v) ? 1 : 0;
        certain += b.certain == b.rows;
        close += w.apart > 0.3 * b.apart.v;
        pair_close(&t);
    }
    print_message("%zu inputs of %d balls: %zu finite, %zu within 0.3, %zu with all labels\n",
                  tried, MODELS, finite, close, certain);
    /* 300, 72 and 189; of bounds twice as large 63 are within 0.3 */
    assert_true(finite == MODELS && close >= 68 && certain >= 180);
}

/* Every pooling, and outputs of length 1: where a row may be 0 nothing is proven of its direction. */
static void no_encoder_is_further_off_than_proven(void **state)
{
    (void)state;
    size_t finite = 0, close = 0;
    for (uint64_t seed = 0; seed < MODELS; seed++) {
        pair_case t;
        pair_open_of(&t, some_encoder(seed, 0.6), seed, 0.6, 1);
        const double radius = radii_tried[seed / 15 % 5];
        const pare_ball_norm norm = seed % 2 ? PARE_BALL_TWO : PARE_BALL_MAX;
        const pare_ball b = prove(&t, radius, norm);
        const found w = search(&t, radius, norm, RANDOM, STARTS);
        holds(&t, "entry", w.apart, b.apart, w.moves);
        holds(&t, "row", w.rows2, b.rows2, w.moves);
        holds(&t, "move", w.moves, b.moves, w.moves);
        if (b.certain == b.rows) assert_false(w.relabeled);
        finite += isfinite(b.apart.v) ? 1 : 0;
        close += w.apart > 0.3 * b.apart.v;
        pair_close(&t);
    }
    print_message("%d encoders: %zu finite, %zu within 0.3\n", MODELS, finite, close);
    assert_true(finite == MODELS && close >= 65); /* 300 and 69 */
}

static void radius_zero_is_the_measured_error(void **state)
{
    (void)state;
    for (uint64_t seed = 1000; seed < 1100; seed++) {
        pair_case t;
        pare_err err = {0};
        pair_open(&t, seed, 0.5, 1);
        const pare_inputs set = {1, &t.in};
        double measured;
        assert_ok(pare_measure(&measured, t.f, t.g, &set, NULL, &err), &err);
        const pare_ball b = prove(&t, 0, PARE_BALL_TWO);
        if (!(measured <= b.apart.v + 1e-10) || !(b.apart.v <= measured + 1e-6 * (1 + measured)))
            print_message("seed %llu: measured %g, proven %g\n", (unsigned long long)seed, measured,
                          b.apart.v);
        assert_true(measured <= b.apart.v + 1e-10);
        pair_close(&t);
    }
}

static void a_larger_ball_has_a_larger_bound(void **state)
{
    (void)state;
    for (uint64_t seed = 2000; seed < 2060; seed++) {
        pair_case t;
        pair_open(&t, seed, 0.6, 1);
        for (int norm = 0; norm < 2; norm++) {
            pare_ball last = {0};
            for (double radius = 1e-4; radius < 2; radius *= 3) {
                const pare_ball b = prove(&t, radius, (pare_ball_norm)norm);
                assert_le(last.apart.v, b.apart.v * (1 + 1e-12));
                assert_le(last.rows2.v, b.rows2.v * (1 + 1e-12));
                assert_true(last.rows == 0 || last.certain >= b.certain);
                last = b;
            }
        }
        pair_close(&t);
    }
}

/* Queries that turn beside one query that does not: nothing is known of their difference but that
 * both move. */
static void heads_that_turn_beside_heads_that_do_not(void **state)
{
    (void)state;
    enum { D = 2, N = 4 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        maker k = {.r = pare_rng_at(seed, 8)};
        pare_model *m[2];
        for (size_t p = 0; p < 2; p++) {
            assert_ok(pare_model_new(&m[p], NULL), NULL);
            k.m = m[p];
            k.r = pare_rng_at(seed, 8);
            m[p]->embedding.width = D;
            m[p]->embedding.pos.kind = PARE_POS_ROTARY;
            m[p]->nblocks = 1;
            m[p]->blocks = make(&k, 1, sizeof *m[p]->blocks);
            pare_attn *const at = &m[p]->blocks[0].attn;
            *at = (pare_attn){.kind = PARE_ATTN_EXACT, .din = D, .dout = D, .nheads = 1};
            at->heads = make(&k, 1, sizeof *at->heads);
            at->heads[0] = (pare_head){.dk = 2, .dv = D, .scale = 1, .planes = 1};
            at->skip.kind = PARE_SKIP_IDENTITY;
            at->wq = weight(&k, 2, D, 0, 1);
            at->wk = weight(&k, 2, D, 0, 1);
            at->wv = weight(&k, D, D, 0, 1);
            at->wo = weight(&k, D, D, 0, 1);
            at->freqs = weight(&k, 1, 1, 1, 0.3);
        }
        replace_attn(&k, &m[1]->blocks[0].attn, seed % 2 ? PARE_ATTN_CONSTQ : PARE_ATTN_MEANQ);
        assert_ok(pare_model_check(m[0], NULL), NULL);
        assert_ok(pare_model_check(m[1], NULL), NULL);
        double x[N * D], near[N * D], y[2][N * D], seen = 0;
        for (size_t i = 0; i < N * D; i++) x[i] = pare_rng_normal(&k.r);
        pare_input in = {.batch = 1, .tokens = N, .width = D, .x = x};
        const pare_inputs set = {1, &in};
        pare_ball b;
        assert_ok(pare_prove_ball(&b, m[0], m[1], &set,
                                  (pare_neighborhood){.radius = 0.1, .norm = PARE_BALL_MAX}, NULL,
                                  NULL),
                  NULL);
        for (size_t step = 0; step < 100; step++) {
            for (size_t i = 0; i < N * D; i++) near[i] = x[i] + (maybe(&k) ? 0.1 : -0.1);
            pare_input moved = in;
            moved.x = near;
            for (size_t p = 0; p < 2; p++)
                assert_ok(pare_forward_f64(y[p], m[p], &moved, NULL, NULL, NULL), NULL);
            for (size_t i = 0; i < N * D; i++) seen = fmax(seen, fabs(y[0][i] - y[1][i]));
        }
        if (seed == 1) print_message("seen %g, proven %g\n", seen, b.apart.v);
        assert_le(seen, b.apart.v);
        pare_model_free(m[0]);
        pare_model_free(m[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_input_of_a_ball_is_worse_than_proven),
        cmocka_unit_test(no_encoder_is_further_off_than_proven),
        cmocka_unit_test(radius_zero_is_the_measured_error),
        cmocka_unit_test(a_larger_ball_has_a_larger_bound),
        cmocka_unit_test(heads_that_turn_beside_heads_that_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
