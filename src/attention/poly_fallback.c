/* Rows of polynomial attention whose first bound is above the tolerance.
 *
 * First the moment itself, sum_j w_j x_j^(g+1) for odd g, by the monomials of degree g + 1: it
 * knows the angles between a query and the keys, of which the first bound knows only the
 * lengths of the keys. Under the causal pattern a row's moment is that of the chunks before it: the
 * keys of its own chunk are weighed by e^x, as heavy keys are. What is still above the tolerance
 * goes to the exact kernels, panels of rows from anywhere. */
#include "poly.h"
#include "tiled.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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

/* Where the rows of each chunk begin among these. */
static size_t *by_chunks(const poly_job *w, pare_arena *a, const size_t *rows, size_t count)
{
    size_t *const some = pare_alloc(a, w->chunks + 1, sizeof *some);
    for (size_t t = 0, at = 0; some && t <= w->chunks; t++) {
        while (at < count && rows[at] < t * POLY_KEYS) at++;
        some[t] = at;
    }
    return some;
}

/* sums[r] = sum_j w_j (q'.k'_j)^(g+1) for the given rows, over the keys of their state: a sweep of
 * its own, with weights only. */
static pare_status moments(float *sums, const poly_job *w, const size_t *rows, size_t count,
                           const pare_monomials *m, pare_arena *a, const pare_exec *exec,
                           pare_err *err)
{
    poly_job one = *w;
    const pare_status st = poly_table_new(&one.table, a, m, err);
    if (st) return st;
    one.dv = 0, one.cols = 1, one.cols4 = TILE_STEP;
    one.moment = false, one.sums_only = true, one.sum = sums;
    one.some = by_chunks(w, a, rows, count);
    one.by = pare_alloc(a, one.table.ld, sizeof *one.by);
    if (!one.some || !one.by) return pare_no_memory(err);
    for (size_t e = 0; e < m->count; e++)
        one.by[e] = m->power[e] == w->plan->degree + 1 ? m->weight[e] : 0;
    one.which = rows, one.rows = count;
    return poly_scan(&one, a, exec, err);
}

static bool moments_pay(const poly_job *w, const size_t *rows, size_t count)
{
    const pare_poly_plan *const p = w->plan;
    const size_t r = pare_monomials_count(w->d, p->degree + 1);
    double pairs = 0;
    for (size_t i = 0; i < count; i++) pairs += (double)(p->causal ? rows[i] + 1 : w->n);
    return p->kind == PARE_POLY_TAYLOR && p->degree % 2 == 1 && poly_fits(r, 1, p->max_bytes) &&
           poly_moment_cost((double)w->n, (double)count, r, w->d, p->causal) <
               poly_exact_cost(pairs, w->d, w->dv);
}

static pare_status by_moments(poly_job *w, pare_poly_report *report, pare_arena *a,
                              const pare_exec *exec, pare_err *err)
{
    const bool causal = w->plan->causal;
    size_t count;
    const size_t *const rows = failing(w, a, &count);
    float *const sums = pare_alloc(a, count + 1, sizeof *sums);
    if (!rows || !sums) return pare_no_memory(err);
    if (count == 0 || !moments_pay(w, rows, count)) return PARE_OK;
    pare_monomials m;
    pare_status st = pare_monomials_graded(&m, a, w->d, w->plan->degree + 1, err);
    if (!st) st = moments(sums, w, rows, count, &m, a, exec, err);
    if (st) return st;
    poly_proof_full(&w->proof, w->plan, &w->sizes, m.count);
    for (size_t r = 0; r < count; r++) {
        const poly_row at = {.norm = (double)query_norm(w, rows[r]),
                             .sum = (double)w->sum[rows[r]],
                             .moment = (double)sums[r],
                             .weight = w->weight[causal ? rows[r] / POLY_KEYS : 0],
                             .full = true,
                             .with_exact = causal || w->plan->nheavy > 0};
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
                         .mask = {w->plan->causal ? 1 : PARE_VIS_ALL, SIZE_MAX, SIZE_MAX},
                         .kernel = &w->kernel->tile,
                         .y = w->y,
                         .lse = w->lse};
    return tiled_attend(&t, exec, err);
}

/* A panel of rows that need not be neighbours, each with its own last key. */
typedef struct few {
    const poly_job *w;
    const size_t *rows;                      /* ascending */
    size_t count, done, v, p, dv4;           /* done: rows that are written */
    float *q, *o, *m, *l, *fade, *s, *k, *x; /* d, dv4, 1, 1, 1, TILE_KEYS x p; the tile */
} few;

static size_t few_floats(const poly_job *w, size_t p)
{
    const size_t dv4 = padded(w->dv, TILE_STEP);
    return (w->d + dv4 + 3 + TILE_KEYS) * p +
           TILE_KEYS * (padded(w->d, POLY_LANES) + padded(dv4, POLY_LANES)) + POLY_LANES;
}

static void few_begin(few *f, float *at)
{
    const poly_job *const w = f->w;
    f->q = at;
    f->o = f->q + w->d * f->p;
    f->m = f->o + f->dv4 * f->p;
    f->l = f->m + f->p;
    f->fade = f->l + f->p;
    f->s = f->fade + f->p;
    f->k = f->s + TILE_KEYS * f->p;
    f->x = f->k + TILE_KEYS * padded(w->d, POLY_LANES);
    memset(at, 0, few_floats(w, f->p) * sizeof *at);
    for (size_t c = 0; c < w->d; c++)
        for (size_t r = 0; r < f->count; r++)
            f->q[c * f->p + r] = w->q->v[f->rows[r] * w->q->ld + c] * (float)w->plan->scale;
    for (size_t i = 0; i < f->p; i++) f->m[i] = -INFINITY;
}

/* Keys [j0, j0 + keys): lanes whose row is before a key, and keys that only fill up, see nothing.
 * What the lanes of rows that are done see is nobody's concern. */
static void few_hide(const few *f, size_t j0, size_t keys)
{
    for (size_t j = 0; j < padded(keys, TILE_STEP); j++)
        for (size_t r = 0; r < f->p; r++) {
            const bool causal = f->w->plan->causal && r < f->count;
            if (j >= keys || (causal && f->rows[r] < j0 + j)) f->s[j * f->p + r] = -INFINITY;
        }
}

static void few_tile(const few *f, size_t j0, size_t keys)
{
    const poly_job *const w = f->w;
    const tile_kernel *const t = &w->kernel->tile;
    const size_t keys4 = padded(keys, TILE_STEP);
    const float *k = w->k->v + j0 * w->k->ld, *x = w->v->v + j0 * w->v->ld;
    if (keys4 > keys || w->k->ld > w->d) copy_tile(f->k, k, w->k->ld, keys, w->d, w->d), k = f->k;
    if (keys4 > keys || w->v->ld > w->dv || f->dv4 > w->dv)
        copy_tile(f->x, x, w->v->ld, keys, w->dv, f->dv4), x = f->x;
    t->scores(f->s, f->q, k, keys4, w->d, f->v, false);
    if (keys4 > keys || (w->plan->causal && f->rows[f->done] < j0 + keys)) few_hide(f, j0, keys);
    t->weights(f->s, f->m, f->l, f->fade, keys4, f->v);
    t->values(f->o, f->fade, f->s, x, keys4, f->dv4, f->v);
}

/* Rows that see no key from `end` on. */
static void few_write(few *f, size_t end)
{
    const poly_job *const w = f->w;
    for (; f->done < f->count && (!w->plan->causal || f->rows[f->done] < end); f->done++) {
        const size_t r = f->done, row = f->rows[r];
        for (size_t c = 0; c < w->dv; c++) w->y.v[row * w->y.ld + c] = f->o[c * f->p + r] / f->l[r];
        if (w->lse) w->lse[row] = f->m[r] + logf(f->l[r]);
    }
}

typedef struct exact_job {
    const poly_job *w;
    const size_t *rows;
    size_t count;
    atomic_bool no_memory;
} exact_job;

static size_t panel_rows(const poly_job *w)
{
    return w->kernel->tile.lanes * w->kernel->tile.vecs;
}

static void exact_panel(void *ctx, size_t b)
{
    exact_job *const e = ctx;
    const poly_job *const w = e->w;
    const size_t most = panel_rows(w), lanes = w->kernel->tile.lanes, left = e->count - b * most;
    few f = {.w = w, .rows = e->rows + b * most, .count = left < most ? left : most};
    f.v = (f.count + lanes - 1) / lanes;
    f.p = f.v * lanes;
    f.dv4 = padded(w->dv, TILE_STEP);
    void *base;
    float *const at = poly_alloc_floats(&base, few_floats(w, f.p));
    if (!at) {
        atomic_store(&e->no_memory, true);
        return;
    }
    few_begin(&f, at);
    const size_t end = w->plan->causal ? f.rows[f.count - 1] + 1 : w->n;
    for (size_t j = 0; j < end; j += TILE_KEYS) {
        few_tile(&f, j, end - j < TILE_KEYS ? end - j : TILE_KEYS);
        if (w->plan->causal || end - j <= TILE_KEYS) few_write(&f, j + TILE_KEYS);
    }
    free(base);
}

static pare_status rows_exact(const poly_job *w, const size_t *rows, size_t count,
                              const pare_exec *exec, pare_err *err)
{
    exact_job e = {.w = w, .rows = rows, .count = count};
    pare_parallel(exec, (count + panel_rows(w) - 1) / panel_rows(w), exact_panel, &e);
    return atomic_load(&e.no_memory) ? pare_no_memory(err) : PARE_OK;
}

pare_status poly_fallback(poly_job *w, uint8_t *exact, pare_poly_report *report, pare_arena *a,
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
        st = rows_exact(w, rows, count, exec, err);
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
