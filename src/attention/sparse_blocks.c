/* sparse_blocks.c - cache blocking over the keys of a graph.
 *
 * A row has keys anywhere in the graph. Where they do not all fit the cache next to a core, all
 * rows take their keys of the first block, then all those of the second, and so on: each key comes
 * from the far cache once per block, not once per edge. */
#include "base/support.h"
#include "sparse.h"
#include <stdlib.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    AHEAD = 4,        /* rows whose list of keys is prefetched */
    UNIT = 64,        /* rows of one unit of work */
    CACHE = 4 << 18,  /* bytes of a block: most of a second-level cache */
    EDGES_PER_ROW = 6 /* edges that a row must have in a block on average, for blocks to pay */
};

size_t key_block_size(const pare_graph *g, size_t width)
{
    const size_t keys = CACHE / sizeof(float) / (width ? width : 1) + 1;
    const size_t blocks = (g->n + keys - 1) / keys;
    return blocks < 2 || g->ptr[g->n] / blocks / EDGES_PER_ROW < g->n ? g->n : keys;
}

typedef struct pass {
    const pare_graph *g;
    size_t end;   /* of the block */
    size_t *next; /* first edge of each row that was not taken yet */
    key_segment_fn *fn;
    void *ctx;
} pass;

/* How many of eight ascending keys are at most `last`. */
static size_t count_of_eight(const uint32_t *key, uint32_t last)
{
#if defined(__SSE2__)
    /* there is no unsigned comparison: flip the sign bit on both sides */
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

/* First of the edges from .. to - 1 whose key is not below `end`. Eight at a time: a binary search
 * would wait for memory that is not used next. */
static size_t edge_at(const uint32_t *idx, size_t from, size_t to, size_t end)
{
    const uint32_t last = (uint32_t)(end - 1);
    while (to - from >= 8) {
        const size_t below = count_of_eight(idx + from, last);
        from += below;
        if (below < 8) return from;
    }
    while (from < to && idx[from] <= last) from++;
    return from;
}

static void rows_of_block(void *ctx, size_t unit)
{
    const pass *const s = ctx;
    const size_t n = s->g->n, first = unit * UNIT, last = n - first < UNIT ? n : first + UNIT;
    for (size_t i = first; i < last; i++) {
        if (i + AHEAD < last) __builtin_prefetch(s->g->idx + s->next[i + AHEAD]);
        const size_t from = s->next[i], to = edge_at(s->g->idx, from, s->g->ptr[i + 1], s->end);
        if (from < to) s->fn(s->ctx, i, from, to - from);
        s->next[i] = to;
    }
}

pare_status for_key_blocks(const pare_graph *g, size_t block, key_segment_fn *fn, void *ctx,
                           const pare_exec *exec, pare_err *err)
{
    pass s = {.g = g, .fn = fn, .ctx = ctx, .next = malloc((g->n + 1) * sizeof *s.next)};
    if (!s.next) return pare_no_memory(err);
    for (size_t i = 0; i < g->n; i++) s.next[i] = g->ptr[i];
    pare_status st = PARE_OK;
    for (size_t from = 0; !st && from < g->n; from += block) {
        s.end = g->n - from < block ? g->n : from + block;
        st = pare_parallel_until(exec, (g->n + UNIT - 1) / UNIT, rows_of_block, &s, err);
    }
    free(s.next);
    return st;
}
