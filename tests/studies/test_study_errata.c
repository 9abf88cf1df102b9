/* Tests studies/study_errata.c: docs/errata.md has the rows of the definitions and no others,
 * with their figures; every counter-example refutes its statement; classes are counted. */
#include <errata_rows.h>

/* ---- the definitions ------------------------------------------------------------------------- */

static void every_counter_example_refutes_its_statement(void **state)
{
    (void)state;
    for (size_t k = 0; k < ERRATA_LISTS; k++)
        for (size_t i = 0; i < errata_lists[k]->n; i++) {
            const erratum *const e = &errata_lists[k]->v[i];
            if (!e->hand && !e->evaluate) continue; /* needs files */
            assert_true(!e->hand != !e->evaluate);
            const sides s = row_sides(e->test, e->class);
            if (!isfinite(s.printed) || !isfinite(s.is)) fail_msg("%s: not a number", e->where);
            /* A loose statement, and one that is open, stand: the others are refuted. */
            if (e->stands) assert_true(e->class != MISPRINT);
            if (!e->stands && !erratum_refuted(e, &s)) fail_msg("%s: %s", e->where, e->says);
        }
}

static void outside_of_its_hypotheses_nothing_is_refuted(void **state)
{
    (void)state;
    const erratum e = {.claim = AT_MOST};
    assert_true(erratum_refuted(&e, &(sides){1, 2, NAN, false}));
    assert_false(erratum_refuted(&e, &(sides){1, 2, NAN, true}));
    assert_false(erratum_refuted(&e, &(sides){1, 1 + 1e-12, NAN, false}));
    assert_false(erratum_refuted(&e, &(sides){1, NAN, NAN, false}));
}

static void no_two_rows_have_the_same_test_and_every_class_is_one_of_three(void **state)
{
    (void)state;
    for (size_t k = 0; k < ERRATA_LISTS; k++)
        for (size_t i = 0; i < errata_lists[k]->n; i++) {
            const erratum *const e = &errata_lists[k]->v[i];
            if (erratum_of(e->test) != e) fail_msg("%s: two rows", e->test);
            assert_true(e->class == MISPRINT || e->class == STEP_FALSE || e->class == IMPRECISE);
        }
    assert_null(erratum_of("no_test_at_all"));
}

/* ---- the document ---------------------------------------------------------------------------- */

/* Appends s; a bar inside a cell of Markdown is escaped. */
static void put(char *line, size_t room, const char *s)
{
    size_t n = strlen(line);
    for (; *s; s++) {
        assert_true(n + 3 < room);
        if (*s == '|') line[n++] = '\\';
        line[n++] = *s;
    }
    line[n] = 0;
}

/* The row as it stands in docs/errata.md, up to the end of its first test. */
static void expected_row(char *line, size_t room, const erratum *e)
{
    static const char *const relation[] = {"at most", "at least", "equal to"};
    char figures[100], holds[60] = "";
    pare_err err = {0};
    sides s;
    assert_ok(erratum_evaluate(&s, e, &err), &err);
    if (isnan(s.is))
        snprintf(figures, sizeof figures, ": %s %.6g", relation[e->claim], s.printed);
    else
        snprintf(figures, sizeof figures, ": %s %.4g, is %.4g", relation[e->claim], s.printed,
                 s.is);
    if (!isnan(s.holds)) snprintf(holds, sizeof holds, " (here: %.4g)", s.holds);
    snprintf(line, room, "| %s | ", e->paper);
    put(line, room, e->where);
    put(line, room, ": ");
    put(line, room, e->says);
    strcat(line, " | ");
    put(line, room, erratum_class(e->class));
    strcat(line, " | ");
    put(line, room, e->example);
    put(line, room, figures);
    strcat(line, " | ");
    put(line, room, e->instead);
    put(line, room, holds);
    strcat(line, " | `");
    put(line, room, e->test);
    strcat(line, "`");
}

static void the_document_has_these_rows_and_no_others(void **state)
{
    (void)state;
    enum { ROOM = 4000 };
    static char line[ROOM], want[ROOM];
    size_t k = 0, i = 0;
    FILE *const f = fopen("docs/errata.md", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (line[0] != '|' || strncmp(line, "| paper", 7) == 0 || line[1] == '-') continue;
        if (k == ERRATA_LISTS) fail_msg("not in studies/errata_*.c: %s", line);
        expected_row(want, sizeof want, &errata_lists[k]->v[i]);
        if (strncmp(line, want, strlen(want)) != 0)
            fail_msg("docs/errata.md has\n%snot\n%s", line, want);
        if (++i == errata_lists[k]->n) k++, i = 0;
    }
    fclose(f);
    if (k < ERRATA_LISTS) fail_msg("docs/errata.md has no row %s", errata_lists[k]->v[i].test);
}

/* ---- the study ------------------------------------------------------------------------------- */

static void rows_are_counted_by_class(void **state)
{
    (void)state;
    const row_verdict classes[] = {MISPRINT, STEP_FALSE, IMPRECISE};
    char dir[200], folder[240], note[200];
    pare_err err = {0};
    study *r = NULL;
    size_t count[3] = {0};
    test_mkdir(dir);
    snprintf(folder, sizeof folder, "%s/out", dir);
    const study_opts o = {.folder = folder, .side = 100};
    assert_ok(study_errata(&r, &o, NULL, NULL, &err), &err);
    for (size_t k = 0; k < ERRATA_LISTS; k++)
        for (size_t i = 0; i < errata_lists[k]->n; i++)
            for (size_t c = 0; c < 3; c++) count[c] += errata_lists[k]->v[i].class == classes[c];
    assert_int_equal(r->ntables, 3);
    for (size_t t = 0; t < 3; t++) {
        assert_string_equal(r->tables[t].name, erratum_class(classes[t]));
        assert_int_equal(r->tables[t].nrows, count[t]);
        for (size_t i = 0; i < count[t]; i++) {
            const table_row *const row = &r->tables[t].rows[i];
            assert_true(row->verdict == (isnan(row->ours) ? NOT_MADE : classes[t]));
        }
    }
    snprintf(note, sizeof note,
             "rows by class: %zu false as printed; %zu proof step false, statement may hold; "
             "%zu loose or imprecise",
             count[0], count[1], count[2]);
    assert_string_equal(r->notes[r->nnotes - 1], note);
    study_free(r);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_counter_example_refutes_its_statement),
        cmocka_unit_test(outside_of_its_hypotheses_nothing_is_refuted),
        cmocka_unit_test(no_two_rows_have_the_same_test_and_every_class_is_one_of_three),
        cmocka_unit_test(the_document_has_these_rows_and_no_others),
        cmocka_unit_test(rows_are_counted_by_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
