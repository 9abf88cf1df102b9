/* model.c - a model file (docs/format.md: the container, the architecture, the tensors).
 *
 * Every size is checked before it is believed: a tensor has the bytes that its shape needs, inside
 * the file; the architecture names tensors by shape; and no tensor is left over. */
#include "check.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const norm_words[] = {"", "layer", "rms", "batch", "mean", NULL};
static const char *const skip_words[] = {"none", "identity", "diagonal", "dense", NULL};
static const char *const act_words[] = {"none", "relu", "gelu", "gelu_tanh", "silu", "tanh", NULL};
static const char *const attn_words[] = {"",       "exact", "zero",   "const",  "uniform",
                                         "constq", "meanq", "linear", "affmix", "pool",
                                         "umix",   "poly",  NULL};
static const char *const pattern_words[] = {"full", "causal", "window", "graph", NULL};
static const char *const position_words[] = {"", "learned", "sinusoidal", "rotary", NULL};
static const char *const pool_words[] = {"none", "first", "mean", NULL};
static const char *const tokenizer_words[] = {"", "gpt2", "llama2c", "words", "bytes", NULL};

enum { ANY = 0, MOST_WIDTH = 1 << 26, MOST_LAYERS = 10000 };

/* ---- numbers of a tensor --------------------------------------------------------------------- */

double weight_at(const tensor *t, size_t i)
{
    if (t->type == 'd') {
        double v;
        memcpy(&v, t->data + i * sizeof v, sizeof v);
        return v;
    }
    float v;
    memcpy(&v, t->data + i * sizeof v, sizeof v);
    return (double)v;
}

/* ---- the container --------------------------------------------------------------------------- */

static bool read_tensor(job *j, const char *file, const cJSON *o, bytes data, tensor *t)
{
    static const char *const keys[] = {"dtype", "shape", "data_offsets", NULL};
    static const struct {
        const char *name;
        char type;
        size_t size;
    } types[] = {{"F64", 'd', 8}, {"F32", 'f', 4}, {"U8", 'b', 1}};
    const char *const where = words(j, "%s: %s", file, t->name);
    if (!only_keys(j, o, where, keys)) return false;
    const char *const dtype = get_text(j, o, where, "dtype");
    const cJSON *const shape = get(j, o, where, "shape"), *const at =
                                                              get(j, o, where, "data_offsets");
    size_t k = 0;
    while (k < 3 && strcmp(types[k].name, dtype) != 0) k++;
    if (k == 3) return fail(j, UNREADABLE, "%s: type %.20s is not F32, F64 or U8", where, dtype);
    if (!cJSON_IsArray(shape) || !cJSON_IsArray(at) || cJSON_GetArraySize(at) != 2 ||
        cJSON_GetArraySize(shape) < 1 || cJSON_GetArraySize(shape) > 2)
        return fail(j, UNREADABLE, "%s: shape or offsets", where);
    double d[4] = {1, 0, 0, 0}; /* rows, cols, begin, end */
    t->ndim = (size_t)cJSON_GetArraySize(shape);
    for (size_t i = 0; i < t->ndim; i++)
        d[2 - t->ndim + i] = cJSON_GetArrayItem(shape, (int)i)->valuedouble;
    for (size_t i = 0; i < 2; i++) d[2 + i] = cJSON_GetArrayItem(at, (int)i)->valuedouble;
    for (size_t i = 0; i < 4; i++)
        if (!(d[i] >= (i < 2 ? 1 : 0) && d[i] <= 0x1p48 && d[i] == floor(d[i])))
            return fail(j, UNREADABLE, "%s: shape or offsets", where);
    t->type = types[k].type;
    t->rows = (size_t)d[0];
    t->cols = (size_t)d[1];
    if (d[2] > d[3] || d[3] > (double)data.n || d[0] * d[1] * (double)types[k].size != d[3] - d[2])
        return fail(j, UNREADABLE, "%s: shape and offsets do not fit", where);
    t->data = data.v + (size_t)d[2];
    t->size = (size_t)(d[3] - d[2]);
    for (size_t i = 0; t->type != 'b' && i < t->rows * t->cols; i++)
        if (!isfinite(weight_at(t, i))) return fail(j, UNREADABLE, "%s: a nan or an inf", where);
    return true;
}

static int by_place(const void *a, const void *b)
{
    const tensor *const x = a, *const y = b;
    return (x->data > y->data) - (x->data < y->data);
}

/* Version 1 says stem and top for embedding and head. */
static const char *new_name(job *j, const char *name, bool old)
{
    if (old && strncmp(name, "stem.", 5) == 0) return words(j, "embedding.%s", name + 5);
    if (old && strncmp(name, "top.", 4) == 0) return words(j, "head.%s", name + 4);
    return words(j, "%s", name);
}

static bool read_tensors(job *j, const char *file, const cJSON *header, bytes data, bool old,
                         model *m)
{
    m->tensors = take(j, (size_t)cJSON_GetArraySize(header) + 1, sizeof *m->tensors);
    for (const cJSON *c = header->child; m->tensors && c && !j->t.code; c = c->next) {
        if (strcmp(c->string, "__metadata__") == 0) continue;
        tensor *const t = &m->tensors[m->ntensors++];
        t->name = new_name(j, c->string, old);
        read_tensor(j, file, c, data, t);
    }
    if (j->t.code) return false;
    qsort(m->tensors, m->ntensors, sizeof *m->tensors, by_place);
    const unsigned char *end = data.v;
    for (size_t i = 0; i < m->ntensors; i++) {
        if (m->tensors[i].data != end)
            return fail(j, UNREADABLE, "%s: a gap or an overlap at %s", file, m->tensors[i].name);
        end += m->tensors[i].size;
    }
    if (end != data.v + data.n) return fail(j, UNREADABLE, "%s: bytes after the last tensor", file);
    return true;
}

/* The header's own hash, computed with its 64 digits as zeros. */
static bool header_hash_is_right(job *j, bytes header, const char *digits)
{
    char hex[65];
    unsigned char *const copy = take(j, header.n + 1, 1);
    if (!copy || strlen(digits) != 64) return false;
    memcpy(copy, header.v, header.n);
    const unsigned char *const key = memmem(copy, header.n, "\"pare.sha256\"", 13);
    unsigned char *const at = key ? memmem(key, header.n - (size_t)(key - copy), digits, 64) : NULL;
    if (!at) return false;
    memset(at, '0', 64);
    sha256_of(hex, copy, header.n);
    return memcmp(hex, digits, 64) == 0;
}

/* ---- the architecture: getters --------------------------------------------------------------- */

static size_t size_or(job *j, const cJSON *o, const char *where, const char *key, size_t otherwise)
{
    if (!find(o, key)) return otherwise;
    const size_t v = get_count(j, o, where, key);
    if (v > (size_t)1 << 40) fail(j, UNREADABLE, "%s.%s: is too large", where, key);
    return v;
}

static size_t get_width(job *j, const cJSON *o, const char *where, const char *key)
{
    const size_t v = get_count(j, o, where, key);
    if (v == 0 || v > MOST_WIDTH) fail(j, UNREADABLE, "%s.%s: a width of %zu", where, key, v);
    return v;
}

static double get_range(job *j, const cJSON *o, const char *where, const char *key, double low,
                        double high)
{
    const double v = get_number(j, o, where, key);
    if (!(v >= low && v <= high))
        fail(j, UNREADABLE, "%s.%s: is not from %g to %g", where, key, low, high);
    return v;
}

static bool get_flag(job *j, const cJSON *o, const char *where, const char *key, bool required)
{
    if (!required && !find(o, key)) return false;
    const cJSON *const v = get(j, o, where, key);
    if (!cJSON_IsBool(v)) fail(j, UNREADABLE, "%s.%s: is not true or false", where, key);
    return cJSON_IsTrue(v);
}

/* The place of a word in its list. Optional words default to the first one. */
static int get_word(job *j, const cJSON *o, const char *where, const char *key,
                    const char *const *list, bool required)
{
    if (!required && !find(o, key)) return 0;
    const char *const word = get_text(j, o, where, key);
    int i = 0;
    while (list[i] && strcmp(list[i], word) != 0) i++;
    if (!list[i] || !*word) fail(j, UNREADABLE, "%s.%s: unknown word \"%.40s\"", where, key, word);
    return list[i] ? i : 0;
}

/* A tensor of that shape (ANY rows: as it is); NULL: absent. `vector`: of one dimension. */
static const tensor *get_tensor(job *j, model *m, const char *name, size_t rows, size_t cols,
                                bool vector, bool required)
{
    for (size_t i = 0; i < m->ntensors && !j->t.code; i++) {
        tensor *const t = &m->tensors[i];
        if (strcmp(t->name, name) != 0) continue;
        if (t->type == 'b' || (t->ndim == 1) != vector || (rows != ANY && t->rows != rows) ||
            (cols != ANY && t->cols != cols))
            fail(j, UNREADABLE, "tensor %s is [%zu, %zu], expected [%zu, %zu]", name, t->rows,
                 t->cols, rows, cols);
        t->used = true;
        return t;
    }
    if (required) fail(j, UNREADABLE, "tensor %s is missing", name);
    return NULL;
}

static const tensor *get_vector(job *j, model *m, const char *at, const char *name, size_t n,
                                bool required)
{
    return get_tensor(j, m, words(j, "%s.%s", at, name), 1, n, true, required);
}

static const tensor *get_matrix(job *j, model *m, const char *at, const char *name, size_t rows,
                                size_t cols, bool required)
{
    return get_tensor(j, m, words(j, "%s.%s", at, name), rows, cols, false, required);
}

/* ---- the architecture: parts ----------------------------------------------------------------- */

static void read_norm(job *j, model *m, const cJSON *parent, const char *key, const char *at,
                      size_t d, norm *n)
{
    static const char *const keys[] = {"kind", "eps", "divisor", "shift", NULL};
    const cJSON *const o = find(parent, key);
    if (!o || !only_keys(j, o, at, keys)) return;
    n->kind = (norm_kind)get_word(j, o, at, "kind", norm_words, true);
    const bool divides = n->kind == NORM_LAYER || n->kind == NORM_RMS,
               batch = n->kind == NORM_BATCH;
    if (n->kind != NORM_MEAN) n->eps = get_range(j, o, at, "eps", 0, 1e30);
    if (divides) n->divisor = get_range(j, o, at, "divisor", 1e-6, 1e30);
    if (find(o, "shift")) n->shift = get_range(j, o, at, "shift", 0, 1e30);
    n->gain = get_vector(j, m, at, "gain", d, false);
    n->bias = get_vector(j, m, at, "bias", d, false);
    if (!batch) n->offset = get_vector(j, m, at, "offset", d, false);
    if (batch) n->mean = get_vector(j, m, at, "mean", d, true);
    if (batch) n->var = get_vector(j, m, at, "var", d, true);
    for (size_t i = 0; n->var && !j->t.code && i < d; i++)
        if (!(weight_at(n->var, i) >= 0 && weight_at(n->var, i) + n->eps > 0))
            fail(j, UNREADABLE, "%s.var: entry %zu is out of range", at, i);
}

static const tensor *read_skip(job *j, model *m, const char *at, skip_kind kind, size_t in,
                               size_t out)
{
    if ((kind == SKIP_IDENTITY || kind == SKIP_DIAGONAL) && in != out)
        fail(j, UNREADABLE, "%s: this skip needs equal widths, not %zu and %zu", at, in, out);
    if (kind == SKIP_DIAGONAL) return get_vector(j, m, at, "skip", in, true);
    return kind == SKIP_DENSE ? get_matrix(j, m, at, "skip", out, in, true) : NULL;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Heads, and how many rows of wq, wk, wv, freqs they read; returns the number of frequencies. */
static size_t read_heads(job *j, const model *m, const cJSON *o, const char *at, attention *a)
{
    static const char *const keys[] = {"dk", "dv",    "q",    "k",      "v",
                                       "o",  "scale", "freq", "planes", NULL};
    const cJSON *const list = find(o, "heads");
    size_t freqs = 0;
    if (list && !cJSON_IsArray(list)) fail(j, UNREADABLE, "%s.heads: is not an array", at);
    if (!list || j->t.code) return 0;
    a->heads = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *a->heads);
    for (const cJSON *c = list->child; a->heads && c && !j->t.code; c = c->next) {
        const char *const where = words(j, "%s.heads[%zu]", at, a->nheads);
        head *const h = &a->heads[a->nheads++];
        if (!only_keys(j, c, where, keys)) return 0;
        h->dk = get_width(j, c, where, "dk");
        h->dv = get_width(j, c, where, "dv");
        h->scale = get_range(j, c, where, "scale", -1e30, 1e30);
        size_t *const place[4] = {&h->q, &h->k, &h->v, &h->o};
        static const char *const names[4] = {"q", "k", "v", "o"};
        for (size_t i = 0; i < 4; i++) *place[i] = get_count(j, c, where, names[i]);
        h->planes = size_or(j, c, where, "planes", 0);
        h->freq = size_or(j, c, where, "freq", 0);
        if (h->q > MOST_WIDTH || h->k > MOST_WIDTH || h->v > MOST_WIDTH || h->o != a->no ||
            h->planes > h->dk / 2 || h->freq > MOST_WIDTH ||
            (h->planes && m->positions != POS_ROTARY))
            fail(j, UNREADABLE, "%s: out of range", where);
        a->no += h->dv;
        a->nq = larger(a->nq, h->q + h->dk);
        a->nk = larger(a->nk, h->k + h->dk);
        a->nv = larger(a->nv, h->v + h->dv);
        if (h->planes) freqs = larger(freqs, h->freq + h->planes);
        if (a->no > MOST_WIDTH) fail(j, UNREADABLE, "%s: heads are too wide", at);
    }
    /* Rotary positions turn a query or key once: nobody else may read it. */
    for (size_t x = 0; freqs && x < a->nheads; x++)
        for (size_t y = 0; y < x; y++) {
            const head *const p = &a->heads[x], *const q = &a->heads[y];
            const bool turned = p->planes || q->planes;
            const bool same = p->k == q->k && p->dk == q->dk && p->planes == q->planes &&
                              (p->freq == q->freq || !p->planes);
            const bool share_q = p->q < q->q + q->dk && q->q < p->q + p->dk;
            const bool share_k = p->k < q->k + q->dk && q->k < p->k + p->dk;
            if (turned && (share_q || (share_k && !same)))
                fail(j, UNREADABLE, "%s: heads %zu and %zu turn the same rows", at, y, x);
        }
    return freqs;
}

static void read_attention(job *j, model *m, const cJSON *o, size_t number, size_t d, attention *a)
{
    static const char *const keys[] = {"kind", "in",      "out",      "heads", "tolerance",
                                       "skip", "in_norm", "out_norm", NULL};
    const char *const at = words(j, "blocks.%zu.attn", number);
    if (!only_keys(j, o, at, keys)) return;
    a->kind = (attn_kind)get_word(j, o, at, "kind", attn_words, true);
    a->skip = (skip_kind)get_word(j, o, at, "skip", skip_words, true);
    a->in = get_width(j, o, at, "in");
    a->out = get_width(j, o, at, "out");
    if (a->in != d) fail(j, UNREADABLE, "%s: reads width %zu of a stream of %zu", at, a->in, d);
    if (find(o, "tolerance")) a->tolerance = get_range(j, o, at, "tolerance", 0, 1);
    const size_t freqs = read_heads(j, m, o, at, a);
    const attn_kind k = a->kind;
    const bool one_query = k == ATTN_CONSTQ || k == ATTN_POOL;
    const bool heads = one_query || k == ATTN_EXACT || k == ATTN_POLY || k == ATTN_MEANQ;
    if (heads != (a->nheads > 0)) fail(j, UNREADABLE, "%s: heads do not suit the kind", at);
    if (k == ATTN_MEANQ && m->pattern != FULL) fail(j, UNREADABLE, "%s: needs pattern full", at);
    if (heads) {
        if (!one_query) a->wq = get_matrix(j, m, at, "wq", a->nq, a->in, true);
        a->bq = get_vector(j, m, at, "bq", a->nq, one_query);
        a->wk = get_matrix(j, m, at, "wk", a->nk, a->in, true);
        a->bk = get_vector(j, m, at, "bk", a->nk, false);
        a->wv = get_matrix(j, m, at, "wv", a->nv, a->in, true);
        a->bv = get_vector(j, m, at, "bv", a->nv, false);
        if (freqs) a->freqs = get_vector(j, m, at, "freqs", freqs, true);
        if (freqs && one_query) fail(j, UNREADABLE, "%s: one query for all can not turn", at);
        if (k != ATTN_POOL) a->wo = get_matrix(j, m, at, "wo", a->out, a->no, a->no != a->out);
    }
    if (k == ATTN_UNIFORM) a->bv = get_vector(j, m, at, "bv", a->out, false);
    if (k == ATTN_LINEAR || k == ATTN_AFFMIX || k == ATTN_POOL)
        a->matrix =
            get_matrix(j, m, at, "matrix", a->out, a->in + (k == ATTN_POOL ? a->no : 0), true);
    if (k == ATTN_UNIFORM || k == ATTN_AFFMIX)
        a->mix = get_matrix(j, m, at, "mix", a->out, a->in, true);
    if (k == ATTN_UMIX) a->mix = get_matrix(j, m, at, "mix", ANY, a->in, true);
    if (k == ATTN_UMIX && a->mix && a->mix->rows % a->out)
        fail(j, UNREADABLE, "%s.mix: %zu rows for %zu outputs", at, a->mix->rows, a->out);
    a->bo = get_vector(j, m, at, "bo", a->out, k == ATTN_CONST);
    read_norm(j, m, o, "in_norm", words(j, "%s.in_norm", at), a->in, &a->in_norm);
    read_norm(j, m, o, "out_norm", words(j, "%s.out_norm", at), a->out, &a->out_norm);
    a->skip_w = read_skip(j, m, at, a->skip, a->in, a->out);
}

static void read_ffn(job *j, model *m, const cJSON *o, size_t number, size_t d, ffn *f)
{
    static const char *const keys[] = {"kind", "in",      "out",      "layers", "activation",
                                       "skip", "in_norm", "out_norm", NULL};
    static const char *const kinds[] = {"mlp", "gated", NULL};
    const char *const at = words(j, "blocks.%zu.ffn", number);
    if (!only_keys(j, o, at, keys)) return;
    f->there = true;
    f->gated = get_word(j, o, at, "kind", kinds, true) == 1;
    f->skip = (skip_kind)get_word(j, o, at, "skip", skip_words, true);
    f->act = (act)get_word(j, o, at, "activation", act_words, false);
    f->in = get_width(j, o, at, "in");
    f->out = get_width(j, o, at, "out");
    f->nlayers = get_count(j, o, at, "layers");
    if (f->in != d || f->nlayers == 0 || f->nlayers > 1000 || (f->gated && f->nlayers != 3))
        fail(j, UNREADABLE, "%s: %zu layers on width %zu of %zu", at, f->nlayers, f->in, d);
    if (j->t.code) return;
    f->w = take(j, f->nlayers, sizeof *f->w);
    f->b = take(j, f->nlayers, sizeof *f->b);
    size_t in = f->in;
    for (size_t l = 0; f->w && f->b && l < f->nlayers && !j->t.code; l++) {
        /* up has the rows of gate, and reads what gate reads */
        const size_t rows = l + 1 == f->nlayers ? f->out : f->gated && l == 1 ? f->w[0]->rows : ANY;
        f->w[l] = get_matrix(j, m, at, words(j, "%zu.weight", l), rows, in, true);
        if (!f->w[l] || j->t.code) return;
        f->b[l] = get_vector(j, m, at, words(j, "%zu.bias", l), f->w[l]->rows, false);
        if (!f->gated || l == 1) in = f->w[l]->rows;
    }
    read_norm(j, m, o, "in_norm", words(j, "%s.in_norm", at), f->in, &f->in_norm);
    read_norm(j, m, o, "out_norm", words(j, "%s.out_norm", at), f->out, &f->out_norm);
    f->skip_w = read_skip(j, m, at, f->skip, f->in, f->out);
}

static void read_embedding(job *j, model *m, const cJSON *root)
{
    static const char *const keys[] = {"ids", "width", "vocab", "positions", "norm", NULL};
    static const char *const position_keys[] = {"kind", "base", "interleaved", "after_map", NULL};
    const cJSON *const o = get(j, root, "architecture", "embedding");
    if (!o || !only_keys(j, o, "embedding", keys)) return;
    m->ids = get_flag(j, o, "embedding", "ids", true);
    m->width = get_width(j, o, "embedding", "width");
    m->vocab = size_or(j, o, "embedding", "vocab", 0);
    const cJSON *const p = find(o, "positions");
    if (p && only_keys(j, p, "positions", position_keys)) {
        m->positions = (position_kind)get_word(j, p, "positions", "kind", position_words, true);
        m->after_map = get_flag(j, p, "positions", "after_map", false);
        m->interleaved = get_flag(j, p, "positions", "interleaved", m->positions == POS_ROTARY);
        if (m->positions == POS_SINUSOIDAL) m->base = get_range(j, p, "positions", "base", 1, 1e30);
        if (m->positions == POS_SINUSOIDAL && !(m->base > 1))
            fail(j, UNREADABLE, "positions.base: must be above 1");
    }
    if (m->ids) m->table = get_tensor(j, m, "embedding.embedding", m->vocab, m->width, false, true);
    if (m->ids && m->vocab == 0) fail(j, UNREADABLE, "embedding.vocab: is 0");
    m->map = get_tensor(j, m, "embedding.map.weight", ANY, m->width, false, false);
    m->stream = m->map ? m->map->rows : m->width;
    if (m->map) m->map_bias = get_vector(j, m, "embedding.map", "bias", m->stream, false);
    if (m->positions == POS_LEARNED)
        m->position_table = get_tensor(j, m, "embedding.positions", ANY,
                                       m->after_map ? m->stream : m->width, false, true);
    if (m->position_table && (m->context == 0 || m->context > m->position_table->rows))
        fail(j, UNREADABLE, "embedding.positions: fewer rows than the context");
    read_norm(j, m, o, "norm", "embedding.norm", m->stream, &m->norm);
}

static void read_pattern(job *j, model *m, const cJSON *root)
{
    static const char *const keys[] = {"kind", "window", "sinks", "self_loops", "expander", NULL};
    static const char *const expander_keys[] = {"degree", "seed", NULL};
    const cJSON *const o = get(j, root, "architecture", "pattern");
    if (!o || !only_keys(j, o, "pattern", keys)) return;
    m->pattern = (pattern_kind)get_word(j, o, "pattern", "kind", pattern_words, true);
    m->window = size_or(j, o, "pattern", "window", 0);
    m->sinks = size_or(j, o, "pattern", "sinks", 0);
    m->self_loops = get_flag(j, o, "pattern", "self_loops", false);
    if (m->pattern == WINDOW && m->window == 0) fail(j, UNREADABLE, "pattern.window: is 0");
    const cJSON *const e = find(o, "expander");
    if (!e || !only_keys(j, e, "expander", expander_keys)) return;
    m->degree = get_count(j, e, "expander", "degree");
    m->expander_seed = get_seed(j, e, "expander", "seed");
    if (m->degree % 2 || m->degree > 65536) fail(j, UNREADABLE, "expander.degree: out of range");
}

static void read_layers(job *j, model *m, const cJSON *root)
{
    static const char *const keys[] = {"attention", "ffn", NULL};
    const cJSON *const list = get(j, root, "architecture", "blocks");
    size_t d = m->stream;
    if (list && (!cJSON_IsArray(list) || cJSON_GetArraySize(list) > MOST_LAYERS))
        fail(j, UNREADABLE, "blocks: is not an array of at most %d blocks", MOST_LAYERS);
    if (j->t.code) return;
    m->layers = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *m->layers);
    for (const cJSON *c = list->child; m->layers && c && !j->t.code; c = c->next) {
        layer *const l = &m->layers[m->nlayers];
        if (!only_keys(j, c, "block", keys)) return;
        if (find(c, "attention"))
            read_attention(j, m, find(c, "attention"), m->nlayers, d, &l->attn);
        if (l->attn.kind != ATTN_ABSENT) d = l->attn.out;
        if (find(c, "ffn")) read_ffn(j, m, find(c, "ffn"), m->nlayers, d, &l->ffn);
        if (l->ffn.there) d = l->ffn.out;
        m->nlayers++;
    }
    m->last = d;
}

static void read_head(job *j, model *m, const cJSON *root)
{
    static const char *const keys[] = {"norm", "pool", "activation", "tied", NULL};
    const cJSON *const o = get(j, root, "architecture", "head");
    if (!o || !only_keys(j, o, "head", keys)) return;
    m->pool = get_word(j, o, "head", "pool", pool_words, false);
    m->head_act = (act)get_word(j, o, "head", "activation", act_words, false);
    m->tied = get_flag(j, o, "head", "tied", false);
    m->dense = get_tensor(j, m, "head.dense.weight", ANY, m->last, false, false);
    const size_t inner = m->dense ? m->dense->rows : m->last;
    if (m->dense) m->dense_bias = get_vector(j, m, "head.dense", "bias", inner, false);
    if (m->tied && (!m->ids || inner != m->width))
        fail(j, UNREADABLE, "head.tied: needs an embedding of width %zu", inner);
    m->out = m->tied ? m->table : get_tensor(j, m, "head.out.weight", ANY, inner, false, false);
    m->outputs = m->out ? m->out->rows : inner;
    if (m->out) m->out_bias = get_vector(j, m, "head.out", "bias", m->outputs, false);
    read_norm(j, m, o, "norm", "head.norm", m->last, &m->head_norm);
}

/* Keys of version 1 under their new names. */
static bool rename_keys(job *j, cJSON *o)
{
    static const char *const names[][2] = {
        {"stem", "embedding"}, {"top", "head"}, {"attn", "attention"}, {"act", "activation"}};
    for (size_t i = 0; cJSON_IsObject(o) && i < 4; i++) {
        if (find(o, names[i][1])) return fail(j, UNREADABLE, "%s in version 1", names[i][1]);
        cJSON *const item = cJSON_DetachItemFromObjectCaseSensitive(o, names[i][0]);
        if (!item || cJSON_AddItemToObject(o, names[i][1], item)) continue;
        cJSON_Delete(item);
        return fail(j, UNREADABLE, "out of memory");
    }
    for (cJSON *c = o->child; c && !j->t.code; c = c->next)
        if (cJSON_IsObject(c) || cJSON_IsArray(c)) rename_keys(j, c);
    return j->t.code == 0;
}

/* ---- the canonical architecture: keys sorted, defaults left out ------------------------------ */

typedef struct printer {
    job *j;
    char *text;
    size_t n, capacity;
} printer;

static void print(printer *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void print(printer *p, const char *format, ...)
{
    char piece[128];
    va_list list;
    va_start(list, format);
    const int n = vsnprintf(piece, sizeof piece, format, list);
    va_end(list);
    if (p->j->t.code || n < 0 || (size_t)n >= sizeof piece) return;
    if (p->n + (size_t)n >= p->capacity) {
        const size_t capacity = 2 * p->capacity + sizeof piece;
        char *const text = take(p->j, capacity, 1);
        if (!text) return;
        if (p->n) memcpy(text, p->text, p->n);
        p->text = text;
        p->capacity = capacity;
    }
    memcpy(p->text + p->n, piece, (size_t)n);
    p->n += (size_t)n;
}

/* The fewest digits that give the same double again; whole numbers without point or exponent. */
static void print_number(printer *p, double v)
{
    char text[40];
    int digits = 1;
    if (v == floor(v) && fabs(v) <= 0x1p53) {
        print(p, "%.0f", v);
        return;
    }
    do snprintf(text, sizeof text, "%.*g", digits++, v);
    while (digits <= 17 && strtod(text, NULL) != v);
    print(p, "%s", text);
}

static void print_norm(printer *p, const char *before, const char *key, const norm *n)
{
    if (n->kind == NORM_NONE) return;
    const bool divides = n->kind == NORM_LAYER || n->kind == NORM_RMS;
    print(p, "%s\"%s\": {", before, key);
    if (divides) print(p, "\"divisor\": ");
    if (divides) print_number(p, n->divisor);
    if (divides) print(p, ", ");
    if (n->kind != NORM_MEAN) print(p, "\"eps\": ");
    if (n->kind != NORM_MEAN) print_number(p, n->eps);
    print(p, "%s\"kind\": \"%s\"", n->kind != NORM_MEAN ? ", " : "", norm_words[n->kind]);
    if (divides && n->shift != 0) print(p, ", \"shift\": ");
    if (divides && n->shift != 0) print_number(p, n->shift);
    print(p, "}");
}

static void print_attention(printer *p, const attention *a)
{
    print(p, "\"attention\": {");
    for (size_t i = 0; i < a->nheads; i++) {
        const head *const h = &a->heads[i];
        print(p, "%s{\"dk\": %zu, \"dv\": %zu", i ? ", " : "\"heads\": [", h->dk, h->dv);
        if (h->planes) print(p, ", \"freq\": %zu", h->freq);
        print(p, ", \"k\": %zu, \"o\": %zu", h->k, h->o);
        if (h->planes) print(p, ", \"planes\": %zu", h->planes);
        print(p, ", \"q\": %zu, \"scale\": ", h->q);
        print_number(p, h->scale);
        print(p, ", \"v\": %zu}", h->v);
    }
    if (a->nheads) print(p, "], ");
    print(p, "\"in\": %zu", a->in);
    print_norm(p, ", ", "in_norm", &a->in_norm);
    print(p, ", \"kind\": \"%s\", \"out\": %zu", attn_words[a->kind], a->out);
    print_norm(p, ", ", "out_norm", &a->out_norm);
    print(p, ", \"skip\": \"%s\"", skip_words[a->skip]);
    if (a->kind == ATTN_POLY) print(p, ", \"tolerance\": ");
    if (a->kind == ATTN_POLY) print_number(p, a->tolerance);
    print(p, "}");
}

static void print_ffn(printer *p, const ffn *f)
{
    print(p, "\"ffn\": {\"activation\": \"%s\", \"in\": %zu", act_words[f->act], f->in);
    print_norm(p, ", ", "in_norm", &f->in_norm);
    print(p, ", \"kind\": \"%s\", \"layers\": %zu, \"out\": %zu", f->gated ? "gated" : "mlp",
          f->nlayers, f->out);
    print_norm(p, ", ", "out_norm", &f->out_norm);
    print(p, ", \"skip\": \"%s\"}", skip_words[f->skip]);
}

static void print_embedding(printer *p, const model *m)
{
    print(p, "\"embedding\": {\"ids\": %s", m->ids ? "true" : "false");
    print_norm(p, ", ", "norm", &m->norm);
    if (m->positions != POS_NONE) {
        print(p, ", \"positions\": {%s", m->after_map ? "\"after_map\": true, " : "");
        if (m->positions == POS_SINUSOIDAL) print(p, "\"base\": ");
        if (m->positions == POS_SINUSOIDAL) print_number(p, m->base);
        if (m->positions == POS_SINUSOIDAL) print(p, ", ");
        if (m->positions == POS_ROTARY)
            print(p, "\"interleaved\": %s, ", m->interleaved ? "true" : "false");
        print(p, "\"kind\": \"%s\"}", position_words[m->positions]);
    }
    if (m->ids) print(p, ", \"vocab\": %zu", m->vocab);
    print(p, ", \"width\": %zu}", m->width);
}

static bool hash_architecture(job *j, model *m)
{
    printer out = {.j = j}, *const p = &out;
    print(p, "{\"blocks\": [");
    for (size_t l = 0; l < m->nlayers; l++) {
        const layer *const y = &m->layers[l];
        print(p, "%s{", l ? ", " : "");
        if (y->attn.kind != ATTN_ABSENT) print_attention(p, &y->attn);
        if (y->attn.kind != ATTN_ABSENT && y->ffn.there) print(p, ", ");
        if (y->ffn.there) print_ffn(p, &y->ffn);
        print(p, "}");
    }
    print(p, "], \"context\": %zu, ", m->context);
    print_embedding(p, m);
    print(p, ", \"head\": {");
    if (m->head_act != ACT_NONE) print(p, "\"activation\": \"%s\", ", act_words[m->head_act]);
    print_norm(p, "", "norm", &m->head_norm);
    print(p, "%s\"pool\": \"%s\", \"tied\": %s}", m->head_norm.kind ? ", " : "",
          pool_words[m->pool], m->tied ? "true" : "false");
    print(p, ", \"pattern\": {");
    if (m->pattern == GRAPH && m->degree)
        print(p, "\"expander\": {\"degree\": %zu, \"seed\": \"%llu\"}, ", m->degree,
              (unsigned long long)m->expander_seed);
    print(p, "\"kind\": \"%s\"", pattern_words[m->pattern]);
    if (m->pattern == GRAPH) print(p, ", \"self_loops\": %s", m->self_loops ? "true" : "false");
    if (m->pattern == WINDOW) print(p, ", \"sinks\": %zu, \"window\": %zu", m->sinks, m->window);
    print(p, "}");
    if (m->tokenizer) print(p, ", \"tokenizer\": \"%s\"", tokenizer_words[m->tokenizer]);
    print(p, "}");
    if (j->t.code == 0) sha256_of(m->architecture, out.text, out.n);
    return j->t.code == 0;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool read_architecture(job *j, const char *name, cJSON *root, const cJSON *header,
                              bytes data, model *m)
{
    static const char *const keys[] = {"version", "name", "context",   "embedding", "pattern",
                                       "blocks",  "head", "tokenizer", NULL};
    if (!cJSON_IsObject(root)) return fail(j, UNREADABLE, "%s: no architecture", name);
    const size_t version = get_count(j, root, "architecture", "version");
    if (j->t.code) return false;
    if (version != 1 && version != 2) return fail(j, UNREADABLE, "%s: version %zu", name, version);
    if (version == 1 && !rename_keys(j, root)) return false;
    if (!only_keys(j, root, "architecture", keys) ||
        !read_tensors(j, name, header, data, version == 1, m))
        return false;
    m->context = size_or(j, root, "architecture", "context", 0);
    m->tokenizer = get_word(j, root, "architecture", "tokenizer", tokenizer_words,
                            find(root, "tokenizer") != NULL);
    read_embedding(j, m, root);
    read_pattern(j, m, root);
    read_layers(j, m, root);
    if (!j->t.code) read_head(j, m, root);
    for (size_t i = 0; i < m->ntensors && !j->t.code; i++)
        if (!m->tensors[i].used && strcmp(m->tensors[i].name, "vocab") != 0)
            fail(j, UNREADABLE, "tensor %s has no meaning here", m->tensors[i].name);
    return j->t.code == 0 && hash_architecture(j, m);
}

static bool read_header(job *j, const char *name, bytes text, const cJSON *header, bytes data,
                        model *m)
{
    const cJSON *const meta = find(header, "__metadata__");
    const cJSON *const arch = find(meta, "pare"), *const sum = find(meta, "pare.sha256");
    if (!cJSON_IsString(arch) || !cJSON_IsString(sum))
        return fail(j, UNREADABLE, "%s: is not a model of pare", name);
    for (const cJSON *c = header->child; c; c = c->next)
        if (strlen(c->string) > 7 && strcmp(c->string + strlen(c->string) - 7, ".ticket") == 0)
            return fail(j, UNREADABLE, "%s: holds tickets", name);
    if (!header_hash_is_right(j, text, sum->valuestring))
        return fail(j, UNREADABLE, "%s: the hash of the header is wrong", name);
    cJSON *const root = parse_json(j, name, arch->valuestring, strlen(arch->valuestring));
    const bool good = root && read_architecture(j, name, root, header, data, m);
    cJSON_Delete(root);
    return good;
}

bool read_model(job *j, const char *name, bytes file, model *m)
{
    uint64_t n = 0;
    *m = (model){0};
    for (int i = 0; i < 8 && file.n >= 8; i++) n |= (uint64_t)file.v[i] << 8 * i;
    if (file.n < 8 || n > file.n - 8)
        return fail(j, UNREADABLE, "%s: is not a model of pare", name);
    const bytes text = {file.v + 8, (size_t)n}, data = {text.v + n, file.n - 8 - (size_t)n};
    cJSON *const header = parse_json(j, name, text.v, text.n);
    const bool good =
        header && cJSON_IsObject(header) && read_header(j, name, text, header, data, m);
    if (header && !good) fail(j, UNREADABLE, "%s: is not a model of pare", name);
    cJSON_Delete(header);
    return good;
}
