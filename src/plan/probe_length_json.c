/* The length part of a probe as JSON. */
#include "probe.h"
#include <math.h>

static bool engines_json(cJSON *to, const pare_length_probe *l)
{
    cJSON *const list = pare_json_add_array(to, "engines");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < l->nengines; i++) {
        const pare_probe_engine *const e = &l->engines[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_size(o, "oracle", e->m) &&
             pare_json_add_size(o, "rounds", e->rounds) &&
             pare_json_add_size(o, "native_calls", e->native) &&
             pare_json_add_size(o, "reference_calls", e->reference) &&
             pare_json_add_size(o, "paper_calls", e->paper) &&
             pare_json_add_size(o, "lower_bound", e->lower) &&
             probe_number(o, "flops_ratio", e->ratio) && probe_number(o, "bytes", e->bytes) &&
             probe_number(o, "scratch_bytes", e->scratch);
    }
    return ok;
}

static bool modes_json(cJSON *to, const pare_length_probe *l)
{
    cJSON *const list = pare_json_add_array(to, "modes");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < l->nmodes; i++) {
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "mode", pare_length_mode_name(l->modes[i].mode)) &&
             pare_json_add_bool(o, "applies", !*l->modes[i].why_not) &&
             pare_json_add_string(o, "why_not", l->modes[i].why_not);
    }
    return ok;
}

static bool heads_json(cJSON *to, const pare_length_probe *l)
{
    cJSON *const list = pare_json_add_array(to, "heads");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < l->nheads; i++) {
        const pare_probe_logits *const h = &l->heads[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_size(o, "block", h->block) &&
             pare_json_add_size(o, "head", h->head) && probe_number(o, "largest", h->largest) &&
             probe_number(o, "lmax", h->lmax) && probe_number(o, "c", h->c) &&
             probe_number(o, "d", h->d) && pare_json_add_size(o, "proven_rows", h->proven);
    }
    return ok;
}

static bool types_json(cJSON *to, const pare_length_probe *l)
{
    static const char *const references[] = {"auto", "zero", "probe", "mean"};
    cJSON *const list = pare_json_add_array(to, "types");
    bool ok = list != NULL;
    for (size_t i = 0; ok && i < l->ntypes; i++) {
        const pare_probe_type *const t = &l->types[i];
        cJSON *const o = pare_json_add_object(list, NULL);
        ok = o && pare_json_add_string(o, "type", t->name) && probe_number(o, "w_min", t->w_min) &&
             probe_number(o, "limit", t->limit) &&
             pare_json_add_bool(o, "safe", t->reference == PARE_REF_ZERO) &&
             pare_json_add_string(o, "reference", references[t->reference]);
    }
    return ok;
}

static bool sampling_json(cJSON *to, const pare_length_probe *l)
{
    cJSON *const o = pare_json_add_object(to, "sampling");
    return o && pare_json_add_bool(o, "applies", l->samples) &&
           probe_number(o, "asked", l->looked ? l->asked : NAN) &&
           pare_json_add_size(o, "keys", l->drawn) && pare_json_add_size(o, "rows", l->rows) &&
           pare_json_add_size(o, "proven_rows", l->proven);
}

bool probe_length_json(cJSON *to, const pare_probe *p)
{
    const pare_length_probe *const l = &p->length;
    if (!p->has_length) return true;
    cJSON *const o = pare_json_add_object(to, "length");
    return o && pare_json_add_size(o, "tokens", l->tokens) &&
           pare_json_add_size(o, "context", l->context) &&
           pare_json_add_bool(o, "beyond_context", l->endless) && engines_json(o, l) &&
           pare_json_add_size(o, "cheapest", l->cheapest) &&
           probe_number(o, "cheapest_ratio", l->cheapest_ratio) && modes_json(o, l) &&
           pare_json_add_size(o, "looked", l->looked) && heads_json(o, l) && types_json(o, l) &&
           sampling_json(o, l);
}
