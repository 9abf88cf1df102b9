/* Tokenizers: the first part is a byte for the kind and the vocabulary, the second is text. Ids
 * are in range; what is encoded by bytes or byte pairs decodes to the same text. The kinds behind the
 * model's own are files that are made into a tokenizer.json first: vocab.txt, vocab.json with
 * merges.txt behind its first byte 0, tokenizer.model, sentencepiece.bpe.model, and added_tokens.json with
 * vocab.txt behind its first byte 0. */
#include "fuzz.h"
#include "text/tokenizer_folder.h"
#include <pare/run.h>

#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    return fuzz_mutate_parts(data, size, max_size, seed, NULL);
}

static void same_text(const pare_tokenizer *t, const int64_t *ids, size_t n, const uint8_t *text,
                      size_t bytes)
{
    size_t at = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *const s = pare_decode(t, i ? ids[i - 1] : -1, ids[i], &len);
        FUZZ_EXPECT(len <= bytes - at && memcmp(s, text + at, len) == 0);
        at += len;
    }
    FUZZ_EXPECT(at == bytes);
}

static void use(pare_arena *a, pare_tokenizer_kind kind, const pare_tokenizer *t, const char *text,
                size_t bytes)
{
    int64_t *ids = NULL;
    size_t n = 0, sum = 0;
    pare_err err = {0};
    const pare_status st = pare_encode(&ids, &n, a, t, text, bytes, &err);
    fuzz_expect_said(st, &err);
    if (st) return;
    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        FUZZ_EXPECT(ids[i] >= 0 && (uint64_t)ids[i] < pare_tokenizer_size(t));
        const char *const s = pare_decode(t, i ? ids[i - 1] : -1, ids[i], &len);
        for (size_t k = 0; k < len; k++) sum += (uint8_t)s[k];
    }
    FUZZ_EXPECT(sum != SIZE_MAX); /* so that the bytes are really read */
    if (kind == PARE_TOK_GPT2 || kind == PARE_TOK_BYTES)
        same_text(t, ids, n, (const uint8_t *)text, bytes);
    size_t len = 1;
    (void)pare_decode(t, -1, (int64_t)pare_tokenizer_size(t), &len);
    FUZZ_EXPECT(len == 0);
}

enum {
    KINDS = PARE_TOK_JSON + 1,
    WORDPIECE = KINDS,
    BPE_FILES,
    SENTENCEPIECE,
    FAIRSEQ,
    ADDED,
    ALL
};

/* The files as a tokenizer.json, which must then be one. */
static void use_files(pare_arena *a, unsigned what, const char *s, size_t n, const fuzz_parts *p)
{
    pare_tokenizer_config c = {.class = what == BPE_FILES ? "RobertaTokenizer"
                                        : what == FAIRSEQ ? "XLMRobertaTokenizer"
                                                          : ""};
    const char *const zero = n ? memchr(s, 0, n) : NULL, *notes = NULL;
    const size_t first = zero ? (size_t)(zero - s) : n, second = zero ? n - first - 1 : 0;
    pare_err err = {0};
    cJSON *root = NULL, *added = NULL;
    char *text = NULL;
    size_t bytes = 0;
    pare_tokenizer *t = NULL;
    pare_piece words = {s, n};
    if (what == ADDED) {
        if (pare_json_parse(&added, s, first, &err) || !cJSON_IsObject(added)) {
            cJSON_Delete(added);
            return;
        }
        c.added = added;
        words = (pare_piece){zero ? zero + 1 : "", second};
    }
    pare_status st =
        what == WORDPIECE || what == ADDED
            ? pare_json_of_wordpiece(&root, a, words, &c, &notes, &err)
        : what == BPE_FILES
            ? pare_json_of_bpe(&root, a, (pare_piece){s, first},
                               (pare_piece){zero ? zero + 1 : "", second}, &c, &notes, &err)
            : pare_json_of_sentencepiece(&root, a, (pare_piece){s, n}, &c, &err);
    fuzz_expect_said(st, &err);
    if (!st) st = pare_json_print(&text, &bytes, a, root, 0, &err);
    FUZZ_EXPECT(!root == !text);
    if (!st) st = pare_tokenizer_new(&t, a, PARE_TOK_JSON, (const uint8_t *)text, bytes, &err);
    fuzz_expect_said(st, &err);
    if (!st) use(a, PARE_TOK_JSON, t, (const char *)p->b, p->nb);
    cJSON_Delete(root);
    cJSON_Delete(added);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const fuzz_parts p = fuzz_split(data, size);
    if (p.na == 0) return 0;
    const unsigned what = p.a[0] % ALL;
    const pare_tokenizer_kind kind = (pare_tokenizer_kind)what;
    uint8_t *const vocab = malloc(p.na - 1);
    pare_arena *const a = pare_arena_new();
    pare_tokenizer *t = NULL;
    pare_tokenizer_kind seen;
    pare_err err = {0};
    FUZZ_EXPECT(a && (vocab || p.na == 1));
    if (p.na > 1) memcpy(vocab, p.a + 1, p.na - 1);
    if (what >= KINDS) {
        use_files(a, what, (const char *)vocab, p.na - 1, &p);
    } else {
        const pare_status st = pare_tokenizer_new(&t, a, kind, vocab, p.na - 1, &err);
        fuzz_expect_said(st, &err);
        if (!st) use(a, kind, t, (const char *)p.b, p.nb);
    }
    fuzz_expect_said(pare_vocab_detect(&seen, vocab, p.na - 1, &err), &err);
    pare_arena_free(a);
    free(vocab);
    return 0;
}
