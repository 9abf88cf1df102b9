/* Tests src/base/blob.c. */
#include <pare_test.h>

#include <sys/stat.h>
#include <sys/wait.h>

static void a_file_is_mapped_and_counted(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "f"), "twelve bytes", 12);
    pare_blob *b;
    assert_ok(pare_blob_open(&b, path, &err), &err);
    assert_true(b->mapped);
    assert_int_equal(b->bytes, 12);
    assert_memory_equal(b->data, "twelve bytes", 12);
    assert_string_equal(b->path, path);
    assert_ptr_equal(pare_blob_retain(b), b);
    pare_blob_release(b);
    test_rmdir(dir);
    assert_memory_equal(b->data, "twelve bytes", 12); /* still held, even without its name */
    pare_blob_release(b);
    pare_blob_release(NULL);
}

static void empty_files_and_pipes_are_read(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    pare_blob *b;
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "empty"), "", 0);
    assert_ok(pare_blob_open(&b, path, &err), &err);
    assert_int_equal(b->bytes, 0);
    pare_blob_release(b);
    assert_int_equal(mkfifo(test_path(path, dir, "pipe"), 0600), 0);
    const pid_t child = fork();
    if (child == 0) {
        FILE *f = fopen(path, "wb");
        for (int i = 0; f && i < 50000; i++) fprintf(f, "%08d", i); /* more than one buffer */
        _exit(f && fclose(f) == 0 ? 0 : 1);
    }
    assert_ok(pare_blob_open(&b, path, &err), &err);
    assert_false(b->mapped);
    assert_int_equal(b->bytes, 400000);
    assert_memory_equal(b->data, "0000000000000001", 16);
    assert_memory_equal(b->data + 399992, "00049999", 8);
    pare_blob_release(b);
    waitpid(child, NULL, 0);
    test_rmdir(dir);
}

static void what_cannot_be_read_is_an_io_error_with_its_name(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    pare_blob *b = (pare_blob *)&err;
    test_mkdir(dir);
    assert_status(pare_blob_open(&b, test_path(path, dir, "none"), &err), PARE_ERR_IO, &err);
    assert_null(b);
    assert_contains(err.msg, path);
    assert_contains(err.msg, "No such file");
    assert_status(pare_blob_open(&b, dir, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "is a folder");
    assert_status(pare_blob_open(&b, path, NULL), PARE_ERR_IO, NULL);
    test_write_file(path, "x", 1);
    chmod(path, 0);
    if (geteuid() != 0) { /* root may read everything */
        assert_status(pare_blob_open(&b, path, &err), PARE_ERR_IO, &err);
        assert_contains(err.msg, "Permission denied");
    }
    test_rmdir(dir);
}

static void text_ends_with_a_zero_that_is_not_counted(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300], *text;
    size_t n;
    pare_arena *a = pare_arena_new();
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "t"), "abc", 3);
    assert_ok(pare_text_read(&text, &n, a, path, &err), &err);
    assert_int_equal(n, 3);
    assert_string_equal(text, "abc");
    assert_true(pare_file_exists(path));
    assert_false(pare_is_dir(path));
    assert_true(pare_is_dir(dir));
    test_write_file(path, "", 0);
    assert_ok(pare_text_read(&text, NULL, a, path, &err), &err);
    assert_string_equal(text, "");
    test_rmdir(dir);
    assert_false(pare_file_exists(path));
    assert_false(pare_is_dir(dir));
    pare_arena_free(a);
}

static void byte_order_marks_are_no_text(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300], *text;
    size_t bytes;
    pare_arena *a = pare_arena_new();
    test_mkdir(dir);
    test_path(path, dir, "f");
    test_write_file(path, "\xEF\xBB\xBFOnce", 7);
    assert_ok(pare_text_read(&text, &bytes, a, path, &err), &err);
    assert_int_equal(bytes, 4);
    assert_string_equal(text, "Once");
    test_write_file(path, "\xEF\xBB", 2); /* half a mark is bytes like others */
    assert_ok(pare_text_read(&text, &bytes, a, path, &err), &err);
    assert_int_equal(bytes, 2);
    static const char *const wide[] = {"\xFF\xFEO", "\xFE\xFFO"};
    for (size_t i = 0; i < 2; i++) {
        test_write_file(path, wide[i], 3);
        assert_status(pare_text_read(&text, &bytes, a, path, &err), PARE_ERR_INPUT, &err);
        assert_non_null(strstr(err.msg, "is UTF-16"));
        assert_non_null(strstr(err.msg, path));
    }
    test_rmdir(dir);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_mapped_and_counted),
        cmocka_unit_test(empty_files_and_pipes_are_read),
        cmocka_unit_test(what_cannot_be_read_is_an_io_error_with_its_name),
        cmocka_unit_test(text_ends_with_a_zero_that_is_not_counted),
        cmocka_unit_test(byte_order_marks_are_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
