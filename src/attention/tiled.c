/* tiled.c - dense attention of the f32 engine: tiles of keys, online softmax, never N x N.
 *
 * For each row the state is (m, l, o): the running maximum, the sum of weights, the weighted sum of
 * values. A tile T of keys updates it (Milakov and Gimelshein 2018):
 *
 *     m' = max(m, max_T s),
 *     l' = e^(m - m') l + sum_T e^(s_j - m'),
 *     o' = e^(m - m') o + sum_T e^(s_j - m') v_j;      at the end  y = o / l.
 *
 * Tiles that no query of a panel sees are skipped; in those that only some see, the masked scores
 * are set to -inf. Values are summed with queries in the lanes ("panel columns", transposed at the
 * end), or, for jobs of few keys, in rows ("row columns", tile_rows.c).
 * Memory: the queries and sums of some panels and one tile, O(unit (dk + dv)).
 * A nan or an infinity in a value may reach rows of its tile that do not see it (0 x inf). */
#include "base/simd.h"
#include "base/support.h"
#include "tiled.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_PANELS = 4,
    UNITS = 4 /* at least, per thread */
};

typedef struct panel_state {
    panel at;
    size_t column; /* of the grid: whose queries they are */
    bool begun, written,
        done;             /* some key was added; row columns are in y; there are no more keys */
    float *q, *o, *m, *l; /* dk x p, panel columns x p, p, p */
    float *rows;          /* p x row columns: sums until the last key */
    tile_sums sums;       /* where rows are added up; sum is NULL until that is known */
    double keep[PANEL_ROWS], by[PANEL_ROWS];
} panel_state;

typedef struct unit {
    const tiled_grid *g;
    const tiled_job *row; /* of the grid: the jobs at work, which have the same keys */
    size_t dk, dv;
    size_t row_cols;   /* of the dv columns: those that are summed in rows */
    size_t panel_cols; /* the others, those of `extra` behind them, padded */
    panel_state panels[MAX_PANELS];
    size_t npanels;
    float *k, *v, *s, *rescale; /* the tile */
    float *extra;               /* its values for panel columns */
    float *by;                  /* 1 / l, or 1 */
    float *transposed;          /* panel columns as rows, on their way into sums */
} unit;

/* Keys and values of a tile as the kernels read them: in place, or a copy without gaps. */
typedef struct tile {
    const float *k, *v; /* v: the row columns */
    size_t ldv;
    const float *extra; /* the panel columns */
    bool has_values;
} tile;

/* ---- panels of a grid: those of its columns one after the other ------------------------------ */

static size_t panels_of(const tiled_grid *g, size_t column)
{
    const size_t lanes = panel_lanes(g->jobs->kernel);
    return (g->jobs[column].q->rows + lanes - 1) / lanes;
}

/* Panels [first, end) of the grid, and the arrays of the unit. */
static void lay_out(unit *u, size_t first, size_t end, layout *l)
{
    const tiled_grid *const g = u->g;
    const size_t lanes = panel_lanes(g->jobs->kernel), vector = g->jobs->kernel->lanes;
    u->npanels = 0;
    for (size_t i = first; i < end; i++) {
        panel_state *const w = &u->panels[u->npanels++];
        panel *const p = &w->at;
        size_t at = i; /* panel of the column */
        for (w->column = 0; at >= panels_of(g, w->column); w->column++)
            at -= panels_of(g, w->column);
        /* Panels of a column have the same number of vectors, or one more: a short last one would
         * be slow. */
        const size_t rows = g->jobs[w->column].q->rows, vectors = (rows + vector - 1) / vector;
        const size_t n = panels_of(g, w->column), each = vectors / n, more = vectors % n;
        p->first = (at * each + (at < more ? at : more)) * vector;
        p->v = each + (at < more ? 1 : 0);
        p->p = p->v * vector;
        p->rows = rows - p->first < p->p ? rows - p->first : p->p;
        w->q = layout_take(l, u->dk * w->at.p);
        w->o = layout_take(l, u->panel_cols * w->at.p);
        w->rows = layout_take(l, u->row_cols * w->at.p);
        w->m = layout_take(l, w->at.p);
        w->l = layout_take(l, w->at.p);
    }
    u->k = layout_take(l, TILE_KEYS * u->dk);
    u->v = layout_take(l, TILE_KEYS * u->row_cols);
    u->s = layout_take(l, TILE_KEYS * lanes);
    u->rescale = layout_take(l, lanes);
    u->by = layout_take(l, lanes);
    u->extra = layout_take(l, TILE_KEYS * u->panel_cols);
    u->transposed = layout_take(l, lanes * u->panel_cols);
}

/* ---- one tile -------------------------------------------------------------------------------- */

static size_t tile_end(const unit *u, size_t j0)
{
    const size_t nk = u->row->k->rows;
    return nk - j0 < TILE_KEYS ? nk : j0 + TILE_KEYS;
}

/* Rows [j0, j1) of x, padded to `cols` columns: in place where they lie so. */
static const float *padded_rows(const pare_mat32 *x, float *copy, size_t j0, size_t j1, size_t cols)
{
    const float *const at = x->v + j0 * x->ld;
    if (x->ld == cols && x->cols == cols && (j1 - j0) % TILE_STEP == 0) return at;
    copy_tile(copy, at, x->ld, j1 - j0, x->cols, cols);
    return copy;
}

/* The row columns of v, copied unless whole vectors of them lie within cache lines; then the panel
 * columns: the rest of v, and those of `extra`. */
static void load_values(const unit *u, tile *t, size_t j0, size_t j1)
{
    const pare_mat32 *const v = u->row->v, *const extra = u->row->extra;
    const size_t rows = j1 - j0;
    t->has_values = true;
    t->v = v->v + j0 * v->ld;
    t->ldv = v->ld;
    if (u->row_cols && ((uintptr_t)t->v % (FLOAT_ALIGN * sizeof(float)) || v->ld % FLOAT_ALIGN ||
                        rows % TILE_STEP)) {
        for (size_t j = 0; j < rows; j++)
            memcpy(u->v + j * u->row_cols, t->v + j * v->ld, u->row_cols * sizeof *u->v);
        memset(u->v + rows * u->row_cols, 0,
               (padded(rows, TILE_STEP) - rows) * u->row_cols * sizeof *u->v);
        t->v = u->v;
        t->ldv = u->row_cols;
    }
    if (!u->panel_cols) return;
    const pare_mat32 rest = {v->rows, u->dv - u->row_cols, v->ld, v->v + u->row_cols};
    if (!extra || !rest.cols) {
        t->extra = padded_rows(extra ? extra : &rest, u->extra, j0, j1, u->panel_cols);
        return;
    }
    copy_tile(u->extra, rest.v + j0 * rest.ld, rest.ld, rows, rest.cols, u->panel_cols);
    for (size_t j = j0; j < j1; j++)
        memcpy(u->extra + (j - j0) * u->panel_cols + rest.cols, extra->v + j * extra->ld,
               extra->cols * sizeof *u->extra);
    t->extra = u->extra;
}

static bool unnormalized(const tiled_job *d)
{
    return d->m || (d->into && !d->extra);
}

/* What sums are multiplied by at the end: 1 / l, or 1 where they stay unnormalized. */
static const float *final_factors(const unit *u, const panel_state *w)
{
    const bool sums = unnormalized(&u->row[w->column]);
    for (size_t i = 0; i < w->at.p; i += 4) {
        four by = {1, 1, 1, 1};
        if (!sums) by /= *(const four *)(w->l + i);
        *(four *)(u->by + i) = by;
    }
    return u->by;
}

/* Where the rows of a panel that has met all its keys are added up, with the weights of the rows:
 * by the two extra columns (averaged with `by`, they stay in the panel), or by m and l. */
static const tile_sums *sums_of(const unit *u, panel_state *w, const float *by)
{
    const tiled_job *const d = &u->row[w->column];
    const pare_call_sums *const into = d->into;
    const panel *const p = &w->at;
    const float *a = w->m, *b = w->l;
    if (w->sums.sum) return &w->sums;
    if (d->extra) {
        float *const extra = w->o + (u->dv - u->row_cols) * p->p;
        for (size_t c = 0; c < 2 * p->p; c += p->p)
            for (size_t i = 0; i < p->p; i += 4)
                *(four *)(extra + c + i) *= *(const four *)(by + i);
        a = extra, b = extra + p->p;
    }
    into->weigh(into->ctx, into->row + p->first, p->rows, a, b, w->keep, w->by);
    w->sums = (tile_sums){into->sum + p->first * into->ld, into->ld, w->keep, w->by};
    return &w->sums;
}

static float *first_row(const unit *u, const panel_state *w)
{
    const pare_mat32 *const y = &u->row[w->column].y;
    return y->v + w->at.first * y->ld;
}

/* Adds values, from v on, to the row columns; with the last key of all, y is written. */
static void add_row_columns(const unit *u, panel_state *w, const float *v, size_t ldv, size_t keys,
                            bool last)
{
    const tiled_job *const d = &u->row[w->column];
    const float *const by = last && !unnormalized(d) ? final_factors(u, w) : NULL;
    const tile_weights weights = {.s = u->s,
                                  .rescale = u->rescale,
                                  .by = by,
                                  .p = w->at.p,
                                  .keys = keys,
                                  .into = last && d->into ? sums_of(u, w, by) : NULL};
    const bool write = last && !d->into;
    float *const y = write ? first_row(u, w) : w->rows;
    u->g->rows(y, write ? d->y.ld : u->row_cols, w->begun ? w->rows : NULL, w->at.rows, &weights, v,
               ldv, u->row_cols);
    w->written = last;
}

/* Keys [from, to) of the tile that begins at j0. */
static void add_tile(const unit *u, panel_state *w, tile *t, size_t j0, size_t from, size_t to)
{
    enum { AT_A_TIME = 4 };
    const tiled_job *const d = &u->row[w->column];
    const panel *const p = &w->at;
    const size_t keys = padded(to - from, TILE_STEP);
    const float *const k = t->k + (from - j0) * u->dk;
    /* Values that are copied next are prefetched while scores are computed; kernels of fewer lanes
     * do not outrun memory. */
    const bool prefetch = !t->has_values && u->row_cols && d->kernel->lanes >= FLOAT_ALIGN;
    if (!prefetch) d->kernel->scores(u->s, w->q, k, keys, u->dk, p->v, false);
    for (size_t j = 0, some; prefetch && j < keys; j += some) {
        some = keys - j < AT_A_TIME ? keys - j : AT_A_TIME;
        for (size_t r = 0; r < some; r++)
            for (size_t c = 0; c < u->dv; c += 2 * FLOAT_ALIGN)
                __builtin_prefetch(d->v->v + (from + j + r) * d->v->ld + c, 0, 2);
        d->kernel->scores(u->s + j * p->p, w->q, k + j * u->dk, some, u->dk, p->v, false);
    }
    mask_tile(u->s, &d->mask, p, from, to, d->k->rows);
    d->kernel->weights(u->s, w->m, w->l, u->rescale, keys, p->v);
    if (!t->has_values) load_values(u, t, j0, tile_end(u, j0));
    if (u->panel_cols) /* first: the weights are still in the cache */
        d->kernel->values(w->o, u->rescale, u->s, t->extra + (from - j0) * u->panel_cols, keys,
                          u->panel_cols, p->v);
    if (u->row_cols)
        add_row_columns(u, w, t->v + (from - j0) * t->ldv, t->ldv, keys, to == d->k->rows);
    w->begun = true;
}

/* ---- the end of a panel ---------------------------------------------------------------------- */

static void finish_panel(const unit *u, panel_state *w)
{
    const tiled_job *const d = &u->row[w->column];
    const panel *const p = &w->at;
    const size_t rest = u->dv - u->row_cols;
    w->done = true;
    if (d->into && w->written && !rest) return;
    const bool known = w->written && !unnormalized(d);
    const float *const by = known ? u->by : final_factors(u, w);
    if (d->into) { /* add to the sums what add_row_columns has not added */
        tile_sums to = *sums_of(u, w, by);
        if (u->row_cols && !w->written) {
            if (!w->begun) memset(w->rows, 0, u->row_cols * p->p * sizeof *w->rows);
            tile_rows_add(&to, w->rows, u->row_cols, by, p->rows, u->row_cols);
        }
        if (!rest) return;
        to.sum += u->row_cols;
        unpack(u->transposed, rest, w->o, p->p, p->rows, rest, by, false);
        tile_rows_add(&to, u->transposed, rest, NULL, p->rows, rest);
        return;
    }
    /* Row columns of a panel under a staircase mask, which has not come to the last key. */
    for (size_t i = 0; !w->written && i < p->rows; i++)
        for (size_t c = 0; c < u->row_cols; c++)
            first_row(u, w)[i * d->y.ld + c] =
                (w->begun ? w->rows[i * u->row_cols + c] : 0) * by[i];
    if (rest) unpack(first_row(u, w) + u->row_cols, d->y.ld, w->o, p->p, p->rows, rest, by, false);
    if (d->extra)
        unpack(d->extra_y.v + p->first * d->extra_y.ld, d->extra_y.ld, w->o + rest * p->p, p->p,
               p->rows, d->extra->cols, by, false);
    for (size_t i = 0; d->lse && i < p->rows; i++) d->lse[p->first + i] = w->m[i] + logf(w->l[i]);
    if (!d->m) return;
    memcpy(d->m + p->first, w->m, p->rows * sizeof *w->m);
    memcpy(d->l + p->first, w->l, p->rows * sizeof *w->l);
}

/* ---- units of work --------------------------------------------------------------------------- */

/* One row of the grid, for the panels of the unit. */
static void attend_grid_row(unit *u)
{
    const size_t nk = u->row->k->rows;
    for (panel_state *w = u->panels; w < u->panels + u->npanels; w++) {
        w->begun = w->written = w->done = false;
        w->sums.sum = NULL;
        for (size_t i = 0; i < u->panel_cols * w->at.p; i += 4) *(four *)(w->o + i) = (four){0};
        for (size_t i = 0; i < w->at.p; i += 4) {
            *(four *)(w->m + i) = (four){-INFINITY, -INFINITY, -INFINITY, -INFINITY};
            *(four *)(w->l + i) = (four){0};
        }
    }
    for (size_t j0 = 0; j0 < nk; j0 += TILE_KEYS) {
        const size_t j1 = tile_end(u, j0);
        tile t = {0};
        for (panel_state *w = u->panels; w < u->panels + u->npanels; w++) {
            size_t from = j0, to = j1;
            if (!visible_keys(&from, &to, &u->row[w->column].mask, &w->at, nk)) continue;
            if (!t.k) t.k = padded_rows(u->row->k, u->k, j0, j1, u->dk);
            add_tile(u, w, &t, j0, from, to);
            if (to == nk) finish_panel(u, w); /* while y is in the cache */
        }
    }
    for (panel_state *w = u->panels; w < u->panels + u->npanels; w++)
        if (!w->done) finish_panel(u, w);
}

typedef struct shared {
    const tiled_grid *g;
    size_t panels, units, unit; /* panels; units of work; panels of a unit */
    atomic_bool no_memory;
} shared;

/* The last rows of a causal pattern see most keys: they come first, so that threads end
 * together. */
static void attend_unit(void *ctx, size_t b)
{
    shared *const w = ctx;
    const tiled_grid *const g = w->g;
    const size_t first = (w->units - 1 - b) * w->unit;
    const size_t end = w->panels - first < w->unit ? w->panels : first + w->unit;
    unit u = {.g = g, .row = g->jobs, .dk = g->jobs->q->cols, .dv = g->jobs->v->cols};
    u.row_cols = g->rows ? u.dv / ROWS_STEP * ROWS_STEP : 0;
    u.panel_cols =
        padded(u.dv - u.row_cols + (g->jobs->extra ? g->jobs->extra->cols : 0), COLUMN_STEP);
    layout l = {0};
    lay_out(&u, first, end, &l);
    if (!layout_alloc(&l)) {
        atomic_store(&w->no_memory, true);
        return;
    }
    lay_out(&u, first, end, &l);
    for (size_t a = 0; a < u.npanels; a++) {
        const tiled_job *const d = &g->jobs[u.panels[a].column];
        const panel *const p = &u.panels[a].at;
        pack_queries(u.panels[a].q, p->p, d->q->v + p->first * d->q->ld, d->q->ld, p->rows, u.dk,
                     d->scale);
    }
    for (size_t r = 0; r < g->down; r++, u.row += g->across) attend_grid_row(&u);
    free(l.base);
}

pare_status tiled_attend_grid(const tiled_grid *g, const pare_exec *exec, pare_err *err)
{
    shared w = {.g = g};
    for (size_t c = 0; c < g->across; c++) w.panels += panels_of(g, c);
    /* The panels of a unit share each tile of keys. Their number may depend on the threads, because
     * no row depends on the units. */
    const size_t threads = exec && exec->threads > 1 ? (size_t)exec->threads : 0;
    const size_t share = w.panels / (threads ? UNITS * threads : 1);
    w.unit = share < 1 ? 1 : share > MAX_PANELS ? MAX_PANELS : share;
    w.units = (w.panels + w.unit - 1) / w.unit;
    const pare_status st = pare_parallel_until(exec, w.units, attend_unit, &w, err);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : st;
}

pare_status tiled_attend(const tiled_job *d, const pare_exec *exec, pare_err *err)
{
    return tiled_attend_grid(&(tiled_grid){d, 1, 1, NULL}, exec, err);
}
