/* Trellis tickets: errors of normal weights at a scale fixed beforehand, and the speed of both
 * directions. */
#include "quant/trellis.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double seconds(void)
{
    struct timespec t;
    clock_gettime(getenv("CPU") ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void row(size_t n, double bits, unsigned state_bits, bool rotate, const pare_exec *exec)
{
    pare_arena *const a = pare_arena_new();
    float *const w = malloc(n * n * sizeof *w);
    float *got = NULL;
    pare_coded coded = {0};
    pare_weight out;
    pare_err err = {0};
    pare_rng r = pare_rng_at(1, 2);
    double e2 = 0, w2 = 0;
    if (!a || !w) exit(2);
    for (size_t i = 0; i < n * n; i++) w[i] = (float)pare_rng_normal(&r);
    const trellis_job job = {.rows = n,
                             .cols = n,
                             .w = w,
                             .bits = bits,
                             .state_bits = state_bits,
                             .rotate = rotate,
                             .deviation = rotate ? 0 : 1,
                             .seed = 3,
                             .exec = exec};
    double at = seconds();
    if (trellis_matrix(&coded, &got, a, &job, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(2);
    }
    const double encode = seconds() - at;
    at = seconds();
    if (pare_coded_expand(&out, NULL, a, coded.data, coded.bytes, SIZE_MAX, &err)) exit(2);
    const double decode = seconds() - at, count = (double)(n * n);
    for (size_t i = 0; i < n * n; i++) {
        e2 += ((double)got[i] - (double)w[i]) * ((double)got[i] - (double)w[i]);
        w2 += (double)w[i] * (double)w[i];
    }
    printf("trellis,%g bits,%u,%d,%.5f,%.4f,%.3f,%.1f\n", bits, state_bits, rotate, e2 / w2,
           8 * (double)coded.bytes / count, count / encode / 1e6, count / decode / 1e6);
    fflush(stdout);
    free(w);
    pare_arena_free(a);
}

int main(int argc, char **argv)
{
    const pare_exec exec = {.threads = argc > 1 ? atoi(argv[1]) : 2};
    const size_t n = argc > 2 ? (size_t)atoi(argv[2]) : 1000;
    const unsigned L = argc > 3 ? (unsigned)atoi(argv[3]) : TRELLIS_STATE_BITS;
    double bits[] = {1.5, 2, 2.5, 3, 3.5, 4, 5, 6};
    int nb = 8;
    if (argc > 4) bits[0] = atof(argv[4]), nb = 1;
    for (int k = 0; k < nb; k++) row(n, bits[k], L, false, &exec);
    if (nb > 1) row(n, 4, L, true, &exec);
    return 0;
}
