/* poly_scan.c - polynomial attention of the f32 engine: sums over keys, and rows from them.
 *
 * full:   sums over all keys, then every row from them;
 * causal: chunks of POLY_KEYS rows; a chunk sees the sums of the chunks before it, and its own keys
 *         with exact weights e^x. Sums are in units of e^(the largest a so far), as in an online
 *         softmax.
 *
 * Chunks are cut into at most SEGMENTS, whose sums the threads compute first; one thread computes
 * them on its way, by the same operations. */
#include "poly.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SEGMENTS = 16,
    LEAST_CHUNKS = 64, /* of a segment */
    ROWS = 512         /* of a unit of work that computes rows */
};

/* ---- segments of chunks ---------------------------------------------------------------------- */

pare_status poly_segments_new(poly_segments *s, size_t least_chunks, pare_arena *a, pare_err *err)
{
    const poly_job *const w = s->w;
    size_t size;
    s->chunks = (w->chunks + SEGMENTS - 1) / SEGMENTS;
    if (s->chunks < least_chunks) s->chunks = least_chunks;
    s->count = (w->chunks + s->chunks - 1) / s->chunks;
    s->sums = pare_alloc(a, s->count + 1, sizeof *s->sums);
    if (!s->sums || !pare_mul(&size, w->cols4, w->table.ld)) return pare_no_memory(err);
    for (size_t b = 0; b <= s->count; b++) {
        s->sums[b] = (poly_sums){pare_alloc(a, size, sizeof(double)), -INFINITY};
        if (!s->sums[b].v) return pare_no_memory(err);
    }
    return PARE_OK;
}

size_t poly_segment_end(const poly_segments *s, size_t i)
{
    const size_t end = (i + 1) * s->chunks;
    return end < s->w->chunks ? end : s->w->chunks;
}

size_t poly_chunk_at(const poly_segments *s, size_t t)
{
    return s->backward ? s->w->chunks - 1 - t : t;
}

double poly_unit_of(const poly_segments *s, size_t chunk)
{
    return s->backward ? -s->w->shift[chunk] : s->w->shift[chunk];
}

/* The sums of segment i alone, into sums[i + 1]. */
static void sum_segment(void *ctx, size_t i)
{
    poly_segments *const s = ctx;
    const poly_job *const w = s->w;
    layout l = {0};
    poly_workspace_new(w, &l);
    if (!layout_alloc(&l)) {
        atomic_store(&s->no_memory, true);
        return;
    }
    const poly_workspace r = poly_workspace_new(w, &l);
    poly_sums *const to = &s->sums[i + 1];
    const size_t end = poly_segment_end(s, i);
    for (size_t t = i * s->chunks; t < end; t++) {
        const size_t chunk = poly_chunk_at(s, t);
        poly_set_shift(to, w, poly_unit_of(s, chunk));
        s->add_chunk(s->ctx, &r, chunk);
        if ((t + 1) % w->sizes.flush == 0 || t + 1 == end) poly_flush(to, &r, w);
    }
    free(l.base);
}

/* sums[i + 1] becomes the sum of all chunks before segment i + 1. */
static void join_segment(poly_segments *s, size_t i)
{
    const poly_sums *const before = &s->sums[i];
    poly_sums *const to = &s->sums[i + 1];
    const double rescale = poly_rescale_factor(before, to->shift);
    for (size_t e = 0; e < s->w->cols4 * s->w->table.ld; e++) to->v[e] += rescale * before->v[e];
}

bool poly_sum_segments(poly_segments *s, const pare_exec *exec)
{
    pare_parallel(exec, s->count, sum_segment, s);
    if (atomic_load(&s->no_memory)) return false;
    for (size_t i = 0; i < s->count; i++) join_segment(s, i);
    return true;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void add_keys(const void *ctx, const poly_workspace *r, size_t chunk)
{
    const poly_job *const w = ctx;
    poly_load_keys(r, w, chunk);
    poly_add_loaded(r, w, chunk_end(w, chunk) - chunk * POLY_KEYS);
}

/* Full: ROWS rows from the state. */
static void full_rows(void *ctx, size_t b)
{
    poly_segments *const s = ctx;
    const poly_job *const w = s->w;
    const size_t first = b * ROWS, end = w->rows - first < ROWS ? w->rows : first + ROWS;
    layout l = {0};
    poly_panel_workspace_new(w, &l);
    if (!layout_alloc(&l)) {
        atomic_store(&s->no_memory, true);
        return;
    }
    const poly_panel_workspace r = poly_panel_workspace_new(w, &l);
    poly_rows(w, &r, s->state, NULL, 0, first, end);
    free(l.base);
}

typedef struct causal_workspace {
    poly_workspace keys;
    poly_panel_workspace rows;
    float *state;
    double *sums;
} causal_workspace;

static causal_workspace causal_workspace_new(const poly_job *w, layout *l)
{
    causal_workspace r;
    r.keys = poly_workspace_new(w, l);
    r.rows = poly_panel_workspace_new(w, l);
    r.state = layout_take_zeroed(l, w->table.m->count * w->cols4);
    r.sums = (void *)layout_take(l, 2 * w->cols4 * w->table.ld);
    return r;
}

/* Causal: the rows of segment b. Its sums are left in `sums` where that is given. */
static bool causal_segment(const poly_segments *s, size_t b, double *sums)
{
    const poly_job *const w = s->w;
    const poly_sums *const before = &s->sums[b];
    const size_t ones = w->dv * w->table.ld; /* sum of weights: of the column 1, monomial 1 */
    layout l = {0};
    causal_workspace_new(w, &l);
    if (!layout_alloc(&l)) return false;
    const causal_workspace k = causal_workspace_new(w, &l);
    poly_sums now = {sums ? sums : k.sums, -INFINITY}; /* of the chunks of this segment so far */
    memset(now.v, 0, w->cols4 * w->table.ld * sizeof *now.v);
    for (size_t t = b * s->chunks; t < poly_segment_end(s, b); t++) {
        const size_t first = w->chunk_rows ? w->chunk_rows[t] : t * POLY_KEYS;
        const size_t end = w->chunk_rows ? w->chunk_rows[t + 1] : chunk_end(w, t);
        poly_update_state(k.state, &now, &k.keys, w, w->shift[t], before);
        w->weight[t] = poly_rescale_factor(before, w->shift[t]) * before->v[ones] + now.v[ones];
        poly_load_keys(&k.keys, w, t);
        poly_rows(w, &k.rows, t > 0 ? k.state : NULL, &k.keys, t, first, end);
        poly_add_loaded(&k.keys, w, chunk_end(w, t) - t * POLY_KEYS);
    }
    poly_flush(&now, &k.keys, w);
    free(l.base);
    return true;
}

static void causal_unit(void *ctx, size_t b)
{
    poly_segments *const s = ctx;
    if (!causal_segment(s, b, NULL)) atomic_store(&s->no_memory, true);
}

pare_status poly_scan(const poly_job *w, pare_arena *a, const pare_exec *exec, pare_err *err)
{
    poly_segments s = {.w = w, .add_chunk = add_keys, .ctx = w};
    const pare_status st = poly_segments_new(&s, LEAST_CHUNKS, a, err);
    if (st) return st;
    if (!w->plan->causal) {
        s.state = pare_alloc(a, w->table.m->count, w->cols4 * sizeof *s.state);
        if (!s.state || !poly_sum_segments(&s, exec)) return pare_no_memory(err);
        const double *const sums = s.sums[s.count].v;
        poly_state_from_sums(s.state, w, sums);
        w->weight[0] = sums[w->dv * w->table.ld];
        pare_parallel(exec, (w->rows + ROWS - 1) / ROWS, full_rows, &s);
    } else if (exec && exec->threads > 1 && s.count > 1) {
        if (!poly_sum_segments(&s, exec)) return pare_no_memory(err);
        pare_parallel(exec, s.count, causal_unit, &s);
    } else {
        for (size_t b = 0; b < s.count; b++) {
            if (!causal_segment(&s, b, s.sums[b + 1].v)) return pare_no_memory(err);
            s.sums[b + 1].shift = w->shift[poly_segment_end(&s, b) - 1];
            join_segment(&s, b);
        }
    }
    return atomic_load(&s.no_memory) ? pare_no_memory(err) : PARE_OK;
}
