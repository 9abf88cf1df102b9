/* import_llama.c - Llama, in Hugging Face's names (rotary pairs half a head apart) and in Meta's
 * (pairs side by side): RMS norms before attention and a gated FFN, heads that share keys and
 * values. Mistral and Qwen2 files are the same network and come in here too. */
#include "import_families.h"

#include <string.h>

/* Where each family keeps the same thing. */
typedef struct names {
    const char *embedding, *head, *final;
    const char *attn_norm, *ffn_norm, *q, *k, *v, *o, *gate, *up, *down; /* after "layers.N." */
    bool interleaved;
} names;

/* clang-format off */
static const names all[] = {
    /* Hugging Face */
    {"embed_tokens.weight", "lm_head.weight", "norm.weight", "input_layernorm", "post_attention_layernorm",
     "self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
     "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", false},
    /* Meta, with and without the names of the sublayers */
    {"tok_embeddings.weight", "output.weight", "norm.weight", "attention_norm", "ffn_norm",
     "attention.wq", "attention.wk", "attention.wv", "attention.wo",
     "feed_forward.w1", "feed_forward.w3", "feed_forward.w2", true},
    {"tok_embeddings.weight", "output.weight", "norm.weight", "attention_norm", "ffn_norm",
     "wq", "wk", "wv", "wo", "w1", "w3", "w2", true},
};
/* clang-format on */

static const char *const ignored[] = {"*.rotary_emb.inv_freq",
                                      "rotary_emb.inv_freq",
                                      "rope.freqs",
                                      "freqs_cis",
                                      "freqs_cos",
                                      "freqs_sin",
                                      NULL};

/* The heads, where the rows are pooled in their place, or classified. */
static const char *const ignored_pooled[] = {"*.rotary_emb.inv_freq", "rotary_emb.inv_freq",
                                             "lm_head.weight", "score.*", NULL};

static const names *names_of(const im_source *s)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (im_has(s, "%s", all[i].embedding) && im_has(s, "layers.0.%s.weight", all[i].q))
            return &all[i];
    return NULL;
}

bool im_is_llama(const im_source *s)
{
    return names_of(s) != NULL;
}

#define PI 3.14159265358979323846

typedef struct rope_scaling {
    bool linear, llama3; /* neither: the plain frequencies */
    double factor, low, high, context;
} rope_scaling;

typedef struct llama {
    rope_scaling rope;
    const names *n;
    size_t d, hidden, heads, kv, dk;
    double eps, base;
    pare_act act;
    pare_weight freqs;
    const char *type; /* model_type; NULL: the file stands alone */
    bool attention_bias, mlp_bias;
} llama;

static void read_heads(im_source *s, llama *g)
{
    if (!im_size(s, &g->heads, "heads", "num_attention_heads") &&
        !im_size(s, &g->heads, NULL, "n_heads"))
        im_fail(s, "the number of heads is not known: neither num_attention_heads in config.json "
                   "nor heads in the metadata");
    const size_t q = im_outputs(s, "layers.0.%s.weight", g->n->q);
    const size_t k = im_outputs(s, "layers.0.%s.weight", g->n->k);
    if (s->st) return;
    g->dk = q / g->heads;
    im_size(s, &g->dk, NULL, "head_dim");
    if (s->st) return;
    g->kv = k / (g->dk ? g->dk : 1);
    if (g->dk == 0 || g->dk % 2 != 0 || g->dk * g->heads != q || g->kv == 0 || g->kv * g->dk != k ||
        g->heads % g->kv != 0) {
        im_fail(s,
                "%zu query rows of 'layers.0.%s.weight' and %zu key rows do not make %zu heads of "
                "an even size %zu that share keys evenly",
                q, g->n->q, k, g->heads, g->dk);
        return;
    }
    size_t kv = g->kv;
    if ((im_size(s, &kv, "kv_heads", "num_key_value_heads") ||
         im_size(s, &kv, NULL, "n_kv_heads")) &&
        kv != g->kv)
        im_fail(s, "%zu key heads are named, the key rows of 'layers.0.%s.weight' hold %zu", kv,
                g->n->k, g->kv);
}

/* What config.json must agree on, and which projections have biases: with a config Hugging Face
 * reads no bias that it does not announce. */
static void check_config(im_source *s, llama *g)
{
    im_text(s, &g->type, "model_type");
    im_flag(s, &g->attention_bias, "attention_bias");
    im_flag(s, &g->mlp_bias, "mlp_bias");
    im_refuse_key(s, "attn_logit_softcapping", "pare has no soft caps");
    im_refuse_key(s, "final_logit_softcapping", "pare has no soft caps");
    im_refuse_key(s, "num_local_experts", "pare has no mixtures of experts");
    im_refuse_key(s, "num_experts", "pare has no mixtures of experts");
}

/* rope_scaling, or rope_parameters of newer files: plain frequencies, all divided by a factor
 * (linear), or the slow ones alone (llama3). */
static void read_rope(im_source *s, llama *g)
{
    static const char *const keys[] = {"rope_scaling", "rope_parameters"};
    im_number(s, &g->base, NULL, "rope_theta");
    im_word_number(s, &g->base, "rope", "base");
    for (size_t i = 0; i < 2 && !s->st && s->config; i++) {
        const cJSON *rope = cJSON_GetObjectItemCaseSensitive(s->config, keys[i]);
        if (!cJSON_IsObject(rope)) continue;
        const char *type = "default";
        rope_scaling *const r = &g->rope;
        const cJSON *part = NULL;
        cJSON_ArrayForEach(part, rope)
        {
            if (cJSON_IsObject(part))
                im_fail(s, "config.json: %s differ by layer ('%.40s'), which is not supported",
                        keys[i], part->string);
        }
        if (s->st) return;
        double rotated = 1;
        if (pare_json_string_opt(&type, rope, "type", s->err) ||
            pare_json_string_opt(&type, rope, "rope_type", s->err) ||
            pare_json_number_opt(&g->base, rope, "rope_theta", s->err) ||
            pare_json_number_opt(&rotated, rope, "partial_rotary_factor", s->err) ||
            pare_json_number_opt(&r->factor, rope, "factor", s->err) ||
            pare_json_number_opt(&r->low, rope, "low_freq_factor", s->err) ||
            pare_json_number_opt(&r->high, rope, "high_freq_factor", s->err) ||
            pare_json_number_opt(&r->context, rope, "original_max_position_embeddings", s->err)) {
            im_fail(s, "config.json: %s is malformed", keys[i]);
            return;
        }
        r->linear = strcmp(type, "linear") == 0;
        r->llama3 = strcmp(type, "llama3") == 0;
        if (!r->linear && !r->llama3 && strcmp(type, "default") != 0)
            im_fail(s, "config.json: %s of type '%.40s' is not supported, only linear and llama3",
                    keys[i], type);
        if (rotated != 1)
            im_fail(s, "config.json: %s: partial_rotary_factor %g is not supported", keys[i],
                    rotated);
        if ((r->linear || r->llama3) && !(r->factor >= 1 && r->factor <= 0x1p20))
            im_fail(s, "config.json: %s needs a factor of at least 1", keys[i]);
        if (r->llama3 && !(r->low > 0 && r->high > r->low && r->context >= 1))
            im_fail(s,
                    "config.json: %s of type llama3 needs low_freq_factor < high_freq_factor and "
                    "original_max_position_embeddings",
                    keys[i]);
    }
}

/* The frequency of a plane under the scaling; llama3 goes over from f to f / factor between the
 * wavelengths context / high and context / low. */
static double scaled_frequency(const rope_scaling *r, double f)
{
    if (r->linear) return f / r->factor;
    if (!r->llama3) return f;
    const double turns = r->context * f / (2 * PI); /* within the original context */
    if (turns > r->high) return f;
    if (turns < r->low) return f / r->factor;
    const double smooth = (turns - r->low) / (r->high - r->low);
    return (1 - smooth) * f / r->factor + smooth * f;
}

static void read_sizes(im_source *s, llama *g)
{
    size_t embedding[2] = {0, 0};
    g->n = names_of(s);
    if (!im_shape(s, embedding, 2, "%s", g->n->embedding)) return;
    g->d = embedding[1];
    g->base = 10000;
    g->act = PARE_ACT_SILU;
    g->eps = g->n->interleaved ? 1e-5 : 1e-6; /* what the two code bases assume */
    s->m->embedding = (pare_embedding){.ids = true, .width = g->d, .vocab = embedding[0]};
    read_heads(s, g);
    g->hidden = im_outputs(s, "layers.0.%s.weight", g->n->gate);
    im_number(s, &g->eps, NULL, "rms_norm_eps");
    im_number(s, &g->eps, NULL, "norm_eps");
    im_word_number(s, &g->eps, "norm", "eps");
    im_act(s, &g->act, "hidden_act");
    read_rope(s, g);
    double part = 1;
    if (im_number(s, &part, NULL, "partial_rotary_factor") && part != 1)
        im_fail(s, "config.json: partial_rotary_factor %g is not supported", part);
    if (!s->st && !(g->base > 0)) im_fail(s, "rope_theta %g is not positive", g->base);
    im_size(s, &s->m->context, "ctx", "max_position_embeddings");
    im_agree(s, "hidden_size", g->d);
    im_agree(s, "intermediate_size", g->hidden);
    im_agree(s, "vocab_size", embedding[0]);
}

typedef enum projection { QKV, OUTPUT, MLP } projection;

/* A projection and its bias: Qwen2's queries, keys and values have one, Llama's config says, and a
 * file that stands alone has what it has. */
static pare_dense project(im_source *s, const llama *g, projection kind, size_t out, size_t in,
                          size_t l, const char *name)
{
    const bool there = im_has(s, "layers.%zu.%s.bias", l, name);
    const char *const key = kind == MLP ? "mlp_bias" : "attention_bias";
    const bool qwen = g->type && strcmp(g->type, "qwen2") == 0;
    const bool want = kind == MLP ? g->mlp_bias : g->attention_bias || (qwen && kind == QKV);
    if (g->type && there && !want)
        im_fail(s, "tensor 'layers.%zu.%s.bias' is there, and config.json has no %s for it", l,
                name, key);
    return im_dense(s, out, in, g->type ? want : there, "layers.%zu.%s", l, name);
}

static pare_norm rms(im_source *s, const llama *g, size_t l, const char *name)
{
    const pare_weight gain = im_vector(s, g->d, "layers.%zu.%s.weight", l, name);
    return im_norm(PARE_NORM_RMS, g->d, g->eps, gain, (pare_weight){0});
}

static void read_block(im_source *s, const llama *g, size_t l)
{
    pare_attn *at = &s->m->blocks[l].attn;
    pare_ffn *f = &s->m->blocks[l].ffn;
    im_attn(s, at, g->d, g->heads, g->kv, g->dk, g->dk / 2);
    im_ffn(s, f, PARE_FFN_GATED, g->d, 3, g->act);
    if (s->st) return;
    at->in_norm = rms(s, g, l, g->n->attn_norm);
    const pare_dense q = project(s, g, QKV, g->heads * g->dk, g->d, l, g->n->q);
    const pare_dense k = project(s, g, QKV, g->kv * g->dk, g->d, l, g->n->k);
    const pare_dense v = project(s, g, QKV, g->kv * g->dk, g->d, l, g->n->v);
    const pare_dense o = project(s, g, OUTPUT, g->d, g->heads * g->dk, l, g->n->o);
    at->wq = q.w, at->bq = q.b;
    at->wk = k.w, at->bk = k.b;
    at->wv = v.w, at->bv = v.b;
    at->wo = o.w, at->bo = o.b;
    at->freqs = g->freqs;
    f->in_norm = rms(s, g, l, g->n->ffn_norm);
    f->layers[0] = project(s, g, MLP, g->hidden, g->d, l, g->n->gate);
    f->layers[1] = project(s, g, MLP, g->hidden, g->d, l, g->n->up);
    f->layers[2] = project(s, g, MLP, g->d, g->hidden, l, g->n->down);
}

/* Which layers see a window only, as layer_types or Qwen2's max_window_layers say: all or none. */
static bool all_slide(im_source *s, const llama *g)
{
    const cJSON *const kinds =
        s->config ? cJSON_GetObjectItemCaseSensitive(s->config, "layer_types") : NULL;
    size_t full = 0, sliding = 0;
    const cJSON *kind = NULL;
    cJSON_ArrayForEach(kind, kinds)
    {
        const char *const word = cJSON_IsString(kind) ? kind->valuestring : "";
        full += strcmp(word, "full_attention") == 0;
        sliding += strcmp(word, "sliding_attention") == 0;
        if (strcmp(word, "full_attention") != 0 && strcmp(word, "sliding_attention") != 0)
            im_fail(s, "config.json: layer_types names '%.40s', which is not supported", word);
    }
    if (full && sliding)
        im_fail(s, "config.json: layer_types: windows that differ by layer are not supported");
    if (full || sliding || !g->type || strcmp(g->type, "qwen2") != 0) return !full;
    double from = 28; /* Qwen2's own default: layers from this one on have the window */
    im_number(s, &from, NULL, "max_window_layers");
    if (from > 0 && from < (double)s->m->nblocks)
        im_fail(s,
                "config.json: max_window_layers %g of %zu: windows that differ by layer are not "
                "supported",
                from, s->m->nblocks);
    return from <= 0;
}

/* sliding_window: Mistral's 4096 where its config does not have the key; Qwen2's counts with
 * use_sliding_window only; a file that stands alone may name one. */
static void read_pattern(im_source *s, const llama *g)
{
    const char *const type = g->type ? g->type : "";
    size_t window = 0;
    bool use = strcmp(type, "qwen2") != 0;
    s->m->pattern.kind = PARE_CAUSAL;
    im_flag(s, &use, "use_sliding_window");
    im_size(s, &window, NULL, "sliding_window");
    if (!s->st && strcmp(type, "mistral") == 0 &&
        !cJSON_GetObjectItemCaseSensitive(s->config, "sliding_window"))
        window = 4096;
    if (s->st || !use || window == 0 || !all_slide(s, g)) return;
    if (strcmp(type, "llama") == 0)
        im_fail(s, "config.json: sliding_window (use_sliding_window) is no part of Llama; if the "
                   "model has a window its model_type is mistral");
    s->m->pattern.kind = PARE_WINDOW;
    s->m->pattern.window = window;
}

void im_llama(im_source *s)
{
    llama g = {0};
    if (!names_of(s)) im_fail(s, "its tensors do not have Llama's names");
    check_config(s, &g);
    if (s->st) return;
    im_orientation(s, false);
    read_sizes(s, &g);
    char after[64];
    if (s->st) return;
    snprintf(after, sizeof after, ".%s.weight", g.n->q);
    if (!im_blocks(s, im_count(s, "layers.", after))) return;
    im_agree(s, "num_hidden_layers", s->m->nblocks);
    read_pattern(s, &g);
    s->m->embedding.table = im_table(s, s->m->embedding.vocab, g.d, "%s", g.n->embedding);
    s->m->embedding.pos.kind = PARE_POS_ROTARY;
    s->m->embedding.pos.interleaved = g.n->interleaved;
    g.freqs = im_frequencies(s, g.base, g.dk, g.dk / 2);
    for (size_t i = 0; !s->st && i < g.dk / 2; i++) {
        double *const f = (double *)g.freqs.data;
        f[i] = scaled_frequency(&g.rope, f[i]);
    }
    for (size_t l = 0; l < s->m->nblocks && !s->st; l++) read_block(s, &g, l);
    s->m->head.norm =
        im_norm(PARE_NORM_RMS, g.d, g.eps, im_vector(s, g.d, "%s", g.n->final), (pare_weight){0});
    im_language_head(s, g.n->embedding, g.n->head);
    im_finish(s, s->m->head.pool != PARE_POOL_NONE ? ignored_pooled : ignored);
}
