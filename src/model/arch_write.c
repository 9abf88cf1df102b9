/* arch_write.c - the architecture to JSON. Defaults are left out, so that a file written by hand
 * stays short. */
#include "base/json.h"
#include "arch.h"

static bool add_norm(cJSON *to, const char *key, const pare_norm *n)
{
    if (n->kind == PARE_NORM_NONE) return true;
    cJSON *const o = pare_json_add_object(to, key);
    bool ok = o && pare_json_add_string(o, "kind", pare_norm_name(n->kind));
    if (ok && n->kind != PARE_NORM_MEAN) ok = pare_json_add_number(o, "eps", n->eps);
    if (ok && (n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS))
        ok = pare_json_add_number(o, "divisor", n->divisor) &&
             (n->shift == 0 || pare_json_add_number(o, "shift", n->shift));
    return ok;
}

static bool add_attention(cJSON *to, const pare_attn *a)
{
    if (a->kind == PARE_ATTN_NONE) return true;
    cJSON *const o = pare_json_add_object(to, "attention");
    bool ok = o && pare_json_add_string(o, "kind", pare_attn_name(a->kind)) &&
              pare_json_add_size(o, "in", a->din) && pare_json_add_size(o, "out", a->dout);
    if (ok && a->kind == PARE_ATTN_POLY) ok = pare_json_add_number(o, "tolerance", a->tolerance);
    if (ok && a->nheads) {
        cJSON *const heads = pare_json_add_array(o, "heads");
        ok = heads != NULL;
        for (size_t i = 0; ok && i < a->nheads; i++) {
            const pare_head *const h = &a->heads[i];
            cJSON *const e = pare_json_add_object(heads, NULL);
            ok = e && pare_json_add_size(e, "dk", h->dk) && pare_json_add_size(e, "dv", h->dv) &&
                 pare_json_add_size(e, "q", h->q) && pare_json_add_size(e, "k", h->k) &&
                 pare_json_add_size(e, "v", h->v) && pare_json_add_size(e, "o", h->o) &&
                 pare_json_add_number(e, "scale", h->scale);
            if (ok && h->planes)
                ok = pare_json_add_size(e, "freq", h->freq) &&
                     pare_json_add_size(e, "planes", h->planes);
        }
    }
    return ok && pare_json_add_string(o, "skip", pare_skip_name(a->skip.kind)) &&
           add_norm(o, "in_norm", &a->in_norm) && add_norm(o, "out_norm", &a->out_norm);
}

static bool add_ffn(cJSON *to, const pare_ffn *f)
{
    if (f->kind == PARE_FFN_NONE) return true;
    cJSON *const o = pare_json_add_object(to, "ffn");
    return o && pare_json_add_string(o, "kind", pare_ffn_name(f->kind)) &&
           pare_json_add_size(o, "in", f->din) && pare_json_add_size(o, "out", f->dout) &&
           pare_json_add_size(o, "layers", f->nlayers) &&
           pare_json_add_string(o, "activation", pare_act_name(f->act)) &&
           pare_json_add_string(o, "skip", pare_skip_name(f->skip.kind)) &&
           add_norm(o, "in_norm", &f->in_norm) && add_norm(o, "out_norm", &f->out_norm);
}

static bool add_embedding(cJSON *to, const pare_embedding *s)
{
    const pare_positions *const p = &s->pos;
    cJSON *const o = pare_json_add_object(to, "embedding");
    bool ok = o && pare_json_add_bool(o, "ids", s->ids) &&
              pare_json_add_size(o, "width", s->width) &&
              (!s->ids || pare_json_add_size(o, "vocab", s->vocab));
    if (ok && p->kind != PARE_POS_NONE) {
        cJSON *const pos = pare_json_add_object(o, "positions");
        ok = pos && pare_json_add_string(pos, "kind", pare_position_name(p->kind)) &&
             (p->kind != PARE_POS_SINUSOIDAL || pare_json_add_number(pos, "base", p->base)) &&
             (p->kind != PARE_POS_ROTARY ||
              pare_json_add_bool(pos, "interleaved", p->interleaved)) &&
             (!p->after_map || pare_json_add_bool(pos, "after_map", true));
    }
    return ok && add_norm(o, "norm", &s->norm);
}

static bool add_model(cJSON *root, const pare_model *m)
{
    bool ok = pare_json_add_size(root, "version", ARCH_VERSION) &&
              pare_json_add_string(root, "name", m->name ? m->name : "") &&
              pare_json_add_size(root, "context", m->context) && add_embedding(root, &m->embedding);
    const pare_pattern *const p = &m->pattern;
    cJSON *const o = ok ? pare_json_add_object(root, "pattern") : NULL;
    ok = o && pare_json_add_string(o, "kind", pare_pattern_name(p->kind));
    if (ok && p->kind == PARE_WINDOW)
        ok = pare_json_add_size(o, "window", p->window) && pare_json_add_size(o, "sinks", p->sinks);
    if (ok && p->kind == PARE_GRAPH) ok = pare_json_add_bool(o, "self_loops", p->self_loops);
    if (ok && p->kind == PARE_GRAPH && p->expander_degree) {
        cJSON *const e = pare_json_add_object(o, "expander");
        ok = e && pare_json_add_size(e, "degree", p->expander_degree) &&
             pare_json_add_u64(e, "seed", p->expander_seed);
    }
    cJSON *const blocks = ok ? pare_json_add_array(root, "blocks") : NULL;
    ok = blocks != NULL;
    for (size_t b = 0; ok && b < m->nblocks; b++) {
        cJSON *const block = pare_json_add_object(blocks, NULL);
        ok = block && add_attention(block, &m->blocks[b].attn) && add_ffn(block, &m->blocks[b].ffn);
    }
    cJSON *const head = ok ? pare_json_add_object(root, "head") : NULL;
    const pare_output_head *const t = &m->head;
    ok = head && add_norm(head, "norm", &t->norm) &&
         pare_json_add_string(head, "pool", pare_pool_name(t->pool)) &&
         (t->act == PARE_ACT_NONE ||
          pare_json_add_string(head, "activation", pare_act_name(t->act))) &&
         pare_json_add_bool(head, "tied", t->tied) &&
         (!t->normalize || pare_json_add_bool(head, "normalize", true));
    if (ok && m->tokenizer != PARE_TOK_NONE)
        ok = pare_json_add_string(root, "tokenizer", pare_tokenizer_name(m->tokenizer));
    return ok;
}

pare_status arch_write(char **text, pare_arena *a, const pare_model *m, pare_err *err)
{
    cJSON *const root = cJSON_CreateObject();
    const pare_status st = root && add_model(root, m) ? pare_json_print(text, NULL, a, root, 0, err)
                                                      : pare_no_memory(err);
    cJSON_Delete(root);
    return st;
}
