/* Tests src/attention/poly_*.c at the ends of f32: huge and tiny numbers on every side, rows that
 * are all alike, one key that outweighs the others, products that cancel. What is proven must hold
 * against softmax of the very same numbers in quadruple precision. */
#include "attention/poly.h"
#include <pare_test.h>

typedef struct head {
    pare_arena *a;
    size_t n, d, dv;
    double scale;
    pare_pattern pattern;
    pare_mat32 q, k, v, y;
    double *bound;
    uint8_t *exact;
} head;

static pare_mat32 mat_of(pare_arena *a, size_t n, size_t d, double size, pare_rng *r)
{
    float *const x = pare_alloc(a, n * d, sizeof *x);
    assert_non_null(x);
    for (size_t i = 0; i < n * d; i++) x[i] = (float)(size * pare_rng_normal(r));
    return (pare_mat32){n, d, d, x};
}

/* Queries and keys of the sizes 2^q and 2^k, and a scale that brings their products to about 1. */
static head head_of(size_t n, size_t d, size_t dv, int q, int k, int v, double times, uint64_t seed)
{
    head h = {.a = pare_arena_new(), .n = n, .d = d, .dv = dv};
    pare_rng r = pare_rng_at(seed, 5);
    assert_non_null(h.a);
    h.scale = times * ldexp(1 / sqrt((double)d), -(q + k));
    h.q = mat_of(h.a, n, d, ldexp(0.3, q), &r), h.k = mat_of(h.a, n, d, ldexp(0.3, k), &r);
    h.v = mat_of(h.a, n, dv, ldexp(1, v), &r), h.y = mat_of(h.a, n, dv, 0, &r);
    h.bound = pare_alloc(h.a, n, sizeof *h.bound);
    h.exact = pare_alloc(h.a, n, 1);
    assert_true(h.bound && h.exact);
    return h;
}

static void like_first(pare_mat32 *m)
{
    for (size_t i = 1; i < m->rows; i++) memcpy(m->v + i * m->ld, m->v, m->cols * sizeof *m->v);
}

/* ---- the truth ------------------------------------------------------------------------------- */

static void true_row(const head *h, size_t i, long double *w, long double *y)
{
    const size_t seen = pare_visible(&h->pattern, NULL, h->n, i).count;
    long double sum = 0;
    __float128 *const s = malloc(seen * sizeof *s), row_max = 0;
    assert_non_null(s);
    for (size_t j = 0; j < seen; j++) {
        s[j] = 0;
        for (size_t c = 0; c < h->d; c++)
            s[j] += (__float128)h->q.v[i * h->d + c] * h->k.v[j * h->d + c];
        s[j] *= h->scale;
        if (j == 0 || s[j] > row_max) row_max = s[j];
    }
    for (size_t j = 0; j < seen; j++) sum += w[j] = expl((long double)(s[j] - row_max));
    for (size_t c = 0; c < h->dv; c++) {
        y[c] = 0;
        for (size_t j = 0; j < seen; j++) y[c] += w[j] / sum * h->v.v[j * h->dv + c];
    }
    free(s);
}

static double range_of(const head *h, size_t c)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t j = 0; j < h->n; j++) {
        low = fmin(low, (double)h->v.v[j * h->dv + c]);
        high = fmax(high, (double)h->v.v[j * h->dv + c]);
    }
    return high - low;
}

/* Rows that a polynomial gave, all of them within their bounds. */
static size_t proven_rows(const head *h, double tolerance)
{
    long double *const w = malloc((h->n + h->dv) * sizeof *w), *const want = w + h->n;
    size_t count = 0;
    assert_non_null(w);
    for (size_t i = 0; i < h->n; i++) {
        if (h->exact[i]) continue;
        count++;
        assert_le(h->bound[i], tolerance);
        true_row(h, i, w, want);
        for (size_t c = 0; c < h->dv; c++) {
            const double y = (double)h->y.v[i * h->dv + c];
            const double off = (double)fabsl(want[c] - y);
            if (!(off <= h->bound[i] * range_of(h, c) + 0x1p-24 * fabs(y)))
                print_error("row %zu column %zu: off by %g, bound %g range %g\n", i, c, off,
                            h->bound[i], range_of(h, c));
            assert_le(off, h->bound[i] * range_of(h, c) + 0x1p-24 * fabs(y));
        }
    }
    free(w);
    return count;
}

static size_t attend(head *h, const pare_poly_opts *o, char why[160])
{
    pare_poly_plan plan;
    pare_poly_report r;
    pare_err err = {0};
    const pare_poly_saved saved = {.bound = h->bound, .exact = h->exact};
    assert_ok(
        pare_poly_plan_f32(&plan, h->a, &h->q, &h->k, h->dv, h->scale, &h->pattern, o, NULL, &err),
        &err);
    assert_ok(pare_poly_attend_f32(&h->y, &saved, &r, &plan, &h->q, &h->k, &h->v, NULL, &err),
              &err);
    if (why) memcpy(why, r.why, sizeof r.why);
    return proven_rows(h, o->tolerance);
}

/* ---- sizes ----------------------------------------------------------------------------------- */

typedef enum shape { PLAIN, SAME_QUERIES, SAME_KEYS, ALL_SAME, ONE_KEY, ONE_QUERY, SHAPES } shape;

static void bend(head *h, shape s)
{
    if (s == SAME_QUERIES || s == ALL_SAME) like_first(&h->q);
    if (s == SAME_KEYS || s == ALL_SAME) like_first(&h->k);
    for (size_t c = 0; c < h->d; c++) {
        if (s == ONE_KEY) h->k.v[h->n / 2 * h->d + c] *= 30;
        if (s == ONE_QUERY) h->q.v[h->n / 2 * h->d + c] *= 30;
    }
}

static void numbers_of_any_size_keep_the_promise(void **state)
{
    (void)state;
    static const int sides[] = {-125, -100, -40, 0, 40, 100, 120},
                     values[] = {-120, -70, 0, 50, 90};
    static const size_t rows[] = {1, 2, 64, 65, 200}, widths[] = {1, 3, 8};
    static const double times[] = {1, 0.7, -1.3, 0.05};
    static const pare_poly_kind kinds[] = {PARE_POLY_AUTO, PARE_POLY_TAYLOR, PARE_POLY_REMEZ,
                                           PARE_POLY_ADAPTIVE};
    size_t proven = 0;
    pare_rng r = pare_rng_at(17, 0);
    for (uint64_t t = 0; t < 1200; t++) {
        head h = head_of(rows[pare_rng_below(&r, 5)], widths[pare_rng_below(&r, 3)],
                         1 + pare_rng_below(&r, 3), sides[pare_rng_below(&r, 7)],
                         sides[pare_rng_below(&r, 7)], values[pare_rng_below(&r, 5)],
                         times[pare_rng_below(&r, 4)], t);
        h.pattern.kind = pare_rng_below(&r, 2) ? PARE_CAUSAL : PARE_FULL;
        bend(&h, (shape)pare_rng_below(&r, SHAPES));
        const pare_poly_opts o = {.tolerance = pare_rng_below(&r, 2) ? 1e-2 : 1e-4,
                                  .kind = kinds[pare_rng_below(&r, 4)],
                                  .degree = -1,
                                  .heavy = pare_rng_below(&r, 4) ? 0 : 1,
                                  .always = true};
        proven += attend(&h, &o, NULL);
        pare_arena_free(h.a);
    }
    print_message("%zu rows by polynomials\n", proven);
    assert_true(proven > 5000);
}

/* As f32 such a scale has only some binary digits, and a bound that counts on 24 of them is
 * none. */
static void a_scale_below_the_normal_numbers_is_left_to_the_exact_kernel(void **state)
{
    (void)state;
    for (int e = 100; e <= 150; e += 10) {
        char why[160];
        head h = head_of(200, 2, 1, e / 2, e - e / 2, 0, 0.7, 3);
        const pare_poly_opts o = {.tolerance = 1e-4, .degree = -1, .always = true};
        const size_t proven = attend(&h, &o, why);
        assert_true(e < 125 ? proven > 0 : proven == 0);
        if (e > 125) assert_contains(why, "exact: the scale is beyond f32");
        pare_arena_free(h.a);
    }
}

/* Queries all alike, and long keys across them: every score is exactly 0, but the sum of the parts
 * of one in f64 is rounding. Weights are made of such sums. */
static void products_that_cancel_are_not_trusted(void **state)
{
    (void)state;
    size_t proven = 0, refused = 0;
    for (int e = -20; e <= 20; e++) {
        head h = head_of(300, 2, 1, 0, 0, 0, 1, 40);
        const float c[] = {ldexpf(8191, e), ldexpf(7349, e)};
        h.scale = 0.1;
        for (size_t i = 0; i < h.n; i++) {
            const float t = (float)(int)(i % 37) - 18;
            h.q.v[2 * i] = c[0], h.q.v[2 * i + 1] = c[1];
            h.k.v[2 * i] = 16 * t * c[1], h.k.v[2 * i + 1] = -16 * t * c[0];
            h.v.v[i] = t > 0 ? 1 : -1;
        }
        const pare_poly_opts o = {.tolerance = 0.1, .degree = -1, .always = true};
        proven += attend(&h, &o, NULL);
        refused += h.exact[0];
        pare_arena_free(h.a);
    }
    assert_true(proven > 2000 && refused > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_any_size_keep_the_promise),
        cmocka_unit_test(a_scale_below_the_normal_numbers_is_left_to_the_exact_kernel),
        cmocka_unit_test(products_that_cancel_are_not_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
