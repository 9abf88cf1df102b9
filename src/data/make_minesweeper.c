/* make_minesweeper.c - boards like the Minesweeper graph of the heterophilous-graphs benchmark, of
 * any side.
 *
 *   node r side + c; edges between the up to eight neighbors, each once, u < v, in order;
 *   labels    exactly round(n / 5) mines, uniformly placed;
 *   features  one of seven: 0 "unknown" (exactly round(n / 2) nodes, mines among them), else
 *             1 + min(mines around, 5);
 *   masks     ten splits; per class half for training, a quarter each to choose and to test.
 * Streams of the seed: 0 mines, 1 unknown, 2 + k split k. */
#include "base/array.h"
#include "base/support.h"
#include <pare/data.h>

enum { FEATURES = 7, SPLITS = 10, MOST_SIDE = 8192 };

typedef struct board {
    size_t side, n, nedges;
    float *features;         /* n x 7 */
    int64_t *labels, *edges; /* n; nedges x 2 */
    uint8_t *mask[3];        /* train, val, test: 10 x n */
    uint32_t *order;         /* n, for shuffles */
} board;

static void shuffle_nodes(board *b, pare_rng rng)
{
    for (size_t i = 0; i < b->n; i++) b->order[i] = (uint32_t)i;
    pare_rng_shuffle(&rng, b->order, b->n);
}

static void draw_board(board *b, uint64_t seed)
{
    /* Right, down left, down, down right: so every pair comes once and in order. */
    static const int step[4][2] = {{0, 1}, {1, -1}, {1, 0}, {1, 1}};
    const int64_t side = (int64_t)b->side;
    size_t edges = 0;
    for (int64_t r = 0; r < side; r++)
        for (int64_t c = 0; c < side; c++)
            for (size_t k = 0; k < 4; k++) {
                const int64_t r2 = r + step[k][0], c2 = c + step[k][1];
                if (r2 >= side || c2 < 0 || c2 >= side) continue;
                b->edges[2 * edges] = r * side + c;
                b->edges[2 * edges++ + 1] = r2 * side + c2;
            }
    PARE_ASSERT(edges == b->nedges);

    shuffle_nodes(b, pare_rng_at(seed, 0));
    for (size_t i = 0; i < (2 * b->n + 5) / 10; i++) b->labels[b->order[i]] = 1;

    uint8_t *around = b->mask[0]; /* mines around a node; unused until the splits are drawn */
    for (size_t e = 0; e < b->nedges; e++) {
        const int64_t u = b->edges[2 * e], v = b->edges[2 * e + 1];
        around[u] = (uint8_t)(around[u] + b->labels[v]);
        around[v] = (uint8_t)(around[v] + b->labels[u]);
    }
    shuffle_nodes(b, pare_rng_at(seed, 1));
    for (size_t i = 0; i < b->n; i++) {
        const size_t node = b->order[i], count = around[node] < 5 ? around[node] : 5;
        const bool unknown = i < (b->n + 1) / 2;
        b->features[node * FEATURES + (unknown ? 0 : 1 + count)] = 1;
    }
    for (size_t i = 0; i < b->n; i++) around[i] = 0;

    for (size_t split = 0; split < SPLITS; split++) {
        pare_rng rng = pare_rng_at(seed, 2 + split);
        for (int64_t label = 0; label < 2; label++) {
            size_t m = 0;
            for (size_t i = 0; i < b->n; i++)
                if (b->labels[i] == label) b->order[m++] = (uint32_t)i;
            pare_rng_shuffle(&rng, b->order, m);
            for (size_t i = 0; i < m; i++) {
                const size_t part = i < m / 2 ? 0 : i < m / 2 + m / 4 ? 1 : 2;
                b->mask[part][split * b->n + b->order[i]] = 1;
            }
        }
    }
}

pare_status pare_make_minesweeper(const char *path, size_t side, uint64_t seed, bool overwrite,
                                  pare_err *err)
{
    static const char *const names[6] = {"node_features", "node_labels", "edges",
                                         "train_masks",   "val_masks",   "test_masks"};
    if (side < 2 || side > MOST_SIDE)
        return pare_fail(err, PARE_ERR_USAGE, "a board of side %zu: from 2 to %d is possible", side,
                         MOST_SIDE);
    const size_t n = side * side, nedges = 4 * n - 6 * side + 2;
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    board b = {side,
               n,
               nedges,
               pare_alloc(a, n, FEATURES * sizeof *b.features),
               pare_alloc(a, n, sizeof *b.labels),
               pare_alloc(a, nedges, 2 * sizeof *b.edges),
               {pare_alloc(a, n, SPLITS), pare_alloc(a, n, SPLITS), pare_alloc(a, n, SPLITS)},
               pare_alloc(a, n, sizeof *b.order)};
    pare_status st = PARE_OK;
    if (!b.features || !b.labels || !b.edges || !b.mask[0] || !b.mask[1] || !b.mask[2] || !b.order)
        st = pare_no_memory(err);
    if (st == PARE_OK) {
        draw_board(&b, seed);
        const pare_array arrays[6] = {
            {PARE_F32, 2, {n, FEATURES}, b.features}, {PARE_I64, 1, {n}, b.labels},
            {PARE_I64, 2, {nedges, 2}, b.edges},      {PARE_BOOL, 2, {SPLITS, n}, b.mask[0]},
            {PARE_BOOL, 2, {SPLITS, n}, b.mask[1]},   {PARE_BOOL, 2, {SPLITS, n}, b.mask[2]}};
        st = pare_npz_write(path, 6, names, arrays, true, overwrite, err);
    }
    pare_arena_free(a);
    return st;
}
