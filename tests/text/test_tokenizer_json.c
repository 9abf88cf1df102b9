/* Tests src/text/normalize.c, pretokenize.c, regex.c, tokenizer_json.c, token_texts.c, subword.c,
 * subword_bpe.c, subword_unigram.c, added_tokens.c. Normalized texts and words are what npm's
 * tokenizers 0.23.2 makes. */
#include "text/pretokenize.h"
#include <pare/run.h>
#include <pare_test.h>

typedef struct sample {
    const char *json, *text, *want; /* words: with | between */
} sample;

/* clang-format off */
static const sample normalized[] = {
    {"{\"type\":\"NFD\"}", "\303\251 \357\254\201", "e\314\201 \357\254\201"},
    {"{\"type\":\"NFKC\"}", "\357\254\201 \303\205 \357\274\241", "fi \303\205 A"},
    {"{\"type\":\"NFC\"}", "e\314\201x\314\243\314\207", "\303\251\341\272\213\314\243"},
    {"{\"type\":\"NFKD\"}", "\357\254\201\303\251\342\221\240", "fie\314\2011"},
    {"{\"type\":\"Lowercase\"}", "\303\200\304\260\341\272\236\316\221\316\243", "\303\240i\314\207\303\237\316\261\317\203"},
    {"{\"type\":\"StripAccents\"}", "e\314\201a\314\243\340\244\276", "ea"},
    {"{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":false}", "\343\200\200 a b \012", "a b \012"},
    {"{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}", " a b \343\200\200", " a b"},
    {"{\"type\":\"Nmt\"}", "a\342\200\213b\007c\011q", "a bc q"},
    {"{\"type\":\"Prepend\",\"prepend\":\"_\"}", "ab", "_ab"},
    {"{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"b+\"},\"content\":\"-\"}", "abbcb", "a-c-"},
    {"{\"type\":\"Replace\",\"pattern\":{\"String\":\".\"},\"content\":\"!\"}", "a.b.", "a!b!"},
    {"{\"type\":\"BertNormalizer\",\"clean_text\":true,\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true}", "\303\211l\007 a\011\344\270\255x\342\200\215\337\275", "el a  \344\270\255 x\337\275"},
    {"{\"type\":\"BertNormalizer\",\"clean_text\":false,\"handle_chinese_chars\":false,\"strip_accents\":false,\"lowercase\":true}", "\303\211l \344\270\255", "\303\251l \344\270\255"},
    {"{\"type\":\"ByteLevel\"}", "\303\251 a", "\303\203\302\251\304\240a"},
    {"{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":\"Lowercase\"}]}", "\357\274\241B", "ab"},
};
static const sample words[] = {
    {"{\"type\":\"BertPreTokenizer\"}", "Hey, you!x  \302\277y", "Hey|,|you|!|x|\302\277|y"},
    {"{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true}", "Hello  you're \303\251", "\304\240Hello|\304\240|\304\240you|'re|\304\240\303\203\302\251"},
    {"{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":false}", "a b", "a\304\240b"},
    {"{\"type\":\"Metaspace\",\"replacement\":\"\342\226\201\",\"prepend_scheme\":\"always\",\"split\":true}", "a  b c", "\342\226\201a|\342\226\201|\342\226\201b|\342\226\201c"},
    {"{\"type\":\"Metaspace\",\"replacement\":\"\342\226\201\",\"prepend_scheme\":\"never\",\"split\":true}", " a b", "\342\226\201a|\342\226\201b"},
    {"{\"type\":\"Metaspace\",\"replacement\":\"\342\226\201\",\"prepend_scheme\":\"first\",\"split\":false}", "a b", "\342\226\201a\342\226\201b"},
    {"{\"type\":\"Whitespace\"}", "a_b, c-d\314\201 \303\251", "a_b|,|c|-|d\314\201|\303\251"},
    {"{\"type\":\"WhitespaceSplit\"}", " a, b\343\200\200c ", "a,|b|c"},
    {"{\"type\":\"Digits\",\"individual_digits\":true}", "a12b3", "a|1|2|b|3"},
    {"{\"type\":\"Digits\",\"individual_digits\":false}", "a12b3", "a|12|b|3"},
    {"{\"type\":\"CharDelimiterSplit\",\"delimiter\":\"-\"}", "a--b-c", "a|b|c"},
    {"{\"type\":\"Punctuation\",\"behavior\":\"Contiguous\"}", "a,.b!", "a|,.|b|!"},
    {"{\"type\":\"Punctuation\",\"behavior\":\"MergedWithPrevious\"}", "a,.b!", "a,|.|b!"},
    {"{\"type\":\"Punctuation\",\"behavior\":\"MergedWithNext\"}", "a,.b!", "a|,|.b|!"},
    {"{\"type\":\"Punctuation\",\"behavior\":\"Removed\"}", "a,.b!", "a|b"},
    {"{\"type\":\"Split\",\"pattern\":{\"Regex\":\"b+\"},\"behavior\":\"Isolated\",\"invert\":false}", "abbcb", "a|bb|c|b"},
    {"{\"type\":\"Split\",\"pattern\":{\"Regex\":\"b+\"},\"behavior\":\"Removed\",\"invert\":true}", "abbcb", "bb|b"},
    {"{\"type\":\"Split\",\"pattern\":{\"String\":\".\"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}", "a.b..c", "a.|b.|.|c"},
    /* a blank and what Unicode 9 does not have (U+1F929) join what is before them; none before: lost */
    {"{\"type\":\"UnicodeScripts\"}", " ab, \316\261\316\262c \344\270\200\343\201\202\343\203\274\360\237\244\251 x", "ab|, |\316\261\316\262|c |\344\270\200\343\201\202\343\203\274\360\237\244\251 |x"},
    {"{\"type\":\"UnicodeScripts\"}", "\326\207\326\211\326\212\340\245\222\340\245\223", "\326\207|\326\211|\326\212|\340\245\222|\340\245\223"},
    {"{\"type\":\"FixedLength\",\"length\":2}", "a\303\251bcd", "a\303\251|bc|d"},
    {"{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},{\"type\":\"Digits\",\"individual_digits\":true}]}", "a1 b22", "a|1|b|2|2"},
};
/* clang-format on */

static cJSON *parse(const char *json)
{
    cJSON *root;
    pare_err err;
    assert_ok(pare_json_parse(&root, json, strlen(json), &err), &err);
    return root;
}

static void each_normalizer_makes_what_the_reference_makes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof normalized / sizeof *normalized; i++) {
        const sample *const s = &normalized[i];
        pare_arena *const a = pare_arena_new();
        cJSON *const json = parse(s->json);
        pare_normalizers list = {0};
        pare_regex_run *run;
        pare_piece text = {s->text, strlen(s->text)};
        pare_err err;
        assert_ok(pare_normalizers_read(&list, a, json, &err), &err);
        assert_ok(pare_regex_run_new(&run, a, &err), &err);
        assert_ok(pare_normalize(&text, &list, a, run, &err), &err);
        assert_string_equal(pare_sprintf(a, "%s: %.*s", s->json, (int)text.n, text.s),
                            pare_sprintf(a, "%s: %s", s->json, s->want));
        cJSON_Delete(json);
        pare_arena_free(a);
    }
}

static void each_pretokenizer_cuts_where_the_reference_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const sample *const s = &words[i];
        pare_arena *const a = pare_arena_new();
        cJSON *const json = parse(s->json);
        pare_pretokenizers list = {0};
        pare_spans cut = {.arena = a};
        pare_regex_run *run;
        pare_err err;
        const char *got = pare_sprintf(a, "%s: ", s->json);
        assert_ok(pare_pretokenizers_read(&list, a, json, &err), &err);
        assert_ok(pare_regex_run_new(&run, a, &err), &err);
        assert_ok(
            pare_pretokenize(&cut, &list, (pare_span){s->text, strlen(s->text), true}, run, &err),
            &err);
        for (size_t w = 0; w < cut.n; w++)
            got = pare_sprintf(a, "%s%s%.*s", got, w ? "|" : "", (int)cut.v[w].n, cut.v[w].s);
        assert_string_equal(got, pare_sprintf(a, "%s: %s", s->json, s->want));
        cJSON_Delete(json);
        pare_arena_free(a);
    }
}

/* ---- whole files ----------------------------------------------------------------------------- */

static pare_tokenizer *read_json(pare_arena *a, const char *json)
{
    pare_tokenizer *t;
    pare_err err;
    assert_ok(pare_tokenizer_new(&t, a, PARE_TOK_JSON, (const uint8_t *)json, strlen(json), &err),
              &err);
    return t;
}

/* "ids -> text". */
static const char *through(pare_arena *a, const pare_tokenizer *t, const char *text)
{
    int64_t *ids;
    size_t n, bytes;
    pare_err err;
    assert_ok(pare_encode(&ids, &n, a, t, text, strlen(text), &err), &err);
    const char *out = "", *printed = "";
    for (size_t i = 0; i < n; i++) {
        const char *const s = pare_decode(t, i ? ids[i - 1] : -1, ids[i], &bytes);
        out = pare_sprintf(a, "%s%lld ", out, (long long)ids[i]);
        printed = pare_sprintf(a, "%s%.*s", printed, (int)bytes, s);
    }
    return pare_sprintf(a, "%s-> %s", out, printed);
}

static void models_make_the_ids_that_follow_from_their_vocabulary(void **state)
{
    (void)state;
    static const struct {
        const char *json, *text, *want;
    } cases[] = {
        /* merges by rank, not by length; a text is cut into words first */
        {"{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"bc\":4},"
         "\"merges\":[\"b c\",\"a b\"]}}",
         "abc", "0 4 -> a bc"},
        /* <unk> for a run of unknown characters where they are fused */
        {"{\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"fuse_unk\":true,\"vocab\":{\"u\":0,"
         "\"a\":1},\"merges\":[]},\"decoder\":{\"type\":\"Fuse\"}}",
         "axya", "1 0 1 -> aua"},
        /* bytes where a character has no entry */
        {"{\"model\":{\"type\":\"BPE\",\"byte_fallback\":true,\"vocab\":{\"a\":0,\"<0xC3>\":1,"
         "\"<0xA9>\":2},\"merges\":[]},\"decoder\":{\"type\":\"ByteFallback\"}}",
         "a\xC3\xA9", "0 1 2 -> a\xC3\xA9"},
        /* WordPiece: the longest first; a word with an unknown part is unknown as a whole */
        {"{\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"model\":{\"type\":\"WordPiece\","
         "\"unk_token\":\"?\",\"vocab\":{\"?\":0,\"un\":1,\"##aff\":2,\"##able\":3,\"u\":4}},"
         "\"decoder\":{\"type\":\"WordPiece\"}}",
         "unaffable unx", "1 2 3 0 -> unaffable?"},
        /* Unigram: the best sum, not the longest entry */
        {"{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"?\",0],[\"a\",-1],[\"b\",-1],"
         "[\"ab\",-3],[\"abb\",-2.5]]},\"decoder\":{\"type\":\"Fuse\"}}",
         "ababb", "1 2 4 -> ababb"},
        /* a special token prints nothing, and is found before words are cut */
        {"{\"added_tokens\":[{\"id\":1,\"content\":\"<s>\",\"special\":true},{\"id\":3,\"content\":"
         "\"<x>\",\"special\":true}],\"model\":{\"type\":"
         "\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":2}},\"post_processor\":{"
         "\"type\":\"BertProcessing\",\"cls\":[\"<s>\",1],\"sep\":[\"<s>\",1]}}",
         "a<x>a", "1 2 3 2 1 -> a a"},
        /* of several added tokens with the same content that of the lowest id is found */
        {"{\"added_tokens\":[{\"id\":3,\"content\":\"<x>\"},{\"id\":1,\"content\":\"<x>\"},{\"id\":"
         "2,"
         "\"content\":\"<x>\"}],\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{"
         "\"u\":0,"
         "\"a\":4}}}",
         "<x>a<x>", "1 4 1 -> <x> a <x>"},
        /* RoBERTa: the ids of npm's tokenizers; the mask takes the blank before it */
        {"{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true},{\"id\":2,\"content\":"
         "\"</"
         "s>\",\"special\":true},{\"id\":8,\"content\":\"<mask>\",\"lstrip\":true,\"special\":true}"
         "],"
         "\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":true},"
         "\"post_processor\":{\"type\":\"RobertaProcessing\",\"sep\":[\"</"
         "s>\",2],\"cls\":[\"<s>\",0],"
         "\"trim_offsets\":true,\"add_prefix_space\":false},\"decoder\":{\"type\":\"ByteLevel\"},"
         "\"model\":{\"type\":\"BPE\",\"vocab\":{\"<s>\":0,\"a\":1,\"</"
         "s>\":2,\"b\":3,\"ab\":4,\"\\u0120\":5,"
         "\"\\u0120a\":6,\"\\u0120ab\":7,\"<mask>\":8},\"merges\":[\"a b\",\"\\u0120 "
         "a\",\"\\u0120a b\"]}}",
         "ab a <mask> ab", "0 4 6 8 5 4 2 -> ab a ab"},
        /* CTC: what comes again at once is not printed again */
        {"{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\".\"},\"behavior\":"
         "\"Isolated\",\"invert\":false},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"-\","
         "\"vocab\":{\"-\":0,\"a\":1,\"|\":2}},\"decoder\":{\"type\":\"CTC\",\"pad_token\":\"-\","
         "\"word_delimiter_token\":\"|\"}}",
         "aa-a|a", "1 1 0 1 2 1 -> aa a"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pare_arena *const a = pare_arena_new();
        assert_string_equal(through(a, read_json(a, cases[i].json), cases[i].text), cases[i].want);
        pare_arena_free(a);
    }
}

static void what_is_not_read_is_refused_by_name(void **state)
{
    (void)state;
    static const char model[] = "\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{"
                                "\"u\":0}}";
    static const char *const cases[][2] = {
        {"\"normalizer\":{\"type\":\"Spell\"}", "normalizer \"Spell\""},
        {"\"pre_tokenizer\":{\"type\":\"Spell\"}", "pre-tokenizer \"Spell\""},
        {"\"post_processor\":{\"type\":\"Spell\"}", "post-processor \"Spell\""},
        {"\"decoder\":{\"type\":\"Spell\"}", "decoder \"Spell\""},
        {"\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a\"},\"behavior\":"
         "\"Isolated\"}",
         "pattern"},
        {"\"added_tokens\":[{\"id\":99999999,\"content\":\"a\"}]", "added token \"a\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pare_arena *const a = pare_arena_new();
        const char *const json = pare_sprintf(a, "{%s,%s}", cases[i][0], model);
        pare_tokenizer *t;
        pare_err err;
        assert_status(
            pare_tokenizer_new(&t, a, PARE_TOK_JSON, (const uint8_t *)json, strlen(json), &err),
            PARE_ERR_INPUT, &err);
        assert_contains(err.msg, "tokenizer.json");
        assert_contains(err.msg, cases[i][1]);
        pare_arena_free(a);
    }
}

/* (a|aa)+[cd] takes exponential time without a limit: this test would not end. */
static void a_pattern_without_end_is_refused(void **state)
{
    (void)state;
    static char text[100001];
    static const char json[] =
        "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a|aa)+[cd]\"},"
        "\"behavior\":"
        "\"Isolated\"},\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}}}";
    pare_arena *const a = pare_arena_new();
    const pare_tokenizer *const t = read_json(a, json);
    int64_t *ids;
    size_t n;
    pare_err err;
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 2] = 'b';
    assert_status(pare_encode(&ids, &n, a, t, text, sizeof text - 1, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "too long");
    pare_arena_free(a);
}

static void what_is_left_out_is_said(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const char *const said = pare_tokenizer_notes(
        read_json(a, "{\"truncation\":{\"max_length\":1},\"padding\":{},\"model\":{\"type\":"
                     "\"Unigram\",\"unk_id\":0,\"vocab\":[[\"u\",0],[\"a\",-1],[\"a\",-2]]}}"));
    assert_contains(said, "truncation");
    assert_contains(said, "padding");
    assert_contains(said, "1 entries twice");
    pare_arena_free(a);
}

/* npm's tokenizers 0.23.2 gives these ids of this file: a Map keeps the last of equal keys. */
static void of_an_entry_given_twice_the_last_counts(void **state)
{
    (void)state;
    static const int64_t want[] = {2, 4, 2, 0};
    pare_arena *const a = pare_arena_new();
    const pare_tokenizer *const t = read_json(
        a, "{\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1,"
           "\"b\":3,\"\\u0061\":5,\"b\":4,\"a\":2}},\"pre_tokenizer\":{\"type\":"
           "\"WhitespaceSplit\"}}");
    int64_t *ids;
    size_t n;
    pare_err err;
    assert_ok(pare_encode(&ids, &n, a, t, "a b a c", 7, &err), &err);
    assert_int_equal(n, 4);
    assert_memory_equal(ids, want, sizeof want);
    assert_contains(pare_tokenizer_notes(t), "3 entries twice");
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_normalizer_makes_what_the_reference_makes),
        cmocka_unit_test(each_pretokenizer_cuts_where_the_reference_cuts),
        cmocka_unit_test(models_make_the_ids_that_follow_from_their_vocabulary),
        cmocka_unit_test(what_is_not_read_is_refused_by_name),
        cmocka_unit_test(a_pattern_without_end_is_refused),
        cmocka_unit_test(what_is_left_out_is_said),
        cmocka_unit_test(of_an_entry_given_twice_the_last_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
