/* Tests src/train/training_runs.c and base/ranks.c. With a folder as its only argument it is one process of
 * tests/cli/ranks.sh: it does the same runs under mpirun and writes there what came out. */
#include "tiny_task.h"
#include "base/support.h"
#include <pare/train.h>

enum { RUNS = 3, SETTINGS = 4, STEPS = 12 };

/* Run r begins with model r and seed r; setting s has the learning rate of the grid. */
typedef struct board {
    tiny t[RUNS];
    pare_setting *grid;
    pare_arena *arena;
    size_t opened, closed;
    bool broken[SETTINGS * RUNS]; /* fails to open */
    bool wild[SETTINGS * RUNS];   /* diverges before any mark */
    size_t lines;
} board;

static void count_line(void *self, const pare_train_log *line)
{
    (void)line;
    ++*(size_t *)self; /* one at a time: no lock is needed */
}

static pare_status open_run(void *self, pare_run_parts *out, size_t run, size_t at, pare_err *err)
{
    board *const b = self;
    __atomic_add_fetch(&b->opened, 1, __ATOMIC_RELAXED);
    if (b->broken[at * RUNS + run]) {
        __atomic_sub_fetch(&b->opened, 1, __ATOMIC_RELAXED);
        return pare_fail(err, PARE_ERR_IO, "no data for %zu, %zu", run, at);
    }
    *out = (pare_run_parts){.start = b->t[run].start,
                            .task = &b->t[run].task,
                            .opts = tiny_opts(STEPS * b->grid[at].epochs)};
    out->opts.lr = b->grid[at].lr;
    out->opts.seed = run;
    out->opts.log = count_line, out->opts.log_self = &b->lines;
    if (b->wild[at * RUNS + run]) out->opts.lr = 1e38, out->opts.warmup = 0, out->opts.clip = 0;
    return PARE_OK;
}

static void close_run(void *self, pare_run_parts *parts)
{
    board *const b = self;
    assert_non_null(parts->start);
    __atomic_add_fetch(&b->closed, 1, __ATOMIC_RELAXED);
}

static void board_open(board *b)
{
    pare_err err = {0};
    const double lr[2] = {0.001, 0.02};
    const uint64_t epochs[2] = {1, 2};
    memset(b, 0, sizeof *b);
    b->arena = pare_arena_new();
    assert_non_null(b->arena);
    for (size_t r = 0; r < RUNS; r++) tiny_open(&b->t[r], PARE_RANDOM_GRAPH, 1 + r);
    assert_ok(pare_grid(&b->grid, b->arena, lr, 2, epochs, 2, &err), &err);
}

static void board_close(board *b)
{
    assert_int_equal(b->opened, b->closed);
    for (size_t r = 0; r < RUNS; r++) tiny_close(&b->t[r]);
    pare_arena_free(b->arena);
}

static pare_status run_all(pare_model **m, pare_runs_result **r, board *b, size_t settings,
                           int threads, const pare_ranks *ranks, pare_err *err)
{
    const pare_run_source source = {
        .self = b, .runs = RUNS, .settings = settings, .open = open_run, .close = close_run};
    const pare_exec exec = {.threads = threads};
    return pare_runs(m, r, &source, &exec, ranks, err);
}

static void a_grid_is_every_pair(void **state)
{
    (void)state;
    board b;
    board_open(&b);
    assert_true(b.grid[0].lr == 0.001 && b.grid[1].lr == 0.001 && b.grid[3].lr == 0.02);
    assert_true(b.grid[0].epochs == 1 && b.grid[1].epochs == 2 && b.grid[2].epochs == 1);
    board_close(&b);
}

/* Each result is that of the run alone, mean and spread are theirs, and the best is the best. */
static void runs_are_those_done_one_by_one(void **state)
{
    (void)state;
    board b;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_runs_result *r = NULL;
    char hex[PARE_SHA256_HEX], want[PARE_SHA256_HEX];
    double sum = 0, square = 0, best = INFINITY;
    board_open(&b);
    assert_ok(run_all(&m, &r, &b, 1, 1, NULL, &err), &err);
    tiny_hash(hex, m);
    for (size_t i = 0; i < RUNS; i++) {
        pare_run_parts p;
        pare_train_result alone;
        assert_ok(open_run(&b, &p, i, 0, &err), &err);
        assert_ok(pare_train(&m, &alone, p.start, p.task, &p.opts, NULL, &err), &err);
        close_run(&b, &p);
        assert_true(alone.val == r->each[i].val && alone.test == r->each[i].test);
        sum += alone.val, square += alone.val * alone.val;
        if (alone.val < best) {
            best = alone.val;
            assert_ok(pare_model_sha256(want, m, &err), &err);
            assert_true(i != r->best || alone.best_step == r->each[i].best_step);
        }
        pare_model_free(m);
    }
    assert_string_equal(hex, want);
    assert_true(r->each[r->best].val == best);
    assert_int_equal(r->val[0].n, RUNS);
    assert_near(r->val[0].mean, sum / RUNS, 1e-12);
    assert_near(r->val[0].std, sqrt((square - sum * sum / RUNS) / (RUNS - 1)), 1e-7);
    assert_int_equal(b.lines, 2 * RUNS * STEPS);
    pare_runs_free(r);
    board_close(&b);
}

static void assert_same_result(const pare_runs_result *a, const pare_runs_result *b)
{
    const size_t jobs = a->runs * a->settings;
    assert_true(a->setting == b->setting && a->best == b->best);
    for (size_t j = 0; j < jobs; j++) {
        assert_true(a->each[j].val == b->each[j].val && a->each[j].test == b->each[j].test);
        assert_true(a->each[j].loss == b->each[j].loss);
        assert_true(a->each[j].best_step == b->each[j].best_step);
    }
    assert_memory_equal(a->val, b->val, a->settings * sizeof *a->val);
}

static void threads_change_nothing_and_the_grid_has_a_winner(void **state)
{
    (void)state;
    board b;
    pare_err err = {0};
    pare_runs_result *r[3] = {0};
    char hex[3][PARE_SHA256_HEX];
    const int threads[3] = {1, 2, 40}; /* 40: fewer runs than threads */
    board_open(&b);
    for (size_t i = 0; i < 3; i++) {
        pare_model *m = NULL;
        b.lines = 0;
        assert_ok(run_all(&m, &r[i], &b, SETTINGS, threads[i], NULL, &err), &err);
        tiny_hash(hex[i], m);
        assert_string_equal(hex[i], hex[0]);
        assert_same_result(r[i], r[0]);
        assert_int_equal(b.lines, RUNS * 2 * (STEPS + 2 * STEPS));
    }
    for (size_t s = 0; s < SETTINGS; s++)
        assert_le(r[0]->val[r[0]->setting].mean, r[0]->val[s].mean);
    assert_int_equal(r[0]->setting, 3); /* the faster and longer one: nothing is learned too long */
    for (size_t i = 0; i < 3; i++) pare_runs_free(r[i]);
    board_close(&b);
}

static void a_setting_with_a_run_that_diverged_comes_last(void **state)
{
    (void)state;
    board b;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_runs_result *r = NULL;
    board_open(&b);
    b.wild[3 * RUNS + 1] = true; /* of the setting that would win */
    assert_ok(run_all(&m, &r, &b, SETTINGS, 2, NULL, &err), &err);
    pare_model_free(m);
    assert_true(r->setting != 3 && r->val[3].n == RUNS - 1);
    assert_true(r->each[3 * RUNS + 1].diverged && isnan(r->each[3 * RUNS + 1].val));
    pare_runs_free(r);
    for (size_t s = 0; s < SETTINGS; s++) b.wild[s * RUNS] = true; /* one in each */
    b.wild[1] = b.wild[2] = true;                                  /* none is left */
    assert_ok(run_all(&m, &r, &b, SETTINGS, 2, NULL, &err), &err);
    pare_model_free(m);
    assert_true(r->val[0].n == 0 && isnan(r->val[0].mean) && r->setting != 0 && r->best != 0);
    pare_runs_free(r);
    memset(b.wild, 1, sizeof b.wild);
    assert_status(run_all(&m, &r, &b, SETTINGS, 2, NULL, &err), PARE_ERR_NUMERIC, &err);
    assert_contains(err.msg, "diverged");
    assert_true(!m && !r);
    board_close(&b);
}

/* One that had the best mark before it diverged gives way to one that came to its end. */
static void the_best_run_is_one_that_came_to_its_end(void **state)
{
    (void)state;
    board b;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_runs_result *r = NULL;
    board_open(&b);
    assert_ok(run_all(&m, &r, &b, 1, 1, NULL, &err), &err);
    const size_t best = r->best;
    pare_model_free(m);
    pare_runs_free(r);
    static const double wonder[STEPS] = {-1};
    b.t[best].poison = 5;
    b.t[best].marks = wonder;
    assert_ok(run_all(&m, &r, &b, 1, 1, NULL, &err), &err);
    pare_model_free(m);
    assert_true(r->each[best].diverged && r->each[best].val == -1 && r->best != best);
    pare_runs_free(r);
    for (size_t i = 0; i < RUNS; i++) b.t[i].poison = 5; /* none does */
    b.t[best].marked = 0;
    assert_ok(run_all(&m, &r, &b, 1, 1, NULL, &err), &err);
    pare_model_free(m);
    assert_true(r->best == best && r->each[best].diverged);
    pare_runs_free(r);
    board_close(&b);
}

static void a_failure_of_one_is_told(void **state)
{
    (void)state;
    board b;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_runs_result *r = NULL;
    board_open(&b);
    b.broken[1] = true;
    assert_status(run_all(&m, &r, &b, 1, 1, NULL, &err), PARE_ERR_IO, &err);
    assert_string_equal(err.msg, "run 1: no data for 1, 0");
    assert_true(!m && !r);
    board_close(&b);
}

static void the_model_need_not_be_wanted(void **state)
{
    (void)state;
    board b;
    pare_err err = {0};
    pare_runs_result *r = NULL;
    board_open(&b);
    assert_ok(run_all(NULL, &r, &b, 1, 2, NULL, &err), &err);
    pare_runs_free(r);
    board_close(&b);
}

static void one_process_needs_no_mpi(void **state)
{
    (void)state;
    pare_err err = {0};
    int mine[3] = {4, 5, 6}, all[3] = {0};
    assert_true(pare_ranks_size(NULL) == 1 && pare_ranks_rank(NULL) == 0);
    assert_ok(pare_ranks_gather(NULL, all, mine, sizeof mine, &err), &err);
    assert_memory_equal(all, mine, sizeof mine);
    assert_ok(pare_ranks_bcast(NULL, all, sizeof all, 0, &err), &err);
    assert_ok(pare_ranks_barrier(NULL, &err), &err);
    assert_ok(pare_ranks_agree(NULL, PARE_OK, &err), &err);
    assert_int_equal(pare_ranks_agree(NULL, PARE_ERR_IO, &err), PARE_ERR_IO);
    pare_ranks_close(NULL);
    assert_non_null(pare_ranks_signs[0]);
}

/* ---- one process of an mpirun --------------------------------------------------------------- */

static int tell(const char *what, const pare_err *err)
{
    fprintf(stderr, "%s: %s\n", what, err->msg);
    return 2;
}

/* DIR/model.RANK and DIR/marks.RANK; all ranks must write the same. */
static int rank_main(const char *dir, bool fail)
{
    static board b;
    char name[40], path[300];
    pare_err err = {0};
    pare_ranks *ranks = NULL;
    pare_model *m = NULL;
    pare_runs_result *r = NULL;
    if (pare_ranks_open(&ranks, &err)) return tell("open", &err);
    const size_t rank = pare_ranks_rank(ranks), size = pare_ranks_size(ranks);
    board_open(&b);
    if (fail && rank + 1 == size) b.broken[RUNS * SETTINGS - 1] = true; /* only one rank sees it */
    const pare_status st = run_all(&m, &r, &b, SETTINGS, 2, ranks, &err);
    if (st) {
        printf("rank %zu of %zu: %s\n", rank, size, err.msg);
    } else {
        snprintf(name, sizeof name, "marks.%zu", rank);
        FILE *const f = fopen(test_path(path, dir, name), "w");
        for (size_t j = 0; f && j < RUNS * SETTINGS; j++)
            fprintf(f, "%a %a\n", r->each[j].val, r->each[j].test);
        if (f) fprintf(f, "best %zu %zu\n", r->setting, r->best), fclose(f);
        snprintf(name, sizeof name, "model.%zu", rank);
        if (pare_model_save(m, test_path(path, dir, name), true, NULL, &err)) tell("save", &err);
    }
    if (pare_ranks_barrier(ranks, &err)) tell("barrier", &err);
    if (rank == 0) printf("%zu ranks\n", size);
    pare_model_free(m);
    pare_runs_free(r);
    pare_ranks_close(ranks);
    return pare_exit_code(st);
}

int main(int argc, char **argv)
{
    if (argc > 1) return rank_main(argv[1], argc > 2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_grid_is_every_pair),
        cmocka_unit_test(runs_are_those_done_one_by_one),
        cmocka_unit_test(threads_change_nothing_and_the_grid_has_a_winner),
        cmocka_unit_test(a_setting_with_a_run_that_diverged_comes_last),
        cmocka_unit_test(the_best_run_is_one_that_came_to_its_end),
        cmocka_unit_test(a_failure_of_one_is_told),
        cmocka_unit_test(the_model_need_not_be_wanted),
        cmocka_unit_test(one_process_needs_no_mpi),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
