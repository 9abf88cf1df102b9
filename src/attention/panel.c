/* panel.c - panels of queries: what they see of the keys, and how rows become panels and back. */
#include "panel.h"
#include <math.h>
#include "base/vexp.h"
#include <pare/attention.h>
#include <stdlib.h>
#include <string.h>

/* ---- buffers --------------------------------------------------------------------------------- */

float *layout_take(layout *l, size_t floats)
{
    float *const here = l->v ? l->v + l->used : NULL;
    l->used += padded(floats, FLOAT_ALIGN);
    return here;
}

float *layout_take_zeroed(layout *l, size_t floats)
{
    float *const here = layout_take(l, floats);
    if (here) memset(here, 0, floats * sizeof *here);
    return here;
}

bool layout_alloc(layout *l)
{
    size_t bytes;
    if (!pare_mul(&bytes, l->used + FLOAT_ALIGN, sizeof(float))) return false;
    l->base = malloc(bytes);
    l->used = 0;
    const size_t off = (uintptr_t)l->base / sizeof(float) % FLOAT_ALIGN;
    if (l->base) l->v = (float *)l->base + (off ? FLOAT_ALIGN - off : 0);
    return l->base;
}

/* ---- masks ----------------------------------------------------------------------------------- */

/* Query i sees no key from this one on, because they are ahead of it. */
static size_t keys_end(const key_mask *m, size_t i, size_t nk)
{
    if (m->vis0 == PARE_VIS_ALL) return nk;
    const int64_t end = m->vis0 + (int64_t)i;
    return end <= 0 ? 0 : (uint64_t)end < nk ? (size_t)end : nk;
}

/* j + window <= i without overflow: key j is behind the window of query i. */
static bool behind_window(const key_mask *m, size_t j, size_t i)
{
    return j < i && i - j >= m->window;
}

bool visible_keys(size_t *from, size_t *to, const key_mask *m, const panel *p, size_t nk)
{
    const size_t end = keys_end(m, p->first + p->rows - 1, nk);
    if (*from >= end) return false;
    if (*to > end) *to = end;
    if (!behind_window(m, *from, p->first)) return true;
    const size_t window = p->first - m->window + 1; /* first key in the window of the first query */
    if (*from < m->sinks) {
        const bool only_sinks = *to > m->sinks && *to <= window;
        if (m->sinks < window && only_sinks) *to = m->sinks;
        return true;
    }
    if (*to <= window) return false;
    *from = window / TILE_STEP * TILE_STEP;
    return true;
}

/* A call of memset would cost more than these few numbers. */
static void mask_scores(float *s, size_t n)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        *(four *)(s + i) = (four){-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    for (; i < n; i++) s[i] = -INFINITY;
}

void mask_tile(float *s, const key_mask *m, const panel *p, size_t from, size_t to, size_t nk)
{
    const size_t last = p->first + p->rows - 1, keys = to - from;
    const bool all_visible =
        to <= keys_end(m, p->first, nk) && (!behind_window(m, from, last) || to <= m->sinks);
    for (size_t j = from; !all_visible && j < to; j++) {
        float *const key = s + (j - from) * p->p;
        /* Masked: the queries before the first that sees key j, and those whose window it has
         * left. */
        size_t lead = 0, end = p->p;
        if (m->vis0 != PARE_VIS_ALL) {
            const int64_t n = (int64_t)j + 1 - m->vis0 - (int64_t)p->first;
            lead = n <= 0 ? 0 : (uint64_t)n < p->p ? (size_t)n : p->p;
        }
        if (j >= m->sinks && behind_window(m, j, p->first + p->p - 1)) {
            const size_t leaves = j + m->window; /* no overflow: it is below the last query */
            end = leaves > p->first ? leaves - p->first : 0;
        }
        mask_scores(key, lead);
        mask_scores(key + end, p->p - end);
    }
    mask_scores(s + keys * p->p, (padded(keys, TILE_STEP) - keys) * p->p);
}

/* ---- packing --------------------------------------------------------------------------------- */

/* Transposes 4 x 4. */
static inline void transpose4(four out[4], four a, four b, four c, four d)
{
    const four ab0 = {a[0], b[0], a[1], b[1]}, ab1 = {a[2], b[2], a[3], b[3]};
    const four cd0 = {c[0], d[0], c[1], d[1]}, cd1 = {c[2], d[2], c[3], d[3]};
    out[0] = (four){ab0[0], ab0[1], cd0[0], cd0[1]};
    out[1] = (four){ab0[2], ab0[3], cd0[2], cd0[3]};
    out[2] = (four){ab1[0], ab1[1], cd1[0], cd1[1]};
    out[3] = (four){ab1[2], ab1[3], cd1[2], cd1[3]};
}

#if defined(__x86_64__)
/* Transposes 16 x 16. */
#define BLOCK 16
PARE_INLINE PARE_AVX512 void transpose16(__m512 r[BLOCK])
{
    __m512 t[BLOCK];
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
        t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        const __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 1]);
        const __m512d c = _mm512_castps_pd(t[4 * i + 2]), d = _mm512_castps_pd(t[4 * i + 3]);
        r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) { /* r[4 g + i]: column i, i+4, ... of rows 4 g .. 4 g + 3 */
        const __m512 a = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
        const __m512 b = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
        const __m512 c = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
        const __m512 d = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
        t[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        t[4 + i] = _mm512_shuffle_f32x4(b, d, 0x88);
        t[8 + i] = _mm512_shuffle_f32x4(a, c, 0xdd);
        t[12 + i] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
#pragma GCC unroll 16
    for (int i = 0; i < BLOCK; i++) r[i] = t[i];
}

/* Whole blocks only: rows and cols are multiples of 16. */
PARE_AVX512 static void pack_blocks(float *to, size_t p, const float *from, size_t ld, size_t rows,
                                    size_t cols, float scale)
{
    const __m512 by = _mm512_set1_ps(scale);
    for (size_t i = 0; i < rows; i += BLOCK)
        for (size_t c = 0; c < cols; c += BLOCK) {
            __m512 r[BLOCK];
#pragma GCC unroll 16
            for (size_t e = 0; e < BLOCK; e++) r[e] = _mm512_loadu_ps(from + (i + e) * ld + c);
            transpose16(r);
#pragma GCC unroll 16
            for (size_t e = 0; e < BLOCK; e++)
                _mm512_storeu_ps(to + (c + e) * p + i, _mm512_mul_ps(r[e], by));
        }
}

PARE_AVX512 static void unpack_blocks(float *to, size_t ld, const float *from, size_t p,
                                      size_t rows, size_t cols, const float *by)
{
    for (size_t i = 0; i < rows; i += BLOCK)
        for (size_t c = 0; c < cols; c += BLOCK) {
            const __m512 f = _mm512_loadu_ps(by + i);
            __m512 r[BLOCK];
#pragma GCC unroll 16
            for (size_t e = 0; e < BLOCK; e++)
                r[e] = _mm512_mul_ps(_mm512_loadu_ps(from + (c + e) * p + i), f);
            transpose16(r);
#pragma GCC unroll 16
            for (size_t e = 0; e < BLOCK; e++) _mm512_storeu_ps(to + (i + e) * ld + c, r[e]);
        }
}

/* Columns that are transposed in blocks of 16; the others by fours, and all of them where the rows
 * are no multiple of 16. */
static size_t block_columns(size_t rows, size_t cols)
{
    return rows % BLOCK == 0 && simd_best() >= SIMD_AVX512 ? cols / BLOCK * BLOCK : 0;
}
#endif

void pack_queries(float *to, size_t p, const float *from, size_t ld, size_t rows, size_t cols,
                  float scale)
{
#if defined(__x86_64__)
    const size_t done = rows == p ? block_columns(rows, cols) : 0;
    if (done) pack_blocks(to, p, from, ld, rows, done, scale);
    to += done * p, from += done, cols -= done;
#endif
    const four by = {scale, scale, scale, scale};
    const size_t cols4 = cols / 4 * 4, rows4 = rows / 4 * 4;
    for (size_t i = 0; i < rows4; i += 4)
        for (size_t c = 0; c < cols4; c += 4) {
            const float *const at = from + i * ld + c;
            four t[4];
            transpose4(t, *(const four *)at, *(const four *)(at + ld), *(const four *)(at + 2 * ld),
                       *(const four *)(at + 3 * ld));
            for (size_t e = 0; e < 4; e++) *(four *)(to + (c + e) * p + i) = t[e] * by;
        }
    for (size_t c = 0; c < cols; c++) {
        for (size_t i = c < cols4 ? rows4 : 0; i < rows; i++)
            to[c * p + i] = from[i * ld + c] * scale;
        for (size_t i = rows; i < p; i++) to[c * p + i] = 0;
    }
}

/* Two columns: whole vectors of `from`, whose rows are p long, and p is a multiple of four. */
static void unpack_pair(float *to, size_t ld, const float *from, size_t p, size_t rows,
                        const float *by)
{
    for (size_t i = 0; i < rows; i += 4) {
        const four f = *(const four *)(by + i);
        const four a = *(const four *)(from + i) * f, b = *(const four *)(from + p + i) * f;
        const four t[] = {{a[0], b[0], a[1], b[1]}, {a[2], b[2], a[3], b[3]}};
        if (ld == 2 && i + 4 <= rows) { /* contiguous */
            *(four *)(to + i * 2) = t[0];
            *(four *)(to + i * 2 + 4) = t[1];
        } else {
            for (size_t e = 0; e < 4 && i + e < rows; e++)
                for (size_t c = 0; c < 2; c++) to[(i + e) * ld + c] = t[e / 2][e % 2 * 2 + c];
        }
    }
}

void unpack(float *to, size_t ld, const float *from, size_t p, size_t rows, size_t cols,
            const float *by, bool add)
{
#if defined(__x86_64__)
    const size_t done = add ? 0 : block_columns(rows, cols);
    if (done) unpack_blocks(to, ld, from, p, rows, done, by);
    to += done, from += done * p, cols -= done;
#endif
    if (cols == 2 && !add) {
        unpack_pair(to, ld, from, p, rows, by);
        return;
    }
    const size_t cols4 = cols / 4 * 4, rows4 = rows / 4 * 4;
    for (size_t i = 0; i < rows4; i += 4)
        for (size_t c = 0; c < cols4; c += 4) {
            const four f = *(const four *)(by + i);
            const float *const at = from + c * p + i;
            four t[4];
            transpose4(t, *(const four *)at * f, *(const four *)(at + p) * f,
                       *(const four *)(at + 2 * p) * f, *(const four *)(at + 3 * p) * f);
#pragma GCC unroll 4
            for (size_t e = 0; e < 4; e++) {
                four *const y = (four *)(to + (i + e) * ld + c);
                if (add)
                    *y += t[e];
                else
                    *y = t[e];
            }
        }
    for (size_t i = cols4 < cols ? 0 : rows4; i < rows; i++)
        for (size_t c = i < rows4 ? cols4 : 0; c < cols; c++)
            to[i * ld + c] = from[c * p + i] * by[i] + (add ? to[i * ld + c] : 0);
}

void copy_tile(float *to, const float *from, size_t ld, size_t rows, size_t cols,
               size_t padded_cols)
{
    for (size_t i = 0; i < rows; i++, to += padded_cols) {
        size_t c = 0;
        for (; c + 4 <= cols; c += 4) *(four *)(to + c) = *(const four *)(from + i * ld + c);
        for (; c < cols; c++) to[c] = from[i * ld + c];
        for (; c < padded_cols; c++) to[c] = 0;
    }
    memset(to, 0, (padded(rows, TILE_STEP) - rows) * padded_cols * sizeof *to);
}
