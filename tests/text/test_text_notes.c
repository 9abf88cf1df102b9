/* Tests src/text/text_notes.c. */
#include <pare_test.h>
#include <pare/run.h>

#include <string.h>

static void note_utf8(pare_text_notes *n, const char *text)
{
    pare_text_note_utf8(n, text, strlen(text));
}

static void valid_text_has_no_notes(void **state)
{
    (void)state;
    pare_text_notes n = {0};
    note_utf8(&n, "plain\nG\xc3\xb6"
                  "del \xe2\x82\xac \xf0\x9f\x98\x80\n");
    assert_int_equal(n.invalid, 0);
}

static void the_first_invalid_byte_is_found_by_line_and_place(void **state)
{
    (void)state;
    pare_text_notes n = {0};
    note_utf8(&n, "ab\ncd\xff\xc3 e\n\xed\xa0\x80");
    assert_int_equal(n.invalid, 5); /* a surrogate is three invalid bytes */
    assert_int_equal(n.invalid_line, 2);
    assert_int_equal(n.invalid_byte, 5);
}

static void words_that_are_not_in_the_list_are_counted(void **state)
{
    (void)state;
    static const char list[] = "the\ncat\nsat\n";
    pare_err err = {0};
    pare_text_notes n = {0};
    pare_tokenizer *t, *bytes;
    pare_arena *const a = pare_arena_new();
    assert_ok(
        pare_tokenizer_new(&t, a, PARE_TOK_WORDS, (const uint8_t *)list, sizeof list - 1, &err),
        &err);
    assert_ok(pare_tokenizer_new(&bytes, a, PARE_TOK_BYTES, NULL, 0, &err), &err);
    const char text[] = " The CAT  Dog\nsat mat";
    pare_text_note_words(&n, bytes, text, sizeof text - 1);
    assert_true(n.words == 0 && n.unknown == 0);
    pare_text_note_words(&n, t, text, sizeof text - 1);
    assert_int_equal(n.words, 5);
    assert_int_equal(n.unknown, 2);
    assert_string_equal(n.first_unknown, "Dog"); /* as it stands there, not lower-cased */
    /* As many words are dropped as the encoder drops. */
    int64_t *ids;
    size_t count;
    assert_ok(pare_encode(&ids, &count, a, t, text, sizeof text - 1, &err), &err);
    assert_int_equal(count, n.words - n.unknown);
    pare_arena_free(a);
}

static void a_long_word_is_cut_between_characters(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_text_notes n = {0};
    pare_tokenizer *t;
    pare_arena *const a = pare_arena_new();
    assert_ok(pare_tokenizer_new(&t, a, PARE_TOK_WORDS, (const uint8_t *)"a\n", 2, &err), &err);
    char word[3000];
    for (size_t i = 0; i + 3 <= sizeof word; i += 3) memcpy(word + i, "\xe2\x82\xac", 3);
    pare_text_note_words(&n, t, word, sizeof word);
    assert_int_equal(n.unknown, 1);
    assert_int_equal(strlen(n.first_unknown), 63); /* 21 characters of three bytes */
    pare_text_note_words(&n, t, word, sizeof word);
    assert_int_equal(n.unknown, 2);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_text_has_no_notes),
        cmocka_unit_test(the_first_invalid_byte_is_found_by_line_and_place),
        cmocka_unit_test(words_that_are_not_in_the_list_are_counted),
        cmocka_unit_test(a_long_word_is_cut_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
