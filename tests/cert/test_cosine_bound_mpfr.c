/* Tests src/cert/cosine_bound.c: bounds on 1 - cosine against MPFR. */
#include "cert/outputs.h"
#include <pare_test.h>
#include <mpfr.h>

enum { MOST = 400, BITS = 2400 };

/* 1 - cos of stored rows, rounded down. */
static double exact_distance(const double *f, const double *g, size_t n)
{
    mpfr_t fg, ff, gg, t;
    mpfr_inits2(BITS, fg, ff, gg, t, (mpfr_ptr)0);
    mpfr_set_zero(fg, 1), mpfr_set_zero(ff, 1), mpfr_set_zero(gg, 1);
    for (size_t k = 0; k < n; k++) {
        mpfr_set_d(t, f[k], MPFR_RNDN), mpfr_mul_d(t, t, g[k], MPFR_RNDN);
        mpfr_add(fg, fg, t, MPFR_RNDN);
        mpfr_set_d(t, f[k], MPFR_RNDN), mpfr_sqr(t, t, MPFR_RNDN), mpfr_add(ff, ff, t, MPFR_RNDN);
        mpfr_set_d(t, g[k], MPFR_RNDN), mpfr_sqr(t, t, MPFR_RNDN), mpfr_add(gg, gg, t, MPFR_RNDN);
    }
    mpfr_mul(t, ff, gg, MPFR_RNDN);
    mpfr_sqrt(t, t, MPFR_RNDN);
    mpfr_div(t, fg, t, MPFR_RNDN);
    mpfr_ui_sub(t, 1, t, MPFR_RNDN);
    const double d = mpfr_get_d(t, MPFR_RNDD);
    mpfr_clears(fg, ff, gg, t, (mpfr_ptr)0);
    return d;
}

static double proven(const double *f, double rf, const double *g, double rg, size_t n)
{
    double u[MOST], v[MOST];
    const double eu = pare_unit_row(u, f, n, rf), ev = pare_unit_row(v, g, n, rg);
    return pare_cosine_distance(u, eu, v, ev, n).v;
}

static void by_hand(void **state)
{
    (void)state;
    const double x[] = {3, 4}, y[] = {-4, 3}, z[] = {-3, -4}, w[] = {4, 3}, zero[] = {0, 0};
    assert_near(proven(x, 0, y, 0, 2), 1, 1e-14);
    assert_true(proven(x, 0, y, 0, 2) >= 1);
    assert_near(proven(x, 0, w, 0, 2), 0.04, 1e-15); /* 24 / 25 */
    assert_true(proven(x, 0, w, 0, 2) >= 0.04);
    assert_true(proven(x, 0, z, 0, 2) == 2); /* no more than there is */
    assert_le(proven(x, 0, x, 0, 2), 1e-29);
    /* Nothing is known of a row of zeros, or of one that may be. */
    assert_true(proven(x, 0, zero, 0, 2) == 2 && proven(zero, 0, zero, 0, 2) == 2);
    assert_true(proven(x, 5, y, 0, 2) == 2 && proven(x, INFINITY, x, 0, 2) == 2);
    assert_true(proven(x, 0, x, INFINITY, 2) == 2 && proven(x, NAN, x, 0, 2) == 2);
    const double bad[] = {NAN, 1}, huge[] = {INFINITY, 1};
    assert_true(proven(bad, 0, x, 0, 2) == 2 && proven(x, 0, huge, 0, 2) == 2);
}

/* The row turns by asin(r / |F|) where it is touched: the bound is met to second order. */
static void a_radius_turns_the_row(void **state)
{
    (void)state;
    const double x[] = {3, 4};
    for (double r = 1e-9; r < 4; r *= 7) {
        const double turned = 1 - sqrt(1 - r * r / 25), both = 1 - cos(2 * asin(r / 5));
        assert_le(r < 1e-3 ? r * r / 50 : turned, proven(x, r, x, 0, 2));
        assert_le(r < 1e-3 ? r * r / 50 : turned, proven(x, 0, x, r, 2));
        assert_le(proven(x, r, x, 0, 2), (r < 0.1 ? 1.1 : 4) * r * r / 50 + 1e-15 * r);
        assert_le(r < 1e-3 ? 0.999 * r * r * 4 / 50 : both, proven(x, r, x, r, 2));
    }
}

/* Far apart, next to one another, of any size; the rows anywhere in their balls. */
static void no_row_is_further_than_proven(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        pare_rng r = pare_rng_at(seed, 1);
        const size_t n = 1 + (size_t)pare_rng_below(&r, seed % 10 ? 12 : MOST);
        const double apart = pow(10, 1 - 17 * pare_rng_uniform(&r));
        const double size = seed % 5 ? 1 : ldexp(1, (int)pare_rng_below(&r, 1900) - 950);
        const double radius = seed % 3 ? pow(10, -18 * pare_rng_uniform(&r)) : 0;
        const double other = seed % 7 ? 1 : ldexp(1, (int)pare_rng_below(&r, 100) - 50);
        double f[MOST], g[MOST], F[MOST], G[MOST], way[2] = {0, 0};
        for (size_t k = 0; k < n; k++) {
            f[k] = pare_rng_normal(&r);
            g[k] = other * (f[k] + apart * pare_rng_normal(&r));
            F[k] = pare_rng_normal(&r), G[k] = pare_rng_normal(&r);
            way[0] += F[k] * F[k], way[1] += G[k] * G[k];
        }
        for (size_t k = 0; k < n; k++) {
            F[k] = size * (f[k] + radius * F[k] / sqrt(way[0]) * (1 - 1e-12));
            G[k] = size * (g[k] + radius * G[k] / sqrt(way[1]) * (1 - 1e-12));
            f[k] *= size, g[k] *= size;
        }
        /* Where a moved entry is rounded it is off by 2^-53 of itself. */
        const double off = size * (radius > 0 ? radius + 4e-15 * (1 + other) * (1 + apart) : 0);
        const double bound = proven(f, off, g, off, n), exact = exact_distance(F, G, n);
        if (!(exact <= bound)) fail_msg("seed %d: %.17g above %.17g", (int)seed, exact, bound);
    }
}

/* Without radii the bound is the value, however close to 1 the cosine is. */
static void nothing_is_lost_to_cancellation(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        pare_rng r = pare_rng_at(seed, 2);
        const size_t n = 384;
        const double apart = pow(10, -9 * pare_rng_uniform(&r));
        double f[MOST], g[MOST];
        for (size_t k = 0; k < n; k++) {
            f[k] = pare_rng_normal(&r);
            g[k] = 3 * (f[k] + apart * pare_rng_normal(&r));
        }
        const double exact = exact_distance(f, g, n), bound = proven(f, 0, g, 0, n);
        assert_le(exact, bound);
        assert_le(bound, exact * (1 + 1e-3));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(a_radius_turns_the_row),
        cmocka_unit_test(no_row_is_further_than_proven),
        cmocka_unit_test(nothing_is_lost_to_cancellation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
