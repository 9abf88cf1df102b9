/* Memory runs out, or one allocation is refused, at every place where tables are shown, graphs are
 * read and jobs are kept: a status and no leak. */
#include <pare/data.h>
#include <pare_test.h>
#include <fail_alloc.h>
#include "../../studies/study_width.h"

typedef struct scene {
    char dir[200], board[240];
    study r;
    pare_arena *a;
    pare_err err;
} scene;

static pare_status do_nothing(void *self, const job *j, cJSON *result, const pare_exec *exec,
                              pare_err *err)
{
    (void)self, (void)j, (void)exec;
    return pare_json_add_size(result, "value", 1) ? PARE_OK : pare_no_memory(err);
}

static pare_status keep_jobs(scene *s)
{
    job list[2] = {{.name = "a", .what = "x", .cost = 1}, {.name = "b", .what = "y", .cost = 2}};
    jobs b = {.folder = s->dir, .n = 2, .job = list, .title = "t", .run = do_nothing};
    pare_arena *const a = pare_arena_new();
    const pare_status st = a ? jobs_run(&b, a, NULL, NULL, &s->err) : pare_no_memory(&s->err);
    for (size_t i = 0; i < 2; i++) { /* the next one begins anew */
        char path[300];
        snprintf(path, sizeof path, "%s.json", list[i].file_prefix ? list[i].file_prefix : "");
        unlink(path);
    }
    jobs_close(&b);
    pare_arena_free(a);
    return st;
}

static pare_status read_graph(scene *s)
{
    graph_set g;
    return graph_read(&g, s->board, &s->err);
}

static pare_status show(scene *s)
{
    cJSON *json = NULL;
    char *text = NULL;
    const pare_mark mark = pare_arena_mark(s->a);
    pare_status st = study_text(&text, s->a, &s->r, &s->err);
    assert_int_equal(text == NULL, st != PARE_OK);
    pare_arena_reset(s->a, mark);
    if (!st) st = study_json(&json, &s->r, &s->err);
    cJSON_Delete(json);
    const study_set one = {1, {&s->r}};
    if (!st) st = study_set_summary(&text, s->a, &one, &s->err);
    pare_arena_reset(s->a, mark);
    return st ? st : study_write(&s->r, &s->err);
}

static void refuse_each(scene *s, pare_status (*run)(scene *), const char *name)
{
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        for (long n = 0; hit; n++) {
            s->err = (pare_err){0};
            (once ? fail_alloc_once : fail_alloc_after)(n);
            const pare_status st = run(s);
            hit = fail_alloc_hit();
            fail_alloc_after(-1);
            if (st != (hit ? PARE_ERR_MEMORY : PARE_OK) || s->err.code != st)
                fail_msg("%s, allocation %ld%s: status %d, %s", name, n, once ? " alone" : "",
                         (int)st, s->err.msg);
            assert_true(n < 100000);
        }
    }
}

static void without_memory_there_is_a_status_and_nothing_else(void **state)
{
    (void)state;
    scene s = {.a = pare_arena_new()};
    double value[] = {0.5, 0.75};
    table_row row = {.data = "x",
                     .what = "y",
                     .published = NAN,
                     .published_std = NAN,
                     .ours = 2,
                     .ours_std = 0.5,
                     .runs = 2,
                     .parameters = 3,
                     .verdict = DIFFERS,
                     .note = "n",
                     .from = "f",
                     .source = ROW_PRINTED,
                     .reference = NAN,
                     .claim = "c"};
    study_table table = {"T", "about", 3, 1, &row, "c"};
    run_series series = {"x", "y", "AUC", "f", NAN, 2, value};
    const char *notes[] = {"one"};
    test_mkdir(s.dir);
    snprintf(s.board, sizeof s.board, "%s/b.npz", s.dir);
    assert_ok(pare_make_minesweeper(s.board, 6, 1, false, &s.err), &s.err);
    s.r = (study){.name = "width",
                  .folder = s.dir,
                  .ntables = 1,
                  .nseries = 1,
                  .nnotes = 1,
                  .tables = &table,
                  .series = &series,
                  .figure = "F",
                  .notes = notes};
    refuse_each(&s, keep_jobs, "jobs");
    refuse_each(&s, read_graph, "graph");
    refuse_each(&s, show, "tables");
    pare_arena_free(s.a);
    test_rmdir(s.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_a_status_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
