/* Rows of a graph in blocks of keys. A row names keys anywhere: where they do not all fit the
 * cache next to a core, all rows visit the first block of keys, then all the second, and each key
 * comes from the far cache once a block and not once an edge. */
#include "sparse.h"
#include <stdlib.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    AHEAD = 4,       /* rows whose list is asked for in advance */
    UNIT = 64,       /* rows of one unit of work */
    CACHE = 4 << 18, /* bytes of a block: most of a second-level cache */
    WORTH = 6        /* edges that a row must have in a block on average */
};

size_t list_block(const pare_graph *g, size_t width)
{
    const size_t keys = CACHE / sizeof(float) / (width ? width : 1) + 1;
    const size_t blocks = (g->n + keys - 1) / keys;
    return blocks < 2 || g->ptr[g->n] / blocks / WORTH < g->n ? g->n : keys;
}

typedef struct sweep {
    const pare_graph *g;
    size_t most, end; /* of the block */
    size_t *at;       /* first edge of each row that is still to come */
    list_segment *fn;
    void *ctx;
} sweep;

/* How many of eight keys, ascending, are at most `last`. */
static size_t of_eight(const uint32_t *key, uint32_t last)
{
#if defined(__SSE2__)
    /* there is no unsigned comparison: the sign bit is turned on both sides */
    const __m128i sign = _mm_set1_epi32(INT32_MIN);
    const __m128i end = _mm_xor_si128(_mm_set1_epi32((int32_t)last), sign);
    const __m128i a = _mm_xor_si128(_mm_loadu_si128((const __m128i *)key), sign);
    const __m128i b = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(key + 4)), sign);
    const __m128i above = _mm_packs_epi32(_mm_cmpgt_epi32(a, end), _mm_cmpgt_epi32(b, end));
    const int bits = _mm_movemask_epi8(above);
    return bits ? (size_t)__builtin_ctz((unsigned)bits) / 2 : 8;
#else
    size_t below = 0;
    for (size_t l = 0; l < 8; l++) below += key[l] <= last;
    return below;
#endif
}

/* First of the edges from .. to - 1 whose key is not below `end`. Eight at a time, and no look
 * ahead of what is used next: a search by halves waits for memory instead. */
static size_t edge_at(const uint32_t *idx, size_t from, size_t to, size_t end)
{
    const uint32_t last = (uint32_t)(end - 1);
    while (to - from >= 8) {
        const size_t below = of_eight(idx + from, last);
        from += below;
        if (below < 8) return from;
    }
    while (from < to && idx[from] <= last) from++;
    return from;
}

static void rows(void *ctx, size_t unit)
{
    const sweep *const s = ctx;
    const size_t n = s->g->n, first = unit * UNIT, last = n - first < UNIT ? n : first + UNIT;
    for (size_t i = first; i < last; i++) {
        if (i + AHEAD < last) __builtin_prefetch(s->g->idx + s->at[i + AHEAD]);
        const size_t to = edge_at(s->g->idx, s->at[i], s->g->ptr[i + 1], s->end);
        while (s->at[i] < to) {
            const size_t left = to - s->at[i], count = left < s->most ? left : s->most;
            s->fn(s->ctx, i, s->at[i], count);
            s->at[i] += count;
        }
    }
}

pare_status list_sweep(const pare_graph *g, size_t block, size_t most, list_segment *fn, void *ctx,
                       const pare_exec *exec, pare_err *err)
{
    sweep s = {.g = g, .most = most, .fn = fn, .ctx = ctx, .at = malloc((g->n + 1) * sizeof *s.at)};
    if (!s.at) return pare_no_memory(err);
    for (size_t i = 0; i < g->n; i++) s.at[i] = g->ptr[i];
    pare_status st = PARE_OK;
    for (size_t from = 0; !st && from < g->n; from += block) {
        s.end = g->n - from < block ? g->n : from + block;
        st = pare_parallel_until(exec, (g->n + UNIT - 1) / UNIT, rows, &s, err);
    }
    free(s.at);
    return st;
}
