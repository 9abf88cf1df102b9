/* Polynomial attention there and back beside our own exact kernels, in one process, in turns, the
 * best of each.
 *
 *   bench/poly_train             all cases
 *   bench/poly_train WORD...     only the cases whose name has one of the words
 *   bench/poly_train --cpu ...   CPU time of the process over its threads, for a machine that
 * others use as well
 *
 * Data: poly_data.h. The tolerance is 1e-3 of the range of the values.
 * `there` plans and attends, `back` goes back; `exact` is both with the exact kernels, "-" where it
 * would take minutes. `gap` is the largest difference from the exact gradient, of any of dq, dk and
 * dv in units of its largest number; "-" likewise. */
#include "attention/attend.h"
#include "attention/polynomial.h"
#include "poly_data.h"

enum { RUNS = 3, EXACT_ROWS = 16384 };

typedef struct bench {
    poly_data in;
    pare_mat32 dy, y;
    pare_mat32 grad[3], want[3]; /* dq, dk, dv */
    float *lse;
    uint8_t *exact;
} bench;

static void clear(pare_mat32 m[3])
{
    for (size_t i = 0; i < 3; i++) memset(m[i].v, 0, m[i].rows * m[i].ld * sizeof *m[i].v);
}

static double exact(bench *t)
{
    const poly_data *const b = &t->in;
    const pare_saved32 kept = {.lse = t->lse};
    clear(t->want);
    const double start = seconds(b);
    if (pare_attend_saving_f32(&t->y, &kept, &b->q, &b->k, &b->v, 1, &b->pattern, NULL, NULL,
                               &b->exec, NULL) ||
        pare_attend_backward_f32(&t->want[0], &t->want[1], &t->want[2], &t->dy, &b->q, &b->k, &b->v,
                                 &t->y, &kept, 1, &b->pattern, NULL, NULL, &b->exec, NULL))
        stop("out of memory");
    return seconds(b) - start;
}

static void poly(bench *t, double *there, double *back, pare_poly_report *report)
{
    const poly_data *const b = &t->in;
    const pare_poly_opts o = PARE_POLY_OPTS_DEFAULT;
    const pare_poly_saved kept = {.exact = t->exact};
    pare_arena *const a = pare_arena_new();
    pare_poly_plan plan;
    clear(t->grad);
    const double start = seconds(b);
    if (!a ||
        pare_poly_plan_f32(&plan, a, &b->q, &b->k, b->d, 1, &b->pattern, &o, &b->exec, NULL) ||
        pare_poly_attend_f32(&t->y, &kept, report, &plan, &b->q, &b->k, &b->v, &b->exec, NULL))
        stop("out of memory");
    const double middle = seconds(b);
    if (pare_poly_backward_f32(&t->grad[0], &t->grad[1], &t->grad[2], &t->dy, &plan, &b->q, &b->k,
                               &b->v, t->exact, &b->exec, NULL))
        stop("out of memory");
    *there = fmin(*there, middle - start);
    *back = fmin(*back, seconds(b) - middle);
    pare_arena_free(a);
}

static double gap(const bench *b)
{
    double worst = 0;
    for (size_t i = 0; i < 3; i++) {
        double size = 0, most = 0;
        for (size_t e = 0; e < b->in.n * b->in.d; e++) {
            size = fmax(size, fabs((double)b->want[i].v[e]));
            most = fmax(most, fabs((double)b->want[i].v[e] - (double)b->grad[i].v[e]));
        }
        worst = fmax(worst, most / size);
    }
    return worst;
}

static void one(const poly_case *c, bool cpu)
{
    bench b = {.in = poly_data_of(c, cpu)};
    b.dy = randoms(&b.in, 1, 4), b.y = randoms(&b.in, 0, 0);
    for (size_t i = 0; i < 3; i++)
        b.grad[i] = randoms(&b.in, 0, 0), b.want[i] = randoms(&b.in, 0, 0);
    b.lse = pare_alloc(b.in.a, c->n, sizeof *b.lse);
    b.exact = pare_alloc(b.in.a, c->n, 1);
    if (!b.lse || !b.exact) stop("out of memory");
    pare_poly_report r;
    double best = INFINITY, there = INFINITY, back = INFINITY;
    const bool short_one = c->n <= EXACT_ROWS;
    for (int i = 0; i < RUNS; i++) {
        if (short_one) best = fmin(best, exact(&b));
        poly(&b, &there, &back, &r);
    }
    printf("%s,%zu,%zu,%d,%zu,%zu,%zu,%.1f,%.1f", c->name, c->n, c->d, c->threads, r.degree,
           r.features, r.rows_exact, 1e3 * there, 1e3 * back);
    if (short_one)
        printf(",%.1f,%.1f,%.1e\n", 1e3 * best, best / (there + back), gap(&b));
    else
        printf(",-,-,-\n");
    pare_arena_free(b.in.a);
}

int main(int argc, char **argv)
{
    static const poly_case cases[] = {
        {"full-8-16k", PARE_FULL, 16384, 8, 1},     {"full-16-16k", PARE_FULL, 16384, 16, 1},
        {"causal-8-16k", PARE_CAUSAL, 16384, 8, 1}, {"causal-16-16k", PARE_CAUSAL, 16384, 16, 1},
        {"full-16-1M", PARE_FULL, 1000000, 16, 2},  {"causal-16-1M", PARE_CAUSAL, 1000000, 16, 2},
    };
    printf("case,n,d,threads,degree,features,rows_exact,there_ms,back_ms,exact_ms,ratio,gap\n");
    poly_run_cases(argc, argv, cases, sizeof cases / sizeof *cases, one);
    return 0;
}
