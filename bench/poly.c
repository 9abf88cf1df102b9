/* Polynomial attention beside our own exact kernel, in one process, in turns, the best of each.
 *
 *   bench/poly                 all cases
 *   bench/poly WORD...         only the cases whose name has one of the words
 *   bench/poly --cpu ...       times are the process's CPU time over its threads: for a machine
 *                              that others use as well
 *
 * Data: poly_data.h. The tolerance is 1e-3 of the range of the values. `exact` says how the exact
 * time was taken: all rows, or a slice of 2048 rows (in the middle of a causal pattern) times
 * n / 2048. `proven` and `measured` are errors in units of the range; measured on 64 rows, in f64.
 */
#include "attention/attend.h"
#include "poly_data.h"

enum { RUNS = 7, SLICE = 2048, ALL_ROWS = 16384, CHECKED = 64 };

typedef struct bench {
    poly_data in;
    pare_mat32 y, e;
} bench;

static bool whole(const poly_data *b)
{
    return b->n <= ALL_ROWS;
}

static double exact(bench *t)
{
    const poly_data *const b = &t->in;
    const double start = seconds(b);
    if (whole(b)) {
        if (pare_attend_f32(
                &t->e,
                &(pare_attention_args32){
                    .q = &b->q, .k = &b->k, .v = &b->v, .scale = 1, .pattern = &b->pattern},
                &b->exec, NULL))
            stop("out of memory");
        return seconds(b) - start;
    }
    float *const ml = malloc(2 * SLICE * sizeof *ml);
    const size_t from = b->n / 2 - SLICE / 2;
    const pare_mat32 q = {SLICE, b->d, b->d, b->q.v + from * b->d};
    pare_partial part = {{SLICE, b->d, b->d, t->e.v}, ml, ml ? ml + SLICE : NULL};
    const int64_t sees = b->pattern.kind == PARE_CAUSAL ? (int64_t)from + 1 : PARE_VIS_ALL;
    if (!ml || pare_attend_partial_f32(&part, &q, &b->k, &b->v, 1, sees, &b->exec, NULL))
        stop("out of memory");
    free(ml);
    return (seconds(b) - start) * (double)b->n / SLICE;
}

static double poly(bench *t, pare_poly_report *report)
{
    const poly_data *const b = &t->in;
    const pare_poly_opts o = PARE_POLY_OPTS_DEFAULT;
    const double start = seconds(b);
    if (pare_poly_f32(&t->y, report,
                      &(pare_attention_args32){
                          .q = &b->q, .k = &b->k, .v = &b->v, .scale = 1, .pattern = &b->pattern},
                      &o, &b->exec, NULL))
        stop("out of memory");
    return seconds(b) - start;
}

/* The largest error of one row, in units of the range of each column. */
static double row_error(const bench *t, size_t i, double *sum, const double *range)
{
    const poly_data *const b = &t->in;
    const size_t seen = pare_visible(&b->pattern, NULL, b->n, i).count;
    double weight = 0, worst = 0;
    memset(sum, 0, b->d * sizeof *sum);
    for (size_t j = 0; j < seen; j++) {
        double s = 0;
        for (size_t c = 0; c < b->d; c++)
            s += (double)b->q.v[i * b->d + c] * (double)b->k.v[j * b->d + c];
        const double w = exp(s);
        weight += w;
        for (size_t c = 0; c < b->d; c++) sum[c] += w * (double)b->v.v[j * b->d + c];
    }
    for (size_t c = 0; c < b->d; c++)
        worst = fmax(worst, fabs((double)t->y.v[i * b->d + c] - sum[c] / weight) / range[c]);
    return worst;
}

static double measured(const bench *t)
{
    const poly_data *const b = &t->in;
    double *const sum = calloc(2 * b->d, sizeof *sum), worst = 0;
    if (!sum) stop("out of memory");
    double *const range = sum + b->d;
    for (size_t c = 0; c < b->d; c++) {
        double l = INFINITY, h = -INFINITY;
        for (size_t j = 0; j < b->n; j++) {
            l = fmin(l, (double)b->v.v[j * b->d + c]);
            h = fmax(h, (double)b->v.v[j * b->d + c]);
        }
        range[c] = h - l;
    }
    for (size_t r = 0; r < CHECKED; r++)
        worst = fmax(worst, row_error(t, (r + 1) * b->n / CHECKED - 1, sum, range));
    free(sum);
    return worst;
}

static void one(const poly_case *c, bool cpu)
{
    bench b = {.in = poly_data_of(c, cpu)};
    b.y = randoms(&b.in, 0, 0), b.e = randoms(&b.in, 0, 0);
    pare_poly_report r;
    double best_exact = INFINITY, best_poly = INFINITY;
    const bool million =
        c->n > 500000; /* the exact kernel would take minutes for its slice alone */
    for (int i = 0; i < (million ? 2 : RUNS); i++) {
        if (!million || i == 0) best_exact = fmin(best_exact, exact(&b));
        best_poly = fmin(best_poly, poly(&b, &r));
    }
    char proven[40];
    printf("%s,%zu,%zu,%d,%s,%.2f,%.2f,%.1f,%zu,%zu,%zu,%zu,%s,%.1e\n", c->name, c->n, c->d,
           c->threads, whole(&b.in) ? "all" : "slice", 1e3 * best_exact, 1e3 * best_poly,
           best_exact / best_poly, r.degree, r.features, r.rows_moment, r.rows_exact,
           pare_ub_format(proven, r.proven, 2), measured(&b));
    pare_arena_free(b.in.a);
}

int main(int argc, char **argv)
{
    static const poly_case cases[] = {
        {"full-8-16k", PARE_FULL, 16384, 8, 1},
        {"full-8-131k", PARE_FULL, 131072, 8, 1},
        {"full-16-16k", PARE_FULL, 16384, 16, 1},
        {"full-16-131k", PARE_FULL, 131072, 16, 1},
        {"causal-8-16k", PARE_CAUSAL, 16384, 8, 1},
        {"causal-8-131k", PARE_CAUSAL, 131072, 8, 1},
        {"causal-16-16k", PARE_CAUSAL, 16384, 16, 1},
        {"causal-16-131k", PARE_CAUSAL, 131072, 16, 1},
        {"full-16-1M", PARE_FULL, 1000000, 16, 2},
        {"causal-16-1M", PARE_CAUSAL, 1000000, 16, 2},
    };
    printf("case,n,d,threads,exact,exact_ms,poly_ms,ratio,degree,features,rows_moment,rows_exact,"
           "proven,measured\n");
    poly_run_cases(argc, argv, cases, sizeof cases / sizeof *cases, one);
    return 0;
}
