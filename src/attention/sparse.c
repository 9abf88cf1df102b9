/* Attention over lists of keys. Where keys lie close together or are few, row after row: scores,
 * weights, values. Where every row sees many keys of a large graph, in blocks of keys that stay in
 * the cache (list_sweep.c): the scores of all rows, then all weights, then all values, so that each
 * row still subtracts its largest score. That takes one number an edge, as the graph itself does.
 * Where the order of visits was written down before (training), block after block as well, but
 * scores, weights and values of a stretch at once: a row keeps the largest score so far. */
#include "sparse.h"
#include "edge_schedule.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { UNIT = 64 /* rows of one unit of work */ };

static list_rows rows_of(const pare_mat32 *m)
{
    return (list_rows){m->v, m->ld, m->cols};
}

static void keep(const listed_job *w, size_t i, list_sum sum)
{
    if (w->lse) w->lse[i] = sum.top + logf(sum.sum);
}

static void empty_row(const listed_job *w, size_t i)
{
    memset(w->y.v + i * w->y.ld, 0, w->y.cols * sizeof(float));
    if (w->lse) w->lse[i] = -INFINITY;
}

/* ---- row after row ----------------------------------------------------------------------------
 */

static pare_keys keys_of(const listed_job *w, size_t i)
{
    return pare_visible(w->pattern, w->graph, w->q->rows, i);
}

/* The keys as a list: a graph has one, a window's is written into `room`. */
static const uint32_t *list_of(const pare_keys *keys, uint32_t *room)
{
    if (keys->list) return keys->list;
    for (size_t j = 0; j < keys->count; j++) room[j] = (uint32_t)pare_key(keys, j);
    return room;
}

/* The values are asked for while the keys are being multiplied. */
static void one_row(const listed_job *w, size_t i, const uint32_t *idx, size_t n, float *s)
{
    const list_rows k = rows_of(w->k), v = rows_of(w->v);
    w->kernel->scores(s, w->q->v + i * w->q->ld, &k, w->scale, idx, n);
    float *const kept = w->scores ? w->scores + w->graph->ptr[i] : NULL;
    const list_sum sum = w->kernel->weights(s, kept, n, LIST_NOTHING);
    w->kernel->values(w->y.v + i * w->y.ld, s, &v, idx, n, 1 / sum.sum, 0);
    keep(w, i, sum);
}

/* Rows i and i + 1 are for the kernel that takes two, which keeps no scores. */
static bool is_pair(const listed_job *w, size_t i, size_t end)
{
    if (w->scores) return false;
    if (!w->kernel->pair || i + 2 > end || w->pattern->kind != PARE_GRAPH) return false;
    if (w->k->cols > LIST_NARROW || w->v->cols > LIST_NARROW) return false;
    const size_t *const at = w->graph->ptr + i;
    return at[1] - at[0] - 1 < LIST_FEW && at[2] - at[1] - 1 < LIST_FEW;
}

static void two_rows(const listed_job *w, size_t i)
{
    const size_t *const at = w->graph->ptr + i;
    const list_pair p = {.q = {w->q->v + i * w->q->ld, w->q->v + (i + 1) * w->q->ld},
                         .y = {w->y.v + i * w->y.ld, w->y.v + (i + 1) * w->y.ld},
                         .idx = {w->graph->idx + at[0], w->graph->idx + at[1]},
                         .n = {at[1] - at[0], at[2] - at[1]},
                         .k = rows_of(w->k),
                         .v = rows_of(w->v),
                         .scale = w->scale};
    list_sum sum[2];
    w->kernel->pair(&p, w->lse ? sum : NULL);
    for (size_t r = 0; w->lse && r < 2; r++) keep(w, i + r, sum[r]);
}

static bool rows_from(const listed_job *w, size_t first)
{
    const size_t n = w->q->rows, end = n - first < UNIT ? n : first + UNIT;
    size_t most = 0;
    for (size_t i = first; i < end; i++) {
        const size_t count = keys_of(w, i).count;
        if (count > most) most = count;
    }
    float *const s = malloc((most + LIST_PAD) * sizeof *s);
    uint32_t *const room = malloc((w->pattern->kind == PARE_GRAPH ? 1 : most) * sizeof *room);
    for (size_t i = first; s && room && i < end; i++) {
        if (is_pair(w, i, end)) {
            two_rows(w, i++);
            continue;
        }
        const pare_keys keys = keys_of(w, i);
        if (keys.count == 0)
            empty_row(w, i);
        else
            one_row(w, i, list_of(&keys, room), keys.count, s);
    }
    const bool enough = s && room;
    free(s);
    free(room);
    return enough;
}

typedef struct shared {
    const listed_job *w;
    atomic_bool no_memory;
} shared;

static void unit_of_rows(void *ctx, size_t b)
{
    shared *const s = ctx;
    if (!rows_from(s->w, b * UNIT)) atomic_store(&s->no_memory, true);
}

static pare_status by_rows(const listed_job *w, const pare_exec *exec, pare_err *err)
{
    shared s = {.w = w};
    const size_t units = (w->q->rows + UNIT - 1) / UNIT;
    const pare_status st = pare_parallel_until(exec, units, unit_of_rows, &s, err);
    return atomic_load(&s.no_memory) ? pare_no_memory(err) : st;
}

/* ---- block after block ------------------------------------------------------------------------
 */

typedef struct blocked {
    const listed_job *w;
    float *s;  /* edge e of row i at e + i LIST_PAD: a row writes beyond its end */
    float *by; /* of each row, 1 / the sum of its weights */
} blocked;

static void score_segment(void *ctx, size_t i, size_t first, size_t count)
{
    const blocked *const b = ctx;
    const listed_job *const w = b->w;
    const list_rows k = rows_of(w->k);
    w->kernel->scores(b->s + first + i * LIST_PAD, w->q->v + i * w->q->ld, &k, w->scale,
                      w->graph->idx + first, count);
}

static void weigh_rows(void *ctx, size_t unit)
{
    const blocked *const b = ctx;
    const listed_job *const w = b->w;
    const size_t n = w->q->rows, end = n - unit * UNIT < UNIT ? n : (unit + 1) * UNIT;
    for (size_t i = unit * UNIT; i < end; i++) {
        const size_t first = w->graph->ptr[i], count = w->graph->ptr[i + 1] - first;
        empty_row(w, i);
        if (count == 0) continue;
        float *const s = b->s + first + i * LIST_PAD;
        const list_sum sum = w->kernel->weights(s, NULL, count, LIST_NOTHING);
        b->by[i] = 1 / sum.sum;
        keep(w, i, sum);
    }
}

static void value_segment(void *ctx, size_t i, size_t first, size_t count)
{
    const blocked *const b = ctx;
    const listed_job *const w = b->w;
    const list_rows v = rows_of(w->v);
    w->kernel->values(w->y.v + i * w->y.ld, b->s + first + i * LIST_PAD, &v, w->graph->idx + first,
                      count, b->by[i], 1);
}

static pare_status by_blocks(const listed_job *w, const pare_exec *exec, pare_err *err)
{
    const pare_graph *const g = w->graph;
    const size_t n = g->n, room = g->ptr[n] + n * LIST_PAD;
    blocked b = {.w = w, .s = malloc(room * sizeof *b.s), .by = malloc(n * sizeof *b.by)};
    pare_status st = b.s && b.by ? PARE_OK : pare_no_memory(err);
    if (!st) st = list_sweep(g, list_block(g, w->k->cols), SIZE_MAX, score_segment, &b, exec, err);
    if (!st) {
        pare_parallel(exec, (n + UNIT - 1) / UNIT, weigh_rows, &b);
        st = list_sweep(g, list_block(g, w->v->cols), SIZE_MAX, value_segment, &b, exec, err);
    }
    free(b.s);
    free(b.by);
    return st;
}

/* ---- in the order of visits --------------------------------------------------------------------
 */

typedef struct visited {
    const listed_job *w;
    list_sum *sum; /* of each row, so far */
} visited;

/* Some more keys of row i: what is there already fades where a larger score comes. */
static void more_keys(const visited *b, size_t i, size_t first, size_t n)
{
    const listed_job *const w = b->w;
    const list_rows k = rows_of(w->k), v = rows_of(w->v);
    const uint32_t *const idx = w->visits->other + first;
    float s[VISIT_MOST + LIST_PAD];
    w->kernel->scores(s, w->q->v + i * w->q->ld, &k, w->scale, idx, n);
    float *const kept = w->scores ? w->scores + first : NULL;
    const list_sum sum = b->sum[i] = w->kernel->weights(s, kept, n, b->sum[i]);
    w->kernel->values(w->y.v + i * w->y.ld, s, &v, idx, n, 1, sum.fade);
}

static void visit_stretch(void *ctx, size_t s)
{
    const visited *const b = ctx;
    const pare_visits *const v = b->w->visits;
    const size_t i = v->row[s], ahead = v->row[s + VISIT_AHEAD];
    visit_ask_for(b->w->q, ahead);
    visit_ask_for(&b->w->y, ahead);
    for (size_t at = v->start[s], end = v->start[s + 1]; at < end; at += VISIT_MOST)
        more_keys(b, i, at, end - at < VISIT_MOST ? end - at : VISIT_MOST);
}

static void end_rows(void *ctx, size_t unit)
{
    const visited *const b = ctx;
    const listed_job *const w = b->w;
    const size_t n = w->q->rows, end = n - unit * UNIT < UNIT ? n : (unit + 1) * UNIT;
    for (size_t i = unit * UNIT; i < end; i++) {
        float *const y = w->y.v + i * w->y.ld;
        const float by = 1 / b->sum[i].sum;
        if (w->graph->ptr[i] == w->graph->ptr[i + 1]) {
            empty_row(w, i);
            continue;
        }
        for (size_t c = 0; c < w->y.cols; c++) y[c] *= by;
        keep(w, i, b->sum[i]);
    }
}

static pare_status by_visits(const listed_job *w, const pare_exec *exec, pare_err *err)
{
    const size_t n = w->q->rows;
    visited b = {.w = w, .sum = malloc(n * sizeof *b.sum)};
    if (!b.sum) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) b.sum[i] = LIST_NOTHING;
    visit_all(w->visits, visit_stretch, &b, exec);
    pare_parallel(exec, (n + UNIT - 1) / UNIT, end_rows, &b);
    free(b.sum);
    return PARE_OK;
}

pare_status listed_attend(const listed_job *w, const pare_exec *exec, pare_err *err)
{
    if (w->visits) return w->visits->blocks > 1 ? by_visits(w, exec, err) : by_rows(w, exec, err);
    const bool pays =
        w->pattern->kind == PARE_GRAPH && (list_block(w->graph, w->k->cols) < w->graph->n ||
                                           list_block(w->graph, w->v->cols) < w->graph->n);
    return pays ? by_blocks(w, exec, err) : by_rows(w, exec, err);
}
