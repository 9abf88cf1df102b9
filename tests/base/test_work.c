/* Tests src/base/work.c. */
#include <pare_test.h>
#include "base/work.h"

static void the_first_failure_is_kept_with_its_message(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_work w = {.arena = pare_arena_new(), .err = &err};
    int *const p = pare_work_alloc(&w, 3, sizeof *p);
    assert_non_null(p);
    assert_int_equal(p[2], 0);
    pare_work_fail(&w, PARE_ERR_INPUT, "tensor %s has %d rows", "W", 3);
    pare_work_fail(&w, PARE_ERR_IO, "later");
    pare_work_keep(&w, PARE_ERR_MEMORY);
    assert_int_equal(w.st, PARE_ERR_INPUT);
    assert_int_equal(err.code, PARE_ERR_INPUT);
    assert_string_equal(err.msg, "tensor W has 3 rows");
    assert_null(pare_work_alloc(&w, 1, 1));
    pare_arena_free(w.arena);
}

static void a_callee_s_failure_is_kept_and_no_error_struct_is_needed(void **state)
{
    (void)state;
    pare_work w = {.arena = pare_arena_new()};
    pare_work_keep(&w, PARE_OK);
    assert_int_equal(w.st, PARE_OK);
    pare_work_keep(&w, PARE_ERR_NUMERIC);
    pare_work_fail(&w, PARE_ERR_INPUT, "later");
    assert_int_equal(w.st, PARE_ERR_NUMERIC);
    pare_arena_free(w.arena);
}

static void a_set_stop_flag_ends_it_at_the_next_allocation(void **state)
{
    (void)state;
    volatile int stop = 0;
    const pare_exec exec = {.threads = 1, .stop = &stop};
    pare_err err = {0};
    pare_work w = {.arena = pare_arena_new(), .exec = &exec, .err = &err};
    assert_non_null(pare_work_alloc(&w, 0, 8));
    stop = 1;
    assert_null(pare_work_alloc(&w, 1, 8));
    assert_int_equal(w.st, PARE_ERR_STOPPED);
    pare_arena_free(w.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_failure_is_kept_with_its_message),
        cmocka_unit_test(a_callee_s_failure_is_kept_and_no_error_struct_is_needed),
        cmocka_unit_test(a_set_stop_flag_ends_it_at_the_next_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
