/* bench_cases.c - the table of benchmarks, and what their kinds share (bench.h). */
#include "bench.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* ---- the table ------------------------------------------------------------------------------ */

const bench_case bench_cases[] = {
    /* causal, heads, n, d */
    {"attention", &bench_attention, BENCH_QUICK, BENCH_GFLOPS, false, {0, 2, 96, 32}},
    {"attention", &bench_attention, BENCH_QUICK, BENCH_GFLOPS, false, {1, 2, 96, 32}},
    {"attention", &bench_attention, BENCH_SHORT, BENCH_GFLOPS, false, {0, 8, 1024, 64}},
    {"attention", &bench_attention, BENCH_SHORT, BENCH_GFLOPS, false, {1, 8, 1024, 64}},
    {"attention", &bench_attention, BENCH_FULL, BENCH_GFLOPS, false, {0, 8, 4096, 64}},
    {"attention", &bench_attention, BENCH_FULL, BENCH_GFLOPS, false, {1, 8, 4096, 64}},
    /* rows, in, out */
    {"dense", &bench_dense, BENCH_QUICK, BENCH_GFLOPS, false, {64, 32, 48}},
    {"dense", &bench_dense, BENCH_SHORT, BENCH_GFLOPS, false, {10000, 64, 64}},
    {"dense", &bench_dense, BENCH_SHORT, BENCH_GFLOPS, false, {1024, 1024, 1024}},
    {"dense", &bench_dense, BENCH_SHORT, BENCH_GFLOPS, false, {1, 768, 3072}},
    /* side, dim, layers */
    {"forward", &bench_board, BENCH_QUICK, BENCH_MS, false, {6, 16, 2}},
    {"forward", &bench_board, BENCH_SHORT, BENCH_MS, false, {100, 64, 4}},
    {"forward", &bench_board, BENCH_SHORT, BENCH_MS, false, {100, 8, 4}},
    /* nodes, edges, dim, layers: as many as Tolokers has */
    {"forward", &bench_web, BENCH_QUICK, BENCH_MS, false, {40, 100, 16, 2}},
    {"forward", &bench_web, BENCH_FULL, BENCH_MS, false, {11758, 519000, 64, 4}},
    /* batch, tokens, dim, layers, vocab */
    {"forward", &bench_gpt, BENCH_QUICK, BENCH_TOKENS, false, {2, 12, 16, 2, 50}},
    {"forward", &bench_gpt, BENCH_SHORT, BENCH_TOKENS, false, {8, 256, 256, 4, 4096}},
    /* prompt, tokens, dim, layers, vocab */
    {"generate", &bench_generate, BENCH_QUICK, BENCH_TOKENS, false, {0, 16, 64, 1, 64}},
    {"generate", &bench_generate, BENCH_SHORT, BENCH_TOKENS, false, {0, 255, 64, 5, 512}},
    {"generate", &bench_generate, BENCH_QUICK, BENCH_TOKENS, false, {1, 16, 64, 1, 64}},
    {"generate", &bench_generate, BENCH_SHORT, BENCH_TOKENS, false, {1, 256, 64, 5, 512}},
    /* as in forward */
    {"train", &bench_board_step, BENCH_QUICK, BENCH_MS, false, {6, 16, 2}},
    {"train", &bench_board_step, BENCH_SHORT, BENCH_MS, false, {100, 64, 4}},
    {"train", &bench_web_step, BENCH_QUICK, BENCH_MS, false, {40, 100, 16, 2}},
    {"train", &bench_web_step, BENCH_FULL, BENCH_MS, false, {11758, 519000, 64, 4}},
    {"train", &bench_gpt_step, BENCH_QUICK, BENCH_TOKENS, false, {2, 12, 16, 2, 50}},
    {"train", &bench_gpt_step, BENCH_SHORT, BENCH_TOKENS, false, {8, 256, 256, 4, 4096}},
    /* times */
    {"hash", &bench_hash, BENCH_QUICK, BENCH_GBYTES, true, {1}},
    {"hash", &bench_hash, BENCH_SHORT, BENCH_GBYTES, true, {16}},
    /* n */
    {"spectral", &bench_spectral, BENCH_QUICK, BENCH_MS, true, {24}},
    {"spectral", &bench_spectral, BENCH_SHORT, BENCH_MS, true, {256}},
    {"spectral", &bench_spectral, BENCH_SHORT, BENCH_MS, true, {512}},
};
const size_t bench_ncases = sizeof bench_cases / sizeof *bench_cases;

/* ---- what kinds share ----------------------------------------------------------------------- */

void *bench_alloc(bench_job *j, size_t count, size_t size)
{
    void *p = pare_alloc(j->arena, count, size);
    if (!p) (void)pare_no_memory(&j->c->err);
    return p;
}

float *bench_normal(bench_job *j, size_t count, uint64_t stream)
{
    float *v = bench_alloc(j, count, sizeof *v);
    pare_rng r = pare_rng_at(j->c->seed, stream);
    for (size_t i = 0; v && i < count; i++) v[i] = (float)pare_rng_normal(&r);
    return v;
}

char *bench_path(bench_job *j, const char *name)
{
    char *path = pare_sprintf(j->arena, "%s/%s", j->dir, name);
    if (!path) (void)pare_no_memory(&j->c->err);
    return path;
}

pare_status bench_give_array(bench_job *j, const char *name, pare_dtype t, size_t rows, size_t cols,
                             const void *data)
{
    if (!j->peers) return PARE_OK;
    const pare_array a = {.dtype = t, .ndim = 2, .shape = {rows, cols}, .data = data};
    char file[32];
    snprintf(file, sizeof file, "%s.npy", name);
    char *path = bench_path(j, file);
    return path ? pare_npy_write(path, &a, true, &j->c->err) : j->c->err.code;
}

pare_status bench_give_case(bench_job *j, const char *fmt, ...)
{
    if (!j->peers) return PARE_OK;
    char text[512], *path = bench_path(j, "case.json");
    pare_out *o = NULL;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    pare_status st = path ? pare_out_open(&o, path, true, &j->c->err) : j->c->err.code;
    if (!st) st = pare_out_write(o, text, strlen(text), &j->c->err);
    if (!st) return pare_out_commit(o, &j->c->err);
    pare_out_abort(o);
    return st;
}

double bench_distance(const float *got, const double *want, size_t n)
{
    double worst = 0, largest = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - want[i]);
        if (!(d <= worst)) worst = d; /* a nan stays */
        if (fabs(want[i]) > largest) largest = fabs(want[i]);
    }
    return worst / largest;
}
