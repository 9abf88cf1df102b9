/* subword.c - reading the vocabulary of a subword model, and looking words up (subword.h): WordPiece
 * and WordLevel are here, BPE and Unigram in files of their own. */
#include "subword.h"
#include "normalize.h"
#include "unicode.h"
#include <string.h>

/* Ids may have gaps, but not many more than there are entries. */
#define MOST_GAPS ((size_t)1 << 20)
enum { MOST_WORD_CHARS = 4096, FEWEST_KNOWN = 64, MOST_KNOWN = 1 << 15, LONG_WORD = 48 };

typedef struct pare_known_word {
    pare_piece word;
    size_t at, n; /* in the ids of the call */
} known_word;

/* ---- reading --------------------------------------------------------------------------------- */

int32_t pare_subword_id(const pare_subword *m, const char *s, size_t n)
{
    return n ? (int32_t)pare_text_map_find(&m->by_text, (pare_piece){s, n}, (pare_piece){"", 0})
             : -1;
}

pare_status pare_subword_reserve(pare_subword *m, pare_arena *a, size_t size, size_t entries,
                                 pare_err *err)
{
    if (size > entries + MOST_GAPS || size > INT32_MAX - 1)
        return pare_fail(err, PARE_ERR_INPUT, "id %zu in a vocabulary of %zu entries", size - 1,
                         entries);
    m->size = size;
    m->piece = pare_alloc(a, size + 1, sizeof *m->piece);
    if (!m->piece) return pare_no_memory(err);
    m->by_text = pare_text_map_new(a, m->piece, entries);
    return m->by_text.slot ? PARE_OK : pare_no_memory(err);
}

pare_status pare_subword_put(pare_subword *m, pare_arena *a, size_t id, const char *s,
                             pare_err *err)
{
    if (m->piece[id].s)
        return pare_fail(err, PARE_ERR_INPUT, "id %zu is given to \"%.40s\" and to \"%.40s\"", id,
                         m->piece[id].s, s);
    m->piece[id] = (pare_piece){pare_strdup(a, s), strlen(s)};
    if (!m->piece[id].s) return pare_no_memory(err);
    if (m->piece[id].n > m->longest) m->longest = m->piece[id].n;
    if (m->piece[id].n == 0) return PARE_OK;
    if (pare_subword_id(m, s, m->piece[id].n) >= 0) m->twins++;
    pare_text_map_set(&m->by_text, id);
    return PARE_OK;
}

void pare_subword_find_bytes(pare_subword *m)
{
    for (size_t b = 0; b < 256; b++) {
        char name[8];
        const int n = snprintf(name, sizeof name, "<0x%02zX>", b);
        m->byte_id[b] = pare_subword_id(m, name, (size_t)n);
    }
}

/* "vocab": entries and their ids. */
static pare_status read_vocab(pare_subword *m, pare_arena *a, const cJSON *json, pare_err *err)
{
    const cJSON *vocab, *entry;
    size_t entries = 0, size = 0, id = 0;
    pare_status st = pare_json_object(&vocab, json, "vocab", err);
    if (st) return st;
    cJSON_ArrayForEach(entry, vocab)
    {
        if (!cJSON_IsNumber(entry) || !(entry->valuedouble >= 0 && entry->valuedouble < 0x1p31) ||
            entry->valuedouble != (double)(size_t)entry->valuedouble)
            return pare_fail(err, PARE_ERR_INPUT, "vocab: the id of \"%.60s\" is no id",
                             entry->string);
        entries++;
        if ((size_t)entry->valuedouble >= size) size = (size_t)entry->valuedouble + 1;
    }
    if (entries == 0) return pare_fail(err, PARE_ERR_INPUT, "vocab is empty");
    st = pare_subword_reserve(m, a, size, entries, err);
    for (entry = vocab->child; entry && !st; entry = entry->next, id++)
        st = pare_subword_put(m, a, (size_t)entry->valuedouble, entry->string, err);
    return st;
}

static pare_status read_unk(pare_subword *m, const cJSON *json, bool required, pare_err *err)
{
    const char *unk = NULL;
    const pare_status st = pare_json_string_opt(&unk, json, "unk_token", err);
    if (st) return st;
    m->unk = unk ? pare_subword_id(m, unk, strlen(unk)) : -1;
    if (m->unk < 0 && (required || (unk && *unk)))
        return pare_fail(err, PARE_ERR_INPUT, "unk_token \"%.60s\" is not in the vocabulary",
                         unk ? unk : "");
    return PARE_OK;
}

/* Files before 2020 do not name the type. */
static const char *guess_type(const cJSON *json)
{
    if (pare_json_has(json, "merges")) return "BPE";
    if (cJSON_IsArray(cJSON_GetObjectItemCaseSensitive(json, "vocab"))) return "Unigram";
    return pare_json_has(json, "max_input_chars_per_word") ? "WordPiece" : "WordLevel";
}

pare_status pare_subword_read(pare_subword *m, pare_arena *a, const cJSON *json, bool whole,
                              pare_err *err)
{
    const char *type = guess_type(json);
    pare_status st = pare_json_string_opt(&type, json, "type", err);
    if (st) return st;
    m->unk = -1;
    if (strcmp(type, "Unigram") == 0) {
        m->kind = PARE_SUBWORD_UNIGRAM;
        return pare_unigram_read(m, a, json, err);
    }
    if (strcmp(type, "BPE") != 0 && strcmp(type, "WordPiece") != 0 &&
        strcmp(type, "WordLevel") != 0)
        return pare_fail(err, PARE_ERR_INPUT, "model \"%.60s\" is not one that pare reads", type);
    m->kind = type[0] == 'B'   ? PARE_SUBWORD_BPE
              : type[4] == 'P' ? PARE_SUBWORD_WORDPIECE
                               : PARE_SUBWORD_WORDLEVEL;
    st = read_vocab(m, a, json, err);
    if (!st) st = read_unk(m, json, m->kind != PARE_SUBWORD_BPE, err);
    if (st) return st;
    if (m->kind == PARE_SUBWORD_BPE) return pare_bpe_model_read(m, a, json, whole, err);
    m->most_chars = 100;
    st = pare_json_size_opt(&m->most_chars, json, "max_input_chars_per_word", err);
    if (!st) st = pare_piece_read(&m->prefix, a, json, "continuing_subword_prefix", "##", err);
    if (!st && m->kind == PARE_SUBWORD_WORDPIECE && m->most_chars > MOST_WORD_CHARS)
        st = pare_fail(err, PARE_ERR_INPUT, "max_input_chars_per_word is %zu; pare reads up to %d",
                       m->most_chars, MOST_WORD_CHARS);
    return st;
}

/* ---- encoding -------------------------------------------------------------------------------- */

pare_status pare_subword_begin(pare_subword_run *r, const pare_subword *m, pare_arena *a,
                               pare_id_list *out, size_t text_bytes, pare_err *err)
{
    size_t known = FEWEST_KNOWN;
    while (known < MOST_KNOWN && known < text_bytes / 16) known *= 2;
    *r = (pare_subword_run){.m = m, .arena = a, .out = out, .mask = known - 1};
    r->known = pare_alloc(a, known, sizeof *r->known);
    return r->known ? PARE_OK : pare_no_memory(err);
}

static size_t word_hash(pare_piece w)
{
    uint64_t h = w.n;
    for (size_t i = 0; i < w.n; i++) h = (h ^ (uint8_t)w.s[i]) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(h >> 32 ^ h);
}

static pare_status encode_word(pare_subword_run *r, pare_piece word, pare_err *err)
{
    const pare_subword *const m = r->m;
    switch (m->kind) {
    case PARE_SUBWORD_BPE:
        return pare_bpe_word(r, word, err);
    case PARE_SUBWORD_UNIGRAM:
        return pare_unigram_word(r, word, err);
    case PARE_SUBWORD_WORDPIECE:
        return pare_wordpiece_word(r, word, err);
    case PARE_SUBWORD_WORDLEVEL:
        break;
    }
    const int32_t id = pare_subword_id(m, word.s, word.n);
    pare_id_list_put(r->out, id >= 0 ? id : m->unk);
    return r->out->failed ? pare_no_memory(err) : PARE_OK;
}

/* A word that was met before in this call has the same ids. */
static pare_status encode_known(pare_subword_run *r, pare_piece word, pare_err *err)
{
    known_word *const k = &r->known[word_hash(word) & r->mask];
    if (k->n && k->word.n == word.n && memcmp(k->word.s, word.s, word.n) == 0) {
        int32_t *const to = pare_id_list_reserve(r->out, k->n);
        if (!to) return pare_no_memory(err);
        memcpy(to, r->out->v + k->at, k->n * sizeof *to);
        r->out->n += k->n;
        return PARE_OK;
    }
    const size_t at = r->out->n;
    const pare_status st = encode_word(r, word, err);
    if (!st) *k = (known_word){word, at, r->out->n - at};
    return st;
}

pare_status pare_subword_encode(pare_subword_run *r, pare_piece word, pare_err *err)
{
    pare_status st = PARE_OK;
    while (r->m->inside.key && word.n > LONG_WORD && !st) {
        const size_t cut = pare_bpe_safe_cut(r->m, word);
        st = encode_known(r, (pare_piece){word.s, cut}, err);
        word = (pare_piece){word.s + cut, word.n - cut};
        if (word.n == 0) return st;
    }
    return st ? st : encode_known(r, word, err);
}

/* Greedy: the longest entry, then the longest with the prefix that continues it, and so on. */
pare_status pare_wordpiece_word(pare_subword_run *r, pare_piece word, pare_err *err)
{
    const pare_subword *const m = r->m;
    const size_t before = r->out->n;
    size_t chars = 0, start = 0, len;
    for (size_t at = 0; at < word.n && chars <= m->most_chars; at += len, chars++)
        (void)pare_utf8_next(word.s + at, word.n - at, &len);
    while (chars <= m->most_chars && start < word.n) {
        const pare_piece prefix = start ? m->prefix : (pare_piece){"", 0};
        int64_t id = -1;
        size_t end = word.n - start > m->longest ? start + m->longest : word.n;
        for (; end > start; end--) {
            if (end < word.n && ((uint8_t)word.s[end] & 0xC0) == 0x80) continue;
            id = pare_text_map_find(&m->by_text, prefix, (pare_piece){word.s + start, end - start});
            if (id >= 0) break;
        }
        if (id < 0) break;
        pare_id_list_put(r->out, (int32_t)id);
        start = end;
    }
    if (start < word.n) { /* some part has no entry: the word as a whole is unknown */
        r->out->n = before;
        pare_id_list_put(r->out, m->unk);
    }
    return r->out->failed ? pare_no_memory(err) : PARE_OK;
}
