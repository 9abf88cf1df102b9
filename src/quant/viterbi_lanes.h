/* viterbi_lanes.h - a step of the trellis, written once over 16-bit lanes.
 *
 * A file that includes it defines VEC_AVX512 or VEC_AVX2 before, or neither for plain C. */
#include "base/simd.h"
#include "viterbi.h"

#if defined(VEC_AVX512) || defined(VEC_AVX2)
#include <immintrin.h>
#endif

#if defined(VEC_AVX512)
#define VEC_TARGET PARE_AVX512
enum { LANES = 32 };
typedef __m512i words;
#define VEC_INLINE PARE_INLINE VEC_TARGET
VEC_INLINE words words_load(const int16_t *p)
{
    return _mm512_loadu_si512(p);
}
VEC_INLINE void words_store(int16_t *p, words a)
{
    _mm512_storeu_si512(p, a);
}
VEC_INLINE words words_set(int a)
{
    return _mm512_set1_epi16((short)a);
}
VEC_INLINE words words_add(words a, words b)
{
    return _mm512_adds_epi16(a, b);
}
VEC_INLINE words words_sub(words a, words b)
{
    return _mm512_subs_epi16(a, b);
}
VEC_INLINE words words_min(words a, words b)
{
    return _mm512_min_epi16(a, b);
}
VEC_INLINE words words_high(words a) /* a a 2^-16 */
{
    return _mm512_mulhi_epi16(a, a);
}
VEC_INLINE words words_weigh(words a, words w) /* a w 2^-15 */
{
    return _mm512_mulhrs_epi16(a, w);
}
VEC_INLINE int words_least(words a)
{
    __m256i h = _mm256_min_epi16(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64(a, 1));
    const __m128i q = _mm_min_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    return _mm_extract_epi16(_mm_minpos_epu16(q), 0); /* none is negative */
}
/* Each of the numbers at p 2^k times. */
VEC_INLINE words words_repeat(const int16_t *p, unsigned k)
{
    __m512i a;
    if (k >= 5) return _mm512_set1_epi16(*p); /* one group, or more than one vector of it */
    if (k == 4)
        a = _mm512_set1_epi32(*(const int *)(const void *)p);
    else if (k == 3)
        a = _mm512_set1_epi64(*(const long long *)(const void *)p);
    else if (k == 2)
        a = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)p));
    else
        a = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)(const void *)p));
    static const uint16_t which[5][32] = {{0},
                                          {0,  0,  1,  1,  2,  2,  3,  3,  4,  4,  5,
                                           5,  6,  6,  7,  7,  8,  8,  9,  9,  10, 10,
                                           11, 11, 12, 12, 13, 13, 14, 14, 15, 15},
                                          {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3,
                                           4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7},
                                          {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1,
                                           2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3},
                                          {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                           1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(which[k]), a);
}
#elif defined(VEC_AVX2)
#define VEC_TARGET PARE_AVX2
enum { LANES = 16 };
typedef __m256i words;
#define VEC_INLINE PARE_INLINE VEC_TARGET
VEC_INLINE words words_load(const int16_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}
VEC_INLINE void words_store(int16_t *p, words a)
{
    _mm256_storeu_si256((__m256i *)(void *)p, a);
}
VEC_INLINE words words_set(int a)
{
    return _mm256_set1_epi16((short)a);
}
VEC_INLINE words words_add(words a, words b)
{
    return _mm256_adds_epi16(a, b);
}
VEC_INLINE words words_sub(words a, words b)
{
    return _mm256_subs_epi16(a, b);
}
VEC_INLINE words words_min(words a, words b)
{
    return _mm256_min_epi16(a, b);
}
VEC_INLINE words words_high(words a)
{
    return _mm256_mulhi_epi16(a, a);
}
VEC_INLINE words words_weigh(words a, words w)
{
    return _mm256_mulhrs_epi16(a, w);
}
VEC_INLINE int words_least(words a)
{
    const __m128i q = _mm_min_epi16(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
    return _mm_extract_epi16(_mm_minpos_epu16(q), 0);
}
VEC_INLINE words words_repeat(const int16_t *p, unsigned k)
{
    __m256i a;
    if (k >= 4) return _mm256_set1_epi16(*p);
    if (k == 3)
        a = _mm256_set1_epi32(*(const int *)(const void *)p);
    else if (k == 2)
        a = _mm256_set1_epi64x(*(const long long *)(const void *)p);
    else
        a = _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)p));
    static const uint8_t which[4][32] = {{0},
                                         {0,  1,  0,  1,  2,  3,  2,  3,  4,  5,  4,
                                          5,  6,  7,  6,  7,  8,  9,  8,  9,  10, 11,
                                          10, 11, 12, 13, 12, 13, 14, 15, 14, 15},
                                         {0, 1, 0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3, 2, 3,
                                          4, 5, 4, 5, 4, 5, 4, 5, 6, 7, 6, 7, 6, 7, 6, 7},
                                         {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1,
                                          2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3}};
    return _mm256_shuffle_epi8(a, _mm256_loadu_si256((const __m256i *)(const void *)which[k]));
}
#else
#define VEC_TARGET
#define VEC_INLINE PARE_INLINE
enum { LANES = 8 };
typedef struct words {
    int16_t v[LANES];
} words;
#define EACH(expression)                                                                           \
    words r;                                                                                       \
    for (int l = 0; l < LANES; l++) r.v[l] = (int16_t)(expression);                                \
    return r
VEC_INLINE int saturated(int a)
{
    return a > INT16_MAX ? INT16_MAX : a < INT16_MIN ? INT16_MIN : a;
}
VEC_INLINE words words_load(const int16_t *p)
{
    EACH(p[l]);
}
VEC_INLINE void words_store(int16_t *p, words a)
{
    for (int l = 0; l < LANES; l++) p[l] = a.v[l];
}
VEC_INLINE words words_set(int a)
{
    EACH(a);
}
VEC_INLINE words words_add(words a, words b)
{
    EACH(saturated(a.v[l] + b.v[l]));
}
VEC_INLINE words words_sub(words a, words b)
{
    EACH(saturated(a.v[l] - b.v[l]));
}
VEC_INLINE words words_min(words a, words b)
{
    EACH(a.v[l] < b.v[l] ? a.v[l] : b.v[l]);
}
VEC_INLINE words words_high(words a)
{
    EACH(a.v[l] * a.v[l] >> 16);
}
VEC_INLINE words words_weigh(words a, words w) /* w is positive */
{
    EACH((a.v[l] * w.v[l] + (1 << 14)) >> 15);
}
VEC_INLINE int words_least(words a)
{
    int least = a.v[0];
    for (int l = 1; l < LANES; l++) least = a.v[l] < least ? a.v[l] : least;
    return least;
}
VEC_INLINE words words_repeat(const int16_t *p, unsigned k)
{
    EACH(p[l >> k]);
}
#undef EACH
#endif

/* `from`, `shift` and `weighed` are constants wherever it is called. */
VEC_INLINE int step_of(const viterbi_step *s, unsigned from, unsigned shift, bool weighed)
{
    const size_t groups = s->states >> s->to, ways = (size_t)1 << s->to;
    const words target = words_set(s->target), weight = words_set(s->weight),
                far = words_set(VITERBI_FAR);
    words least = far;
    for (size_t p = 0; p < groups; p += LANES) {
        words best = far;
        for (size_t j = 0; j < ways; j++) {
            const size_t state = j * groups + p;
            words d = words_sub(target, words_load(s->table + state));
            if (weighed) d = words_weigh(d, weight);
            for (unsigned k = 0; k < shift; k++) d = words_add(d, d);
            best = words_min(best,
                             words_add(words_high(d), words_repeat(s->in + (state >> from), from)));
        }
        words_store(s->out + p, best);
        least = words_min(least, best);
    }
    return words_least(least);
}

#define STEP_SHIFTS(from)                                                                          \
    switch (s->shift * 2 + (s->weight != 0)) {                                                     \
    case 0:                                                                                        \
        return step_of(s, from, 0, false);                                                         \
    case 1:                                                                                        \
        return step_of(s, from, 0, true);                                                          \
    case 2:                                                                                        \
        return step_of(s, from, 1, false);                                                         \
    case 3:                                                                                        \
        return step_of(s, from, 1, true);                                                          \
    case 4:                                                                                        \
        return step_of(s, from, 2, false);                                                         \
    case 5:                                                                                        \
        return step_of(s, from, 2, true);                                                          \
    case 6:                                                                                        \
        return step_of(s, from, 3, false);                                                         \
    case 7:                                                                                        \
        return step_of(s, from, 3, true);                                                          \
    case 8:                                                                                        \
        return step_of(s, from, 4, false);                                                         \
    case 9:                                                                                        \
        return step_of(s, from, 4, true);                                                          \
    case 10:                                                                                       \
        return step_of(s, from, 5, false);                                                         \
    default:                                                                                       \
        return step_of(s, from, 5, true);                                                          \
    }

VEC_TARGET static int step_any(const viterbi_step *s)
{
    switch (s->from) {
    case 1:
        STEP_SHIFTS(1)
    case 2:
        STEP_SHIFTS(2)
    case 3:
        STEP_SHIFTS(3)
    case 4:
        STEP_SHIFTS(4)
    default:
        STEP_SHIFTS(s->from) /* all lanes of a vector are in the same group */
    }
}
