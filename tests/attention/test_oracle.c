/* Tests src/attention/oracle_*.c: calls give attention, what is not allowed is refused, counts add
 * up. */
#include "kernel_cases.h"
#include "attention/attend.h"

enum { N = 100, M = 32, DK = 6, DV = 5 };

typedef struct numbers { /* in both types */
    double q[N * DK], k[N * DK], v[N * DV];
    float qf[N * DK], kf[N * DK], vf[N * DV];
} numbers;

static void fill(numbers *x)
{
    pare_rng r = pare_rng_at(4, 4);
    for (size_t i = 0; i < N * DK; i++) x->q[i] = (double)(x->qf[i] = (float)pare_rng_normal(&r));
    for (size_t i = 0; i < N * DK; i++) x->k[i] = (double)(x->kf[i] = (float)pare_rng_normal(&r));
    for (size_t i = 0; i < N * DV; i++) x->v[i] = (double)(x->vf[i] = (float)pare_rng_normal(&r));
}

static void whole(double *y, numbers *x, size_t n, pare_pattern_kind kind)
{
    pare_mat out = pare_mat_of(y, n, DV);
    const pare_mat q = pare_mat_of(x->q, n, DK), k = pare_mat_of(x->k, n, DK),
                   v = pare_mat_of(x->v, n, DV);
    const pare_pattern p = {.kind = kind};
    assert_int_equal(
        pare_attend_f64(
            &out, &(pare_attention_args){.q = &q, .k = &k, .v = &v, .scale = 1, .pattern = &p},
            NULL, NULL),
        PARE_OK);
}

static pare_oracle cpu_oracle(pare_dtype t, uint32_t m, const pare_exec *x)
{
    pare_oracle o;
    assert_int_equal(pare_oracle_cpu(&o, t, m, x, NULL), PARE_OK);
    return o;
}

static void run(const pare_oracle *o, const pare_call *calls, size_t n)
{
    pare_err err = {0};
    assert_ok(o->ops->evaluate(o->self, calls, n, &err), &err);
    assert_ok(o->ops->barrier(o->self, &err), &err);
}

static void a_qkv_call_is_attention(void **state)
{
    (void)state;
    static numbers x;
    double want[M * DV], got[M * DV];
    float gotf[M * DV];
    fill(&x);
    pare_oracle o = cpu_oracle(PARE_F64, M, NULL), f = cpu_oracle(PARE_F32, M, NULL);
    for (int causal = 0; causal < 2; causal++) {
        whole(want, &x, M, causal ? PARE_CAUSAL : PARE_FULL);
        const pare_call c = {.kind = PARE_CALL_QKV,
                             .u.a = {.q = x.q,
                                     .k = x.k,
                                     .v = x.v,
                                     .n = M,
                                     .dk = DK,
                                     .dv = DV,
                                     .causal = causal == 1,
                                     .y = got}};
        const pare_call cf = {.kind = PARE_CALL_QKV,
                              .u.a = {.q = x.qf,
                                      .k = x.kf,
                                      .v = x.vf,
                                      .n = M,
                                      .dk = DK,
                                      .dv = DV,
                                      .causal = causal == 1,
                                      .y = gotf}};
        run(&o, &c, 1);
        run(&f, &cf, 1);
        for (size_t i = 0; i < M * DV; i++) {
            assert_near(got[i], want[i], 1e-14);
            assert_near(gotf[i], want[i], 1e-5);
        }
    }
    pare_oracle_free(&o);
    pare_oracle_free(&f);
}

static float normal(pare_rng *r)
{
    return (float)pare_rng_normal(r);
}

/* Calls that ask the same queries share work: not a bit may show it. Rows fill whole vectors,
 * widths do not. */
static void a_call_does_not_depend_on_those_beside_it(void **state)
{
    enum { CALLS = 21, ROWS = 64, WK = 20, WV = 36 };
    static float q[2][ROWS * WK], k[CALLS][ROWS * WK], v[CALLS][ROWS * WV];
    static float alone[CALLS][ROWS * WV], together[CALLS][ROWS * WV];
    const pare_exec threads = {.threads = 3};
    pare_call calls[CALLS];
    pare_rng r = pare_rng_at(4, 5);
    (void)state;
    for (size_t i = 0; i < 2 * ROWS * WK; i++) q[i / (ROWS * WK)][i % (ROWS * WK)] = normal(&r);
    for (size_t c = 0; c < CALLS; c++) {
        for (size_t i = 0; i < ROWS * WK; i++) k[c][i] = normal(&r);
        for (size_t i = 0; i < ROWS * WV; i++) v[c][i] = normal(&r);
    }
    for (size_t c = 0; c < CALLS; c++)
        calls[c] = (pare_call){.kind = PARE_CALL_QKV,
                               .u.a = {.q = q[c / 13],
                                       .k = k[c],
                                       .v = v[c],
                                       .n = c % 5 ? ROWS : ROWS - 3,
                                       .dk = WK,
                                       .dv = WV,
                                       .causal = c % 3 == 0,
                                       .y = alone[c]}};
    pare_oracle o = cpu_oracle(PARE_F32, ROWS, NULL), many = cpu_oracle(PARE_F32, ROWS, &threads);
    for (size_t c = 0; c < CALLS; c++) run(&o, &calls[c], 1);
    for (size_t c = 0; c < CALLS; c++) calls[c].u.a.y = together[c];
    for (int way = 0; way < 3; way++) {
        memset(together, 0, sizeof together);
        run(way ? &many : &o, calls, way == 2 ? 5 : CALLS);
        assert_memory_equal(together, alone, (way == 2 ? 5 : CALLS) * sizeof *alone);
    }
    pare_oracle_free(&o);
    pare_oracle_free(&many);
}

enum { SPLIT_ROWS = 67, SPLIT_KEY = 9, SPLIT_WIDE = 72, SPLIT_CALLS = 6 };
typedef struct split {
    pare_dtype type;
    char *q, *k, *all, *own, *more, *minus; /* all: own and more side by side; minus: -more */
    char *y[3];                             /* of all, own, more */
    uint32_t n, a, b;                       /* rows; columns of own, of more */
} split;

static double number(const split *s, const char *x, size_t i)
{
    return s->type == PARE_F32 ? (double)((const float *)(const void *)x)[i]
                               : ((const double *)(const void *)x)[i];
}

static void set(const split *s, char *x, size_t i, float to)
{
    if (s->type == PARE_F32)
        ((float *)(void *)x)[i] = to;
    else
        ((double *)(void *)x)[i] = (double)to;
}

static split new_split(pare_arena *a, pare_dtype t, uint32_t n, uint32_t own, uint32_t more)
{
    enum { MOST = SPLIT_CALLS * (SPLIT_ROWS + 1) * SPLIT_WIDE };
    split s = {.type = t, .n = n, .a = own, .b = more};
    char **const to[] = {&s.q, &s.k, &s.all, &s.own, &s.more, &s.minus, &s.y[0], &s.y[1], &s.y[2]};
    pare_rng r = pare_rng_at(4, 8);
    for (size_t i = 0; i < 9; i++) {
        *to[i] = pare_alloc(a, MOST, sizeof(double));
        assert_non_null(*to[i]);
        for (size_t x = 0; x < MOST; x++) set(&s, *to[i], x, i < 2 ? normal(&r) : 99);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t c = 0; c < own + more; c++) {
            const float x = normal(&r);
            set(&s, s.all, i * (own + more) + c, x);
            if (c < own) set(&s, s.own, i * own + c, x);
            if (c >= own) set(&s, s.more, i * more + c - own, x);
            if (c >= own) set(&s, s.minus, i * more + c - own, -x);
        }
    return s;
}

/* Call c of the split, all values in one array or in two. Every other one has minus the values, and
 * one is causal. */
static pare_call split_call(const split *s, size_t c, bool two)
{
    const size_t at = c * (SPLIT_ROWS + 1) * SPLIT_WIDE * pare_dtype_size(s->type);
    return (pare_call){.kind = PARE_CALL_QKV,
                       .u.a = {.q = s->q,
                               .k = s->k,
                               .v = two ? s->own : s->all,
                               .n = s->n,
                               .dk = SPLIT_KEY,
                               .dv = two ? s->a : s->a + s->b,
                               .causal = c == 2,
                               .y = s->y[two] + at,
                               .v2 = c % 2 ? s->minus : s->more,
                               .y2 = s->y[2] + at,
                               .dv2 = two ? s->b : 0}};
}

static void compare_split(const split *s)
{
    for (size_t c = 0; c < SPLIT_CALLS; c++) {
        const size_t at = c * (SPLIT_ROWS + 1) * SPLIT_WIDE;
        for (size_t i = 0; i < s->n; i++) {
            for (size_t e = 0; e < s->a; e++)
                assert_true(number(s, s->y[1], at + i * s->a + e) ==
                            number(s, s->y[0], at + i * (s->a + s->b) + e));
            for (size_t e = 0; e < s->b; e++)
                assert_true(number(s, s->y[2], at + i * s->b + e) ==
                            (c % 2 ? -1 : 1) *
                                number(s, s->y[0], at + i * (s->a + s->b) + s->a + e));
        }
        assert_true(number(s, s->y[1], at + s->n * s->a) == 99); /* nothing behind them */
        assert_true(number(s, s->y[2], at + s->n * s->b) == 99);
    }
}

/* The bits of one array with all of their columns. */
static void values_may_stand_in_two_arrays(void **state)
{
    static const uint32_t own[] = {0, 1, 16, 35, 64, 64, 66}, more[] = {2, 1, 3, 5, 2, 2, 6};
    const pare_exec threads = {.threads = 2};
    (void)state;
    for (size_t f32 = 0; f32 < 2; f32++)
        for (size_t x = 0; x < sizeof own / sizeof *own; x++) {
            const pare_dtype t = f32 ? PARE_F32 : PARE_F64;
            pare_arena *const a = pare_arena_new();
            pare_oracle o = cpu_oracle(t, SPLIT_ROWS, x % 3 ? NULL : &threads);
            pare_call one[SPLIT_CALLS], two[SPLIT_CALLS];
            assert_non_null(a);
            const split s = new_split(a, t, x % 2 ? SPLIT_ROWS : 64, own[x], more[x]);
            for (size_t c = 0; c < SPLIT_CALLS; c++) {
                one[c] = split_call(&s, c, false);
                two[c] = split_call(&s, c, true);
            }
            run(&o, one, SPLIT_CALLS);
            run(&o, two, SPLIT_CALLS);
            compare_split(&s);
            pare_oracle_free(&o);
            pare_arena_free(a);
        }
}

/* A call adds values up in rows, direct attention in panels: not a bit may show that either. */
static void a_partial_call_is_direct_attention_bit_for_bit(void **state)
{
    enum { ROWS = 150, WK = 7 };
    static const uint32_t widths[] = {5, 16, 39, 64, 117};
    static const int64_t sights[] = {PARE_VIS_ALL, 1, -20, 30, -200};
    static float q[ROWS * WK], k[ROWS * WK], v[ROWS * 117], y[2][ROWS * 117], m[2][ROWS],
        l[2][ROWS];
    pare_rng r = pare_rng_at(4, 6);
    (void)state;
    for (size_t i = 0; i < ROWS * WK; i++) q[i] = normal(&r), k[i] = normal(&r);
    for (size_t i = 0; i < ROWS * 117; i++) v[i] = normal(&r);
    pare_oracle o = cpu_oracle(PARE_F32, ROWS, NULL);
    for (size_t w = 0; w < 5; w++)
        for (size_t s = 0; s < 5; s++) {
            const uint32_t dv = widths[w], nq = s % 2 ? ROWS : 128, nk = s % 3 ? ROWS : 128;
            const pare_call_partial p = {.q = q,
                                         .k = k,
                                         .v = v,
                                         .ldq = WK,
                                         .ldk = WK,
                                         .ldv = dv,
                                         .nq = nq,
                                         .nk = nk,
                                         .dk = WK,
                                         .dv = dv,
                                         .vis0 = sights[s],
                                         .m = m[0],
                                         .l = l[0],
                                         .acc = y[0],
                                         .ldacc = dv};
            const pare_call c = {.kind = PARE_CALL_PARTIAL, .u.p = p};
            pare_partial want = {.acc = {nq, dv, dv, y[1]}, .m = m[1], .l = l[1]};
            const pare_mat32 qm = {nq, WK, WK, q}, km = {nk, WK, WK, k}, vm = {nk, dv, dv, v};
            memset(y, 0x7f, sizeof y);
            run(&o, &c, 1);
            assert_int_equal(
                pare_attend_partial_f32(&want, &qm, &km, &vm, 1, sights[s], NULL, NULL), PARE_OK);
            assert_memory_equal(y[0], y[1], nq * dv * sizeof(float));
            assert_memory_equal(m[0], m[1], nq * sizeof(float));
            assert_memory_equal(l[0], l[1], nq * sizeof(float));
        }
    pare_oracle_free(&o);
}

/* Causal attention of N tokens by calls of at most M: tile by tile, one query block at a time. */
static void long_attention(double *y, const pare_oracle *o, const numbers *x, bool f32)
{
    static double m[8][M], l[8][M], acc[8][M * DV];
    static float mf[8][M], lf[8][M], accf[8][M * DV];
    for (uint32_t q0 = 0; q0 < N; q0 += M) {
        const uint32_t nq = N - q0 < M ? N - q0 : M;
        pare_call calls[8];
        size_t n = 0;
        for (uint32_t k0 = 0; k0 < q0 + nq; k0 += M, n++) {
            const uint32_t nk = N - k0 < M ? N - k0 : M;
            calls[n] =
                (pare_call){.kind = PARE_CALL_PARTIAL,
                            .u.p = {.q = f32 ? (const void *)(x->qf + q0 * DK) : x->q + q0 * DK,
                                    .k = f32 ? (const void *)(x->kf + k0 * DK) : x->k + k0 * DK,
                                    .v = f32 ? (const void *)(x->vf + k0 * DV) : x->v + k0 * DV,
                                    .ldq = DK,
                                    .ldk = DK,
                                    .ldv = DV,
                                    .ldacc = DV,
                                    .nq = nq,
                                    .nk = nk,
                                    .dk = DK,
                                    .dv = DV,
                                    .vis0 = (int64_t)q0 + 1 - (int64_t)k0,
                                    .m = f32 ? (void *)mf[n] : m[n],
                                    .l = f32 ? (void *)lf[n] : l[n],
                                    .acc = f32 ? (void *)accf[n] : acc[n]}};
        }
        run(o, calls, n);
        for (size_t i = 0; i < nq; i++)
            for (size_t c = 0; c < DV; c++) {
                double row_max = -INFINITY, sum = 0, out = 0;
                for (size_t t = 0; t < n; t++)
                    row_max = fmax(row_max, f32 ? (double)mf[t][i] : m[t][i]);
                for (size_t t = 0; t < n; t++) {
                    const double w = exp((f32 ? (double)mf[t][i] : m[t][i]) - row_max);
                    sum += w * (f32 ? (double)lf[t][i] : l[t][i]);
                    out += w * (f32 ? (double)accf[t][i * DV + c] : acc[t][i * DV + c]);
                }
                y[(q0 + i) * DV + c] = out / sum;
            }
    }
}

static void calls_of_length_m_make_attention_of_length_n(void **state)
{
    (void)state;
    static numbers x;
    static double want[N * DV], y[N * DV], more[N * DV];
    const pare_exec three = {.threads = 3};
    fill(&x);
    whole(want, &x, N, PARE_CAUSAL);
    for (int f32 = 0; f32 < 2; f32++) {
        pare_oracle o = cpu_oracle(f32 ? PARE_F32 : PARE_F64, M, NULL);
        pare_oracle t = cpu_oracle(f32 ? PARE_F32 : PARE_F64, M, &three);
        long_attention(y, &o, &x, f32 == 1);
        long_attention(more, &t, &x, f32 == 1);
        for (size_t i = 0; i < N * DV; i++) assert_near(y[i], want[i], f32 ? 1e-5 : 1e-14);
        assert_memory_equal(y, more, sizeof y);
        pare_oracle_free(&o);
        pare_oracle_free(&t);
    }
}

static void what_the_oracle_cannot_do_is_refused_before_anything_is_written(void **state)
{
    (void)state;
    static numbers x;
    float y[2][N * DV], m[N], l[N];
    fill(&x);
    y[0][0] = CANARY;
    pare_oracle o = cpu_oracle(PARE_F32, M, NULL);
    pare_err err = {0};
    const pare_call good = {.kind = PARE_CALL_QKV,
                            .u.a = {.q = x.qf,
                                    .k = x.kf,
                                    .v = x.vf,
                                    .n = M,
                                    .dk = DK,
                                    .dv = DV,
                                    .causal = false,
                                    .y = y[0]}};
    const pare_call_partial p = {.q = x.qf,
                                 .k = x.kf,
                                 .v = x.vf,
                                 .ldq = DK,
                                 .ldk = DK,
                                 .ldv = DV,
                                 .nq = 2,
                                 .nk = 2,
                                 .dk = DK,
                                 .dv = DV,
                                 .vis0 = 1,
                                 .m = m,
                                 .l = l,
                                 .acc = y[1],
                                 .ldacc = DV};
    pare_call bad[] = {{.kind = PARE_CALL_QKV, .u.a = good.u.a},
                       {.kind = PARE_CALL_QKV, .u.a = good.u.a},
                       {.kind = PARE_CALL_STRICT},
                       {.kind = PARE_CALL_PARTIAL, .u.p = p},
                       {.kind = PARE_CALL_PARTIAL, .u.p = p},
                       {.kind = PARE_CALL_PARTIAL, .u.p = p}};
    const char *const why[] = {"33 tokens",  "bias",    "partial and qkv",
                               "33 queries", "33 keys", "overlap"};
    bad[0].u.a.n = M + 1;
    bad[1].u.a.bias = x.qf;
    bad[3].u.p.nq = M + 1;
    bad[4].u.p.nk = M + 1;
    bad[5].u.p.ldv = DV - 1;
    for (size_t i = 0; i < 6; i++) {
        const pare_call calls[] = {good, bad[i]};
        assert_status(o.ops->evaluate(o.self, calls, 2, &err), PARE_ERR_INPUT, &err);
        assert_contains(err.msg, why[i]);
        assert_true(y[0][0] == CANARY);
    }
    run(&o, &good, 1);
    assert_true(y[0][0] != CANARY);
    pare_oracle_free(&o);
}

static void what_an_oracle_says_about_itself_is_true(void **state)
{
    (void)state;
    pare_oracle o = cpu_oracle(PARE_F32, 0, NULL), d = cpu_oracle(PARE_F64, 7, NULL);
    pare_oracle_caps c;
    d.ops->caps(d.self, &c);
    assert_true(c.max_len == 7 && c.dtype == PARE_F64 && exp(-c.exp_flush) == 0);
    o.ops->caps(o.self, &c);
    assert_true(c.size == sizeof c && c.dtype == PARE_F32 && c.max_len == UINT32_MAX);
    assert_true(c.features == (PARE_ORC_FULL | PARE_ORC_CAUSAL | PARE_ORC_PARTIAL | PARE_ORC_QKV |
                               PARE_ORC_SPLIT | PARE_ORC_WHOLE | PARE_ORC_ADD));
    /* exp(-exp_flush) is exactly 0: the second key leaves no trace */
    const float q[] = {1, 1}, k[] = {0, -(float)c.exp_flush}, v[] = {0, 1e38f};
    float y[2];
    const pare_call call = {
        .kind = PARE_CALL_QKV,
        .u.a = {.q = q, .k = k, .v = v, .n = 2, .dk = 1, .dv = 1, .causal = false, .y = y}};
    run(&o, &call, 1);
    assert_true(y[0] == 0 && y[1] == 0);
    pare_oracle_free(&o);
    pare_oracle_free(&d);
}

static void counts_are_those_of_the_calls_that_ran(void **state)
{
    (void)state;
    static numbers x;
    static double y[N * DV];
    pare_oracle_count n = {0};
    pare_oracle o;
    fill(&x);
    assert_int_equal(pare_oracle_counting(&o, cpu_oracle(PARE_F64, M, NULL), &n, NULL), PARE_OK);
    pare_oracle_caps c;
    o.ops->caps(o.self, &c);
    assert_int_equal(c.max_len, M);
    long_attention(y, &o, &x, false);
    /* 32, 32, 32 and 4 queries: 1 + 2 + 3 + 4 tiles, each visible pair once */
    assert_true(n.calls == 10 && n.rounds == 4 && n.max_len == M);
    assert_int_equal(n.flops, N * (N + 1) / 2 * (2 * (DK + DV) + 5));
    assert_int_equal(n.bytes_out, 8 * (32 * 1 + 32 * 2 + 32 * 3 + 4 * 4) * (DV + 2));
    assert_int_equal(n.bytes_in, 8 * ((32 * 1 + 32 * 2 + 32 * 3 + 4 * 4) * DK +
                                      (4 * 32 + 3 * 32 + 2 * 32 + 4) * (DK + DV)));
    const pare_oracle_count before = n;
    const pare_call bad = {.kind = PARE_CALL_STRICT};
    assert_int_equal(o.ops->evaluate(o.self, &bad, 1, NULL), PARE_ERR_INPUT);
    assert_memory_equal(&before, &n, sizeof n);
    const pare_call qkv = {
        .kind = PARE_CALL_QKV,
        .u.a = {.q = x.q, .k = x.k, .v = x.v, .n = 3, .dk = DK, .dv = DV, .causal = true, .y = y}};
    run(&o, &qkv, 1);
    assert_int_equal(n.flops - before.flops, 6 * (2 * (DK + DV) + 5));
    pare_oracle_free(&o);
    pare_oracle_free(&o); /* harmless */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_qkv_call_is_attention),
        cmocka_unit_test(a_call_does_not_depend_on_those_beside_it),
        cmocka_unit_test(values_may_stand_in_two_arrays),
        cmocka_unit_test(a_partial_call_is_direct_attention_bit_for_bit),
        cmocka_unit_test(calls_of_length_m_make_attention_of_length_n),
        cmocka_unit_test(what_the_oracle_cannot_do_is_refused_before_anything_is_written),
        cmocka_unit_test(what_an_oracle_says_about_itself_is_true),
        cmocka_unit_test(counts_are_those_of_the_calls_that_ran),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
