/* Tests src/ticket/subset*.c. */
#include "subset_cases.h"
#include "ticket/subset_parts.h"
#include <string.h>

static pare_subset solve(uint64_t *mask, const int64_t *x, size_t n, int64_t t,
                         const pare_subset_opts *o)
{
    pare_err err;
    pare_subset out;
    assert_ok(pare_subset_sum(&out, mask, x, n, t, o, &err), &err);
    assert_true(out.error == chosen_sum(x, n, mask) - t);
    if (n % 64) assert_true(mask[n / 64] >> (n % 64) == 0);
    return out;
}

static void the_best_subset_is_found(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(11, 0);
    for (int it = 0; it < 10000; it++) {
        int64_t x[20];
        uint64_t mask[1];
        const size_t n = (size_t)below(&r, 19);
        const int64_t t = make_problem(x, n, it % KINDS, &r);
        const pare_subset s = solve(mask, x, n, t, NULL);
        assert_int_equal(s.proof, PARE_SUBSET_BEST);
        if (llabs(s.error) != by_force(x, n, t))
            fail_msg("case %d of kind %d, %zu items, seed 11", it, it % KINDS, n);
    }
}

/* Two lists of the same items are a code of their own; the windows are made small by force. */
static void four_lists_find_the_best_subset(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(12, 0);
    pare_subset_solver *s;
    assert_ok(pare_subset_new(&s, NULL), NULL);
    for (int it = 0; it < 600; it++) {
        int64_t x[34];
        uint64_t a[1] = {0}, b[1] = {0};
        const size_t n = 4 + (size_t)below(&r, it % 20 ? 18 : 30);
        const int64_t t = make_problem(x, n, it % KINDS, &r);
        subset_job two = {.x = x, .n = n, .target = t, .mask = a};
        subset_job four = {.x = x, .n = n, .target = t, .error = -t, .mask = b};
        bool all;
        assert_true(subset_meet_middle(s, &two));
        assert_true(subset_four_lists(s, &four, 0, 0, &all));
        if (llabs(four.error) != llabs(two.error))
            fail_msg("case %d of kind %d, %zu items, seed 12", it, it % KINDS, n);
        assert_true(all || four.error == 0);
        assert_true(four.error == chosen_sum(x, n, b) - t);
    }
    pare_subset_free(s);
}

static void an_exact_search_of_many_items_agrees_with_a_planted_subset(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(13, 0);
    int64_t x[44], t = 0;
    for (size_t k = 0; k < 44; k++) {
        x[k] = (source_item(&r) | 1) - 1; /* all sums even */
        if (k % 3 == 0) t += x[k];
    }
    uint64_t mask[1];
    const pare_subset_opts exact = {.exact = true};
    pare_subset s = solve(mask, x, 44, t, &exact);
    assert_true(s.error == 0 && s.proof == PARE_SUBSET_BEST);
    s = solve(mask, x, 38, t + 1, &exact); /* two lists */
    assert_int_equal(s.proof, PARE_SUBSET_BEST);
    assert_true(s.error != 0);
}

/* Medians of docs/theory/ticket.md "What a search reaches (measured, not proven)", with a factor of
 * three to spare. */
static void heuristics_are_as_good_as_they_should_be(void **state)
{
    (void)state;
    static const struct {
        size_t n;
        double median;
    } want[] = {{32, 1.3e-7}, {64, 1e-9}, {128, 1e-9}, {200, 1e-9}, {1000, 1e-9}};
    pare_rng r = pare_rng_at(14, 0);
    for (size_t c = 0; c < sizeof want / sizeof *want; c++) {
        int near = 0;
        for (int it = 0; it < 15; it++) {
            int64_t x[1000];
            uint64_t mask[16];
            for (size_t k = 0; k < want[c].n; k++) x[k] = source_item(&r);
            const pare_subset s = solve(mask, x, want[c].n, source_item(&r) / 2, NULL);
            near += fabs((double)s.error) * 0x1p-48 <= want[c].median;
        }
        if (near < 8)
            fail_msg("%zu items: %d of 15 are within %g, seed 14", want[c].n, near, want[c].median);
    }
}

/* Each by itself: the other methods would hide a poor one. */
static void differencing_and_the_coarse_choice_come_close(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(17, 0);
    pare_subset_solver *s;
    assert_ok(pare_subset_new(&s, NULL), NULL);
    int near = 0;
    for (int it = 0; it < 15; it++) {
        int64_t x[200], rest, half = 0;
        uint64_t mask[4] = {0};
        for (size_t k = 0; k < 200; k++) x[k] = source_item(&r);
        subset_job j = {.x = x, .n = 200, .target = source_item(&r) / 2, .mask = mask};
        j.error = -j.target;
        assert_true(subset_differencing(s, &j));
        assert_true(j.error == chosen_sum(x, 200, mask) - j.target);
        near += fabs((double)j.error) * 0x1p-48 < 1e-8;
        assert_true(subset_coarse(s, &j, 24, &rest, mask));
        assert_true(rest == j.target - chosen_sum(x, 200, mask));
        for (size_t k = 176; k < 200; k++) half += x[k];
        assert_le(fabs((double)(rest - half / 2)) * 0x1p-48, 0.02); /* the smallest of 176 items */
    }
    assert_le(8, near);
    pare_subset_free(s);
}

static void enough_is_enough(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(15, 0);
    int64_t x[50];
    uint64_t mask[1];
    for (size_t k = 0; k < 50; k++) x[k] = source_item(&r);
    const pare_subset_opts some = {.tolerance = (int64_t)1 << 30},
                           sharp = {.tolerance = (int64_t)1 << 12, .exact = true};
    pare_subset s = solve(mask, x, 50, 1 << 20, &some);
    assert_int_equal(s.proof, PARE_SUBSET_REACHED);
    assert_true(llabs(s.error) <= some.tolerance);
    s = solve(mask, x, 50, 1 << 20, &sharp);
    assert_true(s.proof == PARE_SUBSET_REACHED || s.error == 0);
    assert_true(llabs(s.error) <= sharp.tolerance);
}

static void a_solver_can_be_used_again(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(16, 0);
    pare_subset_solver *s;
    assert_ok(pare_subset_new(&s, NULL), NULL);
    for (int it = 0; it < 200; it++) {
        int64_t x[90];
        uint64_t mask[2], again[2];
        pare_subset a, b;
        const size_t n = (size_t)below(&r, 91);
        const int64_t t = make_problem(x, n, it % KINDS, &r);
        assert_ok(pare_subset_solve(s, &a, mask, x, n, t, NULL, NULL), NULL);
        b = solve(again, x, n, t, NULL);
        assert_true(a.error == b.error && a.proof == b.proof);
        assert_memory_equal(mask, again, (n + 63) / 64 * sizeof *mask);
    }
    pare_subset_free(s);
}

static void what_is_too_large_is_refused_by_name(void **state)
{
    (void)state;
    int64_t x[3] = {1, PARE_SUBSET_ITEM + 1, 3};
    int64_t *const many = calloc(PARE_SUBSET_ITEMS + 1, sizeof *many);
    uint64_t mask[1] = {77};
    pare_subset s = {.error = 5};
    pare_err err;
    assert_status(pare_subset_sum(&s, mask, x, 3, 0, NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "item 1");
    assert_true(mask[0] == 77 && s.error == 5);
    x[1] = INT64_MIN;
    assert_status(pare_subset_sum(&s, mask, x, 3, 0, NULL, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_subset_sum(&s, mask, x, 1, PARE_SUBSET_TARGET + 1, NULL, &err),
                  PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "target");
    assert_status(pare_subset_sum(&s, mask, x, 1, 0, &(pare_subset_opts){.tolerance = -1}, &err),
                  PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "tolerance");
    assert_status(pare_subset_sum(&s, mask, many, PARE_SUBSET_ITEMS + 1, 0, NULL, &err),
                  PARE_ERR_INPUT, &err);
    assert_status(pare_subset_sum(&s, mask, many, PARE_SUBSET_EXACT + 1, 0,
                                  &(pare_subset_opts){.exact = true}, &err),
                  PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "61 items would take 2^30 steps");
    free(many);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_subset_is_found),
        cmocka_unit_test(four_lists_find_the_best_subset),
        cmocka_unit_test(an_exact_search_of_many_items_agrees_with_a_planted_subset),
        cmocka_unit_test(heuristics_are_as_good_as_they_should_be),
        cmocka_unit_test(differencing_and_the_coarse_choice_come_close),
        cmocka_unit_test(enough_is_enough),
        cmocka_unit_test(a_solver_can_be_used_again),
        cmocka_unit_test(what_is_too_large_is_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
