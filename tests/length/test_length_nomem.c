/* Tests src/length when memory is out: every allocation fails once, and each time the status says
 * so and nothing leaks. */
#include "length_cases.h"
#include "fail_alloc.h"
#include "length/attend_plan.h"
#include "train/gradient.h"

typedef pare_status work_fn(length_case *c, pare_err *err);

static pare_status with(length_case *c, const pare_length_opts *o, const pare_pattern *p,
                        uint32_t m, pare_err *err)
{
    pare_oracle orc;
    const pare_length_job job = job_of(c, PARE_F64);
    pare_status st = pare_oracle_cpu(&orc, PARE_F64, m, NULL, err);
    if (st) return st;
    st = pare_length_attend(&orc, o, &(pare_length_layer){.jobs = &job, .count = 1, .pattern = p},
                            NULL, NULL, err);
    pare_oracle_free(&orc);
    return st;
}

static const pare_pattern full = {.kind = PARE_FULL}, causal = {.kind = PARE_CAUSAL},
                          sinks = {.kind = PARE_WINDOW, .window = 5, .sinks = 2};

static pare_status native(length_case *c, pare_err *err)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_NATIVE};
    return with(c, &o, &sinks, 7, err);
}

static pare_status zeroref(length_case *c, pare_err *err)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF, .reference = PARE_REF_MEAN};
    return with(c, &o, &causal, 7, err);
}

static pare_status shared_blocks(length_case *c, pare_err *err)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF, .reference = PARE_REF_PROBE};
    return with(c, &o, &full, 7, err);
}

static pare_status sample(length_case *c, pare_err *err)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE};
    return with(c, &o, &full, 7, err);
}

static pare_status causal_sample(length_case *c, pare_err *err)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE};
    const pare_oracle_caps caps = {.max_len = 5,
                                   .features = QKV_CAUSAL,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    const pare_length_head h = {0, 3, 2};
    pare_length_plan p;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_length_plan_make(
        &p, a, &(pare_length_shape){.heads = &h, .count = 1, .tokens = 23, .pattern = &causal},
        &caps, &o, err);
    if (!st) st = with(c, &o, &causal, 5, err);
    pare_arena_free(a);
    return st;
}

static pare_status one_vector(length_case *c, pare_err *err)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_ZEROREF, .one_vector = true};
    return with(c, &o, &full, 7, err);
}

static pare_status paper(length_case *c, pare_err *err)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_PAPER};
    return with(c, &o, &full, 9, err);
}

static pare_status strict(length_case *c, pare_err *err)
{
    pare_oracle orc;
    const pare_length_opts o = {.mode = PARE_LENGTH_STRICT};
    const pare_length_job job = job_of(c, PARE_F64);
    pare_status st =
        pare_oracle_paper(&orc,
                          &(pare_oracle_caps){.max_len = 6,
                                              .layers = 2,
                                              .heads = 2,
                                              .features = PARE_ORC_CAUSAL | PARE_ORC_FULL,
                                              .dtype = PARE_F64},
                          NULL, err);
    if (st) return st;
    st = pare_length_attend(&orc, &o,
                            &(pare_length_layer){.jobs = &job, .count = 1, .pattern = &sinks}, NULL,
                            NULL, err);
    pare_oracle_free(&orc);
    return st;
}

static pare_status plan(length_case *c, pare_err *err)
{
    (void)c;
    const pare_length_head h = {0, 4, 4};
    const pare_oracle_caps caps = {.max_len = 8,
                                   .features = QKV_CAUSAL,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    pare_length_plan p;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    const pare_status st = pare_length_plan_make(
        &p, a, &(pare_length_shape){.heads = &h, .count = 1, .tokens = 30, .pattern = &sinks},
        &caps, NULL, err);
    pare_arena_free(a);
    return st;
}

static pare_status bound(length_case *c, pare_err *err)
{
    static double rows[64];
    const pare_length_job job = job_of(c, PARE_F64);
    const pare_oracle_caps caps = {
        .max_len = 8, .features = QKV_FULL, .dtype = PARE_F64, .exp_flush = 746, .w_min = 0x1p-900};
    return pare_length_rounding(rows, &job, &full, NULL, &caps, NULL, NULL, err);
}

static pare_status short_inputs(length_case *c, pare_err *err)
{
    pare_oracle orc;
    const pare_length_job jobs[2] = {job_of(c, PARE_F64), job_of(c, PARE_F64)};
    pare_status st =
        pare_oracle_paper(&orc,
                          &(pare_oracle_caps){.max_len = 64,
                                              .layers = 1,
                                              .heads = 1,
                                              .features = PARE_ORC_CAUSAL | PARE_ORC_FULL,
                                              .dtype = PARE_F64},
                          NULL, err);
    if (st) return st;
    st = pare_length_pack(&orc, jobs, 2, &full, 0, NULL, err);
    pare_oracle_free(&orc);
    return st;
}

static pare_model *model;
static const int64_t ids[] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8};

static pare_status packed_model(length_case *c, pare_err *err)
{
    (void)c;
    static double y[3][5 * 16];
    void *const out[] = {y[0], y[1], y[2]};
    const pare_input in[] = {{.batch = 1, .tokens = 4, .ids = ids},
                             {.batch = 1, .tokens = 3, .ids = ids + 4},
                             {.batch = 1, .tokens = 5, .ids = ids + 7}};
    pare_pack_stats s;
    pare_length_cert cert;
    pare_oracle orc;
    pare_status st = pare_oracle_cpu(&orc, PARE_F64, 8, NULL, err);
    if (st) return st;
    st = pare_length_pack_forward(
        out, &s, &cert, &(pare_length_pass){.oracle = &orc, .model = model, .in = in, .n = 3}, NULL,
        NULL, err);
    pare_oracle_free(&orc);
    return st;
}

static pare_status training(length_case *c, pare_err *err)
{
    (void)c;
    static const pare_mode mode = {.training = true, .momentum = 0.1};
    static const double dy[12 * 16] = {1};
    const pare_input in = {.batch = 1, .tokens = 12, .ids = ids};
    pare_length_training w = {0};
    pare_oracle orc;
    pare_params *p = NULL;
    pare_tape *t = NULL;
    pare_status st = pare_oracle_cpu(&orc, PARE_F64, 5, NULL, err);
    if (!st) st = pare_length_training_open(&w, orc, NULL, err);
    if (!st) st = pare_params_new(&p, model, PARE_F64, err);
    if (!st) st = pare_tape_new(&t, p, NULL, err);
    if (!st) st = pare_tape_attend_by(t, &w.by, err);
    if (!st) st = pare_tape_forward(t, &in, &mode, NULL, err);
    if (!st) st = pare_tape_backward(t, dy, NULL, NULL, err);
    pare_tape_free(t);
    pare_params_free(p);
    pare_length_training_close(&w);
    return st;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    work_fn *const works[] = {native,       zeroref,      shared_blocks, sample, causal_sample,
                              one_vector,   paper,        strict,        plan,   bound,
                              short_inputs, packed_model, training};
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.dim = 8, o.heads = 2, o.layers = 1, o.vocab = 16, o.context = 12;
    assert_int_equal(pare_random_model(&model, &o, NULL), PARE_OK);
    length_case c = length_case_new(23, 3, 2, BENIGN, 1);
    for (size_t w = 0; w < sizeof works / sizeof *works; w++)
        for (long n = 0;; n++) {
            pare_err err = {0};
            fail_alloc_after(n);
            const pare_status st = works[w](&c, &err);
            const bool hit = fail_alloc_hit();
            fail_alloc_after(-1);
            if (st != (hit ? PARE_ERR_MEMORY : PARE_OK))
                fail_msg("work %zu, allocation %ld: status %d, %s", w, n, (int)st, err.msg);
            if (hit) assert_contains(err.msg, "memory");
            if (!hit) {
                assert_true(n > 0);
                break;
            }
        }
    length_case_free(&c);
    pare_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failed_allocation_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
