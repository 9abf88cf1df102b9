/* Tests src/formats/import_gpt2.c on small files of the test's own. */
#include "../model/naive.h"

#define D      8
#define HIDDEN 12
#define HEADS  2
#define LAYERS 2
#define VOCAB  11
#define TOKENS 5

static const int64_t ids[TOKENS] = {3, 10, 0, 3, 7};
static const pare_input input = {.batch = 1, .tokens = TOKENS, .ids = ids};

static void make_gpt2(store *s, const char *prefix, bool conv1d)
{
    makef(s, VOCAB, D, 0, "%swte.weight", prefix);
    makef(s, 6, D, 0, "%swpe.weight", prefix);
    for (int l = 0; l < LAYERS; l++) {
        static const struct {
            const char *name;
            size_t in, out; /* in 0: a norm */
        } part[] = {{"ln_1", 0, D}, {"attn.c_attn", D, 3 * D}, {"attn.c_proj", D, D},
                    {"ln_2", 0, D}, {"mlp.c_fc", D, HIDDEN},   {"mlp.c_proj", HIDDEN, D}};
        for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
            const size_t in = part[i].in, out = part[i].out;
            makef(s, in && conv1d ? in : out, in ? (conv1d ? out : in) : 0, 0, "%sh.%d.%s.weight",
                  prefix, l, part[i].name);
            makef(s, out, 0, 0, "%sh.%d.%s.bias", prefix, l, part[i].name);
        }
    }
    makef(s, D, 0, 0, "%sln_f.weight", prefix);
    makef(s, D, 0, 0, "%sln_f.bias", prefix);
}

typedef struct options {
    const char *prefix;
    bool conv1d, scaled, by_layer;
    double eps;
    double (*act)(double);
    const double *head; /* [VOCAB, D]; NULL: tied */
} options;

static const double *naive_gpt2(store *s, const options *o)
{
    const char *p = o->prefix;
    const size_t n = TOKENS;
    double x[TOKENS * D];
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < D; i++)
            x[t * D + i] = get(s, "%swte.weight", p)[(size_t)ids[t] * D + i] +
                           get(s, "%swpe.weight", p)[t * D + i];
    for (int l = 0; l < LAYERS; l++) {
        const double *z = normed(s, x, n, D, false, o->eps, get(s, "%sh.%d.ln_1.weight", p, l),
                                 get(s, "%sh.%d.ln_1.bias", p, l));
        const double *all = affine(s, z, n, D, 3 * D, get(s, "%sh.%d.attn.c_attn.weight", p, l),
                                   get(s, "%sh.%d.attn.c_attn.bias", p, l), o->conv1d);
        double q[TOKENS * D], k[TOKENS * D], v[TOKENS * D];
        for (size_t t = 0; t < n; t++) {
            memcpy(q + t * D, all + t * 3 * D, sizeof(double) * D);
            memcpy(k + t * D, all + t * 3 * D + D, sizeof(double) * D);
            memcpy(v + t * D, all + t * 3 * D + 2 * D, sizeof(double) * D);
        }
        const double scale =
            (o->scaled ? 1 / sqrt((double)D / HEADS) : 1) / (o->by_layer ? l + 1 : 1);
        const double *y = attend(s, q, k, v, n, HEADS, HEADS, D / HEADS, scale, sees_past);
        add_to(x,
               affine(s, y, n, D, D, get(s, "%sh.%d.attn.c_proj.weight", p, l),
                      get(s, "%sh.%d.attn.c_proj.bias", p, l), o->conv1d),
               n * D);
        z = normed(s, x, n, D, false, o->eps, get(s, "%sh.%d.ln_2.weight", p, l),
                   get(s, "%sh.%d.ln_2.bias", p, l));
        double *f = affine(s, z, n, D, HIDDEN, get(s, "%sh.%d.mlp.c_fc.weight", p, l),
                           get(s, "%sh.%d.mlp.c_fc.bias", p, l), o->conv1d);
        apply(f, n * HIDDEN, o->act);
        add_to(x,
               affine(s, f, n, HIDDEN, D, get(s, "%sh.%d.mlp.c_proj.weight", p, l),
                      get(s, "%sh.%d.mlp.c_proj.bias", p, l), o->conv1d),
               n * D);
    }
    const double *z =
        normed(s, x, n, D, false, o->eps, get(s, "%sln_f.weight", p), get(s, "%sln_f.bias", p));
    return affine(s, z, n, D, VOCAB, o->head ? o->head : get(s, "%swte.weight", p), NULL, false);
}

static void a_folder_with_conv1d_and_config_is_the_network_it_describes(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    test_mkdir(dir);
    make_gpt2(&s, "transformer.", true);
    const options o = {.prefix = "transformer.",
                       .conv1d = true,
                       .scaled = true,
                       .by_layer = true,
                       .eps = 1e-2,
                       .act = gelu_new};
    const double *want = naive_gpt2(&s, &o);
    makef(&s, 6, 6, 0, "transformer.h.0.attn.bias"); /* the mask that old files carry */
    makef(&s, 1, 0, 0, "transformer.h.1.attn.masked_bias");
    write_tensors(&s, test_path(path, dir, "model.safetensors"), 0, s.n, PARE_F32,
                  "{\"format\":\"pt\"}", 0);
    char config[300];
    write_text(test_path(config, dir, "config.json"),
               "{\"model_type\":\"gpt2\",\"n_head\":2,\"layer_norm_epsilon\":0.01,"
               "\"activation_function\":\"gelu_new\",\"scale_attn_by_inverse_layer_idx\":true}");
    assert_model_gives(dir, &input, want, TOKENS, VOCAB);
    assert_model_gives(path, &input, want, TOKENS, VOCAB); /* the config beside the file counts */
    test_rmdir(dir);
    pare_arena_free(s.a);
}

static void metadata_decides_orientation_heads_and_activation(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    test_mkdir(dir);
    make_gpt2(&s, "", false);
    const double *head = makef(&s, VOCAB, D, 0, "lm_head.weight");
    const options o = {.prefix = "", .scaled = true, .eps = 1e-3, .act = relu, .head = head};
    const double *want = naive_gpt2(&s, &o);
    test_path(path, dir, "a.safetensors");
    const char *meta = "{\"heads\":\"2\",\"act\":\"relu\",\"norm\":\"layer pre eps 1e-3\","
                       "\"linear\":\"y=x W^T + b\"}";
    write_tensors(&s, path, 0, s.n, PARE_F32, meta, 0);
    assert_model_gives(path, &input, want, TOKENS, VOCAB);
    write_tensors(&s, path, 0, s.n, PARE_F32, meta, 3); /* unaligned */
    assert_model_gives(path, &input, want, TOKENS, VOCAB);
    write_tensors(&s, path, 0, s.n, PARE_F64, meta, 1);
    assert_model_gives(path, &input, want, TOKENS, VOCAB);
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"2\",\"act\":\"relu\"}", 0);
    REFUSED(path, "h.0.", "other orientation");
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"2\",\"linear\":\"sideways\"}", 0);
    REFUSED(path, "linear", "sideways");
    test_rmdir(dir);
    pare_arena_free(s.a);
}

static void the_file_is_borrowed_where_it_can_be_and_a_head_of_the_same_bytes_is_tied(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    pare_model *m = NULL;
    pare_err err = {0};
    test_mkdir(dir);
    make_gpt2(&s, "transformer.", true);
    double *head = makef(&s, VOCAB, D, 0, "lm_head.weight");
    memcpy(head, get(&s, "transformer.wte.weight"), sizeof(double) * VOCAB * D);
    test_path(path, dir, "a.safetensors");
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"2\"}", 0);
    assert_ok(pare_model_load(&m, path, &err), &err);
    assert_true(m->head.tied);
    assert_int_equal(m->nblobs, 1);
    const uint8_t *from = m->blobs[0]->data, *to = from + m->blobs[0]->bytes;
    const uint8_t *wte = m->embedding.table.data, *wq = m->blocks[0].attn.wq.data;
    const uint8_t *gain = m->blocks[1].ffn.in_norm.gain.data;
    assert_true(wte >= from && wte < to);
    assert_true(gain >= from && gain < to);
    assert_true(wq < from || wq >= to); /* Conv1D had to be transposed round */
    assert_string_equal(m->name, "gpt2");
    assert_int_equal(m->context, 6);
    pare_model_free(m);
    head[5] += 1. / 64;
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"2\"}", 0);
    assert_ok(pare_model_load(&m, path, &err), &err);
    assert_false(m->head.tied);
    assert_near(pare_weight_at(&m->head.out.w, 5), head[5], 0);
    pare_model_free(m);
    test_rmdir(dir);
    pare_arena_free(s.a);
}

static void scores_are_unscaled_when_the_config_says_so(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    test_mkdir(dir);
    make_gpt2(&s, "", true);
    const options o = {.prefix = "", .conv1d = true, .eps = 1e-5, .act = gelu};
    const double *want = naive_gpt2(&s, &o);
    write_tensors(&s, test_path(path, dir, "model.safetensors"), 0, s.n, PARE_BF16, NULL, 0);
    write_text(test_path(path, dir, "config.json"),
               "{\"n_head\":2,\"activation_function\":\"gelu\",\"scale_attn_weights\":false}");
    assert_model_gives(dir, &input, want, TOKENS, VOCAB);
    test_rmdir(dir);
    pare_arena_free(s.a);
}

static void heads_are_never_guessed_but_for_the_published_widths(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    test_mkdir(dir);
    test_path(path, dir, "a.safetensors");
    make_gpt2(&s, "", true);
    write_tensors(&s, path, 0, s.n, PARE_F32, NULL, 0);
    REFUSED(path, "heads", "n_head", "8");
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"3\"}", 0);
    REFUSED(path, "multiple of 3 heads");
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"two\"}", 0);
    REFUSED(path, "heads", "not a number");
    s.n = 0;
    make(&s, "wte.weight", 2, 768, 0);
    make(&s, "wpe.weight", 2, 768, 0);
    make(&s, "h.0.ln_1.weight", 768, 0, 0); /* a model trained without biases */
    make(&s, "h.0.ln_2.weight", 768, 0, 0);
    make(&s, "h.0.attn.c_attn.weight", 768, 3 * 768, 0);
    make(&s, "h.0.attn.c_proj.weight", 768, 768, 0);
    make(&s, "h.0.mlp.c_fc.weight", 768, 1, 0);
    make(&s, "h.0.mlp.c_proj.weight", 1, 768, 0);
    make(&s, "ln_f.weight", 768, 0, 0);
    write_tensors(&s, path, 0, s.n, PARE_F16, NULL, 0);
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_model_load(&m, path, &err), &err);
    assert_int_equal(m->blocks[0].attn.nheads, 12);
    assert_int_equal(m->blocks[0].attn.heads[11].q, 704);
    assert_near(m->blocks[0].attn.heads[0].scale, 0.125, 0);
    assert_false(pare_has(&m->blocks[0].attn.bo));
    pare_model_free(m);
    test_rmdir(dir);
    pare_arena_free(s.a);
}

static void no_weight_is_dropped_in_silence_and_none_is_made_up(void **state)
{
    (void)state;
    char dir[200], path[300];
    store s = store_new();
    test_mkdir(dir);
    test_path(path, dir, "a.safetensors");
    make_gpt2(&s, "transformer.", true);
    make(&s, "scores.weight", 2, D, 0);
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"2\"}", 0);
    REFUSED(path, "scores.weight", "[2, 8]");
    drop(&s, "scores.weight");
    make(&s, "wte.weight", VOCAB, D, 0);
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"2\"}", 0);
    REFUSED(path, "wte.weight", "transformer.wte.weight", "twice");
    drop(&s, "wte.weight");
    drop(&s, "transformer.h.1.mlp.c_fc.bias");
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"2\"}", 0);
    REFUSED(path, "h.1.mlp.c_fc.bias", "missing");
    make(&s, "transformer.h.1.mlp.c_fc.bias", HIDDEN + 1, 0, 0);
    write_tensors(&s, path, 0, s.n, PARE_F32, "{\"heads\":\"2\"}", 0);
    REFUSED(path, "h.1.mlp.c_fc.bias", "[13]", "[12]");
    test_rmdir(dir);
    pare_arena_free(s.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_folder_with_conv1d_and_config_is_the_network_it_describes),
        cmocka_unit_test(metadata_decides_orientation_heads_and_activation),
        cmocka_unit_test(the_file_is_borrowed_where_it_can_be_and_a_head_of_the_same_bytes_is_tied),
        cmocka_unit_test(scores_are_unscaled_when_the_config_says_so),
        cmocka_unit_test(heads_are_never_guessed_but_for_the_published_widths),
        cmocka_unit_test(no_weight_is_dropped_in_silence_and_none_is_made_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
