/* packed_tile.h - the kernel of y = x W^T on packed matrices (packed.h) for rows of f32, written
 * once over a vector (base/vec.h).
 *
 * Codes become f32 numbers in registers, exactly. Each output is, group by group,
 *
 *     part = sum_i x_i (c_i - z), one chain in the order of the inputs,
 *     y    = y + s part,  then  y = y + m sum_i x_i   where there are offsets:
 *
 * so a row's bits do not depend on how many rows came along. Half precision is one group without a
 * scale. */
#include "base/vec.h"
#include "packed.h"

typedef int ivec __attribute__((vector_size(VEC * sizeof(int)), aligned(4), may_alias));
typedef unsigned uvec __attribute__((vector_size(VEC * sizeof(unsigned)), aligned(4), may_alias));
typedef unsigned short hvec
    __attribute__((vector_size(VEC * sizeof(short)), aligned(2), may_alias));

/* Rows of a tall tile (each group of codes is unpacked once for them), panels of a wide one. */
enum {
    PVECS = PARE_PANEL / VEC,
    PTALL = VEC == 16  ? 6
            : VEC == 8 ? 2
                       : 1,
    PWIDE = VEC == 16 ? 4 : 1
};

VEC_INLINE vec packed_to_float(ivec a)
{
#if defined(VEC_AVX512)
    return _mm512_cvtepi32_ps((__m512i)a);
#elif defined(VEC_AVX2)
    return _mm256_cvtepi32_ps((__m256i)a);
#else
    return __builtin_convertvector(a, vec);
#endif
}

/* Half precision by arithmetic: the bits are shifted to their place in an f32, whose exponent is
 * then 112 too small; also of numbers that are not normal. */
VEC_INLINE vec packed_half(const uint8_t *at, packed_kind kind)
{
#if defined(VEC_AVX512)
    const __m256i h = _mm256_loadu_si256((const __m256i *)(const void *)at);
    if (kind == PACKED_F16) return _mm512_cvtph_ps(h);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(h), 16));
#else
#if defined(VEC_AVX2)
    const ivec h = (ivec)_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)at));
#else
    const ivec h = __builtin_convertvector(*(const hvec *)(const void *)at, ivec);
#endif
    if (kind == PACKED_BF16) return (vec)(h << 16);
    const vec size = (vec)((h & 0x7fff) << 13) * vec_set(0x1p112f);
    return (vec)((ivec)size | (ivec)((uvec)(h & 0x8000) << 16));
#endif
}

/* A table of c - z for codes of 4 bits; only AVX-512 looks it up. */
VEC_INLINE vec packed_table(int zero)
{
    vec t = vec_set(0);
    for (int l = 0; l < VEC; l++) t[l] = (float)(l - zero);
    return t;
}

/* Input b of the step whose codes are c, as numbers c - z. */
VEC_INLINE vec packed_code(ivec c, size_t b, packed_kind kind, vec table, int zero)
{
    if (kind == PACKED_INT8) /* z = 128 was taken away when the codes were loaded */
        return packed_to_float(b < 3 ? c << (24 - 8 * (int)b) >> 24 : c >> 24);
    const int shift = (int)(b < 4 ? 8 * b : 8 * (b - 4) + 4);
#if defined(VEC_AVX512)
    (void)zero;
    return _mm512_permutexvar_ps(_mm512_srli_epi32((__m512i)c, (unsigned)shift), table);
#else
    (void)table;
    return packed_to_float((c >> shift & 15) - zero);
#endif
}

/* Inputs in the codes of one load, and the bytes of a panel per input. */
VEC_INLINE size_t packed_inputs(packed_kind kind)
{
    return kind == PACKED_INT8 ? 4 : kind == PACKED_INT4 ? 8 : 1;
}
VEC_INLINE size_t packed_panel_bytes(const packed_matrix *w, packed_kind kind)
{
    return w->depth * PARE_PANEL / (kind == PACKED_INT4 ? 2 : 1) *
           (kind == PACKED_F16 || kind == PACKED_BF16 ? 2 : 1);
}

/* One row of results: += bias, += y. What lies behind outs is not written. */
VEC_INLINE void packed_finish(const packed_product *p, size_t row, size_t at, vec r)
{
    if (at >= p->outs) return;
    float *const y = p->y + row * p->ldy + at;
    const size_t left = p->outs - at;
    if (left >= VEC) {
        if (p->bias) r += vec_load(p->bias + at);
        if (p->add) r += vec_load(y);
        vec_store(y, r);
        return;
    }
    if (p->bias) r += vec_load_some(p->bias + at, left);
    if (p->add) r += vec_load_some(y, left);
    vec_store_some(y, r, left);
}

typedef vec packed_sums[PTALL > PWIDE ? PTALL : PWIDE][PVECS];

/* part += the products of the inputs [i, i + packed_inputs) that there are; tiles of `rows` rows and
 * one panel, or of one row and `panels`: constants wherever it is called, as are kind and whole. */
VEC_INLINE void packed_step(const packed_job *j, packed_sums part, size_t row, size_t rows,
                            size_t panel, size_t panels, size_t i, packed_kind kind, bool whole,
                            vec table)
{
    const packed_matrix *const w = j->p.w;
    const size_t step = packed_inputs(kind), bytes = packed_panel_bytes(w, kind);
    const size_t line = kind == PACKED_F16 || kind == PACKED_BF16 ? 2 * PARE_PANEL * i
                                                                  : 4 * PARE_PANEL * (i / step);
    const float *const x = j->p.x + row * j->p.ldx + i;
#pragma GCC unroll 16
    for (size_t e = 0; e < panels; e++)
#pragma GCC unroll 16
        for (size_t v = 0; v < PVECS; v++) {
            const uint8_t *const at = w->codes + (panel + e) * bytes + line;
            ivec c = {0};
            if (step > 1) c = *(const ivec *)(const void *)(at + v * VEC * 4);
            if (kind == PACKED_INT8) c ^= (int)0x80808080u;
#pragma GCC unroll 8
            for (size_t b = 0; b < step; b++) {
                if (!whole && i + b >= w->cols) continue;
                const vec n = step == 1 ? packed_half(at + v * VEC * 2, kind)
                                        : packed_code(c, b, kind, table, w->zero);
#pragma GCC unroll 16
                for (size_t r = 0; r < rows; r++)
                    part[r + e][v] = vec_fma(vec_set(x[r * j->p.ldx + b]), n, part[r + e][v]);
            }
        }
}

VEC_INLINE void packed_tile(const packed_job *j, size_t row, size_t rows, size_t panel,
                            size_t panels, packed_kind kind)
{
    const packed_matrix *const w = j->p.w;
    const size_t step = packed_inputs(kind);
    const vec table = packed_table(w->zero);
    packed_sums sum, part;
#pragma GCC unroll 16
    for (size_t t = 0; t < rows + panels - 1; t++)
#pragma GCC unroll 16
        for (size_t v = 0; v < PVECS; v++) sum[t][v] = vec_set(0);
    for (size_t g = 0, i = 0; g < w->groups; g++) {
        const size_t end = w->cols - i < w->group ? w->cols : i + w->group;
#pragma GCC unroll 16
        for (size_t t = 0; t < rows + panels - 1; t++)
#pragma GCC unroll 16
            for (size_t v = 0; v < PVECS; v++) part[t][v] = vec_set(0);
        for (; i + step <= end; i += step)
            packed_step(j, part, row, rows, panel, panels, i, kind, true, table);
        if (i < end) packed_step(j, part, row, rows, panel, panels, i, kind, false, table);
        i = end;
#pragma GCC unroll 16
        for (size_t t = 0; t < rows + panels - 1; t++)
#pragma GCC unroll 16
            for (size_t v = 0; v < PVECS; v++) {
                const size_t at =
                    ((panel + (panels > 1 ? t : 0)) * w->groups + g) * PARE_PANEL + v * VEC;
                if (step == 1) {
                    sum[t][v] = part[t][v];
                    continue;
                }
                sum[t][v] = vec_fma(vec_load(w->scale + at), part[t][v], sum[t][v]);
                if (w->offset)
                    sum[t][v] = vec_fma(
                        vec_load(w->offset + at),
                        vec_set(j->sums[(row + (panels > 1 ? 0 : t)) * w->groups + g]), sum[t][v]);
            }
    }
#pragma GCC unroll 16
    for (size_t t = 0; t < rows + panels - 1; t++)
#pragma GCC unroll 16
        for (size_t v = 0; v < PVECS; v++)
            packed_finish(&j->p, row + (panels > 1 ? 0 : t),
                          (panel + (panels > 1 ? t : 0)) * PARE_PANEL + v * VEC, sum[t][v]);
}

VEC_INLINE void packed_all(const packed_job *j, packed_kind kind)
{
    const size_t end = j->first + j->panels;
    size_t panel = j->first;
    if (j->p.n == 1)
        for (; PWIDE > 1 && panel + PWIDE <= end; panel += PWIDE)
            packed_tile(j, 0, 1, panel, PWIDE, kind);
    for (; panel < end; panel++) {
        size_t r = 0;
        for (; PTALL > 1 && r + PTALL <= j->p.n; r += PTALL)
            packed_tile(j, r, PTALL, panel, 1, kind);
        for (; r < j->p.n; r++) packed_tile(j, r, 1, panel, 1, kind);
    }
}

VEC_TARGET static void packed_all_int8(const packed_job *j)
{
    packed_all(j, PACKED_INT8);
}
VEC_TARGET static void packed_all_int4(const packed_job *j)
{
    packed_all(j, PACKED_INT4);
}
VEC_TARGET static void packed_all_f16(const packed_job *j)
{
    packed_all(j, PACKED_F16);
}
VEC_TARGET static void packed_all_bf16(const packed_job *j)
{
    packed_all(j, PACKED_BF16);
}

VEC_TARGET static void packed_f32(const packed_job *j)
{
    switch (j->p.w->kind) {
    case PACKED_INT8:
        packed_all_int8(j);
        return;
    case PACKED_INT4:
        packed_all_int4(j);
        return;
    case PACKED_F16:
        packed_all_f16(j);
        return;
    case PACKED_BF16:
        packed_all_bf16(j);
        return;
    }
}

/* ---- rows as integers ------------------------------------------------------------------------ */

VEC_INLINE vec packed_load(const float *x, size_t left)
{
    return left >= VEC ? vec_load(x) : vec_load_some(x, left);
}

VEC_TARGET static void packed_round(const packed_rounding *r)
{
    for (size_t g = 0, i = 0; i < r->cols; g++) {
        const size_t end = r->cols - i < r->group ? r->cols : i + r->group;
        vec most = vec_set(0), bad = vec_set(0);
        const size_t first = i;
        for (; i < end; i += VEC) {
            const vec x = packed_load(r->x + i, end - i);
            most = vec_max((vec)((ivec)x & 0x7fffffff), most);
            bad += x - x; /* 0, but nan where x is not finite */
        }
        const float largest = vec_largest(most), sick = vec_sum(bad);
        const bool none = !(largest >= 0x1p-100f) || sick != 0;
        const float to = none ? 0 : 127 / largest;
        ivec sum = {0};
        for (i = first; i < end; i += VEC) {
            const vec x = packed_load(r->x + i, end - i);
            /* 1.5 2^23 has room for 22 bits behind it: the sum is rounded to an integer, and its
             * lowest bits are that integer. */
            const vec near = x * vec_set(to) + vec_set(0x1.8p23f);
            ivec q = (ivec)near - 0x4b400000;
            if (none) q -= q;
            sum += q;
            const size_t left = end - i < VEC ? end - i : VEC;
#if defined(VEC_AVX512)
            if (left == VEC) {
                _mm_storeu_si128((__m128i *)(void *)(r->q + i), _mm512_cvtepi32_epi8((__m512i)q));
                continue;
            }
#endif
            for (size_t l = 0; l < left; l++) r->q[i + l] = (int8_t)q[l];
        }
        i = end;
        r->scale[g] = sick != 0 ? sick : none ? 0 : largest / 127;
        r->sum[g] = 0;
        for (size_t l = 0; l < VEC; l++) r->sum[g] += sum[l];
    }
    for (size_t i = r->cols; i < r->depth; i++) r->q[i] = 0;
}
