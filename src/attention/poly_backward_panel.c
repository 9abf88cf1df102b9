/* poly_backward_panel.c - gradients of polynomial attention, a panel of rows at a time, one in each
 * lane.
 *
 * Both sides work alike: queries with the sums over keys and their gradients g, keys with the sums
 * over queries and their u. Sums over the table give numerator and denominator (the gradients of
 * u); products with it give the gradients of the monomials, which are propagated to the variables
 * block by block from the highest degree on. tests/support/poly_backward_f64.c has the formulas. */
#include "poly_backward.h"
#include <math.h>
#include "base/vmath.h"
#include <pare/attention.h>
#include <string.h>

poly_backward_workspace poly_backward_workspace_new(const poly_backward_job *b, layout *l)
{
    const poly_job *const w = &b->w;
    const size_t p = panel_lanes(&w->kernel->tile), heavy = padded(w->plan->nheavy, TILE_STEP);
    const size_t keys = heavy > POLY_KEYS ? heavy : POLY_KEYS;
    const size_t wide = padded(w->d > w->cols4 ? w->d : w->cols4, p);
    poly_backward_workspace r;
    /* + TILE_STEP: a kernel may write so many rows less one behind a block */
    r.r = poly_panel_workspace_new(w, l);
    r.in = layout_take_zeroed(l, w->cols4 * p);
    r.dlow = layout_take_zeroed(l, (w->table.low + 1 + TILE_STEP) * p);
    r.dhigh = layout_take_zeroed(l, (POLY_BLOCK + TILE_STEP) * p);
    r.dx = layout_take_zeroed(l, (w->d + TILE_STEP) * p);
    r.e = layout_take_zeroed(l, POLY_KEYS * p);
    r.heavy_e = layout_take_zeroed(l, heavy * p);
    r.t = layout_take_zeroed(l, keys * p);
    r.x_rows = layout_take_zeroed(l, p * wide);
    r.g_rows = layout_take_zeroed(l, p * wide);
    r.out = layout_take_zeroed(l, keys * wide);
    r.heavy_u = layout_take_zeroed(l, heavy * w->cols4);
    r.heavy_k = layout_take_zeroed(l, heavy * w->d + TILE_STEP);
    r.rescale = layout_take_zeroed(l, heavy);
    r.by = layout_take_zeroed(l, p);
    return r;
}

/* dx += the gradients of the panel's variables, for gradients `in` of the sums over the table. The
 * monomials below the highest degree are in r.low, as poly_evaluate_state leaves them. */
static void monomials_backward(const poly_job *w, const poly_backward_workspace *r,
                               const float *state, const panel *p)
{
    const poly_table *const t = &w->table;
    memset(r->dlow, 0, (t->low + 1) * p->p * sizeof *r->dlow);
    for (size_t i = t->nblocks; i-- > 0;) {
        const poly_block *const k = &t->blocks[i];
        if (k->first == 0) break; /* the constant */
        float *to = r->dlow + k->first * p->p;
        if (k->first >= t->low) {
            to = r->dhigh;
            memset(to, 0, k->count * p->p * sizeof *to);
        }
        /* Rows behind the block are of blocks that are done: what is written there is not read. */
        w->kernel->tile.values(to, r->r.ones, r->in, state + k->first * w->cols4, w->cols4,
                               k->count, p->v);
        w->kernel->monomials_backward(r->dlow, r->dx, to, k->first, r->r.low, t->runs + k->run,
                                      k->nruns, r->r.q, p->v);
    }
}

/* ---- keys with exact weights e^x ------------------------------------------------------------- */

typedef struct exact_keys {
    const float *k, *u; /* keys x d, x cols4 */
    float *e;           /* keys x p: the weights */
    size_t first, keys; /* `first`: number of the first key, where rows are masked */
    bool hide;          /* rows do not see the keys behind them */
    float *dx, *du;     /* gradients of the keys, x d, x cols4 */
    size_t ldx, ldu;
    float by_x;
    const float *rescale; /* keys: the factors that u contains and du must not; NULL: none */
} exact_keys;

/* Weights, and their part of the sums o. */
static void exact_keys_forward(const poly_job *w, const poly_backward_workspace *r,
                               const exact_keys *d, const panel *p)
{
    const size_t keys4 = padded(d->keys, TILE_STEP);
    const key_mask mask = {d->hide ? 1 : PARE_VIS_ALL, SIZE_MAX, SIZE_MAX};
    w->kernel->tile.scores(d->e, r->r.q, d->k, keys4, w->d, p->v, false);
    mask_tile(d->e, &mask, p, d->first, d->first + d->keys, w->n);
    pare_exp_f32(d->e, d->e, keys4 * p->p);
    w->kernel->tile.values(r->r.o, r->r.ones, d->e, d->u, d->keys, w->cols4, p->v);
}

/* to (keys x cols) += by s (keys x p) x (p rows of cols numbers, padded to whole vectors); where
 * `rescale` is given, the sum of each key is multiplied by its number. */
static void add_to_keys(const poly_job *w, const poly_backward_workspace *r, float *to, size_t ld,
                        float by, const float *rescale, size_t keys, size_t cols, const float *s,
                        const float *x, const panel *p)
{
    const size_t lanes = w->kernel->tile.lanes, most = panel_lanes(&w->kernel->tile);
    for (size_t c = 0; c < cols; c += most) {
        const size_t here = cols - c < most ? cols - c : most, v = (here + lanes - 1) / lanes;
        w->kernel->tile.scores(r->out, x, s, padded(keys, TILE_STEP), p->p, v, false);
        for (size_t j = 0; j < keys; j++) {
            const float times = rescale ? by * rescale[j] : by;
            for (size_t i = 0; i < here; i++)
                to[j * ld + c + i] += times * r->out[j * v * lanes + i];
        }
        x += p->p * v * lanes;
    }
}

static void exact_keys_backward(const poly_job *w, const poly_backward_workspace *r,
                                const exact_keys *d, const panel *p)
{
    const size_t keys4 = padded(d->keys, TILE_STEP);
    w->kernel->tile.scores(r->t, r->in, d->u, keys4, w->cols4, p->v, false);
    for (size_t i = 0; i < d->keys * p->p; i++) r->t[i] *= d->e[i];
    w->kernel->tile.values(r->dx, r->r.ones, r->t, d->k, d->keys, w->d, p->v);
    add_to_keys(w, r, d->dx, d->ldx, d->by_x, NULL, d->keys, w->d, r->t, r->x_rows, p);
    add_to_keys(w, r, d->du, d->ldu, 1, d->rescale, d->keys, w->cols4, d->e, r->g_rows, p);
}

/* (cols x p) to p rows, in pieces of whole vectors. */
static void transpose(const poly_job *w, float *to, const float *from, size_t cols, const panel *p)
{
    const size_t lanes = w->kernel->tile.lanes, most = panel_lanes(&w->kernel->tile);
    for (size_t c = 0; c < cols; c += most) {
        const size_t here = cols - c < most ? cols - c : most, wide = padded(here, lanes);
        memset(to, 0, p->p * wide * sizeof *to);
        for (size_t i = 0; i < here; i++)
            for (size_t e = 0; e < p->p; e++) to[e * wide + i] = from[(c + i) * p->p + e];
        to += p->p * wide;
    }
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Heavy keys that the chunk sees outside of it, in its unit. */
static exact_keys heavy_keys(const poly_backward_job *b, const poly_backward_workspace *r,
                             size_t chunk, const poly_heavy_gradients *heavy)
{
    const poly_job *const w = &b->w;
    const pare_poly_plan *const plan = w->plan;
    const size_t cols4 = w->cols4, end = plan->causal ? chunk * POLY_KEYS : w->n;
    exact_keys d = {.k = r->heavy_k,
                    .u = r->heavy_u,
                    .e = r->heavy_e,
                    .rescale = r->rescale,
                    .dx = heavy->dx,
                    .ldx = w->d,
                    .by_x = 1,
                    .du = heavy->du,
                    .ldu = cols4};
    for (; d.keys < plan->nheavy && plan->heavy[d.keys] < end; d.keys++) {
        const size_t from = plan->heavy[d.keys] / POLY_KEYS;
        r->rescale[d.keys] = plan->causal ? (float)exp(w->shift[from] - w->shift[chunk]) : 1;
        for (size_t c = 0; c < cols4; c++)
            r->heavy_u[d.keys * cols4 + c] = w->heavy_u[d.keys * cols4 + c] * r->rescale[d.keys];
    }
    if (d.keys) memcpy(r->heavy_k, w->heavy_k, d.keys * w->d * sizeof *r->heavy_k);
    return d;
}

/* The keys of the chunk itself; none under the full pattern. */
static exact_keys chunk_keys(const poly_backward_job *b, const poly_backward_workspace *r,
                             size_t chunk)
{
    const poly_job *const w = &b->w;
    const size_t first = chunk * POLY_KEYS;
    const size_t keys = w->plan->causal ? chunk_end(w, chunk) - first : 0;
    if (keys) {
        const size_t rest = padded(keys, TILE_STEP) - keys;
        poly_centered_rows(r->r.k, &w->keys, first, keys);
        memset(r->r.k + keys * w->d, 0, rest * w->d * sizeof *r->r.k);
        memset(r->r.u + keys * w->cols4, 0, rest * w->cols4 * sizeof *r->r.u);
        poly_weighted_values(r->r.u, w, first, keys, false);
    }
    return (exact_keys){.k = r->r.k,
                        .u = r->r.u,
                        .e = r->e,
                        .first = first,
                        .keys = keys,
                        .hide = true,
                        .dx = b->dk.v + first * b->dk.ld,
                        .ldx = b->dk.ld,
                        .by_x = b->to_k,
                        .du = keys ? b->du + first * w->cols4 : NULL,
                        .ldu = w->cols4};
}

/* x = the centered queries; 0 where the exact kernel has the row: its monomials may overflow
 * f32. */
static void load_queries(const poly_backward_job *b, float *x, size_t first, size_t rows)
{
    const size_t d = b->w.d;
    poly_centered_rows(x, &b->w.queries, first, rows);
    for (size_t i = 0; b->exact && i < rows; i++)
        if (b->exact[first + i]) memset(x + i * d, 0, d * sizeof *x);
}

void poly_queries_backward(const poly_backward_job *b, const poly_backward_workspace *r,
                           const float *state, size_t chunk, const poly_heavy_gradients *heavy)
{
    const poly_job *const w = &b->w;
    const tile_kernel *const tile = &w->kernel->tile;
    const size_t end = chunk_end(w, chunk);
    const exact_keys keys[2] = {heavy_keys(b, r, chunk, heavy), chunk_keys(b, r, chunk)};
    for (size_t i = chunk * POLY_KEYS; i < end; i += panel_lanes(tile)) {
        const panel p = panel_from(tile, i, end);
        load_queries(b, r->r.x, p.first, p.rows);
        pack_queries(r->r.q, p.p, r->r.x, w->d, p.rows, w->d, 1);
        if (state)
            poly_evaluate_state(w, &r->r, state, &p);
        else
            memset(r->r.o, 0, w->cols4 * p.p * sizeof *r->r.o);
        for (size_t s = 0; s < 2; s++)
            if (keys[s].keys) exact_keys_forward(w, r, &keys[s], &p);
        memset(r->in, 0, w->cols4 * p.p * sizeof *r->in); /* in = d loss / d [num, den] */
        for (size_t j = 0; j < p.rows; j++) {
            if (b->exact && b->exact[i + j]) continue;
            const float *const dy = b->dy->v + (i + j) * b->dy->ld;
            const float inverse = 1 / r->r.o[w->dv * p.p + j];
            float sum = 0;
            for (size_t c = 0; c < w->dv; c++) {
                r->in[c * p.p + j] = dy[c] * inverse;
                sum += dy[c] * (r->r.o[c * p.p + j] * inverse);
            }
            r->in[w->dv * p.p + j] = -sum * inverse;
        }
        unpack(b->g + p.first * w->cols4, w->cols4, r->in, p.p, p.rows, w->cols4, r->r.ones, false);
        memset(r->dx, 0, padded(w->d, TILE_STEP) * p.p * sizeof *r->dx);
        if (state) monomials_backward(w, r, state, &p);
        if (keys[0].keys || keys[1].keys) {
            transpose(w, r->x_rows, r->r.q, w->d, &p);
            transpose(w, r->g_rows, r->in, w->cols4, &p);
        }
        for (size_t s = 0; s < 2; s++)
            if (keys[s].keys) exact_keys_backward(w, r, &keys[s], &p);
        for (size_t e = 0; e < p.p; e++) r->by[e] = b->to_q;
        unpack(b->dq.v + p.first * b->dq.ld, b->dq.ld, r->dx, p.p, p.rows, w->d, r->by, true);
    }
}

void poly_add_queries(const poly_workspace *r, const poly_backward_job *b, size_t chunk)
{
    const poly_job *const w = &b->w;
    const size_t first = chunk * POLY_KEYS, rows = chunk_end(w, chunk) - first;
    load_queries(b, r->x, first, rows);
    memcpy(r->u, b->g + first * w->cols4, rows * w->cols4 * sizeof *r->u);
    poly_add_loaded(r, w, rows);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* dk and dv of key j from the gradient of its u, through its value and its weight. */
static void key_backward(const poly_backward_job *b, size_t j, const float *u, const float *du)
{
    const poly_job *const w = &b->w;
    float *const dk = b->dk.v + j * b->dk.ld, *const dv = b->dv.v + j * b->dv.ld;
    float dlog = 0; /* gradient of the logarithm of the weight */
    for (size_t c = 0; c <= w->dv; c++) dlog += u[c] * du[c];
    for (size_t c = 0; c < w->dv; c++) dv[c] += w->w[j] * du[c];
    for (size_t c = 0; c < w->d; c++) dk[c] += (float)(w->plan->scale * w->plan->qc[c]) * dlog;
}

void poly_keys_backward(const poly_backward_job *b, const poly_backward_workspace *r,
                        const float *state, size_t chunk)
{
    const poly_job *const w = &b->w;
    const tile_kernel *const tile = &w->kernel->tile;
    const size_t end = chunk_end(w, chunk);
    for (size_t first = chunk * POLY_KEYS; first < end; first += panel_lanes(tile)) {
        const panel p = panel_from(tile, first, end);
        memset(r->dx, 0, w->d * p.p * sizeof *r->dx);
        memset(r->r.o, 0, w->cols4 * p.p * sizeof *r->r.o);
        if (state) {
            poly_centered_rows(r->r.x, &w->keys, first, p.rows);
            pack_queries(r->r.q, p.p, r->r.x, w->d, p.rows, w->d, 1);
            poly_weighted_values(r->r.u, w, first, p.rows, true);
            pack_queries(r->in, p.p, r->r.u, w->cols4, p.rows, w->cols4, 1);
            poly_evaluate_state(w, &r->r, state, &p);
            monomials_backward(w, r, state, &p);
        }
        /* du: from the state (not of heavy keys), and from the pairs of the chunk. */
        unpack(r->out, w->cols4, r->r.o, p.p, p.rows, w->cols4, r->r.ones, false);
        for (size_t i = 0; i < p.rows; i++) {
            const size_t j = first + i;
            float *const du = r->out + i * w->cols4, *const u = r->in;
            const bool heavy = w->heavy && w->heavy[j];
            for (size_t c = 0; c < w->cols4; c++)
                du[c] = (heavy ? 0 : du[c]) + (b->du ? b->du[j * w->cols4 + c] : 0);
            poly_weighted_values(u, w, j, 1, false);
            key_backward(b, j, u, du);
        }
        for (size_t i = 0; i < p.p; i++) r->by[i] = b->to_k;
        unpack(b->dk.v + first * b->dk.ld, b->dk.ld, r->dx, p.p, p.rows, w->d, r->by, true);
    }
}

void poly_heavy_key_backward(const poly_backward_job *b, const poly_heavy_gradients *s, size_t h)
{
    const poly_job *const w = &b->w;
    const size_t j = w->plan->heavy[h];
    float *const dk = b->dk.v + j * b->dk.ld;
    key_backward(b, j, w->heavy_u + h * w->cols4, s->du + h * w->cols4);
    for (size_t c = 0; c < w->d; c++) dk[c] += b->to_k * s->dx[h * w->d + c];
}
