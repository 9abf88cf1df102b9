/* Tests src/linalg/spectral.c: never below the norm, and not far above it. */
#include "linalg/bounds.h"
#include "linalg_test.h"
#include "linalg/norms.h"
#include <float.h>

static double bound(pare_arena *a, const pare_weight *w)
{
    pare_ub b;
    pare_err err;
    CHECK(pare_norm_spectral(&b, w, a, &err) == PARE_OK, "%s", err.msg);
    return b.v;
}

/* b^2 >= square in exact arithmetic, and b within 0.1 % of its root. */
static void check_square(double b, double square, const char *what)
{
    CHECK((quad)b * (quad)b >= (quad)square, "%s: %.17g^2 is below %.17g", what, b, square);
    CHECK(b <= sqrt(square) * 1.001, "%s: %.17g is far above the root of %.17g", what, b, square);
}

/* ---- norms known exactly ------------------------------------------------------------------ */

static void hadamard_of_512_has_norm_root_512(void **state)
{
    enum { n = 512 };
    pare_mat h = pare_mat_new(*state, n, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            pare_row_mut(&h, i)[j] = __builtin_popcountll(i & j) % 2 ? -1 : 1;
    const pare_weight w = weight_of(&h), f = narrow_weight(*state, &h);
    check_square(bound(*state, &w), n, "f64");
    check_square(bound(*state, &f), n, "f32");
    assert_true(bound(*state, &w) <= sqrt(n) * (1 + 1e-9));
}

static void integer_rank_one_has_the_product_of_lengths(void **state)
{
    static const size_t shapes[][2] = {{1, 1}, {1, 50},   {50, 1},   {2, 2},   {3, 7},
                                       {7, 3}, {97, 193}, {300, 40}, {40, 600}};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        const size_t m = shapes[s][0], n = shapes[s][1];
        pare_mat x = pare_mat_new(*state, m, n);
        double a2 = 0, b2 = 0;
        for (size_t i = 0; i < m; i++) {
            const double a = (double)(i * 7 % 13) - 4;
            a2 += a * a;
            for (size_t j = 0; j < n; j++) pare_row_mut(&x, i)[j] = a * ((double)(j * 5 % 11) - 3);
        }
        for (size_t j = 0; j < n; j++) b2 += pow((double)(j * 5 % 11) - 3, 2);
        const pare_weight w = weight_of(&x);
        char what[60];
        snprintf(what, sizeof what, "%zu x %zu", m, n);
        check_square(bound(*state, &w), a2 * b2, what);
    }
}

static void diagonal_has_its_largest_entry(void **state)
{
    pare_mat d = pare_mat_new(*state, 60, 70);
    for (size_t i = 0; i < 60; i++) pare_row_mut(&d, i)[i] = (double)(i * 17 % 60) - 25;
    const pare_weight w = weight_of(&d);
    check_square(bound(*state, &w), 34.0 * 34.0, "diagonal");
}

static void an_easy_norm_by_sums_is_found(void **state)
{
    /* Nonnegative with equal row and column sums: |w|_2 is that sum, |w|_F much larger. */
    pare_mat x = pare_mat_new(*state, 31, 31);
    for (size_t i = 0; i < 31; i++)
        for (size_t j = 0; j < 3; j++) pare_row_mut(&x, i)[(i + j * j) % 31] = 1;
    const pare_weight w = weight_of(&x);
    const double b = bound(*state, &w);
    assert_true(b >= 3 && b <= 3 * (1 + 1e-13));
}

/* ---- singular values that were put in ----------------------------------------------------- */

/* x = (I - 2 p p') x for a random unit p: orthogonal, so norms stay (up to rounding). */
static void reflect(pare_mat *x, pare_rng *rng, bool columns)
{
    const size_t n = columns ? x->cols : x->rows, other = columns ? x->rows : x->cols;
    double p[600], len = 0;
    assert_true(n <= 600);
    for (size_t i = 0; i < n; i++) {
        p[i] = pare_rng_normal(rng);
        len += p[i] * p[i];
    }
    for (size_t o = 0; o < other; o++) {
        double dot = 0;
        for (size_t i = 0; i < n; i++)
            dot += p[i] * (columns ? pare_row(x, o)[i] : pare_row(x, i)[o]);
        for (size_t i = 0; i < n; i++)
            *(columns ? pare_row_mut(x, o) + i : pare_row_mut(x, i) + o) -= 2 * dot / len * p[i];
    }
}

static double repeated(size_t i, size_t k)
{
    return i < k / 2 ? 1 : 0.25;
}
static double clustered(size_t i, size_t k)
{
    return 1 - 1e-3 * (double)i / (double)k;
}
static double graded(size_t i, size_t k)
{
    return pow(10, -15 * (double)i / (double)k);
}
static double orthogonal(size_t i, size_t k)
{
    return i < k;
}
static double one_only(size_t i, size_t k)
{
    return i == 0 && k > 0;
}
static double two_close(size_t i, size_t k)
{
    return i == 0 ? 1 : i == 1 ? 1 - 1e-9 : 0.9 / (double)k;
}

static void values_put_in_come_out(void **state)
{
    double (*const spectra[])(size_t, size_t) = {repeated,   clustered, graded,
                                                 orthogonal, one_only,  two_close};
    static const size_t shapes[][2] = {{2, 2}, {3, 5}, {40, 300}, {300, 97}, {200, 200}};
    static const double sizes[] = {1e-200, 1, 1e150};
    pare_rng rng = pare_rng_at(21, 0);
    for (size_t t = 0; t < 6 * 5 * 3; t++) {
        const size_t m = shapes[t / 6 % 5][0], n = shapes[t / 6 % 5][1], k = m < n ? m : n;
        const double size = sizes[t / 30];
        const pare_mark mark = pare_arena_mark(*state);
        pare_mat x = pare_mat_new(*state, m, n);
        for (size_t i = 0; i < k; i++) pare_row_mut(&x, i)[i] = size * spectra[t % 6](i, k);
        for (size_t i = 0; i < 4; i++) reflect(&x, &rng, i % 2);
        const pare_weight w = weight_of(&x);
        const double b = bound(*state, &w);
        CHECK(b >= size * (1 - 1e-13), "seed 21, try %zu (%zu x %zu): %.17g", t, m, n, b / size);
        CHECK(b <= size * 1.001, "seed 21, try %zu (%zu x %zu): %.17g", t, m, n, b / size);
        pare_arena_reset(*state, mark);
    }
}

/* ---- lower bounds of the truth ------------------------------------------------------------ */

/* |w x| / |x| in long double after some power steps: below |w|_2 whatever x is. */
static double lower_bound(pare_arena *a, const pare_weight *w, size_t steps)
{
    const size_t m = w->rows, n = w->cols;
    long double *x = pare_alloc(a, n, sizeof *x), *y = pare_alloc(a, m, sizeof *y), ratio = 0;
    assert_true(x && y);
    for (size_t j = 0; j < n; j++) x[j] = 1 + (long double)(j * 37 % 101) / 50;
    for (size_t s = 0; s < steps; s++) {
        long double xx = 0, yy = 0;
        for (size_t j = 0; j < n; j++) xx += x[j] * x[j];
        for (size_t i = 0; i < m; i++) {
            y[i] = 0;
            for (size_t j = 0; j < n; j++) y[i] += (long double)pare_weight_at(w, i * n + j) * x[j];
            yy += y[i] * y[i];
        }
        ratio = sqrtl(yy / xx);
        for (size_t j = 0; j < n; j++) x[j] = 0;
        for (size_t i = 0; i < m; i++)
            for (size_t j = 0; j < n; j++)
                x[j] += (long double)pare_weight_at(w, i * n + j) * y[i] / sqrtl(yy);
    }
    return (double)(ratio * (1 - 1e-15L)); /* sums of long doubles: far fewer than 1e-15 lost */
}

static void gaussian_of_512_is_within_a_thousandth(void **state)
{
    const pare_mat x = normal_mat(*state, 512, 512, 22);
    const pare_weight f64 = weight_of(&x), f32 = narrow_weight(*state, &x);
    double s[512];
    assert_int_equal(pare_svd(NULL, s, NULL, &x, *state, NULL), PARE_OK);
    const double b = bound(*state, &f64), c = bound(*state, &f32);
    assert_true(b >= s[0] * (1 - 1e-13) && b <= s[0] * (1 + 1e-3));
    assert_true(b >= lower_bound(*state, &f64, 20) && c >= lower_bound(*state, &f32, 20));
    assert_true(fabs(b - c) <= 1e-5 * b);
    assert_true(bound(*state, &f64) == b); /* same matrix, same bits */
}

static void no_shape_gives_a_bound_below_what_a_vector_reaches(void **state)
{
    for (size_t t = 0; t < 60; t++) {
        const size_t m = 1 + t * 29 % 140, n = 1 + t * 53 % 130;
        const pare_mark mark = pare_arena_mark(*state);
        const pare_mat x = normal_mat(*state, m, n, 100 + t);
        const pare_weight w = weight_of(&x);
        const double b = bound(*state, &w), low = lower_bound(*state, &w, 300);
        CHECK(b >= low && b <= low * 1.001, "seed %zu, %zu x %zu: %.17g, at least %.17g", 100 + t,
              m, n, b, low);
        pare_arena_reset(*state, mark);
    }
}

/* ---- the proof at its edge ---------------------------------------------------------------- */

/* Rayleigh quotient in quad of the exact Gram matrix: a lower bound on its top eigenvalue, equal
 * to it to some 1e-30 after enough steps. */
static quad exact_top(const pare_mat *x, size_t steps)
{
    const size_t m = x->rows, k = x->cols; /* g = x' x */
    quad g[12][12] = {{0}}, v[12], top = 0;
    assert_true(k <= 12);
    for (size_t i = 0; i < k; i++) {
        v[i] = 1 + (quad)i / 7;
        for (size_t j = 0; j < k; j++)
            for (size_t l = 0; l < m; l++)
                g[i][j] += (quad)pare_row(x, l)[i] * (quad)pare_row(x, l)[j];
    }
    for (size_t s = 0; s < steps; s++) {
        quad next[12] = {0}, vv = 0, vg = 0, largest = 0;
        for (size_t i = 0; i < k; i++) {
            for (size_t j = 0; j < k; j++) next[i] += g[i][j] * v[j];
            vv += v[i] * v[i];
            vg += v[i] * next[i];
            if (next[i] > largest) largest = next[i];
            if (-next[i] > largest) largest = -next[i];
        }
        top = vg / vv;
        for (size_t i = 0; i < k; i++) v[i] = next[i] / largest;
    }
    return top;
}

/* A c a few units below the top eigenvalue may still let Cholesky through, as fl(G) and L are
 * rounded: what is then proven must nevertheless be above. */
static void what_cholesky_lets_through_is_still_above_the_eigenvalue(void **state)
{
    const unit_scale one = {0, 1, 1};
    size_t through = 0;
    for (size_t t = 0; t < 400; t++) {
        const size_t k = 2 + t % 11, m = k + t % 5;
        const pare_mark mark = pare_arena_mark(*state);
        pare_mat x = normal_mat(*state, m, k, 1000 + t);
        for (size_t i = 0; i < m * k; i++) x.v[i] = tanh(x.v[i]); /* into [-1, 1] */
        const pare_weight w = weight_of(&x);
        const quad top = exact_top(&x, 400);
        gram g;
        assert_int_equal(pare_gram_of(&g, &w, &one, pare_norm_fro(&w), *state, NULL), PARE_OK);
        for (int j = -12; j <= 12; j++) {
            const double c = (double)top * (1 + j * 0x1p-53);
            pare_ub b;
            assert_int_equal(pare_gram_prove(&b, &g, c, NULL), PARE_OK);
            if (isinf(b.v)) continue;
            CHECK((quad)b.v >= top, "seed %zu: c + %d u", 1000 + t, j);
            assert_true(b.v <= (double)top * (1 + 1e-12));
            through += (quad)c < top;
        }
        pare_arena_reset(*state, mark);
    }
    CHECK(through > 20, "only %zu cases: this test proves nothing", through);
}

/* 1 is summed up with 256000 squares of 2^-62 in tiles that are each rounded away: fl(G) is 1, G
 * is 2^-44 more. Without the Gram matrix's own error the bound would be below. */
static void what_the_gram_matrix_lost_is_paid(void **state)
{
    const size_t rows = 256000;
    const unit_scale one = {0, 1, 1};
    pare_mat x = pare_mat_new(*state, rows, 2);
    assert_non_null(x.v);
    for (size_t i = 0; i < rows; i++) x.v[2 * i] = i == 0 ? 1 : 0x1p-31;
    const pare_weight w = weight_of(&x);
    gram g;
    pare_ub b;
    assert_int_equal(pare_gram_of(&g, &w, &one, pare_norm_fro(&w), *state, NULL), PARE_OK);
    assert_int_equal(pare_gram_prove(&b, &g, 1 + 0x1p-51, NULL), PARE_OK);
    assert_true((quad)b.v >= 1 + (quad)(rows - 1) * (quad)0x1p-62);
    assert_true(b.v <= 1 + 1e-10);
}

/* Random small x; its exact top eigenvalue; and L that has nothing to do with c I - G. */
static void any_factor_at_all_gives_a_true_bound(void **state)
{
    const unit_scale one = {0, 1, 1};
    for (size_t t = 0; t < 300; t++) {
        const size_t k = 2 + t % 11;
        const pare_mark mark = pare_arena_mark(*state);
        pare_mat x = normal_mat(*state, k, k, 2000 + t);
        for (size_t i = 0; i < k * k && t % 2; i++) x.v[i] = 1; /* top is the row sum, k^2 */
        const pare_weight w = weight_of(&x);
        const quad top = exact_top(&x, 400);
        gram g;
        assert_int_equal(pare_gram_of(&g, &w, &one, pare_norm_fro(&w), *state, NULL), PARE_OK);
        pare_rng rng = pare_rng_at(2000 + t, 2);
        for (size_t i = 0; i < k; i++)
            for (size_t j = 0; j <= i; j++)
                pare_row_mut(&g.g, i)[j] = t % 3 ? 2 * pare_rng_normal(&rng) : 0;
        const double c = t % 4 < 2 ? 0 : (double)t / 10;
        CHECK((quad)pare_gram_bound(&g, c).v >= top, "seed %zu", 2000 + t);
        pare_row_mut(&g.g, k - 1)[0] = NAN;
        assert_true(isinf(pare_gram_bound(&g, c).v));
        pare_arena_reset(*state, mark);
    }
}

/* G = 0, L = 2 I, c = 4: no residual is seen, but L L^T may be wrong by gamma_k |L|_F^2. */
static void the_rounding_of_the_residual_is_paid(void **state)
{
    enum { k = 200 };
    pare_mat x = pare_mat_new(*state, k, k);
    const pare_weight w = weight_of(&x);
    const unit_scale one = {0, 1, 1};
    gram g;
    assert_int_equal(pare_gram_of(&g, &w, &one, pare_norm_fro(&w), *state, NULL), PARE_OK);
    for (size_t i = 0; i < k; i++) pare_row_mut(&g.g, i)[i] = 2;
    const double b = pare_gram_bound(&g, 4).v;
    assert_true(b >= 4 + 4 * k * pare_gamma(k, PARE_UNIT_F64).v && b <= 4 * (1 + 1e-11));
}

static void a_c_clearly_too_small_is_not_proven(void **state)
{
    const pare_mat x = normal_mat(*state, 150, 120, 23);
    const pare_weight w = weight_of(&x);
    const unit_scale s = pare_unit_scale_of(pare_norm_max(&w).v);
    gram g;
    double est;
    pare_ub b;
    assert_int_equal(pare_gram_of(&g, &w, &s, pare_unit_fro(&w, &s), *state, NULL), PARE_OK);
    assert_int_equal(pare_gram_top_est(&est, &g, *state, NULL), PARE_OK);
    static const double bad[] = {0.5, 0.999999, -1, 0, NAN, INFINITY};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(pare_gram_prove(&b, &g, bad[i] * est, NULL), PARE_OK);
        assert_true(isinf(b.v));
    }
    assert_int_equal(pare_gram_prove(&b, &g, 1.000001 * est, NULL), PARE_OK);
    assert_true(b.v >= 1.000001 * est && b.v <= 1.000002 * est);
}

/* ---- the border --------------------------------------------------------------------------- */

static void extreme_entries_neither_overflow_nor_vanish(void **state)
{
    static const double sizes[] = {DBL_TRUE_MIN, 1e-310, 1e-300, 1e300, DBL_MAX / 8};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const double s = sizes[i], v[] = {s, 2 * s, 2 * s, s}; /* norm 3 s */
        const pare_weight w = {PARE_F64, 2, 2, v};
        const double b = bound(*state, &w);
        CHECK(b >= 3 * s && b <= fmax(3 * s * 1.001, 4 * DBL_TRUE_MIN), "%g: %g", s, b);
    }
    const double wide[] = {DBL_MAX / 2, DBL_TRUE_MIN, 0, DBL_MAX / 2};
    const pare_weight w = {PARE_F64, 2, 2, wide};
    assert_true(bound(*state, &w) >= DBL_MAX / 2 && bound(*state, &w) <= DBL_MAX / 2 * 1.001);
}

/* |w|_F overflows, |w|_2 does not. */
static void the_norm_is_found_where_frobenius_overflows(void **state)
{
    pare_mat d = pare_mat_new(*state, 9, 9);
    for (size_t i = 0; i < 9; i++) pare_row_mut(&d, i)[i] = DBL_MAX / 2;
    const pare_weight w = weight_of(&d);
    assert_true(isinf(pare_norm_fro(&w).v));
    assert_true(bound(*state, &w) >= DBL_MAX / 2 && bound(*state, &w) <= DBL_MAX / 2 * 1.001);
}

static void a_nan_is_refused_and_nothing_is_claimed(void **state)
{
    double v[] = {1, 2, 3, NAN, 5, 6};
    const pare_weight w = {PARE_F64, 2, 3, v};
    pare_ub b = {0};
    pare_err err = {0};
    assert_int_equal(pare_norm_spectral(&b, &w, *state, &err), PARE_ERR_NONFINITE);
    assert_true(isinf(b.v) && strstr(err.msg, "(1, 0)") && strstr(err.msg, "[2, 3]"));
}

static void zero_and_empty_are_exactly_zero(void **state)
{
    const double v[6] = {0};
    const pare_weight all[] = {
        {PARE_F64, 2, 3, v}, {PARE_F64, 0, 3, v}, {PARE_F64, 3, 0, v}, {PARE_F64, 3, 2, NULL}};
    for (size_t i = 0; i < 4; i++) assert_true(bound(*state, &all[i]) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(hadamard_of_512_has_norm_root_512),
        ARENA_TEST(integer_rank_one_has_the_product_of_lengths),
        ARENA_TEST(diagonal_has_its_largest_entry),
        ARENA_TEST(an_easy_norm_by_sums_is_found),
        ARENA_TEST(values_put_in_come_out),
        ARENA_TEST(gaussian_of_512_is_within_a_thousandth),
        ARENA_TEST(no_shape_gives_a_bound_below_what_a_vector_reaches),
        ARENA_TEST(what_cholesky_lets_through_is_still_above_the_eigenvalue),
        ARENA_TEST(what_the_gram_matrix_lost_is_paid),
        ARENA_TEST(any_factor_at_all_gives_a_true_bound),
        ARENA_TEST(the_rounding_of_the_residual_is_paid),
        ARENA_TEST(a_c_clearly_too_small_is_not_proven),
        ARENA_TEST(extreme_entries_neither_overflow_nor_vanish),
        ARENA_TEST(the_norm_is_found_where_frobenius_overflows),
        ARENA_TEST(a_nan_is_refused_and_nothing_is_claimed),
        ARENA_TEST(zero_and_empty_are_exactly_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
