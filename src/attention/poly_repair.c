/* Rows of polynomial attention whose first bound is above the tolerance.
 *
 * First the moment itself, sum_j w_j x_j^(g+1) for odd g, by the monomials of degree g + 1: it
 * knows the angles between a query and the keys, of which the first bound knows only the
 * lengths of the keys. What is still above the tolerance is computed by the exact kernel: packed
 * rows, or groups of neighbours under the causal pattern, since a vector of queries costs the same
 * for one of them. */
#include "poly.h"
#include "tiled.h"
#include <math.h>
#include <stdatomic.h>
#include <string.h>

enum { GROUP = 16 };

static bool fails(const poly_job *w, size_t i)
{
    return !(w->bound[i] <= w->plan->tolerance);
}

/* The rows that fail, ascending; NULL when memory is out. */
static size_t *failing(const poly_job *w, pare_arena *a, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < w->n; i++) *count += fails(w, i);
    size_t *const rows = pare_alloc(a, *count + 1, sizeof *rows);
    for (size_t i = 0, at = 0; rows && i < w->n; i++)
        if (fails(w, i)) rows[at++] = i;
    return rows;
}

/* ---- the moment ----------------------------------------------------------------------------- */

/* sums[r] = sum_j w_j (q'.k'_j)^(g+1) for the given rows: a sweep of its own, with weights only. */
static pare_status moments(float *sums, const poly_job *w, const size_t *rows, size_t count,
                           const pare_monomials *m, pare_arena *a, const pare_exec *exec,
                           pare_err *err)
{
    poly_job one = *w;
    const pare_status st = poly_table_new(&one.table, a, m, err);
    if (st) return st;
    one.dv = 0, one.cols = 1, one.cols4 = TILE_STEP;
    one.moment = false, one.sums_only = true, one.sum = sums;
    one.qx = pare_alloc(a, count * w->d, sizeof *one.qx);
    one.by = pare_alloc(a, one.table.ld, sizeof *one.by);
    if (!one.qx || !one.by) return pare_no_memory(err);
    for (size_t r = 0; r < count; r++)
        memcpy(one.qx + r * w->d, w->qx + rows[r] * w->d, w->d * sizeof *w->qx);
    for (size_t e = 0; e < m->count; e++)
        one.by[e] = m->power[e] == w->plan->degree + 1 ? m->weight[e] : 0;
    one.rows = count;
    return poly_sweep(&one, a, exec, err);
}

static bool moments_pay(const poly_job *w, size_t count)
{
    const size_t r = pare_monomials_count(w->d, w->plan->degree + 1);
    const double n = (double)w->n;
    return w->plan->kind == PARE_POLY_TAYLOR && !w->plan->causal && w->plan->nheavy == 0 &&
           w->plan->degree % 2 == 1 && r <= POLY_MOST_FEATURES / 16 &&
           poly_work(n + (double)count, r, w->d, TILE_STEP, false) / 2 <
               poly_exact_work(n * (double)count, w->d, w->dv);
}

static pare_status by_moments(poly_job *w, pare_poly_report *report, pare_arena *a,
                              const pare_exec *exec, pare_err *err)
{
    size_t count;
    const size_t *const rows = failing(w, a, &count);
    float *const sums = pare_alloc(a, count + 1, sizeof *sums);
    if (!rows || !sums) return pare_no_memory(err);
    if (count == 0 || !moments_pay(w, count)) return PARE_OK;
    pare_monomials m;
    pare_status st = pare_monomials_graded(&m, a, w->d, w->plan->degree + 1, err);
    if (!st) st = moments(sums, w, rows, count, &m, a, exec, err);
    if (st) return st;
    poly_proof_full(&w->proof, w->plan, &w->sizes, m.count);
    for (size_t r = 0; r < count; r++) {
        const poly_row at = {.norm = (double)w->qn[rows[r]],
                             .sum = (double)w->sum[rows[r]],
                             .moment = (double)sums[r],
                             .weight = w->weight,
                             .full = true};
        w->bound[rows[r]] = poly_row_bound(&w->proof, &at);
        report->rows_moment += !fails(w, rows[r]);
    }
    return PARE_OK;
}

/* ---- the exact kernel ----------------------------------------------------------------------- */

static pare_status all_exact(const poly_job *w, const pare_exec *exec, pare_err *err)
{
    const tiled_job t = {.q = w->q,
                         .k = w->k,
                         .v = w->v,
                         .scale = (float)w->plan->scale,
                         .sees = {w->plan->causal ? 1 : PARE_VIS_ALL, SIZE_MAX, SIZE_MAX},
                         .kernel = &w->kernel->tile,
                         .y = w->y};
    return tiled_attend(&t, exec, err);
}

static pare_status packed_exact(const poly_job *w, const size_t *rows, size_t count, pare_arena *a,
                                const pare_exec *exec, pare_err *err)
{
    const size_t d = w->d, dv = w->dv;
    pare_mat32 q = {count, d, d, pare_alloc(a, count * d, sizeof(float))};
    pare_mat32 y = {count, dv, dv, pare_alloc(a, count * dv, sizeof(float))};
    if (!q.v || !y.v) return pare_no_memory(err);
    for (size_t r = 0; r < count; r++)
        memcpy(q.v + r * d, w->q->v + rows[r] * w->q->ld, d * sizeof *q.v);
    const tiled_job t = {.q = &q,
                         .k = w->k,
                         .v = w->v,
                         .scale = (float)w->plan->scale,
                         .sees = {PARE_VIS_ALL, SIZE_MAX, SIZE_MAX},
                         .kernel = &w->kernel->tile,
                         .y = y};
    const pare_status st = tiled_attend(&t, exec, err);
    for (size_t r = 0; !st && r < count; r++)
        memcpy(w->y.v + rows[r] * w->y.ld, y.v + r * dv, dv * sizeof *y.v);
    return st;
}

typedef struct group_job {
    const poly_job *w;
    const size_t *groups;
    atomic_bool no_memory;
} group_job;

static size_t group_end(const poly_job *w, size_t g)
{
    return w->n - g * GROUP < GROUP ? w->n : (g + 1) * GROUP;
}

static void exact_group(void *ctx, size_t i)
{
    group_job *const c = ctx;
    const poly_job *const w = c->w;
    const size_t first = c->groups[i] * GROUP, rows = group_end(w, c->groups[i]) - first;
    const pare_mat32 q = {rows, w->d, w->q->ld, w->q->v + first * w->q->ld};
    const tiled_job t = {.q = &q,
                         .k = w->k,
                         .v = w->v,
                         .scale = (float)w->plan->scale,
                         .sees = {(int64_t)first + 1, SIZE_MAX, SIZE_MAX},
                         .kernel = &w->kernel->tile,
                         .y = {rows, w->dv, w->y.ld, w->y.v + first * w->y.ld}};
    if (tiled_attend(&t, NULL, NULL)) atomic_store(&c->no_memory, true);
}

/* Every group with a row that fails; all its rows count as exact. */
static pare_status groups_exact(poly_job *w, pare_arena *a, const pare_exec *exec, pare_err *err)
{
    const size_t all = (w->n + GROUP - 1) / GROUP;
    size_t *const groups = pare_alloc(a, all, sizeof *groups), count = 0;
    if (!groups) return pare_no_memory(err);
    for (size_t g = 0; g < all; g++) {
        bool bad = false;
        for (size_t i = g * GROUP; i < group_end(w, g); i++) bad |= fails(w, i);
        if (!bad) continue;
        groups[count++] = g;
        for (size_t i = g * GROUP; i < group_end(w, g); i++) w->bound[i] = INFINITY;
    }
    group_job c = {.w = w, .groups = groups};
    pare_parallel(exec, count, exact_group, &c);
    return atomic_load(&c.no_memory) ? pare_no_memory(err) : PARE_OK;
}

pare_status poly_repair(poly_job *w, uint8_t *exact, pare_poly_report *report, pare_arena *a,
                        const pare_exec *exec, pare_err *err)
{
    size_t count;
    pare_status st = by_moments(w, report, a, exec, err);
    if (st) return st;
    const size_t *const rows = failing(w, a, &count);
    if (!rows) return pare_no_memory(err);
    if (2 * count > w->n) {
        for (size_t i = 0; i < w->n; i++) w->bound[i] = INFINITY;
        st = all_exact(w, exec, err);
    } else if (count > 0) {
        st = w->plan->causal ? groups_exact(w, a, exec, err)
                             : packed_exact(w, rows, count, a, exec, err);
    }
    for (size_t i = 0; !st && i < w->n; i++) {
        const bool bad = fails(w, i);
        if (exact) exact[i] = bad;
        report->rows_exact += bad;
        if (bad)
            w->bound[i] = 0;
        else if (w->bound[i] > report->proven.v)
            report->proven.v = w->bound[i];
    }
    return st;
}
