/* Tests src/text/tokenizer_gpt2.c and bpe_merge.c. */
#include "../data/small.h"
#include "text/tokenizer.h"
#include <cjson/cJSON.h>

#define BPE     "../shared/data/bpe/vocab.bpe"
#define ENCODER "../shared/data/bpe/encoder.json"

/* ids: a=64 b=65 c=66 (33 is the first printed byte, so 'a' is 97-33), blank is 220. */
static const char TINY[] = "#version: 0.2\na b\nb c\nab c\n\xC4\xA0 ab\n";
enum { A = 64, B = 65, C = 66, BLANK = 220, AB = 256, BC, ABC, BLANK_AB, END };

static pare_tokenizer *open_bpe(pare_arena *a, const void *vocab, size_t bytes)
{
    pare_tokenizer *t;
    pare_err err;
    assert_ok(pare_tokenizer_new(&t, a, PARE_TOK_GPT2, vocab, bytes, &err), &err);
    return t;
}

static void assert_ids(const pare_tokenizer *t, const char *text, size_t n, const int64_t *want)
{
    pare_arena *a = pare_arena_new();
    pare_err err;
    int64_t *ids;
    size_t got;
    assert_ok(pare_encode(&ids, &got, a, t, text, strlen(text), &err), &err);
    bool same = got == n;
    for (size_t i = 0; same && i < n; i++) same = ids[i] == want[i];
    if (!same) {
        print_error("\"%s\":", text);
        for (size_t i = 0; i < got; i++) print_error(" %lld", (long long)ids[i]);
        print_error("\n");
        fail();
    }
    pare_arena_free(a);
}
#define ASSERT_IDS(t, text, ...)                                                                   \
    assert_ids(t, text, sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static void merges_go_by_line_then_from_the_left(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_bpe(a, TINY, sizeof TINY - 1);
    assert_int_equal(pare_tokenizer_size(t), END + 1);
    ASSERT_IDS(t, "abc", ABC); /* a b before b c */
    ASSERT_IDS(t, "bcab", BC, AB);
    ASSERT_IDS(t, "aabcc", A, ABC, C);
    ASSERT_IDS(t, "ab ab", AB, BLANK_AB);
    ASSERT_IDS(t, "ab  ab", AB, BLANK, BLANK_AB); /* the last blank belongs to the word */
    ASSERT_IDS(t, " abc", BLANK, ABC);            /* ab c is an earlier line than Ġ ab */
    ASSERT_IDS(t, "a<|endoftext|>b", A, END, B);
    ASSERT_IDS(t, "<|endoftext|><|endoftext|>", END, END);
    ASSERT_IDS(t, "a<|endoftext", A, '<' - 33, '|' - 33, 'e' - 33, 'n' - 33, 'd' - 33, 'o' - 33,
               'f' - 33, 't' - 33, 'e' - 33, 'x' - 33, 't' - 33);
    assert_ids(t, "", 0, NULL);
    pare_arena_free(a);
}

static void pieces_are_cut_where_the_pattern_cuts(void **state)
{
    (void)state;
    /* '~' marks where one piece ends and the next begins. */
    static const char *const cut[] = {
        "Hello~ world", "it~'s",
        "it~ '~s",      "we~'re~'ve~'d~'ll~'m~'t",
        "'~S",          "''~s",
        "a~   ~ b",     "a~ \n~\n~b",
        "a~\n~b",       "a~  ",
        "x~2~y",        "x~ 22~ !?~7",
        "\t~\t~a",      "caf\xC3\xA9~ \xC2\xBD~\xC3\x97",
        "a~\xC2\xA0~b", "a~ ~\xC2\xA0~b",
        "a~\xFF\xFE~b", " ~\xE2\x80\x83~x",
    };
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        char text[64];
        size_t n = 0, at = 0;
        for (const char *s = cut[i]; *s; s++)
            if (*s != '~') text[n++] = *s;
        for (const char *s = cut[i]; *s;) {
            const size_t want = strcspn(s, "~"), got = pare_bpe_cut(text + at, n - at);
            if (got != want) {
                print_error("\"%s\": a piece of %zu bytes at %zu\n", cut[i], got, at);
                fail();
            }
            at += want;
            s += want + (s[want] == '~');
        }
    }
}

static void all_ids_are_those_of_encoder_json(void **state)
{
    (void)state;
    NEED_SHARED(BPE);
    NEED_SHARED(ENCODER);
    size_t bytes, json_bytes;
    uint8_t *vocab = test_read_file(BPE, &bytes), *json = test_read_file(ENCODER, &json_bytes);
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_bpe(a, vocab, bytes);
    assert_int_equal(pare_tokenizer_size(t), 50257);
    /* The characters that stand for bytes, built anew: printed ones first. */
    char *const printed = malloc(512);
    int16_t byte_of[0x200];
    memset(byte_of, -1, sizeof byte_of);
    for (int b = 0, next = 256; b < 256; b++) {
        const bool own = (b > 32 && b < 127) || (b > 160 && b != 173);
        byte_of[own ? b : next++] = (int16_t)b;
    }
    cJSON *root = cJSON_Parse((const char *)json);
    assert_non_null(root);
    size_t seen = 0;
    for (const cJSON *e = root->child; e; e = e->next, seen++) {
        size_t n = 0, len;
        const bool end = strcmp(e->string, "<|endoftext|>") == 0;
        for (const char *s = e->string; *s && !end;) {
            const unsigned c = (uint8_t)s[0] < 0x80
                                   ? (uint8_t)s[0]
                                   : ((uint8_t)s[0] & 31u) << 6 | ((uint8_t)s[1] & 63u);
            s += c < 0x80 ? 1 : 2;
            printed[n++] = (char)byte_of[c];
        }
        if (end) n = (size_t)sprintf(printed, "<|endoftext|>");
        const char *mine = pare_decode(t, -1, e->valueint, &len);
        if (len != n || memcmp(mine, printed, n) != 0) {
            print_error("id %d, %s\n", e->valueint, e->string);
            fail();
        }
    }
    assert_int_equal(seen, 50257);
    cJSON_Delete(root);
    free(printed);
    pare_arena_free(a);
    free(vocab);
    free(json);
}

static void encodings_that_the_world_knows(void **state)
{
    (void)state;
    NEED_SHARED(BPE);
    size_t bytes;
    uint8_t *vocab = test_read_file(BPE, &bytes);
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_bpe(a, vocab, bytes);
    ASSERT_IDS(t, "Hello world", 15496, 995);
    ASSERT_IDS(t, "Hello, world!", 15496, 11, 995, 0);
    ASSERT_IDS(t, "\n", 198);
    ASSERT_IDS(t, "\n\n", 628);
    ASSERT_IDS(t, "a\n\nb", 64, 198, 198, 65); /* the last line end is a piece of its own */
    ASSERT_IDS(t, " ", 220);
    ASSERT_IDS(t, "<|endoftext|>", 50256);
    pare_arena_free(a);
    free(vocab);
}

/* ---- a slow second opinion ------------------------------------------------------------------- */

/* The plain loop: find the pair of the earliest line, merge all its occurrences, start again. */
typedef struct slow {
    int32_t left[8], right[8];
    size_t merges;
} slow;

static size_t slow_merge(const slow *s, int32_t *v, size_t n)
{
    for (size_t line = 0; line < s->merges;) {
        size_t to = 0;
        bool any = false;
        for (size_t i = 0; i < n; i++) {
            const bool hit = i + 1 < n && v[i] == s->left[line] && v[i + 1] == s->right[line];
            v[to++] = hit ? (int32_t)(256 + line) : v[i];
            i += hit;
            any = any || hit;
        }
        n = to;
        line = any ? 0 : line + 1;
    }
    return n;
}

static void random_merges_agree_with_the_plain_loop(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        pare_rng rng = pare_rng_at(seed, 0);
        /* Lines over "ab": each joins two tokens made before; repeats are left out. */
        char text[14][80] = {"a", "b"}, file[4096];
        int32_t id[14] = {A, B};
        size_t tokens = 2, used = (size_t)sprintf(file, "#version: 0.2\n");
        slow s = {.merges = 0};
        while (s.merges < 8) {
            const size_t l = pare_rng_below(&rng, tokens), r = pare_rng_below(&rng, tokens);
            char joined[160];
            sprintf(joined, "%s%s", text[l], text[r]);
            bool twin = strlen(joined) > 70;
            for (size_t i = 0; i < tokens; i++) twin = twin || strcmp(text[i], joined) == 0;
            if (twin) continue;
            used += (size_t)sprintf(file + used, "%s %s\n", text[l], text[r]);
            s.left[s.merges] = id[l];
            s.right[s.merges] = id[r];
            strcpy(text[tokens], joined);
            id[tokens++] = (int32_t)(256 + s.merges++);
        }
        pare_arena *a = pare_arena_new();
        pare_err err;
        const pare_tokenizer *t = open_bpe(a, file, used);
        char word[400];
        int32_t want[400];
        const size_t n = 1 + pare_rng_below(&rng, 399);
        for (size_t i = 0; i < n; i++) {
            word[i] = pare_rng_below(&rng, 2) ? 'a' : 'b';
            want[i] = word[i] == 'a' ? A : B;
        }
        const size_t expected = slow_merge(&s, want, n);
        int64_t *ids;
        size_t got;
        assert_ok(pare_encode(&ids, &got, a, t, word, n, &err), &err);
        bool same = got == expected;
        for (size_t i = 0; same && i < got; i++) same = ids[i] == want[i];
        if (!same) {
            print_error("seed %llu\n", (unsigned long long)seed);
            fail();
        }
        pare_arena_free(a);
    }
}

static void any_bytes_come_back(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_bpe(a, TINY, sizeof TINY - 1);
    for (uint64_t seed = 0; seed < 300; seed++) {
        pare_rng rng = pare_rng_at(seed, 1);
        char text[600];
        assert_round_trip(t, text, random_text(text, 1 + pare_rng_below(&rng, 599), &rng), seed);
    }
    pare_arena_free(a);
}

static void real_texts_come_back(void **state)
{
    (void)state;
    static const char *const files[] = {"../shared/data/text/tinyshakespeare.txt",
                                        "../shared/data/text/wt2_valid.txt"};
    NEED_SHARED(BPE);
    size_t bytes, text_bytes;
    uint8_t *vocab = test_read_file(BPE, &bytes);
    pare_arena *a = pare_arena_new();
    const pare_tokenizer *t = open_bpe(a, vocab, bytes);
    for (size_t i = 0; i < 2; i++) {
        NEED_SHARED(files[i]);
        uint8_t *text = test_read_file(files[i], &text_bytes);
        assert_round_trip(t, (const char *)text, text_bytes, 0);
        free(text);
    }
    pare_arena_free(a);
    free(vocab);
}

static void a_megabyte_without_a_blank_ends(void **state)
{
    (void)state;
    const size_t n = 1 << 20;
    char *text = malloc(n);
    assert_non_null(text);
    for (size_t i = 0; i < n; i++) text[i] = "aabcb"[i % 5];
    pare_arena *a = pare_arena_new();
    assert_round_trip(open_bpe(a, TINY, sizeof TINY - 1), text, n, 0);
    pare_arena_free(a);
    free(text);
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *vocab, *says;
    } bad[] = {
        {"#version: 0.2\na b\nab\n", "line 3"},
        {"a b\na b\n", "line 2: repeats"},
        {"a b\n#version: 0.2\n", "line 2"},
        {"a b\nab cd\n", "line 2: its second piece"},
        {"ab a\n", "line 1: its first piece"},
        {"a b\n\na c\n", "line 2: not two pieces"},
        {"a b c\n", "line 1: not two"},
        {"a \n", "line 1: not two"},
        {" a\n", "line 1: not two"},
        {"a \xFF\n", "line 1: not two"},
        {"#version: 0.2\n", "no merges"},
        {"a \xE4\xB8\xAD\n", "line 1: not two pieces"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pare_arena *a = pare_arena_new();
        pare_tokenizer *t;
        pare_err err;
        assert_status(pare_tokenizer_new(&t, a, PARE_TOK_GPT2, (const uint8_t *)bad[i].vocab,
                                         strlen(bad[i].vocab), &err),
                      PARE_ERR_INPUT, &err);
        assert_contains(err.msg, bad[i].says);
        assert_null(t);
        pare_arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(merges_go_by_line_then_from_the_left),
        cmocka_unit_test(pieces_are_cut_where_the_pattern_cuts),
        cmocka_unit_test(all_ids_are_those_of_encoder_json),
        cmocka_unit_test(encodings_that_the_world_knows),
        cmocka_unit_test(random_merges_agree_with_the_plain_loop),
        cmocka_unit_test(any_bytes_come_back),
        cmocka_unit_test(real_texts_come_back),
        cmocka_unit_test(a_megabyte_without_a_blank_ends),
        cmocka_unit_test(bad_lines_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
