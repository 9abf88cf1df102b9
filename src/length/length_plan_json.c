/* length_plan_json.c - plans as JSON: sizes and options, and the costs that follow from them. */
#include "attend_plan.h"
#include <string.h>

#define PLAN_SCHEMA 1
static const char *const patterns[] = {"full", "causal", "window", "graph"};
static const char *const references[] = {"auto", "zero", "probe", "mean"};

static bool add_cost(cJSON *to, const pare_length_cost *c)
{
    cJSON *const o = pare_json_add_object(to, "cost");
    return o && pare_json_add_size(o, "calls", c->calls) &&
           pare_json_add_size(o, "instances", c->instances) &&
           pare_json_add_size(o, "merge_calls", c->merge_calls) &&
           pare_json_add_size(o, "rounds", c->rounds) &&
           pare_json_add_size(o, "max_len", c->max_len) && pare_json_add_size(o, "d_k", c->d_k) &&
           pare_json_add_size(o, "d_v", c->d_v) && pare_json_add_size(o, "d_token", c->d_token) &&
           pare_json_add_size(o, "max_partials", c->max_partials) &&
           pare_json_add_number(o, "pairs", c->pairs) &&
           pare_json_add_number(o, "computed_pairs", c->computed_pairs) &&
           pare_json_add_number(o, "padded_ratio",
                                c->pairs > 0 ? c->computed_pairs / c->pairs : 1) &&
           pare_json_add_number(o, "flops", c->flops) &&
           pare_json_add_number(o, "outside_flops", c->outside_flops) &&
           pare_json_add_number(o, "direct_flops", c->direct_flops) &&
           pare_json_add_number(o, "bytes_in", c->bytes_in) &&
           pare_json_add_number(o, "bytes_out", c->bytes_out) &&
           pare_json_add_number(o, "weight_bytes", c->weight_bytes) &&
           pare_json_add_number(o, "scratch_bytes", c->scratch_bytes) &&
           pare_json_add_size(o, "theorem_calls", c->theorem) &&
           pare_json_add_size(o, "lower_bound", c->lower) &&
           pare_json_add_size(o, "formula", c->formula);
}

pare_status pare_length_plan_json(cJSON **out, const pare_length_plan *plan, pare_err *err)
{
    const pare_pattern *const p = &plan->pattern;
    const pare_oracle_caps *const c = &plan->caps;
    const pare_length_opts *const o = &plan->opts;
    cJSON *const to = cJSON_CreateObject(), *at = NULL;
    bool ok = to && pare_json_add_size(to, "pare_plan", PLAN_SCHEMA) &&
              pare_json_add_size(to, "tokens", plan->tokens) &&
              (at = pare_json_add_object(to, "pattern")) &&
              pare_json_add_string(at, "kind", patterns[p->kind]) &&
              (p->kind != PARE_WINDOW || (pare_json_add_size(at, "window", p->window) &&
                                          pare_json_add_size(at, "sinks", p->sinks)));
    ok = ok && (at = pare_json_add_object(to, "oracle")) &&
         pare_json_add_size(at, "length", c->max_len) &&
         pare_json_add_size(at, "layers", c->layers) && pare_json_add_size(at, "heads", c->heads) &&
         pare_json_add_size(at, "features", c->features) &&
         (!c->d_k || pare_json_add_size(at, "d_k", c->d_k)) && /* of fixed widths */
         (!c->d_v || pare_json_add_size(at, "d_v", c->d_v)) &&
         pare_json_add_string(at, "dtype", pare_dtype_name(c->dtype)) &&
         pare_json_add_number(at, "exp_flush", c->exp_flush) &&
         pare_json_add_number(at, "exp_err", c->exp_err) &&
         pare_json_add_number(at, "w_min", c->w_min);
    ok = ok && pare_json_add_string(to, "mode", pare_length_mode_name(o->mode)) &&
         pare_json_add_string(to, "reference", references[o->reference]) &&
         pare_json_add_bool(to, "pack", !o->no_pack) &&
         pare_json_add_bool(to, "host_remainder", o->host_remainder) &&
         pare_json_add_bool(to, "one_vector", o->one_vector) &&
         pare_json_add_bool(to, "fallback", !o->no_fallback) &&
         pare_json_add_number(to, "eps", o->eps) && pare_json_add_number(to, "delta", o->delta) &&
         pare_json_add_size(to, "blocks", o->blocks) && pare_json_add_u64(to, "seed", o->seed) &&
         pare_json_add_bool(to, "inverse", o->inverse);
    cJSON *const heads = ok ? pare_json_add_array(to, "heads") : NULL;
    ok = ok && heads;
    for (size_t i = 0; i < plan->nheads && ok; i++)
        ok = (at = pare_json_add_object(heads, NULL)) &&
             pare_json_add_size(at, "layer", plan->heads[i].layer) &&
             pare_json_add_size(at, "dk", plan->heads[i].dk) &&
             pare_json_add_size(at, "dv", plan->heads[i].dv);
    if (ok && add_cost(to, &plan->cost)) {
        *out = to;
        return PARE_OK;
    }
    cJSON_Delete(to);
    *out = NULL;
    return pare_no_memory(err);
}

/* ---- reading --------------------------------------------------------------------------------- */

static pare_status name_of(int *out, const cJSON *o, const char *key, const char *const *names,
                           int count, pare_err *err)
{
    const char *s;
    const pare_status st = pare_json_string(&s, o, key, err);
    if (st) return st;
    for (*out = 0; *out < count; ++*out)
        if (strcmp(names[*out], s) == 0) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT, "plan: %s \"%s\" is not known", key, s);
}

static pare_status read_u32(uint32_t *out, const cJSON *o, const char *key, pare_err *err)
{
    size_t v;
    const pare_status st = pare_json_size(&v, o, key, err);
    if (st) return st;
    if (v > UINT32_MAX) return pare_fail(err, PARE_ERR_INPUT, "plan: %s is too large", key);
    *out = (uint32_t)v;
    return PARE_OK;
}

static pare_status read_oracle(pare_oracle_caps *c, const cJSON *json, pare_err *err)
{
    const cJSON *o;
    const char *type;
    pare_status st = pare_json_object(&o, json, "oracle", err);
    *c = (pare_oracle_caps){.size = sizeof *c};
    if (st || (st = read_u32(&c->max_len, o, "length", err)) ||
        (st = read_u32(&c->layers, o, "layers", err)) ||
        (st = read_u32(&c->heads, o, "heads", err)) ||
        (st = read_u32(&c->features, o, "features", err)) ||
        (pare_json_has(o, "d_k") && (st = read_u32(&c->d_k, o, "d_k", err))) ||
        (pare_json_has(o, "d_v") && (st = read_u32(&c->d_v, o, "d_v", err))) ||
        (st = pare_json_bound(&c->exp_flush, o, "exp_flush", err)) ||
        (st = pare_json_number(&c->exp_err, o, "exp_err", err)) ||
        (st = pare_json_number(&c->w_min, o, "w_min", err)) ||
        (st = pare_json_string(&type, o, "dtype", err)))
        return st;
    if (!(c->exp_flush > 0 && c->exp_err >= 0 && c->w_min > 0 && c->w_min < 1))
        return pare_fail(err, PARE_ERR_INPUT, "plan: impossible exp_flush, exp_err, w_min");
    c->dtype = strcmp(type, pare_dtype_name(PARE_F64)) == 0 ? PARE_F64 : PARE_F32;
    if (strcmp(type, pare_dtype_name(c->dtype)) == 0) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT, "plan: dtype \"%s\", not F32 or F64", type);
}

static pare_status read_options(pare_length_opts *o, const cJSON *json, pare_err *err)
{
    const char *mode;
    int reference;
    bool pack, fallback;
    pare_status st = pare_json_string(&mode, json, "mode", err);
    *o = (pare_length_opts)PARE_LENGTH_OPTS_DEFAULT;
    if (st || (st = name_of(&reference, json, "reference", references, 4, err)) ||
        (st = pare_json_bool(&pack, json, "pack", err)) ||
        (st = pare_json_bool(&o->host_remainder, json, "host_remainder", err)) ||
        (st = pare_json_bool(&fallback, json, "fallback", err)) ||
        (st = pare_json_number(&o->eps, json, "eps", err)) ||
        (st = pare_json_number(&o->delta, json, "delta", err)) ||
        (st = read_u32(&o->blocks, json, "blocks", err)) ||
        (st = pare_json_u64(&o->seed, json, "seed", err)) ||
        (st = pare_json_bool(&o->inverse, json, "inverse", err)))
        return st;
    if (pare_json_has(json, "one_vector") &&
        (st = pare_json_bool(&o->one_vector, json, "one_vector", err)))
        return st;
    if (!(o->eps >= 0 && o->delta >= 0 && o->delta <= 1))
        return pare_fail(err, PARE_ERR_INPUT, "plan: impossible eps, delta");
    o->reference = (pare_reference)reference;
    o->no_pack = !pack;
    o->no_fallback = !fallback;
    const int m = pare_length_mode_of(mode);
    if (m <= 0) return pare_fail(err, PARE_ERR_INPUT, "plan: mode \"%s\" is not known", mode);
    o->mode = (pare_length_mode)m;
    return PARE_OK;
}

static pare_status read_heads(pare_length_head **out, size_t *count, pare_arena *a,
                              const cJSON *json, pare_err *err)
{
    const cJSON *list, *at;
    pare_status st = pare_json_array(&list, json, "heads", err);
    if (st) return st;
    *count = (size_t)cJSON_GetArraySize(list);
    *out = pare_alloc(a, *count + 1, sizeof **out);
    if (!*out) return pare_no_memory(err);
    size_t i = 0;
    cJSON_ArrayForEach(at, list)
    {
        pare_length_head *const h = &(*out)[i++];
        if ((st = pare_json_size(&h->layer, at, "layer", err)) ||
            (st = pare_json_size(&h->dk, at, "dk", err)) ||
            (st = pare_json_size(&h->dv, at, "dv", err)))
            return st;
        if (!h->dk || !h->dv || h->dk > UINT32_MAX / 4 || h->dv > UINT32_MAX / 4)
            return pare_fail(err, PARE_ERR_INPUT, "plan: head %zu has widths %zu and %zu", i - 1,
                             h->dk, h->dv);
    }
    return PARE_OK;
}

/* Written costs are only believed when the sizes give the same. */
static pare_status check_cost(const pare_length_plan *p, const cJSON *json, pare_err *err)
{
    const cJSON *written, *at = NULL;
    size_t calls, rounds;
    pare_status st = pare_json_object(&written, json, "cost", err);
    if (st || (st = pare_json_size(&calls, written, "calls", err)) ||
        (st = pare_json_size(&rounds, written, "rounds", err)))
        return st;
    if (calls != p->cost.calls || rounds != p->cost.rounds)
        return pare_fail(err, PARE_ERR_INPUT,
                         "plan: %zu calls in %zu rounds are written, its sizes give %llu in %llu",
                         calls, rounds, (unsigned long long)p->cost.calls,
                         (unsigned long long)p->cost.rounds);
    cJSON *const own = cJSON_CreateObject();
    st = own && add_cost(own, &p->cost) ? PARE_OK : pare_no_memory(err);
    cJSON_ArrayForEach(at, cJSON_GetObjectItemCaseSensitive(own, "cost"))
    {
        const cJSON *const there = cJSON_GetObjectItemCaseSensitive(written, at->string);
        if (!st && there && !cJSON_Compare(at, there, true))
            st = pare_fail(err, PARE_ERR_INPUT, "plan: cost.%s is not what its sizes give",
                           at->string);
    }
    cJSON_Delete(own);
    return st;
}

pare_status pare_length_plan_parse(pare_length_plan *out, pare_arena *a, const cJSON *json,
                                   const pare_graph *g, pare_err *err)
{
    size_t schema, tokens, count;
    const cJSON *pattern;
    int kind = 0;
    pare_pattern p = {0};
    pare_oracle_caps caps;
    pare_length_opts o;
    pare_length_head *heads;
    pare_status st = pare_json_size(&schema, json, "pare_plan", err);
    if (!st && schema != PLAN_SCHEMA)
        st = pare_fail(err, PARE_ERR_INPUT, "plan: of version %zu, not %d", schema, PLAN_SCHEMA);
    if (!st) st = pare_json_size(&tokens, json, "tokens", err);
    if (!st) st = pare_json_object(&pattern, json, "pattern", err);
    if (!st) st = name_of(&kind, pattern, "kind", patterns, 4, err);
    p.kind = (pare_pattern_kind)kind;
    if (!st && p.kind == PARE_WINDOW) st = pare_json_size(&p.window, pattern, "window", err);
    if (!st && p.kind == PARE_WINDOW) st = pare_json_size(&p.sinks, pattern, "sinks", err);
    if (!st) st = read_oracle(&caps, json, err);
    if (!st) st = read_options(&o, json, err);
    if (!st) st = read_heads(&heads, &count, a, json, err);
    if (st) return st;
    if (p.kind == PARE_GRAPH && (!g || g->n != tokens))
        return pare_fail(err, PARE_ERR_INPUT, "plan: needs the graph of %zu nodes it was made for",
                         tokens);
    st = pare_length_plan_make(
        out, a,
        &(pare_length_shape){
            .heads = heads, .count = count, .tokens = tokens, .pattern = &p, .graph = g},
        &caps, &o, err);
    return st ? st : check_cost(out, json, err);
}
