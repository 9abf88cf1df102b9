/* Tests the lemmas src/cert/enclose*.c rests on, by random search and at their worst cases. The
 * constants are private, so this test looks at the room's own header. */
#include "model/model_facts.h"
#include "cert/enclose.h"
#include <pare_test.h>

enum { TRIES = 20000, MOST = 6 };

static double normal(pare_rng *r)
{
    return pare_rng_normal(r);
}

/* softmax(a) into p. */
static void softmax(double *p, const double *a, size_t n)
{
    double top = a[0], sum = 0;
    for (size_t j = 1; j < n; j++) top = a[j] > top ? a[j] : top;
    for (size_t j = 0; j < n; j++) sum += p[j] = exp(a[j] - top);
    for (size_t j = 0; j < n; j++) p[j] /= sum;
}

static void softmax_moves_by_tanh_of_half_the_largest_score_movement(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(1, 0);
    double tightest = 0, peaked = 0;
    for (size_t t = 0; t < TRIES; t++) {
        const size_t n = 2 + (size_t)pare_rng_below(&r, MOST - 1);
        const double d = pow(10, -4 * pare_rng_uniform(&r) + 0.7), wide = 5 * pare_rng_uniform(&r);
        double a[MOST], b[MOST], p[MOST], q[MOST], tv = 0, top = 0;
        for (size_t j = 0; j < n; j++) {
            a[j] = wide * normal(&r);
            b[j] = a[j] + d * (pare_rng_below(&r, 3) == 0 ? 2 * pare_rng_uniform(&r) - 1
                               : pare_rng_below(&r, 2)    ? 1
                                                          : -1);
        }
        softmax(p, a, n);
        softmax(q, b, n);
        for (size_t j = 0; j < n; j++) {
            tv += fabs(p[j] - q[j]) / 2;
            top = p[j] > top ? p[j] : top;
        }
        assert_le(tv, enclose_tv(d, INFINITY) + 1e-15);
        assert_le(tv, enclose_tv(d, 1 - top) + 1e-15);
        tightest = fmax(tightest, tv / enclose_tv(d, INFINITY));
        if (top > 0.9) peaked = fmax(peaked, tv / enclose_tv(d, 1 - top));
    }
    assert_true(tightest > 0.98); /* two keys of equal weight */
    assert_true(peaked > 0.9);
}

static void total_variation_is_a_bound_at_the_edges(void **state)
{
    (void)state;
    assert_true(enclose_tv(0, 1) == 0);
    assert_true(enclose_tv(INFINITY, 1) == 1);
    assert_true(enclose_tv(1000, 0.5) == 1);
    assert_true(enclose_tv(NAN, 1) == 1);
    assert_true(enclose_tv(1e-9, 1) >= 0.5e-9 && enclose_tv(1e-9, 1) <= 0.51e-9);
}

/* |x/s(x) - y/s(y)| <= |x - y| / sqrt(s(x) s(y)), s = sqrt(|x|^2 + c) */
static void norms_move_by_the_geometric_mean_of_their_roots(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(2, 0);
    double tightest = 0;
    for (size_t t = 0; t < TRIES; t++) {
        const size_t n = 1 + (size_t)pare_rng_below(&r, MOST);
        const double c = pow(10, 4 * pare_rng_uniform(&r) - 3);
        const double far = pow(10, 4 * pare_rng_uniform(&r) - 3);
        double x[MOST], y[MOST], xx = c, yy = c, dist = 0, moved = 0;
        for (size_t k = 0; k < n; k++) {
            x[k] = normal(&r);
            y[k] = x[k] + far * normal(&r);
            xx += x[k] * x[k];
            yy += y[k] * y[k];
            dist += (x[k] - y[k]) * (x[k] - y[k]);
        }
        for (size_t k = 0; k < n; k++) moved += pow(x[k] / sqrt(xx) - y[k] / sqrt(yy), 2);
        const double bound = sqrt(dist) / sqrt(sqrt(xx) * sqrt(yy));
        assert_le(sqrt(moved), bound * (1 + 1e-12));
        tightest = fmax(tightest, sqrt(moved) / bound);
    }
    assert_true(tightest > 0.99);
}

static double act(pare_act a, double x)
{
    const double c = sqrt(2 / acos(-1));
    switch (a) {
    case PARE_ACT_NONE:
        return x;
    case PARE_ACT_RELU:
        return x > 0 ? x : 0;
    case PARE_ACT_TANH:
        return tanh(x);
    case PARE_ACT_GELU:
        return x * erfc(-x / sqrt(2)) / 2;
    case PARE_ACT_GELU_TANH:
        return x / 2 * (1 + tanh(c * (x + 0.044715 * x * x * x)));
    case PARE_ACT_SILU:
        return x / (1 + exp(-x));
    }
    return NAN;
}

/* A slope over a step is at most the largest derivative, and near it over a short step. */
static void activations_are_no_steeper_than_said_and_nearly_so(void **state)
{
    (void)state;
    for (int a = PARE_ACT_NONE; a <= PARE_ACT_TANH; a++) {
        const double most = pare_act_lipschitz((pare_act)a), h = 0x1p-14;
        double steepest = 0;
        for (double x = -12; x < 12; x += h)
            steepest = fmax(steepest, fabs(act((pare_act)a, x + h) - act((pare_act)a, x)) / h);
        assert_le(steepest, most + 1e-11); /* 1e-11: what the difference quotient rounds */
        assert_le(most, steepest * 1.00001 + 1e-5);
    }
}

static void rounding_goes_outwards(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(3, 0);
    for (size_t t = 0; t < TRIES; t++) {
        const double x = ldexp(1 + pare_rng_uniform(&r), (int)pare_rng_below(&r, 2000) - 1000);
        const double y = ldexp(1 + pare_rng_uniform(&r), (int)pare_rng_below(&r, 2000) - 1000);
        const long double lx = (long double)x, ly = (long double)y;
        assert_true((long double)up_add(x, y) >= lx + ly);
        assert_true((long double)up_mul(x, y) >= lx * ly || isinf(up_mul(x, y)));
        assert_true((long double)up_div(x, y) >= lx / ly || isinf(up_div(x, y)));
        assert_true((long double)up_sqrt(x) >= sqrtl(lx));
        assert_true((long double)down_sub(x, y) <= (lx > ly ? lx - ly : 0));
        assert_true(up(x) > x && down(x) < x);
    }
    assert_true(up(0) > 0 && up(0x1p-1074) > 0x1p-1074 && up(0x1p-1022) > 0x1p-1022);
    assert_true(isinf(up(NAN)) && isinf(up(DBL_MAX)) && isinf(up_mul(0, INFINITY)));
    assert_true(isinf(up_mul(INFINITY, 0)) && isinf(up_max(NAN, 1)) && isinf(up_max(1, NAN)));
    assert_true(isinf(up_div(1, 0)) && isinf(up_div(0, 0)) && up_mul(0, 5) == 0);
    assert_true(up_mul(1e-200, 1e-200) > 0);
}

static void norms_of_rows_bracket_the_true_ones(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(4, 0);
    for (size_t t = 0; t < TRIES; t++) {
        const size_t n = 1 + (size_t)pare_rng_below(&r, 40);
        const double size = ldexp(1, (int)pare_rng_below(&r, 400) - 200);
        double x[40], y[40];
        long double s = 0, d = 0;
        for (size_t k = 0; k < n; k++) {
            x[k] = size * normal(&r);
            y[k] = x[k] + size * 1e-8 * normal(&r);
            s += (long double)x[k] * (long double)x[k];
            d += ((long double)x[k] - (long double)y[k]) * ((long double)x[k] - (long double)y[k]);
        }
        s = sqrtl(s);
        assert_true((long double)enclose_norm_up(x, n) >= s);
        assert_true((long double)enclose_norm_down(x, n) <= s);
        assert_true((long double)enclose_norm_up(x, n) <= s * (1 + 1e-13L));
        assert_true((long double)enclose_norm_down(x, n) >= s * (1 - 1e-13L));
        assert_true((long double)enclose_distance_up(x, y, n) >= sqrtl(d));
    }
    const double huge[] = {1e200, 1e200}, bad[] = {1, NAN}, tiny[] = {1e-200, 1e-200};
    assert_true(isinf(enclose_norm_up(huge, 2)) && isinf(enclose_norm_up(bad, 2)));
    assert_true(enclose_norm_down(huge, 2) == 0 && enclose_norm_down(bad, 2) == 0);
    assert_true(enclose_norm_up(tiny, 2) >= 1.4143e-200 && enclose_norm_down(tiny, 2) == 0);
    assert_true(isinf(enclose_max_up(bad, 2)) && enclose_max_up(huge, 2) == 1e200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax_moves_by_tanh_of_half_the_largest_score_movement),
        cmocka_unit_test(total_variation_is_a_bound_at_the_edges),
        cmocka_unit_test(norms_move_by_the_geometric_mean_of_their_roots),
        cmocka_unit_test(activations_are_no_steeper_than_said_and_nearly_so),
        cmocka_unit_test(rounding_goes_outwards),
        cmocka_unit_test(norms_of_rows_bracket_the_true_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
