/* subword_unigram.c - the unigram language model: of all ways to cut a word into entries the one
 * with the largest sum of log probabilities, by Viterbi's algorithm over a trie (subword.h). */
#include "subword.h"
#include "unicode.h"
#include <string.h>

#define UNKNOWN_PENALTY 10.0
enum { LONGEST_ENTRY = 2048 };

typedef struct pare_best_path { /* to a place in the word */
    double score;
    size_t from;
    int32_t id; /* -1: nothing ends here */
} best_path;

static pare_status make_trie(pare_subword *m, pare_arena *a, pare_err *err)
{
    size_t bytes = 0;
    int32_t nodes = 1;
    for (size_t id = 0; id < m->size; id++) bytes += m->piece[id].n;
    m->trie = pare_pair_map_new(a, bytes);
    m->node_id = pare_alloc(a, bytes + 1, sizeof *m->node_id);
    if (!m->trie.key || !m->node_id) return pare_no_memory(err);
    for (size_t i = 0; i <= bytes; i++) m->node_id[i] = -1;
    for (size_t id = 0; id < m->size; id++) {
        int32_t node = 0;
        for (size_t i = 0; i < m->piece[id].n; i++) {
            const int32_t c = (uint8_t)m->piece[id].s[i];
            int32_t next = pare_pair_map_find(&m->trie, node, c);
            if (next < 0) pare_pair_map_put(&m->trie, node, c, next = nodes++);
            node = next;
        }
        if (m->piece[id].n) m->node_id[node] = (int32_t)id; /* of equal entries the last counts */
    }
    return PARE_OK;
}

pare_status pare_unigram_read(pare_subword *m, pare_arena *a, const cJSON *json, pare_err *err)
{
    const cJSON *vocab, *entry;
    size_t id = 0, unk = SIZE_MAX;
    double least = 0;
    pare_status st = pare_json_array(&vocab, json, "vocab", err);
    if (!st) st = pare_json_size_opt(&unk, json, "unk_id", err);
    if (!st) st = pare_json_bool_opt(&m->byte_fallback, json, "byte_fallback", err);
    if (st) return st;
    const size_t n = (size_t)cJSON_GetArraySize(vocab);
    if (n == 0) return pare_fail(err, PARE_ERR_INPUT, "vocab is empty");
    if (unk != SIZE_MAX && unk >= n)
        return pare_fail(err, PARE_ERR_INPUT, "unk_id %zu in a vocabulary of %zu entries", unk, n);
    m->unk = unk == SIZE_MAX ? -1 : (int32_t)unk;
    m->fuse_unk = true;
    m->score = pare_alloc(a, n, sizeof *m->score);
    if (!m->score) return pare_no_memory(err);
    st = pare_subword_reserve(m, a, n, n, err);
    for (entry = vocab->child; entry && !st; entry = entry->next, id++) {
        const cJSON *const text = cJSON_IsArray(entry) ? entry->child : NULL;
        const cJSON *const score = text ? text->next : NULL;
        if (!cJSON_IsString(text) || !cJSON_IsNumber(score) || score->next)
            return pare_fail(err, PARE_ERR_INPUT, "vocab: entry %zu is not a text and a score", id);
        if (strlen(text->valuestring) > LONGEST_ENTRY)
            return pare_fail(err, PARE_ERR_INPUT, "vocab: entry %zu has more than %d bytes", id,
                             LONGEST_ENTRY);
        m->score[id] = score->valuedouble;
        if (id == 0 || m->score[id] < least) least = m->score[id];
        st = pare_subword_put(m, a, id, text->valuestring, err);
    }
    if (st) return st;
    m->unk_score = least - UNKNOWN_PENALTY;
    pare_subword_find_bytes(m);
    return make_trie(m, a, err);
}

/* path[i]: the best cut of the first i bytes. */
static pare_status find_path(best_path *path, const pare_subword *m, pare_piece w, pare_err *err)
{
    for (size_t i = 0; i <= w.n; i++) path[i] = (best_path){0, 0, -1};
    for (size_t at = 0, len; at < w.n; at += len) {
        const double till_here = path[at].score;
        bool whole_char = false;
        int32_t node = 0;
        (void)pare_utf8_next(w.s + at, w.n - at, &len);
        for (size_t end = at; end < w.n;) {
            node = pare_pair_map_find(&m->trie, node, (uint8_t)w.s[end++]);
            if (node < 0) break;
            const int32_t id = m->node_id[node];
            if (id < 0) continue;
            const double score = m->score[id] + till_here;
            if (path[end].id < 0 || score > path[end].score) path[end] = (best_path){score, at, id};
            whole_char = whole_char || end - at == len;
        }
        if (whole_char) continue;
        best_path *const to = &path[at + len];
        if (m->unk < 0)
            return pare_fail(err, PARE_ERR_INPUT,
                             "the vocabulary lacks a character of the text and has no unk_id");
        if (to->id < 0 || m->unk_score + till_here > to->score)
            *to = (best_path){m->unk_score + till_here, at, m->unk};
    }
    return PARE_OK;
}

/* A run of what is unknown is one token, or its bytes. */
static void put_part(pare_subword_run *r, pare_piece part)
{
    const pare_subword *const m = r->m;
    const int32_t id = pare_subword_id(m, part.s, part.n);
    bool bytes = id < 0 && m->byte_fallback;
    for (size_t i = 0; i < part.n && bytes; i++) bytes = m->byte_id[(uint8_t)part.s[i]] >= 0;
    for (size_t i = 0; i < part.n && bytes; i++)
        pare_id_list_put(r->out, m->byte_id[(uint8_t)part.s[i]]);
    if (!bytes) pare_id_list_put(r->out, id >= 0 ? id : m->unk);
}

pare_status pare_unigram_word(pare_subword_run *r, pare_piece w, pare_err *err)
{
    const pare_subword *const m = r->m;
    if (w.n >= r->path_capacity) {
        r->path_capacity = w.n + w.n / 2 + 64;
        r->path = pare_alloc(r->arena, r->path_capacity, sizeof *r->path);
        if (!r->path) return pare_no_memory(err);
    }
    best_path *const path = r->path;
    const pare_status st = find_path(path, m, w, err);
    if (st) return st;
    /* Backwards over the path; each part's end is kept where it begins, then forwards. */
    best_path last = path[w.n];
    for (size_t end = w.n; end > 0;) {
        const size_t from = last.from;
        const bool unknown = last.id == m->unk && m->fuse_unk;
        last = path[from];
        path[from].from = end;
        path[from].id = unknown;
        end = from;
    }
    path[w.n].id = false;
    for (size_t at = 0; at < w.n;) {
        size_t end = path[at].from;
        while (path[at].id && end < w.n && path[end].id) end = path[end].from;
        put_part(r, (pare_piece){w.s + at, end - at});
        at = end;
    }
    return r->out->failed ? pare_no_memory(err) : PARE_OK;
}
