/* Tests studies/ticket_*.c: fits by hand, and the shapes of figures 4 to 6 of Otsuka 2025.
 */
#include "../../studies/popup_figures.h"
#include "../../studies/study_ticket.h"
#include <pare_test.h>

static void fits_find_what_was_put_in(void **state)
{
    const double n[] = {4, 8, 16, 24}, v[] = {3, 1, 2, 10};
    double y[4], odd[3] = {5, 1, 3}, even[4];
    (void)state;
    for (size_t i = 0; i < 4; i++) y[i] = .7 * exp(-.05 * n[i]), even[i] = v[i];
    const decay d = decay_of(n, y, 4);
    assert_near(d.gamma, .7, 1e-9);
    assert_near(d.delta, .05, 1e-9);
    assert_near(log_rate(n, y, 4), .05, 1e-12);
    assert_near(median_of(odd, 3), 3, 0);
    assert_near(median_of(even, 4), 2.5, 0);
}

/* The same source: donors and orientation never cost anything on average, and a source of another
 * range cannot reach the target. */
static void ours_is_below_the_papers_on_the_same_sources(void **state)
{
    pare_err err = {0};
    circle_target f, g;
    double sum[WAYS] = {0};
    (void)state;
    circle_target_of(&f, 1, 0);
    for (uint64_t seed = 0; seed < 12; seed++)
        for (circle_way w = 0; w < WAYS; w++) {
            double e;
            assert_ok(circle_ticket(&g, &f, 24, w, seed, NULL, &err), &err);
            assert_ok(circle_error(&e, &f, &g, 4, 50, 1, &err), &err);
            sum[w] += e;
        }
    assert_true(sum[WAY_OURS] < .3 * sum[WAY_PAPER]);
    assert_true(sum[WAY_ORIENTATION] <= sum[WAY_PAPER]);
    assert_true(sum[WAY_XAVIER] > 2 * sum[WAY_PAPER]);
}

/* A target that is met exactly errs by nothing, at any length. */
static void the_target_itself_errs_by_nothing(void **state)
{
    pare_err err = {0};
    circle_target f;
    double e;
    (void)state;
    for (size_t i = 0; i < CIRCLE_TARGETS; i++) {
        circle_target_of(&f, i, 3);
        assert_ok(circle_error(&e, &f, &f, 9, 20, 1, &err), &err);
        assert_true(e == 0);
    }
}

/* ---- the rules of figures 4, 6, 7 and 8 ------------------------------------------------------ */

static void a_fit_is_the_printed_one_as_a_whole(void **state)
{
    (void)state;
    assert_true(fit_is_printed((decay){.8, .06}));
    assert_true(fit_is_printed((decay){.91, .0665}) && fit_is_printed((decay){.69, .0535}));
    assert_false(fit_is_printed((decay){.93, .06}) || fit_is_printed((decay){.67, .06}));
    assert_false(fit_is_printed((decay){.8, .0668}) || fit_is_printed((decay){.8, .0532}));
    assert_false(fit_is_printed((decay){NAN, .06}) || fit_is_printed((decay){.8, NAN}));
}

/* Four curves of one delta fit; one of another delta beside three does not. The table's verdict
 * follows. */
static void only_gamma_changes_or_it_does_not(void **state)
{
    enum { CURVES = 4, COUNT = 7, EACH = 3 * 2 * COUNT };
    static const double n[COUNT] = {8, 16, 24, 32, 40, 56, 72};
    (void)state;
    for (int other = 0; other < 2; other++) {
        double y[CURVES][COUNT], r2[CURVES], v[CURVES][EACH];
        pare_err err = {0};
        pare_arena *const a = pare_arena_new();
        numbers part[CURVES];
        study_table table[1];
        study r = {.arena = a, .tables = table};
        table_writer s = {.r = &r, .err = &err};
        r.curves = pare_alloc(a, 20, sizeof *r.curves);
        for (size_t c = 0; c < CURVES; c++)
            for (size_t i = 0; i < COUNT; i++) {
                const double delta = other && c == 3 ? .004 : .05;
                y[c][i] = ((double)c + 1) * exp(-delta * n[i]);
                for (size_t ours = 0; ours < 2; ours++)
                    memcpy(v[c] + 3 * (ours * COUNT + i), (double[]){y[c][i], 9, 1},
                           3 * sizeof(double));
            }
        const double delta = shared_delta(r2, n, y[0], CURVES, COUNT);
        double least = INFINITY;
        for (size_t c = 0; c < CURVES; c++) least = fmin(least, r2[c]);
        if (!other) assert_near(delta, .05, 1e-9);
        if (other)
            assert_true(least < SHARED_R2);
        else
            assert_near(least, 1, 1e-9);
        for (size_t c = 0; c < CURVES; c++) part[c] = (numbers){.a = a, .v = v[c], .n = EACH};
        ticket_blocks.table(&s, part, CURVES);
        assert_ok(s.st, &err);
        const table_row *const row = &s.t->rows[s.t->nrows - 2];
        assert_string_equal(row->claim, "only gamma changes");
        assert_int_equal(row->source, ROW_PRINTED);
        assert_int_equal(row->verdict, other ? DIFFERS : REPRODUCED);
        assert_near(row->ours, least, 0);
        pare_arena_free(a);
    }
}

/* The target that was chosen after seeing the answer reproduces nothing, whatever its fit. */
static void what_was_chosen_afterwards_is_not_decided(void **state)
{
    enum { MANY = 1 + 2 * (3 * 9 + 2 * 7) };
    static const double widths[] = {4, 8, 12, 16, 20, 24, 32, 40, 48};
    double v[MANY] = {0};
    pare_err err = {0};
    pare_arena *const a = pare_arena_new();
    numbers part[CIRCLE_TARGETS];
    study_table table[1];
    study r = {.arena = a, .tables = table};
    table_writer s = {.r = &r, .err = &err};
    (void)state;
    r.curves = pare_alloc(a, 30, sizeof *r.curves);
    for (size_t w = 0, at = 1; w < 5; w++)
        for (size_t i = 0; i < (w < 3 ? 9u : 7u); i++, at += 2)
            v[at] = v[at + 1] = .8 * exp(-.06 * widths[i]); /* the printed fit itself */
    for (size_t i = 0; i < CIRCLE_TARGETS; i++) part[i] = (numbers){.a = a, .v = v, .n = MANY};
    ticket_rates.table(&s, part, CIRCLE_TARGETS);
    assert_ok(s.st, &err);
    for (size_t i = 0; i < CIRCLE_TARGETS; i++)
        for (size_t k = 0; k < 2; k++) {
            const table_row *const row = &s.t->rows[8 * i + k];
            assert_int_equal(row->source, ROW_PRINTED);
            assert_int_equal(row->verdict, i == CHOSEN_AFTER ? UNDECIDED : REPRODUCED);
            assert_contains(row->note, i == CHOSEN_AFTER ? "chosen after seeing" : "(.6, .8)");
        }
    pare_arena_free(a);
}

static void small_runs_decide_nothing_of_figures_7_and_8(void **state)
{
    (void)state;
    assert_int_equal(popup_verdict(1, .01, false), UNDECIDED);
    assert_int_equal(popup_verdict(-1, .01, false), UNDECIDED);
    assert_int_equal(popup_verdict(.021, .01, true), REPRODUCED);
    assert_int_equal(popup_verdict(.019, .01, true), UNDECIDED);
    assert_int_equal(popup_verdict(-.021, .01, true), DIFFERS);
    assert_int_equal(popup_verdict(NAN, .01, true), UNDECIDED);
}

static numbers run_part(const experiment *e, size_t part, pare_arena *a)
{
    pare_err err = {0};
    const setting s = {.seed = 0};
    trial t = {.s = &s, .part = part, .a = a, .err = &err, .out = {.a = a}};
    assert_ok(e->run(&t), &err);
    assert_false(t.out.no_memory);
    return t.out;
}

/* The mean's rate falls with the size of the target (every second size here). */
static void the_rate_of_the_mean_falls_with_the_size(void **state)
{
    static const double widths[] = {4, 8, 12, 16, 20, 24, 32, 40, 48};
    pare_arena *const a = pare_arena_new();
    double last = INFINITY;
    (void)state;
    assert_non_null(a);
    for (size_t p = 0; p < ticket_sizes.parts; p += 2) {
        const numbers v = run_part(&ticket_sizes, p, a);
        assert_int_equal(v.n, 9);
        const double rate = decay_of(widths, v.v, 9).delta;
        assert_true(rate < last);
        last = rate;
    }
    pare_arena_free(a);
}

/* The median loses one bit an item, two items a unit: log 2 / 2, for targets within reach. */
static void the_median_loses_one_bit_an_item(void **state)
{
    static const double widths[] = {4, 8, 12, 16, 20, 24, 32, 40, 48};
    enum { WIDTHS = sizeof widths / sizeof *widths, MANY = 41 };
    pare_err err = {0};
    (void)state;
    for (size_t which = 0; which < CIRCLE_TARGETS; which += 2) { /* trained, random */
        circle_target f, g;
        double median[WIDTHS], e[MANY];
        circle_target_of(&f, which, 0);
        for (size_t i = 0; i < WIDTHS; i++) {
            for (uint64_t s = 0; s < MANY; s++) {
                assert_ok(circle_ticket(&g, &f, (size_t)widths[i], WAY_PAPER, s, NULL, &err), &err);
                assert_ok(circle_error(&e[s], &f, &g, 4, 50, 1, &err), &err);
            }
            median[i] = median_of(e, MANY);
        }
        const double rate = log_rate(widths, median, WIDTHS);
        print_message("target %zu: the median falls by e^-%.3f a unit\n", which, rate);
        assert_near(rate, .347, .05);
    }
}

/* Figure 5: bounded in the number of tokens, by a bound that does not know it. */
static void no_length_breaks_the_bound(void **state)
{
    pare_arena *const a = pare_arena_new();
    (void)state;
    assert_non_null(a);
    const numbers v = run_part(&ticket_lengths, 2, a);
    assert_int_equal(v.n, 7);
    assert_true(v.v[4] <= 1.2 * v.v[0] && v.v[5] > 0 && v.v[6] <= 1);
    pare_arena_free(a);
}

/* Figure 6: the error falls with n, and the certificate holds for every source. */
static void the_certificate_of_blocks_holds(void **state)
{
    pare_arena *const a = pare_arena_new();
    (void)state;
    assert_non_null(a);
    const numbers v = run_part(&ticket_blocks, 1, a);
    assert_int_equal(v.n, 3 * 2 * 7);
    for (size_t i = 0; i < v.n; i += 3) {
        assert_true(v.v[i + 2] == 1);
        assert_true(v.v[i + 1] >= v.v[i] * .5);
    }
    assert_true(v.v[3 * 6] < .3 * v.v[0]); /* n = 72 against 8 */
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fits_find_what_was_put_in),
        cmocka_unit_test(ours_is_below_the_papers_on_the_same_sources),
        cmocka_unit_test(the_target_itself_errs_by_nothing),
        cmocka_unit_test(a_fit_is_the_printed_one_as_a_whole),
        cmocka_unit_test(only_gamma_changes_or_it_does_not),
        cmocka_unit_test(what_was_chosen_afterwards_is_not_decided),
        cmocka_unit_test(small_runs_decide_nothing_of_figures_7_and_8),
        cmocka_unit_test(the_rate_of_the_mean_falls_with_the_size),
        cmocka_unit_test(the_median_loses_one_bit_an_item),
        cmocka_unit_test(no_length_breaks_the_bound),
        cmocka_unit_test(the_certificate_of_blocks_holds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
