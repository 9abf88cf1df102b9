/* Attention by calls of M tokens beside our direct tiled attention: full pattern, one head of 64,
 * f32, in turns, all cases in each round (a machine that others use is slow for minutes, which then
 * is not one case's bad luck). Ratios are those of the lower quartiles: of times that such a
 * machine adds to, but not of single runs that had luck; ..._median: the median of the ratios to
 * the direct runs before and after.
 *
 *   bench/length            all cases
 *   bench/length --wall     time by the clock on the wall; else CPU time, for a machine that others
 *                           use as well. One thread.
 *   bench/length --memory direct|native|static N M
 *                           memory alone
 *   mpirun -n 2 bench/length --ranks
 *                           a whole model by one process and by all of them, one thread each
 *
 * native: time of the plan / time of direct attention. static: zero-reference calls that all have
 * exactly M rows; ideal is what they must cost at least, k T M^2 / N^2 with k = ceil(N / M) and
 * T = ceil(N / (M - 1)). ..._at_most: what is asked of them. ..._mib: the most memory beside
 * queries, keys, values and outputs, in a process of its own. */
#include <pare/pare.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { D = 64, CASES = 8, ROUNDS = 31, RUNS = 2 * ROUNDS }; /* RUNS: of a case, at most */

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

/* In whole lines of the cache, as models hold them. */
static float *randoms(size_t n, uint64_t stream)
{
    float *const x = aligned_alloc(64, (n * sizeof *x + 63) / 64 * 64);
    if (!x) stop("out of memory");
    pare_rng r = pare_rng_at(1, stream);
    for (size_t i = 0; i < n; i++) x[i] = (float)pare_rng_normal(&r);
    return x;
}

static bench new_bench(size_t n, uint32_t m, bool wall)
{
    return (bench){.n = n,
                   .m = m,
                   .wall = wall,
                   .q = randoms(n * D, 1),
                   .k = randoms(n * D, 2),
                   .v = randoms(n * D, 3),
                   .y = randoms(n * D, 4)};
}

static void free_bench(bench *b)
{
    free(b->q), free(b->k), free(b->v), free(b->y);
}

static void direct(bench *b)
{
    const pare_pattern full = {.kind = PARE_FULL};
    pare_mat32 y = {b->n, D, D, b->y};
    const pare_mat32 q = {b->n, D, D, b->q}, k = {b->n, D, D, b->k}, v = {b->n, D, D, b->v};
    if (pare_attend_f32(
            &y,
            &(pare_attention_args32){.q = &q, .k = &k, .v = &v, .scale = 0.125f, .pattern = &full},
            NULL, NULL))
        stop("out of memory");
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
        pare_length_attend(&orc, o,
                           &(pare_length_layer){.jobs = &job, .count = 1, .pattern = &full}, NULL,
                           NULL, &err))
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

/* ---- memory ---------------------------------------------------------------------------------- */

/* Of this process, in KiB: VmRSS now, VmHWM at most since forget_peak. */
static double memory(const char *what)
{
    char line[256];
    double kib = NAN;
    FILE *const f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, what, strlen(what)) == 0) kib = strtod(line + strlen(what) + 1, NULL);
    if (f) fclose(f);
    return kib;
}

static void forget_peak(void)
{
    FILE *const f = fopen("/proc/self/clear_refs", "w");
    if (!f || fputs("5", f) < 0 || fclose(f)) stop("/proc/self/clear_refs: cannot be written");
}

/* In this process, which has done nothing else. */
static void print_memory(const char *how, size_t n, uint32_t m)
{
    bench b = new_bench(n, m, false);
    forget_peak();
    const double before = memory("VmRSS:");
    if (strcmp(how, "direct") == 0)
        direct(&b);
    else
        planned(&b, strcmp(how, "native") == 0 ? &native : &fixed);
    printf("%.1f\n", (memory("VmHWM:") - before) / 1024);
    free_bench(&b);
}

/* In a process of its own. */
static double own_mib(const bench *b, const char *how)
{
    char self[3072], command[4096], line[64];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) stop("/proc/self/exe: cannot be read");
    self[n] = '\0';
    snprintf(command, sizeof command, "'%s' --memory %s %zu %u", self, how, b->n, (unsigned)b->m);
    FILE *const f = popen(command, "r");
    if (!f || !fgets(line, sizeof line, f) || pclose(f)) stop("--memory failed");
    return strtod(line, NULL);
}

/* ---- calls beside direct attention ----------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The part of the numbers that are smaller: a half, a fourth. */
static double quantile(double *x, size_t n, double part)
{
    qsort(x, n, sizeof *x, by_size);
    return x[(size_t)(part * (double)n)];
}

typedef struct timing {
    double times[RUNS];
    double ratios[RUNS]; /* to the direct runs around it */
} timing;

typedef struct trial {
    bench b;
    size_t runs;
    double direct[2 * RUNS], off;
    timing plan, zero;
} trial;

static trial new_trial(size_t n, uint32_t m, bool wall)
{
    trial t = {.b = new_bench(n, m, wall)};
    t.off = fmax(difference(&t.b, &native), difference(&t.b, &fixed));
    return t;
}

static void note(timing *t, size_t run, double took, double direct_took)
{
    t->times[run] = took;
    t->ratios[run] = took / direct_took;
}

static void run_once(trial *t)
{
    bench *const b = &t->b;
    const double t0 = seconds(b);
    direct(b);
    const double t1 = seconds(b);
    planned(b, &native);
    const double t2 = seconds(b);
    planned(b, &fixed);
    const double t3 = seconds(b);
    direct(b);
    const double t4 = seconds(b), here = ((t1 - t0) + (t4 - t3)) / 2;
    t->direct[2 * t->runs] = t1 - t0;
    t->direct[2 * t->runs + 1] = t4 - t3;
    note(&t->plan, t->runs, t2 - t1, here);
    note(&t->zero, t->runs, t3 - t2, here);
    t->runs++;
}

static void print_trial(trial *t)
{
    const bench *const b = &t->b;
    const double n = (double)b->n, m = b->m,
                 ideal = ceil(n / m) * ceil(n / (m - 1)) * m * m / n / n;
    const double own = quantile(t->direct, 2 * t->runs, 0.25),
                 plan = quantile(t->plan.times, t->runs, 0.25),
                 zero = quantile(t->zero.times, t->runs, 0.25);
    printf("%zu,%u,%.1f,%.3f,%.3f,%.2f,%.3f,%.3f,%.3f,1.15,%.1e,%.1f,%.1f,%.1f,%.0f\n", b->n,
           (unsigned)b->m, 1e3 * own, plan / own, quantile(t->plan.ratios, t->runs, 0.5),
           b->m < 128 ? 1.2 : 1.1, ideal, zero / own / ideal,
           quantile(t->zero.ratios, t->runs, 0.5) / ideal, t->off, own_mib(b, "direct"),
           own_mib(b, "native"), own_mib(b, "static"), n * n * 4 / 1048576);
}

static void all_cases(bool wall)
{
    static const uint32_t lengths[] = {64, 128, 256, 1024};
    trial t[CASES];
    for (size_t i = 0; i < CASES; i++) t[i] = new_trial(i < 4 ? 4096 : 8192, lengths[i % 4], wall);
    for (int r = 0; r < ROUNDS; r++) {
        if (isatty(2)) fprintf(stderr, "\rround %d of %d", r + 1, ROUNDS);
        for (size_t i = 0; i < CASES; i++) {
            run_once(&t[i]);
            if (t[i].b.n == 4096) run_once(&t[i]); /* it is short */
        }
    }
    if (isatty(2)) fputc('\n', stderr);
    printf("n,m,direct_ms,native,native_median,native_at_most,ideal,static_over_ideal,"
           "static_over_ideal_median,static_at_most,difference,direct_mib,native_mib,static_mib,"
           "n_x_n_mib\n");
    for (size_t i = 0; i < CASES; i++) {
        print_trial(&t[i]);
        free_bench(&t[i].b);
    }
}

/* ---- one process and several ----------------------------------------------------------------- */

static pare_model *large_model(size_t tokens)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m;
    pare_err err = {0};
    o.kind = PARE_RANDOM_LLAMA;
    o.dim = 256, o.heads = 4, o.layers = 2, o.vocab = 256, o.context = tokens;
    if (pare_random_model(&m, &o, &err)) stop(err.msg);
    return m;
}

static double pass(const pare_model *m, const pare_input *in, float *y, const pare_ranks *ranks)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_NATIVE};
    const bench clock = {.wall = false};
    pare_oracle orc;
    pare_err err = {0};
    const double start = seconds(&clock);
    if (pare_oracle_cpu(&orc, PARE_F32, 128, NULL, &err) ||
        pare_length_forward(
            y, NULL, &(pare_length_pass){.oracle = &orc, .model = m, .in = in, .ranks = ranks}, &o,
            NULL, &err))
        stop(err.msg);
    pare_oracle_free(&orc);
    return seconds(&clock) - start;
}

/* The slowest of the ranks. */
static double slowest(const pare_ranks *ranks, double mine)
{
    double all[64], most = 0;
    pare_err err = {0};
    if (pare_ranks_size(ranks) > 64 || pare_ranks_gather(ranks, all, &mine, sizeof mine, &err))
        stop("cannot gather");
    for (size_t r = 0; r < pare_ranks_size(ranks); r++) most = fmax(most, all[r]);
    return most;
}

static void compare_ranks(void)
{
    enum { TOKENS = 8192 };
    pare_ranks *ranks;
    pare_err err = {0};
    pare_inputs set;
    pare_arena *const a = pare_arena_new();
    pare_model *const m = large_model(TOKENS);
    if (pare_ranks_open(&ranks, &err) || !a || pare_inputs_random(&set, a, m, 1, TOKENS, 1, &err))
        stop(err.msg);
    const size_t count = TOKENS * pare_model_outputs(m);
    float *const one = randoms(count, 1), *const all = randoms(count, 2);
    double alone = INFINITY, together = INFINITY;
    for (int r = 0; r < 3; r++) {
        alone = fmin(alone, slowest(ranks, pass(m, &set.in[0], one, NULL)));
        together = fmin(together, slowest(ranks, pass(m, &set.in[0], all, ranks)));
    }
    if (memcmp(one, all, count * sizeof *one) != 0) stop("the bytes differ");
    if (pare_ranks_rank(ranks) == 0)
        printf("tokens,m,ranks,one_ms,all_ms,faster,at_least\n%d,128,%zu,%.0f,%.0f,%.2f,%s\n",
               TOKENS, pare_ranks_size(ranks), 1e3 * alone, 1e3 * together, alone / together,
               pare_ranks_size(ranks) == 2 ? "1.70" : "");
    free(one), free(all);
    pare_model_free(m);
    pare_arena_free(a);
    pare_ranks_close(ranks);
}

int main(int argc, char **argv)
{
    const char *const what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "--ranks") == 0)
        compare_ranks();
    else if (strcmp(what, "--memory") == 0 && argc == 5)
        print_memory(argv[2], strtoul(argv[3], NULL, 10), (uint32_t)strtoul(argv[4], NULL, 10));
    else
        all_cases(strcmp(what, "--wall") == 0);
    return 0;
}
