/* The whole of `pare repro depth`, quick: every shape, found again, the same for any number of
 * threads (but for times). */
#include <pare_test.h>
#include "../../studies/study.h"

static study *make(const char *folder, int threads)
{
    study_opts o = STUDY_OPTS_DEFAULT;
    const pare_exec exec = {.threads = threads};
    study *r = NULL;
    pare_err err = {0};
    o.folder = folder;
    assert_ok(study_depth(&r, &o, &exec, NULL, &err), &err);
    return r;
}

static bool of_time(const table_row *row)
{
    return strcmp(row->data, "time") == 0;
}

static void every_shape_holds_for_any_number_of_threads(void **state)
{
    (void)state;
    char dir[200], one[240], two[240];
    test_mkdir(dir);
    snprintf(one, sizeof one, "%s/one", dir);
    snprintf(two, sizeof two, "%s/two", dir);
    study *const a = make(one, 2), *const b = make(two, 1), *const again = make(one, 1);
    assert_int_equal(again->found, again->jobs);
    assert_int_equal(a->found, 0);
    assert_int_equal(a->ntables, 11);
    for (size_t t = 0; t < a->ntables; t++)
        for (size_t i = 0; i < a->tables[t].nrows; i++) {
            const table_row *const x = &a->tables[t].rows[i], *const y = &b->tables[t].rows[i];
            if (strcmp(x->note, "shape") == 0 && x->verdict != REPRODUCED)
                fail_msg("%s: %s: %g", a->tables[t].name, x->what, x->ours);
            if (!of_time(x) && !(isnan(x->ours) && isnan(y->ours))) assert_true(x->ours == y->ours);
        }
    pare_err err;
    assert_ok(study_write(a, &err), &err);
    study_free(a);
    study_free(b);
    study_free(again);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_holds_for_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
