/* spectral.c - a proven upper bound on |w|_2; for most matrices within 1e-10 of it.
 *
 * Let t = 2^-e w with largest entry in [1/2, 1), k its smaller and m its larger side, G = t t^T
 * (or t^T t) of size k, so that |t|_2^2 = lambda_max(G). u = 2^-53, gamma_n = n u / (1 - n u).
 *
 *  1. Gram. Every entry of fl(G) is a sum of m products in some order, hence
 *     |fl(G) - G| <= gamma_m |t| |t|^T entrywise, and
 *         |fl(G) - G|_2 <= gamma_m | |t||t|^T |_F <= gamma_m |t|_F^2;
 *     products that underflow add m 2^-1075 per entry, so k m 2^-1075 in norm. Only one triangle
 *     is computed: fl(G) is symmetric.
 *  2. Estimate. Lanczos gives theta ~ lambda_max(fl(G)). No proof rests on it.
 *  3. Proof. For c = theta (1 + 1e-10) factor c I - fl(G) ~ L L^T. How LAPACK found L does not
 *     matter: L L^T >= 0 for any L, and with the residual E := c I - fl(G) - L L^T
 *         lambda_max(fl(G)) <= c + |E|_2.
 *     E is computed: h = fl(L L^T) obeys |h - L L^T|_2 <= gamma_k |L|_F^2 (as in 1, plus
 *     k^2 2^-1075); the diagonal a_ii = fl(c - g_ii) is wrong by u |a_ii| at most; and of what is
 *     left, fl(a - h), the norm is bounded by the largest row sum, which after the rounding of the
 *     difference and of k - 1 additions is low by 1 - gamma_k at most.
 *     |L|_F^2 is the trace of L L^T, so h's trace / (1 - gamma_2k) with its underflow.
 *  4. |w|_2 <= 2^e (sqrt(that sum) + sqrt(m k) 2^-1075), the last for what scaling lost.
 *
 * When the factorization breaks down c was below lambda_max (or nearly): c grows, and at the end
 * min(|w|_F, sqrt(|w|_1 |w|_inf)) stands. Everything is a min with that pair anyway.
 *
 * Cost: m k^2 + about 2 k^3 / 3 flop per trial, k^2 doubles and panels of 256 x k. */
#include "bounds.h"
#include "matrix.h"
#include "blas.h"
#include "tiles.h"
#include "norms.h"
#include <lapacke.h>
#include <math.h>
#include <string.h>

enum {
    tile_rows = 256, /* of w, widened at a time */
    panel_rows = 96, /* of L L^T, formed at a time */
    lanczos_most = 160,
    lanczos_check = 8 /* steps between looks at the estimate */
};
static const double lost = 0x1p-1074; /* more than one underflow costs */

/* ---- 1. the Gram matrix ----------------------------------------------------------------- */

pare_status pare_gram_of(gram *out, const pare_weight *w, const unit_scale *s, pare_ub fro,
                         pare_arena *scratch, pare_err *err)
{
    const bool by_rows = w->cols <= w->rows; /* which side is summed over: the longer */
    const size_t k = by_rows ? w->cols : w->rows, inner = by_rows ? w->rows : w->cols;
    out->g = pare_mat_new(scratch, k, k);
    out->diag = pare_alloc(scratch, k, sizeof *out->diag);
    out->sums = pare_alloc(scratch, k, sizeof *out->sums);
    out->panel = pare_mat_new(scratch, 3 * panel_rows, k > panel_rows ? k : panel_rows);
    double *tile = pare_alloc(scratch, k, tile_rows * sizeof *tile);
    if (!out->g.v || !out->diag || !out->sums || !out->panel.v || !tile) return pare_no_memory(err);
    for (size_t at = 0; at < inner; at += tile_rows) {
        const size_t n = least(tile_rows, inner - at);
        pare_mat t = by_rows ? pare_mat_of(tile, n, k) : pare_mat_of(tile, k, n);
        pare_weight_widen(&t, w, by_rows ? at : 0, by_rows ? 0 : at);
        for (size_t i = 0; i < t.rows * t.cols; i++) t.v[i] = scaled(s, t.v[i]);
        pare_blas_gram_add(&out->g, &t, by_rows);
    }
    for (size_t i = 0; i < k; i++) out->diag[i] = pare_row(&out->g, i)[i];
    /* gamma_{m+2}: two roundings of room for a BLAS that multiplies by alpha = 1 and beta = 1. */
    out->error = pare_ub_fma(pare_gamma(inner + 2, PARE_UNIT_F64), pare_ub_mul(fro, fro),
                             pare_ub_mul(pare_times(inner, lost), pare_times(k, 1)));
    return PARE_OK;
}

/* ---- 2. the estimate -------------------------------------------------------------------- */

static double dot(const double *x, const double *y, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += x[i] * y[i];
    return s;
}

/* x /= |x|; returns |x|. */
static double normalize(double *x, size_t n)
{
    const double len = sqrt(dot(x, x, n));
    for (size_t i = 0; i < n && len > 0; i++) x[i] /= len;
    return len;
}

/* Largest eigenvalue of the symmetric tridiagonal (d, e) of size n; nan when LAPACK gives up. */
static double tridiagonal_top(const double *d, const double *e, size_t n)
{
    double dd[lanczos_most], ee[lanczos_most];
    memcpy(dd, d, n * sizeof *d);
    memcpy(ee, e, n * sizeof *e);
    return LAPACKE_dsterf(pare_blas_int(n), dd, ee) == 0 ? dd[n - 1] : NAN;
}

pare_status pare_gram_top_est(double *est, const gram *g, pare_arena *scratch, pare_err *err)
{
    const size_t k = g->g.rows, most = least(k, lanczos_most);
    double d[lanczos_most] = {0}, e[lanczos_most] = {0}, seen = 0;
    pare_mat q = pare_mat_new(scratch, most + 1, k); /* the basis, in rows */
    if (!q.v) return pare_no_memory(err);
    pare_rng rng = pare_rng_at(0, 0); /* fixed: the same matrix gives the same bound */
    for (size_t i = 0; i < k; i++) q.v[i] = pare_rng_normal(&rng);
    (void)normalize(q.v, k);
    *est = 0;
    for (size_t j = 0; j < most; j++) {
        double *next = pare_row_mut(&q, j + 1);
        pare_blas_symv_upper(next, &g->g, pare_row(&q, j));
        d[j] = dot(next, pare_row(&q, j), k);
        for (size_t pass = 0; pass < 2; pass++) /* twice is enough to stay orthogonal */
            for (size_t i = 0; i <= j; i++) {
                const double *const row = pare_row(&q, i), c = dot(next, row, k);
                for (size_t l = 0; l < k; l++) next[l] -= c * row[l];
            }
        e[j] = normalize(next, k);
        const bool ends = j + 1 == most || !(e[j] > 1e-12 * fabs(d[0]));
        if (!ends && (j + 1) % lanczos_check != 0) continue;
        *est = tridiagonal_top(d, e, j + 1);
        if (ends || *est - seen <= 1e-11 * *est) break;
        seen = *est;
    }
    return PARE_OK;
}

/* ---- 3. the proof ----------------------------------------------------------------------- */

/* Rows at .. at + panel_rows of L with zeros above the diagonal, in panel number `which`. */
static pare_mat factor_rows(gram *g, size_t which, size_t at)
{
    const size_t n = least(panel_rows, g->g.rows - at), len = at + n;
    pare_mat p = pare_mat_part(&g->panel, which * panel_rows, 0, n, len);
    for (size_t i = 0; i < n; i++) {
        double *row = pare_row_mut(&p, i);
        memcpy(row, pare_row(&g->g, at + i), (at + i + 1) * sizeof *row);
        memset(row + at + i + 1, 0, (n - i - 1) * sizeof *row);
    }
    return p;
}

/* Adds |a - h| of one tile of the lower triangle to the row sums of both its sides. */
static void add_residual(gram *g, double c, const pare_mat *h, size_t r, size_t s)
{
    for (size_t i = 0; i < h->rows; i++)
        for (size_t j = 0; j < h->cols && s + j <= r + i; j++) {
            const bool diagonal = s + j == r + i;
            const double a = diagonal ? c - g->diag[r + i] : -pare_row(&g->g, s + j)[r + i];
            const double e = fabs(a - pare_row(h, i)[j]);
            g->sums[r + i] += e;
            if (!diagonal) g->sums[s + j] += e;
        }
}

/* Row sums of |c I - fl(G) - fl(L L^T)| into g->sums; returns the trace of fl(L L^T). */
static double residual(gram *g, double c)
{
    const size_t k = g->g.rows;
    double trace = 0;
    memset(g->sums, 0, k * sizeof *g->sums);
    for (size_t r = 0; r < k; r += panel_rows) {
        const pare_mat left = factor_rows(g, 0, r);
        for (size_t s = 0; s <= r; s += panel_rows) {
            const pare_mat right = factor_rows(g, 1, s);
            const pare_mat head = pare_mat_part(&left, 0, 0, left.rows, right.cols);
            pare_mat h = pare_mat_part(&g->panel, 2 * panel_rows, 0, left.rows, right.rows);
            pare_gemm(&h, 1, &head, false, &right, true, 0);
            add_residual(g, c, &h, r, s);
            for (size_t i = 0; s == r && i < h.rows; i++) trace += pare_row(&h, i)[i];
        }
    }
    return trace;
}

/* The error terms of step 3, without the Gram matrix's. */
static pare_ub residual_bound(const gram *g, double c, double trace)
{
    const size_t k = g->g.rows;
    double widest = 0, diagonal = 0;
    for (size_t i = 0; i < k; i++) {
        if (!(g->sums[i] <= widest)) widest = g->sums[i];
        const double a = fabs(c - g->diag[i]);
        if (!(a <= diagonal)) diagonal = a;
        if (isnan(widest) || isnan(diagonal)) return pare_ub_inf();
    }
    const pare_ub under = pare_ub_mul(pare_times(k, lost), pare_times(k, 1));
    const pare_ub size = pare_sum_up(pare_ub_add(pare_ub_exact(trace), under).v, 2 * k + 2);
    pare_ub sum = pare_sum_up(widest, k);
    sum = pare_ub_fma(pare_gamma(k + 2, PARE_UNIT_F64), size, sum);
    sum = pare_ub_fma(pare_ub_exact(PARE_UNIT_F64), pare_ub_exact(diagonal), sum);
    return pare_ub_add(sum, under);
}

pare_ub pare_gram_bound(gram *g, double c)
{
    const double trace = residual(g, c);
    const pare_ub rest = pare_ub_add(residual_bound(g, c, trace), g->error);
    return pare_ub_add(pare_ub_exact(c), rest);
}

pare_status pare_gram_prove(pare_ub *out, gram *g, double c, pare_err *err)
{
    *out = pare_ub_inf();
    if (!(c > 0) || isinf(c)) return PARE_OK;
    for (size_t i = 0; i < g->g.rows; i++) { /* lower triangle and diagonal: c I - fl(G) */
        double *row = pare_row_mut(&g->g, i);
        for (size_t j = 0; j < i; j++) row[j] = -pare_row(&g->g, j)[i];
        row[i] = c - g->diag[i];
    }
    /* 'U' stored by columns is our lower triangle. */
    const int info = LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', pare_blas_int(g->g.rows), g->g.v,
                                    pare_blas_ld(&g->g));
    if (info == LAPACK_WORK_MEMORY_ERROR) return pare_no_memory(err);
    if (info == 0) *out = pare_gram_bound(g, c); /* else c is too small: nothing is proven */
    return PARE_OK;
}

/* ---- together --------------------------------------------------------------------------- */

/* Bound on |t|_2 for the scaled matrix, given one on its Frobenius norm. */
static pare_status scaled_norm(pare_ub *out, const pare_weight *w, const unit_scale *s, pare_ub fro,
                               pare_arena *scratch, pare_err *err)
{
    static const double slack[] = {1e-10, 1e-8, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, 1};
    gram g;
    double est = 0;
    *out = fro;
    pare_status st = pare_gram_of(&g, w, s, fro, scratch, err);
    if (st == PARE_OK) st = pare_gram_top_est(&est, &g, scratch, err);
    for (size_t i = 0; st == PARE_OK && i < sizeof slack / sizeof *slack; i++) {
        const double c = est * (1 + slack[i]);
        pare_ub top;
        if (!(c < fro.v * fro.v)) break; /* the Frobenius norm says as much */
        st = pare_gram_prove(&top, &g, c, err);
        if (isinf(top.v)) continue;
        const pare_ub both = pare_ub_mul(pare_times(w->rows, 1), pare_times(w->cols, 1));
        const pare_ub scaling = pare_ub_mul(pare_ub_sqrt(both), pare_ub_exact(lost));
        *out = pare_ub_min(fro, pare_ub_add(pare_ub_sqrt(top), scaling));
        break;
    }
    return st;
}

pare_status pare_norm_spectral(pare_ub *out, const pare_weight *w, pare_arena *scratch,
                               pare_err *err)
{
    size_t bad;
    *out = pare_ub_inf();
    if (!pare_weight_finite(w, &bad))
        return pare_fail(err, PARE_ERR_NONFINITE,
                         "spectral norm: the [%zu, %zu] matrix holds %g at (%zu, %zu)", w->rows,
                         w->cols, pare_weight_at(w, bad), bad / w->cols, bad % w->cols);
    const pare_ub max = pare_norm_max(w);
    *out = max;
    if (max.v == 0) return PARE_OK; /* also the empty and the absent matrix */
    const unit_scale s = pare_unit_scale_of(max.v);
    pare_ub unit = pare_unit_fro(w, &s);
    pare_status st = PARE_OK;
    if (w->rows > 1 && w->cols > 1) { /* a vector's norm is |.|_F */
        const pare_mark mark = pare_arena_mark(scratch);
        pare_blas_one_thread();
        st = scaled_norm(&unit, w, &s, unit, scratch, err);
        pare_arena_reset(scratch, mark);
    }
    const pare_ub sides =
        pare_ub_mul(pare_ub_sqrt(pare_norm_max_row(w)), pare_ub_sqrt(pare_norm_max_col(w)));
    *out = st == PARE_OK ? pare_ub_min(sides, pare_unscaled(&s, unit)) : pare_ub_inf();
    return st;
}
