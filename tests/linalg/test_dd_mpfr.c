/* Tests src/linalg/dd.c, dd_erf.c and linalg/dd.h: the functions in double-double against MPFR,
 * over the whole range of f64. */
#include "linalg/dd.h"
#include "mpfr_cases.h"

enum { TRIES = 60000 };

typedef struct function {
    const char *name;
    dd (*ours)(dd);
    mpfr_function *exact;
    double units, absolute; /* 0: relative */
    double low, high;       /* claimed for arguments between them */
} function;

static dd log_of(dd x)
{
    return pare_dd_log(x.hi);
}

/* Pairs, unless the function takes doubles or the low half would not fit. */
static dd with_low(pare_rng *r, double x, bool pair)
{
    const double u = 2 * pare_rng_uniform(r) - 1;
    if (!pair || fabs(x) < 0x1p-960) return dd_of(x);
    return dd_fast_sum(x, 0x1p-53 * x * u);
}

static void worst_of(const function *f, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 0);
    double worst = 0;
    mpfr_t x, y;
    mpfr_inits2(300, x, y, (mpfr_ptr)0);
    size_t used = 0;
    for (size_t t = 0; t < TRIES; t++) {
        const dd a = with_low(&r, argument(&r, t), f->ours != log_of);
        if (!(a.hi >= f->low && a.hi <= f->high)) continue;
        mpfr_set_d(x, a.hi, MPFR_RNDN);
        mpfr_add_d(x, x, a.lo, MPFR_RNDN);
        f->exact(y, x, MPFR_RNDN);
        const dd got = f->ours(a);
        const double off = off_in_v2(got, y, f->absolute);
        if (!(off <= 16 * f->units) || !(fabs(got.lo) <= 0x1p-53 * fabs(got.hi)))
            fail_msg("seed %llu: %s(%a + %a) is off by %g v^2, %g allowed",
                     (unsigned long long)seed, f->name, a.hi, a.lo, off, 16 * f->units);
        worst = fmax(worst, off);
        used++;
    }
    print_message("%s: %.1f v^2 of %.0f, %zu arguments\n", f->name, worst, 16 * f->units, used);
    assert_true(used > TRIES / 3 && worst > 0.8); /* the search comes near */
    mpfr_clears(x, y, (mpfr_ptr)0);
}

static void functions_are_within_their_units_everywhere(void **state)
{
    (void)state;
    static const function all[] = {
        {"exp", pare_dd_exp, mpfr_exp, 4, 0, -623, 709.7827},
        {"expm1", pare_dd_expm1, mpfr_expm1, 16, 0, -DBL_MAX, 709.7827},
        {"tanh", pare_dd_tanh, mpfr_tanh, 28, 0, -DBL_MAX, DBL_MAX},
        {"log", log_of, mpfr_log, 2.5, 0, 0x1p-1074, DBL_MAX},
        {"erf", pare_dd_erf, mpfr_erf, 1, 1, -DBL_MAX, DBL_MAX},
    };
    for (size_t k = 0; k < 5; k++) worst_of(&all[k], 11 + k);
}

/* Halfway between the places of its series every term counts most. */
static void erf_is_within_one_unit_between_its_places(void **state)
{
    (void)state;
    double worst = 0;
    mpfr_t x, y;
    mpfr_inits2(300, x, y, (mpfr_ptr)0);
    for (double c = 1.0 / 32; c < 8.6; c += 1.0 / 16)
        for (int side = -1; side <= 1; side++) {
            const dd at = {c + side * 0x1p-49, side * 0x1.8p-104};
            mpfr_set_d(x, at.hi, MPFR_RNDN);
            mpfr_add_d(x, x, at.lo, MPFR_RNDN);
            mpfr_erf(y, x, MPFR_RNDN);
            worst = fmax(worst, off_in_v2(pare_dd_erf(at), y, true));
        }
    print_message("erf: %.1f v^2\n", worst);
    assert_true(worst < 3); /* the proof says 8.6 */
    mpfr_clears(x, y, (mpfr_ptr)0);
}

/* Below 2^-900 the low half may be lost. */
static void exp_underflows_gradually(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(3, 0);
    mpfr_t x, y;
    mpfr_inits2(300, x, y, (mpfr_ptr)0);
    for (size_t t = 0; t < 5000; t++) {
        const double a = -620 - 127 * pare_rng_uniform(&r);
        const dd got = pare_dd_exp(dd_of(a));
        mpfr_set_d(x, a, MPFR_RNDN);
        mpfr_exp(y, x, MPFR_RNDN);
        const double unit = got.hi * 0x1p-100 + 0x1p-1073;
        mpfr_sub_d(y, y, got.hi, MPFR_RNDN);
        mpfr_sub_d(y, y, got.lo, MPFR_RNDN);
        if (!(fabs(mpfr_get_d(y, MPFR_RNDA)) <= unit)) fail_msg("seed 3: exp(%a)", a);
    }
    mpfr_clears(x, y, (mpfr_ptr)0);
}

static void angles_are_within_four_units_up_to_a_billion(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(6, 0);
    double worst = 0;
    mpfr_t x, s, c;
    mpfr_inits2(400, x, s, c, (mpfr_ptr)0);
    for (size_t t = 0; t < 20000; t++) {
        const double u = 2 * pare_rng_uniform(&r) - 1;
        const double at = t < 2000     ? ((double)t - 1000) * 0.78539816339744831
                          : t % 3 == 0 ? 0x1p30 * u
                                       : ldexp(u, (int)(t % 60) - 40);
        const dd a = with_low(&r, at, t > 2000);
        dd sine, cosine;
        mpfr_set_d(x, a.hi, MPFR_RNDN);
        mpfr_add_d(x, x, a.lo, MPFR_RNDN);
        mpfr_sin_cos(s, c, x, MPFR_RNDN);
        pare_dd_sincos(a, &sine, &cosine);
        const double off = fmax(off_in_v2(sine, s, 1), off_in_v2(cosine, c, 1));
        if (!(off <= 64)) fail_msg("seed 6: angle %a + %a is off by %g v^2", a.hi, a.lo, off);
        worst = fmax(worst, off);
    }
    print_message("sin, cos: %.1f v^2\n", worst);
    dd sine, cosine;
    pare_dd_sincos(dd_of(0x1.00000001p30), &sine, &cosine);
    assert_true(isnan(sine.hi) && isnan(cosine.hi));
    mpfr_clears(x, s, c, (mpfr_ptr)0);
}

static void ends_of_the_range(void **state)
{
    (void)state;
    assert_true(pare_dd_exp(dd_of(0)).hi == 1 && pare_dd_exp(dd_of(-INFINITY)).hi == 0);
    assert_true(isinf(pare_dd_exp(dd_of(709.79)).hi) && isinf(pare_dd_exp(dd_of(INFINITY)).hi));
    assert_true(isnan(pare_dd_exp(dd_of(NAN)).hi) && isnan(pare_dd_expm1(dd_of(NAN)).hi));
    assert_true(isinf(pare_dd_expm1(dd_of(1e9)).hi) && pare_dd_expm1(dd_of(-INFINITY)).hi == -1);
    assert_true(pare_dd_tanh(dd_of(-INFINITY)).hi == -1 && isnan(pare_dd_tanh(dd_of(NAN)).hi));
    assert_true(pare_dd_erf(dd_of(-1e9)).hi == -1 && isnan(pare_dd_erf(dd_of(NAN)).hi));
    assert_true(pare_dd_log(1).hi == 0 && pare_dd_log(0).hi == -INFINITY);
    assert_true(isinf(pare_dd_log(INFINITY).hi) && isnan(pare_dd_log(-1).hi));
    assert_true(isnan(pare_dd_log(NAN).hi));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_are_within_their_units_everywhere),
        cmocka_unit_test(erf_is_within_one_unit_between_its_places),
        cmocka_unit_test(exp_underflows_gradually),
        cmocka_unit_test(angles_are_within_four_units_up_to_a_billion),
        cmocka_unit_test(ends_of_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
