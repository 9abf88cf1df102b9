/* model.c - a model file (docs/format.md: the container, the architecture).
 *
 * A tensor has the bytes that its shape needs, inside the file, without gaps; the architecture has no
 * key that this program does not know. Shapes are checked where evaluate.c uses them. What `pare verify
 * --unpack` writes plainly is left to it: tickets and models of version 1. */
#include "check.h"

/* ---- the container --------------------------------------------------------------------------- */

static size_t entry(const cJSON *v) /* 2^48: no such number */
{
    const double x = cJSON_IsNumber(v) ? v->valuedouble : 0x1p48;
    return x >= 0 && x < 0x1p48 && x == floor(x) ? (size_t)x : (size_t)1 << 48;
}

/* Weights are hashed as pare holds them: f64, or f32 for all narrower ones. */
static array read_tensor(const cJSON *o, bytes data)
{
    static const char *const names[] = {"F64", "F32", "F16", "BF16", "U8", NULL};
    static const size_t items[] = {8, 4, 2, 2, 1};
    const char *const type = get_text(o, "dtype");
    const cJSON *const shape = get_list(o, "shape"), *const at = get_list(o, "data_offsets");
    const size_t begin = entry(cJSON_GetArrayItem(at, 0)), end = entry(cJSON_GetArrayItem(at, 1));
    array t = {.name = o->string, .ndim = length_of(shape), .count = 1, .begin = begin};
    size_t k = 0;
    while (names[k] && !same(names[k], type)) k++;
    must(names[k], "%s: unknown type %.20s", t.name, type);
    must((t.ndim == 1 || t.ndim == 2) && length_of(at) == 2 && begin < end && end <= data.n,
         "%s: its shape or its offsets cannot be", t.name);
    for (size_t i = 0; i < t.ndim; i++) {
        t.shape[i] = entry(cJSON_GetArrayItem(shape, (int)i));
        must(!__builtin_mul_overflow(t.count, t.shape[i], &t.count), "%s: is too large", t.name);
    }
    t.size = end - begin;
    must(t.count <= t.size && t.count * items[k] == t.size, "%s: shape and offsets do not fit",
         t.name);
    if (items[k] == 1) return t.hash = sha256_of(data.v + begin, t.size), t;
    SHA256_CTX h;
    SHA256_Init(&h);
    double *const v = take(t.count, sizeof *v);
    for (size_t i = 0; i < t.count; i++) {
        v[i] = number_at(data.v + begin + i * items[k], "fffh"[k], items[k]);
        const float narrow = (float)v[i];
        must(isfinite(v[i]), "%s: a nan or an inf", t.name);
        SHA256_Update(&h, items[k] == 8 ? (const void *)&v[i] : &narrow, items[k] == 8 ? 8 : 4);
    }
    t.v = v;
    t.hash = hash_end(&h);
    return t;
}

static int by_place(const void *a, const void *b)
{
    const array *const x = a, *const y = b;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

static void read_tensors(const cJSON *header, bytes data, model *m)
{
    size_t end = 0;
    m->tensors = take(length_of(header) + 1, sizeof *m->tensors);
    for (const cJSON *c = header->child; c; c = c->next)
        if (!same(c->string, "__metadata__")) m->tensors[m->n++] = read_tensor(c, data);
    qsort(m->tensors, m->n, sizeof *m->tensors, by_place);
    for (size_t i = 0; i < m->n; end += m->tensors[i++].size)
        must(m->tensors[i].begin == end, "a gap or an overlap at %s", m->tensors[i].name);
    must(end == data.n, "bytes after the last tensor");
}

/* The header's own hash, computed with its 64 digits as zeros. */
static bool header_hash_is_right(bytes header, const char *digits)
{
    unsigned char *const copy = take(header.n + 1, 1), *key, *at = NULL;
    memcpy(copy, header.v, header.n);
    key = memmem(copy, header.n, "\"pare.sha256\"", 13);
    if (key && strlen(digits) == 64) at = memmem(key, header.n - (size_t)(key - copy), digits, 64);
    if (!at) return false;
    memset(at, '0', 64);
    return same(sha256_of(copy, header.n), digits);
}

/* ---- the canonical architecture -------------------------------------------------------------- */

/* What pare writes and files written by hand may leave out, in a parent of that name and kind. */
static void fill_defaults(const char *parent, cJSON *o)
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
        must(added, "out of memory");
    }
    for (cJSON *c = o->child; c; c = c->next) fill_defaults(c->string ? c->string : "blocks", c);
}

/* A key that this program does not know could change what the model computes; a default that pare
 * leaves out would change the canonical form. */
static void must_be_known(const char *parent, const cJSON *v)
{
    static const char known[] =
        " version name context embedding pattern blocks head tokenizer ids width vocab positions "
        "norm kind base interleaved after_map window sinks self_loops expander degree seed "
        "attention ffn in out heads tolerance skip in_norm out_norm dk dv q k v o scale freq "
        "planes layers activation pool normalize tied eps divisor shift ";
    const bool none = cJSON_IsFalse(v) || (cJSON_IsNumber(v) && v->valuedouble == 0) ||
                      (same(parent, "head") && is_text(v, "none"));
    must(is_one_of(v->string, known), "architecture: unknown key \"%.60s\"", v->string);
    must(!none || !is_one_of(v->string, " shift planes after_map normalize activation "),
         "architecture: a default, %s, that pare leaves out", v->string);
}

/* The fewest digits that give the same double again; whole numbers without point or exponent. */
static const char *number_words(double v)
{
    char text[40];
    int digits = 1;
    if (v == floor(v) && fabs(v) <= 0x1p53) return words("%.0f", v);
    do snprintf(text, sizeof text, "%.*g", digits++, v);
    while (digits <= 17 && strtod(text, NULL) != v);
    return words("%s", text);
}

static int by_key(const void *a, const void *b)
{
    return strcmp((*(const cJSON *const *)a)->string, (*(const cJSON *const *)b)->string);
}

/* The value as text, keys sorted, without `name` and `version` of the whole. */
static void hash_value(SHA256_CTX *h, const char *parent, const cJSON *v)
{
    const bool object = cJSON_IsObject(v);
    const cJSON **const list = take(length_of(v) + 1, sizeof *list);
    size_t n = 0;
    if (cJSON_IsBool(v)) hash_text(h, cJSON_IsTrue(v) ? "true" : "false");
    if (cJSON_IsNumber(v)) hash_text(h, number_words(v->valuedouble));
    if (cJSON_IsString(v)) hash_text(h, words("\"%s\"", v->valuestring));
    if (!object && !cJSON_IsArray(v)) return;
    for (const cJSON *c = v->child; c; c = c->next) {
        if (object) must_be_known(parent, c);
        if (*parent || !is_one_of(c->string, " name version ")) list[n++] = c;
    }
    if (object) qsort(list, n, sizeof *list, by_key);
    hash_text(h, object ? "{" : "[");
    for (size_t i = 0; i < n; i++) {
        if (i) hash_text(h, ", ");
        if (object) hash_text(h, words("\"%s\": ", list[i]->string));
        hash_value(h, object ? list[i]->string : parent, list[i]);
    }
    hash_text(h, object ? "}" : "]");
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* The tensor AT.NAME. */
const array *find_tensor(const model *m, const char *at, const char *name)
{
    name = words("%s.%s", at, name);
    for (size_t i = 0; i < m->n; i++) {
        array *const t = &m->tensors[i];
        if (!t->v || !same(t->name, name)) continue;
        t->used = true;
        return t;
    }
    return NULL;
}

model read_model(const char *name, bytes file)
{
    static const char hint[] =
        "; if it is a folder, a ticket or old: pare verify CERT --unpack DIR, "
        "then --unpacked DIR";
    SHA256_CTX h;
    model m = {0};
    uint64_t n = 0;
    for (int i = 0; i < 8 && file.n >= 8; i++) n |= (uint64_t)file.v[i] << 8 * i;
    must(file.n >= 8 && n <= file.n - 8, "%s: is not a model of pare%s", name, hint);
    const bytes text = {file.v + 8, (size_t)n}, data = {text.v + n, file.n - 8 - (size_t)n};
    const cJSON *const header = parse_json(name, text.v, text.n);
    const cJSON *const meta = find(header, "__metadata__");
    const cJSON *const arch = find(meta, "pare"), *const sum = find(meta, "pare.sha256");
    must(cJSON_IsString(arch) && cJSON_IsString(sum) &&
             header_hash_is_right(text, sum->valuestring),
         "%s: is not a model of pare, or its header has another hash%s", name, hint);
    read_tensors(header, data, &m);
    cJSON *const root = parse_json(name, arch->valuestring, strlen(arch->valuestring));
    must(get_count(root, "version") == 2, "%s: not of version 2%s", name, hint);
    fill_defaults("", root);
    SHA256_Init(&h);
    hash_value(&h, "", root);
    m.hash = hash_end(&h);
    m.architecture = root;
    get_list(root, "blocks");
    const cJSON *const embedding = get(root, "embedding");
    m.context = get_count(root, "context");
    m.width = get_count(embedding, "width");
    if (flag(embedding, "ids")) m.vocab = get_count(embedding, "vocab");
    m.graph = same(get_text(get(root, "pattern"), "kind"), "graph");
    m.pools = !same(get_text(get(root, "head"), "pool"), "none");
    must(m.width > 0 && (m.vocab > 0 || !flag(embedding, "ids")), "embedding: width or vocab is 0");
    return m;
}
