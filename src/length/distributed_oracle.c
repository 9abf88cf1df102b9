/* An oracle of several processes: calls are cut into one stretch for each rank, by their work; each
 * rank evaluates its own, and the results go to all. Every rank plans the same calls and merges the
 * same results. */
#include "distributed_oracle.h"
#include <stdlib.h>
#include <string.h>

static void caps(void *self, pare_oracle_caps *out)
{
    *out = ((const shared *)self)->caps;
}

/* ---- who does what --------------------------------------------------------------------------- */

static double work(const pare_call *c)
{
    const pare_call_partial *const p = &c->u.p;
    const pare_call_qkv *const a = &c->u.a;
    const pare_call_strict *const s = &c->u.s;
    if (c->kind == PARE_CALL_PARTIAL) {
        const double whole = (double)p->nq * p->nk * (p->dk + p->dv + 8.0) + 1;
        return p->vis0 >= (int64_t)p->nk ? whole : whole / 2;
    }
    if (c->kind == PARE_CALL_QKV)
        return (double)a->n * a->n * (a->dk + a->dv + a->dv2 + 8.0) / (a->causal ? 2 : 1) + 1;
    return (double)s->n * (s->n + s->din) + 1;
}

/* Calls [*first, *end) of n are those of a rank. */
static void stretch(const shared *o, const pare_call *calls, size_t n, size_t rank, size_t *first,
                    size_t *end)
{
    const double ranks = (double)pare_ranks_size(o->ranks);
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++) total += work(&calls[i]);
    *first = *end = 0;
    for (size_t i = 0; i < n; i++) {
        const double middle = sum + work(&calls[i]) / 2;
        if (middle < total * (double)rank / ranks) *first = i + 1;
        if (middle < total * ((double)rank + 1) / ranks) *end = i + 1;
        sum += work(&calls[i]);
    }
    if (rank + 1 == pare_ranks_size(o->ranks)) *end = n;
}

/* ---- results --------------------------------------------------------------------------------- */

size_t shared_copy_rows(uint8_t *at, void *rows, size_t n, size_t bytes, size_t step, bool out)
{
    for (size_t i = 0; at && i < n && bytes; i++) {
        uint8_t *const row = (uint8_t *)rows + i * step;
        memcpy(out ? row : at + i * bytes, out ? at + i * bytes : row, bytes);
    }
    return n * bytes;
}

static size_t copy_result(const shared *o, uint8_t *at, const pare_call *c, bool out)
{
    const size_t s = pare_dtype_size(o->caps.dtype);
    const pare_call_partial *const p = &c->u.p;
    const pare_call_qkv *const a = &c->u.a;
    size_t used = 0;
    if (c->kind == PARE_CALL_QKV) {
        used = shared_copy_rows(at, a->y, 1, a->n * a->dv * s, 0, out);
        return used + shared_copy_rows(at ? at + used : NULL, a->y2, 1, a->n * a->dv2 * s, 0, out);
    }
    if (c->kind == PARE_CALL_STRICT)
        return shared_copy_rows(at, c->u.s.y, 1, (size_t)c->u.s.n * c->u.s.dout * s, 0, out);
    used = shared_copy_rows(at, p->m, 1, p->nq * s, 0, out);
    used += shared_copy_rows(at ? at + used : NULL, p->l, 1, p->nq * s, 0, out);
    return used +
           shared_copy_rows(at ? at + used : NULL, p->acc, p->nq, p->dv * s, p->ldacc * s, out);
}

static bool buffers(shared *o, size_t bytes)
{
    if (bytes <= o->bytes) return true;
    free(o->mine);
    free(o->all);
    o->mine = malloc(bytes);
    o->all = calloc(pare_ranks_size(o->ranks), bytes);
    o->bytes = o->mine && o->all ? bytes : 0;
    return o->bytes != 0;
}

/* The most bytes that a rank has. */
static size_t widest(const shared *o, const pare_call *calls, size_t n)
{
    size_t most = 1;
    for (size_t r = 0; r < pare_ranks_size(o->ranks); r++) {
        size_t first, end, bytes = 0;
        stretch(o, calls, n, r, &first, &end);
        for (size_t i = first; i < end; i++) bytes += copy_result(o, NULL, &calls[i], false);
        if (bytes > most) most = bytes;
    }
    return most;
}

static void copy_stretch(const shared *o, const pare_call *calls, size_t n, uint8_t *at,
                         size_t rank, bool out)
{
    size_t first, end;
    stretch(o, calls, n, rank, &first, &end);
    for (size_t i = first; i < end; i++) at += copy_result(o, at, &calls[i], out);
}

/* ---- a round --------------------------------------------------------------------------------- */

/* st: how this rank fared with its own. */
static pare_status exchange(shared *o, const pare_call *calls, size_t n, pare_status st,
                            pare_err *err)
{
    const size_t me = pare_ranks_rank(o->ranks), bytes = widest(o, calls, n);
    if (!st && !buffers(o, bytes)) st = pare_no_memory(err);
    if ((st = pare_ranks_agree(o->ranks, st, err))) return st;
    copy_stretch(o, calls, n, o->mine, me, false);
    if ((st = pare_ranks_gather(o->ranks, o->all, o->mine, bytes, err))) return st;
    for (size_t r = 0; r < pare_ranks_size(o->ranks); r++)
        if (r != me) copy_stretch(o, calls, n, o->all + r * bytes, r, true);
    return PARE_OK;
}

/* Results are exchanged here and not at the barrier: who calls may use the memory again. */
static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    shared *const o = self;
    const pare_oracle_ops *const inner = o->inner.ops;
    size_t first, end;
    stretch(o, calls, n, pare_ranks_rank(o->ranks), &first, &end);
    pare_status st = inner->evaluate(o->inner.self, calls + first, end - first, err);
    if (!st) st = inner->barrier(o->inner.self, err);
    return exchange(o, calls, n, st, err);
}

static pare_status barrier(void *self, pare_err *err)
{
    (void)self, (void)err; /* evaluate has waited */
    return PARE_OK;
}

pare_oracle shared_open(shared *o, const pare_oracle *inner, const pare_ranks *ranks)
{
    static const pare_oracle_ops ops = {caps, evaluate, barrier, NULL};
    *o = (shared){.inner = *inner, .ranks = ranks};
    inner->ops->caps(inner->self, &o->caps);
    o->caps.features &= ~(uint32_t)PARE_ORC_ADD; /* sums are not sent */
    return (pare_oracle){&ops, o};
}

void shared_close(shared *o)
{
    free(o->mine);
    free(o->all);
}
