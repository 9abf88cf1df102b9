/* The depth part of a probe as JSON; docs/probe.md lists the keys. */
#include "probe.h"
#include <math.h>

static bool bound(cJSON *to, const char *key, pare_ub b)
{
    return isfinite(b.v) ? pare_json_add_number(to, key, b.v)
                         : pare_json_add_string(to, key, "inf");
}

static bool count_or_null(cJSON *to, const char *key, size_t n)
{
    return n == SIZE_MAX ? pare_json_add_null(to, key) : pare_json_add_number(to, key, (double)n);
}

static bool head(cJSON *o, const pare_head_stats *h)
{
    return o && pare_json_add_size(o, "block", h->block) &&
           pare_json_add_size(o, "head", h->head) && probe_number(o, "eta", h->eta) &&
           bound(o, "b2", h->b2) && bound(o, "bil_inf", h->bil) && bound(o, "v2", h->v2) &&
           bound(o, "n_inf", h->vinf) && probe_number(o, "range_mean", h->range_mean) &&
           probe_number(o, "range_max", h->range_max) && probe_number(o, "theta", h->theta) &&
           probe_number(o, "theta_mean", h->theta_mean) && probe_number(o, "rho", h->rho) &&
           probe_number(o, "tau", h->tau) && probe_number(o, "tv_uniform", h->tv_uniform) &&
           probe_number(o, "tv_constq", h->tv_constq) && probe_number(o, "tv_meanq", h->tv_meanq) &&
           probe_number(o, "entropy", h->entropy) &&
           probe_number(o, "k_paper_not_sound", h->k_paper) &&
           probe_number(o, "k_sound", h->k_sound) && probe_number(o, "k_measured", h->k_seen) &&
           probe_number(o, "poly_b", h->poly_b) &&
           count_or_null(o, "poly_degree", h->poly_degree) &&
           count_or_null(o, "poly_features", h->poly_features);
}

/* null: none is known. */
static bool local_bound(cJSON *o, const char *key, pare_ub b)
{
    return isfinite(b.v) ? pare_json_add_number(o, key, b.v) : pare_json_add_null(o, key);
}

static bool kinds(cJSON *to, const pare_layer_stats *l, const pare_replacement_cost *k)
{
    cJSON *const list = pare_json_add_array(to, "kinds");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < PARE_DEPTH_KINDS; i++) {
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "kind", pare_depth_kind_names[i]);
        if (ok && k[i].refused) {
            ok = pare_json_add_string(o, "refused", k[i].refused);
            continue;
        }
        ok = ok && local_bound(o, "local_bound", l->bound[i]) &&
             probe_number(o, "local", k[i].local) && probe_number(o, "loo", k[i].loo) &&
             probe_number(o, "metric", k[i].metric) && probe_number(o, "macs_saved", k[i].macs);
    }
    return ok;
}

static bool layer(cJSON *o, const pare_depth_probe *d, size_t i)
{
    const pare_layer_stats *const l = &d->xray.layers[i];
    double tv = 0;
    for (size_t h = l->first; h < l->first + l->nheads; h++)
        tv += d->xray.heads[h].tv_uniform / (double)l->nheads;
    return o && pare_json_add_size(o, "block", l->block) &&
           pare_json_add_bool(o, "skip", l->skip) && probe_number(o, "x_max", l->x) &&
           probe_number(o, "res_x", l->res_x) && probe_number(o, "res_x_1inf", l->res_x1) &&
           probe_number(o, "res_f", l->res_f) && probe_number(o, "f_over_x", l->share) &&
           probe_number(o, "not_rank_one", l->varied) && probe_number(o, "predicted_lost", tv) &&
           local_bound(o, "poly_local_bound", l->bound_poly) &&
           (d->costs.kinds && !d->costs.skipped ? kinds(o, l, d->costs.kinds[i]) : true);
}

static bool points(cJSON *to, const pare_replacement_costs *c, const pare_replacement_curve *curve,
                   const pare_attention_stats *x)
{
    cJSON *const list = pare_json_add_array(to, "points");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i <= c->nlayers; i++) {
        const pare_replacement_point *const at = &curve->points[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        cJSON *const kept =
            o && pare_json_add_size(o, "exact", at->exact) ? pare_json_add_array(o, "kept") : NULL;
        ok = kept != NULL;
        for (size_t l = 0; ok && l < c->nlayers; l++)
            if (at->kept[l]) ok = pare_json_add_size(kept, NULL, x->layers[l].block);
        ok = ok && probe_number(o, "error", at->error) && probe_number(o, "lost", at->lost) &&
             probe_number(o, "metric", at->metric) && probe_number(o, "macs_saved", at->macs);
    }
    return ok;
}

static bool curves(cJSON *to, const pare_depth_probe *d)
{
    cJSON *const list = pare_json_add_array(to, "curves");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < d->costs.ncurves; i++) {
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "kind", pare_attn_name(d->costs.curves[i].kind)) &&
             points(o, &d->costs, &d->costs.curves[i], &d->xray);
    }
    return ok;
}

static bool bounds(cJSON *to, const pare_depth_probe *d)
{
    cJSON *const list = pare_json_add_array(to, "bounds");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < d->nbounds; i++) {
        const pare_probe_bound *const b = &d->bounds[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "what", b->what) &&
             pare_json_add_string(o, "domain", b->domain) && bound(o, "bound", b->bound) &&
             bound(o, "difference", b->difference) && probe_number(o, "measured", b->measured) &&
             pare_json_add_string(o, "why", b->why);
    }
    return ok;
}

static bool printed(cJSON *to, const pare_depth_probe *d)
{
    const pare_collapse_printed *const p = &d->paper;
    cJSON *const o = pare_json_add_object(to, "paper_not_sound");
    return o && probe_number(o, "eta", p->eta) && probe_number(o, "phi0", p->phi0) &&
           pare_json_add_size(o, "heads", d->paper_heads) &&
           pare_json_add_size(o, "layers", d->paper_layers) && probe_number(o, "eps", p->eps) &&
           probe_number(o, "c", p->c) && pare_json_add_bool(o, "holds", p->holds) &&
           probe_number(o, "bound", isfinite(p->bound) ? p->bound : NAN) &&
           probe_number(o, "claim", p->claim);
}

bool probe_depth_json(cJSON *to, const pare_probe *p)
{
    const pare_depth_probe *const d = &p->depth;
    if (!p->has_depth) return pare_json_add_null(to, "depth");
    cJSON *const o = pare_json_add_object(to, "depth");
    bool ok = o && pare_json_add_size(o, "fitted", d->xray.fitted) &&
              pare_json_add_size(o, "inputs", d->xray.inputs) &&
              pare_json_add_size(o, "tokens", d->xray.tokens) &&
              pare_json_add_size(o, "longest", d->xray.longest);
    cJSON *const heads = ok ? pare_json_add_array(o, "heads") : NULL;
    ok = heads != NULL;
    for (size_t i = 0; ok && i < d->xray.nheads; i++)
        ok = head(pare_json_add_object(heads, NULL), &d->xray.heads[i]);
    cJSON *const layers = ok ? pare_json_add_array(o, "layers") : NULL;
    ok = layers != NULL;
    for (size_t i = 0; ok && i < d->xray.nlayers; i++)
        ok = layer(pare_json_add_object(layers, NULL), d, i);
    return ok && curves(o, d) && bounds(o, d) && printed(o, d) &&
           pare_json_add_string(o, "verdict", pare_depth_verdict_names[d->verdict]) &&
           pare_json_add_string(o, "why", d->why) &&
           pare_json_add_string(o, "violated", d->violated);
}
