/* The gradient metric of every place of the stream (lm.h): how much the outputs move with it.
 *
 * For a model whose outputs are logits, how much the distribution moves: with p = softmax(y) and
 * random signs s, the slopes of  sum_j s_j sqrt(p_j) (y_j - p.y)  have the second moment
 * J^T (diag p - p p^T) J, so that  d^T G d / 2  is the divergence that a small error d makes, in
 * nats. For other outputs, random signs on all of them. No labels are needed. */
#include "lm_auto.h"
#include "sublayers.h"
#include <pare/gradient.h>
#include <math.h>

enum {
    TOKENS = 4096,
    LEAST = 64
}; /* looked at in all; the last input is cut short, not that short */

static bool has_logits(const pare_model *m)
{
    return m->top.tied || pare_has(&m->top.out.w);
}

/* One row: what goes back from the outputs y. */
static void draw(float *dy, const float *y, size_t n, bool logits, pare_rng *rng)
{
    float most = y[0];
    double sum = 0, mean = 0;
    for (size_t j = 0; j < n; j++) dy[j] = pare_rng_u32(rng) & 1 ? 1 : -1;
    if (!logits || n < 2) return;
    for (size_t j = 1; j < n; j++) most = y[j] > most ? y[j] : most;
    for (size_t j = 0; j < n; j++) sum += exp((double)(y[j] - most));
    for (size_t j = 0; j < n; j++) {
        const double p = exp((double)(y[j] - most)) / sum;
        dy[j] *= (float)sqrt(p);
        mean += (double)dy[j];
    }
    for (size_t j = 0; j < n; j++) dy[j] -= (float)(exp((double)(y[j] - most)) / sum * mean);
}

/* g[k] += slopes^T slopes of one input. */
static void probe(pare_work *w, pare_mat *g, size_t places, pare_tape *t, const pare_input *in,
                  const pare_model *m, pare_rng *rng)
{
    const pare_mode still = {.momentum = 0.1};
    const size_t rows = pare_output_rows(m, in), outs = pare_model_outputs(m);
    const pare_mark mark = pare_arena_mark(w->arena);
    const void *y = NULL;
    float *const dy = pare_work_alloc(w, rows * outs, sizeof *dy);
    if (!w->st) w->st = pare_tape_forward(t, in, &still, &y, w->err);
    for (size_t i = 0; !w->st && i < rows; i++)
        draw(dy + i * outs, (const float *)y + i * outs, outs, has_logits(m), rng);
    if (!w->st) w->st = pare_tape_backward(t, dy, NULL, NULL, w->err);
    for (size_t k = 0; !w->st && k < places; k++) {
        const pare_mark here = pare_arena_mark(w->arena);
        const float *const slope = pare_tape_dstream(t, k);
        pare_mat s = mat_zeros(w, in->batch * in->tokens, g[k].rows);
        for (size_t i = 0; !w->st && i < s.rows * s.cols; i++) s.v[i] = (double)slope[i];
        lm_gram(w, &g[k], &s);
        pare_arena_reset(w->arena, here);
    }
    pare_arena_reset(w->arena, mark);
}

/* One sequence of input i, no longer than `most`. */
static pare_input sequence(const pare_input *in, size_t b, size_t most)
{
    pare_input one = *in;
    if (one.ids) one.ids += b * in->tokens;
    if (one.x) one.x += b * in->tokens * in->width;
    one.batch = 1;
    if (!one.graph && one.tokens > most) one.tokens = most;
    return one;
}

static void probe_all(pare_work *w, pare_mat *g, const pare_model *m, const pare_inputs *data,
                      size_t most, uint64_t seed)
{
    pare_params *p = NULL;
    pare_tape *t = NULL;
    pare_rng rng = pare_rng_at(seed, 0);
    size_t done = 0;
    if (!w->st) w->st = pare_params_new(&p, m, PARE_F32, w->err);
    if (!w->st) w->st = pare_tape_new(&t, p, w->exec, w->err);
    for (size_t i = 0; !w->st && i < data->n && done + LEAST <= TOKENS; i++)
        for (size_t b = 0; !w->st && b < data->in[i].batch && done + LEAST <= TOKENS; b++) {
            const size_t room = TOKENS - done;
            const pare_input in = sequence(&data->in[i], b, most && most < room ? most : room);
            probe(w, g, m->nblocks + 1, t, &in, m, &rng);
            done += in.tokens;
            if (!w->st) w->st = pare_progress(w->exec, "gradient metric", done, TOKENS, w->err);
        }
    for (size_t k = 0; !w->st && k <= m->nblocks; k++)
        for (size_t e = 0; e < g[k].rows * g[k].cols; e++) g[k].v[e] /= (double)(done ? done : 1);
    pare_tape_free(t);
    pare_params_free(p);
}

pare_mat *lm_gradient_metric(pare_work *w, const lm *m, const pare_inputs *data, size_t most,
                             uint64_t seed)
{
    pare_mat *const g = pare_work_alloc(w, m->nplaces, sizeof *g);
    for (size_t k = 0; !w->st && k < m->nplaces; k++) g[k] = mat_zeros(w, m->width[k], m->width[k]);
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_model s = sublayers_of(w, m->m);
    if (!w->st) probe_all(w, g, &s, data, most, seed);
    pare_arena_reset(w->arena, mark);
    return g;
}
