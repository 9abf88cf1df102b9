/* gradient_metric.c - how much the outputs move with each direction of the residual stream
 * (docs/theory/width.md section 9).
 *
 * At every point of the stream the metric is
 *
 *     G = mean over tokens and probes of g g^T,
 *
 * g the gradient of a random combination of the outputs with respect to the token's row. With
 * random signs the cross terms between tokens vanish on average, so one backward pass gives a draw
 * of the sum over all outputs. No labels are needed. The combination is
 *
 *     graph nets    signs +1, -1 on the difference of the logits (two classes) or on the centered
 *                   logits (more), because softmax sees no others;
 *     logits y      sum_j s_j sqrt(p_j) (y_j - p.y) with p = softmax(y): its gradients have the
 *                   second moment J^T (diag p - p p^T) J, so d^T G d / 2 is the divergence, in
 *                   nats, that a small error d makes;
 *     embeddings    signs on all of them.
 *
 * The attention and the feed-forward part of every block become blocks of their own, so that every
 * point of the stream is the input of some block. */
#include "model/inputs.h"
#include "cuts.h"
#include "lm_auto.h"
#include "linalg/matrix.h"
#include "train/gradient.h"
#include <math.h>

#define PROBES     4
#define ZERO_TRACE 1e-20 /* traces of G below it: the outputs do not depend on this point */

enum {
    TOKENS = 4096,  /* of the calibration set that are used */
    MIN_TOKENS = 64 /* of the last sequence, which is cut short */
};

static const pare_mode eval_mode = {.momentum = 0.1};

/* Views of m's weights, one sublayer to a block. */
static pare_model split_blocks(pare_work *w, const pare_model *m)
{
    pare_model s = *m;
    s.nblocks = 2 * m->nblocks;
    s.blocks = pare_work_alloc(w, s.nblocks, sizeof *s.blocks);
    for (size_t b = 0; !w->st && b < m->nblocks; b++) {
        s.blocks[2 * b].attn = m->blocks[b].attn;
        s.blocks[2 * b + 1].ffn = m->blocks[b].ffn;
    }
    return s;
}

/* ---- graph nets: one graph, f64 -------------------------------------------------------------- */

/* d (sum of signs times centered outputs) / d outputs. */
static void draw_signs(double *dy, size_t n, size_t outputs, pare_rng *rng)
{
    for (size_t i = 0; i < n; i++) {
        double *const row = dy + i * outputs, sign = pare_rng_u32(rng) & 1 ? 1 : -1;
        double mean = 0;
        if (outputs <= 2) {
            row[0] = outputs == 2 ? -sign : sign;
            row[outputs - 1] = sign;
            continue;
        }
        row[0] = sign;
        for (size_t j = 1; j < outputs; j++) row[j] = pare_rng_u32(rng) & 1 ? 1 : -1;
        for (size_t j = 0; j < outputs; j++) mean += row[j] / (double)outputs;
        for (size_t j = 0; j < outputs; j++) row[j] -= mean;
    }
}

pare_mat *gradient_metric(pare_work *w, const pare_model *folded, const pare_input *in,
                          uint64_t seed)
{
    const pare_model split = split_blocks(w, folded);
    const size_t npoints = w->st ? 0 : split.nblocks + 1, n = in->tokens;
    pare_mat *const g = pare_work_alloc(w, npoints, sizeof *g);
    for (size_t k = 0; !w->st && k < npoints; k++) {
        const size_t d = pare_model_width(&split, k);
        g[k] = mat_zeros(w, d, d);
    }
    if (w->st) return g;
    const size_t outputs = pare_model_outputs(&split);
    pare_params *p = NULL;
    pare_tape *t = NULL;
    double *const dy = vec_zeros(w, n * outputs);
    if (!w->st) w->st = pare_params_new(&p, &split, PARE_F64, w->err);
    if (!w->st) w->st = pare_tape_new(&t, p, w->exec, w->err);
    if (!w->st) w->st = pare_tape_forward(t, in, &eval_mode, NULL, w->err);
    for (uint64_t probe = 0; !w->st && probe < PROBES; probe++) {
        pare_rng rng = pare_rng_at(seed, probe);
        draw_signs(dy, n, outputs, &rng);
        w->st = pare_tape_backward(t, dy, NULL, NULL, w->err);
        for (size_t k = 0; !w->st && k < npoints; k++) {
            double *const rows = (double *)(uintptr_t)pare_tape_dstream(t, k);
            const pare_mat gradient = pare_mat_of(rows, n, g[k].rows);
            pare_gemm(&g[k], 1 / ((double)n * PROBES), &gradient, true, &gradient, false, 1);
        }
        if (!w->st) w->st = pare_progress(w->exec, "gradient metric", probe + 1, PROBES, w->err);
    }
    pare_tape_free(t);
    pare_params_free(p);
    /* Where the outputs do not depend on the stream, every direction counts the same. */
    for (size_t k = 0; !w->st && k < npoints; k++) {
        double trace = 0;
        for (size_t i = 0; i < g[k].rows; i++) trace += pare_row(&g[k], i)[i];
        for (size_t i = 0; trace < ZERO_TRACE && i < g[k].rows; i++)
            for (size_t j = 0; j < g[k].cols; j++) pare_row_mut(&g[k], i)[j] = i == j;
    }
    return g;
}

/* ---- language models: some sequences, f32 ---------------------------------------------------- */

/* The gradient at one row of outputs y. */
static void draw_row(float *dy, const float *y, size_t n, bool logits, pare_rng *rng)
{
    float row_max = y[0];
    double sum = 0, mean = 0;
    for (size_t j = 0; j < n; j++) dy[j] = pare_rng_u32(rng) & 1 ? 1 : -1;
    if (!logits || n < 2) return;
    for (size_t j = 1; j < n; j++) row_max = y[j] > row_max ? y[j] : row_max;
    for (size_t j = 0; j < n; j++) sum += exp((double)(y[j] - row_max));
    for (size_t j = 0; j < n; j++) {
        const double p = exp((double)(y[j] - row_max)) / sum;
        dy[j] *= (float)sqrt(p);
        mean += (double)dy[j];
    }
    for (size_t j = 0; j < n; j++) dy[j] -= (float)(exp((double)(y[j] - row_max)) / sum * mean);
}

/* Adds the gradients of one sequence to g. */
static void add_sequence(pare_work *w, pare_mat *g, pare_tape *t, const pare_input *in,
                         const pare_model *m, pare_rng *rng)
{
    const size_t rows = pare_output_rows(m, in), outputs = pare_model_outputs(m);
    const bool logits = (m->head.tied || pare_has(&m->head.out.w)) && !m->head.normalize;
    const pare_mark mark = pare_arena_mark(w->arena);
    const void *y = NULL;
    float *const dy = pare_work_alloc(w, rows * outputs, sizeof *dy);
    if (!w->st) w->st = pare_tape_forward(t, in, &eval_mode, &y, w->err);
    for (size_t i = 0; !w->st && i < rows; i++)
        draw_row(dy + i * outputs, (const float *)y + i * outputs, outputs, logits, rng);
    if (!w->st) w->st = pare_tape_backward(t, dy, NULL, NULL, w->err);
    for (size_t k = 0; !w->st && k <= m->nblocks; k++) {
        const pare_mark here = pare_arena_mark(w->arena);
        const float *const gradient = pare_tape_dstream(t, k);
        pare_mat s = mat_zeros(w, in->batch * in->tokens, g[k].rows);
        for (size_t i = 0; !w->st && i < s.rows * s.cols; i++) s.v[i] = (double)gradient[i];
        lm_gram(w, &g[k], &s);
        pare_arena_reset(w->arena, here);
    }
    pare_arena_reset(w->arena, mark);
}

pare_mat *lm_gradient_metric(pare_work *w, const lm *m, const pare_inputs *data, size_t max_tokens,
                             uint64_t seed)
{
    pare_mat *const g = pare_work_alloc(w, m->nplaces, sizeof *g);
    for (size_t k = 0; !w->st && k < m->nplaces; k++) g[k] = mat_zeros(w, m->width[k], m->width[k]);
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_model split = split_blocks(w, m->m);
    pare_params *p = NULL;
    pare_tape *t = NULL;
    pare_rng rng = pare_rng_at(seed, 0);
    size_t done = 0;
    if (!w->st) w->st = pare_params_new(&p, &split, PARE_F32, w->err);
    if (!w->st) w->st = pare_tape_new(&t, p, w->exec, w->err);
    for (size_t i = 0; !w->st && i < data->n && done + MIN_TOKENS <= TOKENS; i++)
        for (size_t b = 0; !w->st && b < data->in[i].batch && done + MIN_TOKENS <= TOKENS; b++) {
            const size_t left = TOKENS - done;
            const size_t longest = max_tokens && max_tokens < left ? max_tokens : left;
            pare_input one = pare_input_sequence(&data->in[i], b);
            if (!one.graph && one.tokens > longest) one.tokens = longest;
            add_sequence(w, g, t, &one, &split, &rng);
            done += one.tokens;
            if (!w->st) w->st = pare_progress(w->exec, "gradient metric", done, TOKENS, w->err);
        }
    for (size_t k = 0; !w->st && k <= split.nblocks; k++)
        for (size_t e = 0; e < g[k].rows * g[k].cols; e++) g[k].v[e] /= (double)(done ? done : 1);
    pare_tape_free(t);
    pare_params_free(p);
    pare_arena_reset(w->arena, mark);
    return g;
}
