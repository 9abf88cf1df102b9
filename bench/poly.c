/* Polynomial attention beside our own exact kernel, in one process, in turns, the best of each.
 *
 *   bench/poly                 all cases
 *   bench/poly WORD...         only the cases whose name has one of the words
 *   bench/poly --cpu ...       times are the process's CPU time over its threads: for a machine
 *                              that others use as well
 *
 * Queries and keys are normal, centred, with logits of standard deviation 0.1; values are normal.
 * The tolerance is 1e-3 of the range of the values. `exact` says how the exact time was taken:
 * all rows, or a slice of 2048 rows (in the middle of a causal pattern) times n / 2048. `proven`
 * and `measured` are errors in units of the range; measured on 64 rows, in f64. */
#include <pare/pare.h>
#include <pare/poly.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RUNS = 7, SLICE = 2048, ALL_ROWS = 16384, CHECKED = 64 };
#define LOGIT_STD 0.1

typedef struct bench {
    pare_exec exec;
    bool cpu;
    size_t n, d;
    pare_pattern pattern;
    pare_mat32 q, k, v, y, e;
    double scale;
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
    for (size_t i = 0; i < n * d; i++) x[i] = (float)(std * pare_rng_normal(&r));
    return (pare_mat32){n, d, d, x};
}

static bool whole(const bench *b)
{
    return b->n <= ALL_ROWS;
}

static double exact(bench *b)
{
    const double start = seconds(b);
    if (whole(b)) {
        if (pare_attend_f32(&b->e, &b->q, &b->k, &b->v, (float)b->scale, &b->pattern, NULL,
                            &b->exec, NULL))
            stop("out of memory");
        return seconds(b) - start;
    }
    float *const ml = malloc(2 * SLICE * sizeof *ml);
    const size_t from = b->n / 2 - SLICE / 2;
    const pare_mat32 q = {SLICE, b->d, b->d, b->q.v + from * b->d};
    pare_partial part = {{SLICE, b->d, b->d, b->e.v}, ml, ml ? ml + SLICE : NULL};
    const int64_t sees = b->pattern.kind == PARE_CAUSAL ? (int64_t)from + 1 : PARE_VIS_ALL;
    if (!ml ||
        pare_attend_partial_f32(&part, &q, &b->k, &b->v, (float)b->scale, sees, &b->exec, NULL))
        stop("out of memory");
    free(ml);
    return (seconds(b) - start) * (double)b->n / SLICE;
}

static double poly(bench *b, pare_poly_report *report)
{
    const pare_poly_opts o = PARE_POLY_DEFAULT;
    const double start = seconds(b);
    if (pare_poly_f32(&b->y, report, &b->q, &b->k, &b->v, b->scale, &b->pattern, NULL, &o, &b->exec,
                      NULL))
        stop("out of memory");
    return seconds(b) - start;
}

/* The largest error of one row, in units of the range of each column. */
static double row_error(const bench *b, size_t i, double *sum, const double *range)
{
    const size_t seen = pare_visible(&b->pattern, NULL, b->n, i).count;
    double weight = 0, worst = 0;
    memset(sum, 0, b->d * sizeof *sum);
    for (size_t j = 0; j < seen; j++) {
        double s = 0;
        for (size_t c = 0; c < b->d; c++)
            s += (double)b->q.v[i * b->d + c] * (double)b->k.v[j * b->d + c];
        const double w = exp(b->scale * s);
        weight += w;
        for (size_t c = 0; c < b->d; c++) sum[c] += w * (double)b->v.v[j * b->d + c];
    }
    for (size_t c = 0; c < b->d; c++)
        worst = fmax(worst, fabs((double)b->y.v[i * b->d + c] - sum[c] / weight) / range[c]);
    return worst;
}

static double measured(const bench *b)
{
    double *const sum = calloc(2 * b->d, sizeof *sum), worst = 0;
    if (!sum) stop("out of memory");
    double *const range = sum + b->d;
    for (size_t c = 0; c < b->d; c++) {
        double l = INFINITY, h = -INFINITY;
        for (size_t j = 0; j < b->n; j++) {
            l = fmin(l, (double)b->v.v[j * b->d + c]);
            h = fmax(h, (double)b->v.v[j * b->d + c]);
        }
        range[c] = h - l;
    }
    for (size_t r = 0; r < CHECKED; r++)
        worst = fmax(worst, row_error(b, (r + 1) * b->n / CHECKED - 1, sum, range));
    free(sum);
    return worst;
}

static void one(bool cpu, const char *name, pare_pattern_kind kind, size_t n, size_t d, int threads)
{
    pare_arena *const a = pare_arena_new();
    if (!a) stop("out of memory");
    const double std = sqrt(LOGIT_STD / sqrt((double)d)); /* of q and k, with scale 1 */
    bench b = {.exec = {.threads = threads}, .cpu = cpu, .n = n, .d = d, .scale = 1};
    b.pattern.kind = kind;
    b.q = randoms(a, n, d, std, 1), b.k = randoms(a, n, d, std, 2);
    b.v = randoms(a, n, d, 1, 3), b.y = randoms(a, n, d, 0, 4), b.e = randoms(a, n, d, 0, 5);
    pare_poly_report r;
    double best_exact = INFINITY, best_poly = INFINITY;
    const bool million = n > 500000; /* the exact kernel would take minutes for its slice alone */
    for (int i = 0; i < (million ? 2 : RUNS); i++) {
        if (!million || i == 0) best_exact = fmin(best_exact, exact(&b));
        best_poly = fmin(best_poly, poly(&b, &r));
    }
    char proven[40];
    printf("%s,%zu,%zu,%d,%s,%.2f,%.2f,%.1f,%zu,%zu,%zu,%s,%.1e\n", name, n, d, threads,
           whole(&b) ? "all" : "slice", 1e3 * best_exact, 1e3 * best_poly, best_exact / best_poly,
           r.degree, r.features, r.rows_exact, pare_ub_format(proven, r.proven, 2), measured(&b));
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
        {"full-8-16k", PARE_FULL, 16384, 8, 1},
        {"full-8-131k", PARE_FULL, 131072, 8, 1},
        {"full-16-16k", PARE_FULL, 16384, 16, 1},
        {"full-16-131k", PARE_FULL, 131072, 16, 1},
        {"causal-8-16k", PARE_CAUSAL, 16384, 8, 1},
        {"causal-8-131k", PARE_CAUSAL, 131072, 8, 1},
        {"causal-16-16k", PARE_CAUSAL, 16384, 16, 1},
        {"causal-16-131k", PARE_CAUSAL, 131072, 16, 1},
        {"full-16-1M", PARE_FULL, 1000000, 16, 2},
        {"causal-16-1M", PARE_CAUSAL, 1000000, 16, 2},
    };
    const bool cpu = argc > 1 && strcmp(argv[1], "--cpu") == 0;
    printf("case,n,d,threads,exact,exact_ms,poly_ms,ratio,degree,features,rows_exact,proven,"
           "measured\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool wanted = argc == 1 + cpu;
        for (int w = 1 + cpu; w < argc; w++) wanted |= strstr(cases[i].name, argv[w]) != NULL;
        if (wanted)
            one(cpu, cases[i].name, cases[i].kind, cases[i].n, cases[i].d, cases[i].threads);
    }
    return 0;
}
