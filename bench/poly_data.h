/* poly_data.h - what the benchmarks of polynomial attention share: their data, their clock, and
 * which cases are run.
 *
 * Queries and keys are normal, centered, with logits of standard deviation 0.1; values are normal.
 */
#ifndef BENCH_POLY_DATA_H
#define BENCH_POLY_DATA_H
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOGIT_STD 0.1

typedef struct poly_case {
    const char *name;
    pare_pattern_kind kind;
    size_t n, d;
    int threads;
} poly_case;

typedef struct poly_data {
    pare_arena *a;
    pare_exec exec;
    bool cpu; /* the process's CPU time over its threads: for a machine that others use as well */
    size_t n, d;
    pare_pattern pattern;
    pare_mat32 q, k, v;
} poly_data;

static inline _Noreturn void stop(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(2);
}

static inline double seconds(const poly_data *b)
{
    struct timespec t;
    if (!b->cpu) return pare_seconds();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return ((double)t.tv_sec + 1e-9 * (double)t.tv_nsec) / b->exec.threads;
}

/* n x d; std 0: zeros. */
static inline pare_mat32 randoms(const poly_data *b, double std, uint64_t stream)
{
    float *const x = pare_alloc(b->a, b->n * b->d, sizeof *x);
    if (!x) stop("out of memory");
    pare_rng r = pare_rng_at(1, stream);
    for (size_t i = 0; std > 0 && i < b->n * b->d; i++) x[i] = (float)(std * pare_rng_normal(&r));
    return (pare_mat32){b->n, b->d, b->d, x};
}

/* To be freed with its arena. */
static inline poly_data poly_data_of(const poly_case *c, bool cpu)
{
    poly_data b = {.a = pare_arena_new(),
                   .exec = {.threads = c->threads},
                   .cpu = cpu,
                   .n = c->n,
                   .d = c->d,
                   .pattern = {.kind = c->kind}};
    if (!b.a) stop("out of memory");
    const double std = sqrt(LOGIT_STD / sqrt((double)c->d)); /* of q and k, with scale 1 */
    b.q = randoms(&b, std, 1), b.k = randoms(&b, std, 2), b.v = randoms(&b, 1, 3);
    return b;
}

/* PROGRAM [--cpu] [WORD...]: all cases, or those whose name has one of the words. */
static inline void poly_run_cases(int argc, char **argv, const poly_case *cases, size_t n,
                                  void (*one)(const poly_case *c, bool cpu))
{
    const bool cpu = argc > 1 && strcmp(argv[1], "--cpu") == 0;
    for (size_t i = 0; i < n; i++) {
        bool wanted = argc == 1 + cpu;
        for (int w = 1 + cpu; w < argc; w++) wanted |= strstr(cases[i].name, argv[w]) != NULL;
        if (!wanted) continue;
        one(&cases[i], cpu);
        fflush(stdout);
    }
}
#endif
