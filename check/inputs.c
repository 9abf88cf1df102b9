/* inputs.c - what a certificate calls an input (docs/format.md: data, identity of the inputs): random
 * ones, .npy arrays, graphs in .npz, and whatever `pare verify --unpack` has written plainly. */
#include "check.h"

enum {
    MOST_INPUTS = 1 << 24,
    MOST_DEGREE = 65536,
    WINDOW_TOKENS = 512,
    RANDOM_STREAM = 0x696e7000,
    EXPANDER_STREAM = 0x65787061,
    DRAW_STREAM = 0x68656c64,
    FEWEST_DOCUMENTS = 16
};

/* ---- graphs ---------------------------------------------------------------------------------- */

typedef struct edges { /* node << 32 | neighbor */
    size_t n, nodes;
    uint64_t *list;
} edges;

static edges new_edges(size_t nodes, size_t most)
{
    must(nodes < UINT32_MAX && most <= now->o->most_balls, "a graph of %zu edges", most);
    return (edges){0, nodes, take(most + 1, sizeof(uint64_t))};
}

/* No loops; both ways, or one. */
static void add_edge(edges *e, double u, double v, bool both)
{
    const double n = (double)e->nodes;
    must(u >= 0 && v >= 0 && u < n && v < n, "an edge of nodes %g and %g, of %g", u, v, n);
    if (u != v) e->list[e->n++] = (uint64_t)u << 32 | (uint64_t)v;
    if (u != v && both) e->list[e->n++] = (uint64_t)v << 32 | (uint64_t)u;
}

static int by_number(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Each row ascending, none twice. */
static const graph *graph_of(edges e)
{
    graph *const g = take(1, sizeof *g);
    *g = (graph){e.nodes, take(e.nodes + 1, sizeof *g->from), take(e.n + 1, sizeof *g->list)};
    qsort(e.list, e.n, sizeof *e.list, by_number);
    for (size_t k = 0, to = 0; k < e.n; k++) {
        if (k > 0 && e.list[k] == e.list[k - 1]) continue;
        g->list[to++] = (uint32_t)e.list[k];
        g->from[(e.list[k] >> 32) + 1]++;
    }
    for (size_t i = 0; i < e.nodes; i++) g->from[i + 1] += g->from[i];
    return g;
}

/* Self loops, and for every second of the expander's degree a permutation and its inverse. */
const graph *complete_graph(const model *m, const graph *g)
{
    const cJSON *const p = find(m->architecture, "pattern"), *const x = find(p, "expander");
    const size_t degree = x ? get_count(x, "degree") : 0;
    philox random = {.seed = x ? get_seed(x, "seed") : 0, .stream = EXPANDER_STREAM};
    must(degree <= MOST_DEGREE, "expander: a degree of %zu", degree);
    edges e = new_edges(g->n, g->from[g->n] + g->n * (degree + 1));
    for (size_t i = 0; i < g->n; i++) {
        for (size_t k = g->from[i]; k < g->from[i + 1]; k++)
            add_edge(&e, (double)i, g->list[k], false);
        if (flag(p, "self_loops")) e.list[e.n++] = i << 32 | i;
    }
    for (size_t r = 0; r < degree / 2; r++) {
        size_t *const order = whole_numbers(g->n);
        philox_shuffle(&random, order, g->n, true);
        for (size_t i = 0; i < g->n; i++) add_edge(&e, (double)i, (double)order[i], true);
    }
    return graph_of(e);
}

/* ---- one input ------------------------------------------------------------------------------- */

void must_fit(const model *m, const input *in)
{
    const size_t per_token = in->width ? in->width : 1;
    must(in->tokens > 0 && (!m->context || in->tokens <= m->context),
         "an input of %zu tokens, the context is %zu", in->tokens, m->context);
    must(in->width == (m->vocab ? 0 : m->width), "inputs of width %zu (ids: 0)", in->width);
    for (size_t i = 0; i < in->tokens * per_token; i++) {
        const double x = in->x[i];
        must(isfinite(x), "a nan or an inf in the inputs");
        must(!m->vocab || (x >= 0 && x < (double)m->vocab), "id %g, of %zu", x, m->vocab);
    }
    must(!m->graph || (in->edges && in->edges->n == in->tokens), "the model needs a graph");
}

/* Ids, or numbers sqrt(-2 ln(1 - a)) cos(2 pi b), a and b drawn one after the other; a graph is a ring. */
input random_input(const model *m, uint64_t seed, size_t number, size_t tokens)
{
    philox random = {.seed = seed, .stream = RANDOM_STREAM + number};
    size_t n;
    must(!__builtin_mul_overflow(tokens, m->vocab ? 1 : m->width, &n) && n <= now->o->most_balls,
         "an input of %zu tokens is too large", tokens);
    double *const x = take(n + 1, sizeof *x);
    input in = {.tokens = tokens, .width = m->vocab ? 0 : m->width, .x = x};
    for (size_t i = 0; m->vocab && i < n; i++) x[i] = (double)philox_below(&random, m->vocab);
    for (size_t i = 0; !m->vocab && i < n; i++) {
        const double radius = sqrt(-2 * log(1 - philox_uniform(&random)));
        x[i] = (float)(radius * cos(6.283185307179586476925 * philox_uniform(&random)));
    }
    if (m->graph) {
        edges e = new_edges(tokens, 2 * tokens);
        for (size_t i = 0; i < tokens; i++)
            add_edge(&e, (double)i, (double)((i + 1) % tokens), true);
        in.edges = graph_of(e);
    }
    return in;
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Rows `first` to `first + n - 1` of an array of ids or vectors. */
static input rows_of(const model *m, const array *a, size_t first, size_t n)
{
    const size_t width = m->vocab ? 0 : m->width;
    return (input){.tokens = n, .width = width, .x = a->v + first * (width ? width : 1)};
}

/* [tokens], [batch, tokens], or the same with a width: one input a row; of ids for models with one
 * output for each token windows, one after the other, without a last one of a single token. */
static inputs inputs_of_array(const model *m, const char *path, const array *a)
{
    const size_t own = m->vocab ? 1 : 2, batch = a->ndim > own ? a->shape[0] : 1;
    must((a->ndim == own || a->ndim == own + 1) &&
             (m->vocab ? a->whole : a->shape[a->ndim - 1] == m->width),
         "%s: does not suit the model" UNPACK, path);
    const size_t tokens = a->shape[a->ndim - own];
    const size_t most = m->context && m->context < WINDOW_TOKENS ? m->context : WINDOW_TOKENS;
    const bool windows = m->vocab && !m->pools;
    const size_t window = windows ? most : tokens;
    inputs out = {0, take(windows ? a->count : batch, sizeof *out.list)};
    for (size_t b = 0; b < batch; b++)
        for (size_t at = 0; at + windows < tokens; at += window) {
            const size_t n = tokens - at < window ? tokens - at : window;
            out.list[out.n] = rows_of(m, a, b * tokens + at, n);
            out.list[out.n++].continues = at > 0;
        }
    return out;
}

/* A graph with masks of its test nodes; the targets of other nodes do not count. */
static inputs inputs_of_graph(const model *m, arrays z, size_t split)
{
    const array *const labels = get_array(z, "node_labels", 1, 0, 0, true);
    const size_t n = labels->count;
    must(!m->vocab && n > 0, "node_labels: the model takes ids, or there is no node");
    const array *const x = get_array(z, "node_features", 2, n, m->width, false);
    const array *const list = get_array(z, "edges", 2, 0, 2, true);
    const array *const mask = get_array(z, "test_masks", 2, 0, n, true);
    must(split < mask->shape[0], "test_masks: has no split %zu", split);
    inputs out = {1, take(1, sizeof *out.list)};
    edges e = new_edges(n, list->count);
    double *const target = take(n, sizeof *target);
    *out.list = rows_of(m, x, 0, n);
    out.list->target = target;
    for (size_t i = 0; i < n; i++) target[i] = mask->v[split * n + i] != 0 ? labels->v[i] : -1;
    for (size_t i = 0; i < list->count; i += 2) add_edge(&e, list->v[i], list->v[i + 1], true);
    if (m->graph) out.list->edges = graph_of(e);
    return out;
}

/* The numbers that the seed draws, ascending: it permutes documents, or inputs where there are few. NULL:
 * there are not so many. */
static const size_t *draw_numbers(const inputs *all, size_t count, uint64_t seed)
{
    philox random = {.seed = seed, .stream = DRAW_STREAM};
    size_t *const unit = whole_numbers(all->n), n = 0;
    for (size_t i = 0; i < all->n; i++) n += !all->list[i].continues;
    const bool few = n < FEWEST_DOCUMENTS;
    n = 0;
    for (size_t i = 0; i < all->n; i++)
        if (few || !all->list[i].continues) unit[n++] = i;
    philox_shuffle(&random, unit, n, false);
    if (count > n) return NULL;
    qsort(unit, count, sizeof *unit, by_number);
    return unit;
}

/* Of a part: the inputs `numbers`, which the seed must draw, or `count` of them from `first` on, of
 * which nobody knows why they were taken; the first `tokens` tokens of each (0: all). */
static inputs take_part(const cJSON *data, const inputs *in, uint64_t seed)
{
    const size_t count = get_count(data, "count"), tokens = get_count(data, "tokens");
    const cJSON *const numbers = find(data, "numbers"), *v = numbers ? numbers->child : NULL;
    const size_t first = numbers ? 0 : get_count(data, "first");
    must(first <= in->n && count <= in->n - first, "data: %zu inputs of %zu", count, in->n);
    must(!numbers || length_of(numbers) == count, "data.numbers: not count");
    const size_t *const drawn = numbers ? draw_numbers(in, count, seed) : NULL;
    bool right = numbers ? drawn != NULL : count == in->n || !find(data, "heldout");
    inputs out = {count, take(count, sizeof *out.list)};
    for (size_t i = 0; i < count; i++, v = v ? v->next : NULL) {
        const size_t number = v ? whole_number(v) : first + i;
        must(number < in->n, "data.numbers: are not numbers of inputs");
        right = right && (!v || number == drawn[i]);
        out.list[i] = in->list[number];
        if (tokens == 0 || out.list[i].tokens <= tokens) continue;
        must(!out.list[i].edges, "data.tokens: a graph cannot be cut");
        out.list[i].tokens = tokens;
    }
    if (numbers || !right)
        state_but("data.numbers", "the seed draws these inputs", right ? NULL : "some");
    return out;
}

inputs load_inputs(const model *m, const cJSON *data, uint64_t seed, const char *path)
{
    const char *const kind = get_text(data, "kind"), *const end = strrchr(path, '.');
    const size_t count = get_count(data, "count");
    inputs out = {0};
    if (same(kind, "random")) {
        must(count <= MOST_INPUTS, "data.count: too many");
        out.list = take(count, sizeof *out.list);
        for (; out.n < count; out.n++)
            out.list[out.n] = random_input(m, seed, out.n, get_count(data, "tokens"));
        return out;
    }
    const bytes file = read_checked("data", path, data);
    if (end && same(end, ".npz")) {
        out = inputs_of_graph(m, read_npz(path, file), get_count(data, "split"));
    } else {
        const array a = read_npy(path, file);
        out = inputs_of_array(m, path, &a);
    }
    return same(kind, "part") ? take_part(data, &out, seed) : out;
}

/* ---- unpacked inputs ------------------------------------------------------------------------- */

/* `count` offsets that do not fall, from 0 to `end`. */
static const double *get_offsets(arrays z, const char *name, size_t count, size_t end)
{
    const double *const at = get_array(z, name, 1, count, 0, true)->v;
    bool good = at[0] == 0 && at[count - 1] == (double)end;
    for (size_t i = 0; i + 1 < count; i++) good = good && at[i] <= at[i + 1];
    must(good, "%s: do not divide %zu rows", name, end);
    return at;
}

/* Rows offsets[i] to offsets[i + 1] - 1 are input i; neighbors are counted from 0 in each. */
inputs load_unpacked(const model *m, const char *folder, size_t count)
{
    const arrays z = read_npz("inputs.npz", read_file(words("%s/inputs.npz", folder)));
    const array *const x = m->vocab ? get_array(z, "ids", 1, 0, 0, true)
                                    : get_array(z, "vectors", 2, 0, m->width, false);
    const array *t = find_array(z, "targets"), *amid = find_array(z, "continues"), *list = NULL;
    const size_t total = x->shape[0];
    must(count <= MOST_INPUTS, "inputs.npz: cannot have %zu inputs", count);
    const double *const at = get_offsets(z, "offsets", count + 1, total), *from = NULL;
    if (t) get_array(z, t->name, 1, m->pools ? count : total, 0, true);
    if (amid) get_array(z, amid->name, 1, count, 0, true);
    if (m->graph) list = get_array(z, "neighbors", 1, 0, 0, true);
    if (m->graph) from = get_offsets(z, "neighbors_offsets", total + 1, list->count);
    inputs out = {count, take(count, sizeof *out.list)};
    for (size_t i = 0; i < count; i++) {
        const size_t first = (size_t)at[i], n = (size_t)at[i + 1] - first;
        input *const in = &out.list[i];
        *in = rows_of(m, x, first, n);
        in->continues = amid && amid->v[i] != 0;
        if (t) in->target = t->v + (m->pools ? i : first);
        if (!m->graph) continue;
        size_t k = (size_t)from[first];
        edges e = new_edges(n, (size_t)from[first + n] - k);
        for (size_t row = 0; row < n; row++)
            for (; (double)k < from[first + row + 1]; k++)
                add_edge(&e, (double)row, list->v[k], false);
        in->edges = graph_of(e);
    }
    return out;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static void hash_u64(SHA256_CTX *h, uint64_t v)
{
    SHA256_Update(h, &v, sizeof v);
}

const char *hash_inputs(const input *list, size_t n, size_t tokens)
{
    SHA256_CTX h;
    SHA256_Init(&h);
    hash_u64(&h, n);
    for (const input *x = list; x < list + n; x++) {
        const size_t rows = tokens && x->tokens > tokens && !x->edges ? tokens : x->tokens;
        const uint64_t about[5] = {1, rows, x->width, x->width == 0, x->edges != NULL};
        SHA256_Update(&h, about, sizeof about);
        SHA256_Update(&h, x->x, rows * x->width * sizeof *x->x);
        for (size_t i = 0; !x->width && i < rows; i++) hash_u64(&h, (uint64_t)x->x[i]);
        for (size_t k = 0; x->edges && k < rows; k++) {
            const size_t from = x->edges->from[k], end = x->edges->from[k + 1];
            hash_u64(&h, end - from);
            SHA256_Update(&h, x->edges->list + from, (end - from) * sizeof *x->edges->list);
        }
    }
    return hash_end(&h);
}
