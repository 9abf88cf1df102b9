/* pair_heads.c - softmax heads of a pair at the doubles: queries, keys and values as vectors that
 * multiply what moves.
 *
 * A score is s_ij = scale q_i.k_j. When row i moves by a and row j by b,
 *     s_ij changes by  a.(scale Wq^T k_j) + b.(scale Wk^T q_i) + scale a^T Wq^T Wk b,
 * so `key_j` = scale Wq^T k_j and `turn_i` = scale Wk^T q_i are kept as vectors; what is the same
 * for all keys of a row does not count, so key_j may be taken from any middle. A query that is a
 * constant has no key vectors; one that is the mean of all moves with the mean of a. Under rotary
 * positions (q and k turned by their own angles) the vectors depend on both places: then
 * |scale| |Wq| |k_j - middle| and |scale| |Wk| |q_i| stand for them.
 *
 * Each computed product carries gamma of its inner dimension times norms. */
#include "base/support.h"
#include "linalg/bounds.h"
#include "model/model_facts.h"
#include "pair_heads.h"
#include <stdlib.h>

enum { PAIRWISE = 512 };    /* rows up to which all pairs of values are compared */
#define VERTEX_WORK     1e8 /* steps of one head on one path, at most */
#define COVARIANCE_WORK 2e8

/* ---- vectors -------------------------------------------------------------------------------- */

lever lever_of(const double *t, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += fabs(t[k]);
    const double one = up_mul(sum, up_add(1, gamma_of(n + 1, PARE_UNIT_F64)));
    return (lever){enclose_norm_up(t, n), one};
}

lever lever_apart(const double *t, const double *s, size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++) sum += fabs(t[k] - s[k]);
    const double one = up_mul(sum, up_add(1, gamma_of(n + 3, PARE_UNIT_F64)));
    return (lever){enclose_distance_up(t, s, n), one};
}

void far_from_middle(lever *far, const pare_mat *x, const double *off, const pare_keys *keys,
                     double *centre)
{
    const size_t n = keys ? keys->count : x->rows, d = x->cols;
    for (size_t k = 0; k < d; k++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t j = 0; j < n; j++) {
            const double v = pare_row(x, keys ? pare_key(keys, j) : j)[k];
            if (v < low) low = v;
            if (v > high) high = v;
        }
        centre[k] = 0.5 * low + 0.5 * high; /* any number would do */
    }
    for (size_t j = 0; j < n; j++) {
        const size_t row = keys ? pare_key(keys, j) : j;
        far[j] = lever_raise(lever_apart(pare_row(x, row), centre, d), off[row], d);
    }
}

dist rows_diameter(const pare_mat *u, const double *off)
{
    const size_t n = u->rows, d = u->cols;
    double most = 0, two = 0, far = 0;
    for (size_t i = 0; i < n; i++) far = up_max(far, off[i]);
    for (size_t k = 0; k < d; k++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            low = fmin(low, pare_row(u, i)[k]);
            high = fmax(high, pare_row(u, i)[k]);
        }
        if (high > low) most = up_max(most, up(high - low));
    }
    for (size_t i = 0; n <= PAIRWISE && i < n; i++)
        for (size_t j = 0; j < i; j++)
            two = up_max(two, enclose_distance_up(pare_row(u, i), pare_row(u, j), d));
    for (size_t i = 1; n > PAIRWISE && i < n; i++) /* each from the first one: at most half of it */
        two = up_max(two, up_mul(2, enclose_distance_up(pare_row(u, i), pare_row(u, 0), d)));
    return dist_tidy(dist_add((dist){two, most}, dist_of(up_mul(2, far))), d);
}

/* ---- one head of one path ------------------------------------------------------------------- */

/* y = x w (x rows x p, w p x d); *off: of each row, when x is off by x_off and has that norm. */
static pare_status product(pare_mat *y, double **off, pare_arena *a, const pare_mat *x,
                           const double *x_off, size_t stride, const pare_mat *w, bool tw,
                           double fro, double scale, pare_err *err)
{
    const size_t inner = x->cols, out = tw ? w->rows : w->cols;
    *y = pare_mat_new(a, x->rows, out);
    *off = pare_alloc(a, x->rows, sizeof **off);
    if ((!y->v && x->rows > 0 && out > 0) || !*off) return pare_no_memory(err);
    pare_gemm(y, scale, x, false, w, tw, 0);
    const double g = gamma_of(inner + 4, PARE_UNIT_F64);
    for (size_t i = 0; i < x->rows; i++) {
        const double size = up_mul(fro, enclose_norm_up(pare_row(x, i), inner));
        const double own = up_fma(g, size, up_mul(fro, x_off[i * stride]));
        (*off)[i] = up_fma(fabs(scale), own, 0x1p-900);
    }
    return PARE_OK;
}

static pare_mat side_part(const side *s, size_t g)
{
    return (pare_mat){s->x.rows, s->width[g], s->x.ld, s->x.v + s->at[g]};
}

static pare_status key_vectors(head_view *v, const pair_ctx *c, const pare_attn *at, pare_err *err)
{
    const size_t nh = at->nheads, n = v->h->k.x.rows;
    double *const centre = pare_alloc(c->a, at->din + v->d->dk + 1, sizeof *centre);
    v->far = pare_alloc(c->a, n, sizeof *v->far);
    if (!centre || !v->far) return pare_no_memory(err);
    const pare_mat k = side_part(&v->h->k, v->g), q = side_part(&v->h->q, v->g);
    const double *const rk = v->h->k.r[0] + v->g, *const rq = v->h->q.r[0] + v->g;
    if (v->turned) return PARE_OK; /* levers are made from norms, row by row */
    pare_mat wq, wk;
    pare_status st = head_matrix(&wq, c->a, at, v->g, 'q', err);
    if (st == PARE_OK) st = head_matrix(&wk, c->a, at, v->g, 'k', err);
    if (st == PARE_OK)
        st = product(&v->turn, &v->turn_off, c->a, &q, rq, nh, &wk, false, v->o->fk, v->d->scale,
                     err);
    if (st != PARE_OK || !v->moves) return st;
    st = product(&v->key, &v->key_off, c->a, &k, rk, nh, &wq, false, v->o->fq, v->d->scale, err);
    if (st == PARE_OK) far_from_middle(v->far, &v->key, v->key_off, NULL, centre);
    return st;
}

static pare_status value_vectors(head_view *v, const pair_ctx *c, const pare_mat *z,
                                 const pare_attn *at, pare_err *err)
{
    pare_mat wv, wo, values;
    double *off;
    pare_status st = head_matrix(&wv, c->a, at, v->g, 'v', err);
    if (st == PARE_OK) st = head_matrix(&wo, c->a, at, v->g, 'o', err);
    if (st == PARE_OK)
        st = product(&values, &off, c->a, z, c->zeros, 1, &wv, true, v->o->fv, 1, err);
    if (st == PARE_OK)
        st = product(&v->u, &v->u_off, c->a, &values, off, 1, &wo, true, v->o->fo, 1, err);
    if (st == PARE_OK) v->diameter = rows_diameter(&v->u, v->u_off);
    return st;
}

/* ---- the order of the values ---------------------------------------------------------------- */

static double visible_pairs(const pair_ctx *c, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += (double)pare_visible(&c->c[0].m->pattern, c->c[0].graph, n, i).count;
    return sum;
}

static pare_status order_values(head_view *v, const pair_ctx *c, pare_err *err)
{
    const size_t n = v->u.rows, d = v->u.cols;
    if (n > UINT32_MAX || (double)n * (double)n * (double)d > VERTEX_WORK) return PARE_OK;
    v->order = pare_alloc(c->a, d, n * sizeof *v->order);
    pare_keyed *const list = pare_alloc(c->a, n, sizeof *list);
    if (!v->order || !list) return pare_no_memory(err);
    for (size_t k = 0; k < d; k++) {
        for (size_t i = 0; i < n; i++) list[i] = (pare_keyed){pare_row(&v->u, i)[k], (uint32_t)i};
        pare_largest_first(list, n);
        for (size_t i = 0; i < n; i++) v->order[k * n + i] = list[i].id;
    }
    return PARE_OK;
}

/* ---- both paths ----------------------------------------------------------------------------- */

/* What a query depends on: its own row, the mean of all, or nothing. */
static const dist *query_dists(const pair_ctx *c, const pare_attn *at, const dist *x, size_t n)
{
    if (pare_has(&at->wq) && at->kind != PARE_ATTN_MEANQ && at->kind != PARE_ATTN_POOL &&
        at->kind != PARE_ATTN_CONSTQ)
        return x;
    dist *const y = pare_alloc(c->a, n, sizeof *y);
    dist sum = dist_of(0);
    if (!y || at->kind != PARE_ATTN_MEANQ) return y;
    for (size_t i = 0; i < n; i++) sum = dist_add(sum, x[i]);
    for (size_t i = 0; i < n; i++) y[i] = dist_mul(up_div(1, (double)n), sum);
    return y;
}

static pare_status view_new(head_view *v, const pair_ctx *c, const pair *z, const attn_ops *o,
                            size_t b, size_t p, const heads *h, size_t g, pare_err *err)
{
    const pare_attn *const at = &c->c[p].m->blocks[b].attn;
    *v = (head_view){.c = &c->c[p], .h = h, .d = &at->heads[g], .o = &o->b[p].heads[g], .g = g};
    v->turned = pare_model_is_rotary(c->c[p].m) && pare_has(&at->freqs) && v->d->planes > 0;
    v->moves = pare_has(&at->wq) && at->kind != PARE_ATTN_CONSTQ && at->kind != PARE_ATTN_POOL;
    v->r = z->r[p];
    v->rq = query_dists(c, at, z->r[p], z->h[p].rows);
    if (!v->rq) return pare_no_memory(err);
    pare_status st = value_vectors(v, c, &z->h[p], at, err);
    if (st == PARE_OK) st = key_vectors(v, c, at, err);
    return st == PARE_OK ? order_values(v, c, err) : st;
}

/* What the difference of a paired head needs. */
static pare_status difference_new(head_pair *h, const pair_ctx *c, const pare_attn *at,
                                  pare_err *err)
{
    const head_view *const f = &h->view[0], *const g = &h->view[1];
    const size_t n = f->u.rows;
    pare_mat apart = pare_mat_new(c->a, n, f->u.cols), keys = {0};
    double *const off = pare_alloc(c->a, n, sizeof *off);
    double *const centre = pare_alloc(c->a, at->din + 1, sizeof *centre);
    h->far = pare_alloc(c->a, n, sizeof *h->far);
    h->vq = query_dists(c, at, h->z->v, n);
    if ((!apart.v && n > 0) || !off || !centre || !h->far || !h->vq) return pare_no_memory(err);
    for (size_t i = 0; i < n * f->u.cols; i++) apart.v[i] = f->u.v[i] - g->u.v[i];
    for (size_t i = 0; i < n; i++) {
        const double size = enclose_norm_up(pare_row(&apart, i), apart.cols);
        off[i] = up_fma(0x1p-52, size, up_add(f->u_off[i], g->u_off[i]));
    }
    h->diameter = rows_diameter(&apart, off);
    if (!h->o->scored || f->turned || !f->moves) return PARE_OK;
    keys = pare_mat_new(c->a, n, f->key.cols);
    if (!keys.v && n > 0) return pare_no_memory(err);
    for (size_t i = 0; i < n * f->key.cols; i++) keys.v[i] = f->key.v[i] - g->key.v[i];
    for (size_t i = 0; i < n; i++) {
        const double size = enclose_norm_up(pare_row(&keys, i), keys.cols);
        off[i] = up_fma(0x1p-52, size, up_add(f->key_off[i], g->key_off[i]));
    }
    far_from_middle(h->far, &keys, off, NULL, centre);
    return PARE_OK;
}

static pare_status one_head(head_sums *s, const pair_ctx *c, const pair *z, size_t b, size_t g,
                            const heads sides[2], pare_err *err)
{
    const attn_ops *const o = &c->ops->attn[b];
    head_pair h = {.c = c, .z = z, .o = o, .paths = pair_paths(z)};
    pare_status st = PARE_OK;
    h.paired = o->paired && !z->one;
    for (size_t p = 0; st == PARE_OK && p < h.paths; p++) {
        if (!o->b[p].heads || g >= c->c[p].m->blocks[b].attn.nheads) continue;
        st = view_new(&h.view[p], c, z, o, b, p, &sides[p], g, err);
    }
    /* Turned queries compare only with queries that turn alike; else nothing is known of the
     * difference itself. */
    if (h.paired && !o->scored && (h.view[0].turned || h.view[1].turned)) {
        h.paired = false;
        for (size_t i = 0; i < z->h[0].rows; i++) s->apart[i] = dist_of(INFINITY);
    }
    if (st == PARE_OK && h.paired) st = difference_new(&h, c, &c->c[0].m->blocks[b].attn, err);
    if (st != PARE_OK) return st;
    const head_view *const v = h.view[0].h ? &h.view[0] : &h.view[1];
    const double each = (double)v->u.cols * (double)v->d->dk;
    h.covariance =
        each * (visible_pairs(c, v->u.rows) + (double)v->u.rows * (double)z->h[0].cols) <=
        COVARIANCE_WORK;
    return pair_softmax(&h, s, err);
}

/* ---- the sublayer --------------------------------------------------------------------------- */

static pare_status sums_new(head_sums *s, const pair_ctx *c, const head_moves *m, size_t rows,
                            size_t dout, pare_err *err)
{
    *s = (head_sums){.apart = m->apart};
    for (size_t p = 0; p < 2; p++) {
        if (!m->own[p]) continue;
        s->own[p] = m->own[p];
        s->rest[p] = m->rest[p];
        s->swing[p] = pare_alloc(c->a, rows, sizeof *s->swing[p]);
        s->vertex[p] = pare_mat_new(c->a, rows, dout);
        if (!s->swing[p] || (!s->vertex[p].v && rows > 0)) return pare_no_memory(err);
    }
    return PARE_OK;
}

/* The least of what all heads swing by, taken head by head or entry by entry. */
static void add_swings(head_sums *s, size_t p, size_t rows, size_t dout)
{
    for (size_t i = 0; i < rows; i++) {
        dist swing = s->swing[p][i];
        if (s->vertex[p].v) {
            const double *const v = pare_row(&s->vertex[p], i);
            const dist by_entry = {enclose_norm_up(v, dout), enclose_max_up(v, dout)};
            swing = dist_min(swing, by_entry);
        }
        s->own[p][i] = dist_add(s->own[p][i], swing);
        s->rest[p][i] = dist_add(s->rest[p][i], swing);
    }
}

pare_status pair_heads(head_moves *m, const pair_ctx *c, const pair *z, size_t b, pare_err *err)
{
    const size_t rows = z->h[0].rows;
    heads sides[2] = {{0}};
    size_t nheads = 0;
    head_sums s;
    pare_status st = sums_new(&s, c, m, rows, c->c[0].m->blocks[b].attn.dout, err);
    for (size_t p = 0; st == PARE_OK && p < pair_paths(z); p++) {
        const enclose_ctx *const e = &c->c[p];
        const pare_attn *const at = &e->m->blocks[b].attn;
        if (!attn_has_heads(at)) continue;
        sides[p] = (heads){.c = e, .at = at, .n = &e->norms->attn[b]};
        const flow from = pair_flow(c, &z->h[p]);
        st = enclose_sides(&sides[p], &from, err);
        if (at->nheads > nheads) nheads = at->nheads;
    }
    for (size_t g = 0; st == PARE_OK && g < nheads; g++) {
        const pare_mark mark = pare_arena_mark(c->a);
        st = one_head(&s, c, z, b, g, sides, err);
        pare_arena_reset(c->a, mark);
    }
    for (size_t p = 0; st == PARE_OK && p < pair_paths(z); p++)
        if (s.own[p]) add_swings(&s, p, rows, s.vertex[p].cols);
    return st;
}
