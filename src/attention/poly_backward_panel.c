/* The way back through polynomial attention, a panel of rows at a time, one in each lane.
 *
 * Both sides go the same way: queries through the sums over keys with their slopes g, keys through
 * the sums over queries with their u. Sums over the table give numerator and denominator (the
 * slopes of u); products with it give the slopes of the monomials, which go back to the variables
 * block by block from the highest degree on. poly_backward_f64.c has the formulas. */
#include "poly_backward.h"
#include <math.h>
#include <pare/vmath.h>
#include <string.h>

static size_t most_lanes(const poly_job *w)
{
    return w->kernel->tile.lanes * w->kernel->tile.vecs;
}

/* ---- room ------------------------------------------------------------------------------------ */

enum { PARTS = 15 };

static size_t lay_out(const poly_backward_job *b, float *at, float *part[PARTS])
{
    const poly_job *const w = &b->w;
    const size_t p = most_lanes(w), heavy = padded(w->plan->nheavy, TILE_STEP);
    const size_t keys = heavy > POLY_KEYS ? heavy : POLY_KEYS;
    const size_t wide = padded(w->d > w->cols4 ? w->d : w->cols4, p);
    /* TILE_STEP: a kernel may write so many rows less one behind a block */
    const size_t sizes[PARTS] = {poly_panel_floats(w),
                                 w->cols4 * p,
                                 (w->table.low + 1 + TILE_STEP) * p,
                                 (POLY_BLOCK + TILE_STEP) * p,
                                 (w->d + TILE_STEP) * p,
                                 POLY_KEYS * p,
                                 heavy * p,
                                 keys * p,
                                 p * wide,
                                 p * wide,
                                 keys * wide,
                                 heavy * w->cols4,
                                 heavy * w->d + TILE_STEP,
                                 heavy,
                                 p};
    size_t need = 0;
    for (size_t i = 0; i < PARTS; i++) {
        part[i] = at ? at + need : NULL;
        need += padded(sizes[i], POLY_LANES);
    }
    return need;
}

size_t poly_backward_floats(const poly_backward_job *b)
{
    float *part[PARTS];
    return lay_out(b, NULL, part);
}

poly_backward_workspace poly_backward_workspace_at(const poly_backward_job *b, float *at)
{
    float *part[PARTS];
    memset(at, 0, lay_out(b, at, part) * sizeof *at);
    return (poly_backward_workspace){poly_panel_at(&b->w, part[0]),
                                     part[1],
                                     part[2],
                                     part[3],
                                     part[4],
                                     part[5],
                                     part[6],
                                     part[7],
                                     part[8],
                                     part[9],
                                     part[10],
                                     part[11],
                                     part[12],
                                     part[13],
                                     part[14]};
}

/* ---- monomials ------------------------------------------------------------------------------- */

/* dx += the slopes of the panel's variables, for slopes `in` of the sums over the table. The
 * monomials below the highest degree are in r.low, as poly_from_state leaves them. */
static void monomials_back(const poly_backward_job *b, const poly_backward_workspace *r,
                           const float *state, const panel *p)
{
    const poly_job *const w = &b->w;
    const poly_table *const t = &w->table;
    memset(r->dlow, 0, (t->low + 1) * p->p * sizeof *r->dlow);
    for (size_t i = t->nblocks; i-- > 0;) {
        const poly_block *const k = &t->blocks[i];
        if (k->first == 0) break; /* the constant */
        float *to = r->dlow + k->first * p->p;
        if (k->first >= t->low) {
            to = r->dtop;
            memset(to, 0, k->count * p->p * sizeof *to);
        }
        /* Rows behind the block are of blocks that are done: what is written there is not read. */
        w->kernel->tile.values(to, r->r.ones, r->in, state + k->first * w->cols4, w->cols4,
                               k->count, p->v);
        b->slopes(r->dlow, r->dx, to, k->first, r->r.low, t->runs + k->run, k->nruns, r->r.q, p->v);
    }
}

static panel panel_at(const poly_job *w, size_t first, size_t end)
{
    const size_t most = most_lanes(w), lanes = w->kernel->tile.lanes;
    panel p = {.first = first, .rows = end - first < most ? end - first : most};
    p.v = (p.rows + lanes - 1) / lanes;
    p.p = p.v * lanes;
    return p;
}

/* ---- pairs of a query and a key that are weighed by e^x -------------------------------------- */

typedef struct direct {
    const float *k, *u; /* keys x d, x cols4 */
    float *e;           /* keys x p: the weights */
    size_t first, keys; /* `first`: number of the first key, where rows hide */
    bool hide;          /* keys behind the row */
    float *dx, *du;     /* of the keys, x d, x cols4 */
    size_t ldx, ldu;
    float by_x;
    const float *fade; /* keys: du is of u before it was multiplied by this; NULL: it was not */
} direct;

static void direct_there(const poly_job *w, const poly_backward_workspace *r, const direct *d,
                         const panel *p)
{
    const size_t keys4 = padded(d->keys, TILE_STEP);
    const key_mask mask = {d->hide ? 1 : PARE_VIS_ALL, SIZE_MAX, SIZE_MAX};
    w->kernel->tile.scores(d->e, r->r.q, d->k, keys4, w->d, p->v, false);
    mask_tile(d->e, &mask, p, d->first, d->first + d->keys, w->n);
    pare_exp_f32(d->e, d->e, keys4 * p->p);
    w->kernel->tile.values(r->r.o, r->r.ones, d->e, d->u, d->keys, w->cols4, p->v);
}

/* to (keys x cols) += by s (keys x p) x (p rows of cols numbers, filled up to whole vectors); where
 * `fade` is given, each key's sum is times its number. */
static void add_to_keys(const poly_job *w, const poly_backward_workspace *r, float *to, size_t ld,
                        float by, const float *fade, size_t keys, size_t cols, const float *s,
                        const float *x, const panel *p)
{
    const size_t lanes = w->kernel->tile.lanes, most = most_lanes(w);
    for (size_t c = 0; c < cols; c += most) {
        const size_t here = cols - c < most ? cols - c : most, v = (here + lanes - 1) / lanes;
        w->kernel->tile.scores(r->out, x, s, padded(keys, TILE_STEP), p->p, v, false);
        for (size_t j = 0; j < keys; j++) {
            const float times = fade ? by * fade[j] : by;
            for (size_t i = 0; i < here; i++)
                to[j * ld + c + i] += times * r->out[j * v * lanes + i];
        }
        x += p->p * v * lanes;
    }
}

static void direct_back(const poly_job *w, const poly_backward_workspace *r, const direct *d,
                        const panel *p)
{
    const size_t keys4 = padded(d->keys, TILE_STEP);
    w->kernel->tile.scores(r->t, r->in, d->u, keys4, w->cols4, p->v, false);
    for (size_t i = 0; i < d->keys * p->p; i++) r->t[i] *= d->e[i];
    w->kernel->tile.values(r->dx, r->r.ones, r->t, d->k, d->keys, w->d, p->v);
    add_to_keys(w, r, d->dx, d->ldx, d->by_x, NULL, d->keys, w->d, r->t, r->x_rows, p);
    add_to_keys(w, r, d->du, d->ldu, 1, d->fade, d->keys, w->cols4, d->e, r->g_rows, p);
}

/* Turns (cols x p) into p rows, in pieces of whole vectors. */
static void turn(const poly_job *w, float *to, const float *from, size_t cols, const panel *p)
{
    const size_t lanes = w->kernel->tile.lanes, most = most_lanes(w);
    for (size_t c = 0; c < cols; c += most) {
        const size_t here = cols - c < most ? cols - c : most, wide = padded(here, lanes);
        memset(to, 0, p->p * wide * sizeof *to);
        for (size_t i = 0; i < here; i++)
            for (size_t e = 0; e < p->p; e++) to[e * wide + i] = from[(c + i) * p->p + e];
        to += p->p * wide;
    }
}

/* ---- queries --------------------------------------------------------------------------------- */

/* Heavy keys before `end`, in the unit of the chunk. */
static direct heavy_of(const poly_backward_job *b, const poly_backward_workspace *r, size_t chunk,
                       size_t end)
{
    const pare_poly_plan *const plan = b->w.plan;
    const size_t cols4 = b->w.cols4;
    direct d = {.k = r->heavy_k, .u = r->heavy_u, .e = r->heavy_e, .fade = r->fade};
    for (; d.keys < plan->nheavy && plan->heavy[d.keys] < end; d.keys++) {
        const size_t from = plan->heavy[d.keys] / POLY_KEYS;
        r->fade[d.keys] = plan->causal ? (float)exp(b->w.shift[from] - b->w.shift[chunk]) : 1;
        for (size_t c = 0; c < cols4; c++)
            r->heavy_u[d.keys * cols4 + c] = b->w.heavy_u[d.keys * cols4 + c] * r->fade[d.keys];
    }
    if (d.keys) memcpy(r->heavy_k, b->w.heavy_k, d.keys * b->w.d * sizeof *r->heavy_k);
    return d;
}

static direct chunk_of(const poly_backward_job *b, const poly_backward_workspace *r, size_t chunk)
{
    const poly_job *const w = &b->w;
    const size_t first = chunk * POLY_KEYS,
                 keys = w->plan->causal ? chunk_end(w, chunk) - first : 0;
    if (keys) {
        const size_t rest = padded(keys, TILE_STEP) - keys;
        poly_centered_rows(r->r.k, &w->keys, first, keys);
        memset(r->r.k + keys * w->d, 0, rest * w->d * sizeof *r->r.k);
        memset(r->r.u + keys * w->cols4, 0, rest * w->cols4 * sizeof *r->r.u);
        poly_weighted_values(r->r.u, w, first, keys, false);
    }
    return (direct){.k = r->r.k,
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

/* in = d loss / d [numerator, denominator] from o. */
static void slopes_of_sums(const poly_backward_job *b, const poly_backward_workspace *r,
                           const panel *p)
{
    const poly_job *const w = &b->w;
    memset(r->in, 0, w->cols4 * p->p * sizeof *r->in);
    for (size_t i = 0; i < p->rows; i++) {
        if (b->exact && b->exact[p->first + i]) continue;
        const float *const dy = b->dy->v + (p->first + i) * b->dy->ld;
        const float inverse = 1 / r->r.o[w->dv * p->p + i];
        float sum = 0;
        for (size_t c = 0; c < w->dv; c++) {
            r->in[c * p->p + i] = dy[c] * inverse;
            sum += dy[c] * (r->r.o[c * p->p + i] * inverse);
        }
        r->in[w->dv * p->p + i] = -sum * inverse;
    }
}

/* x = the centred queries; 0 where the exact kernel has the row: its monomials may be beyond f32.
 */
static void load_queries(const poly_backward_job *b, float *x, size_t first, size_t rows)
{
    const size_t d = b->w.d;
    poly_centered_rows(x, &b->w.queries, first, rows);
    for (size_t i = 0; b->exact && i < rows; i++)
        if (b->exact[first + i]) memset(x + i * d, 0, d * sizeof *x);
}

/* d[0]: heavy keys, d[1]: the chunk's own. */
static void panel_back(const poly_backward_job *b, const poly_backward_workspace *r,
                       const float *state, const direct d[2], const panel *p)
{
    const poly_job *const w = &b->w;
    load_queries(b, r->r.x, p->first, p->rows);
    pack_queries(r->r.q, p->p, r->r.x, w->d, p->rows, w->d, 1);
    if (state)
        poly_from_state(w, &r->r, state, p);
    else
        memset(r->r.o, 0, w->cols4 * p->p * sizeof *r->r.o);
    for (size_t i = 0; i < 2; i++)
        if (d[i].keys) direct_there(w, r, &d[i], p);
    slopes_of_sums(b, r, p);
    unpack(b->g + p->first * w->cols4, w->cols4, r->in, p->p, p->rows, w->cols4, r->r.ones, false);
    memset(r->dx, 0, padded(w->d, TILE_STEP) * p->p * sizeof *r->dx);
    if (state) monomials_back(b, r, state, p);
    if (d[0].keys || d[1].keys) {
        turn(w, r->x_rows, r->r.q, w->d, p);
        turn(w, r->g_rows, r->in, w->cols4, p);
    }
    for (size_t i = 0; i < 2; i++)
        if (d[i].keys) direct_back(w, r, &d[i], p);
    for (size_t i = 0; i < p->p; i++) r->by[i] = b->to_q;
    unpack(b->dq.v + p->first * b->dq.ld, b->dq.ld, r->dx, p->p, p->rows, w->d, r->by, true);
}

void poly_queries_backward(const poly_backward_job *b, const poly_backward_workspace *r,
                           const float *state, size_t chunk, const poly_heavy_gradients *heavy)
{
    const poly_job *const w = &b->w;
    const size_t first = chunk * POLY_KEYS, end = chunk_end(w, chunk);
    direct d[2] = {heavy_of(b, r, chunk, w->plan->causal ? first : w->n), chunk_of(b, r, chunk)};
    d[0].dx = heavy->dx, d[0].ldx = w->d, d[0].by_x = 1;
    d[0].du = heavy->du, d[0].ldu = w->cols4;
    for (size_t i = first; i < end; i += most_lanes(w)) {
        const panel p = panel_at(w, i, end);
        panel_back(b, r, state, d, &p);
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

/* dk and dv of key j from the slopes of its u, through its value and its weight. */
static void key_slopes(const poly_backward_job *b, size_t j, const float *u, const float *du)
{
    const poly_job *const w = &b->w;
    float *const dk = b->dk.v + j * b->dk.ld, *const dv = b->dv.v + j * b->dv.ld;
    float slope = 0; /* of the logarithm of the weight */
    for (size_t c = 0; c <= w->dv; c++) slope += u[c] * du[c];
    for (size_t c = 0; c < w->dv; c++) dv[c] += w->w[j] * du[c];
    for (size_t c = 0; c < w->d; c++) dk[c] += (float)(w->plan->scale * w->plan->qc[c]) * slope;
}

/* The rows of du: what the state gives (not to heavy keys) and the pairs of the chunk. */
static void write_keys(const poly_backward_job *b, const poly_backward_workspace *r, const panel *p)
{
    const poly_job *const w = &b->w;
    float *const du = r->out;
    unpack(du, w->cols4, r->r.o, p->p, p->rows, w->cols4, r->r.ones, false);
    for (size_t i = 0; i < p->rows; i++) {
        const size_t j = p->first + i;
        float *const row = du + i * w->cols4;
        const bool heavy = w->heavy && w->heavy[j];
        for (size_t c = 0; c < w->cols4; c++)
            row[c] = (heavy ? 0 : row[c]) + (b->du ? b->du[j * w->cols4 + c] : 0);
        float *const u = r->in; /* of one key, its weight in it */
        poly_weighted_values(u, w, j, 1, false);
        key_slopes(b, j, u, row);
    }
    for (size_t i = 0; i < p->p; i++) r->by[i] = b->to_k;
    unpack(b->dk.v + p->first * b->dk.ld, b->dk.ld, r->dx, p->p, p->rows, w->d, r->by, true);
}

void poly_keys_backward(const poly_backward_job *b, const poly_backward_workspace *r,
                        const float *state, size_t chunk)
{
    const poly_job *const w = &b->w;
    const size_t end = chunk_end(w, chunk);
    for (size_t i = chunk * POLY_KEYS; i < end; i += most_lanes(w)) {
        const panel p = panel_at(w, i, end);
        memset(r->dx, 0, w->d * p.p * sizeof *r->dx);
        memset(r->r.o, 0, w->cols4 * p.p * sizeof *r->r.o);
        if (state) {
            poly_centered_rows(r->r.x, &w->keys, i, p.rows);
            pack_queries(r->r.q, p.p, r->r.x, w->d, p.rows, w->d, 1);
            poly_weighted_values(r->r.u, w, i, p.rows, true);
            pack_queries(r->in, p.p, r->r.u, w->cols4, p.rows, w->cols4, 1);
            poly_from_state(w, &r->r, state, &p);
            monomials_back(b, r, state, &p);
        }
        write_keys(b, r, &p);
    }
}

void poly_heavy_key_backward(const poly_backward_job *b, const poly_heavy_gradients *s, size_t h)
{
    const poly_job *const w = &b->w;
    const size_t j = w->plan->heavy[h];
    float *const dk = b->dk.v + j * b->dk.ld;
    key_slopes(b, j, w->heavy_u + h * w->cols4, s->du + h * w->cols4);
    for (size_t c = 0; c < w->d; c++) dk[c] += b->to_k * s->dx[h * w->d + c];
}
