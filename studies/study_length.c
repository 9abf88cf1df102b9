/* pare repro length: calls against N/M for every mask and mode, errors of the robust modes and of
 * the paper's own algorithm, and sampling against its bound. Everything is run, nothing is looked
 * up. */
#include "experiments.h"
#include "length_data.h"
#include <math.h>

typedef struct way {
    const char *name;
    pare_pattern p;
    pare_length_opts o;
} way;

enum { FULL_CALLS = PARE_ORC_QKV | PARE_ORC_FULL, CAUSAL_CALLS = PARE_ORC_QKV | PARE_ORC_CAUSAL };
static const way ways[] = {
    {"full, native", {.kind = PARE_FULL}, {.mode = PARE_LENGTH_NATIVE}},
    {"full, zero reference",
     {.kind = PARE_FULL},
     {.mode = PARE_LENGTH_ZEROREF, .features = FULL_CALLS}},
    {"causal, zero reference",
     {.kind = PARE_CAUSAL},
     {.mode = PARE_LENGTH_ZEROREF, .features = CAUSAL_CALLS}},
    {"full, the paper's", {.kind = PARE_FULL}, {.mode = PARE_LENGTH_PAPER, .features = FULL_CALLS}},
    {"full, sampled once",
     {.kind = PARE_FULL},
     {.mode = PARE_LENGTH_SAMPLE, .features = FULL_CALLS, .no_fallback = true}},
    {"window 4, packed",
     {.kind = PARE_WINDOW, .window = 4},
     {.mode = PARE_LENGTH_ZEROREF, .features = CAUSAL_CALLS}},
    {"causal, native", {.kind = PARE_CAUSAL}, {.mode = PARE_LENGTH_NATIVE}},
    {"causal on full calls",
     {.kind = PARE_CAUSAL},
     {.mode = PARE_LENGTH_ZEROREF, .features = FULL_CALLS}},
    {"window 4, sinks 2",
     {.kind = PARE_WINDOW, .window = 4, .sinks = 2},
     {.mode = PARE_LENGTH_ZEROREF, .features = CAUSAL_CALLS}},
    {"window 4, the paper's",
     {.kind = PARE_WINDOW, .window = 4},
     {.mode = PARE_LENGTH_PAPER, .features = CAUSAL_CALLS}},
    {"full, tokens of one vector",
     {.kind = PARE_FULL},
     {.mode = PARE_LENGTH_ZEROREF, .features = FULL_CALLS, .one_vector = true}},
    {"causal, sampled once",
     {.kind = PARE_CAUSAL},
     {.mode = PARE_LENGTH_SAMPLE, .features = CAUSAL_CALLS}}};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- calls ----------------------------------------------------------------------------------- */

enum { M_COUNT = 16, RATIOS = 4, DRAWN = 6 /* ways with a curve */ };
static const size_t ratios[RATIOS] = {2, 8, 32, 64};

static size_t calls_parts(bool full)
{
    (void)full;
    return WAYS;
}

static pare_status planned(double *calls, const way *x, size_t n, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_length_plan plan;
    const pare_length_head h = {0, LENGTH_D, LENGTH_D};
    const pare_oracle_caps caps = {.max_len = M_COUNT,
                                   .features = x->o.features ? x->o.features : PARE_ORC_PARTIAL,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    const pare_status st =
        pare_length_plan_make(&plan, a, &h, 1, n, &x->p, NULL, &caps, &x->o, err);
    *calls = st ? NAN : (double)(plan.cost.formula ? plan.cost.formula : plan.cost.calls);
    pare_arena_free(a);
    return st;
}

/* A way: of each ratio what is planned, what was executed, and of it aggregation. */
static pare_status calls_run(numbers *out, const setting *of, size_t part, const pare_exec *exec,
                             pare_err *err)
{
    const way *const x = &ways[part];
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < RATIOS; i++) {
        const size_t n = ratios[i] * M_COUNT;
        pare_length_stats s = {0};
        length_data d;
        double want = NAN;
        st = length_data_new(&d, n, LENGTH_BENIGN, 0, 1, of->seed) ? PARE_OK : pare_no_memory(err);
        if (!st) st = length_data_attend(&d, &x->p, M_COUNT, PARE_F64, &x->o, &s, exec, err);
        pare_arena_free(d.a);
        if (!st) st = planned(&want, x, n, err);
        number_put(out, want);
        number_put(out, (double)s.calls);
        number_put(out, (double)s.merge_calls);
        if (!st) st = pare_progress(exec, "", i + 1, RATIOS, err);
    }
    return st;
}

static void calls_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    double x[RATIOS], y[RATIOS];
    (void)of;
    begin_table(s, "calls",
                "calls of one head, M = 16: our plan (or its closed form) beside what was executed",
                0, n * RATIOS);
    for (size_t w = 0; w < n && !s->st; w++) {
        for (size_t i = 0; i < RATIOS && !s->st; i++) {
            const double *const v = part[w].v + 3 * i;
            x[i] = (double)ratios[i], y[i] = v[1];
            add_row(s, (table_row){.data = pare_sprintf(s->r->arena, "N/M = %zu", ratios[i]),
                                   .what = ways[w].name,
                                   .published = NAN,
                                   .published_std = NAN,
                                   .source = ROW_SELF,
                                   .reference = v[0],
                                   .ours = v[1],
                                   .ours_std = NAN,
                                   .verdict = v[0] == v[1] ? REPRODUCED : DIFFERS,
                                   .note = v[2] > 0 ? "aggregation calls are in it" : "",
                                   .from = ""});
        }
        if (w < DRAWN) row_curve(s, "M = 16", ways[w].name, x, y, RATIOS);
    }
}

static const experiment calls = {
    .stem = "calls", .parts = calls_parts, .cost = 2, .run = calls_run, .table = calls_table};

/* ---- errors ---------------------------------------------------------------------------------- */

enum { M_ERROR = 32, LONG = 2 };
static const size_t longer[LONG] = {2, 8};
#define ASKED 1e-6 /* our default eps for the paper's algorithm; the paper's own is 2^-N */

static const way tried[] = {
    {"full, native", {.kind = PARE_FULL}, {.mode = PARE_LENGTH_NATIVE}},
    {"full, zero reference",
     {.kind = PARE_FULL},
     {.mode = PARE_LENGTH_ZEROREF, .features = FULL_CALLS}},
    {"full, the paper's", {.kind = PARE_FULL}, {.mode = PARE_LENGTH_PAPER, .features = FULL_CALLS}},
    {"causal, zero reference",
     {.kind = PARE_CAUSAL},
     {.mode = PARE_LENGTH_ZEROREF, .features = CAUSAL_CALLS}},
    {"causal, the paper's",
     {.kind = PARE_CAUSAL},
     {.mode = PARE_LENGTH_PAPER, .features = CAUSAL_CALLS}},
    {"window 4, zero reference",
     {.kind = PARE_WINDOW, .window = 4},
     {.mode = PARE_LENGTH_ZEROREF, .features = CAUSAL_CALLS}},
    {"window 4, the paper's",
     {.kind = PARE_WINDOW, .window = 4},
     {.mode = PARE_LENGTH_PAPER, .features = CAUSAL_CALLS}}};
enum { TRIED = sizeof tried / sizeof *tried };

static size_t errors_parts(bool full)
{
    (void)full;
    return LONG * LENGTH_REGIMES;
}

/* inf: it fails, and says so. */
static pare_status one_error(numbers *out, length_data *d, const way *x, pare_dtype t,
                             const pare_exec *exec, pare_err *err)
{
    pare_err why = {0};
    pare_length_stats s;
    const pare_status st = length_data_attend(d, &x->p, M_ERROR, t, &x->o, &s, exec, &why);
    number_put(out, st ? INFINITY : length_data_error(d, t));
    return st == PARE_ERR_MEMORY ? pare_no_memory(err) : PARE_OK;
}

static pare_status errors_run(numbers *out, const setting *of, size_t part, const pare_exec *exec,
                              pare_err *err)
{
    const size_t ratio = longer[part / LENGTH_REGIMES];
    length_data d;
    pare_status st =
        length_data_new(&d, ratio * M_ERROR, (int)(part % LENGTH_REGIMES), 0, 1, of->seed)
            ? PARE_OK
            : pare_no_memory(err);
    for (size_t x = 0; x < TRIED && !st; x++) {
        length_data_exact(&d, &tried[x].p);
        st = one_error(out, &d, &tried[x], PARE_F32, exec, err);
        if (!st) st = one_error(out, &d, &tried[x], PARE_F64, exec, err);
        if (!st) st = pare_progress(exec, "", x + 1, TRIED, err);
    }
    pare_arena_free(d.a);
    return st;
}

/* Of the paper's algorithm: whether it reaches the eps that we ask it for. Yu 2025 asks for 2^-N,
 * in numbers of O(log N) bits, of any data; docs/errata.md has that conflict. */
static void put_error(table_writer *s, const char *where, const way *x, bool f32, double off)
{
    const bool paper = x->o.mode == PARE_LENGTH_PAPER;
    if (s->st) return;
    add_row(s,
            (table_row){.data = where,
                        .what = pare_sprintf(s->r->arena, "%s, %s", x->name, f32 ? "f32" : "f64"),
                        .published = NAN,
                        .published_std = NAN,
                        .source = paper ? ROW_SELF : ROW_OURS,
                        .reference = ASKED,
                        .ours = off,
                        .ours_std = NAN,
                        .verdict = !paper         ? ADDED
                                   : off <= ASKED ? REPRODUCED
                                                  : DIFFERS,
                        .note = isinf(off)               ? "it says so: no number comes out"
                                : !paper || off <= ASKED ? ""
                                : off < 1e-2             ? "above the eps it was asked for"
                                                         : "wrong, and does not say so",
                        .from = ""});
}

static void errors_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    (void)of;
    begin_table(
        s, "errors",
        "largest |error| / |row|, M = 32: robust modes; the paper's algorithm, asked for our eps "
        "of 1e-6 (the paper's is 2^-N)",
        -2, (size_t)TRIED * n * 2);
    for (size_t p = 0; p < n && !s->st; p++) {
        const char *const where =
            pare_sprintf(s->r->arena, "%s, N/M = %zu", length_regimes[p % LENGTH_REGIMES],
                         longer[p / LENGTH_REGIMES]);
        if (!where) s->st = pare_no_memory(s->err);
        for (size_t i = 0; i < 2 * TRIED; i++)
            put_error(s, where, &tried[i / 2], i % 2 == 0, part[p].v[i]);
    }
}

static const experiment errors = {
    .stem = "errors", .parts = errors_parts, .cost = 1, .run = errors_run, .table = errors_table};

/* ---- sampling -------------------------------------------------------------------------------- */

static const double spreads[] = {0.05, 0.25, 1};
enum { SPREADS = sizeof spreads / sizeof *spreads, SAMPLED = 4 /* rows of each */ };

static size_t sampling_parts(bool full)
{
    (void)full;
    return SPREADS;
}

static pare_status sampling_run(numbers *out, const setting *of, size_t part, const pare_exec *exec,
                                pare_err *err)
{
    const pare_pattern full = {.kind = PARE_FULL};
    const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE, .seed = of->seed},
                           chunk = {.mode = PARE_LENGTH_CHUNK};
    pare_length_stats s = {0};
    length_data d;
    pare_status st = length_data_new(&d, 2048, LENGTH_BENIGN, 3, spreads[part], of->seed)
                         ? PARE_OK
                         : pare_no_memory(err);
    if (!st) length_data_exact(&d, &full);
    if (!st) st = length_data_attend(&d, &full, 512, PARE_F64, &chunk, &s, exec, err);
    const double baseline = st ? NAN : length_data_error(&d, PARE_F64);
    if (!st) st = length_data_attend(&d, &full, 512, PARE_F64, &o, &s, exec, err);
    number_put(out, st ? NAN : length_data_error(&d, PARE_F64));
    number_put(out, s.relative);
    number_put(out, (double)s.exact_rows);
    number_put(out, baseline);
    pare_arena_free(d.a);
    return st;
}

static void sampling_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    static const char *const what[SAMPLED] = {"largest relative error", "largest relative bound",
                                              "rows computed exactly",
                                              "each chunk by itself (no bound)"};
    (void)of;
    begin_table(s, "sampling",
                "N = 2048, M = 512, values around 3: largest error of a row, its bound, rows "
                "computed exactly (eps = 1/2, delta = 0.01)",
                -3, (SAMPLED + 1) * n);
    for (size_t p = 0; p < n && !s->st; p++) {
        const double *const v = part[p].v;
        const char *const where = pare_sprintf(s->r->arena, "logit std %g", spreads[p]);
        if (!where) s->st = pare_no_memory(s->err);
        for (size_t x = 0; x < SAMPLED && !s->st; x++) row_ours(s, where, what[x], v[x]);
        const double bound = fmax(v[1], 1e-12); /* rows that are computed exactly are rounded */
        if (!s->st) row_holds(s, where, "no error is above its bound", v[0] <= bound, v[0] / bound);
    }
}

static const experiment sampling = {.stem = "sampling",
                                    .parts = sampling_parts,
                                    .cost = 3,
                                    .run = sampling_run,
                                    .table = sampling_table};

/* ---- the study ------------------------------------------------------------------------------- */

static const experiment *const experiments[] = {&calls, &errors, &sampling};
enum { EXPERIMENTS = sizeof experiments / sizeof *experiments };

const char *length_part(size_t i)
{
    return i < EXPERIMENTS ? experiments[i]->stem : NULL;
}

static pare_status make(study_context *f)
{
    const setting s = {.seed = f->o->seed, .full = f->o->full};
    pare_status st = make_study_folders(f);
    if (!st) st = allocate_tables(f, EXPERIMENTS, 0, 1);
    return run_experiments(f, experiments, EXPERIMENTS, &s, "repro length 1", st);
}

pare_status study_length(study **out, const study_opts *o, const pare_exec *exec,
                         const pare_ranks *ranks, pare_err *err)
{
    study_context f;
    pare_status st = study_begin(&f, "length", o, exec, ranks, err);
    if (!st) st = make(&f);
    return study_end(out, &f, st);
}
