/* Tests studies/ticket_popup.c and ticket_popup_text.c: figures 7 and 8 with runs of a few steps.
 */
#include "../../studies/popup_figures.h"
#include "../../studies/ticket_popup_text.h"
#include <pare_test.h>

static study *make_study(const char *folder, const char *const text[3], int threads)
{
    pare_err err = {0};
    study *r = NULL;
    study_context f;
    const pare_exec exec = {.threads = threads};
    const study_opts o = {.folder = folder, .epochs = 2, .seed = 5};
    assert_ok(study_begin(&f, "ticket", &o, &exec, NULL, &err), &err);
    assert_ok(make_study_folders(&f), &err);
    assert_ok(study_end(&r, &f, popup_study(&f, text)), &err);
    return r;
}

static const table_row *row(const study_table *t, const char *what)
{
    for (size_t i = 0; i < t->nrows; i++)
        if (strcmp(t->rows[i].what, what) == 0) return &t->rows[i];
    fail_msg("no row '%s'", what);
    return NULL;
}

static void the_figures_are_made_once_and_the_same_on_any_number_of_threads(void **state)
{
    (void)state;
    static const char *const none[3] = {0};
    char a[200], b[200], *one = NULL, *two = NULL;
    pare_err err = {0};
    test_mkdir(a), test_mkdir(b);
    study *const r = make_study(a, none, 1), *const again = make_study(a, none, 1);
    study *const other = make_study(b, none, 2);
    assert_true(r->ntables == 2 && r->ncurves == 4 && r->nnotes == 2);
    assert_true(r->jobs == 36 && r->found == 0 && again->found == 36);
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < r->tables[t].nrows; i++) {
            const double x = r->tables[t].rows[i].ours, y = other->tables[t].rows[i].ours;
            assert_true(x == y && x == again->tables[t].rows[i].ours && isfinite(x));
        }
    assert_ok(study_text(&one, r->arena, r, &err), &err);
    assert_ok(study_text(&two, again->arena, again, &err), &err);
    assert_string_equal(one, two);
    /* what figure 8 has in common with figure 7 is the same run */
    const table_row *const plain = row(&r->tables[1], "factor 1");
    bool shared = false;
    for (size_t i = 0; i < r->tables[0].nrows; i++)
        shared |= strcmp(r->tables[0].rows[i].data, "d 64, 2") == 0 &&
                  r->tables[0].rows[i].ours == plain->ours;
    assert_true(shared);
    assert_contains(plain->from, "pare train --kind gpt --popup --qk-scale 1 --data ");
    const double gain = row(&r->tables[1], "the theory's factor against 1")->ours;
    assert_near(gain, plain->ours - row(&r->tables[1], "factor 2.38 (theory)")->ours, 1e-12);
    study_free(r), study_free(again), study_free(other);
    test_rmdir(a), test_rmdir(b);
}

static void a_made_up_text_is_that_of_its_seed(void **state)
{
    (void)state;
    char dir[200], path[300], first[PARE_SHA256_HEX], second[PARE_SHA256_HEX];
    pare_err err = {0};
    test_mkdir(dir);
    test_path(path, dir, "t.txt");
    assert_ok(popup_text(path, 1, &err), &err);
    assert_ok(pare_sha256_file(first, path, &err), &err);
    assert_ok(popup_text(path, 1, &err), &err);
    assert_ok(pare_sha256_file(second, path, &err), &err);
    assert_string_equal(first, second);
    assert_ok(popup_text(path, 2, &err), &err);
    assert_ok(pare_sha256_file(second, path, &err), &err);
    assert_string_not_equal(first, second);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_figures_are_made_once_and_the_same_on_any_number_of_threads),
        cmocka_unit_test(a_made_up_text_is_that_of_its_seed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
