/* cmd_bench.c - pare bench: how fast pare is on this machine, as CSV or JSON, peers beside it. */
#include "bench.h"
#include "interrupt.h"
#include "out.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct row {
    const char *name, *unit;
    char shape[BENCH_SHAPE], peer[64];    /* peer "": none */
    int threads, digits;                  /* digits of values in this unit */
    double ours, median, sgemm, of_sgemm; /* of_sgemm: nan when flops are not counted */
    double theirs, theirs_median, ratio, ratio_median; /* nan without a peer */
    double error;
    struct row *next;
} row;

typedef enum column_kind {
    TEXT,    /* const char * */
    CHARS,   /* char[]; "" is null in JSON */
    INTEGER, /* int */
    REAL,    /* double; nan is null in JSON and "" in CSV */
    ERROR    /* double, %.1e */
} column_kind;

/* One field of a struct. Tables end with a row of zeros. */
typedef struct column {
    const char *key;
    column_kind kind;
    size_t offset;
    int digits; /* of a REAL in CSV; -1: those of the row's unit */
} column;

/* The columns of the CSV, and the keys of JSON. */
static const column row_columns[] = {
    {"name", TEXT, offsetof(row, name), 0},
    {"shape", CHARS, offsetof(row, shape), 0},
    {"threads", INTEGER, offsetof(row, threads), 0},
    {"unit", TEXT, offsetof(row, unit), 0},
    {"ours", REAL, offsetof(row, ours), -1},
    {"ours_median", REAL, offsetof(row, median), -1},
    {"sgemm_gflops", REAL, offsetof(row, sgemm), 1},
    {"of_sgemm", REAL, offsetof(row, of_sgemm), 3},
    {"peer", CHARS, offsetof(row, peer), 0},
    {"peer_value", REAL, offsetof(row, theirs), -1},
    {"peer_median", REAL, offsetof(row, theirs_median), -1},
    {"ratio", REAL, offsetof(row, ratio), 2},
    {"ratio_median", REAL, offsetof(row, ratio_median), 2},
    {"error", ERROR, offsetof(row, error), 0},
    {0},
};

static const column machine_columns[] = {
    {"version", TEXT, offsetof(bench_machine, version), 0},
    {"commit", CHARS, offsetof(bench_machine, commit), 0},
    {"compiler", CHARS, offsetof(bench_machine, compiler), 0},
    {"cpu", CHARS, offsetof(bench_machine, cpu), 0},
    {"cores", INTEGER, offsetof(bench_machine, cores), 0},
    {"date", CHARS, offsetof(bench_machine, date), 0},
    {0},
};

static const char *cell_text(char buf[64], const column *f, const void *from, int unit_digits)
{
    const void *const v = (const char *)from + f->offset;
    buf[0] = '\0';
    if (f->kind == TEXT) return *(const char *const *)v;
    if (f->kind == CHARS) return v;
    if (f->kind == INTEGER)
        snprintf(buf, 64, "%d", *(const int *)v);
    else if (f->kind == ERROR)
        snprintf(buf, 64, "%.1e", *(const double *)v);
    else if (!isnan(*(const double *)v))
        snprintf(buf, 64, "%.*f", f->digits < 0 ? unit_digits : f->digits, *(const double *)v);
    return buf;
}

static bool add_columns(cJSON *to, const column *columns, const void *from)
{
    bool ok = to != NULL;
    for (const column *f = columns; ok && f->key; f++) {
        const void *const v = (const char *)from + f->offset;
        if (f->kind == TEXT)
            ok = pare_json_add_string(to, f->key, *(const char *const *)v);
        else if (f->kind == CHARS)
            ok = *(const char *)v ? pare_json_add_string(to, f->key, v)
                                  : pare_json_add_null(to, f->key);
        else if (f->kind == INTEGER)
            ok = pare_json_add_size(to, f->key, (size_t) * (const int *)v);
        else
            ok = isnan(*(const double *)v) ? pare_json_add_null(to, f->key)
                                           : pare_json_add_number(to, f->key, *(const double *)v);
    }
    return ok;
}

typedef struct runner {
    cli *c;
    bool quick, full;
    const char *graph; /* a file */
    char dir[512];
    bench_peer peer[BENCH_MOST_PEERS];
    bench_match match;
    row *first, **last;
    bench_machine machine;
} runner;

/* ---- rows ---------------------------------------------------------------------------------- */

static double in_unit(const bench_job *j, bench_unit unit, double seconds)
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

static pare_status add_row(runner *r, const bench_job *j, const bench_case *k, bench_opponent *o)
{
    static const char *const unit_name[] = {"ms", "Gflop/s", "tokens/s", "GB/s"};
    static const int unit_digits[] = {3, 3, 0, 3};
    row *w = pare_alloc(r->c->arena, 1, sizeof *w);
    if (!w) return pare_no_memory(&r->c->err);
    const double ours = bench_best(&r->match.ours), middle = bench_median(&r->match.ours);
    *w = (row){.name = k->name,
               .unit = unit_name[k->unit],
               .digits = unit_digits[k->unit],
               .threads = j->exec.threads,
               .error = r->match.error};
    memcpy(w->shape, j->shape, sizeof w->shape);
    w->ours = in_unit(j, k->unit, ours);
    w->median = in_unit(j, k->unit, middle);
    w->sgemm = 1 / bench_best(&r->match.sgemm);
    w->of_sgemm = j->flops > 0 ? 1e-9 * j->flops / ours / w->sgemm : NAN;
    w->theirs = w->theirs_median = w->ratio = w->ratio_median = NAN;
    if (o) {
        memcpy(w->peer, o->label, sizeof w->peer);
        w->theirs = in_unit(j, k->unit, bench_best(&o->took));
        w->theirs_median = in_unit(j, k->unit, bench_median(&o->took));
        w->ratio = bench_best(&o->took) / ours;
        w->ratio_median = bench_median(&o->took) / middle;
    }
    *r->last = w;
    r->last = &w->next;
    if (!r->c->json) {
        char buf[64];
        for (const column *f = row_columns; f->key; f++)
            out_part("%s%s", f == row_columns ? "" : ",", cell_text(buf, f, w, w->digits));
        putchar('\n');
        fflush(stdout); /* a run takes a while: each row when it is there */
    }
    return PARE_OK;
}

/* ---- cases --------------------------------------------------------------------------------- */

static pare_status run_threads(runner *r, bench_job *j, const bench_case *k, int threads)
{
    bench_match *m = &r->match;
    j->exec.threads = threads;
    pare_status st = bench_measure(m, j, k);
    if (!st && m->nagainst == 0) st = add_row(r, j, k, NULL);
    for (size_t i = 0; i < m->nagainst && !st; i++) st = add_row(r, j, k, &m->against[i]);
    return st;
}

static pare_status run_case(runner *r, const bench_case *k)
{
    bench_job j = {.c = r->c,
                   .dir = r->dir,
                   .graph = r->graph,
                   .peers = r->match.npeers > 0,
                   .exec = {.threads = 1}};
    j.arena = pare_arena_new();
    if (!j.arena) return pare_no_memory(&r->c->err);
    pare_status st = k->kind->input(&j, k->p);
    if (!st && k->kind->reference) st = k->kind->reference(&j);
    if (!st) st = run_threads(r, &j, k, 1);
    if (!st && !k->one_thread && !r->match.cpu && r->c->threads > 1)
        st = run_threads(r, &j, k, (int)r->c->threads);
    if (k->kind->free) k->kind->free(&j);
    pare_arena_free(j.arena);
    return st;
}

static bool is_named(const runner *r, const bench_case *k)
{
    for (size_t i = 0; i < r->c->noperands; i++)
        if (strcmp(r->c->operand[i], k->name) == 0) return true;
    return r->c->noperands == 0;
}

/* ---- the command --------------------------------------------------------------------------- */

/* The commands stand between semicolons. A peer that does not start is left out and is no error:
 * the figures of the others are still wanted. */
static pare_status start_peers(runner *r, const char *list)
{
    while (list && *list) {
        const size_t n = strcspn(list, ";");
        char *command = pare_strndup(r->c->arena, list, n);
        if (!command) return pare_no_memory(&r->c->err);
        if (r->match.npeers == BENCH_MOST_PEERS)
            return pare_fail(&r->c->err, PARE_ERR_USAGE, "--peer: more than %d", BENCH_MOST_PEERS);
        if (command[strspn(command, " ")]) {
            if (bench_peer_start(&r->peer[r->match.npeers], command, r->match.cpu, &r->c->err) ==
                PARE_OK)
                r->match.npeers++;
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

/* The names in bench_cases. */
static const char *const bench_names[] = {"attention", "dense",    "forward", "generate",
                                          "hash",      "spectral", "train",   NULL};

static pare_status check_names(cli *c)
{
    bool on_graph = c->noperands == 0;
    for (size_t i = 0, at; i < c->noperands; i++) {
        const pare_status st = cli_choose(c, &at, "benchmark", c->operand[i], bench_names);
        if (st) return st;
        on_graph = on_graph || strcmp(c->operand[i], "forward") == 0 ||
                   strcmp(c->operand[i], "train") == 0;
    }
    return cli_only(c, "graph", on_graph, "the benchmarks forward and train");
}

static pare_status bench(runner *r, const char *peers, int argc, char **argv)
{
    r->match.turns = r->quick ? 2 : 9;
    r->match.budget = r->quick ? 0.1 : r->full ? 8 : 1;
    r->last = &r->first;
    r->match.c = r->c;
    r->match.peers = r->peer;
    bench_catch_signals();
    pare_status st = make_folder(r);
    if (!st) st = start_peers(r, peers); /* before there are threads */
    if (!st) st = bench_gemm_init(&r->match.gemm, r->c, r->quick ? 64 : 1024);
    if (st) return st;
    bench_machine_read(&r->machine);
    if (!r->c->json) {
        char buf[64];
        out_part("# command: pare bench");
        for (int i = 0; i < argc; i++) out_part(strchr(argv[i], ' ') ? " '%s'" : " %s", argv[i]);
        putchar('\n');
        for (const column *f = machine_columns; f->key; f++)
            out_line("# %s: %s", f->key, cell_text(buf, f, &r->machine, 0));
        out_line("# clock: %s", r->match.cpu ? "CPU" : "wall");
        out_line("# best of several, then the median; all take turns; ratio > 1: ours is faster");
        for (const column *f = row_columns; f->key; f++)
            out_part("%s%s", f == row_columns ? "" : ",", f->key);
        putchar('\n');
        fflush(stdout);
    }
    /* A graph that was given is wanted whatever its size: the model of the other large graphs. */
    static const bench_case on_graph[] = {
        {"forward", &bench_file, BENCH_FULL, BENCH_MS, false, {64, 4}},
        {"train", &bench_file_step, BENCH_FULL, BENCH_MS, false, {64, 4}},
    };
    for (const bench_case *k = bench_cases; k < bench_cases + bench_ncases && !st; k++) {
        const bool level = r->quick
                               ? k->level == BENCH_QUICK
                               : k->level == BENCH_SHORT || (r->full && k->level == BENCH_FULL);
        if (level && is_named(r, k)) st = run_case(r, k);
    }
    for (size_t i = 0; r->graph && i < sizeof on_graph / sizeof *on_graph && !st; i++)
        if (is_named(r, &on_graph[i])) st = run_case(r, &on_graph[i]);
    if (!st && r->c->json) {
        cJSON *root = out_json_begin(r->c);
        cJSON *machine = root ? pare_json_add_object(root, "machine") : NULL;
        bool ok = add_columns(machine, machine_columns, &r->machine) &&
                  pare_json_add_string(machine, "clock", r->match.cpu ? "cpu" : "wall");
        cJSON *list = ok ? pare_json_add_array(root, "rows") : NULL;
        ok = list != NULL;
        for (const row *w = r->first; w && ok; w = w->next)
            ok = add_columns(pare_json_add_object(list, NULL), row_columns, w);
        st = out_json(r->c, root, ok);
    }
    if (!st && r->match.lost > 0)
        st = pare_fail(&r->c->err, PARE_ERR_IO, "%zu of the peers broke", r->match.lost);
    return st;
}

int cmd_bench(int argc, char **argv)
{
    runner r = {0};
    cli c;
    const char *peers = NULL;
    int rc;
    /* clang-format off */
    const opt own[] = {
        {.name = "quick", .kind = OPT_FLAG, .to = &r.quick, .group = "What to measure",
         .help = "tiny shapes: only to see that everything runs"},
        {.name = "full", .kind = OPT_FLAG, .to = &r.full, .help = "the large shapes as well; takes minutes"},
        {.name = "graph", .kind = OPT_TEXT, .to = &r.graph, .metavar = "FILE", .rare = true, .unset = "none",
         .help = "forward and train: also on this graph (.npz), with a model of width 64 and 4 layers"},
        {.name = "cpu", .kind = OPT_FLAG, .to = &r.match.cpu, .rare = true,
         .help = "measure CPU time on one thread instead of wall time, for a machine that others use too"},
        {.name = "peer", .kind = OPT_TEXT, .to = &peers, .metavar = "CMD", .rare = true, .unset = "none",
         .help = "a program to compare with, run by the shell (docs/bench.md has the protocol); "
                 "several are separated by ';'"},
    };
    const opt_spec spec = {
        .command = "bench",
        .args = "[NAME...]",
        .about = "Measures how fast pare is on this machine, as CSV: attention, dense, forward,\n"
                 "generate, hash, spectral, train, or all of them, on one thread and on -t.\n"
                 "Every result is checked against a slow and plain computation.",
        .examples = {"bench attention dense", "bench forward --full -t 1"},
        .seeded = true,
        OPT_ROWS(own),
        .more = true,
        .words = bench_names,
    };
    /* clang-format on */
    char *words[64];
    const int nwords = argc < 64 ? argc : 64; /* parsing moves them about */
    if (argc > 0) memcpy(words, argv, (size_t)nwords * sizeof *words);
    if (!cli_start(&c, &spec, CLI_NO_OUT, NULL, argc, argv, &rc)) return rc;
    interrupt_at_once(); /* nothing here looks at the stop flag */
    r.c = &c;
    pare_status st =
        r.quick && r.full
            ? cli_usage_error(&c, "--quick and --full exclude each other: give one of them")
            : check_names(&c);
    if (!st) st = bench(&r, peers, nwords, words);
    for (size_t i = 0; i < r.match.npeers; i++) bench_peer_stop(&r.peer[i]);
    if (r.dir[0]) {
        DIR *d = opendir(r.dir);
        for (const struct dirent *e; d && (e = readdir(d));)
            if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
                unlinkat(dirfd(d), e->d_name, 0);
        if (d) closedir(d);
        rmdir(r.dir);
    }
    rc = cli_finish(&c, st);
    if (bench_signalled()) raise(bench_signalled()); /* the default action again */
    return rc;
}
