/* Tests import_perhead.c, import_graph.c, import_moonshine.c, import_depth_npz.c,
 * import_width_npz.c and the mean-only form of import_bert.c, on small files of the test's own. */
#include "base/array.h"
#include "../model/naive.h"

#define D      8
#define HIDDEN 12
#define HEADS  2
#define DK     4
#define TOKENS 4
#define VOCAB  7

static const int64_t ids[TOKENS] = {2, 6, 0, 3};
static const pare_input id_input = {.batch = 1, .tokens = TOKENS, .ids = ids};

typedef struct place {
    char dir[200], path[300];
    store s;
} place;

static void begin(place *p, const char *name)
{
    test_mkdir(p->dir);
    test_path(p->path, p->dir, name);
    p->s = store_new();
}

static void end(place *p)
{
    test_rmdir(p->dir);
    pare_arena_free(p->s.a);
}

static void save(place *p, const char *metadata)
{
    write_tensors(&p->s, p->path, 0, p->s.n, PARE_F32, metadata, 0);
}

/* Rows [from, from + count) of x[n, width]. */
static double *columns(store *s, const double *x, size_t n, size_t width, size_t from, size_t count)
{
    double *y = pare_alloc(s->a, n * count, sizeof *y);
    assert_non_null(y);
    for (size_t t = 0; t < n; t++) memcpy(y + t * count, x + t * width + from, count * sizeof *y);
    return y;
}

/* ---- per head -------------------------------------------------------------------------------- */

static void make_perhead(store *s, bool norms, bool ffn)
{
    make(s, "embed.W_E", VOCAB, D, 0);
    make(s, "pos_embed.W_pos", 5, D, 0);
    for (int l = 0; l < 2; l++) {
        for (size_t i = 0; i < 3; i++) {
            makef(s, HEADS, D, 3, "blocks.%d.attn.W_%c", l, "QKV"[i]);
            makef(s, HEADS, 3, 0, "blocks.%d.attn.b_%c", l, "QKV"[i]);
        }
        makef(s, HEADS, 3, D, "blocks.%d.attn.W_O", l);
        makef(s, D, 0, 0, "blocks.%d.attn.b_O", l);
        for (int k = 1; norms && k <= 2; k++) {
            makef(s, D, 0, 0, "blocks.%d.ln%d.w", l, k);
            makef(s, D, 0, 0, "blocks.%d.ln%d.b", l, k);
        }
        if (!ffn) continue;
        makef(s, D, HIDDEN, 0, "blocks.%d.mlp.W_in", l);
        makef(s, HIDDEN, 0, 0, "blocks.%d.mlp.b_in", l);
        makef(s, HIDDEN, D, 0, "blocks.%d.mlp.W_out", l);
        makef(s, D, 0, 0, "blocks.%d.mlp.b_out", l);
    }
    make(s, "unembed.W_U", D, VOCAB, 0);
    make(s, "unembed.b_U", VOCAB, 0, 0);
}

static const double *perhead_norm(store *s, const double *x, bool norms, int l, int k)
{
    if (!norms) return x;
    return normed(s, x, TOKENS, D, false, 1e-5, get(s, "blocks.%d.ln%d.w", l, k),
                  get(s, "blocks.%d.ln%d.b", l, k));
}

static const double *naive_perhead(store *s, bool norms, bool ffn)
{
    double x[TOKENS * D];
    for (size_t t = 0; t < TOKENS; t++)
        for (size_t i = 0; i < D; i++)
            x[t * D + i] =
                get(s, "embed.W_E")[(size_t)ids[t] * D + i] + get(s, "pos_embed.W_pos")[t * D + i];
    for (int l = 0; l < 2; l++) {
        const double *z = perhead_norm(s, x, norms, l, 1);
        double sum[TOKENS * D] = {0};
        for (size_t h = 0; h < HEADS; h++) {
            const double *p[3];
            for (size_t i = 0; i < 3; i++)
                p[i] = affine(s, z, TOKENS, D, 3,
                              get(s, "blocks.%d.attn.W_%c", l, "QKV"[i]) + h * D * 3,
                              get(s, "blocks.%d.attn.b_%c", l, "QKV"[i]) + h * 3, true);
            const double *y = attend(s, p[0], p[1], p[2], TOKENS, 1, 1, 3, 1 / sqrt(3), sees_past);
            add_to(sum,
                   affine(s, y, TOKENS, 3, D, get(s, "blocks.%d.attn.W_O", l) + h * D * 3,
                          h ? NULL : get(s, "blocks.%d.attn.b_O", l), true),
                   TOKENS * D);
        }
        add_to(x, sum, TOKENS * D);
        if (!ffn) continue;
        double *f = affine(s, perhead_norm(s, x, norms, l, 2), TOKENS, D, HIDDEN,
                           get(s, "blocks.%d.mlp.W_in", l), get(s, "blocks.%d.mlp.b_in", l), true);
        apply(f, TOKENS * HIDDEN, gelu_new);
        add_to(x,
               affine(s, f, TOKENS, HIDDEN, D, get(s, "blocks.%d.mlp.W_out", l),
                      get(s, "blocks.%d.mlp.b_out", l), true),
               TOKENS * D);
    }
    return affine(s, x, TOKENS, D, VOCAB, get(s, "unembed.W_U"), get(s, "unembed.b_U"), true);
}

static void heads_in_tensors_of_their_own_are_packed(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        place p;
        begin(&p, "a.safetensors");
        make_perhead(&p.s, k == 1, k == 1);
        const double *want = naive_perhead(&p.s, k == 1, k == 1);
        if (k) makef(&p.s, 5, 5, 0, "blocks.0.attn.mask"); /* a buffer */
        save(&p, "{\"act\":\"gelu_new\"}");
        assert_model_gives(p.path, &id_input, want, TOKENS, VOCAB);
        if (k) {
            save(&p, "{}");
            REFUSED(p.path, "activation", "act_fn");
        }
        drop(&p.s, "blocks.1.attn.W_K");
        makef(&p.s, HEADS, 3, D, "blocks.1.attn.W_K");
        save(&p, "{\"act\":\"gelu_new\"}");
        REFUSED(p.path, "blocks.1.attn.W_K", "[2, 3, 8]", "[2, 8, 3]");
        end(&p);
    }
}

/* ---- graph ----------------------------------------------------------------------------------- */

/* A path 0 - 1 - 2 - 3. */
static const size_t path_ptr[TOKENS + 1] = {0, 1, 3, 5, 6};
static const uint32_t path_idx[] = {1, 0, 2, 1, 3, 2};
static const pare_graph path_graph = {.n = TOKENS, .ptr = path_ptr, .idx = path_idx};
static bool sees_neighbors(size_t a, size_t b, size_t n)
{
    (void)n;
    return a + 1 == b || b + 1 == a;
}
static bool sees_neighbors_and_itself(size_t a, size_t b, size_t n)
{
    return a == b || sees_neighbors(a, b, n);
}

static double *batch_normed(store *s, const double *x, int l, int k)
{
    double *y = pare_alloc(s->a, TOKENS * D, sizeof *y);
    for (size_t i = 0; i < TOKENS * D; i++) {
        const double mean = get(s, "layers.%d.n%d.running_mean", l, k)[i % D];
        const double var = get(s, "layers.%d.n%d.running_var", l, k)[i % D];
        y[i] = (x[i] - mean) / sqrt(var + 1e-5) * get(s, "layers.%d.n%d.weight", l, k)[i % D] +
               get(s, "layers.%d.n%d.bias", l, k)[i % D];
    }
    return y;
}

static void make_graph(store *s)
{
    make(s, "inp.weight", D, 3, 0);
    make(s, "inp.bias", D, 0, 0);
    for (int l = 0; l < 2; l++) {
        for (size_t i = 0; i < 4; i++) {
            makef(s, D, D, 0, "layers.%d.%c.weight", l, "qkvo"[i]);
            makef(s, D, 0, 0, "layers.%d.%c.bias", l, "qkvo"[i]);
        }
        for (int k = 1; k <= 2; k++) {
            makef(s, D, 0, 0, "layers.%d.n%d.weight", l, k);
            makef(s, D, 0, 0, "layers.%d.n%d.bias", l, k);
            makef(s, D, 0, 0, "layers.%d.n%d.running_mean", l, k);
            double *var = makef(s, D, 0, 0, "layers.%d.n%d.running_var", l, k);
            for (size_t i = 0; i < D; i++) var[i] = fabs(var[i]) + 0.25;
            makef(s, 1, 0, 0, "layers.%d.n%d.num_batches_tracked", l, k);
        }
        makef(s, HIDDEN, D, 0, "layers.%d.f1.weight", l);
        makef(s, HIDDEN, 0, 0, "layers.%d.f1.bias", l);
        makef(s, D, HIDDEN, 0, "layers.%d.f2.weight", l);
        makef(s, D, 0, 0, "layers.%d.f2.bias", l);
    }
    make(s, "head.weight", 2, D, 0);
    make(s, "head.bias", 2, 0, 0);
}

static const double *naive_graph(store *s, const double *in, bool loops)
{
    double *x = affine(s, in, TOKENS, 3, D, get(s, "inp.weight"), get(s, "inp.bias"), false);
    for (int l = 0; l < 2; l++) {
        const double *p[3];
        for (size_t i = 0; i < 3; i++)
            p[i] = affine(s, x, TOKENS, D, D, get(s, "layers.%d.%c.weight", l, "qkv"[i]),
                          get(s, "layers.%d.%c.bias", l, "qkv"[i]), false);
        const double *y = attend(s, p[0], p[1], p[2], TOKENS, HEADS, HEADS, DK, 0.5,
                                 loops ? sees_neighbors_and_itself : sees_neighbors);
        add_to(x,
               affine(s, y, TOKENS, D, D, get(s, "layers.%d.o.weight", l),
                      get(s, "layers.%d.o.bias", l), false),
               TOKENS * D);
        x = batch_normed(s, x, l, 1);
        double *f = affine(s, x, TOKENS, D, HIDDEN, get(s, "layers.%d.f1.weight", l),
                           get(s, "layers.%d.f1.bias", l), false);
        apply(f, TOKENS * HIDDEN, relu);
        add_to(x,
               affine(s, f, TOKENS, HIDDEN, D, get(s, "layers.%d.f2.weight", l),
                      get(s, "layers.%d.f2.bias", l), false),
               TOKENS * D);
        x = batch_normed(s, x, l, 2);
    }
    return affine(s, x, TOKENS, D, 2, get(s, "head.weight"), get(s, "head.bias"), false);
}

static void a_graph_transformer_has_the_self_loops_its_metadata_names(void **state)
{
    (void)state;
    place p;
    begin(&p, "a.safetensors");
    const double *x = make(&p.s, "x", TOKENS, 3, 0);
    const pare_input in = {.batch = 1, .tokens = TOKENS, .width = 3, .x = x, .graph = &path_graph};
    p.s.n = 0; /* the input is not part of the file */
    make_graph(&p.s);
    const double *with = naive_graph(&p.s, x, true), *without = naive_graph(&p.s, x, false);
    save(&p, "{\"arch\":\"post-BN, self loops added\",\"heads\":\"2\"}");
    assert_model_gives(p.path, &in, with, TOKENS, 2);
    save(&p, "{\"arch\":\"post-BN\",\"heads\":\"2\"}");
    assert_model_gives(p.path, &in, without, TOKENS, 2);
    save(&p, "{}");
    REFUSED(p.path, "heads");
    end(&p);
}

/* ---- moonshine ------------------------------------------------------------------------------- */

#define W  12
#define WK 6 /* of which 4 are transposed */
static void moonshine_turns_part_of_each_head(void **state)
{
    (void)state;
    place p;
    begin(&p, "a.safetensors");
    store *s = &p.s;
    double *x = make(s, "x", TOKENS, W, 0);
    double in[TOKENS * W];
    memcpy(in, x, sizeof in);
    s->n = 0;
    make(s, "layers.0.input_layernorm.weight", W, 0, 0);
    make(s, "layers.0.post_attention_layernorm.weight", W, 0, 0);
    for (size_t i = 0; i < 4; i++) makef(s, W, W, 0, "layers.0.w%c", "qkvo"[i]);
    make(s, "layers.0.mlp.fc1.weight", W, HIDDEN, 0);
    make(s, "layers.0.mlp.fc1.bias", HIDDEN, 0, 0);
    make(s, "layers.0.mlp.fc2.weight", HIDDEN, W, 0);
    make(s, "layers.0.mlp.fc2.bias", W, 0, 0);
    make(s, "layer_norm.weight", W, 0, 0);
    const double *z =
        normed(s, x, TOKENS, W, false, 1e-5, get(s, "layers.0.input_layernorm.weight"), NULL);
    double *q = affine(s, z, TOKENS, W, W, get(s, "layers.0.wq"), NULL, true);
    double *k = affine(s, z, TOKENS, W, W, get(s, "layers.0.wk"), NULL, true);
    const double *v = affine(s, z, TOKENS, W, W, get(s, "layers.0.wv"), NULL, true);
    rotate(q, TOKENS, HEADS, WK, 4, 100, true);
    rotate(k, TOKENS, HEADS, WK, 4, 100, true);
    const double *y = attend(s, q, k, v, TOKENS, HEADS, HEADS, WK, 1 / sqrt(WK), sees_all);
    add_to(x, affine(s, y, TOKENS, W, W, get(s, "layers.0.wo"), NULL, true), TOKENS * W);
    z = normed(s, x, TOKENS, W, false, 1e-5, get(s, "layers.0.post_attention_layernorm.weight"),
               NULL);
    double *f = affine(s, z, TOKENS, W, HIDDEN, get(s, "layers.0.mlp.fc1.weight"),
                       get(s, "layers.0.mlp.fc1.bias"), true);
    apply(f, TOKENS * HIDDEN, gelu);
    add_to(x,
           affine(s, f, TOKENS, HIDDEN, W, get(s, "layers.0.mlp.fc2.weight"),
                  get(s, "layers.0.mlp.fc2.bias"), true),
           TOKENS * W);
    const double *want = normed(s, x, TOKENS, W, false, 1e-5, get(s, "layer_norm.weight"), NULL);
    make(s, "conv1.weight", W, 1, 5); /* the front end is not part of the model */
    make(s, "groupnorm.bias", W, 0, 0);
    const pare_input input = {.batch = 1, .tokens = TOKENS, .width = W, .x = in};
    save(&p, "{\"arch\":\"partial interleaved RoPE 4 of 6 dims base 100, conv front end\","
             "\"heads\":\"2\",\"act\":\"gelu_erf\",\"linear\":\"y=x W + b\"}");
    assert_model_gives(p.path, &input, want, TOKENS, W);
    save(&p, "{\"heads\":\"2\",\"linear\":\"y=x W + b\"}");
    REFUSED(p.path, "RoPE");
    save(&p, "{\"arch\":\"interleaved RoPE 8 of 6 dims base 100\",\"heads\":\"2\","
             "\"linear\":\"y=x W + b\"}");
    REFUSED(p.path, "8 of 6");
    end(&p);
}

/* ---- BERT with a mean-only norm ---------------------------------------------------------------
 */

static double *centered(store *s, const double *x, const char *name)
{
    double *y = pare_alloc(s->a, TOKENS * D, sizeof *y);
    for (size_t t = 0; t < TOKENS; t++) {
        double mean = 0;
        for (size_t i = 0; i < D; i++) mean += x[t * D + i] / D;
        for (size_t i = 0; i < D; i++)
            y[t * D + i] =
                (x[t * D + i] - mean) * get(s, "%s.weight", name)[i] + get(s, "%s.bias", name)[i];
    }
    return y;
}

static double *named(store *s, const double *x, size_t in, size_t out, const char *name)
{
    return affine(s, x, TOKENS, in, out, get(s, "%s.weight", name), get(s, "%s.bias", name), false);
}

#define LAYER0 "bert.encoder.layer.0."
static void mean_only_bert_maps_its_words_first(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t out, in;
    } part[] = {{"linear_in", D, 5},
                {"LayerNorm", D, 0},
                {LAYER0 "attention.self.query", D, D},
                {LAYER0 "attention.self.key", D, D},
                {LAYER0 "attention.self.value", D, D},
                {LAYER0 "attention.output.dense", D, D},
                {LAYER0 "attention.output.LayerNorm", D, 0},
                {LAYER0 "intermediate.dense", HIDDEN, D},
                {LAYER0 "output.dense", D, HIDDEN},
                {LAYER0 "output.LayerNorm", D, 0},
                {"bert.pooler.dense", D, D},
                {"classifier", 2, D}};
    place p;
    begin(&p, "a.safetensors");
    store *s = &p.s;
    const double *words = make(s, "word_embeddings.weight", VOCAB, 5, 0);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        makef(s, part[i].out, part[i].in, 0, "%s.weight", part[i].name);
        makef(s, part[i].out, 0, 0, "%s.bias", part[i].name);
    }
    double e[TOKENS * 5];
    for (size_t t = 0; t < TOKENS; t++)
        memcpy(e + 5 * t, words + 5 * (size_t)ids[t], 5 * sizeof *e);
    double *x = centered(s, named(s, e, 5, D, "linear_in"), "LayerNorm");
    const double *y = attend(s, named(s, x, D, D, LAYER0 "attention.self.query"),
                             named(s, x, D, D, LAYER0 "attention.self.key"),
                             named(s, x, D, D, LAYER0 "attention.self.value"), TOKENS, HEADS, HEADS,
                             DK, 0.5, sees_all);
    add_to(x, named(s, y, D, D, LAYER0 "attention.output.dense"), TOKENS * D);
    x = centered(s, x, LAYER0 "attention.output.LayerNorm");
    double *f = named(s, x, D, HIDDEN, LAYER0 "intermediate.dense");
    apply(f, TOKENS * HIDDEN, relu);
    add_to(x, named(s, f, HIDDEN, D, LAYER0 "output.dense"), TOKENS * D);
    double *first = named(s, centered(s, x, LAYER0 "output.LayerNorm"), D, D, "bert.pooler.dense");
    apply(first, D, tanh);
    save(&p, "{\"arch\":\"post mean-only LayerNorm BERT\",\"heads\":\"2\",\"act\":\"relu\"}");
    assert_model_gives(p.path, &id_input, named(s, first, D, 2, "classifier"), 1, 2);
    end(&p);
}

/* ---- npz ------------------------------------------------------------------------------------- */

static void write_npz(place *p, const char *extra_name, const pare_array *extra)
{
    const char *names[161];
    pare_array arrays[161];
    size_t n = 0;
    pare_err err = {0};
    for (; n < p->s.n; n++) {
        const tensor *t = &p->s.t[n];
        names[n] = t->name;
        arrays[n] = (pare_array){.dtype = PARE_F64, .ndim = t->ndim, .data = t->v};
        memcpy(arrays[n].shape, t->shape, sizeof t->shape);
        if (t->ndim == 1 && t->count == 1) arrays[n].ndim = 0; /* numbers */
    }
    if (extra) {
        names[n] = extra_name;
        arrays[n++] = *extra;
    }
    assert_ok(pare_npz_write(p->path, n, names, arrays, true, true, &err), &err);
}

static void the_depth_npz_is_the_network_it_describes(void **state)
{
    (void)state;
    place p;
    begin(&p, "a.npz");
    store *s = &p.s;
    const int64_t cfg[6] = {1, D, HEADS, HIDDEN, TOKENS, VOCAB};
    const pare_array cfg_array = {.dtype = PARE_I64, .ndim = 1, .shape = {6}, .data = cfg};
    static const struct {
        const char *name;
        size_t out, in;
    } part[] = {{"b.0.n1", D, 0},      {"b.0.qkv", 3 * D, D}, {"b.0.o", D, D}, {"b.0.n2", D, 0},
                {"b.0.f1", HIDDEN, D}, {"b.0.f2", D, HIDDEN}, {"n", D, 0},     {"h", VOCAB, D}};
    const double *e = make(s, "e.weight", VOCAB, D, 0), *pos = make(s, "p.weight", TOKENS, D, 0);
    for (size_t i = 0; i < sizeof part / sizeof *part; i++) {
        makef(s, part[i].out, part[i].in, 0, "%s.weight", part[i].name);
        makef(s, part[i].out, 0, 0, "%s.bias", part[i].name);
    }
    double x[TOKENS * D];
    for (size_t i = 0; i < TOKENS * D; i++) x[i] = e[(size_t)ids[i / D] * D + i % D] + pos[i];
    const double *z =
        normed(s, x, TOKENS, D, false, 1e-5, get(s, "b.0.n1.weight"), get(s, "b.0.n1.bias"));
    const double *all = named(s, z, D, 3 * D, "b.0.qkv");
    const double *y =
        attend(s, columns(s, all, TOKENS, 3 * D, 0, D), columns(s, all, TOKENS, 3 * D, D, D),
               columns(s, all, TOKENS, 3 * D, 2 * D, D), TOKENS, HEADS, HEADS, DK, 0.5, sees_past);
    add_to(x, named(s, y, D, D, "b.0.o"), TOKENS * D);
    z = normed(s, x, TOKENS, D, false, 1e-5, get(s, "b.0.n2.weight"), get(s, "b.0.n2.bias"));
    double *f = named(s, z, D, HIDDEN, "b.0.f1");
    apply(f, TOKENS * HIDDEN, gelu);
    add_to(x, named(s, f, HIDDEN, D, "b.0.f2"), TOKENS * D);
    z = normed(s, x, TOKENS, D, false, 1e-5, get(s, "n.weight"), get(s, "n.bias"));
    const double *want = named(s, z, D, VOCAB, "h");
    make(s, "val", 3, 0, 0); /* data, not weights */
    write_npz(&p, "cfg", &cfg_array);
    assert_model_gives(p.path, &id_input, want, TOKENS, VOCAB);
    make(s, "b.0.extra", 3, 0, 0);
    write_npz(&p, "cfg", &cfg_array);
    REFUSED(p.path, "b.0.extra");
    const int64_t large[6] = {INT64_MAX, D, HEADS, HIDDEN, TOKENS, VOCAB};
    const pare_array bad = {.dtype = PARE_I64, .ndim = 1, .shape = {6}, .data = large};
    write_npz(&p, "cfg", &bad);
    REFUSED(p.path, "cfg");
    end(&p);
}

static void number(store *s, const char *name, double v)
{
    make(s, name, 1, 0, 0)[0] = v;
}

/* Layer 0: widths 3 -> 3 -> 4, heads of different sizes, one without bq, one without Wo, R1
 * diagonal, R2 dense; layer 1: no head, R1 dense, no R2. */
static void make_width(store *s)
{
    number(s, "n_layers", 2);
    number(s, "L0.n_heads", 2);
    make(s, "L0.H0.Wq", 2, 3, 0), make(s, "L0.H0.Wk", 2, 3, 0), make(s, "L0.H0.Wv", 5, 3, 0);
    make(s, "L0.H0.bq", 2, 0, 0), make(s, "L0.H0.Wo", 3, 5, 0);
    number(s, "L0.H0.scale", 0.75);
    make(s, "L0.H1.Wq", 1, 3, 0), make(s, "L0.H1.Wk", 1, 3, 0), make(s, "L0.H1.Wv", 3, 3, 0);
    make(s, "L0.H1.bv", 3, 0, 0);
    number(s, "L0.H1.scale", -0.5);
    make(s, "L0.R1", 3, 0, 0), make(s, "L0.c1", 3, 0, 0), make(s, "L0.R2", 4, 3, 0);
    make(s, "L0.W1", 6, 3, 0), make(s, "L0.b1", 6, 0, 0), make(s, "L0.W2", 4, 6, 0);
    number(s, "L1.n_heads", 0);
    make(s, "L1.R1", 4, 4, 0), make(s, "L1.c1", 4, 0, 0);
    make(s, "L1.W1", 6, 4, 0), make(s, "L1.W2", 2, 6, 0), make(s, "L1.c2", 2, 0, 0);
}

static const double *naive_width(store *s, const double *x)
{
    double z[TOKENS * 3];
    for (size_t i = 0; i < TOKENS * 3; i++)
        z[i] = x[i] * get(s, "L0.R1")[i % 3] + get(s, "L0.c1")[i % 3];
    for (int h = 0; h < 2; h++) {
        const size_t dk = h ? 1 : 2, dv = h ? 3 : 5;
        const double *q = affine(s, x, TOKENS, 3, dk, get(s, "L0.H%d.Wq", h),
                                 h ? NULL : get(s, "L0.H0.bq"), false);
        const double *k = affine(s, x, TOKENS, 3, dk, get(s, "L0.H%d.Wk", h), NULL, false);
        const double *v = affine(s, x, TOKENS, 3, dv, get(s, "L0.H%d.Wv", h),
                                 h ? get(s, "L0.H1.bv") : NULL, false);
        double pooled[TOKENS * 5] = {0};
        for (size_t i = 0; i < TOKENS; i++) {
            double sum = 0;
            for (int pass = 0; pass < 2; pass++)
                for (size_t j = 0; j < TOKENS; j++) {
                    if (!sees_neighbors(i, j, TOKENS)) continue;
                    double dot = 0;
                    for (size_t c = 0; c < dk; c++) dot += q[i * dk + c] * k[j * dk + c];
                    const double e = exp(get(s, "L0.H%d.scale", h)[0] * dot);
                    if (!pass) sum += e;
                    for (size_t c = 0; pass && c < dv; c++)
                        pooled[i * dv + c] += e / sum * v[j * dv + c];
                }
        }
        add_to(z, h ? pooled : affine(s, pooled, TOKENS, 5, 3, get(s, "L0.H0.Wo"), NULL, false),
               TOKENS * 3);
    }
    double *f = affine(s, z, TOKENS, 3, 6, get(s, "L0.W1"), get(s, "L0.b1"), false);
    apply(f, TOKENS * 6, relu);
    double *y = affine(s, z, TOKENS, 3, 4, get(s, "L0.R2"), NULL, false);
    add_to(y, affine(s, f, TOKENS, 6, 4, get(s, "L0.W2"), NULL, false), TOKENS * 4);
    y = affine(s, y, TOKENS, 4, 4, get(s, "L1.R1"), get(s, "L1.c1"), false);
    f = affine(s, y, TOKENS, 4, 6, get(s, "L1.W1"), NULL, false);
    apply(f, TOKENS * 6, relu);
    return affine(s, f, TOKENS, 6, 2, get(s, "L1.W2"), get(s, "L1.c2"), false);
}

static void the_width_npz_packs_ragged_heads(void **state)
{
    (void)state;
    place p;
    begin(&p, "a.npz");
    store *s = &p.s;
    const double *x = make(s, "x", TOKENS, 3, 0);
    const pare_input in = {.batch = 1, .tokens = TOKENS, .width = 3, .x = x, .graph = &path_graph};
    s->n = 0;
    make_width(s);
    write_npz(&p, NULL, NULL);
    assert_model_gives(p.path, &in, naive_width(s, x), TOKENS, 2);
    pare_model *m = NULL;
    pare_err err = {0};
    assert_ok(pare_model_load(&m, p.path, &err), &err);
    const pare_attn *at = &m->blocks[0].attn;
    assert_int_equal(at->nheads, 2);
    assert_int_equal(at->heads[1].q, 2);
    assert_int_equal(at->heads[1].v, 5);
    assert_int_equal(at->wo.rows, 3);
    assert_int_equal(at->wo.cols, 8);
    assert_near(pare_weight_at(&at->wo, 1 * 8 + 6), 1, 0); /* the identity of head 1 */
    assert_near(pare_weight_at(&at->wo, 1 * 8 + 7), 0, 0);
    assert_int_equal(at->skip.kind, PARE_SKIP_DIAGONAL);
    assert_int_equal(m->blocks[0].ffn.skip.kind, PARE_SKIP_DENSE);
    assert_int_equal(m->blocks[1].attn.kind, PARE_ATTN_ZERO);
    assert_int_equal(m->blocks[1].attn.skip.kind, PARE_SKIP_DENSE);
    assert_int_equal(m->blocks[1].ffn.skip.kind, PARE_SKIP_NONE);
    assert_int_equal(m->pattern.kind, PARE_GRAPH);
    assert_false(m->pattern.self_loops);
    pare_model_free(m);
    seek_tensor(s, "L0.n_heads")->v[0] = 3;
    write_npz(&p, NULL, NULL);
    REFUSED(p.path, "L0.H2.Wq", "missing");
    seek_tensor(s, "L0.n_heads")->v[0] = 1e300;
    write_npz(&p, NULL, NULL);
    REFUSED(p.path, "L0.n_heads");
    seek_tensor(s, "L0.n_heads")->v[0] = 1;
    write_npz(&p, NULL, NULL);
    REFUSED(p.path, "L0.H1."); /* a head that nobody asks for is not dropped */
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_in_tensors_of_their_own_are_packed),
        cmocka_unit_test(a_graph_transformer_has_the_self_loops_its_metadata_names),
        cmocka_unit_test(moonshine_turns_part_of_each_head),
        cmocka_unit_test(mean_only_bert_maps_its_words_first),
        cmocka_unit_test(the_depth_npz_is_the_network_it_describes),
        cmocka_unit_test(the_width_npz_packs_ragged_heads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
