/* probe_json.c - a probe as JSON: every figure, nan as null. docs/probe.md lists the keys. */
#include "probe_internal.h"
#include "probe.h"
#include <math.h>

/* ---- one key and its value ------------------------------------------------------------------- */

/* Each is false where memory is out, also for the object `o` itself (NULL). */

static cJSON *put_object(cJSON *o, const char *key)
{
    return o ? pare_json_add_object(o, key) : NULL;
}

static cJSON *put_list(cJSON *o, const char *key)
{
    return o ? pare_json_add_array(o, key) : NULL;
}

static bool put_text(cJSON *o, const char *key, const char *v)
{
    return o && pare_json_add_string(o, key, v);
}

static bool put_bool(cJSON *o, const char *key, bool v)
{
    return o && pare_json_add_bool(o, key, v);
}

/* SIZE_MAX, for nothing: null. */
static bool put_size(cJSON *o, const char *key, size_t v)
{
    return o && (v == SIZE_MAX ? pare_json_add_null(o, key) : pare_json_add_size(o, key, v));
}

static bool put_number(cJSON *o, const char *key, double v)
{
    return o && (isnan(v) ? pare_json_add_null(o, key) : pare_json_add_number(o, key, v));
}

static bool put_finite(cJSON *o, const char *key, double v)
{
    return put_number(o, key, isfinite(v) ? v : NAN);
}

/* Unknown: null. */
static bool put_truth(cJSON *o, const char *key, pare_truth t)
{
    return t == PARE_UNKNOWN ? o && pare_json_add_null(o, key) : put_bool(o, key, t == PARE_TRUE);
}

static bool put_numbers(cJSON *o, const char *key, const double *v, size_t n)
{
    cJSON *const list = put_list(o, key);
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = pare_json_add_number(list, NULL, v[i]);
    return ok;
}

static bool put_norms(cJSON *to, const char *key, const pare_norms *n)
{
    cJSON *const o = put_object(to, key);
    return put_size(o, "n", n->n) && put_number(o, "mean", n->mean) &&
           put_number(o, "std", n->std) && put_number(o, "sup", n->sup);
}

/* ---- width ----------------------------------------------------------------------------------- */

static bool weights_json(cJSON *to, const pare_probe *p)
{
    cJSON *const list = put_list(to, "weights");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nspectra; i++) {
        const pare_spectrum *const s = &p->spectra[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_text(o, "name", s->name) && put_size(o, "block", s->block) &&
             put_size(o, "head", s->head) && put_size(o, "rows", s->rows) &&
             put_size(o, "cols", s->cols) && put_number(o, "norm", s->s_est[0]) &&
             put_size(o, "rank", s->rank_est) &&
             put_number(o, "effective_rank", s->effective_est) &&
             put_number(o, "stable_rank", s->stable_est) &&
             put_numbers(o, "singular_values", s->s_est, s->n);
    }
    return ok && put_norms(to, "operator_norms", &p->operators);
}

static bool stream_json(cJSON *to, const pare_probe *p)
{
    cJSON *const list = put_list(to, "stream");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nstreams; i++) {
        const pare_stream *const s = &p->streams[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_text(o, "place", s->name) && put_size(o, "width", s->width) &&
             put_size(o, "rows", s->rows) && put_size(o, "rank", s->rank_est) &&
             put_size(o, "affine_rank", s->affine_est) &&
             put_number(o, "effective_rank", s->effective_est) &&
             put_number(o, "norm_mean", s->mean) && put_number(o, "norm_std", s->std) &&
             put_number(o, "norm_sup", s->sup) && put_numbers(o, "axes", s->s_est, s->width);
    }
    return ok && put_norms(to, "vector_norms", &p->vectors);
}

static bool width_facts_json(cJSON *to, const pare_probe *p)
{
    const pare_width_facts *const s = &p->width_facts;
    if (!p->has_width_facts) return pare_json_add_null(to, "survey");
    cJSON *const all = put_object(to, "survey");
    bool ok = put_size(all, "dim", s->dim) && put_number(all, "eps", s->eps) &&
              put_number(all, "delta", s->delta);
    cJSON *list = ok ? put_list(all, "points") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < s->npoints; i++) {
        cJSON *const o = put_object(list, NULL);
        ok = put_text(o, "place", s->points[i].name) &&
             put_number(o, "residual", s->points[i].residual_est);
    }
    list = ok ? put_list(all, "layers") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < s->nlayers; i++) {
        const pare_width_facts_layer *const l = &s->layers[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_size(o, "heads", l->nheads) && put_bool(o, "skip", l->skip) &&
             put_bool(o, "bias", l->bias) && put_bool(o, "scaled", l->scaled) &&
             put_bool(o, "relu", l->relu) && put_size(o, "rows", l->rows) &&
             put_size(o, "pairs", l->pairs) && put_size(o, "qk_dim", l->qk_dim) &&
             put_size(o, "jl_dim", l->jl_dim) && put_size(o, "units", l->units) &&
             put_size(o, "rank", l->rank) && put_number(o, "leverage", l->leverage_est) &&
             put_number(o, "draws", l->draws) && put_size(o, "clusters", l->clusters) &&
             put_number(o, "radius", l->radius_est) &&
             put_number(o, "separation", l->separation_est) &&
             put_number(o, "least_centre", l->least_est) &&
             put_number(o, "largest_centre", l->most_est);
    }
    list = ok ? put_list(all, "heads") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < s->nheads; i++) {
        const pare_width_facts_head *const h = &s->heads[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_size(o, "block", h->layer) && put_size(o, "head", h->head) &&
             put_size(o, "dim", h->dim) && put_size(o, "needed", h->needed) &&
             put_numbers(o, "worth", h->form_est, h->n);
    }
    return ok;
}

static bool theorems_json(cJSON *to, const pare_probe *p)
{
    cJSON *const list = put_list(to, "theorems");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nfindings; i++) {
        const pare_finding *const f = &p->findings[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_text(o, "theorem", f->theorem) && put_text(o, "method", f->method) &&
             put_text(o, "hypothesis", f->what) && put_text(o, "where", f->where) &&
             put_truth(o, "holds", f->holds) && put_number(o, "value", f->value) &&
             put_number(o, "limit", f->limit) && put_number(o, "factor", f->factor);
    }
    return ok;
}

static bool cuts_json(cJSON *to, const pare_probe *p)
{
    cJSON *const m = put_object(to, "metric");
    bool ok = m && (p->metric ? put_text(m, "name", p->metric) : pare_json_add_null(m, "name")) &&
              put_number(m, "before", p->metric_before);
    cJSON *const list = ok ? put_list(to, "cuts") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < p->ncuts; i++) {
        const pare_cut_cost *const c = &p->cuts[i];
        cJSON *const o = put_object(list, NULL);
        ok =
            put_text(o, "method", pare_width_method_names[c->method]) && put_size(o, "dim", c->dim);
        if (c->refused)
            ok = ok && put_text(o, "refused", c->refused);
        else
            ok = ok && put_size(o, "stream", c->stream) && put_size(o, "qk", c->qk) &&
                 put_size(o, "ffn", c->ffn) && put_size(o, "parameters", (size_t)c->parameters) &&
                 put_number(o, "largest", c->largest) && put_number(o, "rms", c->rms) &&
                 put_number(o, "metric", c->metric);
    }
    return ok;
}

/* ---- depth ----------------------------------------------------------------------------------- */

static bool heads_json(cJSON *to, const pare_attention_stats *x)
{
    cJSON *const list = put_list(to, "heads");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < x->nheads; i++) {
        const pare_head_stats *const h = &x->heads[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_size(o, "block", h->block) && put_size(o, "head", h->head) &&
             put_number(o, "eta", h->eta) && put_number(o, "b2", h->b2.v) &&
             put_number(o, "bil_inf", h->bil.v) && put_number(o, "v2", h->v2.v) &&
             put_number(o, "n_inf", h->vinf.v) && put_number(o, "range_mean", h->range_mean) &&
             put_number(o, "range_max", h->range_max) && put_number(o, "theta", h->theta) &&
             put_number(o, "theta_mean", h->theta_mean) && put_number(o, "rho", h->rho) &&
             put_number(o, "tau", h->tau) && put_number(o, "tv_uniform", h->tv_uniform) &&
             put_number(o, "tv_constq", h->tv_constq) && put_number(o, "tv_meanq", h->tv_meanq) &&
             put_number(o, "entropy", h->entropy) &&
             put_number(o, "k_paper_not_sound", h->k_paper) &&
             put_number(o, "k_sound", h->k_sound) && put_number(o, "k_measured", h->k_seen) &&
             put_number(o, "poly_b", h->poly_b) && put_size(o, "poly_degree", h->poly_degree) &&
             put_number(o, "poly_features", /* may be beyond 2^53 */
                        h->poly_features == SIZE_MAX ? NAN : (double)h->poly_features);
    }
    return ok;
}

static bool layers_json(cJSON *to, const pare_depth_probe *d)
{
    cJSON *const list = put_list(to, "layers");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < d->stats.nlayers; i++) {
        const pare_layer_stats *const l = &d->stats.layers[i];
        double tv = 0;
        for (size_t h = l->first; h < l->first + l->nheads; h++)
            tv += d->stats.heads[h].tv_uniform / (double)l->nheads;
        cJSON *const o = put_object(list, NULL);
        ok = put_size(o, "block", l->block) && put_bool(o, "skip", l->skip) &&
             put_number(o, "x_max", l->x) && put_number(o, "res_x", l->res_x) &&
             put_number(o, "res_x_1inf", l->res_x1) && put_number(o, "res_f", l->res_f) &&
             put_number(o, "f_over_x", l->share) && put_number(o, "not_rank_one", l->varied) &&
             put_number(o, "predicted_lost", tv) &&
             put_finite(o, "poly_local_bound", l->bound_poly.v);
        if (!d->costs.kinds || d->costs.skipped) continue;
        cJSON *const kinds = ok ? put_list(o, "kinds") : NULL;
        ok = kinds != NULL;
        for (size_t k = 0; ok && k < PARE_DEPTH_KINDS; k++) {
            const pare_replacement_cost *const kind = &d->costs.kinds[i][k];
            cJSON *const one = put_object(kinds, NULL);
            ok = put_text(one, "kind", pare_depth_kind_names[k]);
            if (kind->refused)
                ok = ok && put_text(one, "refused", kind->refused);
            else
                ok = ok && put_finite(one, "local_bound", l->bound[k].v) &&
                     put_number(one, "local", kind->local) && put_number(one, "loo", kind->loo) &&
                     put_number(one, "metric", kind->metric) &&
                     put_number(one, "macs_saved", kind->macs);
        }
    }
    return ok;
}

static bool curves_json(cJSON *to, const pare_depth_probe *d)
{
    cJSON *const list = put_list(to, "curves");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < d->costs.ncurves; i++) {
        const pare_replacement_curve *const curve = &d->costs.curves[i];
        cJSON *const of = put_object(list, NULL);
        ok = put_text(of, "kind", pare_attn_name(curve->kind));
        cJSON *const points = ok ? put_list(of, "points") : NULL;
        ok = points != NULL;
        for (size_t k = 0; ok && k <= d->costs.nlayers; k++) {
            const pare_replacement_point *const at = &curve->points[k];
            cJSON *const o = put_object(points, NULL);
            cJSON *const kept = put_size(o, "exact", at->exact) ? put_list(o, "kept") : NULL;
            ok = kept != NULL;
            for (size_t l = 0; ok && l < d->costs.nlayers; l++)
                if (at->kept[l]) ok = put_size(kept, NULL, d->stats.layers[l].block);
            ok = ok && put_number(o, "error", at->error) && put_number(o, "lost", at->lost) &&
                 put_number(o, "metric", at->metric) && put_number(o, "macs_saved", at->macs);
        }
    }
    return ok;
}

static bool depth_json(cJSON *to, const pare_probe *p)
{
    const pare_depth_probe *const d = &p->depth;
    if (!p->has_depth) return pare_json_add_null(to, "depth");
    cJSON *const all = put_object(to, "depth");
    bool ok =
        put_size(all, "fitted", d->stats.fitted) && put_size(all, "inputs", d->stats.inputs) &&
        put_size(all, "tokens", d->stats.tokens) && put_size(all, "longest", d->stats.longest) &&
        heads_json(all, &d->stats) && layers_json(all, d) && curves_json(all, d);
    cJSON *const list = ok ? put_list(all, "bounds") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < d->nbounds; i++) {
        const pare_probe_bound *const b = &d->bounds[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_text(o, "what", b->what) && put_text(o, "domain", b->domain) &&
             put_number(o, "bound", b->bound.v) && put_number(o, "difference", b->difference.v) &&
             put_number(o, "measured", b->measured) && put_text(o, "why", b->why);
    }
    const pare_collapse_printed *const paper = &d->paper;
    cJSON *const o = ok ? put_object(all, "paper_not_sound") : NULL;
    return put_number(o, "eta", paper->eta) && put_number(o, "phi0", paper->phi0) &&
           put_size(o, "heads", d->paper_heads) && put_size(o, "layers", d->paper_layers) &&
           put_number(o, "eps", paper->eps) && put_number(o, "c", paper->c) &&
           put_bool(o, "holds", paper->holds) && put_finite(o, "bound", paper->bound) &&
           put_number(o, "claim", paper->claim) &&
           put_text(all, "verdict", pare_depth_verdict_names[d->verdict]) &&
           put_text(all, "why", d->why) && put_text(all, "violated", d->violated);
}

/* ---- tickets and length ---------------------------------------------------------------------- */

static bool ticket_json(cJSON *to, const pare_probe *p)
{
    const pare_ticket_probe *const t = &p->ticket;
    if (!p->has_ticket) return true;
    cJSON *const all = put_object(to, "ticket");
    cJSON *list = put_list(all, "kinds");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < t->nkinds; i++) {
        const pare_probe_kind *const k = &t->kinds[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_text(o, "name", k->name) && put_size(o, "count", k->count) &&
             put_size(o, "rows", k->rows) && put_size(o, "cols", k->cols) &&
             put_size(o, "weights", (size_t)k->weights) && put_number(o, "largest", k->largest) &&
             put_number(o, "rms", k->rms) && put_size(o, "reach", k->reach);
    }
    ok = ok && put_size(all, "f32_bytes", (size_t)t->f32) &&
         put_text(all, "not_merged", t->not_merged);
    list = ok ? put_list(all, "needs") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < t->nneeds; i++) {
        const pare_probe_need *const n = &t->needs[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_number(o, "error", n->error) && put_size(o, "seen", n->seen) &&
             put_size(o, "proven", n->proven) && put_size(o, "density", n->density) &&
             put_number(o, "coupling", n->coupling) &&
             put_size(o, "factored_bytes", (size_t)n->factored) &&
             put_size(o, "merged_bytes", (size_t)n->merged);
    }
    return ok;
}

static bool length_json(cJSON *to, const pare_probe *p)
{
    static const char *const references[] = {"auto", "zero", "probe", "mean"};
    const pare_length_probe *const l = &p->length;
    if (!p->has_length) return true;
    cJSON *const all = put_object(to, "length");
    bool ok = put_size(all, "tokens", l->tokens) && put_size(all, "context", l->context) &&
              put_bool(all, "beyond_context", l->endless);
    cJSON *list = ok ? put_list(all, "engines") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < l->nengines; i++) {
        const pare_probe_engine *const e = &l->engines[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_size(o, "oracle", e->m) && put_size(o, "rounds", e->rounds) &&
             put_size(o, "native_calls", e->native) &&
             put_size(o, "reference_calls", e->reference) && put_size(o, "paper_calls", e->paper) &&
             put_size(o, "lower_bound", e->lower) && put_number(o, "flops_ratio", e->ratio) &&
             put_number(o, "bytes", e->bytes) && put_number(o, "scratch_bytes", e->scratch);
    }
    ok = ok && put_size(all, "cheapest", l->cheapest) &&
         put_number(all, "cheapest_ratio", l->cheapest_ratio);
    list = ok ? put_list(all, "modes") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < l->nmodes; i++) {
        cJSON *const o = put_object(list, NULL);
        ok = put_text(o, "mode", pare_length_mode_name(l->modes[i].mode)) &&
             put_bool(o, "applies", !*l->modes[i].why_not) &&
             put_text(o, "why_not", l->modes[i].why_not);
    }
    ok = ok && put_size(all, "looked", l->looked);
    list = ok ? put_list(all, "heads") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < l->nheads; i++) {
        const pare_probe_logits *const h = &l->heads[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_size(o, "block", h->block) && put_size(o, "head", h->head) &&
             put_number(o, "largest", h->largest) && put_number(o, "lmax", h->lmax) &&
             put_number(o, "c", h->c) && put_number(o, "d", h->d) &&
             put_size(o, "proven_rows", h->proven);
    }
    list = ok ? put_list(all, "types") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < l->ntypes; i++) {
        const pare_probe_type *const t = &l->types[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_text(o, "type", t->name) && put_number(o, "w_min", t->w_min) &&
             put_number(o, "limit", t->limit) &&
             put_bool(o, "safe", t->reference == PARE_REF_ZERO) &&
             put_text(o, "reference", references[t->reference]);
    }
    cJSON *const o = ok ? put_object(all, "sampling") : NULL;
    return put_bool(o, "applies", l->samples) &&
           put_number(o, "asked", l->looked ? l->asked : NAN) && put_size(o, "keys", l->drawn) &&
           put_size(o, "rows", l->rows) && put_size(o, "proven_rows", l->proven);
}

/* ---- the whole probe ------------------------------------------------------------------------- */

pare_status pare_probe_json(cJSON **out, const pare_probe *p, pare_err *err)
{
    cJSON *const all = cJSON_CreateObject();
    bool ok = put_size(all, "parameters", (size_t)p->parameters) && weights_json(all, p) &&
              put_size(all, "inputs", p->inputs) && put_size(all, "tokens", p->tokens) &&
              stream_json(all, p) && width_facts_json(all, p) && theorems_json(all, p) &&
              put_number(all, "largest_output", p->output) && cuts_json(all, p) &&
              depth_json(all, p) && ticket_json(all, p) && length_json(all, p);
    cJSON *list = ok ? put_list(all, "directions") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < p->nestimates; i++) {
        const pare_cost_estimate *const t = &p->estimates[i];
        cJSON *const o = put_object(list, NULL);
        ok = put_text(o, "direction", t->direction) && put_truth(o, "can", t->can) &&
             put_text(o, "cut", t->cut) && put_text(o, "left", t->left) &&
             put_number(o, "proven", t->proven.v) && put_number(o, "measured", t->measured) &&
             put_number(o, "metric", t->metric) && put_text(o, "domain", t->domain) &&
             put_text(o, "why", t->why);
    }
    list = ok ? put_list(all, "untold") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < p->nuntold; i++) ok = put_text(list, NULL, p->untold[i]);
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
