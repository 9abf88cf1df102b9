/* probe_json.c - a probe as JSON: every figure, nan as null. docs/probe.md lists the keys.
 *
 * Each function is false where memory is out, also for the object it adds to (NULL). */
#include "probe_internal.h"
#include "probe.h"
#include <math.h>

static cJSON *add_list(cJSON *o, const char *key)
{
    return o ? pare_json_add_array(o, key) : NULL;
}

static cJSON *add_entry(cJSON *list)
{
    return list ? pare_json_add_object(list, NULL) : NULL;
}

/* Unknown: null. */
static bool add_truth(cJSON *o, const char *key, pare_truth t)
{
    return t == PARE_UNKNOWN ? pare_json_add_null(o, key)
                             : pare_json_add_bool(o, key, t == PARE_TRUE);
}

static bool add_numbers(cJSON *o, const char *key, const double *v, size_t n)
{
    cJSON *const list = add_list(o, key);
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = pare_json_add_number(list, NULL, v[i]);
    return ok;
}

static bool add_norms(cJSON *to, const char *key, const pare_norms *n)
{
    return pare_json_add_record(to, key, "n:z mean:n std:n sup:n", n->n, n->mean, n->std, n->sup);
}

/* ---- width ----------------------------------------------------------------------------------- */

static bool weights_json(cJSON *to, const pare_probe *p)
{
    cJSON *const list = add_list(to, "weights");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nspectra; i++) {
        const pare_spectrum *const s = &p->spectra[i];
        cJSON *const o = add_entry(list);
        ok = pare_json_add_values(o,
                                  "name:s block:Z head:Z rows:z cols:z norm:n rank:z "
                                  "effective_rank:n stable_rank:n",
                                  s->name, s->block, s->head, s->rows, s->cols, s->s_est[0],
                                  s->rank_est, s->effective_est, s->stable_est) &&
             add_numbers(o, "singular_values", s->s_est, s->n);
    }
    return ok && add_norms(to, "operator_norms", &p->operators);
}

static bool stream_json(cJSON *to, const pare_probe *p)
{
    cJSON *const list = add_list(to, "stream");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nstreams; i++) {
        const pare_stream *const s = &p->streams[i];
        cJSON *const o = add_entry(list);
        ok = pare_json_add_values(o,
                                  "place:s width:z rows:z rank:z affine_rank:z effective_rank:n "
                                  "norm_mean:n norm_std:n norm_sup:n",
                                  s->name, s->width, s->rows, s->rank_est, s->affine_est,
                                  s->effective_est, s->mean, s->std, s->sup) &&
             add_numbers(o, "axes", s->s_est, s->width);
    }
    return ok && add_norms(to, "vector_norms", &p->vectors);
}

static bool width_facts_json(cJSON *to, const pare_probe *p)
{
    const pare_width_facts *const s = &p->width_facts;
    if (!p->has_width_facts) return pare_json_add_null(to, "survey");
    cJSON *const all = pare_json_add_object(to, "survey");
    bool ok = pare_json_add_values(all, "dim:z eps:n delta:n", s->dim, s->eps, s->delta);
    cJSON *const points = ok ? add_list(all, "points") : NULL;
    ok = points != NULL;
    for (size_t i = 0; ok && i < s->npoints; i++)
        ok = pare_json_add_record(points, NULL, "place:s residual:n", s->points[i].name,
                                  s->points[i].residual_est);
    cJSON *const layers = ok ? add_list(all, "layers") : NULL;
    ok = layers != NULL;
    for (size_t i = 0; ok && i < s->nlayers; i++) {
        const pare_width_facts_layer *const l = &s->layers[i];
        ok = pare_json_add_record(
            layers, NULL,
            "heads:z skip:b bias:b scaled:b relu:b rows:z pairs:z qk_dim:z jl_dim:z units:z rank:z "
            "leverage:n draws:n clusters:z radius:n separation:n least_centre:n largest_centre:n",
            l->nheads, l->skip, l->bias, l->scaled, l->relu, l->rows, l->pairs, l->qk_dim,
            l->jl_dim, l->units, l->rank, l->leverage_est, l->draws, l->clusters, l->radius_est,
            l->separation_est, l->least_est, l->most_est);
    }
    cJSON *const heads = ok ? add_list(all, "heads") : NULL;
    ok = heads != NULL;
    for (size_t i = 0; ok && i < s->nheads; i++) {
        const pare_width_facts_head *const h = &s->heads[i];
        cJSON *const o = add_entry(heads);
        ok = pare_json_add_values(o, "block:z head:z dim:z needed:z", h->layer, h->head, h->dim,
                                  h->needed) &&
             add_numbers(o, "worth", h->form_est, h->n);
    }
    return ok;
}

static bool theorems_json(cJSON *to, const pare_probe *p)
{
    cJSON *const list = add_list(to, "theorems");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nfindings; i++) {
        const pare_finding *const f = &p->findings[i];
        cJSON *const o = add_entry(list);
        ok = pare_json_add_values(o, "theorem:s method:s hypothesis:s where:s", f->theorem,
                                  f->method, f->what, f->where) &&
             add_truth(o, "holds", f->holds) &&
             pare_json_add_values(o, "value:n limit:n factor:n", f->value, f->limit, f->factor);
    }
    return ok;
}

static bool cuts_json(cJSON *to, const pare_probe *p)
{
    bool ok = pare_json_add_record(to, "metric", "name:s before:n", p->metric, p->metric_before);
    cJSON *const list = ok ? add_list(to, "cuts") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < p->ncuts; i++) {
        const pare_cut_cost *const c = &p->cuts[i];
        cJSON *const o = add_entry(list);
        ok = pare_json_add_values(o, "method:s dim:z", pare_width_method_names[c->method], c->dim);
        if (c->refused)
            ok = ok && pare_json_add_values(o, "refused:s", c->refused);
        else
            ok =
                ok && pare_json_add_values(
                          o, "stream:z qk:z ffn:z parameters:z largest:n rms:n metric:n", c->stream,
                          c->qk, c->ffn, (size_t)c->parameters, c->largest, c->rms, c->metric);
    }
    return ok;
}

/* ---- depth ----------------------------------------------------------------------------------- */

static bool heads_json(cJSON *to, const pare_attention_stats *x)
{
    cJSON *const list = add_list(to, "heads");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < x->nheads; i++) {
        const pare_head_stats *const h = &x->heads[i];
        const double features = /* may be beyond 2^53 */
            h->poly_features == SIZE_MAX ? NAN : (double)h->poly_features;
        ok = pare_json_add_record(
            list, NULL,
            "block:z head:z eta:n b2:n bil_inf:n v2:n n_inf:n range_mean:n range_max:n theta:n "
            "theta_mean:n rho:n tau:n tv_uniform:n tv_constq:n tv_meanq:n entropy:n "
            "k_paper_not_sound:n k_sound:n k_measured:n poly_b:n poly_degree:Z poly_features:n",
            h->block, h->head, h->eta, h->b2.v, h->bil.v, h->v2.v, h->vinf.v, h->range_mean,
            h->range_max, h->theta, h->theta_mean, h->rho, h->tau, h->tv_uniform, h->tv_constq,
            h->tv_meanq, h->entropy, h->k_paper, h->k_sound, h->k_seen, h->poly_b, h->poly_degree,
            features);
    }
    return ok;
}

static bool layers_json(cJSON *to, const pare_depth_probe *d)
{
    cJSON *const list = add_list(to, "layers");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < d->stats.nlayers; i++) {
        const pare_layer_stats *const l = &d->stats.layers[i];
        double tv = 0;
        for (size_t h = l->first; h < l->first + l->nheads; h++)
            tv += d->stats.heads[h].tv_uniform / (double)l->nheads;
        cJSON *const o = add_entry(list);
        ok = pare_json_add_values(o,
                                  "block:z skip:b x_max:n res_x:n res_x_1inf:n res_f:n f_over_x:n "
                                  "not_rank_one:n predicted_lost:n poly_local_bound:f",
                                  l->block, l->skip, l->x, l->res_x, l->res_x1, l->res_f, l->share,
                                  l->varied, tv, l->bound_poly.v);
        if (!d->costs.kinds || d->costs.skipped) continue;
        cJSON *const kinds = ok ? add_list(o, "kinds") : NULL;
        ok = kinds != NULL;
        for (size_t k = 0; ok && k < PARE_DEPTH_KINDS; k++) {
            const pare_replacement_cost *const kind = &d->costs.kinds[i][k];
            const char *const name = pare_depth_kind_names[k];
            ok = kind->refused
                     ? pare_json_add_record(kinds, NULL, "kind:s refused:s", name, kind->refused)
                     : pare_json_add_record(
                           kinds, NULL, "kind:s local_bound:f local:n loo:n metric:n macs_saved:n",
                           name, l->bound[k].v, kind->local, kind->loo, kind->metric, kind->macs);
        }
    }
    return ok;
}

static bool curves_json(cJSON *to, const pare_depth_probe *d)
{
    cJSON *const list = add_list(to, "curves");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < d->costs.ncurves; i++) {
        const pare_replacement_curve *const curve = &d->costs.curves[i];
        cJSON *const of = add_entry(list);
        ok = pare_json_add_values(of, "kind:s", pare_attn_name(curve->kind));
        cJSON *const points = ok ? add_list(of, "points") : NULL;
        ok = points != NULL;
        for (size_t k = 0; ok && k <= d->costs.nlayers; k++) {
            const pare_replacement_point *const at = &curve->points[k];
            cJSON *const o = add_entry(points);
            cJSON *const kept =
                pare_json_add_values(o, "exact:z", at->exact) ? add_list(o, "kept") : NULL;
            ok = kept != NULL;
            for (size_t l = 0; ok && l < d->costs.nlayers; l++)
                if (at->kept[l]) ok = pare_json_add_size(kept, NULL, d->stats.layers[l].block);
            ok = ok && pare_json_add_values(o, "error:n lost:n metric:n macs_saved:n", at->error,
                                            at->lost, at->metric, at->macs);
        }
    }
    return ok;
}

static bool depth_json(cJSON *to, const pare_probe *p)
{
    const pare_depth_probe *const d = &p->depth;
    const pare_attention_stats *const x = &d->stats;
    if (!p->has_depth) return pare_json_add_null(to, "depth");
    cJSON *const all = pare_json_add_object(to, "depth");
    bool ok = pare_json_add_values(all, "fitted:z inputs:z tokens:z longest:z", x->fitted,
                                   x->inputs, x->tokens, x->longest) &&
              heads_json(all, x) && layers_json(all, d) && curves_json(all, d);
    cJSON *const list = ok ? add_list(all, "bounds") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < d->nbounds; i++) {
        const pare_probe_bound *const b = &d->bounds[i];
        ok = pare_json_add_record(list, NULL,
                                  "what:s domain:s bound:n difference:n measured:n why:s", b->what,
                                  b->domain, b->bound.v, b->difference.v, b->measured, b->why);
    }
    const pare_collapse_printed *const paper = &d->paper;
    return ok &&
           pare_json_add_record(all, "paper_not_sound",
                                "eta:n phi0:n heads:z layers:z eps:n c:n holds:b bound:f claim:n",
                                paper->eta, paper->phi0, d->paper_heads, d->paper_layers,
                                paper->eps, paper->c, paper->holds, paper->bound, paper->claim) &&
           pare_json_add_values(all, "verdict:s why:s violated:s",
                                pare_depth_verdict_names[d->verdict], d->why, d->violated);
}

/* ---- tickets and length ---------------------------------------------------------------------- */

static bool ticket_json(cJSON *to, const pare_probe *p)
{
    const pare_ticket_probe *const t = &p->ticket;
    if (!p->has_ticket) return true;
    cJSON *const all = pare_json_add_object(to, "ticket");
    cJSON *const kinds = add_list(all, "kinds");
    bool ok = kinds != NULL;
    for (size_t i = 0; ok && i < t->nkinds; i++) {
        const pare_probe_kind *const k = &t->kinds[i];
        ok = pare_json_add_record(
            kinds, NULL, "name:s count:z rows:z cols:z weights:z largest:n rms:n reach:Z", k->name,
            k->count, k->rows, k->cols, (size_t)k->weights, k->largest, k->rms, k->reach);
    }
    ok = ok && pare_json_add_values(all, "f32_bytes:z not_merged:s", (size_t)t->f32, t->not_merged);
    cJSON *const needs = ok ? add_list(all, "needs") : NULL;
    ok = needs != NULL;
    for (size_t i = 0; ok && i < t->nneeds; i++) {
        const pare_probe_need *const n = &t->needs[i];
        ok = pare_json_add_record(
            needs, NULL,
            "error:n seen:z proven:z density:z coupling:n factored_bytes:z merged_bytes:z",
            n->error, n->seen, n->proven, n->density, n->coupling, (size_t)n->factored,
            (size_t)n->merged);
    }
    return ok;
}

static bool length_json(cJSON *to, const pare_probe *p)
{
    static const char *const references[] = {"auto", "zero", "probe", "mean"};
    const pare_length_probe *const l = &p->length;
    if (!p->has_length) return true;
    cJSON *const all = pare_json_add_object(to, "length");
    bool ok = pare_json_add_values(all, "tokens:z context:z beyond_context:b", l->tokens,
                                   l->context, l->endless);
    cJSON *const engines = ok ? add_list(all, "engines") : NULL;
    ok = engines != NULL;
    for (size_t i = 0; ok && i < l->nengines; i++) {
        const pare_probe_engine *const e = &l->engines[i];
        ok = pare_json_add_record(
            engines, NULL,
            "oracle:z rounds:z native_calls:z reference_calls:z paper_calls:z lower_bound:z "
            "flops_ratio:n bytes:n scratch_bytes:n",
            (size_t)e->m, (size_t)e->rounds, (size_t)e->native, (size_t)e->reference,
            (size_t)e->paper, (size_t)e->lower, e->ratio, e->bytes, e->scratch);
    }
    ok = ok && pare_json_add_values(all, "cheapest:z cheapest_ratio:n", (size_t)l->cheapest,
                                    l->cheapest_ratio);
    cJSON *const modes = ok ? add_list(all, "modes") : NULL;
    ok = modes != NULL;
    for (size_t i = 0; ok && i < l->nmodes; i++)
        ok = pare_json_add_record(modes, NULL, "mode:s applies:b why_not:s",
                                  pare_length_mode_name(l->modes[i].mode), !*l->modes[i].why_not,
                                  l->modes[i].why_not);
    ok = ok && pare_json_add_values(all, "looked:z", l->looked);
    cJSON *const heads = ok ? add_list(all, "heads") : NULL;
    ok = heads != NULL;
    for (size_t i = 0; ok && i < l->nheads; i++) {
        const pare_probe_logits *const h = &l->heads[i];
        ok = pare_json_add_record(heads, NULL,
                                  "block:z head:z largest:n lmax:n c:n d:n proven_rows:z", h->block,
                                  h->head, h->largest, h->lmax, h->c, h->d, h->proven);
    }
    cJSON *const types = ok ? add_list(all, "types") : NULL;
    ok = types != NULL;
    for (size_t i = 0; ok && i < l->ntypes; i++) {
        const pare_probe_type *const t = &l->types[i];
        ok = pare_json_add_record(types, NULL, "type:s w_min:n limit:n safe:b reference:s", t->name,
                                  t->w_min, t->limit, t->reference == PARE_REF_ZERO,
                                  references[t->reference]);
    }
    return ok && pare_json_add_record(all, "sampling",
                                      "applies:b asked:n keys:z rows:z proven_rows:z", l->samples,
                                      l->looked ? l->asked : NAN, l->drawn, l->rows, l->proven);
}

/* ---- the whole probe ------------------------------------------------------------------------- */

pare_status pare_probe_json(cJSON **out, const pare_probe *p, pare_err *err)
{
    cJSON *const all = cJSON_CreateObject();
    bool ok = pare_json_add_values(all, "parameters:z", (size_t)p->parameters) &&
              weights_json(all, p) &&
              pare_json_add_values(all, "inputs:z tokens:z", p->inputs, p->tokens) &&
              stream_json(all, p) && width_facts_json(all, p) && theorems_json(all, p) &&
              pare_json_add_values(all, "largest_output:n", p->output) && cuts_json(all, p) &&
              depth_json(all, p) && ticket_json(all, p) && length_json(all, p);
    cJSON *const directions = ok ? add_list(all, "directions") : NULL;
    ok = directions != NULL;
    for (size_t i = 0; ok && i < p->nestimates; i++) {
        const pare_cost_estimate *const t = &p->estimates[i];
        cJSON *const o = add_entry(directions);
        ok = pare_json_add_values(o, "direction:s", t->direction) && add_truth(o, "can", t->can) &&
             pare_json_add_values(o, "cut:s left:s proven:n measured:n metric:n domain:s why:s",
                                  t->cut, t->left, t->proven.v, t->measured, t->metric, t->domain,
                                  t->why);
    }
    cJSON *const untold = ok ? add_list(all, "untold") : NULL;
    ok = untold != NULL;
    for (size_t i = 0; ok && i < p->nuntold; i++)
        ok = pare_json_add_string(untold, NULL, p->untold[i]);
    if (!ok) cJSON_Delete(all);
    *out = ok ? all : NULL;
    return ok ? PARE_OK : pare_no_memory(err);
}

pare_status pare_probe_text(char **out, pare_arena *a, const pare_probe *p, pare_err *err)
{
    cJSON *json = NULL;
    pare_status st = pare_probe_json(&json, p, err);
    if (!st) st = pare_json_print(out, NULL, a, json, 2, err);
    cJSON_Delete(json);
    return st;
}
