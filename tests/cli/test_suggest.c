/* Tests src/cli/suggest.c: which word a typo is answered with, and when there is none. */
#include <pare_test.h>
#include "cli/suggest.c"

static const char *const commands[] = {"info",  "probe",  "run",    "eval",   "fold",
                                       "width", "depth",  "ticket", "length", "plan",
                                       "train", "import", "export", "data",   NULL};

static void is(const char *typed, const char *meant)
{
    const char *const got = suggest_word(typed, commands);
    if (!meant)
        assert_null(got);
    else
        assert_string_equal(got ? got : "(none)", meant);
}

static void edits_are_counted(void **state)
{
    (void)state;
    assert_int_equal(edit_distance("width", "width"), 0);
    assert_int_equal(edit_distance("", "width"), 5);
    assert_int_equal(edit_distance("widht", "width"), 1); /* neighbors swapped: one edit */
    assert_int_equal(edit_distance("wdith", "width"), 1);
    assert_int_equal(edit_distance("with", "width"), 1);   /* a letter missing */
    assert_int_equal(edit_distance("wwidth", "width"), 1); /* doubled */
    assert_int_equal(edit_distance("wydth", "width"), 1);  /* replaced */
    assert_int_equal(edit_distance("htdiw", "width"), 4);
}

static void a_typo_finds_its_word(void **state)
{
    (void)state;
    is("widht", "width");
    is("dept", "depth");
    is("tiket", "ticket");
    is("lenght", "length");
    is("imprt", "import");
    is("exprot", "export");
    is("len", "length"); /* the only word that begins so */
}

static void other_words_find_none(void **state)
{
    (void)state;
    is("frobnicate", NULL);
    is("xy", NULL);
    is("", NULL);
    is("e", NULL); /* eval and export begin so */
    is("wwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwwww", NULL);
}

/* Every word of the list with one letter changed, removed, doubled or swapped is answered with a
 * word that is as near as the one that was meant. */
static void one_wrong_letter_is_always_answered(void **state)
{
    (void)state;
    char typed[32];
    for (size_t i = 0; commands[i]; i++) {
        const char *const word = commands[i];
        const size_t n = strlen(word);
        for (size_t at = 0; at < n; at++)
            for (int how = 0; how < 4; how++) {
                memcpy(typed, word, n + 1);
                if (how == 0) typed[at] = 'z';
                if (how == 1) memmove(typed + at, typed + at + 1, n - at);
                if (how == 2) memmove(typed + at + 1, typed + at, n - at + 1);
                if (how == 3 && at + 1 < n) typed[at] = word[at + 1], typed[at + 1] = word[at];
                const char *const got = suggest_word(typed, commands);
                assert_non_null(got);
                assert_true(edit_distance(typed, got) <= edit_distance(typed, word));
            }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edits_are_counted),
        cmocka_unit_test(a_typo_finds_its_word),
        cmocka_unit_test(other_words_find_none),
        cmocka_unit_test(one_wrong_letter_is_always_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
