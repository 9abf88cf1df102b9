/* Whatever allocation fails while new inputs are spoken of: PARE_ERR_MEMORY, and no leak. */
#include <prove_each.h>
#include <enclose_models.h>
#include <fail_alloc.h>
#include "cert/conformal.h"
#include "cert/prove.h"

static pare_status say(pare_arena *a, const pare_model *f, const pare_inputs *set, pare_err *err)
{
    pare_cert cert = {.proven = 1};
    pare_data_ref data = {.kind = "file", .candidates = 1};
    pare_status st = pare_input_hashes_make(&data.heldout, a, set, 0, err);
    if (!st) st = pare_heldout_check(&data, a, set, err);
    if (!st) st = add_new_inputs(&cert, a, &data, f, f, set, err);
    if (!st) assert_true(cert.nclaims >= 5);
    return st;
}

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 2; s++) { /* once with all later ones refused, once without */
        pare_model *const m = some_model(s / 2, 1);
        pare_input in[40]; /* one of them is left out, so that each is proven by itself */
        for (size_t i = 0; i < 40; i++) in[i] = some_input(m, s / 2, 1, 0);
        for (size_t i = 0; i < 40; i++) in[i].batch = 1;
        const pare_inputs set = {40, in};
        pare_status st;
        long n = 0;
        do {
            pare_err err = {0};
            pare_arena *const a = pare_arena_new();
            assert_non_null(a);
            (s % 2 ? fail_alloc_once : fail_alloc_after)(n++);
            st = say(a, m, &set, &err);
            const bool hit = fail_alloc_hit();
            fail_alloc_after(-1);
            assert_true(st == (hit ? PARE_ERR_MEMORY : PARE_OK));
            pare_arena_free(a);
        } while (st != PARE_OK && n < 10000);
        assert_int_equal(st, PARE_OK);
        assert_true(n > 3);
        pare_model_free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failing_allocation_is_an_error)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
