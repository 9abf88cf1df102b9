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

static pare_status tell_signs(pare_weight *out, pare_arena *a, size_t d, pare_err *err)
{
    float *const v = pare_alloc(a, 2 * d * d, sizeof *v);
    if (!v) return pare_no_memory(err);
    for (size_t i = 0; i < 2 * d; i++) v[i * d + i % d] = i < d ? 1 : -1;
    *out = (pare_weight){PARE_F32, 2 * d, d, v};
    return PARE_OK;
}

static pare_status both_signs(pare_weight *w, pare_arena *a, pare_err *err)
{
    const size_t o = w->rows, d = w->cols;
    double *const v = pare_alloc(a, 2 * o * d, sizeof *v);
    if (!v) return pare_no_memory(err);
    for (size_t i = 0; i < o; i++)
        for (size_t j = 0; j < d; j++) {
            v[i * 2 * d + j] = pare_weight_at(w, i * d + j);
            v[i * 2 * d + d + j] = -v[i * 2 * d + j];
        }
    *w = (pare_weight){PARE_F64, o, 2 * d, v};
    return PARE_OK;
}

static pare_status split(pare_ffn *f, pare_arena *a, pare_err *err)
{
    pare_dense *const layers = pare_alloc(a, f->nlayers + 1, sizeof *layers);
    if (!layers) return pare_no_memory(err);
    for (size_t l = 0; l < f->nlayers; l++) layers[l + 1] = f->layers[l];
    f->layers = layers;
    f->nlayers++;
    const pare_status st = tell_signs(&layers[0].w, a, f->din, err);
    return st ? st : both_signs(&layers[1].w, a, err);
}

pare_status relu_split(pare_model *m, size_t *parts, size_t *others, pare_err *err)
{
    pare_status st = PARE_OK;
    for (size_t b = 0; !st && b < m->nblocks; b++) {
        pare_ffn *const f = &m->blocks[b].ffn;
        if (f->kind == PARE_FFN_NONE) continue;
        ++*(is_relu_ffn(f) ? parts : others);
        if (is_relu_ffn(f)) st = split(f, m->arena, err);
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
