/* tape_act.c - activations and their derivatives, with dropout and the factor of a gated FFN. */
#include "model/model_facts.h"
#include "tape_kernels.h"
#include <math.h>

static const double root_half = 0.70710678118654752440, root_2_pi = 0.79788456080286535588;
static const double root_1_2pi = 0.39894228040143267794, cubic = 0.044715;

static double derivative(pare_act a, double x)
{
    switch (a) {
    case PARE_ACT_NONE:
        return 1;
    case PARE_ACT_RELU:
        return x > 0 ? 1 : 0;
    case PARE_ACT_GELU:
        return 0.5 * (1 + erf(x * root_half)) + x * root_1_2pi * exp(-0.5 * x * x);
    case PARE_ACT_GELU_TANH: {
        const double t = tanh(root_2_pi * (x + cubic * x * x * x));
        return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * root_2_pi * (1 + 3 * cubic * x * x);
    }
    case PARE_ACT_SILU: {
        const double s = 1 / (1 + exp(-x));
        return s * (1 + x * (1 - s));
    }
    case PARE_ACT_TANH: {
        const double t = tanh(x);
        return 1 - t * t;
    }
    }
    return 1;
}

static double dropout_scale(const dropout_mask *k, size_t at)
{
    return !k || !k->keep ? 1 : k->keep[at] ? k->scale : 0;
}

static void act_span(void *self, const span *s)
{
    const act_job *const w = self;
    const rows *const x = w->s->pre, *const u = w->s->factor;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const pre = row_read(x, i, s->row[0]);
        const double *const factor = u ? row_read(u, i, s->row[1]) : NULL;
        double *const post = row_write(w->post, i, s->row[2]);
        for (size_t j = 0; j < x->d; j++)
            post[j] = pare_act_f64(w->s->act, pre[j]) * dropout_scale(w->s->dropout, i * x->d + j) *
                      (factor ? factor[j] : 1);
        row_done(w->post, i, post);
    }
}

static void act_backward_span(void *self, const span *s)
{
    const act_job *const w = self;
    const rows *const x = w->s->pre, *const u = w->s->factor;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const pre = row_read(x, i, s->row[0]);
        const double *const factor = u ? row_read(u, i, s->row[1]) : NULL;
        const double *const dpost = row_read(w->d, i, s->row[2]);
        double *const dfactor = u ? row_write(w->dfactor, i, s->row[3]) : NULL;
        double *const dpre = row_write(w->d, i, s->row[2]);
        for (size_t j = 0; j < x->d; j++) {
            const double g = dpost[j] * dropout_scale(w->s->dropout, i * x->d + j);
            if (factor) dfactor[j] = g * pare_act_f64(w->s->act, pre[j]);
            dpre[j] = g * derivative(w->s->act, pre[j]) * (factor ? factor[j] : 1);
        }
        if (factor) row_done(w->dfactor, i, dfactor);
        row_done(w->d, i, dpre);
    }
}

void tape_act(pare_tape *t, const act_step *s, rows *post)
{
    act_job w = {.s = s, .post = post};
    tape_spans(t, s->pre->n, s->pre->d, 0, NULL, post->t == PARE_F32 ? act_f32() : act_span, &w);
}

void tape_act_backward(pare_tape *t, const act_step *s, rows *d, rows *dfactor)
{
    act_job w = {.s = s, .d = d, .dfactor = dfactor};
    tape_spans(t, s->pre->n, s->pre->d, 0, NULL, d->t == PARE_F32 ? act_f32() : act_backward_span,
               &w);
}
