/* lm_verify.c - prove the cut of a model with norms again, from the two files and the inputs alone:
 * how far the outputs are apart, for which rows the largest entry is surely the same, and for every
 * layer how far the attention weights are apart. How the cut was made does not matter. */
#include "prove.h"
#include "cert/conformal.h"
#include "cert/outputs.h"
#include <math.h>

/* Multiplications of all the passes that the attention weights need: beyond it, they are skipped
 * (minutes on a model of a hundred million parameters). From shapes alone. */
#define RATIO_WORK 2.5e10

/* Weights can be compared key by key where both models have the same heads on the same pattern. */
static bool same_heads(const pare_model *f, const pare_model *g)
{
    if (f->nblocks != g->nblocks || !same_pattern(&f->pattern, &g->pattern)) return false;
    for (size_t b = 0; b < f->nblocks; b++) {
        const pare_attn *const x = &f->blocks[b].attn, *const y = &g->blocks[b].attn;
        if (x->kind != y->kind) return false;
        if (x->kind == PARE_ATTN_NONE) continue;
        if (x->kind != PARE_ATTN_EXACT || x->nheads != y->nheads) return false;
    }
    return true;
}

pare_status lm_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed, const pare_model *f,
                     const pare_model *g, const pare_inputs *set, const pare_exec *exec,
                     pare_err *err)
{
    pare_work work = {pare_arena_new(), exec, err, PARE_OK}, *const w = &work;
    if (!w->arena) return pare_no_memory(err);
    pare_output_bound o;
    /* In units of one enclosure of both models; the headline is likely to be proven twice. */
    const double again_wide = 6;
    const bool ratios =
        same_heads(f, g) && (double)f->nblocks / 2 * pare_passes_work(f, g, set) <= RATIO_WORK;
    const double attention = ratios ? (double)f->nblocks / 2 : 0;
    pare_steps steps = pare_steps_of(w->exec, again_wide + attention);
    w->exec = pare_step(&steps, NULL, again_wide);
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    w->st = again->domain ? pare_outputs_compare(&o, a, f, g, set, true, w->exec, w->err)
                          : pare_no_memory(w->err);
    if (!w->st) w->st = pare_cert_take_outputs(again, a, &o, w->err);
    w->exec = pare_step(&steps, NULL, attention);
    /* A layer needs those below it. */
    pare_steps layers = pare_steps_of(w->exec, (double)(f->nblocks * (f->nblocks + 1)));
    for (size_t l = 0; !w->st && ratios && l < f->nblocks; l++) {
        w->exec = pare_step(&layers, "prove attention", 2.0 * (double)(l + 1));
        if (f->blocks[l].attn.kind == PARE_ATTN_NONE) continue;
        const double bound = attention_ratios(w, f, g, set, l).proven.v;
        const pare_claim c = {.kind = PARE_ATTENTION_RATIO, .p = {(double)l}, .value = bound};
        if (!w->st) w->st = pare_cert_add(again, a, c, w->err);
    }
    if (!w->st) w->st = pare_add_new_inputs(again, a, &claimed->data, set, o.each, w->err);
    pare_arena_free(w->arena);
    return w->st;
}
