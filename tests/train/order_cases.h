/* order_cases.h - a graph and a model so wide that the tape puts the nodes into an order of its
 * own. */
#ifndef TEST_ORDER_CASES_H
#define TEST_ORDER_CASES_H
#include "gradient_cases.h"
#include <pare/model.h>
/* behind the others: they have parameters called rows */
#include "train/tape.h"

enum { NODES = 601, WIDE = 256, FEATURES = 3 };

/* Five groups that mostly see themselves, a few nodes that everybody sees, one that sees nobody.
 * Node i has the name name[i]. */
static inline pare_graph groups_graph(pare_arena *a, const uint32_t *name)
{
    size_t *const ptr = pare_alloc(a, NODES + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, NODES * NODES, sizeof *idx);
    uint8_t(*const sees)[NODES] = pare_alloc(a, NODES, NODES);
    pare_rng r = pare_rng_at(1, 31);
    assert_true(ptr && idx && sees);
    for (size_t i = 1; i < NODES; i++)
        for (size_t j = 0; j < NODES; j++) {
            const double share = i % 5 == j % 5 ? 0.15 : 0.01;
            sees[name[i]][name[j]] = pare_rng_uniform(&r) < share || j % 200 == 7;
        }
    for (size_t i = 0, at = 0; i < NODES; i++) {
        for (size_t j = 0; j < NODES; j++)
            if (sees[i][j]) idx[at++] = (uint32_t)j;
        ptr[i + 1] = at;
    }
    return (pare_graph){NODES, ptr, idx};
}

static inline pare_model *wide_model(void)
{
    const pare_random_model_opts o = {.kind = PARE_RANDOM_GRAPH,
                                      .dim = WIDE,
                                      .layers = 2,
                                      .heads = 1,
                                      .ffn = 16,
                                      .features = FEATURES,
                                      .classes = 3};
    pare_model *m;
    pare_err err = {0};
    assert_ok(pare_random_model(&m, &o, &err), &err);
    m->pattern.self_loops = false;
    return m;
}
#endif
