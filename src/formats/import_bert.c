/* import_bert.c - encoders with post-norm blocks and full attention: BERT, RoBERTa and XLM-R (BERT's
 * names; positions begin at pad_token_id + 1), DistilBERT (names of its own, no token types), each
 * alone, with its classifier or with its masked-word head; and the small files whose embedding is
 * word_embeddings -> linear_in -> a norm that only takes the mean away (metadata arch: "mean-only").
 */
#include "import_families.h"

#include <string.h>

/* Where each family keeps the same thing, behind "encoder.layer.N." or "layer.N.". */
typedef struct names {
    const char *layer; /* before the number */
    const char *q, *k, *v, *o, *attn_norm, *up, *down, *ffn_norm;
    const char *heads, *act, *width, *blocks, *hidden; /* in config.json */
    /* The masked-word head: transform, its norm, the bias and the matrix. */
    const char *transform, *transform_norm, *bias, *decoder;
} names;

/* clang-format off */
static const names bert_names = {
    "encoder.layer.", "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
    "output.LayerNorm", "num_attention_heads", "hidden_act", "hidden_size", "num_hidden_layers",
    "intermediate_size",
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.bias",
    "cls.predictions.decoder"};
static const names roberta_names = {
    "encoder.layer.", "attention.self.query", "attention.self.key", "attention.self.value",
    "attention.output.dense", "attention.output.LayerNorm", "intermediate.dense", "output.dense",
    "output.LayerNorm", "num_attention_heads", "hidden_act", "hidden_size", "num_hidden_layers",
    "intermediate_size",
    "lm_head.dense", "lm_head.layer_norm", "lm_head.bias", "lm_head.decoder"};
static const names distilbert_names = {
    "layer.", "attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin",
    "sa_layer_norm", "ffn.lin1", "ffn.lin2", "output_layer_norm", "n_heads", "activation", "dim", "n_layers",
    "hidden_dim",
    "vocab_transform", "vocab_layer_norm", "vocab_projector.bias", "vocab_projector"};
/* clang-format on */

/* Buffers; what stands beside a masked-word head (the head for pairs of sentences, a copy of the
 * bias under the decoder's name); and every head where the rows are pooled in its place. */
static const char *const ignored[] = {"embeddings.position_ids", "embeddings.token_type_ids", NULL};
/* A pooler that the head for tokens or for answers does not read. */
static const char *const ignored_rows[] = {"embeddings.position_ids", "embeddings.token_type_ids",
                                           "pooler.dense.*", NULL};
static const char *const ignored_masked[] = {"embeddings.position_ids", "embeddings.token_type_ids",
                                             "pooler.dense.*",          "cls.seq_relationship.*",
                                             "*.decoder.bias",          NULL};
static const char *const ignored_pooled[] = {"embeddings.position_ids",
                                             "embeddings.token_type_ids",
                                             "pooler.dense.*",
                                             "cls.*",
                                             "lm_head.*",
                                             "vocab_*",
                                             "classifier.*",
                                             "pre_classifier.*",
                                             "qa_outputs.*",
                                             NULL};

typedef struct bert {
    const names *n;
    size_t d, hidden, heads, layers;
    size_t first; /* row of the position table that the first token has */
    pare_norm_kind norm;
    double eps;
    pare_act act;
    bool hf; /* the embedding has Hugging Face's names */
} bert;

static bool is_encoder(const im_source *s, const names *n)
{
    return im_has(s, "%s0.%s.weight", n->layer, n->q) &&
           (im_has(s, "word_embeddings.weight") || im_has(s, "embeddings.word_embeddings.weight"));
}

/* Without a config.json RoBERTa is told by nothing but the heads; with one im_roberta is called. */
bool im_is_bert(const im_source *s)
{
    return is_encoder(s, &bert_names);
}

bool im_is_distilbert(const im_source *s)
{
    return is_encoder(s, &distilbert_names);
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
    char q[80];
    g->hf = im_has(s, "embeddings.word_embeddings.weight");
    const char *const prefix = g->hf ? "embeddings." : "";
    if (!im_shape(s, words, 2, "%sword_embeddings.weight", prefix)) return;
    s->m->embedding = (pare_embedding){.ids = true, .width = words[1], .vocab = words[0]};
    s->m->embedding.table = im_table(s, words[0], words[1], "%sword_embeddings.weight", prefix);
    g->d = im_outputs(s, "%s0.%s.weight", g->n->layer, g->n->q);
    g->hidden = im_outputs(s, "%s0.%s.weight", g->n->layer, g->n->up);
    snprintf(q, sizeof q, ".%s.weight", g->n->q);
    g->layers = im_count(s, g->n->layer, q);
    g->norm = im_says(s, "arch", "mean-only") ? PARE_NORM_MEAN : PARE_NORM_LAYER;
    g->eps = g->norm == PARE_NORM_MEAN ? 0 : 1e-12;
    g->act = PARE_ACT_GELU;
    /* DistilBERT's is written into its code. */
    if (g->norm != PARE_NORM_MEAN && g->n != &distilbert_names)
        im_number(s, &g->eps, NULL, "layer_norm_eps");
    if (g->norm != PARE_NORM_MEAN) im_word_number(s, &g->eps, "norm", "eps");
    im_act(s, &g->act, g->n->act);
    if (!im_size(s, &g->heads, "heads", g->n->heads))
        im_fail(s,
                "the number of heads is not known: neither %s in config.json nor heads in the "
                "metadata",
                g->n->heads);
    else if (g->d % g->heads != 0)
        im_fail(s, "width %zu is not a multiple of %zu heads", g->d, g->heads);
    im_agree(s, g->n->width, g->d);
    im_agree(s, g->n->blocks, g->layers);
    im_agree(s, g->n->hidden, g->hidden);
    im_agree(s, "vocab_size", words[0]);
}

/* table + row in every row: exact in f32 for most pairs of half precision, in f64 for the others. */
static pare_weight add_row(im_source *s, const pare_weight *table, const pare_weight *row)
{
    const size_t n = table->rows * table->cols;
    bool exact = true;
    void *data = NULL;
    for (size_t i = 0; exact && i < n; i++) {
        const double sum = pare_weight_at(table, i) + pare_weight_at(row, i % table->cols);
        exact = (double)(float)sum == sum;
    }
    const pare_weight out = im_new(s, exact ? PARE_F32 : PARE_F64, table->rows, table->cols, &data);
    for (size_t i = 0; data && i < n; i++) {
        const double sum = pare_weight_at(table, i) + pare_weight_at(row, i % table->cols);
        if (exact)
            ((float *)data)[i] = (float)sum;
        else
            ((double *)data)[i] = sum;
    }
    return out;
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
    im_agree(s, "max_position_embeddings", shape[0]);
    if (types && g->n != &distilbert_names) im_agree(s, "type_vocab_size", type_shape[0]);
    if (shape[0] <= g->first) {
        im_fail(s,
                "tensor 'embeddings.position_embeddings.weight' has %zu rows, and the first "
                "token has row %zu (pad_token_id + 1)",
                shape[0], g->first);
        return;
    }
    const size_t rows = shape[0] - g->first;
    const pare_weight all = im_table(s, shape[0], g->d, "embeddings.position_embeddings.weight");
    if (s->st) return;
    /* A table of one row is a vector to im_part. */
    const pare_weight table = g->first ? im_part(all, g->first, rows) : all;
    embedding->pos.kind = PARE_POS_LEARNED;
    embedding->pos.table = types ? add_row(s, &table, &type) : table;
    s->m->context = rows;
}

static void read_block(im_source *s, const bert *g, size_t l)
{
    const names *const n = g->n;
    pare_attn *at = &s->m->blocks[l].attn;
    pare_ffn *f = &s->m->blocks[l].ffn;
    char name[80];
    im_attn(s, at, g->d, g->heads, g->heads, g->d / g->heads, 0);
    im_ffn(s, f, PARE_FFN_MLP, g->d, 2, g->act);
    if (s->st) return;
    const pare_dense q = im_dense(s, g->d, g->d, true, "%s%zu.%s", n->layer, l, n->q);
    const pare_dense k = im_dense(s, g->d, g->d, true, "%s%zu.%s", n->layer, l, n->k);
    const pare_dense v = im_dense(s, g->d, g->d, true, "%s%zu.%s", n->layer, l, n->v);
    const pare_dense o = im_dense(s, g->d, g->d, true, "%s%zu.%s", n->layer, l, n->o);
    at->wq = q.w, at->bq = q.b;
    at->wk = k.w, at->bk = k.b;
    at->wv = v.w, at->bv = v.b;
    at->wo = o.w, at->bo = o.b;
    snprintf(name, sizeof name, "%s%zu.%s", n->layer, l, n->attn_norm);
    at->out_norm = norm_of(s, g, name);
    f->layers[0] = im_dense(s, g->hidden, g->d, true, "%s%zu.%s", n->layer, l, n->up);
    f->layers[1] = im_dense(s, g->d, g->hidden, true, "%s%zu.%s", n->layer, l, n->down);
    snprintf(name, sizeof name, "%s%zu.%s", n->layer, l, n->ffn_norm);
    f->out_norm = norm_of(s, g, name);
}

/* transform = norm(act(dense x)) has the norm after the activation, which our head does not have:
 * it becomes a block without attention whose second map is the identity. */
static void read_masked_head(im_source *s, const bert *g, pare_ffn *f)
{
    const names *const n = g->n;
    char decoder[80], copied[80];
    void *data = NULL;
    im_ffn(s, f, PARE_FFN_MLP, g->d, 2, n == &roberta_names ? PARE_ACT_GELU : g->act);
    if (s->st) return;
    f->skip.kind = PARE_SKIP_NONE;
    f->layers[0] = im_dense(s, g->d, g->d, true, "%s", n->transform);
    f->layers[1].w = im_new(s, PARE_F32, g->d, g->d, &data);
    for (size_t i = 0; data && i < g->d; i++) ((float *)data)[i * g->d + i] = 1;
    f->out_norm = norm_of(s, g, n->transform_norm);
    s->m->head.out.b = im_vector(s, s->m->embedding.vocab, "%s", n->bias);
    snprintf(decoder, sizeof decoder, "%s.weight", n->decoder);
    snprintf(copied, sizeof copied, "%s.bias", n->decoder);
    im_tie(s, "embeddings.word_embeddings.weight", decoder);
    const im_tensor *copy = im_find(s, copied);
    const im_tensor *bias = im_find(s, n->bias);
    if (!s->st && copy &&
        (copy->array.dtype != bias->array.dtype ||
         pare_array_count(&copy->array) != pare_array_count(&bias->array) ||
         memcmp(copy->array.data, bias->array.data,
                pare_array_count(&bias->array) * pare_dtype_size(bias->array.dtype)) != 0))
        im_fail(s, "tensors '%s' and '%s' differ", copy->name, bias->name);
}

/* The dense map that the first token goes through: BERT's pooler (tanh), RoBERTa's and DistilBERT's
 * classifier heads (tanh and relu). NULL: every row is an output. */
static const char *first_token_map(const im_source *s, const bert *g)
{
    const bool roberta = g->n == &roberta_names;
    const char *const name = g->n == &distilbert_names                         ? "pre_classifier"
                             : roberta && im_has(s, "classifier.dense.weight") ? "classifier.dense"
                                                                               : "pooler.dense";
    if (im_has(s, "qa_outputs.weight") || im_built_for(s, "ForTokenClassification") ||
        (roberta && im_has(s, "classifier.weight")))
        return NULL;
    return im_has(s, "%s.weight", name) ? name : NULL;
}

static void read_classifier(im_source *s, const bert *g)
{
    pare_output_head *const h = &s->m->head;
    const char *const first = first_token_map(s, g);
    const char *const out = im_has(s, "qa_outputs.weight")            ? "qa_outputs"
                            : im_has(s, "classifier.out_proj.weight") ? "classifier.out_proj"
                                                                      : "classifier";
    if (first) {
        h->pool = PARE_POOL_FIRST;
        h->dense = im_dense(s, g->d, g->d, true, "%s", first);
        h->act = g->n == &distilbert_names ? PARE_ACT_RELU : PARE_ACT_TANH;
    }
    if (im_has(s, "%s.weight", out)) {
        const size_t outputs = im_outputs(s, "%s.weight", out);
        h->out = im_dense(s, outputs, g->d, true, "%s", out);
        if (strcmp(out, "qa_outputs") != 0 && !im_built_for(s, "ForMultipleChoice"))
            im_labels(s, outputs);
    } else if (first && s->config)
        im_note(s,
                "the output is the first token through the model's pooler; sentence encoders are "
                "pooled otherwise (pool, normalize)");
}

/* Keys that change the function, and are not honored. */
static void check_config(im_source *s)
{
    static const char *const absolute[] = {"absolute", NULL};
    bool decoder = false;
    im_expect(s, "position_embedding_type", absolute);
    if (im_flag(s, &decoder, "is_decoder") && decoder)
        im_fail(s, "config.json: is_decoder is not supported");
    const char *problem = NULL;
    if (im_text(s, &problem, "problem_type") && strcmp(problem, "multi_label_classification") == 0)
        im_note(s, "problem_type multi_label_classification: outputs are the logits");
}

static void read_encoder(im_source *s, const names *n)
{
    bert g = {.n = n};
    const bool pooled = s->pooling.given;
    if (!is_encoder(s, n)) im_fail(s, "its tensors do not have the names of its model_type");
    check_config(s);
    if (n == &roberta_names) {
        double pad = 1;
        im_number(s, &pad, NULL, "pad_token_id");
        if (!(pad >= 0 && pad < 0x1p31)) im_fail(s, "config.json: pad_token_id is %g", pad);
        g.first = s->st ? 0 : (size_t)pad + 1;
    }
    im_orientation(s, false);
    read_sizes(s, &g);
    const bool masked = !pooled && im_has(s, "%s.weight", n->transform);
    if (s->st || !im_blocks(s, g.layers + (masked ? 1 : 0))) return;
    s->m->pattern.kind = PARE_FULL;
    pare_embedding *embedding = &s->m->embedding;
    embedding->norm = norm_of(s, &g, g.hf ? "embeddings.LayerNorm" : "LayerNorm");
    if (g.hf)
        read_positions(s, &g);
    else if (im_has(s, "linear_in.weight"))
        embedding->map = im_dense(s, g.d, embedding->width, true, "linear_in");
    for (size_t l = 0; l < g.layers && !s->st; l++) read_block(s, &g, l);
    if (pooled && !s->st)
        im_pool_head(s, g.d);
    else if (masked && !s->st)
        read_masked_head(s, &g, &s->m->blocks[g.layers].ffn);
    else
        read_classifier(s, &g);
    im_finish(s, pooled                        ? ignored_pooled
                 : masked                      ? ignored_masked
                 : pare_has(&s->m->head.out.w) ? ignored_rows
                                               : ignored);
}

void im_bert(im_source *s)
{
    read_encoder(s, &bert_names);
}

void im_roberta(im_source *s)
{
    read_encoder(s, &roberta_names);
}

void im_distilbert(im_source *s)
{
    read_encoder(s, &distilbert_names);
}
