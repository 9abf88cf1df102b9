/* The n-th allocation fails, for every n: each importer says so and leaves nothing behind. */
#include "sample_models.h"
#include "../support/fail_alloc.h"

static void load_without_memory(const char *path)
{
    bool ran_out = true;
    for (long n = 0; ran_out; n++) {
        pare_model *m = NULL;
        pare_err err = {0};
        fail_alloc_after(n);
        const pare_status st = pare_model_load(&m, path, &err);
        ran_out = fail_alloc_hit();
        fail_alloc_after(-1);
        assert_int_equal(st, ran_out ? PARE_ERR_MEMORY : PARE_OK);
        assert_int_equal(m == NULL, ran_out);
        pare_model_free(m);
        assert_true(n < 100000);
    }
}

static void importing_without_memory_is_an_error_and_no_crash(void **state)
{
    (void)state;
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "a");
    sample_gpt2(path);
    load_without_memory(path);
    sample_bin(path);
    load_without_memory(path);
    sample_npz(path);
    load_without_memory(path);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(importing_without_memory_is_an_error_and_no_crash),
    };
    fail_alloc_in_json();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
