/* Times of what everything stands on: products, the dense layer, the SVD, the certified norm. */
#include "linalg/matrix.h"
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>

enum { RUNS = 5 };

typedef struct bench {
    pare_arena *arena; /* operands of the case at hand */
    pare_exec exec;
    pare_mat a, b, c;    /* n x k, m x k (or k x m), n x m */
    pare_weight w, none; /* b as a stored weight */
    float *xf, *yf;      /* n x k, n x m */
    double *s;           /* singular values */
    pare_ub norm;
} bench;

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(2);
}

static void *need(void *p)
{
    if (!p) stop("out of memory");
    return p;
}

static pare_mat random_mat(pare_arena *a, size_t rows, size_t cols, uint64_t stream)
{
    pare_mat m = pare_mat_new(a, rows, cols);
    need(m.v);
    pare_rng r = pare_rng_at(1, stream);
    for (size_t i = 0; i < rows * cols; i++) m.v[i] = pare_rng_normal(&r);
    return m;
}

static float *narrow(pare_arena *a, const pare_mat *m)
{
    float *f = need(pare_alloc(a, m->rows * m->cols, sizeof *f));
    for (size_t i = 0; i < m->rows * m->cols; i++) f[i] = (float)m->v[i];
    return f;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median seconds of RUNS calls after one that warms up. */
static double median(void (*run)(bench *), bench *b)
{
    double t[RUNS];
    run(b);
    for (size_t i = 0; i < RUNS; i++) {
        const double start = pare_seconds();
        run(b);
        t[i] = pare_seconds() - start;
    }
    qsort(t, RUNS, sizeof *t, by_size);
    return t[RUNS / 2];
}

static void show(const char *what, size_t n, size_t k, size_t m, int threads, double seconds,
                 double flops)
{
    printf("%-14s %5zu x %5zu x %5zu  -t %d  %9.3f ms", what, n, k, m, threads, 1e3 * seconds);
    if (flops > 0) printf("  %7.1f Gflop/s", 1e-9 * flops / seconds);
    printf("\n");
}

/* Entry (0, 0) of the product, summed plainly: a wrong answer is always fast. */
static void check_product(const bench *b, double got, double tolerance)
{
    double sum = 0;
    for (size_t i = 0; i < b->a.cols; i++) sum += pare_row(&b->a, 0)[i] * pare_row(&b->b, 0)[i];
    if (!(fabs(got - sum) <= tolerance * sqrt((double)b->a.cols))) stop("a product is wrong");
}

static void run_gemm_f64(bench *b)
{
    pare_gemm(&b->c, 1, &b->a, false, &b->b, true, 0);
}

static void run_gemm_f32(bench *b)
{
    const size_t n = b->a.rows, k = b->a.cols, m = b->b.rows;
    pare_gemm_f32(n, m, k, 1, b->xf, k, false, b->w.data, k, true, 0, b->yf, m);
}

static void run_dense_f64(bench *b)
{
    if (pare_dense_f64(&b->c, &b->a, &b->w, &b->none, &b->exec, NULL)) stop("dense f64 failed");
}

static void run_dense_f32(bench *b)
{
    if (pare_dense_f32(&(pare_mat32){b->a.rows, b->b.rows, b->b.rows, b->yf},
                       &(pare_mat32){b->a.rows, b->a.cols, b->a.cols, b->xf}, &b->w, &b->none,
                       &b->exec, NULL))
        stop("dense f32 failed");
}

static void run_svd(bench *b)
{
    const pare_mark mark = pare_arena_mark(b->arena);
    if (pare_svd(NULL, b->s, NULL, &b->b, b->arena, NULL)) stop("svd failed");
    pare_arena_reset(b->arena, mark);
}

static void run_norm(bench *b)
{
    const pare_mark mark = pare_arena_mark(b->arena);
    if (pare_norm_spectral(&b->norm, &b->w, b->arena, NULL)) stop("spectral norm failed");
    pare_arena_reset(b->arena, mark);
}

/* y (n x m) = x (n x k) w^T with w m x k, stored f32. */
static void bench_products(bench *b, size_t n, size_t k, size_t m)
{
    const pare_mark mark = pare_arena_mark(b->arena);
    const double flops = 2 * (double)n * (double)k * (double)m;
    b->a = random_mat(b->arena, n, k, 0);
    b->b = random_mat(b->arena, m, k, 1);
    b->c = pare_mat_new(b->arena, n, m);
    b->xf = narrow(b->arena, &b->a);
    b->yf = need(pare_alloc(b->arena, n * m, sizeof *b->yf));
    b->w = (pare_weight){PARE_F32, m, k, narrow(b->arena, &b->b)};
    need(b->c.v);
    show("gemm f64", n, k, m, 1, median(run_gemm_f64, b), flops);
    check_product(b, b->c.v[0], 1e-12);
    show("gemm f32", n, k, m, 1, median(run_gemm_f32, b), flops);
    check_product(b, (double)b->yf[0], 1e-4);
    for (int t = 1; t <= 2; t++) {
        b->exec.threads = t;
        show("dense f64", n, k, m, t, median(run_dense_f64, b), flops);
        check_product(b, b->c.v[0], 1e-5); /* the weights were rounded to f32 */
        show("dense f32", n, k, m, t, median(run_dense_f32, b), flops);
        check_product(b, (double)b->yf[0], 1e-4);
    }
    pare_arena_reset(b->arena, mark);
}

static void bench_norms(bench *b, size_t n)
{
    const pare_mark mark = pare_arena_mark(b->arena);
    b->b = random_mat(b->arena, n, n, 2);
    b->w = (pare_weight){PARE_F64, n, n, b->b.v};
    b->s = need(pare_alloc(b->arena, n, sizeof *b->s));
    show("svd values", n, n, 1, 1, median(run_svd, b), 0);
    show("spectral norm", n, n, 1, 1, median(run_norm, b), 0);
    if (!(b->norm.v >= b->s[0] * (1 - 1e-12) && b->norm.v <= b->s[0] * 1.001))
        stop("the spectral norm is not within 0.1 % above the largest singular value");
    pare_arena_reset(b->arena, mark);
}

int main(void)
{
    bench b = {.arena = need(pare_arena_new()), .exec = {.threads = 1}};
    bench_products(&b, 1024, 1024, 1024);
    bench_products(&b, 4096, 64, 64); /* skinny: the shape of one head */
    bench_products(&b, 1, 768, 3072); /* one token through an MLP */
    bench_norms(&b, 256);
    bench_norms(&b, 512);
    pare_arena_free(b.arena);
    return 0;
}
