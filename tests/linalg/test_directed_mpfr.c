/* Tests src/linalg/directed.c: no double below the exact value passes for an upper bound, none
 * above it for a lower one, and the bounds are the nearest ones. */
#include "mpfr_cases.h"
#include "linalg/bounds.h"

enum { TRIES = 80000 };

typedef struct function {
    const char *name;
    double (*up)(double), (*down)(double);
    mpfr_function *exact;
    double low, high; /* of the arguments */
} function;

static const function functions[] = {
    {"exp", pare_exp_up, pare_exp_down, mpfr_exp, -DBL_MAX, DBL_MAX},
    {"expm1", pare_expm1_up, pare_expm1_down, mpfr_expm1, -DBL_MAX, DBL_MAX},
    {"tanh", pare_tanh_up, pare_tanh_down, mpfr_tanh, -DBL_MAX, DBL_MAX},
    {"log", pare_log_up, pare_log_down, mpfr_log, 0x1p-1074, DBL_MAX},
};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

/* The next double but one, the most that a bound near underflow may give away. */
static double beyond(double x, double towards)
{
    return nextafter(nextafter(nextafter(x, towards), towards), towards);
}

static void bounds_enclose_the_exact_value_and_nothing_else(void **state)
{
    (void)state;
    mpfr_t x, y;
    mpfr_inits2(300, x, y, (mpfr_ptr)0);
    for (size_t k = 0; k < FUNCTIONS; k++) {
        const function *const f = &functions[k];
        pare_rng r = pare_rng_at(20 + k, 0);
        size_t wide = 0, used = 0;
        for (size_t t = 0; t < TRIES; t++) {
            const double a = argument(&r, t), up = f->up(a), down = f->down(a);
            if (!(a >= f->low && a <= f->high)) continue;
            mpfr_set_d(x, a, MPFR_RNDN);
            /* rounded in one direction twice: what one rounding gives */
            f->exact(y, x, MPFR_RNDU);
            const double above = mpfr_get_d(y, MPFR_RNDU);
            f->exact(y, x, MPFR_RNDD);
            const double below = mpfr_get_d(y, MPFR_RNDD);
            if (!(up >= above) || !(down <= below))
                fail_msg("seed %zu: %s(%a) is not in [%a, %a]", 20 + k, f->name, a, down, up);
            const bool tiny = fabs(below) < 0x1p-899;
            if (!(up <= (tiny ? beyond(above, INFINITY) : above)) ||
                !(down >= (tiny ? beyond(below, -INFINITY) : below)))
                wide++;
            used++;
        }
        print_message("%s: %zu of %zu bounds are not the nearest\n", f->name, wide, used);
        assert_true(used > TRIES / 3 && wide <= 4);
    }
    mpfr_clears(x, y, (mpfr_ptr)0);
}

static void exact_values_are_kept(void **state)
{
    (void)state;
    assert_true(pare_exp_up(0) == 1 && pare_exp_down(0) == 1);
    assert_true(pare_expm1_up(0) == 0 && pare_expm1_down(0) == 0);
    assert_true(pare_tanh_up(0) == 0 && pare_tanh_down(0) == 0);
    assert_true(pare_log_up(1) == 0 && pare_log_down(1) == 0);
    assert_true(pare_exp_up(-INFINITY) == 0 && pare_expm1_up(-INFINITY) == -1);
    assert_true(pare_log_up(0) == -INFINITY);
}

static void overflow_is_no_bound_from_below(void **state)
{
    (void)state;
    assert_true(isinf(pare_exp_up(710)) && pare_exp_down(710) == DBL_MAX);
    assert_true(isinf(pare_expm1_up(1e300)) && pare_expm1_down(INFINITY) == DBL_MAX);
    assert_true(isinf(pare_log_up(INFINITY)) && pare_tanh_up(INFINITY) == 1);
    assert_true(pare_exp_up(-1e9) > 0 && pare_exp_up(-1e9) < 0x1p-1070);
    assert_true(pare_exp_down(-1e9) == 0);
}

static void nothing_is_known_of_a_nan(void **state)
{
    (void)state;
    assert_true(isinf(pare_exp_up(NAN)) && pare_exp_down(NAN) == 0);
    assert_true(isinf(pare_expm1_up(NAN)) && pare_expm1_down(NAN) == -1);
    assert_true(pare_tanh_up(NAN) == 1 && pare_tanh_down(NAN) == -1);
    assert_true(pare_log_up(-1) == INFINITY && pare_log_down(-1) == -INFINITY);
    assert_true(pare_log_up(NAN) == INFINITY && pare_log_down(NAN) == -INFINITY);
    const pare_ub no = {NAN};
    const pare_lb nothing = {NAN};
    assert_true(isinf(pare_ub_exp(no).v) && isinf(pare_ub_expm1(no).v) && isinf(pare_ub_log(no).v));
    assert_true(pare_ub_tanh(no).v == 1 && pare_lb_exp(nothing).v == 1);
    assert_true(pare_lb_expm1(nothing).v == 0 && pare_lb_tanh(nothing).v == 0);
    assert_true(pare_lb_log(nothing).v == 0);
}

static void bounds_of_bounds_are_the_directed_functions(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(9, 0);
    for (size_t t = 0; t < 2000; t++) {
        const double x = fabs(argument(&r, t));
        const pare_ub a = {x};
        const pare_lb b = {x};
        assert_true(pare_ub_exp(a).v == pare_exp_up(x));
        assert_true(pare_ub_expm1(a).v == pare_expm1_up(x));
        assert_true(pare_ub_tanh(a).v == pare_tanh_up(x) && pare_ub_tanh(a).v <= x);
        assert_true(pare_ub_log(a).v == fmax(0, pare_log_up(x)));
        assert_true(pare_lb_exp(b).v == pare_exp_down(x));
        assert_true(pare_lb_expm1(b).v == fmax(0, pare_expm1_down(x)));
        assert_true(pare_lb_tanh(b).v == fmax(0, pare_tanh_down(x)));
        assert_true(pare_lb_log(b).v == fmax(0, pare_log_down(x)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_enclose_the_exact_value_and_nothing_else),
        cmocka_unit_test(exact_values_are_kept),
        cmocka_unit_test(overflow_is_no_bound_from_below),
        cmocka_unit_test(nothing_is_known_of_a_nan),
        cmocka_unit_test(bounds_of_bounds_are_the_directed_functions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
