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
/* The same for largest entries by wide midpoints. */
#define WIDE_WORK 2e10

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
    return sum;
}

/* ---- largest entries ------------------------------------------------------------------------ */

/* What lies below a wide midpoint counts as radius: then it is an enclosure like any other. */
static void without_low_parts(pare_enclosure *e)
{
    for (size_t i = 0; i < e->rows; i++) {
        double low = 0;
        for (size_t k = 0; k < e->cols; k++) low = fmax(low, fabs(e->lo[i * e->cols + k]));
        e->rad[i] = pare_ub_add(pare_ub_exact(e->rad[i]), pare_ub_exact(low)).v;
    }
}

static void compare_wide(work *w, output_bound *out, const pare_model *const m[2],
                         pare_model_norms *const norms[2], const pare_input *in)
{
    pare_enclosure e[2];
    pare_arena *const a = pare_arena_new();
    if (!a) w->st = pare_no_memory(w->err);
    for (int k = 0; k < 2 && !w->st; k++) {
        w->st = pare_enclose_wide(&e[k], a, m[k], norms[k], in, w->exec, w->err);
        if (!w->st) without_low_parts(&e[k]);
    }
    for (size_t i = 0; !w->st && i < e[0].rows; i++) outputs_compare_row(out, &e[0], &e[1], i);
    pare_arena_free(a);
}

/* Through many layers f64 alone says too little about single rows: more of them are certain with
 * wide midpoints. */
static void more_certain(work *w, output_bound *o, const pare_model *f, const pare_model *g,
                         const pare_inputs *set)
{
    const pare_model *const m[2] = {f, g};
    const pare_mark mark = pare_arena_mark(w->a);
    pare_model_norms *norms[2] = {0};
    output_bound wide = {0};
    if (w->st || o->certain == o->rows || work_of(f, g, set) > WIDE_WORK) return;
    for (int k = 0; k < 2 && !w->st; k++)
        w->st = pare_model_norms_new(&norms[k], w->a, m[k], w->exec, w->err);
    for (size_t i = 0; !w->st && i < set->n; i++) compare_wide(w, &wide, m, norms, &set->in[i]);
    if (!w->st && wide.certain > o->certain) o->certain = wide.certain;
    pare_arena_reset(w->a, mark);
}

/* ---- attention weights ---------------------------------------------------------------------- */

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
    more_certain(w, &o, f, g, set);
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    again->statements = pare_alloc(a, f->nblocks + 2, sizeof *again->statements);
    if (!w->st && (!again->domain || !again->statements)) w->st = pare_no_memory(w->err);
    if (w->st) return;
    const double share = (double)(o.rows - o.certain) / (double)(o.rows ? o.rows : 1);
    again->statements[again->nstatements++] =
        (pare_statement){"rows whose largest entry may have changed", "share of the output rows",
                         again->domain, 1, share};
    /* A layer needs those below it. */
    const double passes = (double)f->nblocks / 2;
    if (alike(f, g) && passes * work_of(f, g, set) <= RATIO_WORK) weights(w, again, a, f, g, set);
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
