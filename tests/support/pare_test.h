/* pare_test.h - what every test needs beside cmocka: comparisons that a nan fails, statuses that
 * print their message, a temporary folder, a visible skip. */
#ifndef PARE_TEST_H
#define PARE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <ftw.h>
#include <unistd.h>
#include <cmocka.h>

#include <pare/base.h>

/* a <= b; false for nan, and both values are printed. */
#define assert_le(a, b) test_le((double)(a), (double)(b), #a, #b, __FILE__, __LINE__)
/* |a - b| <= tol; false for nan. */
#define assert_near(a, b, tol)                                                                     \
    test_near((double)(a), (double)(b), (double)(tol), #a, __FILE__, __LINE__)
/* The call succeeded; else its message is printed. */
#define assert_ok(call, err)           test_status((call), PARE_OK, (err), #call, __FILE__, __LINE__)
#define assert_status(call, want, err) test_status((call), (want), (err), #call, __FILE__, __LINE__)
/* `part` occurs in `text`. */
#define assert_contains(text, part) test_contains((text), (part), __FILE__, __LINE__)
/* Leaves the test, saying so. */
#define SKIP(why)                                                                                  \
    do {                                                                                           \
        print_message("SKIP %s: %s\n", __func__, (why));                                           \
        skip();                                                                                    \
    } while (0)
/* Leaves the test unless `path` (from the project root, the working folder of tests) is there. */
#define NEED_SHARED(path)                                                                          \
    do {                                                                                           \
        if (access((path), R_OK) != 0) SKIP("needs ../shared");                                    \
    } while (0)

static inline void test_le(double a, double b, const char *ta, const char *tb, const char *file,
                           int line)
{
    if (a <= b) return;
    print_error("%s <= %s does not hold: %.17g and %.17g\n", ta, tb, a, b);
    _fail(file, line);
}

static inline void test_near(double a, double b, double tol, const char *ta, const char *file,
                             int line)
{
    if (a == b || fabs(a - b) <= tol) return; /* a == b: equal infinities are near */
    print_error("%s is %.17g, expected %.17g within %g\n", ta, a, b, tol);
    _fail(file, line);
}

static inline void test_status(pare_status got, pare_status want, const pare_err *err,
                               const char *call, const char *file, int line)
{
    if (got == want) return;
    print_error("%s: status %d, expected %d; message: %s\n", call, (int)got, (int)want,
                err && got != PARE_OK ? err->msg : "-");
    _fail(file, line);
}

static inline void test_contains(const char *text, const char *part, const char *file, int line)
{
    if (strstr(text, part)) return;
    print_error("\"%s\" does not contain \"%s\"\n", text, part);
    _fail(file, line);
}

/* A test whose state is an arena of its own. */
static inline int test_open_arena(void **state)
{
    *state = pare_arena_new();
    return *state ? 0 : -1;
}
static inline int test_close_arena(void **state)
{
    pare_arena_free(*state);
    return 0;
}
#define ARENA_TEST(f) cmocka_unit_test_setup_teardown(f, test_open_arena, test_close_arena)

/* A new empty folder; remove it with test_rmdir. Its path is below 200 characters. */
static inline void test_mkdir(char dir[200])
{
    const char *root = getenv("TMPDIR");
    const int n = snprintf(dir, 200, "%s/pare-test-XXXXXX", root && *root ? root : "/tmp");
    assert_true(n > 0 && n < 200);
    assert_non_null(mkdtemp(dir));
}

static inline int test_unlink_one(const char *path, const struct stat *st, int type,
                                  struct FTW *where)
{
    (void)st, (void)type, (void)where;
    return remove(path);
}

static inline void test_rmdir(const char *dir)
{
    nftw(dir, test_unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* dir/name in buf. */
static inline const char *test_path(char buf[300], const char *dir, const char *name)
{
    const int n = snprintf(buf, 300, "%s/%s", dir, name);
    assert_true(n > 0 && n < 300);
    return buf;
}

static inline void test_write_file(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    assert_int_equal(fclose(f), 0);
}

/* The whole file, malloc'ed. */
static inline uint8_t *test_read_file(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_int_equal(fseek(f, 0, SEEK_END), 0);
    const long n = ftell(f);
    assert_true(n >= 0);
    rewind(f);
    uint8_t *data = malloc((size_t)n + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, (size_t)n, f), (size_t)n);
    data[n] = 0;
    fclose(f);
    *bytes = (size_t)n;
    return data;
}

#endif
