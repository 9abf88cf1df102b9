/* tiled_backward.c - gradients of dense attention: tiles of 64 keys by panels of queries, weights
 * recomputed from the saved lse, never N x N.
 *
 * With queries in the lanes, as in the forward pass (so the scores have the same bits), a tile is
 *
 *     s = k q^T,   t = v dy^T,   w = e^(s - lse),   u = w (t - mean),   mean_i = dy_i.y_i,
 *     dv += w dy,   dk += u q,   dq^T += k^T u
 *
 * where q is scaled. The side of the queries (q and dy, as they are and transposed) is packed once.
 * Tile t of keys belongs to group t mod G, G by the number of keys alone: a group owns its rows of
 * dk and dv and has its own sum for dq, and these G sums are added in order. Groups are striped
 * because the first keys of a causal pattern are seen by most queries.
 * Memory: O(n (dk + dv)) for the packed side, O(G n dk) for the sums of dq. */
#include "base/simd.h"
#include "tiled.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUP_KEYS = 256, /* keys for each group, */
    MAX_GROUPS = 16   /* at most so many groups */
};

/* The columns of a matrix in pieces of at most `wide`, each padded to whole vectors. */
typedef struct columns {
    size_t count, wide, lanes;
} columns;

typedef struct panel_data {
    panel at;
    float *qt, *dyt;   /* dk4 x p, dv4 x p */
    float *q, *dy;     /* p rows, in pieces */
    float *lse, *mean; /* p */
    size_t dq;         /* where its dq^T (dk4 x p) begins in the sum of a group */
} panel_data;

typedef struct shared {
    const tiled_backward_job *d;
    size_t dk4, dv4; /* padded to TILE_STEP */
    columns dk, dv;
    size_t npanels, tiles, groups;
    panel_data *panels;
    size_t dq_size;
    float *dq; /* groups x dq_size */
    atomic_bool no_memory;
} shared;

typedef struct tile_data {
    float *k, *v;   /* TILE_KEYS x dk4, x dv4 */
    float *s, *t;   /* TILE_KEYS x P */
    float *dk, *dv; /* TILE_KEYS rows, in pieces */
    float *one;     /* P */
} tile_data;

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Vectors of the piece that begins at column c. */
static size_t vectors(const columns *x, size_t c)
{
    return (least(x->wide, x->count - c) + x->lanes - 1) / x->lanes;
}

static size_t padded_columns(const columns *x)
{
    return padded(x->count, x->lanes);
}

/* ---- the side of the queries ----------------------------------------------------------------- */

/* Rows of `from`, times `by`, in pieces of p rows each; padding is 0. */
static void pack_pieces(float *to, const columns *x, size_t p, const float *from, size_t ld,
                        size_t rows, float by)
{
    for (size_t c = 0; c < x->count; c += x->wide) {
        const size_t width = vectors(x, c) * x->lanes; /* a multiple of four */
        for (size_t i = 0; i < p; i++, to += width) {
            const float *const row = from + (i < rows ? i * ld + c : 0);
            const size_t cols = i < rows ? least(x->wide, x->count - c) : 0;
            size_t e = 0;
            for (; e + 4 <= cols; e += 4) *(four *)(to + e) = *(const four *)(row + e) * by;
            for (; e < cols; e++) to[e] = row[e] * by;
            for (; e < width; e++) to[e] = 0;
        }
    }
}

/* Eight sums, whose order is fixed. */
static float dot(const float *a, const float *b, size_t n)
{
    four even = {0}, odd = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        even += *(const four *)(a + i) * *(const four *)(b + i);
        odd += *(const four *)(a + i + 4) * *(const four *)(b + i + 4);
    }
    even += odd;
    float rest = 0;
    for (; i < n; i++) rest += a[i] * b[i];
    return ((even[0] + even[2]) + (even[1] + even[3])) + rest;
}

static void pack_panel(void *ctx, size_t b)
{
    const shared *const w = ctx;
    const tiled_backward_job *const d = w->d;
    const panel_data *const x = &w->panels[b];
    const size_t first = x->at.first, rows = x->at.rows, p = x->at.p;
    const float *const q = d->q->v + first * d->q->ld, *const dy = d->dy->v + first * d->dy->ld;
    const size_t dk = d->q->cols, dv = d->v->cols;
    pack_queries(x->qt, p, q, d->q->ld, rows, dk, d->scale);
    pack_queries(x->dyt, p, dy, d->dy->ld, rows, dv, 1);
    memset(x->qt + dk * p, 0, (w->dk4 - dk) * p * sizeof *x->qt);
    memset(x->dyt + dv * p, 0, (w->dv4 - dv) * p * sizeof *x->dyt);
    pack_pieces(x->q, &w->dk, p, q, d->q->ld, rows, d->scale);
    pack_pieces(x->dy, &w->dv, p, dy, d->dy->ld, rows, 1);
    for (size_t i = 0; i < p; i++) { /* lanes without a query have no weight */
        x->lse[i] = i < rows ? d->lse[first + i] : INFINITY;
        x->mean[i] = i < rows ? dot(dy + i * d->dy->ld, d->y->v + (first + i) * d->y->ld, dv) : 0;
    }
}

/* ---- one tile of keys ------------------------------------------------------------------------ */

/* out (keys x columns) += s (keys x p) x, piece by piece. */
static void add_products(const tile_kernel *k, float *out, const columns *cols, size_t from,
                         const float *s, const float *x, size_t keys, size_t p)
{
    for (size_t c = 0; c < cols->count; c += cols->wide) {
        const size_t v = vectors(cols, c), width = v * cols->lanes;
        k->scores(out + from * width, x, s, keys, p, v, true);
        out += TILE_KEYS * width;
        x += p * width;
    }
}

/* Adds the rows of a tile, which lie in pieces, to those of `to` from j0 on. */
static void add_rows(pare_mat32 to, const float *from, const columns *x, size_t j0, size_t rows)
{
    for (size_t c = 0; c < x->count; c += x->wide) {
        const size_t cols = least(x->wide, x->count - c), width = vectors(x, c) * x->lanes;
        for (size_t j = 0; j < rows; j++)
            for (size_t e = 0; e < cols; e++) to.v[(j0 + j) * to.ld + c + e] += from[j * width + e];
        from += TILE_KEYS * width;
    }
}

static void lay_out_tile(tile_data *t, const shared *w, layout *l)
{
    const size_t lanes = w->dk.wide;
    t->k = layout_take(l, TILE_KEYS * w->dk4);
    t->v = layout_take(l, TILE_KEYS * w->dv4);
    t->s = layout_take(l, TILE_KEYS * lanes);
    t->t = layout_take(l, TILE_KEYS * lanes);
    t->dk = layout_take(l, TILE_KEYS * padded_columns(&w->dk));
    t->dv = layout_take(l, TILE_KEYS * padded_columns(&w->dv));
    t->one = layout_take(l, lanes);
}

static void group_backward(void *ctx, size_t g)
{
    shared *const w = ctx;
    const tiled_backward_job *const d = w->d;
    const tile_kernel *const kernel = d->kernel;
    const size_t n = d->k->rows;
    float *const dq = w->dq + g * w->dq_size;
    tile_data t;
    layout l = {0};
    lay_out_tile(&t, w, &l);
    if (!layout_alloc(&l)) {
        atomic_store(&w->no_memory, true);
        return;
    }
    lay_out_tile(&t, w, &l);
    for (size_t i = 0; i < w->dk.wide; i++) t.one[i] = 1;
    memset(dq, 0, w->dq_size * sizeof *dq);
    for (size_t tile = g; tile < w->tiles; tile += w->groups) {
        const size_t j0 = tile * TILE_KEYS, j1 = n - j0 < TILE_KEYS ? n : j0 + TILE_KEYS;
        copy_tile(t.k, d->k->v + j0 * d->k->ld, d->k->ld, j1 - j0, d->k->cols, w->dk4);
        copy_tile(t.v, d->v->v + j0 * d->v->ld, d->v->ld, j1 - j0, d->v->cols, w->dv4);
        memset(t.dk, 0, TILE_KEYS * padded_columns(&w->dk) * sizeof *t.dk);
        memset(t.dv, 0, TILE_KEYS * padded_columns(&w->dv) * sizeof *t.dv);
        for (size_t a = 0; a < w->npanels; a++) {
            const panel_data *const x = &w->panels[a];
            size_t from = j0, to = j1;
            if (!visible_keys(&from, &to, &d->mask, &x->at, n)) continue;
            const size_t keys = padded(to - from, TILE_STEP), off = from - j0, v = x->at.v;
            const float *const k = t.k + off * w->dk4;
            kernel->scores(t.s, x->qt, k, keys, w->dk4, v, false);
            mask_tile(t.s, &d->mask, &x->at, from, to, n);
            kernel->scores(t.t, x->dyt, t.v + off * w->dv4, keys, w->dv4, v, false);
            kernel->softmax_backward(t.s, t.t, x->lse, x->mean, keys, v);
            add_products(kernel, t.dv, &w->dv, off, t.s, x->dy, keys, x->at.p);
            add_products(kernel, t.dk, &w->dk, off, t.t, x->q, keys, x->at.p);
            kernel->values(dq + x->dq, t.one, t.t, k, keys, w->dk4, v);
        }
        add_rows(d->dk, t.dk, &w->dk, j0, j1 - j0);
        add_rows(d->dv, t.dv, &w->dv, j0, j1 - j0);
    }
    free(l.base);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The groups' sums of one panel, in order, into dq. */
static void merge_panel(void *ctx, size_t b)
{
    const shared *const w = ctx;
    const panel_data *const x = &w->panels[b];
    const pare_mat32 *const dq = &w->d->dq;
    float *const sum = w->dq + x->dq;
    for (size_t g = 1; g < w->groups; g++)
        for (size_t i = 0; i < w->dk4 * x->at.p; i += 4)
            *(four *)(sum + i) += *(const four *)(sum + g * w->dq_size + i);
    for (size_t i = 0; i < x->at.p; i++) x->mean[i] = w->d->scale;
    unpack(dq->v + x->at.first * dq->ld, dq->ld, sum, x->at.p, x->at.rows, dq->cols, x->mean, true);
}

static void lay_out_panels(shared *w, layout *l)
{
    w->dq_size = 0;
    for (size_t b = 0; b < w->npanels; b++) {
        panel_data *const x = &w->panels[b];
        x->at = panel_from(w->d->kernel, b * w->dk.wide, w->d->q->rows);
        const size_t p = x->at.p;
        x->dq = w->dq_size;
        w->dq_size += padded(w->dk4 * p, FLOAT_ALIGN);
        x->qt = layout_take(l, w->dk4 * p);
        x->dyt = layout_take(l, w->dv4 * p);
        x->q = layout_take(l, padded_columns(&w->dk) * p);
        x->dy = layout_take(l, padded_columns(&w->dv) * p);
        x->lse = layout_take(l, p);
        x->mean = layout_take(l, p);
    }
    w->dq = layout_take(l, w->groups * w->dq_size);
}

pare_status tiled_backward(const tiled_backward_job *d, const pare_exec *exec, pare_err *err)
{
    const size_t n = d->q->rows, nk = d->k->rows, dk = d->q->cols, dv = d->v->cols;
    const size_t lanes = d->kernel->lanes, wide = panel_lanes(d->kernel);
    shared w = {.d = d,
                .dk4 = padded(dk, TILE_STEP),
                .dv4 = padded(dv, TILE_STEP),
                .dk = {dk, wide, lanes},
                .dv = {dv, wide, lanes},
                .npanels = (n + wide - 1) / wide,
                .tiles = (nk + TILE_KEYS - 1) / TILE_KEYS,
                .groups = nk < GROUP_KEYS ? 1 : least(nk / GROUP_KEYS, MAX_GROUPS)};
    if (n == 0) return PARE_OK;
    w.panels = calloc(w.npanels, sizeof *w.panels);
    if (!w.panels) return pare_no_memory(err);
    layout l = {0};
    lay_out_panels(&w, &l);
    const bool enough = layout_alloc(&l);
    if (enough) {
        lay_out_panels(&w, &l);
        pare_parallel(exec, w.npanels, pack_panel, &w);
        pare_parallel(exec, w.groups, group_backward, &w);
        if (!atomic_load(&w.no_memory)) pare_parallel(exec, w.npanels, merge_panel, &w);
    }
    free(l.base);
    free(w.panels);
    return enough && !atomic_load(&w.no_memory) ? PARE_OK : pare_no_memory(err);
}
