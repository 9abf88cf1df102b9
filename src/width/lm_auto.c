/* The best cut we know of models with norms, positions and ids: hidden units and value directions
 * go where that costs least, and the maps behind them make good what they can.
 *
 *   1. the metric of every place from slopes (lm_slopes.c);
 *   2. on the large model, for every sublayer the order in which the inputs of its last map would
 *      go, and what each costs (lm_weigh.c); the share that is asked for is spread over them
 *      (lm_share.c);
 *   3. layer by layer on the stream of the model that is already cut: the inputs go, and the last
 *      map is fitted again, towards what the large model had at that place (lm_refit.c).
 *
 * The stream keeps its width, and queries and keys theirs: with them gone the same number of
 * parameters costs more. With nothing to take away nothing is changed.
 *
 * Cost: two ways through the model in f64, and F^3 for the F inputs of each sublayer. Only one
 * place's rows and one sublayer's moments are in memory at a time. */
#include "lm_auto.h"

/* Every group of values keeps one direction, every layer one hidden unit. */
static part_cost *parts_of(work *w, const lm *m, const lm_fact *f)
{
    part_cost *const p = w_alloc(w, 2 * m->m->nblocks, sizeof *p);
    for (size_t b = 0; !w->st && b < m->m->nblocks; b++) {
        p[2 * b] = (part_cost){.of = f[b].v, .n = f[b].v - f[b].nkeys};
        p[2 * b + 1] = (part_cost){.of = f[b].units, .n = f[b].units ? f[b].units - 1 : 0};
        p[2 * b].cost = w_vec(w, p[2 * b].n);
        p[2 * b + 1].cost = w_vec(w, p[2 * b + 1].n);
    }
    return p;
}

/* Biases that the fit adds where the model has none. */
static size_t new_biases(const lm *m, const lm_fact *f)
{
    size_t n = 0;
    for (size_t b = 0; b < m->m->nblocks; b++) {
        if (f[b].attn && !f[b].bo) n += m->width[2 * b + 1];
        if (f[b].ffn && !f[b].b2) n += m->width[2 * b + 2];
    }
    return n;
}

static void share(lm_job *j, part_cost *parts)
{
    const size_t now = (size_t)pare_model_size(j->m->m, 1, 1).parameters;
    const size_t stay = (size_t)(j->o->keep * (double)now);
    if (stay >= now) return;
    const size_t go = now - stay + new_biases(j->m, j->facts);
    if (lm_share(parts, 2 * j->m->m->nblocks, go) < go)
        w_fail(j->w, PARE_ERR_PROMISE,
               "values and hidden units are not enough to leave %zu of %zu parameters", stay, now);
}

/* Sizes that were given. */
static void as_asked(const lm_job *j, part_cost *parts)
{
    for (size_t b = 0; b < j->m->m->nblocks; b++) {
        part_cost *const v = &parts[2 * b], *const u = &parts[2 * b + 1];
        const size_t dv = j->facts[b].nkeys * j->o->v_dim;
        if (j->o->v_dim && dv < v->of) v->gone = v->of - dv;
        if (j->o->ffn_dim && j->o->ffn_dim < u->of) u->gone = u->of - j->o->ffn_dim;
    }
}

void lm_auto(lm_job *j)
{
    work *const w = j->w;
    pass p = {.w = w, .m = j->m, .out = j->out, .parts = parts_of(w, j->m, j->facts)};
    p.metric = w->st ? NULL : lm_metric(w, j->m, j->data, j->o->tokens, j->o->seed);
    if (j->o->keep > 0) {
        const pare_mark mark = pare_arena_mark(w->a);
        p.large = lm_stem_rows(w, j->m, j->data, j->o->tokens);
        if (!w->st) lm_weigh(&p);
        pare_arena_reset(w->a, mark);
        if (!w->st) share(j, p.parts);
    } else if (!w->st) {
        as_asked(j, p.parts);
    }
    p.large = lm_stem_rows(w, j->m, j->data, j->o->tokens);
    p.small = lm_stem_rows(w, j->m, j->data, j->o->tokens);
    if (!w->st) lm_refit(&p);
    lm_put_ends(w, j->out, NULL, NULL, NULL);
}
