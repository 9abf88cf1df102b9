/* Tests src/ticket/subset*.c when memory is out. */
#include "subset_cases.h"
#include "fail_alloc.h"

static void every_refused_allocation_is_said(void **state)
{
    (void)state;
    static const size_t sizes[] = {5, 30, 50, 200};
    for (size_t c = 0; c < sizeof sizes / sizeof *sizes; c++) {
        int64_t x[200];
        uint64_t mask[4];
        pare_rng r = pare_rng_at(3, c);
        for (size_t k = 0; k < sizes[c]; k++) x[k] = source_item(&r);
        const pare_subset_opts o = {.exact = sizes[c] == 30};
        long refused = 0;
        for (;; refused++) {
            pare_subset s;
            fail_alloc_once(refused);
            const pare_status st = pare_subset_sum(&s, mask, x, sizes[c], 1 << 20, &o, NULL);
            const bool hit = fail_alloc_hit();
            fail_alloc_after(-1);
            assert_int_equal(st, hit ? PARE_ERR_MEMORY : PARE_OK);
            if (!hit) break;
        }
        assert_true(refused >= 2); /* the solver, and its cells */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_refused_allocation_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
