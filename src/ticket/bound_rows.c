/* bound_rows.c - Theorem C: one attention layer for given rows and any pattern, row by row
 * (docs/theory/ticket.md "Theorem C: one attention layer, given rows").
 *
 * Claim. With N(i) the keys that row i sees and d_i >= |x_i - x~_i|,
 *   |out_i - out~_i| <= sum_h [ 2 rho_i tanh(r_i / 4) + max_{k in N(i)} value_k ] + bias
 *   r_i      range over N(i) of [x_i 1] E^q x_k, plus twice the most that moving the rows can
 * change a score of g:  |[x_i 1] G~| d_k + d_i |G~_0| (|x_k| + d_k); rho_i    radius of a ball that
 * holds the attended V x_k: around their mean, the center of their box, or 0, whichever is
 * smallest; or of the V~ x~_k; value_k  |E^v x_k| + |V~| d_k. Rotary heads: r_i is twice the most
 * of |q_i||k_k - k~_k| + |q_i - q~_i||k~_k|. Proof. As Theorem B, with the exact x_i, x_k in the
 * place of their lengths.  [] Rounding. x_k is within rad_k of its midpoint and E within `off` of
 * its own in the Frobenius norm; products of f64 numbers are off by gamma times products of
 * lengths. All of it is added. Cost: O(pairs (din + dout)) per head, O(n) memory beside the
 * products. */
#include "base/support.h"
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "ticket_bounds.h"
#include "bound_rows.h"
#include <math.h>

static double rad_of(const given_rows *x, size_t k)
{
    return x->rad ? x->rad[k] : 0;
}

static double moved_of(const given_rows *x, size_t k)
{
    return x->d ? x->d[k] : 0;
}

static pare_ub ub(double v)
{
    return pare_ub_exact(v);
}

static double *numbers(pare_work *p, size_t n)
{
    double *const v = p->st ? NULL : pare_alloc(p->arena, n + 1, sizeof *v);
    if (!v && !p->st) p->st = pare_no_memory(p->err);
    return v;
}

static pare_ub length_of(const double *v, size_t n)
{
    const pare_weight row = {PARE_F64, 1, n, v};
    return n ? pare_norm_fro(&row) : ub(0);
}

/* [Z 1] for forms and biased maps. */
static pare_mat with_ones(pare_work *p, const pare_mat *z)
{
    const rmat m = rmat_new(p, z->rows, z->cols + 1);
    for (size_t i = 0; !p->st && i < z->rows; i++) {
        double *const to = m.mid.v + i * (z->cols + 1);
        for (size_t j = 0; j < z->cols; j++) to[j] = pare_row(z, i)[j];
        to[z->cols] = 1;
    }
    return m.mid;
}

rows_view rows_view_of(pare_work *p, const given_rows *x)
{
    const rows_view v = {p, x, x->z.rows, numbers(p, x->z.rows)};
    for (size_t i = 0; !p->st && i < v.n; i++)
        v.norm[i] = pare_ub_add(length_of(pare_row(&x->z, i), x->z.cols), ub(rad_of(x, i))).v;
    return v;
}

image rows_image(const rows_view *v, const rmat *m, bool transpose, bool one, pare_ub two)
{
    pare_work *const p = v->p;
    image y = {{0}, numbers(p, v->n), numbers(p, v->n)};
    if (p->st) return y;
    const pare_mat z = one ? with_ones(p, &v->x->z) : v->x->z;
    y.y = rmat_new(p, v->n, transpose ? m->mid.rows : m->mid.cols).mid;
    if (p->st) return y;
    pare_gemm(&y.y, 1, &z, false, &m->mid, transpose, 0);
    const rmat mids = {m->mid, ub(0)};
    const pare_ub each =
        pare_ub_fma(pare_gamma(z.cols + 2, PARE_UNIT_F64), rmat_fro(&mids), m->off);
    for (size_t k = 0; k < v->n; k++) {
        pare_ub size = ub(v->norm[k]);
        if (one) size = pare_ub_sqrt(pare_ub_fma(size, size, ub(1)));
        const pare_ub tiny = pare_ub_mul(ub((double)z.cols * (double)y.y.cols), ub(0x1p-1074));
        const pare_ub slack =
            pare_ub_add(pare_ub_fma(each, size, tiny), pare_ub_mul(two, ub(rad_of(v->x, k))));
        y.slack[k] = slack.v;
        y.length[k] = pare_ub_add(length_of(pare_row(&y.y, k), y.y.cols), slack).v;
    }
    return y;
}

/* ---- scores ---------------------------------------------------------------------------------- */

typedef struct head_rows {
    const rows_view *v;
    const head_sizes *s;
    image form, form_g;           /* plain: [X 1] E, [X 1] G~ */
    image q, qe, qt, k, ke, kt;   /* turning */
    image values, values_g, left; /* V x, V~ x, E^v x */
    pare_ub *out;                 /* n: added to */
} head_rows;

/* What rounding and moved rows may add to the computed scores of row i over its keys. */
static pare_ub score_slack(const head_rows *h, size_t i, size_t k)
{
    const rows_view *const v = h->v;
    const pare_ub nk = ub(v->norm[k]), d = ub(moved_of(v->x, k));
    const pare_ub dot = pare_ub_mul(pare_gamma(v->x->z.cols + 2, PARE_UNIT_F64),
                                    pare_ub_mul(ub(h->form.length[i]), nk));
    pare_ub s = pare_ub_add(dot, pare_ub_mul(ub(h->form.slack[i]), nk));
    s = pare_ub_fma(ub(h->form.length[i]), ub(rad_of(v->x, k)), s);
    s = pare_ub_fma(ub(h->form_g.length[i]), d, s);
    s = pare_ub_fma(pare_ub_mul(ub(moved_of(v->x, i)), h->s->gt.w), pare_ub_add(nk, d), s);
    return pare_ub_add(s, ub((double)v->x->z.cols * 0x1p-1074));
}

static pare_ub plain_range(const head_rows *h, size_t i, const pare_keys *keys)
{
    const size_t din = h->v->x->z.cols;
    double low = INFINITY, high = -INFINITY;
    pare_ub slack = ub(0);
    for (size_t j = 0; j < keys->count; j++) {
        const size_t k = pare_key(keys, j);
        const double *const a = pare_row(&h->form.y, i), *const b = pare_row(&h->v->x->z, k);
        double sum = 0;
        for (size_t c = 0; c < din; c++) sum += a[c] * b[c];
        if (!isfinite(sum)) return pare_ub_inf();
        low = fmin(low, sum);
        high = fmax(high, sum);
        slack = pare_ub_max(slack, score_slack(h, i, k));
    }
    const pare_ub seen = high > low ? pare_ub_of(high - low) : ub(0);
    return pare_ub_fma(ub(2), slack, seen);
}

/* |m x_k - m~ x~_k| and |m~ x~_k| */
static pare_ub map_gap(const rows_view *v, const image *e, const affine *t, size_t k)
{
    return pare_ub_fma(t->w, ub(moved_of(v->x, k)), ub(e->length[k]));
}

static pare_ub turning_range(const head_rows *h, size_t i, const pare_keys *keys)
{
    const pare_ub dq = map_gap(h->v, &h->qe, &h->s->qt, i);
    pare_ub most = ub(0);
    for (size_t j = 0; j < keys->count; j++) {
        const size_t k = pare_key(keys, j);
        const pare_ub dk = map_gap(h->v, &h->ke, &h->s->kt, k),
                      key = map_gap(h->v, &h->kt, &h->s->kt, k);
        const pare_ub s = pare_ub_fma(ub(h->q.length[i]), dk, pare_ub_mul(dq, key));
        most = pare_ub_max(most, s);
    }
    return pare_ub_mul(ub(2), most);
}

/* ---- values ---------------------------------------------------------------------------------- */

enum { AROUND_BOX, AROUND_MEAN };

static void centre_of(double *c, const image *y, const pare_keys *keys, int which)
{
    const size_t n = y->y.cols;
    for (size_t o = 0; o < n; o++) {
        double low = INFINITY, high = -INFINITY, sum = 0;
        for (size_t j = 0; j < keys->count; j++) {
            const double v = pare_row(&y->y, pare_key(keys, j))[o];
            low = fmin(low, v);
            high = fmax(high, v);
            sum += v;
        }
        c[o] = which == AROUND_BOX ? low / 2 + high / 2 : sum / (double)keys->count;
    }
}

/* |y_k - c| over the keys, with the images' slack and what moves them. Any c will do. */
static pare_ub radius_about(const rows_view *v, const image *y, const pare_keys *keys,
                            const double *c, pare_ub moves)
{
    pare_ub most = ub(0);
    for (size_t j = 0; j < keys->count; j++) {
        const size_t k = pare_key(keys, j);
        pare_ub sum = ub(0);
        for (size_t o = 0; c && o < y->y.cols; o++) {
            const double gap = pare_row(&y->y, k)[o] - c[o];
            const pare_ub g = gap == 0 ? ub(0) : pare_ub_of(gap);
            sum = pare_ub_fma(g, g, sum);
        }
        const pare_ub r = c ? pare_ub_add(pare_ub_sqrt(sum), ub(y->slack[k])) : ub(y->length[k]);
        most = pare_ub_max(most, pare_ub_fma(moves, ub(moved_of(v->x, k)), r));
    }
    return most;
}

static pare_ub radius_of(const rows_view *v, const image *y, const pare_keys *keys, double *c,
                         pare_ub moves)
{
    pare_ub r = radius_about(v, y, keys, NULL, moves);
    for (int which = AROUND_BOX; which <= AROUND_MEAN; which++) {
        centre_of(c, y, keys, which);
        r = pare_ub_min(r, radius_about(v, y, keys, c, moves));
    }
    return r;
}

static pare_ub value_gap(const head_rows *h, const pare_keys *keys)
{
    pare_ub most = ub(0);
    for (size_t j = 0; j < keys->count; j++) {
        const size_t k = pare_key(keys, j);
        const pare_ub slope = pare_ub_min(h->s->vt, pare_ub_add(h->s->v, h->s->ve));
        most =
            pare_ub_max(most, pare_ub_fma(slope, ub(moved_of(h->v->x, k)), ub(h->left.length[k])));
    }
    return most;
}

/* ---- a head ---------------------------------------------------------------------------------- */

static void row_of_head(void *ctx, size_t i)
{
    const head_rows *const h = ctx;
    const given_rows *const x = h->v->x;
    const pare_keys keys = pare_visible(x->pattern, x->graph, h->v->n, i);
    if (keys.count == 0) return;
    double *const c = h->values.y.v + (h->v->n + i) * h->values.y.cols; /* room behind the rows */
    const pare_ub range = h->s->factored ? turning_range(h, i, &keys) : plain_range(h, i, &keys);
    const pare_ub rho = pare_ub_min(radius_of(h->v, &h->values, &keys, c, ub(0)),
                                    radius_of(h->v, &h->values_g, &keys, c, h->s->vt));
    const pare_ub scores = pare_ub_mul(pare_ub_mul(ub(2), rho), pare_softmax_perturbation(range));
    h->out[i] = pare_ub_add(h->out[i], pare_ub_add(scores, value_gap(h, &keys)));
}

/* The rows of the values stand in front of as many rows of room for centres. */
static void give_room(pare_work *p, image *y)
{
    const rmat twice = rmat_new(p, 2 * y->y.rows, y->y.cols);
    if (p->st) return;
    for (size_t i = 0; i < y->y.rows * y->y.cols; i++) twice.mid.v[i] = y->y.v[i];
    y->y = pare_mat_part(&twice.mid, 0, 0, y->y.rows, y->y.cols);
}

static void head_rows_move(const rows_view *v, pare_ub *out, const pare_attn *f, const pare_attn *g,
                           const head_sizes *s, size_t head)
{
    pare_work *const p = v->p;
    const head_pair pair = head_pair_of(p, f, g, head);
    head_rows h = {.v = v, .s = s, .out = out};
    if (p->st) return;
    if (s->factored) {
        h.q = rows_image(v, &pair.q, true, true, s->q.w);
        h.qe = rows_image(v, &pair.qe, true, true, s->qe.w);
        h.ke = rows_image(v, &pair.ke, true, true, s->ke.w);
        h.kt = rows_image(v, &pair.kt, true, true, s->kt.w);
    } else {
        h.form = rows_image(v, &pair.ge, false, true, s->ge.w);
        h.form_g = rows_image(v, &pair.gt, false, true, s->gt.w);
    }
    h.values = rows_image(v, &pair.v, true, false, s->v);
    h.values_g = rows_image(v, &pair.vt, true, false, s->vt);
    h.left = rows_image(v, &pair.ve, true, false, s->ve);
    give_room(p, &h.values);
    if (!p->st) p->st = pare_parallel_until(p->exec, v->n, row_of_head, &h, p->err);
}

void attn_rows_move(pare_work *p, pare_ub *out, const pare_attn *f, const pare_attn *g,
                    const attn_sizes *s, const given_rows *x)
{
    const rows_view v = rows_view_of(p, x);
    for (size_t i = 0; !p->st && i < v.n; i++) out[i] = ub(0);
    for (size_t h = 0; !p->st && h < s->nheads; h++) {
        const pare_mark mark = pare_arena_mark(p->arena);
        head_rows_move(&v, out, f, g, &s->heads[h], h);
        pare_arena_reset(p->arena, mark);
    }
    for (size_t i = 0; !p->st && i < v.n; i++) {
        const bool empty = pare_visible(x->pattern, x->graph, v.n, i).count == 0;
        out[i] = pare_ub_add(out[i], empty ? s->empty_e : s->bias_e);
    }
}

pare_status pare_ticket_rows_bound(pare_ub *out, const pare_model *f, const pare_model *g, size_t b,
                                   const pare_mat *x, const pare_graph *graph,
                                   const pare_exec *exec, pare_err *err)
{
    char why[200] = "";
    for (size_t i = 0; i < x->rows; i++) out[i] = pare_ub_inf();
    if (b >= f->nblocks || b >= g->nblocks || x->cols != f->blocks[b].attn.din)
        return pare_fail(err, PARE_ERR_USAGE, "rows of width %zu for block %zu do not fit", x->cols,
                         b);
    pare_work p = {pare_arena_new(), exec, err, PARE_OK};
    if (!p.arena) return pare_no_memory(err);
    const attn_sizes s = attn_sizes_of(&p, f, g, b, why);
    const given_rows rows = {*x, NULL, NULL, &f->pattern, graph};
    if (!p.st && !*why) attn_rows_move(&p, out, &f->blocks[b].attn, &g->blocks[b].attn, &s, &rows);
    pare_arena_free(p.arena);
    return p.st;
}
