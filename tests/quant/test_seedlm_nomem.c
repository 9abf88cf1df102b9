/* Tests src/quant/seedlm.c and src/model/coded_seeds.c when memory is out. */
#include "fail_alloc.h"
#include "quant/seedlm.h"
#include <pare_test.h>

static void every_refused_allocation_is_said(void **state)
{
    (void)state;
    static const float w[20] = {1, -2, 3, 0.5f};
    const quant_job job = {.rows = 4, .cols = 5, .w = w, .bits = 4};
    long refused = 0;
    for (;; refused++) {
        pare_arena *const a = pare_arena_new();
        pare_coded c;
        float *out = NULL;
        pare_err err = {0};
        assert_non_null(a);
        fail_alloc_once(refused);
        const pare_status st = seedlm_matrix(&c, &out, a, &job, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        pare_arena_free(a);
        assert_int_equal(st, hit ? PARE_ERR_MEMORY : PARE_OK);
        if (!hit) break;
    }
    assert_true(refused >= 4); /* scratch, seeds, bases, bytes */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_refused_allocation_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
