/* Dense attention of the f32 engine: tiles of keys, online softmax, never N x N.
 *
 * For each tile T of keys and each row, with running maximum m, sum l and vector o (Milakov and
 * Gimelshein 2018):
 *     m' = max(m, max_T s),  o' = e^(m - m') o + sum_T e^(s_j - m') v_j,  l' likewise;  y = o / l.
 * Tiles that no query of a panel sees are skipped; in those that only some see, the hidden scores
 * are set to -inf. Memory: the panels' queries and sums and one tile, O(unit (dk + dv)).
 * A nan or an infinity in a value may reach the rows of its tile that do not see it (0 x inf). */
#include "tiled.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PANELS = 4,
    UNITS = 4, /* at least, for each thread */
    ALIGN = 16 /* floats: 64 bytes */
};

typedef float four __attribute__((vector_size(16), may_alias));

typedef struct work {
    panel at;
    size_t column;        /* of the grid: whose queries they are */
    bool begun, ended;    /* `held` holds sums; y holds what it shall hold */
    bool done;            /* there is no key behind */
    float *q, *o, *m, *l; /* dk x p, dv' x p, p, p */
    float *held;          /* p x straight: rows of sums until the last key, in whole lines */
    tile_sums sums;       /* where its rows are added up; NULL until that is known */
    double keep[PANEL_ROWS], by[PANEL_ROWS];
} work;

typedef struct unit {
    const tiled_grid *g;
    const tiled_job *row; /* of the grid: those at work, which have the same keys */
    size_t dk, dv;
    size_t straight; /* of the dv columns: those that are added up in rows; the others in panels */
    size_t wide;     /* columns that panels take, those of `side` behind them, padded */
    work panels[MOST_PANELS];
    size_t npanels;
    float *k, *v, *s, *fade; /* the tile */
    float *by;               /* what sums are multiplied by in the end */
    float *side;             /* its values for panels, where there are such */
    float *turned;           /* what panels have, in rows on its way into sums */
} unit;

/* ---- panels of a grid: those of its columns one after the other ------------------------------ */

static size_t panel_rows(const tiled_grid *g)
{
    return g->jobs->kernel->lanes * g->jobs->kernel->vecs;
}

static size_t panels_of(const tiled_grid *g, size_t column)
{
    return (g->jobs[column].q->rows + panel_rows(g) - 1) / panel_rows(g);
}

static size_t all_panels(const tiled_grid *g)
{
    size_t n = 0;
    for (size_t c = 0; c < g->across; c++) n += panels_of(g, c);
    return n;
}

/* Panels of a column have the same vectors, or one more: a narrow one in the end would be slow. */
static void find_panel(work *w, const tiled_grid *g, size_t at)
{
    const size_t lanes = g->jobs->kernel->lanes;
    panel *const p = &w->at;
    for (w->column = 0; at >= panels_of(g, w->column); w->column++) at -= panels_of(g, w->column);
    const size_t rows = g->jobs[w->column].q->rows, vectors = (rows + lanes - 1) / lanes;
    const size_t n = panels_of(g, w->column), each = vectors / n, more = vectors % n;
    p->first = (at * each + (at < more ? at : more)) * lanes;
    p->v = each + (at < more ? 1 : 0);
    p->p = p->v * lanes;
    p->rows = rows - p->first < p->p ? rows - p->first : p->p;
}

/* Panels of one unit of work, which share each tile of keys. May depend on the threads, because no
 * row depends on the units. */
static size_t unit_panels(const tiled_grid *g, int threads)
{
    const size_t units = threads > 1 ? UNITS * (size_t)threads : 1, n = all_panels(g) / units;
    return n < 1 ? 1 : n > MOST_PANELS ? MOST_PANELS : n;
}

/* ---- one unit -------------------------------------------------------------------------------- */

static float *take(float **at, size_t n)
{
    float *const here = *at;
    if (here) *at += padded(n, ALIGN);
    return here;
}

/* Lays panels [first, end) of the grid out from `at` on; with at == NULL only counts. Returns the
 * floats needed. */
static size_t lay_out(unit *u, size_t first, size_t end, float *at)
{
    const size_t most = panel_rows(u->g);
    size_t need = 0;
    u->npanels = 0;
    for (size_t i = first; i < end; i++) {
        work *const w = &u->panels[u->npanels++];
        const panel *const p = &w->at;
        find_panel(w, u->g, i);
        w->q = take(&at, u->dk * p->p);
        w->o = take(&at, u->wide * p->p);
        w->held = take(&at, u->straight * p->p);
        w->m = take(&at, p->p);
        w->l = take(&at, p->p);
        need += padded(u->dk * p->p, ALIGN) + padded(u->wide * p->p, ALIGN) +
                padded(u->straight * p->p, ALIGN) + 2 * padded(p->p, ALIGN);
    }
    u->k = take(&at, TILE_KEYS * u->dk);
    u->v = take(&at, TILE_KEYS * u->straight);
    u->s = take(&at, TILE_KEYS * most);
    u->fade = take(&at, most);
    u->by = take(&at, most);
    u->side = take(&at, TILE_KEYS * u->wide);
    u->turned = take(&at, most * u->wide);
    return need + padded(TILE_KEYS * u->wide, ALIGN) + padded(most * u->wide, ALIGN) +
           padded(TILE_KEYS * u->dk, ALIGN) + padded(TILE_KEYS * u->straight, ALIGN) +
           padded(TILE_KEYS * most, ALIGN) + 2 * padded(most, ALIGN);
}

static void pack_panel(const unit *u, const work *w)
{
    const tiled_job *const d = &u->g->jobs[w->column];
    const panel *const p = &w->at;
    pack_queries(w->q, p->p, d->q->v + p->first * d->q->ld, d->q->ld, p->rows, u->dk, d->scale);
}

static void begin_panel(const unit *u, work *w)
{
    const panel *const p = &w->at;
    w->begun = w->ended = w->done = false;
    w->sums.sum = NULL;
    for (size_t i = 0; i < u->wide * p->p; i += 4) *(four *)(w->o + i) = (four){0};
    for (size_t i = 0; i < p->p; i += 4) {
        *(four *)(w->m + i) = (four){-INFINITY, -INFINITY, -INFINITY, -INFINITY};
        *(four *)(w->l + i) = (four){0};
    }
}

/* Keys and values of a tile as the kernels want them: where they stand, or a copy without gaps. */
typedef struct tile_rows {
    const float *k, *v; /* v: the straight columns, */
    size_t ldv;
    const float *side; /* and those that panels take */
    bool full;         /* values have come too */
} tile_rows;

static const float *tile_of(const pare_mat32 *x, float *room, size_t j0, size_t j1, size_t cols)
{
    const float *const at = x->v + j0 * x->ld;
    if (x->ld == cols && x->cols == cols && (j1 - j0) % TILE_STEP == 0) return at;
    copy_tile(room, at, x->ld, j1 - j0, x->cols, cols);
    return room;
}

/* Vectors of values that are read whole must not lie across two lines of the cache. */
static bool stand_well(const pare_mat32 *v, size_t j0, size_t j1)
{
    return (uintptr_t)(v->v + j0 * v->ld) % (ALIGN * sizeof(float)) == 0 && v->ld % ALIGN == 0 &&
           (j1 - j0) % TILE_STEP == 0;
}

static void load_straight(const unit *u, tile_rows *t, size_t j0, size_t j1)
{
    const pare_mat32 *const v = u->row->v;
    t->v = v->v + j0 * v->ld;
    t->ldv = v->ld;
    if (stand_well(v, j0, j1)) return;
    for (size_t j = 0; j < j1 - j0; j++)
        memcpy(u->v + j * u->straight, t->v + j * v->ld, u->straight * sizeof *u->v);
    memset(u->v + (j1 - j0) * u->straight, 0,
           (padded(j1 - j0, TILE_STEP) - (j1 - j0)) * u->straight * sizeof *u->v);
    t->v = u->v;
    t->ldv = u->straight;
}

/* Values for panels: what is left of v, and the columns beside it. */
static void load_side(const unit *u, tile_rows *t, size_t j0, size_t j1)
{
    const pare_mat32 *const v = u->row->v, *const side = u->row->side;
    const pare_mat32 left = {v->rows, u->dv - u->straight, v->ld, v->v + u->straight};
    if (!side || !left.cols) {
        t->side = tile_of(side ? side : &left, u->side, j0, j1, u->wide);
        return;
    }
    copy_tile(u->side, left.v + j0 * left.ld, left.ld, j1 - j0, left.cols, u->wide);
    for (size_t j = j0; j < j1; j++)
        memcpy(u->side + (j - j0) * u->wide + left.cols, side->v + j * side->ld,
               side->cols * sizeof *u->side);
    t->side = u->side;
}

static void load_values(const unit *u, tile_rows *t, size_t j0, size_t j1)
{
    if (u->straight) load_straight(u, t, j0, j1);
    if (u->wide) load_side(u, t, j0, j1);
    t->full = true;
}

static float *first_row(const unit *u, const work *w)
{
    const pare_mat32 *const y = &u->row[w->column].y;
    return y->v + w->at.first * y->ld;
}

/* Sums stay as they are. */
static bool unnormalised(const tiled_job *d)
{
    return d->m || (d->into && !d->side);
}

/* What sums are multiplied by in the end: 1 where they stay as they are. */
static const float *averages(const unit *u, const work *w)
{
    const bool sums = unnormalised(&u->row[w->column]);
    for (size_t i = 0; i < w->at.p; i += 4) {
        four by = {1, 1, 1, 1};
        if (!sums) by /= *(const four *)(w->l + i);
        *(four *)(u->by + i) = by;
    }
    return u->by;
}

/* The two columns beside the values, averaged: they may stay in panels. */
static float *average_side(const unit *u, const work *w, const float *by)
{
    float *const side = w->o + (u->dv - u->straight) * w->at.p;
    for (size_t c = 0; c < 2 * w->at.p; c += w->at.p)
        for (size_t i = 0; i < w->at.p; i += 4) *(four *)(side + c + i) *= *(const four *)(by + i);
    return side;
}

/* Where the rows of a panel that has met its keys are added up; by: of averages. */
static const tile_sums *sums_of(const unit *u, work *w, const float *by)
{
    const tiled_job *const d = &u->row[w->column];
    const pare_call_sums *const into = d->into;
    const panel *const p = &w->at;
    if (w->sums.sum) return &w->sums;
    const float *const side = d->side ? average_side(u, w, by) : NULL;
    into->weigh(into->ctx, into->row + p->first, p->rows, side ? side : w->m,
                side ? side + p->p : w->l, w->keep, w->by);
    w->sums = (tile_sums){into->sum + p->first * into->ld, into->ld, w->keep, w->by};
    return &w->sums;
}

/* Some values of the tile, from v on, into the rows; with the last key there is, y is done. */
static void add_straight(const unit *u, work *w, const float *v, size_t ldv, size_t keys, bool last)
{
    const tiled_job *const d = &u->row[w->column];
    const float *const by = last && !unnormalised(d) ? averages(u, w) : NULL;
    const tile_weights weights = {.s = u->s,
                                  .fade = u->fade,
                                  .by = by,
                                  .p = w->at.p,
                                  .keys = keys,
                                  .into = last && d->into ? sums_of(u, w, by) : NULL};
    const bool write = last && !d->into;
    float *const y = write ? first_row(u, w) : w->held;
    u->g->rows(y, write ? d->y.ld : u->straight, w->begun ? w->held : NULL, w->at.rows, &weights, v,
               ldv, u->straight);
    w->ended = last;
}

static size_t tile_end(const unit *u, size_t j0)
{
    const size_t nk = u->row->k->rows;
    return nk - j0 < TILE_KEYS ? nk : j0 + TILE_KEYS;
}

/* Scores, while values from v on, which are to be copied next, come near. */
static void scores_meanwhile(const unit *u, const work *w, const float *k, size_t keys,
                             const float *v)
{
    enum { AT_A_TIME = 4 };
    const tiled_job *const d = &u->row[w->column];
    for (size_t j = 0, some; j < keys; j += some) {
        some = keys - j < AT_A_TIME ? keys - j : AT_A_TIME;
        for (size_t r = 0; r < some; r++)
            for (size_t c = 0; c < u->dv; c += 2 * ALIGN)
                __builtin_prefetch(v + (j + r) * d->v->ld + c, 0, 2);
        d->kernel->scores(u->s + j * w->at.p, w->q, k + j * u->dk, some, u->dk, w->at.v, false);
    }
}

/* Keys [from, to) of the tile that begins at j0. */
static void one_tile(const unit *u, work *w, tile_rows *t, size_t j0, size_t from, size_t to)
{
    const tiled_job *const d = &u->row[w->column];
    const panel *const p = &w->at;
    const size_t keys = padded(to - from, TILE_STEP);
    const float *const k = t->k + (from - j0) * u->dk;
    if (t->full || !u->straight || d->kernel->lanes < ALIGN) /* narrow ones do not outrun it */
        d->kernel->scores(u->s, w->q, k, keys, u->dk, p->v, false);
    else
        scores_meanwhile(u, w, k, keys, d->v->v + from * d->v->ld);
    hide_tile(u->s, &d->sees, p, from, to, d->k->rows);
    d->kernel->weights(u->s, w->m, w->l, u->fade, keys, p->v);
    if (!t->full) load_values(u, t, j0, tile_end(u, j0));
    if (u->wide) /* first: weights are near still */
        d->kernel->values(w->o, u->fade, u->s, t->side + (from - j0) * u->wide, keys, u->wide,
                          p->v);
    if (u->straight)
        add_straight(u, w, t->v + (from - j0) * t->ldv, t->ldv, keys, to == d->k->rows);
    w->begun = true;
}

/* A panel of a staircase, which has not come to the last key. */
static void end_straight(const unit *u, const work *w, const float *by)
{
    const tiled_job *const d = &u->row[w->column];
    const float *held = w->held;
    float *y = first_row(u, w);
    if (w->ended) return;
    for (size_t i = 0; i < w->at.rows; i++, y += d->y.ld, held += u->straight)
        for (size_t c = 0; c < u->straight; c++) y[c] = (w->begun ? held[c] : 0) * by[i];
}

/* What add_straight has not added. */
static void end_sums(const unit *u, work *w, const float *by)
{
    const panel *const p = &w->at;
    const size_t left = u->dv - u->straight;
    tile_sums to = *sums_of(u, w, by);
    if (u->straight && !w->ended) {
        if (!w->begun) memset(w->held, 0, u->straight * p->p * sizeof *w->held);
        tile_rows_add(&to, w->held, u->straight, by, p->rows, u->straight);
    }
    if (!left) return;
    to.sum += u->straight;
    unpack(u->turned, left, w->o, p->p, p->rows, left, by, false);
    tile_rows_add(&to, u->turned, left, NULL, p->rows, left);
}

static void end_panel(const unit *u, work *w)
{
    const tiled_job *const d = &u->row[w->column];
    const panel *const p = &w->at;
    const size_t left = u->dv - u->straight;
    w->done = true;
    if (d->into && w->ended && !left) return;        /* add_straight has done all */
    const bool known = w->ended && !unnormalised(d); /* add_straight wanted them */
    const float *const by = known ? u->by : averages(u, w);
    if (d->into) {
        end_sums(u, w, by);
        return;
    }
    if (u->straight) end_straight(u, w, by);
    if (left) unpack(first_row(u, w) + u->straight, d->y.ld, w->o, p->p, p->rows, left, by, false);
    if (d->side)
        unpack(d->side_y.v + p->first * d->side_y.ld, d->side_y.ld, w->o + left * p->p, p->p,
               p->rows, d->side->cols, by, false);
    for (size_t i = 0; d->lse && i < p->rows; i++) d->lse[p->first + i] = w->m[i] + logf(w->l[i]);
    if (!d->m) return;
    memcpy(d->m + p->first, w->m, p->rows * sizeof *w->m);
    memcpy(d->l + p->first, w->l, p->rows * sizeof *w->l);
}

static void run(unit *u)
{
    const size_t nk = u->row->k->rows;
    for (size_t a = 0; a < u->npanels; a++) begin_panel(u, &u->panels[a]);
    for (size_t j0 = 0; j0 < nk; j0 += TILE_KEYS) {
        const size_t j1 = tile_end(u, j0);
        tile_rows t = {0};
        for (size_t a = 0; a < u->npanels; a++) {
            size_t from = j0, to = j1;
            work *const w = &u->panels[a];
            if (!seen_keys(&from, &to, &u->row[w->column].sees, &w->at, nk)) continue;
            if (!t.k) t.k = tile_of(u->row->k, u->k, j0, j1, u->dk);
            one_tile(u, w, &t, j0, from, to);
            if (to == nk) end_panel(u, w); /* while y is near */
        }
    }
    for (size_t a = 0; a < u->npanels; a++)
        if (!u->panels[a].done) end_panel(u, &u->panels[a]);
}

static bool unit_run(const tiled_grid *g, size_t first, size_t end)
{
    unit u = {.g = g, .row = g->jobs, .dk = g->jobs->q->cols, .dv = g->jobs->v->cols};
    u.straight = g->rows ? u.dv / ROWS_STEP * ROWS_STEP : 0;
    u.wide = padded(u.dv - u.straight + (g->jobs->side ? g->jobs->side->cols : 0), COLUMN_STEP);
    size_t bytes;
    if (!pare_mul(&bytes, lay_out(&u, first, end, NULL) + ALIGN, sizeof(float))) return false;
    float *const buffer = malloc(bytes);
    if (!buffer) return false;
    const size_t off = (uintptr_t)buffer / sizeof(float) % ALIGN;
    lay_out(&u, first, end, buffer + (off ? ALIGN - off : 0));
    for (size_t a = 0; a < u.npanels; a++) pack_panel(&u, &u.panels[a]);
    for (size_t r = 0; r < g->down; r++, u.row += g->across) run(&u);
    free(buffer);
    return true;
}

typedef struct shared {
    const tiled_grid *g;
    size_t panels, units, unit;
    atomic_bool no_memory;
} shared;

/* The last rows of a causal pattern see most keys: they come first, so that threads end together.
 */
static void block(void *ctx, size_t b)
{
    shared *const w = ctx;
    const size_t n = w->panels, first = (w->units - 1 - b) * w->unit;
    if (!unit_run(w->g, first, n - first < w->unit ? n : first + w->unit))
        atomic_store(&w->no_memory, true);
}

pare_status tiled_attend_grid(const tiled_grid *g, const pare_exec *exec, pare_err *err)
{
    shared w = {.g = g, .panels = all_panels(g), .unit = unit_panels(g, exec ? exec->threads : 1)};
    w.units = (w.panels + w.unit - 1) / w.unit;
    const pare_status st = pare_parallel_until(exec, w.units, block, &w, err);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : st;
}

pare_status tiled_attend(const tiled_job *d, const pare_exec *exec, pare_err *err)
{
    return tiled_attend_grid(&(tiled_grid){d, 1, 1, NULL}, exec, err);
}
