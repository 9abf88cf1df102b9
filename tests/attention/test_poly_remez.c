/* Tests src/attention/poly_remez.c: the polynomials are the best there are, the errors proven. */
#include "attention/poly_remez.h"
#include "base/json.h"
#include <pare/linalg.h>
#include <pare_test.h>

#define VECTORS "../shared/reference/depth/vectors.json"
static const double bounds[] = {1e-3, 0.1, 0.5, 1, 2, 3, 4, 6, 8, 12};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

static long double wide_miss(const poly_fit *f, long double x)
{
    long double s = 0;
    for (size_t k = f->degree + 1; k-- > 0;) s = s * x + f->c[k];
    return fabsl(s * expl(-x) - 1);
}

/* By 64 bits of mantissa and a fine grid that does not know the cells of the proof. */
static double measured(const poly_fit *f, double bound, size_t steps)
{
    long double peak = 0;
    for (size_t i = 0; i <= steps; i++) {
        const long double x = bound * (2.0L * (long double)i / (long double)steps - 1);
        const long double miss = wide_miss(f, x);
        if (!(miss <= peak)) peak = miss;
    }
    return (double)peak;
}

static void no_point_of_a_fine_grid_exceeds_the_proof_nor_is_it_needlessly_large(void **state)
{
    (void)state;
    for (size_t b = 0; b < BOUNDS; b++)
        for (size_t g = 0; g <= 20; g++)
            for (int taylor = 0; taylor < 2; taylor++) {
                const poly_fit f = taylor ? poly_taylor(bounds[b], g) : poly_remez(bounds[b], g);
                const double m = measured(&f, bounds[b], 20000);
                assert_le(m, f.error.v);
                assert_le(f.error.v, 1.02 * m + 0x1p-46 * exp(2 * bounds[b]));
            }
}

/* On a cell that bends, ends alone would miss the peak: a parabola with equal ends. */
static void the_top_between_two_ends_is_counted(void **state)
{
    (void)state;
    const poly_fit f = {.degree = 2, .c = {1.5, 0, -0.25}};
    const pare_ub e = poly_relative_error(f.c, 2, 2.0);
    const double m = measured(&f, 2.0, 100000);
    assert_le(m, e.v);
    assert_le(e.v, 1.02 * m);
    const double bad[] = {1, NAN};
    assert_true(isinf(poly_relative_error(bad, 1, 1).v));
    assert_true(isinf(poly_remez(1e6, 3).error.v));
}

/* Where the roundings of the proof's own values are what decides: degrees that leave nothing else,
 * and numbers next to 1. */
static void roundings_are_counted(void **state)
{
    (void)state;
    const uint64_t seed = 11;
    pare_rng r = pare_rng_at(seed, 0);
    for (int i = 0; i < 600; i++) {
        const double bound = 1 + 11 * pare_rng_uniform(&r);
        poly_fit f = poly_remez(bound, 18 + (size_t)pare_rng_below(&r, 7));
        /* pushed about by its last bits */
        for (size_t k = 0; k <= f.degree; k++)
            f.c[k] *= 1 + 0x1p-52 * (double)pare_rng_below(&r, 3);
        f.error = poly_relative_error(f.c, f.degree, bound);
        const double m = measured(&f, bound, 300);
        if (!(m <= f.error.v)) print_error("seed %d, case %d\n", (int)seed, i);
        assert_le(m, f.error.v);
    }
    for (int i = 0; i < 1000; i++) { /* one cell; nothing but the rounding of its ends */
        const double bound = 0x1p-20 * pare_rng_uniform(&r);
        const poly_fit f = {.degree = 2, .c = {1, 1, 0.5}};
        assert_le(measured(&f, bound, 2), poly_relative_error(f.c, 2, bound).v);
    }
}

static void remez_is_never_worse_than_taylor(void **state)
{
    (void)state;
    for (size_t b = 0; b < BOUNDS; b++) {
        double term = exp(bounds[b]);
        for (size_t g = 0; g <= 20; g++) {
            term *= bounds[b] / (double)(g + 1); /* e^B B^(g+1) / (g+1)! */
            const double r = poly_remez(bounds[b], g).error.v;
            assert_le(r, term + 1e-12 + 0x1p-46 * exp(2 * bounds[b]));
            assert_le(r, poly_taylor(bounds[b], g).error.v * 1.02);
        }
    }
}

/* No polynomial of degree g is better than E where some one alternates g + 2 times at level E (de
 * la Vallee Poussin): the tops of the errors are level. */
static void the_error_alternates_at_one_level(void **state)
{
    (void)state;
    for (size_t b = 1; b < BOUNDS; b++)
        for (size_t g = 0; g <= 9; g++) {
            const poly_fit f = poly_remez(bounds[b], g);
            if (f.error.v < 1e-11 * exp(2 * bounds[b])) continue; /* rounding decides */
            double peak = 0, least = INFINITY;
            int sign = 0;
            size_t tops = 0;
            for (int i = 0; i <= 20000; i++) {
                const double x = bounds[b] * (i / 10000.0 - 1);
                double s = 0;
                for (size_t k = g + 1; k-- > 0;) s = s * x + f.c[k];
                const double e = s * exp(-x) - 1;
                if (e * sign < 0 || i == 0) {
                    if (i) least = fmin(least, peak);
                    sign = e < 0 ? -1 : 1;
                    peak = 0;
                    tops++;
                }
                peak = fmax(peak, fabs(e));
            }
            least = fmin(least, peak);
            assert_true(tops >= g + 2);
            assert_le(f.error.v, 1.03 * least);
        }
}

static void degree_zero_is_the_hyperbolic_tangent(void **state)
{
    (void)state;
    for (size_t b = 0; b < BOUNDS; b++) {
        const poly_fit f = poly_remez(bounds[b], 0);
        assert_near(f.c[0], 1 / cosh(bounds[b]), 1e-9);
        assert_le(tanh(bounds[b]), f.error.v);
        assert_near(f.error.v, tanh(bounds[b]), 0.01 * (1 - tanh(bounds[b])) + 1e-5);
        if (bounds[b] <= 3) assert_near(poly_variation(f.error).v, tanh(bounds[b] / 2), 0.005);
    }
    const poly_fit none = poly_remez(0, 3);
    assert_true(none.c[0] == 1);
    assert_le(none.error.v, 0x1p-46);
}

static void variation_rounds_up_and_refuses_one(void **state)
{
    (void)state;
    for (double e = 1e-18; e < 1; e *= 1.37) {
        const double v = poly_variation(pare_ub_exact(e)).v;
        const long double exact = (long double)e / (1 + sqrtl(1 - (long double)e * e));
        assert_true(v >= exact);
        assert_le(v, (double)exact * (1 + 1e-14));
    }
    assert_true(poly_variation(pare_ub_exact(0)).v == 0);
    assert_true(isinf(poly_variation(pare_ub_exact(1)).v));
    assert_true(isinf(poly_variation(pare_ub_inf()).v));
}

/* The table of docs/theory/depth.md "Polynomials of least relative error". */
static void the_degrees_are_those_of_the_table(void **state)
{
    (void)state;
    static const struct {
        double bound;
        size_t degree[3];
    } row[] = {{.1, {1, 2, 3}}, {.5, {2, 3, 4}}, {1, {3, 4, 6}},   {2, {4, 6, 8}},
               {3, {6, 7, 10}}, {4, {7, 8, 11}}, {6, {9, 11, 14}}, {8, {12, 14, 17}}};
    static const double tol[] = {1e-2, 1e-3, 1e-5};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (size_t t = 0; t < 3; t++) {
            poly_fit f;
            assert_true(poly_least_degree(&f, row[i].bound, tol[t], POLY_MAX_DEGREE));
            assert_int_equal(f.degree, row[i].degree[t]);
            assert_le(poly_variation(f.error).v, tol[t]);
        }
    poly_fit f;
    assert_false(poly_least_degree(&f, 8, 1e-5, 10));
    assert_int_equal(f.degree, 10);
}

static void coefficients_are_the_golden_ones(void **state)
{
    (void)state;
    NEED_SHARED(VECTORS);
    cJSON *all;
    pare_err err = {0};
    assert_ok(pare_json_read(&all, VECTORS, &err), &err);
    const cJSON *poly, *list, *one;
    assert_ok(pare_json_object(&poly, all, "C_poly", &err), &err);
    assert_ok(pare_json_array(&list, poly, "remez", &err), &err);
    size_t seen = 0;
    cJSON_ArrayForEach(one, list)
    {
        size_t g;
        double bound, rel;
        const cJSON *coeff;
        assert_ok(pare_json_size(&g, one, "g", &err), &err);
        assert_ok(pare_json_number(&bound, one, "B", &err), &err);
        assert_ok(pare_json_number(&rel, one, "rel", &err), &err);
        assert_ok(pare_json_array(&coeff, one, "coeff", &err), &err);
        const poly_fit f = poly_remez(bound, g);
        for (size_t k = 0; k <= g; k++)
            assert_near(f.c[k], cJSON_GetArrayItem(coeff, (int)k)->valuedouble, 1e-6);
        assert_near(f.error.v, rel, 0.02 * rel);
        seen++;
    }
    assert_int_equal(seen, 9);
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_point_of_a_fine_grid_exceeds_the_proof_nor_is_it_needlessly_large),
        cmocka_unit_test(the_top_between_two_ends_is_counted),
        cmocka_unit_test(roundings_are_counted),
        cmocka_unit_test(remez_is_never_worse_than_taylor),
        cmocka_unit_test(the_error_alternates_at_one_level),
        cmocka_unit_test(degree_zero_is_the_hyperbolic_tangent),
        cmocka_unit_test(variation_rounds_up_and_refuses_one),
        cmocka_unit_test(the_degrees_are_those_of_the_table),
        cmocka_unit_test(coefficients_are_the_golden_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
