/* Tests src/formats/import_bert.c on small files of the test's own. */
#include "../model/naive.h"

#define D      8
#define HIDDEN 12
#define HEADS  2
#define LAYERS 2
#define VOCAB  10
#define TOKENS 4

static const int64_t ids[TOKENS] = {2, 9, 0, 3};
static const pare_input input = {.batch = 1, .tokens = TOKENS, .ids = ids};

static void make_layers(store *s, const char *gain, const char *bias)
{
    static const struct {
        const char *name;
        size_t out, in; /* in 0: a norm */
    } part[] = {{"attention.self.query", D, D},       {"attention.self.key", D, D},
                {"attention.self.value", D, D},       {"attention.output.dense", D, D},
                {"attention.output.LayerNorm", D, 0}, {"intermediate.dense", HIDDEN, D},
                {"output.dense", D, HIDDEN},          {"output.LayerNorm", D, 0}};
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
            makef(s, part[i].out, part[i].in, 0, "bert.encoder.layer.%d.%s.%s", l, part[i].name,
                  part[i].in ? "weight" : gain);
            makef(s, part[i].out, 0, 0, "bert.encoder.layer.%d.%s.%s", l, part[i].name,
                  part[i].in ? "bias" : bias);
        }
}

static void make_stem(store *s, bool positions, const char *gain, const char *bias)
{
    make(s, "bert.embeddings.word_embeddings.weight", VOCAB, D, 0);
    if (positions) make(s, "bert.embeddings.position_embeddings.weight", 6, D, 0);
    make(s, "bert.embeddings.token_type_embeddings.weight", 2, D, 0);
    makef(s, D, 0, 0, "bert.embeddings.LayerNorm.%s", gain);
    makef(s, D, 0, 0, "bert.embeddings.LayerNorm.%s", bias);
}

static double *naive_stem(store *s, bool positions, double eps, const char *gain, const char *bias)
{
    double x[TOKENS * D];
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < D; i++) {
            x[t * D + i] =
                get(s, "bert.embeddings.word_embeddings.weight")[(size_t)ids[t] * D + i] +
                get(s, "bert.embeddings.token_type_embeddings.weight")[i];
            if (positions)
                x[t * D + i] += get(s, "bert.embeddings.position_embeddings.weight")[t * D + i];
        }
    return normed(s, x, TOKENS, D, false, eps, get(s, "bert.embeddings.LayerNorm.%s", gain),
                  get(s, "bert.embeddings.LayerNorm.%s", bias));
}

static const double *dense(store *s, const double *x, size_t in, size_t out, const char *name)
{
    return affine(s, x, TOKENS, in, out, get(s, "%s.weight", name), get(s, "%s.bias", name), false);
}

static const double *layer_dense(store *s, const double *x, size_t in, size_t out, int l,
                                 const char *part)
{
    char name[100];
    snprintf(name, sizeof name, "bert.encoder.layer.%d.%s", l, part);
    return dense(s, x, in, out, name);
}

static const double *naive_layers(store *s, double *x, double eps, const char *gain,
                                  const char *bias)
{
    for (int l = 0; l < LAYERS; l++) {
        const double *q = layer_dense(s, x, D, D, l, "attention.self.query");
        const double *k = layer_dense(s, x, D, D, l, "attention.self.key");
        const double *v = layer_dense(s, x, D, D, l, "attention.self.value");
        const double *y = attend(s, q, k, v, TOKENS, HEADS, HEADS, D / HEADS,
                                 1 / sqrt((double)D / HEADS), sees_all);
        add_to(x, layer_dense(s, y, D, D, l, "attention.output.dense"), TOKENS * D);
        x = normed(s, x, TOKENS, D, false, eps,
                   get(s, "bert.encoder.layer.%d.attention.output.LayerNorm.%s", l, gain),
                   get(s, "bert.encoder.layer.%d.attention.output.LayerNorm.%s", l, bias));
        double *f = (double *)layer_dense(s, x, D, HIDDEN, l, "intermediate.dense");
        apply(f, TOKENS * HIDDEN, gelu);
        add_to(x, layer_dense(s, f, HIDDEN, D, l, "output.dense"), TOKENS * D);
        x = normed(s, x, TOKENS, D, false, eps,
                   get(s, "bert.encoder.layer.%d.output.LayerNorm.%s", l, gain),
                   get(s, "bert.encoder.layer.%d.output.LayerNorm.%s", l, bias));
    }
    return x;
}

static void make_dense(store *s, size_t out, size_t in, const char *name)
{
    makef(s, out, in, 0, "%s.weight", name);
    makef(s, out, 0, 0, "%s.bias", name);
}

#define CONFIG                                                                                     \
    "{\"model_type\":\"bert\",\"num_attention_heads\":2,\"hidden_act\":\"gelu\","                  \
    "\"layer_norm_eps\":0.01,\"position_embedding_type\":\"absolute\"}"

typedef struct place {
    char dir[200], path[300], config[300];
    store s;
} place;

static void begin(place *p)
{
    test_mkdir(p->dir);
    test_path(p->path, p->dir, "model.safetensors");
    test_path(p->config, p->dir, "config.json");
    p->s = store_new();
}

static void write_files(place *p)
{
    write_tensors(&p->s, p->path, 0, p->s.n, PARE_F32, NULL, 0);
    write_text(p->config, CONFIG);
}

static void end(place *p)
{
    test_rmdir(p->dir);
    pare_arena_free(p->s.a);
}

static void a_sentence_classifier_is_the_network_it_describes(void **state)
{
    (void)state;
    place p;
    begin(&p);
    make_stem(&p.s, true, "gamma", "beta"); /* as the oldest files call them */
    make_layers(&p.s, "gamma", "beta");
    make_dense(&p.s, D, D, "bert.pooler.dense");
    make_dense(&p.s, 3, D, "classifier");
    double *x = naive_stem(&p.s, true, 0.01, "gamma", "beta");
    const double *h = naive_layers(&p.s, x, 0.01, "gamma", "beta");
    double *pooled = (double *)dense(&p.s, h, D, D, "bert.pooler.dense");
    apply(pooled, D, tanh);
    make(&p.s, "bert.embeddings.position_ids", 1, 6, 0); /* a buffer */
    write_files(&p);
    assert_model_gives(p.dir, &input, dense(&p.s, pooled, D, 3, "classifier"), 1, 3);
    drop(&p.s, "classifier.weight");
    drop(&p.s, "classifier.bias");
    write_files(&p);
    assert_model_gives(p.dir, &input, pooled, 1, D); /* then the pooled row is the output */
    end(&p);
}

static void without_positions_and_pooler_the_rows_are_classified(void **state)
{
    (void)state;
    place p;
    begin(&p);
    make_stem(&p.s, false, "weight", "bias");
    make_layers(&p.s, "weight", "bias");
    make_dense(&p.s, 3, D, "classifier");
    double *x = naive_stem(&p.s, false, 0.01, "weight", "bias");
    const double *h = naive_layers(&p.s, x, 0.01, "weight", "bias");
    write_files(&p);
    assert_model_gives(p.dir, &input, dense(&p.s, h, D, 3, "classifier"), TOKENS, 3);
    end(&p);
}

static void a_masked_word_head_is_the_network_it_describes(void **state)
{
    (void)state;
    place p;
    begin(&p);
    make_stem(&p.s, true, "weight", "bias");
    make_layers(&p.s, "weight", "bias");
    make_dense(&p.s, D, D, "cls.predictions.transform.dense");
    make(&p.s, "cls.predictions.transform.LayerNorm.weight", D, 0, 0);
    make(&p.s, "cls.predictions.transform.LayerNorm.bias", D, 0, 0);
    double *bias = make(&p.s, "cls.predictions.bias", VOCAB, 0, 0);
    make_dense(&p.s, D, D, "bert.pooler.dense");    /* for the other head ... */
    make_dense(&p.s, 2, D, "cls.seq_relationship"); /* ... which is not this one */
    double *x = naive_stem(&p.s, true, 0.01, "weight", "bias");
    const double *h = naive_layers(&p.s, x, 0.01, "weight", "bias");
    double *t = (double *)dense(&p.s, h, D, D, "cls.predictions.transform.dense");
    apply(t, TOKENS * D, gelu);
    t = normed(&p.s, t, TOKENS, D, false, 0.01,
               get(&p.s, "cls.predictions.transform.LayerNorm.weight"),
               get(&p.s, "cls.predictions.transform.LayerNorm.bias"));
    const double *want = affine(&p.s, t, TOKENS, D, VOCAB,
                                get(&p.s, "bert.embeddings.word_embeddings.weight"), bias, false);
    write_files(&p);
    assert_model_gives(p.dir, &input, want, TOKENS, VOCAB);
    double *copy = make(&p.s, "cls.predictions.decoder.bias", VOCAB, 0, 0);
    memcpy(copy, bias, VOCAB * sizeof *copy);
    write_files(&p);
    assert_model_gives(p.dir, &input, want, TOKENS, VOCAB);
    copy[3] += 1;
    write_files(&p);
    REFUSED(p.dir, "cls.predictions.decoder.bias", "differ");
    end(&p);
}

static void what_is_missing_or_not_understood_is_named(void **state)
{
    (void)state;
    place p;
    begin(&p);
    make_stem(&p.s, true, "weight", "bias");
    make_layers(&p.s, "weight", "bias");
    write_files(&p);
    write_text(p.config, "{\"model_type\":\"bert\"}");
    REFUSED(p.dir, "num_attention_heads");
    write_text(p.config, "{\"num_attention_heads\":2,\"is_decoder\":true}");
    REFUSED(p.dir, "is_decoder");
    write_text(p.config,
               "{\"num_attention_heads\":2,\"position_embedding_type\":\"relative_key\"}");
    REFUSED(p.dir, "position_embedding_type", "relative_key");
    write_text(p.config, "{\"num_attention_heads\":2,\"model_type\":\"mpnet\"}");
    REFUSED(p.dir, "mpnet", "distance");
    make(&p.s, "bert.encoder.layer.0.attention.self.distance_embedding.weight", 3, 4, 0);
    write_files(&p);
    REFUSED(p.dir, "distance_embedding");
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sentence_classifier_is_the_network_it_describes),
        cmocka_unit_test(without_positions_and_pooler_the_rows_are_classified),
        cmocka_unit_test(a_masked_word_head_is_the_network_it_describes),
        cmocka_unit_test(what_is_missing_or_not_understood_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
