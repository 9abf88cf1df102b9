/* Tests src/data/graph_from_edges.c, graph_file.c and graph_split.c. */
#include "base/array.h"
#include "data/graph_data.h"
#include "small.h"

static pare_graph build(pare_arena *a, size_t n, const int64_t *edges, size_t m)
{
    pare_graph g;
    pare_err err;
    assert_ok(pare_graph_from_edges(&g, a, n, edges, m, &err), &err);
    return g;
}

static void edges_become_rows_without_twins_and_loops(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    const int64_t edges[] = {2, 0, 0, 2, 1, 1, 3, 0, 0, 2, 2, 3};
    const pare_graph g = build(a, 5, edges, 6);
    const size_t ptr[] = {0, 2, 2, 4, 6, 6};
    const uint32_t idx[] = {2, 3, 0, 3, 0, 2};
    assert_int_equal(g.n, 5);
    assert_memory_equal(g.ptr, ptr, sizeof ptr);
    assert_memory_equal(g.idx, idx, sizeof idx);
    const pare_graph none = build(a, 2, NULL, 0);
    assert_int_equal(none.ptr[2], 0);
    pare_arena_free(a);
}

static void random_graphs_equal_their_adjacency_matrix(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        pare_rng rng = pare_rng_at(seed, 0);
        pare_arena *a = pare_arena_new();
        const size_t n = 1 + pare_rng_below(&rng, 12), m = pare_rng_below(&rng, 60);
        bool seen[12][12] = {{false}};
        int64_t edges[120];
        for (size_t e = 0; e < m; e++) {
            const size_t u = pare_rng_below(&rng, n), v = pare_rng_below(&rng, n);
            edges[2 * e] = (int64_t)u;
            edges[2 * e + 1] = (int64_t)v;
            if (u != v) seen[u][v] = seen[v][u] = true;
        }
        const pare_graph g = build(a, n, edges, m);
        bool same = true;
        for (size_t u = 0; u < n; u++) {
            size_t at = g.ptr[u];
            for (size_t v = 0; v < n; v++)
                if (seen[u][v]) same = same && at < g.ptr[u + 1] && g.idx[at++] == v;
            same = same && at == g.ptr[u + 1];
        }
        if (!same) {
            print_error("seed %llu\n", (unsigned long long)seed);
            fail();
        }
        pare_arena_free(a);
    }
}

static void an_edge_out_of_range_is_named(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_graph g;
    pare_err err;
    assert_status(pare_graph_from_edges(&g, a, 3, (int64_t[]){0, 1, 2, 3}, 2, &err), PARE_ERR_INPUT,
                  &err);
    assert_contains(err.msg, "edge 1 joins nodes 2 and 3");
    assert_status(pare_graph_from_edges(&g, a, 3, (int64_t[]){-1, 1}, 1, &err), PARE_ERR_INPUT,
                  &err);
    pare_arena_free(a);
}

/* ---- files ------------------------------------------------------------------------------- */

/* A whole little file of one of the forms; tests spoil one member of it. */
enum { MOST = 10 };
typedef struct form {
    size_t n;
    const char *name[MOST];
    pare_array array[MOST];
} form;

static form dense_form(void)
{
    static const float x[6] = {1, 2, 3, 4, 5, 6};
    static const int64_t labels[3] = {0, 2, 1}, edges[4] = {0, 1, 1, 2};
    static const uint8_t train[6] = {1, 0, 0, 0, 0, 1}, val[6] = {0, 1, 0, 0, 1, 0},
                         test[6] = {0, 0, 1, 1, 0, 0};
    return (form){
        6,
        {"node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks"},
        {{PARE_F32, 2, {3, 2}, x},
         {PARE_I64, 1, {3}, labels},
         {PARE_I64, 2, {2, 2}, edges},
         {PARE_BOOL, 2, {2, 3}, train},
         {PARE_BOOL, 2, {2, 3}, val},
         {PARE_BOOL, 2, {2, 3}, test}}};
}

static form csr_form(void)
{
    static const int32_t adj_ptr[4] = {0, 1, 2, 3}, adj_idx[3] = {1, 2, 0};
    static const float adj_data[3] = {1, 1, 0}; /* 2 -> 0 is a stored zero: no edge */
    static const int32_t attr_ptr[4] = {0, 2, 2, 3}, attr_idx[3] = {3, 0, 1};
    static const float attr_data[3] = {5, 6, 7};
    static const int64_t adj_shape[2] = {3, 3}, attr_shape[2] = {3, 4};
    static const int8_t labels[3] = {1, 0, 1};
    return (form){9,
                  {"adj_indptr", "adj_indices", "adj_data", "adj_shape", "attr_indptr",
                   "attr_indices", "attr_data", "attr_shape", "labels"},
                  {{PARE_I32, 1, {4}, adj_ptr},
                   {PARE_I32, 1, {3}, adj_idx},
                   {PARE_F32, 1, {3}, adj_data},
                   {PARE_I64, 1, {2}, adj_shape},
                   {PARE_I32, 1, {4}, attr_ptr},
                   {PARE_I32, 1, {3}, attr_idx},
                   {PARE_F32, 1, {3}, attr_data},
                   {PARE_I64, 1, {2}, attr_shape},
                   {PARE_I8, 1, {3}, labels}}};
}

static form packed_form(void)
{
    static const uint8_t bits[4] = {0x80, 0x40, 0x01, 0x80}; /* features 0 and 9; 7 and 8 */
    static const int64_t count = 10;
    static const int32_t edges[2] = {0, 1};
    static const int8_t labels[2] = {0, 0};
    return (form){4,
                  {"features_packed", "n_features", "edges", "node_labels"},
                  {{PARE_U8, 2, {2, 2}, bits},
                   {PARE_I64, 0, {0}, &count},
                   {PARE_I32, 2, {1, 2}, edges},
                   {PARE_I8, 1, {2}, labels}}};
}

static pare_status load(pare_graph_data *d, pare_arena *a, const form *f, pare_err *err)
{
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "g.npz");
    assert_ok(pare_npz_write(path, f->n, f->name, f->array, false, true, err), err);
    const pare_status st = pare_graph_load(d, a, path, err);
    if (st) assert_contains(err->msg, path);
    test_rmdir(dir);
    return st;
}

static void the_three_forms_are_read(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_graph_data d;
    pare_err err;
    form f = dense_form();
    assert_ok(load(&d, a, &f, &err), &err);
    assert_true(d.graph.n == 3 && d.features == 2 && d.classes == 3 && d.splits == 2);
    assert_true(d.x[5] == 6 && d.labels[1] == 2 && d.test[2] == 1 && d.test[3] == 1);
    assert_int_equal(d.graph.ptr[3], 4);
    f = csr_form();
    assert_ok(load(&d, a, &f, &err), &err);
    assert_true(d.graph.n == 3 && d.features == 4 && d.classes == 2 && d.splits == 0 && !d.test);
    const double x[12] = {6, 0, 0, 5, 0, 0, 0, 0, 0, 7, 0, 0};
    assert_memory_equal(d.x, x, sizeof x);
    const size_t ptr[4] = {0, 1, 3, 4};
    assert_memory_equal(d.graph.ptr, ptr, sizeof ptr);
    f = packed_form();
    assert_ok(load(&d, a, &f, &err), &err);
    assert_true(d.graph.n == 2 && d.features == 10 && d.classes == 1);
    for (size_t i = 0; i < 20; i++) assert_true(d.x[i] == (i == 0 || i == 9 || i == 17 || i == 18));
    pare_arena_free(a);
}

static void assert_refused(form f, const char *says)
{
    pare_arena *a = pare_arena_new();
    pare_graph_data d;
    pare_err err;
    assert_status(load(&d, a, &f, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, says);
    pare_arena_free(a);
}

static form spoil(form f, size_t i, pare_array with)
{
    f.array[i] = with;
    return f;
}

static form without(form f, size_t i)
{
    f.n--;
    f.name[i] = f.name[f.n];
    f.array[i] = f.array[f.n];
    return f;
}

static void malformed_lists_are_refused_by_name_and_shape(void **state)
{
    (void)state;
    static const float x[6] = {1, 2, NAN, 4, 5, 6};
    static const int64_t i[6] = {0, 1, -1, 0, 1, 3}, e[4] = {0, 1, 1, 3};
    static const uint8_t two[6] = {0, 2, 0, 0, 0, 0};
    const form f = dense_form();
    assert_refused(spoil(f, 0, (pare_array){PARE_F32, 2, {2, 3}, x}),
                   "node_features has the shape [2, 3], expected [3, any]");
    assert_refused(spoil(f, 0, (pare_array){PARE_F32, 1, {6}, x}),
                   "node_features has the shape [6]");
    assert_refused(spoil(f, 0, (pare_array){PARE_F32, 2, {3, 2}, x}),
                   "node_features: [1, 0] is nan");
    assert_refused(spoil(f, 1, (pare_array){PARE_I64, 1, {3}, i}),
                   "node_labels: node 2 has the label -1");
    assert_refused(spoil(f, 1, (pare_array){PARE_F32, 1, {3}, x}), "node_labels holds F32");
    assert_refused(spoil(f, 1, (pare_array){PARE_I64, 1, {0}, i}), "0 nodes");
    assert_refused(spoil(f, 2, (pare_array){PARE_I64, 2, {2, 2}, e}),
                   "edges: edge 1 joins nodes 1 and 3");
    assert_refused(spoil(f, 2, (pare_array){PARE_I64, 2, {1, 3}, i}),
                   "edges has the shape [1, 3], expected [any, 2]");
    assert_refused(spoil(f, 3, (pare_array){PARE_BOOL, 2, {3, 2}, two}),
                   "train_masks has the shape [3, 2], expected [any, 3]");
    assert_refused(spoil(f, 4, (pare_array){PARE_U8, 2, {2, 3}, two}), "val_masks: entry 1 is 2");
    assert_refused(spoil(f, 4, (pare_array){PARE_BOOL, 1, {3}, f.array[4].data}),
                   "val_masks holds 1 splits, expected 2");
    assert_refused(without(f, 5), "test_masks");
    assert_refused(without(f, 0), "no graph");
    assert_refused(without(f, 1), "node_labels");
}

static void malformed_csr_is_refused_by_name_and_shape(void **state)
{
    (void)state;
    static const int32_t down[4] = {0, 2, 1, 3}, late[4] = {1, 1, 3, 3}, far[4] = {0, 1, 3, 9},
                         wide[3] = {1, 2, 3}, low[3] = {1, -1, 0};
    static const int64_t four[2] = {4, 4};
    static const float bad[3] = {1, INFINITY, 1};
    const form f = csr_form();
    assert_refused(spoil(f, 0, (pare_array){PARE_I32, 1, {4}, down}),
                   "adj_indptr: entry 2 is 1 after 2");
    assert_refused(spoil(f, 0, (pare_array){PARE_I32, 1, {4}, late}), "adj_indptr: entry 0");
    assert_refused(spoil(f, 0, (pare_array){PARE_I32, 1, {4}, far}), "adj_indptr: entry 3 is 9");
    assert_refused(spoil(f, 0, (pare_array){PARE_I32, 1, {3}, late}),
                   "adj_indptr has the shape [3], expected [4]");
    assert_refused(spoil(f, 1, (pare_array){PARE_I32, 1, {3}, wide}),
                   "adj_indices: entry 2 is 3 of 3");
    assert_refused(spoil(f, 1, (pare_array){PARE_I32, 1, {3}, low}), "adj_indices: entry 1 is -1");
    assert_refused(spoil(f, 2, (pare_array){PARE_F32, 1, {2}, bad}),
                   "adj_data has the shape [2], expected [3]");
    assert_refused(spoil(f, 3, (pare_array){PARE_I64, 1, {2}, four}), "adj_shape is [4, 4]");
    assert_refused(spoil(f, 6, (pare_array){PARE_F32, 1, {3}, bad}), "attr_data: entry 1 is inf");
    assert_refused(without(f, 5), "attr_indices");
    static const int64_t vast[2] = {3, 2000000000};
    assert_refused(spoil(f, 7, (pare_array){PARE_I64, 1, {2}, vast}), "has only 3 entries");
}

static void malformed_bits_are_refused(void **state)
{
    (void)state;
    static const int64_t none = 0, many = 17;
    const form f = packed_form();
    assert_refused(spoil(f, 1, (pare_array){PARE_I64, 0, {0}, &none}), "n_features is 0");
    assert_refused(spoil(f, 1, (pare_array){PARE_I64, 0, {0}, &many}),
                   "features_packed has the shape [2, 2], expected [2, 3]");
    pare_array words = f.array[0];
    words.dtype = PARE_I8;
    assert_refused(spoil(f, 0, words), "features_packed holds I8");
}

/* ---- splits -------------------------------------------------------------------------------- */

static void a_file_without_masks_is_split_by_seed(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    const pare_graph_data d = {.graph.n = 103};
    const uint8_t *m[2][3], *again[3];
    for (size_t k = 0; k < 2; k++)
        assert_ok(pare_graph_masks(&m[k][0], &m[k][1], &m[k][2], a, &d, k, &err), &err);
    assert_ok(pare_graph_masks(&again[0], &again[1], &again[2], a, &d, 0, &err), &err);
    size_t count[3] = {0};
    for (size_t i = 0; i < 103; i++) {
        assert_int_equal(m[0][0][i] + m[0][1][i] + m[0][2][i], 1);
        for (size_t p = 0; p < 3; p++) count[p] += m[0][p][i];
    }
    assert_true(count[0] == 61 && count[1] == 20 && count[2] == 22);
    assert_memory_equal(m[0][2], again[2], 103);
    assert_memory_not_equal(m[0][2], m[1][2], 103);
    pare_arena_free(a);
}

static void a_file_with_masks_keeps_them(void **state)
{
    (void)state;
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_graph_data d;
    const uint8_t *train, *val, *test;
    const form f = dense_form();
    assert_ok(load(&d, a, &f, &err), &err);
    assert_ok(pare_graph_masks(&train, &val, &test, a, &d, 1, &err), &err);
    assert_true(train == d.train + 3 && val == d.val + 3 && test == d.test + 3);
    assert_status(pare_graph_masks(&train, &val, &test, a, &d, 2, &err), PARE_ERR_USAGE, &err);
    assert_contains(err.msg, "split 2: the file has the splits 0 to 1");
    pare_arena_free(a);
}

/* ---- the real ones --------------------------------------------------------------------------- */

static void published_graphs_have_their_counts(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t nodes, directed, features, classes, splits;
    } known[] = {
        {"../shared/data/graph/minesweeper.npz", 10000, 2 * 39402, 7, 2, 10},
        {"../shared/data/graph/tolokers.npz", 11758, 2 * 519000, 10, 2, 10},
        {"../shared/data/graph/amazon_photo.npz", 7650, 2 * 119081, 745, 8, 0},
        {"../shared/data/graph/cora.npz", 2708, 0, 1433, 7, 0},
    };
    for (size_t i = 0; i < 4; i++) {
        NEED_SHARED(known[i].path);
        pare_arena *a = pare_arena_new();
        pare_graph_data d;
        pare_err err;
        assert_ok(pare_graph_load(&d, a, known[i].path, &err), &err);
        assert_int_equal(d.graph.n, known[i].nodes);
        assert_int_equal(d.features, known[i].features);
        assert_int_equal(d.classes, known[i].classes);
        assert_int_equal(d.splits, known[i].splits);
        if (known[i].directed) assert_int_equal(d.graph.ptr[d.graph.n], known[i].directed);
        double sum = 0;
        for (size_t k = 0; k < d.graph.n * d.features; k++) sum += d.x[k];
        if (i == 3) assert_true(sum == 49216 && d.graph.ptr[d.graph.n] == 2 * 5278);
        pare_arena_free(a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_become_rows_without_twins_and_loops),
        cmocka_unit_test(random_graphs_equal_their_adjacency_matrix),
        cmocka_unit_test(an_edge_out_of_range_is_named),
        cmocka_unit_test(the_three_forms_are_read),
        cmocka_unit_test(malformed_lists_are_refused_by_name_and_shape),
        cmocka_unit_test(malformed_csr_is_refused_by_name_and_shape),
        cmocka_unit_test(malformed_bits_are_refused),
        cmocka_unit_test(a_file_without_masks_is_split_by_seed),
        cmocka_unit_test(a_file_with_masks_keeps_them),
        cmocka_unit_test(published_graphs_have_their_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
