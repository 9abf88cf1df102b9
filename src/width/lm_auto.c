/* lm_auto.c - the best cut we know of models with norms, positions and ids: hidden units, value
 * directions, and dimensions of queries and keys are removed where that costs least, and the maps
 * behind them are fitted again.
 *
 *   1. the gradient metric of every point of the stream (gradient_metric.c);
 *   2. on the large model, for every sublayer the order in which the inputs of its last map would
 *      be removed, and the cost of each (lm_removal_costs.c); the same for queries and keys
 *      (lm_keys.c), at the measured loss; the removals are then spread over the sublayers
 *      (allocate_removals);
 *   3. layer by layer on the stream of the model that is already cut: the inputs are removed, and
 *      the last map is fitted again, towards what the large model had there (lm_refit.c).
 *
 * Where the result must fit a Hugging Face config (`standard`), hidden units alone are removed, as
 * many in every block, and no map gets a bias that it did not have.
 *
 * The stream keeps its width: narrowing it costs more for the same number of parameters. With
 * nothing to remove nothing is changed. The method `qk` is the same for queries and keys alone,
 * without fitting.
 *
 * Cost: two passes through the model in f64, and F^3 for the F inputs of each sublayer. Only the
 * rows of one point and the moments of one sublayer are in memory at a time. */
#include "lm_auto.h"
#include <math.h>

#define STEEPNESS 8 /* of the price below */

static part_cost part_cost_of(pare_work *w, size_t count, size_t min_left)
{
    part_cost p = {.count = count, .n = count > min_left ? count - min_left : 0};
    p.cost = vec_zeros(w, p.n);
    p.size = pare_work_alloc(w, p.n, sizeof *p.size);
    return p;
}

/* Costs of different layers do not simply add up: an error on top of another costs more than
 * alone. So the price of the next removal in a part rises with the share x of the part that is
 * removed already, by 1 + STEEPNESS x^2, which spreads the cut wider than the sum would. */
static double removal_price(const part_cost *p)
{
    const double x = (double)(p->removed + 1) / (double)p->count;
    return p->cost[p->removed] * (1 + STEEPNESS * x * x) / (double)p->size[p->removed];
}

size_t allocate_removals(part_cost *p, size_t parts, size_t parameters)
{
    size_t done = 0;
    for (size_t k = 0; k < parts; k++) {
        /* Costs must not fall: greedy removal meets a cheap unit late now and then. */
        for (size_t i = 1; i < p[k].n; i++) p[k].cost[i] = fmax(p[k].cost[i], p[k].cost[i - 1]);
        p[k].removed = 0;
    }
    while (done < parameters) {
        part_cost *best = NULL;
        for (size_t k = 0; k < parts; k++)
            if (p[k].removed < p[k].n && (!best || removal_price(&p[k]) < removal_price(best)))
                best = &p[k];
        if (!best) break;
        done += best->size[best->removed++];
    }
    return done;
}

/* Removals until the share `keep` of the parameters is left. */
static void remove_for_share(lm_job *j, const prune_pass *p)
{
    const size_t nblocks = j->m->m->nblocks;
    const size_t now = (size_t)pare_model_size(j->m->m, 1, 1).parameters;
    const size_t target = (size_t)(j->o->keep * (double)now);
    if (target >= now) return;
    size_t wanted = now - target;
    for (size_t b = 0; p->fit && b < nblocks; b++) { /* biases that the fit adds */
        if (j->shapes[b].attn && !j->shapes[b].bo) wanted += j->m->width[2 * b + 1];
        if (j->shapes[b].ffn && !j->shapes[b].b2) wanted += j->m->width[2 * b + 2];
    }
    if (allocate_removals(p->parts, PARTS * nblocks, wanted) < wanted)
        pare_work_fail(
            j->w, PARE_ERR_PROMISE,
            "removing %s does not leave as few as %zu of %zu parameters; keep a larger share",
            p->fit ? "queries, keys, values and hidden units" : "queries and keys", target, now);
}

/* ---- shapes that a config can express --------------------------------------------------------- */

/* Numbers that one hidden unit of the block stores. */
static size_t unit_size(const pare_ffn *f)
{
    const size_t last = f->nlayers - 1;
    size_t n = f->layers[last].w.rows;
    for (size_t i = 0; i < last; i++)
        n += f->layers[i].w.cols + (pare_has(&f->layers[i].b) ? 1 : 0);
    return n;
}

/* Hidden units for every block, as the options say or so many that the share is left. A block
 * without attention is the head of a masked-word model, which keeps its own. */
static void remove_uniformly(lm_job *j, prune_pass *p)
{
    const pare_model *const m = j->m->m;
    const size_t now = (size_t)pare_model_size(m, 1, 1).parameters;
    const size_t target = (size_t)(j->o->keep * (double)now);
    size_t units = 0, size = 0, removed = 0;
    for (size_t b = 0; b < m->nblocks; b++) {
        if (!j->shapes[b].attn || !j->shapes[b].ffn) continue;
        if (units && j->shapes[b].units != units)
            pare_work_fail(j->w, PARE_ERR_INPUT,
                           "block %zu has %zu hidden units, others %zu: no config can express that",
                           b, j->shapes[b].units, units);
        units = j->shapes[b].units;
        size += unit_size(&m->blocks[b].ffn);
    }
    if (j->o->ffn_dim)
        removed = units > j->o->ffn_dim ? units - j->o->ffn_dim : 0;
    else if (target < now)
        removed = size ? (now - target + size - 1) / size : 1;
    if (removed && removed >= units)
        pare_work_fail(
            j->w, PARE_ERR_PROMISE,
            "removing hidden units, in all blocks alike as a config asks, does not leave "
            "as few as %zu of %zu parameters; keep a larger share, or set any_shape",
            target, now);
    for (size_t b = 0; !j->w->st && b < m->nblocks; b++)
        if (j->shapes[b].attn && j->shapes[b].ffn) p->parts[PARTS * b + UNITS].removed = removed;
}

/* ---- all of it ------------------------------------------------------------------------------- */

void lm_auto(lm_job *j)
{
    pare_work *const w = j->w;
    const bool keys_only = j->o->method == PARE_WIDTH_QK;
    const size_t nblocks = j->m->m->nblocks;
    const lm_shape *const f = j->shapes;
    const bool standard = j->o->standard;
    prune_pass p = {.w = w, .m = j->m, .out = j->out, .fit = !keys_only, .standard = standard};
    /* About a third each: the metric, the costs, and the cut itself. */
    const double cost_time = j->o->keep > 0 && !standard ? 1 : 0;
    pare_steps steps = pare_steps_of(w->exec, 1 + cost_time + 1.5);
    const pare_exec *const exec = w->exec;
    w->exec = pare_step(&steps, "cut", 1);
    /* Every group of values and of keys keeps one direction, every layer one hidden unit. */
    p.parts = pare_work_alloc(w, PARTS * nblocks, sizeof *p.parts);
    for (size_t b = 0; !w->st && b < nblocks; b++) {
        p.parts[PARTS * b + KEYS] = part_cost_of(w, f[b].k - f[b].planes, f[b].nkeys);
        p.parts[PARTS * b + VALUES] = part_cost_of(w, f[b].v, keys_only ? f[b].v : f[b].nkeys);
        p.parts[PARTS * b + UNITS] = part_cost_of(w, f[b].units, keys_only ? f[b].units : 1);
    }
    p.metric = w->st ? NULL : lm_gradient_metric(w, j->m, j->data, j->o->tokens, j->o->seed);
    (void)pare_step(&steps, "cut", cost_time);
    if (standard && !w->st) {
        remove_uniformly(j, &p);
    } else if (j->o->keep > 0) {
        const pare_mark mark = pare_arena_mark(w->arena);
        p.large = lm_embedding_rows(w, j->m, j->data, j->o->tokens);
        if (!w->st) lm_removal_costs(&p);
        pare_arena_reset(w->arena, mark);
        if (!w->st) remove_for_share(j, &p);
    } else if (!w->st) { /* until the widths are those of the options */
        p.qk_dim = j->o->qk_dim;
        for (size_t b = 0; b < nblocks; b++) {
            part_cost *const v = &p.parts[PARTS * b + VALUES];
            part_cost *const u = &p.parts[PARTS * b + UNITS];
            const size_t dv = f[b].nkeys * j->o->v_dim;
            if (j->o->v_dim && dv < v->count) v->removed = v->count - dv;
            if (j->o->ffn_dim && j->o->ffn_dim < u->count) u->removed = u->count - j->o->ffn_dim;
        }
    }
    (void)pare_step(&steps, "cut", 1.5);
    p.large = lm_embedding_rows(w, j->m, j->data, j->o->tokens);
    p.small = lm_embedding_rows(w, j->m, j->data, j->o->tokens);
    if (!w->st) lm_refit(&p);
    lm_write_ends(w, j->out, NULL, NULL, NULL);
    w->exec = exec;
}
