/* tokenizer_files.c - tokenizers of files older than tokenizer.json (tokenizer_folder.h): BERT's
 * vocab.txt, and vocab.json with merges.txt of the families of GPT-2. */
#include "tokenizer_folder.h"
#include "base/support.h"
#include "base/utf8.h"
#include "tokenizer.h"
#include <string.h>

static bool has(const cJSON *ids, const char *token)
{
    return cJSON_GetObjectItemCaseSensitive(ids, token) != NULL;
}

/* "type" and what else `fields` says, below a key. */
#define ADD_PART(to, key, type, fields, ...)                                                       \
    pare_json_add_record(to, key, "type:s " fields, type, __VA_ARGS__)

static pare_status note_twins(const char *file, size_t twins, pare_arena *a, const char **notes,
                              pare_err *err)
{
    if (!twins) return PARE_OK;
    const char *const line =
        pare_sprintf(a, "%s has %zu entries twice; of equal ones the last counts", file, twins);
    return line ? pare_add_note(notes, a, line, err) : pare_no_memory(err);
}

/* ---- vocab.txt ------------------------------------------------------------------------------- */

static const char *const bert_tokens[PARE_SPECIAL_TOKENS] = {NULL,    NULL,    "[UNK]", "[SEP]",
                                                             "[CLS]", "[PAD]", "[MASK]"};

/* Of equal lines the last counts. *upper: a word has a capital letter. */
static pare_status read_lines(cJSON *vocab, pare_arena *a, pare_piece file, bool *upper,
                              const char **notes, pare_err *err)
{
    pare_piece line, rest = file;
    size_t lines = 1, id = 0, twins = 0;
    if (memchr(file.s, 0, file.n))
        return pare_fail(err, PARE_ERR_INPUT, "has a byte 0: not a list of words");
    for (size_t i = 0; i < file.n; i++) lines += file.s[i] == '\n';
    pare_piece *const all = pare_alloc(a, lines, sizeof *all);
    pare_text_map map = pare_text_map_new(a, all, lines);
    if (!all || !map.slot) return pare_no_memory(err);
    for (; pare_next_line(&line, &rest); id++) {
        for (size_t i = 0, len; i < line.n; i += len)
            if (pare_utf8_next(line.s + i, line.n - i, &len) == PARE_NO_CHAR)
                return pare_fail(err, PARE_ERR_INPUT, "line %zu is not UTF-8", id + 1);
        for (size_t i = 0; i < line.n && line.s[0] != '['; i++)
            *upper = *upper || (line.s[i] >= 'A' && line.s[i] <= 'Z');
        all[id] = line;
        if (pare_text_map_find(&map, line, (pare_piece){"", 0}) >= 0) twins++;
        pare_text_map_set(&map, id);
    }
    for (size_t i = 0; i < id; i++) {
        if (pare_text_map_find(&map, all[i], (pare_piece){"", 0}) != (int64_t)i) continue;
        const char *const text = pare_sprintf(a, "%.*s", (int)all[i].n, all[i].s);
        if (!text || !pare_json_add_size(vocab, text, i)) return pare_no_memory(err);
    }
    return note_twins("vocab.txt", twins, a, notes, err);
}

/* Without tokenizer_config.json the list itself tells whether it is of lower case. */
static pare_status lower_case(bool *lower, pare_arena *a, const pare_tokenizer_config *c,
                              bool upper, const char **notes, pare_err *err)
{
    *lower = !upper;
    if (pare_json_has(c->config, "do_lower_case"))
        return pare_json_bool(lower, c->config, "do_lower_case", err);
    return pare_add_note(notes, a,
                         upper ? "text keeps its capital letters: vocab.txt has some, and no "
                                 "tokenizer_config.json says do_lower_case"
                               : "text is lower-cased: vocab.txt has no capital letters, and no "
                                 "tokenizer_config.json says do_lower_case",
                         err);
}

pare_status pare_json_of_wordpiece(cJSON **out, pare_arena *a, pare_piece vocab_txt,
                                   const pare_tokenizer_config *c, const char **notes,
                                   pare_err *err)
{
    bool upper = false, lower = true, chinese = true, accents = false;
    cJSON *const root = cJSON_CreateObject();
    cJSON *const model = root ? pare_json_add_object(root, "model") : NULL;
    const char *const unk = pare_special_token(c, "unk_token", "[UNK]");
    const char *const cls = pare_special_token(c, "cls_token", "[CLS]");
    const char *const sep = pare_special_token(c, "sep_token", "[SEP]");
    *out = NULL;
    bool ok = model && pare_json_add_values(model, "type:s unk_token:s continuing_subword_prefix:s",
                                            "WordPiece", unk, "##");
    ok = ok && pare_json_add_size(model, "max_input_chars_per_word", 100);
    cJSON *const vocab = ok ? pare_json_add_object(model, "vocab") : NULL;
    pare_status st =
        vocab ? read_lines(vocab, a, vocab_txt, &upper, notes, err) : pare_no_memory(err);
    if (!st) st = lower_case(&lower, a, c, upper, notes, err);
    accents = lower;
    if (!st) st = pare_json_bool_opt(&chinese, c->config, "tokenize_chinese_chars", err);
    if (!st) st = pare_json_bool_opt(&accents, c->config, "strip_accents", err);
    if (!st && !(ADD_PART(root, "normalizer", "BertNormalizer",
                          "clean_text:b handle_chinese_chars:b strip_accents:b lowercase:b", true,
                          chinese, accents, lower) &&
                 pare_json_add_record(root, "pre_tokenizer", "type:s", "BertPreTokenizer") &&
                 ADD_PART(root, "decoder", "WordPiece", "prefix:s cleanup:b", "##", true)))
        st = pare_no_memory(err);
    if (!st) st = pare_add_tokens(root, c, bert_tokens, vocab, err);
    if (!st && has(vocab, cls) && has(vocab, sep))
        st = pare_add_template(root, vocab, cls, sep, err);
    if (st)
        cJSON_Delete(root);
    else
        *out = root;
    return st;
}

/* ---- vocab.json and merges.txt --------------------------------------------------------------- */

typedef enum bpe_family { FAMILY_GPT2, FAMILY_ROBERTA, FAMILY_QWEN2 } bpe_family;

static const char *const family_tokens[][PARE_SPECIAL_TOKENS] = {
    [FAMILY_GPT2] = {"<|endoftext|>"},
    [FAMILY_ROBERTA] = {"<s>", "</s>", "<unk>", "</s>", "<s>", "<pad>", "<mask>"},
    [FAMILY_QWEN2] = {"<|endoftext|>"},
};

/* How the classes of transformers that have these two files cut text. */
static pare_status find_family(bpe_family *out, const char *class, pare_err *err)
{
    static const struct {
        const char *class;
        bpe_family family;
    } known[] = {
        {"GPT2Tokenizer", FAMILY_GPT2},       {"GPT2TokenizerFast", FAMILY_GPT2},
        {"RobertaTokenizer", FAMILY_ROBERTA}, {"RobertaTokenizerFast", FAMILY_ROBERTA},
        {"Qwen2Tokenizer", FAMILY_QWEN2},     {"Qwen2TokenizerFast", FAMILY_QWEN2},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(class, known[i].class) == 0) {
            *out = known[i].family;
            return PARE_OK;
        }
    return pare_fail(err, PARE_ERR_INPUT,
                     "%s%.60s%s, and pare knows how GPT2Tokenizer, RobertaTokenizer and "
                     "Qwen2Tokenizer cut text; a tokenizer.json says it for others",
                     *class ? "tokenizer_class is \"" : "no file says what tokenizer_class",
                     *class ? class : " these are of", *class ? "\"" : "");
}

static pare_status read_merges(cJSON *model, pare_arena *a, pare_piece file, pare_err *err)
{
    pare_piece line, rest = file;
    cJSON *const merges = pare_json_add_array(model, "merges");
    if (!merges) return pare_no_memory(err);
    for (size_t number = 1; pare_next_line(&line, &rest); number++) {
        if (line.n == 0 || (number == 1 && line.n >= 8 && memcmp(line.s, "#version", 8) == 0))
            continue;
        for (size_t i = 0, len; i < line.n; i += len) {
            const uint32_t c = pare_utf8_next(line.s + i, line.n - i, &len);
            if (c == PARE_NO_CHAR || c == 0)
                return pare_fail(err, PARE_ERR_INPUT, "merges.txt line %zu is not UTF-8", number);
        }
        const char *const text = pare_sprintf(a, "%.*s", (int)line.n, line.s);
        if (!text || !pare_json_add_string(merges, NULL, text)) return pare_no_memory(err);
    }
    return PARE_OK;
}

static const char QWEN2_PATTERN[] = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|"
                                    "\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*"
                                    "|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";

static bool add_qwen2(cJSON *root)
{
    cJSON *const pre = pare_json_add_object(root, "pre_tokenizer");
    cJSON *const list = pre && pare_json_add_string(pre, "type", "Sequence")
                            ? pare_json_add_array(pre, "pretokenizers")
                            : NULL;
    cJSON *const split = list ? pare_json_add_object(list, NULL) : NULL;
    return split && pare_json_add_record(root, "normalizer", "type:s", "NFC") &&
           pare_json_add_values(split, "type:s behavior:s invert:b", "Split", "Isolated", false) &&
           pare_json_add_record(split, "pattern", "Regex:s", QWEN2_PATTERN) &&
           ADD_PART(list, NULL, "ByteLevel", "add_prefix_space:b use_regex:b", false, false);
}

pare_status pare_json_of_bpe(cJSON **out, pare_arena *a, pare_piece vocab_json,
                             pare_piece merges_txt, const pare_tokenizer_config *c,
                             const char **notes, pare_err *err)
{
    bpe_family family = FAMILY_GPT2;
    bool prefix = false;
    size_t twins = 0;
    cJSON *vocab = NULL;
    cJSON *const root = cJSON_CreateObject();
    cJSON *const model = root ? pare_json_add_object(root, "model") : NULL;
    *out = NULL;
    pare_status st =
        model && pare_json_add_string(model, "type", "BPE") ? PARE_OK : pare_no_memory(err);
    if (!st) st = find_family(&family, c->class, err);
    if (!st) st = pare_json_bool_opt(&prefix, c->config, "add_prefix_space", err);
    if (!st) st = pare_json_parse_vocab(&vocab, &twins, vocab_json.s, vocab_json.n, "", err);
    if (!st) st = note_twins("vocab.json", twins, a, notes, err);
    if (!st && !cJSON_IsObject(vocab))
        st = pare_fail(err, PARE_ERR_INPUT, "vocab.json is not an object of tokens and ids");
    if (!st && !cJSON_AddItemToObject(model, "vocab", vocab)) st = pare_no_memory(err);
    if (st) cJSON_Delete(vocab);
    if (!st) st = read_merges(model, a, merges_txt, err);
    if (!st && !(family == FAMILY_QWEN2
                     ? add_qwen2(root)
                     : pare_json_add_record(root, "pre_tokenizer", "type:s add_prefix_space:b",
                                            "ByteLevel", prefix)))
        st = pare_no_memory(err);
    if (!st && !pare_json_add_record(root, "decoder", "type:s", "ByteLevel"))
        st = pare_no_memory(err);
    if (!st) st = pare_add_tokens(root, c, family_tokens[family], vocab, err);
    if (!st && family == FAMILY_ROBERTA)
        st = pare_add_template(root, vocab, pare_special_token(c, "cls_token", "<s>"),
                               pare_special_token(c, "sep_token", "</s>"), err);
    if (st)
        cJSON_Delete(root);
    else
        *out = root;
    return st;
}
