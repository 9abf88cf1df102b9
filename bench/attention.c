/* Attention of the f32 engine beside the product rate of the same process: for each case sgemm
 * (1024 x 1024 x 1024, one on each thread) and attention take turns, and the best of each counts.
 *
 *   bench/attention             all cases
 *   bench/attention WORD...     only the cases whose name has one of the words
 *   bench/attention --cpu ...   times are the process's CPU time over its threads: for a machine
 *                               that others use as well
 *
 * Flops are counted as 4 N^2 d per head, half for causal, 4 d per edge of a graph. */
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEADS = 8, SIDE = 1024, RUNS = 5 };

typedef struct bench {
    pare_arena *arena;
    pare_exec exec;
    bool cpu;               /* CPU time instead of the clock on the wall */
    size_t n, d, ld, heads; /* heads side by side, as a model has them */
    float *q, *k, *v, *y;   /* n x ld */
    pare_pattern pattern;
    const pare_graph *graph;
    float *a, *b, *c; /* SIDE x SIDE; c one for each thread */
} bench;

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(2);
}

static double seconds(const bench *b)
{
    struct timespec t;
    if (!b->cpu) return pare_seconds();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / b->exec.threads;
}

static float *randoms(pare_arena *a, size_t n, uint64_t stream)
{
    float *const x = pare_alloc(a, n, sizeof *x);
    if (!x) stop("out of memory");
    pare_rng r = pare_rng_at(1, stream);
    for (size_t i = 0; i < n; i++) x[i] = (float)pare_rng_normal(&r);
    return x;
}

static void one_product(void *ctx, size_t i)
{
    const bench *const b = ctx;
    pare_blas_f32(&(pare_mat32){SIDE, SIDE, SIDE, b->c + i * SIDE * SIDE}, 1,
                  &(pare_mat32){SIDE, SIDE, SIDE, b->a}, false,
                  &(pare_mat32){SIDE, SIDE, SIDE, b->b}, false, 0);
}

static pare_mat32 head_of(const bench *b, float *x, size_t h)
{
    return (pare_mat32){b->n, b->d, b->ld, x + h * b->d};
}

/* Threads work within a head, as they do when there are few. */
static void attend(bench *b)
{
    for (size_t h = 0; h < b->heads; h++) {
        pare_mat32 y = head_of(b, b->y, h);
        const pare_mat32 q = head_of(b, b->q, h), k = head_of(b, b->k, h), v = head_of(b, b->v, h);
        if (pare_attend_f32(&y,
                            &(pare_attention_args32){.q = &q,
                                                     .k = &k,
                                                     .v = &v,
                                                     .scale = (1 / sqrt((double)b->d)),
                                                     .pattern = &b->pattern,
                                                     .graph = b->graph},
                            &b->exec, NULL))
            stop("out of memory");
    }
}

/* A wrong answer is always fast: the middle row of the last head, in f64. */
static void check(const bench *b)
{
    const size_t i = b->n / 2, off = (b->heads - 1) * b->d;
    const pare_keys keys = pare_visible(&b->pattern, b->graph, b->n, i);
    double *const y = calloc(b->d, sizeof *y), sum = 0;
    for (size_t j = 0; y && j < keys.count; j++) {
        const size_t at = pare_key(&keys, j);
        double s = 0;
        for (size_t c = 0; c < b->d; c++)
            s += (double)b->q[i * b->ld + off + c] * (double)b->k[at * b->ld + off + c];
        const double w = exp(s / sqrt((double)b->d));
        sum += w;
        for (size_t c = 0; c < b->d; c++) y[c] += w * (double)b->v[at * b->ld + off + c];
    }
    for (size_t c = 0; c < b->d; c++) {
        const double want = keys.count ? y[c] / sum : 0;
        if (!(fabs((double)b->y[i * b->ld + off + c] - want) <= 1e-4)) stop("attention is wrong");
    }
    free(y);
}

static void measure(bench *b, const char *name, double flops, double edges)
{
    double product = INFINITY, own = INFINITY;
    const size_t threads = (size_t)b->exec.threads;
    const int repeat = 1 + (int)(1e8 / flops); /* small cases many times */
    attend(b);
    check(b);
    for (int r = 0; r < RUNS; r++) {
        const double t0 = seconds(b);
        pare_parallel(&b->exec, threads, one_product, b);
        const double t1 = seconds(b);
        for (int i = 0; i < repeat; i++) attend(b);
        const double t2 = (seconds(b) - t1) / repeat;
        if (t1 - t0 < product) product = t1 - t0;
        if (t2 < own) own = t2;
    }
    const double rate = 1e-9 * flops / own;
    const double sgemm = 2e-9 * SIDE * SIDE * SIDE * (double)threads / product;
    printf("%s,%zu,%zu,%zu,%d,%.3f,%.1f,%.1f,%.3f,%.1f\n", name, b->n, b->d, b->heads,
           b->exec.threads, 1e3 * own, rate, sgemm, rate / sgemm, 1e-6 * edges / own);
    fflush(stdout);
}

static void dense(bench *b, const char *name, size_t n, size_t d, pare_pattern pattern)
{
    const pare_mark mark = pare_arena_mark(b->arena);
    b->n = n, b->d = d, b->heads = HEADS, b->ld = HEADS * d;
    b->pattern = pattern, b->graph = NULL;
    b->q = randoms(b->arena, n * b->ld, 1), b->k = randoms(b->arena, n * b->ld, 2);
    b->v = randoms(b->arena, n * b->ld, 3), b->y = randoms(b->arena, n * b->ld, 4);
    double edges = 0;
    for (size_t i = 0; i < n; i++) edges += (double)pare_visible(&pattern, NULL, n, i).count;
    if (pattern.kind == PARE_CAUSAL) edges = 0.5 * (double)n * (double)n; /* as others count it */
    for (b->exec.threads = 1; b->exec.threads <= 2; b->exec.threads++)
        measure(b, name, 4 * edges * (double)d * HEADS, edges * HEADS);
    pare_arena_reset(b->arena, mark);
}

/* n nodes with `degree` keys each: neighbors on a ring (like the cells of a board) or anywhere. */
static void graph(bench *b, const char *name, size_t n, size_t degree, bool anywhere, size_t d)
{
    const pare_mark mark = pare_arena_mark(b->arena);
    size_t *const ptr = pare_alloc(b->arena, n + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(b->arena, n * degree, sizeof *idx);
    pare_rng r = pare_rng_at(7, 1);
    if (!ptr || !idx) stop("out of memory");
    for (size_t i = 0; i < n; i++) {
        ptr[i + 1] = (i + 1) * degree;
        for (size_t e = 0; e < degree; e++) {
            const size_t far = n / degree * e + pare_rng_below(&r, n / degree);
            idx[i * degree + e] = (uint32_t)(anywhere ? far : (i + 100 * (e / 3) + e % 3) % n);
        }
    }
    const pare_graph g = {n, ptr, idx};
    b->n = n, b->d = d, b->heads = 1, b->ld = d;
    b->pattern = (pare_pattern){.kind = PARE_GRAPH}, b->graph = &g;
    b->q = randoms(b->arena, n * d, 1), b->k = randoms(b->arena, n * d, 2);
    b->v = randoms(b->arena, n * d, 3), b->y = randoms(b->arena, n * d, 4);
    for (b->exec.threads = 1; b->exec.threads <= 2; b->exec.threads++)
        measure(b, name, 4 * (double)(n * degree * d), (double)(n * degree));
    b->graph = NULL;
    pare_arena_reset(b->arena, mark);
}

static bool wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strstr(name, argv[i])) return true;
    return argc < 2;
}

int main(int argc, char **argv)
{
    bench b = {.arena = pare_arena_new()};
    if (argc > 1 && strcmp(argv[1], "--cpu") == 0) {
        b.cpu = true;
        argc--, argv++;
    }
    if (!b.arena) stop("out of memory");
    b.a = randoms(b.arena, SIDE * SIDE, 5), b.b = randoms(b.arena, SIDE * SIDE, 6);
    b.c = randoms(b.arena, 2 * SIDE * SIDE, 7);
    const pare_pattern full = {.kind = PARE_FULL}, causal = {.kind = PARE_CAUSAL};
    const pare_pattern window = {.kind = PARE_WINDOW, .window = 256, .sinks = 4};
    const struct {
        const char *name;
        size_t n, d;
        const pare_pattern *pattern;
    } cases[] = {{"tiny full", 64, 8, &full},        {"tiny causal", 256, 8, &causal},
                 {"full", 1024, 64, &full},          {"full", 4096, 64, &full},
                 {"causal", 1024, 64, &causal},      {"causal", 4096, 64, &causal},
                 {"window 256+4", 4096, 64, &window}};
    printf("case,n,d,heads,threads,ms,gflops,sgemm_gflops,ratio,million_pairs_per_s\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (wanted(argc, argv, cases[i].name))
            dense(&b, cases[i].name, cases[i].n, cases[i].d, *cases[i].pattern);
    if (wanted(argc, argv, "minesweeper")) graph(&b, "minesweeper shape", 10000, 8, false, 64);
    if (wanted(argc, argv, "tolokers")) graph(&b, "tolokers shape", 11758, 88, true, 64);
    pare_arena_free(b.arena);
    return 0;
}
