/* Tests src/attention/poly_*.c in f32: every row is within what is proven for it, on every vector
 * unit, for data made to break it. */
#include "attention/attend.h"
#include "kernel_cases.h"
#include "attention/poly.h"

static const pare_pattern FULL = {.kind = PARE_FULL}, CAUSAL = {.kind = PARE_CAUSAL};

/* ---- data ----------------------------------------------------------------------------------- */

typedef enum shape {
    CENTERED, /* independent normal numbers */
    OFFSET,   /* far from 0: all of it must be removed */
    ALIGNED,  /* every query and every key on one line: lengths are all there is */
    HEAVY,    /* one key twenty times as long */
    OUTLIER,  /* one query ten times as long */
    UNEQUAL,  /* tiny queries, huge keys */
    SHIFTED,  /* values far from 0 */
    FLAT,     /* all keys alike, one column of values constant */
    SINKING,  /* weights of keys fall by e^-60 along the sequence */
    DECAYING, /* coordinates of unequal size */
    SHAPES
} shape;

/* The same numbers in f64. */
static void widen(head_case *h)
{
    const pare_mat32 *const from[] = {&h->q, &h->k, &h->v};
    pare_mat *const to[] = {&h->q64, &h->k64, &h->v64};
    for (size_t m = 0; m < 3; m++)
        for (size_t i = 0; i < h->n; i++)
            for (size_t c = 0; c < from[m]->cols; c++)
                pare_row_mut(to[m], i)[c] = (double)from[m]->v[i * from[m]->ld + c];
}

static head_case poly_case(pare_arena *a, size_t n, size_t d, size_t dv, shape s, double std,
                           uint64_t seed)
{
    head_case h = case_new(a, n, d, dv, RANDOM, seed);
    const float size = (float)sqrt(std / sqrt((double)d));
    h.scale = 1;
    for (size_t i = 0; i < n; i++) {
        float *const q = h.q.v + i * h.q.ld, *const k = h.k.v + i * h.k.ld;
        float *const v = h.v.v + i * h.v.ld;
        for (size_t c = 0; c < d; c++) {
            q[c] *= size, k[c] *= size;
            if (s == OFFSET) q[c] += (float)c - 1.5f, k[c] += 3 - (float)c;
            if (s == ALIGNED && c > 0) q[c] = q[0], k[c] = k[0];
            if (s == HEAVY && i == n / 2) k[c] *= 20;
            if (s == OUTLIER && i == n / 3) q[c] *= 10;
            if (s == UNEQUAL) q[c] *= 0x1p-40f, k[c] *= 0x1p40f;
            if (s == FLAT) k[c] = 0.25f;
            if (s == DECAYING) q[c] *= ldexpf(1, -(int)c), k[c] *= ldexpf(1, -(int)c);
        }
        if (s == SINKING) q[0] += 3, k[0] = 10 * ((float)(n - i) / (float)n) + k[0];
        for (size_t c = 0; c < dv; c++) {
            if (s == SHIFTED) v[c] = 1000 + v[c];
            if (s == FLAT && c == 0) v[c] = -7;
        }
    }
    if (s == SINKING)
        for (size_t i = 0; i < n; i++) h.q.v[i * h.q.ld] += 3;
    widen(&h);
    return h;
}

static double range_of(const head_case *h, size_t c)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < h->n; i++) {
        low = fmin(low, pare_row(&h->v64, i)[c]);
        high = fmax(high, pare_row(&h->v64, i)[c]);
    }
    return high - low;
}

/* ---- the promise ---------------------------------------------------------------------------- */

typedef struct kept_rows {
    double *bound;
    float *lse;
    uint8_t *exact;
} kept_rows;

static kept_rows kept_new(pare_arena *a, size_t n)
{
    const kept_rows k = {pare_alloc(a, n, sizeof(double)), pare_alloc(a, n, sizeof(float)),
                         pare_alloc(a, n, 1)};
    assert_true(k.bound && k.lse && k.exact);
    return k;
}

/* |y - exact| <= bound_i range_c + 2^-24 |y|, or the rounding of the exact kernel; returns the
 * largest part of a bound that was used. */
static double check_promise(const head_case *h, const pare_pattern *p, const kept_rows *k,
                            double tolerance)
{
    double *const w = malloc(h->n * sizeof *w), used = 0;
    assert_non_null(w);
    for (size_t i = 0; i < h->n; i++) {
        const pare_keys keys = pare_visible(p, NULL, h->n, i);
        const row_facts f = row_weights(h, &keys, i, w);
        assert_le(k->bound[i], tolerance);
        for (size_t c = 0; c < h->dv; c++) {
            const double y = (double)h->y.v[i * h->y.ld + c];
            const double off = fabs(y - pare_row(&h->y64, i)[c]);
            assert_true(isfinite(y));
            const double range = range_of(h, c);
            const double reference = 1e-12 * (range + fabs(y)); /* of the f64 pass itself */
            if (k->exact[i]) {
                assert_true(k->bound[i] == 0);
                assert_le(off, entry_bound(h, &keys, &f, w, c) + reference);
                continue;
            }
            const double bound = k->bound[i] * range;
            if (!(off <= bound + U32 * fabs(y) + reference))
                print_error("row %zu column %zu of n %zu d %zu dv %zu: bound %g range %g y %g\n", i,
                            c, h->n, h->dk, h->dv, k->bound[i], range, y);
            assert_le(off, bound + U32 * fabs(y) + reference);
            if (bound > 0) used = fmax(used, (off - U32 * fabs(y)) / bound);
        }
    }
    free(w);
    return used;
}

static pare_poly_plan plan_of(pare_arena *a, const head_case *h, const pare_pattern *p,
                              const pare_poly_opts *o)
{
    pare_poly_plan plan;
    pare_err err = {0};
    assert_ok(pare_poly_plan_f32(&plan, a, &h->q, &h->k, h->dv, (double)h->scale, p, o, NULL, &err),
              &err);
    return plan;
}

static void every_row_keeps_its_promise_on_every_unit(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 2, 63, 64, 65, 200, 331}, widths[] = {1, 3, 4, 8, 17};
    static const double stds[] = {0.02, 0.1, 0.5};
    static const pare_poly_kind kinds[] = {PARE_POLY_AUTO, PARE_POLY_TAYLOR, PARE_POLY_REMEZ,
                                           PARE_POLY_ADAPTIVE};
    poly_kernel kernels[3];
    const size_t units = poly_kernels(kernels);
    size_t by_polynomial = 0, exact = 0, kind[5] = {0};
    for (size_t t = 0; t < 260; t++) {
        const shape s = (shape)(t % SHAPES);
        const size_t n = sizes[t % 7], d = widths[t % 5], dv = 1 + t % 6;
        pare_arena *const a = pare_arena_new();
        head_case h = poly_case(a, n, d, dv, s, stds[t / 3 % 3], 1000 + t);
        const pare_pattern *const p = t % 2 ? &CAUSAL : &FULL;
        const pare_poly_opts o = {.tolerance = t % 4 < 2 ? 1e-3 : 1e-2,
                                  .kind = kinds[t / 2 % 4],
                                  .degree = t % 11 == 0 ? (int)(t % 5) : -1,
                                  .heavy = t % 5 == 4 ? 3 : 0,
                                  .always = true};
        const pare_poly_plan plan = plan_of(a, &h, p, &o);
        const kept_rows k = kept_new(a, n);
        const pare_poly_saved saved = {k.bound, k.lse, k.exact};
        reference(&h, p, NULL);
        for (size_t u = 0; u < units; u++) {
            pare_err err = {0};
            pare_poly_report r;
            assert_ok(poly_attend_with(&kernels[u], &h.y, &saved, &r, &plan, &h.q, &h.k, &h.v, NULL,
                                       &err),
                      &err);
            check_promise(&h, p, &k, o.tolerance);
            size_t count = 0;
            for (size_t i = 0; i < n; i++) count += k.exact[i];
            assert_int_equal(count, r.rows_exact);
            by_polynomial += n - count, exact += count;
            kind[plan.kind] += n > 1;
        }
        pare_arena_free(a);
    }
    assert_true(by_polynomial > exact); /* most of it was what this test is about */
    assert_true(exact > 500);
    assert_true(kind[PARE_POLY_TAYLOR] > 50 && kind[PARE_POLY_REMEZ] > 50);
    assert_true(kind[PARE_POLY_ADAPTIVE] > 50);
}

/* Keys at 0, and one on each side whose values alone differ: nothing cancels. */
static void bounds_are_not_needlessly_large(void **state)
{
    (void)state;
    for (int g = 1; g <= 3; g++) {
        pare_arena *const a = pare_arena_new();
        head_case h = poly_case(a, 64, 1, 1, FLAT, 1, 5);
        for (size_t i = 0; i < h.n; i++) {
            const float x = i == 0 ? 0.5f : i == 1 ? -0.5f : 0;
            h.k.v[i * h.k.ld] = x, h.q.v[i * h.q.ld] = i == 1 ? -1.0f : 1;
            h.v.v[i * h.v.ld] = i == 0;
        }
        widen(&h);
        const pare_poly_opts o = {
            .tolerance = 0.1, .kind = PARE_POLY_TAYLOR, .degree = g, .always = true};
        const pare_poly_plan plan = plan_of(a, &h, &FULL, &o);
        const kept_rows k = kept_new(a, h.n);
        const pare_poly_saved saved = {k.bound, k.lse, k.exact};
        pare_err err = {0};
        reference(&h, &FULL, NULL);
        assert_ok(pare_poly_attend_f32(&h.y, &saved, NULL, &plan, &h.q, &h.k, &h.v, NULL, &err),
                  &err);
        assert_le(0.4, check_promise(&h, &FULL, &k, o.tolerance));
        pare_arena_free(a);
    }
}

/* Keys of the chunks before are at the center, where every polynomial is right; those of a row's
 * own chunk are weighed by e^x, and a bound must not charge the row for them. */
static void keys_of_the_own_chunk_cost_rounding_alone(void **state)
{
    (void)state;
    poly_kernel kernels[3];
    const size_t units = poly_kernels(kernels);
    for (size_t u = 0; u < units; u++) {
        pare_arena *const a = pare_arena_new();
        head_case h = poly_case(a, 2 * POLY_KEYS, 3, 2, CENTERED, 0.1, 25);
        for (size_t i = 0; i < POLY_KEYS; i++) memset(h.k.v + i * h.k.ld, 0, 3 * sizeof *h.k.v);
        for (size_t i = 0; i < h.n; i++) /* midranges at 0 */
            for (size_t c = 0; c < 3 && i >= h.n - 2; c++) {
                h.k.v[i * h.k.ld + c] = i % 2 ? 0.75f : -0.75f;
                h.q.v[i * h.q.ld + c] = i % 2 ? 0.75f : -0.75f;
            }
        widen(&h);
        const pare_poly_opts o = {
            .tolerance = 1, .kind = PARE_POLY_TAYLOR, .degree = 1, .always = true};
        const pare_poly_plan plan = plan_of(a, &h, &CAUSAL, &o);
        const kept_rows k = kept_new(a, h.n);
        const pare_poly_saved saved = {k.bound, k.lse, k.exact};
        pare_err err = {0};
        reference(&h, &CAUSAL, NULL);
        assert_ok(
            poly_attend_with(&kernels[u], &h.y, &saved, NULL, &plan, &h.q, &h.k, &h.v, NULL, &err),
            &err);
        check_promise(&h, &CAUSAL, &k, o.tolerance);
        for (size_t i = 0; i < h.n; i++) assert_true(!k.exact[i] && k.bound[i] < 4e-5);
        pare_arena_free(a);
    }
}

/* Most keys where e^x is small, one where it is large: the monomials' sums cancel, and rounding is
 * all that is wrong. */
static void roundings_are_counted(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    head_case h = poly_case(a, 331, 1, 4, CENTERED, 1, 15);
    for (size_t i = 0; i < h.n; i++) {
        h.k.v[i * h.k.ld] = i == 0 ? 1.1f : -0.9f - 0.0001f * (float)i;
        h.q.v[i * h.q.ld] = (i % 2 ? -2.7f : 2.7f) + 0.001f * (float)i;
    }
    widen(&h);
    const pare_poly_opts o = {
        .tolerance = 0.1, .kind = PARE_POLY_REMEZ, .degree = 12, .always = true};
    const pare_poly_plan plan = plan_of(a, &h, &FULL, &o);
    const kept_rows k = kept_new(a, h.n);
    const pare_poly_saved saved = {k.bound, k.lse, k.exact};
    pare_poly_report r;
    pare_err err = {0};
    reference(&h, &FULL, NULL);
    assert_ok(pare_poly_attend_f32(&h.y, &saved, &r, &plan, &h.q, &h.k, &h.v, NULL, &err), &err);
    assert_true(r.rows_exact == 0 && plan.tv.v < 1e-7);
    check_promise(&h, &FULL, &k, o.tolerance);
    pare_arena_free(a);
}

/* Two heavy keys; every row keeps its promise. Returns the rows that the exact kernel took. */
static size_t two_heavy_keys(pare_arena *a, head_case *h, const pare_pattern *p, double tolerance)
{
    const pare_poly_opts o = {.tolerance = tolerance, .degree = -1, .heavy = 2, .always = true};
    const pare_poly_plan plan = plan_of(a, h, p, &o);
    const kept_rows k = kept_new(a, h->n);
    const pare_poly_saved saved = {k.bound, k.lse, k.exact};
    pare_poly_report r;
    pare_err err = {0};
    assert_true(plan.kind != PARE_POLY_EXACT && plan.nheavy == 2);
    widen(h);
    reference(h, p, NULL);
    assert_ok(pare_poly_attend_f32(&h->y, &saved, &r, &plan, &h->q, &h->k, &h->v, NULL, &err),
              &err);
    check_promise(h, p, &k, tolerance);
    return r.rows_exact;
}

/* Keys (a, x): their weight is e^a, and e^x or e^-x for a row. What is small in f32 as a weight, or
 * as its product with a value, is most of the row in the end. */
static void what_a_large_e_to_the_x_brings_back_is_not_lost(void **state)
{
    (void)state;
    static const struct {
        bool causal;
        float others, first[2], last[2], value;
        size_t at; /* of the first */
    } cases[] = {
        {false, -33, {0, -87}, {-105, 87}, 1, 4},     /* the weight is 0 in f32 */
        {false, -33, {0, -60}, {-60, 60}, 1e-22f, 4}, /* its product with the value is */
        {true, -60, {0, -25}, {-105, 87}, 1, 200},    /* it is in the unit of a later chunk */
        {true, -33, {0, -40}, {-104, 87}, 1, 4},      /* or of its own */
        {false, 0, {0, -80}, {0, 80}, 1e9f, 4},       /* too large, not too small */
        {false, -3, {0, -20}, {-20, 20}, 1e-10f, 4},  /* all is well */
    };
    for (size_t t = 0; t < sizeof cases / sizeof *cases; t++) {
        pare_arena *const a = pare_arena_new();
        head_case h = poly_case(a, 1200, 2, 1, CENTERED, 1, 81);
        const float far = 0x1p-10f;
        for (size_t i = 0; i < h.n; i++) {
            float *const k = h.k.v + i * h.k.ld;
            const float *const at = i == 5 ? cases[t].last : cases[t].first;
            const bool heavy = i == 5 || i == cases[t].at;
            h.q.v[i * h.q.ld] = 1, h.q.v[i * h.q.ld + 1] = i % 2 ? -far : far;
            k[0] = heavy ? at[0] : cases[t].others;
            k[1] = heavy ? at[1] / far : 0.01f * (float)(i % 3) - 0.01f;
            h.v.v[i * h.v.ld] = i == 5 ? cases[t].value : 0;
        }
        const size_t exact = two_heavy_keys(a, &h, cases[t].causal ? &CAUSAL : &FULL, 1e-3);
        assert_true(t < 5 || exact < h.n / 2);
        pare_arena_free(a);
    }
}

/* Two opposite long keys across the center of the queries: their products with it cancel, and in
 * f32 what is left of them would be rounding. */
static void scores_of_heavy_keys_are_summed_in_f64(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        pare_arena *const a = pare_arena_new();
        pare_rng r = pare_rng_at(seed, 3);
        head_case h = poly_case(a, 700, 4, 1, CENTERED, 0.01, seed);
        const float c0 = 0.3f + 0.07f * (float)pare_rng_uniform(&r);
        const float k1 = 1000003 + rintf(1000 * (float)pare_rng_uniform(&r));
        const float center[] = {c0, -0.6f, 0.1f, 0.2f}, k[] = {rintf((8 + 0.6f * k1) / c0), k1};
        for (size_t i = 0; i < h.n; i++) {
            for (size_t c = 0; c < 4; c++) h.q.v[i * h.q.ld + c] = center[c];
            h.q.v[i * h.q.ld + 2] += i % 2 ? 1e-7f : -1e-7f;
            h.v.v[i * h.v.ld] = i == 5;
        }
        for (size_t c = 0; c < 4; c++) {
            h.k.v[5 * h.k.ld + c] = c < 2 ? k[c] : 0;
            h.k.v[6 * h.k.ld + c] = c < 2 ? -k[c] : 0;
        }
        assert_int_equal(two_heavy_keys(a, &h, &FULL, 1e-4), 0);
        pare_arena_free(a);
    }
}

static void bits_do_not_depend_on_the_threads(void **state)
{
    (void)state;
    for (int c = 0; c < 2; c++) {
        pare_arena *const a = pare_arena_new();
        const size_t n = 9000, d = 4, dv = 3;
        head_case h = poly_case(a, n, d, dv, OUTLIER, 0.1, 77);
        const pare_pattern *const p = c ? &CAUSAL : &FULL;
        const pare_poly_opts o = {.tolerance = 1e-3, .degree = -1, .always = true};
        float *const first = pare_alloc(a, n * h.y.ld, sizeof *first);
        assert_non_null(first);
        for (int threads = 1; threads <= 3; threads++) {
            const pare_exec exec = {.threads = threads};
            pare_poly_report r;
            pare_err err = {0};
            assert_ok(pare_poly_f32(&h.y, &r,
                                    &(pare_attention_args32){
                                        .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = p},
                                    &o, &exec, &err),
                      &err);
            assert_true(r.rows_exact > 0 && r.rows_exact < n / 4);
            if (threads == 1) memcpy(first, h.y.v, n * h.y.ld * sizeof *first);
            assert_memory_equal(first, h.y.v, n * h.y.ld * sizeof *first);
        }
        pare_arena_free(a);
    }
}

/* Rows that the lengths of the keys cannot prove are proven by the moment itself: over all keys,
 * over the chunks before a row, and beside heavy keys. On every unit, with the same bits for any
 * number of threads. */
static void the_moment_saves_rows_from_the_exact_kernel(void **state)
{
    (void)state;
    poly_kernel kernels[3];
    const size_t units = poly_kernels(kernels);
    for (size_t t = 0; t < 4; t++) {
        pare_arena *const a = pare_arena_new();
        const pare_pattern *const p = t % 2 ? &CAUSAL : &FULL;
        const size_t n = 5000;
        head_case h = poly_case(a, n, 6, 2, t < 2 ? CENTERED : HEAVY, 0.2, 9);
        const pare_poly_opts o = {.tolerance = 1e-3,
                                  .kind = PARE_POLY_TAYLOR,
                                  .degree = 3,
                                  .heavy = t < 2 ? 0 : 1,
                                  .always = true};
        const pare_poly_plan plan = plan_of(a, &h, p, &o);
        const kept_rows k = kept_new(a, n);
        const pare_poly_saved saved = {k.bound, k.lse, k.exact};
        float *const first = pare_alloc(a, n * h.y.ld, sizeof *first);
        assert_true(first && plan.nheavy == o.heavy);
        reference(&h, p, NULL);
        for (size_t u = 0; u < units + 1; u++) {
            const pare_exec exec = {.threads = u < units ? 1 : 3};
            pare_poly_report r;
            pare_err err = {0};
            assert_ok(poly_attend_with(&kernels[u % units], &h.y, &saved, &r, &plan, &h.q, &h.k,
                                       &h.v, &exec, &err),
                      &err);
            assert_true(r.rows_moment > 20 && r.rows_exact < r.rows_moment);
            assert_le(r.proven.v, 1e-3);
            if (u == t % units) check_promise(&h, p, &k, 1e-3);
            if (u == 0) memcpy(first, h.y.v, n * h.y.ld * sizeof *first);
            if (u == units) assert_memory_equal(first, h.y.v, n * h.y.ld * sizeof *first);
        }
        pare_arena_free(a);
    }
}

static void logs_of_sums_are_kept(void **state)
{
    (void)state;
    for (int c = 0; c < 2; c++) {
        pare_arena *const a = pare_arena_new();
        head_case h = poly_case(a, 150, 3, 2, OFFSET, 0.1, 21);
        const pare_pattern *const p = c ? &CAUSAL : &FULL;
        const pare_poly_opts o = {.tolerance = 1e-3, .degree = -1, .always = true};
        const pare_poly_plan plan = plan_of(a, &h, p, &o);
        const kept_rows k = kept_new(a, h.n);
        const pare_poly_saved saved = {.lse = k.lse};
        double *const lse = pare_alloc(a, h.n, sizeof *lse);
        pare_err err = {0};
        assert_int_not_equal(plan.kind, PARE_POLY_EXACT);
        assert_ok(pare_poly_attend_f32(&h.y, &saved, NULL, &plan, &h.q, &h.k, &h.v, NULL, &err),
                  &err);
        assert_ok(
            pare_attend_saving_f64(&h.y64, lse, &h.q64, &h.k64, &h.v64, 1, p, NULL, NULL, &err),
            &err);
        for (size_t i = 0; i < h.n; i++) assert_near(k.lse[i], lse[i], 3e-3);
        pare_arena_free(a);
    }
}

/* Long queries, where the polynomial's sum may be anything, below 0 too; then a tolerance that no
 * row meets. */
static void logs_of_exact_rows_are_those_of_the_exact_kernel(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++) {
        pare_arena *const a = pare_arena_new();
        head_case h = poly_case(a, 200, 2, 2, CENTERED, 0.1, 23);
        const pare_pattern *const p = t % 2 ? &CAUSAL : &FULL;
        for (size_t i = 0; i < h.n; i++)
            for (size_t c = 0; i % 9 == 0 && c < 2; c++) h.q.v[i * h.q.ld + c] *= 30;
        widen(&h);
        const pare_poly_opts o = {
            .tolerance = 1e-3, .kind = PARE_POLY_TAYLOR, .degree = 3, .always = true};
        pare_poly_plan plan = plan_of(a, &h, p, &o);
        if (t >= 2) plan.tolerance = 1e-12;
        const kept_rows k = kept_new(a, h.n);
        const pare_poly_saved saved = {.lse = k.lse, .exact = k.exact};
        double *const lse = pare_alloc(a, h.n, sizeof *lse);
        size_t exact = 0;
        pare_err err = {0};
        assert_int_not_equal(plan.kind, PARE_POLY_EXACT);
        assert_ok(pare_poly_attend_f32(&h.y, &saved, NULL, &plan, &h.q, &h.k, &h.v, NULL, &err),
                  &err);
        assert_ok(
            pare_attend_saving_f64(&h.y64, lse, &h.q64, &h.k64, &h.v64, 1, p, NULL, NULL, &err),
            &err);
        for (size_t i = 0; i < h.n; i++) exact += k.exact[i];
        for (size_t i = 0; i < h.n; i++) assert_near(k.lse[i], lse[i], k.exact[i] ? 1e-4 : 3e-3);
        assert_true(t < 2 ? exact > 0 && 2 * exact <= h.n : exact == h.n);
        pare_arena_free(a);
    }
}

/* ---- what is left to the exact kernel -------------------------------------------------------- */

static void reasons_for_exact_attention_are_given(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    pare_poly_opts o = PARE_POLY_OPTS_DEFAULT;
    pare_poly_report r;
    pare_err err = {0};
    head_case h = poly_case(a, 300, 8, 4, CENTERED, 0.1, 31);
    assert_ok(pare_poly_f32(&h.y, &r,
                            &(pare_attention_args32){
                                .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = &FULL},
                            &o, NULL, &err),
              &err);
    assert_true(r.kind == PARE_POLY_EXACT && r.rows_exact == 300);
    assert_contains(r.why, "exact: 300 tokens are too few");
    h = poly_case(a, 700, 8, 4, CENTERED, 0.1, 31);
    reference(&h, &FULL, NULL);
    assert_ok(pare_poly_f32(&h.y, &r,
                            &(pare_attention_args32){
                                .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = &FULL},
                            &o, NULL, &err),
              &err);
    assert_contains(r.why, "exact: 700 tokens are too few, degree 3 (165 features) would be");
    check_bound(&h, &FULL, NULL);
    h = poly_case(a, 1000, 8, 4, CENTERED, 9, 32); /* logits to about 100 */
    reference(&h, &FULL, NULL);
    assert_ok(pare_poly_f32(&h.y, &r,
                            &(pare_attention_args32){
                                .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = &FULL},
                            &o, NULL, &err),
              &err);
    assert_contains(r.why, "exact: centered logits may reach");
    check_bound(&h, &FULL, NULL);
    h = poly_case(a, 300, 8, 4, CENTERED, 0.1, 33);
    o.always = true, o.max_bytes = 1000, o.degree = 3;
    assert_ok(pare_poly_f32(&h.y, &r,
                            &(pare_attention_args32){
                                .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = &FULL},
                            &o, NULL, &err),
              &err);
    assert_contains(r.why, "memory");
    const pare_pattern window = {.kind = PARE_WINDOW, .window = 5};
    reference(&h, &window, NULL);
    assert_ok(pare_poly_f32(&h.y, &r,
                            &(pare_attention_args32){
                                .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = &window},
                            &o, NULL, &err),
              &err);
    assert_contains(r.why, "exact: the pattern is a window");
    check_bound(&h, &window, NULL);
    pare_arena_free(a);
}

/* Values beyond what sums of f32 hold, and below. */
static void values_of_extreme_size_are_left_to_the_exact_kernel(void **state)
{
    (void)state;
    static const float sizes[] = {0x1p100f, 0x1p-100f};
    for (size_t s = 0; s < 2; s++) {
        pare_arena *const a = pare_arena_new();
        head_case h = poly_case(a, 100, 2, 2, CENTERED, 0.1, 41);
        for (size_t i = 0; i < h.n * h.v.ld; i++) h.v.v[i] *= sizes[s];
        const pare_poly_opts o = {.tolerance = 1e-3, .degree = 3, .always = true};
        pare_poly_report r;
        pare_err err = {0};
        assert_ok(pare_poly_f32(&h.y, &r,
                                &(pare_attention_args32){
                                    .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = &FULL},
                                &o, NULL, &err),
                  &err);
        assert_contains(r.why, "exact: values are too large or too small");
        assert_int_equal(r.rows_exact, 100);
        pare_arena_free(a);
    }
}

static void a_number_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"queries: row 70", "keys: row 70", "values: row 70"};
    for (size_t t = 0; t < 6; t++) {
        const size_t s = t % 3;
        pare_arena *const a = pare_arena_new();
        head_case h = poly_case(a, 100, 5, 5, CENTERED, 0.1, 51);
        const pare_mat32 *const sides[] = {&h.q, &h.k, &h.v};
        const pare_poly_opts o = {.tolerance = 1e-3, .degree = 2, .always = true};
        pare_poly_report r;
        pare_err err = {0};
        sides[s]->v[70 * sides[s]->ld + (t < 3 ? 4 : 1)] = s == 1 ? INFINITY : NAN;
        assert_status(
            pare_poly_f32(&h.y, &r,
                          &(pare_attention_args32){
                              .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = &FULL},
                          &o, NULL, &err),
            PARE_ERR_NONFINITE, &err);
        assert_contains(err.msg, names[s]);
        assert_contains(err.msg, s == 1 ? "infinite" : "nan");
        pare_arena_free(a);
    }
}

static void nothing_at_all_is_fine(void **state)
{
    (void)state;
    pare_mat32 none = {0, 3, 3, NULL};
    const pare_poly_opts o = PARE_POLY_OPTS_DEFAULT;
    pare_poly_report r;
    pare_err err = {0};
    assert_ok(pare_poly_f32(&none, &r,
                            &(pare_attention_args32){
                                .q = &none, .k = &none, .v = &none, .scale = 1, .pattern = &FULL},
                            &o, NULL, &err),
              &err);
    assert_int_equal(r.rows, 0);
}

/* d = 8 and 16 at logits of standard deviation 0.1: degree 3, nearly no row left over. */
static void centered_logits_need_degree_three(void **state)
{
    (void)state;
    for (size_t d = 8; d <= 16; d += 8) {
        pare_arena *const a = pare_arena_new();
        const size_t n = d == 8 ? 4000 : 6000;
        head_case h = poly_case(a, n, d, d, CENTERED, 0.1, 61);
        const pare_poly_opts o = PARE_POLY_OPTS_DEFAULT;
        pare_poly_report r;
        pare_err err = {0};
        assert_ok(pare_poly_f32(&h.y, &r,
                                &(pare_attention_args32){
                                    .q = &h.q, .k = &h.k, .v = &h.v, .scale = 1, .pattern = &FULL},
                                &o, NULL, &err),
                  &err);
        assert_int_equal(r.kind, PARE_POLY_TAYLOR);
        assert_int_equal(r.degree, 3);
        assert_true(r.rows_exact <= n / 200);
        assert_le(r.proven.v, 1e-3);
        pare_arena_free(a);
    }
}

/* Coordinates that fall by halves: of the high powers of the large ones few are enough. */
static void unequal_coordinates_get_chosen_monomials(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    head_case h = poly_case(a, 600, 8, 4, DECAYING, 0.3, 71);
    const pare_poly_opts o = {
        .tolerance = 2e-4, .degree = -1, .kind = PARE_POLY_ADAPTIVE, .always = true};
    const pare_poly_plan plan = plan_of(a, &h, &FULL, &o);
    assert_int_equal(plan.kind, PARE_POLY_ADAPTIVE);
    assert_true(plan.table.count < pare_monomials_count(8, plan.degree) / 10);
    const kept_rows k = kept_new(a, h.n);
    const pare_poly_saved saved = {k.bound, k.lse, k.exact};
    pare_err err = {0};
    assert_ok(pare_poly_attend_f32(&h.y, &saved, NULL, &plan, &h.q, &h.k, &h.v, NULL, &err), &err);
    reference(&h, &FULL, NULL);
    check_promise(&h, &FULL, &k, o.tolerance);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_keeps_its_promise_on_every_unit),
        cmocka_unit_test(bounds_are_not_needlessly_large),
        cmocka_unit_test(keys_of_the_own_chunk_cost_rounding_alone),
        cmocka_unit_test(roundings_are_counted),
        cmocka_unit_test(what_a_large_e_to_the_x_brings_back_is_not_lost),
        cmocka_unit_test(scores_of_heavy_keys_are_summed_in_f64),
        cmocka_unit_test(bits_do_not_depend_on_the_threads),
        cmocka_unit_test(the_moment_saves_rows_from_the_exact_kernel),
        cmocka_unit_test(logs_of_sums_are_kept),
        cmocka_unit_test(logs_of_exact_rows_are_those_of_the_exact_kernel),
        cmocka_unit_test(reasons_for_exact_attention_are_given),
        cmocka_unit_test(values_of_extreme_size_are_left_to_the_exact_kernel),
        cmocka_unit_test(a_number_that_is_none_is_refused),
        cmocka_unit_test(nothing_at_all_is_fine),
        cmocka_unit_test(centered_logits_need_degree_three),
        cmocka_unit_test(unequal_coordinates_get_chosen_monomials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
