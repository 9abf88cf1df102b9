/* sgemm.c - the f32 product for CPUs with AVX-512: what nearly all of a training step consists of.
 *
 * Goto's scheme: b is copied by blocks of DEPTH x WIDE into panels of 32 columns, unless its rows
 * are short; a is read as it lies or, stored the other way round with long rows, copied by blocks
 * of TALL x DEPTH into panels of 12 rows. One panel by one panel is a tile of c that stays in 24
 * registers while each number of a is broadcast to two vectors of b. A panel of a (12 KB) stays in
 * the first-level cache while those of b come from the second, and c is walked along its rows.
 * An entry of c is the sum of its products in the order of k, fused, DEPTH at a time: its bits
 * depend on nothing but its row of a, its column of b and k. */
#include "base/vexp.h"
#include "sgemm.h"
#include "tiles.h"
#include <stdint.h>
#include <stdlib.h>

#if defined(__x86_64__)
#define INLINE512 PARE_INLINE PARE_AVX512

enum {
    ROWS = 12, /* of a tile */
    COLS = 32,
    ROW_GRAIN = 4, /* a last panel is a multiple of it */
    COL_GRAIN = 16,
    DEPTH = 256,     /* of k at a time */
    TALL = 120,      /* rows of a: 120 KB */
    WIDE = 512,      /* columns of b: 512 KB */
    AHEAD = 12,      /* lines of b's panel asked for before they are needed */
    LINES_AHEAD = 8, /* the same, of what is copied */
    CLOSE = 128      /* floats from line to line, at most, of what is read along k as it lies */
};

typedef struct operand {
    const float *v;
    size_t ld;
    bool transposed; /* stored with k along the lines of a panel: has to be transposed */
} operand;

/* ---- copies ---------------------------------------------------------------------------------- */

/* Four lines of sixteen become sixteen of four, `width` apart. */
INLINE512 void transpose4x16(float *to, size_t width, const float *from, size_t ld)
{
    const __m512 a = _mm512_loadu_ps(from), b = _mm512_loadu_ps(from + ld);
    const __m512 c = _mm512_loadu_ps(from + 2 * ld), d = _mm512_loadu_ps(from + 3 * ld);
    const __m512d ab0 = _mm512_castps_pd(_mm512_unpacklo_ps(a, b));
    const __m512d ab1 = _mm512_castps_pd(_mm512_unpackhi_ps(a, b));
    const __m512d cd0 = _mm512_castps_pd(_mm512_unpacklo_ps(c, d));
    const __m512d cd1 = _mm512_castps_pd(_mm512_unpackhi_ps(c, d));
    const __m512 t[4] = {_mm512_castpd_ps(_mm512_unpacklo_pd(ab0, cd0)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(ab0, cd0)),
                         _mm512_castpd_ps(_mm512_unpacklo_pd(ab1, cd1)),
                         _mm512_castpd_ps(_mm512_unpackhi_pd(ab1, cd1))};
#pragma GCC unroll 4
    for (size_t e = 0; e < 4; e++) { /* quarter q of t[e] is column 4 q + e */
        _mm_storeu_ps(to + e * width, _mm512_castps512_ps128(t[e]));
        _mm_storeu_ps(to + (4 + e) * width, _mm512_extractf32x4_ps(t[e], 1));
        _mm_storeu_ps(to + (8 + e) * width, _mm512_extractf32x4_ps(t[e], 2));
        _mm_storeu_ps(to + (12 + e) * width, _mm512_extractf32x4_ps(t[e], 3));
    }
}

/* to (k x width) = from (lines x k)^T, filled up with zeros. */
PARE_AVX512 static void transpose(float *to, size_t width, const float *from, size_t ld,
                                  size_t lines, size_t k)
{
    const size_t k16 = k / 16 * 16, lines4 = lines / 4 * 4;
    for (size_t l = 0; l < lines4; l += 4)
        for (size_t i = 0; i < k16; i += 16)
            transpose4x16(to + i * width + l, width, from + l * ld + i, ld);
    for (size_t l = 0; l < width; l++)
        for (size_t i = l < lines4 ? k16 : 0; i < k; i++)
            to[i * width + l] = l < lines ? from[l * ld + i] : 0;
}

static size_t padded(size_t n, size_t to)
{
    return (n + to - 1) / to * to;
}

INLINE512 __mmask16 first_of(size_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1);
}

/* Panels of from (k x count), straight: line by line, since lines may lie pages apart. */
INLINE512 void pack_straight(float *to, const size_t width, const size_t grain, const float *from,
                             size_t ld, size_t count, size_t k)
{
    for (size_t i = 0; i < k; i++, from += ld)
        for (size_t l = 0; l < count; l += width) {
            const size_t lines = least(width, count - l), wide = padded(lines, grain);
            float *const at = to + l * k + i * wide;
            __builtin_prefetch(from + l + LINES_AHEAD * ld);
            for (size_t e = 0; e < wide; e += 16) {
                const __mmask16 on = first_of(lines > e ? lines - e : 0);
                _mm512_mask_storeu_ps(at + e, first_of(wide - e),
                                      _mm512_maskz_loadu_ps(on, from + l + e));
            }
        }
}

/* Panels of from (count x k), transposed. */
INLINE512 void pack_transposed(float *to, const size_t width, const size_t grain, const float *from,
                               size_t ld, size_t count, size_t k)
{
    for (size_t l = 0; l < count; l += width) {
        const size_t lines = least(width, count - l);
        transpose(to + l * k, padded(lines, grain), from + l * ld, ld, lines, k);
    }
}

/* Rows [i, i + rows) of op(a), panels of ROWS. */
PARE_AVX512 static void pack_a(float *to, const operand *a, size_t i, size_t rows, size_t k0,
                               size_t k)
{
    if (a->transposed)
        pack_transposed(to, ROWS, ROW_GRAIN, a->v + i * a->ld + k0, a->ld, rows, k);
    else
        pack_straight(to, ROWS, ROW_GRAIN, a->v + k0 * a->ld + i, a->ld, rows, k);
}

/* Columns [j, j + cols) of op(b), panels of COLS. */
PARE_AVX512 static void pack_b(float *to, const operand *b, size_t j, size_t cols, size_t k0,
                               size_t k)
{
    if (b->transposed)
        pack_transposed(to, COLS, COL_GRAIN, b->v + j * b->ld + k0, b->ld, cols, k);
    else
        pack_straight(to, COLS, COL_GRAIN, b->v + k0 * b->ld + j, b->ld, cols, k);
}

/* ---- a tile of c ----------------------------------------------------------------------------- */

typedef struct place {
    float *c;
    size_t ld, rows, cols; /* what of the tile is stored */
    const float *before;   /* what the sums are added to, rows `step` apart; NULL: nothing */
    size_t step;
} place;

/* The tile of c is needed when its sums are done: asked for now, it is there by then. */
INLINE512 void fetch(const place *to)
{
    for (size_t r = 0; r < to->rows; r++) {
        __builtin_prefetch(to->c + r * to->ld, 1);
        __builtin_prefetch(to->c + r * to->ld + to->cols - 1, 1);
    }
}

/* Number (r, i) of a stands at a[r * down + i * along]. */
INLINE512 void tile(const float *a, const size_t down, const size_t along, const float *b,
                    const size_t next, size_t k, const place *to, const size_t rows, const size_t v)
{
    const float *const a3 = a + 3 * down, *const a6 = a + 6 * down, *const a9 = a + 9 * down;

    __m512 acc[ROWS][2];
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (size_t e = 0; e < v; e++) acc[r][e] = _mm512_setzero_ps();
    fetch(to);
    for (size_t i = 0; i < k; i++, b += next) {
        const float *const at[4] = {a + i * along, a3 + i * along, a6 + i * along, a9 + i * along};
        __m512 part[2];
        __builtin_prefetch(b + AHEAD * next);
        if (v == 2) __builtin_prefetch(b + AHEAD * next + 16);
#pragma GCC unroll 2
        for (size_t e = 0; e < v; e++) part[e] = _mm512_loadu_ps(b + 16 * e);
#pragma GCC unroll 12
        for (size_t r = 0; r < rows; r++) {
            const __m512 x = _mm512_set1_ps(at[r / 3][r % 3 * down]);
#pragma GCC unroll 2
            for (size_t e = 0; e < v; e++) acc[r][e] = _mm512_fmadd_ps(x, part[e], acc[r][e]);
        }
    }
#pragma GCC unroll 12
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 2
        for (size_t e = 0; e < v; e++) {
            if (r >= to->rows || 16 * e >= to->cols) continue;
            float *const c = to->c + r * to->ld + 16 * e;
            const __mmask16 on = first_of(to->cols - 16 * e);
            if (to->before)
                acc[r][e] = _mm512_add_ps(
                    acc[r][e], _mm512_maskz_loadu_ps(on, to->before + r * to->step + 16 * e));
            _mm512_mask_storeu_ps(c, on, acc[r][e]);
        }
}

/* Sizes as constants, so that the tile stays in registers; a is packed. */
PARE_AVX512 static void packed_tile(const float *a, const float *b, size_t next, size_t k,
                                    const place *to)
{
    const size_t rows = padded(to->rows, ROW_GRAIN);
    if (to->cols > 16) {
        if (rows == 12) tile(a, 1, 12, b, next, k, to, 12, 2);
        if (rows == 8) tile(a, 1, 8, b, next, k, to, 8, 2);
        if (rows == 4) tile(a, 1, 4, b, next, k, to, 4, 2);
    } else {
        if (rows == 12) tile(a, 1, 12, b, next, k, to, 12, 1);
        if (rows == 8) tile(a, 1, 8, b, next, k, to, 8, 1);
        if (rows == 4) tile(a, 1, 4, b, next, k, to, 4, 1);
    }
}

/* Twelve rows of a as they lie. */
PARE_AVX512 static void plain_tile(const float *a, size_t down, size_t along, const float *b,
                                   size_t next, size_t k, const place *to)
{
    if (to->cols > 16)
        tile(a, down, along, b, next, k, to, 12, 2);
    else
        tile(a, down, along, b, next, k, to, 12, 1);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

typedef struct product {
    operand a, b;
    bool plain_a, plain_b; /* not copied */
    float *c;
    size_t ldc, m, n, k;
    const float *before; /* as in sgemm.h */
    size_t step;
    float *pa, *pb; /* the copies */
} product;

typedef struct part {
    size_t j, cols, k0, k; /* columns of b and c, range of the inner index */
} part;

/* Rows [i, i + rows) of c; `packed` are those of a, NULL: they are read as they lie. */
static void panel(const product *p, const float *packed, size_t i, size_t rows, part t)
{
    const bool ta = !p->a.transposed;
    const float *const a = p->a.v + (ta ? t.k0 * p->a.ld + i : i * p->a.ld + t.k0);
    const size_t down = ta ? 1 : p->a.ld, along = ta ? p->a.ld : 1;
    const size_t step = t.k0 > 0 ? p->ldc : p->step;
    const float *const before = t.k0 > 0 ? p->c : p->before;
    for (size_t y = 0; y < t.cols; y += COLS) {
        const size_t cols = least(COLS, t.cols - y);
        const place to = {p->c + i * p->ldc + t.j + y,
                          p->ldc,
                          rows,
                          cols,
                          before ? before + i * step + t.j + y : NULL,
                          step};
        const float *const b = p->plain_b ? p->b.v + t.k0 * p->b.ld + t.j + y : p->pb + y * t.k;
        const size_t next = p->plain_b ? p->b.ld : padded(cols, COL_GRAIN);
        if (packed)
            packed_tile(packed, b, next, t.k, &to);
        else
            plain_tile(a, down, along, b, next, t.k, &to);
    }
}

static void block(const product *p, part t)
{
    const size_t plain = p->plain_a ? p->m / ROWS * ROWS : 0;
    if (!p->plain_b) pack_b(p->pb, &p->b, t.j, t.cols, t.k0, t.k);
    for (size_t i = 0; i < plain; i += ROWS) panel(p, NULL, i, ROWS, t);
    for (size_t i = plain; i < p->m; i += TALL) {
        const size_t rows = least(TALL, p->m - i);
        pack_a(p->pa, &p->a, i, rows, t.k0, t.k);
        for (size_t x = 0; x < rows; x += ROWS)
            panel(p, p->pa + x * t.k, i + x, least(ROWS, rows - x), t);
    }
}

bool sgemm_avx512(size_t m, size_t n, size_t k, const float *a, size_t lda, bool ta, const float *b,
                  size_t ldb, bool tb, const float *before, size_t step, float *c, size_t ldc)
{
    if (simd_best() < SIMD_AVX512) return false;
    if (m == 0 || n == 0 || k == 0) return false;
    const size_t deep = least(k, DEPTH);
    const size_t sa = padded(least(m, TALL), ROW_GRAIN) * deep;
    const size_t sb = padded(least(n, WIDE), COL_GRAIN) * deep;
    float *const copies = aligned_alloc(64, padded((sa + 16 + sb) * sizeof *copies, 64));
    if (!copies) return false;
    const product p = {.a = {a, lda, !ta},
                       .b = {b, ldb, tb},
                       .plain_a = !ta || lda <= CLOSE,
                       .plain_b = !tb && ldb <= CLOSE && n % COLS == 0,
                       .c = c,
                       .ldc = ldc,
                       .m = m,
                       .n = n,
                       .k = k,
                       .before = before,
                       .step = step,
                       .pb = copies,
                       .pa = copies + sb};
    for (size_t j = 0; j < n; j += WIDE)
        for (size_t k0 = 0; k0 < k; k0 += DEPTH)
            block(&p, (part){j, least(WIDE, n - j), k0, least(DEPTH, k - k0)});
    free(copies);
    return true;
}
#else
bool sgemm_avx512(size_t m, size_t n, size_t k, const float *a, size_t lda, bool ta, const float *b,
                  size_t ldb, bool tb, const float *before, size_t step, float *c, size_t ldc)
{
    (void)m, (void)n, (void)k, (void)a, (void)lda, (void)ta, (void)b, (void)ldb, (void)tb;
    (void)before, (void)step, (void)c, (void)ldc;
    return false;
}
#endif
