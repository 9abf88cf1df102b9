/* Tests src/train/init.c. */
#include "base/support.h"
#include <pare/train.h>
#include <pare_test.h>

static pare_model *make(pare_init o)
{
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_init_model(&m, &o, &err), &err);
    return m;
}

static pare_init graph(size_t dim, size_t heads)
{
    return (pare_init){.kind = PARE_INIT_GRAPH,
                       .dim = dim,
                       .layers = 4,
                       .heads = heads,
                       .features = 7,
                       .outputs = 2};
}

static pare_init gpt(void)
{
    return (pare_init){
        .kind = PARE_INIT_GPT, .dim = 32, .layers = 3, .heads = 4, .vocab = 100, .context = 12};
}

static pare_init encoder(size_t vocab, size_t features)
{
    return (pare_init){.kind = PARE_INIT_ENCODER,
                       .dim = 16,
                       .layers = 2,
                       .heads = 2,
                       .vocab = vocab,
                       .features = features,
                       .context = 9,
                       .outputs = 3,
                       .pool = PARE_POOL_FIRST};
}

typedef struct tally {
    pare_sha256 hash;
    size_t trained, wo;
} tally;

static pare_status add(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)vector, (void)err;
    tally *t = self;
    if (!pare_has(w)) return PARE_OK;
    const size_t n = w->rows * w->cols;
    const char *last = strrchr(name, '.');
    pare_sha256_add(&t->hash, w->data, n * sizeof(float));
    if (strcmp(last, ".wo") == 0)
        t->wo += n;
    else if (strcmp(last, ".mean") != 0 && strcmp(last, ".var") != 0)
        t->trained += n;
    return PARE_OK;
}

static tally count(char hex[PARE_SHA256_HEX], pare_model *m)
{
    tally t = {0};
    assert_int_equal(pare_sha256_begin(&t.hash, NULL), PARE_OK);
    assert_int_equal(pare_model_visit(m, add, &t, NULL), PARE_OK);
    pare_sha256_end(&t.hash, hex);
    return t;
}

/* The model of Shirzad 2024, D.2: 84,098 and 458 trained numbers; a single head has no Wo. */
static void the_graph_transformer_has_the_parameters_of_shirzad_2024(void **state)
{
    (void)state;
    char hex[PARE_SHA256_HEX];
    pare_model *m = make(graph(64, 1)), *small = make(graph(4, 1));
    assert_int_equal(count(hex, m).trained, 84098);
    assert_int_equal(count(hex, small).trained, 458);
    assert_int_equal(count(hex, m).wo, 0);
    const pare_block *k = &m->blocks[3];
    assert_true(!pare_has(&k->attn.bq) && !pare_has(&k->attn.bv) && !pare_has(&k->attn.bo));
    assert_true(k->attn.heads[0].scale == 0.125);
    assert_int_equal(k->attn.out_norm.kind, PARE_NORM_BATCH);
    assert_true(k->ffn.out_norm.eps == 1e-5 && k->ffn.layers[0].w.rows == 64);
    assert_true(pare_weight_at(&k->ffn.out_norm.gain, 5) == 1);
    assert_true(pare_weight_at(&k->ffn.out_norm.var, 5) == 1);
    assert_int_equal(m->pattern.kind, PARE_GRAPH);
    assert_true(!m->pattern.self_loops);
    pare_model_free(m);
    pare_model_free(small);
}

static double largest(const pare_weight *w)
{
    double most = 0;
    for (size_t i = 0; i < w->rows * w->cols; i++) {
        const double v = fabs(pare_weight_at(w, i));
        if (v > most) most = v;
    }
    return most;
}

static double spread(const pare_weight *w)
{
    double s = 0;
    for (size_t i = 0; i < w->rows * w->cols; i++) s += pow(pare_weight_at(w, i), 2);
    return sqrt(s / (double)(w->rows * w->cols));
}

static void weights_are_uniform_up_to_one_over_the_root_of_the_inputs(void **state)
{
    (void)state;
    pare_model *m = make(graph(64, 1));
    const double edge = 1 / sqrt(7);
    assert_le(largest(&m->stem.map.w), edge);
    assert_le(0.9 * edge, largest(&m->stem.map.w));
    assert_le(largest(&m->stem.map.b), edge);
    const pare_dense *l = m->blocks[1].ffn.layers;
    assert_le(largest(&l[1].w), 0.125);
    assert_near(spread(&l[1].w), 0.125 / sqrt(3), 0.002);
    assert_near(spread(&m->blocks[2].attn.wq), 0.125 / sqrt(3), 0.002);
    pare_model_free(m);
}

/* Without skips and norms a map keeps the mean square of its rows: variance 1 / inputs, and
 * 2 / inputs behind relu. With either of them weights are torch's. */
static void bare_nets_begin_with_rows_that_keep_their_size(void **state)
{
    (void)state;
    pare_init o = graph(64, 1);
    o.variant = (pare_variant){.no_skips = true, .no_norms = true, .no_biases = true};
    pare_model *m = make(o);
    const pare_block *k = &m->blocks[3];
    assert_near(spread(&k->attn.wv), 0.125, 0.005);
    assert_near(spread(&k->ffn.layers[0].w), 0.125, 0.005);
    assert_near(spread(&k->ffn.layers[1].w), 0.125 * sqrt(2), 0.007);
    assert_true(!pare_has(&m->stem.map.b) && !pare_has(&m->top.out.b) &&
                !pare_has(&k->ffn.layers[0].b) && k->attn.out_norm.kind == PARE_NORM_NONE &&
                k->attn.skip.kind == PARE_SKIP_NONE && k->ffn.skip.kind == PARE_SKIP_NONE);
    pare_model_free(m);
    o.variant.has_act = true;
    o.variant.act = PARE_ACT_TANH; /* cuts off nothing */
    m = make(o);
    assert_near(spread(&m->blocks[3].ffn.layers[1].w), 0.125, 0.005);
    assert_int_equal(m->blocks[3].ffn.act, PARE_ACT_TANH);
    pare_model_free(m);
    o.variant = (pare_variant){.no_skips = true};
    m = make(o);
    assert_near(spread(&m->blocks[3].ffn.layers[1].w), 0.125 / sqrt(3), 0.002);
    assert_int_equal(m->blocks[3].attn.out_norm.kind, PARE_NORM_BATCH);
    pare_model_free(m);
}

static void no_two_tensors_are_alike(void **state)
{
    (void)state;
    pare_model *m = make(graph(16, 2));
    const pare_attn *a = &m->blocks[0].attn, *b = &m->blocks[1].attn;
    const pare_weight *const w[] = {&a->wq,
                                    &a->wk,
                                    &a->wv,
                                    &a->wo,
                                    &b->wq,
                                    &b->wo,
                                    &m->blocks[0].ffn.layers[0].w,
                                    &m->blocks[0].ffn.layers[1].w};
    for (size_t i = 0; i < sizeof w / sizeof *w; i++)
        for (size_t j = 0; j < i; j++) assert_memory_not_equal(w[i]->data, w[j]->data, 16);
    pare_model_free(m);
}

static void several_heads_have_a_real_wo(void **state)
{
    (void)state;
    pare_model *m = make(graph(64, 4));
    const pare_attn *a = &m->blocks[0].attn;
    assert_int_equal(a->nheads, 4);
    assert_int_equal(a->heads[3].q, 48);
    assert_true(a->heads[0].scale == 0.25);
    assert_near(spread(&a->wo), 0.125 / sqrt(3), 0.002);
    pare_model_free(m);
}

static void the_other_rows_of_the_table_only_change_the_attention(void **state)
{
    (void)state;
    pare_init o = graph(64, 1);
    o.kind = PARE_INIT_MLP;
    pare_model *mlp = make(o);
    o.kind = PARE_INIT_GCN;
    o.self_loops = true;
    pare_model *gcn = make(o);
    assert_int_equal(mlp->blocks[0].attn.kind, PARE_ATTN_NONE);
    assert_int_equal(gcn->blocks[0].attn.kind, PARE_ATTN_UNIFORM);
    assert_int_equal(gcn->blocks[0].attn.mix.rows, 64);
    assert_int_equal(gcn->blocks[0].attn.out_norm.kind, PARE_NORM_BATCH);
    assert_int_equal(gcn->blocks[0].attn.skip.kind, PARE_SKIP_IDENTITY);
    assert_true(gcn->pattern.self_loops && gcn->pattern.kind == PARE_GRAPH);
    pare_model_free(mlp);
    pare_model_free(gcn);
}

static void a_gpt_begins_like_gpt_2(void **state)
{
    (void)state;
    pare_model *m = make(gpt());
    const pare_block *k = &m->blocks[1];
    assert_near(spread(&m->stem.embedding), 0.02, 0.001);
    assert_near(spread(&k->attn.wq), 0.02, 0.002);
    assert_near(spread(&k->attn.wo), 0.02 / sqrt(6), 0.001);
    assert_near(spread(&k->ffn.layers[1].w), 0.02 / sqrt(6), 0.001);
    assert_true(largest(&k->attn.bq) == 0 && largest(&k->ffn.layers[0].b) == 0);
    assert_int_equal(k->ffn.layers[0].w.rows, 128);
    assert_true(m->top.tied && m->pattern.kind == PARE_CAUSAL && m->context == 12);
    assert_int_equal(pare_model_outputs(m), 100);
    pare_model_free(m);
}

static void bits_depend_on_the_seed_alone(void **state)
{
    (void)state;
    const pare_init all[] = {graph(8, 1), gpt(), encoder(5, 0), encoder(0, 2)};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char one[PARE_SHA256_HEX], two[PARE_SHA256_HEX], other[PARE_SHA256_HEX];
        pare_init o = all[i];
        pare_model *a = make(o), *b = make(o);
        o.seed = 1;
        pare_model *c = make(o);
        count(one, a);
        count(two, b);
        count(other, c);
        assert_string_equal(one, two);
        assert_string_not_equal(one, other);
        pare_model_free(a);
        pare_model_free(b);
        pare_model_free(c);
    }
}

static void every_kind_runs(void **state)
{
    (void)state;
    pare_init all[] = {graph(8, 2), graph(8, 1),   graph(8, 1),  graph(8, 1),
                       gpt(),       encoder(5, 0), encoder(0, 2)};
    all[1].kind = PARE_INIT_MLP;
    all[2].kind = PARE_INIT_GCN;
    all[2].expander_degree = 4;
    all[3].full = true;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        pare_model *m = make(all[i]);
        pare_arena *a = pare_arena_new();
        pare_inputs set;
        double y[9 * 100];
        pare_err err = {0};
        assert_ok(pare_inputs_random(&set, a, m, 1, 9, 5, &err), &err);
        assert_ok(pare_forward_f64(y, m, &set.in[0], NULL, NULL, &err), &err);
        assert_true(isfinite(y[0]) && y[0] != y[1]);
        pare_arena_free(a);
        pare_model_free(m);
    }
}

static void refused(pare_init o, const char *why)
{
    pare_model *m = NULL;
    pare_err err = {0};
    assert_status(pare_init_model(&m, &o, &err), PARE_ERR_USAGE, &err);
    assert_contains(err.msg, why);
    assert_null(m);
}

static void what_does_not_fit_is_named(void **state)
{
    (void)state;
    pare_init o = graph(10, 4);
    refused(o, "dim 10 is no multiple of heads 4");
    o = graph(8, 1);
    o.expander_degree = 3;
    refused(o, "expander degree 3 must be even");
    o = graph(8, 1);
    o.full = o.self_loops = true;
    refused(o, "full attention");
    o = graph(8, 1);
    o.features = 0;
    refused(o, "features must be at least 1");
    o = graph(8, 1);
    o.layers = 0;
    refused(o, "layers must be at least 1");
    o = gpt();
    o.outputs = 7;
    refused(o, "100, not 7");
    o = gpt();
    o.context = 0;
    refused(o, "context must be at least 1");
    o = gpt();
    o.self_loops = true;
    refused(o, "for graph kinds");
    refused(encoder(0, 0), "ids (vocab) or vectors");
    o = encoder(3, 0);
    o.outputs = 0;
    refused(o, "outputs must be at least 1");
    o.kind = (pare_init_kind)9;
    refused(o, "unknown kind 9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_graph_transformer_has_the_parameters_of_shirzad_2024),
        cmocka_unit_test(weights_are_uniform_up_to_one_over_the_root_of_the_inputs),
        cmocka_unit_test(bare_nets_begin_with_rows_that_keep_their_size),
        cmocka_unit_test(no_two_tensors_are_alike),
        cmocka_unit_test(several_heads_have_a_real_wo),
        cmocka_unit_test(the_other_rows_of_the_table_only_change_the_attention),
        cmocka_unit_test(a_gpt_begins_like_gpt_2),
        cmocka_unit_test(bits_depend_on_the_seed_alone),
        cmocka_unit_test(every_kind_runs),
        cmocka_unit_test(what_does_not_fit_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
