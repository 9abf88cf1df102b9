/* Tests src/train/tape_order.c when memory is out: with an order of its own a tape ends with
 * PARE_ERR_MEMORY, too. */
#include "order_cases.h"
#include <fail_alloc.h>

static pare_status all(pare_params *p, const pare_input *in, const float *dy,
                       const void *const *dstream)
{
    static const pare_exec one = {.threads = 1};
    const pare_mode mode = {.training = true, .momentum = 0.1};
    pare_tape *tape = NULL;
    pare_err err = {0};
    pare_status st = pare_tape_new(&tape, p, &one, &err);
    if (!st) st = pare_tape_forward(tape, in, &mode, NULL, &err);
    if (!st) st = pare_tape_backward(tape, dy, dstream, NULL, &err);
    if (!st) assert_non_null(tape->order);
    pare_tape_free(tape);
    return st;
}

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    pare_model *const m = wide_model();
    pare_params *p;
    pare_err err = {0};
    uint32_t name[NODES];
    for (size_t i = 0; i < NODES; i++) name[i] = (uint32_t)i;
    const pare_graph g = groups_graph(a, name);
    pare_input in = {.batch = 1, .tokens = NODES, .width = FEATURES, .graph = &g};
    in.x = pare_alloc(a, NODES * FEATURES, sizeof *in.x);
    float *const dy = pare_alloc(a, NODES * 3, sizeof *dy);
    float *const given = pare_alloc(a, NODES * WIDE, sizeof *given);
    const void *const dstream[] = {NULL, given, given};
    assert_ok(pare_params_new(&p, m, PARE_F32, &err), &err);
    pare_status st;
    long at = 0;
    do {
        fail_alloc_after(at++);
        st = all(p, &in, dy, dstream);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        assert_true(st == (hit ? PARE_ERR_MEMORY : PARE_OK));
    } while (st != PARE_OK && at < 1000);
    assert_true(at > 5 && st == PARE_OK);
    pare_params_free(p);
    pare_model_free(m);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failing_allocation_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
