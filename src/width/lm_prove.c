/* Proving the cut of a model with norms again, from the two files and the inputs alone: how far the
 * outputs are apart, for which rows the largest entry is surely the same, and for every layer how
 * far the attention weights are apart. How the cut was made is not asked. */
#include "prove.h"
#include <pare/publish.h>
#include <math.h>
#include <string.h>

/* Multiplications of all the passes that the attention weights need: beyond it, they are not looked
 * at (minutes on a model of a hundred million parameters). From shapes alone. */
#define RATIO_WORK 2.5e10

/* Weights can be compared key by key where both models have the same heads on the same pattern. */
static bool alike(const pare_model *f, const pare_model *g)
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

static double work_of(const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    double sum = 0;
    for (size_t i = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        const uint64_t edges = in->graph ? in->graph->ptr[in->graph->n] : 0;
        sum += (double)in->batch * ((double)pare_model_size(f, in->tokens, edges).macs +
                                    (double)pare_model_size(g, in->tokens, edges).macs);
    }
    return sum * (double)f->nblocks / 2; /* a layer needs those below it */
}

static void weights(work *w, pare_cert *again, pare_arena *a, const pare_model *f,
                    const pare_model *g, const pare_inputs *set)
{
    for (size_t l = 0; !w->st && l < f->nblocks; l++) {
        if (f->blocks[l].attn.kind == PARE_ATTN_NONE) continue;
        const ratio_bound r = ratios_of_layer(w, f, g, set, l);
        const char *const name = pare_sprintf(a, "attention weights of layer %zu", l);
        if (!w->st && !name) w->st = pare_no_memory(w->err);
        if (w->st) return;
        again->statements[again->nstatements++] = (pare_statement){
            name, "largest |ln(a / a^)| over the attention weights", again->domain, 1, r.proven.v};
        pare_progress(w->exec, "prove attention", l + 1, f->nblocks);
    }
}

/* Asked for by its name among the statements of the certificate as it came. */
static bool next_input_asked(const pare_cert *claimed)
{
    for (size_t i = 0; i < claimed->nstatements; i++)
        if (strcmp(claimed->statements[i].name, PARE_WIDTH_NEW_INPUT) == 0) return true;
    return false;
}

/* What is proven of inputs that the cut has not seen says something of the next one. */
static void next_input(work *w, pare_cert *again, pare_arena *a, const pare_inputs *set)
{
    static const pare_hypothesis unseen = {
        "a new input: the data are independent draws of its source that the cut has not seen",
        PARE_UNKNOWN, NAN, NAN};
    const pare_statement s = exchangeable(a, set, again->proven);
    again->hypotheses = pare_alloc(a, 1, sizeof *again->hypotheses);
    if (!w->st && (!s.name || !again->hypotheses)) w->st = pare_no_memory(w->err);
    if (w->st) return;
    again->hypotheses[again->nhypotheses++] = unseen;
    again->statements[again->nstatements++] = s;
}

static void fill(work *w, pare_cert *again, pare_arena *a, const pare_cert *claimed,
                 const pare_model *f, const pare_model *g, const pare_inputs *set, bool next)
{
    output_bound o;
    outputs_compare(w, &o, f, g, set);
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    again->statements = pare_alloc(a, f->nblocks + 2, sizeof *again->statements);
    if (!w->st && (!again->domain || !again->statements)) w->st = pare_no_memory(w->err);
    if (w->st) return;
    const double share = (double)(o.rows - o.certain) / (double)(o.rows ? o.rows : 1);
    again->statements[again->nstatements++] =
        (pare_statement){"rows whose largest entry may have changed", "share of the output rows",
                         again->domain, 1, share};
    if (alike(f, g) && work_of(f, g, set) <= RATIO_WORK) weights(w, again, a, f, g, set);
    again->apriori = INFINITY;
    again->proven = o.gap.proven.v;
    again->measured = o.gap.measured;
    again->measured_slack = pare_measured_slack(&o.gap);
    again->rounding = o.gap.rounding.v;
    if (next) next_input(w, again, a, set);
}

pare_status lm_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed, const pare_model *f,
                     const pare_model *g, const pare_inputs *set, const pare_exec *exec,
                     pare_err *err)
{
    work w = {pare_arena_new(), exec, err, PARE_OK};
    if (!w.a) return pare_no_memory(err);
    const bool next = next_input_asked(claimed); /* `again` may be `claimed` */
    again->nhypotheses = again->nstatements = 0;
    fill(&w, again, a, claimed, f, g, set, next);
    pare_arena_free(w.a);
    return w.st;
}
