/* poly_backward.c - gradients of polynomial attention in f32, in linear time and memory.
 *
 * Two scans of one kind: sums over one side, then every row of the other side from them.
 *     1. sums over keys         -> queries: dq, and the gradients g of numerators and denominators;
 *     2. sums over queries of g -> keys: dk and dv.
 * Full: all sums first. Causal: a chunk sees the sums of the chunks before it in the order of the
 * scan, from the front in the first and from the end in the second; a state is in the unit of its
 * last chunk, so that rescaling only ever shrinks it. Chunks are cut into segments as in the
 * forward pass (poly_scan.c): same bits for any number of threads.
 * The center of the keys moves with their mean: the mean of dk is subtracted at the end.
 * Rows that were computed exactly get the exact kernel's gradients (poly_backward_exact.c). */
#include "poly_backward.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_CHUNKS = 16 /* of a segment */ };

typedef struct scan {
    poly_segments s; /* s.backward: the second scan */
    const poly_backward_job *b;
    poly_heavy_gradients *heavy; /* of each segment, in the first scan */
} scan;

static void add_chunk(const void *ctx, const poly_workspace *r, size_t chunk)
{
    const scan *const s = ctx;
    const poly_job *const w = &s->b->w;
    if (s->s.backward) {
        poly_add_queries(r, s->b, chunk);
    } else {
        poly_load_keys(r, w, chunk);
        poly_add_loaded(r, w, chunk_end(w, chunk) - chunk * POLY_KEYS);
    }
}

static size_t state_floats(const poly_job *w)
{
    return w->table.m->count * w->cols4 + TILE_STEP;
}

typedef struct workspace {
    poly_backward_workspace rows;
    poly_workspace sums; /* causal, and what follows */
    float *state;
    poly_sums now; /* of the chunks of this segment so far */
} workspace;

static workspace workspace_new(const poly_backward_job *b, layout *l)
{
    const poly_job *const w = &b->w;
    workspace r = {.rows = poly_backward_workspace_new(b, l)};
    if (!w->plan->causal) return r;
    r.sums = poly_workspace_new(w, l);
    r.state = layout_take_zeroed(l, state_floats(w));
    r.now = (poly_sums){(void *)layout_take_zeroed(l, 2 * w->cols4 * w->table.ld), -INFINITY};
    return r;
}

static void scan_segment(void *ctx, size_t i)
{
    scan *const s = ctx;
    const poly_job *const w = &s->b->w;
    layout l = {0};
    workspace_new(s->b, &l);
    if (!layout_alloc(&l)) {
        atomic_store(&s->s.no_memory, true);
        return;
    }
    workspace k = workspace_new(s->b, &l);
    for (size_t t = i * s->s.chunks; t < poly_segment_end(&s->s, i); t++) {
        const size_t chunk = poly_chunk_at(&s->s, t);
        const float *state = s->s.state;
        if (w->plan->causal) {
            poly_update_state(k.state, &k.now, &k.sums, w, poly_unit_of(&s->s, chunk),
                              &s->s.sums[i]);
            state = t > 0 ? k.state : NULL;
        }
        if (s->s.backward)
            poly_keys_backward(s->b, &k.rows, state, chunk);
        else
            poly_queries_backward(s->b, &k.rows, state, chunk, &s->heavy[i]);
        if (w->plan->causal) add_chunk(s, &k.sums, chunk);
    }
    free(l.base);
}

static pare_status run_scan(const poly_backward_job *b, bool backward, const pare_exec *exec,
                            pare_err *err)
{
    const poly_job *const w = &b->w;
    const size_t heavy = backward ? 0 : w->plan->nheavy;
    scan s = {.b = b, .s = {.w = w, .backward = backward, .add_chunk = add_chunk, .ctx = &s}};
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? poly_segments_new(&s.s, LEAST_CHUNKS, a, err) : pare_no_memory(err);
    if (!st) {
        s.s.state = pare_alloc(a, state_floats(w), sizeof *s.s.state);
        s.heavy = pare_alloc(a, s.s.count, sizeof *s.heavy);
        if (!s.s.state || !s.heavy) st = pare_no_memory(err);
    }
    for (size_t i = 0; heavy && !st && i < s.s.count; i++) {
        s.heavy[i].dx = pare_alloc(a, heavy * w->d, sizeof(float));
        s.heavy[i].du = pare_alloc(a, heavy * w->cols4, sizeof(float));
        if (!s.heavy[i].dx || !s.heavy[i].du) st = pare_no_memory(err);
    }
    if (!st && poly_sum_segments(&s.s, exec)) {
        if (!w->plan->causal) poly_state_from_sums(s.s.state, w, s.s.sums[s.s.count].v);
        pare_parallel(exec, s.s.count, scan_segment, &s);
    }
    if (!st && atomic_load(&s.s.no_memory)) st = pare_no_memory(err);
    for (size_t i = 0; !st && i < s.s.count; i++)
        for (size_t h = 0; h < heavy; h++) poly_heavy_key_backward(b, &s.heavy[i], h);
    pare_arena_free(a);
    return st;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void sum_rows(double *sum, const pare_mat32 *dk)
{
    memset(sum, 0, dk->cols * sizeof *sum);
    for (size_t j = 0; j < dk->rows; j++)
        for (size_t c = 0; c < dk->cols; c++) sum[c] += (double)dk->v[j * dk->ld + c];
}

pare_status poly_backward_with(const poly_kernel *kernel, pare_mat32 *dq, pare_mat32 *dk,
                               pare_mat32 *dv, const pare_mat32 *dy, const pare_poly_plan *plan,
                               const pare_mat32 *q, const pare_mat32 *k, const pare_mat32 *v,
                               const uint8_t *exact, const pare_exec *exec, pare_err *err)
{
    const size_t n = q->rows;
    PARE_ASSERT(k->rows == n && v->rows == n && dy->rows == n && plan->n == n);
    PARE_ASSERT(dq->rows == n && dk->rows == n && dv->rows == n);
    PARE_ASSERT(q->cols == plan->d && k->cols == plan->d && dq->cols == plan->d);
    PARE_ASSERT(dk->cols == plan->d && v->cols == dv->cols && dy->cols == dv->cols);
    pare_poly_plan bare = *plan;
    if (bare.kind == PARE_POLY_TAYLOR) bare.kind = PARE_POLY_REMEZ; /* no column for moments */
    poly_backward_job b = {.w = {.plan = &bare, .kernel = kernel, .q = q, .k = k, .v = v},
                           .dy = dy,
                           .exact = exact,
                           .dq = *dq,
                           .dk = *dk,
                           .dv = *dv};
    b.w.n = b.w.rows = n, b.w.d = plan->d, b.w.dv = v->cols;
    if (n == 0) return PARE_OK;
    size_t i = 0; /* the first row that is not exact */
    while (exact && i < n && exact[i]) i++;
    if (plan->kind == PARE_POLY_EXACT || i == n)
        return poly_exact_range_backward(&b, 0, n, exec, err);
    pare_arena *const a = pare_arena_new();
    bool fit = false;
    pare_status st = a ? poly_job_new(&b.w, a, &fit, exec, err) : pare_no_memory(err);
    if (!st && !fit) st = poly_exact_range_backward(&b, 0, n, exec, err);
    if (st || !fit) {
        pare_arena_free(a);
        return st;
    }
    const size_t d = plan->d;
    const double size = poly_balance(plan);
    b.to_q = (float)(plan->scale / size);
    b.to_k = (float)size;
    b.g = pare_alloc(a, n, b.w.cols4 * sizeof *b.g);
    if (plan->causal) b.du = pare_alloc(a, n, b.w.cols4 * sizeof *b.du);
    double *const before = pare_alloc(a, d, sizeof *before);
    double *const sum = pare_alloc(a, d, sizeof *sum);
    if (!b.g || (plan->causal && !b.du) || !before || !sum) st = pare_no_memory(err);
    if (!st) {
        sum_rows(before, dk);
        st = run_scan(&b, false, exec, err);
    }
    if (!st) st = run_scan(&b, true, exec, err);
    if (!st) { /* the mean of what the scans have added to dk is subtracted */
        sum_rows(sum, dk);
        for (size_t c = 0; c < d; c++) sum[c] = (sum[c] - before[c]) / (double)n;
        for (size_t j = 0; j < n; j++)
            for (size_t c = 0; c < d; c++) dk->v[j * dk->ld + c] -= (float)sum[c];
        st = poly_exact_rows_backward(&b, exec, err);
    }
    pare_arena_free(a);
    return st;
}

pare_status pare_poly_backward_f32(pare_mat32 *dq, pare_mat32 *dk, pare_mat32 *dv,
                                   const pare_mat32 *dy, const pare_poly_plan *plan,
                                   const pare_mat32 *q, const pare_mat32 *k, const pare_mat32 *v,
                                   const uint8_t *exact, const pare_exec *exec, pare_err *err)
{
    poly_kernel kernels[3];
    poly_kernels(kernels);
    return poly_backward_with(&kernels[0], dq, dk, dv, dy, plan, q, k, v, exact, exec, err);
}
