/* depth_poly.c - E10: polynomial attention. The error against the degree, the time against the
 * length, and what moments prove beside the worst case. */
#include "study_depth.h"
#include <pare/attention.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { DEGREES = 7, MOMENT = 6, LENGTHS = 4, PARTS = 3 };
static const double spread[MOMENT] = {.1, .25, .5, 1, 1.5, 2.5};

/* Queries and keys whose logits have a standard deviation of about `std`, and values. */
typedef struct trio {
    pare_mat q, k, v, exact;
    double range; /* widest column of the values */
} trio;

static const pare_pattern full_pattern = {.kind = PARE_FULL};

static pare_status trio_new(trio *t, pare_arena *a, size_t n, size_t d, double std, double offset,
                            pare_rng *rng, pare_err *err)
{
    const double each = sqrt(std) * pow((double)d, -0.25);
    t->q = pare_mat_new(a, n, d);
    t->k = pare_mat_new(a, n, d);
    t->v = pare_mat_new(a, n, d);
    t->exact = pare_mat_new(a, n, d);
    if (!t->q.v || !t->k.v || !t->v.v || !t->exact.v) return pare_no_memory(err);
    for (size_t i = 0; i < n * d; i++) {
        t->q.v[i] = each * pare_rng_normal(rng) + offset;
        t->k.v[i] = each * pare_rng_normal(rng) + offset;
        t->v.v[i] = pare_rng_normal(rng);
    }
    t->range = widest_column(t->v.v, n, d);
    const pare_attention_args x = {
        .q = &t->q, .k = &t->k, .v = &t->v, .scale = 1, .pattern = &full_pattern};
    return pare_attend_f64(&t->exact, &x, NULL, err);
}

/* Error and bounds in units of the values' range. */
typedef struct tried {
    double error, tv, most, median;
} tried;

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static pare_status try_poly(tried *out, pare_arena *a, const trio *t, pare_poly_kind kind,
                            int degree, pare_err *err)
{
    const size_t n = t->q.rows;
    pare_poly_opts o = PARE_POLY_OPTS_DEFAULT;
    pare_poly_report report;
    pare_mat y = pare_mat_new(a, n, t->v.cols);
    double *const bound = y.v ? pare_alloc(a, n, sizeof *bound) : NULL;
    if (!bound) return pare_no_memory(err);
    o.kind = kind;
    o.degree = degree;
    o.tolerance = 1e9; /* no row falls back */
    o.always = true;
    const pare_attention_args x = {
        .q = &t->q, .k = &t->k, .v = &t->v, .scale = 1, .pattern = &full_pattern};
    const pare_status st = pare_poly_f64(&y, bound, &report, &x, &o, err);
    if (st) return st;
    qsort(bound, n, sizeof *bound, by_size);
    *out = (tried){.error = san_largest(y.v, t->exact.v, n * t->v.cols) / t->range,
                   .tv = report.worst_case.v,
                   .most = bound[n - 1],
                   .median = bound[n / 2]};
    return PARE_OK;
}

/* ---- degrees --------------------------------------------------------------------------------- */

static pare_status degrees_run(trial *t, pare_rng *rng)
{
    trio x;
    pare_status st = trio_new(&x, t->a, 512, 8, 0.1, 0.3, rng, t->err);
    for (size_t g = 0; !st && g < DEGREES; g++) {
        tried r = {0};
        st = try_poly(&r, t->a, &x, PARE_POLY_REMEZ, (int)g, t->err);
        append_numbers(t, (double[]){r.error, r.tv}, 2);
        if (!st) st = trial_progress(t, g + 1, DEGREES);
    }
    return st;
}

static void degrees_rows(table_writer *w, const numbers *n)
{
    double at[DEGREES], error[DEGREES], tv[DEGREES];
    bool sound = true;
    for (size_t g = 0; g < DEGREES; g++) {
        at[g] = (double)g;
        error[g] = n->v[2 * g];
        tv[g] = n->v[2 * g + 1];
        if (!(error[g] <= tv[g] + 1e-12)) sound = false;
    }
    row_curve(w, "degrees", "measured", at, error, DEGREES);
    row_curve(w, "degrees", "proven", at, tv, DEGREES);
    row_ratio(w, "degrees", "degree 0: error", 4e-3, error[0], 2);
    row_ratio(w, "degrees", "degree 2: error", 2e-4, error[2], 2);
    row_ours(w, "degrees", "degree 4: error", error[4]);
    row_shape(w, "degrees", "a degree divides the error by (mean, 0 to 4)",
              error[4] < error[0] / 100 && error[6] < error[4] && sound,
              pow(error[0] / error[4], 0.25));
    row_holds(w, "degrees", "the error is never above what is proven", sound, NAN);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Of this thread, so that others do not count. */
static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t length_of(size_t i)
{
    return (size_t)1024 << i;
}

/* Exact and polynomial attention: best of three, one thread. Times are the only figures that
 * another run does not give again. */
static pare_status time_run(trial *t, pare_rng *rng)
{
    const size_t d = 16;
    pare_poly_opts o = PARE_POLY_OPTS_DEFAULT;
    pare_poly_report report;
    pare_status st = PARE_OK;
    o.kind = PARE_POLY_REMEZ;
    o.degree = 2;
    o.tolerance = 1;
    o.always = true;
    for (size_t l = 0; !st && l < LENGTHS; l++) {
        const size_t n = length_of(l), each = n * d;
        float *const v = pare_alloc(t->a, 4 * each, sizeof *v);
        if (!v) return pare_no_memory(t->err);
        for (size_t i = 0; i < 3 * each; i++) v[i] = 0.2f * (float)pare_rng_normal(rng);
        pare_mat32 q = {n, d, d, v}, k = {n, d, d, v + each}, x = {n, d, d, v + 2 * each};
        pare_mat32 y = {n, d, d, v + 3 * each};
        const pare_attention_args32 head = {
            .q = &q, .k = &k, .v = &x, .scale = 0.25, .pattern = &full_pattern};
        double exact = INFINITY, poly = INFINITY;
        for (size_t i = 0; !st && i < 3; i++) {
            const double start = cpu_seconds();
            st = pare_attend_f32(&y, &head, NULL, t->err);
            const double middle = cpu_seconds();
            if (!st) st = pare_poly_f32(&y, &report, &head, &o, NULL, t->err);
            exact = fmin(exact, middle - start);
            poly = fmin(poly, cpu_seconds() - middle);
        }
        append_numbers(t, (double[]){exact, poly}, 2);
        if (!st) st = trial_progress(t, l + 1, LENGTHS);
    }
    return st;
}

static void time_rows(table_writer *w, const numbers *n)
{
    double at[LENGTHS], exact[LENGTHS], poly[LENGTHS];
    for (size_t i = 0; i < LENGTHS; i++) {
        at[i] = (double)length_of(i);
        exact[i] = n->v[2 * i];
        poly[i] = n->v[2 * i + 1];
    }
    const double crossing = at[0] * poly[0] / exact[0];
    row_curve(w, "time", "exact, s", at, exact, LENGTHS);
    row_curve(w, "time", "polynomial, s", at, poly, LENGTHS);
    row_near(w, "time", "exact: slope", 2, log_slope(at, exact, LENGTHS), 0.4);
    row_near(w, "time", "polynomial: slope", 1, log_slope(at, poly, LENGTHS), 0.4);
    row_ours(w, "time", "exact / polynomial at 8192", exact[3] / poly[3]);
    row_ours(w, "time", "crossing at n (features: 153)", crossing);
    row_shape(w, "time", "the gain grows with n", exact[3] / poly[3] > 2 * exact[0] / poly[0],
              exact[3] / poly[3] / (exact[0] / poly[0]));
}

/* ---- moments --------------------------------------------------------------------------------- */

static pare_status moments_run(trial *t, pare_rng *rng)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < MOMENT; i++) {
        const pare_mark mark = pare_arena_mark(t->a);
        trio x;
        tried moment = {0}, worst = {0};
        st = trio_new(&x, t->a, t->s->full ? 2048 : 768, 8, spread[i], 0.3, rng, t->err);
        if (!st) st = try_poly(&moment, t->a, &x, PARE_POLY_TAYLOR, 3, t->err);
        if (!st) st = try_poly(&worst, t->a, &x, PARE_POLY_REMEZ, 3, t->err);
        append_numbers(t, (double[]){moment.error, moment.most, moment.median, worst.tv}, 4);
        pare_arena_reset(t->a, mark);
        if (!st) st = trial_progress(t, i + 1, MOMENT);
    }
    return st;
}

/* Our audit, g = 3: measured, moment max, median, worst case. */
static const double moment_seen[MOMENT][4] = {
    {6.0e-6, 2.6e-4, 1.5e-5, 3.3e-3}, {1.5e-4, 1.6e-2, 7.8e-4, .11},
    {2.2e-3, .28, 1.3e-2, .61},       {4.0e-2, 54, .43, INFINITY},
    {46, INFINITY, 5.5, INFINITY},    {53, INFINITY, 1.9e6, INFINITY}};

static void moments_rows(table_writer *w, const numbers *n)
{
    static const char *const what[] = {"measured", "moment bound, largest", "moment bound, median",
                                       "worst case, Remez"};
    bool sound = true;
    for (size_t i = 0; i < 3; i++) {
        const char *const data = row_text(w, "spread %g", spread[i]);
        for (size_t k = 0; k < 4; k++)
            row_ratio(w, data, what[k], moment_seen[i][k], n->v[4 * i + k], 5);
    }
    for (size_t i = 0; i < MOMENT; i++)
        if (!(n->v[4 * i] <= n->v[4 * i + 1] * (1 + 1e-9) + 1e-13)) sound = false;
    row_holds(w, "moments", "no error is above its moment bound", sound, NAN);
    row_shape(w, "moments", "spread 0.1: the median is below the worst case by",
              n->v[3] > 10 * n->v[2], n->v[3] / n->v[2]);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static pare_status poly_run(trial *t)
{
    static pare_status (*const run[PARTS])(trial *, pare_rng *) = {degrees_run, time_run,
                                                                   moments_run};
    pare_rng rng = pare_rng_at(t->s->seed, 1000 + t->part);
    return run[t->part](t, &rng);
}

static void poly_table(table_writer *w, const numbers *part, size_t n)
{
    (void)n;
    begin_table(
        w, "E10 polynomials",
        "polynomial attention: the error falls geometrically with the degree (d = 8, logits "
        "of std 0.25), the time grows with n where exact attention grows with n^2 (d = 16, "
        "degree 2, one thread), moments prove far more than the worst case (d = 8, degree 3)",
        -3);
    degrees_rows(w, &part[0]);
    time_rows(w, &part[1]);
    moments_rows(w, &part[2]);
}

const experiment polynomials = {
    .file_prefix = "poly", .parts = PARTS, .cost = 8, .run = poly_run, .table = poly_table};
