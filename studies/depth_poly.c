/* E10: polynomial attention. The error against the degree, the time against the length, and what
 * moments prove beside the worst case. */
#include "study_depth.h"
#include <pare/poly.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

enum { DEGREES = 7, MOMENT = 6, LENGTHS = 4, PARTS = 3 };
static const double spread[MOMENT] = {.1, .25, .5, 1, 1.5, 2.5};

static size_t poly_parts(bool full)
{
    (void)full;
    return PARTS;
}

/* Queries and keys whose logits have a standard deviation of about `std`, and values. */
typedef struct trio {
    pare_mat q, k, v, exact;
    double range; /* widest column of the values */
} trio;

static pare_status trio_new(trio *t, pare_arena *a, size_t n, size_t d, double std, double offset,
                            pare_rng *rng, pare_err *err)
{
    const double each = sqrt(std) * pow((double)d, -0.25);
    static const pare_pattern full = {.kind = PARE_FULL};
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
    t->range = 0;
    for (size_t c = 0; c < d; c++) {
        double low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            low = fmin(low, t->v.v[i * d + c]);
            high = fmax(high, t->v.v[i * d + c]);
        }
        t->range = fmax(t->range, high - low);
    }
    return pare_attend_f64(&t->exact, &t->q, &t->k, &t->v, 1, &full, NULL, NULL, err);
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

static pare_status try_poly(tried *out, const trio *t, pare_poly_kind kind, int degree,
                            pare_err *err)
{
    static const pare_pattern full = {.kind = PARE_FULL};
    const size_t n = t->q.rows;
    pare_poly_opts o = PARE_POLY_DEFAULT;
    pare_poly_plan plan;
    pare_poly_report report;
    pare_arena *const a = pare_arena_new();
    pare_mat y = a ? pare_mat_new(a, n, t->v.cols) : (pare_mat){0};
    double *const bound = y.v ? pare_alloc(a, n, sizeof *bound) : NULL;
    o.kind = kind;
    o.degree = degree;
    o.tolerance = 1e9; /* no row falls back */
    o.always = true;
    pare_status st = bound
                         ? pare_poly_plan_f64(&plan, a, &t->q, &t->k, t->v.cols, 1, &full, &o, err)
                         : pare_no_memory(err);
    if (!st) st = pare_poly_attend_f64(&y, bound, &report, &plan, &t->q, &t->k, &t->v, 0, err);
    if (!st) {
        qsort(bound, n, sizeof *bound, by_size);
        *out = (tried){.error = san_largest(y.v, t->exact.v, n * t->v.cols) / t->range,
                       .tv = plan.tv.v,
                       .most = bound[n - 1],
                       .median = bound[n / 2]};
    }
    pare_arena_free(a);
    return st;
}

/* ---- degrees --------------------------------------------------------------------------------- */

static pare_status degrees_run(numbers *out, pare_rng *rng, const pare_exec *exec, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    trio t;
    pare_status st = a ? trio_new(&t, a, 512, 8, 0.1, 0.3, rng, err) : pare_no_memory(err);
    for (int g = 0; !st && g < DEGREES; g++) {
        tried r = {0};
        st = try_poly(&r, &t, PARE_POLY_REMEZ, g, err);
        number_put(out, r.error);
        number_put(out, r.tv);
        if (!st) st = pare_progress(exec, "", (uint64_t)g + 1, DEGREES, err);
    }
    pare_arena_free(a);
    return st;
}

static void degrees_rows(table_writer *s, const numbers *n)
{
    double at[DEGREES], error[DEGREES], tv[DEGREES];
    bool sound = true;
    for (size_t g = 0; g < DEGREES; g++) {
        at[g] = (double)g;
        error[g] = n->v[2 * g];
        tv[g] = n->v[2 * g + 1];
        if (!(error[g] <= tv[g] + 1e-12)) sound = false;
    }
    row_curve(s, "degrees", "measured", at, error, DEGREES);
    row_curve(s, "degrees", "proven", at, tv, DEGREES);
    row_ratio(s, "degrees", "degree 0: error", 4e-3, error[0], 2);
    row_ratio(s, "degrees", "degree 2: error", 2e-4, error[2], 2);
    row_ours(s, "degrees", "degree 4: error", error[4]);
    row_shape(s, "degrees", "a degree divides the error by (mean, 0 to 4)",
              error[4] < error[0] / 100 && error[6] < error[4] && sound,
              pow(error[0] / error[4], 0.25));
    row_holds(s, "degrees", "the error is never above what is proven", sound, NAN);
}

/* ---- time ------------------------------------------------------------------------------------ */

/* Of this thread, so that others do not count. */
static double spent(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Best of three, one thread. Times are the only figures that another run does not give again. */
static pare_status time_both(double *exact, double *poly, size_t n, size_t d, pare_rng *rng,
                             pare_err *err)
{
    static const pare_pattern full = {.kind = PARE_FULL};
    const size_t each = n * d;
    pare_poly_opts o = PARE_POLY_DEFAULT;
    pare_poly_report report;
    pare_arena *const a = pare_arena_new();
    float *const v = a ? pare_alloc(a, 4 * each, sizeof *v) : NULL;
    pare_status st = v ? PARE_OK : pare_no_memory(err);
    for (size_t i = 0; !st && i < 3 * each; i++) v[i] = 0.2f * (float)pare_rng_normal(rng);
    pare_mat32 q = {n, d, d, v}, k = {n, d, d, v + each}, x = {n, d, d, v + 2 * each};
    pare_mat32 y = {n, d, d, v + 3 * each};
    *exact = *poly = INFINITY;
    o.kind = PARE_POLY_REMEZ;
    o.degree = 2;
    o.tolerance = 1;
    o.always = true;
    for (size_t i = 0; !st && i < 3; i++) {
        const double start = spent();
        st = pare_attend_f32(&y, &q, &k, &x, 0.25f, &full, NULL, NULL, err);
        const double middle = spent();
        if (!st) st = pare_poly_f32(&y, &report, &q, &k, &x, 0.25, &full, NULL, &o, NULL, err);
        *exact = fmin(*exact, middle - start);
        *poly = fmin(*poly, spent() - middle);
    }
    pare_arena_free(a);
    return st;
}

static size_t length_of(size_t i)
{
    return (size_t)1024 << i;
}

static pare_status time_run(numbers *out, pare_rng *rng, const pare_exec *exec, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < LENGTHS; i++) {
        double exact = NAN, poly = NAN;
        st = time_both(&exact, &poly, length_of(i), 16, rng, err);
        number_put(out, exact);
        number_put(out, poly);
        if (!st) st = pare_progress(exec, "", i + 1, LENGTHS, err);
    }
    return st;
}

static void time_rows(table_writer *s, const numbers *n)
{
    double at[LENGTHS], exact[LENGTHS], poly[LENGTHS];
    for (size_t i = 0; i < LENGTHS; i++) {
        at[i] = (double)length_of(i);
        exact[i] = n->v[2 * i];
        poly[i] = n->v[2 * i + 1];
    }
    const double crossing = at[0] * poly[0] / exact[0];
    row_curve(s, "time", "exact, s", at, exact, LENGTHS);
    row_curve(s, "time", "polynomial, s", at, poly, LENGTHS);
    row_near(s, "time", "exact: slope", 2, log_slope(at, exact, LENGTHS), 0.4);
    row_near(s, "time", "polynomial: slope", 1, log_slope(at, poly, LENGTHS), 0.4);
    row_ours(s, "time", "exact / polynomial at 8192", exact[3] / poly[3]);
    row_ours(s, "time", "crossing at n (features: 153)", crossing);
    row_shape(s, "time", "the gain grows with n", exact[3] / poly[3] > 2 * exact[0] / poly[0],
              exact[3] / poly[3] / (exact[0] / poly[0]));
}

/* ---- moments --------------------------------------------------------------------------------- */

static pare_status moments_run(numbers *out, const setting *s, pare_rng *rng, const pare_exec *exec,
                               pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < MOMENT; i++) {
        pare_arena *const a = pare_arena_new();
        trio t;
        tried moment = {0}, worst = {0};
        st = a ? trio_new(&t, a, s->full ? 2048 : 768, 8, spread[i], 0.3, rng, err)
               : pare_no_memory(err);
        if (!st) st = try_poly(&moment, &t, PARE_POLY_TAYLOR, 3, err);
        if (!st) st = try_poly(&worst, &t, PARE_POLY_REMEZ, 3, err);
        number_put(out, moment.error);
        number_put(out, moment.most);
        number_put(out, moment.median);
        number_put(out, worst.tv);
        pare_arena_free(a);
        if (!st) st = pare_progress(exec, "", i + 1, MOMENT, err);
    }
    return st;
}

/* Our audit, g = 3: measured, moment max, median, worst case. */
static const double moment_seen[MOMENT][4] = {
    {6.0e-6, 2.6e-4, 1.5e-5, 3.3e-3}, {1.5e-4, 1.6e-2, 7.8e-4, .11},
    {2.2e-3, .28, 1.3e-2, .61},       {4.0e-2, 54, .43, INFINITY},
    {46, INFINITY, 5.5, INFINITY},    {53, INFINITY, 1.9e6, INFINITY}};

static void moments_rows(table_writer *s, const numbers *n)
{
    static const char *const what[] = {"measured", "moment bound, largest", "moment bound, median",
                                       "worst case, Remez"};
    bool sound = true;
    for (size_t i = 0; i < 3; i++) {
        char *const data = s->st ? NULL : pare_sprintf(s->r->arena, "spread %g", spread[i]);
        if (!s->st && !data) s->st = pare_no_memory(s->err);
        for (size_t k = 0; k < 4 && !s->st; k++)
            row_ratio(s, data, what[k], moment_seen[i][k], n->v[4 * i + k], 5);
    }
    for (size_t i = 0; i < MOMENT; i++)
        if (!(n->v[4 * i] <= n->v[4 * i + 1] * (1 + 1e-9) + 1e-13)) sound = false;
    row_holds(s, "moments", "no error is above its moment bound", sound, NAN);
    row_shape(s, "moments", "spread 0.1: the median is below the worst case by",
              n->v[3] > 10 * n->v[2], n->v[3] / n->v[2]);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static pare_status poly_run(numbers *out, const setting *s, size_t part, const pare_exec *exec,
                            pare_err *err)
{
    pare_rng rng = pare_rng_at(s->seed, 1000 + part);
    if (part == 0) return degrees_run(out, &rng, exec, err);
    if (part == 1) return time_run(out, &rng, exec, err);
    return moments_run(out, s, &rng, exec, err);
}

static void poly_table(table_writer *s, const numbers *part, size_t n, const setting *of)
{
    (void)n;
    (void)of;
    begin_table(
        s, "E10 polynomials",
        "polynomial attention: the error falls geometrically with the degree (d = 8, logits "
        "of std 0.25), the time grows with n where exact attention grows with n^2 (d = 16, "
        "degree 2, one thread), moments prove far more than the worst case (d = 8, degree 3)",
        -3, 40);
    degrees_rows(s, &part[0]);
    time_rows(s, &part[1]);
    moments_rows(s, &part[2]);
}

const experiment polynomials = {
    .stem = "poly", .parts = poly_parts, .cost = 8, .run = poly_run, .table = poly_table};
