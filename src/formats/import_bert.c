/* import_bert.c - BERT: ids, post-norm blocks, full attention; Hugging Face's names with
 * embeddings, pooler, classifier or masked-word head, and the small files whose embedding is
 * word_embeddings -> linear_in -> a norm that only takes the mean away (metadata arch:
 * "mean-only"). */
#include "import_families.h"

#include <string.h>

static const char *const ignored[] = {"embeddings.position_ids", NULL};
/* Beside a masked-word head a file also carries the head for pairs of sentences, and a copy of
 * the embedding and its bias under the decoder's name. */
static const char *const ignored_masked[] = {"embeddings.position_ids", "pooler.dense.*",
                                             "cls.seq_relationship.*",
                                             "cls.predictions.decoder.bias", NULL};

typedef struct bert {
    size_t d, hidden, heads, layers;
    pare_norm_kind norm;
    double eps;
    pare_act act;
    bool hf; /* the embedding has Hugging Face's names */
} bert;

bool im_is_bert(const im_source *s)
{
    return im_has(s, "encoder.layer.0.attention.self.query.weight") &&
           (im_has(s, "word_embeddings.weight") || im_has(s, "embeddings.word_embeddings.weight"));
}

/* Old files say gamma and beta. */
static pare_norm norm_of(im_source *s, const bert *g, const char *name)
{
    const bool old = im_has(s, "%s.gamma", name);
    const pare_weight gain = im_vector(s, g->d, "%s.%s", name, old ? "gamma" : "weight");
    const pare_weight bias = im_vector(s, g->d, "%s.%s", name, old ? "beta" : "bias");
    return im_norm(g->norm, g->d, g->eps, gain, bias);
}

static void read_sizes(im_source *s, bert *g)
{
    size_t words[2] = {0, 0};
    g->hf = im_has(s, "embeddings.word_embeddings.weight");
    const char *const prefix = g->hf ? "embeddings." : "";
    if (!im_shape(s, words, 2, "%sword_embeddings.weight", prefix)) return;
    s->m->embedding = (pare_embedding){.ids = true, .width = words[1], .vocab = words[0]};
    s->m->embedding.table = im_table(s, words[0], words[1], "%sword_embeddings.weight", prefix);
    g->d = im_outputs(s, "encoder.layer.0.attention.self.query.weight");
    g->hidden = im_outputs(s, "encoder.layer.0.intermediate.dense.weight");
    g->layers = im_count(s, "encoder.layer.", ".attention.self.query.weight");
    g->norm = im_says(s, "arch", "mean-only") ? PARE_NORM_MEAN : PARE_NORM_LAYER;
    g->eps = g->norm == PARE_NORM_MEAN ? 0 : 1e-12;
    g->act = PARE_ACT_GELU;
    if (g->norm != PARE_NORM_MEAN) im_number(s, &g->eps, NULL, "layer_norm_eps");
    if (g->norm != PARE_NORM_MEAN) im_word_number(s, &g->eps, "norm", "eps");
    im_act(s, &g->act, "hidden_act");
    if (!im_size(s, &g->heads, "heads", "num_attention_heads"))
        im_fail(s, "the number of heads is not known: neither num_attention_heads in config.json "
                   "nor heads in the metadata");
    else if (g->d % g->heads != 0)
        im_fail(s, "width %zu is not a multiple of %zu heads", g->d, g->heads);
}

/* Every token is of type 0, so that row is added once and for all. The sum is kept in f64, where
 * it is as good as exact. */
static void read_positions(im_source *s, const bert *g)
{
    pare_embedding *embedding = &s->m->embedding;
    const bool positions = im_has(s, "embeddings.position_embeddings.weight");
    const bool types = im_has(s, "embeddings.token_type_embeddings.weight");
    size_t shape[2] = {0, 0}, type_shape[2] = {0, 0};
    pare_weight type = {0};
    if (types && im_shape(s, type_shape, 2, "embeddings.token_type_embeddings.weight"))
        type = im_part(im_table(s, type_shape[0], g->d, "embeddings.token_type_embeddings.weight"),
                       0, type_shape[0] == 1 ? g->d : 1);
    if (!positions) {
        embedding->norm.offset = type;
        return;
    }
    if (!im_shape(s, shape, 2, "embeddings.position_embeddings.weight")) return;
    const pare_weight table = im_table(s, shape[0], g->d, "embeddings.position_embeddings.weight");
    void *data = NULL;
    embedding->pos.kind = PARE_POS_LEARNED;
    embedding->pos.table = types ? im_new(s, PARE_F64, shape[0], g->d, &data) : table;
    s->m->context = shape[0];
    for (size_t i = 0; data && !s->st && i < shape[0] * g->d; i++)
        ((double *)data)[i] = pare_weight_at(&table, i) + pare_weight_at(&type, i % g->d);
}

static void read_embedding(im_source *s, const bert *g)
{
    pare_embedding *embedding = &s->m->embedding;
    embedding->norm = norm_of(s, g, g->hf ? "embeddings.LayerNorm" : "LayerNorm");
    if (g->hf)
        read_positions(s, g);
    else if (im_has(s, "linear_in.weight"))
        embedding->map = im_dense(s, g->d, embedding->width, true, "linear_in");
}

static void read_block(im_source *s, const bert *g, size_t l)
{
    pare_attn *at = &s->m->blocks[l].attn;
    pare_ffn *f = &s->m->blocks[l].ffn;
    char name[80];
    im_attn(s, at, g->d, g->heads, g->heads, g->d / g->heads, 0);
    im_ffn(s, f, PARE_FFN_MLP, g->d, 2, g->act);
    if (s->st) return;
    const pare_dense q = im_dense(s, g->d, g->d, true, "encoder.layer.%zu.attention.self.query", l);
    const pare_dense k = im_dense(s, g->d, g->d, true, "encoder.layer.%zu.attention.self.key", l);
    const pare_dense v = im_dense(s, g->d, g->d, true, "encoder.layer.%zu.attention.self.value", l);
    const pare_dense o =
        im_dense(s, g->d, g->d, true, "encoder.layer.%zu.attention.output.dense", l);
    at->wq = q.w, at->bq = q.b;
    at->wk = k.w, at->bk = k.b;
    at->wv = v.w, at->bv = v.b;
    at->wo = o.w, at->bo = o.b;
    snprintf(name, sizeof name, "encoder.layer.%zu.attention.output.LayerNorm", l);
    at->out_norm = norm_of(s, g, name);
    f->layers[0] = im_dense(s, g->hidden, g->d, true, "encoder.layer.%zu.intermediate.dense", l);
    f->layers[1] = im_dense(s, g->d, g->hidden, true, "encoder.layer.%zu.output.dense", l);
    snprintf(name, sizeof name, "encoder.layer.%zu.output.LayerNorm", l);
    f->out_norm = norm_of(s, g, name);
}

/* transform = norm(act(dense x)) has the norm after the activation, which our head does not have:
 * it becomes a block without attention whose second map is the identity. */
static void read_masked_head(im_source *s, const bert *g, pare_ffn *f)
{
    void *data = NULL;
    im_ffn(s, f, PARE_FFN_MLP, g->d, 2, g->act);
    if (s->st) return;
    f->skip.kind = PARE_SKIP_NONE;
    f->layers[0] = im_dense(s, g->d, g->d, true, "cls.predictions.transform.dense");
    f->layers[1].w = im_new(s, PARE_F32, g->d, g->d, &data);
    for (size_t i = 0; data && i < g->d; i++) ((float *)data)[i * g->d + i] = 1;
    f->out_norm = norm_of(s, g, "cls.predictions.transform.LayerNorm");
    s->m->head.out.b = im_vector(s, s->m->embedding.vocab, "cls.predictions.bias");
    im_tie(s, "embeddings.word_embeddings.weight", "cls.predictions.decoder.weight", true);
    const im_tensor *copy = im_find(s, "cls.predictions.decoder.bias");
    const im_tensor *bias = im_find(s, "cls.predictions.bias");
    if (!s->st && copy &&
        (copy->array.dtype != bias->array.dtype ||
         pare_array_count(&copy->array) != pare_array_count(&bias->array) ||
         memcmp(copy->array.data, bias->array.data,
                pare_array_count(&bias->array) * pare_dtype_size(bias->array.dtype)) != 0))
        im_fail(s, "tensors '%s' and '%s' differ", copy->name, bias->name);
}

static void read_pooled_head(im_source *s, const bert *g)
{
    size_t classes[2] = {0, 0};
    if (im_has(s, "pooler.dense.weight")) {
        s->m->head.pool = PARE_POOL_FIRST;
        s->m->head.dense = im_dense(s, g->d, g->d, true, "pooler.dense");
        s->m->head.act = PARE_ACT_TANH;
    }
    if (im_has(s, "classifier.weight") && im_shape(s, classes, 2, "classifier.weight"))
        s->m->head.out = im_dense(s, im_outputs(s, "classifier.weight"), g->d, true, "classifier");
}

void im_bert(im_source *s)
{
    static const char *const types[] = {"bert", NULL}, *const absolute[] = {"absolute", NULL};
    bert g = {0};
    bool decoder = false;
    im_expect(s, "model_type", types);
    im_expect(s, "position_embedding_type", absolute);
    if (im_flag(s, &decoder, "is_decoder") && decoder)
        im_fail(s, "config.json: is_decoder is not supported");
    im_orientation(s, false);
    read_sizes(s, &g);
    const bool masked = im_has(s, "cls.predictions.transform.dense.weight");
    if (s->st || !im_blocks(s, g.layers + (masked ? 1 : 0))) return;
    s->m->pattern.kind = PARE_FULL;
    read_embedding(s, &g);
    for (size_t l = 0; l < g.layers && !s->st; l++) read_block(s, &g, l);
    if (masked && !s->st)
        read_masked_head(s, &g, &s->m->blocks[g.layers].ffn);
    else
        read_pooled_head(s, &g);
    im_finish(s, masked ? ignored_masked : ignored);
}
