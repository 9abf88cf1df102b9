/* reduce_width.c - narrower models (reduce.c): language models and encoders are fitted to a part of
 * the data and proven on another, graph transformers take whole graphs. */
#include "cert/heldout.h"
#include "reduce_parts.h"
#include "cert/outputs.h"
#include "linalg/bounds.h"
#include "width/jl_bounds.h"
#include <pare/cut.h>

#include <math.h>
#include <string.h>

static pare_width_opts width_opts(const pare_reduce_opts *o)
{
    pare_width_opts w = o->width;
    w.seed = o->seed;
    w.dtype = o->dtype;
    return w;
}

/* The report lives in the cut model, which publishing frees. */
static pare_status make_narrower(reducer *r, pare_model **small, const pare_width_opts *w,
                                 const pare_inputs *fit)
{
    pare_width_report *const p = &r->out->width;
    const pare_status st = pare_width(small, p, r->m, fit, w, r->exec, r->err);
    if (st) return st;
    p->points = reduce_copy(r, p->points, p->npoints, sizeof *p->points);
    p->heads = reduce_copy(r, p->heads, p->nheads, sizeof *p->heads);
    p->hidden = reduce_copy(r, p->hidden, p->nhidden, sizeof *p->hidden);
    return p->points && p->heads && p->hidden ? PARE_OK : pare_no_memory(r->err);
}

/* ---- language models and encoders ------------------------------------------------------------- */

/* The smallest share of the parameters, in percent, whose proven bound is within max_error. The
 * bound need not grow with every percent: the answer is one that was proven, not the least there
 * is. */
static pare_status search_share(reducer *r, pare_width_opts *w, const pare_inputs *fit)
{
    const double max_error = r->o->max_error;
    size_t low = 1, high = 100;
    double best = INFINITY;
    while (low < high) {
        pare_model *g = NULL;
        pare_output_bound bound;
        const size_t mid = (low + high) / 2;
        double proven = INFINITY;
        w->keep = (double)mid / 100;
        pare_status st = pare_width(&g, &r->out->width, r->m, fit, w, r->exec, r->err);
        const bool too_few = st == PARE_ERR_PROMISE; /* no cut leaves so few parameters */
        if (too_few) st = PARE_OK;
        if (!st && !too_few) {
            st = pare_outputs_compare(&bound, NULL, r->m, g, &r->out->inputs.held.set, false,
                                      r->exec, r->err);
            if (!st) proven = pare_ub_written(bound.gap.proven);
        }
        pare_model_free(g);
        if (st) return st;
        best = fmin(best, proven);
        if (proven <= max_error)
            high = mid;
        else
            low = mid + 1;
    }
    w->keep = (double)high / 100;
    if (high < 100) return PARE_OK;
    char shown[40];
    return pare_fail(r->err, PARE_ERR_PROMISE,
                     "no cut that was tried stays within max_error %g: the best proven bound is "
                     "%s; nothing was written",
                     max_error, pare_ub_format(shown, pare_ub_exact(best), 3));
}

static pare_status reduce_text(reducer *r)
{
    const pare_reduce_opts *const o = r->o;
    pare_reduction *const out = r->out;
    pare_width_opts w = width_opts(o);
    const bool search = !w.dim && !w.qk_dim && !w.v_dim && !w.ffn_dim && !(w.keep > 0);
    pare_model *small = NULL;
    pare_status st = reduce_load(r, (pare_heldout_opts){0});
    const pare_inputs *const fit = out->inputs.fit.n ? &out->inputs.fit : NULL;
    if (!st && o->data) st = reduce_new_inputs(r, search);
    if (search) reduce_phase(r, "find the share to keep", 60);
    if (!st && search) st = search_share(r, &w, fit);
    out->keep = w.keep;
    reduce_phase(r, NULL, search ? 20 : 65);
    if (!st) st = make_narrower(r, &small, &w, fit);
    reduce_phase(r, NULL, search ? 13 : 28);
    if (!st) st = reduce_publish(r, &small, pare_width_provers[w.method].reduction);
    pare_model_free(small);
    out->held_out = out->inputs.apart;
    if (!st) st = reduce_measure(r);
    /* Targets say more than a distance. */
    return st || out->has_metric ? st : reduce_output_error(r);
}

/* ---- graph transformers ------------------------------------------------------------------------ */

/* *small becomes the model that was trained with m as its teacher. */
static pare_status distill(reducer *r, pare_model **small)
{
    const pare_reduce_opts *const o = r->o;
    pare_distill_opts d = o->distill;
    pare_task task;
    pare_task_facts facts;
    pare_model *student = NULL;
    const pare_task_graph_opts g = {.path = o->data,
                                    .split = o->split,
                                    .full = r->m->pattern.kind != PARE_GRAPH,
                                    .classes = pare_model_outputs(r->m)};
    d.seed = o->seed;
    d.teacher = r->m;
    pare_status st = pare_task_graph(&task, &facts, r->arena, &g, r->err);
    if (!st)
        st = pare_width_distill(&student, &r->out->distilled, *small, &task, &d, r->exec, r->err);
    if (!st) st = pare_model_round(student, r->m, o->dtype, r->err);
    if (st) {
        pare_model_free(student);
        return st;
    }
    pare_model_free(*small);
    *small = student;
    return PARE_OK;
}

static pare_status reduce_graph(reducer *r)
{
    const pare_reduce_opts *const o = r->o;
    pare_heldout *const h = &r->out->inputs;
    const bool train = o->distill.epochs > 0;
    const pare_data_opts read = {
        .split = o->split, .column = o->column, .seed = o->seed, .exec = r->exec};
    pare_width_opts w = width_opts(o);
    pare_cert_inputs fit;
    pare_model *small = NULL;
    /* A bound without a size looks for one; a little below, as the proof adds its slack. */
    if (!w.dim && !w.qk_dim && !w.ffn_dim && w.keep == 0) w.max_move = 0.99 * o->max_error;
    r->out->keep = w.keep;
    pare_status st = pare_cert_inputs_load(&fit, r->arena, r->m, o->data, &read, r->err);
    h->held = fit;
    if (!st && o->heldout) {
        h->fit_notes = fit.data.notes;
        st = pare_cert_inputs_load(&h->held, r->arena, r->m, o->heldout, &read, r->err);
    }
    st = reduce_loaded(r, st);
    h->fit = fit.set;
    h->apart = true;
    if (!st && o->heldout)
        st = pare_count_seen(&h->seen, r->arena, &fit.set, &h->held.set, 0, r->err);
    if (h->seen) h->no_new_inputs = pare_some_were_seen;
    if (!st && o->heldout) st = reduce_new_inputs(r, false);
    for (size_t i = 0; !st && i < o->nask; i++) {
        if (o->ask[i].kind != PARE_EDITS_OUTPUTS) continue;
        st = h->held.set.n == 1
                 ? pare_width_edits_check(r->m, &h->held.set.in[0], (size_t)o->ask[i].p[0], r->err)
                 : pare_fail(r->err, PARE_ERR_USAGE,
                             "edits are proven for one graph; %s has %zu inputs",
                             h->held.path ? h->held.path : "the data", h->held.set.n);
        break;
    }
    reduce_phase(r, NULL, train ? 10 : 20);
    if (!st) st = make_narrower(r, &small, &w, &fit.set);
    if (train) reduce_phase(r, "distill", 60);
    if (!st && train) st = distill(r, &small);
    reduce_phase(r, NULL, train ? 25 : 72);
    if (!st) st = reduce_publish(r, &small, pare_width_provers[w.method].reduction);
    pare_model_free(small);
    r->out->held_out = o->heldout != NULL;
    return st ? st : reduce_measure(r);
}

pare_status reduce_width(reducer *r)
{
    return pare_width_is_text(r->m, r->o->width.method) ? reduce_text(r) : reduce_graph(r);
}
