/* vector_norm.c - norms and skips of the f32 engine.
 *
 * The sums over a row are f32 with sixteen partial sums; what is done once per row (divisor, root,
 * reciprocal) is f64. A layer norm subtracts the mean before it squares. */
#include "vector_kernels.h"
#include <math.h>
#include <string.h>

/* Sixteen partial sums of f(v_j), then a tree; the rest one by one. */
PARE_INLINE float sum_lanes(const float part[LANES], float rest)
{
    float s[LANES];
    for (size_t l = 0; l < LANES; l++) s[l] = part[l];
    for (size_t w = LANES / 2; w > 0; w /= 2)
        for (size_t l = 0; l < w; l++) s[l] += s[l + w];
    return s[0] + rest;
}

PARE_INLINE float sum(const float *v, size_t d)
{
    float part[LANES] = {0}, rest = 0;
    size_t j = 0;
    for (; j + LANES <= d; j += LANES)
        for (size_t l = 0; l < LANES; l++) part[l] += v[j + l];
    for (; j < d; j++) rest += v[j];
    return sum_lanes(part, rest);
}

PARE_INLINE float sum_of_squares(const float *v, size_t d)
{
    float part[LANES] = {0}, rest = 0;
    size_t j = 0;
    for (; j + LANES <= d; j += LANES)
        for (size_t l = 0; l < LANES; l++) part[l] += v[j + l] * v[j + l];
    for (; j < d; j++) rest += v[j] * v[j];
    return sum_lanes(part, rest);
}

/* y = (x a) gain + bias */
PARE_INLINE float affine(float x, float a, const float *gain, const float *bias, size_t j)
{
    x *= a;
    if (gain) x *= gain[j];
    if (bias) x += bias[j];
    return x;
}

PARE_INLINE void scale_row(float *y, const float *x, float a, const float *gain, const float *bias,
                           size_t d)
{
    size_t j = 0;
    for (; j + LANES <= d; j += LANES) {
        float v[LANES]; /* y may be x: read all, then write */
        for (size_t l = 0; l < LANES; l++) v[l] = affine(x[j + l], a, gain, bias, j + l);
        memcpy(y + j, v, sizeof v);
    }
    for (; j < d; j++) y[j] = affine(x[j], a, gain, bias, j);
}

/* y = x + c + offset */
PARE_INLINE void shift_row(float *y, const float *x, float c, const float *offset, size_t d)
{
    size_t j = 0;
    for (; j + LANES <= d; j += LANES) {
        float v[LANES];
        for (size_t l = 0; l < LANES; l++) v[l] = x[j + l] + (offset ? offset[j + l] : c);
        memcpy(y + j, v, sizeof v);
    }
    for (; j < d; j++) y[j] = x[j] + (offset ? offset[j] : c);
}

/* 1 / sqrt((squares + shift) / divisor + eps); 0 for 0, so that a zero row stays zero. */
PARE_INLINE float inverse_norm(const vector_norm *k, float squares)
{
    const double by = sqrt(((double)squares + k->shift) / k->divisor + k->eps);
    return by > 0 ? (float)(1 / by) : 0;
}

PARE_INLINE void normalize_rows(float *y, const float *x, size_t n, size_t d, const vector_norm *k,
                                const float *gain, const float *bias)
{
    for (size_t i = 0; i < n; i++, x += d, y += d) {
        const float *v = x;
        float a = 1;
        if (k->offset) {
            shift_row(y, v, 0, k->offset, d);
            v = y;
        }
        if (k->kind == PARE_NORM_LAYER || k->kind == PARE_NORM_MEAN) {
            shift_row(y, v, -(sum(v, d) / (float)d), NULL, d);
            v = y;
        }
        if (k->kind == PARE_NORM_LAYER || k->kind == PARE_NORM_RMS)
            a = inverse_norm(k, sum_of_squares(v, d));
        scale_row(y, v, a, gain, bias, d);
    }
}

/* Whether there is a gain or a bias is known before the loops. */
PARE_INLINE void normalize(float *y, const float *x, size_t n, size_t d, const vector_norm *k)
{
    if (k->gain && k->bias)
        normalize_rows(y, x, n, d, k, k->gain, k->bias);
    else if (k->gain)
        normalize_rows(y, x, n, d, k, k->gain, NULL);
    else
        normalize_rows(y, x, n, d, k, NULL, k->bias);
}

PARE_INLINE void add(float *y, const float *x, const float *w, size_t d)
{
    size_t j = 0;
    for (; j + LANES <= d; j += LANES) {
        float v[LANES]; /* the compiler cannot know that y and x are apart */
        for (size_t l = 0; l < LANES; l++) v[l] = y[j + l] + (w ? w[j + l] * x[j + l] : x[j + l]);
        memcpy(y + j, v, sizeof v);
    }
    for (; j < d; j++) y[j] += w ? w[j] * x[j] : x[j];
}

PARE_INLINE void add_rows(float *y, const float *x, const float *w, size_t n, size_t d)
{
    if (!w) {
        add(y, x, NULL, n * d);
        return;
    }
    for (size_t i = 0; i < n; i++) add(y + i * d, x + i * d, w, d);
}

static void normalize_portable(float *y, const float *x, size_t n, size_t d, const vector_norm *k)
{
    normalize(y, x, n, d, k);
}
PARE_AVX2 static void normalize_avx2(float *y, const float *x, size_t n, size_t d,
                                     const vector_norm *k)
{
    normalize(y, x, n, d, k);
}
PARE_AVX512 static void normalize_avx512(float *y, const float *x, size_t n, size_t d,
                                         const vector_norm *k)
{
    normalize(y, x, n, d, k);
}

void vector_normalize(simd_isa isa, float *y, const float *x, size_t n, size_t d,
                      const vector_norm *k)
{
    static void (*const with[])(float *, const float *, size_t, size_t, const vector_norm *) = {
        normalize_portable, normalize_avx2, normalize_avx512};
    with[isa](y, x, n, d, k);
}

static void add_portable(float *y, const float *x, const float *w, size_t n, size_t d)
{
    add_rows(y, x, w, n, d);
}
PARE_AVX2 static void add_avx2(float *y, const float *x, const float *w, size_t n, size_t d)
{
    add_rows(y, x, w, n, d);
}
PARE_AVX512 static void add_avx512(float *y, const float *x, const float *w, size_t n, size_t d)
{
    add_rows(y, x, w, n, d);
}

void vector_add(simd_isa isa, float *y, const float *x, const float *w, size_t n, size_t d)
{
    static void (*const with[])(float *, const float *, const float *, size_t,
                                size_t) = {add_portable, add_avx2, add_avx512};
    with[isa](y, x, w, n, d);
}
