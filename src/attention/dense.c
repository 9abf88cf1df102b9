/* Dense attention of the f32 engine: tiles of keys, online softmax, never N x N.
 *
 * For each tile T of keys and each row, with running maximum m, sum l and vector o (Milakov and
 * Gimelshein 2018):
 *     m' = max(m, max_T s),  o' = e^(m - m') o + sum_T e^(s_j - m') v_j,  l' likewise;  y = o / l.
 * Tiles that no query of a panel sees are skipped; in those that only some see, the hidden scores
 * are set to -inf. Memory: the panels' queries and sums and one tile, O(unit (dk + dv)).
 * A nan or an infinity in a value may reach the rows of its tile that do not see it (0 x inf). */
#include "dense.h"
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_PANELS = 4,
    UNITS = 4, /* at least, for each thread */
    ALIGN = 16 /* floats: 64 bytes */
};

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

typedef struct panel {
    size_t first, rows, v, p; /* queries first .. first + rows - 1; v vectors, p = v lanes */
    float *q, *o, *m, *l;     /* dk x p, dv' x p, p, p */
} panel;

typedef struct unit {
    const dense_job *d;
    size_t dk, dv, dv4; /* dv4: dv padded */
    panel panels[MOST_PANELS];
    size_t npanels;
    float *k, *v, *s, *fade; /* the tile */
} unit;

/* Queries of one unit of work: a few panels share each tile of keys. May depend on the threads,
 * because no row depends on the units. */
static size_t unit_rows(const dense_job *d, int threads)
{
    const size_t p = d->kernel->lanes * d->kernel->vecs;
    const size_t panels = d->q->rows / (UNITS * (size_t)threads * p);
    return p * (panels < 1 ? 1 : panels > MOST_PANELS ? MOST_PANELS : panels);
}

static size_t padded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

/* ---- who sees whom -------------------------------------------------------------------------- */

/* The first key that query i does not see because it is too far ahead. */
static size_t keys_until(const sight *s, size_t i, size_t nk)
{
    if (s->vis0 == PARE_VIS_ALL) return nk;
    const int64_t end = s->vis0 + (int64_t)i;
    return end <= 0 ? 0 : (uint64_t)end < nk ? (size_t)end : nk;
}

/* j + window <= i without overflow: key j has left the window of query i. */
static bool has_left(const sight *s, size_t j, size_t i)
{
    return j < i && i - j >= s->window;
}

/* The keys of a tile that some query of the panel sees, as [*from, *to) around them: from a
 * multiple of TILE_STEP on, since that is where kernels may begin. False when there are none. */
static bool seen_keys(size_t *from, size_t *to, const sight *s, const panel *p, size_t nk)
{
    const size_t end = keys_until(s, p->first + p->rows - 1, nk);
    if (*from >= end) return false;
    if (*to > end) *to = end;
    if (!has_left(s, *from, p->first)) return true;
    const size_t window = p->first - s->window + 1; /* the first key still in it */
    if (*from < s->sinks) {
        if (s->sinks<window && * to> s->sinks && *to <= window) *to = s->sinks;
        return true;
    }
    if (*to <= window) return false;
    *from = window / TILE_STEP * TILE_STEP;
    return true;
}

static bool tile_is_open(const sight *s, const panel *p, size_t j0, size_t j1, size_t nk)
{
    const size_t last = p->first + p->rows - 1;
    return j1 <= keys_until(s, p->first, nk) && (!has_left(s, j0, last) || j1 <= s->sinks);
}

/* A call of memcpy or memset would cost more than these few numbers. */
static void hide_scores(float *s, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        *(four *)(s + i) = (four){-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    for (; i < n; i++) s[i] = -INFINITY;
}

/* Scores of key j that a query of the panel must not see become -inf: the queries before the first
 * that sees it, and those whose window it has left. */
static void hide(float *s, const sight *sees, const panel *p, size_t j)
{
    size_t lead = 0, end = p->p;
    if (sees->vis0 != PARE_VIS_ALL) {
        const int64_t n = (int64_t)j + 1 - sees->vis0 - (int64_t)p->first;
        lead = n <= 0 ? 0 : (uint64_t)n < p->p ? (size_t)n : p->p;
    }
    if (j >= sees->sinks && has_left(sees, j, p->first + p->p - 1)) {
        const size_t leaves = j + sees->window; /* no overflow: it is below the last query */
        end = leaves > p->first ? leaves - p->first : 0;
    }
    hide_scores(s, lead);
    hide_scores(s + end, p->p - end);
}

/* ---- packing -------------------------------------------------------------------------------- */

/* Four rows of four become four columns. */
static inline void turn4(four out[4], four a, four b, four c, four d)
{
    const four ab0 = {a[0], b[0], a[1], b[1]}, ab1 = {a[2], b[2], a[3], b[3]};
    const four cd0 = {c[0], d[0], c[1], d[1]}, cd1 = {c[2], d[2], c[3], d[3]};
    out[0] = (four){ab0[0], ab0[1], cd0[0], cd0[1]};
    out[1] = (four){ab0[2], ab0[3], cd0[2], cd0[3]};
    out[2] = (four){ab1[0], ab1[1], cd1[0], cd1[1]};
    out[3] = (four){ab1[2], ab1[3], cd1[2], cd1[3]};
}

/* to (cols x p) = scale from^T; columns beyond `rows` are 0. */
static void pack_queries(float *to, size_t p, const float *from, size_t ld, size_t rows,
                         size_t cols, float scale)
{
    const four by = {scale, scale, scale, scale};
    const size_t cols4 = cols / 4 * 4, rows4 = rows / 4 * 4;
    for (size_t i = 0; i < rows4; i += 4)
        for (size_t c = 0; c < cols4; c += 4) {
            const float *const at = from + i * ld + c;
            four t[4];
            turn4(t, *(const four *)at, *(const four *)(at + ld), *(const four *)(at + 2 * ld),
                  *(const four *)(at + 3 * ld));
            for (size_t e = 0; e < 4; e++) *(four *)(to + (c + e) * p + i) = t[e] * by;
        }
    for (size_t c = 0; c < cols; c++) {
        for (size_t i = c < cols4 ? rows4 : 0; i < rows; i++)
            to[c * p + i] = from[i * ld + c] * scale;
        for (size_t i = rows; i < p; i++) to[c * p + i] = 0;
    }
}

/* to (rows x cols) = from^T with row i times by[i]; from is cols x p. */
static void unpack(float *to, size_t ld, const float *from, size_t p, size_t rows, size_t cols,
                   const float *by)
{
    const size_t cols4 = cols / 4 * 4, rows4 = rows / 4 * 4;
    for (size_t i = 0; i < rows4; i += 4)
        for (size_t c = 0; c < cols4; c += 4) {
            const four f = *(const four *)(by + i);
            const float *const at = from + c * p + i;
            four t[4];
            turn4(t, *(const four *)at * f, *(const four *)(at + p) * f,
                  *(const four *)(at + 2 * p) * f, *(const four *)(at + 3 * p) * f);
            for (size_t e = 0; e < 4; e++) *(four *)(to + (i + e) * ld + c) = t[e];
        }
    for (size_t i = 0; i < rows; i++)
        for (size_t c = i < rows4 ? cols4 : 0; c < cols; c++)
            to[i * ld + c] = from[c * p + i] * by[i];
}

/* to (padded rows x padded cols) = from (rows x cols); what is added is 0. */
static void copy_tile(float *to, const float *from, size_t ld, size_t rows, size_t cols,
                      size_t padded_cols)
{
    for (size_t i = 0; i < rows; i++, to += padded_cols) {
        size_t c = 0;
        for (; c + 4 <= cols; c += 4) *(four *)(to + c) = *(const four *)(from + i * ld + c);
        for (; c < cols; c++) to[c] = from[i * ld + c];
        for (; c < padded_cols; c++) to[c] = 0;
    }
    memset(to, 0, (padded(rows, TILE_STEP) - rows) * padded_cols * sizeof *to);
}

/* ---- one unit ------------------------------------------------------------------------------- */

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
    const dense_job *const d = u->d;
    const size_t most = d->kernel->lanes * d->kernel->vecs;
    size_t need = 0;
    u->npanels = 0;
    for (size_t i = first; i < end; i += most) {
        panel *const p = &u->panels[u->npanels++];
        p->first = i;
        p->rows = end - i < most ? end - i : most;
        p->v = (p->rows + d->kernel->lanes - 1) / d->kernel->lanes;
        p->p = p->v * d->kernel->lanes;
        p->q = take(&at, u->dk * p->p);
        p->o = take(&at, u->dv4 * p->p);
        p->m = take(&at, p->p);
        p->l = take(&at, p->p);
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

static void begin_panel(const unit *u, const panel *p)
{
    const pare_mat32 *const q = u->d->q;
    pack_queries(p->q, p->p, q->v + p->first * q->ld, q->ld, p->rows, u->dk, u->d->scale);
    memset(p->o, 0, u->dv4 * p->p * sizeof *p->o);
    for (size_t i = 0; i < p->p; i++) p->m[i] = -INFINITY;
    memset(p->l, 0, p->p * sizeof *p->l);
}

/* Keys [from, to) of the tile that begins at j0. */
static void one_tile(const unit *u, const panel *p, size_t j0, size_t from, size_t to)
{
    const dense_job *const d = u->d;
    const size_t keys = padded(to - from, TILE_STEP);
    const float *const k = u->k + (from - j0) * u->dk, *const v = u->v + (from - j0) * u->dv4;
    d->kernel->scores(u->s, p->q, k, keys, u->dk, p->v);
    if (!tile_is_open(&d->sees, p, from, to, d->k->rows))
        for (size_t j = from; j < to; j++) hide(u->s + (j - from) * p->p, &d->sees, p, j);
    hide_scores(u->s + (to - from) * p->p, (keys - (to - from)) * p->p);
    d->kernel->weights(u->s, p->m, p->l, u->fade, keys, p->v);
    d->kernel->values(p->o, u->fade, u->s, v, keys, u->dv4, p->v);
}

static void end_panel(const unit *u, const panel *p)
{
    const dense_job *const d = u->d;
    float *const by = u->fade;
    for (size_t i = 0; i < p->p; i++) by[i] = d->m ? 1 : 1 / p->l[i];
    unpack(d->y.v + p->first * d->y.ld, d->y.ld, p->o, p->p, p->rows, u->dv, by);
    if (!d->m) return;
    memcpy(d->m + p->first, p->m, p->rows * sizeof *p->m);
    memcpy(d->l + p->first, p->l, p->rows * sizeof *p->l);
}

static void run(const unit *u)
{
    const dense_job *const d = u->d;
    const size_t nk = d->k->rows;
    for (size_t a = 0; a < u->npanels; a++) begin_panel(u, &u->panels[a]);
    for (size_t j0 = 0; j0 < nk; j0 += TILE_KEYS) {
        const size_t j1 = nk - j0 < TILE_KEYS ? nk : j0 + TILE_KEYS;
        bool copied = false;
        for (size_t a = 0; a < u->npanels; a++) {
            size_t from = j0, to = j1;
            if (!seen_keys(&from, &to, &d->sees, &u->panels[a], nk)) continue;
            if (!copied) {
                copy_tile(u->k, d->k->v + j0 * d->k->ld, d->k->ld, j1 - j0, u->dk, u->dk);
                copy_tile(u->v, d->v->v + j0 * d->v->ld, d->v->ld, j1 - j0, u->dv, u->dv4);
                copied = true;
            }
            one_tile(u, &u->panels[a], j0, from, to);
        }
    }
    for (size_t a = 0; a < u->npanels; a++) end_panel(u, &u->panels[a]);
}

static bool dense_rows(const dense_job *d, size_t first, size_t end)
{
    unit u = {.d = d, .dk = d->q->cols, .dv = d->v->cols};
    u.dv4 = padded(u.dv, TILE_STEP);
    size_t bytes;
    if (!pare_mul(&bytes, lay_out(&u, first, end, NULL), sizeof(float))) return false;
    float *const buffer = aligned_alloc(64, bytes);
    if (!buffer) return false;
    lay_out(&u, first, end, buffer);
    run(&u);
    free(buffer);
    return true;
}

typedef struct shared {
    const dense_job *d;
    size_t units, unit;
    atomic_bool no_memory;
} shared;

/* The last rows of a causal pattern see most keys: they come first, so that threads end together.
 */
static void block(void *ctx, size_t b)
{
    shared *const w = ctx;
    const size_t n = w->d->q->rows, first = (w->units - 1 - b) * w->unit;
    if (!dense_rows(w->d, first, n - first < w->unit ? n : first + w->unit))
        atomic_store(&w->no_memory, true);
}

pare_status dense_attend(const dense_job *d, const pare_exec *exec, pare_err *err)
{
    shared w = {.d = d, .unit = unit_rows(d, exec ? exec->threads : 1)};
    w.units = (d->q->rows + w.unit - 1) / w.unit;
    pare_parallel(exec, w.units, block, &w);
    return atomic_load(&w.no_memory) ? pare_no_memory(err) : PARE_OK;
}
