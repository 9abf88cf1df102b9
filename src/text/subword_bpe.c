/* subword_bpe.c - byte-pair encoding as tokenizer.json has it: merges by rank (subword.h). */
#include "normalize.h"
#include "subword.h"
#include "unicode.h"
#include <string.h>

/* The two parts of a merge: ["a", "b"], or "a b". */
static bool merge_parts(pare_piece part[2], const cJSON *merge)
{
    if (cJSON_IsString(merge)) {
        const char *const s = merge->valuestring, *const blank = strchr(s, ' ');
        if (!blank || strchr(blank + 1, ' ')) return false;
        part[0] = (pare_piece){s, (size_t)(blank - s)};
        part[1] = (pare_piece){blank + 1, strlen(blank + 1)};
        return true;
    }
    const cJSON *const left = cJSON_IsArray(merge) ? merge->child : NULL;
    const cJSON *const right = left ? left->next : NULL;
    if (!cJSON_IsString(left) || !cJSON_IsString(right) || right->next) return false;
    part[0] = (pare_piece){left->valuestring, strlen(left->valuestring)};
    part[1] = (pare_piece){right->valuestring, strlen(right->valuestring)};
    return true;
}

static pare_status read_merges(pare_subword *m, pare_arena *a, const cJSON *json, pare_err *err)
{
    const cJSON *merges, *merge;
    const pare_piece nothing = {"", 0};
    size_t rank = 0;
    pare_status st = pare_json_array(&merges, json, "merges", err);
    if (st) return st;
    const size_t n = (size_t)cJSON_GetArraySize(merges);
    m->merges = pare_pair_map_new(a, n);
    m->into = pare_alloc(a, n + 1, sizeof *m->into);
    if (!m->merges.key || !m->into) return pare_no_memory(err);
    cJSON_ArrayForEach(merge, merges)
    {
        pare_piece part[2];
        if (cJSON_IsString(merge) && strncmp(merge->valuestring, "#version", 8) == 0) continue;
        if (!merge_parts(part, merge))
            return pare_fail(err, PARE_ERR_INPUT, "merge %zu is not two entries", rank);
        const int64_t left = pare_text_map_find(&m->by_text, part[0], nothing);
        const int64_t right = pare_text_map_find(&m->by_text, part[1], nothing);
        pare_piece rest = part[1];
        if (m->prefix.n && rest.n >= m->prefix.n) {
            rest.s += m->prefix.n;
            rest.n -= m->prefix.n;
        }
        const int64_t into = pare_text_map_find(&m->by_text, part[0], rest);
        if (left < 0 || right < 0 || into < 0)
            return pare_fail(err, PARE_ERR_INPUT,
                             "merge %zu: \"%.40s\" and \"%.40s\": %s not in the vocabulary", rank,
                             part[0].s, part[1].s,
                             left < 0    ? "the first is"
                             : right < 0 ? "the second is"
                                         : "what they make is");
        m->into[rank] = (int32_t)into;
        pare_pair_map_put(&m->merges, (int32_t)left, (int32_t)right, (int32_t)rank++);
    }
    return PARE_OK;
}

/* Two neighboring characters that no entry has inside of it never come together. */
static pare_status find_neighbors(pare_subword *m, pare_arena *a, pare_err *err)
{
    size_t bytes = 0;
    for (size_t id = 0; id < m->size; id++) bytes += m->piece[id].n;
    m->inside = pare_pair_map_new(a, bytes);
    if (!m->inside.key) return pare_no_memory(err);
    for (size_t id = 0; id < m->size; id++) {
        const pare_piece p = m->piece[id];
        uint32_t before = PARE_NO_CHAR;
        for (size_t at = 0, len; at < p.n; at += len) {
            const uint32_t c = pare_utf8_next(p.s + at, p.n - at, &len);
            if (at) pare_pair_map_put(&m->inside, (int32_t)before, (int32_t)c, 0);
            before = c;
        }
    }
    return PARE_OK;
}

pare_status pare_bpe_model_read(pare_subword *m, pare_arena *a, const cJSON *json, bool whole,
                                pare_err *err)
{
    double dropout = 0;
    pare_status st = pare_json_number_opt(&dropout, json, "dropout", err);
    if (!st) st = pare_json_bool_opt(&m->fuse_unk, json, "fuse_unk", err);
    if (!st) st = pare_json_bool_opt(&m->byte_fallback, json, "byte_fallback", err);
    if (!st) st = pare_json_bool_opt(&m->ignore_merges, json, "ignore_merges", err);
    if (!st) st = pare_piece_read(&m->prefix, a, json, "continuing_subword_prefix", "", err);
    if (!st) st = pare_piece_read(&m->suffix, a, json, "end_of_word_suffix", "", err);
    if (!st) st = read_merges(m, a, json, err);
    if (st) return st;
    pare_subword_find_bytes(m);
    const bool cuts = whole && !m->prefix.n && !m->suffix.n && !m->ignore_merges;
    return cuts ? find_neighbors(m, a, err) : PARE_OK;
}

size_t pare_bpe_safe_cut(const pare_subword *m, pare_piece w)
{
    bool known = false; /* the character before is an entry: no fall-back that could merge */
    uint32_t before = PARE_NO_CHAR;
    for (size_t at = 0, len; at < w.n; at += len) {
        const uint32_t c = pare_utf8_next(w.s + at, w.n - at, &len);
        const bool entry = c != PARE_NO_CHAR && pare_subword_id(m, w.s + at, len) >= 0;
        if (known && entry && pare_pair_map_find(&m->inside, (int32_t)before, (int32_t)c) < 0)
            return at;
        known = entry;
        before = c;
    }
    return w.n;
}

static int32_t pair_of(const void *self, int32_t left, int32_t right, double *key)
{
    const pare_subword *const m = self;
    const int32_t rank = pare_pair_map_find(&m->merges, left, right);
    if (rank < 0) return -1;
    *key = -(double)rank;
    return m->into[rank];
}

/* The id of one character with the prefix and suffix that its place asks for; -1: no entry. */
static int64_t char_id(pare_subword_run *r, pare_piece c, bool first, bool last, pare_piece *full)
{
    const pare_subword *const m = r->m;
    *full = c;
    if ((first || !m->prefix.n) && (!last || !m->suffix.n))
        return pare_text_map_find(&m->by_text, c, (pare_piece){"", 0});
    pare_buffer b = {.arena = r->arena};
    if (!first) pare_buffer_put(&b, m->prefix.s, m->prefix.n);
    pare_buffer_put(&b, c.s, c.n);
    if (last) pare_buffer_put(&b, m->suffix.s, m->suffix.n);
    if (b.failed) {
        r->out->failed = true;
        return -1;
    }
    *full = (pare_piece){b.s, b.n};
    return pare_text_map_find(&m->by_text, *full, (pare_piece){"", 0});
}

/* The bytes of a character as ids; false when one of them has no entry. */
static bool put_bytes(pare_subword_run *r, pare_piece c)
{
    for (size_t i = 0; i < c.n; i++)
        if (r->m->byte_id[(uint8_t)c.s[i]] < 0) return false;
    for (size_t i = 0; i < c.n; i++) pare_id_list_put(r->out, r->m->byte_id[(uint8_t)c.s[i]]);
    return true;
}

pare_status pare_bpe_word(pare_subword_run *r, pare_piece word, pare_err *err)
{
    const pare_subword *const m = r->m;
    const size_t before = r->out->n;
    if (m->ignore_merges) {
        const int32_t id = pare_subword_id(m, word.s, word.n);
        if (id >= 0) {
            pare_id_list_put(r->out, id);
            return r->out->failed ? pare_no_memory(err) : PARE_OK;
        }
    }
    bool unknown = false; /* one is to be put before the next character that is known */
    for (size_t at = 0, len; at < word.n; at += len) {
        pare_piece c = {word.s + at, 0}, full;
        (void)pare_utf8_next(c.s, word.n - at, &len);
        c.n = len;
        const int64_t id = char_id(r, c, at == 0, at + len == word.n, &full);
        if (id >= 0) {
            if (unknown) pare_id_list_put(r->out, m->unk);
            unknown = false;
            pare_id_list_put(r->out, (int32_t)id);
            continue;
        }
        if (m->byte_fallback && put_bytes(r, full)) continue;
        if (m->unk < 0) continue;
        if (unknown && !m->fuse_unk) pare_id_list_put(r->out, m->unk);
        unknown = true;
    }
    if (unknown) pare_id_list_put(r->out, m->unk);
    if (r->out->failed) return pare_no_memory(err);
    if (r->out->n == before) return PARE_OK; /* none of the word's characters is known */
    r->merger.pair = pair_of;
    r->merger.self = m;
    r->merger.arena = r->arena;
    size_t n = r->out->n - before;
    const pare_status st = pare_merge(&r->merger, r->out->v + before, &n, err);
    r->out->n = before + n;
    return st;
}
