/* Tests src/length/accumulators.c: sums of a few rows at a time give the bits, and the calls, of
 * all rows at once. */
#include "length_cases.h"

enum { N = 331, HEADS = 2 };

typedef struct answers {
    double y[HEADS][N * 7];
    pare_length_stats stats;
} answers;

/* Heads of 7 and of 3 columns; batches so small that only as many rows as must be are held, or so
 * large that all are. */
static void attend(answers *out, length_case *c, const pare_pattern *p, const pare_graph *g,
                   uint32_t m, pare_dtype t, pare_length_opts o, bool few, int threads)
{
    const pare_exec x = {.threads = threads};
    pare_oracle orc = cpu_oracle(t, m, &x);
    pare_length_job jobs[HEADS];
    pare_err err = {0};
    memset(out, 0xff, sizeof *out); /* nan */
    for (size_t h = 0; h < HEADS; h++) {
        jobs[h] = job_of(&c[h], t);
        jobs[h].y = out->y[h];
    }
    o.batch_bytes = few ? 1 : (size_t)64 << 20;
    assert_ok(pare_length_attend(
                  &orc, &o,
                  &(pare_length_layer){.jobs = jobs, .count = HEADS, .pattern = p, .graph = g},
                  &out->stats, &x, &err),
              &err);
    pare_oracle_free(&orc);
}

static void compare(length_case *c, const pare_pattern *p, const pare_graph *g,
                    const pare_length_opts *o, bool falls_back)
{
    static answers want, got;
    const uint32_t lengths[] = {5, 64, 100};
    for (size_t e = 0; e < 3; e++)
        for (int f = 0; f < 2; f++)
            for (int threads = 1; threads <= 3; threads += 2) {
                const pare_dtype t = f ? PARE_F32 : PARE_F64;
                attend(&want, c, p, g, lengths[e], t, *o, false, 1);
                attend(&got, c, p, g, lengths[e], t, *o, true, threads);
                assert_memory_equal(got.y, want.y, sizeof got.y);
                assert_int_equal(got.stats.calls, want.stats.calls);
                assert_int_equal(got.stats.rounds, want.stats.rounds);
                assert_int_equal(got.stats.bad_rows, want.stats.bad_rows);
                assert_int_equal(got.stats.fallback_calls, want.stats.fallback_calls);
                if (falls_back) assert_true(got.stats.bad_rows > 0 && got.stats.bad_rows < 2 * N);
            }
}

static void new_cases(length_case c[HEADS], regime kind)
{
    c[0] = length_case_new(N, 4, 7, kind, 31);
    c[1] = length_case_new(N, 6, 3, kind, 32);
}

static void free_cases(length_case c[HEADS])
{
    for (size_t h = 0; h < HEADS; h++) length_case_free(&c[h]);
}

static void few_rows_are_as_good_as_all(void **state)
{
    (void)state;
    const pare_pattern patterns[] = {{.kind = PARE_FULL},
                                     {.kind = PARE_CAUSAL},
                                     {.kind = PARE_WINDOW, .window = 40},
                                     {.kind = PARE_WINDOW, .window = 9, .sinks = 2},
                                     {.kind = PARE_WINDOW, .window = 130, .sinks = 70}};
    const pare_length_opts native = {.mode = PARE_LENGTH_NATIVE};
    const pare_length_opts zeroref = {.mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL};
    length_case c[HEADS];
    new_cases(c, PEAKY);
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        compare(c, &patterns[p], NULL, &native, false);
        compare(c, &patterns[p], NULL, &zeroref, false);
    }
    free_cases(c);
}

/* Rows 20 .. 299 see nothing: more than are held at a time. */
static void rows_without_a_call_are_zero(void **state)
{
    (void)state;
    static size_t ptr[N + 1];
    static uint32_t idx[3 * N];
    const pare_pattern p = {.kind = PARE_GRAPH};
    const pare_length_opts native = {.mode = PARE_LENGTH_NATIVE};
    for (size_t i = 0; i < N; i++) {
        const size_t keys = i < 20 || i >= 300 ? 3 : 0;
        for (size_t e = 0; e < keys; e++) idx[ptr[i] + e] = (uint32_t)((i * 7 + e * 101) % N);
        ptr[i + 1] = ptr[i] + keys;
    }
    const pare_graph g = {N, ptr, idx};
    length_case c[HEADS];
    new_cases(c, BENIGN);
    compare(c, &p, &g, &native, false);
    free_cases(c);
}

/* Some rows are answered in the first round, and others, of every group, in the third. */
static void rows_that_come_again_are_answered_then(void **state)
{
    (void)state;
    const pare_pattern full = {.kind = PARE_FULL};
    const pare_length_opts zero = {
        .mode = PARE_LENGTH_ZEROREF, .features = QKV_FULL, .reference = PARE_REF_ZERO};
    length_case c[HEADS];
    new_cases(c, BENIGN);
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < N; i++) {
            const size_t at = i * c[h].dk;
            c[h].k[at] = (double)(c[h].kf[at] = 1);
            c[h].q[at] = (double)(c[h].qf[at] = i % 3 == 0 ? 2000 : (float)(i % 5));
        }
    compare(c, &full, NULL, &zero, true);
    free_cases(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(few_rows_are_as_good_as_all),
                                       cmocka_unit_test(rows_without_a_call_are_zero),
                                       cmocka_unit_test(rows_that_come_again_are_answered_then)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
