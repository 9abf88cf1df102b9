/* Tests src/model/scratch_stack.c. */
#include "model/scratch_stack.h"
#include "pare_test.h"

static void pieces_are_aligned_and_apart(void **state)
{
    (void)state;
    scratch s = {0};
    uint8_t *last = NULL;
    for (size_t i = 0; i < 300; i++) {
        uint8_t *const p = scratch_get(&s, i * 37, 3);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % SCRATCH_ALIGNMENT, 0);
        memset(p, (int)i, i * 37 * 3);
        if (last && i > 1) assert_int_equal(last[(i - 1) * 37 * 3 - 1], (uint8_t)(i - 1));
        last = p;
    }
    scratch_free(&s);
    assert_true(!s.first && !s.now);
}

static void a_reset_gives_the_same_memory_again(void **state)
{
    (void)state;
    scratch s = {0};
    void *first[6];
    const scratch_mark empty = scratch_save(&s);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < 6; i++) {
            void *const p = scratch_get(&s, (size_t)100000 << i % 3, 1);
            if (round == 0) first[i] = p;
            assert_true(p == first[i]);
        }
        scratch_reset(&s, empty);
    }
    void *const small = scratch_get(&s, 1, 1);
    const scratch_mark mark = scratch_save(&s);
    void *const after = scratch_get(&s, 10, 1);
    scratch_reset(&s, mark);
    assert_true(scratch_get(&s, 10, 1) == after && after != small);
    scratch_free(&s);
}

static void what_was_reserved_lies_in_one_piece(void **state)
{
    (void)state;
    scratch s = {0};
    assert_non_null(scratch_get(&s, 1000, 1));
    assert_true(scratch_reserve(&s, 8 << 20));
    uint8_t *const a = scratch_get(&s, 4 << 20, 1), *const b = scratch_get(&s, 4 << 20, 1);
    assert_true(b == a + (4 << 20));
    scratch_free(&s);
}

static void an_overflowing_size_is_refused(void **state)
{
    (void)state;
    scratch s = {0};
    assert_null(scratch_get(&s, SIZE_MAX / 2, 3));
    assert_null(scratch_get(&s, SIZE_MAX - 8, 1));
    assert_null(scratch_get(&s, SIZE_MAX - 100, 1));
    assert_non_null(scratch_get(&s, 0, 8));
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_aligned_and_apart),
        cmocka_unit_test(a_reset_gives_the_same_memory_again),
        cmocka_unit_test(what_was_reserved_lies_in_one_piece),
        cmocka_unit_test(an_overflowing_size_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
