/* enclose_attn.c - the attention branch by kind: heads and wo, or what stands in their place.
 *
 * U averages over the visible rows: a convex combination (or 0 for an empty row), so
 *     |U x - U x'|_i <= mean over visible j of |x_j - x'_j|,
 * and one engine's mean of n rows is off by gamma_{n+2} times the mean of their norms (in
 * double-double 3 v^2 for each sum and for the division: 1 + n/4 units). */
#include "linalg/bounds.h"
#include "enclose.h"
#include <string.h>

/* ---- means over the visible rows ------------------------------------------------------------ */

typedef struct mean_job {
    const enclose_ctx *c;
    const flow *x;
    flow *y;
    const double *norm; /* of the rows of x */
} mean_job;

static void mean_row(void *ctx, size_t i)
{
    const mean_job *const w = ctx;
    const size_t t = w->c->tokens, first = i / t * t, d = w->x->x.cols;
    const pare_keys keys = pare_visible(&w->c->m->pattern, w->c->graph, t, i - first);
    double *const y = pare_row_mut(&w->y->x, i);
    const bool wide = w->y->wide;
    double r[ENGINES] = {0}, size[ENGINES] = {0};
    for (size_t j = 0; j < keys.count; j++) {
        const size_t row = first + pare_key(&keys, j);
        const double *const x = pare_row(&w->x->x, row);
        const radii own = flow_radii(w->x, row);
        if (wide)
            wide_sum_row(y, pare_row_mut(&w->y->lo, i), x, pare_row(&w->x->lo, row), d);
        else
            for (size_t k = 0; k < d; k++) y[k] += x[k];
        for (size_t e = 0; e < ENGINES; e++) {
            r[e] = up_add(r[e], own.r[e]);
            size[e] = up_add(size[e], reach(w->norm[row], own, e));
        }
    }
    if (keys.count == 0) return;
    const double n = (double)keys.count;
    if (wide)
        wide_div_row(y, pare_row_mut(&w->y->lo, i), n, d);
    else
        for (size_t k = 0; k < d; k++) y[k] /= n;
    for (size_t e = 0; e < ENGINES; e++) {
        const engine *const m = enclose_engine(wide, e);
        const double local =
            up_mul(roundings(m, keys.count, 2, 1 + keys.count / 4), up_div(size[e], n));
        const double under = up_mul(m->tiny, up_mul(n + 2, up_sqrt((double)d)));
        w->y->r[e][i] = in_range(m, size[e], up_add(up_div(r[e], n), up_add(local, under)));
    }
}

pare_status enclose_mean(flow *y, const enclose_ctx *c, const flow *x, pare_err *err)
{
    const size_t n = x->x.rows;
    double *const norm = pare_alloc(c->a, n, sizeof *norm);
    const pare_status st = norm ? enclose_flow_new(y, c, n, x->x.cols, err) : pare_no_memory(err);
    if (st != PARE_OK) return st;
    for (size_t i = 0; i < n; i++) norm[i] = flow_norm(x, i);
    mean_job w = {c, x, y, norm};
    enclose_rows(c->exec, n, mean_row, &w);
    return PARE_OK;
}

/* ---- kinds ---------------------------------------------------------------------------------- */

/* bo on every row, or 0: exact but for its rounding in a narrower engine. */
static pare_status constant(flow *y, const enclose_ctx *c, const pare_attn *at, size_t rows,
                            pare_err *err)
{
    const pare_status st = enclose_flow_new(y, c, rows, at->dout, err);
    if (st != PARE_OK || !pare_has(&at->bo)) return st;
    const double norm = pare_norm_fro(&at->bo).v;
    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < at->dout; k++)
            pare_row_mut(&y->x, i)[k] = pare_weight_at(&at->bo, k);
        for (size_t e = 0; e < ENGINES; e++) {
            const engine *const m = enclose_engine(c->wide, e);
            const double under = up_mul(m->tiny, up_sqrt((double)at->dout));
            const bool rounds = m->narrows && at->bo.dtype == PARE_F64;
            y->r[e][i] = in_range(m, norm, rounds ? up_fma(m->u, norm, under) : 0);
        }
    }
    return PARE_OK;
}

/* U (z mix^T + bv) + bo */
static pare_status uniform(flow *y, const enclose_ctx *c, const flow *z, const pare_attn *at,
                           const attn_norms *n, pare_err *err)
{
    flow values, mean;
    pare_status st = enclose_dense(&values, c, z, &at->mix, &at->bv, &n->mix[0], err);
    if (st == PARE_OK) st = enclose_mean(&mean, c, &values, err);
    if (st == PARE_OK) st = constant(y, c, at, z->x.rows, err);
    if (st == PARE_OK) enclose_sum(y, &mean);
    return st;
}

/* sum_j U^j z E_j + bo */
static pare_status umix(flow *y, const enclose_ctx *c, const flow *z, const pare_attn *at,
                        const attn_norms *n, pare_err *err)
{
    flow x = *z, next, term;
    pare_status st = constant(y, c, at, z->x.rows, err);
    for (size_t j = 0; st == PARE_OK && j < n->nmix; j++) {
        const pare_weight e = weight_rows(&at->mix, j * at->dout, at->dout);
        if (j > 0) {
            st = enclose_mean(&next, c, &x, err);
            if (st != PARE_OK) return st;
            x = next;
        }
        st = enclose_dense(&term, c, &x, &e, NULL, &n->mix[j], err);
        if (st == PARE_OK) enclose_sum(y, &term);
    }
    return st;
}

/* z matrix^T + bo + (U z) mix^T */
static pare_status affmix(flow *y, const enclose_ctx *c, const flow *z, const pare_attn *at,
                          const attn_norms *n, pare_err *err)
{
    flow mean, term;
    pare_status st = enclose_dense(y, c, z, &at->matrix, &at->bo, &n->matrix, err);
    if (st == PARE_OK) st = enclose_mean(&mean, c, z, err);
    if (st == PARE_OK) st = enclose_dense(&term, c, &mean, &at->mix, NULL, &n->mix[0], err);
    if (st == PARE_OK) enclose_sum(y, &term);
    return st;
}

static void join(double *to, const double *a, size_t na, const double *b, size_t nb)
{
    memcpy(to, a, na * sizeof *to);
    memcpy(to + na, b, nb * sizeof *to);
}

/* [z, heads] matrix^T + bo: side by side, squares of radii add up. */
static pare_status pool(flow *y, const enclose_ctx *c, const flow *z, const pare_attn *at,
                        const attn_norms *n, pare_err *err)
{
    flow o, both;
    const size_t d = z->x.cols;
    pare_status st = enclose_heads(&o, c, z, at, n, err);
    if (st == PARE_OK) st = enclose_flow_new(&both, c, z->x.rows, d + o.x.cols, err);
    if (st != PARE_OK) return st;
    for (size_t i = 0; i < z->x.rows; i++) {
        join(pare_row_mut(&both.x, i), pare_row(&z->x, i), d, pare_row(&o.x, i), o.x.cols);
        if (c->wide)
            join(pare_row_mut(&both.lo, i), pare_row(&z->lo, i), d, pare_row(&o.lo, i), o.x.cols);
        for (size_t e = 0; e < ENGINES; e++) {
            const double a = z->r[e][i], b = o.r[e][i];
            both.r[e][i] = up_sqrt(up_add(up_mul(a, a), up_mul(b, b)));
        }
    }
    return enclose_dense(y, c, &both, &at->matrix, &at->bo, &n->matrix, err);
}

static pare_status softmax_heads(flow *y, const enclose_ctx *c, const flow *z, const pare_attn *at,
                                 const attn_norms *n, pare_err *err)
{
    flow o;
    pare_status st = enclose_heads(&o, c, z, at, n, err);
    if (st != PARE_OK) return st;
    if (pare_has(&at->wo)) return enclose_dense(y, c, &o, &at->wo, &at->bo, &n->o, err);
    *y = o;
    if (!pare_has(&at->bo)) return PARE_OK;
    st = constant(y, c, at, z->x.rows, err);
    if (st == PARE_OK) enclose_sum(y, &o);
    return st;
}

pare_status enclose_attn(flow *y, const enclose_ctx *c, const flow *z, const pare_attn *at,
                         const attn_norms *n, pare_err *err)
{
    switch (at->kind) {
    case PARE_ATTN_NONE:
        break;
    case PARE_ATTN_ZERO:
    case PARE_ATTN_CONST:
        return constant(y, c, at, z->x.rows, err);
    case PARE_ATTN_EXACT:
    case PARE_ATTN_POLY: /* f64 is exact, f32 within the tolerance: enclose_poly.c */
    case PARE_ATTN_CONSTQ:
    case PARE_ATTN_MEANQ:
        return softmax_heads(y, c, z, at, n, err);
    case PARE_ATTN_UNIFORM:
        return uniform(y, c, z, at, n, err);
    case PARE_ATTN_LINEAR:
        return enclose_dense(y, c, z, &at->matrix, &at->bo, &n->matrix, err);
    case PARE_ATTN_AFFMIX:
        return affmix(y, c, z, at, n, err);
    case PARE_ATTN_POOL:
        return pool(y, c, z, at, n, err);
    case PARE_ATTN_UMIX:
        return umix(y, c, z, at, n, err);
    }
    return pare_fail(err, PARE_ERR_INPUT, "enclose: attention of an unknown kind");
}
