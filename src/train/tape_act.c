/* tape_act.c - activations f and their derivatives f', with dropout and the factor of a gated FFN.
 *
 * In f32:
 *
 *   gelu       f = x P(x),  f' = P + x p,   p(x) = exp(-x^2/2) / sqrt(2 pi),
 *              P(-|x|) = exp(-x^2/2) (a1 t + ... + a5 t^5) / 2,   t = 1 / (1 + c |x|)
 *              (Abramowitz and Stegun 7.1.26, absolute error 1.5e-7): one exponential serves both
 *   gelu_tanh  f = x s,     f' = s + x s (1 - s) 2 t',   s = 1 / (1 + exp(-2 t)), as
 *              tanh t = 2 s - 1
 *   silu       f = x s,     f' = s (1 + x (1 - s)),      s = 1 / (1 + exp(-x))
 *   tanh       f = 1 - 2 / (exp(2 x) + 1) */
#include "simd_lanes.h"
#include "base/vexp.h"
#include "model/model_facts.h"
#include <math.h>

/* Activations: forward (post) or backward (d, dfactor). */
typedef struct act_job {
    const act_step *s;
    rows *post, *d, *dfactor;
} act_job;

/* ---- f64 -------------------------------------------------------------------------------------- */

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
    const rows *const x = w->s->pre, *const u = w->s->factor, *const to = w->post ? w->post : w->d;
    for (size_t i = s->first; i < s->end; i++) {
        const double *const pre = row_read(x, i, s->row[0]);
        const double *const factor = u ? row_read(u, i, s->row[1]) : NULL;
        const double *const dpost = w->post ? NULL : row_read(w->d, i, s->row[2]);
        double *const dfactor = dpost && u ? row_write(w->dfactor, i, s->row[3]) : NULL;
        double *const out = row_write(to, i, s->row[2]); /* post, or d pre in the place of d post */
        for (size_t j = 0; j < x->d; j++) {
            const double drop = dropout_scale(w->s->dropout, i * x->d + j);
            const double f = factor ? factor[j] : 1;
            if (!dpost) {
                out[j] = pare_act_f64(w->s->act, pre[j]) * drop * f;
                continue;
            }
            const double g = dpost[j] * drop;
            if (factor) dfactor[j] = g * pare_act_f64(w->s->act, pre[j]);
            out[j] = g * derivative(w->s->act, pre[j]) * f;
        }
        if (dfactor) row_done(w->dfactor, i, dfactor);
        row_done(to, i, out);
    }
}

/* ---- f32 -------------------------------------------------------------------------------------- */

/* y = act(x), d = act'(x). */
PARE_INLINE void act_one(pare_act act, float x, float *y, float *d)
{
    *y = x;
    *d = 1;
    if (act == PARE_ACT_RELU) {
        *y = x > 0 ? x : 0;
        *d = x > 0 ? 1 : 0;
    } else if (act == PARE_ACT_GELU) {
        const float a = fabsf(x), t = 1 / (1 + 0.23164189f * a), e = pare_exp_scalar(-0.5f * x * x);
        const float p =
            t * (0.127414796f +
                 t * (-0.142248368f + t * (0.710706871f + t * (-0.726576014f + t * 0.530702715f))));
        const float low = e * p, part = x > 0 ? 1 - low : low;
        *y = x * part;
        *d = part + x * (0.39894228f * e);
    } else if (act == PARE_ACT_GELU_TANH) {
        const float z = 1.59576912f * (x + 0.044715f * x * x * x);
        const float s = 1 / (1 + pare_exp_scalar(-z));
        *y = x * s;
        *d = s + x * s * (1 - s) * (1.59576912f * (1 + 0.134145f * x * x));
    } else if (act == PARE_ACT_SILU) {
        const float s = 1 / (1 + pare_exp_scalar(-x));
        *y = x * s;
        *d = s * (1 + x * (1 - s));
    } else if (act == PARE_ACT_TANH) {
        *y = 1 - 2 / (pare_exp_scalar(2 * x) + 1);
        *d = 1 - *y * *y;
    }
}

/* y = act(x), slope = act'(x), lane by lane. */
PARE_INLINE void act_lanes(pare_act act, const lanes *x, lanes *y, lanes *slope)
{
    float a[LANES], b[LANES], c[LANES];
    *(lanes_unaligned *)a = *x;
    for (size_t l = 0; l < LANES; l++) act_one(act, a[l], &b[l], &c[l]);
    *y = *(const lanes_unaligned *)b;
    *slope = *(const lanes_unaligned *)c;
}

PARE_INLINE void act_rows(const act_job *w, const span *s, pare_act act)
{
    const rows *const x = w->s->pre, *const u = w->s->factor;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const pre = rows_at(x, i, 0), *const factor = u ? rows_at(u, i, 0) : NULL;
        float *const post = rows_at(w->post, i, 0);
        for (size_t j = 0; j < x->d; j += LANES) {
            const size_t n = lanes_count(j, x->d);
            lanes v, k, g, y, d;
            lanes_load(&v, pre, j, n, 0);
            lanes_load(&g, factor, j, n, 1);
            lanes_dropout(&k, w->s->dropout, i * x->d + j, n);
            act_lanes(act, &v, &y, &d);
            y = y * k * g;
            lanes_store(post, &y, j, n);
        }
    }
}

PARE_INLINE void act_rows_backward(const act_job *w, const span *s, pare_act act)
{
    const rows *const x = w->s->pre, *const u = w->s->factor;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const pre = rows_at(x, i, 0), *const factor = u ? rows_at(u, i, 0) : NULL;
        float *const dpost = rows_at(w->d, i, 0), *const dfactor =
                                                      u ? rows_at(w->dfactor, i, 0) : NULL;
        for (size_t j = 0; j < x->d; j += LANES) {
            const size_t n = lanes_count(j, x->d);
            lanes v, k, g, e, y, d;
            lanes_load(&v, pre, j, n, 0);
            lanes_load(&e, dpost, j, n, 0);
            lanes_load(&g, factor, j, n, 1);
            lanes_dropout(&k, w->s->dropout, i * x->d + j, n);
            act_lanes(act, &v, &y, &d);
            y = e * k * y;
            d = e * k * d * g;
            if (u) lanes_store(dfactor, &y, j, n);
            lanes_store(dpost, &d, j, n);
        }
    }
}

PARE_INLINE void act_forward_or_backward(const act_job *w, const span *s, pare_act act)
{
    if (w->post)
        act_rows(w, s, act);
    else
        act_rows_backward(w, s, act);
}

/* The activation is a constant in every loop. */
PARE_INLINE void act_any(const act_job *w, const span *s)
{
    const pare_act act = w->s->act;
    if (act == PARE_ACT_NONE) act_forward_or_backward(w, s, PARE_ACT_NONE);
    if (act == PARE_ACT_RELU) act_forward_or_backward(w, s, PARE_ACT_RELU);
    if (act == PARE_ACT_GELU) act_forward_or_backward(w, s, PARE_ACT_GELU);
    if (act == PARE_ACT_GELU_TANH) act_forward_or_backward(w, s, PARE_ACT_GELU_TANH);
    if (act == PARE_ACT_SILU) act_forward_or_backward(w, s, PARE_ACT_SILU);
    if (act == PARE_ACT_TANH) act_forward_or_backward(w, s, PARE_ACT_TANH);
}

LANES_DISPATCH(act_f32, act_any)

void tape_act(pare_tape *t, const act_step *s, rows *post)
{
    act_job w = {.s = s, .post = post};
    tape_spans(t, s->pre->n, s->pre->d, 0, NULL, post->t == PARE_F32 ? act_f32() : act_span, &w);
}

void tape_act_backward(pare_tape *t, const act_step *s, rows *d, rows *dfactor)
{
    act_job w = {.s = s, .d = d, .dfactor = dfactor};
    tape_spans(t, s->pre->n, s->pre->d, 0, NULL, d->t == PARE_F32 ? act_f32() : act_span, &w);
}
