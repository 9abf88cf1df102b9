/* A whole model through an oracle: the pass of the model room, with its attention handed over. */
#include <pare/backend.h>
#include <stdio.h>

typedef struct detour {
    const pare_oracle *orc;
    const pare_length_opts *opts;
    pare_length_stats *total;
    const pare_exec *exec;
    pare_arena *arena;
} detour;

static void add_up(pare_length_stats *t, const pare_length_stats *s)
{
    t->mode = s->mode;
    t->reference = s->reference > t->reference ? s->reference : t->reference;
    t->calls += s->calls;
    t->merge_calls += s->merge_calls;
    t->fallback_calls += s->fallback_calls;
    t->rounds += s->rounds;
    t->bad_rows += s->bad_rows;
    t->exact_rows += s->exact_rows;
    t->unproven_rows += s->unproven_rows;
    t->simulated = t->simulated || s->simulated;
    if (s->max_partials > t->max_partials) t->max_partials = s->max_partials;
    if (s->lmax > t->lmax) t->lmax = s->lmax;
    if (s->bound > t->bound) t->bound = s->bound;
    if (s->relative > t->relative) t->relative = s->relative;
}

static pare_status one_layer(void *self, size_t block, pare_dtype t, const pare_attend_job *jobs,
                             size_t count, const pare_pattern *p, const pare_graph *g,
                             pare_err *err)
{
    const detour *const d = self;
    const pare_mark mark = pare_arena_mark(d->arena);
    pare_length_job *const heads = pare_alloc(d->arena, count, sizeof *heads);
    pare_length_stats stats = {0};
    char where[32];
    (void)t;
    if (!heads) return pare_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const pare_attend_job *const j = &jobs[i];
        heads[i] = (pare_length_job){j->n,   j->dk,  j->dv,  j->q,     j->k, j->v,
                                     j->ldq, j->ldk, j->ldv, j->scale, j->y, j->ldy};
    }
    const pare_status st =
        pare_length_attend(d->orc, d->opts, heads, count, p, g, &stats, d->exec, err);
    add_up(d->total, &stats);
    pare_arena_reset(d->arena, mark);
    snprintf(where, sizeof where, "block %zu", block);
    if (st) pare_err_prefix(err, where);
    return st;
}

pare_status pare_length_forward(void *out, const pare_oracle *orc, const pare_length_opts *opts,
                                const pare_model *m, const pare_input *in, pare_length_stats *stats,
                                const pare_trace *trace, const pare_exec *exec, pare_err *err)
{
    pare_oracle_caps caps;
    pare_length_stats total = {0};
    orc->ops->caps(orc->self, &caps);
    detour d = {orc, opts, &total, exec, pare_arena_new()};
    if (!d.arena) return pare_no_memory(err);
    const pare_attender by = {one_layer, &d};
    const pare_status st = pare_forward_by(out, caps.dtype, m, in, &by, trace, exec, err);
    pare_arena_free(d.arena);
    if (stats) *stats = total;
    return st;
}

bool pare_length_may_exceed(const pare_model *m)
{
    return m->stem.pos.kind != PARE_POS_LEARNED;
}
