/* The way back through polynomial attention in f32, in linear time and memory.
 *
 * Two sweeps of one kind: sums over one side, then every row of the other side from them.
 *     1. sums over keys -> queries: dq, and the slopes g of numerators and denominators;
 *     2. sums over queries of g -> keys: dk and dv.
 * Full: all sums first. Causal: a chunk sees the sums of the chunks before it in the sweep's order,
 * which is from the front for the first and from the end for the second; a state is kept in the
 * unit of its last chunk, so that it only ever fades. Chunks are cut into at most STRETCHES, by
 * their number alone, whose sums the threads take first: same bits for any number of threads.
 * The centre of the keys moves with their mean: the mean of dk is taken from it at the end.
 * Rows that were computed exactly go back through the exact kernel (poly_backward_exact.c). */
#include "poly_backward.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { STRETCHES = 16, LEAST_STRETCH = 16 /* chunks */ };

typedef struct sweep {
    const poly_backward_job *b;
    bool keys_back; /* the second sweep */
    size_t count, chunks;
    poly_sums *sums;             /* count + 1: before each stretch */
    float *state;                /* full: of all */
    poly_heavy_gradients *heavy; /* count: of the first sweep */
    atomic_bool no_memory;
} sweep;

/* The chunk at place t of the sweep's order. */
static size_t chunk_at(const sweep *s, size_t t)
{
    return s->keys_back ? s->b->w.chunks - 1 - t : t;
}

/* The logarithm of the unit of sums that end with this chunk: never falls along the sweep. */
static double unit_of(const sweep *s, size_t chunk)
{
    return s->keys_back ? -s->b->w.shift[chunk] : s->b->w.shift[chunk];
}

static size_t stretch_end(const sweep *s, size_t i)
{
    const size_t end = (i + 1) * s->chunks;
    return end < s->b->w.chunks ? end : s->b->w.chunks;
}

static void add_chunk(const sweep *s, const poly_workspace *r, size_t chunk)
{
    if (s->keys_back)
        poly_add_queries(r, s->b, chunk);
    else
        poly_add_chunk(r, &s->b->w, chunk);
}

static size_t state_floats(const poly_job *w)
{
    return padded(w->table.m->count * w->cols4 + TILE_STEP, POLY_LANES);
}

/* ---- one sweep ------------------------------------------------------------------------------- */

static void sum_stretch(void *ctx, size_t i)
{
    sweep *const s = ctx;
    const poly_job *const w = &s->b->w;
    void *base;
    float *const at = poly_alloc_floats(&base, poly_workspace_floats(w));
    if (!at) {
        atomic_store(&s->no_memory, true);
        return;
    }
    const poly_workspace r = poly_workspace_at(w, at);
    poly_sums *const to = &s->sums[i + 1];
    const size_t end = stretch_end(s, i);
    for (size_t t = i * s->chunks; t < end; t++) {
        poly_set_shift(to, w, unit_of(s, chunk_at(s, t)));
        add_chunk(s, &r, chunk_at(s, t));
        if ((t + 1) % w->sizes.flush == 0 || t + 1 == end) poly_flush(to, &r, w);
    }
    free(base);
}

/* sums[i + 1] becomes what stands before stretch i + 1. */
static void join_stretch(sweep *s, size_t i)
{
    const size_t size = s->b->w.cols4 * s->b->w.table.ld;
    const poly_sums *const before = &s->sums[i];
    poly_sums *const to = &s->sums[i + 1];
    const double fade = poly_rescale_factor(before, to->shift);
    for (size_t e = 0; e < size; e++) to->v[e] += fade * before->v[e];
}

static void rows_of(const sweep *s, const poly_backward_workspace *r, const float *state,
                    size_t chunk, size_t stretch)
{
    if (s->keys_back)
        poly_keys_backward(s->b, r, state, chunk);
    else
        poly_queries_backward(s->b, r, state, chunk, &s->heavy[stretch]);
}

typedef struct walk {
    poly_workspace sums;
    poly_backward_workspace rows;
    float *state;
    poly_sums now; /* of the chunks of this stretch so far */
} walk;

static void walk_chunk(const sweep *s, walk *k, const poly_sums *before, size_t t, size_t stretch)
{
    const poly_job *const w = &s->b->w;
    const size_t chunk = chunk_at(s, t);
    poly_update_state(k->state, &k->now, &k->sums, w, unit_of(s, chunk), before);
    rows_of(s, &k->rows, t > 0 ? k->state : NULL, chunk, stretch);
    add_chunk(s, &k->sums, chunk);
}

static void walk_stretch(void *ctx, size_t i)
{
    sweep *const s = ctx;
    const poly_job *const w = &s->b->w;
    const size_t sums = padded(w->cols4 * w->table.ld, POLY_LANES);
    const size_t a = padded(poly_workspace_floats(w), POLY_LANES);
    const size_t b = padded(poly_backward_floats(s->b), POLY_LANES), c = state_floats(w);
    void *base;
    float *const at = poly_alloc_floats(&base, w->plan->causal ? a + b + c + 2 * sums : b);
    if (!at) {
        atomic_store(&s->no_memory, true);
        return;
    }
    walk k = {
        .rows = poly_backward_workspace_at(s->b, at), .state = s->state, .now = {NULL, -INFINITY}};
    if (w->plan->causal) {
        k.sums = poly_workspace_at(w, at + b);
        k.state = memset(at + a + b, 0, c * sizeof *k.state);
        k.now.v = memset(at + a + b + c, 0, sums * sizeof *k.now.v);
    }
    for (size_t t = i * s->chunks; t < stretch_end(s, i); t++) {
        if (w->plan->causal)
            walk_chunk(s, &k, &s->sums[i], t, i);
        else
            rows_of(s, &k.rows, k.state, chunk_at(s, t), i);
    }
    free(base);
}

static pare_status sweep_memory(sweep *s, pare_arena *a, pare_err *err)
{
    const poly_job *const w = &s->b->w;
    size_t size;
    s->chunks = (w->chunks + STRETCHES - 1) / STRETCHES;
    if (s->chunks < LEAST_STRETCH) s->chunks = LEAST_STRETCH;
    s->count = (w->chunks + s->chunks - 1) / s->chunks;
    s->sums = pare_alloc(a, s->count + 1, sizeof *s->sums);
    s->state = pare_alloc(a, state_floats(w), sizeof *s->state);
    s->heavy = pare_alloc(a, s->count, sizeof *s->heavy);
    if (!s->sums || !s->state || !s->heavy || !pare_mul(&size, w->cols4, w->table.ld))
        return pare_no_memory(err);
    const size_t heavy = s->keys_back ? 0 : w->plan->nheavy;
    for (size_t i = 0; i <= s->count; i++) {
        s->sums[i] = (poly_sums){pare_alloc(a, size, sizeof(double)), -INFINITY};
        if (!s->sums[i].v) return pare_no_memory(err);
    }
    for (size_t i = 0; heavy && i < s->count; i++) {
        s->heavy[i].dx = pare_alloc(a, heavy * w->d, sizeof(float));
        s->heavy[i].du = pare_alloc(a, heavy * w->cols4, sizeof(float));
        if (!s->heavy[i].dx || !s->heavy[i].du) return pare_no_memory(err);
    }
    return PARE_OK;
}

static pare_status run_sweep(const poly_backward_job *b, bool keys_back, const pare_exec *exec,
                             pare_err *err)
{
    sweep s = {.b = b, .keys_back = keys_back};
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? sweep_memory(&s, a, err) : pare_no_memory(err);
    if (!st) pare_parallel(exec, s.count, sum_stretch, &s);
    if (!st && !atomic_load(&s.no_memory)) {
        for (size_t i = 0; i < s.count; i++) join_stretch(&s, i);
        const double *const all = s.sums[s.count].v;
        if (!b->w.plan->causal) poly_state_from_sums(s.state, &b->w, all);
        pare_parallel(exec, s.count, walk_stretch, &s);
    }
    if (!st && atomic_load(&s.no_memory)) st = pare_no_memory(err);
    for (size_t i = 0; !st && !keys_back && i < s.count; i++)
        for (size_t h = 0; h < b->w.plan->nheavy; h++) poly_heavy_key_backward(b, &s.heavy[i], h);
    pare_arena_free(a);
    return st;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool all_exact(const poly_backward_job *b)
{
    size_t i = 0;
    while (b->exact && i < b->w.n && b->exact[i]) i++;
    return b->w.plan->kind == PARE_POLY_EXACT || i == b->w.n;
}

static void sum_keys(double *sum, const pare_mat32 *dk)
{
    memset(sum, 0, dk->cols * sizeof *sum);
    for (size_t j = 0; j < dk->rows; j++)
        for (size_t c = 0; c < dk->cols; c++) sum[c] += (double)dk->v[j * dk->ld + c];
}

/* What the sweeps have added to dk loses its mean. */
static void take_mean(pare_mat32 *dk, double *sum, const double *before)
{
    sum_keys(sum, dk);
    for (size_t c = 0; c < dk->cols; c++) sum[c] = (sum[c] - before[c]) / (double)dk->rows;
    for (size_t j = 0; j < dk->rows; j++)
        for (size_t c = 0; c < dk->cols; c++) dk->v[j * dk->ld + c] -= (float)sum[c];
}

static pare_status sweeps(poly_backward_job *b, const pare_poly_plan *plan, pare_arena *a,
                          const pare_exec *exec, pare_err *err)
{
    bool fit;
    pare_status st = poly_job_new(&b->w, a, &fit, exec, err);
    if (st) return st;
    if (!fit) return poly_exact_range_backward(b, 0, b->w.n, exec, err);
    const double size = poly_balance(plan);
    b->slopes = poly_slopes_for(&b->w.kernel->tile);
    b->to_q = (float)(plan->scale / size);
    b->to_k = (float)size;
    b->g = pare_alloc(a, b->w.n, b->w.cols4 * sizeof *b->g);
    if (plan->causal) b->du = pare_alloc(a, b->w.n, b->w.cols4 * sizeof *b->du);
    if (!b->g || (plan->causal && !b->du)) return pare_no_memory(err);
    double *const sum = pare_alloc(a, 2 * b->w.d, sizeof *sum);
    if (!sum) return pare_no_memory(err);
    sum_keys(sum, &b->dk);
    st = run_sweep(b, false, exec, err);
    if (!st) st = run_sweep(b, true, exec, err);
    if (!st) take_mean(&b->dk, sum + b->w.d, sum);
    return st ? st : poly_exact_rows_backward(b, exec, err);
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
    if (all_exact(&b)) return poly_exact_range_backward(&b, 0, n, exec, err);
    pare_arena *const a = pare_arena_new();
    const pare_status st = a ? sweeps(&b, plan, a, exec, err) : pare_no_memory(err);
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
