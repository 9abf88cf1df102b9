/* Tests studies/cached_jobs.c: done once, found later, done again when what is there is not it. */
#include <pare_test.h>
#include "../../studies/cached_jobs.h"

typedef struct scene {
    pare_arena *a;
    pare_err err;
    char dir[200];
    job job[4];
    jobs b;
    size_t ran[4]; /* how often */
    size_t lines;
    uint64_t heard; /* how far the bar is */
    size_t wrong;
    int refuse;     /* the job that fails; -1: none */
    char last[200]; /* state */
} scene;

static pare_status run(void *self, const job *j, cJSON *result, const pare_exec *exec,
                       pare_err *err)
{
    scene *const s = self;
    const size_t i = (size_t)(j - s->job);
    s->ran[i]++;
    if (pare_progress(exec, "half", 1, 2, err)) return PARE_ERR_STOPPED;
    if ((int)i == s->refuse) return pare_fail(err, PARE_ERR_INPUT, "no such thing");
    return pare_json_add_size(result, "value", 10 + i) ? PARE_OK : pare_no_memory(err);
}

static void note(void *self, const char *line)
{
    scene *const s = self;
    assert_contains(line, "is done");
    s->lines++;
}

static void keep_state(void *self, const char *line)
{
    scene *const s = self;
    snprintf(s->last, sizeof s->last, "%s", line);
}

static void scene_open(scene *s)
{
    memset(s, 0, sizeof *s);
    s->a = pare_arena_new();
    s->refuse = -1;
    test_mkdir(s->dir);
    const job all[4] = {{.name = "a", .what = "first", .cost = 1},
                        {.name = "b", .what = "second", .cost = 5},
                        {.name = "c", .what = "third", .cost = 3},
                        {.name = "a", .what = "first", .cost = 1}}; /* named twice */
    memcpy(s->job, all, sizeof all);
    s->b = (jobs){.folder = s->dir,
                  .n = 4,
                  .job = s->job,
                  .title = "test",
                  .self = s,
                  .run = run,
                  .note = note,
                  .state = keep_state,
                  .note_self = s};
}

/* A job's own progress comes here through that of all jobs. */
static void hear(void *self, const char *what, uint64_t done, uint64_t total)
{
    scene *const s = self;
    if (strcmp(what, "test") != 0 || done < s->heard || done > total) s->wrong++;
    s->heard = done;
}

static pare_status go(scene *s, int threads)
{
    const pare_exec exec = {.threads = threads, .progress = hear, .self = s};
    jobs_close(&s->b);
    s->heard = 0;
    const pare_status st = jobs_run(&s->b, s->a, &exec, NULL, &s->err);
    assert_int_equal(s->wrong, 0);
    return st;
}

static void scene_close(scene *s)
{
    jobs_close(&s->b);
    pare_arena_free(s->a);
    test_rmdir(s->dir);
}

static size_t value_of(const scene *s, size_t i)
{
    size_t v = 0;
    pare_err err;
    assert_ok(pare_json_size(&v, s->job[i].result, "value", &err), &err);
    return v;
}

static void a_job_is_done_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 8; threads *= 8) { /* one each; all for one */
        scene s;
        scene_open(&s);
        assert_ok(go(&s, threads), &s.err);
        assert_int_equal(s.lines, 3);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(s.ran[i], i < 3);
            assert_false(s.job[i].found);
            assert_int_equal(value_of(&s, i), 10 + i % 3);
        }
        assert_ok(go(&s, threads), &s.err);
        for (size_t i = 0; i < 4; i++) {
            assert_int_equal(s.ran[i], i < 3);
            assert_true(s.job[i].found);
            assert_int_equal(value_of(&s, i), 10 + i % 3);
        }
        assert_int_equal(s.lines, 3);
        s.b.again = true; /* unless it is asked for */
        assert_ok(go(&s, threads), &s.err);
        for (size_t i = 0; i < 4; i++) assert_int_equal(s.ran[i], i < 3 ? 2 : 0);
        scene_close(&s);
    }
}

static void write_file(const char *file_prefix, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s.json", file_prefix);
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

/* Four runs of an hour's work in all: a line says what is kept and what is left. */
static void the_rest_is_estimated_from_what_is_done(void **state)
{
    (void)state;
    char line[200];
    tally t = {
        .name = "width", .done = 3, .seconds = 100, .cost = 50, .later = 4, .later_cost = 30};
    tally_line(line, sizeof line, &t, 2, 60, 1);
    assert_string_equal(line, "width: 3 of 9 runs are kept, 1 min 40 s of work; the rest: about "
                              "3 min 0 s");
    tally_line(line, sizeof line, &t, 2, 60, 3);
    assert_contains(line, "about 1 min 0 s");
    t = (tally){.done = 3, .seconds = 7300, .cost = 50};
    tally_line(line, sizeof line, &t, 0, 0, 1);
    assert_string_equal(line, "3 of 3 runs are kept, 2 h 1 min of work; the rest: none");
    t = (tally){.done = 1, .untimed = 1};
    tally_line(line, sizeof line, &t, 1, 10, 1);
    assert_string_equal(line, "1 of 2 runs are kept, 0 s of work without 1 of unknown time; the "
                              "rest: not known yet");
}

/* The time of a run is kept in its file and read again; a file without it, or with nonsense in its
 * place, is a result all the same. */
static void times_are_kept_and_old_files_have_none(void **state)
{
    (void)state;
    scene s;
    tally t = {0};
    double seconds = -1;
    scene_open(&s);
    s.b.all = &t;
    assert_ok(go(&s, 1), &s.err);
    assert_ok(pare_json_number(&seconds, s.job[0].result, "seconds", &s.err), &s.err);
    assert_true(seconds >= 0 && seconds < 60);
    assert_int_equal(t.done, 3);
    assert_near(t.cost, 9, 0);
    assert_contains(s.last, "3 of 3 runs are kept");
    write_file(s.job[0].file_prefix, "{\"what\": \"first\", \"value\": 10, \"seconds\": 40}");
    write_file(s.job[1].file_prefix, "{\"what\": \"second\", \"value\": 11}");
    write_file(s.job[2].file_prefix, "{\"what\": \"third\", \"value\": 12, \"seconds\": \"long\"}");
    t = (tally){0};
    assert_ok(go(&s, 1), &s.err);
    for (size_t i = 0; i < 4; i++) assert_int_equal(s.ran[i], i < 3);
    assert_int_equal(t.done, 3);
    assert_near(t.seconds, 40, 0);
    assert_near(t.cost, 1, 0);
    assert_int_equal(t.untimed, 2);
    s.job[0].counted = true; /* a list before this one had it */
    t = (tally){0};
    assert_ok(go(&s, 1), &s.err);
    assert_near(t.seconds, 0, 0);
    scene_close(&s);
}

static void damaged_and_foreign_results_are_made_again(void **state)
{
    (void)state;
    scene s;
    char path[300];
    const char *const bad[] = {"", "{", "[]", "{\"what\": 3}", "{\"what\": \"another\"}"};
    scene_open(&s);
    assert_ok(go(&s, 1), &s.err);
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        snprintf(path, sizeof path, "%s.json", s.job[1].file_prefix);
        FILE *const f = fopen(path, "w");
        assert_non_null(f);
        fputs(bad[k], f);
        fclose(f);
        assert_ok(go(&s, 2), &s.err);
        assert_int_equal(s.ran[1], 2 + k);
        assert_int_equal(value_of(&s, 1), 11);
        assert_int_equal(s.ran[0], 1);
    }
    /* Another description is another job, and the old one stays. */
    const char *const old = s.job[2].file_prefix;
    s.job[2].what = "third, but longer";
    assert_ok(go(&s, 2), &s.err);
    assert_int_equal(s.ran[2], 2);
    assert_true(strcmp(old, s.job[2].file_prefix) != 0);
    snprintf(path, sizeof path, "%s.json", old);
    assert_true(pare_file_exists(path));
    scene_close(&s);
}

static void a_failure_names_its_job_and_what_is_done_stays(void **state)
{
    (void)state;
    scene s;
    scene_open(&s);
    s.refuse = 2;
    assert_status(go(&s, 1), PARE_ERR_INPUT, &s.err);
    assert_string_equal(s.err.msg, "c: no such thing");
    assert_int_equal(s.ran[1], 1); /* the dearest came first and is there */
    assert_int_equal(s.ran[0], 0); /* none is begun after a failure */
    s.refuse = -1;
    assert_ok(go(&s, 1), &s.err);
    assert_int_equal(s.ran[1], 1);
    assert_int_equal(s.ran[2], 2);
    s.b.folder = "/proc/none";
    s.job[0].what = "elsewhere";
    assert_status(go(&s, 1), PARE_ERR_IO, &s.err);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_is_done_once),
        cmocka_unit_test(the_rest_is_estimated_from_what_is_done),
        cmocka_unit_test(times_are_kept_and_old_files_have_none),
        cmocka_unit_test(damaged_and_foreign_results_are_made_again),
        cmocka_unit_test(a_failure_names_its_job_and_what_is_done_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
