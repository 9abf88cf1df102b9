/* Whatever allocation fails on the way, parameters and tape end with PARE_ERR_MEMORY. */
#include "gradient_cases.h"
#include <fail_alloc.h>

static pare_status all(const pare_model *m, const pare_input *in, pare_dtype t, const void *dy,
                       void *grad)
{
    const pare_exec x = {.threads = 2};
    const pare_mode mode = {.training = true, .dropout = 0.1, .momentum = 0.1};
    pare_params *p = NULL;
    pare_tape *tape = NULL;
    pare_err err = {0};
    pare_status st = pare_params_new(&p, m, t, &err);
    if (!st) st = pare_tape_new(&tape, p, &x, &err);
    if (!st) st = pare_tape_forward(tape, in, &mode, NULL, &err);
    if (!st) st = pare_tape_backward(tape, dy, NULL, grad, &err);
    pare_tape_free(tape);
    pare_params_free(p);
    return st;
}

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        pare_model *const m = some_model(seed, 1);
        pare_input in = some_input(m, seed, 1, 0);
        if (seed % 3 == 0 && !many_rows(m, &in, seed)) in = some_input(m, seed, 1, 0);
        const pare_size size = pare_model_size(m, 1, 0);
        double *const dy = calloc(pare_output_rows(m, &in) * pare_model_outputs(m), sizeof *dy);
        double *const grad = calloc(size.parameters, sizeof *grad);
        pare_status st;
        long at = 0;
        do {
            fail_alloc_after(at);
            at += 1 + at / 16;
            st = all(m, &in, seed % 2 ? PARE_F32 : PARE_F64, dy, grad);
            const bool hit = fail_alloc_hit();
            fail_alloc_after(-1);
            assert_true(st == (hit ? PARE_ERR_MEMORY : PARE_OK));
        } while (st != PARE_OK && at < 100000);
        assert_int_equal(st, PARE_OK);
        assert_true(at > 5);
        free(dy);
        free(grad);
        pare_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_failing_allocation_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
