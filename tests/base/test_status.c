/* Tests src/base/status.c. */
#include <pare_test.h>

static void fail_returns_the_code_with_and_without_words(void **state)
{
    (void)state;
    pare_err err = {0};
    assert_int_equal(pare_fail(NULL, PARE_ERR_IO, "x"), PARE_ERR_IO);
    assert_int_equal(pare_fail(&err, PARE_ERR_INPUT, "%s has %d rows", "W", 3), PARE_ERR_INPUT);
    assert_int_equal(err.code, PARE_ERR_INPUT);
    assert_string_equal(err.msg, "W has 3 rows");
    assert_int_equal(pare_no_memory(&err), PARE_ERR_MEMORY);
    assert_int_equal(err.code, PARE_ERR_MEMORY);
}

static void prefix_goes_before_and_the_old_message_may_be_an_argument(void **state)
{
    (void)state;
    pare_err err = {0};
    (void)pare_fail(&err, PARE_ERR_INPUT, "bad shape");
    pare_err_prefix(&err, "model.st");
    assert_string_equal(err.msg, "model.st: bad shape");
    assert_int_equal(err.code, PARE_ERR_INPUT);
    (void)pare_fail(&err, PARE_ERR_IO, "again: %s", err.msg);
    assert_string_equal(err.msg, "again: model.st: bad shape");
    pare_err_prefix(NULL, "nobody");
}

static void a_long_message_is_cut_inside_the_struct(void **state)
{
    (void)state;
    pare_err err = {0};
    char big[2000];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    (void)pare_fail(&err, PARE_ERR_INPUT, "%s", big);
    assert_int_equal(strlen(err.msg), sizeof err.msg - 1);
    pare_err_prefix(&err, "file");
    assert_int_equal(strncmp(err.msg, "file: xxx", 9), 0);
}

static void exit_codes_are_those_of_the_design(void **state)
{
    (void)state;
    const int want[] = {0, 1, 2, 2, 2, 2, 2, 3, 4};
    for (int i = 0; i < 9; i++) assert_int_equal(pare_exit_code((pare_status)i), want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fail_returns_the_code_with_and_without_words),
        cmocka_unit_test(prefix_goes_before_and_the_old_message_may_be_an_argument),
        cmocka_unit_test(a_long_message_is_cut_inside_the_struct),
        cmocka_unit_test(exit_codes_are_those_of_the_design),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
