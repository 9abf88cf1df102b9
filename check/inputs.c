/* inputs.c - what a certificate calls an input (docs/format.md: data, identity of the inputs). */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_INPUTS = 1 << 24,
    WINDOW_TOKENS = 512,
    RANDOM_STREAM = 0x696e7000,
    EXPANDER_STREAM = 0x65787061
};

/* ---- graphs ---------------------------------------------------------------------------------- */

static int by_node(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* A graph from pairs (node, neighbor): each row sorted, duplicates dropped. */
static bool graph_of(job *j, size_t n, const uint32_t (*pair)[2], size_t pairs, graph *out)
{
    *out = (graph){.n = n, .from = take(j, n + 2, sizeof *out->from)};
    out->list = take(j, pairs + 1, sizeof *out->list);
    if (!out->from || !out->list) return false;
    size_t *const next = out->from + 1; /* row i ends at next[i] when all are placed */
    for (size_t e = 0; e < pairs; e++) next[pair[e][0] + 1]++;
    for (size_t i = 0; i < n; i++) next[i + 1] += next[i];
    for (size_t e = 0; e < pairs; e++) out->list[next[pair[e][0]]++] = pair[e][1];
    size_t to = 0, begin = 0;
    for (size_t i = 0; i < n; i++) {
        const size_t end = out->from[i + 1];
        qsort(out->list + begin, end - begin, sizeof *out->list, by_node);
        out->from[i] = to;
        for (size_t e = begin; e < end; e++)
            if (to == out->from[i] || out->list[to - 1] != out->list[e])
                out->list[to++] = out->list[e];
        begin = end;
    }
    out->from[n] = to;
    return true;
}

/* Edges of the data, in both directions, without loops. */
static bool graph_of_edges(job *j, size_t n, const int64_t *edge, size_t edges, graph *out)
{
    uint32_t(*const pair)[2] = take(j, 2 * edges + 1, sizeof *pair);
    size_t pairs = 0;
    for (size_t e = 0; pair && e < edges; e++) {
        const int64_t u = edge[2 * e], v = edge[2 * e + 1];
        if (u < 0 || v < 0 || (uint64_t)u >= n || (uint64_t)v >= n)
            return fail(j, UNREADABLE, "edge %zu joins %lld and %lld, of %zu nodes", e,
                        (long long)u, (long long)v, n);
        if (u == v) continue;
        pair[pairs][0] = pair[pairs + 1][1] = (uint32_t)u;
        pair[pairs][1] = pair[pairs + 1][0] = (uint32_t)v;
        pairs += 2;
    }
    return pair && graph_of(j, n, (const uint32_t(*)[2])pair, pairs, out);
}

/* Self loops, and for every second of `degree` a permutation and its inverse. */
const graph *complete_graph(job *j, const model *m, const graph *g)
{
    size_t most;
    if (__builtin_mul_overflow(g->n, m->degree + 1, &most) ||
        __builtin_add_overflow(most, g->from[g->n], &most) || most > j->o->most_balls) {
        fail(j, UNREADABLE, "the graph with its expander is too large");
        return NULL;
    }
    graph *const out = take(j, 1, sizeof *out);
    uint32_t(*const pair)[2] = take(j, most + 1, sizeof *pair);
    uint32_t *const order = take(j, g->n + 1, sizeof *order);
    philox random = philox_at(m->expander_seed, EXPANDER_STREAM);
    size_t pairs = 0;
    if (j->t.code) return NULL;
    for (size_t i = 0; i < g->n; i++) {
        for (size_t e = g->from[i]; e < g->from[i + 1]; e++) {
            pair[pairs][0] = (uint32_t)i;
            pair[pairs++][1] = g->list[e];
        }
        if (m->self_loops) {
            pair[pairs][0] = (uint32_t)i;
            pair[pairs++][1] = (uint32_t)i;
        }
    }
    for (size_t r = 0; r < m->degree / 2; r++) {
        for (size_t i = 0; i < g->n; i++) order[i] = (uint32_t)i;
        philox_shuffle(&random, order, g->n);
        for (size_t i = 0; i < g->n; i++) {
            if (order[i] == i) continue;
            pair[pairs][0] = pair[pairs + 1][1] = (uint32_t)i;
            pair[pairs][1] = pair[pairs + 1][0] = order[i];
            pairs += 2;
        }
    }
    return graph_of(j, g->n, (const uint32_t(*)[2])pair, pairs, out) ? out : NULL;
}

/* ---- one input ------------------------------------------------------------------------------- */

bool fits(job *j, const model *m, const input *in)
{
    if (in->tokens == 0) return fail(j, UNREADABLE, "an input without tokens");
    if (m->context && in->tokens > m->context)
        return fail(j, UNREADABLE, "an input of %zu tokens, the model takes %zu", in->tokens,
                    m->context);
    if (m->ids ? !in->ids : !in->x)
        return fail(j, UNREADABLE, "the model takes %s", m->ids ? "ids" : "vectors");
    for (size_t i = 0; m->ids && i < in->tokens; i++)
        if (in->ids[i] < 0 || (uint64_t)in->ids[i] >= m->vocab)
            return fail(j, UNREADABLE, "id %lld is not below %zu", (long long)in->ids[i], m->vocab);
    for (size_t i = 0; !m->ids && i < in->tokens * m->width; i++)
        if (!isfinite(in->x[i])) return fail(j, UNREADABLE, "a nan or an inf in the inputs");
    if (m->pattern == GRAPH && (!in->edges || in->edges->n != in->tokens))
        return fail(j, UNREADABLE, "the model attends over a graph, and there is none");
    return true;
}

static bool bounded(job *j, size_t n, size_t d, size_t *count)
{
    if (__builtin_mul_overflow(n, d, count) || *count > j->o->most_balls)
        return fail(j, UNREADABLE, "%zu x %zu numbers are too many", n, d);
    return true;
}

static int64_t *integers_of(job *j, const array *a, size_t first, size_t n)
{
    int64_t *const v = take(j, n + 1, sizeof *v);
    for (size_t i = 0; v && i < n; i++) v[i] = array_integer(a, first + i);
    return v;
}

/* Rows `first` to `first + n - 1` of an array of ids or vectors, behind `zeros` rows of zeros. */
static input *add_input(job *j, const model *m, inputs *to, const array *a, size_t first, size_t n,
                        size_t zeros)
{
    size_t count;
    if (!bounded(j, n + zeros, m->ids ? 1 : m->width, &count)) return NULL;
    input *const in = &to->list[to->n++];
    in->tokens = n + zeros;
    if (m->ids) {
        in->ids = integers_of(j, a, first, n);
    } else {
        double *const x = take(j, count, sizeof *x);
        for (size_t i = 0; x && i < n * m->width; i++)
            x[zeros * m->width + i] = array_number(a, first * m->width + i);
        in->x = x;
    }
    return j->t.code ? NULL : in;
}

/* ---- random inputs --------------------------------------------------------------------------- */

bool random_input(job *j, const model *m, uint64_t seed, size_t number, size_t tokens, input *out)
{
    size_t count;
    *out = (input){.tokens = tokens};
    if (tokens == 0 || (m->context && tokens > m->context))
        return fail(j, UNREADABLE, "random inputs of %zu tokens, the context is %zu", tokens,
                    m->context);
    if (!bounded(j, tokens, m->width, &count)) return false;
    philox random = philox_at(seed, RANDOM_STREAM + number);
    if (m->ids) {
        int64_t *const ids = take(j, tokens, sizeof *ids);
        for (size_t i = 0; ids && i < tokens; i++)
            ids[i] = (int64_t)philox_below(&random, m->vocab);
        out->ids = ids;
    } else {
        double *const x = take(j, count, sizeof *x);
        for (size_t i = 0; x && i < count; i++) x[i] = (double)(float)philox_normal(&random);
        out->x = x;
    }
    if (m->pattern == GRAPH) { /* a ring */
        graph *const g = take(j, 1, sizeof *g);
        int64_t *const edge = take(j, 2 * tokens, sizeof *edge);
        for (size_t i = 0; edge && i < tokens; i++) {
            edge[2 * i] = (int64_t)i;
            edge[2 * i + 1] = (int64_t)((i + 1) % tokens);
        }
        if (!g || !edge || !graph_of_edges(j, tokens, edge, tokens, g)) return false;
        out->edges = g;
    }
    return j->t.code == 0;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* Windows of `context` tokens, one after the other. */
static void add_windows(job *j, const model *m, const array *a, size_t first, size_t tokens,
                        inputs *out)
{
    const size_t window = m->context && m->context < WINDOW_TOKENS ? m->context : WINDOW_TOKENS;
    for (size_t at = 0; at + 1 < tokens; at += window) {
        const size_t n = tokens - at < window ? tokens - at : window;
        input *const in = add_input(j, m, out, a, first + at, n, 0);
        if (!in) return;
        in->continues = at > 0;
    }
}

/* [tokens], [batch, tokens], or the same with a width; values of the data need a row of zeros. */
static bool inputs_of_array(job *j, const model *m, const array *a, bool windows, size_t zeros,
                            inputs *out)
{
    const size_t own = m->ids ? 1 : 2;
    if ((a->ndim != own && a->ndim != own + 1) || (m->ids && !is_integer(a)) || a->count == 0 ||
        a->count > j->o->most_balls || (!m->ids && a->shape[a->ndim - 1] != m->width))
        return fail(j, UNREADABLE, "the array does not suit the model");
    const size_t batch = a->ndim > own ? a->shape[0] : 1, tokens = a->shape[a->ndim - own];
    out->list = take(j, windows ? a->count : batch, sizeof *out->list);
    for (size_t b = 0; b < batch && !j->t.code; b++) {
        if (windows)
            add_windows(j, m, a, b * tokens, tokens, out);
        else
            add_input(j, m, out, a, b * tokens, tokens, zeros);
    }
    return j->t.code == 0;
}

/* ---- graph files ----------------------------------------------------------------------------- */

/* Numbers, or bits of which the first of a byte is the highest. */
static bool node_features(job *j, const model *m, const npz *z, size_t n, double *x)
{
    const array *const plain = npz_find(z, "node_features");
    const array *const bits = npz_find(z, "features_packed");
    const array *const a = plain ? plain : bits;
    const size_t columns = plain ? m->width : (m->width + 7) / 8;
    if (!a || a->ndim != 2 || a->shape[0] != n || a->shape[1] != columns ||
        (bits && bits->item != 1))
        return fail(j, UNREADABLE, "the features of the nodes do not suit the model");
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < m->width; k++)
            x[i * m->width + k] =
                plain ? array_number(a, i * columns + k)
                      : (double)(array_integer(a, i * columns + k / 8) >> (7 - k % 8) & 1);
    return true;
}

/* Labels of the test nodes of a split; -1 for the others. */
static bool node_targets(job *j, const npz *z, const array *labels, size_t split, int64_t *target)
{
    const size_t n = labels->count;
    const array *const mask = npz_find(z, "test_masks");
    for (size_t i = 0; i < n; i++) target[i] = -1;
    if (mask) {
        if (!is_integer(mask) || mask->count % n || split >= mask->count / n)
            return fail(j, UNREADABLE, "test_masks: has no split %zu", split);
        for (size_t i = 0; i < n; i++)
            if (array_integer(mask, split * n + i)) target[i] = array_integer(labels, i);
        return true;
    }
    uint32_t *const order = take(j, n, sizeof *order);
    if (!order) return false;
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    philox random = philox_at(0, split);
    philox_shuffle(&random, order, n);
    for (size_t i = n * 3 / 5 + n / 5; i < n; i++)
        target[order[i]] = array_integer(labels, order[i]);
    return true;
}

static bool input_of_graph(job *j, const model *m, const npz *z, size_t split, inputs *out)
{
    const array *const labels = npz_find(z, "node_labels"), *const edges = npz_find(z, "edges");
    size_t count;
    if (!labels || !edges || labels->ndim != 1 || !is_integer(labels) || edges->ndim != 2 ||
        edges->shape[1] != 2 || !is_integer(edges))
        return fail(j, UNREADABLE, "no graph that this program reads; give --unpacked DIR");
    const size_t n = labels->count;
    if (m->ids || n == 0 || n >= UINT32_MAX || !bounded(j, n, m->width, &count))
        return fail(j, UNREADABLE, "a graph of %zu nodes does not suit the model", n);
    double *const x = take(j, count, sizeof *x);
    graph *const g = take(j, 1, sizeof *g);
    int64_t *const target = take(j, n, sizeof *target);
    const int64_t *const edge = integers_of(j, edges, 0, edges->count);
    out->list = take(j, 1, sizeof *out->list);
    if (j->t.code || !node_features(j, m, z, n, x) ||
        !graph_of_edges(j, n, edge, edges->shape[0], g) ||
        !node_targets(j, z, labels, split, target))
        return false;
    out->list[out->n++] =
        (input){.tokens = n, .x = x, .edges = m->pattern == GRAPH ? g : NULL, .target = target};
    return true;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), k = strlen(end);
    return n >= k && strcmp(text + n - k, end) == 0;
}

static bool inputs_of_file(job *j, const model *m, const char *path, bytes file, size_t split,
                           inputs *out)
{
    npz z;
    array a;
    if (ends_with(path, ".npz")) {
        if (!read_npz(j, path, file, &z)) return false;
        const array *const x = npz_find(&z, "inputs"), *const t = npz_find(&z, "targets");
        if (!x) return input_of_graph(j, m, &z, split, out);
        const bool values = !m->ids && !t && npz_find(&z, "values");
        if (!inputs_of_array(j, m, x, false, values, out)) return false;
        if (t && out->n == 1 && is_integer(t) && t->count == out->list[0].tokens)
            out->list[0].target = integers_of(j, t, 0, t->count); /* for AUC claims */
        return true;
    }
    if (ends_with(path, ".npy"))
        return read_npy(j, path, file, &a) &&
               inputs_of_array(j, m, &a, m->ids && m->pool == 0, 0, out);
    return fail(j, UNREADABLE,
                "%s: this program reads .npy and .npz; for other data give --unpacked DIR", path);
}

/* Inputs data.numbers, or first to first + count - 1; the first `tokens` tokens of each. */
static bool take_part(job *j, const data_claim *d, inputs *in)
{
    input *const list = d->part ? take(j, d->count, sizeof *list) : in->list;
    if (!list) return false;
    for (size_t i = 0; d->part && i < d->count; i++) {
        const size_t from = d->numbers ? d->numbers[i] : d->first + i;
        if (from >= in->n)
            return fail(j, UNREADABLE, "data: input %zu of %zu is asked for", from, in->n);
        list[i] = in->list[from];
    }
    in->list = list;
    if (d->part) in->n = d->count;
    for (size_t i = 0; d->part && d->tokens && i < in->n; i++) {
        if (in->list[i].tokens <= d->tokens) continue;
        if (in->list[i].edges) return fail(j, UNREADABLE, "data.tokens: a graph cannot be cut");
        in->list[i].tokens = d->tokens;
    }
    return true;
}

static bool all_fit(job *j, const model *m, const inputs *in)
{
    if (in->n == 0) return fail(j, UNREADABLE, "no input in the data");
    for (size_t i = 0; i < in->n; i++)
        if (!fits(j, m, &in->list[i])) return false;
    return true;
}

bool load_inputs(job *j, const model *m, const data_claim *d, uint64_t seed, const char *path,
                 inputs *out)
{
    bytes file;
    *out = (inputs){.width = m->ids ? 0 : m->width};
    if (d->random) {
        if (d->count > MOST_INPUTS) return fail(j, UNREADABLE, "data.count: too many inputs");
        out->list = take(j, d->count, sizeof *out->list);
        while (out->n < d->count && !j->t.code) {
            random_input(j, m, seed, out->n, d->tokens, &out->list[out->n]);
            out->n++;
        }
        return j->t.code == 0;
    }
    if (!read_file(j, path, &file)) return false;
    check_hash(j, "data.sha256", path, file, d->sha256);
    return inputs_of_file(j, m, path, file, d->split, out) && all_fit(j, m, out) &&
           take_part(j, d, out);
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

/* Neighbors of rows `first` to `first + n - 1`, numbered from 0; graph_of sorts them. */
static const graph *unpacked_graph(job *j, const npz *z, size_t first, size_t n)
{
    const array *const from = npz_find(z, "neighbors_offsets"), *const list =
                                                                    npz_find(z, "neighbors");
    const size_t begin = (size_t)array_integer(from, first);
    const size_t end = (size_t)array_integer(from, first + n);
    uint32_t(*const pair)[2] = take(j, end - begin + 1, sizeof *pair);
    graph *const g = take(j, 1, sizeof *g);
    for (size_t i = 0, e = begin; pair && i < n; i++)
        for (; e < (size_t)array_integer(from, first + i + 1); e++) {
            const uint64_t to = (uint64_t)array_integer(list, e);
            if (to >= n) fail(j, UNREADABLE, "neighbors: are not nodes");
            pair[e - begin][0] = (uint32_t)i;
            pair[e - begin][1] = (uint32_t)to;
        }
    return j->t.code || !graph_of(j, n, (const uint32_t(*)[2])pair, end - begin, g) ? NULL : g;
}

static void unpacked_inputs(job *j, const model *m, const npz *z, size_t count, inputs *out)
{
    const array *const x = npz_find(z, m->ids ? "ids" : "vectors");
    const array *const at = npz_find(z, "offsets"), *const t = npz_find(z, "targets");
    const array *const continues = npz_find(z, "continues"), *const list = npz_find(z, "neighbors");
    const size_t total = x && x->ndim ? x->shape[0] : 0;
    const bool edges = m->pattern == GRAPH;
    if (!x || x->ndim != (m->ids ? 1u : 2u) ||
        (m->ids ? !is_integer(x) : x->shape[1] != m->width) || count > MOST_INPUTS ||
        !offsets_are_right(at, count + 1, total) || (continues && continues->count != count) ||
        (t && (!is_integer(t) || t->count != (m->pool ? count : total))) ||
        (edges && (!list || !is_integer(list) || list->ndim != 1 ||
                   !offsets_are_right(npz_find(z, "neighbors_offsets"), total + 1, list->count))))
        fail(j, UNREADABLE, "inputs.npz: does not suit the certificate");
    out->list = take(j, count, sizeof *out->list);
    for (size_t i = 0; i < count && !j->t.code; i++) {
        const size_t first = (size_t)array_integer(at, i);
        const size_t n = (size_t)array_integer(at, i + 1) - first;
        input *const in = add_input(j, m, out, x, first, n, 0);
        if (!in) return;
        if (edges) in->edges = unpacked_graph(j, z, first, n);
        in->continues = continues && array_integer(continues, i) != 0;
        if (t) in->target = integers_of(j, t, m->pool ? i : first, m->pool ? 1 : n);
    }
}

bool load_unpacked(job *j, const model *m, const char *folder, size_t count, inputs *out)
{
    bytes file;
    npz z;
    *out = (inputs){.width = m->ids ? 0 : m->width};
    if (!read_file(j, words(j, "%s/inputs.npz", folder), &file) ||
        !read_npz(j, "inputs.npz", file, &z))
        return false;
    unpacked_inputs(j, m, &z, count, out);
    return j->t.code == 0 && all_fit(j, m, out);
}

/* ---- hashes ---------------------------------------------------------------------------------- */

void hash_inputs(const inputs *in, size_t tokens, char hex[65])
{
    SHA256_CTX own, *const h = &own;
    SHA256_Init(h);
    hash_u64(h, in->n);
    for (size_t i = 0; i < in->n; i++) {
        const input *const x = &in->list[i];
        const bool cut = tokens && x->tokens > tokens && !x->edges;
        const size_t n = cut ? tokens : x->tokens;
        hash_u64(h, 1);
        hash_u64(h, n);
        hash_u64(h, in->width);
        hash_u64(h, x->ids != NULL);
        hash_u64(h, x->edges != NULL);
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
