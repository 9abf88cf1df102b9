/* seedlm_lanes.h - how much of a few blocks lies in the span of many seeds' columns: written once
 * over the vector of base/vec.h. */
#include "base/simd.h"
#include "base/vec.h"
#include "seedlm.h"

VEC_INLINE bool reaches(vec share, float least)
{
#if defined(VEC_AVX512)
    return _mm512_cmp_ps_mask(share, vec_set(least), _CMP_GE_OQ) != 0;
#elif defined(VEC_AVX2)
    return _mm256_movemask_ps(_mm256_cmp_ps(share, vec_set(least), _CMP_GE_OQ)) != 0;
#else
    return vec_largest(share) >= least;
#endif
}

/* Four blocks by name: gcc keeps no array of vectors in registers. */
typedef struct four_blocks {
    vec a, b, c, d;
} four_blocks;

/* Of the lanes that start at `q` the shares of all blocks. */
VEC_INLINE four_blocks shares_of(const float *q, const float *w, size_t n, size_t columns)
{
    four_blocks s = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
    for (size_t p = 0; p < columns; p++, q += n * SEEDLM_LANES) {
        four_blocks along = {vec_set(0), vec_set(0), vec_set(0), vec_set(0)};
        for (size_t i = 0; i < n; i++) {
            const vec u = vec_load(q + i * SEEDLM_LANES);
            along.a = vec_fma(u, vec_set(w[i]), along.a);
            along.b = vec_fma(u, vec_set(w[n + i]), along.b);
            along.c = vec_fma(u, vec_set(w[2 * n + i]), along.c);
            along.d = vec_fma(u, vec_set(w[3 * n + i]), along.d);
        }
        s.a = vec_fma(along.a, along.a, s.a);
        s.b = vec_fma(along.b, along.b, s.b);
        s.c = vec_fma(along.c, along.c, s.c);
        s.d = vec_fma(along.d, along.d, s.d);
    }
    return s;
}

VEC_INLINE size_t add_hits(seedlm_hit *to, vec share, float least, size_t block, size_t first)
{
    float each[VEC];
    size_t hits = 0;
    if (!reaches(share, least)) return 0;
    vec_store(each, share);
    for (size_t l = 0; l < VEC; l++)
        if (each[l] >= least)
            to[hits++] = (seedlm_hit){(uint32_t)block, (uint32_t)(first + l), each[l]};
    return hits;
}

VEC_TARGET static size_t scan_any(seedlm_hit *to, const seedlm_scan *s)
{
    const size_t n = s->shape.n, columns = s->shape.columns;
    size_t hits = 0;
    for (size_t first = 0; first < s->groups * SEEDLM_LANES; first += VEC) {
        const float *const q =
            s->basis + first / SEEDLM_LANES * columns * n * SEEDLM_LANES + first % SEEDLM_LANES;
        const four_blocks share = shares_of(q, s->w, n, columns);
        hits += add_hits(to + hits, share.a, s->least[0], 0, first);
        hits += add_hits(to + hits, share.b, s->least[1], 1, first);
        hits += add_hits(to + hits, share.c, s->least[2], 2, first);
        hits += add_hits(to + hits, share.d, s->least[3], 3, first);
    }
    return hits;
}
