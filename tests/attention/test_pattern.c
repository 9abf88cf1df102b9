/* Tests src/attention/{pattern,graph_complete}.c against the definitions, pair by pair. */
#include <pare_test.h>
#include "attention/attend.h"

/* The definitions of docs/notation.md, written down a second time. */
static bool sees(const pare_pattern *p, size_t i, size_t j)
{
    switch (p->kind) {
    case PARE_FULL:
        return true;
    case PARE_CAUSAL:
        return j <= i;
    case PARE_WINDOW:
        return j <= i && (j < p->sinks || j + p->window > i);
    case PARE_GRAPH:
        break;
    }
    return false;
}

static void check_rows(const pare_pattern *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const pare_keys keys = pare_visible(p, NULL, n, i);
        size_t k = 0;
        for (size_t j = 0; j < n; j++) {
            if (!sees(p, i, j)) continue;
            assert_true(k < keys.count);
            assert_int_equal(pare_key(&keys, k++), j);
        }
        assert_int_equal(k, keys.count);
    }
}

static void a_row_sees_exactly_its_keys(void **state)
{
    (void)state;
    for (size_t n = 1; n < 12; n++) {
        check_rows(&(pare_pattern){.kind = PARE_FULL}, n);
        check_rows(&(pare_pattern){.kind = PARE_CAUSAL}, n);
        for (size_t window = 1; window < 14; window++)
            for (size_t sinks = 0; sinks < 14; sinks++)
                check_rows(&(pare_pattern){.kind = PARE_WINDOW, .window = window, .sinks = sinks},
                           n);
    }
}

static void only_graphs_without_self_loops_can_have_empty_rows(void **state)
{
    (void)state;
    assert_true(pare_never_empty(&(pare_pattern){.kind = PARE_FULL}));
    assert_true(pare_never_empty(&(pare_pattern){.kind = PARE_CAUSAL}));
    assert_true(pare_never_empty(&(pare_pattern){.kind = PARE_WINDOW, .window = 1}));
    assert_true(pare_never_empty(&(pare_pattern){.kind = PARE_GRAPH, .self_loops = true}));
    assert_false(pare_never_empty(&(pare_pattern){.kind = PARE_GRAPH}));
    /* A permutation may keep a node in place, and a loop of the expander is dropped. */
    assert_false(pare_never_empty(&(pare_pattern){.kind = PARE_GRAPH, .expander_degree = 2}));
}

/* A path 0 - 1 - 2 and the lonely node 3. */
static const size_t PTR[] = {0, 1, 3, 4, 4};
static const uint32_t IDX[] = {1, 0, 2, 1};

static void self_loops_are_added_once_and_in_order(void **state)
{
    (void)state;
    const pare_graph data = {4, PTR, IDX};
    const pare_pattern p = {.kind = PARE_GRAPH, .self_loops = true};
    const size_t ptr[] = {0, 2, 5, 7, 8};
    const uint32_t idx[] = {0, 1, 0, 1, 2, 1, 2, 3};
    pare_arena *const a = pare_arena_new();
    pare_graph once, twice;
    pare_err err = {0};
    assert_ok(pare_graph_complete(&once, a, &data, &p, &err), &err);
    assert_memory_equal(once.ptr, ptr, sizeof ptr);
    assert_memory_equal(once.idx, idx, sizeof idx);
    assert_ok(pare_graph_complete(&twice, a, &once, &p, &err), &err);
    assert_memory_equal(twice.ptr, ptr, sizeof ptr);
    pare_arena_free(a);
}

static bool has_edge(const pare_graph *g, size_t i, size_t j)
{
    for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++)
        if (g->idx[e] == j) return true;
    return false;
}

static void the_expander_is_symmetric_sorted_without_loops_and_follows_its_seed(void **state)
{
    (void)state;
    enum { N = 50 };
    size_t ptr[N + 1] = {0};
    const pare_graph none = {N, ptr, NULL};
    pare_pattern p = {.kind = PARE_GRAPH, .expander_degree = 6, .expander_seed = 5};
    pare_arena *const a = pare_arena_new();
    pare_graph g, same, other;
    pare_err err = {0};
    assert_ok(pare_graph_complete(&g, a, &none, &p, &err), &err);
    for (size_t i = 0; i < N; i++) {
        assert_le(g.ptr[i + 1] - g.ptr[i], 6);
        for (size_t e = g.ptr[i]; e < g.ptr[i + 1]; e++) {
            assert_true(g.idx[e] != i);
            assert_true(e == g.ptr[i] || g.idx[e - 1] < g.idx[e]);
            assert_true(has_edge(&g, g.idx[e], i));
        }
    }
    assert_true(g.ptr[N] > 5 * N); /* few collisions */
    assert_ok(pare_graph_complete(&same, a, &none, &p, &err), &err);
    assert_int_equal(same.ptr[N], g.ptr[N]);
    assert_memory_equal(same.idx, g.idx, g.ptr[N] * sizeof *g.idx);
    p.expander_seed = 6;
    assert_ok(pare_graph_complete(&other, a, &none, &p, &err), &err);
    assert_true(other.ptr[N] != g.ptr[N] || memcmp(other.idx, g.idx, g.ptr[N] * sizeof *g.idx));
    pare_arena_free(a);
}

static void a_degree_whose_product_wraps_around_is_out_of_memory_not_out_of_bounds(void **state)
{
    (void)state;
    enum { N = 4096 };
    static size_t ptr[N + 1];
    const pare_graph none = {N, ptr, NULL};
    const size_t degrees[] = {(size_t)1 << 52, (size_t)1 << 53, SIZE_MAX - 1};
    pare_arena *const a = pare_arena_new();
    pare_graph g;
    pare_err err = {0};
    for (size_t i = 0; i < 3; i++) {
        const pare_pattern p = {.kind = PARE_GRAPH, .expander_degree = degrees[i]};
        assert_status(pare_graph_complete(&g, a, &none, &p, &err), PARE_ERR_MEMORY, &err);
    }
    pare_arena_free(a);
}

static void an_odd_degree_is_rounded_down(void **state)
{
    (void)state;
    const pare_graph data = {4, PTR, IDX};
    pare_pattern p = {.kind = PARE_GRAPH, .expander_degree = 2, .expander_seed = 1};
    pare_arena *const a = pare_arena_new();
    pare_graph even, odd;
    pare_err err = {0};
    assert_ok(pare_graph_complete(&even, a, &data, &p, &err), &err);
    p.expander_degree = 3;
    assert_ok(pare_graph_complete(&odd, a, &data, &p, &err), &err);
    assert_memory_equal(even.ptr, odd.ptr, 5 * sizeof *odd.ptr);
    assert_memory_equal(even.idx, odd.idx, odd.ptr[4] * sizeof *odd.idx);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_sees_exactly_its_keys),
        cmocka_unit_test(only_graphs_without_self_loops_can_have_empty_rows),
        cmocka_unit_test(self_loops_are_added_once_and_in_order),
        cmocka_unit_test(the_expander_is_symmetric_sorted_without_loops_and_follows_its_seed),
        cmocka_unit_test(a_degree_whose_product_wraps_around_is_out_of_memory_not_out_of_bounds),
        cmocka_unit_test(an_odd_degree_is_rounded_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
