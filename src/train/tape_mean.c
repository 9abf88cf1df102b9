/* tape_mean.c - U x, the plain mean over the keys of each row (0 where there is none), and U^T
 * x. */
#include "simd_lanes.h"

typedef struct mean_job {
    const pare_tape *t;
    const rows *x;
    rows *y;
    double *scratch; /* 2 rows for each sequence */
    bool transposed;
} mean_job;

static void add_scaled(double *to, const double *x, double by, size_t d)
{
    for (size_t j = 0; j < d; j++) to[j] += x[j] * by;
}

/* ---- whole sequences: running sums ----------------------------------------------------------- */

/* Full: every row is the mean, and U is its own transpose.
 * Causal: y_i = (x_0 + ... + x_i) / (i + 1); transposed y_i = x_i / (i + 1) + ... from the end. */
static void mean_of_sequence(void *self, size_t b)
{
    const mean_job *const w = self;
    const size_t n = sequence_length(&w->t->layout, b), d = w->x->d;
    const size_t first = sequence_start(&w->t->layout, b);
    const bool full = w->t->m->pattern.kind == PARE_FULL;
    double *const sum = w->scratch + 2 * b * d, *const row = sum + d;
    memset(sum, 0, d * sizeof *sum);
    for (size_t i = 0; full && i < n; i++) add_scaled(sum, row_read(w->x, first + i, row), 1, d);
    for (size_t step = 0; step < n; step++) {
        const size_t i = w->transposed ? n - 1 - step : step;
        const double by = 1 / (double)(i + 1);
        if (!full) add_scaled(sum, row_read(w->x, first + i, row), w->transposed ? by : 1, d);
        double *const y = row_write(w->y, first + i, row);
        for (size_t j = 0; j < d; j++)
            y[j] = full ? sum[j] / (double)n : sum[j] * (w->transposed ? 1 : by);
        row_done(w->y, first + i, y);
    }
}

/* ---- row by row: windows and graphs ---------------------------------------------------------- */

/* n: tokens of the sequence. */
static pare_keys keys_of(const mean_job *w, size_t n, size_t query)
{
    return pare_visible(&w->t->m->pattern, w->t->graph, n, query);
}

/* The rows that row i of U adds up; transposed: the queries that attend to key i. */
static pare_keys mean_keys(const mean_job *w, size_t n, size_t i)
{
    const pare_pattern *const p = &w->t->m->pattern;
    if (!w->transposed) return keys_of(w, n, i);
    if (p->kind == PARE_GRAPH) {
        const pare_graph *const g = &w->t->transposed.by_key;
        return (pare_keys){.list = g->idx + g->ptr[i], .count = g->ptr[i + 1] - g->ptr[i]};
    }
    const size_t left = n - i;
    const size_t count = i < p->sinks || p->window > left ? left : p->window;
    return (pare_keys){.from = {i, 0}, .to = {i + count, 0}, .count = count};
}

/* The weight of row `at` among them. */
static double mean_weight(const mean_job *w, size_t n, const pare_keys *keys, size_t at)
{
    return 1 / (double)(w->transposed ? keys_of(w, n, at).count : keys->count);
}

static void mean_span(void *self, const span *s)
{
    const mean_job *const w = self;
    const sequence_layout *const layout = &w->t->layout;
    const size_t d = w->x->d;
    for (size_t i = s->first; i < s->end; i++) {
        const size_t sequence = sequence_of(layout, i), first = sequence_start(layout, sequence);
        const size_t n = sequence_length(layout, sequence);
        const pare_keys k = mean_keys(w, n, i - first);
        double *const y = row_write(w->y, i, s->row[0]);
        memset(y, 0, d * sizeof *y);
        for (size_t e = 0; e < k.count; e++) {
            const size_t at = pare_key(&k, e);
            add_scaled(y, row_read(w->x, first + at, s->row[1]), mean_weight(w, n, &k, at), d);
        }
        row_done(w->y, i, y);
    }
}

/* In f32: sixteen columns at a time over the keys of a row. */
PARE_INLINE void mean_rows(const mean_job *w, const span *s)
{
    const sequence_layout *const layout = &w->t->layout;
    const size_t d = w->x->d;
    for (size_t i = s->first; i < s->end; i++) {
        const size_t sequence = sequence_of(layout, i), first = sequence_start(layout, sequence);
        const size_t n = sequence_length(layout, sequence);
        const pare_keys k = mean_keys(w, n, i - first);
        float *const y = rows_at(w->y, i, 0);
        for (size_t j = 0; j < d; j += LANES) {
            const size_t m = lanes_count(j, d);
            lanes sum = {0}, v;
            for (size_t e = 0; e < k.count; e++) {
                const size_t at = pare_key(&k, e);
                const float by = (float)mean_weight(w, n, &k, at);
                lanes_load(&v, rows_at(w->x, first + at, 0), j, m, 0);
                sum += v * by;
            }
            lanes_store(y, &sum, j, m);
        }
    }
}

LANES_DISPATCH(mean_f32, mean_rows)

void tape_mean(pare_tape *t, rows *y, const rows *x, bool transposed)
{
    const pare_pattern_kind kind = t->m->pattern.kind;
    mean_job w = {.t = t, .x = x, .y = y, .transposed = transposed};
    if (kind == PARE_WINDOW || kind == PARE_GRAPH) {
        tape_spans(t, x->n, x->d, 0, NULL, x->t == PARE_F32 ? mean_f32() : mean_span, &w);
        return;
    }
    const stack_mark mark = stack_top(&t->stack);
    w.scratch = tape_alloc(t, 2 * t->layout.n * x->d, sizeof *w.scratch);
    if (!w.scratch) return;
    pare_parallel(t->work.exec, t->layout.n, mean_of_sequence, &w);
    stack_reset(&t->stack, mark);
}
