/* Attention by calls of M tokens beside our direct tiled attention: full pattern, one head of 64,
 * f32, in turns, of each the best time.
 *
 *   bench/length            all cases
 *   bench/length --wall     time by the clock on the wall; else CPU time, for a machine that others
 *                           use as well. One thread.
 *
 * native: time of the plan / time of direct attention. static: zero-reference calls that all have
 * exactly M rows; ideal is what they must cost at least, k T M^2 / N^2 with k = ceil(N / M) and
 * T = ceil(N / (M - 1)). peak_mib: the process's memory at most, in a process of its own. */
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { D = 64, RUNS = 7 };

typedef struct bench {
    size_t n;
    uint32_t m;
    bool wall;
    float *q, *k, *v, *y;
} bench;

static _Noreturn void stop(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(2);
}

static double seconds(const bench *b)
{
    struct timespec t;
    if (b->wall) return pare_seconds();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float *randoms(size_t n, uint64_t stream)
{
    float *const x = malloc(n * sizeof *x);
    if (!x) stop("out of memory");
    pare_rng r = pare_rng_at(1, stream);
    for (size_t i = 0; i < n; i++) x[i] = (float)pare_rng_normal(&r);
    return x;
}

static void direct(bench *b)
{
    const pare_pattern full = {.kind = PARE_FULL};
    pare_mat32 y = {b->n, D, D, b->y};
    const pare_mat32 q = {b->n, D, D, b->q}, k = {b->n, D, D, b->k}, v = {b->n, D, D, b->v};
    if (pare_attend_f32(&y, &q, &k, &v, 0.125f, &full, NULL, NULL, NULL)) stop("out of memory");
}

static void planned(bench *b, const pare_length_opts *o)
{
    const pare_pattern full = {.kind = PARE_FULL};
    const pare_length_job job = {.n = b->n,
                                 .dk = D,
                                 .dv = D,
                                 .q = b->q,
                                 .k = b->k,
                                 .v = b->v,
                                 .ldq = D,
                                 .ldk = D,
                                 .ldv = D,
                                 .scale = 0.125,
                                 .y = b->y,
                                 .ldy = D};
    pare_oracle orc;
    pare_err err = {0};
    if (pare_oracle_cpu(&orc, PARE_F32, b->m, NULL, &err) ||
        pare_length_attend(&orc, o, &job, 1, &full, NULL, NULL, NULL, &err))
        stop(err.msg);
    pare_oracle_free(&orc);
}

static const pare_length_opts native = {.mode = PARE_LENGTH_NATIVE};
static const pare_length_opts fixed = {.mode = PARE_LENGTH_ZEROREF,
                                       .features = PARE_ORC_QKV | PARE_ORC_FULL | PARE_ORC_STATIC};

/* A wrong answer is always fast. */
static double difference(bench *b, const pare_length_opts *o)
{
    float *const want = malloc(b->n * D * sizeof *want);
    if (!want) stop("out of memory");
    double off = 0;
    direct(b);
    memcpy(want, b->y, b->n * D * sizeof *want);
    memset(b->y, 0, b->n * D * sizeof *want);
    planned(b, o);
    for (size_t i = 0; i < b->n * D; i++) off = fmax(off, fabs((double)(b->y[i] - want[i])));
    free(want);
    if (!(off <= 1e-5)) stop("attention is wrong");
    return off;
}

/* Of a process that does nothing else. */
static double peak_mib(bench *b, const pare_length_opts *o)
{
    const pid_t child = fork();
    if (child == 0) {
        planned(b, o);
        _exit(0);
    }
    int status;
    struct rusage use;
    if (child < 0 || wait4(child, &status, 0, &use) != child || status) stop("a child failed");
    return (double)use.ru_maxrss / 1024;
}

static void compare(bench *b)
{
    double own = INFINITY, plan = INFINITY, zero = INFINITY;
    const double off = fmax(difference(b, &native), difference(b, &fixed));
    for (int r = 0; r < RUNS; r++) {
        const double t0 = seconds(b);
        direct(b);
        const double t1 = seconds(b);
        planned(b, &native);
        const double t2 = seconds(b);
        planned(b, &fixed);
        const double t3 = seconds(b);
        own = fmin(own, t1 - t0), plan = fmin(plan, t2 - t1), zero = fmin(zero, t3 - t2);
    }
    const double n = (double)b->n, m = b->m,
                 ideal = ceil(n / m) * ceil(n / (m - 1)) * m * m / n / n;
    printf("%zu,%u,%.1f,%.3f,%.3f,%.3f,%.3f,%.1e,%.0f,%.0f,%.0f\n", b->n, (unsigned)b->m, 1e3 * own,
           plan / own, zero / own, ideal, zero / own / ideal, off, peak_mib(b, &native),
           peak_mib(b, &fixed), n * n * 4 / 1048576);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const bool wall = argc > 1 && strcmp(argv[1], "--wall") == 0;
    printf("n,m,direct_ms,native,static,ideal,static_over_ideal,difference,native_peak_mib,"
           "static_peak_mib,n_x_n_mib\n");
    for (size_t n = 4096; n <= 8192; n *= 2)
        for (uint32_t m = 64; m <= 1024; m *= m == 256 ? 4 : 2) {
            bench b = {.n = n, .m = m, .wall = wall};
            b.q = randoms(n * D, 1), b.k = randoms(n * D, 2), b.v = randoms(n * D, 3);
            b.y = randoms(n * D, 4);
            compare(&b);
            free(b.q), free(b.k), free(b.v), free(b.y);
        }
    return 0;
}
