/* one_layer_search.c - pare_depth_one_layer: one of the collapses of one_layer.c. The layer that a
 * collapse keeps is given, or searched for on the data; it is not assumed to be the last one. */
#include "replace_layers.h"
#include "one_layer.h"
#include <math.h>

bool pare_depth_one_needs_data(const pare_depth_one_opts *o)
{
    const pare_collapse k = o->which;
    return k == PARE_ONE_KEEPBIAS || k == PARE_ONE_RANKONE ||
           (pare_collapse_keeps(k) && o->keep == PARE_DEPTH_UNSET);
}

/* |h - h'| / |h| of the hidden rows that the head reads, over all inputs. */
static pare_status relative_error(double *out, const pare_model *f, const pare_model *g,
                                  const pare_inputs *data, const pare_exec *exec, pare_err *err)
{
    const pare_model s[2] = {submodel_hidden(f), submodel_hidden(g)};
    double err2 = 0, size2 = 0;
    pare_work all = {.exec = exec, .err = err};
    *out = NAN;
    if (!data || data->n == 0) return PARE_OK;
    for (size_t i = 0; !all.st && i < data->n; i++) {
        const pare_input *const in = &data->in[i];
        const size_t n = pare_output_rows(&s[0], in) * pare_model_outputs(&s[0]);
        pare_work w = scratch_open(&all);
        double *const y = pare_work_alloc(&w, n, sizeof *y);
        double *const z = pare_work_alloc(&w, n, sizeof *z);
        if (!w.st) w.st = pare_forward_f64(y, &s[0], in, NULL, exec, err);
        if (!w.st) w.st = pare_forward_f64(z, &s[1], in, NULL, exec, err);
        for (size_t k = 0; !w.st && k < n; k++) {
            err2 += (y[k] - z[k]) * (y[k] - z[k]);
            size2 += y[k] * y[k];
        }
        scratch_close(&w, &all);
    }
    *out = size2 > 0 ? sqrt(err2 / size2) : 0;
    return all.st;
}

/* *out is replaced by the collapse that keeps block b if that one is better. */
static pare_status try_keeping(pare_model **out, pare_depth_one_report *r, const pare_model *in,
                               const pare_inputs *data, one_layer_opts o, size_t b, pare_err *err)
{
    pare_model *g = NULL;
    double off = NAN;
    o.keep = b;
    pare_status st = collapse_to_one_layer(&g, in, &o, err);
    if (!st) st = relative_error(&off, in, g, data, o.exec, err);
    if (!st && (!*out || off < r->error_est)) {
        pare_model_free(*out);
        *out = g;
        *r = (pare_depth_one_report){b, off};
        return PARE_OK;
    }
    pare_model_free(g);
    return st;
}

pare_status pare_depth_one_layer(pare_model **out, pare_depth_one_report *report,
                                 const pare_model *in, const pare_inputs *data,
                                 const pare_depth_one_opts *opts, const pare_exec *exec,
                                 pare_err *err)
{
    const one_layer_opts o = {
        .kind = opts->which, .calib = data, .exec = exec, .dtype = opts->dtype};
    const bool keeps = pare_collapse_keeps(o.kind), found = keeps && opts->keep == PARE_DEPTH_UNSET;
    const pare_inputs *const by = report || found ? data : NULL; /* what errors are measured on */
    pare_depth_one_report unread, *const r = report ? report : &unread;
    pare_status st = PARE_OK;
    PARE_ASSERT(opts->which < PARE_ONES);
    *out = NULL;
    *r = (pare_depth_one_report){PARE_DEPTH_UNSET, NAN};
    if (!keeps && opts->keep != PARE_DEPTH_UNSET)
        return pare_fail(err, PARE_ERR_USAGE, "one layer '%s' keeps none of the layers",
                         pare_collapse_names[o.kind]);
    if (pare_depth_one_needs_data(opts) && (!data || data->n == 0))
        return pare_fail(err, PARE_ERR_USAGE, "one layer '%s' needs data%s",
                         pare_collapse_names[o.kind], found ? ", or which layer to keep" : "");
    if (!found) st = try_keeping(out, r, in, by, o, keeps ? opts->keep : 0, err);
    for (size_t b = 0; found && !st && b < in->nblocks; b++)
        if (in->blocks[b].attn.kind != PARE_ATTN_NONE) st = try_keeping(out, r, in, by, o, b, err);
    if (!st && !*out) st = pare_fail(err, PARE_ERR_INPUT, "the model has no attention layer");
    if (!keeps) r->keep = PARE_DEPTH_UNSET;
    if (!st) return PARE_OK;
    pare_model_free(*out);
    *out = NULL;
    return st;
}
