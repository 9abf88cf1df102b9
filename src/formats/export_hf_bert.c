/* export_hf_bert.c - BERT for sequence classification: full attention, layer norms behind the
 * branches, the first token pooled by a dense map and tanh. Types of tokens are zeros: their row is
 * in the positions. */
#include "export_hf.h"
#include <stdio.h>

static void put_block(hf *x, size_t l, size_t d)
{
    const pare_attn *const a = &x->m->blocks[l].attn;
    const pare_ffn *const f = &x->m->blocks[l].ffn;
    const pare_dense q = {a->wq, a->bq}, k = {a->wk, a->bk}, v = {a->wv, a->bv}, o = {a->wo, a->bo};
    hf_put_dense(x, &q, "bert.encoder.layer.%zu.attention.self.query", l, false);
    hf_put_dense(x, &k, "bert.encoder.layer.%zu.attention.self.key", l, false);
    hf_put_dense(x, &v, "bert.encoder.layer.%zu.attention.self.value", l, false);
    hf_put_dense(x, &o, "bert.encoder.layer.%zu.attention.output.dense", l, false);
    hf_put_norm(x, &a->out_norm, d, true, "bert.encoder.layer.%zu.attention.output.LayerNorm", l);
    hf_put_dense(x, &f->layers[0], "bert.encoder.layer.%zu.intermediate.dense", l, false);
    hf_put_dense(x, &f->layers[1], "bert.encoder.layer.%zu.output.dense", l, false);
    hf_put_norm(x, &f->out_norm, d, true, "bert.encoder.layer.%zu.output.LayerNorm", l);
}

void hf_bert(hf *x)
{
    static const pare_weight none;
    const pare_model *const m = x->m;
    const pare_output_head *const t = &m->head;
    const size_t d = m->embedding.width;
    hf_check_norm(x, &m->embedding.norm, PARE_NORM_LAYER, d, "the norm behind the embedding");
    for (size_t l = 0; l < m->nblocks && !x->st; l++) {
        const pare_attn *const a = &x->m->blocks[l].attn;
        const pare_ffn *const f = &x->m->blocks[l].ffn;
        char where[HF_WHERE];
        hf_check_mlp_block(x, "BERT", l, d, where);
        hf_check_norm(x, &a->out_norm, PARE_NORM_LAYER, d, where);
        hf_check_norm(x, &f->out_norm, PARE_NORM_LAYER, d, where);
        hf_need(x, a->in_norm.kind == PARE_NORM_NONE && f->in_norm.kind == PARE_NORM_NONE,
                "%s: has norms before its branches", where);
    }
    hf_need(x,
            t->norm.kind == PARE_NORM_NONE && t->pool == PARE_POOL_FIRST && pare_has(&t->dense.w) &&
                t->dense.w.rows == d && t->act == PARE_ACT_TANH && !t->tied &&
                pare_has(&t->out.w) && !t->normalize,
            "the head is not the first token, a dense map, tanh and a classifier");
    if (x->st) return;
    hf_put(x, &m->embedding.table, m->embedding.vocab, d, "bert.embeddings.word_embeddings.weight",
           0);
    hf_put(x, &m->embedding.pos.table, m->embedding.pos.table.rows, d,
           "bert.embeddings.position_embeddings.weight", 0);
    hf_put(x, &none, 1, d, "bert.embeddings.token_type_embeddings.weight", 0);
    hf_put_norm(x, &m->embedding.norm, d, true, "bert.embeddings.LayerNorm", 0);
    for (size_t l = 0; l < m->nblocks; l++) put_block(x, l, d);
    hf_put_dense(x, &t->dense, "bert.pooler.dense", 0, false);
    hf_put_dense(x, &t->out, "classifier", 0, false);
    hf_family(x, "bert", "BertForSequenceClassification");
    const pare_block *const b = &m->blocks[0];
    hf_config(x, pare_json_add_values(
                     x->config,
                     "vocab_size:z hidden_size:z num_hidden_layers:z num_attention_heads:z "
                     "intermediate_size:z hidden_act:s max_position_embeddings:z "
                     "type_vocab_size:z num_labels:z layer_norm_eps:g",
                     m->embedding.vocab, d, m->nblocks, b->attn.nheads, b->ffn.layers[0].w.rows,
                     hf_act(b->ffn.act), m->embedding.pos.table.rows, (size_t)1,
                     pare_model_outputs(m), x->eps));
}
