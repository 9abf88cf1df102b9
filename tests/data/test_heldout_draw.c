/* Tests src/data/heldout_draw.c: the one rule for held-out data. */
#include <pare_test.h>
#include "data/heldout_draw.h"
#include <string.h>

enum { MOST = 2000 };
static pare_input in[MOST];

static pare_heldout_draw draw(pare_arena *a, size_t n, size_t want, bool alone, uint64_t seed)
{
    pare_heldout_draw d;
    pare_err err;
    assert_ok(pare_heldout_draw_make(&d, a, &(pare_inputs){n, in}, want, alone, seed, &err), &err);
    return d;
}

/* Inputs of one document each, or of documents of three windows. */
static void fill(size_t windows)
{
    for (size_t i = 0; i < MOST; i++)
        in[i] = (pare_input){.batch = 1, .tokens = 4, .continues = i % windows > 0};
}

static void the_order_is_a_permutation_that_only_the_seed_chooses(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    fill(1);
    const pare_heldout_draw d = draw(a, 1000, 128, false, 7), again = draw(a, 1000, 128, false, 7),
                            other = draw(a, 1000, 128, false, 8);
    bool there[1000] = {false};
    for (size_t i = 0; i < 1000; i++) there[d.order[i]] = true;
    for (size_t i = 0; i < 1000; i++) assert_true(there[i]);
    assert_memory_equal(d.order, again.order, 1000 * sizeof *d.order);
    assert_memory_not_equal(d.order, other.order, 1000 * sizeof *d.order);
    assert_int_equal(d.held, 128);
    /* From all over the file: a rule that takes the last ones has none in the first half. */
    size_t early = 0;
    for (size_t i = 0; i < d.held; i++) early += d.order[i] < 500;
    assert_in_range(early, 40, 88);
    pare_arena_free(a);
}

/* A longer set to prove on has the shorter one in it: the metric stays the same. */
static void asking_for_more_keeps_those_that_were_drawn(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    fill(1);
    const pare_heldout_draw few = draw(a, 2000, 128, false, 3), many = draw(a, 2000, 400, false, 3);
    assert_int_equal(many.held, 400);
    assert_memory_equal(few.order, many.order, 128 * sizeof *few.order);
    pare_arena_free(a);
}

static void at_most_a_quarter_is_held_out_and_of_a_file_of_its_own_all(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    fill(1);
    const size_t n[] = {1, 2, 3, 4, 7, 8, 511, 512, 2000},
                 held[] = {1, 1, 1, 1, 1, 2, 127, 128, 128};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++)
        assert_int_equal(draw(a, n[i], 128, false, i).held, held[i]);
    const pare_heldout_draw all = draw(a, 100, 128, true, 5);
    assert_int_equal(all.held, 100);
    size_t moved = 0; /* drawn as well: a smaller number to prove on are the first of the draw */
    for (size_t i = 0; i < 100; i++) moved += all.order[i] != i;
    assert_true(moved > 50);
    assert_int_equal(draw(a, 2000, 128, true, 5).held, 128);
    const pare_heldout_draw graphs = draw(a, 100, SIZE_MAX, true, 5);
    assert_int_equal(graphs.held, 100);
    for (size_t i = 0; i < 100; i++) assert_int_equal(graphs.order[i], i); /* as they come */
    pare_arena_free(a);
}

static void documents_stay_whole(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    pare_err err;
    size_t *first, *every, *rest, nfirst, n, nrest;
    fill(3);
    const pare_heldout_draw d = draw(a, 120, 128, false, 1);
    assert_true(d.documents && d.n == 40 && d.held == 10);
    assert_ok(pare_heldout_numbers(&first, &nfirst, a, &d, 0, d.held, true, &err), &err);
    assert_ok(pare_heldout_numbers(&every, &n, a, &d, 0, d.held, false, &err), &err);
    assert_ok(pare_heldout_numbers(&rest, &nrest, a, &d, d.held, d.n - d.held, false, &err), &err);
    assert_true(nfirst == 10 && n == 30 && nrest == 90);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(every[i], first[i / 3] + i % 3);
        for (size_t k = 0; k < nrest; k++) assert_true(rest[k] / 3 != every[i] / 3);
    }
    /* Too few documents: windows are drawn. */
    const pare_heldout_draw w = draw(a, 3 * 15, 128, false, 1);
    assert_true(!w.documents && w.n == 45 && w.held == 11);
    pare_arena_free(a);
}

static void targets_and_values_go_with_their_inputs(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    pare_err err;
    static const int64_t t[3] = {10, 11, 12};
    const int64_t *const target[3] = {&t[0], &t[1], &t[2]};
    const double value[6] = {0, 1, 2, 3, 4, 5};
    const size_t numbers[2] = {2, 0};
    fill(1);
    for (size_t i = 0; i < 3; i++) in[i].tokens = i + 1;
    const pare_dataset d = {.inputs = {3, in},
                            .target = target,
                            .value = value,
                            .nvalues = 2,
                            .task = PARE_TASK_VALUES};
    pare_dataset two;
    assert_ok(pare_dataset_pick(&two, a, &d, numbers, 2, &err), &err);
    assert_true(two.inputs.n == 2 && two.inputs.in[0].tokens == 3 && two.inputs.in[1].tokens == 1);
    assert_true(*two.target[0] == 12 && *two.target[1] == 10);
    assert_true(two.value[0] == 4 && two.value[1] == 5 && two.value[2] == 0 && two.value[3] == 1);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_order_is_a_permutation_that_only_the_seed_chooses),
        cmocka_unit_test(asking_for_more_keeps_those_that_were_drawn),
        cmocka_unit_test(at_most_a_quarter_is_held_out_and_of_a_file_of_its_own_all),
        cmocka_unit_test(documents_stay_whole),
        cmocka_unit_test(targets_and_values_go_with_their_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
