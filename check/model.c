/* model.c - a model file (docs/format.md: the container, the architecture, the tensors).
 *
 * Every size is checked before it is believed: a tensor has the bytes that its shape needs, inside
 * the file; the architecture names tensors by shape; and no tensor and no key is left over. Tickets are
 * left to `pare verify --unpack`. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const norm_words[] = {"", "layer", "rms", "batch", "mean", NULL};
static const char *const skip_words[] = {"none", "identity", "diagonal", "dense", NULL};
static const char *const act_words[] = {"none", "relu", "gelu", "gelu_tanh", "silu", "tanh", NULL};
const char *const attention_words[] = {"none",   "exact", "zero",   "const",  "uniform",
                                       "constq", "meanq", "linear", "affmix", "pool",
                                       "umix",   "poly",  NULL};
static const char *const pattern_words[] = {"full", "causal", "window", "graph", NULL};
static const char *const position_words[] = {"", "learned", "sinusoidal", "rotary", NULL};
static const char *const pool_words[] = {"none", "first", "mean", NULL};
static const char *const ffn_words[] = {"mlp", "gated", NULL};

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

/* Entry i of a list: a whole number from `least` to 2^48. */
static size_t entry(job *j, const char *where, const cJSON *list, size_t i, double least)
{
    const cJSON *const v = cJSON_GetArrayItem(list, (int)i);
    const double x = cJSON_IsNumber(v) ? v->valuedouble : -1;
    if (x >= least && x <= 0x1p48 && x == floor(x)) return (size_t)x;
    fail(j, UNREADABLE, "%s: shape or offsets", where);
    return 1;
}

static void read_tensor(job *j, const cJSON *o, bytes data, tensor *t)
{
    t->name = words(j, "%s", o->string);
    const char *const type = get_text(j, o, "dtype");
    const cJSON *const shape = get_list(j, o, "shape"), *const at = get_list(j, o, "data_offsets");
    const size_t item = !strcmp(type, "F64") ? 8 : !strcmp(type, "F32") ? 4 : 1;
    if (item == 1 && strcmp(type, "U8") != 0)
        fail(j, UNREADABLE, "%s: type %.20s is not F32, F64 or U8", t->name, type);
    t->ndim = (size_t)cJSON_GetArraySize(shape);
    if (t->ndim < 1 || t->ndim > 2 || cJSON_GetArraySize(at) != 2)
        fail(j, UNREADABLE, "%s: shape or offsets", t->name);
    if (j->t.code) return;
    t->type = item == 8 ? 'd' : item == 4 ? 'f' : 'b';
    t->rows = t->ndim == 2 ? entry(j, t->name, shape, 0, 1) : 1;
    t->cols = entry(j, t->name, shape, t->ndim - 1, 1);
    const size_t begin = entry(j, t->name, at, 0, 0), end = entry(j, t->name, at, 1, 0);
    size_t size = 0;
    if (begin > end || end > data.n || __builtin_mul_overflow(t->rows, t->cols, &size) ||
        __builtin_mul_overflow(size, item, &size) || size != end - begin)
        fail(j, UNREADABLE, "%s: shape and offsets do not fit", t->name);
    if (j->t.code) return;
    t->data = data.v + begin;
    t->size = size;
    for (size_t i = 0; t->type != 'b' && i < t->rows * t->cols; i++)
        if (!isfinite(weight_at(t, i))) fail(j, UNREADABLE, "%s: a nan or an inf", t->name);
}

static int by_place(const void *a, const void *b)
{
    const tensor *const x = a, *const y = b;
    return (x->data > y->data) - (x->data < y->data);
}

static void read_tensors(job *j, const cJSON *header, bytes data, model *m)
{
    const unsigned char *end = data.v;
    m->tensors = take(j, (size_t)cJSON_GetArraySize(header) + 1, sizeof *m->tensors);
    for (const cJSON *c = header->child; c && !j->t.code; c = c->next)
        if (strcmp(c->string, "__metadata__") != 0)
            read_tensor(j, c, data, &m->tensors[m->ntensors++]);
    if (j->t.code) return;
    qsort(m->tensors, m->ntensors, sizeof *m->tensors, by_place);
    for (size_t i = 0; i < m->ntensors; i++) {
        if (m->tensors[i].data != end)
            fail(j, UNREADABLE, "a gap or an overlap at %s", m->tensors[i].name);
        end += m->tensors[i].size;
    }
    if (end != data.v + data.n) fail(j, UNREADABLE, "bytes after the last tensor");
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

/* ---- the canonical architecture -------------------------------------------------------------- */

/* Whether a key is left out: names, and defaults of what need not be there. */
static bool left_out(const char *parent, const cJSON *o, const cJSON *v)
{
    static const char *const zeros[] = {"shift", "planes", "after_map"};
    if (strcmp(parent, "") == 0 && (!strcmp(v->string, "name") || !strcmp(v->string, "version")))
        return true;
    if (strcmp(parent, "head") == 0 && strcmp(v->string, "activation") == 0)
        return is_text(v, "none");
    if (strcmp(v->string, "freq") == 0) v = find(o, "planes"); /* as that one */
    if (!v) return true;
    for (size_t i = 0; i < sizeof zeros / sizeof *zeros; i++)
        if (strcmp(v->string, zeros[i]) == 0)
            return cJSON_IsFalse(v) || (cJSON_IsNumber(v) && v->valuedouble == 0);
    return false;
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

/* The fewest digits that give the same double again; whole numbers without point or exponent. */
static const char *number_words(job *j, double v)
{
    char text[40];
    int digits = 1;
    if (v == floor(v) && fabs(v) <= 0x1p53) return words(j, "%.0f", v);
    do snprintf(text, sizeof text, "%.*g", digits++, v);
    while (digits <= 17 && strtod(text, NULL) != v);
    return words(j, "%s", text);
}

static void hash_text(SHA256_CTX *h, const char *text)
{
    SHA256_Update(h, text, strlen(text));
}

static void hash_value(job *j, SHA256_CTX *h, const char *parent, const cJSON *v);

/* Entries in order, or by their keys, sorted. */
static void hash_entries(job *j, SHA256_CTX *h, const char *parent, const cJSON *o)
{
    const bool object = cJSON_IsObject(o);
    const cJSON **const list = take(j, (size_t)cJSON_GetArraySize(o) + 1, sizeof *list);
    size_t n = 0;
    for (const cJSON *c = o->child; list && c; c = c->next)
        if (!object || !left_out(parent, o, c)) list[n++] = c;
    if (object && n > 1) qsort(list, n, sizeof *list, by_key);
    hash_text(h, object ? "{" : "[");
    for (size_t i = 0; i < n; i++) {
        if (i) hash_text(h, ", ");
        if (object) hash_text(h, words(j, "\"%s\": ", list[i]->string));
        hash_value(j, h, object ? list[i]->string : parent, list[i]);
    }
    hash_text(h, object ? "}" : "]");
}

static void hash_value(job *j, SHA256_CTX *h, const char *parent, const cJSON *v)
{
    if (j->t.code) return;
    if (cJSON_IsObject(v) || cJSON_IsArray(v)) hash_entries(j, h, parent, v);
    if (cJSON_IsBool(v)) hash_text(h, cJSON_IsTrue(v) ? "true" : "false");
    if (cJSON_IsNumber(v)) hash_text(h, number_words(j, v->valuedouble));
    if (cJSON_IsString(v)) hash_text(h, words(j, "\"%s\"", v->valuestring));
}

/* A key that this program does not know could change what the model computes. */
static void only_known_keys(job *j, const cJSON *o)
{
    static const char known[] =
        " version name context embedding pattern blocks head tokenizer ids width vocab positions "
        "norm "
        "kind base interleaved after_map window sinks self_loops expander degree seed attention "
        "ffn "
        "in out heads tolerance skip in_norm out_norm dk dv q k v o scale freq planes layers "
        "activation pool tied eps divisor shift ";
    for (const cJSON *c = o->child; c && !j->t.code; c = c->next) {
        if (c->string && !strstr(known, words(j, " %s ", c->string)))
            fail(j, UNREADABLE, "architecture: unknown key \"%.60s\"", c->string);
        only_known_keys(j, c);
    }
}

/* ---- the architecture: getters --------------------------------------------------------------- */

static size_t size_or_0(job *j, const cJSON *o, const char *key)
{
    return find(o, key) ? get_count(j, o, key) : 0;
}

static size_t get_width(job *j, const cJSON *o, const char *key)
{
    const size_t v = get_count(j, o, key);
    if (v == 0 || v > MOST_WIDTH) fail(j, UNREADABLE, "%s: a width of %zu", key, v);
    return v;
}

static double get_range(job *j, const cJSON *o, const char *key, double low, double high)
{
    const double v = get_number(j, o, key);
    if (!(v >= low && v <= high)) fail(j, UNREADABLE, "%s: is not from %g to %g", key, low, high);
    return v;
}

static bool flag(const cJSON *o, const char *key)
{
    return cJSON_IsTrue(find(o, key));
}

/* The place of a word in its list. */
static int get_word(job *j, const cJSON *o, const char *key, const char *const *list)
{
    const char *const word = get_text(j, o, key);
    int i = 0;
    while (list[i] && strcmp(list[i], word) != 0) i++;
    if (list[i] && *word) return i;
    fail(j, UNREADABLE, "%s: unknown word \"%.40s\"", key, word);
    return 0;
}

/* A tensor of that shape (ANY: as it is; rows 1: a vector); NULL: absent. */
static const tensor *get_tensor(job *j, model *m, const char *at, const char *name, size_t rows,
                                size_t cols, bool required)
{
    const char *const full = words(j, "%s.%s", at, name);
    for (size_t i = 0; i < m->ntensors && !j->t.code; i++) {
        tensor *const t = &m->tensors[i];
        if (strcmp(t->name, full) != 0) continue;
        if (t->type == 'b' || (rows != ANY && t->rows != rows) || (cols != ANY && t->cols != cols))
            fail(j, UNREADABLE, "tensor %s is [%zu, %zu], expected [%zu, %zu]", full, t->rows,
                 t->cols, rows, cols);
        t->used = true;
        return t;
    }
    if (required) fail(j, UNREADABLE, "tensor %s is missing", full);
    return NULL;
}

static const tensor *get_vector(job *j, model *m, const char *at, const char *name, size_t n,
                                bool required)
{
    const tensor *const t = get_tensor(j, m, at, name, 1, n, required);
    if (t && t->ndim != 1) fail(j, UNREADABLE, "tensor %s is not a vector", t->name);
    return t;
}

/* ---- the architecture: parts ----------------------------------------------------------------- */

static norm read_norm(job *j, model *m, const cJSON *parent, const char *key, const char *at,
                      size_t d)
{
    const cJSON *const o = find(parent, key);
    norm n = {0};
    if (!o) return n;
    at = words(j, "%s.%s", at, key);
    n.kind = (norm_kind)get_word(j, o, "kind", norm_words);
    const bool batch = n.kind == NORM_BATCH;
    if (n.kind != NORM_MEAN) n.eps = get_range(j, o, "eps", 0, 1e30);
    if (n.kind == NORM_LAYER || n.kind == NORM_RMS) {
        n.divisor = get_range(j, o, "divisor", 1e-6, 1e30);
        if (find(o, "shift")) n.shift = get_range(j, o, "shift", 0, 1e30);
    }
    n.gain = get_vector(j, m, at, "gain", d, false);
    n.bias = get_vector(j, m, at, "bias", d, false);
    if (!batch) n.offset = get_vector(j, m, at, "offset", d, false);
    if (batch) n.mean = get_vector(j, m, at, "mean", d, true);
    if (batch) n.var = get_vector(j, m, at, "var", d, true);
    for (size_t i = 0; n.var && !j->t.code && i < d; i++)
        if (!(weight_at(n.var, i) >= 0 && weight_at(n.var, i) + n.eps > 0))
            fail(j, UNREADABLE, "%s.var: entry %zu is out of range", at, i);
    return n;
}

static const tensor *read_skip(job *j, model *m, const char *at, skip_kind kind, size_t in,
                               size_t out)
{
    if ((kind == SKIP_IDENTITY || kind == SKIP_DIAGONAL) && in != out)
        fail(j, UNREADABLE, "%s: this skip needs equal widths, not %zu and %zu", at, in, out);
    if (kind == SKIP_DIAGONAL) return get_vector(j, m, at, "skip", in, true);
    return kind == SKIP_DENSE ? get_tensor(j, m, at, "skip", out, in, true) : NULL;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static bool overlap(size_t a, size_t na, size_t b, size_t nb)
{
    return a < b + nb && b < a + na;
}

/* Rotary positions turn a query or key once: nobody else may read it, but heads that turn alike. */
static void heads_turn_apart(job *j, const attention *a, const char *at)
{
    for (size_t x = 0; x < a->nheads; x++)
        for (size_t y = 0; y < x; y++) {
            const head *const p = &a->heads[x], *const q = &a->heads[y];
            const bool same = p->k == q->k && p->dk == q->dk && p->planes == q->planes &&
                              (p->freq == q->freq || !p->planes);
            const bool bad =
                overlap(p->q, p->dk, q->q, q->dk) || (overlap(p->k, p->dk, q->k, q->dk) && !same);
            if (bad && (p->planes || q->planes))
                fail(j, UNREADABLE, "%s: heads %zu and %zu turn the same rows", at, y, x);
        }
}

/* One head, and how many rows of wq, wk, wv it needs; returns how many frequencies. */
static size_t read_one_head(job *j, const model *m, const cJSON *o, attention *a, head *h)
{
    *h = (head){.dk = get_width(j, o, "dk"),
                .dv = get_width(j, o, "dv"),
                .q = get_count(j, o, "q"),
                .k = get_count(j, o, "k"),
                .v = get_count(j, o, "v"),
                .o = get_count(j, o, "o"),
                .freq = size_or_0(j, o, "freq"),
                .planes = size_or_0(j, o, "planes"),
                .scale = get_range(j, o, "scale", -1e30, 1e30)};
    if (h->q > MOST_WIDTH || h->k > MOST_WIDTH || h->v > MOST_WIDTH || h->o != a->no ||
        h->planes > h->dk / 2 || h->freq > MOST_WIDTH || (h->planes && m->positions != POS_ROTARY))
        fail(j, UNREADABLE, "a head is out of range");
    a->no += h->dv;
    a->nq = larger(a->nq, h->q + h->dk);
    a->nk = larger(a->nk, h->k + h->dk);
    a->nv = larger(a->nv, h->v + h->dv);
    if (a->no > MOST_WIDTH) fail(j, UNREADABLE, "heads are too wide");
    return h->planes ? h->freq + h->planes : 0;
}

static size_t read_heads(job *j, const model *m, const cJSON *o, const char *at, attention *a)
{
    size_t freqs = 0;
    if (!find(o, "heads")) return 0;
    const cJSON *const list = get_list(j, o, "heads");
    a->heads = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *a->heads);
    for (const cJSON *c = list ? list->child : NULL; c && !j->t.code; c = c->next)
        freqs = larger(freqs, read_one_head(j, m, c, a, &a->heads[a->nheads++]));
    if (freqs && !j->t.code) heads_turn_apart(j, a, at);
    return freqs;
}

static void read_attention(job *j, model *m, const cJSON *o, size_t number, size_t d, attention *a)
{
    const char *const at = words(j, "blocks.%zu.attn", number);
    a->kind = (attn_kind)get_word(j, o, "kind", attention_words);
    a->skip = (skip_kind)get_word(j, o, "skip", skip_words);
    a->in = get_width(j, o, "in");
    a->out = get_width(j, o, "out");
    if (a->in != d || a->kind == ATTN_ABSENT)
        fail(j, UNREADABLE, "%s: reads width %zu of a stream of %zu", at, a->in, d);
    const size_t freqs = read_heads(j, m, o, at, a);
    const attn_kind k = a->kind;
    const bool one_query = k == ATTN_CONSTQ || k == ATTN_POOL;
    const bool heads = one_query || k == ATTN_EXACT || k == ATTN_POLY || k == ATTN_MEANQ;
    if (heads != (a->nheads > 0)) fail(j, UNREADABLE, "%s: heads do not suit the kind", at);
    if (k == ATTN_MEANQ && m->pattern != FULL) fail(j, UNREADABLE, "%s: needs pattern full", at);
    if (heads) {
        if (!one_query) a->wq = get_tensor(j, m, at, "wq", a->nq, a->in, true);
        a->bq = get_vector(j, m, at, "bq", a->nq, one_query);
        a->wk = get_tensor(j, m, at, "wk", a->nk, a->in, true);
        a->bk = get_vector(j, m, at, "bk", a->nk, false);
        a->wv = get_tensor(j, m, at, "wv", a->nv, a->in, true);
        a->bv = get_vector(j, m, at, "bv", a->nv, false);
        if (freqs) a->freqs = get_vector(j, m, at, "freqs", freqs, true);
        if (freqs && one_query) fail(j, UNREADABLE, "%s: one query for all can not turn", at);
        if (k != ATTN_POOL) a->wo = get_tensor(j, m, at, "wo", a->out, a->no, a->no != a->out);
    }
    if (k == ATTN_UNIFORM) a->bv = get_vector(j, m, at, "bv", a->out, false);
    if (k == ATTN_LINEAR || k == ATTN_AFFMIX || k == ATTN_POOL)
        a->matrix =
            get_tensor(j, m, at, "matrix", a->out, a->in + (k == ATTN_POOL ? a->no : 0), true);
    if (k == ATTN_UNIFORM || k == ATTN_AFFMIX)
        a->mix = get_tensor(j, m, at, "mix", a->out, a->in, true);
    if (k == ATTN_UMIX) a->mix = get_tensor(j, m, at, "mix", ANY, a->in, true);
    if (k == ATTN_UMIX && a->mix && a->mix->rows % a->out)
        fail(j, UNREADABLE, "%s.mix: %zu rows for %zu outputs", at, a->mix->rows, a->out);
    a->bo = get_vector(j, m, at, "bo", a->out, k == ATTN_CONST);
    a->in_norm = read_norm(j, m, o, "in_norm", at, a->in);
    a->out_norm = read_norm(j, m, o, "out_norm", at, a->out);
    a->skip_w = read_skip(j, m, at, a->skip, a->in, a->out);
}

static void read_ffn(job *j, model *m, const cJSON *o, size_t number, size_t d, ffn *f)
{
    const char *const at = words(j, "blocks.%zu.ffn", number);
    f->there = true;
    f->gated = get_word(j, o, "kind", ffn_words) == 1;
    f->skip = (skip_kind)get_word(j, o, "skip", skip_words);
    f->act = (act)get_word(j, o, "activation", act_words);
    f->in = get_width(j, o, "in");
    f->out = get_width(j, o, "out");
    f->nlayers = get_count(j, o, "layers");
    if (f->in != d || f->nlayers == 0 || f->nlayers > 1000 || (f->gated && f->nlayers != 3))
        fail(j, UNREADABLE, "%s: %zu layers on width %zu of %zu", at, f->nlayers, f->in, d);
    if (j->t.code) return;
    f->w = take(j, f->nlayers, sizeof *f->w);
    f->b = take(j, f->nlayers, sizeof *f->b);
    size_t in = f->in;
    for (size_t l = 0; f->w && f->b && l < f->nlayers && !j->t.code; l++) {
        /* up has the rows of gate, and reads what gate reads */
        const size_t rows = l + 1 == f->nlayers ? f->out : f->gated && l == 1 ? f->w[0]->rows : ANY;
        f->w[l] = get_tensor(j, m, at, words(j, "%zu.weight", l), rows, in, true);
        if (!f->w[l] || j->t.code) return;
        f->b[l] = get_vector(j, m, at, words(j, "%zu.bias", l), f->w[l]->rows, false);
        if (!f->gated || l == 1) in = f->w[l]->rows;
    }
    f->in_norm = read_norm(j, m, o, "in_norm", at, f->in);
    f->out_norm = read_norm(j, m, o, "out_norm", at, f->out);
    f->skip_w = read_skip(j, m, at, f->skip, f->in, f->out);
}

static void read_embedding(job *j, model *m, const cJSON *o)
{
    static const char at[] = "embedding";
    const cJSON *const p = find(o, "positions");
    m->ids = flag(o, "ids");
    m->width = get_width(j, o, "width");
    m->vocab = m->ids ? get_width(j, o, "vocab") : 0;
    if (p) m->positions = (position_kind)get_word(j, p, "kind", position_words);
    m->after_map = flag(p, "after_map");
    m->interleaved = flag(p, "interleaved");
    if (m->positions == POS_SINUSOIDAL) m->base = get_range(j, p, "base", nextafter(1, 2), 1e30);
    if (m->ids) m->table = get_tensor(j, m, at, "embedding", m->vocab, m->width, true);
    m->map = get_tensor(j, m, at, "map.weight", ANY, m->width, false);
    m->stream = m->map ? m->map->rows : m->width;
    if (m->map) m->map_bias = get_vector(j, m, at, "map.bias", m->stream, false);
    const size_t width = m->after_map ? m->stream : m->width;
    if (m->positions == POS_LEARNED)
        m->position_table = get_tensor(j, m, at, "positions", ANY, width, true);
    if (m->position_table && (m->context == 0 || m->context > m->position_table->rows))
        fail(j, UNREADABLE, "embedding.positions: fewer rows than the context");
    m->norm = read_norm(j, m, o, "norm", at, m->stream);
}

static void read_pattern(job *j, model *m, const cJSON *o)
{
    const cJSON *const e = find(o, "expander");
    m->pattern = (pattern_kind)get_word(j, o, "kind", pattern_words);
    m->window = m->pattern == WINDOW ? get_width(j, o, "window") : 0;
    m->sinks = size_or_0(j, o, "sinks");
    m->self_loops = flag(o, "self_loops");
    if (!e) return;
    m->degree = get_count(j, e, "degree");
    m->expander_seed = get_seed(j, e, "seed");
    if (m->degree % 2 || m->degree > 65536) fail(j, UNREADABLE, "expander.degree: out of range");
}

static void read_layers(job *j, model *m, const cJSON *list)
{
    size_t d = m->stream;
    if (cJSON_GetArraySize(list) > MOST_LAYERS) fail(j, UNREADABLE, "too many blocks");
    m->layers = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *m->layers);
    for (const cJSON *c = list ? list->child : NULL; c && !j->t.code; c = c->next) {
        layer *const l = &m->layers[m->nlayers];
        const cJSON *const attn = find(c, "attention"), *const forward = find(c, "ffn");
        if (attn) read_attention(j, m, attn, m->nlayers, d, &l->attn);
        if (attn) d = l->attn.out;
        if (forward) read_ffn(j, m, forward, m->nlayers, d, &l->ffn);
        if (forward) d = l->ffn.out;
        m->nlayers++;
    }
    m->last = d;
}

static void read_head(job *j, model *m, const cJSON *o)
{
    static const char at[] = "head";
    m->pool = get_word(j, o, "pool", pool_words);
    if (find(o, "activation")) m->head_act = (act)get_word(j, o, "activation", act_words);
    m->tied = flag(o, "tied");
    m->dense = get_tensor(j, m, at, "dense.weight", ANY, m->last, false);
    const size_t inner = m->dense ? m->dense->rows : m->last;
    if (m->dense) m->dense_bias = get_vector(j, m, at, "dense.bias", inner, false);
    if (m->tied && (!m->ids || inner != m->width))
        fail(j, UNREADABLE, "head.tied: needs an embedding of width %zu", inner);
    m->out = m->tied ? m->table : get_tensor(j, m, at, "out.weight", ANY, inner, false);
    m->outputs = m->out ? m->out->rows : inner;
    if (m->out) m->out_bias = get_vector(j, m, at, "out.bias", m->outputs, false);
    m->head_norm = read_norm(j, m, o, "norm", at, m->last);
}

/* ---- all of it ------------------------------------------------------------------------------- */

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

/* Version 1 says stem and top for embedding and head. */
static void rename_old(job *j, cJSON *root, model *m)
{
    rename_keys(j, root);
    for (size_t i = 0; i < m->ntensors; i++) {
        const char *const name = m->tensors[i].name;
        if (strncmp(name, "stem.", 5) == 0) m->tensors[i].name = words(j, "embedding.%s", name + 5);
        if (strncmp(name, "top.", 4) == 0) m->tensors[i].name = words(j, "head.%s", name + 4);
    }
}

static void fill(job *j, cJSON *o, const char *key, const char *json)
{
    if (!cJSON_IsObject(o) || find(o, key)) return;
    cJSON *const v = cJSON_Parse(json);
    if (v && cJSON_AddItemToObject(o, key, v)) return;
    cJSON_Delete(v);
    fail(j, UNREADABLE, "out of memory");
}

/* Defaults that pare writes and files written by hand may leave out. */
static void fill_defaults(job *j, cJSON *root)
{
    cJSON *const last = cJSON_GetObjectItemCaseSensitive(root, "head");
    cJSON *const pattern = cJSON_GetObjectItemCaseSensitive(root, "pattern");
    const cJSON *const blocks = find(root, "blocks");
    fill(j, root, "context", "0");
    fill(j, last, "pool", "\"none\"");
    fill(j, last, "tied", "false");
    if (is_text(find(pattern, "kind"), "graph")) fill(j, pattern, "self_loops", "false");
    if (is_text(find(pattern, "kind"), "window")) fill(j, pattern, "sinks", "0");
    for (const cJSON *c = blocks ? blocks->child : NULL; c; c = c->next)
        fill(j, cJSON_GetObjectItemCaseSensitive(c, "ffn"), "activation", "\"none\"");
}

static void read_architecture(job *j, cJSON *root, model *m)
{
    const size_t version = get_count(j, root, "version");
    if (version != 1 && version != 2) fail(j, UNREADABLE, "a model of version %zu", version);
    if (version == 1) rename_old(j, root, m);
    if (j->t.code) return;
    fill_defaults(j, root);
    only_known_keys(j, root);
    m->context = get_count(j, root, "context");
    read_embedding(j, m, get(j, root, "embedding"));
    read_pattern(j, m, get(j, root, "pattern"));
    read_layers(j, m, get_list(j, root, "blocks"));
    if (!j->t.code) read_head(j, m, get(j, root, "head"));
    for (size_t i = 0; i < m->ntensors && !j->t.code; i++)
        if (!m->tensors[i].used && strcmp(m->tensors[i].name, "vocab") != 0)
            fail(j, UNREADABLE, "tensor %s has no meaning here", m->tensors[i].name);
    SHA256_CTX h;
    SHA256_Init(&h);
    hash_value(j, &h, "", root);
    hash_end(&h, m->architecture);
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
    const cJSON *const meta = find(header, "__metadata__");
    const cJSON *const arch = find(meta, "pare"), *const sum = find(meta, "pare.sha256");
    if (!cJSON_IsString(arch) || !cJSON_IsString(sum) ||
        !header_hash_is_right(j, text, sum->valuestring))
        fail(j, UNREADABLE, "%s: is not a model of pare, or its header has another hash", name);
    if (!j->t.code) read_tensors(j, header, data, m);
    cJSON *const root =
        j->t.code ? NULL : parse_json(j, name, arch->valuestring, strlen(arch->valuestring));
    if (root) read_architecture(j, root, m);
    cJSON_Delete(root);
    cJSON_Delete(header);
    return j->t.code == 0;
}
