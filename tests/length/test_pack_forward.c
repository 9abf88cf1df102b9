/* Tests src/length/pack_forward.c and pare_forward_together: inputs of different lengths side by
 * side through a model, several in a call, give what each gives alone. */
#include "oracle_wrappers.h"
#include "base/support.h"
#include <pare/length.h>
#include <pare_test.h>
#include <string.h>

enum { VOCAB = 29, CONTEXT = 24, INPUTS = 7 };
static const size_t lengths[INPUTS] = {5, 24, 1, 9, 9, 3, 16};
/* Input 3 is a batch of two. */
static const size_t batches[INPUTS] = {1, 1, 1, 2, 1, 1, 1};

typedef struct pack_case {
    pare_model *m;
    pare_input in[INPUTS];
    int64_t ids[INPUTS][2 * CONTEXT];
    double want[INPUTS][2 * CONTEXT * VOCAB], got[INPUTS][2 * CONTEXT * VOCAB];
    void *out[INPUTS];
} pack_case;

static void case_open(pack_case *c, pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_rng r = pare_rng_at(7, (uint64_t)kind);
    pare_err err = {0};
    o.kind = kind, o.dim = 16, o.heads = 4, o.vocab = VOCAB, o.context = CONTEXT;
    assert_ok(pare_random_model(&c->m, &o, &err), &err);
    for (size_t i = 0; i < INPUTS; i++) {
        for (size_t x = 0; x < 2 * CONTEXT; x++) c->ids[i][x] = (int64_t)(pare_rng_u64(&r) % VOCAB);
        c->in[i] = (pare_input){.batch = batches[i], .tokens = lengths[i], .ids = c->ids[i]};
        c->out[i] = c->got[i];
        assert_ok(pare_forward_f64(c->want[i], c->m, &c->in[i], NULL, NULL, &err), &err);
    }
}

static double apart(const pack_case *c)
{
    double most = 0;
    for (size_t i = 0; i < INPUTS; i++)
        for (size_t x = 0; x < pare_output_rows(c->m, &c->in[i]) * pare_model_outputs(c->m); x++)
            if (!(fabs(c->got[i][x] - c->want[i][x]) <= most))
                most = fabs(c->got[i][x] - c->want[i][x]);
    return most;
}

static void packed_inputs_give_what_they_give_alone(void **state)
{
    (void)state;
    static pack_case c;
    static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_LLAMA, PARE_RANDOM_BERT};
    const pare_exec two = {.threads = 2};
    for (size_t k = 0; k < 3; k++) {
        case_open(&c, kinds[k]);
        for (int threads = 1; threads <= 2; threads++) {
            pare_oracle_count count = {0};
            pare_pack_stats s;
            pare_length_cert cert;
            pare_oracle inner, orc;
            pare_err err = {0};
            assert_ok(pare_oracle_cpu(&inner, PARE_F64, 32, NULL, &err), &err);
            assert_ok(pare_oracle_counting(&orc, inner, &count, &err), &err);
            assert_ok(
                pare_length_pack_forward(
                    c.out, &s, &cert,
                    &(pare_length_pass){.oracle = &orc, .model = c.m, .in = c.in, .n = INPUTS},
                    NULL, threads == 2 ? &two : NULL, &err),
                &err);
            const double off = apart(&c);
            if (!(off <= 1e-13)) fail_msg("kind %zu: packed is %.3g away", k, off);
            /* 2 layers of 4 heads: 5 24 1 | 9 9 9 3 | 16 */
            assert_int_equal(s.calls, 2 * 4 * 3);
            assert_int_equal(s.calls, count.calls);
            assert_int_equal(s.alone, 2 * 4 * (INPUTS + 1));
            assert_int_equal(count.max_len, 30);
            assert_true(s.leak == 0);
            /* bounds of every row of every head, met, and of the size of rounding */
            assert_int_equal(cert.rows, 2 * 4 * (5 + 24 + 1 + 18 + 9 + 3 + 16));
            assert_true(cert.sound && cert.measured <= cert.proven);
            assert_true(cert.measured > 1e-17 && cert.proven < 1e-11);
            pare_oracle_free(&orc);
        }
        pare_model_free(c.m);
    }
}

/* An engine that fails, or answers a nan, is an error that says so; graphs do not go together. */
static void failures_are_told(void **state)
{
    (void)state;
    static pack_case c;
    static const struct {
        pare_fault fault;
        const char *says;
    } cases[] = {{{.call = 4, .kind = PARE_FAULT_REFUSE}, ""},
                 {{.call = 4, .kind = PARE_FAULT_NAN}, "packed call 4"}};
    pare_pack_stats s;
    case_open(&c, PARE_RANDOM_BERT);
    for (size_t i = 0; i < 2; i++) {
        pare_oracle inner, orc;
        pare_err err = {0};
        assert_ok(pare_oracle_cpu(&inner, PARE_F64, 32, NULL, &err), &err);
        assert_ok(pare_oracle_faulty(&orc, inner, &cases[i].fault, 1, &err), &err);
        assert_int_equal(
            pare_length_pack_forward(
                c.out, &s, NULL,
                &(pare_length_pass){.oracle = &orc, .model = c.m, .in = c.in, .n = INPUTS}, NULL,
                NULL, &err),
            i ? PARE_ERR_NUMERIC : PARE_ERR_IO);
        assert_non_null(strstr(err.msg, cases[i].says));
        pare_oracle_free(&orc);
    }
    pare_oracle orc;
    pare_err err = {0};
    assert_ok(pare_oracle_cpu(&orc, PARE_F64, 32, NULL, &err), &err);
    c.m->pattern.kind = PARE_GRAPH;
    assert_int_equal(pare_length_pack_forward(
                         c.out, &s, NULL,
                         &(pare_length_pass){.oracle = &orc, .model = c.m, .in = c.in, .n = INPUTS},
                         NULL, NULL, &err),
                     PARE_ERR_INPUT);
    c.m->pattern.kind = PARE_FULL;
    c.ids[3][4] = VOCAB; /* no such id */
    assert_int_equal(pare_length_pack_forward(
                         c.out, &s, NULL,
                         &(pare_length_pass){.oracle = &orc, .model = c.m, .in = c.in, .n = INPUTS},
                         NULL, NULL, &err),
                     PARE_ERR_INPUT);
    pare_oracle_free(&orc);
    pare_model_free(c.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_inputs_give_what_they_give_alone),
        cmocka_unit_test(failures_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
