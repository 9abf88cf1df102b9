/* The gradient metric of every stream point (docs/theory/width.md section 9): G = mean over nodes
 * and probes of g g^T, where g is the slope of a random combination of the outputs, signs +1 and
 * -1, with respect to the node's row. A direction of the stream counts as much as the outputs move
 * with it.
 *
 * With random signs the cross terms between nodes vanish on average: one way back gives a draw of
 * the sum over all outputs. Two classes: the sign goes on the difference of the logits; more: on
 * the centered logits, as softmax sees no others. No labels are needed.
 *
 * Every block is split into one of attention alone and one of the feed-forward part alone, so that
 * every stream point is where some block begins. */
#include "cuts.h"
#include "sublayers.h"
#include <pare/gradient.h>

#define PROBES  4
#define NOTHING 1e-20 /* a trace of G */

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

static void probe(pare_work *w, pare_mat *g, size_t count, pare_tape *t, double *dy, size_t n)
{
    w->st = pare_tape_backward(t, dy, NULL, NULL, w->err);
    for (size_t k = 0; !w->st && k < count; k++) {
        const pare_mat slope =
            pare_mat_of((double *)(uintptr_t)pare_tape_dstream(t, k), n, g[k].rows);
        pare_gemm(&g[k], 1 / ((double)n * PROBES), &slope, true, &slope, false, 1);
    }
}

static void probe_all(pare_work *w, pare_mat *g, const pare_model *split, const pare_input *in,
                      uint64_t seed)
{
    const pare_mode still = {.momentum = 0.1};
    const size_t outputs = pare_model_outputs(split);
    pare_params *p = NULL;
    pare_tape *t = NULL;
    double *const dy = vec_zeros(w, in->tokens * outputs);
    if (!w->st) w->st = pare_params_new(&p, split, PARE_F64, w->err);
    if (!w->st) w->st = pare_tape_new(&t, p, w->exec, w->err);
    if (!w->st) w->st = pare_tape_forward(t, in, &still, NULL, w->err);
    for (uint64_t k = 0; !w->st && k < PROBES; k++) {
        pare_rng rng = pare_rng_at(seed, k);
        draw_signs(dy, in->tokens, outputs, &rng);
        probe(w, g, split->nblocks + 1, t, dy, in->tokens);
        if (!w->st) w->st = pare_progress(w->exec, "gradient metric", k + 1, PROBES, w->err);
    }
    pare_tape_free(t);
    pare_params_free(p);
}

/* Where the outputs do not move with the stream at all, every direction counts alike. */
static void one_where_nothing(pare_mat *g)
{
    double trace = 0;
    for (size_t i = 0; i < g->rows; i++) trace += pare_row(g, i)[i];
    for (size_t i = 0; trace < NOTHING && i < g->rows; i++)
        for (size_t j = 0; j < g->cols; j++) pare_row_mut(g, i)[j] = i == j;
}

pare_mat *gradient_metric(pare_work *w, const pare_model *folded, const pare_input *in,
                          uint64_t seed)
{
    const pare_model split = sublayers_of(w, folded);
    pare_mat *const g = pare_work_alloc(w, w->st ? 0 : split.nblocks + 1, sizeof *g);
    for (size_t k = 0; !w->st && k <= split.nblocks; k++) {
        const size_t d = pare_model_width(&split, k);
        g[k] = mat_zeros(w, d, d);
    }
    if (!w->st) probe_all(w, g, &split, in, seed);
    for (size_t k = 0; !w->st && k <= split.nblocks; k++) one_where_nothing(&g[k]);
    return g;
}
