/* sentencepiece.c - tokenizer.model and sentencepiece.bpe.model: SentencePiece's own file, BPE and
 * Unigram (tokenizer_folder.h).
 *
 * The file is a message of protobuf:
 *
 *     1: pieces         each a message  1: text   2: score (float)   3: type
 *     2: how it was trained             3: 1 Unigram, 2 BPE   35: byte fall-back   40..42: ids
 *     3: how text is normalized         2: map of characters   3: a blank before   4: blanks once
 *
 * A message is read by pulling one field after the other; two levels are all there is, so nothing
 * recurses. SentencePiece merges the pair whose result has the best score; as a list of merges: all
 * ways to cut an entry in two entries, best score first. */
#include "base/list.h"
#include "base/support.h"
#include "base/utf8.h"
#include "tokenizer_folder.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct field {
    uint64_t number, value; /* value: of a number, or the bits of a float */
    pare_piece bytes;       /* s == NULL: it is no text and no message */
} field;

static bool pull_varint(uint64_t *out, pare_piece *rest)
{
    *out = 0;
    for (unsigned shift = 0; shift < 64 && rest->n; shift += 7) {
        const uint8_t b = (uint8_t)*rest->s++;
        rest->n--;
        *out |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) return true;
    }
    return false;
}

/* The next field of a message; false at its end, and where it is garbled (then rest->n > 0). */
static bool pull(field *f, pare_piece *rest)
{
    pare_piece at = *rest;
    uint64_t tag, n = 0;
    *f = (field){0};
    if (rest->n == 0 || !pull_varint(&tag, &at)) return false;
    f->number = tag >> 3;
    switch (tag & 7) {
    case 0:
        if (!pull_varint(&f->value, &at)) return false;
        break;
    case 1:
    case 5:
        n = (tag & 7) == 1 ? 8 : 4;
        if (at.n < n) return false;
        memcpy(&f->value, at.s, n);
        break;
    case 2:
        if (!pull_varint(&n, &at) || n > at.n) return false;
        f->bytes = (pare_piece){at.s, n};
        break;
    default:
        return false; /* groups: no file has them */
    }
    *rest = (pare_piece){at.s + n, at.n - n};
    return true;
}

typedef enum piece_type { NORMAL = 1, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE } piece_type;
typedef struct entry {
    const char *text;
    float score;
    uint64_t type;
} entry;

typedef struct model {
    pare_arena *arena;
    entry *v;
    size_t n, capacity;
    uint64_t type, unk, bos, eos;
    bool byte_fallback, prefix, once, escape, suffix;
    pare_piece charsmap;
} model;

static pare_status garbled(pare_piece rest, pare_err *err)
{
    return rest.n ? pare_fail(err, PARE_ERR_INPUT, "is cut off or garbled") : PARE_OK;
}

static pare_status read_piece(model *m, pare_piece rest, pare_err *err)
{
    entry *const grown = list_grow(m->arena, m->v, m->n, &m->capacity, sizeof *m->v);
    pare_piece text = {"", 0};
    field f;
    if (!grown) return pare_no_memory(err);
    m->v = grown;
    entry *const e = &m->v[m->n++];
    *e = (entry){.type = NORMAL};
    while (pull(&f, &rest)) {
        const uint32_t bits = (uint32_t)f.value;
        if (f.number == 1 && f.bytes.s) text = f.bytes;
        if (f.number == 2) memcpy(&e->score, &bits, 4);
        if (f.number == 3) e->type = f.value;
    }
    const pare_status st = garbled(rest, err);
    if (st) return st;
    for (size_t i = 0, len; i < text.n; i += len) {
        const uint32_t c = pare_utf8_next(text.s + i, text.n - i, &len);
        if (c == PARE_NO_CHAR || c == 0)
            return pare_fail(err, PARE_ERR_INPUT, "entry %zu is not UTF-8", m->n - 1);
    }
    if (!isfinite(e->score))
        return pare_fail(err, PARE_ERR_INPUT, "the score of entry %zu is %g", m->n - 1,
                         (double)e->score);
    e->text = pare_sprintf(m->arena, "%.*s", (int)text.n, text.s);
    return e->text ? PARE_OK : pare_no_memory(err);
}

static pare_status read_trainer(model *m, pare_piece rest, pare_err *err)
{
    field f;
    while (pull(&f, &rest)) {
        if (f.number == 3) m->type = f.value;
        if (f.number == 24) m->suffix = f.value;
        if (f.number == 35) m->byte_fallback = f.value;
        if (f.number == 40) m->unk = f.value;
        if (f.number == 41) m->bos = f.value;
        if (f.number == 42) m->eos = f.value;
    }
    return garbled(rest, err);
}

static pare_status read_normalizer(model *m, pare_piece rest, pare_err *err)
{
    field f;
    while (pull(&f, &rest)) {
        if (f.number == 2 && f.bytes.s) m->charsmap = f.bytes;
        if (f.number == 3) m->prefix = f.value;
        if (f.number == 4) m->once = f.value;
        if (f.number == 5) m->escape = f.value;
    }
    return garbled(rest, err);
}

static pare_status read_model(model *m, pare_piece rest, pare_err *err)
{
    field f;
    pare_status st = PARE_OK;
    while (!st && pull(&f, &rest)) {
        if (!f.bytes.s) continue;
        if (f.number == 1) st = read_piece(m, f.bytes, err);
        if (f.number == 2) st = read_trainer(m, f.bytes, err);
        if (f.number == 3) st = read_normalizer(m, f.bytes, err);
    }
    if (!st) st = garbled(rest, err);
    if (st) return st;
    if (m->n == 0) return pare_fail(err, PARE_ERR_INPUT, "has no entries");
    if (m->type != 1 && m->type != 2)
        return pare_fail(err, PARE_ERR_INPUT,
                         "is a SentencePiece model of words or characters; pare reads BPE and "
                         "Unigram");
    if (!m->escape || m->suffix)
        return pare_fail(err, PARE_ERR_INPUT, "asks for %s, which pare does not read",
                         m->suffix ? "blanks behind words" : "blanks that stay blanks");
    return PARE_OK;
}

/* ---- merges ---------------------------------------------------------------------------------- */

typedef struct merge {
    float score;
    uint32_t whole, left, right; /* entries */
} merge;

static int best_first(const void *x, const void *y)
{
    const merge *const a = x, *const b = y;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    if (a->whole != b->whole) return a->whole < b->whole ? -1 : 1;
    return a->left != b->left ? (a->left < b->left ? -1 : 1) : 0;
}

/* Text is made of entries of these types alone. */
static bool is_text(const entry *e)
{
    return e->type == NORMAL || e->type == USER_DEFINED;
}

static pare_status find_merges(merge **out, size_t *n, const model *m, pare_err *err)
{
    size_t capacity = 0;
    pare_piece *const piece = pare_alloc(m->arena, m->n, sizeof *piece);
    pare_text_map map = pare_text_map_new(m->arena, piece, m->n);
    if (!piece || !map.slot) return pare_no_memory(err);
    for (size_t i = 0; i < m->n; i++) {
        piece[i] = (pare_piece){m->v[i].text, strlen(m->v[i].text)};
        if (piece[i].n && is_text(&m->v[i])) pare_text_map_set(&map, i);
    }
    const pare_piece nothing = {"", 0};
    for (size_t i = 0; i < m->n; i++) {
        const pare_piece p = piece[i];
        if (p.n > 512) return pare_fail(err, PARE_ERR_INPUT, "entry %zu has %zu bytes", i, p.n);
        for (size_t cut = 1; cut < p.n && m->v[i].type == NORMAL; cut++) {
            const int64_t left = pare_text_map_find(&map, (pare_piece){p.s, cut}, nothing);
            const int64_t right =
                left < 0 ? -1
                         : pare_text_map_find(&map, (pare_piece){p.s + cut, p.n - cut}, nothing);
            if (right < 0) continue;
            merge *const grown = list_grow(m->arena, *out, *n, &capacity, sizeof **out);
            if (!grown) return pare_no_memory(err);
            *out = grown;
            grown[(*n)++] = (merge){m->v[i].score, (uint32_t)i, (uint32_t)left, (uint32_t)right};
        }
    }
    if (*n) qsort(*out, *n, sizeof **out, best_first);
    return PARE_OK;
}

/* ---- as tokenizer.json ----------------------------------------------------------------------- */

static pare_status add_bpe(cJSON *to, const model *m, pare_err *err)
{
    merge *merges = NULL;
    size_t n = 0;
    bool ok = pare_json_add_values(to, "type:s unk_token:s fuse_unk:b byte_fallback:b", "BPE",
                                   m->v[m->unk].text, true, m->byte_fallback);
    cJSON *const vocab = ok ? pare_json_add_object(to, "vocab") : NULL;
    cJSON *const list = vocab ? pare_json_add_array(to, "merges") : NULL;
    if (!list) return pare_no_memory(err);
    for (size_t i = 0; i < m->n; i++)
        if (!pare_json_add_size(vocab, m->v[i].text, i)) return pare_no_memory(err);
    const pare_status st = find_merges(&merges, &n, m, err);
    if (st) return st;
    for (size_t i = 0; i < n; i++) {
        cJSON *const pair = pare_json_add_array(list, NULL);
        if (!pair || !pare_json_add_string(pair, NULL, m->v[merges[i].left].text) ||
            !pare_json_add_string(pair, NULL, m->v[merges[i].right].text))
            return pare_no_memory(err);
    }
    return PARE_OK;
}

static pare_status add_unigram(cJSON *to, const model *m, pare_err *err)
{
    bool ok = pare_json_add_values(to, "type:s unk_id:z byte_fallback:b", "Unigram", (size_t)m->unk,
                                   m->byte_fallback);
    cJSON *const vocab = ok ? pare_json_add_array(to, "vocab") : NULL;
    for (size_t i = 0; i < m->n && ok; i++) {
        cJSON *const pair = vocab ? pare_json_add_array(vocab, NULL) : NULL;
        ok = pair && pare_json_add_string(pair, NULL, m->v[i].text) &&
             pare_json_add_number(pair, NULL, (double)m->v[i].score);
    }
    return ok ? PARE_OK : pare_no_memory(err);
}

static bool add_replace(cJSON *list, const char *kind, const char *pattern, const char *content)
{
    cJSON *const part = pare_json_add_object(list, NULL);
    cJSON *const in = part && pare_json_add_values(part, "type:s content:s", "Replace", content)
                          ? pare_json_add_object(part, "pattern")
                          : NULL;
    return in && pare_json_add_string(in, kind, pattern);
}

static char *base64(pare_arena *a, pare_piece in)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *const out = pare_alloc(a, in.n / 3 * 4 + 8, 1);
    size_t n = 0;
    for (size_t i = 0; out && i < in.n; i += 3) {
        uint32_t bits = (uint32_t)(uint8_t)in.s[i] << 16;
        if (i + 1 < in.n) bits |= (uint32_t)(uint8_t)in.s[i + 1] << 8;
        if (i + 2 < in.n) bits |= (uint8_t)in.s[i + 2];
        for (size_t k = 0; k < 4; k++) out[n++] = digits[bits >> (18 - 6 * k) & 63];
    }
    return out;
}

#define BLANK "\xE2\x96\x81" /* U+2581 */

/* What is done to text, and undone when it is printed. */
static bool add_around(cJSON *root, const model *m)
{
    cJSON *const normalizer = pare_json_add_object(root, "normalizer");
    cJSON *const list = normalizer && pare_json_add_string(normalizer, "type", "Sequence")
                            ? pare_json_add_array(normalizer, "normalizers")
                            : NULL;
    bool ok = list != NULL;
    if (ok && m->charsmap.n) {
        const char *const map = base64(m->arena, m->charsmap);
        ok = map &&
             pare_json_add_record(list, NULL, "type:s precompiled_charsmap:s", "Precompiled", map);
    }
    if (ok && m->once)
        ok = pare_json_add_record(list, NULL, "type:s strip_left:b strip_right:b", "Strip", true,
                                  true) &&
             add_replace(list, "Regex", " {2,}", " ");
    if (ok && m->prefix)
        ok = pare_json_add_record(list, NULL, "type:s prepend:s", "Prepend", BLANK);
    ok = ok && add_replace(list, "String", " ", BLANK);
    cJSON *const decoder = ok ? pare_json_add_object(root, "decoder") : NULL;
    cJSON *const parts = decoder && pare_json_add_string(decoder, "type", "Sequence")
                             ? pare_json_add_array(decoder, "decoders")
                             : NULL;
    ok = parts && add_replace(parts, "String", BLANK, " ") &&
         pare_json_add_record(parts, NULL, "type:s", "ByteFallback") &&
         pare_json_add_record(parts, NULL, "type:s", "Fuse");
    if (ok && m->prefix)
        ok = pare_json_add_record(parts, NULL, "type:s content:s start:z stop:z", "Strip", " ",
                                  (size_t)1, (size_t)0);
    return ok;
}

/* How a class of transformers uses such a file. Those of fairseq put entries of their own before the
 * file's, of which the first `dropped` are left out, and the mask behind them; each text stands between
 * <s> and </s>. */
typedef struct family {
    const char *class;
    size_t dropped, nown;
    entry own[5];
} family;
static const family families[] = {
    {.class = ""},
    {.class = "LlamaTokenizer"},
    {.class = "XLMRobertaTokenizer",
     .dropped = 3,
     .nown = 4,
     .own =
         {{"<s>", 0, CONTROL}, {"<pad>", 0, CONTROL}, {"</s>", 0, CONTROL}, {"<unk>", 0, UNKNOWN}}},
    /* The ids of its own <s> and </s> are not used: those of the file are. */
    {.class = "CamembertTokenizer",
     .dropped = 1,
     .nown = 5,
     .own = {{"<s>NOTUSED", 0, UNUSED},
             {"<pad>", 0, CONTROL},
             {"</s>NOTUSED", 0, UNUSED},
             {"<unk>", 0, UNKNOWN},
             {"<unk>NOTUSED", -100, UNUSED}}},
};
enum { FAIRSEQ_UNKNOWN = 3 };

/* The same class, be its name that of the one in Rust ("Fast"). */
static pare_status find_family(const family **out, const char *class, pare_err *err)
{
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        const size_t n = strlen(families[i].class);
        *out = &families[i];
        if (strncmp(class, families[i].class, n) == 0 &&
            (class[n] == '\0' || (n > 0 && strcmp(class + n, "Fast") == 0)))
            return PARE_OK;
    }
    return pare_fail(err, PARE_ERR_INPUT,
                     "tokenizer_class is \"%.60s\", and pare knows how LlamaTokenizer, "
                     "XLMRobertaTokenizer and CamembertTokenizer use such a file; a "
                     "tokenizer.json says it for others",
                     class);
}

static pare_status renumber(model *m, const family *f, pare_err *err)
{
    if (f->nown == 0) return PARE_OK;
    if (m->type != 1 || m->n < f->dropped)
        return pare_fail(err, PARE_ERR_INPUT, "is not the Unigram model that a %s has", f->class);
    const size_t rest = m->n - f->dropped, n = f->nown + rest + 1;
    entry *const v = pare_alloc(m->arena, n, sizeof *v);
    if (!v) return pare_no_memory(err);
    memcpy(v, f->own, f->nown * sizeof *v);
    memcpy(v + f->nown, m->v + f->dropped, rest * sizeof *v);
    v[n - 1] = (entry){"<mask>", 0, CONTROL};
    m->v = v;
    m->n = n;
    m->unk = FAIRSEQ_UNKNOWN;
    m->bos = m->eos = n;
    for (size_t i = 0; i < n; i++) {
        if (m->bos == n && strcmp(v[i].text, "<s>") == 0) m->bos = i;
        if (m->eos == n && strcmp(v[i].text, "</s>") == 0) m->eos = i;
    }
    return PARE_OK;
}

/* Tokens that are found before anything else: control tokens are special, users' own are not. */
static pare_status add_tokens(cJSON *root, const model *m, const family *f,
                              const pare_tokenizer_config *c, pare_err *err)
{
    static const char *const no_defaults[PARE_SPECIAL_TOKENS] = {NULL};
    static const char *const fairseq[PARE_SPECIAL_TOKENS] = {"<s>", "</s>",  "<unk>", "</s>",
                                                             "<s>", "<pad>", "<mask>"};
    cJSON *const ids = cJSON_CreateObject();
    pare_status st = ids ? PARE_OK : pare_no_memory(err);
    for (size_t i = 0; i < m->n && !st; i++) {
        const uint64_t type = m->v[i].type;
        if (type != CONTROL && type != UNKNOWN && type != USER_DEFINED) continue;
        if (!pare_json_add_size(ids, m->v[i].text, i)) st = pare_no_memory(err);
    }
    if (!st) st = pare_add_tokens(root, c, f->nown ? fairseq : no_defaults, ids, err);
    cJSON *const list = cJSON_GetObjectItemCaseSensitive(root, "added_tokens");
    bool *const there = pare_alloc(m->arena, m->n, sizeof *there);
    const cJSON *id, *token;
    if (!st && !there) st = pare_no_memory(err);
    cJSON_ArrayForEach(token, list)
    {
        id = cJSON_GetObjectItemCaseSensitive(token, "id");
        if (there && id && id->valuedouble >= 0 && id->valuedouble < (double)m->n)
            there[(size_t)id->valuedouble] = true;
    }
    cJSON_ArrayForEach(id, ids)
    {
        const bool special = m->v[(size_t)id->valuedouble].type != USER_DEFINED;
        if (st || there[(size_t)id->valuedouble] || !id->string[0]) continue;
        if (!pare_json_add_record(list, NULL, "id:z content:s normalized:b special:b",
                                  (size_t)id->valuedouble, id->string, false, special))
            st = pare_no_memory(err);
    }
    bool bos = true, eos = f->nown > 0;
    if (!st && !f->nown) st = pare_json_bool_opt(&bos, c->config, "add_bos_token", err);
    if (!st && !f->nown) st = pare_json_bool_opt(&eos, c->config, "add_eos_token", err);
    if (!st)
        st = pare_add_template(root, ids, bos && m->bos < m->n ? m->v[m->bos].text : NULL,
                               eos && m->eos < m->n ? m->v[m->eos].text : NULL, err);
    cJSON_Delete(ids);
    return st;
}

pare_status pare_json_of_sentencepiece(cJSON **out, pare_arena *a, pare_piece bytes,
                                       const pare_tokenizer_config *c, pare_err *err)
{
    model m = {.arena = a, .type = 1, .bos = 1, .eos = 2};
    m.prefix = m.once = m.escape = true; /* protobuf leaves out what is as usual */
    *out = NULL;
    const family *f = NULL;
    pare_status st = find_family(&f, c->class ? c->class : "", err);
    if (!st) st = read_model(&m, bytes, err);
    if (!st) st = renumber(&m, f, err);
    if (!st && m.unk >= m.n)
        st = pare_fail(err, PARE_ERR_INPUT, "the unknown token is %llu in a vocabulary of %zu",
                       (unsigned long long)m.unk, m.n);
    if (st) return st;
    cJSON *const root = cJSON_CreateObject();
    cJSON *const to = root ? pare_json_add_object(root, "model") : NULL;
    if (!to)
        st = pare_no_memory(err);
    else
        st = m.type == 2 ? add_bpe(to, &m, err) : add_unigram(to, &m, err);
    if (!st && !add_around(root, &m)) st = pare_no_memory(err);
    if (!st) st = add_tokens(root, &m, f, c, err);
    if (st)
        cJSON_Delete(root);
    else
        *out = root;
    return st;
}
