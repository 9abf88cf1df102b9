/* sum_layers.c - sums and products over the layers, and mean tokens: the ingredients of one-layer
 * collapses. Plain f64; the roundings are part of the bound (collapse_chain.c). */
#include "linalg/matrix.h"
#include "one_layer.h"
#include <stdlib.h>
#include <string.h>

/* ---- sums over the heads --------------------------------------------------------------------- */

/* V_b, and value biases through the output map. Heads may share values: head by head. */
static void sum_heads(builder *k, size_t b)
{
    const pare_attn *const at = &k->in->blocks[b].attn;
    k->v[b] = work_matrix(&k->s.work, k->d, k->d);
    for (size_t h = 0; !k->s.work.st && at->kind && h < at->nheads; h++) {
        const pare_head *const e = &at->heads[h];
        const pare_mark mark = pare_arena_mark(k->s.work.arena);
        pare_mat wv = work_matrix(&k->s.work, e->dv, k->d),
                 wo = work_matrix(&k->s.work, k->d, e->dv);
        if (k->s.work.st) return;
        pare_weight_widen(&wv, &at->wv, e->v, 0);
        if (pare_has(&at->wo)) pare_weight_widen(&wo, &at->wo, 0, e->o);
        for (size_t j = 0; !pare_has(&at->wo) && j < e->dv; j++) pare_row_mut(&wo, e->o + j)[j] = 1;
        pare_gemm(&k->v[b], 1, &wv, true, &wo, true, 1);
        for (size_t i = 0; pare_has(&at->bv) && i < k->d; i++)
            for (size_t j = 0; j < e->dv; j++)
                pare_row_mut(&k->own, b)[i] +=
                    pare_row(&wo, i)[j] * pare_weight_at(&at->bv, e->v + j);
        pare_arena_reset(k->s.work.arena, mark);
    }
}

void sum_layers(builder *k)
{
    const size_t n = k->in->nblocks;
    k->v = pare_work_alloc(&k->s.work, n, sizeof *k->v);
    k->c = work_matrix(&k->s.work, n, k->d);
    k->own = work_matrix(&k->s.work, n, k->d);
    for (size_t b = 0; !k->s.work.st && b < n; b++) {
        const pare_attn *const at = &k->in->blocks[b].attn;
        sum_heads(k, b);
        for (size_t i = 0; !k->s.work.st && i < k->d; i++)
            pare_row_mut(&k->c, b)[i] =
                pare_row(&k->own, b)[i] +
                (at->kind && pare_has(&at->bo) ? pare_weight_at(&at->bo, i) : 0);
    }
}

pare_mat uniform_product(builder *k)
{
    pare_mat e = work_matrix(&k->s.work, k->d, k->d), next = work_matrix(&k->s.work, k->d, k->d);
    for (size_t b = 0; !k->s.work.st && b < k->in->nblocks; b++) {
        pare_gemm(&next, 1, &e, false, &k->v[b], false, 0);
        for (size_t i = 0; i < k->d * k->d; i++) e.v[i] += next.v[i] + k->v[b].v[i];
    }
    return e;
}

pare_mat uniform_powers(builder *k)
{
    const size_t n = k->in->nblocks, d = k->d;
    pare_mat e = work_matrix(&k->s.work, n * d, d);
    for (size_t b = 0; !k->s.work.st && b < n; b++) {
        for (size_t j = n; j-- > 1;) { /* from the top: E_j += E_(j-1) V with the old E_(j-1) */
            pare_mat to = pare_mat_part(&e, j * d, 0, d, d);
            const pare_mat from = pare_mat_part(&e, (j - 1) * d, 0, d, d);
            pare_gemm(&to, 1, &from, false, &k->v[b], false, 1);
        }
        for (size_t i = 0; i < d * d; i++) e.v[i] += k->v[b].v[i];
    }
    return e;
}

pare_mat uniform_bias(builder *k)
{
    pare_mat bias = work_matrix(&k->s.work, 1, k->d), next = work_matrix(&k->s.work, 1, k->d);
    for (size_t b = 0; !k->s.work.st && b < k->in->nblocks; b++) {
        pare_gemm(&next, 1, &bias, false, &k->v[b], false, 0);
        for (size_t i = 0; i < k->d; i++) bias.v[i] += next.v[i] + pare_row(&k->c, b)[i];
    }
    return bias;
}

/* ---- calibration ----------------------------------------------------------------------------- */

typedef struct mean_taker {
    builder *k;
    size_t tokens;
    double sequences; /* in all inputs */
} mean_taker;

static void take_mean(void *self, pare_tap tap, size_t block, pare_dtype t, const void *v,
                      size_t rows, size_t cols)
{
    mean_taker *const m = self;
    if (tap != PARE_TAP_STEM && tap != PARE_TAP_ATTN_OUT) return;
    const size_t at = tap == PARE_TAP_STEM ? 0 : block + 1;
    PARE_ASSERT(t == PARE_F64 && cols == m->k->d);
    double *const mean = pare_row_mut(&m->k->mean, at);
    const double share = 1 / ((double)m->tokens * m->sequences);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++) mean[j] += ((const double *)v)[i * cols + j] * share;
}

void mean_tokens(builder *k)
{
    const pare_inputs *const set = k->o->calib;
    mean_taker m = {.k = k};
    const pare_trace trace = {.fn = take_mean, .self = &m};
    k->mean = work_matrix(&k->s.work, k->in->nblocks + 1, k->d);
    for (size_t i = 0; i < set->n; i++) m.sequences += (double)set->in[i].batch;
    for (size_t i = 0; !k->s.work.st && i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        double *const out =
            calloc(pare_output_rows(k->in, in) * pare_model_outputs(k->in) + 1, sizeof *out);
        m.tokens = in->tokens;
        k->s.work.st = out ? pare_forward_f64(out, k->in, in, &trace, k->o->exec, k->s.work.err)
                           : pare_no_memory(k->s.work.err);
        free(out);
    }
    /* a block without attention has no tap: its mean is that of the block before */
    for (size_t b = 0; !k->s.work.st && b < k->in->nblocks; b++)
        if (k->in->blocks[b].attn.kind == PARE_ATTN_NONE)
            memcpy(pare_row_mut(&k->mean, b + 1), pare_row(&k->mean, b), k->d * sizeof(double));
}
