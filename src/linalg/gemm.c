/* gemm.c - products: the only file that calls cblas.
 *
 * What proofs elsewhere use of BLAS is this and no more: each entry of a product is the sum of its
 * inner products in some order, each multiplication and addition rounded to nearest or fused
 * (so its error is at most gamma_k times the sum of absolute values). OpenBLAS, BLIS and the
 * reference BLAS do so; a BLAS with Strassen's method would not. */
#include "matrix.h"
#include "blas.h"
#include "sgemm.h"
#include <cblas.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

/* Weak, so that a BLAS that is not OpenBLAS links too (and keeps its own thread count). */
extern void openblas_set_num_threads(int num_threads) __attribute__((weak));

static void set_one_thread(void)
{
    if (openblas_set_num_threads) openblas_set_num_threads(1);
}

void pare_blas_one_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    PARE_ASSERT(pthread_once(&once, set_one_thread) == 0);
}

int pare_blas_int(size_t n)
{
    PARE_ASSERT(n <= INT_MAX);
    return (int)n;
}

static int leading(size_t ld, size_t rows, size_t cols)
{
    PARE_ASSERT(rows <= 1 || ld >= cols);
    const size_t least = cols > 0 ? cols : 1;
    return pare_blas_int(ld > least ? ld : least);
}

int pare_blas_ld(const pare_mat *m)
{
    return leading(m->ld, m->rows, m->cols);
}

/* c = beta c, where beta = 0 also clears a nan. */
static void scale(pare_mat *c, double beta)
{
    for (size_t i = 0; i < c->rows; i++) {
        double *row = pare_row_mut(c, i);
        for (size_t j = 0; j < c->cols; j++) row[j] = beta == 0 ? 0 : beta * row[j];
    }
}

static void scale_f32(size_t m, size_t n, float beta, float *c, size_t ldc)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) c[i * ldc + j] = beta == 0 ? 0 : beta * c[i * ldc + j];
}

void pare_gemm(pare_mat *c, double alpha, const pare_mat *a, bool ta, const pare_mat *b, bool tb,
               double beta)
{
    const size_t k = ta ? a->rows : a->cols;
    PARE_ASSERT((ta ? a->cols : a->rows) == c->rows);
    PARE_ASSERT((tb ? b->cols : b->rows) == k && (tb ? b->rows : b->cols) == c->cols);
    if (c->rows == 0 || c->cols == 0) return;
    if (k == 0 || alpha == 0) {
        scale(c, beta);
        return;
    }
    pare_blas_one_thread();
    if (c->rows == 1) { /* one token: dgemm would copy all of b first */
        if (beta != 1) scale(c, beta);
        const int step = ta ? pare_blas_ld(a) : 1;
        cblas_dgemv(CblasRowMajor, tb ? CblasNoTrans : CblasTrans, pare_blas_int(b->rows),
                    pare_blas_int(b->cols), alpha, b->v, pare_blas_ld(b), a->v, step, 1, c->v, 1);
        return;
    }
    cblas_dgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
                pare_blas_int(c->rows), pare_blas_int(c->cols), pare_blas_int(k), alpha, a->v,
                pare_blas_ld(a), b->v, pare_blas_ld(b), beta, c->v, pare_blas_ld(c));
}

static void blas_f32(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda, bool ta,
                     const float *b, size_t ldb, bool tb, float beta, float *c, size_t ldc)
{
    if (m == 0 || n == 0) return;
    if (k == 0 || alpha == 0) {
        scale_f32(m, n, beta, c, ldc);
        return;
    }
    pare_blas_one_thread();
    const int la = ta ? leading(lda, k, m) : leading(lda, m, k);
    const int lb = tb ? leading(ldb, n, k) : leading(ldb, k, n);
    if (m == 1) {
        if (beta != 1) scale_f32(m, n, beta, c, ldc);
        cblas_sgemv(CblasRowMajor, tb ? CblasNoTrans : CblasTrans, pare_blas_int(tb ? n : k),
                    pare_blas_int(tb ? k : n), alpha, b, lb, a, ta ? la : 1, 1, c, 1);
        return;
    }
    cblas_sgemm(CblasRowMajor, ta ? CblasTrans : CblasNoTrans, tb ? CblasTrans : CblasNoTrans,
                pare_blas_int(m), pare_blas_int(n), pare_blas_int(k), alpha, a, la, b, lb, beta, c,
                leading(ldc, m, n));
}

void pare_blas_f32(pare_mat32 *c, float alpha, const pare_mat32 *a, bool ta, const pare_mat32 *b,
                   bool tb, float beta)
{
    const size_t inner = ta ? a->rows : a->cols;
    PARE_ASSERT(c->rows == (ta ? a->cols : a->rows) && c->cols == (tb ? b->rows : b->cols));
    PARE_ASSERT(inner == (tb ? b->cols : b->rows));
    blas_f32(c->rows, c->cols, inner, alpha, a->v, a->ld, ta, b->v, b->ld, tb, beta, c->v, c->ld);
}

void pare_gemm_f32(size_t m, size_t n, size_t k, float alpha, const float *a, size_t lda, bool ta,
                   const float *b, size_t ldb, bool tb, float beta, float *c, size_t ldc)
{
    enum { LEAST_ROWS = 4, LEAST_COLS = 16, SMALL = 64 * 64 * 64 }; /* BLAS is as fast below */
    const bool plain = alpha == 1 && (beta == 0 || beta == 1) && m >= LEAST_ROWS &&
                       n >= LEAST_COLS && (double)m * (double)n * (double)k >= SMALL;
    if (plain && sgemm_avx512(m, n, k, a, lda, ta, b, ldb, tb, beta == 1 ? c : NULL, ldc, c, ldc))
        return;
    blas_f32(m, n, k, alpha, a, lda, ta, b, ldb, tb, beta, c, ldc);
}

void pare_blas_gram_add(pare_mat *g, const pare_mat *t, bool by_rows)
{
    const size_t inner = by_rows ? t->rows : t->cols;
    PARE_ASSERT(g->rows == g->cols && g->rows == (by_rows ? t->cols : t->rows));
    if (inner == 0 || g->rows == 0) return;
    pare_blas_one_thread();
    cblas_dsyrk(CblasRowMajor, CblasUpper, by_rows ? CblasTrans : CblasNoTrans,
                pare_blas_int(g->rows), pare_blas_int(inner), 1, t->v, pare_blas_ld(t), 1, g->v,
                pare_blas_ld(g));
}

void pare_blas_symv_upper(double *y, const pare_mat *g, const double *x)
{
    PARE_ASSERT(g->rows == g->cols);
    memset(y, 0, g->rows * sizeof *y);
    pare_blas_one_thread();
    cblas_dsymv(CblasRowMajor, CblasUpper, pare_blas_int(g->rows), 1, g->v, pare_blas_ld(g), x, 1,
                1, y, 1);
}
