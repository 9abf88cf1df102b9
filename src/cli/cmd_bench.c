/* pare bench: how fast this is here, as CSV, peers beside it.
 *
 * The machine is never quiet. So everything takes turns - sgemm, ours, each peer, and again - and
 * what is compared is the best and the median of the same minutes. */
#include "bench.h"
#include "out.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_PEERS 4
#define TURN       0.02     /* seconds: what is shorter is run several times in a turn */
#define MOST_RUNS  64       /* in one turn */
#define PAUSE_NS   20000000 /* after a peer: its threads may still be spinning */

/* ---- the table --------------------------------------------------------------------------------
 */

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
    /* nodes, edges, dim, layers: as many as Tolokers has */
    {"forward", &bench_web, BENCH_QUICK, BENCH_MS, false, {40, 100, 16, 2}},
    {"forward", &bench_web, BENCH_FULL, BENCH_MS, false, {11758, 519000, 64, 4}},
    /* batch, tokens, dim, layers, vocab */
    {"forward", &bench_gpt, BENCH_QUICK, BENCH_TOKENS, false, {2, 12, 16, 2, 50}},
    {"forward", &bench_gpt, BENCH_SHORT, BENCH_TOKENS, false, {8, 256, 256, 4, 4096}},
#ifdef BENCH_HAS_DECODER
    /* prompt, tokens, dim, layers, vocab */
    {"generate", &bench_generate, BENCH_QUICK, BENCH_TOKENS, false, {0, 16, 64, 1, 64}},
    {"generate", &bench_generate, BENCH_SHORT, BENCH_TOKENS, false, {0, 255, 64, 5, 512}},
    {"generate", &bench_generate, BENCH_QUICK, BENCH_TOKENS, false, {1, 16, 64, 1, 64}},
    {"generate", &bench_generate, BENCH_SHORT, BENCH_TOKENS, false, {1, 256, 64, 5, 512}},
#endif
    /* times */
    {"hash", &bench_hash, BENCH_QUICK, BENCH_GBYTES, true, {1}},
    {"hash", &bench_hash, BENCH_SHORT, BENCH_GBYTES, true, {16}},
    /* n */
    {"spectral", &bench_spectral, BENCH_QUICK, BENCH_MS, true, {24}},
    {"spectral", &bench_spectral, BENCH_SHORT, BENCH_MS, true, {256}},
    {"spectral", &bench_spectral, BENCH_SHORT, BENCH_MS, true, {512}},
};
const size_t bench_ncases = sizeof bench_cases / sizeof *bench_cases;

/* ---- what kinds share -------------------------------------------------------------------------
 */

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

pare_status bench_give(bench_job *j, const char *name, pare_dtype t, size_t rows, size_t cols,
                       const void *data)
{
    if (!j->peers) return PARE_OK;
    const pare_array a = {.dtype = t, .ndim = 2, .shape = {rows, cols}, .data = data};
    char file[32];
    snprintf(file, sizeof file, "%s.npy", name);
    char *path = bench_path(j, file);
    return path ? pare_npy_write(path, &a, true, &j->c->err) : j->c->err.code;
}

pare_status bench_tell(bench_job *j, const char *fmt, ...)
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
    double off = 0, top = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = fabs((double)got[i] - want[i]);
        if (!(d <= off)) off = d; /* a nan stays */
        if (fabs(want[i]) > top) top = fabs(want[i]);
    }
    return off / top;
}

/* ---- measuring --------------------------------------------------------------------------------
 */

typedef struct samples {
    double t[BENCH_SAMPLES];
    size_t n;
} samples;

typedef struct opponent {
    bench_peer *peer;
    char label[64];
    samples took;
} opponent;

typedef struct row {
    char name[32], shape[BENCH_SHAPE], peer[64];
    int threads;
    bench_unit unit;
    double ours, median, sgemm, of_sgemm; /* of_sgemm: nan when flops are not counted */
    double theirs, theirs_median, ratio, ratio_median; /* nan without a peer */
    double error;
    struct row *next;
} row;

typedef struct runner {
    cli *c;
    bool quick, full;
    char dir[512];
    bench_peer peer[MOST_PEERS];
    size_t npeers;
    size_t turns;
    double budget; /* seconds of turns for a case */
    bench_gemm gemm;
    samples ours, sgemm; /* sgemm: seconds per Gflop */
    opponent against[MOST_PEERS];
    size_t nagainst;
    row *first, **last;
    bench_machine machine;
} runner;

static void add(samples *s, double seconds)
{
    if (s->n < BENCH_SAMPLES) s->t[s->n++] = seconds;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double best(samples *s)
{
    qsort(s->t, s->n, sizeof *s->t, by_size);
    return s->t[0];
}

static double median(samples *s)
{
    qsort(s->t, s->n, sizeof *s->t, by_size);
    return s->n % 2 ? s->t[s->n / 2] : (s->t[s->n / 2 - 1] + s->t[s->n / 2]) / 2;
}

static void nap(void)
{
    const struct timespec t = {0, PAUSE_NS};
    nanosleep(&t, NULL);
}

static pare_status our_turn(runner *r, bench_job *j, const bench_kind *k, size_t runs)
{
    double gflops = 0;
    pare_status st = bench_gemm_run(&r->gemm, &j->exec, &gflops, &r->c->err);
    if (!st) add(&r->sgemm, 1 / gflops);
    for (size_t i = 0; i < runs && !st; i++) {
        const double start = pare_seconds();
        st = k->run(j);
        add(&r->ours, pare_seconds() - start);
    }
    return st;
}

static pare_status peer_turn(runner *r, opponent *o, size_t runs)
{
    double t[MOST_RUNS];
    nap();
    const pare_status st = bench_peer_run(o->peer, runs, t, &r->c->err);
    for (size_t i = 0; i < runs && !st; i++) add(&o->took, t[i]);
    nap();
    return st;
}

static size_t runs_in_turn(double seconds)
{
    const double n = ceil(TURN / (seconds > 1e-9 ? seconds : 1e-9));
    return n < 1 ? 1 : n > MOST_RUNS ? MOST_RUNS : (size_t)n;
}

/* Who can do this case; their first run, which is not counted, must give our result. */
static pare_status meet_peers(runner *r, bench_job *j)
{
    r->nagainst = 0;
    for (size_t i = 0; j->result && i < r->npeers; i++) {
        opponent *o = &r->against[r->nagainst];
        double t = 0;
        bool can = false;
        *o = (opponent){.peer = &r->peer[i]};
        pare_status st = bench_peer_load(o->peer, j, &can, o->label, &r->c->err);
        if (!st && can) st = bench_peer_run(o->peer, 1, &t, &r->c->err);
        if (!st && can) st = bench_peer_compare(o->peer, j, &r->c->err);
        if (st) return st;
        if (can) r->nagainst++;
    }
    return PARE_OK;
}

static pare_status check(runner *r, bench_job *j, const bench_case *k, double *error)
{
    pare_status st = k->kind->check(j, error);
    if (!st && !(*error <= j->tolerance))
        st = pare_fail(&r->c->err, PARE_ERR_VERIFY,
                       "%s, %s: the result is wrong, relative error %.2g (at most %.2g)", k->name,
                       j->shape, *error, j->tolerance);
    return st;
}

static pare_status measure(runner *r, bench_job *j, const bench_case *k, double *error)
{
    double first = 0;
    r->ours.n = r->sgemm.n = 0;
    pare_status st = k->kind->threads ? k->kind->threads(j) : PARE_OK;
    if (!st) st = our_turn(r, j, k->kind, 1); /* warms up */
    if (!st) st = check(r, j, k, error);
    if (!st) st = meet_peers(r, j);
    if (st) return st;
    first = r->ours.t[0];
    r->ours.n = r->sgemm.n = 0;
    const double start = pare_seconds();
    for (size_t turn = 0; turn < r->turns && !st; turn++) {
        if (turn >= 2 && pare_seconds() - start > r->budget) break;
        st = our_turn(r, j, k->kind, runs_in_turn(first));
        for (size_t i = 0; i < r->nagainst && !st; i++)
            st = peer_turn(r, &r->against[i], runs_in_turn(first));
    }
    return st ? st : check(r, j, k, error); /* the last run as well as the first */
}

/* ---- rows -------------------------------------------------------------------------------------
 */

static const char *const unit_name[] = {"ms", "Gflop/s", "tokens/s", "GB/s"};
static const int unit_digits[] = {3, 2, 0, 3};

static double value(const bench_job *j, bench_unit unit, double seconds)
{
    switch (unit) {
    case BENCH_MS:
        return 1e3 * seconds;
    case BENCH_GFLOPS:
        return 1e-9 * j->flops / seconds;
    case BENCH_TOKENS:
        return j->amount / seconds;
    case BENCH_GBYTES:
        return 1e-9 * j->amount / seconds;
    }
    return NAN;
}

static void number(double v, int digits)
{
    if (isnan(v))
        putchar(',');
    else
        printf(",%.*f", digits, v);
}

static void print_row(const row *w)
{
    const int digits = unit_digits[w->unit];
    printf("%s,%s,%d,%s", w->name, w->shape, w->threads, unit_name[w->unit]);
    number(w->ours, digits);
    number(w->median, digits);
    number(w->sgemm, 1);
    number(w->of_sgemm, 3);
    printf(",%s", w->peer);
    number(w->theirs, digits);
    number(w->theirs_median, digits);
    number(w->ratio, 2);
    number(w->ratio_median, 2);
    printf(",%.1e\n", w->error);
    fflush(stdout); /* a run takes a while: each row when it is there */
}

static pare_status put_row(runner *r, const bench_job *j, const bench_case *k, opponent *o,
                           double error)
{
    row *w = pare_alloc(r->c->arena, 1, sizeof *w);
    if (!w) return pare_no_memory(&r->c->err);
    const double ours = best(&r->ours), middle = median(&r->ours);
    *w = (row){.threads = j->exec.threads, .unit = k->unit, .error = error};
    snprintf(w->name, sizeof w->name, "%s", k->name);
    memcpy(w->shape, j->shape, sizeof w->shape);
    w->ours = value(j, k->unit, ours);
    w->median = value(j, k->unit, middle);
    w->sgemm = 1 / best(&r->sgemm);
    w->of_sgemm = j->flops > 0 ? 1e-9 * j->flops / ours / w->sgemm : NAN;
    w->theirs = w->theirs_median = w->ratio = w->ratio_median = NAN;
    if (o) {
        memcpy(w->peer, o->label, sizeof w->peer);
        w->theirs = value(j, k->unit, best(&o->took));
        w->theirs_median = value(j, k->unit, median(&o->took));
        w->ratio = best(&o->took) / ours;
        w->ratio_median = median(&o->took) / middle;
    }
    *r->last = w;
    r->last = &w->next;
    if (!r->c->json) print_row(w);
    return PARE_OK;
}

/* ---- cases ------------------------------------------------------------------------------------
 */

static pare_status run_threads(runner *r, bench_job *j, const bench_case *k, int threads)
{
    double error = 0;
    j->exec.threads = threads;
    pare_status st = measure(r, j, k, &error);
    if (!st && r->nagainst == 0) st = put_row(r, j, k, NULL, error);
    for (size_t i = 0; i < r->nagainst && !st; i++) st = put_row(r, j, k, &r->against[i], error);
    return st;
}

static pare_status run_case(runner *r, const bench_case *k)
{
    bench_job j = {.c = r->c, .dir = r->dir, .peers = r->npeers > 0, .exec = {.threads = 1}};
    j.arena = pare_arena_new();
    if (!j.arena) return pare_no_memory(&r->c->err);
    pare_status st = k->kind->prepare(&j, k->p);
    if (!st) st = run_threads(r, &j, k, 1);
    if (!st && !k->one_thread && r->c->threads > 1) st = run_threads(r, &j, k, (int)r->c->threads);
    if (k->kind->drop) k->kind->drop(&j);
    pare_arena_free(j.arena);
    return st;
}

static bool wanted(const runner *r, const bench_case *k)
{
    const bool level = r->quick ? k->level == BENCH_QUICK
                                : k->level == BENCH_SHORT || (r->full && k->level == BENCH_FULL);
    bool named = r->c->noperands == 0;
    for (size_t i = 0; i < r->c->noperands; i++)
        if (strcmp(r->c->operand[i], k->name) == 0) named = true;
    return level && named;
}

/* ---- the command ------------------------------------------------------------------------------
 */

static void print_head(const runner *r, int argc, char **argv)
{
    const bench_machine *m = &r->machine;
    printf("# command: pare bench");
    for (int i = 0; i < argc; i++) printf(" %s", argv[i]);
    printf("\n# version: %s\n# commit: %s\n# compiler: %s\n# cpu: %s\n# cores: %d\n# date: %s\n",
           pare_version(), m->commit, m->compiler, m->cpu, m->cores, m->date);
    printf("# best of several, then the median; all take turns; ratio > 1: ours is faster\n");
    puts("name,shape,threads,unit,ours,ours_median,sgemm_gflops,of_sgemm,peer,peer_value,"
         "peer_median,ratio,ratio_median,error");
    fflush(stdout);
}

static bool add_number(cJSON *o, const char *key, double v)
{
    return isnan(v) ? pare_json_add_null(o, key) : pare_json_add_number(o, key, v);
}

static bool json_row(cJSON *list, const row *w)
{
    cJSON *o = pare_json_add_object(list, NULL);
    return o && pare_json_add_string(o, "name", w->name) &&
           pare_json_add_string(o, "shape", w->shape) &&
           pare_json_add_size(o, "threads", (size_t)w->threads) &&
           pare_json_add_string(o, "unit", unit_name[w->unit]) && add_number(o, "ours", w->ours) &&
           add_number(o, "ours_median", w->median) && add_number(o, "sgemm_gflops", w->sgemm) &&
           add_number(o, "of_sgemm", w->of_sgemm) &&
           (*w->peer ? pare_json_add_string(o, "peer", w->peer) : pare_json_add_null(o, "peer")) &&
           add_number(o, "peer_value", w->theirs) &&
           add_number(o, "peer_median", w->theirs_median) && add_number(o, "ratio", w->ratio) &&
           add_number(o, "ratio_median", w->ratio_median) && add_number(o, "error", w->error);
}

static pare_status print_json(runner *r)
{
    const bench_machine *m = &r->machine;
    cJSON *root = out_json_begin(r->c);
    cJSON *o = root ? pare_json_add_object(root, "machine") : NULL;
    bool ok = o && pare_json_add_string(o, "version", pare_version()) &&
              pare_json_add_string(o, "commit", m->commit) &&
              pare_json_add_string(o, "compiler", m->compiler) &&
              pare_json_add_string(o, "cpu", m->cpu) &&
              pare_json_add_size(o, "cores", (size_t)m->cores) &&
              pare_json_add_string(o, "date", m->date);
    cJSON *list = ok ? pare_json_add_array(root, "rows") : NULL;
    ok = list != NULL;
    for (const row *w = r->first; w && ok; w = w->next) ok = json_row(list, w);
    return out_json(r->c, root, ok);
}

/* The commands stand between semicolons. A peer that does not start is missed, not an error: the
 * figures of the others are still wanted. */
static pare_status start_peers(runner *r, const char *list)
{
    while (list && *list) {
        const size_t n = strcspn(list, ";");
        char *command = pare_strndup(r->c->arena, list, n);
        if (!command) return pare_no_memory(&r->c->err);
        if (r->npeers == MOST_PEERS)
            return pare_fail(&r->c->err, PARE_ERR_USAGE, "--peer: more than %d", MOST_PEERS);
        if (command[strspn(command, " ")]) {
            if (bench_peer_start(&r->peer[r->npeers], command, &r->c->err) == PARE_OK)
                r->npeers++;
            else
                cli_note(r->c, "%s; its columns stay empty", r->c->err.msg);
        }
        list += n + (list[n] == ';');
    }
    return PARE_OK;
}

static pare_status make_folder(runner *r)
{
    const char *tmp = getenv("TMPDIR");
    const int n =
        snprintf(r->dir, sizeof r->dir, "%s/pare-bench-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (n > 0 && (size_t)n < sizeof r->dir && mkdtemp(r->dir)) return PARE_OK;
    r->dir[0] = '\0';
    return pare_fail(&r->c->err, PARE_ERR_IO, "%s: no temporary folder can be made there",
                     tmp && *tmp ? tmp : "/tmp");
}

static void remove_folder(const char *dir)
{
    DIR *d = opendir(dir);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
    rmdir(dir);
}

static pare_status names_check(cli *c)
{
    for (size_t i = 0; i < c->noperands; i++) {
        bool known = false;
        for (size_t k = 0; k < bench_ncases; k++)
            if (strcmp(bench_cases[k].name, c->operand[i]) == 0) known = true;
        if (!known)
            return pare_fail(&c->err, PARE_ERR_USAGE, "there is no benchmark '%s'", c->operand[i]);
    }
    return PARE_OK;
}

static pare_status bench(runner *r, const char *peers, int argc, char **argv)
{
    r->turns = r->quick ? 2 : 9;
    r->budget = r->quick ? 0.1 : r->full ? 8 : 1;
    r->last = &r->first;
    pare_status st = make_folder(r);
    if (!st) st = start_peers(r, peers); /* before there are threads */
    if (!st) st = bench_gemm_init(&r->gemm, r->c, r->quick ? 64 : 1024);
    if (st) return st;
    bench_machine_look(&r->machine);
    if (!r->c->json) print_head(r, argc, argv);
    for (size_t k = 0; k < bench_ncases && !st; k++)
        if (wanted(r, &bench_cases[k])) st = run_case(r, &bench_cases[k]);
    return !st && r->c->json ? print_json(r) : st;
}

int cmd_bench(int argc, char **argv)
{
    static runner r; /* large */
    cli c;
    const char *peers = NULL;
    int rc;
    const opt own[] = {
        {.name = "quick", .kind = OPT_FLAG, .to = &r.quick, .help = "tiny shapes: does it work?"},
        {.name = "full", .kind = OPT_FLAG, .to = &r.full, .help = "the large shapes as well"},
        {.name = "peer",
         .kind = OPT_TEXT,
         .to = &peers,
         .metavar = "CMD",
         .help = "a program to compare with, or several: 'A;B'"},
    };
    const opt_spec spec = {
        .command = "bench",
        .args = "[NAME...]",
        .about = "How fast this is here, as CSV: attention, dense, forward, generate, hash,\n"
                 "spectral, or all of them, on one thread and on -t. Results are checked.",
        .example = "bench attention dense",
        .own = own,
        .nown = sizeof own / sizeof *own,
        .more = true,
    };
    char *words[64];
    const int nwords = argc < 64 ? argc : 64; /* parsing moves them about */
    if (argc > 0) memcpy(words, argv, (size_t)nwords * sizeof *words);
    if (!cli_start(&c, &spec, CLI_NO_OUT, NULL, argc, argv, &rc)) return rc;
    r.c = &c;
    pare_status st = r.quick && r.full ? pare_fail(&c.err, PARE_ERR_USAGE,
                                                   "--quick and --full exclude each other")
                                       : names_check(&c);
    if (!st) st = bench(&r, peers, nwords, words);
    for (size_t i = 0; i < r.npeers; i++) bench_peer_stop(&r.peer[i]);
    if (r.dir[0]) remove_folder(r.dir);
    return cli_finish(&c, st);
}
