/* balance.c - balanced factors for the products in an attention head.
 *
 * A head's function depends on its maps through two products alone,
 *
 *     scores   [Wq bq]^T [Wk bk]        outputs   Wo [Wv bv]
 *
 * (bv is inside the attention sum and transforms with Wv), while what is proven of its rounding
 * grows with |Wq||Wk| and |Wo||Wv|: with the norms of the factors. Of all factorizations of a
 * product L^T R of inner dimension r,
 *
 *     L^T R = U S V^T,    L' = S^1/2 U^T,    R' = S^1/2 V^T
 *
 * has the least |L||R|, namely |L^T R|, and the least |L|_F |R|_F: both factors have the same
 * singular values and L' L'^T = R' R'^T = S. A cut that reads its directions off some other metric
 * writes factors that can be far from this (|Wv| = 21 where |Wo Wv| = 0.8), and twelve layers
 * multiply it up.
 *
 * Method: L^T = Q1 T1 and R^T = Q2 T2 by QR, T1 T2^T = U S V^T, then L' = S^1/2 (Q1 U)^T,
 * R' = S^1/2 (Q2 V)^T. No inverse is formed; the product moves by a few u |L||R|.
 *
 * Heads that share keys and values: the shared factor is balanced against all of its partners, one
 * beside the other. Rotary planes: a plane's two rows may be scaled by one number only (rotations
 * by one angle commute with the position's and change no norm), so both sides get one Frobenius
 * norm. Dimensions without rotary positions are a pair like any other. Where no Wo is stored there
 * is nothing to balance against. */
#include "linalg/matrix.h"
#include "balance.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BALANCED 1e-3 /* |L L^T - R R^T|_F of the mean of |L L^T|_F and |R R^T|_F */

/* ---- one pair ------------------------------------------------------------------------------- */

static bool is_balanced(pare_work *w, const pare_mat *left, const pare_mat *right)
{
    pare_mat gram = mat_mul(w, left, false, left, true);
    const pare_mat other = mat_mul(w, right, false, right, true);
    if (w->st) return true;
    const double size = (pare_mat_fro_est(&gram) + pare_mat_fro_est(&other)) / 2;
    for (size_t i = 0; i < gram.rows; i++)
        for (size_t j = 0; j < gram.cols; j++) pare_row_mut(&gram, i)[j] -= pare_row(&other, i)[j];
    return pare_mat_fro_est(&gram) <= BALANCED * size;
}

/* m^T = q t with orthonormal columns of q; a wide m^T is its own t, and q is left empty. */
typedef struct triangle {
    pare_mat q, t;
} triangle;

static triangle triangle_of(pare_work *w, const pare_mat *m)
{
    triangle f = {.t = mat_transpose(w, m)};
    if (w->st || m->cols < m->rows) return f;
    const pare_mat tall = f.t;
    f.q = mat_zeros(w, m->cols, m->rows);
    f.t = mat_zeros(w, m->rows, m->rows);
    if (!w->st) w->st = pare_qr(&f.q, &f.t, &tall, w->arena, w->err);
    return f;
}

/* The first n rows of m become sqrt(s_i) (q basis_i)^T, the others zero; basis_i: column i. */
static void put_half(pare_work *w, pare_mat *m, const pare_mat *q, const pare_mat *basis,
                     const double *s, size_t n)
{
    const pare_mat columns = q->v ? mat_mul(w, q, false, basis, false) : *basis;
    if (w->st) return;
    for (size_t i = 0; i < m->rows; i++) {
        const double root = i < n ? sqrt(s[i]) : 0;
        for (size_t j = 0; j < m->cols; j++)
            pare_row_mut(m, i)[j] = i < n ? root * pare_row(&columns, j)[i] : 0;
    }
}

static void clear_matrix(pare_mat *m)
{
    for (size_t i = 0; i < m->rows; i++) memset(pare_row_mut(m, i), 0, m->cols * sizeof *m->v);
}

static pare_mat scaled_copy(pare_work *w, const pare_mat *m, int exponent)
{
    pare_mat to = mat_copy(w, m);
    for (size_t i = 0; !w->st && i < to.rows; i++)
        for (size_t j = 0; j < to.cols; j++)
            pare_row_mut(&to, i)[j] = ldexp(pare_row(m, i)[j], exponent);
    return to;
}

void balance_pair(pare_work *w, pare_mat *left, pare_mat *right)
{
    PARE_ASSERT(w->st || left->rows == right->rows);
    if (w->st || left->rows == 0) return;
    const double ml = pare_mat_max_abs(left), mr = pare_mat_max_abs(right);
    if (!(ml > 0) || !(mr > 0)) {
        clear_matrix(left);
        clear_matrix(right);
    }
    if (!(ml > 0 && mr > 0 && ml < INFINITY && mr < INFINITY)) return;
    const int el = ilogb(ml), er = ilogb(mr);
    const pare_mark mark = pare_arena_mark(w->arena);
    if (abs(el) >= 200 || abs(er) >= 200 || !is_balanced(w, left, right)) {
        /* Entries of about 1 at most: the squares of one factor may overflow where the product is
         * an ordinary number. */
        const pare_mat a = scaled_copy(w, left, -el), b = scaled_copy(w, right, -er);
        const triangle l = triangle_of(w, &a), r = triangle_of(w, &b);
        const pare_mat core = mat_mul(w, &l.t, false, &r.t, true);
        const svd_factors s = svd_of(w, &core);
        const pare_mat v = mat_transpose(w, &s.vt);
        for (size_t i = 0; !w->st && i < s.n; i++) s.s[i] = ldexp(s.s[i], el + er);
        put_half(w, left, &l.q, &s.u, s.s, s.n);
        put_half(w, right, &r.q, &v, s.s, s.n);
    }
    pare_arena_reset(w->arena, mark);
}

/* ---- matrices side by side, with their biases ------------------------------------------------ */

static void copy_in(pare_mat *to, size_t column, const pare_mat *m, size_t from_row)
{
    for (size_t i = 0; i < to->rows; i++)
        memcpy(pare_row_mut(to, i) + column, pare_row(m, from_row + i), m->cols * sizeof *m->v);
}

static pare_mat part_of(pare_work *w, const pare_mat *from, size_t column, size_t cols)
{
    if (w->st) return (pare_mat){0};
    const pare_mat part = pare_mat_part(from, 0, column, from->rows, cols);
    return mat_copy(w, &part);
}

/* Rows [row, n) of [m, b]; no column for a bias that is zero there. */
static pare_mat rows_with_bias(pare_work *w, const pare_mat *m, const double *b, size_t row)
{
    const size_t n = m->rows - row;
    pare_mat all = mat_zeros(w, n, m->cols + !all_zero(b + row, n));
    if (w->st) return all;
    copy_in(&all, 0, m, row);
    for (size_t i = 0; all.cols > m->cols && i < n; i++)
        pare_row_mut(&all, i)[m->cols] = b[row + i];
    return all;
}

/* The same rows of m and b, in copies, become those of `all`. */
static void put_biased(pare_work *w, pare_mat *m, double **b, size_t row, const pare_mat *all)
{
    pare_mat to = mat_copy(w, m);
    double *const bias = vec_copy(w, *b, m->rows);
    if (w->st) return;
    for (size_t i = 0; i < all->rows; i++) {
        memcpy(pare_row_mut(&to, row + i), pare_row(all, i), m->cols * sizeof *m->v);
        if (all->cols > m->cols) bias[row + i] = pare_row(all, i)[m->cols];
    }
    *m = to;
    *b = bias;
}

/* ---- groups of heads (lm.h) ------------------------------------------------------------------ */

static size_t heads_of_group(const lm_attn *a, size_t g)
{
    size_t n = 0;
    for (size_t h = 0; h < a->nheads; h++) n += a->heads[h].keys == g;
    return n;
}

/* Values and output projections of one group. */
static void balance_group_values(pare_work *w, lm_attn *a, size_t g)
{
    lm_keys *const k = &a->keys[g];
    pare_mat right = rows_with_bias(w, &k->wv, k->bv, 0);
    pare_mat left = mat_zeros(w, k->wv.rows, heads_of_group(a, g) * a->dout);
    for (size_t h = 0, at = 0; !w->st && h < a->nheads; h++) {
        if (a->heads[h].keys != g) continue;
        const pare_mat wo = mat_transpose(w, &a->heads[h].wo);
        if (!w->st) copy_in(&left, at, &wo, 0);
        at += a->dout;
    }
    balance_pair(w, &left, &right);
    for (size_t h = 0, at = 0; !w->st && h < a->nheads; h++) {
        if (a->heads[h].keys != g) continue;
        const pare_mat part = part_of(w, &left, at, a->dout);
        a->heads[h].wo = mat_transpose(w, &part);
        at += a->dout;
    }
    put_biased(w, &k->wv, &k->bv, 0, &right);
}

/* Queries and keys from dimension 2 planes on, without rotary positions. */
static void balance_plain(pare_work *w, lm_attn *a, size_t g)
{
    lm_keys *const k = &a->keys[g];
    const size_t rotary = 2 * k->planes, n = k->wk.rows - rotary, each = a->din + 1;
    if (n == 0) return;
    pare_mat right = rows_with_bias(w, &k->wk, k->bk, rotary);
    pare_mat left = mat_zeros(w, n, heads_of_group(a, g) * each);
    for (size_t h = 0, at = 0; !w->st && h < a->nheads; h++) {
        if (a->heads[h].keys != g) continue;
        const pare_mat q = rows_with_bias(w, &a->heads[h].wq, a->heads[h].bq, rotary);
        if (!w->st) copy_in(&left, at, &q, 0);
        at += each;
    }
    balance_pair(w, &left, &right);
    for (size_t h = 0, at = 0; !w->st && h < a->nheads; h++) {
        lm_head *const hd = &a->heads[h];
        if (hd->keys != g) continue;
        const bool bias = !all_zero(hd->bq + rotary, n);
        const pare_mat q = part_of(w, &left, at, a->din + bias);
        put_biased(w, &hd->wq, &hd->bq, rotary, &q);
        at += each;
    }
    put_biased(w, &k->wk, &k->bk, rotary, &right);
}

/* The Frobenius norm of two rows with their biases. */
static double plane_norm(const pare_mat *m, const double *b, const size_t row[2])
{
    const double one = hypot(vec_norm_est(pare_row(m, row[0]), m->cols), b[row[0]]);
    const double two = hypot(vec_norm_est(pare_row(m, row[1]), m->cols), b[row[1]]);
    return hypot(one, two);
}

static void scale_plane(pare_mat *m, double *b, const size_t row[2], double by)
{
    for (int k = 0; k < 2; k++) {
        for (size_t j = 0; j < m->cols; j++) pare_row_mut(m, row[k])[j] *= by;
        b[row[k]] *= by;
    }
}

/* Every rotary plane of queries and keys by one number. */
static void balance_planes(pare_work *w, const lm *m, lm_attn *a, size_t g)
{
    lm_keys *const k = &a->keys[g];
    if (k->planes == 0) return;
    /* Copies of the rows, which may be shared with the model that was read. */
    k->wk = mat_copy(w, &k->wk);
    k->bk = vec_copy(w, k->bk, k->wk.rows);
    for (size_t h = 0; !w->st && h < a->nheads; h++) {
        lm_head *const hd = &a->heads[h];
        if (hd->keys != g) continue;
        hd->wq = mat_copy(w, &hd->wq);
        hd->bq = vec_copy(w, hd->bq, hd->wq.rows);
    }
    for (size_t f = 0; !w->st && f < k->planes; f++) {
        size_t row[2];
        double queries = 0;
        lm_plane_rows(m, f, k->planes, row);
        for (size_t h = 0; h < a->nheads; h++)
            if (a->heads[h].keys == g)
                queries = hypot(queries, plane_norm(&a->heads[h].wq, a->heads[h].bq, row));
        const double by = balance_factor(queries, plane_norm(&k->wk, k->bk, row));
        if (fabs(by - 1) <= BALANCED) continue;
        scale_plane(&k->wk, k->bk, row, by);
        for (size_t h = 0; h < a->nheads; h++)
            if (a->heads[h].keys == g) scale_plane(&a->heads[h].wq, a->heads[h].bq, row, 1 / by);
    }
}

void lm_balance_scores(pare_work *w, const lm *m, lm_attn *a)
{
    for (size_t g = 0; !w->st && a->present && g < a->nkeys; g++) {
        balance_planes(w, m, a, g);
        balance_plain(w, a, g);
    }
}

void lm_balance_values(pare_work *w, lm_attn *a)
{
    if (w->st || !a->present || lm_has_identity_wo(a)) return;
    for (size_t g = 0; !w->st && g < a->nkeys; g++) balance_group_values(w, a, g);
}

void lm_balance(pare_work *w, const lm *m, lm_attn *a)
{
    lm_balance_scores(w, m, a);
    lm_balance_values(w, a);
}

/* ---- heads of a net (folded_net.h) ----------------------------------------------------------- */

void net_balance(pare_work *w, net *n, bool values)
{
    for (size_t i = 0; !w->st && i < n->nlayers; i++) {
        net_layer *const l = &n->layers[i];
        const bool outputs = values && !net_has_identity_wo(l);
        for (size_t k = 0; !w->st && k < l->nheads; k++) {
            net_head *const h = &l->heads[k];
            pare_mat queries = rows_with_bias(w, &h->wq, h->bq, 0), keys = mat_copy(w, &h->wk);
            balance_pair(w, &queries, &keys);
            put_biased(w, &h->wq, &h->bq, 0, &queries);
            h->wk = keys;
            if (!outputs) continue;
            pare_mat left = mat_transpose(w, &h->wo), right = rows_with_bias(w, &h->wv, h->bv, 0);
            balance_pair(w, &left, &right);
            h->wo = mat_transpose(w, &left);
            put_biased(w, &h->wv, &h->bv, 0, &right);
        }
    }
}
