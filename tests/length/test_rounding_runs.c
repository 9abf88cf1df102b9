/* Tests src/length/rounding.c: no run is further from real arithmetic than its bound says, and an
 * engine that errs as much as it may is nearly as far. test_rounding.c has the formulas. */
#include "length/attend_plan.h"
#include "length_cases.h"

typedef struct tried {
    double used; /* of the bound, at most */
    size_t rows;
} tried;

static void compare_on(pare_oracle orc, double scale, length_case *c, const pare_pattern *p,
                       pare_dtype t, const pare_length_opts *o, tried *all)
{
    pare_length_job job = job_of(c, t);
    pare_oracle_caps caps;
    job.scale = scale;
    pare_err err = {0};
    double *const bound = doubles(c->a, c->n);
    orc.ops->caps(orc.self, &caps);
    assert_ok(pare_length_attend(&orc, o,
                                 &(pare_length_layer){.jobs = &job, .count = 1, .pattern = p}, NULL,
                                 NULL, &err),
              &err);
    assert_ok(pare_length_rounding(bound, &job, p, NULL, &caps, o, NULL, &err), &err);
    for (size_t i = 0; i < c->n * c->dv; i++) {
        const double y = t == PARE_F32 ? (double)c->yf[i] : c->y[i], off = fabs(y - c->exact[i]);
        if (!(off <= bound[i / c->dv]))
            fail_msg("row %zu of %zu, M %u, %s, mode %d: off by %g, bound %g", i / c->dv, c->n,
                     (unsigned)caps.max_len, t == PARE_F32 ? "f32" : "f64", (int)o->mode, off,
                     bound[i / c->dv]);
        all->used = fmax(all->used, off / bound[i / c->dv]);
        all->rows++;
    }
    pare_oracle_free(&orc);
}

static void compare(length_case *c, const pare_pattern *p, uint32_t m, pare_dtype t,
                    const pare_length_opts *o, tried *all)
{
    compare_on(cpu_oracle(t, m, NULL), 1, c, p, t, o, all);
}

static const pare_length_opts native = {.mode = PARE_LENGTH_NATIVE},
                              strict = {.mode = PARE_LENGTH_STRICT},
                              full_calls = {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL},
                              causal_calls = {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL};

/* Logit scales 0.3 .. 6 and the four regimes. */
static void every_row_is_within_its_bound(void **state)
{
    (void)state;
    static const pare_pattern patterns[] = {
        {.kind = PARE_FULL}, {.kind = PARE_CAUSAL}, {.kind = PARE_WINDOW, .window = 7, .sinks = 2}};
    tried f32 = {0}, f64 = {0};
    for (int kind = 0; kind < REGIMES; kind++)
        for (double scale = 0.3; scale < 7; scale *= 4.4)
            for (size_t p = 0; p < 3; p++) {
                length_case c = length_case_new(90, 5, 3, (regime)kind, 60 + p);
                for (size_t i = 0; i < c.n * c.dk; i++)
                    c.q[i] = (double)(c.qf[i] = (float)(c.q[i] * scale));
                for (size_t i = 0; i < c.n; i++) exact_row(&c, &patterns[p], NULL, i);
                for (uint32_t m = 3; m <= 48; m *= 4)
                    for (int w = 0; w < 3; w++) {
                        const pare_length_opts *const o = w == 0   ? &native
                                                          : w == 1 ? &full_calls
                                                                   : &causal_calls;
                        compare(&c, &patterns[p], m, PARE_F32, o, &f32);
                        compare(&c, &patterns[p], m, PARE_F64, o, &f64);
                    }
                length_case_free(&c);
            }
    print_message("largest part of the bound: f32 %.3f of %zu numbers, f64 %.3f\n", f32.used,
                  f32.rows, f64.used);
    assert_true(f32.used > 0.018 && f64.used > 0.01); /* as tight as it was: 0.027 and 0.017 */
}

/* ---- chosen numbers -------------------------------------------------------------------------- */

static const pare_pattern whole = {.kind = PARE_FULL};

static void put(double *wide, float *narrow, size_t at, double x)
{
    wide[at] = (double)(narrow[at] = (float)fmax(fmin(x, 3e38), -3e38));
}

/* Full attention over what was put, in all three ways; `scale` is in c->q already. */
static void try_all(length_case *c, uint32_t m, pare_dtype t, double scale, tried *all)
{
    const pare_length_opts *const ways[] = {&native, &full_calls, &causal_calls};
    for (size_t i = 0; i < c->n; i++) exact_row(c, &whole, NULL, i);
    for (int w = 0; w < 3; w++)
        compare_on(cpu_oracle(t, m, NULL), scale, c, &whole, t, ways[w], all);
}

/* Underflow: logits (0, -103) and (0, -100), values (0, 1): e^-103 has no f32, and near e^-100
 * numbers are coarse. Without the absolute term the bound is below the error. */
static void underflow_is_in_the_bound(void **state)
{
    (void)state;
    static const double gaps[] = {103, 100, 90, 87.5, 104, 150};
    tried all = {0};
    for (size_t x = 0; x < 6; x++) {
        length_case c = length_case_new(2, 2, 1, BENIGN, 1);
        for (size_t i = 0; i < 4; i++) {
            put(c.q, c.qf, i, i % 2 == 0);
            put(c.k, c.kf, i, i == 2 ? -gaps[x] : 0);
        }
        for (size_t i = 0; i < 2; i++) put(c.v, c.vf, i, (double)i);
        try_all(&c, 2, PARE_F32, 1, &all);
        compare(&c, &whole, 1, PARE_F32, &native, &all); /* one key a call */
        assert_true(c.exact[0] > 0);
        length_case_free(&c);
    }
    assert_true(all.used > 0);
}

/* Logits (0, -gap), values (0, 1): an engine that says e^-x is 0 for x >= 40 answers 0. */
static void weights_an_engine_takes_for_0_are_in_the_bound(void **state)
{
    (void)state;
    const pare_length_opts *const ways[] = {&native, &full_calls, &causal_calls};
    for (int t = 0; t < 2; t++)
        for (double gap = 40; gap < 80; gap += 13) {
            length_case c = length_case_new(2, 2, 1, BENIGN, 1);
            for (size_t i = 0; i < 4; i++) {
                put(c.q, c.qf, i, i % 2 == 0);
                put(c.k, c.kf, i, i == 2 ? -gap : 0);
            }
            for (size_t i = 0; i < 2; i++) put(c.v, c.vf, i, (double)i);
            for (size_t w = 0; w < 3; w++) {
                pare_oracle orc = cpu_oracle(t ? PARE_F64 : PARE_F32, 2, NULL);
                pare_length_job job = job_of(&c, t ? PARE_F64 : PARE_F32);
                pare_oracle_caps caps;
                pare_err err = {0};
                double bound[2];
                orc.ops->caps(orc.self, &caps);
                caps.exp_flush = 40;
                assert_ok(
                    pare_length_rounding(bound, &job, &whole, NULL, &caps, ways[w], NULL, &err),
                    &err);
                /* 4 (n + (m + 4) parts) e^-40 (max|v| + 1), m times as many with a reference */
                const double want = 4 * (2 + 6 * 68 * (w == 2 ? 2 : 1)) * exp(-40) * 2;
                assert_true(bound[0] >= exp(-gap));
                assert_near(bound[0], want, 0.05 * want);
                pare_oracle_free(&orc);
            }
            length_case_free(&c);
        }
}

/* Values barely normal, 0 and 2 tiny, logits 0 and -30: every weight is a good number, every
 * product is lost, and the loss does not shrink with the values. */
static void products_that_underflow_are_in_the_bound(void **state)
{
    (void)state;
    tried all = {0};
    for (int t = 0; t < 2; t++) {
        length_case c = length_case_new(4, 2, 1, BENIGN, 1);
        for (size_t i = 0; i < 8; i++) {
            put(c.q, c.qf, i, i % 2 == 0);
            put(c.k, c.kf, i, i % 2 == 0 && i ? -30 : 0);
        }
        for (size_t i = 0; i < 4; i++) {
            put(c.v, c.vf, i, i ? 0x1p-125 : 0);
            if (t && i) c.v[i] = 0x1p-1021;
        }
        try_all(&c, 3, t ? PARE_F64 : PARE_F32, 1, &all);
        length_case_free(&c);
    }
    assert_true(all.used > 0);
}

/* Queries whose product with the scale is 1.5 times the smallest number, and keys of 2^127: what
 * scaling loses is not small beside such keys. In the second turn the scale itself is not normal.
 */
static void scaled_queries_that_underflow_are_in_the_bound(void **state)
{
    (void)state;
    tried all = {0};
    for (int turn = 0; turn < 2; turn++) {
        const double scale = turn ? 1.5 * 0x1p-149 : 0.125;
        length_case c = length_case_new(8, 512, 1, BENIGN, 1);
        for (size_t i = 0; i < c.n * c.dk; i++) {
            const double k = turn ? 1024 : 0x1p127;
            put(c.q, c.qf, i, turn ? 0x1p120 : 12 * 0x1p-149);
            c.q[i] *= scale;
            put(c.k, c.kf, i, i / c.dk % 2 ? -k : k);
        }
        for (size_t i = 0; i < c.n; i++) put(c.v, c.vf, i, i % 2 ? -1 : 1);
        try_all(&c, 4, PARE_F32, scale, &all);
        length_case_free(&c);
    }
    assert_true(all.used > 0);
}

/* ---- an engine that flushes ------------------------------------------------------------------ */

enum { FLUSHING = 4096 };

static float flushed(float x)
{
    return fabsf(x) < 0x1p-126F ? 0 : x;
}

static void flushing_caps(void *self, pare_oracle_caps *out)
{
    (void)self;
    *out = (pare_oracle_caps){.size = sizeof *out,
                              .features = QKV_FULL,
                              .max_len = FLUSHING,
                              .dtype = PARE_F32,
                              .exp_flush = 88,
                              .exp_err = 4,
                              .w_min = 0x1p-80};
}

static float logit(const pare_call_qkv *a, uint32_t i, uint32_t j)
{
    float s = 0;
    for (uint32_t e = 0; e < a->dk; e++)
        s += ((const float *)a->q)[i * a->dk + e] * ((const float *)a->k)[j * a->dk + e];
    return s;
}

static void flushing_row(const pare_call_qkv *a, uint32_t i)
{
    static float w[FLUSHING];
    float top = -INFINITY, sum = 0, *const y = (float *)a->y + i * a->dv;
    const float *const q = (const float *)a->q + i * a->dk;
    if (i && memcmp(q, q - a->dk, a->dk * sizeof *q) == 0) { /* as the row before */
        memcpy(y, y - a->dv, a->dv * sizeof *y);
        return;
    }
    for (uint32_t j = 0; j < a->n; j++) top = fmaxf(top, w[j] = logit(a, i, j));
    for (uint32_t j = 0; j < a->n; j++) sum += w[j] = flushed(expf(w[j] - top));
    memset(y, 0, a->dv * sizeof *y);
    for (uint32_t j = 0; j < a->n; j++)
        for (uint32_t e = 0; e < a->dv; e++)
            y[e] += flushed(flushed(w[j] / sum) * ((const float *)a->v)[j * a->dv + e]);
}

static pare_status flushing_evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    (void)self, (void)err;
    for (size_t x = 0; x < n; x++)
        for (uint32_t i = 0; i < calls[x].u.a.n; i++) flushing_row(&calls[x].u.a, i);
    return PARE_OK;
}

static pare_status flushing_barrier(void *self, pare_err *err)
{
    (void)self, (void)err;
    return PARE_OK;
}

static void flushing_destroy(void *self)
{
    (void)self;
}

/* ---- an engine that errs as much as it may --------------------------------------------------- */

enum { COARSE = 3 };

static void coarse_caps(void *self, pare_oracle_caps *out)
{
    (void)self;
    *out = (pare_oracle_caps){.size = sizeof *out,
                              .features = QKV_FULL,
                              .max_len = COARSE,
                              .dtype = PARE_F64,
                              .exp_flush = 746,
                              .exp_err = 1e11,
                              .w_min = 0x1p-900};
}

/* Weights are off by e^+-delta: those of keys that have the value 1 up and the reference beside
 * them down, in other calls the other way round. */
static pare_status coarse_evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    const double delta = (1e11 + 1) * 0x1p-53 * (COARSE + 2);
    (void)self, (void)err;
    for (size_t x = 0; x < n; x++) {
        const pare_call_qkv *const a = &calls[x].u.a;
        const double *const q = a->q, *const k = a->k, *const v = a->v;
        double ones = 0, *const y = a->y;
        for (uint32_t j = 0; j < a->n; j++) ones = fmax(ones, v[j * a->dv]);
        memset(y, 0, a->n * a->dv * sizeof *y);
        for (uint32_t i = 0; i < a->n; i++) {
            double w[COARSE], sum = 0;
            for (uint32_t j = 0; j < a->n; j++) {
                const bool key = v[j * a->dv + a->dv - 2] == 1; /* the reference's is the last */
                double s = key == (ones > 0) ? delta : -delta;
                for (uint32_t e = 0; e < a->dk; e++) s += q[i * a->dk + e] * k[j * a->dk + e];
                sum += w[j] = exp(s);
            }
            for (uint32_t j = 0; j < a->n; j++)
                for (uint32_t e = 0; e < a->dv; e++)
                    y[i * a->dv + e] += w[j] / sum * v[j * a->dv + e];
        }
    }
    return PARE_OK;
}

/* Keys 0 and 1 have the value 1 and a thousandth of the weight, keys 2 and 3 the value 0. What the
 * first two weigh comes out e^(2 delta) too large, the others e^(2 delta) too small: the bound
 * e^(4 delta) - 1 of the thousandth is nearly attained. */
static void an_engine_that_errs_as_it_may_attains_the_bound(void **state)
{
    static const pare_oracle_ops ops = {coarse_caps, coarse_evaluate, flushing_barrier,
                                        flushing_destroy};
    const pare_length_opts one_tile = {.mode = PARE_LENGTH_ZEROREF, .no_pack = true};
    tried all = {0};
    (void)state;
    length_case c = length_case_new(4, 2, 1, BENIGN, 1);
    for (size_t i = 0; i < 4; i++) {
        c.q[2 * i] = 1, c.q[2 * i + 1] = 0;
        c.k[2 * i] = i < 2 ? -log(1000) : 0;
        c.v[i] = i < 2;
    }
    for (size_t i = 0; i < 4; i++) exact_row(&c, &whole, NULL, i);
    compare_on((pare_oracle){&ops, NULL}, 1, &c, &whole, PARE_F64, &one_tile, &all);
    assert_le(0.99, all.used);
    length_case_free(&c);
}

/* The last call has half as many keys as rows: the others stand silently at the reference's logit,
 * and a key that weighs less than `tiny` beside all of them together is lost. Reference 0; the
 * first call has one key, just above w_min. */
static void silent_rows_are_in_the_bound(void **state)
{
    static const pare_oracle_ops ops = {flushing_caps, flushing_evaluate, flushing_barrier,
                                        flushing_destroy};
    const pare_length_opts zero = {.mode = PARE_LENGTH_ZEROREF, .reference = PARE_REF_ZERO};
    const pare_pattern full = {.kind = PARE_FULL};
    const double lost = -87.3 + log(FLUSHING / 2) - 0.05;
    tried all = {0};
    (void)state;
    length_case c = length_case_new(FLUSHING + FLUSHING / 2 - 1, 2, 1, BENIGN, 1);
    for (size_t i = 0; i < c.n; i++) {
        const bool last = i >= FLUSHING - 1;
        c.q[2 * i] = (double)(c.qf[2 * i] = 1), c.q[2 * i + 1] = (double)(c.qf[2 * i + 1] = 0);
        c.k[2 * i] = (double)(c.kf[2 * i] = (float)(!i ? -55.2 : last ? lost : -200));
        c.v[i] = (double)(c.vf[i] = last);
    }
    exact_row(&c, &full, NULL, 0);
    for (size_t i = 1; i < c.n; i++) c.exact[i] = c.exact[0];
    compare_on((pare_oracle){&ops, NULL}, 1, &c, &full, PARE_F32, &zero, &all);
    assert_true(all.used > 0);
    length_case_free(&c);
}

/* ---- attacks --------------------------------------------------------------------------------- */

/* A head whose queries, keys and values have any size, also between one entry and the next; logits
 * of up to about e^`most`. */
static length_case of_any_size(pare_rng *r, size_t n, double most, uint64_t seed)
{
    length_case c = length_case_new(n, 2 + pare_rng_below(r, 4), 2, BENIGN, seed);
    const double q = 220 * pare_rng_uniform(r) - 110, v = 200 * pare_rng_uniform(r) - 130;
    const double uneven = pare_rng_below(r, 2) ? 0 : 20;
    for (size_t i = 0; i < c.n * c.dk; i++) {
        const double by = uneven * (pare_rng_uniform(r) - 1);
        put(c.q, c.qf, i, c.q[i] * exp2(q + by));
        put(c.k, c.kf, i, c.k[i] * exp2(most * pare_rng_uniform(r) - q));
    }
    for (size_t i = 0; i < c.n * c.dv; i++)
        put(c.v, c.vf, i, c.v[i] * exp2(v + uneven * pare_rng_uniform(r)));
    return c;
}

static pare_oracle referee(pare_dtype t, uint32_t m)
{
    pare_oracle o;
    assert_int_equal(
        pare_oracle_paper(&o,
                          &(pare_oracle_caps){.max_len = m,
                                              .layers = 1,
                                              .heads = 1,
                                              .features = PARE_ORC_FULL | PARE_ORC_CAUSAL,
                                              .dtype = t},
                          NULL, NULL),
        PARE_OK);
    return o;
}

/* Whatever the sizes are: numbers within the bound, or an error; never a nan, never a wrong bound.
 */
static void numbers_of_any_size_are_within_it(void **state)
{
    (void)state;
    static const pare_pattern patterns[] = {
        {.kind = PARE_FULL}, {.kind = PARE_CAUSAL}, {.kind = PARE_WINDOW, .window = 3, .sinks = 1}};
    const pare_length_opts *const ways[] = {&native, &full_calls, &causal_calls, &strict};
    size_t refused = 0, rows = 0;
    double used = 0;
    for (uint64_t seed = 0; seed < 1500; seed++) {
        pare_rng r = pare_rng_at(seed, 4);
        length_case c = of_any_size(&r, 2 + pare_rng_below(&r, 20),
                                    (double[]){8, 8, 16, 130}[seed / 2 % 4], seed);
        const pare_pattern *const p = &patterns[pare_rng_below(&r, 3)];
        const uint32_t m = 2 + (uint32_t)pare_rng_below(&r, 12);
        const pare_dtype t = seed % 2 ? PARE_F32 : PARE_F64;
        for (size_t i = 0; i < c.n; i++) exact_row(&c, p, NULL, i);
        for (int w = 0; w < 4; w++) {
            pare_oracle orc = w < 3 ? cpu_oracle(t, m, NULL) : referee(t, m + 1);
            const pare_length_job job = job_of(&c, t);
            pare_oracle_caps caps;
            pare_err err = {0};
            double bound[32];
            orc.ops->caps(orc.self, &caps);
            const pare_status st = pare_length_attend(
                &orc, ways[w], &(pare_length_layer){.jobs = &job, .count = 1, .pattern = p}, NULL,
                NULL, &err);
            pare_oracle_free(&orc);
            if (st) assert_int_equal(st, PARE_ERR_NUMERIC);
            refused += st != PARE_OK;
            if (st) continue;
            assert_ok(pare_length_rounding(bound, &job, p, NULL, &caps, ways[w], NULL, &err), &err);
            for (size_t i = 0; i < c.n * c.dv; i++) {
                const double y = t == PARE_F32 ? (double)c.yf[i] : c.y[i];
                const double off = fabs(y - c.exact[i]);
                if (!(off <= bound[i / c.dv]))
                    fail_msg("seed %llu, way %d: %g, exactly %g, off by %g, bound %g",
                             (unsigned long long)seed, w, y, c.exact[i], off, bound[i / c.dv]);
                if (bound[i / c.dv] > 0) used = fmax(used, off / bound[i / c.dv]);
            }
            rows += c.n;
        }
        length_case_free(&c);
    }
    print_message("seeds 0..1499: %zu rows, %zu runs refused, largest part of the bound %.3f\n",
                  rows, refused, used);
    assert_true(rows > 10000);
}

/* Calls of many rows, some of them silent: what may be lost beside w_min is not what is lost. */
static void bounds_of_long_calls_are_of_use(void **state)
{
    (void)state;
    length_case c = length_case_new(700, 4, 2, BENIGN, 9);
    double *const bound = doubles(c.a, c.n);
    pare_oracle orc = cpu_oracle(PARE_F32, 512, NULL);
    const pare_length_job job = job_of(&c, PARE_F32);
    pare_oracle_caps caps;
    pare_err err = {0};
    orc.ops->caps(orc.self, &caps);
    assert_ok(pare_length_rounding(bound, &job, &whole, NULL, &caps, &full_calls, NULL, &err),
              &err);
    for (size_t i = 0; i < c.n; i++) assert_le(bound[i], 0.0012);
    pare_oracle_free(&orc);
    length_case_free(&c);
}

/* Hill climbing on the inputs for the largest part of the bound. */
static void search_does_not_break_it(void **state)
{
    (void)state;
    const pare_pattern full = {.kind = PARE_FULL};
    double best = 0;
    length_case c = length_case_new(12, 3, 2, BENIGN, 77);
    pare_rng r = pare_rng_at(77, 1);
    for (int step = 0; step < 4000; step++) {
        float *const x = step % 3 == 0 ? c.qf : step % 3 == 1 ? c.kf : c.vf;
        double *const x64 = step % 3 == 0 ? c.q : step % 3 == 1 ? c.k : c.v;
        const size_t at = pare_rng_below(&r, c.n * (step % 3 == 2 ? c.dv : c.dk));
        const float was = x[at];
        x64[at] = (double)(x[at] = (float)(was * (float)(1 + pare_rng_normal(&r)) +
                                           (float)pare_rng_normal(&r)));
        for (size_t i = 0; i < c.n; i++) exact_row(&c, &full, NULL, i);
        tried now = {0};
        compare(&c, &full, 5, PARE_F32, step % 2 ? &native : &full_calls, &now);
        if (now.used >= best * (1 - 0.02 * pare_rng_uniform(&r)))
            best = now.used;
        else
            x64[at] = (double)(x[at] = was);
    }
    print_message("seed 77: largest part of the bound found %.3f\n", best);
    length_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_within_its_bound),
        cmocka_unit_test(underflow_is_in_the_bound),
        cmocka_unit_test(weights_an_engine_takes_for_0_are_in_the_bound),
        cmocka_unit_test(products_that_underflow_are_in_the_bound),
        cmocka_unit_test(scaled_queries_that_underflow_are_in_the_bound),
        cmocka_unit_test(an_engine_that_errs_as_it_may_attains_the_bound),
        cmocka_unit_test(silent_rows_are_in_the_bound),
        cmocka_unit_test(numbers_of_any_size_are_within_it),
        cmocka_unit_test(bounds_of_long_calls_are_of_use),
        cmocka_unit_test(search_does_not_break_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
