/* Tests src/study/repro_errata*.c: every counter-example refutes its statement, what holds does
 * hold on it, and every line of docs/errata.md is there. */
#include <pare_test.h>
#include "../../src/study/repro_errata.h"

static const errata *const lists[] = {&errata_width, &errata_lemmas, &errata_depth, &errata_ticket,
                                      &errata_length};
enum { LISTS = sizeof lists / sizeof *lists };

/* Statements that hold as printed and are loose or say nothing; and one that is open. */
static const char *const loose[] = {
    "depth_theorem_1_2_holds_for_doing_nothing", "ticket_lemma_8_needs_neither_root_nor_condition",
    "ticket_lemma_13_blocks_move_by_what_holds", "ticket_theorem_10_is_proportional_to_alpha",
    "ticket_attention_is_at_most_alpha_omega"};
static const char open_one[] = "the_oracle_does_everything";

static bool is_loose(const char *test)
{
    for (size_t i = 0; i < sizeof loose / sizeof *loose; i++)
        if (strcmp(test, loose[i]) == 0) return true;
    return false;
}

static sides look(const erratum *e)
{
    pare_err err = {0};
    sides s = {NAN, NAN, NAN};
    assert_true(!e->hand != !e->look);
    if (e->hand) return e->hand();
    assert_ok(e->look(&s, e, &err), &err);
    return s;
}

static bool refuted(const erratum *e, const sides *s)
{
    if (e->claim == AT_MOST) return s->is > s->printed * (1 + 1e-6);
    if (e->claim == AT_LEAST) return s->is < s->printed * (1 - 1e-6);
    return fabs(s->is - s->printed) > 1e-6 * fabs(s->printed);
}

static void every_counter_example_refutes_its_statement(void **state)
{
    (void)state;
    for (size_t k = 0; k < LISTS; k++)
        for (size_t i = 0; i < lists[k]->n; i++) {
            const erratum *const e = &lists[k]->v[i];
            const sides s = look(e);
            print_message("%-40s printed %-12.5g is %-12.5g holds %.5g\n", e->where, s.printed,
                          s.is, s.holds);
            if (!isfinite(s.printed) || !isfinite(s.is)) fail_msg("%s: not a number", e->where);
            if (refuted(e, &s) == is_loose(e->test)) fail_msg("%s: %s", e->where, e->says);
            assert_true(e->open == (strcmp(e->test, open_one) == 0));
            /* what holds in its place is not broken by the example */
            if (e->claim == AT_MOST && s.holds > 0 && !is_loose(e->test) &&
                strcmp(e->test, "depth_corollary_5_2_needs_full_attention") != 0 &&
                strcmp(e->test, "depth_lemma_d5_compares_with_the_wrong_softmax") != 0 &&
                strcmp(e->test, "the_dimension_it_asks_for_is_above_64") != 0)
                assert_le(s.is, s.holds * (1 + 1e-9) + 1e-12);
        }
}

static bool listed(const char *name, size_t n)
{
    for (size_t k = 0; k < LISTS; k++)
        for (size_t i = 0; i < lists[k]->n; i++)
            if (strlen(lists[k]->v[i].test) == n && strncmp(lists[k]->v[i].test, name, n) == 0)
                return true;
    return false;
}

/* Whether one of the tests that a line names, `in_backticks`, is in the lists. */
static bool line_is_there(const char *line)
{
    const char *at = strrchr(line, '|'); /* the last cell is closed by it */
    while (at > line && at[-1] != '|') at--;
    for (at = strchr(at, '`'); at; at = strchr(at, '`')) {
        const size_t n = strcspn(at + 1, "`");
        if (listed(at + 1, n)) return true;
        at += n + 2;
    }
    return strstr(line, "needs ../shared") != NULL; /* Table 3: in `repro width` */
}

static void every_line_of_the_errata_is_computed(void **state)
{
    (void)state;
    char line[2000];
    size_t lines = 0;
    FILE *const f = fopen("docs/errata.md", "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        if (line[0] != '|' || strncmp(line, "| paper", 7) == 0 || line[1] == '-') continue;
        line[strcspn(line, "\n")] = 0;
        lines++;
        if (!line_is_there(line)) fail_msg("not in src/study/repro_errata_*.c: %s", line);
    }
    fclose(f);
    assert_true(lines > 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_counter_example_refutes_its_statement),
        cmocka_unit_test(every_line_of_the_errata_is_computed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
