/* poly_backward_f64.c - gradients of polynomial attention in f64, by plain loops: the reference for
 * the f32 kernels.
 *
 * With e running over monomials, A_e = coef x orderings, u_j = [v_j, 1] and m = dv + 1 columns,
 *
 *     [num, den]_i = sum_e A_e q'_i^e S_e + sum over exact j of w_j e^(q'_i.k'_j) u_j,
 *     S_e = sum over the other j of w_j k'_j^e u_j,      y_i = num_i / den_i,
 *
 * where j has an exact weight for row i when it is a heavy key, or under the causal pattern a key
 * of the chunk of i. Then with g_i = [dy_i, -dy_i.y_i] / den_i = d loss / d [num, den]_i
 *
 *     d q'_i^e = A_e S_e.g_i,   d S_e = sum_i A_e q'_i^e g_i,
 *     d k'_j^e = w_j dS_e.u_j,  d u_j = w_j sum_e k'_j^e dS_e,  d log w_j = u_j.du_j,
 *
 * and an exact pair adds t = w_j e^(q'_i.k'_j) g_i.u_j to d(q'_i.k'_j) and to d log w_j. Gradients
 * of monomials are propagated to their variables by the table from its end: x^e = x^parent x_var.
 * Last,
 *
 *     dq = scale dq',   dk = dk' + scale qc d log w,
 *
 * and the mean of this dk is subtracted from all of them: the gradient of the center of the keys,
 * which moves with their mean.
 *
 * Causal: S of the chunks before, summed from the front; dS of the chunks behind, from the end. */
#include "poly_reference.h"
#include "attention/rows_f64.h"
#include "linalg/matrix.h"
#include <math.h>
#include <string.h>

enum { CHUNK = 64 };

typedef struct job {
    const pare_poly_plan *plan;
    const pare_mat *dy, *q, *k, *v;
    pare_mat *dq, *dk, *dv;
    const uint8_t *exact;
    size_t n, d, m, r, chunk;
    pare_mat qs, ks, g; /* n x d: q', k'; n x m: g */
    double *w;          /* n: key weights */
    uint8_t *heavy;     /* n */
    double *state;      /* r x m: S, then dS */
    double *phi, *dphi; /* r */
    double *u, *out;    /* m */
    double *before;     /* d: sum of dk */
    double *factor;     /* r: A */
} job;

/* ---- forward: centered rows, weights, monomials ---------------------------------------------- */

/* Memory; centered rows, weights and factors. */
static bool prepare(job *w, pare_arena *a)
{
    const pare_poly_plan *const p = w->plan;
    double row_max = -INFINITY;
    size_t state;
    w->qs = pare_mat_new(a, w->n, w->d);
    w->ks = pare_mat_new(a, w->n, w->d);
    w->g = pare_mat_new(a, w->n, w->m);
    w->w = pare_alloc(a, w->n, sizeof *w->w);
    w->heavy = pare_alloc(a, w->n, 1);
    w->phi = pare_alloc(a, w->r, sizeof *w->phi);
    w->dphi = pare_alloc(a, w->r, sizeof *w->dphi);
    w->factor = pare_alloc(a, w->r, sizeof *w->factor);
    w->u = pare_alloc(a, w->m, sizeof *w->u);
    w->out = pare_alloc(a, w->d > w->m ? w->d : w->m, sizeof *w->out);
    w->before = pare_alloc(a, w->d, sizeof *w->before);
    if (pare_mul(&state, w->r, w->m)) w->state = pare_alloc(a, state, sizeof *w->state);
    if (!w->qs.v || !w->ks.v || !w->g.v || !w->w || !w->heavy || !w->phi || !w->dphi ||
        !w->factor || !w->u || !w->out || !w->before || !w->state)
        return false;
    for (size_t i = 0; i < w->n; i++) {
        for (size_t c = 0; c < w->d; c++) {
            pare_row_mut(&w->qs, i)[c] = p->scale * (pare_row(w->q, i)[c] - p->qc[c]);
            pare_row_mut(&w->ks, i)[c] = pare_row(w->k, i)[c] - p->kc[c];
        }
        w->w[i] = p->scale * dot_f64(p->qc, pare_row(&w->ks, i), w->d);
        if (!(w->w[i] <= row_max)) row_max = w->w[i];
    }
    for (size_t i = 0; i < w->n; i++) w->w[i] = exp(w->w[i] - row_max);
    for (size_t i = 0; i < p->nheavy; i++) w->heavy[p->heavy[i]] = 1;
    for (size_t e = 0; e < w->r; e++)
        w->factor[e] = p->coef[p->table.power[e]] * p->table.weight[e];
    return true;
}

static void monomials(const job *w, const double *x)
{
    const pare_monomials *const t = &w->plan->table;
    w->phi[0] = 1;
    for (size_t e = 1; e < w->r; e++) w->phi[e] = w->phi[t->parent[e]] * x[t->var[e]];
}

/* Adds to dx, from dphi, which is overwritten, and phi of x. */
static void monomials_backward(const job *w, double *dx, const double *x)
{
    const pare_monomials *const t = &w->plan->table;
    for (size_t e = w->r; e-- > 1;) {
        dx[t->var[e]] += w->dphi[e] * w->phi[t->parent[e]];
        w->dphi[t->parent[e]] += w->dphi[e] * x[t->var[e]];
    }
}

static void load_value(const job *w, double *u, size_t j)
{
    memcpy(u, pare_row(w->v, j), (w->m - 1) * sizeof *u);
    u[w->m - 1] = 1;
}

/* S += the keys of [from, to) that are not heavy. */
static void add_keys(const job *w, size_t from, size_t to)
{
    for (size_t j = from; j < to; j++) {
        if (w->heavy[j]) continue;
        monomials(w, pare_row(&w->ks, j));
        load_value(w, w->u, j);
        for (size_t e = 0; e < w->r; e++)
            add_scaled_f64(w->state + e * w->m, w->w[j] * w->phi[e], w->u, w->m);
    }
}

/* Iterates over the keys with exact weights for row i: heavy ones and those of [from, to), as far
 * as it sees them. */
typedef struct exact_keys {
    size_t from, to, seen, heavy;
} exact_keys;

static exact_keys exact_keys_of(const job *w, size_t i)
{
    if (!w->plan->causal) return (exact_keys){w->n, w->n, w->n, 0};
    return (exact_keys){i / w->chunk * w->chunk, i + 1, i + 1, 0};
}

static bool next_exact(const job *w, exact_keys *d, size_t *j)
{
    while (d->heavy < w->plan->nheavy) {
        *j = w->plan->heavy[d->heavy++];
        if (*j < d->seen && !(*j >= d->from && *j < d->to)) return true;
    }
    *j = d->from;
    return d->from < d->to ? (d->from++, true) : false;
}

static double weight_of(const job *w, size_t i, size_t j)
{
    return w->w[j] * exp(dot_f64(pare_row(&w->qs, i), pare_row(&w->ks, j), w->d));
}

/* ---- backward -------------------------------------------------------------------------------- */

static void query_backward(job *w, size_t i)
{
    const pare_poly_plan *const p = w->plan;
    const double *const dy = pare_row(w->dy, i), *const x = pare_row(&w->qs, i);
    double *const g = pare_row_mut(&w->g, i), *const dq = pare_row_mut(w->dq, i), *out = w->out;
    size_t j;
    monomials(w, x);
    memset(out, 0, w->m * sizeof *out); /* [num, den], and from it g */
    for (size_t e = 0; e < w->r; e++)
        add_scaled_f64(out, w->factor[e] * w->phi[e], w->state + e * w->m, w->m);
    for (exact_keys d = exact_keys_of(w, i); next_exact(w, &d, &j);) {
        load_value(w, w->u, j);
        add_scaled_f64(out, weight_of(w, i, j), w->u, w->m);
    }
    const double den = out[w->m - 1];
    for (size_t c = 0; c + 1 < w->m; c++) g[c] = dy[c] / den;
    g[w->m - 1] = -dot_f64(dy, out, w->m - 1) / den / den;

    for (size_t e = 0; e < w->r; e++)
        w->dphi[e] = w->factor[e] * dot_f64(w->state + e * w->m, g, w->m);
    double *const dx = w->out;
    memset(dx, 0, (w->d > w->m ? w->d : w->m) * sizeof *dx);
    monomials_backward(w, dx, x);
    add_scaled_f64(dq, p->scale, dx, w->d);
    for (exact_keys d = exact_keys_of(w, i); next_exact(w, &d, &j);) {
        const double e = weight_of(w, i, j);
        double *const dk = pare_row_mut(w->dk, j);
        load_value(w, w->u, j);
        const double t = e * dot_f64(g, w->u, w->m);
        add_scaled_f64(dq, p->scale * t, pare_row(&w->ks, j), w->d);
        add_scaled_f64(dk, t, x, w->d);
        add_scaled_f64(dk, p->scale * t, p->qc, w->d);
        add_scaled_f64(pare_row_mut(w->dv, j), e, g, w->m - 1);
    }
}

/* dS += the queries of [from, to). */
static void add_queries(job *w, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (w->exact && w->exact[i]) continue;
        monomials(w, pare_row(&w->qs, i));
        for (size_t e = 0; e < w->r; e++)
            add_scaled_f64(w->state + e * w->m, w->factor[e] * w->phi[e], pare_row(&w->g, i), w->m);
    }
}

/* A row that was computed exactly, over the keys it sees. */
static void exact_row_backward(job *w, size_t i)
{
    const pare_pattern p = {.kind = w->plan->causal ? PARE_CAUSAL : PARE_FULL};
    const pare_keys keys = pare_visible(&p, NULL, w->n, i);
    const double scale = w->plan->scale, *const q = pare_row(w->q, i),
                 *const dy = pare_row(w->dy, i);
    const size_t dv = w->m - 1;
    double row_max = -INFINITY, sum = 0, mean = 0;
    for (size_t a = 0; a < keys.count; a++)
        row_max = fmax(row_max, scale * dot_f64(q, pare_row(w->k, pare_key(&keys, a)), w->d));
    for (size_t a = 0; a < keys.count; a++) {
        const size_t j = pare_key(&keys, a);
        const double e = exp(scale * dot_f64(q, pare_row(w->k, j), w->d) - row_max);
        sum += e;
        mean += e * dot_f64(dy, pare_row(w->v, j), dv);
    }
    mean /= sum;
    for (size_t a = 0; a < keys.count; a++) {
        const size_t j = pare_key(&keys, a);
        const double e = exp(scale * dot_f64(q, pare_row(w->k, j), w->d) - row_max) / sum;
        const double t = scale * e * (dot_f64(dy, pare_row(w->v, j), dv) - mean);
        add_scaled_f64(pare_row_mut(w->dq, i), t, pare_row(w->k, j), w->d);
        add_scaled_f64(pare_row_mut(w->dk, j), t, q, w->d);
        add_scaled_f64(pare_row_mut(w->dv, j), e, dy, dv);
    }
}

static void sum_dk(const job *w, double *sum)
{
    memset(sum, 0, w->d * sizeof *sum);
    for (size_t j = 0; j < w->n; j++) add_scaled_f64(sum, 1, pare_row(w->dk, j), w->d);
}

/* Full: one chunk of all rows, whose keys are summed before its rows. */
static void scans(job *w)
{
    const bool causal = w->plan->causal;
    const size_t size = causal ? w->chunk : w->n, chunks = (w->n + size - 1) / size;
    for (size_t c = 0; c < chunks; c++) {
        const size_t from = c * size, to = from + size < w->n ? from + size : w->n;
        if (!causal) add_keys(w, from, to);
        for (size_t i = from; i < to; i++) {
            if (w->exact && w->exact[i])
                exact_row_backward(w, i);
            else
                query_backward(w, i);
        }
        if (causal) add_keys(w, from, to);
    }
    memset(w->state, 0, w->r * w->m * sizeof *w->state);
    for (size_t c = chunks; c-- > 0;) {
        const size_t from = c * size, to = from + size < w->n ? from + size : w->n;
        if (!causal) add_queries(w, from, to);
        for (size_t j = from; j < to; j++) {
            const double *const x = pare_row(&w->ks, j);
            double *const du = w->out, *const dk = pare_row_mut(w->dk, j);
            if (w->heavy[j]) continue;
            monomials(w, x);
            load_value(w, w->u, j);
            memset(du, 0, w->m * sizeof *du);
            for (size_t e = 0; e < w->r; e++) {
                const double *const ds = w->state + e * w->m;
                add_scaled_f64(du, w->w[j] * w->phi[e], ds, w->m);
                w->dphi[e] = w->w[j] * dot_f64(ds, w->u, w->m);
            }
            add_scaled_f64(pare_row_mut(w->dv, j), 1, du, w->m - 1);
            add_scaled_f64(dk, w->plan->scale * dot_f64(du, w->u, w->m), w->plan->qc, w->d);
            monomials_backward(w, dk, x);
        }
        if (causal) add_queries(w, from, to);
    }
}

pare_status pare_poly_backward_f64(pare_mat *dq, pare_mat *dk, pare_mat *dv, const pare_mat *dy,
                                   const pare_poly_plan *plan, const pare_mat *q, const pare_mat *k,
                                   const pare_mat *v, const uint8_t *exact, size_t chunk,
                                   pare_err *err)
{
    const size_t n = q->rows;
    PARE_ASSERT(k->rows == n && v->rows == n && dy->rows == n && plan->n == n);
    PARE_ASSERT(dq->rows == n && dk->rows == n && dv->rows == n);
    PARE_ASSERT(q->cols == plan->d && k->cols == plan->d && dq->cols == plan->d);
    PARE_ASSERT(dk->cols == plan->d && v->cols == dv->cols && dy->cols == dv->cols);
    job w = {.plan = plan,
             .dy = dy,
             .q = q,
             .k = k,
             .v = v,
             .dq = dq,
             .dk = dk,
             .dv = dv,
             .exact = exact,
             .n = n,
             .d = plan->d,
             .m = v->cols + 1,
             .r = plan->table.count,
             .chunk = chunk ? chunk : CHUNK};
    if (n == 0) return PARE_OK;
    if (plan->kind == PARE_POLY_EXACT) {
        for (size_t i = 0; i < n; i++) exact_row_backward(&w, i);
        return PARE_OK;
    }
    pare_arena *const a = pare_arena_new();
    const bool ok = a && prepare(&w, a);
    if (ok) {
        sum_dk(&w, w.before);
        scans(&w);
        sum_dk(&w, w.out);
        add_scaled_f64(w.out, -1, w.before, w.d);
        for (size_t j = 0; j < n; j++)
            add_scaled_f64(pare_row_mut(dk, j), -1 / (double)n, w.out, w.d);
    }
    pare_arena_free(a);
    return ok ? PARE_OK : pare_no_memory(err);
}
