/* Every allocation of base fails once: arena, npz, npy, JSON, text. Needs fail_alloc.c. */
#include "npz_sample.h"
#include "base/array.h"
#include "base/json.h"
#include <fail_alloc.h>

#include <dirent.h>

static int entries(const char *dir)
{
    DIR *d = opendir(dir);
    assert_non_null(d);
    int n = 0;
    while (readdir(d)) n++;
    closedir(d);
    return n - 2;
}

static pare_status read_back(const char *path, pare_err *err)
{
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_npz *z;
    pare_status st = pare_npz_open(&z, a, path, err);
    for (size_t i = 0; st == PARE_OK && i < SAMPLE_COUNT; i++) {
        pare_array got;
        st = pare_npz_get(&got, z, sample_names[i], err);
    }
    pare_npz_close(z);
    pare_arena_free(a);
    return st;
}

static pare_status json_round(const char *path, pare_err *err)
{
    const char *text = "{\"a\": [1, {\"x\": \"y\", \"z\": 2}], \"b\": \"inf\"}";
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    cJSON *root;
    char *out;
    pare_status st = pare_json_parse(&root, text, strlen(text), err);
    if (st == PARE_OK) st = pare_json_print(&out, NULL, a, root, 2, err);
    if (st == PARE_OK) st = pare_text_read(&out, NULL, a, path, err);
    if (st == PARE_OK && !pare_path_relative(a, path, "a/b/c")) st = pare_no_memory(err);
    cJSON_Delete(root);
    pare_arena_free(a);
    return st;
}

static pare_status write_sample(const char *path, pare_err *err)
{
    return pare_npz_write(path, SAMPLE_COUNT, sample_names, sample_arrays, true, true, err);
}

/* Lets the 0th, 1st, 2nd... allocation fail until none is left to fail. */
static void fail_cleanly_when(pare_status (*work)(const char *, pare_err *), const char *dir,
                              const char *path, int files, void (*refuse)(long n))
{
    int n = 0;
    for (; n < 1000; n++) {
        pare_err err = {0};
        refuse(n);
        const pare_status st = work(path, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        if (!hit) {
            assert_ok(st, &err);
            break;
        }
        assert_status(st, PARE_ERR_MEMORY, &err);
        assert_contains(err.msg, "out of memory");
        assert_int_equal(entries(dir), files);
    }
    assert_true(n >= 4 && n < 1000); /* it did fail a few times, and then did not */
}

/* With all after it, and alone. */
static void all_fail_cleanly(pare_status (*work)(const char *, pare_err *), const char *dir,
                             const char *path, int files)
{
    fail_cleanly_when(work, dir, path, files, fail_alloc_after);
    for (int i = files; i < entries(dir); i++) unlink(path); /* what the success has written */
    fail_cleanly_when(work, dir, path, files, fail_alloc_once);
}

static void every_allocation_may_fail_once_and_nothing_is_left(void **state)
{
    (void)state;
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "a.npz");
    all_fail_cleanly(write_sample, dir, path, 0);
    assert_int_equal(entries(dir), 1);
    all_fail_cleanly(read_back, dir, path, 1);
    all_fail_cleanly(json_round, dir, path, 1);
    test_rmdir(dir);
}

static void an_arena_is_usable_after_a_refused_allocation(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    char *kept = pare_strdup(a, "kept");
    fail_alloc_after(0);
    assert_null(pare_alloc(a, 10000000, 1));
    assert_non_null(pare_alloc(a, 10, 1)); /* the chunk at hand needs no malloc */
    for (int i = 0; i < 100 && pare_alloc(a, 60000, 1); i++) {}
    assert_true(fail_alloc_hit());
    assert_null(pare_alloc(a, 60000, 1));
    assert_null(pare_arena_new());
    fail_alloc_after(-1);
    assert_non_null(pare_alloc(a, 60000, 1));
    assert_string_equal(kept, "kept");
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail_once_and_nothing_is_left),
        cmocka_unit_test(an_arena_is_usable_after_a_refused_allocation),
    };
    fail_alloc_in_json();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
