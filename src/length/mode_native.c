/* Native plans: one call a tile, partial results (m, l, acc), merged as
 *     num = sum_t e^(m_t - top) acc_t,  den = sum_t e^(m_t - top) l_t,  top = max_t m_t.
 * Lists that do not stand in the arrays one after the other are gathered first. */
#include "group_codes.h"
#include "rounds.h"
#include <math.h>
#include <string.h>

/* Whether the rows can be handed over as they stand. */
static bool in_place(uint32_t rows, bool down, const uint32_t *list, uint32_t shared)
{
    return !list && !shared && (!down || rows <= 1);
}

static size_t size(const run *r, entry *e, const placed *tiles)
{
    const head *const h = &r->heads[e->head];
    char *const at = e->y;
    e->dv = (uint32_t)h->job.dv;
    const pare_tile *const t = &tiles->t;
    const bool own_q = in_place(t->nq, t->q_down, t->rows, 0);
    const bool own_k = in_place(t->nk, t->k_down, t->keys, t->shared);
    const size_t nq = own_q ? 0 : t->nq, nk = own_k ? 0 : t->nk;
    const size_t out = r->adds ? 0 : t->nq;
    const size_t parts[] = {nq * h->job.dk, nk * h->job.dk, nk * h->job.dv, out, out,
                            out * h->job.dv};
    char **const to[] = {&e->q, &e->k, &e->v, &e->m, &e->l, &e->y};
    size_t bytes = 0;
    for (size_t i = 0; i < 6; i++) {
        if (at) *to[i] = at + bytes;
        bytes += run_bytes(r, parts[i]);
    }
    return bytes;
}

static const void *rows_of(const run *r, const pare_tile *t, bool keys, char *room,
                           const void *from, size_t *ld, size_t cols)
{
    const size_t s = num_size(r->caps.dtype), n = keys ? t->nk : t->nq;
    if (keys ? in_place(t->nk, t->k_down, t->keys, t->shared)
             : in_place(t->nq, t->q_down, t->rows, 0))
        return (const char *)from + (keys ? pare_tile_key(t, 0) : pare_tile_query(t, 0)) * *ld * s;
    for (size_t x = 0; x < n; x++) {
        const size_t row = keys ? pare_tile_key(t, x) : pare_tile_query(t, x);
        memcpy(room + x * cols * s, (const char *)from + row * *ld * s, cols * s);
    }
    *ld = cols;
    return room;
}

static void build(const run *r, const entry *e, pare_call *out)
{
    const pare_length_job *const j = &r->heads[e->head].job;
    const pare_tile *const t = &r->b.tiles[e->tile].t;
    pare_call_partial p = {.ldq = j->ldq,
                           .ldk = j->ldk,
                           .ldv = j->ldv,
                           .nq = t->nq,
                           .nk = t->nk,
                           .dk = (uint32_t)j->dk,
                           .dv = (uint32_t)j->dv,
                           .vis0 = t->vis0,
                           .m = e->m,
                           .l = e->l,
                           .acc = e->y,
                           .ldacc = j->dv};
    p.q = rows_of(r, t, false, e->q, j->q, &p.ldq, j->dk);
    p.k = rows_of(r, t, true, e->k, j->k, &p.ldk, j->dk);
    p.v = rows_of(r, t, true, e->v, j->v, &p.ldv, j->dv);
    run_poison(r, e->l, t->nq, 1);
    if (j->dv) run_poison(r, e->y, t->nq, j->dv);
    *out = (pare_call){.kind = PARE_CALL_PARTIAL, .u.p = p, .into = adding_sums(r, e)};
}

static void weigh(const run *r, const head *h, size_t i, size_t n, const void *m, const void *l,
                  double *keep, double *by)
{
    const fading f = {m, l, h->top + i, h->den + i, keep, by};
    fade_rows(&f, n, r->caps.dtype == PARE_F32);
}

static bool part(run *r, const entry *e, size_t row, size_t i, size_t n, double *keep, double *by)
{
    const size_t size = num_size(r->caps.dtype);
    weigh(r, &r->heads[e->head], i, n, e->m + row * size, e->l + row * size, keep, by);
    return true;
}

const construction native_calls = {size, build, part, sums_finite, false, sums_write_rows, weigh};

/* Engines read values in whole vectors, over and over: rows that lie across lines of the cache are
 * moved once. */
static pare_status align_values(run *r, pare_length_job *j)
{
    enum { LINE = 64 };
    const size_t size = num_size(r->caps.dtype), row = j->dv * size;
    if (row % LINE || ((uintptr_t)j->v % LINE == 0 && j->ldv * size % LINE == 0)) return PARE_OK;
    char *const v = run_room(r, r->n, row);
    if (!v) return pare_no_memory(r->err);
    for (size_t i = 0; i < r->n; i++)
        memcpy(v + i * row, (const char *)j->v + i * j->ldv * size, row);
    j->v = v;
    j->ldv = j->dv;
    return PARE_OK;
}

pare_status native_attend(run *r)
{
    r->in_order = true;
    pare_status st = sums_new(r);
    for (size_t i = 0; i < r->count && !st; i++) st = align_values(r, &r->heads[i].job);
    if (!st) st = run_round(r, &native_calls);
    if (!st) sums_write(r);
    return st;
}
