/* poly_panel.c - rows of polynomial attention from a state: a panel of queries at a time, one in
 * each lane.
 *
 * The monomials of a panel are computed block by block and used at once, from the highest degree to
 * the lowest: small numbers are added first. Keys of the row's own chunk (causal) and heavy keys
 * have exact weights e^x. Then each row gets its error bound, and is written. */
#include "poly.h"
#include "base/vmath.h"
#include "linalg/elementary.h"
#include <pare/attention.h>
#include <math.h>
#include <string.h>

poly_panel_workspace poly_panel_workspace_new(const poly_job *w, layout *l)
{
    const size_t p = panel_lanes(&w->kernel->tile), heavy = w->plan->nheavy;
    /* keys with exact weights at a time */
    const size_t keys = padded(heavy > POLY_KEYS ? heavy : POLY_KEYS, TILE_STEP);
    poly_panel_workspace r;
    r.q = layout_take(l, w->d * p);
    r.low = layout_take(l, (w->table.low + 1) * p);
    r.high = layout_take(l, POLY_BLOCK * p);
    r.o = layout_take(l, w->cols4 * p);
    r.s = layout_take(l, keys * p);
    r.ones = layout_take(l, p);
    r.x = layout_take(l, p * w->d);
    r.k = layout_take(l, keys * w->d);
    r.u = layout_take(l, keys * w->cols4);
    for (size_t i = 0; r.ones && i < p; i++) r.ones[i] = 1;
    return r;
}

void poly_evaluate_state(const poly_job *w, const poly_panel_workspace *r, const float *state,
                         const panel *p)
{
    const poly_table *const t = &w->table;
    const poly_kernel *const k = w->kernel;
    for (size_t i = 0; i < p->p; i++) r->low[i] = 1;
    size_t low = 0;
    for (; low < t->nblocks && t->blocks[low].first < t->low; low++) {
        const poly_block *const b = &t->blocks[low];
        k->columns(r->low, 0, r->low, t->runs + b->run, b->nruns, r->q, p->v);
    }
    for (size_t i = t->nblocks; i-- > 0;) {
        const poly_block *const b = &t->blocks[i];
        const float *phi = r->low + b->first * p->p;
        if (i >= low && b->first > 0) {
            k->columns(r->high, b->first, r->low, t->runs + b->run, b->nruns, r->q, p->v);
            phi = r->high;
        }
        k->tile.scores(r->o, phi, state + b->first * w->cols4, w->cols4, b->count, p->v,
                       i + 1 < t->nblocks);
    }
}

/* o += sum over keys of e^(q.k) u. The keys have numbers from `first` on; where `hide`, rows do not
 * see the keys behind them. */
static void add_exact(const poly_job *w, const poly_panel_workspace *r, const float *k,
                      const float *u, size_t first, size_t keys, const panel *p, bool hide)
{
    const size_t keys4 = padded(keys, TILE_STEP);
    const key_mask mask = {hide ? 1 : PARE_VIS_ALL, SIZE_MAX, SIZE_MAX};
    w->kernel->tile.scores(r->s, r->q, k, keys4, w->d, p->v, false);
    mask_tile(r->s, &mask, p, first, first + keys, w->n);
    pare_exp_f32(r->s, r->s, keys4 * p->p);
    w->kernel->tile.values(r->o, r->ones, r->s, u, keys, w->cols4, p->v);
}

/* Keys with exact weights: heavy keys, which are no part of the state, and under the causal pattern
 * the keys of the chunk. True when there are some. */
static bool add_exact_keys(const poly_job *w, const poly_panel_workspace *r,
                           const poly_workspace *loaded, size_t chunk, const panel *p)
{
    const pare_poly_plan *const plan = w->plan;
    const size_t first = chunk * POLY_KEYS, before = plan->causal ? first : w->n;
    size_t heavy = 0;
    for (; heavy < plan->nheavy && plan->heavy[heavy] < before; heavy++) {
        const size_t from = plan->heavy[heavy] / POLY_KEYS;
        const float rescale = plan->causal ? (float)pare_exp(w->shift[from] - w->shift[chunk]) : 1;
        for (size_t c = 0; c < w->cols4; c++)
            r->u[heavy * w->cols4 + c] = w->heavy_u[heavy * w->cols4 + c] * rescale;
    }
    if (heavy) add_exact(w, r, w->heavy_k, r->u, 0, heavy, p, false);
    if (!plan->causal) return heavy;
    /* The chunk is loaded for the state, but there heavy keys have no weight, and the column of
     * moments belongs to the state alone. */
    const size_t keys = chunk_end(w, chunk) - first;
    float *const moment = w->moment ? r->o + (w->dv + 1) * p->p : NULL;
    const float *u = loaded->u;
    if (w->heavy) poly_weighted_values(r->u, w, first, keys, false), u = r->u;
    if (moment) memcpy(r->x, moment, p->p * sizeof *moment); /* x is free: its rows are packed */
    add_exact(w, r, loaded->x, u, first, keys, p, true);
    if (moment) memcpy(moment, r->x, p->p * sizeof *moment);
    return true;
}

/* Bounds and y of a panel; `weight`: of the keys in the state. */
static void write_rows(const poly_job *w, const poly_panel_workspace *r, const panel *p,
                       double weight, bool with_exact)
{
    const float *const sum = r->o + w->dv * p->p, *const moment = sum + p->p;
    for (size_t i = 0; i < p->rows; i++) {
        const poly_row at = {.norm = (double)query_norm(w, p->first + i),
                             .sum = (double)sum[i],
                             .moment = w->moment ? (double)moment[i] : 0,
                             .weight = weight,
                             .with_exact = with_exact};
        w->bound[p->first + i] = poly_row_bound(&w->proof, &at);
        r->s[i] = 1 / sum[i];
    }
    unpack(w->y.v + p->first * w->y.ld, w->y.ld, r->o, p->p, p->rows, w->dv, r->s, false);
    for (size_t i = 0; i < p->rows; i++) {
        float *const y = w->y.v + (p->first + i) * w->y.ld;
        for (size_t c = 0; c < w->dv; c++) y[c] += w->center[c];
    }
}

void poly_rows(const poly_job *w, const poly_panel_workspace *r, const float *state,
               const poly_workspace *keys, size_t chunk, size_t first, size_t end)
{
    for (size_t i = first; i < end; i += panel_lanes(&w->kernel->tile)) {
        const panel p = panel_from(&w->kernel->tile, i, end);
        if (!w->row_list) poly_centered_rows(r->x, &w->queries, p.first, p.rows);
        for (size_t j = 0; w->row_list && j < p.rows; j++)
            poly_centered_rows(r->x + j * w->d, &w->queries, w->row_list[p.first + j], 1);
        pack_queries(r->q, p.p, r->x, w->d, p.rows, w->d, 1);
        if (state)
            poly_evaluate_state(w, r, state, &p);
        else
            memset(r->o, 0, w->cols4 * p.p * sizeof *r->o);
        const bool with_exact = !w->sums_only && add_exact_keys(w, r, keys, chunk, &p);
        memcpy(w->sum + i, r->o + w->dv * p.p, p.rows * sizeof *w->sum);
        if (!w->sums_only) write_rows(w, r, &p, w->weight[chunk], with_exact);
    }
}
