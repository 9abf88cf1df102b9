/* move.c - how far a layer moves its rows when its input rows move (docs/theory/width.md section
 * 6).
 *
 * Claim. If |h'_i - h_i| <= e_i for all i, then |layer(H')_i - layer(H)_i| <= out_i, for the
 * real-number function of the layer at the given doubles H.
 *
 * Scores. (q + dq).(k_j + dk_j) - q.k_j = dq.k_j + q.dk_j + dq.dk_j, and what is the same for all
 * keys of a row does not count: k_j may be taken from any center c_i. So the score of key j moves
 * by at most
 *
 *     d_j = |scale| (e_i |Wq^T (k_j - c_i)| + e_j |Wk^T q_i| + |Wq^T Wk| e_i e_j).
 *
 * Weights. If scores move by at most d_j, a weight a_j grows at most to
 *
 *     hi = a_j / (a_j + sum_{u /= j} a_u e^{-d_u - d_j}),
 *     hi - a_j = a_j E / (1 - E),     E = sum_{u /= j} a_u (1 - e^{-d_u - d_j}),
 *
 * and falls by at most a_j F / (1 + F), F = sum_{u /= j} a_u (e^{d_u + d_j} - 1). Written so,
 * nothing cancels, and all of it grows with a and d: upper bounds of these are enough. Total
 * variation is at most tanh(max d / 2), the sum of the rises, the sum of the falls, and 1. (d must
 * not be capped: a weight below e^-300 may still become 1.)
 *
 * Values. With u = Wo (Wv h + bv), any center o_i, and w_j the larger of rise and fall, the head's
 * output moves by at most
 *
 *     min( sum_j w_j |u_j - o_i|, 2 TV max_j |u_j - o_i| )
 *       + |Wo Wv| (sum_j a_j e_j + TV (max e - min e)).
 *
 * Hidden layer. Where t_f = w1_f.z + b1_f is farther from 0 than |w1_f| m_i (m_i: what z_i
 * moves) a ReLU is linear on the way; the others have some slope in [0, 1]:
 *
 *     out_i <= ( |R2 + W2 diag(1 | 0 | 1/2) W1| + 1/2 sum_{others} |w2_f||w1_f| ) m_i
 *     out_i <= ( |R2 + c W2 W1| + r |W2 S^-1||S W1| ) m_i     for slopes in [c - r, c + r], any S.
 *
 * Rounding. Products carry gamma_n times Frobenius norms; the weights at H are known up to a
 * factor, which only enlarges them; norms come with their residuals (singular_bounds.c).
 *
 * Cost: a layer's forward pass three times over, and (ReLU) four products D x D x D for each row
 * whose undecided units leave it a chance against the second bound. */
#include "prove.h"
#include "cert/prove.h"
#include "linalg/bounds.h"
#include "linalg/elementary.h"
#include "linalg/matrix.h"
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#define TINY   0x1p-1000 /* more than all underflows of a row together */
#define WIDEST 300       /* moves of scores beyond it: nothing is said of the weights */
enum { SUMS = 4 };

static pare_ub ub(double x)
{
    return pare_ub_exact(x);
}

static pare_ub add(pare_ub a, pare_ub b)
{
    return pare_ub_add(a, b);
}

static pare_ub mul(pare_ub a, pare_ub b)
{
    return pare_ub_mul(a, b);
}

/* ---- norms of a layer ----------------------------------------------------------------------- */

typedef struct head_sizes {
    pare_ub scale, fq, fk, fv, fo, bq, bv; /* Frobenius norms */
    pare_ub qk, ov;                        /* |Wq^T Wk|_2, |Wo Wv|_2 */
} head_sizes;

struct mover {
    const net_layer *l;
    pare_ub off, under, r1; /* under: what entries of a folded matrix lose to underflow, together */
    head_sizes *heads;
    pare_ub *n1, *both; /* |w1_f|, |w1_f||w2_f| */
    pare_ub whole;      /* second bound of the hidden layer, for every row */
    pare_ub blur;       /* what a computed R2 + W2 diag W1 may be off by */
    size_t squarings;
};

/* |W|_2 of a matrix whose entries are off by a share of themselves, and by `under` together. */
static pare_ub norm_off(pare_work *w, const pare_mat *m, pare_ub off, pare_ub under)
{
    const pare_ub own = spectral_norm(w, m);
    return m->v ? add(own, pare_ub_fma(off, fro_norm(m), under)) : own;
}

/* |A B|_2, A off by a share of itself. */
static pare_ub norm_of_product(pare_work *w, const pare_mat *a, bool ta, const pare_mat *b,
                               pare_ub off, pare_ub under)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_mat p = mat_mul(w, a, ta, b, false);
    const pare_ub own = spectral_norm(w, &p), fa = fro_norm(a), fb = fro_norm(b);
    pare_arena_reset(w->arena, mark);
    const pare_ub share = pare_ub_fma(off, fa, under);
    return add(own, add(product_rounding(ta ? a->rows : a->cols, fa, fb), mul(share, fb)));
}

static head_sizes sizes_of(pare_work *w, const net_head *h, const mover *m)
{
    head_sizes s = {.scale = ub(h->scale),
                    .fq = fro_norm(&h->wq),
                    .fk = fro_norm(&h->wk),
                    .fv = fro_norm(&h->wv),
                    .fo = fro_norm(&h->wo),
                    .bq = vector_norm(h->bq, h->wq.rows),
                    .bv = vector_norm(h->bv, h->wv.rows)};
    s.qk = norm_of_product(w, &h->wq, true, &h->wk, ub(0), ub(0));
    s.ov = norm_of_product(w, &h->wo, false, &h->wv, m->off, m->under);
    return s;
}

/* Slopes of an activation lie in [middle - half, middle + half]: gelu [-.1290, 1.1290], silu
 * [-.0998, 1.0998]. */
static void slopes(pare_act act, double *middle, double *half)
{
    *middle = act == PARE_ACT_NONE ? 1 : 0.5;
    *half = 0.5;
    if (act == PARE_ACT_NONE) *half = 0;
    if (act == PARE_ACT_GELU || act == PARE_ACT_GELU_TANH) *half = 0.63;
    if (act == PARE_ACT_SILU) *half = 0.6;
}

/* |W2 S^-1||S W1| with S_f = sqrt(|w2_f| / |w1_f|); units without weights do nothing. */
static pare_ub balanced(pare_work *w, const mover *m, const pare_ub *n2)
{
    const net_layer *const l = m->l;
    pare_mat a = mat_copy(w, &l->w2), b = mat_copy(w, &l->w1);
    for (size_t f = 0; !w->st && f < l->w1.rows; f++) {
        const double s = fmin(fmax(sqrt(n2[f].v / m->n1[f].v), 0x1p-40), 0x1p40); /* any will do */
        for (size_t i = 0; i < a.rows; i++) pare_row_mut(&a, i)[f] /= s;
        for (size_t j = 0; j < b.cols; j++) pare_row_mut(&b, f)[j] *= s;
    }
    if (w->st) return pare_ub_inf();
    const pare_ub once = ub(0x1p-50);                /* dividing and multiplying by s rounds */
    const pare_ub under = mul(m->under, ub(0x1p40)); /* was divided by s as well */
    return mul(norm_off(w, &a, add(m->off, once), under), norm_off(w, &b, once, ub(TINY)));
}

/* R2 + W2 diag(mask) W1; mask NULL: c everywhere. `left` has the shape of w2. */
static void jacobian(pare_mat *j, pare_mat *left, const net_layer *l, const double *mask, double c)
{
    for (size_t i = 0; i < left->rows; i++)
        for (size_t f = 0; f < left->cols; f++)
            pare_row_mut(left, i)[f] = pare_row(&l->w2, i)[f] * (mask ? mask[f] : c);
    for (size_t i = 0; i < j->rows; i++)
        for (size_t k = 0; k < j->cols; k++)
            pare_row_mut(j, i)[k] = l->r2.v ? pare_row(&l->r2, i)[k] : 0;
    pare_gemm(j, 1, left, false, &l->w1, false, 1);
}

static void hidden_sizes(pare_work *w, mover *m)
{
    const net_layer *const l = m->l;
    const size_t units = l->w1.rows;
    double middle, half;
    m->n1 = pare_work_alloc(w, units, sizeof *m->n1);
    m->both = pare_work_alloc(w, units, sizeof *m->both);
    const pare_mat cols = mat_transpose(w, &l->w2);
    pare_ub *const n2 = pare_work_alloc(w, units, sizeof *n2);
    pare_mat j = mat_zeros(w, l->w2.rows, l->w1.cols), left = mat_zeros(w, l->w2.rows, units);
    if (w->st) return;
    for (size_t f = 0; f < units; f++) {
        m->n1[f] = vector_norm(pare_row(&l->w1, f), l->w1.cols);
        const pare_ub col = vector_norm(pare_row(&cols, f), cols.cols);
        n2[f] = pare_ub_fma(m->off, col, add(col, m->under));
        m->both[f] = mul(m->n1[f], n2[f]);
    }
    const pare_ub r2 = l->r2.v ? fro_norm(&l->r2) : ub(0);
    const pare_ub terms = pare_ub_fma(fro_norm(&l->w2), fro_norm(&l->w1), r2);
    /* One more unit than the sums have terms: r2 is one of them, the mask may round. */
    m->blur = mul(add(pare_gamma(units + 4, PARE_UNIT_F64), m->off), terms);
    m->blur = add(m->blur, mul(m->under, add(fro_norm(&l->w1), ub(1))));
    slopes(l->act, &middle, &half);
    jacobian(&j, &left, l, NULL, middle);
    const pare_ub linear = add(spectral_norm(w, &j), m->blur);
    m->whole = half == 0 ? linear : pare_ub_fma(ub(half), balanced(w, m, n2), linear);
    /* |J|^(2^(1 + squarings)) is bounded by a Frobenius norm: more of them are sharper. */
    m->squarings = j.cols <= 8 ? 6 : 2;
}

mover *mover_new(pare_work *w, const net_layer *l, double off)
{
    mover *const m = pare_work_alloc(w, 1, sizeof *m);
    head_sizes *const heads = pare_work_alloc(w, l->nheads, sizeof *heads);
    if (w->st) return NULL;
    /* 2^38 entries that lose 2^-149 each (f32), or 2^-1074. */
    const pare_ub under = off == 0 ? ub(TINY) : ub(0x1p-130);
    *m = (mover){.l = l, .off = ub(off), .under = under, .heads = heads};
    for (size_t i = 0; !w->st && i < l->nheads; i++) heads[i] = sizes_of(w, &l->heads[i], m);
    m->r1 = norm_off(w, &l->r1, m->off, m->under);
    hidden_sizes(w, m);
    return w->st ? NULL : m;
}

pare_ub mover_stretch(const mover *m)
{
    return m->whole;
}

pare_ub mover_longest(const mover *m)
{
    pare_ub most = ub(0);
    for (size_t f = 0; f < m->l->w1.rows; f++) most = pare_ub_max(most, m->n1[f]);
    return most;
}

/* ---- attention ------------------------------------------------------------------------------ */

/* One head at the rows H: midpoints, and how far each may be off. */
typedef struct head_rows {
    const mover *mv;
    const net_head *hd;
    const head_sizes *n;
    const pare_graph *g;
    const pare_ub *e;
    pare_mat q, k, kq, u;    /* queries, keys, Wq^T k, Wo (Wv h + bv) */
    pare_ub *rq, *rk;        /* radii of q, k */
    pare_ub *rkq, *ru;       /* of kq, u */
    pare_ub *turn, *nq, *nk; /* |Wk^T q|, |q|, |k| */
    pare_ub *z;              /* what the rows after attention move: added to */
    atomic_bool *no_memory;
} head_rows;

static void row_sizes(head_rows *r, const pare_mat *h, const pare_mat *qk, const pare_mat *v,
                      size_t i)
{
    const head_sizes *const n = r->n;
    const size_t d = h->cols, dk = r->q.cols, dv = v->cols;
    const pare_ub size = vector_norm(pare_row(h, i), d), one = ub(1);
    const pare_ub nv = vector_norm(pare_row(v, i), dv);
    r->nq[i] = vector_norm(pare_row(&r->q, i), dk);
    r->nk[i] = vector_norm(pare_row(&r->k, i), dk);
    r->rq[i] = add(product_rounding(d + 1, pare_ub_fma(n->fq, size, n->bq), one), ub(TINY));
    r->rk[i] = add(product_rounding(d, n->fk, size), ub(TINY));
    r->rkq[i] = add(product_rounding(dk, n->fq, r->nk[i]), pare_ub_fma(n->fq, r->rk[i], ub(TINY)));
    const pare_ub rt = add(product_rounding(dk, n->fk, r->nq[i]), mul(n->fk, r->rq[i]));
    r->turn[i] = add(vector_norm(pare_row(qk, i), qk->cols), add(rt, ub(TINY)));
    const pare_ub rv = add(product_rounding(d + 1, pare_ub_fma(n->fv, size, n->bv), one), ub(TINY));
    const pare_ub wrong = mul(pare_ub_fma(r->mv->off, n->fo, r->mv->under), add(nv, rv));
    r->ru[i] = add(add(product_rounding(dv, n->fo, nv), mul(n->fo, rv)), add(wrong, ub(TINY)));
}

static bool head_open(pare_work *w, head_rows *r, const pare_mat *h)
{
    const net_head *const hd = r->hd;
    const size_t n = h->rows;
    const pare_mat qt = mat_transpose(w, &hd->wq), kt = mat_transpose(w, &hd->wk);
    r->q = affine_rows(w, h, &hd->wq, hd->bq);
    r->k = affine_rows(w, h, &hd->wk, NULL);
    r->kq = affine_rows(w, &r->k, &qt, NULL);
    const pare_mat qk = affine_rows(w, &r->q, &kt, NULL), v = affine_rows(w, h, &hd->wv, hd->bv);
    r->u = affine_rows(w, &v, &hd->wo, NULL);
    pare_ub **const lists[] = {&r->rq, &r->rk, &r->rkq, &r->ru, &r->turn, &r->nq, &r->nk};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        *lists[i] = pare_work_alloc(w, n, sizeof **lists[i]);
    for (size_t i = 0; !w->st && i < n; i++) row_sizes(r, h, &qk, &v, i);
    return !w->st;
}

/* What one row of one head needs beside it: lists over its keys. */
typedef struct row_room {
    double *a;                         /* weights, computed */
    pare_ub *big, *d, *rise, *fall;    /* weights from above, moves of scores, swings of weights */
    pare_ub *grow, *shrink, *keep;     /* e^d - 1, 1 - e^-d, e^-d */
    pare_ub *left[SUMS], *right[SUMS]; /* running sums from both ends */
    double *center, *apart;            /* D each */
} row_room;

/* Computed weights of row i; how far their logarithms may be off (inf: says nothing). */
static double row_weights(const head_rows *r, row_room *o, size_t i)
{
    const size_t from = r->g->ptr[i], n = r->g->ptr[i + 1] - from, dk = r->q.cols;
    double top = -INFINITY, low = INFINITY, sum = 0;
    pare_ub off = ub(0);
    for (size_t j = 0; j < n; j++) {
        const size_t key = r->g->idx[from + j];
        const double *const q = pare_row(&r->q, i), *const k = pare_row(&r->k, key);
        double s = 0;
        for (size_t c = 0; c < dk; c++) s += q[c] * k[c];
        o->a[j] = s * r->hd->scale;
        const pare_ub both =
            add(mul(r->rq[i], add(r->nk[key], r->rk[key])), mul(r->rk[key], r->nq[i]));
        off = pare_ub_max(off, add(both, product_rounding(dk, r->nq[i], r->nk[key])));
        top = fmax(top, o->a[j]);
        low = fmin(low, o->a[j]);
    }
    for (size_t j = 0; j < n; j++) sum += o->a[j] = pare_exp(o->a[j] - top);
    for (size_t j = 0; j < n; j++) o->a[j] /= sum;
    /* Twice the scores'; the difference to the largest rounds, exp is within 2 units, the sum has n
     * terms: in numerator and denominator. */
    const pare_ub rounds = mul(ub(0x1p-51), ub((double)n + 20 + 2 * fabs(top - low)));
    const pare_ub all = pare_ub_fma(mul(ub(2), r->n->scale), add(off, ub(TINY)), rounds);
    return isfinite(sum) ? all.v : INFINITY;
}

/* |x_j - center| for two rows of D numbers. */
static pare_ub distance(const double *x, row_room *o, size_t d)
{
    for (size_t c = 0; c < d; c++) o->apart[c] = x[c] - o->center[c];
    return mul(vector_norm(o->apart, d), ub(1 + 0x1p-51));
}

/* The mean of the rows of m over the keys of row i: any vector would do. */
static void centre_on(const head_rows *r, row_room *o, const pare_mat *m, size_t i)
{
    const size_t from = r->g->ptr[i], n = r->g->ptr[i + 1] - from;
    memset(o->center, 0, m->cols * sizeof *o->center);
    for (size_t j = 0; j < n; j++) {
        const double *const x = pare_row(m, r->g->idx[from + j]);
        for (size_t c = 0; c < m->cols; c++) o->center[c] += o->a[j] * x[c];
    }
}

/* d_j of every key; returns the largest. */
static pare_ub score_moves(const head_rows *r, row_room *o, size_t i)
{
    const size_t from = r->g->ptr[i], n = r->g->ptr[i + 1] - from;
    pare_ub most = ub(0);
    centre_on(r, o, &r->kq, i);
    for (size_t j = 0; j < n; j++) {
        const size_t key = r->g->idx[from + j];
        const pare_ub far = add(distance(pare_row(&r->kq, key), o, r->kq.cols), r->rkq[key]);
        pare_ub d = mul(r->e[i], far);
        d = pare_ub_fma(r->e[key], r->turn[i], d);
        d = pare_ub_fma(mul(r->n->qk, r->e[i]), r->e[key], d);
        o->d[j] = mul(r->n->scale, d);
        most = pare_ub_max(most, o->d[j]);
    }
    return most;
}

/* left[k][j], right[k][j]: sums before and after j of a (1 - e^-d), a e^-d, a (e^d - 1), a e^d. */
static void key_terms(const row_room *o, size_t j, pare_ub term[SUMS])
{
    const pare_ub up = mul(o->big[j], o->grow[j]);
    term[0] = mul(o->big[j], o->shrink[j]);
    term[1] = mul(o->big[j], o->keep[j]);
    term[2] = up;
    term[3] = add(o->big[j], up);
}

static void running_sums(row_room *o, size_t n)
{
    pare_ub sum[SUMS] = {{0}}, term[SUMS];
    for (size_t j = 0; j < n; j++) {
        const double d = o->d[j].v;
        o->grow[j] = pare_ub_expm1(o->d[j]);
        o->shrink[j] = ub(pare_expm1_down(-d));
        o->keep[j] = ub(pare_exp_up(-d));
    }
    for (size_t j = 0; j < n; j++) {
        key_terms(o, j, term);
        for (size_t k = 0; k < SUMS; k++) {
            o->left[k][j] = sum[k];
            sum[k] = add(sum[k], term[k]);
        }
    }
    memset(sum, 0, sizeof sum);
    for (size_t j = n; j-- > 0;) {
        key_terms(o, j, term);
        for (size_t k = 0; k < SUMS; k++) {
            o->right[k][j] = sum[k];
            sum[k] = add(sum[k], term[k]);
        }
    }
}

/* Rise and fall of every weight. */
static void swings(row_room *o, size_t n)
{
    running_sums(o, n);
    for (size_t j = 0; j < n; j++) {
        pare_ub s[SUMS];
        for (size_t k = 0; k < SUMS; k++) s[k] = add(o->left[k][j], o->right[k][j]);
        const pare_ub e = pare_ub_fma(o->shrink[j], s[1], s[0]);
        const pare_ub f = pare_ub_fma(o->grow[j], s[3], s[2]);
        const pare_ub rise = pare_ub_div(mul(o->big[j], e), nextafter(1 - e.v, -1));
        /* F / (1 + F) grows with F; the quotient rounds, and so does 1 + F. */
        const pare_ub part = f.v < DBL_MAX ? mul(ub(f.v / (1 + f.v)), ub(1 + 0x1p-50)) : ub(1);
        o->rise[j] = pare_ub_min(rise, ub(1));
        o->fall[j] = mul(o->big[j], pare_ub_min(part, ub(1)));
    }
}

/* Nothing is known of the weights but that they are weights. */
static void any_swing(row_room *o, size_t n)
{
    for (size_t j = 0; j < n; j++) o->rise[j] = o->fall[j] = ub(n > 1);
}

static pare_ub variation(const row_room *o, size_t n, pare_ub most)
{
    pare_ub rises = ub(0), falls = ub(0);
    for (size_t j = 0; j < n; j++) {
        rises = add(rises, o->rise[j]);
        falls = add(falls, o->fall[j]);
    }
    const pare_ub even = pare_ub_tanh(mul(most, ub(0.5)));
    return pare_ub_min(pare_ub_min(even, ub(1)), pare_ub_min(rises, falls));
}

/* What row i of this head's output moves. */
static pare_ub pooled_move(const head_rows *r, row_room *o, size_t i)
{
    const size_t from = r->g->ptr[i], n = r->g->ptr[i + 1] - from;
    const double off = row_weights(r, o, i);
    const pare_ub most = score_moves(r, o, i);
    const bool vague = !(off <= 0.25) || !(most.v <= WIDEST);
    /* e^off <= 1 + 2 off */
    for (size_t j = 0; j < n; j++)
        o->big[j] = vague ? ub(1) : add(mul(ub(o->a[j]), ub(1 + 2 * off + 0x1p-52)), ub(TINY));
    if (vague)
        any_swing(o, n);
    else
        swings(o, n);
    const pare_ub tv = variation(o, n, vague ? pare_ub_inf() : most);
    pare_ub each = ub(0), widest = ub(0), mean = ub(0), high = ub(0);
    double low = INFINITY;
    centre_on(r, o, &r->u, i);
    for (size_t j = 0; j < n; j++) {
        const size_t key = r->g->idx[from + j];
        const pare_ub far = add(distance(pare_row(&r->u, key), o, r->u.cols), r->ru[key]);
        each = pare_ub_fma(pare_ub_max(o->rise[j], o->fall[j]), far, each);
        widest = pare_ub_max(widest, far);
        mean = pare_ub_fma(o->big[j], r->e[key], mean);
        high = pare_ub_max(high, r->e[key]);
        low = fmin(low, r->e[key].v);
    }
    const pare_ub spread = high.v > low ? pare_ub_of(high.v - low) : ub(0);
    const pare_ub values = pare_ub_min(pare_ub_fma(tv, spread, mean), high);
    const pare_ub weights = pare_ub_min(each, mul(mul(ub(2), tv), widest));
    return pare_ub_fma(r->n->ov, values, weights);
}

enum { ROWS = 32 }; /* of one block of work */

static bool room_new(row_room *o, pare_arena *a, size_t keys, size_t d)
{
    if (!a) return false;
    pare_ub **const lists[] = {&o->big, &o->d, &o->rise, &o->fall, &o->grow, &o->shrink, &o->keep};
    o->a = pare_alloc(a, keys, sizeof *o->a);
    o->center = pare_alloc(a, d, sizeof *o->center);
    o->apart = pare_alloc(a, d, sizeof *o->apart);
    bool ok = o->a && o->center && o->apart;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        ok = (*lists[i] = pare_alloc(a, keys, sizeof(pare_ub))) && ok;
    for (size_t k = 0; k < SUMS; k++) {
        ok = (o->left[k] = pare_alloc(a, keys, sizeof(pare_ub))) && ok;
        ok = (o->right[k] = pare_alloc(a, keys, sizeof(pare_ub))) && ok;
    }
    return ok;
}

static void head_block(void *ctx, size_t b)
{
    head_rows *const r = ctx;
    const size_t n = r->g->n, end = n - b * ROWS < ROWS ? n : (b + 1) * ROWS;
    size_t keys = 1;
    row_room o;
    for (size_t i = b * ROWS; i < end; i++)
        if (r->g->ptr[i + 1] - r->g->ptr[i] > keys) keys = r->g->ptr[i + 1] - r->g->ptr[i];
    pare_arena *const a = pare_arena_new();
    if (!room_new(&o, a, keys, r->u.cols > r->kq.cols ? r->u.cols : r->kq.cols))
        atomic_store(r->no_memory, true);
    else
        for (size_t i = b * ROWS; i < end; i++)
            if (r->g->ptr[i + 1] > r->g->ptr[i]) r->z[i] = add(r->z[i], pooled_move(r, &o, i));
    pare_arena_free(a);
}

/* ---- the hidden layer ----------------------------------------------------------------------- */

typedef struct ffn_rows {
    const mover *mv;
    const pare_enclosure *t;
    const pare_ub *z;
    pare_ub *out;
    size_t n;
    atomic_bool *no_memory;
} ffn_rows;

typedef struct ffn_room {
    double *mask;
    pare_mat left, j, x[2];
} ffn_room;

/* Largest power of two that leaves x below 1 after dividing by it: scaling by it is exact. */
static int exponent_of(double x)
{
    int e = 0;
    if (x > 0 && isfinite(x)) (void)frexp(x, &e);
    return e;
}

static void scale_by(pare_mat *m, int e)
{
    const double by = ldexp(1, -e);
    for (size_t i = 0; i < m->rows * m->cols; i++) m->v[i] *= by;
}

enum { MOST_SQUARINGS = 6 };

/* |J|_2 from |A|^2 = |A^T A|, taken several times over, and a Frobenius norm at the end. A computed
 * A^T A is off by gamma |A|_F^2. */
static pare_ub top_value(ffn_room *o, size_t squarings)
{
    pare_ub wrong[MOST_SQUARINGS + 1];
    int e[MOST_SQUARINGS + 2];
    const pare_mat *from = &o->j;
    pare_ub size = fro_norm(&o->j);
    if (!(size.v < 0x1p500 && size.v > 0x1p-500)) return size;
    for (size_t k = 0; k <= squarings; k++) {
        e[k] = exponent_of(size.v);
        scale_by(k == 0 ? &o->j : &o->x[(k - 1) % 2], e[k]);
        size = fro_norm(from);
        wrong[k] = add(product_rounding(from->rows, size, size), ub(TINY));
        pare_gemm(&o->x[k % 2], 1, from, true, from, false, 0);
        from = &o->x[k % 2];
        size = fro_norm(from);
    }
    for (size_t k = squarings + 1; k-- > 0;)
        size = mul(pare_ub_sqrt(add(size, wrong[k])), ub(ldexp(1, e[k])));
    return add(size, ub(TINY));
}

/* Slopes of the units of row i: 1, 0, or 1/2 for undecided ones, whose share is returned. */
static pare_ub undecided(const ffn_rows *r, double *mask, size_t i)
{
    const size_t units = r->t->cols;
    pare_ub half = ub(0);
    for (size_t f = 0; f < units; f++) {
        const double t = r->t->mid[i * units + f];
        const pare_ub need = pare_ub_fma(r->mv->n1[f], r->z[i], ub(r->t->rad[i]));
        mask[f] = !(fabs(t) > need.v) ? 0.5 : t > 0;
        if (mask[f] == 0.5) half = pare_ub_fma(ub(0.5), r->mv->both[f], half);
    }
    return half;
}

static pare_ub stretch_of(const ffn_rows *r, ffn_room *o, size_t i)
{
    const mover *const mv = r->mv;
    if (mv->l->act != PARE_ACT_RELU) return mv->whole;
    const pare_ub half = undecided(r, o->mask, i);
    if (half.v >= mv->whole.v) return mv->whole;
    jacobian(&o->j, &o->left, mv->l, o->mask, 0);
    const pare_ub own = add(add(top_value(o, mv->squarings), mv->blur), half);
    return pare_ub_min(own, mv->whole);
}

static bool ffn_room_new(ffn_room *o, pare_arena *a, const net_layer *l)
{
    if (!a) return false;
    o->mask = pare_alloc(a, l->w1.rows, sizeof *o->mask);
    o->left = pare_mat_new(a, l->w2.rows, l->w1.rows);
    o->j = pare_mat_new(a, l->w2.rows, l->w1.cols);
    for (size_t k = 0; k < 2; k++) o->x[k] = pare_mat_new(a, l->w1.cols, l->w1.cols);
    return o->mask && o->left.v && o->j.v && o->x[0].v && o->x[1].v;
}

static void ffn_block(void *ctx, size_t b)
{
    const ffn_rows *const r = ctx;
    const size_t end = r->n - b * ROWS < ROWS ? r->n : (b + 1) * ROWS;
    ffn_room o;
    pare_arena *const a = pare_arena_new();
    if (!ffn_room_new(&o, a, r->mv->l))
        atomic_store(r->no_memory, true);
    else
        for (size_t i = b * ROWS; i < end; i++)
            r->out[i] = r->z[i].v == 0 ? ub(0) : mul(stretch_of(r, &o, i), r->z[i]);
    pare_arena_free(a);
}

/* ---- the layer ------------------------------------------------------------------------------ */

void move_layer(pare_work *w, pare_ub *out, const mover *mv, const pare_mat *h, const pare_ub *e,
                const pare_graph *g, const pare_enclosure *hidden)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    const size_t n = h->rows, blocks = (n + ROWS - 1) / ROWS;
    atomic_bool no_memory = false;
    pare_ub *const z = pare_work_alloc(w, n, sizeof *z);
    for (size_t i = 0; !w->st && i < n; i++) z[i] = mul(mv->r1, e[i]);
    for (size_t k = 0; !w->st && k < mv->l->nheads; k++) {
        head_rows r = {.mv = mv,
                       .hd = &mv->l->heads[k],
                       .n = &mv->heads[k],
                       .g = g,
                       .e = e,
                       .z = z,
                       .no_memory = &no_memory};
        if (head_open(w, &r, h)) pare_parallel(w->exec, blocks, head_block, &r);
    }
    ffn_rows f = {mv, hidden, z, out, n, &no_memory};
    if (!w->st) pare_parallel(w->exec, blocks, ffn_block, &f);
    if (!w->st && atomic_load(&no_memory)) w->st = pare_no_memory(w->err);
    pare_arena_reset(w->arena, mark);
}
