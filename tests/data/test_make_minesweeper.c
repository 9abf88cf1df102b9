/* Tests src/data/make_minesweeper.c. */
#include <pare/data.h>
#include "small.h"

static const char *const MASKS[3] = {"train_masks", "val_masks", "test_masks"};

/* The number that a cell shows, by the rules of the game: look at the up to eight around it. */
static size_t mines_around(const int64_t *label, size_t side, size_t node)
{
    const long r = (long)(node / side), c = (long)(node % side), s = (long)side;
    size_t count = 0;
    for (long i = r - 1; i <= r + 1; i++)
        for (long j = c - 1; j <= c + 1; j++)
            if (i >= 0 && j >= 0 && i < s && j < s && (i != r || j != c))
                count += (size_t)label[i * s + j];
    return count;
}

/* Features follow bit by bit from the labels and the unknown flags; *unknown: how many there are.
 */
static void assert_features_follow(const pare_graph_data *d, size_t side, size_t *unknown)
{
    *unknown = 0;
    for (size_t i = 0; i < d->graph.n; i++) {
        const double *x = d->x + 7 * i;
        const size_t around = mines_around(d->labels, side, i);
        const size_t one = x[0] == 1 ? 0 : 1 + (around < 5 ? around : 5);
        *unknown += x[0] == 1;
        for (size_t k = 0; k < 7; k++)
            if (x[k] != (k == one)) {
                print_error("node %zu, feature %zu is %g, %zu mines around\n", i, k, x[k], around);
                fail();
            }
    }
}

static void make(pare_graph_data *d, pare_arena *a, const char *path, size_t side, uint64_t seed)
{
    pare_err err;
    assert_ok(pare_make_minesweeper(path, side, seed, true, &err), &err);
    assert_ok(pare_graph_load(d, a, path, &err), &err);
}

static void boards_follow_the_rules(void **state)
{
    (void)state;
    static const size_t sides[] = {2, 3, 7, 30};
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "m.npz");
    for (size_t k = 0; k < 4; k++) {
        const size_t side = sides[k], n = side * side;
        pare_arena *a = pare_arena_new();
        pare_graph_data d;
        make(&d, a, path, side, 11 + k);
        assert_true(d.graph.n == n && d.features == 7 && d.splits == 10);
        assert_int_equal(d.graph.ptr[n], 2 * (4 * n - 6 * side + 2));
        size_t mines = 0, unknown;
        for (size_t i = 0; i < n; i++) mines += (size_t)d.labels[i];
        assert_int_equal(mines, lround(0.2 * (double)n));
        assert_features_follow(&d, side, &unknown);
        assert_int_equal(unknown, lround(0.5 * (double)n));
        pare_arena_free(a);
    }
    test_rmdir(dir);
}

static void splits_are_disjoint_and_stratified(void **state)
{
    (void)state;
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "m.npz");
    pare_arena *a = pare_arena_new();
    pare_graph_data d;
    make(&d, a, path, 20, 5);
    const uint8_t *const mask[3] = {d.train, d.val, d.test};
    const size_t want[3][2] = {{160, 40}, {80, 20}, {80, 20}};
    for (size_t s = 0; s < 10; s++) {
        size_t count[3][2] = {{0}};
        for (size_t i = 0; i < 400; i++) {
            size_t in = 0;
            for (size_t p = 0; p < 3; p++) {
                in += mask[p][s * 400 + i];
                count[p][d.labels[i]] += mask[p][s * 400 + i];
            }
            assert_int_equal(in, 1);
        }
        assert_memory_equal(count, want, sizeof want);
    }
    assert_memory_not_equal(d.test, d.test + 400, 400);
    pare_arena_free(a);
    test_rmdir(dir);
}

static void edges_and_masks_are_written_as_published(void **state)
{
    (void)state;
    char dir[200], path[300];
    test_mkdir(dir);
    test_path(path, dir, "m.npz");
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_npz *z;
    pare_array e, m;
    assert_ok(pare_make_minesweeper(path, 3, 1, false, &err), &err);
    assert_ok(pare_npz_open(&z, a, path, &err), &err);
    assert_ok(pare_npz_get(&e, z, "edges", &err), &err);
    const int64_t want[] = {0, 1, 0, 3, 0, 4, 1, 2, 1, 3, 1, 4, 1, 5, 2, 4, 2, 5, 3, 4,
                            3, 6, 3, 7, 4, 5, 4, 6, 4, 7, 4, 8, 5, 7, 5, 8, 6, 7, 7, 8};
    assert_true(e.dtype == PARE_I64 && e.ndim == 2 && e.shape[0] == 20 && e.shape[1] == 2);
    assert_memory_equal(e.data, want, sizeof want);
    for (size_t i = 0; i < 3; i++) {
        assert_ok(pare_npz_get(&m, z, MASKS[i], &err), &err);
        assert_true(m.dtype == PARE_BOOL && m.ndim == 2 && m.shape[0] == 10 && m.shape[1] == 9);
    }
    assert_ok(pare_npz_get(&m, z, "node_features", &err), &err);
    assert_true(m.dtype == PARE_F32 && m.shape[0] == 9 && m.shape[1] == 7);
    pare_npz_close(z);
    assert_status(pare_make_minesweeper(path, 3, 1, false, &err), PARE_ERR_IO, &err);
    pare_arena_free(a);
    test_rmdir(dir);
}

static void same_seed_same_bytes_another_seed_another_board(void **state)
{
    (void)state;
    char dir[200], path[3][300];
    uint8_t *data[3];
    size_t bytes[3];
    pare_err err;
    test_mkdir(dir);
    for (size_t i = 0; i < 3; i++) {
        const char name[] = {(char)('a' + i), '.', 'n', 'p', 'z', 0};
        test_path(path[i], dir, name);
        assert_ok(pare_make_minesweeper(path[i], 12, i == 2, false, &err), &err);
        data[i] = test_read_file(path[i], &bytes[i]);
    }
    assert_int_equal(bytes[0], bytes[1]);
    assert_memory_equal(data[0], data[1], bytes[0]);
    assert_true(bytes[0] != bytes[2] || memcmp(data[0], data[2], bytes[0]) != 0);
    for (size_t i = 0; i < 3; i++) free(data[i]);
    test_rmdir(dir);
}

static void silly_sides_are_refused(void **state)
{
    (void)state;
    pare_err err;
    assert_status(pare_make_minesweeper("x.npz", 1, 0, false, &err), PARE_ERR_USAGE, &err);
    assert_status(pare_make_minesweeper("x.npz", 0, 0, false, &err), PARE_ERR_USAGE, &err);
    assert_status(pare_make_minesweeper("x.npz", SIZE_MAX, 0, false, &err), PARE_ERR_USAGE, &err);
    assert_false(pare_file_exists("x.npz"));
}

static void the_real_board_follows_the_same_rules(void **state)
{
    (void)state;
    static const char path[] = "../shared/data/graph/minesweeper.npz";
    NEED_SHARED(path);
    pare_arena *a = pare_arena_new();
    pare_graph_data d;
    pare_err err;
    size_t unknown, mines = 0;
    assert_ok(pare_graph_load(&d, a, path, &err), &err);
    assert_features_follow(&d, 100, &unknown);
    for (size_t i = 0; i < d.graph.n; i++) mines += (size_t)d.labels[i];
    assert_int_equal(unknown, 5000);
    assert_int_equal(mines, 2000);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boards_follow_the_rules),
        cmocka_unit_test(splits_are_disjoint_and_stratified),
        cmocka_unit_test(edges_and_masks_are_written_as_published),
        cmocka_unit_test(same_seed_same_bytes_another_seed_another_board),
        cmocka_unit_test(silly_sides_are_refused),
        cmocka_unit_test(the_real_board_follows_the_same_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
