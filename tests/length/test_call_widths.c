/* Tests src/length/call_counts.c and the widths that pare_length_pack reports: what a plan says of
 * the vectors of its calls is what an oracle is asked for. */
#include "length/attend_plan.h"
#include "length_cases.h"

/* ---- an oracle that remembers the widest vectors --------------------------------------------- */

typedef struct widths {
    uint64_t dk, dv, token, rows, calls;
} widths;

typedef struct watched {
    pare_oracle inner;
    widths *seen;
    uint32_t hidden, more; /* features it says nothing of, or claims */
} watched;

static void watched_caps(void *self, pare_oracle_caps *out)
{
    const watched *const o = self;
    o->inner.ops->caps(o->inner.self, out);
    out->features = (out->features & ~o->hidden) | o->more;
}

static void raise_to(uint64_t *most, uint64_t x)
{
    if (x > *most) *most = x;
}

static void see(widths *w, uint64_t dk, uint64_t dv)
{
    raise_to(&w->dk, dk);
    raise_to(&w->dv, dv);
}

static pare_status watched_evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    const watched *const o = self;
    pare_oracle_caps caps;
    o->inner.ops->caps(o->inner.self, &caps);
    for (size_t i = 0; i < n; i++) {
        widths *const w = o->seen;
        const pare_call *const c = &calls[i];
        w->calls++;
        if (c->kind == PARE_CALL_PARTIAL) {
            see(w, c->u.p.dk, c->u.p.dv);
            raise_to(&w->token, 2 * c->u.p.dk + c->u.p.dv);
            raise_to(&w->rows, c->u.p.nq > c->u.p.nk ? c->u.p.nq : c->u.p.nk);
        } else if (c->kind == PARE_CALL_QKV) {
            see(w, c->u.a.dk, c->u.a.dv + c->u.a.dv2);
            raise_to(&w->token, 2 * c->u.a.dk + c->u.a.dv + c->u.a.dv2);
            raise_to(&w->rows, c->u.a.n);
        } else {
            for (size_t h = 0; h < (size_t)caps.layers * caps.heads; h++)
                see(w, c->u.s.heads[h].dk, c->u.s.heads[h].dv);
            raise_to(&w->token, c->u.s.phi ? c->u.s.phi->dout : c->u.s.din);
            raise_to(&w->rows, c->u.s.n);
        }
    }
    return o->inner.ops->evaluate(o->inner.self, calls, n, err);
}

static pare_status watched_barrier(void *self, pare_err *err)
{
    const watched *const o = self;
    return o->inner.ops->barrier(o->inner.self, err);
}

static void watched_destroy(void *self)
{
    watched *const o = self;
    pare_oracle_free(&o->inner);
    free(o);
}

static pare_oracle watch(pare_oracle inner, widths *seen, uint32_t hidden, uint32_t more)
{
    static const pare_oracle_ops ops = {watched_caps, watched_evaluate, watched_barrier,
                                        watched_destroy};
    watched *const o = malloc(sizeof *o);
    assert_non_null(o);
    *o = (watched){inner, seen, hidden, more};
    *seen = (widths){0};
    return (pare_oracle){&ops, o};
}

/* ---- plans ----------------------------------------------------------------------------------- */

enum { N = 61, M = 12, DK = 5, DV = 4 };

typedef struct plan_case {
    const char *name;
    pare_length_opts o;
    pare_pattern p;
    uint64_t dk, dv, token;           /* by hand */
    uint32_t layers, heads, features; /* of a strict oracle; 0: ours */
} plan_case;

#define FULL                                                                                       \
    {                                                                                              \
        .kind = PARE_FULL                                                                          \
    }
#define CAUSAL                                                                                     \
    {                                                                                              \
        .kind = PARE_CAUSAL                                                                        \
    }
#define MEAN .mode = PARE_LENGTH_STRICT, .reference = PARE_REF_MEAN
/* Of strict calls for the mean key a slot has 2 x 6 + 7 = 19 numbers; the code of 12 rows has 4. */
enum { KEY = DK + 1, SLOT = 2 * KEY + DK + 2, BITS = 4 };
static const plan_case cases[] = {
    {"native", {.mode = PARE_LENGTH_NATIVE}, CAUSAL, DK, DV, 2 * DK + DV, 0, 0, 0},
    {"zeroref, mean",
     {.mode = PARE_LENGTH_ZEROREF, .reference = PARE_REF_MEAN},
     FULL,
     KEY,
     DK + 2,
     SLOT,
     0,
     0,
     0},
    {"zeroref, probes, no fall-back",
     {.mode = PARE_LENGTH_ZEROREF, .reference = PARE_REF_PROBE, .no_fallback = true},
     FULL,
     KEY,
     DV + 2,
     2 * KEY + DV + 2,
     0,
     0,
     0},
    {"zeroref, 0, no fall-back",
     {.mode = PARE_LENGTH_ZEROREF, .reference = PARE_REF_ZERO, .no_fallback = true},
     FULL,
     DK,
     DV + 2,
     2 * DK + DV + 2,
     0,
     0,
     0},
    {"static",
     {.mode = PARE_LENGTH_ZEROREF,
      .reference = PARE_REF_MEAN,
      .features = QKV_FULL | PARE_ORC_STATIC},
     FULL,
     KEY,
     DK + 2,
     SLOT,
     0,
     0,
     0},
    {"codes", /* 6 rectangles at most share a call: codes of 4 */
     {.mode = PARE_LENGTH_ZEROREF, .reference = PARE_REF_MEAN, .features = QKV_FULL},
     CAUSAL,
     KEY + 4,
     DK + 2,
     SLOT + 8,
     0,
     0,
     0},
    {"paper", {.mode = PARE_LENGTH_PAPER}, FULL, KEY, DV + 1, 2 * DK + DV, 0, 0, 0},
    {"chunk", {.mode = PARE_LENGTH_CHUNK}, FULL, DK, DV, 2 * DK + DV, 0, 0, 0},
    {"strict", {MEAN}, FULL, KEY, DK + 2, SLOT + BITS, 1, 1, 0},
    {"strict, two heads", {MEAN}, FULL, KEY, DK + 2, 2 * SLOT + BITS, 1, 2, 0},
    {"strict, one wide head copies",
     {MEAN},
     FULL,
     KEY,
     4 * SLOT,
     4 * SLOT + BITS,
     2,
     3,
     PARE_ORC_WIDE_HEAD},
    {"strict, heads copy a slot", {MEAN}, FULL, KEY, SLOT, 4 * SLOT + BITS, 2, 4, 0},
    {"strict, pairs", {MEAN}, FULL, KEY, 4 * SLOT, 4 * SLOT + BITS, 4, 2, 0},
    {"strict, residual", {MEAN}, FULL, KEY, DK + 2, 4 * SLOT + BITS, 2, 2, PARE_ORC_RESIDUAL},
};

static void check_case(const plan_case *x)
{
    length_case c = length_case_new(N, DK, DV, BENIGN, 3);
    const pare_length_head heads[2] = {{0, DK, DV}, {0, DK, DV}};
    const pare_length_job jobs[2] = {job_of(&c, PARE_F64), job_of(&c, PARE_F64)};
    widths seen;
    pare_oracle inner = {0};
    pare_oracle_caps caps;
    pare_length_plan plan;
    pare_length_stats s;
    pare_err err = {0};
    if (x->heads)
        assert_ok(pare_oracle_paper(
                      &inner,
                      &(pare_oracle_caps){.max_len = M,
                                          .layers = x->layers,
                                          .heads = x->heads,
                                          .features = PARE_ORC_FULL | PARE_ORC_CAUSAL | x->features,
                                          .dtype = PARE_F64},
                      NULL, &err),
                  &err);
    else
        inner = cpu_oracle(PARE_F64, M, NULL);
    pare_oracle orc = watch(inner, &seen, 0, 0);
    orc.ops->caps(orc.self, &caps);
    assert_ok(pare_length_plan_make(
                  &plan, c.a,
                  &(pare_length_shape){.heads = heads, .count = 2, .tokens = N, .pattern = &x->p},
                  &caps, &x->o, &err),
              &err);
    assert_ok(pare_length_attend(&orc, &x->o,
                                 &(pare_length_layer){.jobs = jobs, .count = 2, .pattern = &x->p},
                                 &s, NULL, &err),
              &err);
    const pare_length_cost *const k = &plan.cost;
    if (k->d_k != seen.dk || k->d_v != seen.dv || k->d_token != seen.token)
        fail_msg("%s: the plan says %d, %d, %d; calls have %d, %d, %d", x->name, (int)k->d_k,
                 (int)k->d_v, (int)k->d_token, (int)seen.dk, (int)seen.dv, (int)seen.token);
    if (k->d_k != x->dk || k->d_v != x->dv || k->d_token != x->token)
        fail_msg("%s: the plan says %d, %d, %d", x->name, (int)k->d_k, (int)k->d_v,
                 (int)k->d_token);
    pare_oracle_free(&orc);
    length_case_free(&c);
}

static void plans_state_what_calls_have(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check_case(&cases[i]);
}

/* Any pattern, data that make rows fall back, references that are chosen: never more than is said.
 */
static void no_call_is_wider_than_its_plan(void **state)
{
    (void)state;
    static const pare_pattern patterns[] = {FULL,
                                            CAUSAL,
                                            {.kind = PARE_WINDOW, .window = 9},
                                            {.kind = PARE_WINDOW, .window = 6, .sinks = 3}};
    static const uint32_t hidden[] = {0, PARE_ORC_PARTIAL | PARE_ORC_CAUSAL,
                                      PARE_ORC_PARTIAL | PARE_ORC_FULL, PARE_ORC_SPLIT};
    static const pare_length_mode modes[] = {PARE_LENGTH_AUTO, PARE_LENGTH_ZEROREF,
                                             PARE_LENGTH_PAPER, PARE_LENGTH_SAMPLE};
    size_t done = 0;
    for (size_t p = 0; p < 4; p++)
        for (size_t h = 0; h < 4; h++)
            for (size_t m = 0; m < 4; m++)
                for (int kind = 0; kind < REGIMES; kind++) {
                    length_case c = length_case_new(N, DK, DV, (regime)kind, p);
                    const pare_length_head head = {0, DK, DV};
                    const pare_length_job job = job_of(&c, PARE_F32);
                    const pare_length_opts o = {.mode = modes[m]};
                    widths seen;
                    pare_oracle_caps caps;
                    pare_length_plan plan;
                    pare_err err = {0};
                    pare_oracle orc = watch(cpu_oracle(PARE_F32, M, NULL), &seen, hidden[h], 0);
                    orc.ops->caps(orc.self, &caps);
                    if (!pare_length_plan_make(
                            &plan, c.a,
                            &(pare_length_shape){
                                .heads = &head, .count = 1, .tokens = N, .pattern = &patterns[p]},
                            &caps, &o, &err)) {
                        (void)!pare_length_attend(
                            &orc, &o,
                            &(pare_length_layer){.jobs = &job, .count = 1, .pattern = &patterns[p]},
                            NULL, NULL, &err);
                        assert_true(seen.calls > 0);
                        assert_true(seen.dk <= plan.cost.d_k && seen.dv <= plan.cost.d_v);
                        assert_true(seen.token <= plan.cost.d_token);
                        done++;
                    }
                    pare_oracle_free(&orc);
                    length_case_free(&c);
                }
    assert_true(done > 100);
}

/* ---- packed calls ---------------------------------------------------------------------------- */

/* Inputs of different lengths; also on an engine that wants whole calls, and on a strict one. */
static void packed_calls_are_as_said(void **state)
{
    (void)state;
    static const size_t lengths[] = {9, 1, 14, 6, 6, 17, 2, 11, 3};
    enum { G = sizeof lengths / sizeof *lengths };
    const pare_pattern patterns[] = {FULL, CAUSAL, {.kind = PARE_WINDOW, .window = 17}};
    for (int way = 0; way < 3; way++)
        for (size_t p = 0; p < 3; p++) {
            length_case c[G];
            pare_length_job jobs[G];
            widths seen;
            pare_pack_stats s = {0};
            pare_err err = {0};
            pare_oracle inner;
            if (way == 2)
                assert_ok(pare_oracle_paper(
                              &inner,
                              &(pare_oracle_caps){.max_len = 32,
                                                  .layers = 1,
                                                  .heads = 1,
                                                  .features = PARE_ORC_FULL | PARE_ORC_CAUSAL,
                                                  .dtype = PARE_F64},
                              NULL, &err),
                          &err);
            else
                inner = cpu_oracle(PARE_F64, 32, NULL);
            pare_oracle orc = watch(inner, &seen, 0, way == 1 ? PARE_ORC_STATIC : 0);
            for (size_t g = 0; g < G; g++) {
                c[g] = length_case_new(lengths[g], DK, DV, PEAKY, g);
                length_case_exact(&c[g], &patterns[p], NULL);
                jobs[g] = job_of(&c[g], PARE_F64);
            }
            assert_ok(pare_length_pack(&orc, jobs, G, &patterns[p], 0, &s, &err), &err);
            for (size_t g = 0; g < G; g++) assert_true(error_in(&c[g], PARE_F64) <= 1e-13);
            assert_int_equal(s.calls, 3); /* 9 1 14 6 | 6 17 2 | 11 3 */
            assert_int_equal(s.calls, seen.calls);
            assert_int_equal(s.alone, G);
            assert_int_equal(s.code, 4); /* 4 inputs (5 groups with silent rows): C(4, 2) = 6 */
            assert_int_equal(s.dk, DK + 4);
            assert_true(s.dk == seen.dk && s.dv == seen.dv && s.d_token == seen.token);
            assert_int_equal(s.d_token, 2 * (DK + 4) + DV + (way == 2 ? 5 : 0));
            assert_int_equal(s.max_len, way == 1 ? 32 : 30);
            assert_int_equal(seen.rows, s.max_len);
            assert_true(s.leak == 0 && s.penalty == 0x1p16);
            for (size_t g = 0; g < G; g++) length_case_free(&c[g]);
            pare_oracle_free(&orc);
        }
}

static double row_norm(const double *x, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += x[i] * x[i];
    return sqrt(s);
}

/* A finite penalty leaks no more than is said, also between inputs of different lengths; and what
 * is said is no more than what a direct count gives. */
static void leaks_are_bounded(void **state)
{
    (void)state;
    static const size_t lengths[] = {3, 12, 5};
    const pare_pattern patterns[] = {FULL, CAUSAL};
    for (size_t p = 0; p < 2; p++) {
        double last = INFINITY;
        for (double by = 8; by <= 64; by *= 2) {
            length_case c[3];
            pare_length_job jobs[3];
            pare_pack_stats s = {0};
            pare_err err = {0};
            pare_oracle orc = cpu_oracle(PARE_F64, 20, NULL);
            double off = 0, q = 0, k = 0, v = 0;
            for (size_t g = 0; g < 3; g++) {
                c[g] = length_case_new(lengths[g], DK, DV, BENIGN, g);
                length_case_exact(&c[g], &patterns[p], NULL);
                jobs[g] = job_of(&c[g], PARE_F64);
                for (size_t i = 0; i < lengths[g]; i++) {
                    q = fmax(q, row_norm(c[g].q + i * DK, DK));
                    k = fmax(k, row_norm(c[g].k + i * DK, DK));
                    v = fmax(v, row_norm(c[g].v + i * DV, DV));
                }
            }
            assert_ok(pare_length_pack(&orc, jobs, 3, &patterns[p], by, &s, &err), &err);
            for (size_t g = 0; g < 3; g++) off = fmax(off, error_in(&c[g], PARE_F64));
            /* the input of 3 tokens has 17 others beside it; under a causal mask its first sees one
             * own */
            const double others = p ? 17 : 17.0 / 3;
            const double want = 2 * v * fmin(1, others * exp(2 * q * k - by));
            assert_true(off <= s.leak + 1e-14);
            assert_true(s.leak >= want * (1 - 1e-9) && s.leak <= want * 1.001);
            assert_true(s.leak < last || s.leak == 2 * v * (1 + 0x1p-40));
            if (by == 8) assert_true(off > 1e-6); /* it does leak */
            last = s.leak;
            for (size_t g = 0; g < 3; g++) length_case_free(&c[g]);
            pare_oracle_free(&orc);
        }
    }
}

static void what_cannot_be_packed_is_refused(void **state)
{
    (void)state;
    static const struct {
        pare_pattern p;
        uint32_t m, hidden;
        const char *says;
    } no[] = {{{.kind = PARE_WINDOW, .window = 4}, 32, 0, "window shorter than an input"},
              {{.kind = PARE_GRAPH}, 32, 0, "not over a graph"},
              {CAUSAL, 32, PARE_ORC_CAUSAL, "needs a causal softmax"},
              {FULL, 32, PARE_ORC_FULL, "needs a full softmax"},
              {FULL, 6, 0, "an input has 7 tokens, the oracle takes 6"}};
    length_case c = length_case_new(7, DK, DV, BENIGN, 1);
    const pare_length_job job = job_of(&c, PARE_F32);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        widths seen;
        pare_err err = {0};
        pare_oracle orc = watch(cpu_oracle(PARE_F32, no[i].m, NULL), &seen, no[i].hidden, 0);
        assert_int_equal(pare_length_pack(&orc, &job, 1, &no[i].p, 0, NULL, &err), PARE_ERR_INPUT);
        if (!strstr(err.msg, no[i].says)) fail_msg("%s", err.msg);
        assert_int_equal(seen.calls, 0);
        pare_oracle_free(&orc);
    }
    length_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_state_what_calls_have),
        cmocka_unit_test(no_call_is_wider_than_its_plan),
        cmocka_unit_test(packed_calls_are_as_said),
        cmocka_unit_test(leaks_are_bounded),
        cmocka_unit_test(what_cannot_be_packed_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
