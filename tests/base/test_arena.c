/* Tests src/base/arena.c. */
#include "base/support.h"
#include <pare_test.h>

static bool all_zero(const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i]) return false;
    return true;
}

static void memory_is_zeroed_aligned_and_disjoint(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_rng r = pare_rng_at(1, 0);
    uint8_t *part[400];
    size_t size[400];
    for (int i = 0; i < 400; i++) {
        size[i] = (size_t)pare_rng_below(&r, i % 20 == 0 ? 300000 : 3000);
        part[i] = pare_alloc(a, size[i], 1);
        assert_non_null(part[i]);
        assert_int_equal((uintptr_t)part[i] % 64, 0);
        assert_true(all_zero(part[i], size[i]));
        memset(part[i], 1 + i % 255, size[i]);
    }
    for (int i = 0; i < 400; i++) /* a later write into an earlier part would show here */
        for (size_t j = 0; j < size[i]; j++) assert_int_equal(part[i][j], 1 + i % 255);
    pare_arena_free(a);
    pare_arena_free(NULL);
}

static void reset_gives_back_what_came_after_the_mark_and_nothing_else(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    uint8_t *before = pare_alloc(a, 100, 1);
    uint8_t *large_before = pare_alloc(a, 1 << 20, 1);
    memset(before, 7, 100);
    memset(large_before, 7, 1 << 20);
    const pare_mark m = pare_arena_mark(a);
    uint8_t *first = pare_alloc(a, 1000, 1);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 600; i++) { /* several chunks, large ones in between */
            const size_t n = i % 50 == 0 ? 200000 : 1000;
            uint8_t *p = pare_alloc(a, n, 1);
            assert_non_null(p);
            assert_true(all_zero(p, n));
            memset(p, 9, n);
        }
        pare_arena_reset(a, m);
        assert_ptr_equal(pare_arena_mark(a).large, m.large); /* large chunks went, too */
        uint8_t *again = pare_alloc(a, 1000, 1);
        assert_ptr_equal(again, first); /* the room is used again, not leaked */
        assert_true(all_zero(again, 1000));
        memset(again, 9, 1000);
    }
    for (int i = 0; i < 100; i++) assert_int_equal(before[i], 7);
    for (int i = 0; i < 1 << 20; i++) assert_int_equal(large_before[i], 7);
    pare_arena_free(a);
}

static void mark_of_an_empty_arena_frees_all(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    const pare_mark m = pare_arena_mark(a);
    for (int i = 0; i < 100; i++) assert_non_null(pare_alloc(a, 10000, 1));
    pare_arena_reset(a, m);
    const pare_mark now = pare_arena_mark(a);
    assert_null(now.chunk);
    assert_null(now.large);
    assert_non_null(pare_alloc(a, 1, 1));
    pare_arena_free(a);
}

static void impossible_sizes_give_null(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    assert_null(pare_alloc(a, SIZE_MAX / 2, 3));
    assert_null(pare_alloc(a, SIZE_MAX, 1));
    assert_null(pare_alloc(a, SIZE_MAX - 80, 1));
    void *none = pare_alloc(a, 0, 8), *other = pare_alloc(a, 0, 8);
    assert_non_null(none);
    assert_ptr_not_equal(none, other);
    pare_arena_free(a);
}

static void checked_products_and_sums_leave_out_alone_on_overflow(void **state)
{
    (void)state;
    size_t v = 5;
    assert_false(pare_mul(&v, (size_t)1 << 33, (size_t)1 << 31));
    assert_false(pare_add(&v, SIZE_MAX, 1));
    assert_int_equal(v, 5);
    assert_true(pare_mul(&v, (size_t)1 << 33, (size_t)1 << 30));
    assert_true(v == (size_t)1 << 63);
    assert_true(pare_mul(&v, v, 0));
    assert_int_equal(v, 0);
    assert_true(pare_add(&v, SIZE_MAX - 1, 1));
    assert_true(v == SIZE_MAX);
}

static void strings_are_copied(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    char text[] = "hello";
    char *whole = pare_strdup(a, text), *part = pare_strndup(a, text, 3);
    char *beyond = pare_strndup(a, text, 99);
    text[0] = 'j';
    assert_string_equal(whole, "hello");
    assert_string_equal(part, "hel");
    assert_string_equal(beyond, "hello");
    assert_string_equal(pare_sprintf(a, "%s-%d", text, 42), "jello-42");
    assert_string_equal(pare_sprintf(a, "%s", ""), "");
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_disjoint),
        cmocka_unit_test(reset_gives_back_what_came_after_the_mark_and_nothing_else),
        cmocka_unit_test(mark_of_an_empty_arena_frees_all),
        cmocka_unit_test(impossible_sizes_give_null),
        cmocka_unit_test(checked_products_and_sums_leave_out_alone_on_overflow),
        cmocka_unit_test(strings_are_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
