/* Tests src/length/oracle_accumulate.c: an engine that adds rows up itself changes no bit, and is
 * told on as exactly as one that writes them. */
#include "length_cases.h"

enum { HEADS = 2 };

typedef struct trial {
    length_case c[HEADS];
    pare_pattern p;
    pare_length_opts o;
    uint32_t m;
} trial;

static trial new_trial(size_t n, size_t dk, size_t dv, uint32_t m, regime kind,
                       pare_pattern_kind pattern, pare_length_opts o)
{
    trial t = {.p = {.kind = pattern}, .o = o, .m = m};
    for (size_t i = 0; i < HEADS; i++) t.c[i] = length_case_new(n, dk, dv, kind, 11 * n + i);
    return t;
}

static void free_trial(trial *t)
{
    for (size_t i = 0; i < HEADS; i++) length_case_free(&t->c[i]);
}

/* Into y of the cases; how many calls were added up. */
static uint64_t run_trial(trial *t, uint32_t hidden, const pare_exec *x, pare_status want,
                          pare_err *err)
{
    pare_oracle orc = modest_oracle_of(cpu_oracle(PARE_F32, t->m, x), hidden);
    pare_length_job jobs[HEADS];
    for (size_t i = 0; i < HEADS; i++) {
        jobs[i] = job_of(&t->c[i], PARE_F32);
        memset(t->c[i].yf, 0, t->c[i].n * t->c[i].dv * sizeof(float));
    }
    assert_status(
        pare_length_attend(&orc, &t->o,
                           &(pare_length_layer){.jobs = jobs, .count = HEADS, .pattern = &t->p},
                           NULL, x, err),
        want, err);
    const uint64_t added = ((const modest *)orc.self)->added;
    pare_oracle_free(&orc);
    return added;
}

/* Rows that are written and merged, in one thread, are what all others must be. */
static void compare(trial *t)
{
    const size_t count = t->c[0].n * t->c[0].dv;
    float *const want = malloc(HEADS * count * sizeof *want);
    pare_err err = {0};
    assert_non_null(want);
    assert_int_equal(run_trial(t, PARE_ORC_ADD, NULL, PARE_OK, &err), 0);
    for (size_t i = 0; i < HEADS; i++) memcpy(want + i * count, t->c[i].yf, count * sizeof *want);
    for (int threads = 1; threads <= 3; threads++)
        for (size_t batch = 0; batch <= 4096; batch += 4096) {
            const pare_exec x = {.threads = threads};
            t->o.batch_bytes = batch;
            assert_true(run_trial(t, 0, &x, PARE_OK, &err) > 0);
            for (size_t i = 0; i < HEADS; i++)
                assert_memory_equal(t->c[i].yf, want + i * count, count * sizeof *want);
        }
    free(want);
}

static const pare_length_opts native = {.mode = PARE_LENGTH_NATIVE},
                              plain = {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL},
                              fixed = {.mode = PARE_LENGTH_ZEROREF,
                                       .features = QKV_FULL | PARE_ORC_STATIC},
                              probed = {.mode = PARE_LENGTH_ZEROREF,
                                        .features = QKV_FULL,
                                        .reference = PARE_REF_PROBE};

static void added_up_is_bit_for_bit_merged(void **state)
{
    (void)state;
    static const size_t lengths[] = {70, 257, 900}, values[] = {5, 16, 70};
    static const uint32_t sizes[] = {7, 64, 100};
    for (size_t n = 0; n < 3; n++)
        for (size_t m = 0; m < 3; m++)
            for (size_t v = 0; v < 3; v++) {
                const regime kind = (regime)((n + m + v) % REGIMES);
                if (sizes[m] >= lengths[n]) continue;
                const pare_length_opts ways[] = {native, native, plain, fixed, probed};
                for (size_t w = 0; w < 5; w++) {
                    trial t = new_trial(lengths[n], 6, values[v], sizes[m], kind,
                                        w == 1 ? PARE_CAUSAL : PARE_FULL, ways[w]);
                    compare(&t);
                    free_trial(&t);
                }
            }
}

/* Windows and gathered rows have calls whose rows do not stand one after the other. */
static void other_rounds_are_not_added_up(void **state)
{
    (void)state;
    pare_err err = {0};
    trial t = new_trial(90, 6, 16, 16, BENIGN, PARE_WINDOW, native);
    t.p.window = 5;
    assert_int_equal(run_trial(&t, 0, NULL, PARE_OK, &err), 0);
    t.o.mode = PARE_LENGTH_ZEROREF;
    t.o.features = QKV_CAUSAL;
    assert_int_equal(run_trial(&t, 0, NULL, PARE_OK, &err), 0);
    free_trial(&t);
}

/* Values that are numbers, sums of which are none: the error names the call, either way. */
static void the_call_that_overflows_is_named(void **state)
{
    (void)state;
    for (size_t at = 3; at < 300; at += 99) {
        pare_err merged = {0}, added = {0};
        trial t = new_trial(300, 6, 20, 32, BENIGN, PARE_FULL, native);
        for (size_t j = at / 32 * 32; j < at / 32 * 32 + 2; j++)
            for (size_t c = 0; c < 20; c++) t.c[1].vf[j * 20 + c] = 3.4e38F;
        t.o.mode = PARE_LENGTH_NATIVE;
        assert_int_equal(run_trial(&t, PARE_ORC_ADD, NULL, PARE_ERR_NUMERIC, &merged), 0);
        assert_true(run_trial(&t, 0, NULL, PARE_ERR_NUMERIC, &added) > 0);
        assert_string_equal(added.msg, merged.msg);
        free_trial(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added_up_is_bit_for_bit_merged),
        cmocka_unit_test(other_rounds_are_not_added_up),
        cmocka_unit_test(the_call_that_overflows_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
