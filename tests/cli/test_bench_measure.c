/* Tests src/cli/bench_measure.c with work, peers and sgemm that are made up: what a benchmark that
 * runs well can never show. */
#include <pare_test.h>
#include "cli/bench_measure.c"

typedef struct made_up {
    size_t runs;
    size_t wrong_from; /* results are wrong from this run on, counted from 1; 0: never */
    double off;        /* by so much */
} made_up;

static size_t peer_runs;

void cli_note(cli *c, const char *fmt, ...)
{
    (void)c;
    (void)fmt;
}

double bench_seconds(bool cpu)
{
    (void)cpu;
    return 0;
}

pare_status bench_gemm_run(bench_gemm *g, const pare_exec *exec, bool cpu, double *gflops,
                           pare_err *err)
{
    (void)cpu;
    (void)g;
    (void)exec;
    (void)err;
    *gflops = 100;
    return PARE_OK;
}

pare_status bench_peer_load(bench_peer *p, const bench_job *j, bool *can, char label[64],
                            pare_err *err)
{
    (void)p;
    (void)j;
    (void)err;
    *can = true;
    snprintf(label, 64, "made up");
    return PARE_OK;
}

pare_status bench_peer_run(bench_peer *p, size_t n, double *seconds, pare_err *err)
{
    (void)p;
    (void)err;
    for (size_t i = 0; i < n; i++) seconds[i] = peer_runs++ == 0 ? 100 : 1; /* the first is slow */
    return PARE_OK;
}

pare_status bench_peer_compare(bench_peer *p, bench_job *j, pare_err *err)
{
    (void)p;
    (void)j;
    (void)err;
    return PARE_OK;
}

void bench_peer_stop(bench_peer *p)
{
    p->fd = -1;
}

static pare_status run(bench_job *j)
{
    made_up *w = j->state;
    w->runs++;
    return PARE_OK;
}

static pare_status look(bench_job *j, double *error)
{
    const made_up *w = j->state;
    *error = w->wrong_from && w->runs >= w->wrong_from ? w->off : 0.5;
    return PARE_OK;
}

static const bench_kind kind = {NULL, NULL, NULL, run, look, NULL};
static const bench_case made_up_case = {"made up", &kind, BENCH_QUICK, BENCH_MS, false, {0}};

static pare_status measure(made_up *w, bench_match *m, cli *c)
{
    static const float result[1] = {0};
    static bench_peer peer;
    bench_job j = {.c = c, .exec = {.threads = 1}, .tolerance = 0.5, .result = result, .state = w};
    *c = (cli){0};
    peer = (bench_peer){.fd = 3};
    peer_runs = 0;
    *m = (bench_match){.c = c, .peers = &peer, .npeers = 1, .turns = 3, .budget = 1e9};
    return bench_measure(m, &j, &made_up_case);
}

static void a_wrong_result_is_refused_the_first_and_the_last(void **state)
{
    (void)state;
    static const double off[] = {0.51, INFINITY, NAN};
    static const size_t from[] = {1, 2};
    static bench_match m;
    cli c;
    made_up good = {0};
    assert_int_equal(measure(&good, &m, &c), PARE_OK);
    assert_true(m.error == 0.5); /* just the tolerance */
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 2; k++) {
            made_up w = {.wrong_from = from[k], .off = off[i]};
            assert_int_equal(measure(&w, &m, &c), PARE_ERR_VERIFY);
        }
    made_up late = {.wrong_from = good.runs, .off = 1};
    assert_int_equal(measure(&late, &m, &c), PARE_ERR_VERIFY);
}

static void everyone_has_as_many_turns_and_the_first_run_does_not_count(void **state)
{
    (void)state;
    static bench_match m;
    cli c;
    made_up w = {0};
    assert_int_equal(measure(&w, &m, &c), PARE_OK);
    assert_int_equal(m.ours.n, 3 * MOST_RUNS); /* nothing to do: as often as allowed */
    assert_int_equal(w.runs, 1 + m.ours.n);
    assert_int_equal(m.nagainst, 1);
    assert_int_equal(m.against[0].took.n, 3 * FEW_RUNS); /* of a second each */
    assert_true(bench_median(&m.against[0].took) == 1);
    assert_int_equal(m.sgemm.n, 6);
    assert_true(bench_best(&m.sgemm) == 0.01);
}

static void best_is_the_least_and_the_median_the_middle(void **state)
{
    (void)state;
    bench_samples s = {.t = {5, 1, 4, 9}, .n = 3};
    assert_true(bench_best(&s) == 1 && bench_median(&s) == 4);
    s = (bench_samples){.t = {5, 1, 4, 9}, .n = 4};
    assert_true(bench_best(&s) == 1 && bench_median(&s) == 4.5);
    for (size_t i = 0; i < 2 * BENCH_SAMPLES; i++)
        add_sample(&s, 1); /* no more than there is room for */
    assert_int_equal(s.n, BENCH_SAMPLES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_result_is_refused_the_first_and_the_last),
        cmocka_unit_test(everyone_has_as_many_turns_and_the_first_run_does_not_count),
        cmocka_unit_test(best_is_the_least_and_the_median_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
