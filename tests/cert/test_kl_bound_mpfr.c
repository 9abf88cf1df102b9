/* Tests src/cert/kl_bound.c: bounds on the KL divergence against MPFR. */
#include "cert/outputs.h"
#include <pare_test.h>
#include <mpfr.h>

enum { MOST = 600, BITS = 400 };

static void log_sum_exp(mpfr_t out, const double *x, size_t n)
{
    mpfr_t t;
    mpfr_init2(t, BITS);
    mpfr_set_zero(out, 1);
    for (size_t k = 0; k < n; k++) {
        mpfr_set_d(t, x[k], MPFR_RNDN);
        mpfr_exp(t, t, MPFR_RNDN);
        mpfr_add(out, out, t, MPFR_RNDN);
    }
    mpfr_log(out, out, MPFR_RNDN);
    mpfr_clear(t);
}

/* KL(softmax f, softmax g) of stored rows. */
static double exact_kl(const double *f, const double *g, size_t n)
{
    mpfr_t lf, lg, sum, p, t;
    mpfr_inits2(BITS, lf, lg, sum, p, t, (mpfr_ptr)0);
    log_sum_exp(lf, f, n);
    log_sum_exp(lg, g, n);
    mpfr_set_zero(sum, 1);
    for (size_t k = 0; k < n; k++) {
        mpfr_d_sub(p, f[k], lf, MPFR_RNDN); /* ln p_k */
        mpfr_d_sub(t, g[k], lg, MPFR_RNDN);
        mpfr_sub(t, p, t, MPFR_RNDN);
        mpfr_exp(p, p, MPFR_RNDN);
        mpfr_mul(t, t, p, MPFR_RNDN);
        mpfr_add(sum, sum, t, MPFR_RNDN);
    }
    const double d = mpfr_get_d(sum, MPFR_RNDD);
    mpfr_clears(lf, lg, sum, p, t, (mpfr_ptr)0);
    return d;
}

static void by_hand(void **state)
{
    (void)state;
    const double even[] = {0, 0}, odd[] = {log(3), 0}, far[] = {400, -400}, away[] = {-400, 400};
    const double kl = 0.5 * log(4.0 / 3); /* of (1/2, 1/2) and (3/4, 1/4) */
    assert_near(pare_kl_bound(even, 0, odd, 0, 2).v, kl, 1e-12);
    assert_near(pare_kl_bound(odd, 0, even, 0, 2).v, 0.75 * log(1.5) + 0.25 * log(0.5), 1e-12);
    /* A constant changes nothing, equal rows have none, and it is never above the spread. */
    const double shifted[] = {log(3) + 1000, 1000};
    assert_near(pare_kl_bound(even, 0, shifted, 0, 2).v, kl, 1e-12);
    assert_le(pare_kl_bound(odd, 0, odd, 0, 2).v, 1e-30);
    assert_near(pare_kl_bound(far, 0, away, 0, 2).v, 1600, 1e-9);
    assert_true(pare_kl_bound(even, INFINITY, odd, 0, 2).v == INFINITY);
    assert_true(pare_kl_bound(even, 0, odd, INFINITY, 2).v == INFINITY);
    const double bad[] = {NAN, 1}, huge[] = {INFINITY, 1};
    assert_true(pare_kl_bound(bad, 0, odd, 0, 2).v == INFINITY);
    assert_true(pare_kl_bound(odd, 0, huge, 0, 2).v == INFINITY);
    assert_true(pare_kl_bound(huge, 0, huge, 0, 2).v == INFINITY);
    const double one[] = {5}, other[] = {7};
    assert_le(pare_kl_bound(one, 0, other, 0, 1).v, 1e-30);
}

typedef struct rows {
    size_t n;
    double f[MOST], g[MOST], radius[2]; /* midpoints */
    double x[MOST], y[MOST];            /* somewhere within the radii */
} rows;

static void draw(rows *o, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 1);
    o->n = 2 + (size_t)pare_rng_below(&r, seed % 8 ? 6 : MOST - 2);
    const double size = pow(10, 3 * pare_rng_uniform(&r) - 1);
    const double apart = seed % 4 ? pow(10, 1 - 14 * pare_rng_uniform(&r)) : size;
    const double shift = seed % 6 ? 0 : 1e4 * pare_rng_normal(&r);
    for (size_t k = 0; k < 2; k++)
        o->radius[k] = seed % 3 ? pow(10, 1 - 14 * pare_rng_uniform(&r)) : 0;
    if (seed % 5 == 0) o->radius[seed % 2] = 0;
    const bool corner = seed % 7 < 4;
    for (size_t k = 0; k < o->n; k++) {
        o->f[k] = size * pare_rng_normal(&r);
        o->g[k] = shift + o->f[k] + apart * pare_rng_normal(&r);
        const double a = 2 * pare_rng_uniform(&r) - 1, b = 2 * pare_rng_uniform(&r) - 1;
        /* the worst is mostly at a corner: likely entries of f up, of g down */
        const double up = corner ? (o->g[k] - o->f[k] < shift ? 1 : -1) : a;
        const double down = corner ? -up : b;
        o->x[k] = o->f[k] + o->radius[0] * up;
        o->y[k] = o->g[k] + o->radius[1] * down;
    }
    /* What adding them has rounded. */
    for (size_t k = 0; k < 2; k++)
        if (o->radius[k] > 0) o->radius[k] += 1e-15 * (10 * size + fabs(shift) + 10 * apart);
}

static void no_divergence_is_above_its_bound(void **state)
{
    (void)state;
    static rows o;
    double closest = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        draw(&o, seed);
        const double exact = exact_kl(o.x, o.y, o.n);
        const double bound = pare_kl_bound(o.f, o.radius[0], o.g, o.radius[1], o.n).v;
        if (!(exact <= bound)) fail_msg("seed %d: %.17g above %.17g", (int)seed, exact, bound);
        if (o.radius[0] > 0 && o.radius[1] > 0) closest = fmax(closest, exact / bound);
    }
    assert_true(closest > 0.9); /* the attack comes near */
}

/* Without radii the bound is the divergence, also where the two hardly differ. */
static void the_bound_is_sharp(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        pare_rng r = pare_rng_at(seed, 2);
        double f[MOST], g[MOST];
        const double apart = pow(10, 1 - 9 * pare_rng_uniform(&r));
        for (size_t k = 0; k < MOST; k++) {
            f[k] = 3 * pare_rng_normal(&r);
            g[k] = f[k] + apart * pare_rng_normal(&r);
        }
        const double exact = exact_kl(f, g, MOST), bound = pare_kl_bound(f, 0, g, 0, MOST).v;
        assert_le(exact, bound);
        assert_le(bound, exact * (1 + 1e-6));
    }
}

/* Each term of what the radii add, where it dominates: two outputs, moved to a corner. */
static void radii_cost_what_they_must(void **state)
{
    (void)state;
    static const double f[] = {0.5, -0.5}, g[] = {-0.5, 0.5}; /* S = 2 */
    for (double a = 1e-6; a < 1e-2; a *= 10) {
        const double x[] = {0.5 + a, -0.5 - a}, y[] = {-0.5 - a, 0.5 + a};
        const double base = exact_kl(f, g, 2);
        const double of_f = exact_kl(x, g, 2) - base, of_g = exact_kl(f, y, 2) - base;
        assert_le(of_f, pare_kl_bound(f, a, g, 0, 2).v - base);
        assert_le(of_g, pare_kl_bound(f, 0, g, a, 2).v - base);
        assert_le(pare_kl_bound(f, a, g, 0, 2).v - base, 4 * of_f);
        assert_le(pare_kl_bound(f, 0, g, a, 2).v - base, 4 * of_g);
        assert_le(exact_kl(x, y, 2), pare_kl_bound(f, a, g, a, 2).v);
    }
    /* Equal midpoints: the squares of the radii alone. */
    static const double z[] = {0, 0};
    for (double a = 1e-6; a < 1; a *= 10) {
        const double x[] = {a, -a}, y[] = {-a, a};
        assert_le(exact_kl(x, z, 2), pare_kl_bound(z, a, z, 0, 2).v);
        assert_le(exact_kl(z, y, 2), pare_kl_bound(z, 0, z, a, 2).v);
        assert_le(exact_kl(x, y, 2), pare_kl_bound(z, a, z, a, 2).v);
        assert_le(pare_kl_bound(z, a, z, a, 2).v, 2.6 * a * a);
    }
}

/* Entries without weight, with weight in one model alone, and all alike. */
static void extreme_logits(void **state)
{
    (void)state;
    static const double cases[][2][4] = {
        {{0, -800, -900, -1000}, {0, -700, -650, -600}},
        {{0, -200, -300, -1000}, {-200, 0, -100, -1000}},
        {{0, 0, 0, 0}, {1, 1, 1, 1}},
        {{0, 0, 0, 0}, {0, 0, 0, -450}},
        {{0, -30, -30, -30}, {0, 0, 0, 0}},
        {{1e8, 1e8, 1e8 - 1, 0}, {1e8, 1e8, 1e8 - 2, 0}},
        {{-700.5, 0, -699.5, -710}, {-650, 0, -680, -700}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double exact = exact_kl(cases[i][0], cases[i][1], 4);
        const double bound = pare_kl_bound(cases[i][0], 0, cases[i][1], 0, 4).v;
        assert_le(exact, bound);
        assert_le(bound, exact + 1e-9 * fabs(exact) + 1e-16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_hand),
        cmocka_unit_test(no_divergence_is_above_its_bound),
        cmocka_unit_test(the_bound_is_sharp),
        cmocka_unit_test(radii_cost_what_they_must),
        cmocka_unit_test(extreme_logits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
