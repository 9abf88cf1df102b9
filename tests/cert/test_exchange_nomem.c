/* Whatever allocation fails while new inputs are spoken of: PARE_ERR_MEMORY, and no leak. */
#include <enclose_models.h>
#include <fail_alloc.h>
#include <pare/exchange.h>

static pare_status say(pare_arena *a, const pare_model *f, const pare_inputs *set, pare_err *err)
{
    static const pare_statement asked[] = {{.name = PARE_NEW_INPUT ", largest errors left out: 1"},
                                           {.name = PARE_NEW_SHARE ", confidence 0.95"}};
    pare_statement said[2];
    pare_hypothesis supposed[1];
    pare_cert cert = {.statements = said, .hypotheses = supposed, .proven = 1};
    const pare_data_ref data = {.kind = "file"};
    const pare_status st = pare_exchange_say(&cert, a, &data, asked, 2, f, f, set, NULL, err);
    if (!st) assert_true(cert.nstatements == 2 && cert.nhypotheses == 1);
    return st;
}

static void every_failing_allocation_is_an_error(void **state)
{
    (void)state;
    for (uint64_t s = 0; s < 8; s++) { /* once with all later ones refused, once without */
        pare_model *const m = some_model(s / 2, 1);
        pare_input in[2] = {some_input(m, s / 2, 1, 0), some_input(m, s / 2, 1, 0)};
        const pare_inputs set = {2, in};
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
