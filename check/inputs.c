/* inputs.c - what a certificate calls an input (docs/format.md: data, identity of the inputs): random
 * ones, .npy arrays, graphs in .npz, and whatever `pare verify --unpack` has written plainly. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

typedef struct edges { /* pairs (node, neighbor), of `nodes` nodes */
    job *j;
    size_t n, nodes;
    uint32_t (*pair)[2];
} edges;

static edges new_edges(job *j, size_t nodes, size_t most)
{
    must(j, nodes < UINT32_MAX && most <= j->o->most_balls, "a graph of %zu edges", most);
    return (edges){j, 0, nodes, take(j, most + 1, sizeof(uint32_t[2]))};
}

/* Neither loops nor other nodes; both ways, or one. */
static void add_edge(edges *e, int64_t u, int64_t v, bool both)
{
    const bool inside = u >= 0 && v >= 0 && u < (int64_t)e->nodes && v < (int64_t)e->nodes;
    must(e->j, inside, "an edge of nodes %lld and %lld, of %zu", (long long)u, (long long)v,
         e->nodes);
    for (int way = 0; way < 1 + both && u != v; way++) {
        e->pair[e->n][way] = (uint32_t)u;
        e->pair[e->n++][1 - way] = (uint32_t)v;
    }
}

static int by_pair(const void *a, const void *b)
{
    const uint32_t *const p = a, *const q = b;
    return p[0] != q[0] ? (p[0] > q[0]) - (p[0] < q[0]) : (p[1] > q[1]) - (p[1] < q[1]);
}

/* Each row ascending, none twice. */
static const graph *graph_of(const edges *e)
{
    graph *const g = take(e->j, 1, sizeof *g);
    size_t to = 0, row = 0;
    *g = (graph){e->nodes, take(e->j, e->nodes + 1, sizeof *g->from),
                 take(e->j, e->n + 1, sizeof *g->list)};
    qsort(e->pair, e->n, sizeof *e->pair, by_pair);
    for (size_t k = 0; k < e->n; k++) {
        if (k > 0 && by_pair(e->pair[k - 1], e->pair[k]) == 0) continue;
        while (row < e->pair[k][0]) g->from[++row] = to;
        g->list[to++] = e->pair[k][1];
    }
    while (row < e->nodes) g->from[++row] = to;
    return g;
}

/* Self loops, and for every second of the expander's degree a permutation and its inverse. */
const graph *complete_graph(job *j, const model *m, const graph *g)
{
    const cJSON *const p = find(m->architecture, "pattern"), *const x = find(p, "expander");
    const size_t degree = x ? get_count(j, x, "degree") : 0;
    philox random = {.seed = x ? get_seed(j, x, "seed") : 0, .stream = EXPANDER_STREAM};
    must(j, degree <= MOST_DEGREE, "expander: a degree of %zu", degree);
    edges e = new_edges(j, g->n, g->from[g->n] + g->n * (degree + 1));
    for (size_t i = 0; i < g->n; i++) {
        for (size_t k = g->from[i]; k < g->from[i + 1]; k++)
            add_edge(&e, (int64_t)i, g->list[k], false);
        if (flag(p, "self_loops")) e.pair[e.n][0] = e.pair[e.n][1] = (uint32_t)i;
        e.n += flag(p, "self_loops");
    }
    for (size_t r = 0; r < degree / 2; r++) {
        const uint32_t *const order = philox_order(j, &random, g->n, true);
        for (size_t i = 0; i < g->n; i++) add_edge(&e, (int64_t)i, order[i], true);
    }
    return graph_of(&e);
}

/* ---- one input ------------------------------------------------------------------------------- */

void must_fit(job *j, const model *m, const input *in)
{
    const bool right = m->vocab ? in->ids != NULL : in->x != NULL;
    must(j, in->tokens > 0 && (!m->context || in->tokens <= m->context),
         "an input of %zu tokens, the context is %zu", in->tokens, m->context);
    must(j, right, "the model takes %s", m->vocab ? "ids" : "vectors");
    for (size_t i = 0; m->vocab && i < in->tokens; i++)
        must(j, in->ids[i] >= 0 && (uint64_t)in->ids[i] < m->vocab, "id %lld is not below %zu",
             (long long)in->ids[i], m->vocab);
    for (size_t i = 0; !m->vocab && i < in->tokens * m->width; i++)
        must(j, isfinite(in->x[i]), "a nan or an inf in the inputs");
    must(j, !m->graph || (in->edges && in->edges->n == in->tokens), "the model needs a graph");
}

static input new_input(job *j, const model *m, size_t tokens)
{
    input in = {.tokens = tokens};
    size_t count;
    must(j,
         !__builtin_mul_overflow(tokens, m->vocab ? 1 : m->width, &count) &&
             count <= j->o->most_balls,
         "an input of %zu tokens is too large", tokens);
    if (m->vocab)
        in.ids = take(j, count, sizeof *in.ids);
    else
        in.x = take(j, count, sizeof *in.x);
    return in;
}

/* Rows `first` to `first + n - 1` of an array. */
static input input_of(job *j, const model *m, const array *a, size_t first, size_t n)
{
    const input in = new_input(j, m, n);
    const size_t width = m->vocab ? 1 : m->width;
    for (size_t i = 0; i < n * width; i++) {
        if (m->vocab)
            in.ids[i] = array_integer(a, first + i);
        else
            in.x[i] = array_number(a, first * width + i);
    }
    return in;
}

static int64_t *integers_of(job *j, const array *a, size_t first, size_t n)
{
    int64_t *const v = take(j, n + 1, sizeof *v);
    for (size_t i = 0; i < n; i++) v[i] = array_integer(a, first + i);
    return v;
}

/* sqrt(-2 ln(1 - a)) cos(2 pi b), a and b drawn one after the other */
static double normal(philox *p)
{
    const double radius = sqrt(-2 * log(1 - philox_uniform(p)));
    return radius * cos(6.283185307179586476925 * philox_uniform(p));
}

input random_input(job *j, const model *m, uint64_t seed, size_t number, size_t tokens)
{
    philox random = {.seed = seed, .stream = RANDOM_STREAM + number};
    input in = new_input(j, m, tokens);
    for (size_t i = 0; m->vocab && i < tokens; i++)
        in.ids[i] = (int64_t)philox_below(&random, m->vocab);
    for (size_t i = 0; !m->vocab && i < tokens * m->width; i++)
        in.x[i] = (double)(float)normal(&random);
    if (m->graph) { /* a ring */
        edges e = new_edges(j, tokens, 2 * tokens);
        for (size_t i = 0; i < tokens; i++)
            add_edge(&e, (int64_t)i, (int64_t)((i + 1) % tokens), true);
        in.edges = graph_of(&e);
    }
    must_fit(j, m, &in);
    return in;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char unsuited[] =
    "%s: does not suit the model, or is no .npy of ids or vectors and no "
    ".npz of a graph; then: pare verify CERT --unpack DIR";

/* [tokens], [batch, tokens], or the same with a width: one input a row; of ids for models with one
 * output for each token windows, one after the other, without a last one of a single token. */
static inputs inputs_of_array(job *j, const model *m, const char *path, array a)
{
    const size_t own = m->vocab ? 1 : 2;
    must(j,
         (a.ndim == own || a.ndim == own + 1) && a.count > 0 && a.count <= j->o->most_balls &&
             (m->vocab ? is_integer(&a) : a.shape[a.ndim - 1] == m->width),
         unsuited, path);
    const size_t batch = a.ndim > own ? a.shape[0] : 1, tokens = a.shape[a.ndim - own];
    const size_t most = m->context && m->context < WINDOW_TOKENS ? m->context : WINDOW_TOKENS;
    const bool windows = m->vocab && !m->pools;
    const size_t window = windows ? most : tokens;
    inputs out = {.list = take(j, windows ? a.count : batch, sizeof *out.list)};
    for (size_t b = 0; b < batch; b++)
        for (size_t at = 0; at + windows < tokens; at += window) {
            const size_t n = tokens - at < window ? tokens - at : window;
            out.list[out.n] = input_of(j, m, &a, b * tokens + at, n);
            out.list[out.n++].continues = at > 0;
        }
    return out;
}

static bool is_table(const array *a, size_t ndim, size_t rows, size_t cols, bool integers)
{
    return a && a->ndim == ndim && (!rows || a->shape[0] == rows) &&
           (!cols || a->shape[ndim - 1] == cols) && (!integers || is_integer(a));
}

/* A graph with masks of its test nodes; the targets of other nodes do not count. */
static inputs inputs_of_graph(job *j, const model *m, const char *path, npz z, size_t split)
{
    const array *const labels = npz_find(&z, "node_labels"), *const list = npz_find(&z, "edges");
    const array *const x = npz_find(&z, "node_features"), *const mask = npz_find(&z, "test_masks");
    const size_t n = labels ? labels->count : 0;
    must(j,
         !m->vocab && n > 0 && is_table(labels, 1, n, 0, true) &&
             is_table(x, 2, n, m->width, false) && is_table(list, 2, 0, 2, true) &&
             is_table(mask, 2, 0, n, true) && split < mask->shape[0],
         unsuited, path);
    inputs out = {1, 0, take(j, 1, sizeof *out.list)};
    edges e = new_edges(j, n, list->count);
    *out.list = input_of(j, m, x, 0, n);
    out.list->target = take(j, n, sizeof *out.list->target);
    for (size_t i = 0; i < n; i++)
        out.list->target[i] = array_integer(mask, split * n + i) ? array_integer(labels, i) : -1;
    for (size_t i = 0; i < list->shape[0]; i++)
        add_edge(&e, array_integer(list, 2 * i), array_integer(list, 2 * i + 1), true);
    if (m->graph) out.list->edges = graph_of(&e);
    return out;
}

static int by_size(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

/* The seed permutes documents, or inputs where there are few: `numbers` must be the first of them. Of a
 * part without numbers nobody knows why it was taken. */
static void check_numbers(job *j, const cJSON *data, const inputs *all, uint64_t seed)
{
    const cJSON *const numbers = find(data, "numbers"), *v = numbers ? numbers->child : NULL;
    const size_t count = get_count(j, data, "count");
    philox random = {.seed = seed, .stream = DRAW_STREAM};
    size_t *const unit = take(j, all->n, sizeof *unit), n = 0;
    for (size_t i = 0; i < all->n; i++)
        if (!all->list[i].continues) unit[n++] = i;
    for (size_t i = 0; n < FEWEST_DOCUMENTS && i < all->n; i++) unit[i] = i;
    if (n < FEWEST_DOCUMENTS) n = all->n;
    for (size_t i = 0; i + 1 < n; i++) {
        const size_t k = i + (size_t)philox_below(&random, n - i), drawn = unit[k];
        unit[k] = unit[i];
        unit[i] = drawn;
    }
    bool right = numbers ? count <= n : count == all->n || !find(data, "heldout");
    if (numbers && right) qsort(unit, count, sizeof *unit, by_size);
    for (size_t i = 0; right && v; i++, v = v->next) right = v->valuedouble == (double)unit[i];
    if (numbers || !right)
        state(j, right ? CONFIRMED : REFUTED, "data.numbers",
              right ? "the seed draws these inputs" : "they are not those that the seed draws");
}

/* Of a part: the inputs `numbers`, or `count` of them from `first` on; the first `tokens` tokens of
 * each (0: all). */
static inputs take_part(job *j, const cJSON *data, const inputs *in)
{
    const size_t count = get_count(j, data, "count"), tokens = get_count(j, data, "tokens");
    const cJSON *const numbers = find(data, "numbers"), *v = numbers ? numbers->child : NULL;
    const size_t first = numbers ? 0 : get_count(j, data, "first");
    must(j, first <= in->n && count <= in->n - first, "data: %zu inputs of %zu", count, in->n);
    must(j, !numbers || (size_t)cJSON_GetArraySize(numbers) == count, "data.numbers: not count");
    inputs out = {count, 0, take(j, count, sizeof *out.list)};
    double last = -1;
    for (size_t i = 0; i < count; i++, v = v ? v->next : NULL) {
        const double number = v ? v->valuedouble : (double)(first + i);
        must(j,
             (!v || cJSON_IsNumber(v)) && number > last && number < (double)in->n &&
                 number == floor(number),
             "data.numbers: are not ascending numbers of inputs");
        last = number;
        out.list[i] = in->list[(size_t)number];
        if (tokens == 0 || out.list[i].tokens <= tokens) continue;
        must(j, !out.list[i].edges, "data.tokens: a graph cannot be cut");
        out.list[i].tokens = tokens;
    }
    return out;
}

static inputs all_that_fit(job *j, const model *m, inputs in)
{
    in.width = m->vocab ? 0 : m->width;
    must(j, in.n > 0, "no input in the data");
    for (size_t i = 0; i < in.n; i++) must_fit(j, m, &in.list[i]);
    return in;
}

inputs load_inputs(job *j, const model *m, const cJSON *data, uint64_t seed, const char *path)
{
    const char *const kind = get_text(j, data, "kind"), *const end = strrchr(path, '.');
    const size_t count = get_count(j, data, "count");
    inputs out = {0};
    if (same(kind, "random")) {
        must(j, count <= MOST_INPUTS, "data.count: too many inputs");
        out.list = take(j, count, sizeof *out.list);
        for (; out.n < count; out.n++)
            out.list[out.n] = random_input(j, m, seed, out.n, get_count(j, data, "tokens"));
        return all_that_fit(j, m, out);
    }
    const bytes file = read_checked(j, "data", path, data);
    if (end && same(end, ".npz"))
        out = inputs_of_graph(j, m, path, read_npz(j, path, file), get_count(j, data, "split"));
    else
        out = inputs_of_array(j, m, path, read_npy(j, path, file));
    out = all_that_fit(j, m, out);
    if (!same(kind, "part")) return out;
    const inputs part_of_it = take_part(j, data, &out);
    check_numbers(j, data, &out, seed);
    return all_that_fit(j, m, part_of_it);
}

/* ---- unpacked inputs ------------------------------------------------------------------------- */

/* `count` offsets that do not fall, from 0 to `end`. */
static bool offsets_are_right(const array *a, size_t count, size_t end)
{
    bool good = is_table(a, 1, count, 0, true) && count > 0 && array_integer(a, 0) == 0 &&
                array_integer(a, count - 1) == (int64_t)end;
    for (size_t i = 0; good && i + 1 < count; i++)
        good = array_integer(a, i) <= array_integer(a, i + 1);
    return good;
}

/* Rows offsets[i] to offsets[i + 1] - 1 are input i; neighbors are counted from 0 in each. */
inputs load_unpacked(job *j, const model *m, const char *folder, size_t count)
{
    const npz z = read_npz(j, "inputs.npz", read_file(j, words(j, "%s/inputs.npz", folder)));
    const array *const x = npz_find(&z, m->vocab ? "ids" : "vectors"), *const at =
                                                                           npz_find(&z, "offsets");
    const array *const t = npz_find(&z, "targets"), *const amid = npz_find(&z, "continues");
    const array *const from = npz_find(&z, "neighbors_offsets"), *const list =
                                                                     npz_find(&z, "neighbors");
    const size_t total = x && x->ndim ? x->shape[0] : 0;
    must(j,
         count > 0 && count <= MOST_INPUTS && offsets_are_right(at, count + 1, total) &&
             (m->vocab ? is_table(x, 1, 0, 0, true) : is_table(x, 2, 0, m->width, false)) &&
             (!amid || is_table(amid, 1, count, 0, true)) &&
             (!t || is_table(t, 1, m->pools ? count : total, 0, true)) &&
             (!m->graph ||
              (is_table(list, 1, 0, 0, true) && offsets_are_right(from, total + 1, list->count))),
         "inputs.npz: does not suit the certificate");
    inputs out = {count, 0, take(j, count, sizeof *out.list)};
    for (size_t i = 0; i < count; i++) {
        const size_t first = (size_t)array_integer(at, i);
        const size_t n = (size_t)array_integer(at, i + 1) - first;
        input *const in = &out.list[i];
        *in = input_of(j, m, x, first, n);
        in->continues = amid && array_integer(amid, i) != 0;
        if (t) in->target = integers_of(j, t, m->pools ? i : first, m->pools ? 1 : n);
        if (!m->graph) continue;
        int64_t k = array_integer(from, first);
        edges e = new_edges(j, n, (size_t)(array_integer(from, first + n) - k));
        for (size_t row = 0; row < n; row++)
            for (; k < array_integer(from, first + row + 1); k++)
                add_edge(&e, (int64_t)row, array_integer(list, (size_t)k), false);
        in->edges = graph_of(&e);
    }
    return all_that_fit(j, m, out);
}

/* ---- hashes ---------------------------------------------------------------------------------- */

void hash_inputs(const inputs *in, size_t tokens, char hex[65])
{
    SHA256_CTX h;
    SHA256_Init(&h);
    hash_u64(&h, in->n);
    for (size_t i = 0; i < in->n; i++) {
        const input *const x = &in->list[i];
        const size_t n = tokens && x->tokens > tokens && !x->edges ? tokens : x->tokens;
        const uint64_t about[5] = {1, n, in->width, x->ids != NULL, x->edges != NULL};
        for (int k = 0; k < 5; k++) hash_u64(&h, about[k]);
        if (x->ids) SHA256_Update(&h, x->ids, n * sizeof *x->ids);
        if (x->x) SHA256_Update(&h, x->x, n * in->width * sizeof *x->x);
        for (size_t k = 0; x->edges && k < n; k++) {
            const size_t from = x->edges->from[k], end = x->edges->from[k + 1];
            hash_u64(&h, end - from);
            SHA256_Update(&h, x->edges->list + from, (end - from) * sizeof *x->edges->list);
        }
    }
    hash_end(&h, hex);
}
