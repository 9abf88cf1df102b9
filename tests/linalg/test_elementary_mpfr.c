/* Tests src/linalg/elementary.c: exp, tanh and erf in f64 against MPFR, over the whole range. */
#include "mpfr_cases.h"
#include "linalg/elementary.h"
#include <pare/base.h>

enum { TRIES = 120000 };
#define U 0x1p-53

/* |got - y| in u max(|y|, least); below the normal numbers in u 2^-1022. */
static double off_in_u(double got, mpfr_srcptr y, double least)
{
    mpfr_t d;
    const double size = fmax(fmax(fabs(mpfr_get_d(y, MPFR_RNDN)), least), 0x1p-1022);
    mpfr_init2(d, 300);
    mpfr_sub_d(d, y, got, MPFR_RNDN);
    mpfr_div_d(d, d, size, MPFR_RNDN);
    const double off = fabs(mpfr_get_d(d, MPFR_RNDA)) / U;
    mpfr_clear(d);
    return off;
}

typedef struct function {
    const char *name;
    double (*ours)(double);
    mpfr_function *exact;
    double most, least; /* errors in u; relative to max(|y|, least) */
    double high;
} function;

static void errors_are_those_proven(void **state)
{
    (void)state;
    static const function all[] = {{"exp", pare_exp, mpfr_exp, 2, 0, 709.7827},
                                   {"tanh", pare_tanh, mpfr_tanh, 8, 0, DBL_MAX},
                                   {"erf", pare_erf, mpfr_erf, 7, 1, DBL_MAX}};
    mpfr_t x, y;
    mpfr_inits2(300, x, y, (mpfr_ptr)0);
    for (size_t k = 0; k < 3; k++) {
        const function *const f = &all[k];
        pare_rng r = pare_rng_at(30 + k, 0);
        double worst = 0;
        for (size_t t = 0; t < TRIES; t++) {
            double a = argument(&r, t);
            if (t % 8 == 7) a = 6.1 * (2 * pare_rng_uniform(&r) - 1);
            if (!(a <= f->high)) continue;
            mpfr_set_d(x, a, MPFR_RNDN);
            f->exact(y, x, MPFR_RNDN);
            const double off = off_in_u(f->ours(a), y, f->least);
            if (!(off <= f->most)) fail_msg("seed %zu: %s(%a): %g u", 30 + k, f->name, a, off);
            worst = fmax(worst, off);
        }
        print_message("%s: %.2f u of %.0f\n", f->name, worst, f->most);
        assert_true(worst > 0.9);
    }
    mpfr_clears(x, y, (mpfr_ptr)0);
}

static void angles_are_within_three_units(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(40, 0);
    double worst = 0;
    mpfr_t x, y;
    mpfr_inits2(300, x, y, (mpfr_ptr)0);
    for (size_t t = 0; t < TRIES; t++) {
        const double u = 2 * pare_rng_uniform(&r) - 1;
        const double a = t < 4000     ? ((double)t - 2000) * 0.78539816339744831
                         : t % 3 == 0 ? PARE_SINCOS_MOST * u
                                      : ldexp(u, (int)(t % 60) - 29);
        double s, c;
        pare_sincos(a, &s, &c);
        mpfr_set_d(x, a, MPFR_RNDN);
        mpfr_sin(y, x, MPFR_RNDN);
        double off = off_in_u(s, y, 1);
        mpfr_cos(y, x, MPFR_RNDN);
        off = fmax(off, off_in_u(c, y, 1));
        if (!(off <= 3)) fail_msg("seed 40: angle %a: %g u", a, off);
        worst = fmax(worst, off);
    }
    print_message("sin, cos: %.2f u of 3\n", worst);
    assert_true(worst > 0.5);
    mpfr_clears(x, y, (mpfr_ptr)0);
}

static void powers_are_within_one_unit(void **state)
{
    (void)state;
    static const double bases[] = {1 + 0x1p-52, 2, 10000, 1e6, 1e30, 2e130, DBL_MAX};
    double worst = 0;
    mpfr_t x, y, z;
    mpfr_inits2(300, x, y, z, (mpfr_ptr)0);
    for (size_t b = 0; b < sizeof bases / sizeof *bases; b++)
        for (size_t d = 1; d < 200; d++)
            for (size_t j = 0; j < d; j += 1 + d / 9) {
                mpfr_set_d(x, bases[b], MPFR_RNDN);
                mpfr_set_d(y, (double)j, MPFR_RNDN);
                mpfr_div_d(y, y, (double)d, MPFR_RNDN);
                mpfr_pow(z, x, y, MPFR_RNDN);
                const double off = off_in_u(pare_power(bases[b], (double)j, (double)d), z, 0);
                if (!(off <= 1.01)) fail_msg("%g^(%zu/%zu): %g u", bases[b], j, d, off);
                worst = fmax(worst, off);
            }
    print_message("powers: %.2f u of 1.01\n", worst);
    mpfr_clears(x, y, z, (mpfr_ptr)0);
}

static void ends_of_the_range(void **state)
{
    (void)state;
    assert_true(pare_exp(0) == 1 && pare_exp(-INFINITY) == 0 && isinf(pare_exp(INFINITY)));
    assert_true(isinf(pare_exp(709.79)) && isnan(pare_exp(NAN)));
    assert_true(pare_tanh(0) == 0 && pare_tanh(INFINITY) == 1 && pare_tanh(-20) == -1);
    assert_true(isnan(pare_tanh(NAN)) && isnan(pare_erf(NAN)));
    assert_true(pare_erf(0) == 0 && pare_erf(INFINITY) == 1 && pare_erf(-6) == -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_are_those_proven),
        cmocka_unit_test(angles_are_within_three_units),
        cmocka_unit_test(powers_are_within_one_unit),
        cmocka_unit_test(ends_of_the_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
