/* Tests src/study/repro_all.c and repro_length.c: parts by name, one progress, every row with a
 * verdict and a command, and the same for any number of threads. */
#include <pare_test.h>
#include "../../src/study/repro.h"

static void parts_are_found_by_whole_words(void **state)
{
    (void)state;
    pare_err err = {0};
    assert_true(names_part(NULL, "orders"));
    assert_true(names_part("orders", "orders") && names_part("a,orders", "orders"));
    assert_true(names_part("orders,b", "orders"));
    assert_false(names_part("order", "orders") || names_part("orders2", "orders"));
    assert_false(names_part("a,,b,", "orders") || names_part("", "orders"));
    const pare_repro_study *const depth = pare_repro_find("depth");
    assert_non_null(depth);
    assert_null(pare_repro_find("all"));
    assert_ok(pare_repro_check(depth, "orders,rank", &err), &err);
    assert_ok(pare_repro_check(NULL, "orders,calls,errata,popup,tables", &err), &err);
    assert_status(pare_repro_check(depth, "orders,calls", &err), PARE_ERR_USAGE, &err);
    assert_contains(err.msg, "--only calls: the parts are orders, lscale");
    assert_status(pare_repro_check(NULL, "orders,", &err), PARE_ERR_USAGE, &err);
}

typedef struct scene {
    char dir[200], folder[240];
    pare_repro_opts o;
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
    s->o = (pare_repro_opts){.folder = s->folder,
                             .only = "tables,calls,errors,errata,orders",
                             .side = 8,
                             .large = 1,
                             .small = 2,
                             .epochs = 2};
}

static pare_repro_set make(scene *s, int threads)
{
    const pare_exec exec = {.threads = threads, .progress = watch, .self = s};
    pare_repro_set all;
    s->last = 0;
    assert_ok(pare_repro_all(&all, &s->o, &exec, NULL, &s->err), &s->err);
    return all;
}

static void check_row(const pare_repro *r, const pare_repro_table *t, const pare_repro_row *row)
{
    assert_true(row->verdict < PARE_VERDICTS);
    assert_true(row->command || (t->command && strncmp(t->command, "pare repro ", 11) == 0));
    if (isnan(row->published) || row->verdict == PARE_NOT_MADE) return;
    if (isnan(row->ours) || row->verdict == PARE_ADDED)
        fail_msg("%s, %s, %s: no verdict or no number", r->name, t->name, row->what);
}

static void every_row_has_a_verdict_numbers_and_a_command(void **state)
{
    (void)state;
    scene s;
    size_t is_false = 0;
    scene_open(&s);
    pare_repro_set all = make(&s, 2);
    assert_int_equal(all.n, 4); /* nothing of ticket */
    assert_true(s.steps > 10);
    assert_int_equal(s.wrong, 0);
    for (size_t i = 0; i < all.n; i++)
        for (size_t t = 0; t < all.study[i]->ntables; t++) {
            const pare_repro_table *const table = &all.study[i]->tables[t];
            for (size_t k = 0; k < table->nrows; k++) {
                check_row(all.study[i], table, &table->rows[k]);
                is_false += table->rows[k].verdict == PARE_MISPRINT;
            }
        }
    assert_true(is_false > 15);
    assert_string_equal(all.study[1]->tables[0].command, "pare repro depth --only orders");
    pare_repro_set_free(&all);
    pare_repro_set again = make(&s, 1);
    for (size_t i = 0; i < again.n; i++)
        assert_int_equal(again.study[i]->found, again.study[i]->jobs);
    pare_repro_set_free(&again);
    test_rmdir(s.dir);
}

/* The files of a part that was not asked for are not there; what cannot be leaves nothing. */
static void what_is_not_asked_for_is_not_made(void **state)
{
    (void)state;
    scene s;
    char path[300];
    pare_repro_set all;
    scene_open(&s);
    s.o.only = "nothing";
    assert_status(pare_repro_all(&all, &s.o, NULL, NULL, &s.err), PARE_ERR_USAGE, &s.err);
    assert_true(all.n == 0 && !pare_is_dir(s.folder));
    s.o.only = "errata";
    all = make(&s, 1);
    assert_int_equal(all.n, 1);
    snprintf(path, sizeof path, "%s/errata/tables.json", s.folder);
    assert_true(pare_file_exists(path));
    snprintf(path, sizeof path, "%s/depth", s.folder);
    assert_false(pare_is_dir(path));
    pare_repro_set_free(&all);
    test_rmdir(s.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_found_by_whole_words),
        cmocka_unit_test(every_row_has_a_verdict_numbers_and_a_command),
        cmocka_unit_test(what_is_not_asked_for_is_not_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
