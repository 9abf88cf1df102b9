/* config.json alone, beside the weights of a small model of each family that the first byte chooses. */
#include "fuzz.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 8192, WEIGHTS = 8192 };

typedef struct shape {
    const char *name;
    unsigned rows, cols; /* cols 0: a vector */
} shape;

/* clang-format off */
static const shape bert[] = {
    {"embeddings.word_embeddings.weight", 3, 4}, {"embeddings.position_embeddings.weight", 5, 4},
    {"embeddings.token_type_embeddings.weight", 2, 4}, {"embeddings.LayerNorm.weight", 4, 0}, {"embeddings.LayerNorm.bias", 4, 0},
    {"encoder.layer.0.attention.self.query.weight", 4, 4}, {"encoder.layer.0.attention.self.query.bias", 4, 0},
    {"encoder.layer.0.attention.self.key.weight", 4, 4}, {"encoder.layer.0.attention.self.key.bias", 4, 0},
    {"encoder.layer.0.attention.self.value.weight", 4, 4}, {"encoder.layer.0.attention.self.value.bias", 4, 0},
    {"encoder.layer.0.attention.output.dense.weight", 4, 4}, {"encoder.layer.0.attention.output.dense.bias", 4, 0},
    {"encoder.layer.0.attention.output.LayerNorm.weight", 4, 0}, {"encoder.layer.0.attention.output.LayerNorm.bias", 4, 0},
    {"encoder.layer.0.intermediate.dense.weight", 3, 4}, {"encoder.layer.0.intermediate.dense.bias", 3, 0},
    {"encoder.layer.0.output.dense.weight", 4, 3}, {"encoder.layer.0.output.dense.bias", 4, 0},
    {"encoder.layer.0.output.LayerNorm.weight", 4, 0}, {"encoder.layer.0.output.LayerNorm.bias", 4, 0},
    {"pooler.dense.weight", 4, 4}, {"pooler.dense.bias", 4, 0}, {"classifier.weight", 2, 4}, {"classifier.bias", 2, 0}, {0}};
static const shape distilbert[] = {
    {"embeddings.word_embeddings.weight", 3, 4}, {"embeddings.position_embeddings.weight", 5, 4},
    {"embeddings.LayerNorm.weight", 4, 0}, {"embeddings.LayerNorm.bias", 4, 0},
    {"transformer.layer.0.attention.q_lin.weight", 4, 4}, {"transformer.layer.0.attention.q_lin.bias", 4, 0},
    {"transformer.layer.0.attention.k_lin.weight", 4, 4}, {"transformer.layer.0.attention.k_lin.bias", 4, 0},
    {"transformer.layer.0.attention.v_lin.weight", 4, 4}, {"transformer.layer.0.attention.v_lin.bias", 4, 0},
    {"transformer.layer.0.attention.out_lin.weight", 4, 4}, {"transformer.layer.0.attention.out_lin.bias", 4, 0},
    {"transformer.layer.0.sa_layer_norm.weight", 4, 0}, {"transformer.layer.0.sa_layer_norm.bias", 4, 0},
    {"transformer.layer.0.ffn.lin1.weight", 3, 4}, {"transformer.layer.0.ffn.lin1.bias", 3, 0},
    {"transformer.layer.0.ffn.lin2.weight", 4, 3}, {"transformer.layer.0.ffn.lin2.bias", 4, 0},
    {"transformer.layer.0.output_layer_norm.weight", 4, 0}, {"transformer.layer.0.output_layer_norm.bias", 4, 0}, {0}};
static const shape gpt2[] = {
    {"wte.weight", 3, 4}, {"wpe.weight", 5, 4}, {"ln_f.weight", 4, 0}, {"ln_f.bias", 4, 0},
    {"h.0.ln_1.weight", 4, 0}, {"h.0.ln_1.bias", 4, 0}, {"h.0.ln_2.weight", 4, 0}, {"h.0.ln_2.bias", 4, 0},
    {"h.0.attn.c_attn.weight", 4, 12}, {"h.0.attn.c_attn.bias", 12, 0}, {"h.0.attn.c_proj.weight", 4, 4},
    {"h.0.attn.c_proj.bias", 4, 0}, {"h.0.mlp.c_fc.weight", 4, 3}, {"h.0.mlp.c_fc.bias", 3, 0},
    {"h.0.mlp.c_proj.weight", 3, 4}, {"h.0.mlp.c_proj.bias", 4, 0}, {0}};
static const shape llama[] = {
    {"model.embed_tokens.weight", 3, 4}, {"model.norm.weight", 4, 0}, {"lm_head.weight", 3, 4},
    {"model.layers.0.input_layernorm.weight", 4, 0}, {"model.layers.0.post_attention_layernorm.weight", 4, 0},
    {"model.layers.0.self_attn.q_proj.weight", 8, 4}, {"model.layers.0.self_attn.k_proj.weight", 4, 4},
    {"model.layers.0.self_attn.v_proj.weight", 4, 4}, {"model.layers.0.self_attn.o_proj.weight", 4, 8},
    {"model.layers.0.mlp.gate_proj.weight", 3, 4}, {"model.layers.0.mlp.up_proj.weight", 3, 4},
    {"model.layers.0.mlp.down_proj.weight", 4, 3}, {0}};
static const shape qwen2[] = {
    {"model.embed_tokens.weight", 3, 4}, {"model.norm.weight", 4, 0},
    {"model.layers.0.input_layernorm.weight", 4, 0}, {"model.layers.0.post_attention_layernorm.weight", 4, 0},
    {"model.layers.0.self_attn.q_proj.weight", 4, 4}, {"model.layers.0.self_attn.k_proj.weight", 2, 4},
    {"model.layers.0.self_attn.v_proj.weight", 2, 4}, {"model.layers.0.self_attn.o_proj.weight", 4, 4},
    {"model.layers.0.self_attn.q_proj.bias", 4, 0}, {"model.layers.0.self_attn.k_proj.bias", 2, 0},
    {"model.layers.0.self_attn.v_proj.bias", 2, 0},
    {"model.layers.0.mlp.gate_proj.weight", 3, 4}, {"model.layers.0.mlp.up_proj.weight", 3, 4},
    {"model.layers.0.mlp.down_proj.weight", 4, 3}, {0}};
/* clang-format on */
static const shape *const families[] = {bert, distilbert, gpt2, llama, qwen2};

/* A safetensors file of ones. Returns its size. */
static size_t make_weights(uint8_t *to, const shape *t)
{
    char header[HEADER];
    size_t n = 1, at = 0;
    header[0] = '{';
    for (; t->name; t++) {
        const size_t count = (size_t)t->rows * (t->cols ? t->cols : 1);
        char cols[16] = "";
        if (t->cols) snprintf(cols, sizeof cols, ",%u", t->cols);
        n += (size_t)snprintf(header + n, sizeof header - n,
                              "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%u%s],\"data_offsets\":[%zu,"
                              "%zu]}",
                              n > 1 ? "," : "", t->name, t->rows, cols, at, at + 4 * count);
        at += 4 * count;
    }
    header[n++] = '}';
    FUZZ_EXPECT(n < sizeof header && 8 + n + at <= HEADER + WEIGHTS);
    for (size_t i = 0; i < 8; i++) to[i] = (uint8_t)((uint64_t)n >> (8 * i));
    memcpy(to + 8, header, n);
    for (size_t i = 0; i < at; i++) to[8 + n + i] = (const uint8_t[]){0, 0, 0x80, 0x3f}[i % 4];
    return 8 + n + at;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    if (size == 0 || max_size < 2 || seed % 16 == 0) return LLVMFuzzerMutate(data, size, max_size);
    return 1 + fuzz_mutate_json(data + 1, size - 1, max_size - 1, seed / 16);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { FAMILIES = sizeof families / sizeof *families };
    static uint8_t weights[FAMILIES][HEADER + WEIGHTS];
    static size_t bytes[FAMILIES];
    pare_model *m = NULL;
    pare_err err = {0};
    if (size == 0) return 0;
    const size_t f = data[0] % FAMILIES;
    if (bytes[f] == 0) bytes[f] = make_weights(weights[f], families[f]);
    fuzz_file("d/model.safetensors", weights[f], bytes[f]);
    fuzz_file("d/config.json", data + 1, size - 1);
    const pare_status st = pare_model_load(&m, "d", &err);
    fuzz_expect_said(st, &err);
    FUZZ_EXPECT((st == PARE_OK) == (m != NULL));
    if (m) fuzz_run_model(m);
    pare_model_free(m);
    fuzz_no_files();
    return 0;
}
