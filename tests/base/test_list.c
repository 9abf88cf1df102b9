/* Tests src/base/list.c. */
#include <pare_test.h>

#include "base/list.h"

static void a_list_grows_and_keeps_its_elements(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    int *list = NULL;
    size_t capacity = 0;
    for (int n = 0; n < 100; n++) {
        list = list_grow(a, list, (size_t)n, &capacity, sizeof *list);
        assert_non_null(list);
        assert_true((size_t)n < capacity);
        list[n] = n;
        for (int i = 0; i <= n; i++) assert_int_equal(list[i], i);
    }
    pare_arena_free(a);
}

static void texts_are_sorted_by_their_bytes(void **state)
{
    (void)state;
    char b[] = "b", upper[] = "B", empty[] = "", ba[] = "ba", umlaut[] = "\xC3\xA4";
    char *text[] = {umlaut, ba, b, upper, empty};
    sort_texts(NULL, 0);
    sort_texts(text, 5);
    static const char *const want[] = {"", "B", "b", "ba", "\xC3\xA4"};
    for (size_t i = 0; i < 5; i++) assert_string_equal(text[i], want[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_grows_and_keeps_its_elements),
        cmocka_unit_test(texts_are_sorted_by_their_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
