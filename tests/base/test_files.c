/* Tests src/base/files.c. */
#include "base/support.h"
#include <pare_test.h>

#include <sys/stat.h>

static void expect_bytes(pare_files *f, const char *path, const char *want)
{
    pare_err err = {0};
    pare_blob *b;
    assert_ok(pare_files_read(f, &b, path, &err), &err);
    assert_int_equal(b->bytes, strlen(want));
    assert_memory_equal(b->data, want, b->bytes);
    assert_string_equal(b->path, path);
    pare_blob_release(b);
}

static void a_file_is_read_once_whatever_happens_to_it(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300], other[300], hex[PARE_SHA256_HEX];
    pare_blob *kept;
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "f"), "first", 5);
    test_write_file(test_path(other, dir, "other"), "second", 6);
    pare_files *const f = pare_files_new();
    assert_non_null(f);
    assert_int_equal(pare_files_count(f), 0);
    expect_bytes(f, path, "first");
    test_write_file(path, "changed in place", 16);
    expect_bytes(f, path, "first");
    assert_int_equal(rename(other, path), 0); /* another file under its name */
    expect_bytes(f, path, "first");
    assert_int_equal(unlink(path), 0);
    assert_ok(pare_files_read(f, &kept, path, &err), &err);
    assert_int_equal(pare_files_count(f), 1);
    assert_string_equal(pare_files_path(f, 0), path);
    assert_ok(pare_sha256_of(hex, "first", 5, &err), &err);
    assert_string_equal(pare_files_sha256(f, 0), hex);
    pare_files_free(f);
    assert_memory_equal(kept->data, "first", 5); /* retained */
    pare_blob_release(kept);
    pare_files_free(NULL);
    test_rmdir(dir);
}

static void many_files_keep_their_order(void **state)
{
    (void)state;
    char dir[200], path[300], name[20];
    test_mkdir(dir);
    pare_files *const f = pare_files_new_unhashed();
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "%d", i);
        test_write_file(test_path(path, dir, name), name, strlen(name));
        expect_bytes(f, path, name);
    }
    assert_int_equal(pare_files_count(f), 50);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "%d", i);
        test_write_file(test_path(path, dir, name), "x", 1);
        assert_string_equal(pare_files_path(f, (size_t)i), path);
        expect_bytes(f, path, name);
    }
    pare_files_free(f);
    test_rmdir(dir);
}

static void ask(pare_files *f, const char *path, bool exists, bool folder)
{
    pare_err err = {0};
    bool is;
    assert_ok(pare_files_exists(f, &is, path, &err), &err);
    assert_int_equal(is, exists);
    assert_ok(pare_files_is_dir(f, &is, path, &err), &err);
    assert_int_equal(is, folder);
}

static void what_was_there_stays_and_what_was_not_stays_away(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], there[300], none[300], folder[300], read[300];
    pare_blob *b;
    test_mkdir(dir);
    test_write_file(test_path(there, dir, "there"), "", 0);
    test_write_file(test_path(read, dir, "read"), "r", 1);
    assert_int_equal(mkdir(test_path(folder, dir, "folder"), 0700), 0);
    test_path(none, dir, "none");
    pare_files *const f = pare_files_new();
    ask(f, there, true, false);
    ask(f, none, false, false);
    ask(f, folder, true, true);
    expect_bytes(f, read, "r");
    assert_int_equal(unlink(there), 0);
    assert_int_equal(unlink(read), 0);
    assert_int_equal(rmdir(folder), 0);
    test_write_file(none, "now it is", 9);
    test_write_file(folder, "now a file", 10);
    ask(f, there, true, false);
    ask(f, none, false, false);
    ask(f, folder, true, true);
    ask(f, read, true, false); /* what was read is there */
    assert_status(pare_files_read(f, &b, none, &err), PARE_ERR_IO, &err);
    assert_null(b);
    assert_contains(err.msg, "No such file");
    assert_status(pare_files_read(f, &b, there, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "No such file");
    assert_int_equal(pare_files_count(f), 1); /* looking is not reading, nor is failing */
    pare_files_free(f);
    test_rmdir(dir);
}

static void a_pipe_is_refused_at_once(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    pare_blob *b;
    bool there;
    test_mkdir(dir);
    assert_int_equal(mkfifo(test_path(path, dir, "pipe"), 0600), 0);
    pare_files *const f = pare_files_new();
    alarm(60);
    assert_ok(pare_files_exists(f, &there, path, &err), &err);
    assert_true(there);
    assert_status(pare_files_read(f, &b, path, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "is not a regular file (a pipe)");
    assert_status(pare_files_read(f, &b, dir, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "is a folder");
    alarm(0);
    assert_int_equal(pare_files_count(f), 0);
    pare_files_free(f);
    test_rmdir(dir);
}

/* ---- identities ------------------------------------------------------------------------------ */

static void identity_of(char hex[PARE_SHA256_HEX], const char *root, const char *const *paths)
{
    pare_err err = {0};
    pare_files *const f = pare_files_new();
    for (size_t i = 0; paths[i]; i++) {
        pare_blob *b;
        assert_ok(pare_files_read(f, &b, paths[i], &err), &err);
        pare_blob_release(b);
    }
    assert_ok(pare_files_identity(hex, f, root, &err), &err);
    pare_files_free(f);
}

static void an_identity_is_that_of_the_files_and_their_names(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], slash[300], a[300], b[300], sub[300], c[300], c2[400];
    char hex[PARE_SHA256_HEX], want[PARE_SHA256_HEX], one[PARE_SHA256_HEX], two[PARE_SHA256_HEX];
    char lines[300];
    test_mkdir(dir);
    test_write_file(test_path(a, dir, "a"), "A", 1);
    test_write_file(test_path(b, dir, "b"), "B", 1);
    assert_int_equal(mkdir(test_path(sub, dir, "sub"), 0700), 0);
    test_write_file(test_path(c, sub, "b"), "B", 1);
    assert_ok(pare_sha256_of(one, "A", 1, &err), &err); /* 559a... */
    assert_ok(pare_sha256_of(two, "B", 1, &err), &err); /* df7e... */
    identity_of(hex, a, (const char *[]){a, a, NULL});
    assert_string_equal(hex, one); /* one file: its own */
    identity_of(hex, dir, (const char *[]){a, NULL});
    assert_string_equal(hex, one);
    snprintf(lines, sizeof lines, "%s  a\n%s  b\n", one, two);
    assert_ok(pare_sha256_of(want, lines, strlen(lines), &err), &err);
    identity_of(hex, a, (const char *[]){a, b, NULL});
    assert_string_equal(hex, want);
    identity_of(hex, b, (const char *[]){b, a, NULL}); /* in any order */
    assert_string_equal(hex, want);
    identity_of(hex, dir, (const char *[]){b, a, NULL}); /* of the folder */
    assert_string_equal(hex, want);
    snprintf(slash, sizeof slash, "%s/", dir);
    identity_of(hex, slash, (const char *[]){b, a, NULL});
    assert_string_equal(hex, want);
    snprintf(c2, sizeof c2, "%s/../b", sub); /* not below the root by its text */
    identity_of(hex, a, (const char *[]){a, c2, NULL});
    assert_string_equal(hex, want);
    snprintf(lines, sizeof lines, "%s  a\n%s  sub/b\n", one, two);
    assert_ok(pare_sha256_of(want, lines, strlen(lines), &err), &err);
    identity_of(hex, a, (const char *[]){a, c, NULL}); /* another name is another identity */
    assert_string_equal(hex, want);
    snprintf(lines, sizeof lines, "%s  ../a\n%s  b\n", one, two);
    assert_ok(pare_sha256_of(want, lines, strlen(lines), &err), &err);
    identity_of(hex, sub, (const char *[]){c, a, NULL});
    assert_string_equal(hex, want);
    test_rmdir(dir);
}

static void a_name_with_a_line_end_has_no_identity(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], a[300], b[300], hex[PARE_SHA256_HEX];
    test_mkdir(dir);
    test_write_file(test_path(a, dir, "a"), "A", 1);
    test_write_file(test_path(b, dir, "b\nc"), "B", 1);
    pare_files *const f = pare_files_new();
    expect_bytes(f, a, "A");
    expect_bytes(f, b, "B");
    assert_status(pare_files_identity(hex, f, a, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "a file name with a line end");
    pare_files_free(f);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_once_whatever_happens_to_it),
        cmocka_unit_test(many_files_keep_their_order),
        cmocka_unit_test(what_was_there_stays_and_what_was_not_stays_away),
        cmocka_unit_test(a_pipe_is_refused_at_once),
        cmocka_unit_test(an_identity_is_that_of_the_files_and_their_names),
        cmocka_unit_test(a_name_with_a_line_end_has_no_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
