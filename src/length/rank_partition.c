/* Attention by several processes. Every rank has all queries, keys and values; what travels is
 * results, and no bit depends on who computed what. Heads that make whole shares are dealt out: a
 * rank plans, calls and merges its own, and the rows go to all in the end. Of the heads that are
 * left, the calls are shared. */
#include "calls.h"
#include "distributed_oracle.h"
#include <stdlib.h>
#include <string.h>

static void copy_heads(const pare_length_job *jobs, size_t n, uint8_t *at, size_t number, bool out)
{
    for (size_t i = 0; i < n; i++) {
        const pare_length_job *const j = &jobs[i];
        at += shared_copy_rows(at, j->y, j->n, j->dv * number, j->ldy * number, out);
    }
}

static size_t head_bytes(const pare_length_job *jobs, size_t n, size_t number)
{
    size_t bytes = sizeof(pare_length_stats);
    for (size_t i = 0; i < n; i++) bytes += jobs[i].n * jobs[i].dv * number;
    return bytes;
}

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

/* After a rank's own heads: its rows and what it did, in front of the rows; then all of them. */
static pare_status trade_heads(const deal *d, const pare_length_job *jobs, size_t each,
                               pare_status st, pare_length_stats *stats, pare_err *err)
{
    const size_t ranks = pare_ranks_size(d->ranks), me = pare_ranks_rank(d->ranks);
    pare_oracle_caps c;
    d->orc->ops->caps(d->orc->self, &c);
    const size_t number = pare_dtype_size(c.dtype);
    size_t bytes = 0; /* of the rank that has most */
    for (size_t r = 0; r < ranks; r++) {
        const size_t b = head_bytes(jobs + r * each, each, number);
        bytes = b > bytes ? b : bytes;
    }
    uint8_t *const mine = malloc(bytes), *const all = calloc(ranks, bytes);
    if (!st && (!mine || !all)) st = pare_no_memory(err);
    st = pare_ranks_agree(d->ranks, st, err);
    if (!st) {
        memcpy(mine, stats, sizeof *stats);
        copy_heads(jobs + me * each, each, mine + sizeof *stats, number, false);
        st = pare_ranks_gather(d->ranks, all, mine, bytes, err);
    }
    *stats = (pare_length_stats){0};
    for (size_t r = 0; r < ranks && !st; r++) {
        pare_length_stats theirs;
        memcpy(&theirs, all + r * bytes, sizeof theirs);
        length_add_stats(stats, &theirs, true);
        if (r != me)
            copy_heads(jobs + r * each, each, all + r * bytes + sizeof theirs, number, true);
    }
    free(mine);
    free(all);
    return st;
}

/* The rest of a division: every call shared. */
static pare_status remaining_heads(const deal *d, const pare_length_job *jobs, size_t count,
                                   pare_length_stats *stats, pare_err *err)
{
    shared o;
    const pare_oracle orc = shared_open(&o, d->orc, d->ranks);
    pare_length_stats more = {0};
    pare_length_opts opts = d->opts ? *d->opts : (pare_length_opts){0};
    if (!opts.batch_bytes) opts.batch_bytes = LENGTH_BATCH; /* a batch is an exchange */
    const pare_status st =
        pare_length_attend(&orc, &opts, jobs, count, d->pattern, d->graph, &more, d->exec, err);
    length_add_stats(stats, &more, true);
    shared_close(&o);
    return st;
}

/* Strict calls may hold several heads, and samples know how many heads there are: what becomes of a
 * head must not depend on the ranks. */
static bool heads_stand_alone(const deal *d)
{
    const pare_length_mode mode = d->opts ? d->opts->mode : PARE_LENGTH_AUTO;
    pare_oracle_caps c;
    d->orc->ops->caps(d->orc->self, &c);
    return !(c.features & PARE_ORC_STRICT) &&
           (mode == PARE_LENGTH_AUTO || mode == PARE_LENGTH_NATIVE || mode == PARE_LENGTH_ZEROREF);
}

pare_status length_deal(const deal *d, const pare_length_job *jobs, size_t count,
                        pare_length_stats *stats, pare_err *err)
{
    const size_t ranks = pare_ranks_size(d->ranks), me = pare_ranks_rank(d->ranks);
    const size_t each = heads_stand_alone(d) ? count / ranks : 0;
    pare_status st = PARE_OK;
    if (ranks < 2)
        return pare_length_attend(d->orc, d->opts, jobs, count, d->pattern, d->graph, stats,
                                  d->exec, err);
    if (each) {
        st = pare_length_attend(d->orc, d->opts, jobs + me * each, each, d->pattern, d->graph,
                                stats, d->exec, err);
        st = trade_heads(d, jobs, each, st, stats, err);
    }
    if (st || count == each * ranks) return st;
    return remaining_heads(d, jobs + each * ranks, count - each * ranks, stats, err);
}
