/* Rates of training's kernels as CSV: the dense layer and attention, forward and back, beside the
 * rate of a square product in the same process. All take turns; of each the best time counts.
 *     build/bench/backward [--cpu]      --cpu: CPU time, for a machine that others use as well */
#include "attention/attend.h"
#include "linalg/matrix.h"
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIDE = 1024, TURNS = 9, WAYS = 4 };

typedef struct job {
    pare_exec exec;
    size_t n, in, out; /* attention: out = 0, in = width of a head */
    pare_pattern pattern;
    float *x, *y, *dx, *dy, *w, *dw, *b, *db, *lse; /* attention: q = x, k = w, v = b */
    float *dk, *dv;
    float *square[3];
} job;

static bool cpu_time;

static double now(void)
{
    struct timespec t;
    if (!cpu_time) return pare_seconds();
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(pare_status st)
{
    if (!st) return;
    fprintf(stderr, "bench: out of memory\n");
    exit(2);
}

static float *numbers(pare_arena *a, size_t n, uint64_t stream)
{
    float *const v = pare_alloc(a, n + 1, sizeof *v);
    must(v ? PARE_OK : PARE_ERR_MEMORY);
    pare_rng r = pare_rng_at(1, stream);
    for (size_t i = 0; i < n; i++) v[i] = (float)(pare_rng_uniform(&r) - 0.5);
    return v;
}

/* ---- what is timed --------------------------------------------------------------------------- */

static void square(job *j)
{
    pare_blas_f32(&(pare_mat32){SIDE, SIDE, SIDE, j->square[2]}, 1,
                  &(pare_mat32){SIDE, SIDE, SIDE, j->square[0]}, false,
                  &(pare_mat32){SIDE, SIDE, SIDE, j->square[1]}, false, 0);
}

static void dense(job *j)
{
    const pare_weight w = {PARE_F32, j->out, j->in, j->w}, b = {PARE_F32, 1, j->out, j->b};
    must(pare_dense_f32(&(pare_mat32){j->n, j->out, j->out, j->y},
                        &(pare_mat32){j->n, j->in, j->in, j->x}, &w, &b, &j->exec, NULL));
}

static void dense_dx(job *j)
{
    const pare_weight w = {PARE_F32, j->out, j->in, j->w};
    must(pare_dense_backward_f32(j->dx, j->in, false, NULL, NULL, j->dy, j->out, j->x, j->in, j->n,
                                 &w, &j->exec, NULL));
}

static void dense_dw(job *j)
{
    const pare_weight w = {PARE_F32, j->out, j->in, j->w};
    must(pare_dense_backward_f32(NULL, 0, false, j->dw, j->db, j->dy, j->out, j->x, j->in, j->n, &w,
                                 &j->exec, NULL));
}

static void attend(job *j)
{
    const pare_mat32 q = {j->n, j->in, j->in, j->x}, k = {j->n, j->in, j->in, j->w};
    const pare_mat32 v = {j->n, j->in, j->in, j->b};
    pare_mat32 y = {j->n, j->in, j->in, j->y};
    const pare_saved32 kept = {.lse = j->lse};
    must(pare_attend_saving_f32(&y, &kept, &q, &k, &v, 0.125f, &j->pattern, NULL, NULL, &j->exec,
                                NULL));
}

static void attend_back(job *j)
{
    const pare_mat32 q = {j->n, j->in, j->in, j->x}, k = {j->n, j->in, j->in, j->w};
    const pare_mat32 v = {j->n, j->in, j->in, j->b}, y = {j->n, j->in, j->in, j->y};
    const pare_mat32 dy = {j->n, j->in, j->in, j->dy};
    pare_mat32 dq = {j->n, j->in, j->in, j->dx}, dk = {j->n, j->in, j->in, j->dk};
    pare_mat32 dv = {j->n, j->in, j->in, j->dv};
    const pare_saved32 kept = {.lse = j->lse};
    must(pare_attend_backward_f32(&dq, &dk, &dv, &dy, &q, &k, &v, &y, &kept, 0.125f, &j->pattern,
                                  NULL, NULL, &j->exec, NULL));
}

/* ---- turns ----------------------------------------------------------------------------------- */

typedef struct way {
    const char *name;
    void (*run)(job *);
    double flops, best;
} way;

/* Best seconds of each way, which take turns; short ones are run several times in a turn. */
static void measure(job *j, way *ways, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        ways[i].run(j);
        ways[i].best = INFINITY;
    }
    for (size_t t = 0; t < TURNS; t++)
        for (size_t i = 0; i < n; i++) {
            const size_t times = ways[i].flops < 1e8 ? 10 : 1;
            for (size_t r = 0; r < times; r++) {
                const double start = now();
                ways[i].run(j);
                ways[i].best = fmin(ways[i].best, now() - start);
            }
        }
}

static void show(const job *j, const way *ways, size_t n)
{
    const double rate = ways[0].flops / ways[0].best * (cpu_time ? 1 : j->exec.threads);
    for (size_t i = 1; i < n; i++) {
        const double r = ways[i].flops / ways[i].best;
        printf("%s,%zu x %zu x %zu,%d,%.1f,%.1f,%.2f\n", ways[i].name, j->n, j->in, j->out,
               j->exec.threads, 1e-9 * r, 1e-9 * rate, r / rate);
    }
    fflush(stdout);
}

/* dw for its first entry, summed plainly: a wrong answer is always fast. */
static void check_dw(job *j)
{
    double sum = 0;
    for (size_t i = 0; i < j->n; i++) sum += (double)j->dy[i * j->out] * (double)j->x[i * j->in];
    j->dw[0] = 0;
    dense_dw(j);
    if (fabs((double)j->dw[0] - sum) <= 1e-4 * sqrt((double)j->n)) return;
    fprintf(stderr, "bench: a gradient is wrong\n");
    exit(2);
}

static void run_case(job j)
{
    pare_arena *const a = pare_arena_new();
    must(a ? PARE_OK : PARE_ERR_MEMORY);
    const bool heads = j.out == 0;
    const size_t out = heads ? j.in : j.out, weights = heads ? j.n * j.in : j.in * out;
    for (size_t i = 0; i < 3; i++) j.square[i] = numbers(a, (size_t)SIDE * SIDE, i);
    j.x = numbers(a, j.n * j.in, 4), j.y = numbers(a, j.n * out, 5);
    j.dx = numbers(a, j.n * j.in, 6), j.dy = numbers(a, j.n * out, 7);
    j.w = numbers(a, weights, 8), j.dw = numbers(a, weights, 9);
    j.b = numbers(a, heads ? weights : out, 10), j.db = numbers(a, out, 11);
    j.dk = numbers(a, j.n * j.in, 12), j.dv = numbers(a, j.n * j.in, 13);
    j.lse = numbers(a, j.n, 14);
    const double side = (double)SIDE, work = 2.0 * (double)j.n * (double)j.in * (double)out;
    const double seen = (double)j.n * (j.pattern.kind == PARE_CAUSAL ? 0.5 : 1);
    const double pairs = 4 * (double)j.n * (double)j.in * seen;
    way ways[WAYS] = {{"product", square, 2 * side * side * side, 0},
                      {"dense", dense, work, 0},
                      {"dense dx", dense_dx, work, 0},
                      {"dense dw db", dense_dw, work, 0}};
    if (heads) {
        ways[1] = (way){"attention", attend, pairs, 0};
        ways[2] = (way){"attention back", attend_back, 2.5 * pairs, 0};
    } else {
        check_dw(&j);
    }
    const size_t n = heads ? 3 : WAYS;
    measure(&j, ways, n);
    show(&j, ways, n);
    pare_arena_free(a);
}

int main(int argc, char **argv)
{
    const size_t shapes[][3] = {{2048, 256, 256},  {2048, 256, 768},  {2048, 256, 1024},
                                {2048, 1024, 256}, {2048, 256, 4096}, {10000, 64, 64}};
    cpu_time = argc > 1 && strcmp(argv[1], "--cpu") == 0;
    printf("what,rows x in x out,threads,Gflop/s,product Gflop/s,share\n");
    for (int threads = 1; threads <= (cpu_time ? 1 : 2); threads++) {
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            run_case((job){.exec = {.threads = threads},
                           .n = shapes[s][0],
                           .in = shapes[s][1],
                           .out = shapes[s][2]});
        for (size_t n = 256; n <= 4096; n *= 4)
            for (int full = 0; full < (n < 4096 ? 2 : 1); full++)
                run_case((job){.exec = {.threads = threads},
                               .n = n,
                               .in = 64,
                               .pattern = {.kind = full ? PARE_FULL : PARE_CAUSAL}});
    }
    return 0;
}
