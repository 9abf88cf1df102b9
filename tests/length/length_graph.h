/* length_graph.h - a random graph for attention: rows of 0, few and many keys, in any order. */
#ifndef LENGTH_GRAPH_H
#define LENGTH_GRAPH_H
#include <pare_test.h>
#include <pare/attention.h>

/* Row 5 sees nothing, every 16th row about half of all, the others about 6 keys. */
static inline pare_graph random_graph(pare_arena *a, size_t n, uint64_t seed)
{
    size_t *const ptr = pare_alloc(a, n + 1, sizeof *ptr), edges = 0;
    uint32_t *const idx = pare_alloc(a, n * n + 1, sizeof *idx);
    pare_rng r = pare_rng_at(seed, 91);
    assert_true(ptr && idx);
    for (size_t i = 0; i < n; i++) {
        const uint64_t one_in = i % 16 == 7 ? 2 : 1 + n / 6;
        for (uint32_t j = 0; j < n; j++)
            if (i != 5 && pare_rng_below(&r, one_in) == 0) idx[edges++] = j;
        ptr[i + 1] = edges;
    }
    return (pare_graph){n, ptr, idx};
}
#endif
