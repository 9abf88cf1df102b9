/* Tests PARE_ORC_ADD of src/attention/oracle_cpu.c: rows that the engine adds up are, bit for bit,
 * the rows it would have written, added up in the order of the calls. */
#include "kernel_cases.h"
#include <pare/attention.h>

enum { ROWS = 200, KEYS = 150, DK = 9, MOST_DV = 70, BLOCK = 40, CALLS = 40 };

typedef struct world {
    float q[ROWS * DK], k[KEYS * DK], v[KEYS * MOST_DV], v2[KEYS * 2];
    uint32_t dv;
    bool qkv; /* else partial */
} world;

typedef struct sums {
    double num[ROWS * (MOST_DV + 3)], told[ROWS]; /* told: what weigh was told, one after another */
    size_t times[ROWS];
} sums;

static void fill(world *x, uint32_t dv, bool qkv, uint64_t seed)
{
    pare_rng r = pare_rng_at(seed, 77);
    x->dv = dv;
    x->qkv = qkv;
    for (size_t i = 0; i < ROWS * DK; i++) x->q[i] = (float)pare_rng_normal(&r);
    for (size_t i = 0; i < KEYS * DK; i++) x->k[i] = (float)pare_rng_normal(&r);
    for (size_t i = 0; i < KEYS * MOST_DV; i++) x->v[i] = (float)pare_rng_normal(&r);
    for (size_t i = 0; i < KEYS * 2; i++) x->v2[i] = (float)pare_rng_normal(&r);
}

/* Any function of the row and of what is said of it, that notices an order. */
static void weigh_row(sums *s, size_t row, double a, double b, double *keep, double *by)
{
    s->told[row] = s->told[row] * 0.75 + a + 3 * b;
    *keep = s->times[row] % 3 == 1 ? 1 : 0.5 + 1 / (1 + fabs(s->told[row]));
    *by = 1 + 0.001 * (double)row + b;
    s->times[row]++;
}

static void weigh(void *ctx, size_t row, size_t n, const void *a, const void *b, double *keep,
                  double *by)
{
    const float *const x = a, *const y = b;
    assert_true(n >= 1 && n <= 64);
    for (size_t p = 0; p < n; p++)
        weigh_row(ctx, row + p, (double)x[p], (double)y[p], &keep[p], &by[p]);
}

/* Query blocks with the same keys one after the other, then the next keys: as plans have them. But
 * one is a stair, one answers fewer rows than it has, two are numbered as if they had changed
 * places, and the last one is asked twice. */
static size_t make_calls(const world *x, pare_call *out, pare_call_sums *into, sums *s)
{
    static const size_t starts[] = {0, 40, 80, 120, 140, 160, 160, ROWS};
    size_t n = 0;
    for (size_t k0 = 0; k0 < KEYS; k0 += BLOCK)
        for (size_t b = 0; b < 7; b++, n++) {
            const size_t q0 = starts[b], end = b == 5 ? ROWS : starts[b + 1];
            const uint32_t left = (uint32_t)(KEYS - k0 < BLOCK ? KEYS - k0 : BLOCK);
            const uint32_t nq = (uint32_t)(end - q0), has = x->qkv ? left : nq;
            const uint32_t rows = q0 == 80 ? has / 2 : has < nq ? has : nq;
            into[n] = (pare_call_sums){.weigh = weigh,
                                       .ctx = s,
                                       .sum = s->num + q0 * (x->dv + 3),
                                       .ld = x->dv + 3,
                                       .row = q0 == 0    ? 40
                                              : q0 == 40 ? 0
                                                         : q0,
                                       .rows = rows};
            if (x->qkv)
                out[n] = (pare_call){.kind = PARE_CALL_QKV,
                                     .u.a = {.q = x->q + q0 * DK,
                                             .k = x->k + k0 * DK,
                                             .v = x->v + k0 * x->dv,
                                             .n = left,
                                             .dk = DK,
                                             .dv = x->dv,
                                             .causal = q0 == 120,
                                             .v2 = x->v2 + k0 * 2,
                                             .dv2 = 2}};
            else
                out[n] = (pare_call){.kind = PARE_CALL_PARTIAL,
                                     .u.p = {.q = x->q + q0 * DK,
                                             .k = x->k + k0 * DK,
                                             .v = x->v + k0 * x->dv,
                                             .ldq = DK,
                                             .ldk = DK,
                                             .ldv = x->dv,
                                             .nq = nq,
                                             .nk = left,
                                             .dk = DK,
                                             .dv = x->dv,
                                             .vis0 = q0 == 120 ? 1 : PARE_VIS_ALL}};
        }
    assert_true(n <= CALLS);
    return n;
}

static void evaluate(const pare_oracle *o, const pare_call *calls, size_t n)
{
    pare_err err = {0};
    assert_ok(o->ops->evaluate(o->self, calls, n, &err), &err);
    assert_ok(o->ops->barrier(o->self, &err), &err);
}

/* One call at a time, written, then added up here. */
static void add_by_hand(const world *x, const pare_oracle *o, sums *s)
{
    static float y[BLOCK * MOST_DV], a[BLOCK * 2], b[BLOCK];
    pare_call calls[CALLS];
    pare_call_sums into[CALLS];
    const size_t n = make_calls(x, calls, into, s);
    for (size_t i = 0; i < n; i++) {
        pare_call *const c = &calls[i];
        if (x->qkv)
            c->u.a.y = y, c->u.a.y2 = a;
        else
            c->u.p.m = a, c->u.p.l = b, c->u.p.acc = y, c->u.p.ldacc = x->dv;
        evaluate(o, c, 1);
        for (size_t p = 0; p < into[i].rows; p++) {
            double keep, by;
            weigh_row(s, into[i].row + p, (double)(x->qkv ? a[2 * p] : a[p]),
                      (double)(x->qkv ? a[2 * p + 1] : b[p]), &keep, &by);
            for (size_t e = 0; e < x->dv; e++) {
                double *const sum = into[i].sum + p * into[i].ld + e;
                const double more = by * (double)y[p * x->dv + e];
                *sum = keep * *sum + more;
            }
        }
    }
}

static void rows_are_added_as_they_would_be_written(void **state)
{
    static const uint32_t widths[] = {1, 5, 16, 37, 48, 64, 70};
    (void)state;
    static world x;
    static sums want, got;
    for (int qkv = 0; qkv < 2; qkv++)
        for (size_t w = 0; w < 7; w++)
            for (int threads = 1; threads <= 3; threads++) {
                const pare_exec exec = {.threads = threads};
                pare_oracle o;
                pare_call calls[CALLS];
                pare_call_sums into[CALLS];
                assert_int_equal(pare_oracle_cpu(&o, PARE_F32, BLOCK, &exec, NULL), PARE_OK);
                fill(&x, widths[w], qkv == 1, 5 + w);
                memset(&want, 0, sizeof want);
                memset(&got, 0, sizeof got);
                add_by_hand(&x, &o, &want);
                const size_t n = make_calls(&x, calls, into, &got);
                for (size_t i = 0; i < n; i++) calls[i].into = into[i];
                evaluate(&o, calls, n);
                assert_memory_equal(&got, &want, sizeof got); /* nothing between the rows, too */
                pare_oracle_free(&o);
            }
}

static void what_cannot_be_added_is_refused(void **state)
{
    (void)state;
    static world x;
    static sums s;
    pare_oracle f, d;
    pare_call calls[CALLS];
    pare_call_sums into[CALLS];
    pare_err err = {0};
    assert_int_equal(pare_oracle_cpu(&f, PARE_F32, BLOCK, NULL, NULL), PARE_OK);
    assert_int_equal(pare_oracle_cpu(&d, PARE_F64, BLOCK, NULL, NULL), PARE_OK);
    fill(&x, 5, true, 1);
    make_calls(&x, calls, into, &s);
    const pare_call good = {.kind = calls[0].kind, .u = calls[0].u, .into = into[0]};
    pare_call bad[4] = {good, good, good, good};
    bad[0].u.a.dv2 = 0;
    bad[1].u.a.dv2 = 3;
    bad[2].into.rows = BLOCK + 1;
    bad[3].into.ld = 4;
    const char *const why[] = {"0 columns weigh", "3 columns weigh", "41 sums", "ld 4"};
    for (size_t i = 0; i < 4; i++) {
        const pare_call both[] = {good, bad[i]};
        assert_status(f.ops->evaluate(f.self, both, 2, &err), PARE_ERR_INPUT, &err);
        assert_contains(err.msg, why[i]);
        assert_int_equal(s.times[0], 0);
    }
    assert_status(d.ops->evaluate(d.self, &good, 1, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "only f32");
    pare_oracle_free(&f);
    pare_oracle_free(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_added_as_they_would_be_written),
        cmocka_unit_test(what_cannot_be_added_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
