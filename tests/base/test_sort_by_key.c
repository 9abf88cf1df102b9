/* Tests src/base/sort_by_key.c. */
#include "base/support.h"
#include <pare_test.h>

static void the_largest_comes_first_and_of_equals_the_first(void **state)
{
    (void)state;
    pare_keyed list[] = {{1, 0}, {-2, 1}, {3, 2}, {1, 3}, {3, 4}, {0, 5}};
    static const uint32_t want[] = {2, 4, 0, 3, 5, 1};
    pare_largest_first(list, 6);
    for (size_t i = 0; i < 6; i++) assert_int_equal(list[i].id, want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_comes_first_and_of_equals_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
