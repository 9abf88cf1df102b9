/* Tests src/cert/gap.c: the proven distance of two models on a set of inputs. */
#include "enclose_models.h"
#include "enclose_quad.h"

static pare_inputs one(pare_input *in)
{
    return (pare_inputs){1, in};
}

static void a_model_is_within_its_own_slack_of_itself(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 60; s++) {
        pare_model *const m = some_model(s, 1);
        pare_input in = some_input(m, s, 1, 0);
        const pare_inputs set = one(&in);
        pare_gap gap;
        pare_err err = {0};
        assert_ok(pare_prove_gap(&gap, m, m, &set, NULL, &err), &err);
        assert_true(gap.measured == 0);
        assert_true(gap.proven.v == gap.slack);
        assert_true(gap.slack < 1e-3 && gap.rounding.v > 0);
        pare_model_free(m);
    }
}

/* g = f with its last bias moved by a known amount: the distance is that amount. */
static void a_known_distance_is_found_and_enclosed(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, -4, 5, 6}, w[] = {0.25, -0.5, 1, 2};
    static const double b0[] = {0, 0}, b1[] = {0.125, -0.75};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->stem.width = 2;
    f->top.out.w = (pare_weight){PARE_F64, 2, 2, w};
    f->top.out.b = (pare_weight){PARE_F64, 1, 2, b0};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->top.out.b.data = b1;
    pare_input in = {.batch = 3, .tokens = 1, .width = 2, .x = x};
    const pare_inputs set = one(&in);
    pare_gap gap;
    pare_err err = {0};
    assert_ok(pare_prove_gap(&gap, f, g, &set, NULL, &err), &err);
    assert_true(gap.measured == 0.75);
    assert_true(gap.scale == 17); /* 5 + 2 * 6 */
    assert_true(gap.proven.v > 0.75 && gap.proven.v <= 0.75 + 1e-13);
    assert_true(gap.slack > 0 && gap.slack < 1e-13);
    assert_true(gap.rounding.v > 0 && gap.rounding.v < 1e-4);
    pare_model_free(g);
    pare_model_free(f);
}

/* Two unrelated models with the same shapes: the exact distance is below the proven one. */
static void the_proven_distance_holds_in_113_bits(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 40; s++) {
        pare_model *const f = some_model(s, 1);
        pare_model *g = NULL;
        assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
        maker k = {.m = g, .r = pare_rng_at(s, 5), .sigma = 1};
        if (pare_has(&g->top.out.w))
            g->top.out.w = matrix(&k, g->top.out.w.rows, g->top.out.w.cols);
        g->top.norm = (pare_norm){.kind = PARE_NORM_MEAN};
        pare_input in = some_input(f, s, 1, 0);
        const pare_inputs set = one(&in);
        pare_gap gap;
        pare_err err = {0};
        assert_ok(pare_prove_gap(&gap, f, g, &set, NULL, &err), &err);
        pare_arena *const a = pare_arena_new();
        double apart = 0;
        for (size_t b = 0; b < in.batch; b++) {
            const qmat y = q_model(a, f, &in, b), z = q_model(a, g, &in, b);
            for (size_t i = 0; i < y.n * y.d; i++)
                apart = fmax(apart, (double)q_abs(y.v[i] - z.v[i]));
        }
        assert_le(apart, gap.proven.v);
        assert_le(gap.proven.v, (gap.measured + gap.slack) * (1 + 1e-12));
        assert_le(fabs(gap.measured - apart), gap.slack);
        pare_arena_free(a);
        pare_model_free(g);
        pare_model_free(f);
    }
}

/* 1200 sequences of one token go in three groups: all of them count, first and last. */
static void long_batches_are_cut_without_losing_a_sequence(void **state)
{
    (void)state;
    enum { N = 1200 };
    static double x[N];
    static const double w0[] = {1}, w1[] = {1.5};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->stem.width = 1;
    f->top.out.w = (pare_weight){PARE_F64, 1, 1, w0};
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->top.out.w.data = w1;
    pare_input in = {.batch = N, .tokens = 1, .width = 1, .x = x};
    const pare_inputs set = one(&in);
    static const size_t where[] = {0, 511, 512, 700, N - 1};
    for (size_t i = 0; i < sizeof where / sizeof *where; i++) {
        pare_gap gap;
        x[where[i]] = 8;
        assert_int_equal(pare_prove_gap(&gap, f, g, &set, NULL, NULL), PARE_OK);
        assert_true(gap.measured == 4 && gap.scale == 8);
        x[where[i]] = 0;
    }
    pare_model_free(g);
    pare_model_free(f);
}

static void models_with_other_outputs_are_refused(void **state)
{
    (void)state;
    static const double x[] = {1, 2}, w[] = {1, 2, 3, 4};
    pare_model *f = NULL, *g = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->stem.width = 2;
    assert_int_equal(pare_model_clone(&g, f, NULL), PARE_OK);
    g->top.out.w = (pare_weight){PARE_F64, 1, 2, w};
    pare_input in = {.batch = 1, .tokens = 1, .width = 2, .x = x};
    const pare_inputs set = one(&in);
    pare_gap gap;
    pare_err err = {0};
    assert_status(pare_prove_gap(&gap, f, g, &set, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "[1, 2]");
    assert_true(isinf(gap.proven.v) && isinf(gap.rounding.v)); /* nothing is claimed */
    pare_model_free(g);
    pare_model_free(f);
}

static void a_nan_on_the_way_claims_nothing(void **state)
{
    (void)state;
    static const double x[] = {1e200, 1}, w[] = {1e200, 0};
    pare_model *f = NULL;
    assert_int_equal(pare_model_new(&f, NULL), PARE_OK);
    f->stem.width = 2;
    f->top.out.w = (pare_weight){PARE_F64, 1, 2, w};
    pare_input in = {.batch = 1, .tokens = 1, .width = 2, .x = x};
    const pare_inputs set = one(&in);
    pare_gap gap;
    assert_int_equal(pare_prove_gap(&gap, f, f, &set, NULL, NULL), PARE_OK);
    assert_true(isinf(gap.proven.v) && isinf(gap.rounding.v) && isinf(gap.measured));
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_is_within_its_own_slack_of_itself),
        cmocka_unit_test(a_known_distance_is_found_and_enclosed),
        cmocka_unit_test(the_proven_distance_holds_in_113_bits),
        cmocka_unit_test(long_batches_are_cut_without_losing_a_sequence),
        cmocka_unit_test(models_with_other_outputs_are_refused),
        cmocka_unit_test(a_nan_on_the_way_claims_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
