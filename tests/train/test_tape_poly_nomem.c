/* Whatever allocation fails on the way, a pass with polynomial heads ends with PARE_ERR_MEMORY. */
#include "train/gradient.h"
#include "poly_model.h"
#include <fail_alloc.h>

enum { TOKENS = 2000 };

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    static float dy[TOKENS * VOCAB], grad[200000];
    static int64_t ids[TOKENS];
    const pare_input in = {.batch = 1, .tokens = TOKENS, .ids = ids};
    for (int causal = 0; causal < 2; causal++) {
        pare_model *const m = poly_model(causal, TOKENS, 0.1);
        pare_status st;
        uint64_t used = 0;
        long at = 0;
        do {
            poly_pass s = {.grad = grad};
            pare_err err = {0};
            fail_alloc_after(at);
            at += 1 + at / 8;
            st = poly_pass_run(&s, m, &in, PARE_F32, dy, NULL, &err);
            const bool hit = fail_alloc_hit();
            fail_alloc_after(-1);
            if (!st) used = pare_tape_poly_use(s.t, 1)->polynomial;
            poly_pass_free(&s);
            assert_true(st == (hit ? PARE_ERR_MEMORY : PARE_OK));
        } while (st != PARE_OK && at < 100000);
        assert_int_equal(st, PARE_OK);
        assert_true(used > 0);
        pare_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failing_allocation_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
