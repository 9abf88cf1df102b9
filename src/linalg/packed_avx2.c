/* packed_avx2.c - the kernels of packed matrices with AVX2 and FMA.
 *
 * Products of 8-bit integers are added in pairs with saturation to 16 bits, so codes are made
 * signed, and their sign goes to the other factor: 128 x 127 + 128 x 127 fits. Codes of 4 bits stay
 * as they are: 15 x 127 x 2 fits. */
#if defined(__x86_64__)
#define VEC_AVX2
#include "packed_tile.h"

PARE_AVX2 void packed_f32_avx2(const packed_job *j)
{
    packed_f32(j);
}

PARE_AVX2 void packed_round_avx2(const packed_rounding *r)
{
    packed_round(r);
}

enum { LINES = PARE_PANEL / 8 }; /* vectors of 8 outputs in a panel */

PARE_INLINE PARE_AVX2 __m256i four_products(__m256i sum, __m256i magnitude, __m256i factor)
{
    const __m256i pairs = _mm256_maddubs_epi16(magnitude, factor);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

PARE_INLINE PARE_AVX2 __m256i broadcast_four(const int8_t *q)
{
    int word;
    memcpy(&word, q, sizeof word);
    return _mm256_set1_epi32(word);
}

/* Inputs [i, end) of a group: sum = sum_i q_i c_i; 8 bits: (c_i - 128). */
PARE_INLINE PARE_AVX2 void group_sums(__m256i sum[LINES], const uint8_t *codes, const int8_t *q,
                                      size_t n, bool nibbles)
{
    const __m256i low = _mm256_set1_epi8(15), sign = _mm256_set1_epi8((char)0x80);
    for (size_t i = 0; i < n; i += nibbles ? 8u : 4u, codes += 4 * PARE_PANEL) {
        const __m256i x = broadcast_four(q + i), x4 = nibbles ? broadcast_four(q + i + 4) : x;
#pragma GCC unroll 4
        for (size_t l = 0; l < LINES; l++) {
            const __m256i c = _mm256_loadu_si256((const __m256i *)(const void *)(codes + 32 * l));
            if (nibbles) {
                const __m256i high = _mm256_and_si256(_mm256_srli_epi16(c, 4), low);
                sum[l] = four_products(sum[l], _mm256_and_si256(c, low), x);
                sum[l] = four_products(sum[l], high, x4);
            } else {
                const __m256i s = _mm256_xor_si256(c, sign);
                sum[l] = four_products(sum[l], _mm256_abs_epi8(s), _mm256_sign_epi8(x, s));
            }
        }
    }
}

PARE_INLINE PARE_AVX2 void panel_row(const packed_job *j, size_t row, size_t panel, bool nibbles)
{
    const packed_matrix *const w = j->p.w;
    const size_t per_input = PARE_PANEL / (nibbles ? 2u : 1u);
    const uint8_t *const codes = w->codes + panel * w->depth * per_input;
    const int8_t *const q = j->q + row * w->depth;
    vec y[LINES];
    for (size_t l = 0; l < LINES; l++) y[l] = vec_set(0);
    for (size_t g = 0, i = 0; g < w->groups; g++, i += w->group) {
        const size_t n = w->depth - i < w->group ? w->depth - i : w->group;
        const int32_t all = j->qsums[row * w->groups + g];
        const float s = j->scales[row * w->groups + g];
        const float *const scale = w->scale + (panel * w->groups + g) * PARE_PANEL;
        const float *const offset = scale - w->scale + w->offset;
        __m256i sum[LINES];
        for (size_t l = 0; l < LINES; l++) sum[l] = _mm256_set1_epi32(nibbles ? -w->zero * all : 0);
        group_sums(sum, codes + i * per_input, q + i, n, nibbles);
#pragma GCC unroll 4
        for (size_t l = 0; l < LINES; l++) {
            y[l] =
                vec_fma(vec_load(scale + 8 * l) * vec_set(s), packed_to_float((ivec)sum[l]), y[l]);
            if (w->offset) y[l] = vec_fma(vec_load(offset + 8 * l), vec_set(s * (float)all), y[l]);
        }
    }
    for (size_t l = 0; l < LINES; l++) packed_finish(&j->p, row, panel * PARE_PANEL + 8 * l, y[l]);
}

PARE_AVX2 static void rows_of_bytes(const packed_job *j)
{
    for (size_t e = j->first; e < j->first + j->panels; e++)
        for (size_t r = 0; r < j->p.n; r++) panel_row(j, r, e, false);
}

PARE_AVX2 static void rows_of_halves(const packed_job *j)
{
    for (size_t e = j->first; e < j->first + j->panels; e++)
        for (size_t r = 0; r < j->p.n; r++) panel_row(j, r, e, true);
}

void packed_int8_avx2(const packed_job *j)
{
    if (j->p.w->kind == PACKED_INT4)
        rows_of_halves(j);
    else
        rows_of_bytes(j);
}
#else
typedef int packed_avx2_is_for_x86;
#endif
