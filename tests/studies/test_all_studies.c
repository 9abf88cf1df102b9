/* Tests studies/all_studies.c and study_length.c: parts by name, one progress, every row with a
 * verdict and a command, and the same for any number of threads. */
#include <pare_test.h>
#include "../../studies/study.h"

static void parts_are_found_by_whole_words(void **state)
{
    (void)state;
    pare_err err = {0};
    assert_true(names_part(NULL, "orders"));
    assert_true(names_part("orders", "orders") && names_part("a,orders", "orders"));
    assert_true(names_part("orders,b", "orders"));
    assert_false(names_part("order", "orders") || names_part("orders2", "orders"));
    assert_false(names_part("a,,b,", "orders") || names_part("", "orders"));
    const study_kind *const depth = find_study("depth");
    assert_non_null(depth);
    assert_null(find_study("all"));
    assert_ok(check_parts(depth, "orders,rank", &err), &err);
    assert_ok(check_parts(NULL, "orders,calls,errata,popup,tables", &err), &err);
    assert_status(check_parts(depth, "orders,calls", &err), PARE_ERR_USAGE, &err);
    assert_contains(err.msg, "--only calls: the parts are orders, lscale");
    assert_status(check_parts(NULL, "orders,", &err), PARE_ERR_USAGE, &err);
}

typedef struct scene {
    char dir[200], folder[240];
    study_opts o;
    uint64_t last;
    size_t steps, wrong;
    pare_err err;
} scene;

static void watch(void *self, const char *what, uint64_t done, uint64_t total)
{
    scene *const s = self; /* on any thread: no assert here */
    const bool one_clock = strcmp(what, "repro all") == 0;
    if (!one_clock || done < s->last || done > total) s->wrong++;
    s->last = done;
    s->steps++;
}

static void scene_open(scene *s)
{
    *s = (scene){0};
    test_mkdir(s->dir);
    snprintf(s->folder, sizeof s->folder, "%s/out", s->dir);
    s->o = (study_opts){.folder = s->folder,
                        .only = "tables,calls,errors,errata,orders",
                        .side = 8,
                        .large = 1,
                        .small = 2,
                        .epochs = 2};
}

static study_set make(scene *s, int threads)
{
    const pare_exec exec = {.threads = threads, .progress = watch, .self = s};
    study_set all;
    s->last = 0;
    assert_ok(run_all_studies(&all, &s->o, &exec, NULL, &s->err), &s->err);
    return all;
}

static void check_row(const study *r, const study_table *t, const table_row *row)
{
    const bool printed = row->source == ROW_PRINTED;
    assert_true(outcome_of(row->source, row->verdict) < OUTCOMES);
    assert_true(row->command || (t->command && strncmp(t->command, "pare repro ", 11) == 0));
    assert_int_equal(printed, !isnan(row->published) || row->claim);
    /* Rank collapse 2025 has no experiments, and the study of length checks itself. */
    if (printed && (strcmp(r->name, "depth") == 0 || strcmp(r->name, "length") == 0))
        fail_msg("%s, %s, %s: no paper prints it", r->name, t->name, row->what);
    if (row->source == ROW_OURS || row->verdict == NOT_MADE) return;
    if (isnan(row->ours)) fail_msg("%s, %s, %s: no number", r->name, t->name, row->what);
}

/* The first number below a head of the summary, in the line that begins with `line`. */
static size_t summary_count(const char *text, const char *line, size_t column)
{
    const char *at = strstr(text, line);
    assert_non_null(at);
    for (at += 45; column > 0; column--) at += 2 + strlen(outcomes[column - 1].head);
    at += 2;
    while (*at == ' ') at++;
    return *at == '-' ? 0 : strtoul(at, NULL, 10);
}

/* However near a row of our own reference is, it is never reproduced from a paper: neither by its
 * word, nor in the JSON, nor in the summary. */
static void own_references_never_count_as_reproduced(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    pare_err err = {0};
    study_table table = {0};
    study r = {.name = "depth", .folder = "f", .tables = &table, .arena = a};
    table_writer s = {.r = &r, .err = &err};
    table_row row = {.data = "d",
                     .what = "w",
                     .published = NAN,
                     .published_std = NAN,
                     .ours = 1,
                     .ours_std = NAN,
                     .note = "",
                     .from = "",
                     .reference = 1,
                     .verdict = REPRODUCED};
    char *text = NULL;
    cJSON *json = NULL;
    study_set all = {.n = 1, .study = {&r}};
    begin_table(&s, "t", "about", 2);
    row.source = ROW_REFERENCE, add_row(&s, row), add_row(&s, row);
    row.source = ROW_SELF, add_row(&s, row);
    assert_ok(s.st, &err);
    assert_ok(study_set_summary(&text, a, &all, &err), &err);
    for (size_t i = 0; i < OUTCOMES; i++)
        assert_int_equal(summary_count(text, "all", i),
                         i == outcome_of(ROW_REFERENCE, REPRODUCED) ? 2
                         : i == outcome_of(ROW_SELF, REPRODUCED)    ? 1
                                                                    : 0);
    assert_ok(study_text(&text, a, &r, &err), &err);
    assert_null(strstr(text, "reproduced"));
    assert_contains(text, "agrees (own reference)");
    assert_contains(text, "holds (self-consistency)");
    assert_ok(study_json(&json, &r, &err), &err);
    assert_ok(pare_json_print(&text, NULL, a, json, 0, &err), &err);
    cJSON_Delete(json);
    assert_null(strstr(text, "reproduced"));
    assert_contains(text, "\"published\": null");
    assert_contains(text, "\"class\": \"own reference\", \"verdict\": \"agrees\"");
    pare_arena_free(a);
}

/* Every outcome has a word, and no class has the same word twice. */
static void outcomes_are_told_apart(void **state)
{
    (void)state;
    for (size_t i = 0; i < OUTCOMES; i++) {
        assert_non_null(outcomes[i].word);
        assert_int_equal(outcome_of(outcomes[i].of, outcomes[i].is), i);
        for (size_t k = 0; k < i; k++)
            assert_false(outcomes[k].of == outcomes[i].of &&
                         strcmp(outcomes[k].word, outcomes[i].word) == 0);
    }
    assert_null(outcomes[OUTCOMES].word);
    assert_int_equal(outcome_of(ROW_REFERENCE, MISPRINT), OUTCOMES);
    assert_int_equal(outcome_of(ROW_OURS, REPRODUCED), OUTCOMES);
}

static void every_row_has_a_verdict_numbers_and_a_command(void **state)
{
    (void)state;
    scene s;
    size_t is_false = 0;
    scene_open(&s);
    study_set all = make(&s, 2);
    assert_int_equal(all.n, 4); /* nothing of ticket */
    assert_true(s.steps > 10);
    assert_int_equal(s.wrong, 0);
    for (size_t i = 0; i < all.n; i++)
        for (size_t t = 0; t < all.study[i]->ntables; t++) {
            const study_table *const table = &all.study[i]->tables[t];
            for (size_t k = 0; k < table->nrows; k++) {
                check_row(all.study[i], table, &table->rows[k]);
                is_false += table->rows[k].verdict == MISPRINT;
            }
        }
    assert_true(is_false > 15);
    assert_string_equal(all.study[1]->tables[0].command, "pare repro depth --only orders");
    study_set_free(&all);
    study_set again = make(&s, 1);
    for (size_t i = 0; i < again.n; i++)
        assert_int_equal(again.study[i]->found, again.study[i]->jobs);
    study_set_free(&again);
    test_rmdir(s.dir);
}

/* The files of a part that was not asked for are not there; what cannot be leaves nothing. */
static void what_is_not_asked_for_is_not_made(void **state)
{
    (void)state;
    scene s;
    char path[300];
    study_set all;
    scene_open(&s);
    s.o.only = "nothing";
    assert_status(run_all_studies(&all, &s.o, NULL, NULL, &s.err), PARE_ERR_USAGE, &s.err);
    assert_true(all.n == 0 && !pare_is_dir(s.folder));
    s.o.only = "errata";
    all = make(&s, 1);
    assert_int_equal(all.n, 1);
    snprintf(path, sizeof path, "%s/errata/tables.json", s.folder);
    assert_true(pare_file_exists(path));
    snprintf(path, sizeof path, "%s/depth", s.folder);
    assert_false(pare_is_dir(path));
    study_set_free(&all);
    test_rmdir(s.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_found_by_whole_words),
        cmocka_unit_test(own_references_never_count_as_reproduced),
        cmocka_unit_test(outcomes_are_told_apart),
        cmocka_unit_test(every_row_has_a_verdict_numbers_and_a_command),
        cmocka_unit_test(what_is_not_asked_for_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
