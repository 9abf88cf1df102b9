/* length_forward.c - a whole model through an oracle: the forward pass of src/model, with its
 * attention handed over. */
#include "model/inputs.h"
#include "distributed.h"
#include "base/support.h"
#include "backend.h"
#include <stdio.h>

typedef struct oracle_pass {
    rank_job job;
    pare_length_opts opts; /* of a layer */
    uint64_t seed;         /* of all layers */
    pare_length_stats *total;
    pare_arena *arena;
} oracle_pass;

pare_length_job pare_length_job_of(const pare_attend_job *j)
{
    return (pare_length_job){.n = j->n,
                             .dk = j->dk,
                             .dv = j->dv,
                             .q = j->q,
                             .k = j->k,
                             .v = j->v,
                             .ldq = j->ldq,
                             .ldk = j->ldk,
                             .ldv = j->ldv,
                             .scale = j->scale,
                             .y = j->y,
                             .ldy = j->ldy};
}

static pare_status one_layer(void *self, size_t block, pare_dtype t, const pare_attend_job *jobs,
                             size_t count, const pare_pattern *p, const pare_graph *g,
                             pare_err *err)
{
    oracle_pass *const d = self;
    const pare_mark mark = pare_arena_mark(d->arena);
    pare_length_job *const heads = pare_alloc(d->arena, count, sizeof *heads);
    pare_length_stats stats = {0};
    char where[32];
    (void)t;
    if (!heads) return pare_no_memory(err);
    for (size_t i = 0; i < count; i++) heads[i] = pare_length_job_of(&jobs[i]);
    /* Keys and values of a layer depend on what the layers before have drawn; a bound that holds
     * with probability is for a draw that does not depend on them. */
    pare_rng rng = pare_rng_at(d->seed, block);
    d->opts.seed = pare_rng_u64(&rng);
    d->job.pattern = p;
    d->job.graph = g;
    const pare_status st = attend_by_ranks(&d->job, heads, count, &stats, err);
    length_add_stats(d->total, &stats, false);
    pare_arena_reset(d->arena, mark);
    snprintf(where, sizeof where, "block %zu", block);
    if (st) pare_err_prefix(err, where);
    return st;
}

pare_status pare_length_forward(void *out, pare_length_stats *stats, const pare_length_pass *pass,
                                const pare_length_opts *opts, const pare_exec *exec, pare_err *err)
{
    const pare_oracle *const orc = pass->oracle;
    pare_oracle_caps caps;
    pare_length_stats total = {0};
    orc->ops->caps(orc->self, &caps);
    oracle_pass d = {.job = {orc, &d.opts, pass->ranks, NULL, NULL, exec},
                     .total = &total,
                     .arena = pare_arena_new()};
    if (opts) d.opts = *opts;
    d.seed = d.opts.seed;
    if (!d.arena) return pare_no_memory(err);
    const pare_attender by = {one_layer, &d, pass->ranks};
    const pare_status st =
        pare_forward_by(out, caps.dtype, pass->model, pass->in, &by, pass->trace, exec, err);
    pare_arena_free(d.arena);
    if (stats) *stats = total;
    return st;
}

pare_status pare_length_heads(pare_length_head **out, size_t *count, pare_arena *a,
                              const pare_model *m, pare_err *err)
{
    size_t capacity = 0;
    *count = 0;
    for (size_t b = 0; b < m->nblocks; b++) capacity += m->blocks[b].attn.nheads;
    *out = pare_alloc(a, capacity + 1, sizeof **out);
    if (!*out) return pare_no_memory(err);
    for (size_t b = 0; b < m->nblocks; b++) {
        const pare_attn *const at = &m->blocks[b].attn;
        /* kinds whose heads take a softmax, whatever their queries are */
        const bool softmax = at->kind == PARE_ATTN_EXACT || at->kind == PARE_ATTN_CONSTQ ||
                             at->kind == PARE_ATTN_MEANQ || at->kind == PARE_ATTN_POOL ||
                             at->kind == PARE_ATTN_POLY;
        for (size_t h = 0; softmax && h < at->nheads; h++)
            (*out)[(*count)++] = (pare_length_head){b, at->heads[h].dk, at->heads[h].dv};
    }
    return PARE_OK;
}

pare_status pare_length_plan_fits(const pare_length_plan *plan, pare_arena *a, const pare_model *m,
                                  pare_err *err)
{
    pare_length_head *heads;
    size_t count;
    const pare_pattern *const x = &plan->pattern, *const y = &m->pattern;
    const pare_status st = pare_length_heads(&heads, &count, a, m, err);
    if (st) return st;
    bool same = plan->nheads == count && x->kind == y->kind && x->window == y->window &&
                x->sinks == y->sinks;
    for (size_t i = 0; same && i < count; i++)
        same = plan->heads[i].layer == heads[i].layer && plan->heads[i].dk == heads[i].dk &&
               plan->heads[i].dv == heads[i].dv;
    return same ? PARE_OK : pare_fail(err, PARE_ERR_INPUT, "is not for the heads of this model");
}

bool pare_length_may_exceed(const pare_model *m)
{
    return m->embedding.pos.kind != PARE_POS_LEARNED;
}
