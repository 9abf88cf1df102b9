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

typedef struct work {
    panel at;
    float *q, *o, *m, *l; /* dk x p, dv' x p, p, p */
} work;

typedef struct unit {
    const tiled_job *d; /* the one at work */
    size_t dk, dv, dv4; /* dv4: dv padded */
    work panels[MOST_PANELS];
    size_t npanels;
    float *k, *v, *s, *fade; /* the tile */
} unit;

/* Queries of one unit of work: a few panels share each tile of keys. May depend on the threads,
 * because no row depends on the units. */
static size_t unit_rows(const tiled_job *d, int threads)
{
    const size_t p = d->kernel->lanes * d->kernel->vecs;
    const size_t units = threads > 1 ? UNITS * (size_t)threads : 1;
    const size_t panels = d->q->rows / (units * p);
    return p * (panels < 1 ? 1 : panels > MOST_PANELS ? MOST_PANELS : panels);
}

/* ---- one unit -------------------------------------------------------------------------------- */

static float *take(float **at, size_t n)
{
    float *const here = *at;
    if (here) *at += padded(n, ALIGN);
    return here;
}

/* Lays the unit of queries [first, end) out from `at` on; with at == NULL only counts. Returns the
 * floats needed. */
static size_t lay_out(unit *u, size_t first, size_t end, float *at)
{
    const tiled_job *const d = u->d;
    const size_t most = d->kernel->lanes * d->kernel->vecs;
    size_t need = 0;
    u->npanels = 0;
    for (size_t i = first; i < end; i += most) {
        work *const w = &u->panels[u->npanels++];
        panel *const p = &w->at;
        p->first = i;
        p->rows = end - i < most ? end - i : most;
        p->v = (p->rows + d->kernel->lanes - 1) / d->kernel->lanes;
        p->p = p->v * d->kernel->lanes;
        w->q = take(&at, u->dk * p->p);
        w->o = take(&at, u->dv4 * p->p);
        w->m = take(&at, p->p);
        w->l = take(&at, p->p);
        need +=
            padded(u->dk * p->p, ALIGN) + padded(u->dv4 * p->p, ALIGN) + 2 * padded(p->p, ALIGN);
    }
    u->k = take(&at, TILE_KEYS * u->dk);
    u->v = take(&at, TILE_KEYS * u->dv4);
    u->s = take(&at, TILE_KEYS * most);
    u->fade = take(&at, most);
    return need + padded(TILE_KEYS * u->dk, ALIGN) + padded(TILE_KEYS * u->dv4, ALIGN) +
           padded(TILE_KEYS * most, ALIGN) + padded(most, ALIGN);
}

static void pack_panel(const unit *u, const work *w)
{
    const pare_mat32 *const q = u->d->q;
    const panel *const p = &w->at;
    pack_queries(w->q, p->p, q->v + p->first * q->ld, q->ld, p->rows, u->dk, u->d->scale);
}

static void begin_panel(const unit *u, const work *w)
{
    const panel *const p = &w->at;
    memset(w->o, 0, u->dv4 * p->p * sizeof *w->o);
    for (size_t i = 0; i < p->p; i++) w->m[i] = -INFINITY;
    memset(w->l, 0, p->p * sizeof *w->l);
}

/* Keys and values of a tile as the kernels want them: where they stand, or a copy without gaps. */
typedef struct tile_rows {
    const float *k, *v;
} tile_rows;

static const float *tile_of(const pare_mat32 *x, float *room, size_t j0, size_t j1, size_t cols)
{
    const float *const at = x->v + j0 * x->ld;
    if (x->ld == cols && (j1 - j0) % TILE_STEP == 0) return at;
    copy_tile(room, at, x->ld, j1 - j0, x->cols, cols);
    return room;
}

/* Keys [from, to) of the tile that begins at j0. */
static void one_tile(const unit *u, const work *w, const tile_rows *t, size_t j0, size_t from,
                     size_t to)
{
    const tiled_job *const d = u->d;
    const panel *const p = &w->at;
    const size_t keys = padded(to - from, TILE_STEP);
    const float *const k = t->k + (from - j0) * u->dk, *const v = t->v + (from - j0) * u->dv4;
    d->kernel->scores(u->s, w->q, k, keys, u->dk, p->v, false);
    hide_tile(u->s, &d->sees, p, from, to, d->k->rows);
    d->kernel->weights(u->s, w->m, w->l, u->fade, keys, p->v);
    d->kernel->values(w->o, u->fade, u->s, v, keys, u->dv4, p->v);
}

static void end_panel(const unit *u, const work *w)
{
    const tiled_job *const d = u->d;
    const panel *const p = &w->at;
    float *const by = u->fade;
    for (size_t i = 0; i < p->p; i++) by[i] = d->m ? 1 : 1 / w->l[i];
    unpack(d->y.v + p->first * d->y.ld, d->y.ld, w->o, p->p, p->rows, u->dv, by, false);
    for (size_t i = 0; d->lse && i < p->rows; i++) d->lse[p->first + i] = w->m[i] + logf(w->l[i]);
    if (!d->m) return;
    memcpy(d->m + p->first, w->m, p->rows * sizeof *w->m);
    memcpy(d->l + p->first, w->l, p->rows * sizeof *w->l);
}

static void run(const unit *u)
{
    const tiled_job *const d = u->d;
    const size_t nk = d->k->rows;
    for (size_t a = 0; a < u->npanels; a++) begin_panel(u, &u->panels[a]);
    for (size_t j0 = 0; j0 < nk; j0 += TILE_KEYS) {
        const size_t j1 = nk - j0 < TILE_KEYS ? nk : j0 + TILE_KEYS;
        tile_rows t = {0};
        for (size_t a = 0; a < u->npanels; a++) {
            size_t from = j0, to = j1;
            if (!seen_keys(&from, &to, &d->sees, &u->panels[a].at, nk)) continue;
            if (!t.k) t.k = tile_of(d->k, u->k, j0, j1, u->dk);
            if (!t.v) t.v = tile_of(d->v, u->v, j0, j1, u->dv4);
            one_tile(u, &u->panels[a], &t, j0, from, to);
        }
    }
    for (size_t a = 0; a < u->npanels; a++) end_panel(u, &u->panels[a]);
}

static bool unit_run(const tiled_job *d, size_t count, size_t first, size_t end)
{
    unit u = {.d = d, .dk = d->q->cols, .dv = d->v->cols};
    u.dv4 = padded(u.dv, TILE_STEP);
    size_t bytes;
    if (!pare_mul(&bytes, lay_out(&u, first, end, NULL) + ALIGN, sizeof(float))) return false;
    float *const buffer = malloc(bytes);
    if (!buffer) return false;
    const size_t off = (uintptr_t)buffer / sizeof(float) % ALIGN;
    lay_out(&u, first, end, buffer + (off ? ALIGN - off : 0));
    for (size_t a = 0; a < u.npanels; a++) pack_panel(&u, &u.panels[a]);
    for (; u.d < d + count; u.d++) run(&u);
    free(buffer);
    return true;
}

typedef struct shared {
    const tiled_job *d;
    size_t count, units, unit;
    atomic_bool no_memory;
} shared;

/* The last rows of a causal pattern see most keys: they come first, so that threads end together.
 */
static void block(void *ctx, size_t b)
{
    shared *const w = ctx;
    const size_t n = w->d->q->rows, first = (w->units - 1 - b) * w->unit;
    if (!unit_run(w->d, w->count, first, n - first < w->unit ? n : first + w->unit))
        atomic_store(&w->no_memory, true);
}

pare_status tiled_attend_all(const tiled_job *d, size_t count, const pare_exec *exec, pare_err *err)
{
    shared w = {.d = d, .count = count, .unit = unit_rows(d, exec ? exec->threads : 1)};
    w.units = (d->q->rows + w.unit - 1) / w.unit;
    pare_parallel(exec, w.units, block, &w);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : PARE_OK;
}

pare_status tiled_attend(const tiled_job *d, const pare_exec *exec, pare_err *err)
{
    return tiled_attend_all(d, 1, exec, err);
}
