/* Whatever allocation fails while the figures of Theorem 4.2 are taken: PARE_ERR_MEMORY, and no
 * bound. An arena that is partly used asks for memory at another place: it is filled step by
 * step. */
#include "width_nets.h"
#include "width/prove.h"
#include <fail_alloc.h>

enum { NODES = 6, D = 12 };

/* The number of allocations that were refused, one after the other. */
static long refuse_each(const pare_model *m, const net *n, const pare_inputs *set, size_t used)
{
    for (long allowed = 0;; allowed++) {
        pare_err err = {0};
        pare_work w = {.arena = pare_arena_new(), .err = &err};
        assert_non_null(w.arena);
        assert_non_null(pare_alloc(w.arena, used, 1));
        fail_alloc_once(allowed);
        const lowrank_facts p = lowrank_measure(&w, m, n, set, 2);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        assert_status(w.st, hit ? PARE_ERR_MEMORY : PARE_OK, &err);
        assert_true(isinf(p.bound.v) == hit);
        pare_arena_free(w.arena);
        if (!hit) return allowed;
    }
}

static void without_memory_there_is_no_bound(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 1);
    const net n = rand_net(s, (net_shape){.features = D, .dim = D, .layers = 2, .heads = 1});
    const pare_graph g = rand_graph(s, NODES, 2, NULL);
    const pare_mat x = rand_mat(s, NODES, D, 1);
    pare_model *const m = model_of(s, &n);
    pare_input in = input_of(&x, &g);
    const pare_inputs set = {1, &in};
    long refused = 0;
    for (size_t used = 1 << 10; used < 1 << 16; used += 1 << 14)
        refused += refuse_each(m, &n, &set, used);
    print_message("%ld allocations refused\n", refused);
    assert_true(refused > 50);
    pare_model_free(m);
    stage_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory_there_is_no_bound)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
