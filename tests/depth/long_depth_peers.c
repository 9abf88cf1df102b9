/* Against the peers: of stories260K and Moonshine the best kind loses less than dropping the layers
 * of least block influence, at every count below all of them. */
#include "model/inputs.h"
#include "depth_texts.h"

#define STORIES   "../shared/data/models/stories260K.safetensors"
#define WORDS     "../shared/data/models/stories260K_tok512.bin"
#define TEXT      "../shared/data/text/tinystories_1000.txt"
#define MOONSHINE "../shared/data/models/moonshine_tiny_encoder.safetensors"
#define GOLDEN    "../shared/data/models/golden_moonshine_tiny_encoder.safetensors"

static void stories(void **state)
{
    (void)state;
    NEED_SHARED(STORIES);
    task l = {.a = pare_arena_new()};
    pare_blob *words = NULL;
    assert_ok(pare_model_load(&l.m, STORIES, &l.err), &l.err);
    assert_ok(pare_blob_open(&words, WORDS, &l.err), &l.err);
    l.m->tokenizer = PARE_TOK_LLAMA2C;
    l.m->vocab = words->data;
    l.m->vocab_bytes = words->bytes;
    assert_ok(pare_dataset_load(&l.d, l.a, l.m, TEXT, NULL, &l.err), &l.err);
    assert_ok(pare_inputs_part(&l.fit, l.a, &l.d.inputs, 0, 64, 256, &l.err), &l.err);
    l.first = l.d.inputs.n - 128;
    l.count = 128;
    const double base = nats(&l, l.m);
    for (size_t layers = l.m->nblocks; layers-- > 0;) {
        const double ours = nats_of_cut(&l, PARE_ATTN_NONE, layers, PARE_DEPTH_GREEDY);
        const double peers = nats_of_cut(&l, PARE_ATTN_ZERO, layers, PARE_DEPTH_INFLUENCE);
        print_message("stories260K, %zu layers: %.4f nats, %.4f by influence (%.4f before)\n",
                      layers, ours, peers, base);
        assert_true(ours < peers);
    }
    pare_model_free(l.m);
    pare_blob_release(words);
    pare_arena_free(l.a);
}

/* The golden input in seven pieces, the last one held out. */
static pare_inputs pieces(task *l)
{
    pare_blob *raw = NULL;
    enum { PIECES = 7, TOKENS = 64, WIDTH = 288 };
    pare_inputs all = {PIECES, pare_alloc(l->a, PIECES, sizeof *all.in)};
    double *const x = pare_alloc(l->a, PIECES * TOKENS * WIDTH, sizeof *x);
    assert_ok(pare_blob_open(&raw, GOLDEN, &l->err), &l->err);
    const char *const header = (const char *)raw->data + 8;
    const char *const at = strstr(strstr(header, "tokens_in"), "data_offsets");
    uint64_t length;
    memcpy(&length, raw->data, sizeof length);
    const size_t from = strtoul(strchr(at, '[') + 1, NULL, 10);
    const uint8_t *const data = raw->data + 8 + length + from;
    for (size_t i = 0; i < PIECES * TOKENS * WIDTH; i++) {
        float v;
        memcpy(&v, data + i * sizeof v, sizeof v);
        x[i] = (double)v;
    }
    for (size_t i = 0; i < PIECES; i++)
        all.in[i] =
            (pare_input){.batch = 1, .tokens = TOKENS, .width = WIDTH, .x = x + i * TOKENS * WIDTH};
    pare_blob_release(raw);
    return all;
}

static double off_by(task *l, const pare_input *in, pare_attn_kind kind, size_t layers,
                     pare_depth_select how)
{
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    pare_depth_report r;
    pare_model *g = NULL;
    const pare_exec exec = {.threads = 2};
    const size_t n = in->tokens * pare_model_outputs(l->m);
    float *const y = pare_alloc(l->a, n, sizeof *y), *const z = pare_alloc(l->a, n, sizeof *z);
    double apart = 0, size = 0;
    o.kind = kind;
    o.layers = layers;
    o.select = how;
    assert_ok(pare_depth(&g, &r, l->m, &l->fit, &o, &exec, &l->err), &l->err);
    assert_ok(pare_forward_f32(y, l->m, in, NULL, &exec, &l->err), &l->err);
    assert_ok(pare_forward_f32(z, g, in, NULL, &exec, &l->err), &l->err);
    for (size_t i = 0; i < n; i++) {
        apart += ((double)y[i] - (double)z[i]) * ((double)y[i] - (double)z[i]);
        size += (double)y[i] * (double)y[i];
    }
    pare_model_free(g);
    return sqrt(apart / size);
}

static void moonshine(void **state)
{
    (void)state;
    NEED_SHARED(MOONSHINE);
    task l = {.a = pare_arena_new()};
    assert_ok(pare_model_load(&l.m, MOONSHINE, &l.err), &l.err);
    const pare_inputs all = pieces(&l);
    l.fit = (pare_inputs){6, all.in};
    for (size_t layers = l.m->nblocks; layers-- > 0;) {
        const double ours = off_by(&l, &all.in[6], PARE_ATTN_NONE, layers, PARE_DEPTH_GREEDY);
        const double peers = off_by(&l, &all.in[6], PARE_ATTN_ZERO, layers, PARE_DEPTH_INFLUENCE);
        print_message("moonshine, %zu layers: off by %.4f, %.4f by influence\n", layers, ours,
                      peers);
        assert_true(ours < peers);
    }
    pare_model_free(l.m);
    pare_arena_free(l.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(moonshine), cmocka_unit_test(stories)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
