/* Every allocation of files.c fails once. Needs fail_alloc.c. */
#include "base/support.h"
#include <pare_test.h>
#include <fail_alloc.h>

static pare_status read_two(const char *dir, char hex[PARE_SHA256_HEX], pare_err *err)
{
    static const char *const names[] = {"a", "b", "a"};
    char path[300];
    pare_files *const f = pare_files_new();
    pare_status st = f ? PARE_OK : pare_no_memory(err);
    bool there = false;
    for (size_t i = 0; st == PARE_OK && i < 3; i++) {
        pare_blob *b = NULL;
        test_path(path, dir, names[i]);
        st = pare_files_exists(f, &there, path, err);
        if (st == PARE_OK) st = pare_files_read(f, &b, path, err);
        pare_blob_release(b);
    }
    if (st == PARE_OK) st = pare_files_exists(f, &there, test_path(path, dir, "none"), err);
    if (st == PARE_OK) st = pare_files_identity(hex, f, dir, err);
    pare_files_free(f);
    return st;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    char dir[200], path[300], first[PARE_SHA256_HEX], hex[PARE_SHA256_HEX];
    pare_err err = {0};
    int n = 0;
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "a"), "A", 1);
    test_write_file(test_path(path, dir, "b"), "B", 1);
    assert_ok(read_two(dir, first, &err), &err);
    for (; n < 1000; n++) {
        fail_alloc_once(n);
        const pare_status st = read_two(dir, hex, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        if (!hit) {
            assert_ok(st, &err);
            assert_string_equal(hex, first);
            break;
        }
        assert_status(st, PARE_ERR_MEMORY, &err);
    }
    assert_true(n >= 8 && n < 1000);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
