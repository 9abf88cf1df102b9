/* Tests src/base/blob.c. */
#include "base/support.h"
#include <pare_test.h>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static void a_file_is_read_and_counted(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "f"), "twelve bytes", 12);
    pare_blob *b;
    assert_ok(pare_blob_open(&b, path, &err), &err);
    assert_int_equal((uintptr_t)b->data % 64, 0);
    assert_int_equal(b->bytes, 12);
    assert_memory_equal(b->data, "twelve bytes", 12);
    assert_string_equal(b->path, path);
    assert_ptr_equal(pare_blob_retain(b), b);
    pare_blob_release(b);
    test_write_file(path, "TWELVE BYTES and more", 21); /* in place: the same file */
    assert_memory_equal(b->data, "twelve bytes", 12);
    assert_int_equal(truncate(path, 0), 0);
    test_rmdir(dir);
    assert_memory_equal(b->data, "twelve bytes", 12); /* still held, even without its name */
    pare_blob_release(b);
    pare_blob_release(NULL);
}

static void files_of_any_length_are_read_to_their_end(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300], link[300], *text = malloc(400000);
    pare_blob *b;
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "empty"), "", 0);
    assert_ok(pare_blob_open(&b, path, &err), &err);
    assert_int_equal(b->bytes, 0);
    pare_blob_release(b);
    assert_non_null(text);
    for (size_t i = 0; i < 400000; i++) text[i] = (char)(i * i % 251);
    test_write_file(test_path(path, dir, "long"), text, 400000);
    assert_int_equal(symlink("long", test_path(link, dir, "link")), 0);
    assert_ok(pare_blob_open(&b, link, &err), &err); /* a link to a regular file is one */
    assert_int_equal(b->bytes, 400000);
    assert_memory_equal(b->data, text, 400000);
    pare_blob_release(b);
    free(text);
    test_rmdir(dir);
}

/* Files whose length is not what the system says of it: what is read has become longer or shorter
 * since. */
static void a_file_that_changes_while_it_is_read_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *path, *how;
    } odd[] = {{"/proc/self/status", "it had 0 bytes at first, now more"},
               {"/sys/kernel/mm/transparent_hugepage/enabled", "now fewer"}};
    size_t seen = 0;
    for (size_t i = 0; i < 2; i++) {
        pare_err err = {0};
        char hex[PARE_SHA256_HEX];
        pare_blob *b;
        if (access(odd[i].path, R_OK) != 0) continue;
        assert_status(pare_blob_open(&b, odd[i].path, &err), PARE_ERR_IO, &err);
        assert_null(b);
        assert_contains(err.msg, odd[i].path);
        assert_contains(err.msg, "changed while it was read");
        assert_contains(err.msg, odd[i].how);
        assert_status(pare_sha256_file(hex, odd[i].path, &err), PARE_ERR_IO, &err);
        assert_contains(err.msg, "changed while it was read");
        seen++;
    }
    assert_true(seen > 0);
}

static void refuse_at_once(const char *path, const char *what)
{
    pare_err err = {0};
    char hex[PARE_SHA256_HEX], *text;
    pare_blob *b;
    pare_arena *const a = pare_arena_new();
    alarm(60); /* a test that waits is a test that fails */
    assert_status(pare_blob_open(&b, path, &err), PARE_ERR_IO, &err);
    assert_null(b);
    assert_contains(err.msg, path);
    assert_contains(err.msg, what);
    assert_status(pare_sha256_file(hex, path, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, what);
    assert_status(pare_text_read(&text, NULL, a, path, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, what);
    alarm(0);
    pare_arena_free(a);
}

static void what_is_no_regular_file_is_refused_at_once(void **state)
{
    (void)state;
    char dir[200], path[300], link[300];
    test_mkdir(dir);
    assert_int_equal(mkfifo(test_path(path, dir, "pipe"), 0600), 0);
    refuse_at_once(path, "is not a regular file (a pipe)");
    assert_int_equal(symlink("pipe", test_path(link, dir, "link")), 0);
    refuse_at_once(link, "is not a regular file (a pipe)");
    const int fd = open(path, O_RDWR); /* with a writer as well */
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "{}", 2), 2);
    refuse_at_once(path, "is not a regular file (a pipe)");
    close(fd);
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    snprintf(name.sun_path, sizeof name.sun_path, "%.80s/socket", dir);
    const int s = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(s, (struct sockaddr *)&name, sizeof name), 0);
    refuse_at_once(name.sun_path, "is not a regular file (a socket)");
    close(s);
    refuse_at_once("/dev/zero", "is not a regular file (a device)");
    refuse_at_once("/dev/null", "is not a regular file (a device)");
    refuse_at_once("/dev/tty", "is not a regular file (a device)");
    refuse_at_once(dir, "is a folder, a file is needed");
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
        cmocka_unit_test(a_file_is_read_and_counted),
        cmocka_unit_test(files_of_any_length_are_read_to_their_end),
        cmocka_unit_test(a_file_that_changes_while_it_is_read_is_refused),
        cmocka_unit_test(what_is_no_regular_file_is_refused_at_once),
        cmocka_unit_test(what_cannot_be_read_is_an_io_error_with_its_name),
        cmocka_unit_test(text_ends_with_a_zero_that_is_not_counted),
        cmocka_unit_test(byte_order_marks_are_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
