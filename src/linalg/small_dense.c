/* small_dense.c - y = x w^T + b for at most 16 inputs and 16 outputs.
 *
 * w is transposed once into columns of 8 or 16 (1 KB on the stack). A tile of rows stays in
 * registers: each number of x is broadcast to one column of w or to its two halves. No operand is
 * copied, so that a row of 8 costs little more than its eight products. */
#include "base/vexp.h"
#include "small_dense.h"

#if defined(__x86_64__)
#define INLINE PARE_INLINE PARE_AVX2

enum { VEC = 8, TALL = 8 /* rows of a tile with one vector of outputs; half as many with two */ };

typedef struct narrow_map {
    float w[NARROW][NARROW]; /* column k of the weight, filled up with zeros */
    float b[NARROW];
    size_t in, out;
} narrow_map;

/* How many of the eight outputs from `first` on there are. */
INLINE __m256i outputs(const narrow_map *m, size_t first)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)(m->out - first)), lane);
}

/* `rows` rows of `vecs` vectors, both constants where this is inlined. */
INLINE void tile(float *y, size_t ldy, const float *x, size_t ldx, const narrow_map *m,
                 const size_t rows, const size_t vecs)
{
    __m256 acc[TALL][2];
#pragma GCC unroll 8
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (size_t v = 0; v < vecs; v++) acc[r][v] = _mm256_loadu_ps(m->b + VEC * v);
    for (size_t k = 0; k < m->in; k++) {
#pragma GCC unroll 8
        for (size_t r = 0; r < rows; r++) {
            const __m256 a = _mm256_set1_ps(x[r * ldx + k]);
#pragma GCC unroll 2
            for (size_t v = 0; v < vecs; v++)
                acc[r][v] = _mm256_fmadd_ps(a, _mm256_loadu_ps(m->w[k] + VEC * v), acc[r][v]);
        }
    }
    const __m256i on = outputs(m, VEC * (vecs - 1));
    const bool whole = m->out == VEC * vecs; /* a masked store is slow on some CPUs */
#pragma GCC unroll 8
    for (size_t r = 0; r < rows; r++) {
        float *const last = y + r * ldy + VEC * (vecs - 1);
        if (vecs == 2) _mm256_storeu_ps(y + r * ldy, acc[r][0]);
        if (whole)
            _mm256_storeu_ps(last, acc[r][vecs - 1]);
        else
            _mm256_maskstore_ps(last, on, acc[r][vecs - 1]);
    }
}

PARE_AVX2 static void one_vector(float *y, size_t ldy, const float *x, size_t ldx, size_t n,
                                 const narrow_map *m)
{
    size_t i = 0;
    for (; i + TALL <= n; i += TALL) tile(y + i * ldy, ldy, x + i * ldx, ldx, m, TALL, 1);
    for (; i < n; i++) tile(y + i * ldy, ldy, x + i * ldx, ldx, m, 1, 1);
}

PARE_AVX2 static void two_vectors(float *y, size_t ldy, const float *x, size_t ldx, size_t n,
                                  const narrow_map *m)
{
    enum { SOME = TALL / 2 };
    size_t i = 0;
    for (; i + SOME <= n; i += SOME) tile(y + i * ldy, ldy, x + i * ldx, ldx, m, SOME, 2);
    for (; i < n; i++) tile(y + i * ldy, ldy, x + i * ldx, ldx, m, 1, 2);
}

bool narrow_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t n, const pare_weight *w,
                const pare_weight *b)
{
    if (w->rows > NARROW || w->cols > NARROW) return false;
    if (simd_best() < SIMD_AVX2) return false;
    narrow_map m = {.in = w->cols, .out = w->rows};
    for (size_t o = 0; o < m.out; o++) {
        for (size_t k = 0; k < m.in; k++) m.w[k][o] = (float)pare_weight_at(w, o * m.in + k);
        if (b) m.b[o] = (float)pare_weight_at(b, o);
    }
    if (m.out <= VEC)
        one_vector(y, ldy, x, ldx, n, &m);
    else
        two_vectors(y, ldy, x, ldx, n, &m);
    return true;
}
#else
bool narrow_f32(float *y, size_t ldy, const float *x, size_t ldx, size_t n, const pare_weight *w,
                const pare_weight *b)
{
    (void)y, (void)ldy, (void)x, (void)ldx, (void)n, (void)w, (void)b;
    return false;
}
#endif
