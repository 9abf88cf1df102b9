/* model.c - a model file (docs/format.md: the container, the architecture).
 *
 * A tensor has the bytes that its shape needs, inside the file, without gaps; the architecture has no
 * key that this program does not know. Shapes are checked where evaluate.c uses them. What `pare verify
 * --unpack` writes plainly is left to it: tickets and models of version 1. */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    size_t k = 0, size = 0;
    while (types[k] && strcmp(types[k], type) != 0) k++;
    must(j, types[k], "%s: unknown type %.20s", o->string, type);
    const size_t n = (size_t)cJSON_GetArraySize(shape), end = entry(at, 1);
    *t = (tensor){.name = o->string, .type = "dfffb"[k], .ndim = n, .begin = entry(at, 0)};
    t->rows = n == 2 ? entry(shape, 0) : 1;
    t->cols = n > 0 ? entry(shape, n - 1) : 0;
    must(j,
         (n == 1 || n == 2) && cJSON_GetArraySize(at) == 2 && t->begin <= end && end <= data.n &&
             !__builtin_mul_overflow(t->rows, t->cols, &size) && size > 0 &&
             !__builtin_mul_overflow(size, items[k], &size) && size == end - t->begin,
         "%s: shape and offsets do not fit", t->name);
    t->data = data.v + t->begin;
    t->size = t->stored = size;
    if (items[k] == 2) widen(j, t, k == 3);
    for (size_t i = 0; t->type != 'b' && i < t->rows * t->cols; i++)
        must(j, isfinite(weight_at(t, i)), "%s: a nan or an inf", t->name);
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
        must(j, m->tensors[i].begin == end, "a gap or an overlap at %s", m->tensors[i].name);
    must(j, end == data.n, "bytes after the last tensor");
}

/* The header's own hash, computed with its 64 digits as zeros. */
static bool header_hash_is_right(job *j, bytes header, const char *digits)
{
    char hex[65];
    unsigned char *const copy = take(j, header.n + 1, 1);
    memcpy(copy, header.v, header.n);
    const unsigned char *const key = memmem(copy, header.n, "\"pare.sha256\"", 13);
    unsigned char *const at = key && strlen(digits) == 64
                                  ? memmem(key, header.n - (size_t)(key - copy), digits, 64)
                                  : NULL;
    if (!at) return false;
    memset(at, '0', 64);
    sha256_of(hex, copy, header.n);
    return memcmp(hex, digits, 64) == 0;
}

/* ---- the canonical architecture -------------------------------------------------------------- */

/* What pare writes and files written by hand may leave out, in a parent of that name and kind. */
static void fill_defaults(job *j, const char *parent, cJSON *o)
{
    static const char *const list[][4] = {
        {"", NULL, "context", "0"},          {"head", NULL, "pool", "\"none\""},
        {"head", NULL, "tied", "false"},     {"pattern", "graph", "self_loops", "false"},
        {"pattern", "window", "sinks", "0"}, {"ffn", NULL, "activation", "\"none\""}};
    for (size_t i = 0; cJSON_IsObject(o) && i < sizeof list / sizeof *list; i++) {
        if (!same(parent, list[i][0]) || find(o, list[i][2]) ||
            (list[i][1] && !is_text(find(o, "kind"), list[i][1])))
            continue;
        cJSON *const v = cJSON_Parse(list[i][3]);
        const bool added = v && cJSON_AddItemToObject(o, list[i][2], v);
        if (!added) cJSON_Delete(v);
        must(j, added, "out of memory");
    }
    for (cJSON *c = o->child; c; c = c->next) fill_defaults(j, c->string ? c->string : "blocks", c);
}

/* A key that this program does not know could change what the model computes; a default that pare
 * leaves out would change the canonical form. */
static void must_be_known(job *j, const char *parent, const cJSON *v)
{
    static const char known[] =
        " version name context embedding pattern blocks head tokenizer ids width vocab positions "
        "norm kind base interleaved after_map window sinks self_loops expander degree seed "
        "attention ffn in out heads tolerance skip in_norm out_norm dk dv q k v o scale freq "
        "planes layers activation pool normalize tied eps divisor shift ";
    static const char defaults[] = " shift planes after_map normalize ";
    const char *const key = words(j, " %s ", v->string);
    const bool none = cJSON_IsFalse(v) || (cJSON_IsNumber(v) && v->valuedouble == 0) ||
                      (same(parent, "head") && is_text(v, "none"));
    must(j, strstr(known, key), "architecture: unknown key \"%.60s\"", key);
    must(j, !none || (!strstr(defaults, key) && !same(key, " activation ")),
         "architecture: a default,%s, that pare leaves out", key);
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

/* The value as text, keys sorted, without `name` and `version` of the whole. */
static void hash_value(job *j, SHA256_CTX *h, const char *parent, const cJSON *v)
{
    const bool object = cJSON_IsObject(v);
    const cJSON **const list = take(j, (size_t)cJSON_GetArraySize(v) + 1, sizeof *list);
    size_t n = 0;
    if (cJSON_IsBool(v)) hash_text(h, cJSON_IsTrue(v) ? "true" : "false");
    if (cJSON_IsNumber(v)) hash_text(h, number_words(j, v->valuedouble));
    if (cJSON_IsString(v)) hash_text(h, words(j, "\"%s\"", v->valuestring));
    if (!object && !cJSON_IsArray(v)) return;
    for (const cJSON *c = v->child; c; c = c->next) {
        if (object) must_be_known(j, parent, c);
        if (*parent || (!same(c->string, "name") && !same(c->string, "version"))) list[n++] = c;
    }
    if (object) qsort(list, n, sizeof *list, by_key);
    hash_text(h, object ? "{" : "[");
    for (size_t i = 0; i < n; i++) {
        if (i) hash_text(h, ", ");
        if (object) hash_text(h, words(j, "\"%s\": ", list[i]->string));
        hash_value(j, h, object ? list[i]->string : parent, list[i]);
    }
    hash_text(h, object ? "}" : "]");
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The tensor AT.NAME; NULL: absent. */
const tensor *find_tensor(job *j, const model *m, const char *at, const char *name)
{
    name = words(j, "%s.%s", at, name);
    for (size_t i = 0; i < m->ntensors; i++) {
        tensor *const t = &m->tensors[i];
        if (t->type == 'b' || !same(t->name, name)) continue;
#pragma omp atomic write
        t->used = true;
        return t;
    }
    return NULL;
}

static void read_architecture(job *j, model *m, const cJSON *root)
{
    const cJSON *const embedding = get(j, root, "embedding");
    SHA256_CTX h;
    SHA256_Init(&h);
    hash_value(j, &h, "", root);
    hash_end(&h, m->hash);
    m->architecture = root;
    get_list(j, root, "blocks");
    m->context = get_count(j, root, "context");
    m->width = get_count(j, embedding, "width");
    if (flag(embedding, "ids")) m->vocab = get_count(j, embedding, "vocab");
    m->graph = same(get_text(j, get(j, root, "pattern"), "kind"), "graph");
    m->pools = !same(get_text(j, get(j, root, "head"), "pool"), "none");
    must(j, m->width > 0 && (!flag(embedding, "ids") || m->vocab > 0),
         "embedding: its width or its vocabulary is 0");
}

model read_model(job *j, const char *name, bytes file)
{
    static const char hint[] =
        "; if it is a folder, a ticket or old: pare verify CERT --unpack DIR, "
        "then --unpacked DIR";
    model m = {0};
    uint64_t n = 0;
    for (int i = 0; i < 8 && file.n >= 8; i++) n |= (uint64_t)file.v[i] << 8 * i;
    must(j, file.n >= 8 && n <= file.n - 8, "%s: is not a model of pare%s", name, hint);
    const bytes text = {file.v + 8, (size_t)n}, data = {text.v + n, file.n - 8 - (size_t)n};
    const cJSON *const header = parse_json(j, name, text.v, text.n);
    const cJSON *const meta = find(header, "__metadata__");
    const cJSON *const arch = find(meta, "pare"), *const sum = find(meta, "pare.sha256");
    must(j,
         cJSON_IsString(arch) && cJSON_IsString(sum) &&
             header_hash_is_right(j, text, sum->valuestring),
         "%s: is not a model of pare, or its header has another hash%s", name, hint);
    read_tensors(j, header, data, &m);
    cJSON *const root = parse_json(j, name, arch->valuestring, strlen(arch->valuestring));
    must(j, get_count(j, root, "version") == 2, "%s: not of version 2%s", name, hint);
    fill_defaults(j, "", root);
    read_architecture(j, &m, root);
    read_shared_rows(j, &m);
    return m;
}
