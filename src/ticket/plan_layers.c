/* plan_layers.c - how wide the source of every attention layer must be (Otsuka 2025, Theorem 3).
 *
 * Theorem 3 is about one layer of heads without biases,
 *
 *     out_i = sum_h sum_k softmax_k( x_i^T G_h x_k ) V_h x_k,      G_h = c Wq^T Wk,  V_h = Wo Wv,
 *
 * on tokens of length at most alpha. Of a layer inside a model alpha is what the rows that enter
 * it can be for all inputs (the same walk as in model_bound.c, with nothing that differs), omega
 * is the largest |V_h|, and the entries to be met are at most rq and rv. Value and output biases
 * are kept as numbers and change nothing; a query bias is one more row of G_h, which the theorem
 * lacks. */
#include "ticket_bounds.h"
#include "model_bound.h"
#include <math.h>

/* The hypothesis of Theorem 3 that this layer fails. */
static const char *missing_hypothesis(const pare_attn *at, const attn_sizes *s)
{
    if (s->nheads == 0) return "softmax heads";
    for (size_t h = 0; h < at->nheads; h++)
        if (at->heads[h].planes > 0) return "positions that are not rotary";
    for (size_t h = 0; h < s->nheads; h++)
        if (s->heads[h].factored) return "rows narrow enough to multiply queries and keys out";
    return pare_has(&at->bq) ? "queries without a bias" : NULL;
}

static void plan_layer(pare_ticket_layer_plan *out, const pare_attn *at, const attn_sizes *s,
                       pare_ub alpha, double eps, double p)
{
    const char *const lacks = missing_hypothesis(at, s);
    if (lacks) {
        bounds_refuse(out->why, "Theorem 3 needs %s", lacks);
        return;
    }
    pare_ticket_layer_size z = {.heads = s->nheads, .d1 = at->din, .alpha = alpha.v};
    for (size_t h = 0; h < s->nheads; h++) {
        const pare_head *const head = &at->heads[h];
        const size_t d2 = pare_has(&at->wo) ? at->dout : head->dv;
        if (d2 > z.d2) z.d2 = d2;
        if (head->dk > z.dk) z.dk = head->dk;
        if (head->dv > z.dv) z.dv = head->dv;
        z.omega = fmax(z.omega, s->heads[h].v.v);
        z.rq = fmax(z.rq, s->heads[h].g_max.v);
        z.rv = fmax(z.rv, s->heads[h].v_max.v);
    }
    out->size = z;
    if (!(alpha.v > 0 && alpha.v < INFINITY))
        bounds_refuse(out->why, "the rows that enter it have no finite length");
    else if (!(z.omega > 0 && z.omega < INFINITY))
        bounds_refuse(out->why, "its values are all zero, or not bounded");
    else
        out->plan = pare_ticket_plan_layer(&out->size, eps, p);
}

pare_status pare_ticket_plan_layers(pare_ticket_layer_plan *out, char why[200], const pare_model *f,
                                    const pare_ticket_goal *goal, const pare_exec *exec,
                                    pare_err *err)
{
    const double alpha = goal->alpha;
    const pare_ub a = pare_ub_exact(alpha);
    *why = '\0';
    for (size_t b = 0; b < f->nblocks; b++) out[b] = (pare_ticket_layer_plan){0};
    if (!f->embedding.ids && !(alpha > 0 && alpha < INFINITY)) {
        bounds_refuse(why, "a bound for all rows needs their length, a positive number");
        return PARE_OK;
    }
    pare_work k = {pare_arena_new(), exec, err, PARE_OK};
    if (!k.arena) return pare_no_memory(err);
    const model_sizes m = model_sizes_of(&k, f, f, why);
    span x = {a, a, pare_ub_exact(0), 0};
    if (!k.st && !*why) x = embedding_move(&m.embedding, x);
    for (size_t b = 0; !k.st && !*why && b < f->nblocks; b++) {
        const attn_sizes *const s = &m.blocks[b].attn;
        out[b].there = s->kind != PARE_ATTN_NONE;
        if (out[b].there)
            plan_layer(&out[b], &f->blocks[b].attn, s, norm_move(&s->in, x).f, goal->eps, goal->p);
        x = block_move(&m.blocks[b], x);
    }
    pare_arena_free(k.arena);
    return k.st;
}
