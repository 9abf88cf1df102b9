/* mode_native.c - native plans: one call a tile, which returns a partial softmax (m, l, acc) of
 * each row, merged as
 *
 *     acc = sum_t e^(m_t - M) acc_t,   weight_sum = sum_t e^(m_t - M) l_t,   M = max_t m_t.
 *
 * Rows that are not consecutive in memory are gathered first. */
#include "attend_plan.h"
#include "modes.h"
#include "numbers.h"
#include <string.h>

/* Whether the rows can be handed over as they are in memory. */
static bool is_consecutive(uint32_t rows, bool down, const uint32_t *list, uint32_t shared)
{
    return !list && !shared && (!down || rows <= 1);
}

static size_t lay_out(const length_run *r, pending_call *e, const placed *tiles)
{
    const pare_length_job *const j = &r->heads[e->head].job;
    const pare_tile *const t = &tiles->t;
    char *const at = e->y;
    e->dv = (uint32_t)j->dv;
    const size_t nq = is_consecutive(t->nq, t->q_down, t->rows, 0) ? 0 : t->nq;
    const size_t nk = is_consecutive(t->nk, t->k_down, t->keys, t->shared) ? 0 : t->nk;
    const size_t out = r->round.fused ? 0 : t->nq;
    const size_t parts[] = {nq * j->dk, nk * j->dk, nk * j->dv, out, out, out * j->dv};
    char **const to[] = {&e->q, &e->k, &e->v, &e->m, &e->l, &e->y};
    size_t bytes = 0;
    for (size_t i = 0; i < 6; i++) {
        if (at) *to[i] = at + bytes;
        bytes += run_padded_bytes(r, parts[i]);
    }
    return bytes;
}

/* Queries or keys of the tile out of `from`; gathered into `space` where that must be. */
static const void *tile_rows(const length_run *r, const pare_tile *t, bool keys, char *space,
                             const void *from, size_t *ld, size_t cols)
{
    const size_t s = num_size(r->in.caps.dtype), n = keys ? t->nk : t->nq;
    if (keys ? is_consecutive(t->nk, t->k_down, t->keys, t->shared)
             : is_consecutive(t->nq, t->q_down, t->rows, 0))
        return (const char *)from + (keys ? pare_tile_key(t, 0) : pare_tile_query(t, 0)) * *ld * s;
    for (size_t x = 0; x < n; x++) {
        const size_t row = keys ? pare_tile_key(t, x) : pare_tile_query(t, x);
        memcpy(space + x * cols * s, (const char *)from + row * *ld * s, cols * s);
    }
    *ld = cols;
    return space;
}

static void build(const length_run *r, const pending_call *e, pare_call *out)
{
    const pare_length_job *const j = &r->heads[e->head].job;
    const pare_tile *const t = &r->batch.tiles[e->tile].t;
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
    p.q = tile_rows(r, t, false, e->q, j->q, &p.ldq, j->dk);
    p.k = tile_rows(r, t, true, e->k, j->k, &p.ldk, j->dk);
    p.v = tile_rows(r, t, true, e->v, j->v, &p.ldv, j->dv);
    run_mark_unwritten(r, e->l, t->nq, 1);
    if (j->dv) run_mark_unwritten(r, e->y, t->nq, j->dv);
    *out = (pare_call){.kind = PARE_CALL_PARTIAL, .u.p = p, .into = fused_sums(r, e)};
}

static void merge_raw(const length_run *r, const head_state *h, size_t i, size_t n, const void *m,
                      const void *l, double *scale_old, double *scale_new)
{
    const partial_merge f = {m, l, h->row_max + i, h->weight_sum + i, scale_old, scale_new};
    merge_partial_rows(&f, n, r->in.caps.dtype == PARE_F32);
}

static bool merge(length_run *r, const pending_call *e, size_t row, size_t i, size_t n,
                  double *scale_old, double *scale_new)
{
    const size_t at = row * num_size(r->in.caps.dtype);
    merge_raw(r, &r->heads[e->head], i, n, e->m + at, e->l + at, scale_old, scale_new);
    return true;
}

pare_status native_attend(length_run *r)
{
    static const call_ops native_calls = {.lay_out = lay_out,
                                          .build = build,
                                          .merge = merge,
                                          .finish = accumulators_write_rows,
                                          .merge_raw = merge_raw};
    enum { LINE = 64 };
    const size_t size = num_size(r->in.caps.dtype);
    r->window.in_order = true;
    pare_status st = accumulators_new(r);
    /* Engines read values in whole vectors, over and over: rows that lie across cache lines are
     * moved once. */
    for (size_t h = 0; h < r->in.nheads && !st; h++) {
        pare_length_job *const j = &r->heads[h].job;
        const size_t row = j->dv * size;
        if (row % LINE || ((uintptr_t)j->v % LINE == 0 && j->ldv * size % LINE == 0)) continue;
        char *const v = run_alloc_aligned(r, r->in.n, row);
        if (!v) return pare_no_memory(r->in.err);
        for (size_t i = 0; i < r->in.n; i++)
            memcpy(v + i * row, (const char *)j->v + i * j->ldv * size, row);
        j->v = v;
        j->ldv = j->dv;
    }
    if (!st) st = round_pattern(r, &native_calls);
    if (!st) accumulators_write(r);
    return st;
}
