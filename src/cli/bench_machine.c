/* bench_machine.c - the machine of a benchmark (all that a reader needs to judge a figure, and no
 * host name), its clocks, and sgemm, the yardstick (bench.h). */
#include "bench.h"

#include <math.h>
#include <string.h>
#include <time.h>

#ifndef PARE_COMMIT /* the makefile gives it */
#define PARE_COMMIT ""
#endif
#if defined __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

/* Text that stays one field and one line of a comment. */
static void copy_field(char *to, size_t capacity, const char *from)
{
    size_t n = 0;
    for (; *from && *from != '\n' && n + 1 < capacity; from++)
        if (*from != ',' && *from != '"') to[n++] = *from;
    while (n > 0 && to[n - 1] == ' ') n--;
    to[n] = '\0';
}

void bench_machine_read(bench_machine *m)
{
    struct timespec now;
    struct tm day;
    char line[512];
    *m = (bench_machine){.version = pare_version(), .cores = pare_cores()};
    copy_field(m->commit, sizeof m->commit, *PARE_COMMIT ? PARE_COMMIT : "unknown");
    copy_field(m->compiler, sizeof m->compiler, COMPILER);
    copy_field(m->cpu, sizeof m->cpu, "unknown");
    FILE *const f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *const colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0) continue;
        copy_field(m->cpu, sizeof m->cpu, colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (f) fclose(f);
    if (clock_gettime(CLOCK_REALTIME, &now) == 0 && gmtime_r(&now.tv_sec, &day))
        strftime(m->date, sizeof m->date, "%Y-%m-%dT%H:%M:%SZ", &day);
}

double bench_seconds(bool cpu)
{
    struct timespec t;
    if (!cpu || clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) != 0) return pare_seconds();
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- sgemm ---------------------------------------------------------------------------------- */

pare_status bench_gemm_init(bench_gemm *g, cli *c, size_t n)
{
    *g = (bench_gemm){.n = n};
    float *v = pare_alloc(c->arena, (2 + c->threads) * n * n, sizeof *v);
    if (!v) return pare_no_memory(&c->err);
    pare_rng r = pare_rng_at(c->seed, 90);
    for (size_t i = 0; i < 2 * n * n; i++) v[i] = (float)pare_rng_uniform(&r) - 0.5f;
    g->a = v;
    g->b = v + n * n;
    g->c = v + 2 * n * n;
    return PARE_OK;
}

static void multiply_block(void *ctx, size_t block)
{
    bench_gemm *g = ctx;
    const size_t n = g->n;
    pare_blas_f32(&(pare_mat32){n, n, n, g->c + block * n * n}, 1, &(pare_mat32){n, n, n, g->a},
                  false, &(pare_mat32){n, n, n, g->b}, true, 0);
}

pare_status bench_gemm_run(bench_gemm *g, const pare_exec *exec, bool cpu, double *gflops,
                           pare_err *err)
{
    const size_t blocks = (size_t)exec->threads, n = g->n;
    const double side = (double)n, start = bench_seconds(cpu);
    pare_parallel(exec, blocks, multiply_block, g);
    *gflops = 2e-9 * (double)blocks * side * side * side / (bench_seconds(cpu) - start);
    /* A few entries on the diagonal, summed plainly. */
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = 0; i < n; i += n / 4) {
            double sum = 0;
            for (size_t k = 0; k < n; k++) sum += (double)g->a[i * n + k] * (double)g->b[i * n + k];
            if (!(fabs((double)g->c[(b * n + i) * n + i] - sum) <= 1e-6 * side))
                return pare_fail(err, PARE_ERR_VERIFY, "sgemm: a wrong product");
        }
    return PARE_OK;
}
