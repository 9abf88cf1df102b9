/* Every allocation of a checkpoint's writer and reader fails once: a status, no crash, no leak. */
#include "checkpoint_sample.h"
#include <fail_alloc.h>

static void any_failing_allocation_is_a_status(void **state)
{
    (void)state;
    char dir[200], path[300];
    sample_state a, b, zero;
    cJSON *const run = sample_run(0.1, "x");
    test_mkdir(dir);
    test_path(path, dir, "run.ckpt");
    fail_alloc_in_json();
    sample_fill(&a, 1);
    sample_fill(&zero, 0);
    for (int reading = 0; reading < 2; reading++)
        for (long n = 0;; n++) {
            pare_err err = {0};
            sample_fill(&b, 0);
            fail_alloc_once(n);
            const pare_status st = reading ? checkpoint_read(&b.c, path, run, SAMPLE_STEPS, &err)
                                           : checkpoint_write(path, &a.c, run, &err);
            const bool hit = fail_alloc_hit();
            fail_alloc_once(-1);
            if (!hit) {
                assert_ok(st, &err);
                assert_true(n > 5);
                break;
            }
            assert_status(st, PARE_ERR_MEMORY, &err);
            if (reading) assert_same_state(&b, &zero);
            if (!reading) assert_false(pare_file_exists(path));
        }
    assert_same_state(&a, &b);
    cJSON_Delete(run);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_failing_allocation_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
