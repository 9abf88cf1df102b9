/* pare repro length: calls against N/M for every mask and mode, errors of the robust modes and of
 * the paper's own algorithm, and sampling against its bound. Everything is run, nothing is looked
 * up. */
#include "repro.h"
#include <math.h>
#include <pare/length.h>
#include <string.h>

enum { M_COUNT = 16, M_ERROR = 32, D = 16, RATIOS = 4, CURVES = 6 };
static const size_t ratios[RATIOS] = {2, 8, 32, 64};

typedef struct study {
    frame f;
    sheet s;
    double *x, *y[CURVES]; /* calls over N/M */
} study;

/* ---- data: three regimes --------------------------------------------------------------------- */

typedef struct data {
    size_t n;
    double *q, *k, *v, *y, *exact;
    float *qf, *kf, *vf, *yf;
    pare_arena *a;
} data;

static const char *const regimes[] = {"benign", "peaky", "wide"};

static bool make_data(data *d, size_t n, int regime, double mean, double scale, uint64_t seed)
{
    *d = (data){.n = n, .a = pare_arena_new()};
    if (!d->a) return false;
    double **const wide[] = {&d->q, &d->k, &d->v, &d->y, &d->exact};
    float **const narrow[] = {&d->qf, &d->kf, &d->vf, &d->yf};
    for (size_t i = 0; i < 5; i++)
        if (!(*wide[i] = pare_alloc(d->a, n * D, sizeof **wide[i]))) return false;
    for (size_t i = 0; i < 4; i++)
        if (!(*narrow[i] = pare_alloc(d->a, n * D, sizeof **narrow[i]))) return false;
    pare_rng r = pare_rng_at(seed, 17);
    for (size_t i = 0; i < n * D; i++) {
        const double size = scale * (regime == 1 ? 8 : 1) / sqrt((double)D);
        double q = size * pare_rng_normal(&r), k = pare_rng_normal(&r);
        if (regime == 2 && i % D == 0) q = 90.0 * (double)(i / D) / (double)n - 45, k = 1;
        d->q[i] = (double)(d->qf[i] = (float)q);
        d->k[i] = (double)(d->kf[i] = (float)k);
        d->v[i] = (double)(d->vf[i] = (float)(mean + pare_rng_normal(&r)));
    }
    return true;
}

/* In f64 with long double sums: the yardstick. */
static void exact_rows(data *d, const pare_pattern *p)
{
    for (size_t i = 0; i < d->n; i++) {
        const pare_keys keys = pare_visible(p, NULL, d->n, i);
        long double top = -INFINITY, sum = 0, y[D] = {0};
        for (size_t x = 0; x < keys.count; x++) {
            long double s = 0;
            for (size_t e = 0; e < D; e++)
                s += (long double)d->q[i * D + e] * (long double)d->k[pare_key(&keys, x) * D + e];
            const long double fade = s > top ? expl(top - s) : 1, w = s > top ? 1 : expl(s - top);
            if (s > top) top = s;
            sum = sum * fade + w;
            for (size_t e = 0; e < D; e++)
                y[e] = y[e] * fade + w * (long double)d->v[pare_key(&keys, x) * D + e];
        }
        for (size_t e = 0; e < D; e++) d->exact[i * D + e] = (double)(y[e] / sum);
    }
}

/* Largest |y - exact|_2 / |exact|_2 of a row. */
static double error_of(const data *d, pare_dtype t)
{
    double most = 0;
    for (size_t i = 0; i < d->n; i++) {
        double off = 0, size = 0;
        for (size_t e = 0; e < D; e++) {
            const double y = t == PARE_F32 ? (double)d->yf[i * D + e] : d->y[i * D + e];
            off += (y - d->exact[i * D + e]) * (y - d->exact[i * D + e]);
            size += d->exact[i * D + e] * d->exact[i * D + e];
        }
        if (!(sqrt(off / size) <= most)) most = sqrt(off / size);
    }
    return most;
}

static pare_length_job job_of(data *d, pare_dtype t)
{
    const bool f = t == PARE_F32;
    return (pare_length_job){.n = d->n,
                             .dk = D,
                             .dv = D,
                             .q = f ? (void *)d->qf : d->q,
                             .k = f ? (void *)d->kf : d->k,
                             .v = f ? (void *)d->vf : d->v,
                             .ldq = D,
                             .ldk = D,
                             .ldv = D,
                             .scale = 1,
                             .y = f ? (void *)d->yf : d->y,
                             .ldy = D};
}

static pare_status attend(study *w, data *d, const pare_pattern *p, uint32_t m, pare_dtype t,
                          const pare_length_opts *o, pare_length_stats *s, pare_err *err)
{
    pare_oracle orc;
    const pare_length_job one = job_of(d, t);
    pare_status st = pare_oracle_cpu(&orc, t, m, w->f.exec, err);
    if (st) return st;
    st = pare_length_attend(&orc, o, &one, 1, p, NULL, s, w->f.exec, err);
    pare_oracle_free(&orc);
    return st;
}

/* ---- calls ----------------------------------------------------------------------------------- */

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
     {.mode = PARE_LENGTH_PAPER, .features = CAUSAL_CALLS}}};
enum { WAYS = sizeof ways / sizeof *ways };

static pare_status planned(study *w, const way *x, size_t n, double *calls)
{
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(w->f.err);
    pare_length_plan plan;
    const pare_length_head h = {0, D, D};
    const pare_oracle_caps caps = {.max_len = M_COUNT,
                                   .features = x->o.features ? x->o.features : PARE_ORC_PARTIAL,
                                   .dtype = PARE_F64,
                                   .exp_flush = 746,
                                   .w_min = 0x1p-900};
    const pare_status st =
        pare_length_plan_make(&plan, a, &h, 1, n, &x->p, NULL, &caps, &x->o, w->f.err);
    *calls = st ? NAN : (double)(plan.cost.formula ? plan.cost.formula : plan.cost.calls);
    pare_arena_free(a);
    return st;
}

static pare_status count_calls(study *w)
{
    pare_arena *const a = w->f.r->arena;
    sheet_open(&w->s, "calls", "Calls of one head, M = 16: planned (or closed form), and executed",
               0, WAYS * RATIOS);
    for (size_t x = 0; x < WAYS; x++)
        for (size_t i = 0; i < RATIOS; i++) {
            const size_t n = ratios[i] * M_COUNT;
            pare_length_stats s;
            data d;
            double want = NAN;
            pare_status st =
                make_data(&d, n, 0, 0, 1, w->f.o->seed) ? PARE_OK : pare_no_memory(w->f.err);
            if (!st) st = attend(w, &d, &ways[x].p, M_COUNT, PARE_F64, &ways[x].o, &s, w->f.err);
            pare_arena_free(d.a);
            if (!st) st = planned(w, &ways[x], n, &want);
            if (st) return st;
            w->x[i] = (double)ratios[i];
            if (x < CURVES) w->y[x][i] = (double)s.calls;
            sheet_put(&w->s,
                      (pare_repro_row){.data = pare_sprintf(a, "N/M = %zu", ratios[i]),
                                       .what = ways[x].name,
                                       .published = want,
                                       .published_std = NAN,
                                       .ours = (double)s.calls,
                                       .ours_std = NAN,
                                       .verdict =
                                           (double)s.calls == want ? PARE_REPRODUCED : PARE_DIFFERS,
                                       .note = s.merge_calls ? "aggregation calls are in it" : "",
                                       .from = "pare length --dry-run"});
        }
    return w->s.st;
}

/* ---- errors ---------------------------------------------------------------------------------- */

static pare_status one_error(study *w, data *d, const way *x, const char *where, pare_dtype t)
{
    pare_err why = {0};
    pare_length_stats s;
    const pare_status st = attend(w, d, &x->p, M_ERROR, t, &x->o, &s, &why);
    if (st == PARE_ERR_MEMORY) return pare_no_memory(w->f.err);
    const bool paper = x->o.mode == PARE_LENGTH_PAPER;
    const double off = st ? NAN : error_of(d, t);
    pare_arena *const a = w->f.r->arena;
    sheet_put(&w->s, (pare_repro_row){
                         .data = where,
                         .what = pare_sprintf(a, "%s, %s", x->name, t == PARE_F32 ? "f32" : "f64"),
                         .published = NAN,
                         .published_std = NAN,
                         .ours = off,
                         .ours_std = NAN,
                         .verdict = paper && !(off < 1e-2) ? PARE_DIFFERS : PARE_ADDED,
                         .note = st                    ? "fails, and says so: no number comes out"
                                 : paper && off > 1e-2 ? "wrong"
                                                       : "",
                         .from = "pare_length_attend"});
    return PARE_OK;
}

static pare_status measure_errors(study *w)
{
    static const way tried[] = {{"full, native", {.kind = PARE_FULL}, {.mode = PARE_LENGTH_NATIVE}},
                                {"full, zero reference",
                                 {.kind = PARE_FULL},
                                 {.mode = PARE_LENGTH_ZEROREF, .features = FULL_CALLS}},
                                {"full, the paper's",
                                 {.kind = PARE_FULL},
                                 {.mode = PARE_LENGTH_PAPER, .features = FULL_CALLS}},
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
    pare_status st = PARE_OK;
    sheet_open(&w->s, "errors",
               "Largest |error| / |row|, M = 32: robust modes, and the paper's with eps = 1e-6", -2,
               (size_t)TRIED * 3 * 2 * 2);
    for (size_t i = 0; i < 2; i++)
        for (int regime = 0; regime < 3; regime++) {
            const size_t ratio = i ? 8 : 2;
            data d;
            st = make_data(&d, ratio * M_ERROR, regime, 0, 1, w->f.o->seed)
                     ? PARE_OK
                     : pare_no_memory(w->f.err);
            const char *const where =
                pare_sprintf(w->f.r->arena, "%s, N/M = %zu", regimes[regime], ratio);
            for (size_t x = 0; x < TRIED && !st; x++) {
                exact_rows(&d, &tried[x].p);
                st = one_error(w, &d, &tried[x], where, PARE_F32);
                if (!st) st = one_error(w, &d, &tried[x], where, PARE_F64);
            }
            pare_arena_free(d.a);
            if (st) return st;
        }
    return w->s.st;
}

/* ---- sampling -------------------------------------------------------------------------------- */

static pare_status measure_sampling(study *w)
{
    static const double spreads[] = {0.05, 0.25, 1};
    pare_arena *const a = w->f.r->arena;
    const pare_pattern full = {.kind = PARE_FULL};
    sheet_open(
        &w->s, "sampling",
        "N = 2048, M = 512, values around 3: largest error of a row, its bound, rows computed "
        "exactly (eps = 1/2, delta = 0.01)",
        -3, 4 * 3);
    for (size_t i = 0; i < 3; i++) {
        data d;
        pare_length_stats s, c;
        pare_status st = make_data(&d, 2048, 0, 3, spreads[i], w->f.o->seed)
                             ? PARE_OK
                             : pare_no_memory(w->f.err);
        if (!st) exact_rows(&d, &full);
        const pare_length_opts o = {.mode = PARE_LENGTH_SAMPLE, .seed = w->f.o->seed},
                               chunk = {.mode = PARE_LENGTH_CHUNK};
        if (!st) st = attend(w, &d, &full, 512, PARE_F64, &chunk, &c, w->f.err);
        const double baseline = st ? NAN : error_of(&d, PARE_F64);
        if (!st) st = attend(w, &d, &full, 512, PARE_F64, &o, &s, w->f.err);
        const double off = st ? NAN : error_of(&d, PARE_F64);
        pare_arena_free(d.a);
        if (st) return st;
        const char *const where = pare_sprintf(a, "logit std %g", spreads[i]);
        const struct {
            const char *what;
            double v;
        } rows[] = {{"largest relative error", off},
                    {"largest relative bound", s.relative},
                    {"rows computed exactly", (double)s.exact_rows},
                    {"each chunk by itself", baseline}};
        for (size_t x = 0; x < 4; x++)
            sheet_put(&w->s, (pare_repro_row){.data = where,
                                              .what = rows[x].what,
                                              .published = NAN,
                                              .published_std = NAN,
                                              .ours = rows[x].v,
                                              .ours_std = NAN,
                                              .verdict = PARE_ADDED,
                                              .note = x == 3 ? "no bound" : "",
                                              .from = "pare_length_attend"});
    }
    return w->s.st;
}

static pare_status make_room(study *w)
{
    pare_repro *const r = w->f.r;
    r->tables = pare_alloc(r->arena, 3, sizeof *r->tables);
    r->curves = pare_alloc(r->arena, CURVES, sizeof *r->curves);
    w->x = pare_alloc(r->arena, RATIOS, sizeof *w->x);
    bool ok = r->tables && r->curves && w->x;
    for (size_t i = 0; i < CURVES; i++) {
        w->y[i] = pare_alloc(r->arena, RATIOS, sizeof *w->y[i]);
        ok = ok && w->y[i];
        if (ok)
            r->curves[i] = (pare_repro_curve){.table = "calls",
                                              .data = "M = 16",
                                              .what = ways[i].name,
                                              .n = RATIOS,
                                              .x = w->x,
                                              .y = w->y[i]};
    }
    r->ncurves = CURVES;
    return ok ? PARE_OK : pare_no_memory(w->f.err);
}

pare_status pare_repro_length(pare_repro **out, const pare_repro_opts *o, const pare_exec *exec,
                              const pare_ranks *ranks, pare_err *err)
{
    study w = {0};
    pare_status st = frame_open(&w.f, "length", o, exec, ranks, err);
    if (st) {
        *out = NULL;
        return st;
    }
    w.s = (sheet){.r = w.f.r, .err = err};
    st = frame_folders(&w.f);
    if (!st) st = make_room(&w);
    if (!st) st = count_calls(&w);
    if (!st) st = measure_errors(&w);
    if (!st) st = measure_sampling(&w);
    return frame_close(out, &w.f, st);
}
