/* study_length.c - calls against N/M for every mask and mode, errors of the robust modes and of the
 * algorithm of Yu 2025, and sampling against its bound. Everything is run, nothing is looked up. */
#include "experiments.h"
#include "length_data.h"
#include <math.h>

enum { FULL_CALLS = PARE_ORC_QKV | PARE_ORC_FULL, CAUSAL_CALLS = PARE_ORC_QKV | PARE_ORC_CAUSAL };
static const pare_pattern full = {.kind = PARE_FULL};

/* A mask, and how attention with it is computed by short calls. */
typedef struct method {
    const char *name;
    pare_pattern p;
    pare_length_opts o;
} method;

/* The patterns and options that several methods have. */
#define FULL                                                                                       \
    {                                                                                              \
        .kind = PARE_FULL                                                                          \
    }
#define CAUSAL                                                                                     \
    {                                                                                              \
        .kind = PARE_CAUSAL                                                                        \
    }
#define WINDOW                                                                                     \
    {                                                                                              \
        .kind = PARE_WINDOW, .window = 4                                                           \
    }
#define ZEROREF(call)                                                                              \
    {                                                                                              \
        .mode = PARE_LENGTH_ZEROREF, .features = call                                              \
    }
#define PAPER(call)                                                                                \
    {                                                                                              \
        .mode = PARE_LENGTH_PAPER, .features = call                                                \
    }

static const method counted[] = {
    {"full, native", FULL, {.mode = PARE_LENGTH_NATIVE}},
    {"full, zero reference", FULL, ZEROREF(FULL_CALLS)},
    {"causal, zero reference", CAUSAL, ZEROREF(CAUSAL_CALLS)},
    {"full, the paper's", FULL, PAPER(FULL_CALLS)},
    {"full, sampled once",
     FULL,
     {.mode = PARE_LENGTH_SAMPLE, .features = FULL_CALLS, .no_fallback = true}},
    {"window 4, packed", WINDOW, ZEROREF(CAUSAL_CALLS)},
    {"causal, native", CAUSAL, {.mode = PARE_LENGTH_NATIVE}},
    {"causal on full calls", CAUSAL, ZEROREF(FULL_CALLS)},
    {"window 4, sinks 2", {.kind = PARE_WINDOW, .window = 4, .sinks = 2}, ZEROREF(CAUSAL_CALLS)},
    {"window 4, the paper's", WINDOW, PAPER(CAUSAL_CALLS)},
    {"full, tokens of one vector",
     FULL,
     {.mode = PARE_LENGTH_ZEROREF, .features = FULL_CALLS, .one_vector = true}},
    {"causal, sampled once", CAUSAL, {.mode = PARE_LENGTH_SAMPLE, .features = CAUSAL_CALLS}}};
enum { COUNTED = sizeof counted / sizeof *counted };

static const method measured[] = {{"full, native", FULL, {.mode = PARE_LENGTH_NATIVE}},
                                  {"full, zero reference", FULL, ZEROREF(FULL_CALLS)},
                                  {"full, the paper's", FULL, PAPER(FULL_CALLS)},
                                  {"causal, zero reference", CAUSAL, ZEROREF(CAUSAL_CALLS)},
                                  {"causal, the paper's", CAUSAL, PAPER(CAUSAL_CALLS)},
                                  {"window 4, zero reference", WINDOW, ZEROREF(CAUSAL_CALLS)},
                                  {"window 4, the paper's", WINDOW, PAPER(CAUSAL_CALLS)}};
enum { MEASURED = sizeof measured / sizeof *measured };

/* ---- calls ----------------------------------------------------------------------------------- */

enum { M_COUNT = 16, RATIOS = 4, DRAWN = 6 /* methods with a curve */ };
static const size_t ratios[RATIOS] = {2, 8, 32, 64};

/* A method: of each ratio what is planned, what was executed, and of it aggregation. */
static pare_status calls_run(trial *t)
{
    const method *const x = &counted[t->part];
    const pare_length_head head = {0, LENGTH_D, LENGTH_D};
    const pare_oracle_caps caps = {.max_len = M_COUNT,
                                   .features = x->o.features ? x->o.features : PARE_ORC_PARTIAL,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < RATIOS; i++) {
        const size_t n = ratios[i] * M_COUNT;
        pare_length_stats s = {0};
        pare_length_plan plan = {0};
        length_data d;
        st = length_data_new(&d, n, LENGTH_BENIGN, 0, 1, t->s->seed) ? PARE_OK
                                                                     : pare_no_memory(t->err);
        if (!st) st = length_data_attend(&d, &x->p, M_COUNT, PARE_F64, &x->o, &s, t->exec, t->err);
        pare_arena_free(d.a);
        if (!st)
            st = pare_length_plan_make(
                &plan, t->a,
                &(pare_length_shape){.heads = &head, .count = 1, .tokens = n, .pattern = &x->p},
                &caps, &x->o, t->err);
        const double planned = (double)(plan.cost.formula ? plan.cost.formula : plan.cost.calls);
        append_numbers(t, (double[]){planned, (double)s.calls, (double)s.merge_calls}, 3);
        if (!st) st = trial_progress(t, i + 1, RATIOS);
    }
    return st;
}

static void calls_table(table_writer *w, const numbers *part, size_t n)
{
    double x[RATIOS], y[RATIOS];
    begin_table(w, "calls",
                "calls of one head, M = 16: our plan (or its closed form) beside what was executed",
                0);
    for (size_t p = 0; p < n; p++) {
        for (size_t i = 0; i < RATIOS; i++) {
            const double *const v = part[p].v + 3 * i;
            table_row row = row_of(row_text(w, "N/M = %zu", ratios[i]), counted[p].name, v[1]);
            x[i] = (double)ratios[i], y[i] = v[1];
            row.source = ROW_SELF;
            row.reference = v[0];
            row.verdict = v[0] == v[1] ? REPRODUCED : DIFFERS;
            row.note = v[2] > 0 ? "aggregation calls are in it" : "";
            add_row(w, row);
        }
        if (p < DRAWN) row_curve(w, "M = 16", counted[p].name, x, y, RATIOS);
    }
}

static const experiment calls = {
    .file_prefix = "calls", .parts = COUNTED, .cost = 2, .run = calls_run, .table = calls_table};

/* ---- errors ---------------------------------------------------------------------------------- */

enum { M_ERROR = 32, LONG = 2 };
static const size_t longer[LONG] = {2, 8};
#define ASKED 1e-6 /* our default eps for the paper's algorithm; the paper's own is 2^-N */

/* Errors in f32 and f64 of each method; inf: it fails, and says so. */
static pare_status errors_run(trial *t)
{
    const size_t n = longer[t->part / LENGTH_REGIMES] * M_ERROR;
    length_data d;
    pare_status st = length_data_new(&d, n, (int)(t->part % LENGTH_REGIMES), 0, 1, t->s->seed)
                         ? PARE_OK
                         : pare_no_memory(t->err);
    for (size_t i = 0; i < 2 * MEASURED && !st; i++) {
        const method *const x = &measured[i / 2];
        const pare_dtype type = i % 2 ? PARE_F64 : PARE_F32;
        pare_err why = {0};
        pare_length_stats s;
        if (i % 2 == 0) length_data_exact(&d, &x->p);
        st = length_data_attend(&d, &x->p, M_ERROR, type, &x->o, &s, t->exec, &why);
        append_number(&t->out, st ? INFINITY : length_data_error(&d, type));
        st = st == PARE_ERR_MEMORY ? pare_no_memory(t->err) : PARE_OK;
        if (!st && i % 2) st = trial_progress(t, i / 2 + 1, MEASURED);
    }
    pare_arena_free(d.a);
    return st;
}

/* Of the paper's algorithm: whether it reaches the eps that we ask it for. Yu 2025 asks for 2^-N,
 * in numbers of O(log N) bits, of any data; docs/errata.md has that conflict. */
static void errors_table(table_writer *w, const numbers *part, size_t n)
{
    begin_table(w, "errors",
                "largest |error| / |row|, M = 32: robust modes; the paper's algorithm, asked for "
                "our eps of 1e-6 (the paper's is 2^-N)",
                -2);
    for (size_t p = 0; p < n; p++)
        for (size_t i = 0; i < 2 * MEASURED; i++) {
            const method *const x = &measured[i / 2];
            const bool paper = x->o.mode == PARE_LENGTH_PAPER;
            const double off = part[p].v[i];
            table_row row = row_of(row_text(w, "%s, N/M = %zu", length_regimes[p % LENGTH_REGIMES],
                                            longer[p / LENGTH_REGIMES]),
                                   row_text(w, "%s, %s", x->name, i % 2 ? "f64" : "f32"), off);
            row.source = paper ? ROW_SELF : ROW_OURS;
            row.reference = ASKED;
            if (paper) row.verdict = off <= ASKED ? REPRODUCED : DIFFERS;
            row.note = isinf(off)               ? "it says so: no number comes out"
                       : !paper || off <= ASKED ? ""
                       : off < 1e-2             ? "above the eps it was asked for"
                                                : "wrong, and does not say so";
            add_row(w, row);
        }
}

static const experiment errors = {.file_prefix = "errors",
                                  .parts = LONG * LENGTH_REGIMES,
                                  .cost = 1,
                                  .run = errors_run,
                                  .table = errors_table};

/* ---- sampling -------------------------------------------------------------------------------- */

static const double spreads[] = {0.05, 0.25, 1};
enum { SPREADS = sizeof spreads / sizeof *spreads, SAMPLED = 4 /* rows of each */ };

static pare_status sampling_run(trial *t)
{
    const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE, .seed = t->s->seed},
                           chunk = {.mode = PARE_LENGTH_CHUNK};
    pare_length_stats s = {0};
    length_data d;
    pare_status st = length_data_new(&d, 2048, LENGTH_BENIGN, 3, spreads[t->part], t->s->seed)
                         ? PARE_OK
                         : pare_no_memory(t->err);
    if (!st) length_data_exact(&d, &full);
    if (!st) st = length_data_attend(&d, &full, 512, PARE_F64, &chunk, &s, t->exec, t->err);
    const double baseline = st ? NAN : length_data_error(&d, PARE_F64);
    if (!st) st = length_data_attend(&d, &full, 512, PARE_F64, &o, &s, t->exec, t->err);
    const double error = st ? NAN : length_data_error(&d, PARE_F64);
    append_numbers(t, (double[]){error, s.relative, (double)s.exact_rows, baseline}, SAMPLED);
    pare_arena_free(d.a);
    return st;
}

static void sampling_table(table_writer *w, const numbers *part, size_t n)
{
    static const char *const what[SAMPLED] = {"largest relative error", "largest relative bound",
                                              "rows computed exactly",
                                              "each chunk by itself (no bound)"};
    begin_table(w, "sampling",
                "N = 2048, M = 512, values around 3: largest error of a row, its bound, rows "
                "computed exactly (eps = 1/2, delta = 0.01)",
                -3);
    for (size_t p = 0; p < n; p++) {
        const double *const v = part[p].v;
        const double bound = fmax(v[1], 1e-12); /* rows that are computed exactly are rounded */
        const char *const data = row_text(w, "logit std %g", spreads[p]);
        for (size_t x = 0; x < SAMPLED; x++) row_ours(w, data, what[x], v[x]);
        row_holds(w, data, "no error is above its bound", v[0] <= bound, v[0] / bound);
    }
}

static const experiment sampling = {.file_prefix = "sampling",
                                    .parts = SPREADS,
                                    .cost = 3,
                                    .run = sampling_run,
                                    .table = sampling_table};

/* ---- the study ------------------------------------------------------------------------------- */

static const experiment *const experiments[] = {&calls, &errors, &sampling};
enum { EXPERIMENTS = sizeof experiments / sizeof *experiments };

const char *length_part(size_t i)
{
    return i < EXPERIMENTS ? experiments[i]->file_prefix : NULL;
}

pare_status study_length(study **out, const study_opts *o, const pare_exec *exec,
                         const pare_ranks *ranks, pare_err *err)
{
    study_context c;
    const setting s = {.seed = o->seed, .full = o->full};
    pare_status st = study_begin(&c, "length", o, exec, ranks, err);
    if (!st) {
        st = make_study_folders(&c);
        st = run_experiments(&c, experiments, EXPERIMENTS, &s, "repro length 1", st);
    }
    return study_end(out, &c, st);
}
