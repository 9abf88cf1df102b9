/* graph_split.c - which nodes are for training, choosing and testing. */
#include "base/support.h"
#include "graph_data.h"

static void set_mask(uint8_t *mask, const uint32_t *order, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) mask[order[i]] = 1;
}

pare_status pare_graph_masks(const uint8_t **train, const uint8_t **val, const uint8_t **test,
                             pare_arena *a, const pare_graph_data *g, size_t split, pare_err *err)
{
    const size_t n = g->graph.n;
    if (g->train) {
        if (split >= g->splits)
            return pare_fail(err, PARE_ERR_USAGE, "split %zu: the file has the splits 0 to %zu",
                             split, g->splits - 1);
        *train = g->train + split * n;
        *val = g->val + split * n;
        *test = g->test + split * n;
        return PARE_OK;
    }
    uint32_t *order = pare_alloc(a, n, sizeof *order);
    uint8_t *masks = pare_alloc(a, n, 3);
    if (!order || !masks) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    pare_rng rng = pare_rng_at(0, split);
    pare_rng_shuffle(&rng, order, n);
    const size_t first = n * 3 / 5, second = first + n / 5;
    set_mask(masks, order, 0, first);
    set_mask(masks + n, order, first, second);
    set_mask(masks + 2 * n, order, second, n);
    *train = masks;
    *val = masks + n;
    *test = masks + 2 * n;
    return PARE_OK;
}
