/* export_hf_gpt2.c - GPT-2: learned positions, layer norms before the branches, Conv1D weights as
 * [in, out]. */
#include "export_hf.h"
#include <stdio.h>

void hf_gpt2(hf *x)
{
    const pare_model *const m = x->m;
    const pare_output_head *const t = &m->head;
    const size_t d = m->embedding.width;
    hf_need(x, m->embedding.norm.kind == PARE_NORM_NONE, "there is a norm behind the embedding");
    for (size_t l = 0; l < m->nblocks && !x->st; l++) {
        char where[HF_WHERE];
        hf_check_mlp_block(x, "GPT-2", l, d, where);
        hf_check_norms_before(x, l, PARE_NORM_LAYER, d, where);
    }
    hf_check_norm(x, &t->norm, PARE_NORM_LAYER, d, "the last norm");
    hf_check_lm_head(x);
    if (x->st) return;
    hf_put(x, &m->embedding.table, m->embedding.vocab, d, "transformer.wte.weight", 0);
    hf_put(x, &m->embedding.pos.table, m->embedding.pos.table.rows, d, "transformer.wpe.weight", 0);
    for (size_t l = 0; l < m->nblocks; l++) {
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
    hf_put_norm(x, &t->norm, d, true, "transformer.ln_f", 0);
    if (!t->tied) hf_put(x, &t->out.w, m->embedding.vocab, d, "lm_head.weight", 0);
    hf_family(x, "gpt2", "GPT2LMHeadModel");
    const pare_block *const first = &m->blocks[0];
    hf_config(
        x, pare_json_add_values(x->config,
                                "vocab_size:z n_positions:z n_embd:z n_layer:z n_head:z n_inner:z "
                                "activation_function:s layer_norm_epsilon:g tie_word_embeddings:b",
                                m->embedding.vocab, m->embedding.pos.table.rows, d, m->nblocks,
                                first->attn.nheads, first->ffn.layers[0].w.rows,
                                hf_act(first->ffn.act), x->eps, m->head.tied));
}
