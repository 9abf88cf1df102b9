/* export_hf_llama.c - Llama: rotary positions half by half, RMS norms before the branches, shared
 * keys, a gated feed-forward part. */
#include "export_hf.h"
#include <math.h>
#include <stdio.h>

typedef struct llama {
    size_t d, dk, heads, groups, hidden;
    double base;
    bool attn_bias, ffn_bias;
} llama;

/* Frequencies are base^(-2 i / dk): the base from the second, all others checked. */
static void check_turns(hf *x, const pare_attn *a, llama *g, const char *where)
{
    const size_t planes = g->dk / 2;
    for (size_t h = 0; h < a->nheads; h++)
        hf_need(x, g->dk % 2 == 0 && a->heads[h].planes == planes && a->heads[h].freq == 0,
                "%s: head %zu turns %zu of %zu planes", where, h, a->heads[h].planes, planes);
    if (x->st) return;
    if (g->base <= 0 && planes > 1) g->base = pow(pare_weight_at(&a->freqs, 1), -(double)g->dk / 2);
    if (g->base <= 0) g->base = 10000;
    if (fabs(g->base - round(g->base)) < 1e-3 * g->base) g->base = round(g->base);
    for (size_t i = 0; i < planes && !x->st; i++) {
        const double want = pow(g->base, -2.0 * (double)i / (double)g->dk);
        const double is = pare_weight_at(&a->freqs, i);
        hf_need(x, fabs(is / want - 1) < 1e-5, "%s: frequency %zu is %g, not %g^(-%zu/%zu)", where,
                i, is, g->base, 2 * i, g->dk);
    }
}

static void check_block(hf *x, size_t l, llama *g)
{
    const pare_attn *const a = &x->m->blocks[l].attn;
    const pare_ffn *const f = &x->m->blocks[l].ffn;
    char where[HF_WHERE];
    const size_t groups = hf_check_heads(x, l, where);
    if (x->st) return;
    if (l == 0) g->dk = a->heads[0].dk, g->heads = a->nheads, g->groups = groups;
    hf_need(x, a->heads[0].dk == g->dk && a->nheads == g->heads && groups == g->groups,
            "%s: %zu heads of %zu, %zu with keys of their own; block 0 has %zu of %zu, %zu", where,
            a->nheads, a->heads[0].dk, groups, g->heads, g->dk, g->groups);
    hf_check_norms_before(x, l, PARE_NORM_RMS, g->d, where);
    hf_check_stream(x, l, g->d, where);
    hf_need(x, f->kind == PARE_FFN_GATED && hf_act(f->act),
            "%s: the feed-forward part is not gated", where);
    if (x->st) return;
    if (l == 0) g->hidden = f->layers[0].w.rows;
    hf_need(x, f->layers[0].w.rows == g->hidden && f->act == x->m->blocks[0].ffn.act,
            "%s: its feed-forward part differs from that of block 0", where);
    check_turns(x, a, g, where);
    g->attn_bias |= pare_has(&a->bq) || pare_has(&a->bk) || pare_has(&a->bv) || pare_has(&a->bo);
    for (size_t i = 0; i < 3; i++) g->ffn_bias |= pare_has(&f->layers[i].b);
}

/* A projection; rows of interleaved pairs are sorted into halves. */
static void put(hf *x, const pare_weight *w, const pare_weight *b, const char *name, size_t l,
                size_t pairs, bool bias)
{
    char full[96];
    snprintf(full, sizeof full, "model.layers.%%zu.%s.weight", name);
    hf_put(x, w, w->rows, w->cols, full, l)->pairs = pairs;
    if (!bias) return;
    snprintf(full, sizeof full, "model.layers.%%zu.%s.bias", name);
    hf_tensor *const t = hf_put(x, b, w->rows, 1, full, l);
    t->pairs = pairs;
    t->vector = true;
}

static void put_block(hf *x, size_t l, const llama *g)
{
    const pare_attn *const a = &x->m->blocks[l].attn;
    const pare_ffn *const f = &x->m->blocks[l].ffn;
    const size_t pairs = x->m->embedding.pos.interleaved ? g->dk : 0;
    hf_put_norm(x, &a->in_norm, g->d, false, "model.layers.%zu.input_layernorm", l);
    put(x, &a->wq, &a->bq, "self_attn.q_proj", l, pairs, g->attn_bias);
    put(x, &a->wk, &a->bk, "self_attn.k_proj", l, pairs, g->attn_bias);
    put(x, &a->wv, &a->bv, "self_attn.v_proj", l, 0, g->attn_bias);
    put(x, &a->wo, &a->bo, "self_attn.o_proj", l, 0, g->attn_bias);
    hf_put_norm(x, &f->in_norm, g->d, false, "model.layers.%zu.post_attention_layernorm", l);
    put(x, &f->layers[0].w, &f->layers[0].b, "mlp.gate_proj", l, 0, g->ffn_bias);
    put(x, &f->layers[1].w, &f->layers[1].b, "mlp.up_proj", l, 0, g->ffn_bias);
    put(x, &f->layers[2].w, &f->layers[2].b, "mlp.down_proj", l, 0, g->ffn_bias);
}

static void put_config(hf *x, const llama *g)
{
    const pare_model *const m = x->m;
    const bool window = m->pattern.kind == PARE_WINDOW;
    hf_family(x, window ? "mistral" : "llama", window ? "MistralForCausalLM" : "LlamaForCausalLM");
    hf_number(x, "vocab_size", (double)m->embedding.vocab);
    hf_number(x, "hidden_size", (double)g->d);
    hf_number(x, "intermediate_size", (double)g->hidden);
    hf_number(x, "num_hidden_layers", (double)m->nblocks);
    hf_number(x, "num_attention_heads", (double)g->heads);
    hf_number(x, "num_key_value_heads", (double)g->groups);
    hf_number(x, "head_dim", (double)g->dk);
    hf_word(x, "hidden_act", hf_act(m->blocks[0].ffn.act));
    hf_number(x, "rms_norm_eps", x->eps);
    hf_number(x, "rope_theta", g->base);
    if (m->context) hf_number(x, "max_position_embeddings", (double)m->context);
    if (window) hf_number(x, "sliding_window", (double)m->pattern.window);
    hf_flag(x, "attention_bias", g->attn_bias);
    hf_flag(x, "mlp_bias", g->ffn_bias);
    hf_flag(x, "tie_word_embeddings", m->head.tied);
}

void hf_llama(hf *x)
{
    const pare_model *const m = x->m;
    const pare_output_head *const t = &m->head;
    llama g = {.d = m->embedding.width};
    hf_need(x, m->embedding.norm.kind == PARE_NORM_NONE, "there is a norm behind the embedding");
    hf_need(x,
            m->pattern.kind == PARE_CAUSAL ||
                (m->pattern.kind == PARE_WINDOW && m->pattern.sinks == 0),
            "the pattern is neither causal nor a window without sinks");
    for (size_t l = 0; l < m->nblocks && !x->st; l++) check_block(x, l, &g);
    hf_check_norm(x, &t->norm, PARE_NORM_RMS, g.d, "the last norm");
    hf_need(x,
            t->pool == PARE_POOL_NONE && !pare_has(&t->dense.w) && t->act == PARE_ACT_NONE &&
                (t->tied || pare_has(&t->out.w)) && !pare_has(&t->out.b) &&
                pare_model_outputs(m) == m->embedding.vocab,
            "the head is not one map to the vocabulary without a bias");
    if (x->st) return;
    hf_put(x, &m->embedding.table, m->embedding.vocab, g.d, "model.embed_tokens.weight", 0);
    for (size_t l = 0; l < m->nblocks; l++) put_block(x, l, &g);
    hf_put_norm(x, &t->norm, g.d, false, "model.norm", 0);
    if (!t->tied) hf_put(x, &t->out.w, m->embedding.vocab, g.d, "lm_head.weight", 0);
    put_config(x, &g);
}
