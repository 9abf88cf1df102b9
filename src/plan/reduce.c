/* reduce.c - a reduction from file to file: what all directions share (pare/cut.h). */
#include "cert/conformal.h"
#include "cert/heldout.h"
#include "reduce_parts.h"
#include "base/support.h"
#include "fold/fold_parts.h"
#include "cert/outputs.h"
#include "data/evaluate.h"
#include "fold/share_rows.h"
#include "model/model_facts.h"
#include "model/stopwatch.h"
#include "reduce.h"
#include "verify_file.h"

#include <math.h>
#include <string.h>

/* ---- steps ----------------------------------------------------------------------------------- */

void reduce_phase(reducer *r, const char *what, double share)
{
    r->exec = pare_step(&r->steps, what, share);
}

pare_status reduce_event(const reducer *r, pare_reduce_event e)
{
    return r->o->event ? r->o->event(r->o->self, e, r->out) : PARE_OK;
}

pare_status reduce_loaded(const reducer *r, pare_status st)
{
    const pare_status reported = reduce_event(r, PARE_REDUCE_LOADED);
    return st ? st : reported;
}

pare_status reduce_load(reducer *r, pare_heldout_opts limits)
{
    const pare_reduce_opts *const o = r->o;
    limits.data = o->data;
    limits.heldout = o->heldout;
    limits.seed = o->seed;
    limits.split = o->split;
    limits.column = o->column;
    limits.exec = r->exec;
    limits.most_fitted = limits.nothing_fitted ? 1 : o->fit_inputs;
    limits.fit_tokens = o->kind == PARE_REDUCE_WIDTH ? 0 : o->fit_tokens; /* width.tokens */
    limits.prove = o->prove ? o->prove : PARE_HELDOUT_INPUTS;
    limits.proven_tokens = o->proven_tokens;
    return reduce_loaded(r, pare_heldout_load(&r->out->inputs, r->arena, r->m, &limits, r->err));
}

pare_status reduce_new_inputs(reducer *r, bool chosen)
{
    const pare_heldout *const h = &r->out->inputs;
    const char *why = h->no_new_inputs;
    if (why == pare_some_were_seen && h->apart) {
        why = pare_sprintf(r->arena,
                           "%zu of the %zu held-out inputs also occur%s among those that the cut "
                           "was fitted to; give other data with heldout",
                           h->seen, h->held.set.n, h->seen == 1 ? "s" : "");
        if (!why) return pare_no_memory(r->err);
    } else if (!why && chosen) {
        why = "the held-out inputs chose the size of the cut";
    } else if (!why && r->o->max_error < INFINITY) {
        why = "with max_error the held-out inputs decide whether the model is written";
    }
    r->out->no_new_inputs = why;
    r->out->new_inputs = !why;
    r->out->prove_more = h->more;
    return PARE_OK;
}

void *reduce_copy(reducer *r, const void *list, size_t n, size_t size)
{
    void *const copy = pare_alloc(r->arena, n ? n : 1, size);
    if (copy && n) memcpy(copy, list, n * size);
    return copy;
}

pare_status pare_reduce_publish(pare_reduction *r, pare_arena *a, const pare_model *m,
                                pare_model **small, const pare_reduce_opts *o,
                                const pare_exec *exec, pare_err *err)
{
    const pare_heldout *const h = &r->inputs;
    const pare_cert_inputs *const in = &h->held;
    const bool about_new = r->new_inputs || r->no_new_inputs;
    const pare_publish_opts p = {
        .in_path = o->from,
        .in_files = o->files,
        .out_path = o->to,
        .folder = o->folder,
        .dtype = o->dtype,
        .overwrite = o->overwrite,
        .max_error = o->max_error,
        .must_shrink = !o->allow_larger && o->kind != PARE_REDUCE_FOLD,
        .seed = o->seed,
        .data_path = in->path,
        .data_sha256 = in->sha256,
        .split = in->split,
        .column = in->column,
        .tokens = in->tokens,
        .part = in->part,
        .numbers = in->numbers,
        .set = &in->set,
        .new_inputs = r->new_inputs,
        .fitted = about_new && !h->nothing_fitted ? &h->fit : NULL,
        .fitted_tokens = about_new ? h->compared_tokens : 0,
        .prover = o->prover,
        .ask = o->ask,
        .nask = o->nask,
        .exec = exec,
    };
    r->proof_work = pare_passes_work(m, *small, &in->set);
    if (r->new_inputs) r->new_share = pare_share_above(in->set.n, 0, PARE_CONFIDENCE);
    pare_status st = o->event ? o->event(o->self, PARE_REDUCE_PROVING, r) : PARE_OK;
    if (!st) st = pare_publish(&r->cert, a, m, small, &p, err);
    r->ms_reduction = 1e3 * (pare_seconds() - o->started);
    r->published = !st;
    if (!st) return o->event ? o->event(o->self, PARE_REDUCE_PUBLISHED, r) : PARE_OK;
    if (st != PARE_ERR_PROMISE || !(r->cert.proven > o->max_error)) return st; /* nan: not larger */
    char proven[40];
    return pare_fail(err, st,
                     "the proven bound is %s, larger than max_error %g; nothing was written; cut "
                     "less or allow a larger error",
                     pare_ub_format(proven, pare_ub_exact(r->cert.proven), 3), o->max_error);
}

static bool same_range(const pare_width_range *a, const pare_width_range *b)
{
    return a->least == b->least && a->most == b->most && a->sum == b->sum && a->n == b->n;
}

/* Whether the cut has every width and every attention layer of the model, and no fewer weights; in a folder
 * biases that went on the way come back as zeros. */
static bool is_uncut(const pare_model *m, const pare_model *small, bool as_folder)
{
    pare_model_shape a, b;
    pare_model_shape_of(&a, m);
    pare_model_shape_of(&b, small);
    return same_range(&a.stream, &b.stream) && same_range(&a.qk, &b.qk) &&
           same_range(&a.values, &b.values) && same_range(&a.hidden, &b.hidden) &&
           a.exact == b.exact && a.replaced == b.replaced &&
           (as_folder || a.attention + a.ffn + a.rest <= b.attention + b.ffn + b.rest);
}

pare_status reduce_publish(reducer *r, pare_model **small, const char *reduction)
{
    pare_reduce_opts o = *r->o;
    o.prover = pare_prover_of(reduction);
    const bool shapes = o.kind == PARE_REDUCE_WIDTH || o.kind == PARE_REDUCE_DEPTH ||
                        o.kind == PARE_REDUCE_ONE_LAYER;
    if (shapes && !o.allow_larger && !o.dtype && is_uncut(r->m, *small, o.folder))
        return pare_fail(r->err, PARE_ERR_PROMISE,
                         "nothing to cut: this leaves every width and every layer as it is; "
                         "nothing was written");
    return pare_reduce_publish(r->out, r->arena, r->m, small, &o, r->exec, r->err);
}

/* ---- measurements ---------------------------------------------------------------------------- */

void reduce_in_nats(pare_evaluation *e)
{
    if (strcmp(e->metric, "perplexity") != 0) return;
    e->metric = "nats";
    e->value = e->scores.nats;
}

/* The f32 engine may overflow where the proof does not need it: then there is no metric to show,
 * but the model and its certificate stand. */
static pare_status measure_quality(pare_reduction *r, pare_arena *a, const pare_model *m,
                                   const pare_model *g, const pare_exec *exec, pare_err *err)
{
    const pare_dataset *const d = &r->inputs.held.data;
    pare_err why = {0};
    pare_comparison of;
    pare_status st = pare_evaluate_against(&of, g, m, d, false, exec, &why);
    r->metric_before = of.reference;
    r->metric_after = of.model;
    r->cosine = of.cosine;
    r->has_metric = !st;
    if (st == PARE_ERR_NONFINITE) {
        r->no_metric = pare_strdup(a, why.msg);
        return r->no_metric ? PARE_OK : pare_no_memory(err);
    }
    if (st) return pare_fail(err, st, "%s", why.msg);
    reduce_in_nats(&r->metric_before);
    reduce_in_nats(&r->metric_after);
    r->task = d->task;
    r->metric_inputs = d->inputs.n;
    return PARE_OK;
}

/* What the largest entry of an output row stands for. */
static const char *label_word(const pare_model *m)
{
    if (m->pattern.kind == PARE_GRAPH) return "class";
    if (!pare_has(pare_head_weight(m)) || !m->embedding.ids) return "largest output";
    if (m->head.pool != PARE_POOL_NONE) return "label";
    return pare_model_outputs(m) == m->embedding.vocab ? "top token" : "largest output";
}

pare_status pare_reduce_measure(pare_reduction *r, pare_arena *a, const pare_model *m,
                                const pare_reduce_opts *o, const pare_exec *exec, pare_err *err)
{
    const pare_cert_inputs *const in = &r->inputs.held;
    const pare_inputs *const set = &in->set;
    const pare_input *const one = &set->in[0];
    pare_model *g = NULL;
    double ms[2] = {NAN, NAN};
    pare_files *const files = pare_files_new_unhashed();
    pare_status st =
        files ? pare_err_path(err, pare_model_load_as(&g, r->to, NULL, files, err), r->to)
              : pare_no_memory(err);
    if (!st) st = pare_model_facts_of(&r->before, r->from, m, one, a, err);
    if (!st) st = pare_model_facts_of(&r->after, r->to, g, one, a, err);
    if (!st) st = pare_forward_ms(ms, (const pare_model *const[]){m, g}, 2, one, a, exec, err);
    r->ms_before = ms[0];
    r->ms_after = ms[1];
    r->has_attention_ms = o->time_attention;
    if (!st && o->time_attention)
        st = pare_attention_ms(&r->attn_before, &r->attn_after, m, g, one, o->seed, a, exec, err);
    if (!st && in->path && (pare_dataset_has_targets(m, &in->data) || pare_model_embeds(m)))
        st = measure_quality(r, a, m, g, exec, err);
    if (!st) {
        /* A folder is as large as the files that were read from it. */
        if (o->files) r->before.file_bytes = pare_files_bytes(o->files);
        r->after.file_bytes = pare_files_bytes(files);
        pare_model_shape_of(&r->shape_before, m);
        pare_model_shape_of(&r->shape_after, g);
        r->rows = 0;
        for (size_t i = 0; i < set->n; i++) r->rows += pare_output_rows(m, &set->in[i]);
        r->row_word = m->pattern.kind == PARE_GRAPH    ? "node"
                      : m->head.pool != PARE_POOL_NONE ? "input"
                                                       : "position";
        r->label_word = label_word(m);
        r->all_tokens = in->part && in->whole;
        r->no_splits = in->path && in->data.task != PARE_TASK_NODES;
        r->of_inputs = r->inputs.units > set->n ? r->inputs.units : 0;
        st = pare_largest_output(&r->largest_output, m, set, a, exec, err);
    }
    memcpy(r->before.sha256, r->cert.input.sha256, PARE_SHA256_HEX);
    memcpy(r->after.sha256, r->cert.output.sha256, PARE_SHA256_HEX);
    pare_model_free(g);
    pare_files_free(files);
    return st;
}

pare_status reduce_measure(reducer *r)
{
    reduce_phase(r, "measure speed and quality", 100); /* what is left of the bar */
    return pare_reduce_measure(r->out, r->arena, r->m, r->o, r->exec, r->err);
}

pare_status reduce_output_error(reducer *r)
{
    pare_reduction *const out = r->out;
    const pare_inputs *const on = pare_heldout_measured(&out->inputs);
    pare_model *g = NULL;
    pare_status st = pare_err_path(r->err, pare_model_load(&g, out->to, r->err), out->to);
    if (!st) st = pare_output_error(&out->output_error, r->m, g, on, r->arena, r->exec, r->err);
    if (!st) out->error_inputs = on->n;
    pare_model_free(g);
    return st;
}

/* ---- from file to file ----------------------------------------------------------------------- */

static pare_status reduce_share_rows(reducer *r)
{
    const pare_reduce_opts *const o = r->o;
    pare_model *shared = NULL;
    pare_status st = reduce_load(r, (pare_heldout_opts){.nothing_fitted = !o->data});
    if (!st && o->data) st = reduce_new_inputs(r, false);
    reduce_phase(r, NULL, 4);
    const pare_inputs *const used = o->data && r->out->inputs.apart ? &r->out->inputs.fit : NULL;
    if (!st)
        st = pare_share_rows(&shared, &r->out->shared, r->m, used, o->share_distance, r->exec,
                             r->err);
    reduce_phase(r, NULL, 88);
    if (!st) st = reduce_publish(r, &shared, pare_share_rows_prover.reduction);
    pare_model_free(shared);
    r->out->held_out = r->out->inputs.apart;
    return st ? st : reduce_measure(r);
}

static pare_status reduce_fold(reducer *r)
{
    pare_model *folded = NULL;
    if (r->o->share_rows) return reduce_share_rows(r);
    pare_status st = reduce_load(r, (pare_heldout_opts){.nothing_fitted = true});
    pare_fold_report *const f = &r->out->fold;
    if (!st) st = fold_model(&folded, f, r->m, r->o->folder, r->err);
    if (!st && r->o->folder && f->norms + f->key_biases + f->value_biases == 0)
        st = pare_fail(r->err, PARE_ERR_PROMISE,
                       "nothing to fold: no norm and no bias can move into the weights around it "
                       "with the tensors that a folder of the kind '%s' has; nothing was written",
                       r->m->name);
    if (!st && r->o->dtype) st = pare_model_round(folded, NULL, r->o->dtype, r->err);
    reduce_phase(r, NULL, 92);
    if (!st) st = reduce_publish(r, &folded, "fold");
    pare_model_free(folded);
    return st ? st : reduce_measure(r);
}

pare_status pare_reduce(pare_reduction *out, pare_arena *a, const pare_model *m,
                        const pare_reduce_opts *opts, const pare_exec *exec, pare_err *err)
{
    static pare_status (*const directions[])(reducer *) = {
        [PARE_REDUCE_FOLD] = reduce_fold,     [PARE_REDUCE_WIDTH] = reduce_width,
        [PARE_REDUCE_DEPTH] = reduce_depth,   [PARE_REDUCE_ONE_LAYER] = reduce_depth,
        [PARE_REDUCE_TICKET] = reduce_ticket, [PARE_REDUCE_QUANT] = reduce_quant};
    pare_reduce_opts o = *opts;
    if (o.started <= 0) o.started = pare_seconds();
    *out = (pare_reduction){.from = o.from,
                            .to = o.to,
                            .heldout = o.heldout,
                            .one_layer.keep = PARE_DEPTH_UNSET,
                            .rounded.measured = NAN,
                            .rounded_with_feedback.measured = NAN,
                            .output_error = NAN};
    out->cert_path = pare_cert_path(a, o.to, o.folder);
    if (!out->cert_path) return pare_no_memory(err);
    if (o.share_rows) { /* what occurs anywhere in the data keeps its row */
        o.fit_inputs = SIZE_MAX;
        o.fit_tokens = 0;
    }
    if (o.folder) {
        const pare_status st = reduce_fits_folder(m, &o, err);
        if (st) return st;
        o.width.standard = true;
    }
    reducer r = {.o = &o,
                 .m = m,
                 .out = out,
                 .arena = a,
                 .steps = pare_steps_of(exec, 100),
                 .exec = exec,
                 .err = err};
    return directions[o.kind](&r);
}
