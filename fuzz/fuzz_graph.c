/* Graph data: neighbors are nodes, labels are classes, masks are 0 or 1. */
#include "fuzz.h"
#include "data/graph_data.h"

#include <stdlib.h>
#include <string.h>

static void look_at(const pare_graph_data *g, pare_arena *a)
{
    const uint8_t *mask[3];
    pare_err err = {0};
    const size_t n = g->graph.n;
    FUZZ_EXPECT(g->graph.ptr[0] == 0);
    for (size_t i = 0; i < n; i++) {
        FUZZ_EXPECT(g->graph.ptr[i] <= g->graph.ptr[i + 1]);
        for (size_t e = g->graph.ptr[i]; e < g->graph.ptr[i + 1]; e++)
            FUZZ_EXPECT(g->graph.idx[e] < n);
        FUZZ_EXPECT(g->labels[i] >= 0 && (uint64_t)g->labels[i] < g->classes);
    }
    const pare_status st = pare_graph_masks(&mask[0], &mask[1], &mask[2], a, g, 0, &err);
    fuzz_expect_said(st, &err);
    for (size_t k = 0; !st && k < 3; k++)
        for (size_t i = 0; i < n; i++) FUZZ_EXPECT(mask[k][i] <= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *const copy = malloc(size ? size : 1);
    pare_arena *const a = pare_arena_new();
    pare_graph_data g;
    pare_err err = {0};
    FUZZ_EXPECT(copy && a);
    if (size) memcpy(copy, data, size);
    (void)fuzz_reseal_npz(copy, size);
    fuzz_file("g.npz", copy, size);
    const pare_status st = pare_graph_load(&g, a, "g.npz", &err);
    fuzz_expect_said(st, &err);
    if (!st) look_at(&g, a);
    fuzz_no_files();
    pare_arena_free(a);
    free(copy);
    return 0;
}
