/* packed_avx512.c - the kernels of packed matrices with AVX-512, and with its VNNI, which adds four
 * products of unsigned codes and signed 8-bit integers to 32 bits at once, without saturation. */
#if defined(__x86_64__)
#define VEC_AVX512
#include "packed_tile.h"

#define PARE_VNNI __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,fma")))

PARE_AVX512 void packed_f32_avx512(const packed_job *j)
{
    packed_f32(j);
}

PARE_AVX512 void packed_round_avx512(const packed_rounding *r)
{
    packed_round(r);
}

/* Rows and panels of a tile: 12 rows x 32 outputs are 24 sums. */
enum { LINES = PARE_PANEL / 16, MOST = 12, FEW = 4, FLAT = 4 };

PARE_INLINE PARE_VNNI __m512i broadcast_four(const int8_t *q)
{
    int word;
    memcpy(&word, q, sizeof word);
    return _mm512_set1_epi32(word);
}

/* Codes of eight inputs of a panel: inputs 0 to 3 of 16 outputs each, and 4 to 7. */
typedef struct codes8 {
    __m512i a0, a1, b0, b1;
} codes8;

PARE_INLINE PARE_VNNI codes8 load_codes(const uint8_t *at, bool nibbles)
{
    const __m512i low = _mm512_set1_epi8(15);
    codes8 c;
    c.a0 = _mm512_loadu_si512(at);
    c.a1 = _mm512_loadu_si512(at + 64);
    if (nibbles) {
        c.b0 = _mm512_and_si512(_mm512_srli_epi16(c.a0, 4), low);
        c.b1 = _mm512_and_si512(_mm512_srli_epi16(c.a1, 4), low);
        c.a0 = _mm512_and_si512(c.a0, low);
        c.a1 = _mm512_and_si512(c.a1, low);
    } else {
        c.b0 = _mm512_loadu_si512(at + 128);
        c.b1 = _mm512_loadu_si512(at + 192);
    }
    return c;
}

PARE_INLINE PARE_VNNI void add_eight(__m512i sum[LINES], const codes8 *c, const int8_t *q)
{
    const __m512i x = broadcast_four(q), x4 = broadcast_four(q + 4);
    sum[0] = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum[0], c->a0, x), c->b0, x4);
    sum[1] = _mm512_dpbusd_epi32(_mm512_dpbusd_epi32(sum[1], c->a1, x), c->b1, x4);
}

/* sum += the products of n inputs, eight at a time: `rows` rows and one panel, or one row and
 * `panels`. */
PARE_INLINE PARE_VNNI void group_sums(__m512i sum[MOST][LINES], const uint8_t *codes,
                                      size_t panel_bytes, const int8_t *q, size_t ldq, size_t n,
                                      size_t rows, size_t panels, bool nibbles)
{
    for (size_t i = 0; i < n; i += 8, codes += (nibbles ? 4 : 8) * PARE_PANEL) {
        if (panels == 1) {
            const codes8 c = load_codes(codes, nibbles);
#pragma GCC unroll 16
            for (size_t r = 0; r < rows; r++) add_eight(sum[r], &c, q + r * ldq + i);
        } else {
#pragma GCC unroll 16
            for (size_t e = 0; e < panels; e++) {
                const codes8 c = load_codes(codes + e * panel_bytes, nibbles);
                add_eight(sum[e], &c, q + i);
            }
        }
    }
}

PARE_INLINE PARE_VNNI void int8_tile(const packed_job *j, size_t row, size_t rows, size_t panel,
                                     size_t panels, bool nibbles)
{
    const packed_matrix *const w = j->p.w;
    const size_t per_input = PARE_PANEL / (nibbles ? 2u : 1u), bytes = w->depth * per_input;
    const size_t tiles = rows + panels - 1;
    vec y[MOST][LINES];
#pragma GCC unroll 16
    for (size_t t = 0; t < tiles; t++)
#pragma GCC unroll 2
        for (size_t l = 0; l < LINES; l++) y[t][l] = vec_set(0);
    for (size_t g = 0, i = 0; g < w->groups; g++, i += w->group) {
        const size_t n = w->depth - i < w->group ? w->depth - i : w->group;
        __m512i sum[MOST][LINES];
#pragma GCC unroll 16
        for (size_t t = 0; t < tiles; t++) {
            const size_t r = row + (panels > 1 ? 0 : t);
            const __m512i start = _mm512_set1_epi32(-w->zero * j->qsums[r * w->groups + g]);
#pragma GCC unroll 2
            for (size_t l = 0; l < LINES; l++) sum[t][l] = start;
        }
        group_sums(sum, w->codes + panel * bytes + i * per_input, bytes, j->q + row * w->depth + i,
                   w->depth, n, rows, panels, nibbles);
#pragma GCC unroll 16
        for (size_t t = 0; t < tiles; t++) {
            const size_t r = row + (panels > 1 ? 0 : t), e = panel + (panels > 1 ? t : 0);
            const size_t at = (e * w->groups + g) * PARE_PANEL;
            const float s = j->scales[r * w->groups + g];
#pragma GCC unroll 2
            for (size_t l = 0; l < LINES; l++) {
                y[t][l] = vec_fma(vec_load(w->scale + at + 16 * l) * vec_set(s),
                                  packed_to_float((ivec)sum[t][l]), y[t][l]);
                if (w->offset)
                    y[t][l] = vec_fma(vec_load(w->offset + at + 16 * l),
                                      vec_set(s * (float)j->qsums[r * w->groups + g]), y[t][l]);
            }
        }
    }
#pragma GCC unroll 16
    for (size_t t = 0; t < tiles; t++)
#pragma GCC unroll 2
        for (size_t l = 0; l < LINES; l++)
            packed_finish(&j->p, row + (panels > 1 ? 0 : t),
                          (panel + (panels > 1 ? t : 0)) * PARE_PANEL + 16 * l, y[t][l]);
}

PARE_INLINE PARE_VNNI void int8_all(const packed_job *j, bool nibbles)
{
    const size_t end = j->first + j->panels;
    size_t panel = j->first;
    if (j->p.n == 1)
        for (; panel + FLAT <= end; panel += FLAT) int8_tile(j, 0, 1, panel, FLAT, nibbles);
    for (; panel < end; panel++) {
        size_t r = 0;
        for (; r + MOST <= j->p.n; r += MOST) int8_tile(j, r, MOST, panel, 1, nibbles);
        for (; r + FEW <= j->p.n; r += FEW) int8_tile(j, r, FEW, panel, 1, nibbles);
        for (; r < j->p.n; r++) int8_tile(j, r, 1, panel, 1, nibbles);
    }
}

PARE_VNNI static void rows_of_bytes(const packed_job *j)
{
    int8_all(j, false);
}

PARE_VNNI static void rows_of_halves(const packed_job *j)
{
    int8_all(j, true);
}

void packed_int8_vnni(const packed_job *j)
{
    if (j->p.w->kind == PACKED_INT4)
        rows_of_halves(j);
    else
        rows_of_bytes(j);
}
#else
typedef int packed_avx512_is_for_x86;
#endif
