/* A matrix as a part of a random product: donors, water-filling and trades beside the equal
 * blocks of Otsuka 2025, on the same source with the same units, as CSV. The figure is the largest
 * error of an entry, geometric mean over four sources. Targets are normal with a spectral norm of
 * about 1; n is 12 d. */
#include "linalg/matrix.h"
#include <pare/ticket.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ITEMS = 12, SOURCES = 4, FIRST = 400 };

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "bench fit: %s\n", what);
    exit(2);
}

/* Largest |error|; *ms: CPU time, the best of all. */
static double largest(const pare_mat *w, pare_mat *out, uint64_t seed, bool best, double *ms)
{
    pare_err err = {0};
    double most = 0;
    const pare_fit_opts o = {
        .seed = seed, .left = 0, .right = 1, .hidden = ITEMS * w->rows, .scale = 1, .best = best};
    const clock_t t0 = clock();
    if (pare_ticket_fit(out, w, &o, NULL, &err)) stop(err.msg);
    *ms = fmin(*ms, 1e3 * (double)(clock() - t0) / CLOCKS_PER_SEC);
    for (size_t i = 0; i < w->rows; i++)
        for (size_t j = 0; j < w->cols; j++)
            most = fmax(most, fabs(pare_row(w, i)[j] - pare_row(out, i)[j]));
    return most;
}

static void compare(size_t d, const char *at_least)
{
    pare_arena *const a = pare_arena_new();
    pare_mat w = a ? pare_mat_new(a, d, d) : (pare_mat){0},
             out = a ? pare_mat_new(a, d, d) : (pare_mat){0};
    pare_rng r = pare_rng_at(3, 99);
    double block = 0, best = 0, ms[2] = {1e9, 1e9};
    if (!w.v || !out.v) stop("out of memory");
    for (size_t i = 0; i < d * d; i++) w.v[i] = 0.5 / sqrt((double)d) * pare_rng_normal(&r);
    for (uint64_t s = FIRST; s < FIRST + SOURCES; s++) {
        block += log(largest(&w, &out, s, false, &ms[0])) / SOURCES;
        best += log(largest(&w, &out, s, true, &ms[1])) / SOURCES;
    }
    printf("%zu,%d,%d,%.2e,%.2e,%.1f,%s,%.1f,%.1f\n", d, ITEMS, SOURCES, exp(block), exp(best),
           exp(block - best), at_least, ms[0], ms[1]);
    fflush(stdout);
    pare_arena_free(a);
}

int main(void)
{
    printf("d,items,sources,blocks_error,best_error,ratio,at_least,blocks_ms,best_ms\n");
    compare(16, "50");
    compare(64, "8");
    return 0;
}
