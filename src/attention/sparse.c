/* sparse.c - sparse attention: softmax over the list of keys of each query.
 *
 * Three orders of work, chosen by the graph:
 *   rows       scores, weights, values of one row after the other: where the keys fit the cache, or
 *              a row has few of them;
 *   blocks     where every row has many keys of a large graph: the scores of all rows, block by
 *              block of keys (sparse_blocks.c), then all weights, then all values, so that a row
 *              still subtracts its largest score. Takes one float per edge, as the graph itself;
 *   schedule   where a blocked order of the edges was built before (edge_schedule.c; training):
 *              scores, weights and values of a segment at once, with an online softmax. */
#include "base/support.h"
#include "sparse.h"
#include "edge_schedule.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT = 64 /* rows of one unit of work */ };

typedef struct shared {
    const sparse_job *w;
    float *scores;        /* blocks: edge e of row i at e + i SCORE_PAD, since a row is padded */
    float *inverse_sum;   /* blocks: of each row, 1 / the sum of its weights */
    softmax_state *state; /* schedule: of each row so far */
    atomic_bool no_memory;
} shared;

static size_t unit_end(const sparse_job *w, size_t unit)
{
    const size_t n = w->q->rows;
    return n - unit * UNIT < UNIT ? n : (unit + 1) * UNIT;
}

static void save_lse(const sparse_job *w, size_t i, softmax_state state)
{
    if (w->lse) w->lse[i] = state.row_max + logf(state.sum);
}

static void empty_row(const sparse_job *w, size_t i)
{
    memset(row_of(&w->y, i), 0, w->y.cols * sizeof(float));
    if (w->lse) w->lse[i] = -INFINITY;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Rows i and i + 1 by the kernel for two, which saves no scores; false: it does not apply. */
static bool attend_two_rows(const sparse_job *w, size_t i, size_t end)
{
    if (w->scores || !w->kernel->two_rows || i + 2 > end || w->pattern->kind != PARE_GRAPH ||
        w->k->cols > SMALL_DIM || w->v->cols > SMALL_DIM)
        return false;
    const size_t *const ptr = w->graph->ptr + i;
    if (ptr[1] - ptr[0] - 1 >= FEW_KEYS || ptr[2] - ptr[1] - 1 >= FEW_KEYS) return false;
    const row_pair p = {.q = {row_of(w->q, i), row_of(w->q, i + 1)},
                        .y = {row_of(&w->y, i), row_of(&w->y, i + 1)},
                        .idx = {w->graph->idx + ptr[0], w->graph->idx + ptr[1]},
                        .n = {ptr[1] - ptr[0], ptr[2] - ptr[1]},
                        .k = rows_of(w->k),
                        .v = rows_of(w->v),
                        .scale = w->scale};
    softmax_state state[2];
    w->kernel->two_rows(&p, w->lse ? state : NULL);
    for (size_t r = 0; w->lse && r < 2; r++) save_lse(w, i + r, state[r]);
    return true;
}

static void attend_rows(void *ctx, size_t unit)
{
    shared *const b = ctx;
    const sparse_job *const w = b->w;
    const sparse_rows k = rows_of(w->k), v = rows_of(w->v);
    const size_t n = w->q->rows, end = unit_end(w, unit);
    size_t longest = 0;
    for (size_t i = unit * UNIT; i < end; i++) {
        const size_t count = pare_visible(w->pattern, w->graph, n, i).count;
        if (count > longest) longest = count;
    }
    /* A graph has lists of keys; that of a window is written down. */
    const bool graph = w->pattern->kind == PARE_GRAPH;
    float *const s = malloc((longest + SCORE_PAD) * sizeof *s);
    uint32_t *const list = malloc((graph ? 1 : longest) * sizeof *list);
    if (!s || !list) atomic_store(&b->no_memory, true);
    for (size_t i = unit * UNIT; s && list && i < end; i++) {
        if (attend_two_rows(w, i, end)) {
            i++;
            continue;
        }
        const pare_keys keys = pare_visible(w->pattern, w->graph, n, i);
        const uint32_t *const idx = graph ? keys.list : list;
        for (size_t j = 0; !graph && j < keys.count; j++) list[j] = (uint32_t)pare_key(&keys, j);
        if (keys.count == 0) {
            empty_row(w, i);
            continue;
        }
        w->kernel->scores(s, row_of(w->q, i), &k, w->scale, idx, keys.count);
        float *const saved = w->scores ? w->scores + w->graph->ptr[i] : NULL;
        const softmax_state state = w->kernel->weights(s, saved, keys.count, SOFTMAX_EMPTY);
        w->kernel->values(row_of(&w->y, i), s, &v, idx, keys.count, 1 / state.sum, 0);
        save_lse(w, i, state);
    }
    free(s);
    free(list);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void score_segment(void *ctx, size_t i, size_t first, size_t count)
{
    const shared *const b = ctx;
    const sparse_job *const w = b->w;
    const sparse_rows k = rows_of(w->k);
    w->kernel->scores(b->scores + first + i * SCORE_PAD, row_of(w->q, i), &k, w->scale,
                      w->graph->idx + first, count);
}

static void weigh_rows(void *ctx, size_t unit)
{
    const shared *const b = ctx;
    const sparse_job *const w = b->w;
    for (size_t i = unit * UNIT; i < unit_end(w, unit); i++) {
        const size_t first = w->graph->ptr[i], count = w->graph->ptr[i + 1] - first;
        empty_row(w, i);
        if (count == 0) continue;
        float *const s = b->scores + first + i * SCORE_PAD;
        const softmax_state state = w->kernel->weights(s, NULL, count, SOFTMAX_EMPTY);
        b->inverse_sum[i] = 1 / state.sum;
        save_lse(w, i, state);
    }
}

static void value_segment(void *ctx, size_t i, size_t first, size_t count)
{
    const shared *const b = ctx;
    const sparse_job *const w = b->w;
    const sparse_rows v = rows_of(w->v);
    w->kernel->values(row_of(&w->y, i), b->scores + first + i * SCORE_PAD, &v,
                      w->graph->idx + first, count, b->inverse_sum[i], 1);
}

/* ---- schedule -------------------------------------------------------------------------------- */

/* Some more keys of a row, MAX_EDGES at a time: where a larger score comes, y is rescaled. */
static void attend_segment(void *ctx, size_t segment)
{
    const shared *const b = ctx;
    const sparse_job *const w = b->w;
    const pare_visits *const schedule = w->schedule;
    const sparse_rows k = rows_of(w->k), v = rows_of(w->v);
    const size_t i = schedule->row[segment], ahead = schedule->row[segment + SEGMENTS_AHEAD];
    const size_t end = schedule->start[segment + 1];
    prefetch_row(w->q, ahead);
    prefetch_row(&w->y, ahead);
    for (size_t first = schedule->start[segment]; first < end; first += MAX_EDGES) {
        const size_t n = end - first < MAX_EDGES ? end - first : MAX_EDGES;
        const uint32_t *const idx = schedule->neighbor + first;
        float s[MAX_EDGES + SCORE_PAD];
        w->kernel->scores(s, row_of(w->q, i), &k, w->scale, idx, n);
        float *const saved = w->scores ? w->scores + first : NULL;
        b->state[i] = w->kernel->weights(s, saved, n, b->state[i]);
        w->kernel->values(row_of(&w->y, i), s, &v, idx, n, 1, b->state[i].rescale);
    }
}

static void normalize_rows(void *ctx, size_t unit)
{
    const shared *const b = ctx;
    const sparse_job *const w = b->w;
    for (size_t i = unit * UNIT; i < unit_end(w, unit); i++) {
        float *const y = row_of(&w->y, i);
        const float by = 1 / b->state[i].sum;
        if (w->graph->ptr[i] == w->graph->ptr[i + 1]) {
            empty_row(w, i);
            continue;
        }
        for (size_t c = 0; c < w->y.cols; c++) y[c] *= by;
        save_lse(w, i, b->state[i]);
    }
}

pare_status sparse_attend(const sparse_job *w, const pare_exec *exec, pare_err *err)
{
    shared b = {.w = w};
    const size_t n = w->q->rows, units = (n + UNIT - 1) / UNIT;
    if (w->schedule && w->schedule->blocks > 1) {
        b.state = malloc(n * sizeof *b.state);
        if (!b.state) return pare_no_memory(err);
        for (size_t i = 0; i < n; i++) b.state[i] = SOFTMAX_EMPTY;
        edge_schedule_run(w->schedule, attend_segment, &b, exec);
        pare_parallel(exec, units, normalize_rows, &b);
        free(b.state);
        return PARE_OK;
    }
    const bool graph = w->pattern->kind == PARE_GRAPH && !w->schedule;
    const size_t k_block = graph ? key_block_size(w->graph, w->k->cols) : n;
    const size_t v_block = graph ? key_block_size(w->graph, w->v->cols) : n;
    if (k_block < n || v_block < n) {
        b.scores = malloc((w->graph->ptr[n] + n * SCORE_PAD) * sizeof *b.scores);
        b.inverse_sum = malloc(n * sizeof *b.inverse_sum);
        pare_status st = b.scores && b.inverse_sum ? PARE_OK : pare_no_memory(err);
        if (!st) st = for_key_blocks(w->graph, k_block, score_segment, &b, exec, err);
        if (!st) pare_parallel(exec, units, weigh_rows, &b);
        if (!st) st = for_key_blocks(w->graph, v_block, value_segment, &b, exec, err);
        free(b.scores);
        free(b.inverse_sum);
        return st;
    }
    const pare_status st = pare_parallel_until(exec, units, attend_rows, &b, err);
    return atomic_load(&b.no_memory) ? pare_no_memory(err) : st;
}
