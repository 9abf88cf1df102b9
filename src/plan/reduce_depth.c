/* reduce_depth.c - models with fewer attention layers (reduce.c). */
#include "reduce_parts.h"

#include <math.h>

static pare_status make_and_publish(reducer *r, const pare_depth_opts *depth, bool search)
{
    pare_reduction *const out = r->out;
    pare_depth_report *const report = &out->depth;
    const pare_inputs *const fit = r->o->data ? &out->inputs.fit : NULL;
    pare_model *small = NULL;
    pare_status st;
    reduce_phase(r, NULL, search ? 10 : 60);
    if (r->o->kind == PARE_REDUCE_ONE_LAYER) {
        pare_depth_one_opts one = r->o->one_layer;
        one.dtype = r->o->dtype;
        st = pare_depth_one_layer(&small, &out->one_layer, r->m, fit, &one, r->exec, r->err);
    } else {
        st = pare_depth(&small, report, r->m, fit, depth, r->exec, r->err);
        /* The report lives in the cut model, which publishing frees. */
        if (!st && !(report->layers =
                         reduce_copy(r, report->layers, report->nlayers, sizeof *report->layers)))
            st = pare_no_memory(r->err);
        if (!st) st = reduce_event(r, PARE_REDUCE_MADE);
    }
    reduce_phase(r, NULL, search ? 10 : 30);
    if (!st) st = reduce_publish(r, &small, "depth");
    pare_model_free(small);
    return st;
}

/* The fewest exact layers whose proven headline stays within max_error. One more need not be
 * better, so they are tried one by one from the fewest. */
static pare_status search_layers(reducer *r, const pare_depth_opts *opts)
{
    const pare_reduction *const out = r->out;
    pare_depth_opts depth = *opts;
    double best = INFINITY;
    size_t at = depth.nexact;
    bool all = false, more = true;
    for (size_t k = at; more; k++) {
        depth.layers = k;
        const pare_status st = make_and_publish(r, &depth, true);
        /* nan: refused for its size, before anything was proven */
        if (st != PARE_ERR_PROMISE || !(out->cert.proven > r->o->max_error)) return st;
        if (out->cert.proven < best) best = out->cert.proven, at = k;
        all = k + 1 >= out->depth.nlayers;
        depth.layers = k + 1;
        more = !all && (r->o->data || !pare_depth_needs_data(r->m, &depth));
    }
    char bound[40];
    return pare_fail(r->err, PARE_ERR_PROMISE,
                     "no cut that was tried stays within max_error %g: the best proven bound is "
                     "%s, with %zu exact layer%s; nothing was written%s",
                     r->o->max_error, pare_ub_format(bound, pare_ub_exact(best), 3), at,
                     at == 1 ? "" : "s", all ? "" : " (with data more cuts can be tried)");
}

pare_status reduce_depth(reducer *r)
{
    const pare_reduce_opts *const o = r->o;
    const bool one_layer = o->kind == PARE_REDUCE_ONE_LAYER;
    const bool search = !one_layer && !o->depth.blocks && o->depth.layers == PARE_DEPTH_UNSET &&
                        isfinite(o->max_error);
    const bool needs_data = one_layer ? pare_depth_one_needs_data(&o->one_layer)
                                      : pare_depth_needs_data(r->m, &o->depth);
    pare_depth_opts depth = o->depth;
    depth.dtype = o->dtype;
    pare_status st = reduce_load(r, (pare_heldout_opts){.nothing_fitted = !search && !needs_data});
    /* In a search the number of layers is chosen by what is proven on the held-out inputs. */
    if (!st && o->data) st = reduce_new_inputs(r, search);
    if (!st) st = search ? search_layers(r, &depth) : make_and_publish(r, &depth, false);
    r->out->held_out = r->out->inputs.apart;
    return st ? st : reduce_measure(r);
}
