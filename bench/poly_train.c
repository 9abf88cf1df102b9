/* Polynomial attention there and back beside our own exact kernels, in one process, in turns, the
 * best of each.
 *
 *   bench/poly_train             all cases
 *   bench/poly_train WORD...     only the cases whose name has one of the words
 *   bench/poly_train --cpu ...   CPU time of the process over its threads, for a machine that
 * others use as well
 *
 * Data as in bench/poly: logits of standard deviation 0.1, tolerance 1e-3 of the range of values.
 * `there` plans and attends, `back` goes back; `exact` is both with the exact kernels, "-" where it
 * would take minutes. `gap` is the largest difference from the exact gradient, of any of dq, dk and
 * dv in units of its largest number; "-" likewise. */
#include <pare/pare.h>
#include <pare/poly.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 3, EXACT_ROWS = 16384 };
#define LOGIT_STD 0.1

typedef struct bench {
    pare_exec exec;
    bool cpu;
    size_t n, d;
    pare_pattern pattern;
    pare_mat32 q, k, v, dy, y;
    pare_mat32 grad[3], want[3]; /* dq, dk, dv */
    float *lse;
    uint8_t *exact;
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

static pare_mat32 randoms(pare_arena *a, size_t n, size_t d, double std, uint64_t stream)
{
    float *const x = pare_alloc(a, n * d, sizeof *x);
    if (!x) stop("out of memory");
    pare_rng r = pare_rng_at(1, stream);
    for (size_t i = 0; std > 0 && i < n * d; i++) x[i] = (float)(std * pare_rng_normal(&r));
    return (pare_mat32){n, d, d, x};
}

static void clear(pare_mat32 m[3])
{
    for (size_t i = 0; i < 3; i++) memset(m[i].v, 0, m[i].rows * m[i].ld * sizeof *m[i].v);
}

static double exact(bench *b)
{
    const pare_kept32 kept = {.lse = b->lse};
    clear(b->want);
    const double start = seconds(b);
    if (pare_attend_keep_f32(&b->y, &kept, &b->q, &b->k, &b->v, 1, &b->pattern, NULL, NULL,
                             &b->exec, NULL) ||
        pare_attend_backward_f32(&b->want[0], &b->want[1], &b->want[2], &b->dy, &b->q, &b->k, &b->v,
                                 &b->y, &kept, 1, &b->pattern, NULL, NULL, &b->exec, NULL))
        stop("out of memory");
    return seconds(b) - start;
}

static void poly(bench *b, double *there, double *back, pare_poly_report *report)
{
    const pare_poly_opts o = PARE_POLY_DEFAULT;
    const pare_poly_kept kept = {.exact = b->exact};
    pare_arena *const a = pare_arena_new();
    pare_poly_plan plan;
    clear(b->grad);
    const double start = seconds(b);
    if (!a ||
        pare_poly_plan_f32(&plan, a, &b->q, &b->k, b->d, 1, &b->pattern, &o, &b->exec, NULL) ||
        pare_poly_attend_f32(&b->y, &kept, report, &plan, &b->q, &b->k, &b->v, &b->exec, NULL))
        stop("out of memory");
    const double middle = seconds(b);
    if (pare_poly_backward_f32(&b->grad[0], &b->grad[1], &b->grad[2], &b->dy, &plan, &b->q, &b->k,
                               &b->v, b->exact, &b->exec, NULL))
        stop("out of memory");
    *there = fmin(*there, middle - start);
    *back = fmin(*back, seconds(b) - middle);
    pare_arena_free(a);
}

static double gap(const bench *b)
{
    double worst = 0;
    for (size_t i = 0; i < 3; i++) {
        double size = 0, most = 0;
        for (size_t e = 0; e < b->n * b->d; e++) {
            size = fmax(size, fabs((double)b->want[i].v[e]));
            most = fmax(most, fabs((double)b->want[i].v[e] - (double)b->grad[i].v[e]));
        }
        worst = fmax(worst, most / size);
    }
    return worst;
}

static void one(bool cpu, const char *name, pare_pattern_kind kind, size_t n, size_t d, int threads)
{
    pare_arena *const a = pare_arena_new();
    if (!a) stop("out of memory");
    const double std = sqrt(LOGIT_STD / sqrt((double)d)); /* of q and k, with scale 1 */
    bench b = {.exec = {.threads = threads}, .cpu = cpu, .n = n, .d = d, .pattern = {.kind = kind}};
    b.q = randoms(a, n, d, std, 1), b.k = randoms(a, n, d, std, 2);
    b.v = randoms(a, n, d, 1, 3), b.dy = randoms(a, n, d, 1, 4), b.y = randoms(a, n, d, 0, 0);
    for (size_t i = 0; i < 3; i++)
        b.grad[i] = randoms(a, n, d, 0, 0), b.want[i] = randoms(a, n, d, 0, 0);
    b.lse = pare_alloc(a, n, sizeof *b.lse);
    b.exact = pare_alloc(a, n, 1);
    if (!b.lse || !b.exact) stop("out of memory");
    pare_poly_report r;
    double best = INFINITY, there = INFINITY, back = INFINITY;
    const bool short_one = n <= EXACT_ROWS;
    for (int i = 0; i < RUNS; i++) {
        if (short_one) best = fmin(best, exact(&b));
        poly(&b, &there, &back, &r);
    }
    printf("%s,%zu,%zu,%d,%zu,%zu,%zu,%.1f,%.1f", name, n, d, threads, r.degree, r.features,
           r.rows_exact, 1e3 * there, 1e3 * back);
    if (short_one)
        printf(",%.1f,%.1f,%.1e\n", 1e3 * best, best / (there + back), gap(&b));
    else
        printf(",-,-,-\n");
    fflush(stdout);
    pare_arena_free(a);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        pare_pattern_kind kind;
        size_t n, d;
        int threads;
    } cases[] = {
        {"full-8-16k", PARE_FULL, 16384, 8, 1},     {"full-16-16k", PARE_FULL, 16384, 16, 1},
        {"causal-8-16k", PARE_CAUSAL, 16384, 8, 1}, {"causal-16-16k", PARE_CAUSAL, 16384, 16, 1},
        {"full-16-1M", PARE_FULL, 1000000, 16, 2},  {"causal-16-1M", PARE_CAUSAL, 1000000, 16, 2},
    };
    const bool cpu = argc > 1 && strcmp(argv[1], "--cpu") == 0;
    printf("case,n,d,threads,degree,features,rows_exact,there_ms,back_ms,exact_ms,ratio,gap\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool wanted = argc == 1 + cpu;
        for (int w = 1 + cpu; w < argc; w++) wanted |= strstr(cases[i].name, argv[w]) != NULL;
        if (wanted)
            one(cpu, cases[i].name, cases[i].kind, cases[i].n, cases[i].d, cases[i].threads);
    }
    return 0;
}
