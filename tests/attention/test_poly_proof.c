/* Tests src/attention/poly_proof.c term by term: the tables of a proof and the bound of a row
 * beside their formulas in long double, with sizes that let each term count. Below the formula a
 * bound is false, TIGHT above it needlessly large. */
#include "attention/poly.h"
#include <pare_test.h>

#define TIGHT (1 + 0x1p-35L)
#define U     0x1p-24L

static void check(double got, long double want, const char *what, size_t at)
{
    if ((long double)got >= want && (long double)got <= want * TIGHT) return;
    fail_msg("%s [%zu] is %.17g, the formula says %.17Lg", what, at, got, want);
}

static long double power_of(long double x, size_t n)
{
    long double y = 1;
    while (n--) y *= x;
    return y;
}

/* e^x - (1 + x + ... + x^g / g!) is x^(g+1) times this, for x = B. */
static long double remainder_of(size_t g, long double B)
{
    long double term = 1, sum = 0;
    for (size_t k = 1; k <= g + 1; k++) term /= (long double)k;
    for (size_t k = g + 2; k < 2000; k++) sum += term, term *= B / (long double)k;
    return sum;
}

static void kappa_is_the_rest_of_the_series(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(1, 1);
    for (size_t g = 0; g <= POLY_MAX_DEGREE; g++) {
        check(poly_kappa(g, 0), remainder_of(g, 0), "kappa at 0", g);
        check(poly_kappa(g, 128), remainder_of(g, 128), "kappa at 128", g);
        for (int i = 0; i < 40; i++) {
            const double B = 128 * pow(pare_rng_uniform(&r), 3);
            check(poly_kappa(g, B), remainder_of(g, (long double)B), "kappa", g);
        }
        assert_true(isinf(poly_kappa(g, nextafter(128, 129))) && isinf(poly_kappa(g, NAN)));
    }
    assert_near(remainder_of(0, 1), 1.718281828459045, 1e-15); /* (e - 1) / 1 */
}

/* ---- the tables ------------------------------------------------------------------------------ */

typedef struct tables {
    pare_poly_plan plan;
    poly_sizes s;
    double coef[POLY_MAX_DEGREE + 1];
    poly_proof proof;
} tables;

/* Sizes of any order of magnitude, so that each of them is most of a count at times. */
static double any_size(pare_rng *r, double most)
{
    return pare_rng_below(r, 3) ? exp(log(most) * pare_rng_uniform(r)) - 1 : 0;
}

static void draw_tables(tables *t, pare_arena *a, size_t degree, pare_rng *r)
{
    pare_err err = {0};
    *t = (tables){.plan = {.kind = PARE_POLY_TAYLOR,
                           .d = 1 + pare_rng_below(r, degree < 4 ? 9 : 3),
                           .degree = degree,
                           .tv = {7},
                           .nheavy = (size_t)any_size(r, 1e5)},
                  .s = {.q = 0.01 + any_size(r, 9),
                        .key = 0.01 + any_size(r, 9),
                        .all_keys = any_size(r, 1e5),
                        .depth = any_size(r, 1e5),
                        .spread = 1 + any_size(r, 4),
                        .value_radius = 1 + any_size(r, 1e9),
                        .flush = (size_t)any_size(r, 1e5)}};
    for (size_t m = 0; m <= degree; m++) t->coef[m] = pare_rng_normal(r);
    t->coef[degree + 1] = NAN; /* no coefficient of it */
    t->plan.coef = t->coef;
    assert_ok(pare_monomials_graded(&t->plan.table, a, t->plan.d, degree == 1 ? 2 : degree, &err),
              &err);
    poly_proof_new(&t->proof, &t->plan, &t->s);
}

static void check_tables(const tables *t)
{
    const size_t g = t->plan.degree;
    const poly_sizes *const s = &t->s;
    const long double d = t->plan.d, keys = POLY_KEYS + (long double)s->depth;
    const long double term = 6 * g + 16 + keys + s->flush;
    const long double monomials2 = g ? (d + 1) * (d + 2) / 2 : 1;
    const long double moment = 30 + keys + s->flush + monomials2 + (long double)g * (d + 12);
    for (size_t b = 0; b <= POLY_BINS; b++) {
        const long double q = (long double)s->q * (b + 1) / 64, B = q * (long double)s->key;
        const long double exact =
            24 + keys + t->plan.nheavy + (d + 8) * q * (long double)s->all_keys;
        long double size = 0, noise = 0, additions = 1; /* of degree 0; then C(d + m, m) */
        for (size_t m = 0; m <= g; m++) {
            const long double x = fabsl((long double)t->coef[m]) * power_of(B, m);
            size += x;
            noise += x * expm1l((term + additions) * U);
            additions = additions * (d + m + 1) / (m + 1);
        }
        check(t->proof.polynomial[b], remainder_of(g, B), "polynomial", b);
        check(t->proof.size[b], size, "size", b);
        check(t->proof.noise[b], noise, "noise", b);
        check(t->proof.moment[b], power_of(B, g + 1) * expm1l(moment * U), "moment", b);
        check(t->proof.exact[b], expm1l(exact * U), "exact", b);
    }
    assert_true(t->proof.most == s->q && t->proof.tv == -1 && t->proof.spread == s->spread);
    assert_near(t->proof.per_bin * s->q, 64, 1e-12);
    assert_near(t->proof.largest * s->value_radius, 0x1p126, 0x1p80);
    assert_int_equal(t->proof.power, g == 0 ? 1 : g - 1);
}

static void tables_are_their_formulas(void **state)
{
    pare_rng r = pare_rng_at(2, 1);
    for (size_t degree = 0; degree <= 12; degree++)
        for (int i = 0; i < 12; i++) {
            tables t;
            draw_tables(&t, *state, degree, &r);
            check_tables(&t);
        }
}

/* Moments from the monomials of degree g + 1. */
static void full_moments_are_their_formula(void **state)
{
    pare_rng r = pare_rng_at(3, 1);
    for (size_t degree = 1; degree <= 11; degree++)
        for (int i = 0; i < 12; i++) {
            tables t;
            draw_tables(&t, *state, degree, &r);
            const size_t count = (size_t)any_size(&r, 1e6);
            const long double n =
                6 * (degree + 1) + 16 + POLY_KEYS + t.s.flush + count + (long double)t.s.depth;
            poly_proof_full(&t.proof, &t.plan, &t.s, count);
            for (size_t b = 0; b <= POLY_BINS; b++) {
                const long double B = (long double)t.s.q * (long double)t.s.key * (b + 1) / 64;
                check(t.proof.moment[b], power_of(B, degree + 1) * expm1l(n * U), "moment", b);
            }
        }
}

/* Chosen monomials: fewer additions than all of a degree would take; one error for all rows. */
static void a_polynomial_for_all_rows_keeps_its_error(void **state)
{
    (void)state;
    static const uint32_t power[] = {0, 1, 1, 3};
    static const double coef[] = {1, 1, 0.5, 0.2};
    const pare_poly_plan plan = {.kind = PARE_POLY_ADAPTIVE,
                                 .d = 2,
                                 .degree = 3,
                                 .coef = coef,
                                 .tv = {0.125},
                                 .table = {.d = 2, .degree = 3, .count = 4, .power = power}};
    const poly_sizes s = {
        .q = 1, .key = 1, .all_keys = 1, .spread = 1, .value_radius = 1, .flush = 4};
    poly_proof p;
    poly_proof_new(&p, &plan, &s);
    assert_true(p.tv == 0.125);
    const long double n = 18 + 16 + POLY_KEYS + 4;
    check(p.noise[63],
          expm1l((n + 1) * U) + 1.5L * expm1l((n + 3) * U) + (long double)0.2 * expm1l((n + 4) * U),
          "noise", 63);
}

/* Queries that are all at their center: the first bin. */
static void queries_without_length_have_a_bound(void **state)
{
    tables t;
    pare_rng r = pare_rng_at(4, 1);
    draw_tables(&t, *state, 3, &r);
    t.s.q = 0;
    poly_proof_new(&t.proof, &t.plan, &t.s);
    assert_true(t.proof.per_bin == 0);
    assert_true(isfinite(poly_row_bound(&t.proof, &(poly_row){.sum = 1, .weight = 1})));
}

/* ---- a row ----------------------------------------------------------------------------------- */

static poly_proof chosen_proof(void)
{
    poly_proof p = {
        .per_bin = 16, .most = 4, .tv = -1, .power = 2, .spread = 1.25, .largest = 1000};
    for (size_t b = 0; b <= POLY_BINS; b++) {
        const double x = 1 + (double)b / 100;
        p.polynomial[b] = 0.01 * x, p.size[b] = 3 * x, p.noise[b] = 1e-3 * x;
        p.moment[b] = 2e-3 * x, p.exact[b] = 5e-4 * x;
    }
    return p;
}

static long double row_formula(const poly_proof *p, const poly_row *r, size_t b)
{
    const long double weight = (long double)r->weight * 1.001L, sum = r->sum;
    const long double exact = sum + (long double)p->size[b] * weight;
    const long double off =
        (long double)p->noise[b] * weight + (r->with_exact ? (long double)p->exact[b] * exact : 0);
    const long double least = sum - off, m = r->moment < 0 ? 0 : r->moment;
    const long double moment =
        m * (r->full ? 1 : power_of(r->norm, p->power)) + (long double)p->moment[b] * weight;
    const long double tv = p->tv < 0 ? (long double)p->polynomial[b] * moment / least : p->tv;
    return tv + (long double)p->spread * ((1 + tv) * off / least + 4 * U);
}

static void check_row(const poly_proof *p, const poly_row *r, size_t b)
{
    check(poly_row_bound(p, r), row_formula(p, r, b), "row of bin", b);
}

static void a_row_is_its_formula(void **state)
{
    (void)state;
    poly_proof p = chosen_proof();
    pare_rng g = pare_rng_at(5, 1);
    for (int i = 0; i < 4000; i++) {
        const poly_row r = {.norm = 4 * pare_rng_uniform(&g),
                            .sum = 0.5 + any_size(&g, 30),
                            .moment = any_size(&g, 30) - (i % 5 == 0),
                            .weight = any_size(&g, 30),
                            .full = i % 2,
                            .with_exact = i % 3 == 0};
        p.tv = i % 7 ? -1 : 0.01;
        check_row(&p, &r, (size_t)(r.norm * 16));
    }
    p.tv = -1;
    const poly_row edges[] = {{.norm = 0}, {.norm = 0.0625}, {.norm = 3.9375}, {.norm = 4}};
    static const size_t bins[] = {0, 1, 63, 64};
    for (size_t i = 0; i < 4; i++) {
        poly_row r = edges[i];
        r.sum = 2, r.moment = 1, r.weight = 1;
        check_row(&p, &r, bins[i]);
    }
}

/* With nothing but one source of error each. */
static void each_error_alone(void **state)
{
    (void)state;
    const poly_row r = {.norm = 2, .sum = 1, .moment = 0.5, .weight = 1 / 1.001};
    poly_proof p = {.per_bin = 1, .most = 4, .tv = -1, .power = 3, .spread = 1, .largest = 1};
    p.polynomial[2] = 0.25; /* kappa |q|^3 moment = 1, and 4 u */
    assert_near(poly_row_bound(&p, &r), 1 + 4 * (double)U, 1e-11);
    p.spread = 0;
    p.moment[2] = 4; /* kappa 4 weight */
    assert_near(poly_row_bound(&p, &r), 2, 1e-11);
    p.polynomial[2] = 0;
    assert_true(poly_row_bound(&p, &r) == 0);
    p.spread = 2, p.noise[2] = 0.2; /* 2 x 0.2 / 0.8 */
    assert_near(poly_row_bound(&p, &r), 0.5 + 8 * (double)U, 1e-11);
    p.tv = 0, p.polynomial[2] = 1; /* moments are nothing to it */
    assert_near(poly_row_bound(&p, &r), 0.5 + 8 * (double)U, 1e-11);
    p.tv = 1; /* 1 + 2 (1 + 1) 0.2 / 0.8 */
    assert_near(poly_row_bound(&p, &r), 2 + 8 * (double)U, 1e-11);
}

static void rows_that_cannot_be_judged_have_none(void **state)
{
    (void)state;
    poly_proof p = {.per_bin = 1, .most = 4, .tv = 0.5, .power = 1, .spread = 1, .largest = 8};
    poly_row r = {.norm = 4, .sum = 8};
    assert_true(isfinite(poly_row_bound(&p, &r)));
    r.norm = nextafter(4, 5);
    assert_true(isinf(poly_row_bound(&p, &r)));
    r.norm = NAN;
    assert_true(isinf(poly_row_bound(&p, &r)));
    r.norm = 4, r.sum = nextafter(8, 9); /* values times weights may leave f32 */
    assert_true(isinf(poly_row_bound(&p, &r)));
    r.sum = NAN;
    assert_true(isinf(poly_row_bound(&p, &r)));
    r.sum = 0x1p-40; /* the least denominator */
    assert_true(isfinite(poly_row_bound(&p, &r)));
    r.sum = nextafter(0x1p-40, 0);
    assert_true(isinf(poly_row_bound(&p, &r)));
    r.sum = 1, r.weight = 1, p.noise[4] = 1; /* the error is as large as the sum */
    assert_true(isinf(poly_row_bound(&p, &r)));
    p.noise[4] = 0, p.tv = -1, p.polynomial[4] = 1, r.moment = NAN;
    assert_true(isinf(poly_row_bound(&p, &r)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kappa_is_the_rest_of_the_series),
        ARENA_TEST(tables_are_their_formulas),
        ARENA_TEST(full_moments_are_their_formula),
        cmocka_unit_test(a_polynomial_for_all_rows_keeps_its_error),
        ARENA_TEST(queries_without_length_have_a_bound),
        cmocka_unit_test(a_row_is_its_formula),
        cmocka_unit_test(each_error_alone),
        cmocka_unit_test(rows_that_cannot_be_judged_have_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
