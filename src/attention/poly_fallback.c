/* poly_fallback.c - rows of polynomial attention whose first bound is above the tolerance.
 *
 * First the moment itself, sum_j w_j x_j^(g+1) for odd g, by the monomials of degree g + 1: it
 * depends on the angles between a query and the keys, while the first bound knows only the lengths
 * of the keys. Under the causal pattern the moment of a row is that of the chunks before it: the
 * keys of its own chunk have exact weights e^x, as heavy keys have. Rows that are still above the
 * tolerance are computed by the exact kernels, in panels of scattered rows. */
#include "poly.h"
#include "tiled.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool fails(const poly_job *w, size_t i)
{
    return !(w->bound[i] <= w->plan->tolerance);
}

/* The rows that fail, ascending; NULL when memory is out. */
static size_t *failing_rows(const poly_job *w, pare_arena *a, size_t *count)
{
    *count = 0;
    for (size_t i = 0; i < w->n; i++) *count += fails(w, i);
    size_t *const rows = pare_alloc(a, *count + 1, sizeof *rows);
    for (size_t i = 0, at = 0; rows && i < w->n; i++)
        if (fails(w, i)) rows[at++] = i;
    return rows;
}

/* ---- the moment ------------------------------------------------------------------------------ */

static pare_status bound_by_moments(poly_job *w, pare_poly_report *report, pare_arena *a,
                                    const pare_exec *exec, pare_err *err)
{
    const pare_poly_plan *const plan = w->plan;
    const bool causal = plan->causal;
    const size_t features = pare_monomials_count(w->d, plan->degree + 1);
    size_t count;
    const size_t *const rows = failing_rows(w, a, &count);
    float *const sums = pare_alloc(a, count + 1, sizeof *sums);
    if (!rows || !sums) return pare_no_memory(err);
    double pairs = 0; /* of the exact kernel, instead */
    for (size_t i = 0; i < count; i++) pairs += (double)(causal ? rows[i] + 1 : w->n);
    const bool pays = poly_moment_cost((double)w->n, (double)count, features, w->d, causal) <
                      poly_exact_cost(pairs, w->d, w->dv);
    if (count == 0 || plan->kind != PARE_POLY_TAYLOR || plan->degree % 2 == 0 ||
        !poly_fits(features, 1, plan->max_bytes) || !pays)
        return PARE_OK;
    /* sums[r] = sum_j w_j (q'.k'_j)^(g+1) over the keys of the row's state: a scan of its own, with
     * weights only. */
    pare_monomials m;
    poly_job one = *w;
    pare_status st = pare_monomials_graded(&m, a, w->d, plan->degree + 1, err);
    if (!st) st = poly_table_new(&one.table, a, &m, err);
    if (st) return st;
    size_t *const chunk_rows = pare_alloc(a, w->chunks + 1, sizeof *chunk_rows);
    one.dv = 0, one.cols = 1, one.cols4 = TILE_STEP;
    one.moment = false, one.sums_only = true, one.sum = sums;
    one.row_list = rows, one.rows = count, one.chunk_rows = chunk_rows;
    one.factor = pare_alloc(a, one.table.ld, sizeof *one.factor);
    if (!chunk_rows || !one.factor) return pare_no_memory(err);
    for (size_t t = 0, at = 0; t <= w->chunks; t++) {
        while (at < count && rows[at] < t * POLY_KEYS) at++;
        chunk_rows[t] = at;
    }
    for (size_t e = 0; e < m.count; e++)
        one.factor[e] = m.power[e] == plan->degree + 1 ? m.weight[e] : 0;
    st = poly_scan(&one, a, exec, err);
    if (st) return st;
    poly_proof_full(&w->proof, plan, &w->sizes, m.count);
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

/* ---- the exact kernel ------------------------------------------------------------------------ */

typedef struct exact_job {
    const poly_job *w;
    const size_t *rows;
    size_t count;
    atomic_bool no_memory;
} exact_job;

/* A panel of scattered rows, each with its own last key. */
typedef struct scattered_panel {
    const size_t *rows; /* ascending */
    size_t dv4, done;   /* done: rows that are written */
    panel at;
    float *q, *o, *m, *l, *rescale, *s, *k, *x; /* d, dv4, 1, 1, 1, TILE_KEYS x p; the tile */
} scattered_panel;

static void lay_out(scattered_panel *f, const poly_job *w, layout *l)
{
    const size_t p = f->at.p;
    f->q = layout_take_zeroed(l, w->d * p);
    f->o = layout_take_zeroed(l, f->dv4 * p);
    f->m = layout_take(l, p);
    f->l = layout_take_zeroed(l, p);
    f->rescale = layout_take(l, p);
    f->s = layout_take(l, TILE_KEYS * p);
    f->k = layout_take_zeroed(l, TILE_KEYS * padded(w->d, POLY_LANES));
    f->x = layout_take_zeroed(l, TILE_KEYS * padded(f->dv4, POLY_LANES));
}

/* Keys [j0, j0 + keys). */
static void add_tile(const scattered_panel *f, const poly_job *w, size_t j0, size_t keys)
{
    const tile_kernel *const t = &w->kernel->tile;
    const bool causal = w->plan->causal;
    const size_t keys4 = padded(keys, TILE_STEP), p = f->at.p, v = f->at.v;
    const float *k = w->k->v + j0 * w->k->ld, *x = w->v->v + j0 * w->v->ld;
    if (keys4 > keys || w->k->ld > w->d) copy_tile(f->k, k, w->k->ld, keys, w->d, w->d), k = f->k;
    if (keys4 > keys || w->v->ld > w->dv || f->dv4 > w->dv)
        copy_tile(f->x, x, w->v->ld, keys, w->dv, f->dv4), x = f->x;
    t->scores(f->s, f->q, k, keys4, w->d, v, false);
    /* Rows do not see keys behind them, and nothing sees padding. The lanes of rows that are done
     * do not matter. */
    if (keys4 > keys || (causal && f->rows[f->done] < j0 + keys))
        for (size_t j = 0; j < keys4; j++)
            for (size_t r = 0; r < p; r++)
                if (j >= keys || (causal && r < f->at.rows && f->rows[r] < j0 + j))
                    f->s[j * p + r] = -INFINITY;
    t->weights(f->s, f->m, f->l, f->rescale, keys4, v);
    t->values(f->o, f->rescale, f->s, x, keys4, f->dv4, v);
}

static void attend_scattered(void *ctx, size_t b)
{
    exact_job *const e = ctx;
    const poly_job *const w = e->w;
    const bool causal = w->plan->causal;
    scattered_panel f = {.dv4 = padded(w->dv, TILE_STEP)};
    f.at = panel_from(&w->kernel->tile, b * panel_lanes(&w->kernel->tile), e->count);
    f.rows = e->rows + f.at.first;
    layout l = {0};
    lay_out(&f, w, &l);
    if (!layout_alloc(&l)) {
        atomic_store(&e->no_memory, true);
        return;
    }
    lay_out(&f, w, &l);
    for (size_t c = 0; c < w->d; c++)
        for (size_t r = 0; r < f.at.rows; r++)
            f.q[c * f.at.p + r] = w->q->v[f.rows[r] * w->q->ld + c] * (float)w->plan->scale;
    for (size_t i = 0; i < f.at.p; i++) f.m[i] = -INFINITY;
    const size_t end = causal ? f.rows[f.at.rows - 1] + 1 : w->n;
    for (size_t j = 0; j < end; j += TILE_KEYS) {
        add_tile(&f, w, j, end - j < TILE_KEYS ? end - j : TILE_KEYS);
        if (!causal && end - j > TILE_KEYS) continue;
        /* Rows that see no key behind this tile are written. */
        for (; f.done < f.at.rows && (!causal || f.rows[f.done] < j + TILE_KEYS); f.done++) {
            const size_t r = f.done, row = f.rows[r];
            for (size_t c = 0; c < w->dv; c++)
                w->y.v[row * w->y.ld + c] = f.o[c * f.at.p + r] / f.l[r];
            if (w->lse) w->lse[row] = f.m[r] + logf(f.l[r]);
        }
    }
    free(l.base);
}

pare_status poly_fallback(poly_job *w, uint8_t *exact, pare_poly_report *report, pare_arena *a,
                          const pare_exec *exec, pare_err *err)
{
    pare_status st = bound_by_moments(w, report, a, exec, err);
    if (st) return st;
    exact_job e = {.w = w};
    e.rows = failing_rows(w, a, &e.count);
    if (!e.rows) return pare_no_memory(err);
    if (2 * e.count > w->n) { /* then all */
        const tiled_job all = {.q = w->q,
                               .k = w->k,
                               .v = w->v,
                               .scale = (float)w->plan->scale,
                               .mask = {w->plan->causal ? 1 : PARE_VIS_ALL, SIZE_MAX, SIZE_MAX},
                               .kernel = &w->kernel->tile,
                               .y = w->y,
                               .lse = w->lse};
        for (size_t i = 0; i < w->n; i++) w->bound[i] = INFINITY;
        st = tiled_attend(&all, exec, err);
    } else if (e.count > 0) {
        const size_t lanes = panel_lanes(&w->kernel->tile);
        pare_parallel(exec, (e.count + lanes - 1) / lanes, attend_scattered, &e);
        if (atomic_load(&e.no_memory)) st = pare_no_memory(err);
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
