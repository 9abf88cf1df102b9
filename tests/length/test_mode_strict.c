/* Tests src/length/{mode_strict,instances,oracle_paper,group_codes}.c: an oracle that is a small
 * softmax transformer and nothing else does long attention. */
#include "length/attend_plan.h"
#include "length_cases.h"
#include "length/group_codes.h"
#include "length/numbers.h"

static pare_oracle paper_oracle(pare_dtype t, uint32_t m, uint32_t l, uint32_t h, uint32_t features)
{
    pare_oracle o;
    assert_int_equal(
        pare_oracle_paper(
            &o,
            &(pare_oracle_caps){
                .max_len = m, .layers = l, .heads = h, .features = features, .dtype = t},
            NULL, NULL),
        PARE_OK);
    return o;
}

static void run_strict(const pare_oracle *o, const pare_call_strict *s)
{
    const pare_call c = {.kind = PARE_CALL_STRICT, .u.s = *s};
    pare_err err = {0};
    assert_ok(o->ops->evaluate(o->self, &c, 1, &err), &err);
    assert_ok(o->ops->barrier(o->self, &err), &err);
}

/* ---- the oracle by itself -------------------------------------------------------------------- */

static double *read_f64(pare_arena *a, const cJSON *o, const char *key, size_t shape[2])
{
    const cJSON *part = cJSON_IsObject(o) && key ? cJSON_GetObjectItemCaseSensitive(o, key) : o;
    const char *file;
    char path[300];
    assert_int_equal(pare_json_string(&file, part, "file", NULL), PARE_OK);
    const cJSON *const dims = cJSON_GetObjectItemCaseSensitive(part, "shape");
    shape[0] = (size_t)cJSON_GetArrayItem(dims, 0)->valuedouble;
    shape[1] = (size_t)cJSON_GetArrayItem(dims, 1)->valuedouble;
    snprintf(path, sizeof path, "../shared/reference/length/golden/%s", file);
    FILE *const f = fopen(path, "rb");
    assert_non_null(f);
    double *const x = doubles(a, shape[0] * shape[1]);
    assert_int_equal(fread(x, sizeof *x, shape[0] * shape[1], f), shape[0] * shape[1]);
    fclose(f);
    return x;
}

/* Three calls of an independent numpy oracle. */
static void calls_are_the_golden_ones(void **state)
{
    (void)state;
    cJSON *all = NULL;
    const char *const path = "../shared/reference/length/golden/manifest.json";
    NEED_SHARED(path);
    assert_int_equal(pare_json_read(&all, path, NULL), PARE_OK);
    const cJSON *at;
    size_t seen = 0;
    cJSON_ArrayForEach(at, all)
    {
        const char *kind;
        size_t layers, heads, x[2], y[2], w[2];
        bool causal;
        assert_int_equal(pare_json_string(&kind, at, "kind", NULL), PARE_OK);
        if (strcmp(kind, "oracle_call") != 0) continue;
        pare_arena *const a = pare_arena_new();
        assert_int_equal(pare_json_size(&layers, at, "layers", NULL), PARE_OK);
        assert_int_equal(pare_json_size(&heads, at, "heads", NULL), PARE_OK);
        assert_int_equal(pare_json_bool(&causal, at, "causal", NULL), PARE_OK);
        const double *const in = read_f64(a, at, "X", x), *const want = read_f64(a, at, "Y", y);
        pare_head_w hw[8];
        const cJSON *const ws = cJSON_GetObjectItemCaseSensitive(at, "W");
        for (size_t l = 0; l < layers; l++)
            for (size_t h = 0; h < heads; h++) {
                const cJSON *const three =
                    cJSON_GetArrayItem(cJSON_GetArrayItem(ws, (int)l), (int)h);
                pare_head_w *const out = &hw[l * heads + h];
                out->wq = read_f64(a, cJSON_GetArrayItem(three, 0), NULL, w);
                out->din = (uint32_t)w[0], out->dk = (uint32_t)w[1];
                out->wk = read_f64(a, cJSON_GetArrayItem(three, 1), NULL, w);
                out->wv = read_f64(a, cJSON_GetArrayItem(three, 2), NULL, w);
                out->dv = (uint32_t)w[1];
            }
        double *const got = doubles(a, y[0] * y[1]);
        pare_oracle o = paper_oracle(PARE_F64, 8, (uint32_t)layers, (uint32_t)heads,
                                     PARE_ORC_FULL | PARE_ORC_CAUSAL);
        const pare_call_strict s = {.x = in,
                                    .n = (uint32_t)x[0],
                                    .din = (uint32_t)x[1],
                                    .causal = causal,
                                    .heads = hw,
                                    .y = got,
                                    .dout = (uint32_t)y[1]};
        run_strict(&o, &s);
        for (size_t i = 0; i < y[0] * y[1]; i++) assert_near(got[i], want[i], 1e-12);
        pare_oracle_free(&o);
        pare_arena_free(a);
        seen++;
    }
    assert_int_equal(seen, 3);
    cJSON_Delete(all);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    pare_oracle o = paper_oracle(PARE_F64, 4, 1, 1, PARE_ORC_FULL);
    double x[12] = {0}, w[9] = {0}, y[12];
    pare_head_w h = {w, w, w, 3, 3, 3};
    pare_call c = {.kind = PARE_CALL_STRICT,
                   .u.s = {.x = x, .n = 4, .din = 3, .heads = &h, .y = y, .dout = 3}};
    pare_err err = {0};
    assert_ok(o.ops->evaluate(o.self, &c, 1, &err), &err);
    c.u.s.n = 5;
    assert_int_equal(o.ops->evaluate(o.self, &c, 1, &err), PARE_ERR_INPUT);
    c.u.s.n = 4, c.u.s.causal = true;
    assert_int_equal(o.ops->evaluate(o.self, &c, 1, &err), PARE_ERR_INPUT);
    c.u.s.causal = false, c.u.s.dout = 2;
    assert_int_equal(o.ops->evaluate(o.self, &c, 1, &err), PARE_ERR_INPUT);
    c.u.s.dout = 3, h.din = 2;
    assert_int_equal(o.ops->evaluate(o.self, &c, 1, &err), PARE_ERR_INPUT);
    c.kind = PARE_CALL_QKV;
    assert_int_equal(o.ops->evaluate(o.self, &c, 1, &err), PARE_ERR_INPUT);
    pare_oracle_free(&o);
}

/* ---- properties 2 and 3: lemmas and codes ---------------------------------------------------- */

static void codes_isolate(void **state)
{
    (void)state;
    for (size_t g = 2; g <= 200; g += g < 20 ? 1 : 45) {
        const uint32_t w = group_width(g);
        for (size_t a = 0; a < g; a++)
            for (size_t b = 0; b < g; b++) {
                const uint64_t u = group_bits(w, a), v = group_bits(w, b);
                int dot = 0;
                for (uint32_t e = 0; e < w; e++) dot -= !(u >> e & 1) && (v >> e & 1);
                assert_true(a == b ? dot == 0 : dot <= -1);
            }
    }
}

/* ---- lemmas ---------------------------------------------------------------------------------- */

enum { BLOCK_N = 13, BLOCK_D = 3, BLOCK_BITS = 4, BLOCK_IN = BLOCK_D + 1 + BLOCK_BITS };

/* (x, [pos < a], code of pos) */
static void mark_rows(const void *ctx, uint32_t pos, const void *in, void *out)
{
    const uint32_t a = *(const uint32_t *)ctx;
    double *const y = out;
    memcpy(y, in, BLOCK_D * sizeof *y);
    y[BLOCK_D] = pos < a;
    for (uint32_t e = 0; e < BLOCK_BITS; e++) y[BLOCK_D + 1 + e] = position_bit(pos, e);
}

/* Lemma A.1: phi(X) U = [1 0; 0 0], a rows and b columns of ones, exactly, for any X; the head that
 * carries it out is a copy. */
static void a_call_marks_a_block(void **state)
{
    (void)state;
    enum { OUT = 5 };
    double x[BLOCK_N * BLOCK_D], y[BLOCK_N * OUT];
    double q[BLOCK_IN * BLOCK_BITS] = {0}, k[BLOCK_IN * BLOCK_BITS] = {0};
    pare_rng r = pare_rng_at(6, 6);
    for (size_t i = 0; i < BLOCK_N * BLOCK_D; i++) x[i] = 100 * pare_rng_normal(&r);
    for (size_t e = 0; e < BLOCK_BITS; e++) {
        q[(BLOCK_D + 1 + e) * BLOCK_BITS + e] = position_beta(PARE_F64);
        k[(BLOCK_D + 1 + e) * BLOCK_BITS + e] = 1;
    }
    pare_oracle o = paper_oracle(PARE_F64, BLOCK_N, 1, 1, PARE_ORC_FULL);
    for (uint32_t a = 0; a <= BLOCK_N; a++)
        for (size_t b = 0; b <= OUT; b++) {
            double u[BLOCK_IN * OUT] = {0};
            for (size_t e = 0; e < b; e++) u[BLOCK_D * OUT + e] = 1;
            const pare_head_w h = {q, k, u, BLOCK_IN, BLOCK_BITS, OUT};
            const pare_tokfn phi = {
                .name = "mark", .din = BLOCK_D, .dout = BLOCK_IN, .fn = mark_rows, .ctx = &a};
            run_strict(&o, &(pare_call_strict){.x = x,
                                               .n = BLOCK_N,
                                               .din = BLOCK_D,
                                               .phi = &phi,
                                               .heads = &h,
                                               .y = y,
                                               .dout = OUT});
            for (size_t i = 0; i < BLOCK_N * OUT; i++)
                assert_true(y[i] == (i / OUT < a && i % OUT < b));
        }
    pare_oracle_free(&o);
}

/* Lemma A.2: zero queries and keys, values n x: every row is the sum. */
static void a_call_adds_up(void **state)
{
    (void)state;
    enum { N = 13, D = 4 };
    double x[N * D], y[N * D], none[D] = {0}, w[D * D] = {0}, sum[D] = {0}, size[D] = {0};
    pare_rng r = pare_rng_at(5, 5);
    for (size_t i = 0; i < N * D; i++) {
        x[i] = pare_rng_normal(&r);
        sum[i % D] += x[i], size[i % D] += fabs(x[i]);
    }
    for (size_t e = 0; e < D; e++) w[e * D + e] = N;
    const pare_head_w h = {none, none, w, D, 1, D};
    pare_oracle o = paper_oracle(PARE_F64, N, 1, 1, PARE_ORC_FULL);
    run_strict(&o, &(pare_call_strict){.x = x, .n = N, .din = D, .heads = &h, .y = y, .dout = D});
    for (size_t i = 0; i < N * D; i++) assert_near(y[i], sum[i % D], 8 * N * 0x1p-53 * size[i % D]);
    pare_oracle_free(&o);
}

/* Lemma A.3: a softmax copies rows bitwise, in both types. */
static void a_call_looks_up(void **state)
{
    (void)state;
    static const size_t lengths[] = {1, 2, 3, 7, 16, 33};
    for (int f32 = 0; f32 < 2; f32++)
        for (size_t l = 0; l < 6; l++) {
            const size_t n = lengths[l], d = 3, b = position_width(n), wide = d + 2 * b;
            const pare_dtype t = f32 ? PARE_F32 : PARE_F64;
            pare_arena *const a = pare_arena_new();
            double *const x = doubles(a, n * wide), *const y = doubles(a, n * d),
                          *const q = doubles(a, wide * b), *const k = doubles(a, wide * b),
                          *const v = doubles(a, wide * d);
            pare_rng r = pare_rng_at(n, 9);
            for (size_t i = 0; i < n; i++) {
                const size_t to = (7 * i + 3) % n;
                for (size_t e = 0; e < d; e++) num_put(t, x, i * wide + e, pare_rng_normal(&r));
                for (uint32_t e = 0; e < b; e++) {
                    num_put(t, x, i * wide + d + e, position_bit(i, e));
                    num_put(t, x, i * wide + d + b + e, position_bit(to, e));
                }
            }
            for (size_t e = 0; e < b; e++) {
                num_put(t, q, (d + b + e) * b + e, position_beta(t));
                num_put(t, k, (d + e) * b + e, 1);
            }
            for (size_t e = 0; e < d; e++) num_put(t, v, e * d + e, 1);
            const pare_head_w h = {q, k, v, (uint32_t)wide, (uint32_t)b, (uint32_t)d};
            pare_oracle o = paper_oracle(t, (uint32_t)n, 1, 1, PARE_ORC_FULL);
            run_strict(&o, &(pare_call_strict){.x = x,
                                               .n = (uint32_t)n,
                                               .din = (uint32_t)wide,
                                               .heads = &h,
                                               .y = y,
                                               .dout = (uint32_t)d});
            for (size_t i = 0; i < n * d; i++)
                assert_true(num_at(t, y, i) == num_at(t, x, (7 * (i / d) + 3) % n * wide + i % d));
            pare_oracle_free(&o);
            pare_arena_free(a);
        }
}

/* ---- strict plans ---------------------------------------------------------------------------- */

typedef struct oracle_shape {
    uint32_t layers, heads, features;
} oracle_shape;

static void check_strict(length_case *heads, size_t count, const pare_pattern *p, uint32_t m,
                         pare_dtype t, const oracle_shape *s, pare_length_mode mode)
{
    pare_oracle_count counted = {0};
    pare_oracle orc;
    pare_length_job jobs[4];
    pare_length_head dims[4];
    pare_length_stats stats;
    pare_length_plan plan;
    pare_err err = {0};
    pare_oracle_caps caps;
    pare_arena *const a = pare_arena_new();
    assert_int_equal(pare_oracle_counting(&orc,
                                          paper_oracle(t, m, s->layers, s->heads, s->features),
                                          &counted, NULL),
                     PARE_OK);
    for (size_t i = 0; i < count; i++) {
        jobs[i] = job_of(&heads[i], t);
        dims[i] = (pare_length_head){0, heads[i].dk, heads[i].dv};
    }
    orc.ops->caps(orc.self, &caps);
    const pare_length_opts o = {.mode = mode};
    assert_ok(
        pare_length_plan_make(
            &plan, a,
            &(pare_length_shape){.heads = dims, .count = count, .tokens = heads[0].n, .pattern = p},
            &caps, &o, &err),
        &err);
    assert_ok(pare_length_plan_attend(&plan, &orc, jobs, count, &stats, NULL, &err), &err);
    assert_int_equal(counted.calls, plan.cost.calls);
    assert_int_equal(stats.calls, plan.cost.calls);
    assert_int_equal(stats.merge_calls, plan.cost.merge_calls);
    assert_int_equal(counted.rounds, plan.cost.rounds);
    assert_int_equal(stats.rounds, plan.cost.rounds);
    assert_true(counted.max_len <= m);
    for (size_t i = 0; i < count; i++) {
        const double off = error_in(&heads[i], t), most = 2 * allowed(&heads[i], t);
        if (!(off <= most))
            fail_msg("pattern %d, n %zu, M %u, L' %u, H' %u, features %x, %s, %s: off by %g of %g",
                     (int)p->kind, heads[i].n, m, s->layers, s->heads, s->features,
                     t == PARE_F32 ? "f32" : "f64", pare_length_mode_name(mode), off, most);
    }
    pare_oracle_free(&orc);
    pare_arena_free(a);
}

static const pare_pattern patterns[] = {{.kind = PARE_FULL},
                                        {.kind = PARE_CAUSAL},
                                        {.kind = PARE_WINDOW, .window = 5},
                                        {.kind = PARE_WINDOW, .window = 4, .sinks = 2}};

/* Properties 9 and 10: the oracle merges, and holds several pieces in a call; trees where a row has
 * more parts than a call has rows. */
static void the_oracle_does_everything(void **state)
{
    (void)state;
    enum { BOTH = PARE_ORC_FULL | PARE_ORC_CAUSAL };
    static const oracle_shape shapes[] = {{1, 1, PARE_ORC_FULL},
                                          {1, 1, PARE_ORC_CAUSAL},
                                          {1, 3, BOTH},
                                          {2, 1, BOTH},
                                          {2, 2, BOTH},
                                          {3, 2, BOTH | PARE_ORC_WIDE_HEAD},
                                          {2, 4, BOTH},
                                          {2, 3, BOTH | PARE_ORC_WIDE_HEAD},
                                          {2, 2, BOTH | PARE_ORC_RESIDUAL},
                                          {4, 4, PARE_ORC_CAUSAL | PARE_ORC_WIDE_HEAD},
                                          {3, 4, PARE_ORC_CAUSAL}};
    for (size_t p = 0; p < 4; p++)
        for (int kind = 0; kind < 2; kind++) {
            length_case c[3];
            for (size_t i = 0; i < 3; i++) {
                c[i] = length_case_new(21, 2 + i, 3, (regime)kind, 40 + i);
                length_case_exact(&c[i], &patterns[p], NULL);
            }
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                for (uint32_t m = 3; m <= 24; m += m < 5 ? 1 : m < 10 ? 4 : 15) {
                    check_strict(c, 3, &patterns[p], m, PARE_F64, &shapes[s], PARE_LENGTH_STRICT);
                    if (m == 9)
                        check_strict(c, 2, &patterns[p], m, PARE_F32, &shapes[s],
                                     PARE_LENGTH_STRICT);
                    if (s % 3 == 0)
                        check_strict(c, 3, &patterns[p], m, PARE_F64, &shapes[s],
                                     PARE_LENGTH_ZEROREF);
                }
            for (size_t i = 0; i < 3; i++) length_case_free(&c[i]);
        }
}

/* Three heads through one engine, every call of exactly M rows. */
static void through(length_case *c, const pare_pattern *p, const oracle_shape *s)
{
    const uint32_t mask = p->kind == PARE_FULL ? PARE_ORC_FULL : PARE_ORC_CAUSAL;
    const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF,
                                .features = PARE_ORC_STRICT | PARE_ORC_STATIC | mask | s->features};
    pare_oracle orc = paper_oracle(PARE_F64, 7, s->layers, s->heads, mask | s->features);
    pare_length_job jobs[3];
    pare_err err = {0};
    for (size_t i = 0; i < 3; i++) jobs[i] = job_of(&c[i], PARE_F64);
    assert_ok(pare_length_attend(&orc, &o,
                                 &(pare_length_layer){.jobs = jobs, .count = 3, .pattern = p}, NULL,
                                 NULL, &err),
              &err);
    pare_oracle_free(&orc);
}

/* Every engine of up to 4 layers of up to 4 heads, with and without a wide head or a
 * residual stream: what a piece gives does not depend on what shares its call, and what an early
 * layer gives survives the later ones: not a bit differs from one piece a call. */
static void pieces_that_share_a_call_stay_what_they_are(void **state)
{
    (void)state;
    static const uint32_t kinds[] = {0, PARE_ORC_WIDE_HEAD, PARE_ORC_RESIDUAL};
    static const oracle_shape alone = {1, 1, 0};
    for (size_t p = 0; p < 2; p++) {
        length_case c[3];
        double want[3][21 * 3];
        for (size_t i = 0; i < 3; i++) c[i] = length_case_new(21, 2 + i, 3, BENIGN, 50 + i);
        through(c, &patterns[p], &alone);
        for (size_t i = 0; i < 3; i++) memcpy(want[i], c[i].y, sizeof want[i]);
        for (uint32_t shape = 0; shape < 48; shape++) {
            const oracle_shape s = {1 + shape / 4 % 4, 1 + shape % 4, kinds[shape / 16]};
            through(c, &patterns[p], &s);
            for (size_t i = 0; i < 3; i++) assert_memory_equal(c[i].y, want[i], sizeof want[i]);
        }
        for (size_t i = 0; i < 3; i++) length_case_free(&c[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_the_golden_ones),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(codes_isolate),
        cmocka_unit_test(a_call_marks_a_block),
        cmocka_unit_test(a_call_adds_up),
        cmocka_unit_test(a_call_looks_up),
        cmocka_unit_test(the_oracle_does_everything),
        cmocka_unit_test(pieces_that_share_a_call_stay_what_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
