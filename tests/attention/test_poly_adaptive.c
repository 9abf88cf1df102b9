/* Tests src/attention/poly_adaptive.c: the sets are best, closed, and their tails are proven. */
#include "attention/polynomial.h"
#include "base/json.h"
#include <pare_test.h>

#define VECTORS "../shared/reference/depth/vectors.json"
enum { MOST_D = 16 };

typedef struct set {
    pare_arena *arena;
    pare_monomials m;
    pare_ub tail;
} set;

static set set_of(const double *a, size_t d, double tol, size_t most)
{
    set s = {.arena = pare_arena_new()};
    pare_err err = {0};
    assert_ok(pare_monomials_adaptive(&s.m, &s.tail, s.arena, a, d, tol, most, &err), &err);
    return s;
}

static double inverse_factorial(size_t m)
{
    double f = 1;
    for (size_t k = 2; k <= m; k++) f /= (double)k;
    return f;
}

/* sum over the set of x^alpha / alpha! */
static long double value(const pare_monomials *m, const double *x)
{
    long double sum = 0, *const phi = malloc(m->count * sizeof *phi);
    assert_non_null(phi);
    for (size_t e = 0; e < m->count; e++) {
        phi[e] = e ? phi[m->parent[e]] * x[m->var[e]] : 1;
        sum += phi[e] * m->weight[e] * inverse_factorial(m->power[e]);
    }
    free(phi);
    return sum;
}

static void sizes(double *a, size_t d, pare_rng *r, double decay)
{
    for (size_t i = 0; i < d; i++) a[i] = pare_rng_uniform(r) * pow(decay, (double)i);
}

static void the_tail_is_what_is_left_out_at_the_corner_and_bounds_every_point(void **state)
{
    (void)state;
    const uint64_t seed = 3;
    pare_rng r = pare_rng_at(seed, 0);
    for (int trial = 0; trial < 60; trial++) {
        const size_t d = 1 + (size_t)pare_rng_below(&r, 8);
        double a[MOST_D], x[MOST_D];
        sizes(a, d, &r, 0.7);
        const set s = set_of(a, d, pow(10, -1 - (double)pare_rng_below(&r, 7)), 3000);
        long double total = 0;
        for (size_t i = 0; i < d; i++) total += a[i];
        const long double left = expl(total) - value(&s.m, a);
        assert_true(s.tail.v >= left - 1e-15L);
        assert_true(s.tail.v <= left * (1 + 1e-9L) + 1e-15L);
        for (int p = 0; p < 20; p++) {
            long double sum = 0;
            for (size_t i = 0; i < d; i++) {
                x[i] = p < 10               ? a[i] * (2 * pare_rng_uniform(&r) - 1)
                       : (p >> (i % 4)) & 1 ? a[i]
                                            : -a[i];
                sum += x[i];
            }
            assert_true(fabsl(expl(sum) - value(&s.m, x)) <= s.tail.v + 1e-15L);
        }
        pare_arena_free(s.arena);
    }
}

/* e^a less its first terms is below 2^-53 of it: only a sum of positive terms knows it. */
static void a_tail_far_below_rounding_is_known(void **state)
{
    (void)state;
    const double a = 0.5;
    const set s = set_of(&a, 1, 1e-30, 100);
    long double left = 0, t = 1;
    for (size_t k = 1; k < 60; k++) {
        t *= 0.5L / (long double)k;
        if (k >= s.m.count) left += t;
    }
    assert_true(s.tail.v >= left);
    assert_true(s.tail.v <= left * (1 + 1e-12L));
    assert_le(s.tail.v, 1e-30);
    pare_arena_free(s.arena);
}

static void every_monomial_stands_once_after_its_divisors(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(5, 0);
    double a[MOST_D];
    sizes(a, 5, &r, 0.6);
    const set s = set_of(a, 5, 1e-9, 5000);
    const pare_monomials *const m = &s.m;
    uint8_t *const power = calloc(m->count, 5); /* exponents, 5 each */
    assert_non_null(power);
    for (size_t e = 1; e < m->count; e++) {
        assert_true(m->parent[e] < e && m->var[e] < 5);
        assert_true(m->power[e] == m->power[m->parent[e]] + 1 && m->power[e] >= m->power[e - 1]);
        memcpy(power + 5 * e, power + 5 * m->parent[e], 5);
        power[5 * e + m->var[e]]++;
        double orderings = 1, k = 1;
        for (size_t i = 0; i < 5; i++)
            for (size_t c = 1; c <= power[5 * e + i]; c++) orderings *= k++ / (double)c;
        assert_near(m->weight[e], orderings, 1e-12 * orderings);
    }
    for (size_t e = 0; e < m->count; e++) {
        for (size_t f = 0; f < e; f++) assert_true(memcmp(power + 5 * e, power + 5 * f, 5) != 0);
        for (size_t i = 0; i < 5; i++) { /* downward closed */
            uint8_t want[5];
            memcpy(want, power + 5 * e, 5);
            if (want[i] == 0) continue;
            want[i]--;
            size_t f = 0;
            while (f < e && memcmp(power + 5 * f, want, 5) != 0) f++;
            assert_true(f < e);
        }
    }
    assert_int_equal(m->degree, m->power[m->count - 1]);
    free(power);
    pare_arena_free(s.arena);
}

/* docs/theory/depth.md "Adaptive monomials": with as many features a decaying spectrum gains orders
 * of magnitude on degree g; of equal sizes the best set is all monomials up to a degree. */
static void decaying_sizes_gain_and_equal_ones_lose_nothing(void **state)
{
    (void)state;
    double a[8], sum = 0, term = 1;
    for (size_t i = 0; i < 8; i++) sum += a[i] = 0.3 * pow(0.3, (double)i);
    const set s = set_of(a, 8, 0, 45); /* as many as of degree 2 */
    term = sum * sum * sum / 6;
    assert_int_equal(s.m.count, 45);
    assert_le(s.tail.v, term / 15);
    pare_arena_free(s.arena);
    for (size_t i = 0; i < 8; i++) a[i] = 0.05;
    const set all = set_of(a, 8, 0, 45);
    for (size_t e = 0; e < 45; e++) assert_true(all.m.power[e] <= 2);
    pare_arena_free(all.arena);
}

/* Monomials for 16,384 queries and keys whose coordinates fall by `decay`, logits of standard
 * deviation 0.1, tolerance 1e-3: in these coordinates, which are the best that turning the head can
 * find. SIZE_MAX: more than 20,000. */
static size_t chosen(size_t d, double decay, bool normal)
{
    enum { N = 16384, MOST = 20000 };
    double a[MOST_D], squares = 0, box = 0, norm[2] = {0, 0}, far[2][MOST_D] = {{0}};
    pare_rng r = pare_rng_at(11, 0);
    for (size_t i = 0; i < d; i++) squares += pow(decay, 2 * (double)i);
    const double size = sqrt(0.1 / sqrt(squares));
    for (size_t i = 0; i < 2 * N; i++) {
        double length = 0;
        for (size_t c = 0; c < d; c++) {
            const double even = sqrt(3) * (2 * pare_rng_uniform(&r) - 1);
            const double x =
                size * pow(decay, (double)c / 2) * (normal ? pare_rng_normal(&r) : even);
            far[i % 2][c] = fmax(far[i % 2][c], fabs(x));
            length += x * x;
        }
        norm[i % 2] = fmax(norm[i % 2], sqrt(length));
    }
    for (size_t c = 0; c < d; c++) box += a[c] = far[0][c] * far[1][c];
    const double B = fmin(box, norm[0] * norm[1]);
    const set s = set_of(a, d, 2e-3 * exp(-B), MOST);
    const size_t count = s.tail.v <= 2e-3 * exp(-B) ? s.m.count : SIZE_MAX;
    pare_arena_free(s.arena);
    return count;
}

/* docs/poly.md says why heads are not transposed. */
static void turning_a_head_pays_for_bounded_entries_alone(void **state)
{
    (void)state;
    for (size_t d = 8; d <= 16; d += 8)
        for (int k = 0; k < 3; k++) {
            static const double decays[] = {0.7, 0.5, 0.35};
            const size_t graded = pare_monomials_count(d, 3);
            const size_t normal = chosen(d, decays[k], true), even = chosen(d, decays[k], false);
            print_message("d %zu, falling by %g: normal %zd, bounded %zd; degree 3 has %zu\n", d,
                          decays[k], (ssize_t)normal, (ssize_t)even, graded);
            assert_true(normal > graded);
            if (k == 2) assert_true(even < graded);
        }
}

static void borders(void **state)
{
    (void)state;
    const double zero[3] = {0, 0, 0}, bad[2] = {1, NAN}, negative[1] = {-1}, far[2] = {400, 400};
    set s = set_of(zero, 3, 0, 10); /* e^0: one term, nothing left */
    assert_int_equal(s.m.count, 1);
    assert_true(s.tail.v == 0);
    pare_err err = {0};
    pare_ub tail;
    assert_status(pare_monomials_adaptive(&s.m, &tail, s.arena, bad, 2, 1, 9, &err),
                  PARE_ERR_NONFINITE, &err);
    assert_true(isinf(tail.v));
    assert_contains(err.msg, "coordinate 1");
    assert_status(pare_monomials_adaptive(&s.m, &tail, s.arena, negative, 1, 1, 9, &err),
                  PARE_ERR_NONFINITE, &err);
    assert_status(pare_monomials_adaptive(&s.m, &tail, s.arena, zero, 3, 1, 0, &err),
                  PARE_ERR_USAGE, &err);
    pare_arena_free(s.arena);
    s = set_of(far, 2, 1, 50);
    assert_true(isinf(s.tail.v));
    pare_arena_free(s.arena);
    s = set_of(NULL, 0, 0, 5);
    assert_int_equal(s.m.count, 1);
    pare_arena_free(s.arena);
}

/* The reference takes the terms in the same order; ours stand by degree and variable. */
static void the_set_is_the_golden_one(void **state)
{
    (void)state;
    NEED_SHARED(VECTORS);
    cJSON *all;
    pare_err err = {0};
    const cJSON *poly, *ref, *par, *var, *wt;
    double tail, sum = 0, want = 0, a[] = {.5, .2, .05};
    assert_ok(pare_json_read(&all, VECTORS, &err), &err);
    assert_ok(pare_json_object(&poly, all, "C_poly", &err), &err);
    assert_ok(pare_json_object(&ref, poly, "adaptive", &err), &err);
    assert_ok(pare_json_array(&par, ref, "par", &err), &err);
    assert_ok(pare_json_array(&var, ref, "var", &err), &err);
    assert_ok(pare_json_array(&wt, ref, "wt", &err), &err);
    assert_ok(pare_json_number(&tail, ref, "tail", &err), &err);
    const set s = set_of(a, 3, 1e-3, 1000);
    assert_int_equal(s.m.count, cJSON_GetArraySize(par));
    assert_near(s.tail.v, tail, 1e-9 * tail);
    double phi[100] = {1};
    for (int e = 0; e < cJSON_GetArraySize(par); e++) { /* at one point, term by term */
        static const double x[] = {0.37, 0.71, 0.93};
        if (e)
            phi[e] = phi[(int)cJSON_GetArrayItem(par, e)->valuedouble] *
                     x[(int)cJSON_GetArrayItem(var, e)->valuedouble];
        want += phi[e] * cJSON_GetArrayItem(wt, e)->valuedouble;
        sum = (double)value(&s.m, x);
    }
    assert_near(sum, want, 1e-14);
    pare_arena_free(s.arena);
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tail_is_what_is_left_out_at_the_corner_and_bounds_every_point),
        cmocka_unit_test(a_tail_far_below_rounding_is_known),
        cmocka_unit_test(every_monomial_stands_once_after_its_divisors),
        cmocka_unit_test(decaying_sizes_gain_and_equal_ones_lose_nothing),
        cmocka_unit_test(turning_a_head_pays_for_bounded_entries_alone),
        cmocka_unit_test(borders),
        cmocka_unit_test(the_set_is_the_golden_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
