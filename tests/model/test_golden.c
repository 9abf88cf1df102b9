/* The importers and both forward passes against outputs that others computed (../shared). */
#include "base/array.h"
#include "data/graph_data.h"
#include "model/safetensors.h"
#include "../support/pare_test.h"

#define MODELS    "../shared/data/models/"
#define REFERENCE "../shared/reference/"

typedef struct golden {
    pare_model *m;
    pare_arena *a;
    pare_blob *blob;
    st_file file;
} golden;

static golden open_golden(const char *model, const char *expected)
{
    golden g = {.a = pare_arena_new()};
    pare_err err = {0};
    assert_non_null(g.a);
    assert_ok(pare_model_load(&g.m, model, &err), &err);
    if (!expected) return g;
    assert_ok(pare_blob_open(&g.blob, expected, &err), &err);
    assert_ok(st_open(&g.file, g.a, g.blob, &err), &err);
    return g;
}

static void close_golden(golden *g)
{
    pare_model_free(g->m);
    pare_blob_release(g->blob);
    pare_arena_free(g->a);
}

static pare_array array_of(const golden *g, const char *name)
{
    const st_tensor *t = st_find(&g->file, name);
    assert_non_null(t);
    pare_array a = {.dtype = t->dtype, .ndim = t->ndim, .data = t->data};
    memcpy(a.shape, t->shape, sizeof t->shape);
    return a;
}

static const int64_t *ids_of(golden *g, const pare_array *a)
{
    const size_t n = pare_array_count(a);
    int64_t *ids = pare_alloc(g->a, n, sizeof *ids);
    assert_non_null(ids);
    for (size_t i = 0; i < n; i++) ids[i] = pare_array_i64(a, i);
    return ids;
}

static double *doubles_of(golden *g, const pare_array *a)
{
    const size_t n = pare_array_count(a);
    double *v = pare_alloc(g->a, n, sizeof *v);
    assert_non_null(v);
    for (size_t i = 0; i < n; i++) v[i] = pare_array_f64(a, i);
    return v;
}

static void assert_all_near(const double *got, const double *want, size_t n, double tol,
                            const char *what)
{
    double worst = 0;
    for (size_t i = 0; i < n; i++) {
        const double e = fabs(got[i] - want[i]);
        if (!(e <= worst)) worst = e;
    }
    if (!(worst <= tol)) {
        print_error("%s: largest difference %g, allowed %g\n", what, worst, tol);
        fail();
    }
}

/* Both passes against `want`; the f64 output is returned. */
static const double *run_both(golden *g, const pare_input *in, const double *want, double tol)
{
    pare_err err = {0};
    const size_t n = pare_output_rows(g->m, in) * pare_model_outputs(g->m);
    double *y = pare_alloc(g->a, n, sizeof *y), *wide = pare_alloc(g->a, n, sizeof *wide);
    float *y32 = pare_alloc(g->a, n, sizeof *y32);
    const pare_exec two = {.threads = 2};
    assert_true(y && y32 && wide);
    assert_ok(pare_input_check(g->m, in, &err), &err);
    assert_ok(pare_forward_f64(y, g->m, in, NULL, &two, &err), &err);
    assert_ok(pare_forward_f32(y32, g->m, in, NULL, &two, &err), &err);
    for (size_t i = 0; i < n; i++) wide[i] = (double)y32[i];
    if (want) {
        assert_all_near(y, want, n, tol, "f64");
        assert_all_near(wide, want, n, tol, "f32");
    }
    return y;
}

static void run_named(golden *g, const char *tokens, const char *logits, double tol)
{
    const pare_array t = array_of(g, tokens), y = array_of(g, logits);
    const pare_input in = {
        .batch = t.ndim == 2 ? t.shape[0] : 1, .tokens = t.shape[t.ndim - 1], .ids = ids_of(g, &t)};
    assert_int_equal(pare_output_rows(g->m, &in) * pare_model_outputs(g->m), pare_array_count(&y));
    run_both(g, &in, doubles_of(g, &y), tol);
}

typedef struct block_check {
    golden *g;
    size_t seen;
} block_check;

static void check_block(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v,
                        size_t rows, size_t cols)
{
    block_check *c = self;
    char name[32];
    if (tap != PARE_TAP_FFN_OUT) return;
    snprintf(name, sizeof name, "block%zu", block);
    const pare_array want = array_of(c->g, name);
    const pare_array got = {.dtype = dtype, .ndim = 2, .shape = {rows, cols}, .data = v};
    assert_int_equal(rows * cols, pare_array_count(&want));
    assert_all_near(doubles_of(c->g, &got), doubles_of(c->g, &want), rows * cols, 2e-5, name);
    c->seen++;
}

static void gpt_nano_sort_gives_every_block_and_the_logits(void **state)
{
    (void)state;
    NEED_SHARED(MODELS "gpt_nano_sort.safetensors");
    golden g =
        open_golden(MODELS "gpt_nano_sort.safetensors", MODELS "golden_gpt_nano_sort.safetensors");
    pare_err err = {0};
    run_named(&g, "tokens", "logits", 2e-5);
    const pare_array t = array_of(&g, "tokens");
    const pare_input in = {.batch = t.shape[0], .tokens = t.shape[1], .ids = ids_of(&g, &t)};
    double y[3 * 11 * 3];
    float y32[3 * 11 * 3];
    block_check c = {.g = &g};
    const pare_trace trace = {.fn = check_block, .self = &c};
    assert_ok(pare_forward_f64(y, g.m, &in, &trace, NULL, &err), &err);
    assert_ok(pare_forward_f32(y32, g.m, &in, &trace, NULL, &err), &err);
    assert_int_equal(c.seen, 6);
    assert_int_equal(g.m->nblobs, 1); /* y = x W^T: nothing had to be copied */
    close_golden(&g);
}

static void stories260K_gives_its_logits(void **state)
{
    (void)state;
    NEED_SHARED(MODELS "stories260K.safetensors");
    golden g =
        open_golden(MODELS "stories260K.safetensors", MODELS "golden_stories260K.safetensors");
    run_named(&g, "tokens", "logits", 1e-4);
    close_golden(&g);
}

typedef struct weight_list {
    size_t n;
    pare_weight w[200];
} weight_list;

static pare_status list_weight(void *self, const char *name, pare_weight *w, bool vector,
                               pare_err *err)
{
    (void)name, (void)vector, (void)err;
    weight_list *l = self;
    assert_true(l->n < 200);
    l->w[l->n++] = *w;
    return PARE_OK;
}

static void stories260K_bin_is_the_same_bits(void **state)
{
    (void)state;
    NEED_SHARED(MODELS "stories260K.bin");
    golden a =
        open_golden(MODELS "stories260K.safetensors", MODELS "golden_stories260K.safetensors");
    golden b = open_golden(MODELS "stories260K.bin", MODELS "golden_stories260K.safetensors");
    weight_list la = {0}, lb = {0};
    assert_ok(pare_model_each_weight(a.m, list_weight, &la, NULL), NULL);
    assert_ok(pare_model_each_weight(b.m, list_weight, &lb, NULL), NULL);
    assert_int_equal(la.n, lb.n);
    for (size_t i = 0; i < la.n; i++) {
        assert_int_equal(pare_has(&la.w[i]), pare_has(&lb.w[i]));
        if (!pare_has(&la.w[i])) continue;
        assert_int_equal(la.w[i].dtype, lb.w[i].dtype);
        assert_int_equal(la.w[i].rows, lb.w[i].rows);
        assert_int_equal(la.w[i].cols, lb.w[i].cols);
        assert_memory_equal(la.w[i].data, lb.w[i].data,
                            la.w[i].rows * la.w[i].cols * pare_dtype_size(la.w[i].dtype));
    }
    const pare_array t = array_of(&a, "tokens");
    const pare_input in = {.batch = 1, .tokens = t.shape[0], .ids = ids_of(&a, &t)};
    const double *ya = run_both(&a, &in, NULL, 0), *yb = run_both(&b, &in, NULL, 0);
    assert_memory_equal(ya, yb, t.shape[0] * 512 * sizeof *ya);
    close_golden(&a);
    close_golden(&b);
}

static void moonshine_gives_its_hidden_rows(void **state)
{
    (void)state;
    NEED_SHARED(MODELS "moonshine_tiny_encoder.safetensors");
    golden g = open_golden(MODELS "moonshine_tiny_encoder.safetensors",
                           MODELS "golden_moonshine_tiny_encoder.safetensors");
    const pare_array x = array_of(&g, "tokens_in"), y = array_of(&g, "ort_out");
    const double *want = doubles_of(&g, &y);
    double largest = 0;
    for (size_t i = 0; i < pare_array_count(&y); i++) largest = fmax(largest, fabs(want[i]));
    const pare_input in = {
        .batch = 1, .tokens = x.shape[0], .width = x.shape[1], .x = doubles_of(&g, &x)};
    assert_int_equal(g.m->pattern.kind, PARE_FULL);
    run_both(&g, &in, want, 2e-4 * largest);
    close_golden(&g);
}

static void indhead_gives_its_logits(void **state)
{
    (void)state;
    NEED_SHARED(MODELS "indhead_attn_only.safetensors");
    golden g = open_golden(MODELS "indhead_attn_only.safetensors",
                           MODELS "golden_indhead_attn_only.safetensors");
    run_named(&g, "tokens", "logits", 1e-4);
    close_golden(&g);
}

static void bert_sst_gives_its_logits(void **state)
{
    (void)state;
    NEED_SHARED(MODELS "bert_sst_3layer.safetensors");
    golden g = open_golden(MODELS "bert_sst_3layer.safetensors",
                           MODELS "golden_bert_sst_3layer.safetensors");
    for (int i = 0; i < 4; i++) {
        char tokens[16], logits[16];
        snprintf(tokens, sizeof tokens, "s%d.tokens", i);
        snprintf(logits, sizeof logits, "s%d.logits", i);
        run_named(&g, tokens, logits, 1e-4);
    }
    close_golden(&g);
}

static void bert_sst_is_right_on_four_of_five_dev_sentences(void **state)
{
    (void)state;
    NEED_SHARED("../shared/data/text/sst_dev.tsv");
    golden g = open_golden(MODELS "bert_sst_3layer.safetensors", NULL);
    pare_err err = {0};
    pare_dataset d;
    pare_metric *metric = NULL;
    pare_scores scores;
    char *words = NULL;
    assert_ok(
        pare_text_read(&words, &g.m->vocab_bytes, g.m->arena, MODELS "bert_sst_vocab.txt", &err),
        &err);
    g.m->vocab = (const uint8_t *)words;
    g.m->tokenizer = PARE_TOK_WORDS;
    assert_ok(pare_dataset_load(&d, g.a, g.m, "../shared/data/text/sst_dev.tsv", NULL, &err), &err);
    assert_ok(pare_metric_new(&metric, g.a, 2, &err), &err);
    for (size_t i = 0; i < d.inputs.n; i++) {
        float y[2];
        assert_ok(pare_forward_f32(y, g.m, &d.inputs.in[i], NULL, NULL, &err), &err);
        assert_ok(pare_metric_add(metric, y, d.target[i], 1, &err), &err);
    }
    assert_ok(pare_metric_scores(&scores, metric, &err), &err);
    assert_near(scores.accuracy, 0.807, 0.0005);
    close_golden(&g);
}

static void read_graph(pare_graph_data *d, golden *g, const char *path)
{
    pare_err err = {0};
    assert_ok(pare_graph_load(d, g->a, path, &err), &err);
}

static void gt_minesweeper_gives_its_logits_and_its_auc(void **state)
{
    (void)state;
    NEED_SHARED(MODELS "gt_minesweeper_d64_L4.safetensors");
    golden g = open_golden(MODELS "gt_minesweeper_d64_L4.safetensors",
                           MODELS "golden_gt_minesweeper_d64_L4.safetensors");
    pare_graph_data d;
    read_graph(&d, &g, "../shared/data/graph/minesweeper.npz");
    const pare_array y = array_of(&g, "logits");
    const pare_input in = {
        .batch = 1, .tokens = d.graph.n, .width = d.features, .x = d.x, .graph = &d.graph};
    assert_true(g.m->pattern.self_loops);
    const double *got = run_both(&g, &in, doubles_of(&g, &y), 1e-3);
    double *score = pare_alloc(g.a, d.graph.n, sizeof *score), auc = 0;
    uint8_t *positive = pare_alloc(g.a, d.graph.n, 1);
    size_t n = 0;
    assert_true(score && positive);
    for (size_t i = 0; i < d.graph.n; i++) {
        if (!d.test[i]) continue; /* split 0 */
        score[n] = got[2 * i + 1] - got[2 * i];
        positive[n++] = d.labels[i] == 1;
    }
    pare_err err = {0};
    assert_ok(pare_auc(&auc, score, positive, n, &err), &err);
    assert_near(auc, 0.920, 0.0005);
    close_golden(&g);
}

static void gt_amazon_photo_gives_its_logits_and_its_accuracy(void **state)
{
    (void)state;
    NEED_SHARED(MODELS "gt_amazon_photo_d64_L2.safetensors");
    golden g = open_golden(MODELS "gt_amazon_photo_d64_L2.safetensors",
                           MODELS "golden_gt_amazon_photo_d64_L2.safetensors");
    pare_graph_data d;
    read_graph(&d, &g, "../shared/data/graph/amazon_photo.npz");
    const pare_array y = array_of(&g, "logits"), nodes = array_of(&g, "test_nodes");
    const pare_input in = {
        .batch = 1, .tokens = d.graph.n, .width = d.features, .x = d.x, .graph = &d.graph};
    const double *got = run_both(&g, &in, doubles_of(&g, &y), 1e-3);
    size_t right = 0;
    for (size_t i = 0; i < pare_array_count(&nodes); i++) {
        const size_t node = (size_t)pare_array_i64(&nodes, i);
        size_t best = 0;
        for (size_t c = 1; c < 8; c++)
            if (got[8 * node + c] > got[8 * node + best]) best = c;
        right += (int64_t)best == d.labels[node];
    }
    assert_near((double)right / (double)pare_array_count(&nodes), 0.952, 0.0005);
    close_golden(&g);
}

/* ---- npz ------------------------------------------------------------------------------------- */

static void depth_tiny_has_its_stored_loss(void **state)
{
    (void)state;
    NEED_SHARED(REFERENCE "depth/tiny.npz");
    golden g = open_golden(REFERENCE "depth/tiny.npz", NULL);
    pare_err err = {0};
    pare_npz *z = NULL;
    pare_array val, stored;
    assert_ok(pare_npz_open(&z, g.a, REFERENCE "depth/tiny.npz", &err), &err);
    assert_ok(pare_npz_get(&val, z, "val", &err), &err);
    assert_ok(pare_npz_get(&stored, z, "val_loss", &err), &err);
    const int64_t *ids = ids_of(&g, &val);
    double loss = 0;
    for (size_t b = 0; b < val.shape[0]; b++) {
        double y[64 * 95];
        const pare_input in = {.batch = 1, .tokens = 64, .ids = ids + 65 * b};
        assert_ok(pare_forward_f64(y, g.m, &in, NULL, NULL, &err), &err);
        for (size_t t = 0; t < 64; t++) {
            double sum = 0;
            for (size_t c = 0; c < 95; c++) sum += exp(y[95 * t + c]);
            loss += log(sum) - y[95 * t + (size_t)ids[65 * b + t + 1]];
        }
    }
    assert_near(loss / (double)(64 * val.shape[0]), pare_array_f64(&stored, 0), 1e-4);
    pare_npz_close(z);
    close_golden(&g);
}

/* The fixture's own graph, inputs and the outputs of an independent numpy
 * implementation in f64. */
static void check_width(const char *model, const char *expected)
{
    golden g = open_golden(model, NULL);
    pare_err err = {0};
    pare_npz *z = NULL;
    pare_array ptr, idx, x, out;
    assert_ok(pare_npz_open(&z, g.a, REFERENCE "width/fixtures/tiny.npz", &err), &err);
    assert_ok(pare_npz_get(&ptr, z, "ptr", &err), &err);
    assert_ok(pare_npz_get(&idx, z, "idx", &err), &err);
    assert_ok(pare_npz_get(&x, z, "X", &err), &err);
    assert_ok(pare_npz_get(&out, z, expected, &err), &err);
    const size_t n = pare_array_count(&ptr) - 1, edges = pare_array_count(&idx);
    size_t *p = pare_alloc(g.a, n + 1, sizeof *p);
    uint32_t *k = pare_alloc(g.a, edges, sizeof *k);
    assert_true(p && k);
    for (size_t i = 0; i <= n; i++) p[i] = (size_t)pare_array_i64(&ptr, i);
    for (size_t i = 0; i < edges; i++) k[i] = (uint32_t)pare_array_i64(&idx, i);
    const pare_graph graph = {.n = n, .ptr = p, .idx = k};
    const pare_input in = {
        .batch = 1, .tokens = n, .width = x.shape[1], .x = doubles_of(&g, &x), .graph = &graph};
    const double *want = doubles_of(&g, &out);
    assert_false(g.m->pattern.self_loops);
    const double *y = run_both(&g, &in, want, 1e-4); /* f32 rounding */
    assert_all_near(y, want, pare_array_count(&out), 1e-12, model);
    pare_npz_close(z);
    close_golden(&g);
}

static void width_fixtures_give_the_golden_outputs(void **state)
{
    (void)state;
    NEED_SHARED(REFERENCE "width/fixtures/tiny.npz");
    check_width(REFERENCE "width/fixtures/tiny.npz", "out");
    check_width(REFERENCE "width/fixtures/tiny_deflate.npz", "out");
    check_width(REFERENCE "width/fixtures/tiny_static6.npz", "static6_out"); /* dense R, no Wo */
    check_width(REFERENCE "width/fixtures/tiny_rrr6.npz", "rrr6_out");       /* and no bv */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpt_nano_sort_gives_every_block_and_the_logits),
        cmocka_unit_test(stories260K_gives_its_logits),
        cmocka_unit_test(stories260K_bin_is_the_same_bits),
        cmocka_unit_test(moonshine_gives_its_hidden_rows),
        cmocka_unit_test(indhead_gives_its_logits),
        cmocka_unit_test(bert_sst_gives_its_logits),
        cmocka_unit_test(bert_sst_is_right_on_four_of_five_dev_sentences),
        cmocka_unit_test(gt_minesweeper_gives_its_logits_and_its_auc),
        cmocka_unit_test(gt_amazon_photo_gives_its_logits_and_its_accuracy),
        cmocka_unit_test(depth_tiny_has_its_stored_loss),
        cmocka_unit_test(width_fixtures_give_the_golden_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
