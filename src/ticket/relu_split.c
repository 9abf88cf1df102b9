/* relu_split.c - feed-forward parts as the theorems of Otsuka 2025 have them
 * (docs/theory/ticket.md "ReLU layers (Lemma 2)"): every layer of a ReLU part is a pair of layers
 * of a ReLU source.
 *
 *   W x = [W, -W] relu([I; -I] x),     W x = W relu(x)  where no x is negative
 *
 * so that the same function has one layer more: the identity above its negative, [W_1, -W_1], and
 * the others as they are, whose inputs come from a ReLU. The ticket of [W_1, -W_1] is one of
 * PARE_RELU_SIGNS, those of the others are PARE_RELU_POSITIVE: the 2 L layers of the source with
 * their inner ones multiplied out. */
#include "merged_heads.h"
#include <stdio.h>

bool is_relu_ffn(const pare_ffn *f)
{
    return f->kind == PARE_FFN_MLP && f->act == PARE_ACT_RELU;
}

/* Puts [I; -I] before the layers and [W, -W] in the place of the first. */
static pare_status split_by_sign(pare_ffn *f, pare_arena *a, pare_err *err)
{
    const size_t o = f->layers[0].w.rows, d = f->din, cols = f->layers[0].w.cols;
    pare_dense *const layers = pare_alloc(a, f->nlayers + 1, sizeof *layers);
    float *const signs = pare_alloc(a, 2 * d * d, sizeof *signs);
    double *const both = pare_alloc(a, 2 * o * cols, sizeof *both);
    if (!layers || !signs || !both) return pare_no_memory(err);
    for (size_t l = 0; l < f->nlayers; l++) layers[l + 1] = f->layers[l];
    for (size_t i = 0; i < 2 * d; i++) signs[i * d + i % d] = i < d ? 1 : -1;
    for (size_t i = 0; i < o; i++)
        for (size_t j = 0; j < cols; j++) {
            both[i * 2 * cols + j] = pare_weight_at(&f->layers[0].w, i * cols + j);
            both[i * 2 * cols + cols + j] = -both[i * 2 * cols + j];
        }
    layers[0].w = (pare_weight){PARE_F32, 2 * d, d, signs};
    layers[1].w = (pare_weight){PARE_F64, o, 2 * cols, both};
    f->layers = layers;
    f->nlayers++;
    return PARE_OK;
}

pare_status relu_split(pare_model *m, size_t *parts, size_t *others, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t b = 0; !st && b < m->nblocks; b++) {
        pare_ffn *const f = &m->blocks[b].ffn;
        if (f->kind == PARE_FFN_NONE) continue;
        ++*(is_relu_ffn(f) ? parts : others);
        if (is_relu_ffn(f)) st = split_by_sign(f, m->arena, err);
    }
    return st;
}

pare_relu_source relu_source_of(const pare_model *m, const char *name)
{
    size_t block, layer;
    int at = 0;
    if (sscanf(name, "blocks.%zu.ffn.%zu.%n", &block, &layer, &at) != 2 || !at)
        return PARE_RELU_NONE;
    if (!is_relu_ffn(&m->blocks[block].ffn)) return PARE_RELU_NONE;
    return layer == 1 && name[at] == 'w' ? PARE_RELU_SIGNS : PARE_RELU_POSITIVE;
}
