/* model.c - a model file (docs/format.md: the container, the architecture, the tensors).
 *
 * Every size is checked before it is believed: a tensor has the bytes that its shape needs, inside
 * the file; the architecture names tensors by shape; and no tensor and no key is left over. Tickets
 * and models of version 1 are left to `pare verify --unpack`. */
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
static const char *const pool_words[] = {"none", "first", "mean", "max", "last", NULL};
static const char *const ffn_words[] = {"mlp", "gated", NULL};

enum { ANY = 0, MOST_WIDTH = 1 << 26, MOST_LAYERS = 10000 };
#define VECTOR SIZE_MAX /* in place of a number of rows: one dimension */

/* ---- the container --------------------------------------------------------------------------- */

double weight_at(const tensor *t, size_t i)
{
    double d;
    float f;
    if (t->type == 'd') return memcpy(&d, t->data + i * sizeof d, sizeof d), d;
    memcpy(&f, t->data + i * sizeof f, sizeof f);
    return (double)f;
}

/* f16 has 5 bits of exponent, bf16 is the upper half of an f32: each is exactly an f32. */
static float widened(const unsigned char *p, bool brain)
{
    const uint32_t v = p[0] | (uint32_t)p[1] << 8, bits = v << 16, e = v >> 10 & 31, m = v & 1023;
    float f;
    if (brain) return memcpy(&f, &bits, sizeof f), f;
    f = e == 31 ? INFINITY : e ? ldexpf((float)(1024 + m), (int)e - 25) : ldexpf((float)m, -24);
    return v >> 15 ? -f : f;
}

static void widen(job *j, tensor *t, bool brain)
{
    float *const to = take(j, t->size / 2, sizeof *to);
    for (size_t i = 0; i < t->size / 2; i++) to[i] = widened(t->data + 2 * i, brain);
    t->data = (const unsigned char *)to;
    t->size *= 2;
}

static size_t entry(const cJSON *list, size_t i) /* 2^48: no such number */
{
    const cJSON *const v = cJSON_GetArrayItem(list, (int)i);
    const double x = cJSON_IsNumber(v) ? v->valuedouble : 0x1p48;
    return x >= 0 && x < 0x1p48 && x == floor(x) ? (size_t)x : (size_t)1 << 48;
}

static void read_tensor(job *j, const cJSON *o, bytes data, tensor *t)
{
    static const char *const types[] = {"F64", "F32", "F16", "BF16", "U8", NULL};
    static const size_t items[] = {8, 4, 2, 2, 1};
    const char *const type = get_text(j, o, "dtype");
    const cJSON *const shape = get_list(j, o, "shape"), *const at = get_list(j, o, "data_offsets");
    size_t k = 0, size;
    while (types[k] && strcmp(types[k], type) != 0) k++;
    if (!types[k]) fail(j, UNREADABLE, "%s: unknown type %.20s", o->string, type);
    const size_t n = (size_t)cJSON_GetArraySize(shape), end = entry(at, 1);
    *t = (tensor){.name = o->string, .type = "dfffb"[k], .ndim = n, .begin = entry(at, 0)};
    t->rows = n == 2 ? entry(shape, 0) : 1;
    t->cols = n > 0 ? entry(shape, n - 1) : 0;
    if (n < 1 || n > 2 || cJSON_GetArraySize(at) != 2 || t->begin > end || end > data.n ||
        __builtin_mul_overflow(t->rows, t->cols, &size) || size == 0 ||
        __builtin_mul_overflow(size, items[k], &size) || size != end - t->begin)
        fail(j, UNREADABLE, "%s: shape and offsets do not fit", t->name);
    t->data = data.v + t->begin;
    t->size = t->stored = size;
    if (items[k] == 2) widen(j, t, k == 3);
    for (size_t i = 0; t->type != 'b' && i < t->rows * t->cols; i++)
        if (!isfinite(weight_at(t, i))) fail(j, UNREADABLE, "%s: a nan or an inf", t->name);
}

static int by_place(const void *a, const void *b)
{
    const tensor *const x = a, *const y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void read_tensors(job *j, const cJSON *header, bytes data, model *m)
{
    size_t end = 0;
    m->tensors = take(j, (size_t)cJSON_GetArraySize(header) + 1, sizeof *m->tensors);
    for (const cJSON *c = header->child; c; c = c->next)
        if (strcmp(c->string, "__metadata__") != 0)
            read_tensor(j, c, data, &m->tensors[m->ntensors++]);
    qsort(m->tensors, m->ntensors, sizeof *m->tensors, by_place);
    for (size_t i = 0; i < m->ntensors; end += m->tensors[i++].stored)
        if (m->tensors[i].begin != end)
            fail(j, UNREADABLE, "a gap or an overlap at %s", m->tensors[i].name);
    if (end != data.n) fail(j, UNREADABLE, "bytes after the last tensor");
}

/* The header's own hash, computed with its 64 digits as zeros. */
static bool header_hash_is_right(job *j, bytes header, const char *digits)
{
    char hex[65];
    unsigned char *const copy = take(j, header.n + 1, 1);
    memcpy(copy, header.v, header.n);
    const unsigned char *const key = memmem(copy, header.n, "\"pare.sha256\"", 13);
    unsigned char *const at =
        key && strlen(digits) == 64 ? memmem(key, header.n - (size_t)(key - copy), digits, 64) : NULL;
    if (!at) return false;
    memset(at, '0', 64);
    sha256_of(hex, copy, header.n);
    return memcmp(hex, digits, 64) == 0;
}

/* ---- the canonical architecture -------------------------------------------------------------- */

/* What pare writes and files written by hand may leave out; only in a parent of that kind. */
static void fill_defaults(job *j, const char *parent, cJSON *o)
{
    static const char *const list[][4] = {
        {"", NULL, "context", "0"},
        {"head", NULL, "pool", "\"none\""},
        {"head", NULL, "tied", "false"},
        {"pattern", "graph", "self_loops", "false"},
        {"pattern", "window", "sinks", "0"},
        {"ffn", NULL, "activation", "\"none\""},
    };
    for (size_t i = 0; cJSON_IsObject(o) && i < sizeof list / sizeof *list; i++) {
        if (strcmp(parent, list[i][0]) != 0 || find(o, list[i][2]) ||
            (list[i][1] && !is_text(find(o, "kind"), list[i][1])))
            continue;
        cJSON *const v = cJSON_Parse(list[i][3]);
        if (v && cJSON_AddItemToObject(o, list[i][2], v)) continue;
        cJSON_Delete(v);
        fail(j, UNREADABLE, "out of memory");
    }
    for (cJSON *c = o->child; c; c = c->next)
        if (c->child) fill_defaults(j, c->string ? c->string : "blocks", c);
}

/* Whether a key is left out: names, and defaults of what need not be there. */
static bool left_out(job *j, const char *parent, const cJSON *o, const cJSON *v)
{
    const bool top = strcmp(parent, "") == 0, head = strcmp(parent, "head") == 0;
    if (top && (!strcmp(v->string, "name") || !strcmp(v->string, "version"))) return true;
    if (head && strcmp(v->string, "activation") == 0) return is_text(v, "none");
    if (strcmp(v->string, "freq") == 0) v = find(o, "planes"); /* as that one */
    return !v || (strstr(" shift planes after_map normalize ", words(j, " %s ", v->string)) &&
                  (cJSON_IsFalse(v) || (cJSON_IsNumber(v) && v->valuedouble == 0)));
}

/* A key that this program does not know could change what the model computes. */
static void must_be_known(job *j, const char *key)
{
    static const char known[] =
        " version name context embedding pattern blocks head tokenizer ids width vocab positions norm "
        "kind base interleaved after_map window sinks self_loops expander degree seed attention ffn in "
        "out heads tolerance skip in_norm out_norm dk dv q k v o scale freq planes layers activation "
        "pool normalize tied eps divisor shift ";
    if (!strstr(known, words(j, " %s ", key)))
        fail(j, UNREADABLE, "architecture: unknown key \"%.60s\"", key);
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

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

static const char *canonical(job *j, const char *parent, const cJSON *v)
{
    const bool object = cJSON_IsObject(v);
    if (cJSON_IsNumber(v)) return number_words(j, v->valuedouble);
    if (cJSON_IsString(v)) return words(j, "\"%s\"", v->valuestring);
    if (!object && !cJSON_IsArray(v)) return cJSON_IsTrue(v) ? "true" : "false";
    const size_t most = (size_t)cJSON_GetArraySize(v);
    const cJSON **const list = take(j, most + 1, sizeof *list);
    const char **const part = take(j, most + 1, sizeof *part);
    size_t n = 0, length = 3;
    for (const cJSON *c = v->child; c; c = c->next) {
        if (object) must_be_known(j, c->string);
        if (!object || !left_out(j, parent, v, c)) list[n++] = c;
    }
    if (object) qsort(list, n, sizeof *list, by_key);
    for (size_t i = 0; i < n; i++) {
        part[i] = canonical(j, object ? list[i]->string : parent, list[i]);
        if (object) part[i] = words(j, "\"%s\": %s", list[i]->string, part[i]);
        length += strlen(part[i]) + 2;
    }
    char *const text = take(j, length, 1), *to = text;
    *to++ = object ? '{' : '[';
    for (size_t i = 0; i < n; i++) to += sprintf(to, "%s%s", i ? ", " : "", part[i]);
    *to = object ? '}' : ']';
    return text;
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

/* The place of a word in its list; of an absent key 0. */
static unsigned get_word(job *j, const cJSON *o, const char *key, const char *const *list)
{
    const char *const word = find(o, key) ? get_text(j, o, key) : list[0];
    unsigned i = 0;
    while (list[i] && strcmp(list[i], word) != 0) i++;
    if (!list[i]) fail(j, UNREADABLE, "%s: unknown word \"%.40s\"", key, word);
    return i;
}

/* A tensor of that shape (ANY: as it is); NULL: absent. */
static const tensor *get_tensor(job *j, model *m, const char *at, const char *name, size_t rows,
                                size_t cols, bool required)
{
    name = words(j, "%s.%s", at, name);
    for (size_t i = 0; i < m->ntensors; i++) {
        tensor *const t = &m->tensors[i];
        if (strcmp(t->name, name) != 0) continue;
        if (t->type == 'b' || (rows == VECTOR ? t->ndim != 1 : rows != ANY && t->rows != rows) ||
            (cols != ANY && t->cols != cols))
            fail(j, UNREADABLE, "tensor %s has another shape, [%zu, %zu]", name, t->rows, t->cols);
        t->used = true;
        return t;
    }
    if (required) fail(j, UNREADABLE, "tensor %s is missing", name);
    return NULL;
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
    if (n.kind == NORM_NONE) fail(j, UNREADABLE, "%s: a norm without a kind", at);
    if (n.kind != NORM_MEAN) n.eps = get_range(j, o, "eps", 0, 1e30);
    if (n.kind == NORM_LAYER || n.kind == NORM_RMS) {
        n.divisor = get_range(j, o, "divisor", 1e-6, 1e30);
        if (find(o, "shift")) n.shift = get_range(j, o, "shift", 0, 1e30);
    }
    n.gain = get_tensor(j, m, at, "gain", VECTOR, d, false);
    n.bias = get_tensor(j, m, at, "bias", VECTOR, d, false);
    if (!batch) n.offset = get_tensor(j, m, at, "offset", VECTOR, d, false);
    if (batch) n.mean = get_tensor(j, m, at, "mean", VECTOR, d, true);
    if (batch) n.var = get_tensor(j, m, at, "var", VECTOR, d, true);
    for (size_t i = 0; batch && i < d; i++)
        if (!(weight_at(n.var, i) >= 0 && weight_at(n.var, i) + n.eps > 0))
            fail(j, UNREADABLE, "%s.var: entry %zu is out of range", at, i);
    return n;
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
static void heads_turn_apart(job *j, const sublayer *a, const char *at)
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

/* All heads, and how many rows of wq, wk, wv they need; returns how many frequencies. */
static size_t read_heads(job *j, const model *m, const cJSON *o, const char *at, sublayer *a)
{
    const cJSON *const list = find(o, "heads") ? get_list(j, o, "heads") : NULL;
    size_t freqs = 0;
    a->heads = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *a->heads);
    for (const cJSON *c = list ? list->child : NULL; c; c = c->next) {
        head *const h = &a->heads[a->nheads++];
        *h = (head){get_width(j, c, "dk"),    get_width(j, c, "dv"),
                    get_count(j, c, "q"),     get_count(j, c, "k"),
                    get_count(j, c, "v"),     get_count(j, c, "o"),
                    size_or_0(j, c, "freq"),  size_or_0(j, c, "planes"),
                    get_range(j, c, "scale", -1e30, 1e30)};
        if (h->q > MOST_WIDTH || h->k > MOST_WIDTH || h->v > MOST_WIDTH || h->o != a->no ||
            h->planes > h->dk / 2 || h->freq > MOST_WIDTH || h->o + h->dv > MOST_WIDTH ||
            (h->planes && m->positions != POS_ROTARY))
            fail(j, UNREADABLE, "%s: a head is out of range", at);
        a->no += h->dv;
        a->nq = larger(a->nq, h->q + h->dk);
        a->nk = larger(a->nk, h->k + h->dk);
        a->nv = larger(a->nv, h->v + h->dv);
        if (h->planes) freqs = larger(freqs, h->freq + h->planes);
    }
    if (freqs) heads_turn_apart(j, a, at);
    return freqs;
}

/* What both parts of a layer have. */
static sublayer read_sublayer(job *j, model *m, const cJSON *o, const char *at, size_t d)
{
    sublayer s = {.there = true, .in = get_width(j, o, "in"), .out = get_width(j, o, "out")};
    get(j, o, "kind");
    get(j, o, "skip");
    s.skip = (skip_kind)get_word(j, o, "skip", skip_words);
    const bool same = s.skip == SKIP_IDENTITY || s.skip == SKIP_DIAGONAL;
    if (s.in != d || (same && s.in != s.out))
        fail(j, UNREADABLE, "%s: widths %zu and %zu on a stream of %zu", at, s.in, s.out, d);
    s.in_norm = read_norm(j, m, o, "in_norm", at, s.in);
    s.out_norm = read_norm(j, m, o, "out_norm", at, s.out);
    if (s.skip == SKIP_DIAGONAL) s.skip_w = get_tensor(j, m, at, "skip", VECTOR, s.in, true);
    if (s.skip == SKIP_DENSE) s.skip_w = get_tensor(j, m, at, "skip", s.out, s.in, true);
    return s;
}

static sublayer read_attention(job *j, model *m, const cJSON *o, const char *at, size_t d)
{
    sublayer a = read_sublayer(j, m, o, at, d);
    const attn_kind k = a.kind = (attn_kind)get_word(j, o, "kind", attention_words);
    const size_t freqs = read_heads(j, m, o, at, &a);
    const bool one_query = k == ATTN_CONSTQ || k == ATTN_POOL;
    const bool heads = one_query || k == ATTN_EXACT || k == ATTN_POLY || k == ATTN_MEANQ;
    if (k == ATTN_ABSENT || heads != (a.nheads > 0) || (freqs && one_query) ||
        (k == ATTN_MEANQ && m->pattern != FULL))
        fail(j, UNREADABLE, "%s: heads, positions or the pattern do not suit the kind", at);
    if (heads) {
        if (!one_query) a.wq = get_tensor(j, m, at, "wq", a.nq, a.in, true);
        a.bq = get_tensor(j, m, at, "bq", VECTOR, a.nq, one_query);
        a.wk = get_tensor(j, m, at, "wk", a.nk, a.in, true);
        a.bk = get_tensor(j, m, at, "bk", VECTOR, a.nk, false);
        a.wv = get_tensor(j, m, at, "wv", a.nv, a.in, true);
        a.bv = get_tensor(j, m, at, "bv", VECTOR, a.nv, false);
        if (freqs) a.freqs = get_tensor(j, m, at, "freqs", VECTOR, freqs, true);
        if (k != ATTN_POOL) a.wo = get_tensor(j, m, at, "wo", a.out, a.no, a.no != a.out);
    }
    if (k == ATTN_UNIFORM) a.bv = get_tensor(j, m, at, "bv", VECTOR, a.out, false);
    if (k == ATTN_LINEAR || k == ATTN_AFFMIX || k == ATTN_POOL)
        a.matrix = get_tensor(j, m, at, "matrix", a.out, a.in + a.no, true);
    if (k == ATTN_UNIFORM || k == ATTN_AFFMIX || k == ATTN_UMIX)
        a.mix = get_tensor(j, m, at, "mix", k == ATTN_UMIX ? ANY : a.out, a.in, true);
    if (a.mix && a.mix->rows % a.out)
        fail(j, UNREADABLE, "%s.mix: %zu rows for %zu outputs", at, a.mix->rows, a.out);
    a.bo = get_tensor(j, m, at, "bo", VECTOR, a.out, k == ATTN_CONST);
    return a;
}

static sublayer read_ffn(job *j, model *m, const cJSON *o, const char *at, size_t d)
{
    sublayer f = read_sublayer(j, m, o, at, d);
    f.gated = get_word(j, o, "kind", ffn_words) == 1;
    f.act = (act)get_word(j, o, "activation", act_words);
    f.nlayers = get_count(j, o, "layers");
    if (f.nlayers == 0 || f.nlayers > 1000 || (f.gated && f.nlayers != 3))
        fail(j, UNREADABLE, "%s: %zu layers", at, f.nlayers);
    f.w = take(j, f.nlayers, sizeof *f.w);
    f.b = take(j, f.nlayers, sizeof *f.b);
    size_t in = f.in;
    for (size_t l = 0; l < f.nlayers; l++) {
        /* up has the rows of gate, and reads what gate reads */
        const size_t rows = l + 1 == f.nlayers ? f.out : f.gated && l == 1 ? f.w[0]->rows : ANY;
        f.w[l] = get_tensor(j, m, at, words(j, "%zu.weight", l), rows, in, true);
        f.b[l] = get_tensor(j, m, at, words(j, "%zu.bias", l), VECTOR, f.w[l]->rows, false);
        if (!f.gated || l == 1) in = f.w[l]->rows;
    }
    return f;
}

static void read_embedding(job *j, model *m, const cJSON *o)
{
    static const char at[] = "embedding";
    const cJSON *const p = find(o, "positions");
    m->ids = flag(o, "ids");
    m->width = get_width(j, o, "width");
    m->vocab = m->ids ? get_width(j, o, "vocab") : 0;
    if (p) m->positions = (position_kind)get_word(j, p, "kind", position_words);
    if (p && !m->positions) fail(j, UNREADABLE, "embedding.positions: has no kind");
    m->after_map = flag(p, "after_map");
    m->interleaved = flag(p, "interleaved");
    if (m->positions == POS_SINUSOIDAL) m->base = get_range(j, p, "base", nextafter(1, 2), 1e30);
    if (m->ids) m->table = get_tensor(j, m, at, "embedding", m->vocab, m->width, true);
    m->map = get_tensor(j, m, at, "map.weight", ANY, m->width, false);
    m->stream = m->map ? m->map->rows : m->width;
    if (m->map) m->map_bias = get_tensor(j, m, at, "map.bias", VECTOR, m->stream, false);
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
    get(j, o, "kind");
    m->pattern = (pattern_kind)get_word(j, o, "kind", pattern_words);
    m->window = m->pattern == WINDOW ? get_width(j, o, "window") : 0;
    m->sinks = size_or_0(j, o, "sinks");
    m->self_loops = flag(o, "self_loops");
    m->degree = e ? get_count(j, e, "degree") : 0;
    m->expander_seed = e ? get_seed(j, e, "seed") : 0;
    if (m->degree % 2 || m->degree > 65536) fail(j, UNREADABLE, "expander.degree: out of range");
}

static void read_layers(job *j, model *m, const cJSON *list)
{
    m->last = m->stream;
    if (cJSON_GetArraySize(list) > MOST_LAYERS) fail(j, UNREADABLE, "too many blocks");
    m->layers = take(j, (size_t)cJSON_GetArraySize(list) + 1, sizeof *m->layers);
    for (const cJSON *c = list->child; c; c = c->next) {
        layer *const l = &m->layers[m->nlayers];
        const char *const at = words(j, "blocks.%zu", m->nlayers++);
        const cJSON *const attn = find(c, "attention"), *const ffn = find(c, "ffn");
        if (attn) l->attn = read_attention(j, m, attn, words(j, "%s.attn", at), m->last);
        if (attn) m->last = l->attn.out;
        if (ffn) l->ffn = read_ffn(j, m, ffn, words(j, "%s.ffn", at), m->last);
        if (ffn) m->last = l->ffn.out;
    }
}

static void read_head(job *j, model *m, const cJSON *o)
{
    static const char at[] = "head";
    const bool tied = flag(o, "tied");
    m->pool = (pool_kind)get_word(j, o, "pool", pool_words);
    m->head_act = (act)get_word(j, o, "activation", act_words);
    m->normalize = flag(o, "normalize");
    m->dense = get_tensor(j, m, at, "dense.weight", ANY, m->last, false);
    const size_t inner = m->dense ? m->dense->rows : m->last;
    if (m->dense) m->dense_bias = get_tensor(j, m, at, "dense.bias", VECTOR, inner, false);
    if (tied && (!m->ids || inner != m->width))
        fail(j, UNREADABLE, "head.tied: needs an embedding of width %zu", inner);
    m->out = tied ? m->table : get_tensor(j, m, at, "out.weight", ANY, inner, false);
    m->outputs = m->out ? m->out->rows : inner;
    if (m->out) m->out_bias = get_tensor(j, m, at, "out.bias", VECTOR, m->outputs, false);
    m->head_norm = read_norm(j, m, o, "norm", at, m->last);
}

/* ---- all of it ------------------------------------------------------------------------------- */

model read_model(job *j, const char *name, bytes file)
{
    model m = {0};
    uint64_t n = 0;
    for (int i = 0; i < 8 && file.n >= 8; i++) n |= (uint64_t)file.v[i] << 8 * i;
    if (file.n < 8 || n > file.n - 8) fail(j, UNREADABLE, "%s: is not a model of pare", name);
    const bytes text = {file.v + 8, (size_t)n}, data = {text.v + n, file.n - 8 - (size_t)n};
    const cJSON *const header = parse_json(j, name, text.v, text.n);
    const cJSON *const meta = find(header, "__metadata__");
    const cJSON *const arch = find(meta, "pare"), *const sum = find(meta, "pare.sha256");
    if (!cJSON_IsString(arch) || !cJSON_IsString(sum) ||
        !header_hash_is_right(j, text, sum->valuestring))
        fail(j, UNREADABLE, "%s: is not a model of pare, or its header has another hash", name);
    read_tensors(j, header, data, &m);
    cJSON *const root = parse_json(j, name, arch->valuestring, strlen(arch->valuestring));
    if (get_count(j, root, "version") != 2) fail(j, UNREADABLE, "%s: not of version 2", name);
    fill_defaults(j, "", root);
    const char *const form = canonical(j, "", root);
    sha256_of(m.architecture, form, strlen(form));
    m.context = get_count(j, root, "context");
    read_embedding(j, &m, get(j, root, "embedding"));
    read_pattern(j, &m, get(j, root, "pattern"));
    read_layers(j, &m, get_list(j, root, "blocks"));
    read_head(j, &m, get(j, root, "head"));
    for (size_t i = 0; i < m.ntensors; i++)
        if (!m.tensors[i].used && strcmp(m.tensors[i].name, "vocab") != 0)
            fail(j, UNREADABLE, "tensor %s has no meaning here", m.tensors[i].name);
    return m;
}
