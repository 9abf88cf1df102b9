/* Tests src/base/outfile.c. */
#include <pare_test.h>

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static int entries(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    int n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n - 2; /* . and .. */
}

static void assert_content(const char *path, const char *want)
{
    size_t n;
    uint8_t *data = test_read_file(path, &n);
    assert_int_equal(n, strlen(want));
    assert_memory_equal(data, want, n);
    free(data);
}

static void a_commit_makes_the_file_and_nothing_else(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    pare_out *o;
    test_mkdir(dir);
    assert_ok(pare_out_open(&o, test_path(path, dir, "f"), false, &err), &err);
    assert_ok(pare_out_write(o, "abc", 3, &err), &err);
    assert_ok(pare_out_write(o, NULL, 0, &err), &err);
    assert_ok(pare_out_printf(o, &err, "-%d\n", 7), &err);
    assert_false(pare_file_exists(path)); /* not before the commit */
    assert_ok(pare_out_commit(o, &err), &err);
    assert_content(path, "abc-7\n");
    assert_int_equal(entries(dir), 1);
    const mode_t mask = umask(0);
    umask(mask);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask); /* as any program would make it */
    test_rmdir(dir);
}

static void an_abort_leaves_nothing_and_the_old_file_alone(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    pare_out *o;
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "f"), "old", 3);
    assert_ok(pare_out_open(&o, path, true, &err), &err);
    assert_ok(pare_out_write(o, "new", 3, &err), &err);
    pare_out_abort(o);
    pare_out_abort(NULL);
    assert_int_equal(entries(dir), 1);
    assert_content(path, "old");
    test_rmdir(dir);
}

static void overwriting_needs_leave_at_open_and_at_commit(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    pare_out *o = (pare_out *)&err;
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "f"), "old", 3);
    assert_status(pare_out_open(&o, path, false, &err), PARE_ERR_IO, &err);
    assert_null(o);
    assert_contains(err.msg, "exists, and may not be overwritten");
    assert_contains(err.msg, path);
    assert_ok(pare_out_open(&o, path, true, &err), &err);
    assert_ok(pare_out_write(o, "new", 3, &err), &err);
    assert_ok(pare_out_commit(o, &err), &err);
    assert_content(path, "new");
    /* Someone else makes the file between open and commit. */
    assert_ok(pare_out_open(&o, test_path(path, dir, "g"), false, &err), &err);
    test_write_file(path, "theirs", 6);
    assert_status(pare_out_commit(o, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "exists, and may not be overwritten");
    assert_content(path, "theirs");
    assert_int_equal(entries(dir), 2);
    test_rmdir(dir);
}

static void impossible_targets_are_refused(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    pare_out *o;
    test_mkdir(dir);
    assert_status(pare_out_open(&o, test_path(path, dir, "no/f"), true, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "No such file");
    assert_status(pare_out_open(&o, dir, true, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "is a folder");
    assert_status(pare_out_open(&o, "", true, &err), PARE_ERR_IO, &err);
    /* Renaming over a device would replace it by a file. */
    assert_status(pare_out_open(&o, "/dev/null", true, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "not a plain file");
    chmod(dir, 0500);
    if (geteuid() != 0)
        assert_status(pare_out_open(&o, test_path(path, dir, "f"), true, &err), PARE_ERR_IO, &err);
    chmod(dir, 0700);
    assert_int_equal(entries(dir), 0);
    test_rmdir(dir);
}

static void a_full_disk_fails_the_commit_and_leaves_nothing(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300], block[4096] = {0};
    pare_out *o;
    struct rlimit old, small;
    test_mkdir(dir);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 10000; /* stands for a full disk: writes beyond fail */
    signal(SIGXFSZ, SIG_IGN);
    for (int total = 2; total <= 60; total += 58) { /* seen at commit; seen by a write */
        assert_ok(pare_out_open(&o, test_path(path, dir, "f"), true, &err), &err);
        small.rlim_cur = total == 2 ? 100 : 10000;
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        pare_status st = PARE_OK;
        for (int i = 0; i < total && st == PARE_OK; i++)
            st = pare_out_write(o, block, i == 0 && total == 2 ? 1000 : 2000, &err);
        const pare_status end = pare_out_commit(o, &err);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_int_equal(end, PARE_ERR_IO);
        if (total == 60) assert_int_equal(st, PARE_ERR_IO);
        assert_int_equal(entries(dir), 0);
    }
    test_rmdir(dir);
}

static void a_name_without_a_folder_is_written_here(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], here[1000];
    pare_out *o;
    test_mkdir(dir);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(dir), 0);
    assert_ok(pare_out_open(&o, "plain", false, &err), &err);
    assert_ok(pare_out_commit(o, &err), &err);
    assert_content("plain", "");
    assert_int_equal(chdir(here), 0);
    assert_int_equal(entries(dir), 1);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_makes_the_file_and_nothing_else),
        cmocka_unit_test(an_abort_leaves_nothing_and_the_old_file_alone),
        cmocka_unit_test(overwriting_needs_leave_at_open_and_at_commit),
        cmocka_unit_test(impossible_targets_are_refused),
        cmocka_unit_test(a_full_disk_fails_the_commit_and_leaves_nothing),
        cmocka_unit_test(a_name_without_a_folder_is_written_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
