/* Tests src/text/word_list.c. */
#include "../data/small.h"

static pare_tokenizer *open_words(pare_arena *a, const char *list, size_t bytes)
{
    pare_tokenizer *t;
    pare_err err;
    assert_ok(pare_tokenizer_new(&t, a, PARE_TOK_WORDS, (const uint8_t *)list, bytes, &err), &err);
    return t;
}

static void assert_ids(const pare_tokenizer *t, const char *text, size_t n, const int64_t *want)
{
    pare_arena *a = pare_arena_new();
    pare_err err;
    int64_t *ids;
    size_t got;
    assert_ok(pare_encode(&ids, &got, a, t, text, strlen(text), &err), &err);
    assert_int_equal(got, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(ids[i], want[i]);
    pare_arena_free(a);
}
#define ASSERT_IDS(t, text, ...)                                                                   \
    assert_ids(t, text, sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static void words_are_lowered_and_unknown_ones_dropped(void **state)
{
    (void)state;
    static const char list[] = "[PAD]\n[CLS]\n[SEP]\ngood\n\ncaf\xC3\xA9\r\n.\nend";
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_words(a, list, sizeof list - 1);
    assert_int_equal(pare_tokenizer_size(t), 8);
    ASSERT_IDS(t, "Good", 1, 3, 2);
    ASSERT_IDS(t, "  GOOD\tbad CAF\xC3\x89\n. ", 1, 3, 5, 6, 2);
    ASSERT_IDS(t, "goo d", 1, 2);
    ASSERT_IDS(t, "", 1, 2);
    ASSERT_IDS(t, "[CLS] \xFF end", 1, 7, 2); /* written brackets are no marks: "[cls]" */
    size_t n;
    assert_memory_equal(pare_decode(t, 3, 5, &n), "caf\xC3\xA9", 5);
    assert_int_equal(n, 5);
    pare_decode(t, 3, 4, &n);
    assert_int_equal(n, 0);
    pare_arena_free(a);
}

static void a_list_without_marks_adds_none(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_words(a, "a\nb\n", 4);
    assert_int_equal(pare_tokenizer_size(t), 2);
    ASSERT_IDS(t, "b A b", 1, 0, 1);
    assert_ids(t, "x y", 0, NULL);
    pare_arena_free(a);
}

static void what_is_no_list_of_words_is_refused_by_line(void **state)
{
    (void)state;
    static const struct {
        const char *list, *says;
        size_t bytes;
    } bad[] = {{"a\nb c\n", "line 2", 6},
               {"a\nb\na\n", "line 3: repeats line 1", 6},
               {"[UNK]\nplay\n##ing\n", "WordPiece", 18},
               {"a\n\xFFq\n", "line 2", 5},
               {"a\nb\0c\n", "line 2", 6},
               {"\ta\n", "line 1", 3}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pare_arena *a = pare_arena_new();
        pare_tokenizer *t;
        pare_err err;
        assert_status(pare_tokenizer_new(&t, a, PARE_TOK_WORDS, (const uint8_t *)bad[i].list,
                                         bad[i].bytes, &err),
                      PARE_ERR_INPUT, &err);
        assert_contains(err.msg, bad[i].says);
        pare_arena_free(a);
    }
}

static void golden_sentences_of_the_sentiment_model(void **state)
{
    (void)state;
    NEED_SHARED("../shared/data/models/bert_sst_vocab.txt");
    size_t bytes;
    uint8_t *list = test_read_file("../shared/data/models/bert_sst_vocab.txt", &bytes);
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_words(a, (const char *)list, bytes);
    ASSERT_IDS(t, "It 's a lovely film with lovely performances by Buy and Accorsi .", 2, 109, 13,
               23, 2908, 223, 112, 2908, 297, 82, 2765, 18, 34, 3);
    ASSERT_IDS(t, "A warm , funny , engaging film .", 2, 23, 2372, 30, 734, 30, 1117, 223, 34, 3);
    pare_arena_free(a);
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_lowered_and_unknown_ones_dropped),
        cmocka_unit_test(a_list_without_marks_adds_none),
        cmocka_unit_test(what_is_no_list_of_words_is_refused_by_line),
        cmocka_unit_test(golden_sentences_of_the_sentiment_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
