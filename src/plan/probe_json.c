/* A probe as JSON: every figure, nan as null. docs/probe.md lists the keys. */
#include "probe.h"
#include <math.h>

bool probe_number(cJSON *to, const char *key, double v)
{
    return isnan(v) ? pare_json_add_null(to, key) : pare_json_add_number(to, key, v);
}

static bool numbers(cJSON *to, const char *key, const double *v, size_t n)
{
    cJSON *const list = pare_json_add_array(to, key);
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < n; i++) ok = pare_json_add_number(list, NULL, v[i]);
    return ok;
}

static bool norms(cJSON *to, const char *key, const pare_norms *n)
{
    cJSON *const o = pare_json_add_object(to, key);
    return o && pare_json_add_size(o, "n", n->n) && probe_number(o, "mean", n->mean) &&
           probe_number(o, "std", n->std) && probe_number(o, "sup", n->sup);
}

static bool index_or_null(cJSON *to, const char *key, size_t i)
{
    return i == SIZE_MAX ? pare_json_add_null(to, key) : pare_json_add_size(to, key, i);
}

static bool spectra(cJSON *to, const pare_probe *p)
{
    cJSON *const list = pare_json_add_array(to, "weights");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nspectra; i++) {
        const pare_spectrum *const s = &p->spectra[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "name", s->name) && index_or_null(o, "block", s->block) &&
             index_or_null(o, "head", s->head) && pare_json_add_size(o, "rows", s->rows) &&
             pare_json_add_size(o, "cols", s->cols) && probe_number(o, "norm", s->s_est[0]) &&
             pare_json_add_size(o, "rank", s->rank_est) &&
             probe_number(o, "effective_rank", s->effective_est) &&
             probe_number(o, "stable_rank", s->stable_est) &&
             numbers(o, "singular_values", s->s_est, s->n);
    }
    return ok && norms(to, "operator_norms", &p->operators);
}

static bool streams(cJSON *to, const pare_probe *p)
{
    cJSON *const list = pare_json_add_array(to, "stream");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nstreams; i++) {
        const pare_stream *const s = &p->streams[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "place", s->name) &&
             pare_json_add_size(o, "width", s->width) && pare_json_add_size(o, "rows", s->rows) &&
             pare_json_add_size(o, "rank", s->rank_est) &&
             pare_json_add_size(o, "affine_rank", s->affine_est) &&
             probe_number(o, "effective_rank", s->effective_est) &&
             probe_number(o, "norm_mean", s->mean) && probe_number(o, "norm_std", s->std) &&
             probe_number(o, "norm_sup", s->sup) && numbers(o, "axes", s->s_est, s->width);
    }
    return ok && norms(to, "vector_norms", &p->vectors);
}

/* ---- the survey ----------------------------------------------------------------------------- */

static bool survey_points(cJSON *to, const pare_survey *s)
{
    cJSON *const list = pare_json_add_array(to, "points");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < s->npoints; i++) {
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "place", s->points[i].name) &&
             probe_number(o, "residual", s->points[i].residual_est);
    }
    return ok;
}

static bool survey_layer(cJSON *o, const pare_survey_layer *l)
{
    return o && pare_json_add_size(o, "heads", l->nheads) &&
           pare_json_add_bool(o, "skip", l->skip) && pare_json_add_bool(o, "bias", l->bias) &&
           pare_json_add_bool(o, "scaled", l->scaled) && pare_json_add_bool(o, "relu", l->relu) &&
           pare_json_add_size(o, "rows", l->rows) && pare_json_add_size(o, "pairs", l->pairs) &&
           pare_json_add_size(o, "qk_dim", l->qk_dim) &&
           pare_json_add_size(o, "jl_dim", l->jl_dim) && pare_json_add_size(o, "units", l->units) &&
           pare_json_add_size(o, "rank", l->rank) && probe_number(o, "leverage", l->leverage_est) &&
           probe_number(o, "draws", l->draws) && pare_json_add_size(o, "clusters", l->clusters) &&
           probe_number(o, "radius", l->radius_est) &&
           probe_number(o, "separation", l->separation_est) &&
           probe_number(o, "least_centre", l->least_est) &&
           probe_number(o, "largest_centre", l->most_est);
}

static bool survey_heads(cJSON *to, const pare_survey *s)
{
    cJSON *const list = pare_json_add_array(to, "heads");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < s->nheads; i++) {
        const pare_survey_head *const h = &s->heads[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_size(o, "block", h->layer) &&
             pare_json_add_size(o, "head", h->head) && pare_json_add_size(o, "dim", h->dim) &&
             pare_json_add_size(o, "needed", h->needed) && numbers(o, "worth", h->form_est, h->n);
    }
    return ok;
}

static bool survey(cJSON *to, const pare_probe *p)
{
    const pare_survey *const s = &p->survey;
    if (!p->has_survey) return pare_json_add_null(to, "survey");
    cJSON *const o = pare_json_add_object(to, "survey");
    bool ok = o && pare_json_add_size(o, "dim", s->dim) && probe_number(o, "eps", s->eps) &&
              probe_number(o, "delta", s->delta) && survey_points(o, s);
    cJSON *const list = ok ? pare_json_add_array(o, "layers") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < s->nlayers; i++)
        ok = survey_layer(pare_json_add_object(list, NULL), &s->layers[i]);
    return ok && survey_heads(o, s);
}

/* ---- findings and cuts ---------------------------------------------------------------------- */

bool probe_truth(cJSON *to, const char *key, pare_truth t)
{
    return t == PARE_UNKNOWN ? pare_json_add_null(to, key)
                             : pare_json_add_bool(to, key, t == PARE_TRUE);
}

static bool findings(cJSON *to, const pare_probe *p)
{
    cJSON *const list = pare_json_add_array(to, "theorems");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nfindings; i++) {
        const pare_finding *const f = &p->findings[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "theorem", f->theorem) &&
             pare_json_add_string(o, "method", f->method) &&
             pare_json_add_string(o, "hypothesis", f->what) &&
             pare_json_add_string(o, "where", f->where) && probe_truth(o, "holds", f->holds) &&
             probe_number(o, "value", f->value) && probe_number(o, "limit", f->limit) &&
             probe_number(o, "factor", f->factor);
    }
    return ok;
}

static bool cut(cJSON *o, const pare_cut_cost *c)
{
    if (!o || !pare_json_add_string(o, "method", pare_width_method_names[c->method]) ||
        !pare_json_add_size(o, "dim", c->dim))
        return false;
    if (c->refused) return pare_json_add_string(o, "refused", c->refused);
    return pare_json_add_size(o, "stream", c->stream) && pare_json_add_size(o, "qk", c->qk) &&
           pare_json_add_size(o, "ffn", c->ffn) &&
           pare_json_add_size(o, "parameters", (size_t)c->parameters) &&
           probe_number(o, "largest", c->largest) && probe_number(o, "rms", c->rms) &&
           probe_number(o, "metric", c->metric);
}

static bool cuts(cJSON *to, const pare_probe *p)
{
    cJSON *const m = pare_json_add_object(to, "metric");
    bool ok =
        m &&
        (p->metric ? pare_json_add_string(m, "name", p->metric) : pare_json_add_null(m, "name")) &&
        probe_number(m, "before", p->metric_before);
    cJSON *const list = ok ? pare_json_add_array(to, "cuts") : NULL;
    ok = list != NULL;
    for (size_t i = 0; ok && i < p->ncuts; i++)
        ok = cut(pare_json_add_object(list, NULL), &p->cuts[i]);
    return ok;
}

static bool untold(cJSON *to, const pare_probe *p)
{
    cJSON *const list = pare_json_add_array(to, "untold");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < p->nuntold; i++)
        ok = pare_json_add_string(list, NULL, p->untold[i]);
    return ok;
}

pare_status pare_probe_json(cJSON **out, const pare_probe *p, pare_err *err)
{
    cJSON *const o = cJSON_CreateObject();
    const bool ok = o && pare_json_add_size(o, "parameters", (size_t)p->parameters) &&
                    spectra(o, p) && pare_json_add_size(o, "inputs", p->inputs) &&
                    pare_json_add_size(o, "tokens", p->tokens) && streams(o, p) && survey(o, p) &&
                    findings(o, p) && probe_number(o, "largest_output", p->output) && cuts(o, p) &&
                    probe_depth_json(o, p) && probe_ticket_json(o, p) && probe_length_json(o, p) &&
                    probe_prospects_json(o, p) && untold(o, p);
    if (!ok) cJSON_Delete(o);
    *out = ok ? o : NULL;
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
