/* export_hf_bert.c - BERT for sequence classification: full attention, layer norms behind the
 * branches, the first token pooled by a dense map and tanh. Types of tokens are zeros: their row is
 * in the positions. */
#include "export_hf.h"
#include <stdio.h>

static void check_block(hf *x, size_t l, size_t d)
{
    const pare_attn *const a = &x->m->blocks[l].attn;
    const pare_ffn *const f = &x->m->blocks[l].ffn;
    char where[HF_WHERE];
    hf_check_mlp_block(x, "BERT", l, d, where);
    hf_check_norm(x, &a->out_norm, PARE_NORM_LAYER, d, where);
    hf_check_norm(x, &f->out_norm, PARE_NORM_LAYER, d, where);
    hf_need(x, a->in_norm.kind == PARE_NORM_NONE && f->in_norm.kind == PARE_NORM_NONE,
            "%s: has norms before its branches", where);
}

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

static void put_config(hf *x, size_t d)
{
    const pare_model *const m = x->m;
    hf_family(x, "bert", "BertForSequenceClassification");
    hf_number(x, "vocab_size", (double)m->embedding.vocab);
    hf_number(x, "hidden_size", (double)d);
    hf_number(x, "num_hidden_layers", (double)m->nblocks);
    hf_number(x, "num_attention_heads", (double)m->blocks[0].attn.nheads);
    hf_number(x, "intermediate_size", (double)m->blocks[0].ffn.layers[0].w.rows);
    hf_word(x, "hidden_act", hf_act(m->blocks[0].ffn.act));
    hf_number(x, "max_position_embeddings", (double)m->embedding.pos.table.rows);
    hf_number(x, "type_vocab_size", 1);
    hf_number(x, "num_labels", (double)pare_model_outputs(m));
    hf_number(x, "layer_norm_eps", x->eps);
}

void hf_bert(hf *x)
{
    static const pare_weight none;
    const pare_model *const m = x->m;
    const pare_output_head *const t = &m->head;
    const size_t d = m->embedding.width;
    hf_check_norm(x, &m->embedding.norm, PARE_NORM_LAYER, d, "the norm behind the embedding");
    for (size_t l = 0; l < m->nblocks && !x->st; l++) check_block(x, l, d);
    hf_need(x,
            t->norm.kind == PARE_NORM_NONE && t->pool == PARE_POOL_FIRST && pare_has(&t->dense.w) &&
                t->dense.w.rows == d && t->act == PARE_ACT_TANH && !t->tied && pare_has(&t->out.w),
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
    put_config(x, d);
}
