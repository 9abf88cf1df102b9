/* pair_attn.c - attention branches of any two kinds, between two streams that move.
 *
 * Every kind is a linear part and what its weights differ from uniform ones,
 *     F(z) = sum_j U^j z E_j + R(z) + const,     R(z) = sum_h (P_h - U) z V_h,
 * where heads give E_1 = sum_h V_h, and kinds without heads have R = 0. With z within r of the
 * doubles (row by row; U averages r as it averages rows) the branch moves by at most
 *     sum_j |E_j| U^j r + (what R moves)     or     what the heads move by themselves,
 * and the difference of f's and g's by
 *     sum_j |E^g_j| U^j v + sum_j |E^f_j - E^g_j| U^j r_f + (R of f) + (R of g),
 * or with f and g exchanged; or, where both have heads with the same values, by what pair_softmax.c
 * finds for their difference; or by the sum of both (pair_settle). Each is true: the least counts.
 * For exact attention against `uniform` the first is |sum_h V_h| v + R: first order in v only, and
 * R is small where weights are. */
#include "pair.h"
#include <string.h>

/* y = U x for distances. */
static void mean_dists(dist *y, const dist *x, const pair_ctx *c, size_t rows)
{
    const enclose_ctx *const e = &c->c[0];
    for (size_t i = 0; i < rows; i++) {
        const pare_keys keys = pare_visible(&e->m->pattern, e->graph, e->tokens, i);
        y[i] = dist_of(0);
        for (size_t j = 0; j < keys.count; j++) y[i] = dist_add(y[i], x[pare_key(&keys, j)]);
        if (keys.count) y[i] = dist_mul(up_div(1, (double)keys.count), y[i]);
    }
}

typedef struct work {
    const pair_ctx *c;
    const pair *z;
    size_t rows;
    dist *here, *next; /* scratch */
} work;

/* y += sum_j |E_j| U^j x */
static void add_linear(dist *y, const work *w, const op *e, size_t powers, const dist *x)
{
    memcpy(w->here, x, w->rows * sizeof *x);
    for (size_t j = 0; j < powers; j++) {
        if (j > 0) {
            mean_dists(w->next, w->here, w->c, w->rows);
            memcpy(w->here, w->next, w->rows * sizeof *x);
        }
        for (size_t i = 0; i < w->rows; i++) y[i] = dist_add(y[i], op_move(&e[j], w->here[i]));
    }
}

static dist *dists(const pair_ctx *c, size_t rows)
{
    return pare_alloc(c->a, rows, sizeof(dist));
}

/* How far the branch of path p moves. */
static void own_moves(dist *y, const work *w, const attn_ops *o, const head_moves *m, size_t p,
                      dist *list)
{
    const branch_ops *const b = &o->b[p];
    const size_t tokenwise = b->heads && b->powers > 0 ? 1 : 0;
    memset(list, 0, w->rows * sizeof *list);
    add_linear(list, w, b->e, b->powers, w->z->r[p]);
    for (size_t i = 0; i < w->rows; i++) y[i] = list[i];
    if (!b->heads) return;
    memset(list, 0, w->rows * sizeof *list);
    add_linear(list, w, b->e, tokenwise, w->z->r[p]); /* pool: the part without heads */
    for (size_t i = 0; i < w->rows; i++)
        y[i] = dist_min(dist_add(y[i], m->rest[p][i]), dist_add(list[i], m->own[p][i]));
}

/* The variation of the difference through E of path p, which then sees r of the other one. */
static void through(dist *y, const work *w, const attn_ops *o, const head_moves *m, size_t p)
{
    memset(y, 0, w->rows * sizeof *y);
    add_linear(y, w, o->b[p].e, o->b[p].powers, w->z->v);
    if (!o->same) add_linear(y, w, o->apart, o->powers, w->z->r[1 - p]);
    for (size_t q = 0; q < 2; q++)
        for (size_t i = 0; o->b[q].heads && i < w->rows; i++) y[i] = dist_add(y[i], m->rest[q][i]);
}

static void difference(pair *y, const work *w, const attn_ops *o, const head_moves *m, dist *list)
{
    through(y->v, w, o, m, 0);
    through(list, w, o, m, 1);
    for (size_t i = 0; i < w->rows; i++) {
        y->v[i] = dist_min(y->v[i], list[i]);
        if (o->paired) y->v[i] = dist_min(y->v[i], m->apart[i]);
        y->z[i] = dist_of(INFINITY);
    }
    if (!o->same || o->b[0].heads) return;
    memset(y->z, 0, w->rows * sizeof *y->z);
    add_linear(y->z, w, o->b[0].e, o->b[0].powers, w->z->z);
}

static pare_status moves_new(head_moves *m, const pair_ctx *c, const attn_ops *o, size_t rows,
                             pare_err *err)
{
    *m = (head_moves){0};
    for (size_t p = 0; p < 2; p++) {
        if (!o->b[p].heads) continue;
        m->own[p] = dists(c, rows);
        m->rest[p] = dists(c, rows);
        if (!m->own[p] || !m->rest[p]) return pare_no_memory(err);
    }
    m->apart = dists(c, rows);
    return m->apart ? PARE_OK : pare_no_memory(err);
}

/* A stream that splits here: as if it had been two all along. */
static pair split(const pair *z, bool one)
{
    pair y = *z;
    y.one = one;
    return y;
}

pare_status pair_attn(pair *y, const pair_ctx *c, const pair *x, size_t b, pare_err *err)
{
    const attn_ops *const o = &c->ops->attn[b];
    const pair z = split(x, x->one && o->same);
    const size_t rows = z.h[0].rows;
    head_moves m;
    work w = {c, &z, rows, dists(c, rows), dists(c, rows)};
    dist *const list = dists(c, rows);
    pare_status st = pair_new(y, c, &z, rows, c->c[0].m->blocks[b].attn.dout, err);
    if (st == PARE_OK && (!w.here || !w.next || !list)) st = pare_no_memory(err);
    if (st == PARE_OK) st = moves_new(&m, c, o, rows, err);
    if (st == PARE_OK && (o->b[0].heads || o->b[1].heads)) st = pair_heads(&m, c, &z, b, err);
    if (st != PARE_OK) return st;
    for (size_t p = 0; p < pair_paths(&z); p++) own_moves(y->r[p], &w, o, &m, p, list);
    if (!z.one) difference(y, &w, o, &m, list);
    for (size_t p = 0; p < pair_paths(&z); p++) {
        const flow from = pair_flow(c, &z.h[p]);
        const enclose_ctx *const e = &c->c[p];
        flow to;
        st = enclose_attn(&to, e, &from, &e->m->blocks[b].attn, &e->norms->attn[b], err);
        if (st != PARE_OK) return st;
        pair_take(y, p, &to);
    }
    pair_settle(y);
    return PARE_OK;
}
