/* model.c - a model file (docs/format.md: the container, the architecture).
 *
 * A tensor has the bytes that its shape needs, inside the file, without gaps; the architecture has no
 * key that this program does not know. Shapes are checked where evaluate.c uses them. What `pare verify
 * --unpack` writes plainly is left to it: tickets and models of version 1. */
#include "check.h"

/* ---- the container --------------------------------------------------------------------------- */

/* Weights are hashed as pare holds them: f64, or f32 for all narrower ones. */
static array read_tensor(const cJSON *o, bytes data, size_t *end)
{
    static const struct {
        const char *name;
        char type;
        size_t item;
    } types[] = {
        {"F64", 'f', 8}, {"F32", 'f', 4}, {"F16", 'f', 2}, {"BF16", 'h', 2}, {"U8", 'u', 1}};
    const char *const type = get_text(o, "dtype");
    const cJSON *const shape = get_list(o, "shape"), *const at = get_list(o, "data_offsets");
    const size_t first = whole_number(cJSON_GetArrayItem(at, 0)),
                 next = whole_number(cJSON_GetArrayItem(at, 1));
    array t = {.name = o->string, .ndim = length_of(shape)};
    SHA256_CTX h;
    size_t k = 0;
    while (k < 5 && !same(types[k].name, type)) k++;
    must(k < 5 && (t.ndim == 1 || t.ndim == 2), "%s: a type or shape of no tensor", t.name);
    for (size_t i = 0; i < t.ndim; i++)
        t.shape[i] = whole_number(cJSON_GetArrayItem(shape, (int)i));
    must(types[k].item > 1 || is_one_of(t.name, " vocab embedding.shared "), "%s: is packed" UNPACK,
         t.name);
    must(first == *end && first < next && next <= data.n, "%s: a gap before or in it", t.name);
    *end = next;
    fill_array(&t, (bytes){data.v + first, next - first}, types[k].type, types[k].item);
    SHA256_Init(&h);
    for (size_t i = 0; i < t.count; i++) {
        const float narrow = (float)t.v[i];
        must(isfinite(t.v[i]), "%s: a nan or an inf", t.name);
        if (types[k].item == 2) SHA256_Update(&h, &narrow, sizeof narrow);
    }
    t.hash = types[k].item == 2 ? hash_end(&h) : sha256_of(data.v + first, next - first);
    return t;
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
        {"", NULL, "context", "0"},          {"head", NULL, "pool", "none"},
        {"head", NULL, "tied", "false"},     {"pattern", "graph", "self_loops", "false"},
        {"pattern", "window", "sinks", "0"}, {"ffn", NULL, "activation", "none"}};
    for (size_t i = 0; cJSON_IsObject(o) && i < sizeof list / sizeof *list; i++) {
        const char *const *const d = list[i];
        if (!same(parent, d[0]) || find(o, d[2]) || (d[1] && !is_text(find(o, "kind"), d[1])))
            continue;
        must(same(d[3], "0")       ? cJSON_AddNumberToObject(o, d[2], 0)
             : same(d[3], "false") ? cJSON_AddFalseToObject(o, d[2])
                                   : cJSON_AddStringToObject(o, d[2], d[3]),
             "out of memory");
    }
    for (cJSON *c = o->child; c; c = c->next) fill_defaults(c->string ? c->string : "blocks", c);
}

/* A key that this program does not know could change what the model computes. */
static const char known[] =
    " version name context embedding pattern blocks head tokenizer ids width vocab positions "
    "norm kind base interleaved after_map window sinks self_loops expander degree seed "
    "attention ffn in out heads tolerance skip in_norm out_norm dk dv q k v o scale freq "
    "planes layers activation pool normalize tied eps divisor shift ";

/* Defaults that pare leaves out, and what is not hashed of the whole. */
static bool is_left_out(const char *parent, const cJSON *v)
{
    const bool none = cJSON_IsFalse(v) || (cJSON_IsNumber(v) && v->valuedouble == 0) ||
                      (same(parent, "head") && is_text(v, "none"));
    return (none && is_one_of(v->string, " shift planes after_map normalize activation ")) ||
           (!*parent && is_one_of(v->string, " name version "));
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
        must(!object || is_one_of(c->string, known), "architecture: unknown key %.60s", c->string);
        if (!object || !is_left_out(parent, c)) list[n++] = c;
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

/* ---- tokens that share a row ----------------------------------------------------------------- */

bool token_shares(const model *m, size_t id)
{
    return m->row && m->row[id] == m->vocab - m->shared;
}

/* docs/format.md, "Shared rows": a bit for each token; those that share have the last row. */
static void read_shared_rows(model *m)
{
    array *const t = find_array(m->tensors, "embedding.shared");
    if (!t) return;
    size_t next = 0;
    t->used = true;
    must(t->whole && t->ndim == 1 && m->vocab > 0 && t->count == (m->vocab + 7) / 8,
         "embedding.shared: has not a bit for each token");
    m->row = take(8 * t->count, sizeof *m->row);
    for (size_t i = 0; i < 8 * t->count; i++) {
        const bool bit = (unsigned)t->v[i / 8] >> i % 8 & 1;
        must(i < m->vocab || !bit, "embedding.shared: bits behind the last token");
        m->shared += bit;
        m->row[i] = bit ? SIZE_MAX : next++;
    }
    for (size_t i = 0; i < m->vocab; i++)
        if (m->row[i] == SIZE_MAX) m->row[i] = m->vocab - m->shared;
    must(m->shared >= 2, "embedding.shared: fewer than two tokens");
}

/* ---- all of it ------------------------------------------------------------------------------- */

const array *find_tensor(const model *m, const char *at, const char *name)
{
    array *const t = find_array(m->tensors, words("%s.%s", at, name));
    if (!t) return NULL;
    t->used = true;
    return t;
}

model read_model(const char *name, bytes file)
{
    SHA256_CTX h;
    model m = {0};
    const size_t n = file.n >= 8 ? whole_at(file.v, 8) : SIZE_MAX;
    must(file.n >= 8 && n <= file.n - 8, "%s: is not a model of pare" UNPACK, name);
    const bytes text = {file.v + 8, n}, data = {text.v + text.n, file.n - 8 - text.n};
    size_t end = 0;
    const cJSON *const header = parse_json(name, text.v, text.n);
    const cJSON *const meta = find(header, "__metadata__");
    const cJSON *const arch = find(meta, "pare"), *const sum = find(meta, "pare.sha256");
    must(cJSON_IsString(arch) && cJSON_IsString(sum) &&
             header_hash_is_right(text, sum->valuestring),
         "%s: is not a model of pare, or its header has another hash" UNPACK, name);
    m.tensors.list = take(length_of(header), sizeof *m.tensors.list);
    for (const cJSON *c = header->child; c; c = c->next)
        if (c != meta) m.tensors.list[m.tensors.n++] = read_tensor(c, data, &end);
    must(end == data.n, "%s: bytes after the last tensor", name);
    cJSON *const root = parse_json(name, arch->valuestring, strlen(arch->valuestring));
    must(get_count(root, "version") == 2, "%s: not of version 2" UNPACK, name);
    fill_defaults("", root);
    SHA256_Init(&h);
    hash_value(&h, "", root);
    m.hash = hash_end(&h);
    m.architecture = root;
    m.blocks = length_of(get_list(root, "blocks"));
    const cJSON *const embedding = get(root, "embedding");
    m.context = get_count(root, "context");
    m.width = get_count(embedding, "width");
    if (flag(embedding, "ids")) m.vocab = get_count(embedding, "vocab");
    m.graph = same(get_text(get(root, "pattern"), "kind"), "graph");
    m.pools = !same(get_text(get(root, "head"), "pool"), "none");
    const bool ids = flag(embedding, "ids") || flag(find(root, "head"), "tied");
    must(m.width > 0 && (m.vocab > 0 || !ids), "embedding: width or vocab is 0");
    read_shared_rows(&m);
    return m;
}
