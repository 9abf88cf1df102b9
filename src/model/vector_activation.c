/* vector_activation.c - activations of the f32 engine and of the decoder.
 *
 * exp: base/vexp.h.
 * tanh: an odd polynomial below 0.625 (Cephes tanhf), 1 - 2 / (e^2x + 1) above.
 * erf: x + x P(x^2) below 0.928, 1 - e^-Q(x) above (Juffa's minimax coefficients).
 * All within 4 ulp, which is what src/cert/enclose.h grants (tests/model/test_vector_kernels.c).
 *
 * gelu_tanh is written as x / (1 + e^-2t): tanh t = 1 - 2 / (e^2t + 1). A nan stays a nan. */
#include "vector_kernels.h"
#include <math.h>
#include "base/vexp.h"
#include <pare/model.h>
#include <string.h>

PARE_INLINE float clamp(float x, float lo, float hi)
{
    x = pare_choose(x < lo, lo, x); /* a nan fails both comparisons */
    return pare_choose(x > hi, hi, x);
}

PARE_INLINE float tanh_scalar(float x)
{
    const float a = fabsf(x), z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z + -5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z + -3.33332819422e-1f;
    const float small = p * z * a + a;
    const float large = 1 - 2 / (pare_exp_scalar(2 * a) + 1);
    return copysignf(pare_choose(a < 0.625f, small, large), x);
}

PARE_INLINE float erf_scalar(float x)
{
    const float t = clamp(fabsf(x), 0, 8), s = t * t; /* erf is 1 long before 8 */
    float p = -5.96761703e-4f;
    p = p * s + 4.99119423e-3f;
    p = p * s + -2.67681349e-2f;
    p = p * s + 1.12819925e-1f;
    p = p * s + -3.76125336e-1f;
    p = p * s + 1.28379166e-1f;
    const float small = p * t + t;
    float q = (-1.72853470e-5f * t + 3.83197126e-4f) * s + (-3.88396438e-3f * t + 2.42546219e-2f);
    q = q * t + -1.06777877e-1f;
    q = q * t + -6.34846687e-1f;
    q = q * t + -1.28717512e-1f;
    const float large = 1 - pare_exp_scalar(q * t - t);
    return copysignf(pare_choose(t < 0.927734375f, small, large), x);
}

PARE_INLINE float activation_scalar(pare_act act, float x)
{
    switch (act) {
    case PARE_ACT_NONE:
        return x;
    case PARE_ACT_RELU:
        return x > 0 ? x : 0;
    case PARE_ACT_GELU:
        return 0.5f * x * (1 + erf_scalar(x * 0.707106781186547524f));
    case PARE_ACT_GELU_TANH: {
        const float t = 1.59576912160573071f * (x + 0.044715f * x * x * x); /* 2 sqrt(2 / pi) */
        return x / (1 + pare_exp_scalar(-t));
    }
    case PARE_ACT_SILU:
        return x / (1 + pare_exp_scalar(-x));
    case PARE_ACT_TANH:
        return tanh_scalar(x);
    }
    return x;
}

/* Through a copy: the compiler cannot know that y and u are apart. */
PARE_INLINE void activate_lanes(float *y, const float *u, pare_act act)
{
    float v[LANES];
    if (u)
        for (size_t l = 0; l < LANES; l++) v[l] = activation_scalar(act, y[l]) * u[l];
    else
        for (size_t l = 0; l < LANES; l++) v[l] = activation_scalar(act, y[l]);
    memcpy(y, v, sizeof v);
}

/* What is left over goes through the same sixteen lanes. */
PARE_INLINE void activate_row(float *y, const float *u, size_t n, pare_act act)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) activate_lanes(y + i, u ? u + i : NULL, act);
    if (i == n) return;
    float v[LANES] = {0}, w[LANES] = {0};
    memcpy(v, y + i, (n - i) * sizeof *v);
    if (u) memcpy(w, u + i, (n - i) * sizeof *w);
    activate_lanes(v, u ? w : NULL, act);
    memcpy(y + i, v, (n - i) * sizeof *v);
}

/* The activation is a constant in every loop. */
PARE_INLINE void activate(float *y, const float *u, size_t n, pare_act act)
{
    if (act == PARE_ACT_NONE) activate_row(y, u, n, PARE_ACT_NONE);
    if (act == PARE_ACT_RELU) activate_row(y, u, n, PARE_ACT_RELU);
    if (act == PARE_ACT_GELU) activate_row(y, u, n, PARE_ACT_GELU);
    if (act == PARE_ACT_GELU_TANH) activate_row(y, u, n, PARE_ACT_GELU_TANH);
    if (act == PARE_ACT_SILU) activate_row(y, u, n, PARE_ACT_SILU);
    if (act == PARE_ACT_TANH) activate_row(y, u, n, PARE_ACT_TANH);
}

/* A pare_act with its factors u, or a letter of vector_function. */
typedef void apply_fn(float *y, const float *u, size_t n, int what);

PARE_INLINE void apply(float *y, const float *u, size_t n, int what)
{
    if (what < 'e') {
        activate(y, u, n, (pare_act)what);
        return;
    }
    for (size_t i = 0; i < n; i++)
        y[i] = what == 'e'   ? pare_exp_scalar(y[i])
               : what == 't' ? tanh_scalar(y[i])
                             : erf_scalar(y[i]);
}

static void apply_portable(float *y, const float *u, size_t n, int what)
{
    apply(y, u, n, what);
}
PARE_AVX2 static void apply_avx2(float *y, const float *u, size_t n, int what)
{
    apply(y, u, n, what);
}
PARE_AVX512 static void apply_avx512(float *y, const float *u, size_t n, int what)
{
    apply(y, u, n, what);
}
static apply_fn *const apply_with[] = {apply_portable, apply_avx2, apply_avx512};

void vector_activation(simd_isa isa, float *y, const float *u, size_t n, pare_act act)
{
    if (act != PARE_ACT_NONE || u) apply_with[isa](y, u, n, (int)act);
}

void vector_function(simd_isa isa, float *y, size_t n, char which)
{
    apply_with[isa](y, NULL, n, which);
}
