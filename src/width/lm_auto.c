/* The best cut we know of models with norms, positions and ids: hidden units, value directions, and
 * dimensions of queries and keys go where that costs least, and the maps behind them make good what
 * they can.
 *
 *   1. the metric of every place from slopes (lm_gradient_metric.c);
 *   2. on the large model, for every sublayer the order in which the inputs of its last map would
 *      go, and what each costs (lm_removal_costs.c); the same for queries and keys (lm_keys.c), at what the
 *      outputs then really lose; the share that is asked for is spread over them (lm_budget.c);
 *   3. layer by layer on the stream of the model that is already cut: the inputs go, and the last
 *      map is fitted again, towards what the large model had at that place (lm_refit.c).
 *
 * The stream keeps its width: with it gone the same number of parameters costs more. With nothing
 * to take away nothing is changed. `qk` is the same for queries and keys alone: no map is fitted
 * again.
 *
 * Cost: two ways through the model in f64, and F^3 for the F inputs of each sublayer. Only one
 * place's rows and one sublayer's moments are in memory at a time. */
#include "lm_auto.h"

static part_cost part(pare_work *w, size_t of, size_t stay)
{
    part_cost p = {.of = of, .n = of > stay ? of - stay : 0};
    p.cost = vec_zeros(w, p.n);
    p.size = pare_work_alloc(w, p.n, sizeof *p.size);
    return p;
}

/* Every group of values and of keys keeps one direction, every layer one hidden unit. */
static part_cost *parts_of(pare_work *w, const lm *m, const lm_shape *f, bool keys_alone)
{
    part_cost *const p = pare_work_alloc(w, PARTS * m->m->nblocks, sizeof *p);
    for (size_t b = 0; !w->st && b < m->m->nblocks; b++) {
        p[PARTS * b + KEYS] = part(w, f[b].k - f[b].planes, f[b].nkeys);
        p[PARTS * b + VALUES] = part(w, f[b].v, keys_alone ? f[b].v : f[b].nkeys);
        p[PARTS * b + UNITS] = part(w, f[b].units, keys_alone ? f[b].units : 1);
    }
    return p;
}

/* Biases that the fit adds where the model has none. */
static size_t new_biases(const lm *m, const lm_shape *f)
{
    size_t n = 0;
    for (size_t b = 0; b < m->m->nblocks; b++) {
        if (f[b].attn && !f[b].bo) n += m->width[2 * b + 1];
        if (f[b].ffn && !f[b].b2) n += m->width[2 * b + 2];
    }
    return n;
}

static void share(lm_job *j, const prune_pass *p)
{
    const size_t now = (size_t)pare_model_size(j->m->m, 1, 1).parameters;
    const size_t stay = (size_t)(j->o->keep * (double)now);
    if (stay >= now) return;
    const size_t go = now - stay + (p->fit ? new_biases(j->m, j->facts) : 0);
    if (allocate_removals(p->parts, PARTS * j->m->m->nblocks, go) < go)
        pare_work_fail(
            j->w, PARE_ERR_PROMISE,
            "removing %s does not leave as few as %zu of %zu parameters; keep a larger share",
            p->fit ? "queries, keys, values and hidden units" : "queries and keys", stay, now);
}

/* Sizes that were given. */
static void as_asked(const lm_job *j, prune_pass *p)
{
    p->qk_dim = j->o->qk_dim;
    for (size_t b = 0; b < j->m->m->nblocks; b++) {
        part_cost *const v = &p->parts[PARTS * b + VALUES], *const u = &p->parts[PARTS * b + UNITS];
        const size_t dv = j->facts[b].nkeys * j->o->v_dim;
        if (j->o->v_dim && dv < v->of) v->gone = v->of - dv;
        if (j->o->ffn_dim && j->o->ffn_dim < u->of) u->gone = u->of - j->o->ffn_dim;
    }
}

void lm_auto(lm_job *j)
{
    pare_work *const w = j->w;
    const bool keys = j->o->method == PARE_WIDTH_QK;
    prune_pass p = {.w = w, .m = j->m, .out = j->out, .fit = !keys};
    /* Thirds, roughly: the metric, weighing, and the cut itself. */
    const double weighing = j->o->keep > 0 ? 1 : 0;
    pare_steps steps = pare_steps_of(w->exec, 1 + weighing + 1.5);
    const pare_exec *const exec = w->exec;
    w->exec = pare_step(&steps, "cut", 1);
    p.parts = parts_of(w, j->m, j->facts, keys);
    p.metric = w->st ? NULL : lm_gradient_metric(w, j->m, j->data, j->o->tokens, j->o->seed);
    (void)pare_step(&steps, "cut", weighing);
    if (j->o->keep > 0) {
        const pare_mark mark = pare_arena_mark(w->arena);
        p.large = lm_embedding_rows(w, j->m, j->data, j->o->tokens);
        if (!w->st) lm_removal_costs(&p);
        pare_arena_reset(w->arena, mark);
        if (!w->st) share(j, &p);
    } else if (!w->st) {
        as_asked(j, &p);
    }
    (void)pare_step(&steps, "cut", 1.5);
    p.large = lm_embedding_rows(w, j->m, j->data, j->o->tokens);
    p.small = lm_embedding_rows(w, j->m, j->data, j->o->tokens);
    if (!w->st) lm_refit(&p);
    lm_write_ends(w, j->out, NULL, NULL, NULL);
    w->exec = exec;
}
