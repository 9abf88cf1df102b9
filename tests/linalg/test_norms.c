/* Tests src/linalg/norms.c: each norm by hand, then against exact sums. */
#include "linalg/bounds.h"
#include "linalg_test.h"
#include <float.h>

/* v is value up to the rounding a bound may add, never below. */
static bool just_above(pare_ub b, double value)
{
    return b.v >= value && b.v <= value * (1 + 1e-13);
}

static void hand_made_norms(void **state)
{
    const double v[] = {3, -4, 0, -1, 2, 2};
    const pare_weight w = {PARE_F64, 2, 3, v};
    pare_ub b;
    assert_true(pare_norm_max(&w).v == 4);
    assert_true(just_above(pare_norm_max_row(&w), 7));
    assert_true(just_above(pare_norm_max_col(&w), 6));
    assert_true(just_above(pare_norm_max_row2(&w), 5));
    assert_true(just_above(pare_norm_fro(&w), sqrt(34)));
    assert_int_equal(pare_norm_bilinear_inf(&b, &w, *state, NULL), PARE_OK);
    /* sqrt(6) |w|_2 and the sum 12: w w' = (25 -11; -11 9), top (34 + sqrt(740)) / 2. */
    const double top = sqrt((34 + sqrt(740)) / 2);
    assert_true(b.v >= fmin(12, sqrt(6) * top) * (1 - 1e-15) && b.v <= 12 * (1 + 1e-13));
}

static void bilinear_takes_the_smaller_of_both(void **state)
{
    const double hadamard[] = {1, 1, 1, -1}; /* sum 4, sqrt(4) sqrt(2) = 2.83 */
    const double corner[] = {1, 0, 0, 0};    /* sum 1, sqrt(4) 1 = 2 */
    const pare_weight h = {PARE_F64, 2, 2, hadamard}, c = {PARE_F64, 2, 2, corner};
    pare_ub b;
    assert_int_equal(pare_norm_bilinear_inf(&b, &h, *state, NULL), PARE_OK);
    assert_true((quad)b.v * (quad)b.v >= 8 && b.v < 2.829);
    assert_int_equal(pare_norm_bilinear_inf(&b, &c, *state, NULL), PARE_OK);
    assert_true(just_above(b, 1));
}

static quad exact_square(const double *v, size_t n)
{
    quad s = 0;
    for (size_t i = 0; i < n; i++) s += (quad)v[i] * (quad)v[i];
    return s;
}

static quad exact_sum(const double *v, size_t n, size_t step)
{
    quad s = 0;
    for (size_t i = 0; i < n; i++) s += (quad)fabs(v[i * step]);
    return s;
}

/* Entries a little above 1: sums that are rounded down at nearly every step. */
static void fill_unlucky(pare_mat *m, uint64_t seed)
{
    pare_rng rng = pare_rng_at(seed, 0);
    for (size_t i = 0; i < m->rows * m->cols; i++)
        m->v[i] = i == 0 ? 1 : ldexp(1 + pare_rng_uniform(&rng), -(int)pare_rng_below(&rng, 40));
}

static void no_norm_is_below_the_exact_one(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        const size_t rows = 1 + seed % 7, cols = 1 + seed * 5 % 40;
        pare_mat m = pare_mat_new(*state, rows, cols);
        fill_unlucky(&m, seed);
        const pare_weight w = weight_of(&m);
        const quad f = (quad)pare_norm_fro(&w).v, r2 = (quad)pare_norm_max_row2(&w).v;
        const quad r = (quad)pare_norm_max_row(&w).v, c = (quad)pare_norm_max_col(&w).v;
        CHECK(f * f >= exact_square(m.v, rows * cols), "seed %d", (int)seed);
        for (size_t i = 0; i < rows; i++) {
            CHECK(r2 * r2 >= exact_square(pare_row(&m, i), cols), "seed %d", (int)seed);
            CHECK(r >= exact_sum(pare_row(&m, i), cols, 1), "seed %d", (int)seed);
        }
        for (size_t j = 0; j < cols; j++)
            CHECK(c >= exact_sum(m.v + j, rows, cols), "seed %d", (int)seed);
    }
}

/* 1 and then 2^20 halves of its last bit: each is rounded away. The sum is 1 + 2^-33. */
static void sums_that_lose_every_addition_are_repaired(void **state)
{
    const size_t n = ((size_t)1 << 20) + 1;
    pare_mat m = pare_mat_new(*state, 1, n);
    assert_non_null(m.v);
    m.v[0] = 1;
    for (size_t i = 1; i < n; i++) m.v[i] = 0x1p-54;
    pare_weight w = weight_of(&m);
    const double want = 1 + 0x1p-34;
    assert_true(pare_norm_max_row(&w).v >= want);
    w.rows = n;
    w.cols = 1;
    assert_true(pare_norm_max_col(&w).v >= want);
    for (size_t i = 1; i < n; i++) m.v[i] = 0x1p-27; /* squares 2^-54 */
    const quad f = (quad)pare_norm_fro(&w).v;
    assert_true(f * f >= 1 + (quad)0x1p-34);
    assert_true(f < 1 + 1e-9);
    w.rows = 1;
    w.cols = n;
    const quad r = (quad)pare_norm_max_row2(&w).v;
    assert_true(r * r >= 1 + (quad)0x1p-34);
    pare_ub b;
    assert_int_equal(pare_norm_bilinear_inf(&b, &w, *state, NULL), PARE_OK);
    assert_true((quad)b.v >= 1 + (quad)0x1p-8);
}

static void no_scale_is_too_small_or_too_large(void **state)
{
    static const double sizes[] = {DBL_TRUE_MIN, 1e-310, 1e-200, 1e-150, 1, 1e150, 1e200, 1e307};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const double s = sizes[i], v[] = {3 * s, 0, 4 * s, 0};
        const pare_weight w = {PARE_F64, 1, 4, v};
        const pare_ub f = pare_norm_fro(&w), r = pare_norm_max_row2(&w);
        CHECK(f.v >= 5 * s && f.v <= fmax(5 * s * (1 + 1e-13), 6 * DBL_TRUE_MIN), "%g: %g", s, f.v);
        assert_true(r.v == f.v);
    }
    /* sqrt(2) least doubles are more than one of them, though that is the nearest. */
    const double least[] = {DBL_TRUE_MIN, DBL_TRUE_MIN};
    const pare_weight l = {PARE_F64, 1, 2, least};
    assert_true(pare_norm_fro(&l).v == 2 * DBL_TRUE_MIN);
    const double wide[] = {DBL_MAX, DBL_TRUE_MIN}, over[] = {DBL_MAX, DBL_MAX};
    const pare_weight w = {PARE_F64, 1, 2, wide}, o = {PARE_F64, 1, 2, over};
    assert_true(pare_norm_fro(&w).v >= DBL_MAX && isinf(pare_norm_fro(&o).v));
    assert_true(isinf(pare_norm_max_row(&o).v));
}

static void f32_is_widened_exactly(void **state)
{
    (void)state;
    const float v[] = {0.1f, 3e38f, 1e-45f};
    const pare_weight w = {PARE_F32, 1, 3, v};
    assert_true(pare_norm_max(&w).v == (double)3e38f);
    assert_true(pare_norm_fro(&w).v >= (double)3e38f && pare_norm_fro(&w).v < 3.1e38);
}

static void nothing_is_known_of_a_matrix_with_a_nan(void **state)
{
    for (size_t at = 0; at < 4; at++)
        for (int k = 0; k < 2; k++) {
            double v[] = {1, 2, 3, 4};
            v[at] = k ? NAN : -INFINITY;
            const pare_weight w = {PARE_F64, 2, 2, v};
            pare_ub b = {0};
            assert_true(isinf(pare_norm_fro(&w).v) && isinf(pare_norm_max(&w).v));
            assert_true(isinf(pare_norm_max_row(&w).v) && isinf(pare_norm_max_col(&w).v));
            assert_true(isinf(pare_norm_max_row2(&w).v));
            assert_int_equal(pare_norm_bilinear_inf(&b, &w, *state, NULL), PARE_ERR_NONFINITE);
            assert_true(isinf(b.v));
        }
}

static void empty_absent_and_zero_matrices_have_norm_zero(void **state)
{
    const double v[] = {0, 0, 0, -0.0};
    const pare_weight all[] = {
        {PARE_F64, 0, 3, v}, {PARE_F64, 3, 0, v}, {PARE_F32, 2, 2, NULL}, {PARE_F64, 2, 2, v}};
    for (size_t i = 0; i < 4; i++) {
        pare_ub b;
        assert_true(pare_norm_fro(&all[i]).v == 0 && pare_norm_max(&all[i]).v == 0);
        assert_true(pare_norm_max_row(&all[i]).v == 0 && pare_norm_max_col(&all[i]).v == 0);
        assert_true(pare_norm_max_row2(&all[i]).v == 0);
        assert_int_equal(pare_norm_bilinear_inf(&b, &all[i], *state, NULL), PARE_OK);
        assert_true(b.v == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(hand_made_norms),
        ARENA_TEST(bilinear_takes_the_smaller_of_both),
        ARENA_TEST(no_norm_is_below_the_exact_one),
        ARENA_TEST(sums_that_lose_every_addition_are_repaired),
        ARENA_TEST(no_scale_is_too_small_or_too_large),
        ARENA_TEST(f32_is_widened_exactly),
        ARENA_TEST(nothing_is_known_of_a_matrix_with_a_nan),
        ARENA_TEST(empty_absent_and_zero_matrices_have_norm_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
