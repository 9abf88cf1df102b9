/* Tests src/base/path.c. */
#include <pare_test.h>

#include <sys/stat.h>

static void relative_paths_are_those_a_reader_would_write(void **state)
{
    (void)state;
    static const char *const want[][3] = {
        /* from, path, seen from there (none of these folders exists) */
        {"out/m.cert.json", "out/m.st", "m.st"},
        {"out/m.cert.json", "in/m.st", "../in/m.st"},
        {"m.cert.json", "m.st", "m.st"},
        {"m.cert.json", "a/b/m.st", "a/b/m.st"},
        {"a/b/c.json", "m.st", "../../m.st"},
        {"a/b/c.json", "a/bc/m.st", "../bc/m.st"}, /* bc is not inside b */
        {"a/c.json", "./a//x/../m.st", "m.st"},
        {"/no/a/c.json", "/no/m.st", "../m.st"},
        {"/c.json", "/m.st", "m.st"},
        {"a/c.json", "a/.", "."},
        {"a/b/c.json", "a/..", "../.."},
    };
    pare_arena *a = pare_arena_new();
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        assert_string_equal(pare_path_relative(a, want[i][0], want[i][1]), want[i][2]);
    pare_arena_free(a);
}

static void there_and_back_reaches_the_same_file(void **state)
{
    (void)state;
    char dir[200], here[1000], in[300], up[300];
    pare_arena *a = pare_arena_new();
    test_mkdir(dir);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(mkdir(test_path(in, dir, "in"), 0700), 0);
    assert_int_equal(mkdir(test_path(up, dir, "out"), 0700), 0);
    assert_int_equal(mkdir(test_path(up, dir, "in/sub"), 0700), 0);
    /* "link/.." is "in", not the folder where the link is */
    assert_int_equal(symlink("in/sub", test_path(up, dir, "link")), 0);
    assert_int_equal(chdir(in), 0);
    test_write_file("m.st", "x", 1);
    const char *const froms[] = {"c.json", "../out/c.json", "../link/c.json", "../../none.json"};
    const char *const paths[] = {"m.st", "../in/m.st", "../link/../m.st", "sub/.././m.st"};
    for (size_t i = 0; i < 4; i++) {
        for (size_t j = 0; j < 5; j++) {
            const char *path = j < 4 ? paths[j] : pare_sprintf(a, "%s/m.st", in);
            const char *seen = pare_path_relative(a, froms[i], path);
            assert_true(seen[0] != '/');
            assert_true(pare_file_exists(pare_path_beside(a, froms[i], seen)));
        }
    }
    assert_int_equal(chdir(here), 0);
    test_rmdir(dir);
    pare_arena_free(a);
}

static void beside_joins_and_keeps_absolute_paths(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    assert_string_equal(pare_path_beside(a, "out/c.json", "../in/m"), "out/../in/m");
    assert_string_equal(pare_path_beside(a, "c.json", "m"), "m");
    assert_string_equal(pare_path_beside(a, "/c.json", "m"), "/m");
    assert_string_equal(pare_path_beside(a, "out/c.json", "/abs/m"), "/abs/m");
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relative_paths_are_those_a_reader_would_write),
        cmocka_unit_test(there_and_back_reaches_the_same_file),
        cmocka_unit_test(beside_joins_and_keeps_absolute_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
