/* probe_depth.c - attention and what may replace it: its statistics, the costs of replacing it, and
 * what is proven a priori. Replacements are fitted to the first half of the inputs and measured on
 * the second; a single input serves for both. */
#include "probe.h"
#include <math.h>
#include <string.h>

probe_halves probe_halve(const pare_inputs *in, size_t tokens)
{
    size_t n = 0, have = 0;
    while (n < in->n && (n < 2 || have < tokens)) {
        have += in->in[n].batch * in->in[n].tokens;
        n++;
    }
    if (n < 2) return (probe_halves){{n, in->in}, {n, in->in}, 0};
    return (probe_halves){{n / 2, in->in}, {n - n / 2, in->in + n / 2}, n / 2};
}

/* Measures a metric on the second half. */
typedef struct evaluator {
    const pare_inputs *heldout;
    pare_dataset part; /* the targets that belong to `look` */
    const pare_exec *exec;
} evaluator;

static pare_status evaluate(void *self, double *out, const pare_model *m, pare_err *err)
{
    const evaluator *const e = self;
    return probe_metric(out, m, &e->part, e->heldout, e->exec, err);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

typedef struct prover {
    pare_probe *p;
    const pare_model *m;
    const pare_inputs *heldout;
    double phi0; /* largest entry of an input */
    const char *domain;
    const pare_exec *exec;
    pare_err *err;
} prover;

/* Collapses the attention in one way (`what`), bounds |f - g| a priori and measures it. */
static pare_status bound_collapse(pare_probe_bound *to, const prover *v, const char *what)
{
    const pare_attention_stats *const x = &v->p->depth.stats;
    const size_t last = x->layers[x->nlayers - 1].block;
    const bool keep = strcmp(what, "keep") == 0, parallel = strncmp(what, "parallel", 8) == 0;
    pare_model *g = NULL;
    pare_collapse_bound b = {.bound = pare_ub_inf(), .difference = pare_ub_inf()};
    pare_err why = {0};
    pare_status st;
    *to = (pare_probe_bound){.what = what,
                             .domain = v->domain,
                             .bound = b.bound,
                             .difference = b.difference,
                             .measured = NAN};
    if (parallel) {
        const bool uniform = strcmp(what, "parallel+uniform") == 0;
        const pare_depth_one_opts one = {.which = uniform ? PARE_ONE_PARALLEL_UNIFORM
                                                          : PARE_ONE_PARALLEL,
                                         .keep = PARE_DEPTH_UNSET};
        st = pare_depth_one_layer(&g, NULL, v->m, NULL, &one, v->exec, &why);
    } else {
        pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
        pare_depth_report report;
        o.kind = keep ? PARE_ATTN_ZERO : PARE_ATTN_UNIFORM;
        o.exact = &last;
        o.nexact = keep;
        o.layers = keep;
        st = pare_depth(&g, &report, v->m, NULL, &o, v->exec, &why);
    }
    if (st == PARE_ERR_INPUT || st == PARE_ERR_USAGE) { /* no such collapse of this model */
        to->why = pare_strdup(v->p->arena, why.msg);
        return to->why ? PARE_OK : pare_no_memory(v->err);
    }
    if (st) return pare_fail(v->err, st, "%s", why.msg);
    st = pare_collapse_apriori(&b, v->m, g, v->phi0, v->exec, v->err);
    if (!st) {
        /* Largest |f - g| of an output on the data; nan where one is. */
        double *const out = &to->measured;
        st = PARE_OK;
        *out = 0;
        for (size_t i = 0; !st && i < v->heldout->n; i++) {
            const pare_input *const in = &v->heldout->in[i];
            const size_t n = pare_output_rows(v->m, in) * pare_model_outputs(v->m);
            pare_arena *const a = pare_arena_new();
            double *const y = a ? pare_alloc(a, n + 1, sizeof *y) : NULL;
            double *const z = y ? pare_alloc(a, n + 1, sizeof *z) : NULL;
            st = z ? pare_forward_f64(y, v->m, in, NULL, v->exec, v->err) : pare_no_memory(v->err);
            if (!st) st = pare_forward_f64(z, g, in, NULL, v->exec, v->err);
            for (size_t k = 0; !st && k < n; k++)
                if (!(fabs(y[k] - z[k]) <= *out)) *out = fabs(y[k] - z[k]);
            pare_arena_free(a);
        }
    }
    pare_model_free(g);
    to->bound = b.bound;
    to->difference = b.difference;
    to->why = st ? "" : pare_strdup(v->p->arena, b.why);
    return st ? st : to->why ? PARE_OK : pare_no_memory(v->err);
}

static pare_status bound_collapses(prover *v)
{
    static const char *const names[] = {"keep", "uniform", "parallel", "parallel+uniform"};
    pare_depth_probe *const d = &v->p->depth;
    const size_t n = sizeof names / sizeof *names;
    pare_status st = PARE_OK;
    v->phi0 = 0;
    for (size_t i = 0; i < v->heldout->n; i++) {
        const pare_input *const in = &v->heldout->in[i];
        for (size_t k = 0; in->x && k < in->batch * in->tokens * in->width; k++)
            v->phi0 = fmax(v->phi0, fabs(in->x[k]));
    }
    v->domain = v->m->embedding.ids
                    ? "all token sequences"
                    : pare_sprintf(v->p->arena, "all inputs with entries at most %.3g", v->phi0);
    d->bounds = pare_alloc(v->p->arena, n, sizeof *d->bounds);
    if (!d->bounds || !v->domain) return pare_no_memory(v->err);
    for (size_t i = 0; !st && i < n; i++) {
        /* Of one attention the first and the third replace nothing. */
        if (d->stats.nlayers < 2 && i % 2 == 0) continue;
        st = bound_collapse(&d->bounds[d->nbounds++], v, names[i]);
        if (!st) st = pare_progress(v->exec, "prove a priori", i + 1, n, v->err);
    }
    return st;
}

pare_status probe_depth(pare_probe *p, const pare_model *m, const pare_dataset *data,
                        const pare_inputs *in, const pare_probe_opts *o, const pare_exec *exec,
                        pare_err *err)
{
    pare_depth_probe *const d = &p->depth;
    const pare_attention_stats *const x = &d->stats;
    const probe_halves h = probe_halve(in, o->depth_tokens);
    const pare_exec silent = pare_exec_silent(exec);
    evaluator e = {.heldout = &h.heldout, .part = *data, .exec = &silent};
    e.part.target = data->target ? data->target + h.first : NULL;
    const pare_replacement_costs_opts costs = {
        .macs = o->depth_macs, .metric = p->metric ? evaluate : NULL, .self = &e};
    pare_steps steps = pare_steps_of(exec, 10 + (o->no_cuts ? 0 : 80) + 10);
    exec = pare_step(&steps, NULL, 10);
    pare_status st = pare_depth_attention_stats(
        &d->stats, p->arena, m, &(pare_input_split){.fit = &h.fit, .heldout = &h.heldout}, exec,
        err);
    if (st) return st;
    exec = pare_step(&steps, NULL, o->no_cuts ? 0 : 80);
    if (x->nheads == 0) return probe_untold(p, err, "attention: the model has no softmax heads");
    p->has_depth = true;
    /* The theorem as printed; what enters the first attention is the input of Rank collapse
     * 2025. */
    double eta = 0;
    for (size_t i = 0; i < x->nheads; i++) eta = fmax(eta, x->heads[i].eta);
    for (size_t l = 0; l < x->nlayers; l++)
        if (x->layers[l].nheads > d->paper_heads) d->paper_heads = x->layers[l].nheads;
    d->paper_layers = x->nlayers;
    d->paper = pare_collapse_paper(eta, x->layers[0].x, d->paper_heads, d->paper_layers);
    if (!o->no_cuts)
        st = pare_depth_replacement_costs(&d->costs, p->arena, m,
                                          &(pare_input_split){.fit = &h.fit, .heldout = &h.heldout},
                                          &costs, exec, err);
    if (!st && d->costs.skipped)
        st = probe_untold(p, err,
                          "what replacing attention would cost: %s (a larger depth_macs tries it)",
                          d->costs.skipped);
    prover v = {.p = p, .m = m, .heldout = &h.heldout, .exec = &silent, .err = err};
    if (!st) st = bound_collapses(&v);
    return st ? st : probe_verdict(p, m, err);
}
