/* Tests src/text/tokenizer_files.c, sentencepiece.c, tokenizer_folder.c and tokenizer_json.c: files that
 * are older than tokenizer.json become one that means the same; the n-th allocation fails, for every
 * n, alone or with all after it. */
#include "text/tokenizer_folder.h"
#include <fail_alloc.h>
#include <pare/run.h>
#include <pare_test.h>

static const char MODEL[] = /* <unk>, <s>, </s>, a, b, ab; trained as BPE; no blank before */
    "\n\x0E\n\x05<unk>\x15\0\0\0\0\x18\2\n\x0C\n\3<s>\x15\0\0\0\0\x18\3"
    "\n\x0D\n\4</s>\x15\0\0\0\0\x18\3\n\x08\n\1a\x15\0\0\x40\xC0\n\x08\n\1b\x15\0\0\x80\xC0"
    "\n\x09\n\2ab\x15\0\0\x80\xBF\x12\2\x18\2\x1A\2\x18\0";

static const char UNIGRAM[] = /* <unk>, <s>, </s>, U+2581, a, ab, as XLM-R's file has them */
    "\n\x0E\n\x05<unk>\x15\0\0\0\0\x18\2\n\x0C\n\3<s>\x15\0\0\0\0\x18\3"
    "\n\x0D\n\4</s>\x15\0\0\0\0\x18\3\n\x0A\n\3\xE2\x96\x81\x15\0\0\x40\xC0"
    "\n\x08\n\1a\x15\0\0\x80\xC0\n\x09\n\2ab\x15\0\0\x80\xBF\x12\2\x18\1";

typedef pare_status make_fn(cJSON **out, pare_arena *a, const char **notes, pare_err *err);

static pare_status make_wordpiece(cJSON **out, pare_arena *a, const char **notes, pare_err *err)
{
    static const char lines[] = "[UNK]\n[CLS]\n[SEP]\nplay\n##ing\nplay\n";
    const pare_tokenizer_config c = {.class = "BertTokenizer"};
    return pare_json_of_wordpiece(out, a, (pare_piece){lines, sizeof lines - 1}, &c, notes, err);
}

static pare_status make_bpe(cJSON **out, pare_arena *a, const char **notes, pare_err *err)
{
    static const char vocab[] = "{\"a\":0,\"b\":1,\"ab\":2,\"<s>\":3,\"</s>\":4}";
    static const char merges[] = "#version: 0.2\na b\n";
    const pare_tokenizer_config c = {.class = "RobertaTokenizer"};
    return pare_json_of_bpe(out, a, (pare_piece){vocab, sizeof vocab - 1},
                            (pare_piece){merges, sizeof merges - 1}, &c, notes, err);
}

static pare_status make_sentencepiece(cJSON **out, pare_arena *a, const char **notes, pare_err *err)
{
    const pare_tokenizer_config c = {.class = "LlamaTokenizer"};
    (void)notes;
    return pare_json_of_sentencepiece(out, a, (pare_piece){MODEL, sizeof MODEL - 1}, &c, err);
}

static pare_status make_fairseq(cJSON **out, const char *class, pare_arena *a, pare_err *err)
{
    const pare_tokenizer_config c = {.class = class};
    return pare_json_of_sentencepiece(out, a, (pare_piece){UNIGRAM, sizeof UNIGRAM - 1}, &c, err);
}

static pare_status make_xlmr(cJSON **out, pare_arena *a, const char **notes, pare_err *err)
{
    (void)notes;
    return make_fairseq(out, "XLMRobertaTokenizer", a, err);
}

static pare_status make_camembert(cJSON **out, pare_arena *a, const char **notes, pare_err *err)
{
    (void)notes;
    return make_fairseq(out, "CamembertTokenizerFast", a, err);
}

/* added_tokens.json: <x> is found in normalized text, [Y] as it is written. */
static pare_status make_added(cJSON **out, pare_arena *a, const char **notes, pare_err *err)
{
    static const char lines[] = "[UNK]\n[CLS]\n[SEP]\nplay\n";
    static const char added[] = "{\"<x>\": 9, \"[Y]\": 7}";
    static const char map[] = "{\"additional_special_tokens\": [{\"content\": \"[Y]\"}]}";
    cJSON *tokens = NULL, *special = NULL;
    pare_status st = pare_json_parse(&tokens, added, sizeof added - 1, err);
    if (!st) st = pare_json_parse(&special, map, sizeof map - 1, err);
    const pare_tokenizer_config c = {.class = "BertTokenizer", .added = tokens, .special = special};
    if (!st)
        st = pare_json_of_wordpiece(out, a, (pare_piece){lines, sizeof lines - 1}, &c, notes, err);
    cJSON_Delete(tokens);
    cJSON_Delete(special);
    return st;
}

static const struct {
    make_fn *make;
    const char *text;
    int64_t ids[8];
    size_t n;
} cases[] = {
    {make_wordpiece, "Playing", {1, 5, 4, 2}, 4}, /* of equal lines the last; lower-cased */
    {make_bpe, "ab", {3, 2, 4}, 3},
    {make_sentencepiece, "ab", {1, 5}, 2},
    /* entry i of the file is i + 1, an unknown word 3, the mask last and with the blank before it */
    {make_xlmr, "ab q <mask>", {0, 4, 6, 4, 3, 7, 2}, 7},
    {make_camembert, "a<pad>", {5, 7, 8, 1, 6}, 5},
    {make_added, "play [Y] [y] <X>", {1, 3, 7, 0, 0, 0, 9, 2}, 8},
};

static pare_status encode(size_t i, int64_t **ids, size_t *n, pare_arena *a, pare_err *err)
{
    cJSON *root = NULL;
    char *json = NULL;
    const char *notes = NULL;
    size_t bytes = 0;
    pare_tokenizer *t = NULL;
    pare_status st = cases[i].make(&root, a, &notes, err);
    if (!st) st = pare_json_print(&json, &bytes, a, root, 0, err);
    cJSON_Delete(root);
    if (!st) st = pare_tokenizer_new(&t, a, PARE_TOK_JSON, (const uint8_t *)json, bytes, err);
    return st ? st : pare_encode(ids, n, a, t, cases[i].text, strlen(cases[i].text), err);
}

static void older_files_mean_the_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pare_arena *const a = pare_arena_new();
        int64_t *ids;
        size_t n;
        pare_err err;
        assert_ok(encode(i, &ids, &n, a, &err), &err);
        assert_int_equal(n, cases[i].n);
        for (size_t k = 0; k < n; k++) assert_int_equal(ids[k], cases[i].ids[k]);
        pare_arena_free(a);
    }
}

static void a_model_cut_anywhere_is_refused_or_read(void **state)
{
    (void)state;
    for (size_t bytes = 0; bytes < sizeof MODEL - 1; bytes++) {
        const pare_tokenizer_config c = {.class = ""};
        pare_arena *const a = pare_arena_new();
        cJSON *root = NULL;
        pare_err err = {0};
        const pare_status st =
            pare_json_of_sentencepiece(&root, a, (pare_piece){MODEL, bytes}, &c, &err);
        assert_true(st == PARE_OK || st == PARE_ERR_INPUT);
        assert_int_equal(root == NULL, st != PARE_OK);
        cJSON_Delete(root);
        pare_arena_free(a);
    }
}

static void what_is_no_file_of_the_class_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *class, *file, *says;
        size_t n;
    } wrong[] = {
        {"XLMRobertaTokenizer", MODEL, "is not the Unigram model", sizeof MODEL - 1},
        {"XLMRobertaTokenizer", UNIGRAM, "is not the Unigram model", 16},
        {"T5Tokenizer", UNIGRAM, "tokenizer_class is", sizeof UNIGRAM - 1},
        {"LlamaTokenizerX", UNIGRAM, "tokenizer_class is", sizeof UNIGRAM - 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const pare_tokenizer_config c = {.class = wrong[i].class};
        pare_arena *const a = pare_arena_new();
        cJSON *root = NULL;
        pare_err err = {0};
        assert_int_equal(
            pare_json_of_sentencepiece(&root, a, (pare_piece){wrong[i].file, wrong[i].n}, &c, &err),
            PARE_ERR_INPUT);
        assert_contains(err.msg, wrong[i].says);
        pare_arena_free(a);
    }
}

static void added_tokens_without_an_id_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"{\"a\": -1}", "{\"a\": 1.5}", "{\"a\": \"1\"}",
                                        "{\"\": 3}", "{\"a\": 1e300}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pare_arena *const a = pare_arena_new();
        cJSON *root = NULL, *tokens = NULL;
        const char *notes = NULL;
        pare_err err = {0};
        assert_ok(pare_json_parse(&tokens, wrong[i], strlen(wrong[i]), &err), &err);
        const pare_tokenizer_config c = {.class = "BertTokenizer", .added = tokens};
        assert_int_equal(
            pare_json_of_wordpiece(&root, a, (pare_piece){"[UNK]\na\n", 8}, &c, &notes, &err),
            PARE_ERR_INPUT);
        assert_contains(err.msg, "has no id");
        assert_null(root);
        cJSON_Delete(tokens);
        pare_arena_free(a);
    }
}

static void refuse_each(size_t i, void (*refuse)(long n))
{
    bool ran_out = true;
    for (long n = 0; ran_out; n++) {
        pare_arena *const a = pare_arena_new();
        int64_t *ids;
        size_t got;
        pare_err err = {0};
        refuse(n);
        const pare_status st = encode(i, &ids, &got, a, &err);
        ran_out = fail_alloc_hit();
        fail_alloc_after(-1);
        if (st != (ran_out ? PARE_ERR_MEMORY : PARE_OK))
            fail_msg("case %zu, allocation %ld: status %d, %s", i, n, (int)st, err.msg);
        pare_arena_free(a);
        assert_true(n < 100000);
    }
}

static void memory_that_fails_is_said(void **state)
{
    (void)state;
    fail_alloc_in_json();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refuse_each(i, fail_alloc_after);
        refuse_each(i, fail_alloc_once);
    }
}

static void special_tokens_without_a_possible_id_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"{\"a\":0,\"<s>\":1,\"</s>\":-8}",
                                        "{\"<s>\":8e29,\"</s>\":2}"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        pare_arena *const a = pare_arena_new();
        cJSON *root = NULL;
        const char *notes = NULL;
        pare_err err = {0};
        const pare_tokenizer_config c = {.class = "RobertaTokenizer"};
        assert_int_equal(pare_json_of_bpe(&root, a, (pare_piece){wrong[i], strlen(wrong[i])},
                                          (pare_piece){"a a\n", 4}, &c, &notes, &err),
                         PARE_ERR_INPUT);
        assert_contains(err.msg, "has the id");
        assert_null(root);
        pare_arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(older_files_mean_the_same),
        cmocka_unit_test(a_model_cut_anywhere_is_refused_or_read),
        cmocka_unit_test(what_is_no_file_of_the_class_is_refused),
        cmocka_unit_test(added_tokens_without_an_id_are_refused),
        cmocka_unit_test(special_tokens_without_a_possible_id_are_refused),
        cmocka_unit_test(memory_that_fails_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
