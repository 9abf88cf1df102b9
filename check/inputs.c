/* inputs.c - what a certificate calls an input (docs/format.md: data, identity of the inputs). Texts,
 * folders, graphs in CSR keys or packed bits are left to `pare verify --unpack`. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_INPUTS = 1 << 24,
    WINDOW_TOKENS = 512,
    RANDOM_STREAM = 0x696e7000,
    EXPANDER_STREAM = 0x65787061,
    MOST_DEGREE = 65536
};

/* ---- graphs ---------------------------------------------------------------------------------- */

typedef struct edges { /* pairs (node, neighbor) */
    size_t n;
    uint32_t (*pair)[2];
} edges;

static edges new_edges(job *j, size_t most)
{
    if (most > j->o->most_balls) fail(j, UNREADABLE, "a graph of %zu edges is too large", most);
    return (edges){0, take(j, most + 1, sizeof(uint32_t[2]))};
}

static void add_edge(edges *e, size_t node, size_t neighbor)
{
    e->pair[e->n][0] = (uint32_t)node;
    e->pair[e->n++][1] = (uint32_t)neighbor;
}

static int by_pair(const void *a, const void *b)
{
    const uint32_t *const p = a, *const q = b;
    return p[0] != q[0] ? (p[0] > q[0]) - (p[0] < q[0]) : (p[1] > q[1]) - (p[1] < q[1]);
}

/* Each row ascending, none twice. */
static const graph *graph_of(job *j, size_t n, edges e)
{
    graph *const g = take(j, 1, sizeof *g);
    size_t to = 0, row = 0;
    *g = (graph){n, take(j, n + 1, sizeof *g->from), take(j, e.n + 1, sizeof *g->list)};
    qsort(e.pair, e.n, sizeof *e.pair, by_pair);
    for (size_t i = 0; i < e.n; i++) {
        if (i > 0 && by_pair(e.pair[i - 1], e.pair[i]) == 0) continue;
        while (row < e.pair[i][0]) g->from[++row] = to;
        g->list[to++] = e.pair[i][1];
    }
    while (row < n) g->from[++row] = to;
    return g;
}

/* An edge of the data, in both directions; no loops. */
static void add_both(job *j, edges *e, size_t n, int64_t u, int64_t v)
{
    if (u < 0 || v < 0 || (uint64_t)u >= n || (uint64_t)v >= n)
        fail(j, UNREADABLE, "an edge of nodes %lld and %lld, of %zu", (long long)u, (long long)v,
             n);
    if (u == v) return;
    add_edge(e, (size_t)u, (size_t)v);
    add_edge(e, (size_t)v, (size_t)u);
}

/* Self loops, and for every second of the expander's degree a permutation and its inverse. */
const graph *complete_graph(job *j, const model *m, const graph *g)
{
    const cJSON *const p = find(m->architecture, "pattern"), *const x = find(p, "expander");
    const size_t degree = x ? get_count(j, x, "degree") : 0;
    philox random = philox_at(x ? get_seed(j, x, "seed") : 0, EXPANDER_STREAM);
    if (degree > MOST_DEGREE) fail(j, UNREADABLE, "expander: a degree of %zu", degree);
    edges e = new_edges(j, g->from[g->n] + g->n * (degree + 1));
    for (size_t i = 0; i < g->n; i++) {
        for (size_t k = g->from[i]; k < g->from[i + 1]; k++) add_edge(&e, i, g->list[k]);
        if (flag(p, "self_loops")) add_edge(&e, i, i);
    }
    for (size_t r = 0; r < degree / 2; r++) {
        const uint32_t *const order = philox_order(j, &random, g->n, true);
        for (size_t i = 0; i < g->n; i++) add_both(j, &e, g->n, (int64_t)i, order[i]);
    }
    return graph_of(j, g->n, e);
}

/* ---- one input ------------------------------------------------------------------------------- */

void must_fit(job *j, const model *m, const input *in)
{
    if (in->tokens == 0 || (m->context && in->tokens > m->context))
        fail(j, UNREADABLE, "an input of %zu tokens, the context is %zu", in->tokens, m->context);
    if (m->vocab ? !in->ids : !in->x)
        fail(j, UNREADABLE, "the model takes %s", m->vocab ? "ids" : "vectors");
    for (size_t i = 0; m->vocab && i < in->tokens; i++)
        if (in->ids[i] < 0 || (uint64_t)in->ids[i] >= m->vocab)
            fail(j, UNREADABLE, "id %lld is not below %zu", (long long)in->ids[i], m->vocab);
    for (size_t i = 0; !m->vocab && i < in->tokens * m->width; i++)
        if (!isfinite(in->x[i])) fail(j, UNREADABLE, "a nan or an inf in the inputs");
    if (m->graph && (!in->edges || in->edges->n != in->tokens))
        fail(j, UNREADABLE, "the model attends over a graph, and there is none");
}

static size_t bounded(job *j, size_t n, size_t d)
{
    size_t count;
    if (__builtin_mul_overflow(n, d, &count) || count > j->o->most_balls)
        fail(j, UNREADABLE, "%zu x %zu numbers are too many", n, d);
    return count;
}

static const int64_t *integers_of(job *j, const array *a, size_t first, size_t n)
{
    int64_t *const v = take(j, n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = array_integer(a, first + i);
    return v;
}

/* Rows `first` to `first + n - 1` of an array of ids or vectors, behind `zeros` rows of zeros. */
static input *add_input(job *j, const model *m, inputs *to, const array *a, size_t first, size_t n,
                        size_t zeros)
{
    input *const in = &to->list[to->n++];
    const size_t width = m->vocab ? 0 : m->width;
    double *const x = take(j, bounded(j, n + zeros, width), sizeof *x);
    for (size_t i = 0; i < n * width; i++)
        x[zeros * width + i] = array_number(a, first * width + i);
    *in = (input){.tokens = n + zeros};
    if (m->vocab)
        in->ids = integers_of(j, a, first, n);
    else
        in->x = x;
    return in;
}

input random_input(job *j, const model *m, uint64_t seed, size_t number, size_t tokens)
{
    philox random = philox_at(seed, RANDOM_STREAM + number);
    const size_t count = bounded(j, tokens, m->width);
    int64_t *const ids = take(j, tokens, sizeof *ids);
    double *const x = take(j, count, sizeof *x);
    input in = {.tokens = tokens};
    for (size_t i = 0; m->vocab && i < tokens; i++)
        ids[i] = (int64_t)philox_below(&random, m->vocab);
    for (size_t i = 0; !m->vocab && i < count; i++) x[i] = (double)(float)philox_normal(&random);
    if (m->vocab)
        in.ids = ids;
    else
        in.x = x;
    if (m->graph) { /* a ring */
        edges e = new_edges(j, 2 * tokens);
        for (size_t i = 0; i < tokens; i++)
            add_both(j, &e, tokens, (int64_t)i, (int64_t)((i + 1) % tokens));
        in.edges = graph_of(j, tokens, e);
    }
    must_fit(j, m, &in);
    return in;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* [tokens], [batch, tokens], or the same with a width: one input a row, or windows of `context` tokens,
 * one after the other, without a last one of a single token. */
static inputs inputs_of_array(job *j, const model *m, const array *a, bool windows, size_t zeros)
{
    const size_t own = m->vocab ? 1 : 2;
    if ((a->ndim != own && a->ndim != own + 1) || (m->vocab && !is_integer(a)) || a->count == 0 ||
        a->count > j->o->most_balls || (!m->vocab && a->shape[a->ndim - 1] != m->width))
        fail(j, UNREADABLE, "the array does not suit the model");
    const size_t batch = a->ndim > own ? a->shape[0] : 1, tokens = a->shape[a->ndim - own];
    const size_t most = m->context && m->context < WINDOW_TOKENS ? m->context : WINDOW_TOKENS;
    const size_t window = windows ? most : tokens;
    inputs out = {.list = take(j, windows ? a->count : batch, sizeof *out.list)};
    for (size_t b = 0; b < batch; b++)
        for (size_t at = 0; at + windows < tokens; at += window) {
            const size_t n = tokens - at < window ? tokens - at : window;
            add_input(j, m, &out, a, b * tokens + at, n, zeros)->continues = at > 0;
        }
    return out;
}

/* A graph with masks of its test nodes; the targets of other nodes do not count. */
static inputs input_of_graph(job *j, const model *m, const npz *z, size_t split)
{
    const array *const labels = npz_find(z, "node_labels"), *const list = npz_find(z, "edges");
    const array *const x = npz_find(z, "node_features"), *const mask = npz_find(z, "test_masks");
    const size_t n = labels ? labels->count : 0;
    if (!x || !list || !mask || m->vocab || n == 0 || n >= UINT32_MAX || x->ndim != 2 ||
        x->shape[0] != n || x->shape[1] != m->width || labels->ndim != 1 || !is_integer(labels) ||
        list->ndim != 2 || list->shape[1] != 2 || !is_integer(list) || !is_integer(mask) ||
        mask->count % n || split >= mask->count / n)
        fail(j, UNREADABLE,
             "no graph that this program reads, or it does not suit the model; pare "
             "verify CERT --unpack DIR, then --unpacked DIR");
    inputs out = {.list = take(j, 1, sizeof *out.list)};
    input *const in = add_input(j, m, &out, x, 0, n, 0);
    int64_t *const target = take(j, n, sizeof *target);
    for (size_t i = 0; i < n; i++)
        target[i] = array_integer(mask, split * n + i) ? array_integer(labels, i) : -1;
    in->target = target;
    edges e = new_edges(j, list->count);
    for (size_t i = 0; i < list->shape[0]; i++)
        add_both(j, &e, n, array_integer(list, 2 * i), array_integer(list, 2 * i + 1));
    if (m->graph) in->edges = graph_of(j, n, e);
    return out;
}

static inputs inputs_of_npz(job *j, const model *m, npz list, size_t split)
{
    const npz *const z = &list;
    const array *const x = npz_find(z, "inputs"), *const t = npz_find(z, "targets");
    if (!x) return input_of_graph(j, m, z, split);
    /* numbers to learn are read behind a row of zeros */
    const inputs out = inputs_of_array(j, m, x, false, !m->vocab && !t && npz_find(z, "values"));
    if (t && out.n == 1 && is_integer(t) && t->count == out.list[0].tokens)
        out.list[0].target = integers_of(j, t, 0, t->count); /* for AUC claims */
    return out;
}

/* Of a part: the inputs `numbers`, or `count` of them from `first` on; the first `tokens` tokens of
 * each (0: all). */
static void take_part(job *j, const cJSON *data, inputs *in)
{
    const size_t count = get_count(j, data, "count"), tokens = get_count(j, data, "tokens");
    const cJSON *const numbers = find(data, "numbers"), *v = numbers ? numbers->child : NULL;
    const size_t first = numbers ? 0 : get_count(j, data, "first");
    input *const list = take(j, count < MOST_INPUTS ? count : 0, sizeof *list);
    if (count > in->n || first > in->n - count ||
        (numbers && (size_t)cJSON_GetArraySize(get_list(j, data, "numbers")) != count))
        fail(j, UNREADABLE, "data: %zu inputs from %zu on, of %zu", count, first, in->n);
    for (size_t i = 0; i < count; i++, v = v ? v->next : NULL) {
        if (v && !(v->valuedouble >= 0 && v->valuedouble < (double)in->n))
            fail(j, UNREADABLE, "data.numbers: input %g of %zu", v->valuedouble, in->n);
        list[i] = in->list[v ? (size_t)v->valuedouble : first + i];
        if (tokens == 0 || list[i].tokens <= tokens) continue;
        if (list[i].edges) fail(j, UNREADABLE, "data.tokens: a graph cannot be cut");
        list[i].tokens = tokens;
    }
    *in = (inputs){count, in->width, list};
}

static void all_must_fit(job *j, const model *m, inputs *in)
{
    in->width = m->vocab ? 0 : m->width;
    if (in->n == 0) fail(j, UNREADABLE, "no input in the data");
    for (size_t i = 0; i < in->n; i++) must_fit(j, m, &in->list[i]);
}

static inputs inputs_of_file(job *j, const model *m, const char *path, bytes file, size_t split)
{
    const char *const end = strrchr(path, '.');
    if (end && same(end, ".npz")) return inputs_of_npz(j, m, read_npz(j, path, file), split);
    if (!end || !same(end, ".npy"))
        fail(j, UNREADABLE, "%s: is no .npy or .npz; for other data give --unpacked DIR", path);
    const array a = read_npy(j, path, file);
    return inputs_of_array(j, m, &a, m->vocab && !m->pools, 0);
}

inputs load_inputs(job *j, const model *m, const cJSON *data, uint64_t seed, const char *path)
{
    const char *const kind = get_text(j, data, "kind");
    const size_t count = get_count(j, data, "count");
    inputs out = {0};
    if (same(kind, "random")) {
        if (count > MOST_INPUTS) fail(j, UNREADABLE, "data.count: too many inputs");
        out.list = take(j, count, sizeof *out.list);
        while (out.n < count) {
            out.list[out.n] = random_input(j, m, seed, out.n, get_count(j, data, "tokens"));
            out.n++;
        }
    } else {
        const bytes file = read_file(j, path);
        char hex[65];
        sha256_of(hex, file.v, file.n);
        check_equal(j, "data.sha256", hex, get_hash(j, data, "sha256"), path);
        out = inputs_of_file(j, m, path, file, get_count(j, data, "split"));
        all_must_fit(j, m, &out);
        if (same(kind, "part")) take_part(j, data, &out);
    }
    all_must_fit(j, m, &out);
    return out;
}

/* ---- unpacked inputs ------------------------------------------------------------------------- */

/* `count` offsets that do not fall, from 0 to `end`. */
static bool offsets_are_right(const array *a, size_t count, size_t end)
{
    bool good = a && a->ndim == 1 && is_integer(a) && a->count == count && count > 0 &&
                array_integer(a, 0) == 0 && array_integer(a, count - 1) == (int64_t)end;
    for (size_t i = 0; good && i + 1 < count; i++)
        good = array_integer(a, i) <= array_integer(a, i + 1);
    return good;
}

/* Neighbors of rows `first` to `first + n - 1`, numbered from 0. */
static const graph *unpacked_graph(job *j, const npz *z, size_t first, size_t n)
{
    const array *const from = npz_find(z, "neighbors_offsets");
    const array *const list = npz_find(z, "neighbors");
    size_t k = (size_t)array_integer(from, first);
    edges e = new_edges(j, (size_t)array_integer(from, first + n) - k);
    for (size_t i = 0; i < n; i++)
        for (; k < (size_t)array_integer(from, first + i + 1); k++) {
            const uint64_t to = (uint64_t)array_integer(list, k);
            if (to >= n) fail(j, UNREADABLE, "neighbors: are not nodes");
            add_edge(&e, i, to);
        }
    return graph_of(j, n, e);
}

inputs load_unpacked(job *j, const model *m, const char *folder, size_t count)
{
    const npz z = read_npz(j, "inputs.npz", read_file(j, words(j, "%s/inputs.npz", folder)));
    const array *const x = npz_find(&z, m->vocab ? "ids" : "vectors");
    const array *const at = npz_find(&z, "offsets"), *const t = npz_find(&z, "targets");
    const array *const amid = npz_find(&z, "continues"), *const list = npz_find(&z, "neighbors");
    const size_t total = x && x->ndim ? x->shape[0] : 0;
    const bool graphs = m->graph;
    if (!x || x->ndim != (m->vocab ? 1u : 2u) ||
        (m->vocab ? !is_integer(x) : x->shape[1] != m->width) || count > MOST_INPUTS ||
        !offsets_are_right(at, count + 1, total) || (amid && amid->count != count) ||
        (t && (!is_integer(t) || t->count != (m->pools ? count : total))) ||
        (graphs && (!list || !is_integer(list) || list->ndim != 1 ||
                    !offsets_are_right(npz_find(&z, "neighbors_offsets"), total + 1, list->count))))
        fail(j, UNREADABLE, "inputs.npz: does not suit the certificate");
    inputs out = {.list = take(j, count, sizeof *out.list)};
    for (size_t i = 0; i < count; i++) {
        const size_t first = (size_t)array_integer(at, i);
        const size_t n = (size_t)array_integer(at, i + 1) - first;
        input *const in = add_input(j, m, &out, x, first, n, 0);
        if (graphs) in->edges = unpacked_graph(j, &z, first, n);
        in->continues = amid && array_integer(amid, i) != 0;
        if (t) in->target = integers_of(j, t, m->pools ? i : first, m->pools ? 1 : n);
    }
    all_must_fit(j, m, &out);
    return out;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

void hash_inputs(const inputs *in, size_t tokens, char hex[65])
{
    SHA256_CTX own, *const h = &own;
    SHA256_Init(h);
    hash_u64(h, in->n);
    for (size_t i = 0; i < in->n; i++) {
        const input *const x = &in->list[i];
        const size_t n = tokens && x->tokens > tokens && !x->edges ? tokens : x->tokens;
        const uint64_t about[5] = {1, n, in->width, x->ids != NULL, x->edges != NULL};
        for (int k = 0; k < 5; k++) hash_u64(h, about[k]);
        if (x->ids) SHA256_Update(h, x->ids, n * sizeof *x->ids);
        if (x->x) SHA256_Update(h, x->x, n * in->width * sizeof *x->x);
        for (size_t k = 0; x->edges && k < n; k++) {
            const size_t from = x->edges->from[k], end = x->edges->from[k + 1];
            hash_u64(h, end - from);
            SHA256_Update(h, x->edges->list + from, (end - from) * sizeof *x->edges->list);
        }
    }
    hash_end(h, hex);
}
