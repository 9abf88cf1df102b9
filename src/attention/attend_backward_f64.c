/* The way back through attention in f64, by plain loops: what the faster kernels are held against.
 *
 *   p_ij = exp(scale q_i.k_j - lse_i),  delta_i = dy_i.y_i,  t_ij = scale p_ij (dy_i.v_j - delta_i)
 *   dv_j = sum_i p_ij dy_i,  dq_i = sum_j t_ij k_j,  dk_j = sum_i t_ij q_i
 *
 * over the pairs (i, j) that see one another: once by queries for dq and once by keys for dk and
 * dv, so that every sum has one owner and one order. */
#include <pare/attention.h>
#include <math.h>

enum { ROWS = 32 }; /* rows of one unit of work: fixed, so that bits do not depend on threads */

typedef struct job {
    pare_mat y; /* on the way forward */
    double *lse;
    pare_mat *dq, *dk, *dv; /* on the way back */
    const pare_mat *dy, *q, *k, *v, *kept_y;
    const double *kept_lse;
    double scale;
    const pare_pattern *p;
    const pare_graph *g;
    const pare_turned *turned;
} job;

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) s += a[i] * b[i];
    return s;
}

static void add_times(double *to, double by, const double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += by * x[i];
}

static double score(const job *w, size_t i, size_t j)
{
    return w->scale * dot(pare_row(w->q, i), pare_row(w->k, j), w->q->cols);
}

/* ---- forward, with what is kept -------------------------------------------------------------- */

static void keep_row(job *w, size_t i)
{
    const pare_keys keys = pare_visible(w->p, w->g, w->q->rows, i);
    double top = -INFINITY, sum = 0;
    for (size_t j = 0; j < keys.count; j++) {
        const double s = score(w, i, pare_key(&keys, j));
        if (!(s <= top)) top = s;
    }
    for (size_t j = 0; j < keys.count; j++) sum += exp(score(w, i, pare_key(&keys, j)) - top);
    w->lse[i] = keys.count == 0 ? -INFINITY : top + log(sum);
    double *const y = pare_row_mut(&w->y, i);
    for (size_t c = 0; c < w->y.cols; c++) y[c] = 0;
    for (size_t j = 0; j < keys.count; j++) {
        const size_t key = pare_key(&keys, j);
        add_times(y, exp(score(w, i, key) - top) / sum, pare_row(w->v, key), w->y.cols);
    }
}

static void keep_rows(void *ctx, size_t b)
{
    job *const w = ctx;
    for (size_t i = b * ROWS; i < w->q->rows && i < (b + 1) * ROWS; i++) keep_row(w, i);
}

static size_t units(size_t rows)
{
    return (rows + ROWS - 1) / ROWS;
}

pare_status pare_attend_keep_f64(pare_mat *y, double *lse, const pare_mat *q, const pare_mat *k,
                                 const pare_mat *v, double scale, const pare_pattern *p,
                                 const pare_graph *g, const pare_exec *exec, pare_err *err)
{
    (void)err;
    PARE_ASSERT(q->rows == k->rows && q->rows == v->rows && q->rows == y->rows);
    PARE_ASSERT(q->cols == k->cols && v->cols == y->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == q->rows));
    job w = {.y = *y, .lse = lse, .q = q, .k = k, .v = v, .scale = scale, .p = p, .g = g};
    pare_parallel(exec, units(q->rows), keep_rows, &w);
    return PARE_OK;
}

/* ---- back ------------------------------------------------------------------------------------ */

typedef struct pair {
    double p, t; /* weight; d loss / d (q_i.k_j) */
} pair;

static pair pair_of(const job *w, size_t i, size_t j)
{
    const size_t dv = w->v->cols;
    const double *const dy = pare_row(w->dy, i);
    const double p = exp(score(w, i, j) - w->kept_lse[i]);
    const double delta = dot(dy, pare_row(w->kept_y, i), dv);
    return (pair){p, w->scale * p * (dot(dy, pare_row(w->v, j), dv) - delta)};
}

static void queries(void *ctx, size_t b)
{
    job *const w = ctx;
    const size_t n = w->q->rows;
    for (size_t i = b * ROWS; i < n && i < (b + 1) * ROWS; i++) {
        const pare_keys keys = pare_visible(w->p, w->g, n, i);
        for (size_t a = 0; a < keys.count; a++) {
            const size_t j = pare_key(&keys, a);
            add_times(pare_row_mut(w->dq, i), pair_of(w, i, j).t, pare_row(w->k, j), w->q->cols);
        }
    }
}

static void add_pair(job *w, size_t i, size_t j)
{
    const pair x = pair_of(w, i, j);
    add_times(pare_row_mut(w->dk, j), x.t, pare_row(w->q, i), w->q->cols);
    add_times(pare_row_mut(w->dv, j), x.p, pare_row(w->dy, i), w->v->cols);
}

/* The first query that does not see key j any more; it is seen from its own place on, or by all. */
static size_t last_query(const pare_pattern *p, size_t n, size_t j)
{
    const bool leaves = p->kind == PARE_WINDOW && j >= p->sinks && n - j > p->window;
    return leaves ? j + p->window : n;
}

static void keys(void *ctx, size_t b)
{
    job *const w = ctx;
    const size_t n = w->q->rows;
    for (size_t j = b * ROWS; j < n && j < (b + 1) * ROWS; j++) {
        if (w->p->kind == PARE_GRAPH) {
            const pare_graph *const by_key = &w->turned->by_key;
            for (size_t a = by_key->ptr[j]; a < by_key->ptr[j + 1]; a++)
                add_pair(w, by_key->idx[a], j);
            continue;
        }
        const size_t first = w->p->kind == PARE_FULL ? 0 : j, end = last_query(w->p, n, j);
        for (size_t i = first; i < end; i++) add_pair(w, i, j);
    }
}

pare_status pare_attend_backward_f64(pare_mat *dq, pare_mat *dk, pare_mat *dv, const pare_mat *dy,
                                     const pare_mat *q, const pare_mat *k, const pare_mat *v,
                                     const pare_mat *y, const double *lse, double scale,
                                     const pare_pattern *p, const pare_graph *g,
                                     const pare_turned *turned, const pare_exec *exec,
                                     pare_err *err)
{
    (void)err;
    const size_t n = q->rows;
    PARE_ASSERT(k->rows == n && v->rows == n && y->rows == n && dy->rows == n);
    PARE_ASSERT(dq->rows == n && dk->rows == n && dv->rows == n);
    PARE_ASSERT(q->cols == k->cols && dq->cols == q->cols && dk->cols == q->cols);
    PARE_ASSERT(v->cols == y->cols && dy->cols == v->cols && dv->cols == v->cols);
    PARE_ASSERT(p->kind != PARE_GRAPH || (g && g->n == n && turned && turned->by_key.n == n));
    job w = {.dq = dq,
             .dk = dk,
             .dv = dv,
             .dy = dy,
             .q = q,
             .k = k,
             .v = v,
             .kept_y = y,
             .kept_lse = lse,
             .scale = scale,
             .p = p,
             .g = g,
             .turned = turned};
    pare_parallel(exec, units(n), queries, &w);
    pare_parallel(exec, units(n), keys, &w);
    return PARE_OK;
}
