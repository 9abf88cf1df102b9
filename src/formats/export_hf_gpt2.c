/* export_hf_gpt2.c - GPT-2: learned positions, layer norms before the branches, Conv1D weights as
 * [in, out]. */
#include "export_hf.h"
#include <stdio.h>

static void check_block(hf *x, size_t l, size_t d)
{
    char where[HF_WHERE];
    hf_check_mlp_block(x, "GPT-2", l, d, where);
    hf_check_norms_before(x, l, PARE_NORM_LAYER, d, where);
}

static void put_block(hf *x, size_t l, size_t d)
{
    const pare_attn *const a = &x->m->blocks[l].attn;
    const pare_ffn *const f = &x->m->blocks[l].ffn;
    const pare_dense o = {a->wo, a->bo};
    hf_put_norm(x, &a->in_norm, d, true, "transformer.h.%zu.ln_1", l);
    hf_tensor *const w = hf_put(x, &a->wq, d, d, "transformer.h.%zu.attn.c_attn.weight", l);
    w->parts = 3, w->part[1] = a->wk, w->part[2] = a->wv, w->transposed = true;
    hf_tensor *const b = hf_put(x, &a->bq, 1, d, "transformer.h.%zu.attn.c_attn.bias", l);
    b->parts = 3, b->part[1] = a->bk, b->part[2] = a->bv, b->vector = true;
    hf_put_dense(x, &o, "transformer.h.%zu.attn.c_proj", l, true);
    hf_put_norm(x, &f->in_norm, d, true, "transformer.h.%zu.ln_2", l);
    hf_put_dense(x, &f->layers[0], "transformer.h.%zu.mlp.c_fc", l, true);
    hf_put_dense(x, &f->layers[1], "transformer.h.%zu.mlp.c_proj", l, true);
}

static void put_config(hf *x, size_t d)
{
    const pare_model *const m = x->m;
    hf_family(x, "gpt2", "GPT2LMHeadModel");
    hf_number(x, "vocab_size", (double)m->embedding.vocab);
    hf_number(x, "n_positions", (double)m->embedding.pos.table.rows);
    hf_number(x, "n_embd", (double)d);
    hf_number(x, "n_layer", (double)m->nblocks);
    hf_number(x, "n_head", (double)m->blocks[0].attn.nheads);
    hf_number(x, "n_inner", (double)m->blocks[0].ffn.layers[0].w.rows);
    hf_word(x, "activation_function", hf_act(m->blocks[0].ffn.act));
    hf_number(x, "layer_norm_epsilon", x->eps);
    hf_flag(x, "tie_word_embeddings", m->head.tied);
}

void hf_gpt2(hf *x)
{
    const pare_model *const m = x->m;
    const pare_output_head *const t = &m->head;
    const size_t d = m->embedding.width;
    hf_need(x, m->embedding.norm.kind == PARE_NORM_NONE, "there is a norm behind the embedding");
    for (size_t l = 0; l < m->nblocks && !x->st; l++) check_block(x, l, d);
    hf_check_norm(x, &t->norm, PARE_NORM_LAYER, d, "the last norm");
    hf_need(x,
            t->pool == PARE_POOL_NONE && !pare_has(&t->dense.w) && t->act == PARE_ACT_NONE &&
                (t->tied || pare_has(&t->out.w)) && !pare_has(&t->out.b) &&
                pare_model_outputs(m) == m->embedding.vocab,
            "the head is not one map to the vocabulary without a bias");
    if (x->st) return;
    hf_put(x, &m->embedding.table, m->embedding.vocab, d, "transformer.wte.weight", 0);
    hf_put(x, &m->embedding.pos.table, m->embedding.pos.table.rows, d, "transformer.wpe.weight", 0);
    for (size_t l = 0; l < m->nblocks; l++) put_block(x, l, d);
    hf_put_norm(x, &t->norm, d, true, "transformer.ln_f", 0);
    if (!t->tied) hf_put(x, &t->out.w, m->embedding.vocab, d, "lm_head.weight", 0);
    put_config(x, d);
}
