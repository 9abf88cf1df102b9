/* Tests src/attention/graph_order.c: the same graph, and its neighbors closer together. */
#include "base/support.h"
#include "kernel_cases.h"
#include "attention/edge_schedule.h"

enum { N = 900, WIDTH = 1024 }; /* more nodes than a block has */

/* Nodes in groups of 90 see most of their group; node 3 sees nobody; node 4 sees all. Names are
 * shuffled. */
static pare_graph shuffled_groups(pare_arena *a, uint64_t seed)
{
    size_t *const ptr = pare_alloc(a, N + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, N * N, sizeof *idx);
    uint32_t *const name = pare_alloc(a, N, sizeof *name);
    pare_rng r = pare_rng_at(seed, 41);
    assert_true(ptr && idx && name);
    for (size_t i = 0; i < N; i++) name[i] = (uint32_t)i;
    pare_rng_shuffle(&r, name, N);
    for (size_t i = 0, at = 0; i < N; i++) {
        for (size_t j = 0; j < N; j++) {
            const double share = name[i] / 90 == name[j] / 90 ? 0.7 : 0.004;
            const bool hit = pare_rng_uniform(&r) < share;
            if (i != 3 && (hit || i == 4)) idx[at++] = (uint32_t)j;
        }
        ptr[i + 1] = at;
    }
    return (pare_graph){N, ptr, idx};
}

static size_t segments(pare_arena *a, const pare_graph *g)
{
    pare_turned t;
    pare_err err = {0};
    assert_ok(pare_graph_turn(&t, a, g, WIDTH, &err), &err);
    return t.queries->first[t.queries->blocks];
}

static void an_order_is_the_same_graph_with_other_names(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const pare_graph g = shuffled_groups(a, 1);
    pare_graph o;
    const uint32_t *order;
    pare_err err = {0};
    size_t place[N];
    assert_ok(pare_graph_order(&o, &order, a, &g, WIDTH, &err), &err);
    assert_true(order && o.n == N && o.ptr[0] == 0 && o.ptr[N] == g.ptr[N]);
    for (size_t i = 0; i < N; i++) place[i] = SIZE_MAX;
    for (size_t i = 0; i < N; i++) {
        assert_true(order[i] < N && place[order[i]] == SIZE_MAX); /* each node once */
        place[order[i]] = i;
    }
    for (size_t i = 0; i < N; i++) {
        const size_t was = order[i], count = g.ptr[was + 1] - g.ptr[was];
        assert_int_equal(o.ptr[i + 1] - o.ptr[i], count);
        bool seen[N] = {false};
        for (size_t e = g.ptr[was]; e < g.ptr[was + 1]; e++) seen[place[g.idx[e]]] = true;
        for (size_t e = o.ptr[i]; e < o.ptr[i + 1]; e++) {
            assert_true(seen[o.idx[e]]);
            if (e > o.ptr[i]) assert_true(o.idx[e - 1] < o.idx[e]);
        }
    }
    pare_arena_free(a);
}

static void neighbors_come_closer(void **state)
{
    (void)state;
    for (uint64_t seed = 2; seed < 5; seed++) {
        pare_arena *const a = pare_arena_new();
        const pare_graph g = shuffled_groups(a, seed);
        pare_graph o;
        const uint32_t *order;
        pare_err err = {0};
        assert_ok(pare_graph_order(&o, &order, a, &g, WIDTH, &err), &err);
        double was = 0, is = 0;
        for (size_t i = 0; i < N; i++) {
            for (size_t e = g.ptr[i]; e < g.ptr[i + 1]; e++)
                was += fabs((double)g.idx[e] - (double)i);
            for (size_t e = o.ptr[i]; e < o.ptr[i + 1]; e++)
                is += fabs((double)o.idx[e] - (double)i);
        }
        if (!(is < 0.5 * was)) print_error("seed %d: %g, was %g\n", (int)seed, is, was);
        assert_true(is < 0.5 * was);
        assert_true(segments(a, &o) < segments(a, &g));
        pare_arena_free(a);
    }
}

/* Where all keys are in the cache, or rows have few of them. */
static void a_graph_that_gains_nothing_stays_as_it_is(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    const pare_graph g = shuffled_groups(a, 6);
    const size_t none[] = {0};
    const pare_graph empty = {0, none, NULL};
    size_t *const ptr = pare_alloc(a, N + 1, sizeof *ptr);
    uint32_t *const idx = pare_alloc(a, N, sizeof *idx);
    for (size_t i = 0; i < N; i++) ptr[i + 1] = i + 1, idx[i] = (uint32_t)(i * 7 % N);
    const pare_graph sparse = {N, ptr, idx};
    const pare_graph *const graphs[] = {&g, &empty, &sparse};
    const size_t widths[] = {8, WIDTH, WIDTH};
    for (size_t i = 0; i < 3; i++) {
        pare_graph o;
        const uint32_t *order;
        pare_err err = {0};
        assert_ok(pare_graph_order(&o, &order, a, graphs[i], widths[i], &err), &err);
        assert_null(order);
        assert_true(o.n == graphs[i]->n && o.ptr == graphs[i]->ptr && o.idx == graphs[i]->idx);
    }
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_order_is_the_same_graph_with_other_names),
        cmocka_unit_test(neighbors_come_closer),
        cmocka_unit_test(a_graph_that_gains_nothing_stays_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
