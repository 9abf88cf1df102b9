/* Rows of polynomial attention from a state: a panel of queries at a time, one in each lane.
 *
 * The monomials of a panel are made block by block and used at once, from the highest degree to
 * the lowest: small numbers are added first. Keys of the row's own chunk (causal) and heavy keys
 * are weighed by e^x. Then each row is proven, and written. */
#include "poly.h"
#include <pare/elementary.h>
#include <math.h>
#include <pare/vmath.h>
#include <string.h>

static size_t aligned(size_t n)
{
    return padded(n, POLY_LANES);
}

static size_t most_lanes(const poly_job *w)
{
    return w->kernel->tile.lanes * w->kernel->tile.vecs;
}

/* Keys that are weighed exactly at a time. */
static size_t most_exact(const poly_job *w)
{
    return padded(w->plan->nheavy > POLY_KEYS ? w->plan->nheavy : POLY_KEYS, TILE_STEP);
}

static poly_panel_workspace lay_out(const poly_job *w, float *at, size_t *need)
{
    const size_t p = most_lanes(w), keys = most_exact(w);
    const size_t sizes[9] = {
        w->d * p,    (w->table.low + 1) * p, POLY_BLOCK * p, w->cols4 * p, keys * p, p, p * w->d,
        keys * w->d, keys * w->cols4};
    float *part[9];
    *need = 0;
    for (size_t i = 0; i < 9; i++) {
        part[i] = at ? at + *need : NULL;
        *need += aligned(sizes[i]);
    }
    return (poly_panel_workspace){part[0], part[1], part[2], part[3], part[4],
                                  part[5], part[6], part[7], part[8]};
}

size_t poly_panel_floats(const poly_job *w)
{
    size_t need;
    lay_out(w, NULL, &need);
    return need;
}

poly_panel_workspace poly_panel_at(const poly_job *w, float *at)
{
    size_t need;
    const poly_panel_workspace r = lay_out(w, at, &need);
    for (size_t i = 0; i < most_lanes(w); i++) r.ones[i] = 1;
    return r;
}

void poly_from_state(const poly_job *w, const poly_panel_workspace *r, const float *state,
                     const panel *p)
{
    const poly_table *const t = &w->table;
    const poly_kernel *const k = w->kernel;
    for (size_t i = 0; i < p->p; i++) r->low[i] = 1;
    size_t low = 0;
    while (low < t->nblocks && t->blocks[low].first < t->low) {
        k->columns(r->low, 0, r->low, t->runs + t->blocks[low].run, t->blocks[low].nruns, r->q,
                   p->v);
        low++;
    }
    for (size_t b = t->nblocks; b-- > 0;) {
        const poly_block *const k1 = &t->blocks[b];
        const float *phi = r->low + k1->first * p->p;
        if (b >= low && k1->first > 0) {
            k->columns(r->top, k1->first, r->low, t->runs + k1->run, k1->nruns, r->q, p->v);
            phi = r->top;
        }
        k->tile.scores(r->o, phi, state + k1->first * w->cols4, w->cols4, k1->count, p->v,
                       b + 1 < t->nblocks);
    }
}

/* o += sum over keys of e^(q.k) u. Keys of number `first` on; hidden where the row is before. */
static void add_exact(const poly_job *w, const poly_panel_workspace *r, const float *k,
                      const float *u, size_t first, size_t keys, const panel *p, bool hide)
{
    const size_t keys4 = padded(keys, TILE_STEP);
    w->kernel->tile.scores(r->s, r->q, k, keys4, w->d, p->v, false);
    const key_mask mask = {hide ? 1 : PARE_VIS_ALL, SIZE_MAX, SIZE_MAX};
    mask_tile(r->s, &mask, p, first, first + keys, w->n);
    pare_exp_f32(r->s, r->s, keys4 * p->p);
    w->kernel->tile.values(r->o, r->ones, r->s, u, keys, w->cols4, p->v);
}

/* Heavy keys before `end`, which are no part of the state; true when there are some. */
static bool add_heavy(const poly_job *w, const poly_panel_workspace *r, size_t chunk, size_t end,
                      const panel *p)
{
    const pare_poly_plan *const plan = w->plan;
    size_t count = 0;
    while (count < plan->nheavy && plan->heavy[count] < end) count++;
    if (count == 0) return false;
    for (size_t h = 0; h < count; h++) {
        const size_t from = plan->heavy[h] / POLY_KEYS;
        const float fade = plan->causal ? (float)pare_exp(w->shift[from] - w->shift[chunk]) : 1;
        for (size_t c = 0; c < w->cols4; c++)
            r->u[h * w->cols4 + c] = w->heavy_u[h * w->cols4 + c] * fade;
    }
    add_exact(w, r, w->heavy_k, r->u, 0, count, p, false);
    return true;
}

/* The keys of the chunk, as they are loaded for the state: but heavy ones have no weight there, and
 * the column of moments is the state's alone. */
static void add_chunk(const poly_job *w, const poly_panel_workspace *r,
                      const poly_workspace *loaded, size_t chunk, const panel *p)
{
    const size_t first = chunk * POLY_KEYS, keys = chunk_end(w, chunk) - first;
    float *const moment = w->moment ? r->o + (w->dv + 1) * p->p : NULL;
    const float *u = loaded->u;
    if (w->heavy) poly_weighted_values(r->u, w, first, keys, false), u = r->u;
    if (moment) memcpy(r->x, moment, p->p * sizeof *moment); /* the panel's rows are packed */
    add_exact(w, r, loaded->x, u, first, keys, p, true);
    if (moment) memcpy(moment, r->x, p->p * sizeof *moment);
}

/* What e^x itself gives: heavy keys, and the keys of the chunk; true when there are some. */
static bool add_exact_keys(const poly_job *w, const poly_panel_workspace *r,
                           const poly_workspace *loaded, size_t chunk, const panel *p)
{
    const bool causal = w->plan->causal;
    const bool heavy = add_heavy(w, r, chunk, causal ? chunk * POLY_KEYS : w->n, p);
    if (causal) add_chunk(w, r, loaded, chunk, p);
    return causal || heavy;
}

static void finish(const poly_job *w, const poly_panel_workspace *r, const panel *p, double weight,
                   bool exact)
{
    const float *const sum = r->o + w->dv * p->p, *const moment = sum + p->p;
    for (size_t i = 0; i < p->rows; i++) {
        const poly_row at = {.norm = (double)query_norm(w, p->first + i),
                             .sum = (double)sum[i],
                             .moment = w->moment ? (double)moment[i] : 0,
                             .weight = weight,
                             .with_exact = exact};
        w->bound[p->first + i] = poly_row_bound(&w->proof, &at);
        r->s[i] = 1 / sum[i];
    }
    unpack(w->y.v + p->first * w->y.ld, w->y.ld, r->o, p->p, p->rows, w->dv, r->s, false);
    for (size_t i = 0; i < p->rows; i++) {
        float *const y = w->y.v + (p->first + i) * w->y.ld;
        for (size_t c = 0; c < w->dv; c++) y[c] += w->centre[c];
    }
}

/* x = the centred queries of a panel. */
static void load_queries(const poly_job *w, float *x, const panel *p)
{
    if (!w->which) poly_centered_rows(x, &w->queries, p->first, p->rows);
    for (size_t i = 0; w->which && i < p->rows; i++)
        poly_centered_rows(x + i * w->d, &w->queries, w->which[p->first + i], 1);
}

void poly_rows(const poly_job *w, const poly_panel_workspace *r, const float *state,
               const poly_workspace *keys, size_t chunk, size_t first, size_t end)
{
    const size_t most = most_lanes(w), lanes = w->kernel->tile.lanes;
    for (size_t i = first; i < end; i += most) {
        panel p = {.first = i, .rows = end - i < most ? end - i : most};
        p.v = (p.rows + lanes - 1) / lanes;
        p.p = p.v * lanes;
        load_queries(w, r->x, &p);
        pack_queries(r->q, p.p, r->x, w->d, p.rows, w->d, 1);
        if (state)
            poly_from_state(w, r, state, &p);
        else
            memset(r->o, 0, w->cols4 * p.p * sizeof *r->o);
        const bool exact = !w->sums_only && add_exact_keys(w, r, keys, chunk, &p);
        memcpy(w->sum + i, r->o + w->dv * p.p, p.rows * sizeof *w->sum);
        if (!w->sums_only) finish(w, r, &p, w->weight[chunk], exact);
    }
}
