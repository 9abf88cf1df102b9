/* Tests src/length/{mode_native,mode_zeroref,reference,rounds}.c: attention by calls of M tokens is
 * attention.
 */
#include "length_cases.h"

static const pare_pattern patterns[] = {{.kind = PARE_FULL},
                                        {.kind = PARE_CAUSAL},
                                        {.kind = PARE_WINDOW, .window = 5},
                                        {.kind = PARE_WINDOW, .window = 40},
                                        {.kind = PARE_WINDOW, .window = 7, .sinks = 3},
                                        {.kind = PARE_WINDOW, .window = 9, .sinks = 20}};
enum { PATTERNS = sizeof patterns / sizeof *patterns };

/* Where the two columns stand, and whether answers are poisoned before, changes no bit. */
static void check_layout(length_case *c, const pare_pattern *p, uint32_t m, pare_dtype t,
                         const pare_length_opts *o)
{
    pare_oracle orc = modest_oracle(t, m, PARE_ORC_SPLIT | PARE_ORC_WHOLE);
    const size_t bytes = c->n * c->dv * pare_dtype_size(t);
    const pare_length_job job = job_of(c, t);
    void *const before = malloc(bytes);
    pare_err err = {0};
    assert_non_null(before);
    memcpy(before, job.y, bytes);
    assert_ok(pare_length_attend(&orc, o,
                                 &(pare_length_layer){.jobs = &job, .count = 1, .pattern = p}, NULL,
                                 NULL, &err),
              &err);
    assert_memory_equal(job.y, before, bytes);
    free(before);
    pare_oracle_free(&orc);
}

static void check_case(length_case *c, const pare_pattern *p, uint32_t m, pare_dtype t,
                       const pare_length_opts *o, const char *what)
{
    pare_oracle orc = cpu_oracle(t, m, NULL);
    const pare_length_job job = job_of(c, t);
    pare_length_stats s;
    pare_err err = {0};
    assert_ok(pare_length_attend(&orc, o,
                                 &(pare_length_layer){.jobs = &job, .count = 1, .pattern = p}, &s,
                                 NULL, &err),
              &err);
    const double off = error_in(c, t), most = allowed(c, t);
    if (!(off <= most))
        fail_msg("%s, pattern %d window %zu sinks %zu, n %zu, M %u, %s: off by %g, allowed %g",
                 what, (int)p->kind, p->window, p->sinks, c->n, m, t == PARE_F32 ? "f32" : "f64",
                 off, most);
    pare_oracle_free(&orc);
    if (o->mode == PARE_LENGTH_ZEROREF) check_layout(c, p, m, t, o);
}

/* All patterns, oracles and regimes. */
static void robust_modes_are_as_good_as_direct(void **state)
{
    (void)state;
    static const pare_length_opts ways[] = {
        {.mode = PARE_LENGTH_NATIVE},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL, .no_pack = true},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL, .no_pack = true},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL, .host_remainder = true},
        {.mode = PARE_LENGTH_ZEROREF, .features = QKV_CAUSAL, .reference = PARE_REF_MEAN}};
    static const char *const names[] = {
        "native",          "full",          "causal",      "full unpacked",
        "causal unpacked", "full and host", "causal, mean"};
    for (int kind = 0; kind < REGIMES; kind++)
        for (size_t p = 0; p < PATTERNS; p++) {
            const size_t n = p % 2 ? 131 : 126; /* 126: blocks of 2, 6 and 14 keys come out even */
            length_case c = length_case_new(n, 6, 5, (regime)kind, 7 + p);
            length_case_exact(&c, &patterns[p], NULL);
            for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
                for (uint32_t m = 3; m <= 64; m = 2 * m + 1) {
                    check_case(&c, &patterns[p], m, PARE_F32, &ways[w], names[w]);
                    check_case(&c, &patterns[p], m, PARE_F64, &ways[w], names[w]);
                }
            length_case_free(&c);
        }
}

/* Of rows of nearly the same length, and where squares are too large or too small for f32. */
static void no_logit_is_larger_than_what_is_said(void **state)
{
    (void)state;
    static const float sizes[] = {1, 1e-25F, 1e15F};
    for (size_t x = 0; x < 3; x++) {
        length_case c = length_case_new(500, 23, 1, BENIGN, 9);
        double most[2] = {0};
        for (size_t i = 0; i < c.n; i++) {
            double square[2] = {0};
            for (size_t e = 0; e < c.dk; e++) {
                const float by = sizes[x] * (1 + 0x1p-23F * (float)(i % 103));
                c.qf[i * c.dk + e] = c.qf[e] * by, c.kf[i * c.dk + e] = c.kf[e] * by / sizes[x];
                square[0] += pow((double)c.qf[i * c.dk + e], 2);
                square[1] += pow((double)c.kf[i * c.dk + e], 2);
            }
            for (size_t e = 0; e < 2; e++) most[e] = fmax(most[e], square[e]);
        }
        pare_oracle orc = cpu_oracle(PARE_F32, 16, NULL);
        const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL};
        const pare_length_job job = job_of(&c, PARE_F32);
        pare_length_stats s;
        pare_err err = {0};
        const pare_status st = pare_length_attend(
            &orc, &o, &(pare_length_layer){.jobs = &job, .count = 1, .pattern = patterns}, &s, NULL,
            &err);
        assert_true(x == 2 || st == PARE_OK); /* logits of 1e15 are beyond f32 */
        const double want = sqrt(most[0]) * sqrt(most[1]);
        assert_true(s.lmax >= want && s.lmax <= want * (1 + 1e-12));
        pare_oracle_free(&orc);
        length_case_free(&c);
    }
}

/* ---- engines that answer nonsense ------------------------------------------------------------ */

/* Our own engine, but that one column of the first call's answer is `lie` (of partial results, the
 * maxima are). */
typedef struct liar {
    pare_oracle inner;
    pare_call first;
    bool told;
    size_t column;
    float lie;
} liar;

static void liar_caps(void *self, pare_oracle_caps *out)
{
    const liar *const o = self;
    o->inner.ops->caps(o->inner.self, out);
}

static pare_status liar_evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    liar *const o = self;
    if (n && !o->told) o->first = calls[0];
    return o->inner.ops->evaluate(o->inner.self, calls, n, err);
}

static pare_status liar_barrier(void *self, pare_err *err)
{
    liar *const o = self;
    const pare_status st = o->inner.ops->barrier(o->inner.self, err);
    const pare_call_qkv *const a = &o->first.u.a;
    const pare_call_partial *const p = &o->first.u.p;
    if (!o->told && o->first.kind == PARE_CALL_QKV)
        for (uint32_t i = 0; i < a->n; i++) {
            if (a->dv2)
                ((float *)a->y2)[i * a->dv2 + o->column - a->dv] = o->lie;
            else
                ((float *)a->y)[i * a->dv + o->column] = o->lie;
        }
    if (!o->told && o->first.kind == PARE_CALL_PARTIAL)
        for (uint32_t i = 0; i < p->nq; i++) ((float *)p->m)[i] = o->lie;
    o->told = true;
    return st;
}

static void liar_destroy(void *self)
{
    (void)self;
}

static const pare_oracle_ops liar_ops = {liar_caps, liar_evaluate, liar_barrier, liar_destroy};

static pare_status ask_liar(length_case *c, const pare_length_opts *o, size_t column, float lie,
                            pare_length_stats *s, pare_err *err)
{
    const uint32_t split = column % 2 == (lie > 1) ? PARE_ORC_SPLIT : 0; /* either layout */
    liar l = {
        .inner = modest_oracle(PARE_F32, 9, split | PARE_ORC_ADD), .column = column, .lie = lie};
    const pare_oracle orc = {&liar_ops, &l};
    const pare_length_job job = job_of(c, PARE_F32);
    const pare_status st = pare_length_attend(
        &orc, o, &(pare_length_layer){.jobs = &job, .count = 1, .pattern = patterns}, s, NULL, err);
    assert_true(l.told);
    pare_oracle_free(&l.inner);
    return st;
}

/* Weights that are none: the rows are computed again, or it is an error; never another answer. */
static void weights_above_one_are_noticed(void **state)
{
    (void)state;
    static const float lies[] = {INFINITY, 1e30F, 1.5F, -0.5F, -INFINITY, NAN};
    const pare_length_opts again = {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL},
                           once = {.mode = PARE_LENGTH_ZEROREF,
                                   .features = QKV_FULL,
                                   .no_fallback = true},
                           native = {.mode = PARE_LENGTH_NATIVE};
    length_case c = length_case_new(30, 4, 3, BENIGN, 3);
    length_case_exact(&c, patterns, NULL);
    pare_length_stats s;
    pare_err err = {0};
    for (size_t x = 0; x < sizeof lies / sizeof *lies; x++)
        for (size_t column = c.dv; column < c.dv + 2;
             column++) { /* of the keys, of the reference */
            assert_ok(ask_liar(&c, &again, column, lies[x], &s, &err), &err);
            assert_int_equal(s.bad_rows, 9);
            assert_true(error_in(&c, PARE_F32) <= allowed(&c, PARE_F32));
            assert_int_equal(ask_liar(&c, &once, column, lies[x], &s, &err), PARE_ERR_NUMERIC);
            assert_contains(err.msg, "cannot be trusted");
        }
    assert_int_not_equal(ask_liar(&c, &native, 0, INFINITY, &s, &err), PARE_OK);
    length_case_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(robust_modes_are_as_good_as_direct),
        cmocka_unit_test(no_logit_is_larger_than_what_is_said),
        cmocka_unit_test(weights_above_one_are_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
