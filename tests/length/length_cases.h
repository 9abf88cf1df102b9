/* length_cases.h - heads of chosen data in both types, the exact answer in long double, and engines
 * that know only part of what ours knows. */
#ifndef LENGTH_CASES_H
#define LENGTH_CASES_H
#include <pare_test.h>
#include <pare/length.h>
#include <stdlib.h>
#include <string.h>

typedef enum regime { BENIGN, PEAKY, HOT, WIDE, REGIMES } regime;
static const char *const regime_names[] = {"benign", "peaky", "hot", "wide"};

typedef struct length_case {
    pare_arena *a;
    size_t n, dk, dv;
    double *q, *k, *v, *exact, *direct, *y; /* exact: long double, rounded */
    float *qf, *kf, *vf, *yf, *directf;
} length_case;

static inline double *doubles(pare_arena *a, size_t n)
{
    double *const x = pare_alloc(a, n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static inline float *floats(pare_arena *a, size_t n)
{
    float *const x = pare_alloc(a, n + 1, sizeof *x);
    assert_non_null(x);
    return x;
}

/* benign: logits of variance 1; peaky: of deviation 8; hot: a block of keys 60 higher; wide: rows
 * shifted by up to 45 either way (a constant coordinate of the keys). */
static inline length_case length_case_new(size_t n, size_t dk, size_t dv, regime kind,
                                          uint64_t seed)
{
    length_case c = {.a = pare_arena_new(), .n = n, .dk = dk, .dv = dv};
    assert_non_null(c.a);
    assert_true(dk >= 2);
    c.q = doubles(c.a, n * dk), c.k = doubles(c.a, n * dk), c.v = doubles(c.a, n * dv);
    c.exact = doubles(c.a, n * dv), c.direct = doubles(c.a, n * dv), c.y = doubles(c.a, n * dv);
    c.qf = floats(c.a, n * dk), c.kf = floats(c.a, n * dk), c.vf = floats(c.a, n * dv);
    c.yf = floats(c.a, n * dv), c.directf = floats(c.a, n * dv);
    pare_rng r = pare_rng_at(seed, 71);
    const double scale = (kind == PEAKY ? 8 : 1) / sqrt((double)dk);
    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; e < dk; e++) {
            double q = scale * pare_rng_normal(&r), k = pare_rng_normal(&r);
            if (e == 0 && kind == HOT) q = 1, k = i % 64 < 16 ? 60 : 0;
            if (e == 0 && kind == WIDE) q = 90.0 * (double)i / (double)n - 45, k = 1;
            c.qf[i * dk + e] = (float)q, c.kf[i * dk + e] = (float)k;
            c.q[i * dk + e] = (double)(float)q, c.k[i * dk + e] = (double)(float)k;
        }
    for (size_t i = 0; i < n * dv; i++) c.v[i] = (double)(c.vf[i] = (float)pare_rng_normal(&r));
    return c;
}

static inline void length_case_free(length_case *c)
{
    pare_arena_free(c->a);
}

static inline void exact_row(length_case *c, const pare_pattern *p, const pare_graph *g, size_t i)
{
    const pare_keys keys = pare_visible(p, g, c->n, i);
    long double *const s = calloc(keys.count + 1, sizeof *s), top = -INFINITY, sum = 0;
    assert_non_null(s);
    for (size_t x = 0; x < keys.count; x++) {
        const size_t j = pare_key(&keys, x);
        for (size_t e = 0; e < c->dk; e++)
            s[x] += (long double)c->q[i * c->dk + e] * (long double)c->k[j * c->dk + e];
        if (s[x] > top) top = s[x];
    }
    for (size_t x = 0; x < keys.count; x++) sum += s[x] = expl(s[x] - top);
    for (size_t e = 0; e < c->dv; e++) {
        long double y = 0;
        for (size_t x = 0; x < keys.count; x++)
            y += s[x] * (long double)c->v[pare_key(&keys, x) * c->dv + e];
        c->exact[i * c->dv + e] = keys.count ? (double)(y / sum) : 0;
    }
    free(s);
}

/* The exact answer, and what the direct kernels of both types make of it. */
static inline void length_case_exact(length_case *c, const pare_pattern *p, const pare_graph *g)
{
    for (size_t i = 0; i < c->n; i++) exact_row(c, p, g, i);
    pare_mat y = pare_mat_of(c->direct, c->n, c->dv);
    const pare_mat q = pare_mat_of(c->q, c->n, c->dk), k = pare_mat_of(c->k, c->n, c->dk),
                   v = pare_mat_of(c->v, c->n, c->dv);
    assert_int_equal(
        pare_attend_f64(
            &y,
            &(pare_attention_args){.q = &q, .k = &k, .v = &v, .scale = 1, .pattern = p, .graph = g},
            NULL, NULL),
        PARE_OK);
    pare_mat32 yf = {c->n, c->dv, c->dv, c->directf};
    const pare_mat32 qf = {c->n, c->dk, c->dk, c->qf}, kf = {c->n, c->dk, c->dk, c->kf},
                     vf = {c->n, c->dv, c->dv, c->vf};
    assert_int_equal(
        pare_attend_f32(&yf,
                        &(pare_attention_args32){
                            .q = &qf, .k = &kf, .v = &vf, .scale = 1, .pattern = p, .graph = g},
                        NULL, NULL),
        PARE_OK);
}

/* Largest error of a row: max over rows of |y - exact|_2. nan counts as inf. */
static inline double error_of(const length_case *c, const double *y, const float *yf)
{
    double most = 0;
    for (size_t i = 0; i < c->n; i++) {
        double s = 0;
        for (size_t e = 0; e < c->dv; e++) {
            const size_t at = i * c->dv + e;
            const double got = y ? y[at] : yf ? (double)yf[at] : NAN;
            const double d = got - c->exact[at];
            s += d * d;
        }
        if (!(s <= most * most)) most = sqrt(s);
        if (isnan(s)) return INFINITY;
    }
    return most;
}

static inline pare_length_job job_of(length_case *c, pare_dtype t)
{
    const bool f = t == PARE_F32;
    return (pare_length_job){.n = c->n,
                             .dk = c->dk,
                             .dv = c->dv,
                             .q = f ? (void *)c->qf : c->q,
                             .k = f ? (void *)c->kf : c->k,
                             .v = f ? (void *)c->vf : c->v,
                             .ldq = c->dk,
                             .ldk = c->dk,
                             .ldv = c->dv,
                             .scale = 1,
                             .y = f ? (void *)c->yf : c->y,
                             .ldy = c->dv};
}

/* The error that is allowed: 8 times the direct kernel's own plus 8 u max|v|. */
static inline double allowed(const length_case *c, pare_dtype t)
{
    double v = 0;
    for (size_t i = 0; i < c->n * c->dv; i++) v = fmax(v, fabs(c->v[i]));
    return t == PARE_F32 ? 8 * error_of(c, NULL, c->directf) + 8 * 0x1p-24 * v
                         : 8 * error_of(c, c->direct, NULL) + 8 * 0x1p-53 * v;
}

static inline double error_in(const length_case *c, pare_dtype t)
{
    return t == PARE_F32 ? error_of(c, NULL, c->yf) : error_of(c, c->y, NULL);
}

static inline pare_oracle cpu_oracle(pare_dtype t, uint32_t m, const pare_exec *x)
{
    pare_oracle o;
    assert_int_equal(pare_oracle_cpu(&o, t, m, x, NULL), PARE_OK);
    return o;
}

/* Our own engine, but that it says nothing of some of its features. */
typedef struct modest {
    pare_oracle inner;
    uint32_t hidden;
    uint64_t added; /* calls whose rows it has added up */
} modest;

static inline void modest_caps(void *self, pare_oracle_caps *out)
{
    const modest *const o = self;
    o->inner.ops->caps(o->inner.self, out);
    out->features &= ~o->hidden;
}

static inline pare_status modest_evaluate(void *self, const pare_call *calls, size_t n,
                                          pare_err *err)
{
    modest *const o = self;
    for (size_t i = 0; i < n; i++) {
        assert_true(calls[i].kind != PARE_CALL_QKV || !calls[i].u.a.dv2 ||
                    !(o->hidden & PARE_ORC_SPLIT));
        assert_true(!calls[i].into.weigh || !(o->hidden & PARE_ORC_ADD));
        if (calls[i].into.weigh) o->added++;
    }
    return o->inner.ops->evaluate(o->inner.self, calls, n, err);
}

static inline pare_status modest_barrier(void *self, pare_err *err)
{
    const modest *const o = self;
    return o->inner.ops->barrier(o->inner.self, err);
}

static inline void modest_destroy(void *self)
{
    modest *const o = self;
    pare_oracle_free(&o->inner);
    free(o);
}

static inline pare_oracle modest_oracle_of(pare_oracle inner, uint32_t hidden)
{
    static const pare_oracle_ops ops = {modest_caps, modest_evaluate, modest_barrier,
                                        modest_destroy};
    modest *const o = malloc(sizeof *o);
    assert_non_null(o);
    *o = (modest){inner, hidden, 0};
    return (pare_oracle){&ops, o};
}

static inline pare_oracle modest_oracle(pare_dtype t, uint32_t m, uint32_t hidden)
{
    return modest_oracle_of(cpu_oracle(t, m, NULL), hidden);
}

enum { QKV_FULL = PARE_ORC_QKV | PARE_ORC_FULL, QKV_CAUSAL = PARE_ORC_QKV | PARE_ORC_CAUSAL };
#endif
