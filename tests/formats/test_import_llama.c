/* Tests src/formats/import_llama.c, import_llama2c.c and the shards of import_open.c. */
#include "../model/naive.h"

#define D      8
#define HIDDEN 12
#define HEADS  4
#define KV     2
#define DK     4 /* not D / HEADS: Hugging Face allows it */
#define LAYERS 2
#define VOCAB  9
#define TOKENS 5

static const int64_t ids[TOKENS] = {3, 8, 0, 3, 7};
static const pare_input input = {.batch = 1, .tokens = TOKENS, .ids = ids};

static const char *const hf[] = {"model.embed_tokens.weight",
                                 "model.norm.weight",
                                 "lm_head.weight",
                                 "model.layers.",
                                 "input_layernorm",
                                 "self_attn.q_proj",
                                 "self_attn.k_proj",
                                 "self_attn.v_proj",
                                 "self_attn.o_proj",
                                 "post_attention_layernorm",
                                 "mlp.gate_proj",
                                 "mlp.up_proj",
                                 "mlp.down_proj"};
static const char *const meta[] = {
    "tok_embeddings.weight", "norm.weight",     "output.weight",  "layers.",      "attention_norm",
    "attention.wq",          "attention.wk",    "attention.wv",   "attention.wo", "ffn_norm",
    "feed_forward.w1",       "feed_forward.w3", "feed_forward.w2"};
static const char *const brief[] = {"tok_embeddings.weight",
                                    "norm.weight",
                                    "output.weight",
                                    "layers.",
                                    "attention_norm",
                                    "wq",
                                    "wk",
                                    "wv",
                                    "wo",
                                    "ffn_norm",
                                    "w1",
                                    "w3",
                                    "w2"};

static void make_llama(store *s, const char *const *n, size_t dk, bool bias)
{
    const size_t rows[] = {D, HEADS * dk, KV * dk, KV * dk, D, D, HIDDEN, HIDDEN, D};
    const size_t cols[] = {0, D, D, D, HEADS * dk, 0, D, D, HIDDEN};
    make(s, n[0], VOCAB, D, 0);
    for (int l = 0; l < LAYERS; l++)
        for (size_t i = 0; i < 9; i++) {
            makef(s, rows[i], cols[i], 0, "%s%d.%s.weight", n[3], l, n[4 + i]);
            if (bias && i >= 1 && i <= 3)
                makef(s, rows[i], 0, 0, "%s%d.%s.bias", n[3], l, n[4 + i]);
        }
    make(s, n[1], D, 0, 0);
}

typedef struct options {
    const char *const *names;
    size_t dk;
    bool bias, interleaved;
    double eps, base;
    const double *head;
    bool (*sees)(size_t, size_t, size_t);
} options;

static const double *naive_llama(store *s, const options *o)
{
    const char *const *m = o->names;
    const size_t n = TOKENS, dk = o->dk;
    double x[TOKENS * D];
    for (size_t t = 0; t < n; t++)
        memcpy(x + t * D, get(s, "%s", m[0]) + (size_t)ids[t] * D, sizeof(double) * D);
    for (int l = 0; l < LAYERS; l++) {
        double *p[3];
        const double *z =
            normed(s, x, n, D, true, o->eps, get(s, "%s%d.%s.weight", m[3], l, m[4]), NULL);
        for (size_t i = 0; i < 3; i++) {
            const double *b = o->bias ? get(s, "%s%d.%s.bias", m[3], l, m[5 + i]) : NULL;
            p[i] = affine(s, z, n, D, (i ? KV : HEADS) * dk,
                          get(s, "%s%d.%s.weight", m[3], l, m[5 + i]), b, false);
        }
        rotate(p[0], n, HEADS, dk, dk, o->base, o->interleaved);
        rotate(p[1], n, KV, dk, dk, o->base, o->interleaved);
        const double *y =
            attend(s, p[0], p[1], p[2], n, HEADS, KV, dk, 1 / sqrt((double)dk), o->sees);
        add_to(x,
               affine(s, y, n, HEADS * dk, D, get(s, "%s%d.%s.weight", m[3], l, m[8]), NULL, false),
               n * D);
        z = normed(s, x, n, D, true, o->eps, get(s, "%s%d.%s.weight", m[3], l, m[9]), NULL);
        double *g =
            affine(s, z, n, D, HIDDEN, get(s, "%s%d.%s.weight", m[3], l, m[10]), NULL, false);
        const double *u =
            affine(s, z, n, D, HIDDEN, get(s, "%s%d.%s.weight", m[3], l, m[11]), NULL, false);
        apply(g, n * HIDDEN, silu);
        for (size_t i = 0; i < n * HIDDEN; i++) g[i] *= u[i];
        add_to(x, affine(s, g, n, HIDDEN, D, get(s, "%s%d.%s.weight", m[3], l, m[12]), NULL, false),
               n * D);
    }
    const double *z = normed(s, x, n, D, true, o->eps, get(s, "%s", m[1]), NULL);
    return affine(s, z, n, D, VOCAB, o->head ? o->head : get(s, "%s", m[0]), NULL, false);
}

#define CONFIG CONFIG_OF("llama")
#define CONFIG_OF(TYPE)                                                                            \
    "{\"model_type\":\"" TYPE "\",\"num_attention_heads\":4,\"num_key_value_heads\":2,"            \
    "\"rms_norm_eps\":0.01,\"rope_theta\":50.0,\"head_dim\":4,\"hidden_act\":\"silu\","            \
    "\"max_position_embeddings\":16,"

/* Shards [0, cut) in f16 and [cut, n) in bf16. */
static void write_shards(store *s, const char *dir, size_t cut, const char *more)
{
    char path[300], *index = pare_alloc(s->a, 65536, 1);
    assert_non_null(index);
    write_tensors(s, test_path(path, dir, "model-1.safetensors"), 0, cut, PARE_F16, NULL, 0);
    write_tensors(s, test_path(path, dir, "model-2.safetensors"), cut, s->n, PARE_BF16, NULL, 0);
    size_t n = (size_t)snprintf(index, 65536, "{\"metadata\":{},\"weight_map\":{%s", more);
    for (size_t i = 0; i < s->n; i++)
        n += (size_t)snprintf(index + n, 65536 - n, "%s\"%s\":\"model-%d.safetensors\"",
                              i ? "," : "", s->t[i].name, i < cut ? 1 : 2);
    snprintf(index + n, 65536 - n, "}}");
    write_text(test_path(path, dir, "model.safetensors.index.json"), index);
}

static void half_precision_shards_are_the_network_they_describe(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    test_mkdir(dir);
    make_llama(&s, hf, DK, true);
    const options o = {.names = hf,
                       .dk = DK,
                       .bias = true,
                       .eps = 0.01,
                       .base = 50,
                       .head = make(&s, "lm_head.weight", VOCAB, D, 0),
                       .sees = sees_past};
    const double *want = naive_llama(&s, &o);
    makef(&s, 2, 0, 0, "model.layers.0.self_attn.rotary_emb.inv_freq");
    write_shards(&s, dir, 13, "");
    write_text(test_path(path, dir, "config.json"),
               CONFIG_OF("qwen2") "\"rope_scaling\":null,\"tie_word_embeddings\":false}");
    assert_model_gives(dir, &input, want, TOKENS, VOCAB);
    assert_model_gives(test_path(path, dir, "model.safetensors.index.json"), &input, want, TOKENS,
                       VOCAB);
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_model_load(&m, dir, &err), &err);
    assert_int_equal(m->context, 16);
    assert_int_equal(m->nblobs, 0); /* all widened: the files need not stay open */
    assert_int_equal(m->blocks[0].attn.freqs.dtype, PARE_F64);
    pare_model_free(m);
    test_rmdir(dir);
    pare_arena_free(s.a);
}

static void an_index_that_does_not_fit_its_shards_is_refused(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    test_mkdir(dir);
    make_llama(&s, hf, DK, false);
    write_text(test_path(path, dir, "config.json"), CONFIG "\"tie_word_embeddings\":true}");
    write_shards(&s, dir, 7, "\"ghost\":\"model-1.safetensors\",");
    REFUSED(dir, "ghost", "model-1.safetensors");
    write_shards(&s, dir, 7, "\"up\":\"../model-1.safetensors\",");
    REFUSED(dir, "../model-1.safetensors");
    write_shards(&s, dir, 7, "\"num\":3,");
    REFUSED(dir, "num");
    write_shards(&s, dir, 7, "");
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_model_load(&m, dir, &err), &err);
    assert_true(m->head.tied);
    pare_model_free(m);
    assert_int_equal(remove(test_path(path, dir, "model-2.safetensors")), 0);
    assert_status(pare_model_load(&m, dir, &err), PARE_ERR_IO, &err);
    assert_contains(err.msg, "model-2.safetensors");
    test_rmdir(dir);
    pare_arena_free(s.a);
}

static void metas_names_mean_pairs_side_by_side(void **state)
{
    (void)state;
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "a.safetensors");
    for (int k = 0; k < 2; k++) {
        store s = store_new();
        make_llama(&s, k ? brief : meta, DK, false);
        const options o = {.names = k ? brief : meta,
                           .dk = DK,
                           .interleaved = true,
                           .eps = 1e-5,
                           .base = 10000,
                           .sees = sees_past};
        write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"4\",\"kv_heads\":\"2\"}", 0);
        assert_model_gives(path, &input, naive_llama(&s, &o), TOKENS, VOCAB);
        write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"4\",\"kv_heads\":\"4\"}", 0);
        REFUSED(path, "4 key heads", "hold 2");
        pare_arena_free(s.a);
    }
    test_rmdir(dir);
}

static bool sees_two_back(size_t query, size_t key, size_t n)
{
    (void)n;
    return key <= query && query - key < 3;
}

static void a_sliding_window_is_kept(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    test_mkdir(dir);
    make_llama(&s, hf, DK, false);
    const options o = {.names = hf, .dk = DK, .eps = 0.01, .base = 50, .sees = sees_two_back};
    write_tensors(&s, test_path(path, dir, "model.safetensors"), 0, s.n, PARE_F32, NULL, 0);
    write_text(test_path(path, dir, "config.json"),
               CONFIG_OF("mistral") "\"tie_word_embeddings\":true,\"sliding_window\":3}");
    assert_model_gives(dir, &input, naive_llama(&s, &o), TOKENS, VOCAB);
    test_rmdir(dir);
    pare_arena_free(s.a);
}

static void what_would_change_the_function_is_refused_not_ignored(void **state)
{
    (void)state;
    char dir[200], path[300], config[300];
    store s = store_new();
    test_mkdir(dir);
    test_path(config, dir, "config.json");
    test_path(path, dir, "model.safetensors");
    make_llama(&s, hf, DK, false);
    write_tensors(&s, path, 0, s.n, PARE_F32, NULL, 0);
    write_text(config, CONFIG "\"rope_scaling\":{\"rope_type\":\"llama3\",\"factor\":8.0}}");
    REFUSED(dir, "rope_scaling", "llama3", "low_freq_factor");
    write_text(config, CONFIG "\"rope_scaling\":{\"rope_type\":\"yarn\",\"factor\":8.0}}");
    REFUSED(dir, "rope_scaling", "yarn", "not supported");
    write_text(config, CONFIG "\"rope_parameters\":{\"rope_type\":\"yarn\"}}");
    REFUSED(dir, "rope_parameters", "yarn");
    write_text(config, "{\"model_type\":\"gemma\",\"num_attention_heads\":4}");
    REFUSED(dir, "model_type", "gemma");
    write_text(config, CONFIG "\"tie_word_embeddings\":false}");
    REFUSED(dir, "lm_head.weight", "missing");
    write_text(config, CONFIG "\"use_sliding_window\":true,\"sliding_window\":3}");
    REFUSED(dir, "use_sliding_window");
    write_text(config, CONFIG "\"partial_rotary_factor\":0.5}");
    REFUSED(dir, "partial_rotary_factor");
    write_text(config, "{\"num_attention_heads\":3}");
    REFUSED(dir, "3 heads");
    write_text(config, "{\"num_attention_heads\":\"4\"}");
    REFUSED(dir, "num_attention_heads", "not a number");
    write_text(config, "{\"num_attention_heads\":4,\"head_dim\":4,\"hidden_act\":\"quick\"}");
    REFUSED(dir, "quick");
    write_text(config, "{\"model_type\":");
    REFUSED(dir, "config.json");
    assert_int_equal(remove(config), 0);
    REFUSED(dir, "num_attention_heads");
    make(&s, "lm_head.weight", VOCAB, D, 0);
    write_tensors(&s, path, 0, s.n, PARE_F32, NULL, 0);
    write_text(config, CONFIG "\"tie_word_embeddings\":true}");
    REFUSED(dir, "lm_head.weight", "tie_word_embeddings");
    makef(&s, DK, 0, 0, "model.layers.0.self_attn.q_norm.weight");
    write_tensors(&s, path, 0, s.n, PARE_F32, NULL, 0);
    write_text(config, CONFIG "\"tie_word_embeddings\":false}");
    REFUSED(dir, "model.layers.0.self_attn.q_norm.weight");
    test_rmdir(dir);
    pare_arena_free(s.a);
}

/* ---- llama2.c ------------------------------------------------------------------------------- */

static size_t put_tensor(uint8_t *to, size_t at, store *s, const char *name)
{
    const tensor *t = seek_tensor(s, name);
    for (size_t i = 0; i < t->count; i++) at += put_number(to + at, PARE_F32, t->v[i]);
    return at;
}

/* The parts in llama2.c's order, with rotary tables of nonsense that nobody may read. */
static size_t write_bin(store *s, const char *path, int32_t vocab, uint8_t *to)
{
    static const char *const order[] = {"attention_norm", "wq", "wk", "wv", "wo",
                                        "ffn_norm",       "w1", "w2", "w3"};
    const int32_t header[7] = {D, HIDDEN, LAYERS, HEADS, KV, vocab, 16};
    memcpy(to, header, sizeof header);
    size_t at = put_tensor(to, sizeof header, s, "tok_embeddings.weight");
    for (size_t i = 0; i < 9; i++)
        for (int l = 0; l < LAYERS; l++) {
            char name[60];
            snprintf(name, sizeof name, "layers.%d.%s.weight", l, order[i]);
            at = put_tensor(to, at, s, name);
        }
    at = put_tensor(to, at, s, "norm.weight");
    for (size_t i = 0; i < 2 * 16 * 1; i++) at += put_number(to + at, PARE_F32, NAN);
    if (vocab < 0) at = put_tensor(to, at, s, "output.weight");
    test_write_file(path, to, at);
    return at;
}

static void llama2c_bin_is_the_network_with_either_classifier(void **state)
{
    (void)state;
    char dir[200], path[300];
    uint8_t bytes[16384];
    store s = store_new();
    test_mkdir(dir);
    test_path(path, dir, "a.bin");
    make_llama(&s, brief, 2, false);
    options o = {.names = brief,
                 .dk = 2,
                 .interleaved = true,
                 .eps = 1e-5,
                 .base = 10000,
                 .sees = sees_past};
    write_bin(&s, path, VOCAB, bytes);
    assert_model_gives(path, &input, naive_llama(&s, &o), TOKENS, VOCAB);
    o.head = make(&s, "output.weight", VOCAB, D, 0);
    const size_t n = write_bin(&s, path, -VOCAB, bytes);
    assert_model_gives(path, &input, naive_llama(&s, &o), TOKENS, VOCAB);
    char had[40], has[40];
    snprintf(had, sizeof had, "need %zu bytes", n);
    snprintf(has, sizeof has, "has %zu", n - 4);
    test_write_file(path, bytes, n - 4);
    REFUSED(path, "llama2.c", had, has);
    snprintf(has, sizeof has, "has %zu", n + 4);
    test_write_file(path, bytes, n + 4);
    REFUSED(path, "llama2.c", had, has);
    for (size_t word = 0; word < 7; word++) { /* any other size: refused, never read beyond */
        static const int32_t values[] = {0, -1, 1, 3, 1 << 23, INT32_MAX, INT32_MIN};
        for (size_t k = 0; k < sizeof values / sizeof *values; k++) {
            uint8_t old[4];
            memcpy(old, bytes + 4 * word, 4);
            memcpy(bytes + 4 * word, &values[k], 4);
            test_write_file(path, bytes, n);
            REFUSED(path, "llama2.c");
            memcpy(bytes + 4 * word, old, 4);
        }
    }
    memcpy(bytes, "24ka", 4);
    test_write_file(path, bytes, n);
    REFUSED(path, "legacy");
    test_rmdir(dir);
    pare_arena_free(s.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_precision_shards_are_the_network_they_describe),
        cmocka_unit_test(an_index_that_does_not_fit_its_shards_is_refused),
        cmocka_unit_test(metas_names_mean_pairs_side_by_side),
        cmocka_unit_test(a_sliding_window_is_kept),
        cmocka_unit_test(what_would_change_the_function_is_refused_not_ignored),
        cmocka_unit_test(llama2c_bin_is_the_network_with_either_classifier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
