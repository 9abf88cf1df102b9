/* Tests src/text/tokenizer.c: which kind, and that no bytes can hurt. */
#include "../data/small.h"

static void bytes_are_their_own_ids(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_tokenizer *t;
    pare_err err;
    assert_ok(pare_tokenizer_new(&t, a, PARE_TOK_BYTES, NULL, 0, &err), &err);
    assert_int_equal(pare_tokenizer_size(t), 256);
    int64_t *ids;
    size_t n;
    assert_ok(pare_encode(&ids, &n, a, t, "a\xFF\0", 3, &err), &err);
    assert_int_equal(n, 3);
    assert_int_equal(ids[0], 'a');
    assert_int_equal(ids[1], 255);
    assert_int_equal(ids[2], 0);
    char all[256];
    for (size_t i = 0; i < 256; i++) all[i] = (char)i;
    assert_round_trip(t, all, 256, 0);
    pare_arena_free(a);
}

static void a_model_without_a_tokenizer_says_so(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_tokenizer *t;
    pare_err err;
    assert_status(pare_tokenizer_new(&t, a, PARE_TOK_NONE, NULL, 0, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "no tokenizer");
    assert_status(pare_tokenizer_new(&t, a, PARE_TOK_GPT2, NULL, 0, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "empty");
    pare_arena_free(a);
}

static pare_tokenizer_kind kind_of(const void *vocab, size_t bytes, pare_status want)
{
    pare_tokenizer_kind kind;
    pare_err err;
    assert_status(pare_vocab_detect(&kind, vocab, bytes, &err), want, &err);
    return kind;
}

static void kinds_are_told_apart_by_content(void **state)
{
    (void)state;
    assert_int_equal(kind_of("#version: 0.2\na b\n", 18, PARE_OK), PARE_TOK_GPT2);
    assert_int_equal(kind_of("a b\nab c\n", 9, PARE_OK), PARE_TOK_GPT2);
    assert_int_equal(kind_of("good\nbad\n", 9, PARE_OK), PARE_TOK_WORDS);
    assert_int_equal(kind_of("two words\nbad\n", 14, PARE_ERR_INPUT), PARE_TOK_NONE);
    assert_int_equal(kind_of("", 0, PARE_ERR_INPUT), PARE_TOK_NONE);
    pare_err err;
    pare_tokenizer_kind kind;
    assert_status(pare_vocab_detect(&kind, (const uint8_t *)"#version: 0.2\na b\nx\n", 20, &err),
                  PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "line 3"); /* it said what it is: the reason of that kind */
}

static const char *const FILES[] = {"../shared/data/bpe/vocab.bpe",
                                    "../shared/data/models/stories260K_tok512.bin",
                                    "../shared/data/models/bert_sst_vocab.txt"};
static const pare_tokenizer_kind KINDS[] = {PARE_TOK_GPT2, PARE_TOK_LLAMA2C, PARE_TOK_WORDS};

static void real_vocabularies_are_recognized(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        NEED_SHARED(FILES[i]);
        size_t bytes;
        uint8_t *vocab = test_read_file(FILES[i], &bytes);
        assert_int_equal(kind_of(vocab, bytes, PARE_OK), KINDS[i]);
        free(vocab);
    }
}

/* Opens and, when that works, uses: whatever comes, no crash and no bad id. */
static void use(pare_tokenizer_kind kind, const uint8_t *vocab, size_t bytes)
{
    pare_arena *a = pare_arena_new();
    pare_tokenizer *t;
    pare_err err;
    const pare_status st = pare_tokenizer_new(&t, a, kind, vocab, bytes, &err);
    assert_true(st == PARE_OK || st == PARE_ERR_INPUT);
    if (st == PARE_OK) {
        int64_t *ids;
        size_t n, len;
        assert_ok(pare_encode(&ids, &n, a, t, "a Lily's \xFF\n 12", 14, &err), &err);
        for (size_t i = 0; i < n; i++) {
            assert_true(ids[i] >= 0 && (size_t)ids[i] < pare_tokenizer_size(t));
            pare_decode(t, i ? ids[i - 1] : -1, ids[i], &len);
        }
    }
    pare_arena_free(a);
}

static void garbled_vocabularies_do_no_harm(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        NEED_SHARED(FILES[i]);
        size_t bytes;
        uint8_t *vocab = test_read_file(FILES[i], &bytes);
        if (bytes > 6000) bytes = 6000; /* the beginning is enough, and exact for the sanitizer */
        for (uint64_t seed = 0; seed < 200; seed++) {
            pare_rng rng = pare_rng_at(seed, i);
            const size_t n = 1 + pare_rng_below(&rng, bytes);
            uint8_t *copy = malloc(n); /* so that one byte too far is seen */
            assert_non_null(copy);
            memcpy(copy, vocab, n);
            for (size_t k = pare_rng_below(&rng, 4); k > 0; k--)
                copy[pare_rng_below(&rng, n)] = (uint8_t)pare_rng_below(&rng, 256);
            for (size_t k = 0; k < 3; k++) use(KINDS[k], copy, n);
            free(copy);
        }
        free(vocab);
    }
}

static void random_bytes_as_a_vocabulary_do_no_harm(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 500; seed++) {
        pare_rng rng = pare_rng_at(seed, 9);
        const size_t n = 1 + pare_rng_below(&rng, 200);
        uint8_t *v = malloc(n);
        assert_non_null(v);
        for (size_t i = 0; i < n; i++)
            v[i] = seed % 2 ? (uint8_t)pare_rng_below(&rng, 256)
                            : (uint8_t) "ab \n\r\0\xC4\xA0"[pare_rng_below(&rng, 8)];
        for (size_t k = 0; k < 3; k++) use(KINDS[k], v, n);
        free(v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_their_own_ids),
        cmocka_unit_test(a_model_without_a_tokenizer_says_so),
        cmocka_unit_test(kinds_are_told_apart_by_content),
        cmocka_unit_test(real_vocabularies_are_recognized),
        cmocka_unit_test(garbled_vocabularies_do_no_harm),
        cmocka_unit_test(random_bytes_as_a_vocabulary_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
