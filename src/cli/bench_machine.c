/* On what a benchmark ran: everything a reader needs to judge a figure, and no host name. */
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
static void copy(char *to, size_t room, const char *from)
{
    size_t n = 0;
    for (; *from && *from != '\n' && n + 1 < room; from++)
        if (*from != ',' && *from != '"') to[n++] = *from;
    while (n > 0 && to[n - 1] == ' ') n--;
    to[n] = '\0';
}

static void look_cpu(char *to, size_t room)
{
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "r");
    copy(to, room, "unknown");
    while (f && fgets(line, sizeof line, f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0) continue;
        copy(to, room, colon + 1 + strspn(colon + 1, " "));
        break;
    }
    if (f) fclose(f);
}

void bench_machine_look(bench_machine *m)
{
    struct timespec now;
    struct tm day;
    *m = (bench_machine){.cores = pare_cores()};
    copy(m->commit, sizeof m->commit, *PARE_COMMIT ? PARE_COMMIT : "unknown");
    copy(m->compiler, sizeof m->compiler, COMPILER);
    look_cpu(m->cpu, sizeof m->cpu);
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

static void gemm_block(void *ctx, size_t block)
{
    bench_gemm *g = ctx;
    const size_t n = g->n;
    pare_blas_f32(n, n, n, 1, g->a, n, false, g->b, n, true, 0, g->c + block * n * n, n);
}

/* A few entries on the diagonal, summed plainly. */
static bool right(const bench_gemm *g, size_t blocks)
{
    const size_t n = g->n;
    for (size_t b = 0; b < blocks; b++)
        for (size_t i = 0; i < n; i += n / 4) {
            double sum = 0;
            for (size_t k = 0; k < n; k++) sum += (double)g->a[i * n + k] * (double)g->b[i * n + k];
            if (!(fabs((double)g->c[(b * n + i) * n + i] - sum) <= 1e-6 * (double)n)) return false;
        }
    return true;
}

pare_status bench_gemm_run(bench_gemm *g, const pare_exec *exec, bool cpu, double *gflops,
                           pare_err *err)
{
    const size_t blocks = (size_t)exec->threads;
    const double n = (double)g->n, start = bench_seconds(cpu);
    pare_parallel(exec, blocks, gemm_block, g);
    *gflops = 2e-9 * (double)blocks * n * n * n / (bench_seconds(cpu) - start);
    return right(g, blocks) ? PARE_OK : pare_fail(err, PARE_ERR_VERIFY, "sgemm: a wrong product");
}
