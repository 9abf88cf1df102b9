/* Tests src/base/outfile.c: temporary files of dead processes are removed; all others stay. */
#include <pare_test.h>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The pid of a process that has been and is no more. */
static long dead_pid(void)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return (long)child;
}

static const char *name_of(char *to, const char *dir, const char *pattern, long pid)
{
    char name[200];
    size_t n = 0;
    for (const char *c = pattern; *c; c++)
        n += (size_t)(*c == '@' ? snprintf(name + n, sizeof name - n, "%ld", pid)
                                : snprintf(name + n, sizeof name - n, "%c", *c));
    return test_path(to, dir, name);
}

static const char *const left[] = {"f.@-0.tmp", "f.@-17.tmp",       "f.@-old.tmp",
                                   "f.part-@",  "f.part-@.@-0.tmp", "f.part-@.part-@"};
static const char *const others[] = {"g.@-0.tmp",
                                     "f.@.tmp",
                                     "f.@-x.tmp",
                                     "f.@-0.tmpx",
                                     "f.part-@x",
                                     "f.part-@.st",
                                     "f.part-",
                                     "f.part-@.1-0.tmp",
                                     "f.part-@.part-1",
                                     "f.part-@.part-@.part-@",
                                     "f.part-@-1",
                                     "ff.part-@",
                                     "f.st.part-@",
                                     "f.-1-0.tmp",
                                     "f.part--@",
                                     "f.part-+@",
                                     "xf.part-@",
                                     "f.part-0",
                                     "f.0-0.tmp",
                                     "f.part-@.@-0.tmp0",
                                     "f.@-",
                                     "f.part-@.",
                                     "f.part-000000000@",
                                     "f.99999999999999999999-0.tmp"};
#define COUNT(list) (sizeof(list) / sizeof *(list))

static void make_all(const char *dir, long pid)
{
    char path[300];
    for (size_t i = 0; i < COUNT(left); i++)
        test_write_file(name_of(path, dir, left[i], pid), "x", 1);
    for (size_t i = 0; i < COUNT(others); i++)
        test_write_file(name_of(path, dir, others[i], pid), "x", 1);
}

static void assert_left(const char *dir, long pid, bool there)
{
    char path[300];
    for (size_t i = 0; i < COUNT(left); i++)
        if (pare_file_exists(name_of(path, dir, left[i], pid)) != there) fail_msg("%s", path);
    for (size_t i = 0; i < COUNT(others); i++)
        if (!pare_file_exists(name_of(path, dir, others[i], pid))) fail_msg("%s", path);
}

static void a_commit_removes_what_the_dead_have_left_and_nothing_else(void **state)
{
    (void)state;
    const long dead = dead_pid(), alive = (long)getppid();
    pare_err err = {0};
    char dir[200], path[300];
    pare_out *o;
    test_mkdir(dir);
    make_all(dir, dead);
    make_all(dir, alive);
    assert_ok(pare_out_open(&o, test_path(path, dir, "f"), false, &err), &err);
    assert_left(dir, dead, true); /* a write that fails may need what is there */
    assert_ok(pare_out_commit(o, &err), &err);
    assert_left(dir, dead, false);
    assert_left(dir, alive, true);
    assert_true(pare_file_exists(path));
    test_rmdir(dir);
}

static void folders_and_links_stay(void **state)
{
    (void)state;
    const long dead = dead_pid();
    char dir[200], folder[300], to[300], path[300];
    test_mkdir(dir);
    assert_int_equal(mkdir(name_of(folder, dir, left[0], dead), 0700), 0);
    test_write_file(test_path(path, dir, "kept"), "x", 1);
    assert_int_equal(symlink("kept", name_of(to, dir, left[3], dead)), 0);
    pare_out_sweep(test_path(path, dir, "f"));
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(unlink(to), 0);
    pare_out_sweep("no/such/folder/f");
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_commit_removes_what_the_dead_have_left_and_nothing_else),
        cmocka_unit_test(folders_and_links_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
