/* Tests src/text/tokenizer_llama2c.c. */
#include "../data/small.h"

#define TOK   "../shared/data/models/stories260K_tok512.bin"
#define TALES "../shared/data/text/tinystories_1000.txt"

/* A vocabulary in the making: unk, begin, end, 256 bytes, then what is added. */
typedef struct maker {
    uint8_t bytes[16384];
    size_t n;
    int32_t tokens;
} maker;

static int32_t add(maker *m, const char *text, float score)
{
    const int32_t len = (int32_t)strlen(text);
    memcpy(m->bytes + m->n, &score, 4);
    memcpy(m->bytes + m->n + 4, &len, 4);
    memcpy(m->bytes + m->n + 8, text, (size_t)len);
    m->n += 8 + (size_t)len;
    return m->tokens++;
}

static void begin(maker *m)
{
    const int32_t longest = 16;
    memcpy(m->bytes, &longest, 4);
    m->n = 4;
    m->tokens = 0;
    add(m, "<unk>", 0);
    add(m, "\n<s>\n", 0);
    add(m, "\n</s>\n", 0);
    for (int b = 0; b < 256; b++) {
        char text[8];
        sprintf(text, "<0x%02X>", (unsigned)b);
        add(m, text, 0);
    }
}

static pare_tokenizer *open_llama(pare_arena *a, const void *vocab, size_t bytes)
{
    pare_tokenizer *t;
    pare_err err;
    assert_ok(pare_tokenizer_new(&t, a, PARE_TOK_LLAMA2C, vocab, bytes, &err), &err);
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

static void best_score_merges_first_and_ties_from_the_left(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    const int64_t blank = add(&m, " ", -9), a_ = add(&m, "a", -9), b_ = add(&m, "b", -9);
    const int64_t ab = add(&m, "ab", -2), ba = add(&m, "ba", -1), blank_a = add(&m, " a", -3);
    const int64_t aa = add(&m, "aa", -4), aba = add(&m, "aba", -5);
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_llama(a, m.bytes, m.n);
    assert_int_equal(pare_tokenizer_size(t), 259 + 8);
    ASSERT_IDS(t, "", 1); /* not even the blank */
    ASSERT_IDS(t, "b", 1, blank, b_);
    ASSERT_IDS(t, "ab", 1, blank, ab);    /* -2 before -3 */
    ASSERT_IDS(t, "aba", 1, blank_a, ba); /* -1 first; then " a" */
    ASSERT_IDS(t, "baba", 1, blank, ba, ba);
    ASSERT_IDS(t, "aaa", 1, blank_a, aa); /* " a" at -3 before "aa" */
    ASSERT_IDS(t, "baaa", 1, blank, ba, aa);
    ASSERT_IDS(t, "bbaaaa", 1, blank, b_, ba, aa, a_); /* equal pairs: the left one */
    (void)aba;
    pare_arena_free(a);
}

static void unknown_characters_become_their_bytes(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    const int64_t blank = add(&m, " ", -1), e = add(&m, "\xC3\xA9", -1);
    const int64_t four = add(&m, "\xC3\xA9\xA9\xA9", -1);
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_llama(a, m.bytes, m.n);
    ASSERT_IDS(t, "\xC3\xA9", 1, blank, e);
    ASSERT_IDS(t, "\xE4\xB8\xAD", 1, blank, 0xE4 + 3, 0xB8 + 3, 0xAD + 3);
    ASSERT_IDS(t, "\n", 1, blank, 13);
    ASSERT_IDS(t, "\xA9\xC3\xA9", 1, blank, 0xA9 + 3, e);
    ASSERT_IDS(t, "\xC3\xA9\xA9\xA9\xA9", 1, blank, four, 0xA9 + 3); /* four bytes at most */
    pare_arena_free(a);
}

static void decoding_drops_the_blank_after_the_beginning_only(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    const int64_t word = add(&m, " hi", -1);
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_llama(a, m.bytes, m.n);
    size_t n;
    assert_memory_equal(pare_decode(t, 1, word, &n), "hi", 2);
    assert_int_equal(n, 2);
    assert_memory_equal(pare_decode(t, word, word, &n), " hi", 3);
    assert_int_equal(n, 3);
    assert_memory_equal(pare_decode(t, word, 3 + 0xE4, &n), "\xE4", 1);
    assert_int_equal(n, 1);
    assert_memory_equal(pare_decode(t, word, 3, &n), "\0", 1);
    assert_int_equal(n, 1);
    pare_decode(t, -1, 1, &n);
    assert_int_equal(n, 0);
    pare_decode(t, -1, 2, &n);
    assert_int_equal(n, 0);
    pare_decode(t, -1, 100000, &n);
    assert_int_equal(n, 0);
    pare_decode(t, -1, -1, &n);
    assert_int_equal(n, 0);
    pare_arena_free(a);
}

static void the_golden_tokens_come_out_of_the_first_story(void **state)
{
    (void)state;
    /* The first of golden_stories260K. */
    static const int64_t golden[] = {1,   385, 328, 432, 261, 376, 298, 315, 421, 395, 317, 272,
                                     277, 264, 261, 404, 266, 305, 322, 311, 352, 414, 287, 426,
                                     338, 409, 416, 411, 424, 312, 286, 279, 417, 431, 431, 417,
                                     429, 425, 421, 413, 267, 337, 335, 312, 329, 429, 412, 425,
                                     372, 312, 286, 262, 415, 295, 427, 426, 317, 391, 266, 267};
    NEED_SHARED(TOK);
    NEED_SHARED(TALES);
    size_t bytes, text_bytes, n;
    uint8_t *vocab = test_read_file(TOK, &bytes), *text = test_read_file(TALES, &text_bytes);
    pare_arena *a = pare_arena_new();
    pare_err err;
    const pare_tokenizer *t = open_llama(a, vocab, bytes);
    assert_int_equal(pare_tokenizer_size(t), 512);
    int64_t *ids;
    assert_ok(pare_encode(&ids, &n, a, t, (const char *)text, 1000, &err), &err);
    assert_true(n > 60);
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) assert_int_equal(ids[i], golden[i]);
    assert_round_trip(t, (const char *)text, text_bytes, 0);
    pare_arena_free(a);
    free(vocab);
    free(text);
}

/* The rule as it is written: best score, leftmost, again. */
static size_t slow_merge(const char *const *text, const float *score, size_t tokens, int64_t *v,
                         size_t n)
{
    for (;;) {
        int64_t best = -1;
        size_t where = 0;
        for (size_t i = 0; i + 1 < n; i++)
            for (size_t k = 0; k < tokens; k++) {
                const size_t left = strlen(text[v[i]]);
                if (strlen(text[k]) != left + strlen(text[v[i + 1]]) ||
                    strncmp(text[k], text[v[i]], left) != 0 ||
                    strcmp(text[k] + left, text[v[i + 1]]) != 0)
                    continue;
                if (best < 0 || score[k] > score[best]) {
                    best = (int64_t)k;
                    where = i;
                }
            }
        if (best < 0) return n;
        v[where] = best;
        memmove(v + where + 1, v + where + 2, (n - where - 2) * sizeof *v);
        n--;
    }
}

static void random_vocabularies_agree_with_the_plain_loop(void **state)
{
    (void)state;
    static const char *const text[] = {" ",  "a",   "b",   "ab",  "ba",   "aa",   "bb",  " a",
                                       " b", "aab", "abb", "baa", "abab", "aaaa", "ba a"};
    enum { TOKENS = sizeof text / sizeof *text };
    for (uint64_t seed = 0; seed < 300; seed++) {
        pare_rng rng = pare_rng_at(seed, 0);
        float score[TOKENS];
        maker m;
        begin(&m);
        for (size_t k = 0; k < TOKENS; k++) {
            score[k] = -(float)pare_rng_below(&rng, 6); /* many ties */
            add(&m, text[k], score[k]);
        }
        char word[80];
        int64_t want[82] = {0};
        const size_t n = 1 + pare_rng_below(&rng, 80);
        for (size_t i = 0; i < n; i++) {
            const size_t k = pare_rng_below(&rng, 3);
            word[i] = text[k][0];
            want[i + 1] = (int64_t)k;
        }
        const size_t expected = slow_merge(text, score, TOKENS, want, n + 1);
        pare_arena *a = pare_arena_new();
        pare_err err;
        int64_t *ids;
        size_t got;
        assert_ok(pare_encode(&ids, &got, a, open_llama(a, m.bytes, m.n), word, n, &err), &err);
        bool same = got == expected + 1 && ids[0] == 1;
        for (size_t i = 0; same && i < expected; i++) same = ids[i + 1] == want[i] + 259;
        if (!same) {
            print_error("seed %llu: %zu ids, %zu expected\n", (unsigned long long)seed, got,
                        expected + 1);
            fail();
        }
        pare_arena_free(a);
    }
}

static void any_bytes_come_back(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    add(&m, " ", -1);
    add(&m, "  ", -1);
    add(&m, " t", -1);
    add(&m, "\xC3\xA9", -1);
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_llama(a, m.bytes, m.n);
    for (uint64_t seed = 0; seed < 300; seed++) {
        pare_rng rng = pare_rng_at(seed, 1);
        char text[300];
        assert_round_trip(t, text, random_text(text, 1 + pare_rng_below(&rng, 299), &rng), seed);
    }
    pare_arena_free(a);
}

static void damaged_files_are_refused(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    add(&m, " ", NAN);
    pare_arena *a = pare_arena_new();
    pare_tokenizer *t;
    pare_err err;
    assert_status(pare_tokenizer_new(&t, a, PARE_TOK_LLAMA2C, m.bytes, m.n, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "token 259");
    assert_status(pare_tokenizer_new(&t, a, PARE_TOK_LLAMA2C, m.bytes, m.n - 1, &err),
                  PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "cut off");
    begin(&m);
    m.n -= 14; /* the last byte's token: 8 + strlen("<0xFF>") */
    assert_status(pare_tokenizer_new(&t, a, PARE_TOK_LLAMA2C, m.bytes, m.n, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "258 tokens");
    begin(&m);
    m.bytes[8] = 200; /* length of token 0: longer than the longest */
    assert_status(pare_tokenizer_new(&t, a, PARE_TOK_LLAMA2C, m.bytes, m.n, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "token 0");
    pare_arena_free(a);
}

/* As in the file that comes with stories15M: bytes in front, the token that was trained behind. */
static void of_equal_entries_the_last_counts_and_it_is_said(void **state)
{
    (void)state;
    maker m;
    begin(&m);
    const int64_t blank = add(&m, " ", -9);
    add(&m, ".", -1);
    const int64_t last = add(&m, ".", -9);
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_llama(a, m.bytes, m.n);
    ASSERT_IDS(t, ".", 1, blank, last);
    assert_contains(pare_tokenizer_notes(t), "1 entries twice");
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_equal_entries_the_last_counts_and_it_is_said),
        cmocka_unit_test(best_score_merges_first_and_ties_from_the_left),
        cmocka_unit_test(unknown_characters_become_their_bytes),
        cmocka_unit_test(decoding_drops_the_blank_after_the_beginning_only),
        cmocka_unit_test(the_golden_tokens_come_out_of_the_first_story),
        cmocka_unit_test(random_vocabularies_agree_with_the_plain_loop),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(damaged_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
