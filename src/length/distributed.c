/* distributed.c - attention by several processes (ranks).
 *
 * Every rank has all queries, keys and values; what travels is results, and no bit depends on who
 * computed what. Heads are divided equally: a rank plans, calls and merges its own, and the rows go
 * to all in the end. Of the heads that are left over, the calls are divided: the distributed oracle
 * cuts them into one range for each rank, by their work; each rank evaluates its own, and the
 * results go to all. Every rank plans the same calls and merges the same results. */
#include "distributed.h"
#include "calls.h"
#include <stdlib.h>
#include <string.h>

/* n rows, `step` bytes apart, to or (out) from a place without gaps; NULL: only counts. Returns
 * their bytes. */
static size_t copy_rows(uint8_t *at, void *rows, size_t n, size_t bytes, size_t step, bool out)
{
    for (size_t i = 0; at && i < n && bytes; i++) {
        uint8_t *const row = (uint8_t *)rows + i * step;
        memcpy(out ? row : at + i * bytes, out ? at + i * bytes : row, bytes);
    }
    return n * bytes;
}

/* ---- the distributed oracle ------------------------------------------------------------------ */

typedef struct distributed_oracle {
    pare_oracle inner; /* borrowed */
    const pare_ranks *ranks;
    pare_oracle_caps caps;
    uint8_t *mine, *all;
    size_t bytes; /* of mine, and of all for each rank */
} distributed_oracle;

static void caps(void *self, pare_oracle_caps *out)
{
    *out = ((const distributed_oracle *)self)->caps;
}

static double work_of(const pare_call *c)
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
static void calls_of_rank(const distributed_oracle *o, const pare_call *calls, size_t n,
                          size_t rank, size_t *first, size_t *end)
{
    const double ranks = (double)pare_ranks_size(o->ranks);
    double total = 0, sum = 0;
    for (size_t i = 0; i < n; i++) total += work_of(&calls[i]);
    *first = *end = 0;
    for (size_t i = 0; i < n; i++) {
        const double middle = sum + work_of(&calls[i]) / 2;
        if (middle < total * (double)rank / ranks) *first = i + 1;
        if (middle < total * ((double)rank + 1) / ranks) *end = i + 1;
        sum += work_of(&calls[i]);
    }
    if (rank + 1 == pare_ranks_size(o->ranks)) *end = n;
}

static size_t copy_result(const distributed_oracle *o, uint8_t *at, const pare_call *c, bool out)
{
    const size_t s = pare_dtype_size(o->caps.dtype);
    const pare_call_partial *const p = &c->u.p;
    const pare_call_qkv *const a = &c->u.a;
    size_t used = 0;
    if (c->kind == PARE_CALL_QKV) {
        used = copy_rows(at, a->y, 1, a->n * a->dv * s, 0, out);
        return used + copy_rows(at ? at + used : NULL, a->y2, 1, a->n * a->dv2 * s, 0, out);
    }
    if (c->kind == PARE_CALL_STRICT)
        return copy_rows(at, c->u.s.y, 1, (size_t)c->u.s.n * c->u.s.dout * s, 0, out);
    used = copy_rows(at, p->m, 1, p->nq * s, 0, out);
    used += copy_rows(at ? at + used : NULL, p->l, 1, p->nq * s, 0, out);
    return used + copy_rows(at ? at + used : NULL, p->acc, p->nq, p->dv * s, p->ldacc * s, out);
}

/* All results of a rank; NULL: only counts. Returns their bytes. */
static size_t copy_results(const distributed_oracle *o, const pare_call *calls, size_t n,
                           uint8_t *at, size_t rank, bool out)
{
    size_t first, end, bytes = 0;
    calls_of_rank(o, calls, n, rank, &first, &end);
    for (size_t i = first; i < end; i++)
        bytes += copy_result(o, at ? at + bytes : NULL, &calls[i], out);
    return bytes;
}

/* Results are exchanged here and not at the barrier: the caller may reuse the memory. */
static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    distributed_oracle *const o = self;
    const pare_oracle_ops *const inner = o->inner.ops;
    const size_t ranks = pare_ranks_size(o->ranks), me = pare_ranks_rank(o->ranks);
    size_t first, end, bytes = 1; /* of the rank that has most */
    calls_of_rank(o, calls, n, me, &first, &end);
    pare_status st = inner->evaluate(o->inner.self, calls + first, end - first, err);
    if (!st) st = inner->barrier(o->inner.self, err);
    for (size_t r = 0; r < ranks; r++) {
        const size_t b = copy_results(o, calls, n, NULL, r, false);
        if (b > bytes) bytes = b;
    }
    if (!st && bytes > o->bytes) {
        free(o->mine);
        free(o->all);
        o->mine = malloc(bytes);
        o->all = calloc(ranks, bytes);
        o->bytes = o->mine && o->all ? bytes : 0;
        if (!o->bytes) st = pare_no_memory(err);
    }
    if ((st = pare_ranks_agree(o->ranks, st, err))) return st;
    copy_results(o, calls, n, o->mine, me, false);
    if ((st = pare_ranks_gather(o->ranks, o->all, o->mine, bytes, err))) return st;
    for (size_t r = 0; r < ranks; r++)
        if (r != me) copy_results(o, calls, n, o->all + r * bytes, r, true);
    return PARE_OK;
}

static pare_status barrier(void *self, pare_err *err)
{
    (void)self, (void)err; /* evaluate has waited */
    return PARE_OK;
}

/* Heads whose calls are divided. Every rank comes with the same calls in the same order. */
static pare_status attend_by_calls(const rank_job *d, const pare_length_job *jobs, size_t count,
                                   pare_length_stats *stats, pare_err *err)
{
    static const pare_oracle_ops ops = {caps, evaluate, barrier, NULL};
    distributed_oracle o = {.inner = *d->orc, .ranks = d->ranks};
    const pare_oracle orc = {&ops, &o};
    pare_length_opts opts = d->opts ? *d->opts : (pare_length_opts)PARE_LENGTH_OPTS_DEFAULT;
    pare_length_stats more = {0};
    d->orc->ops->caps(d->orc->self, &o.caps);
    o.caps.features &= ~(uint32_t)PARE_ORC_ADD;                /* accumulators are not sent */
    if (!opts.batch_bytes) opts.batch_bytes = MAX_BATCH_BYTES; /* a batch is an exchange */
    const pare_status st = pare_length_attend(
        &orc, &opts,
        &(pare_length_layer){
            .jobs = jobs, .count = count, .pattern = d->pattern, .graph = d->graph},
        &more, d->exec, err);
    length_add_stats(stats, &more, true);
    free(o.mine);
    free(o.all);
    return st;
}

/* ---- heads ----------------------------------------------------------------------------------- */

void length_add_stats(pare_length_stats *t, const pare_length_stats *s, bool together)
{
    const uint64_t rounds = t->rounds;
    t->mode = s->mode;
    t->reference = s->reference > t->reference ? s->reference : t->reference;
    t->calls += s->calls;
    t->merge_calls += s->merge_calls;
    t->fallback_calls += s->fallback_calls;
    t->rounds = !together ? rounds + s->rounds : s->rounds > rounds ? s->rounds : rounds;
    t->bad_rows += s->bad_rows;
    t->exact_rows += s->exact_rows;
    t->unproven_rows += s->unproven_rows;
    t->simulated = t->simulated || s->simulated;
    if (s->max_partials > t->max_partials) t->max_partials = s->max_partials;
    if (s->lmax > t->lmax) t->lmax = s->lmax;
    if (s->bound > t->bound) t->bound = s->bound;
    if (s->relative > t->relative) t->relative = s->relative;
}

/* Rows of n heads to or (out) from a place without gaps; NULL: only counts. */
static size_t copy_heads(const pare_length_job *jobs, size_t n, uint8_t *at, size_t number,
                         bool out)
{
    size_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        const pare_length_job *const j = &jobs[i];
        bytes +=
            copy_rows(at ? at + bytes : NULL, j->y, j->n, j->dv * number, j->ldy * number, out);
    }
    return bytes;
}

/* After a rank's own heads: its statistics and its rows to all. */
static pare_status exchange_heads(const rank_job *d, const pare_length_job *jobs, size_t each,
                                  size_t number, pare_status st, pare_length_stats *stats,
                                  pare_err *err)
{
    const size_t ranks = pare_ranks_size(d->ranks), me = pare_ranks_rank(d->ranks);
    const size_t lead = sizeof *stats;
    size_t bytes = 0; /* of the rank that has most */
    for (size_t r = 0; r < ranks; r++) {
        const size_t b = lead + copy_heads(jobs + r * each, each, NULL, number, false);
        bytes = b > bytes ? b : bytes;
    }
    uint8_t *const mine = malloc(bytes), *const all = calloc(ranks, bytes);
    if (!st && (!mine || !all)) st = pare_no_memory(err);
    st = pare_ranks_agree(d->ranks, st, err);
    if (!st) {
        memcpy(mine, stats, lead);
        copy_heads(jobs + me * each, each, mine + lead, number, false);
        st = pare_ranks_gather(d->ranks, all, mine, bytes, err);
    }
    *stats = (pare_length_stats){0};
    for (size_t r = 0; r < ranks && !st; r++) {
        pare_length_stats theirs;
        memcpy(&theirs, all + r * bytes, lead);
        length_add_stats(stats, &theirs, true);
        if (r != me) copy_heads(jobs + r * each, each, all + r * bytes + lead, number, true);
    }
    free(mine);
    free(all);
    return st;
}

pare_status attend_by_ranks(const rank_job *d, const pare_length_job *jobs, size_t count,
                            pare_length_stats *stats, pare_err *err)
{
    const size_t ranks = pare_ranks_size(d->ranks), me = pare_ranks_rank(d->ranks);
    const pare_length_mode mode = d->opts ? d->opts->mode : PARE_LENGTH_AUTO;
    if (ranks < 2)
        return pare_length_attend(
            d->orc, d->opts,
            &(pare_length_layer){
                .jobs = jobs, .count = count, .pattern = d->pattern, .graph = d->graph},
            stats, d->exec, err);
    pare_oracle_caps c;
    d->orc->ops->caps(d->orc->self, &c);
    /* Strict calls may hold several heads, and samples know how many heads there are: the result of
     * a head must not depend on the ranks. */
    const bool independent =
        !(c.features & PARE_ORC_STRICT) &&
        (mode == PARE_LENGTH_AUTO || mode == PARE_LENGTH_NATIVE || mode == PARE_LENGTH_ZEROREF);
    const size_t each = independent ? count / ranks : 0;
    pare_status st = PARE_OK;
    if (each) {
        st = pare_length_attend(
            d->orc, d->opts,
            &(pare_length_layer){
                .jobs = jobs + me * each, .count = each, .pattern = d->pattern, .graph = d->graph},
            stats, d->exec, err);
        st = exchange_heads(d, jobs, each, pare_dtype_size(c.dtype), st, stats, err);
    }
    if (st || count == each * ranks) return st;
    return attend_by_calls(d, jobs + each * ranks, count - each * ranks, stats, err);
}
