/* Attention over lists of keys, row by row: scores of four keys at a time along dk, e^(s - max)
 * over the whole list, then the values along dv. The rows that a list names lie anywhere, so each
 * value is asked for while its key is being multiplied. */
#include "listed.h"
#include <math.h>
#include <pare/vexp.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUP = 4, /* keys at a time */
    UNIT = 64  /* rows of one unit of work */
};

/* ---- portable ------------------------------------------------------------------------------- */

/* Eight partial sums in a fixed order: what the compiler may turn into vectors without being
 * allowed to reorder anything itself. */
static float dot8(const float *a, const float *b, size_t n)
{
    float part[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t l = 0; l < 8; l++) part[l] += a[i + l] * b[i + l];
    float s =
        ((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]));
    for (; i < n; i++) s += a[i] * b[i];
    return s;
}

static list_sum row_portable(float *y, const float *q, const list_data *e, const uint32_t *idx,
                             size_t n, float *s)
{
    float top = -INFINITY, part[GROUP] = {0};
    for (size_t j = 0; j < n; j++) {
        s[j] = e->scale * dot8(q, e->k + idx[j] * e->ldk, e->dk);
        if (s[j] > top) top = s[j];
    }
    for (size_t j = 0; j < n; j++) part[j % GROUP] += s[j] = pare_exp_scalar(s[j] - top);
    const float sum = (part[0] + part[1]) + (part[2] + part[3]), by = 1 / sum;
    memset(y, 0, e->dv * sizeof *y);
    for (size_t j = 0; j < n; j++)
        for (size_t c = 0; c < e->dv; c++) y[c] += s[j] * e->v[idx[j] * e->ldv + c];
    for (size_t c = 0; c < e->dv; c++) y[c] *= by;
    return (list_sum){top, sum};
}

#if defined(__x86_64__)
static inline void prefetch_row(const float *x, size_t n)
{
    for (size_t c = 0; c < n; c += 16) __builtin_prefetch(x + c);
}

/* ---- AVX-512 -------------------------------------------------------------------------------- */

PARE_AVX512 static inline __mmask16 rest16(size_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1);
}

/* (sum a0, sum a1, sum a2, sum a3) */
PARE_AVX512 static inline __m128 sums16(__m512 a0, __m512 a1, __m512 a2, __m512 a3)
{
    const __m512 b0 = _mm512_add_ps(_mm512_unpacklo_ps(a0, a1), _mm512_unpackhi_ps(a0, a1));
    const __m512 b1 = _mm512_add_ps(_mm512_unpacklo_ps(a2, a3), _mm512_unpackhi_ps(a2, a3));
    const __m512d c0 = _mm512_castps_pd(b0), c1 = _mm512_castps_pd(b1);
    const __m512 c = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(c0, c1)),
                                   _mm512_castpd_ps(_mm512_unpackhi_pd(c0, c1)));
    const __m128 low = _mm_add_ps(_mm512_castps512_ps128(c), _mm512_extractf32x4_ps(c, 1));
    return _mm_add_ps(low, _mm_add_ps(_mm512_extractf32x4_ps(c, 2), _mm512_extractf32x4_ps(c, 3)));
}

PARE_AVX512 static void scores_avx512(float *s, const float *q, const list_data *e,
                                      const uint32_t *idx, size_t n)
{
    const __m128 scale = _mm_set1_ps(e->scale);
    for (size_t j = 0; j < n; j += GROUP) {
        const float *k[GROUP];
        __m512 acc[GROUP];
        for (size_t r = 0; r < GROUP; r++) { /* beyond the end: the last key once more */
            const size_t at = idx[j + r < n ? j + r : n - 1];
            k[r] = e->k + at * e->ldk;
            acc[r] = _mm512_setzero_ps();
            prefetch_row(e->v + at * e->ldv, e->dv);
        }
        for (size_t c = 0; c < e->dk; c += 16) {
            const __mmask16 on = rest16(e->dk - c);
            const __m512 x = _mm512_maskz_loadu_ps(on, q + c);
#pragma GCC unroll 4
            for (size_t r = 0; r < GROUP; r++)
                acc[r] = _mm512_fmadd_ps(x, _mm512_maskz_loadu_ps(on, k[r] + c), acc[r]);
        }
        _mm_storeu_ps(s + j, _mm_mul_ps(scale, sums16(acc[0], acc[1], acc[2], acc[3])));
    }
}

/* Scores become weights. */
PARE_AVX512 static list_sum weights_avx512(float *s, size_t n)
{
    __m512 top = _mm512_set1_ps(-INFINITY), sum = _mm512_setzero_ps();
    for (size_t i = n; i < n + LIST_PAD; i++) s[i] = -INFINITY;
    for (size_t j = 0; j < n; j += 16) top = _mm512_max_ps(_mm512_loadu_ps(s + j), top);
    const float most = _mm512_reduce_max_ps(top);
    const __m512 base = _mm512_set1_ps(most);
    for (size_t j = 0; j < n; j += 16) {
        const __m512 w = pare_exp_avx512(_mm512_sub_ps(_mm512_loadu_ps(s + j), base));
        _mm512_storeu_ps(s + j, w);
        sum = _mm512_add_ps(sum, w);
    }
    return (list_sum){most, _mm512_reduce_add_ps(sum)};
}

/* 64 columns at a time, even and odd keys apart: eight chains. */
PARE_AVX512 static void values_avx512(float *y, const float *s, const list_data *e,
                                      const uint32_t *idx, size_t n, float by)
{
    for (size_t c = 0; c < e->dv; c += 64) {
        __m512 even[4], odd[4];
        __mmask16 on[4];
#pragma GCC unroll 4
        for (size_t b = 0; b < 4; b++) {
            even[b] = odd[b] = _mm512_setzero_ps();
            on[b] = e->dv > c + 16 * b ? rest16(e->dv - c - 16 * b) : 0;
        }
        for (size_t j = 0; j + 1 < n; j += 2) {
            const float *const v0 = e->v + idx[j] * e->ldv + c;
            const float *const v1 = e->v + idx[j + 1] * e->ldv + c;
            const __m512 w0 = _mm512_set1_ps(s[j]), w1 = _mm512_set1_ps(s[j + 1]);
#pragma GCC unroll 4
            for (size_t b = 0; b < 4; b++) {
                even[b] = _mm512_fmadd_ps(w0, _mm512_maskz_loadu_ps(on[b], v0 + 16 * b), even[b]);
                odd[b] = _mm512_fmadd_ps(w1, _mm512_maskz_loadu_ps(on[b], v1 + 16 * b), odd[b]);
            }
        }
        const float *const last = e->v + idx[n - 1] * e->ldv + c;
        const __m512 w = _mm512_set1_ps(n % 2 ? s[n - 1] : 0);
#pragma GCC unroll 4
        for (size_t b = 0; b < 4; b++) {
            const __m512 x = _mm512_maskz_loadu_ps(n % 2 ? on[b] : 0, last + 16 * b);
            const __m512 o = _mm512_add_ps(_mm512_fmadd_ps(w, x, even[b]), odd[b]);
            _mm512_mask_storeu_ps(y + c + 16 * b, on[b], _mm512_mul_ps(o, _mm512_set1_ps(by)));
        }
    }
}

PARE_AVX512 static list_sum row_avx512(float *y, const float *q, const list_data *e,
                                       const uint32_t *idx, size_t n, float *s)
{
    scores_avx512(s, q, e, idx, n);
    const list_sum sum = weights_avx512(s, n);
    values_avx512(y, s, e, idx, n, 1 / sum.sum);
    return sum;
}

/* ---- AVX2 ----------------------------------------------------------------------------------- */

PARE_AVX2 static inline __m256i rest8(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 8 ? (int)n : 8), lane);
}

PARE_AVX2 static inline __m128 sums8(__m256 a0, __m256 a1, __m256 a2, __m256 a3)
{
    const __m256 c = _mm256_hadd_ps(_mm256_hadd_ps(a0, a1), _mm256_hadd_ps(a2, a3));
    return _mm_add_ps(_mm256_castps256_ps128(c), _mm256_extractf128_ps(c, 1));
}

PARE_AVX2 static void scores_avx2(float *s, const float *q, const list_data *e, const uint32_t *idx,
                                  size_t n)
{
    const __m128 scale = _mm_set1_ps(e->scale);
    for (size_t j = 0; j < n; j += GROUP) {
        const float *k[GROUP];
        __m256 acc[GROUP];
        for (size_t r = 0; r < GROUP; r++) {
            const size_t at = idx[j + r < n ? j + r : n - 1];
            k[r] = e->k + at * e->ldk;
            acc[r] = _mm256_setzero_ps();
            prefetch_row(e->v + at * e->ldv, e->dv);
        }
        for (size_t c = 0; c < e->dk; c += 8) {
            const __m256i on = rest8(e->dk - c);
            const __m256 x = _mm256_maskload_ps(q + c, on);
#pragma GCC unroll 4
            for (size_t r = 0; r < GROUP; r++)
                acc[r] = _mm256_fmadd_ps(x, _mm256_maskload_ps(k[r] + c, on), acc[r]);
        }
        _mm_storeu_ps(s + j, _mm_mul_ps(scale, sums8(acc[0], acc[1], acc[2], acc[3])));
    }
}

PARE_AVX2 static list_sum weights_avx2(float *s, size_t n)
{
    __m256 sum = _mm256_setzero_ps();
    float top = -INFINITY, part[8];
    for (size_t j = 0; j < n; j++)
        if (s[j] > top) top = s[j];
    for (size_t i = n; i < n + LIST_PAD; i++) s[i] = -INFINITY;
    for (size_t j = 0; j < n; j += 8) {
        const __m256 w = pare_exp_avx2(_mm256_sub_ps(_mm256_loadu_ps(s + j), _mm256_set1_ps(top)));
        _mm256_storeu_ps(s + j, w);
        sum = _mm256_add_ps(sum, w);
    }
    _mm256_storeu_ps(part, sum);
    return (list_sum){top, ((part[0] + part[1]) + (part[2] + part[3])) +
                               ((part[4] + part[5]) + (part[6] + part[7]))};
}

/* 64 columns at a time: eight chains. */
PARE_AVX2 static void values_avx2(float *y, const float *s, const list_data *e, const uint32_t *idx,
                                  size_t n, float by)
{
    for (size_t c = 0; c < e->dv; c += 64) {
        __m256 acc[8];
        const size_t whole = e->dv - c < 64 ? (e->dv - c) / 8 : 8;
        const bool more = whole < 8 && 8 * whole < e->dv - c;
        const __m256i on = rest8(e->dv - c - 8 * whole);
        for (size_t b = 0; b < 8; b++) acc[b] = _mm256_setzero_ps();
        for (size_t j = 0; j < n; j++) {
            const float *const v = e->v + idx[j] * e->ldv + c;
            const __m256 w = _mm256_set1_ps(s[j]);
            for (size_t b = 0; b < whole; b++)
                acc[b] = _mm256_fmadd_ps(w, _mm256_loadu_ps(v + 8 * b), acc[b]);
            if (more)
                acc[whole] = _mm256_fmadd_ps(w, _mm256_maskload_ps(v + 8 * whole, on), acc[whole]);
        }
        const __m256 f = _mm256_set1_ps(by);
        for (size_t b = 0; b < whole; b++)
            _mm256_storeu_ps(y + c + 8 * b, _mm256_mul_ps(acc[b], f));
        if (more) _mm256_maskstore_ps(y + c + 8 * whole, on, _mm256_mul_ps(acc[whole], f));
    }
}

PARE_AVX2 static list_sum row_avx2(float *y, const float *q, const list_data *e,
                                   const uint32_t *idx, size_t n, float *s)
{
    scores_avx2(s, q, e, idx, n);
    const list_sum sum = weights_avx2(s, n);
    values_avx2(y, s, e, idx, n, 1 / sum.sum);
    return sum;
}
#endif

size_t list_kernels(list_kernel out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) out[n++] = (list_kernel){"avx512", row_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        out[n++] = (list_kernel){"avx2", row_avx2};
#endif
    out[n++] = (list_kernel){"portable", row_portable};
    return n;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static pare_keys keys_of(const listed_job *w, size_t i)
{
    return pare_visible(w->pattern, w->graph, w->q->rows, i);
}

/* The keys as a list: a graph has one, a window's is written into `room`. */
static const uint32_t *list_of(const pare_keys *keys, uint32_t *room)
{
    if (keys->list) return keys->list;
    for (size_t j = 0; j < keys->count; j++) room[j] = (uint32_t)pare_key(keys, j);
    return room;
}

static bool rows_from(const listed_job *w, size_t first)
{
    const size_t n = w->q->rows, end = n - first < UNIT ? n : first + UNIT;
    const list_data e = {w->k->v, w->v->v, w->k->ld, w->v->ld, w->q->cols, w->v->cols, w->scale};
    size_t most = 0;
    for (size_t i = first; i < end; i++) {
        const size_t count = keys_of(w, i).count;
        if (count > most) most = count;
    }
    float *const s = malloc((most + LIST_PAD) * sizeof *s);
    uint32_t *const room = malloc((w->pattern->kind == PARE_GRAPH ? 1 : most) * sizeof *room);
    for (size_t i = first; s && room && i < end; i++) {
        const pare_keys keys = keys_of(w, i);
        float *const y = w->y.v + i * w->y.ld;
        list_sum sum = {-INFINITY, 1};
        if (keys.count == 0)
            memset(y, 0, e.dv * sizeof *y);
        else
            sum =
                w->kernel->row(y, w->q->v + i * w->q->ld, &e, list_of(&keys, room), keys.count, s);
        if (w->lse) w->lse[i] = sum.top + logf(sum.sum);
    }
    const bool enough = s && room;
    free(s);
    free(room);
    return enough;
}

typedef struct shared {
    const listed_job *w;
    atomic_bool no_memory;
} shared;

static void block(void *ctx, size_t b)
{
    shared *const s = ctx;
    if (!rows_from(s->w, b * UNIT)) atomic_store(&s->no_memory, true);
}

pare_status listed_attend(const listed_job *w, const pare_exec *exec, pare_err *err)
{
    shared s = {.w = w};
    pare_parallel(exec, (w->q->rows + UNIT - 1) / UNIT, block, &s);
    return atomic_load(&s.no_memory) ? pare_no_memory(err) : PARE_OK;
}
