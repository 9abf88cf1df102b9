/* Polynomial attention of the f32 engine: sums over keys, and rows from them.
 *
 * full:   sums over all keys, then every row from them;
 * causal: chunks of POLY_KEYS rows; a chunk sees the sums of the chunks before it, and its own keys
 *         by e^x. Sums are in units of e^(the largest a so far), as in an online softmax. The
 *         chunks are cut into at most STRETCHES, whose sums the threads take first; one thread
 *         meets them on its way, by the same operations. */
#include "poly.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    STRETCHES = 16,
    LEAST_STRETCH = 64, /* chunks */
    ROWS = 512          /* of a unit of work that computes rows */
};

/* ---- memory of a thread --------------------------------------------------------------------- */

float *poly_alloc_floats(void **base, size_t floats)
{
    size_t bytes;
    *base = NULL;
    if (!pare_mul(&bytes, floats + 16, sizeof(float))) return NULL;
    *base = malloc(bytes);
    return *base ? (float *)(((uintptr_t)*base + 63) / 64 * 64) : NULL;
}

/* ---- stretches of chunks -------------------------------------------------------------------- */

typedef struct stretches {
    const poly_job *w;
    size_t count, chunks; /* of each but the last */
    poly_sums *sums;      /* count + 1 */
    float *state;
    atomic_bool no_memory;
} stretches;

static pare_status stretches_new(stretches *s, const poly_job *w, pare_arena *a, pare_err *err)
{
    size_t size;
    s->w = w;
    s->chunks = (w->chunks + STRETCHES - 1) / STRETCHES;
    if (s->chunks < LEAST_STRETCH) s->chunks = LEAST_STRETCH;
    s->count = (w->chunks + s->chunks - 1) / s->chunks;
    s->sums = pare_alloc(a, s->count + 1, sizeof *s->sums);
    if (!s->sums || !pare_mul(&size, w->cols4, w->table.ld)) return pare_no_memory(err);
    for (size_t b = 0; b <= s->count; b++) {
        s->sums[b] = (poly_sums){pare_alloc(a, size, sizeof(double)), -INFINITY};
        if (!s->sums[b].v) return pare_no_memory(err);
    }
    return PARE_OK;
}

static size_t stretch_end(const stretches *s, size_t b)
{
    const size_t end = (b + 1) * s->chunks;
    return end < s->w->chunks ? end : s->w->chunks;
}

/* The sums of stretch b alone, into sums[b + 1]. */
static void sum_stretch(void *ctx, size_t b)
{
    stretches *const s = ctx;
    const poly_job *const w = s->w;
    void *base;
    float *const at = poly_alloc_floats(&base, poly_workspace_floats(w));
    if (!at) {
        atomic_store(&s->no_memory, true);
        return;
    }
    const poly_workspace r = poly_workspace_at(w, at);
    poly_sums *const to = &s->sums[b + 1];
    const size_t end = stretch_end(s, b);
    for (size_t t = b * s->chunks; t < end; t++) {
        poly_set_shift(to, w, w->shift[t]);
        poly_add_chunk(&r, w, t);
        if ((t + 1) % w->sizes.flush == 0 || t + 1 == end) poly_flush(to, &r, w);
    }
    free(base);
}

/* sums[b + 1] becomes what stands before stretch b + 1. */
static void join_stretch(stretches *s, size_t b)
{
    const double shift = s->sums[b + 1].shift;
    double *const to = s->sums[b + 1].v;
    const double fade = poly_rescale_factor(&s->sums[b], shift);
    for (size_t i = 0; i < s->w->cols4 * s->w->table.ld; i++) to[i] += fade * s->sums[b].v[i];
}

/* ---- full ----------------------------------------------------------------------------------- */

static void rows_block(void *ctx, size_t b)
{
    stretches *const s = ctx;
    const poly_job *const w = s->w;
    const size_t first = b * ROWS, end = w->rows - first < ROWS ? w->rows : first + ROWS;
    void *base;
    float *const at = poly_alloc_floats(&base, poly_panel_floats(w));
    if (!at) {
        atomic_store(&s->no_memory, true);
        return;
    }
    const poly_panel_workspace r = poly_panel_at(w, at);
    poly_rows(w, &r, s->state, NULL, 0, first, end);
    free(base);
}

static pare_status attend_full(stretches *s, pare_arena *a, const pare_exec *exec, pare_err *err)
{
    const poly_job *const w = s->w;
    s->state = pare_alloc(a, w->table.m->count, w->cols4 * sizeof *s->state);
    if (!s->state) return pare_no_memory(err);
    pare_parallel(exec, s->count, sum_stretch, s);
    if (atomic_load(&s->no_memory)) return pare_no_memory(err);
    for (size_t b = 0; b < s->count; b++) join_stretch(s, b);
    const double *const sums = s->sums[s->count].v;
    poly_state_from_sums(s->state, w, sums);
    w->weight[0] = sums[w->dv * w->table.ld];
    pare_parallel(exec, (w->rows + ROWS - 1) / ROWS, rows_block, s);
    return atomic_load(&s->no_memory) ? pare_no_memory(err) : PARE_OK;
}

/* ---- causal --------------------------------------------------------------------------------- */

typedef struct walk {
    poly_workspace keys;
    poly_panel_workspace rows;
    float *state;
    poly_sums now; /* of the chunks of this stretch so far */
} walk;

static void walk_chunk(walk *k, const poly_job *w, const poly_sums *before, size_t t)
{
    const size_t first = w->some ? w->some[t] : t * POLY_KEYS, one = w->dv * w->table.ld;
    const size_t end = w->some ? w->some[t + 1] : chunk_end(w, t);
    poly_update_state(k->state, &k->now, &k->keys, w, w->shift[t], before);
    w->weight[t] = poly_rescale_factor(before, w->shift[t]) * before->v[one] + k->now.v[one];
    poly_load_keys(&k->keys, w, t);
    poly_rows(w, &k->rows, t > 0 ? k->state : NULL, &k->keys, t, first, end);
    poly_add_loaded(&k->keys, w, chunk_end(w, t) - t * POLY_KEYS);
}

/* Rows of stretch b; its sums are left in *now where that is given. */
static bool walk_stretch(const stretches *s, size_t b, double *now)
{
    const poly_job *const w = s->w;
    const size_t sums = w->cols4 * w->table.ld, keys = padded(poly_workspace_floats(w), 16);
    const size_t rows = padded(poly_panel_floats(w), 16);
    const size_t state = padded(w->table.m->count * w->cols4, 16);
    void *base;
    float *const at = poly_alloc_floats(&base, keys + rows + state + 2 * sums);
    if (!at) return false;
    void *const own = at + keys + rows + state; /* aligned for doubles: all sizes are padded */
    walk k = {.keys = poly_workspace_at(w, at),
              .rows = poly_panel_at(w, at + keys),
              .state = at + keys + rows,
              .now = {now ? now : own, -INFINITY}};
    memset(k.state, 0, state * sizeof *k.state);
    memset(k.now.v, 0, sums * sizeof *k.now.v);
    for (size_t t = b * s->chunks; t < stretch_end(s, b); t++) walk_chunk(&k, w, &s->sums[b], t);
    poly_flush(&k.now, &k.keys, w);
    free(base);
    return true;
}

static void walk_block(void *ctx, size_t b)
{
    stretches *const s = ctx;
    if (!walk_stretch(s, b, NULL)) atomic_store(&s->no_memory, true);
}

static pare_status attend_causal(stretches *s, const pare_exec *exec, pare_err *err)
{
    if (exec && exec->threads > 1 && s->count > 1) {
        pare_parallel(exec, s->count, sum_stretch, s);
        if (atomic_load(&s->no_memory)) return pare_no_memory(err);
        for (size_t b = 0; b < s->count; b++) join_stretch(s, b);
        pare_parallel(exec, s->count, walk_block, s);
        return atomic_load(&s->no_memory) ? pare_no_memory(err) : PARE_OK;
    }
    for (size_t b = 0; b < s->count; b++) {
        if (!walk_stretch(s, b, s->sums[b + 1].v)) return pare_no_memory(err);
        s->sums[b + 1].shift = s->w->shift[stretch_end(s, b) - 1];
        join_stretch(s, b);
    }
    return PARE_OK;
}

pare_status poly_scan(const poly_job *w, pare_arena *a, const pare_exec *exec, pare_err *err)
{
    stretches s = {0};
    const pare_status st = stretches_new(&s, w, a, err);
    if (st) return st;
    return w->plan->causal ? attend_causal(&s, exec, err) : attend_full(&s, a, exec, err);
}
