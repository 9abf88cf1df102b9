/* Tests src/data/generators.c. */
#include "base/array.h"
#include <pare/data.h>
#include "small.h"

static void open_dir(char dir[200], char path[300], const char *name)
{
    test_mkdir(dir);
    test_path(path, dir, name);
}

static void points_turn_at_the_velocity_they_say(void **state)
{
    (void)state;
    char dir[200], path[300];
    open_dir(dir, path, "a.npz");
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_npz *z;
    pare_array x, v;
    assert_ok(pare_make_angular(path, 200, 9, 3, false, &err), &err);
    assert_ok(pare_npz_open(&z, a, path, &err), &err);
    assert_ok(pare_npz_get(&x, z, "inputs", &err), &err);
    assert_ok(pare_npz_get(&v, z, "values", &err), &err);
    assert_true(x.ndim == 3 && x.shape[0] == 200 && x.shape[1] == 9 && x.shape[2] == 2);
    assert_true(v.ndim == 2 && v.shape[0] == 200 && v.shape[1] == 1);
    double low = 9, high = -9;
    for (size_t i = 0; i < 200; i++) {
        const double w = pare_array_f64(&v, i);
        low = fmin(low, w);
        high = fmax(high, w);
        for (size_t t = 0; t < 9; t++) {
            const double c = pare_array_f64(&x, (i * 9 + t) * 2);
            const double s = pare_array_f64(&x, (i * 9 + t) * 2 + 1);
            assert_near(c * c + s * s, 1, 1e-12);
            if (t == 0) { /* the phase at t = 0 is in [0, pi) */
                assert_true(sin(atan2(s, c) - w) >= -1e-12);
                continue;
            }
            const double c0 = pare_array_f64(&x, (i * 9 + t) * 2 - 2);
            const double s0 = pare_array_f64(&x, (i * 9 + t) * 2 - 1);
            assert_near(c0 * c + s0 * s, cos(w), 1e-12); /* from one to the next it turns by w */
            assert_near(c0 * s - s0 * c, sin(w), 1e-12);
        }
    }
    assert_true(low >= -M_PI && high < M_PI && low < -2.8 && high > 2.8);
    pare_npz_close(z);
    pare_arena_free(a);
    test_rmdir(dir);
}

static void sorting_rows_are_sorted(void **state)
{
    (void)state;
    char dir[200], path[300];
    open_dir(dir, path, "s.npz");
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_npz *z;
    pare_array x, y;
    assert_ok(pare_make_sort(path, 100, 6, 3, 7, false, &err), &err);
    assert_ok(pare_npz_open(&z, a, path, &err), &err);
    assert_ok(pare_npz_get(&x, z, "inputs", &err), &err);
    assert_ok(pare_npz_get(&y, z, "targets", &err), &err);
    assert_true(x.ndim == 2 && x.shape[0] == 100 && x.shape[1] == 11);
    assert_true(y.ndim == 2 && y.shape[0] == 100 && y.shape[1] == 11);
    size_t seen[3] = {0};
    for (size_t i = 0; i < 100; i++) {
        long count[3] = {0};
        for (size_t t = 0; t < 11; t++) {
            const int64_t in = pare_array_i64(&x, i * 11 + t), out = pare_array_i64(&y, i * 11 + t);
            assert_true(in >= 0 && in < 3);
            if (t < 6) count[in]++, seen[in]++;
            if (t < 5) assert_int_equal(out, -1);
            if (t >= 5) assert_true(out >= 0 && out < 3 && --count[out] >= -6);
            if (t > 5) { /* fed back what was the answer before; the answers ascend */
                assert_int_equal(in, pare_array_i64(&y, i * 11 + t - 1));
                assert_true(out >= pare_array_i64(&y, i * 11 + t - 1));
            }
        }
        assert_true(count[0] == 0 && count[1] == 0 && count[2] == 0);
    }
    for (size_t s = 0; s < 3; s++) assert_true(seen[s] > 150 && seen[s] < 250);
    pare_npz_close(z);
    pare_arena_free(a);
    test_rmdir(dir);
}

static void random_ids_and_vectors(void **state)
{
    (void)state;
    char dir[200], path[300];
    open_dir(dir, path, "r.npy");
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_array v;
    assert_ok(pare_make_random_ids(path, 50, 20, 5, 1, false, &err), &err);
    assert_ok(pare_npy_read(&v, a, path, &err), &err);
    assert_true(pare_array_is_integer(&v) && v.ndim == 2 && v.shape[0] == 50 && v.shape[1] == 20);
    size_t seen[5] = {0};
    for (size_t i = 0; i < 1000; i++) {
        const int64_t id = pare_array_i64(&v, i);
        assert_true(id >= 0 && id < 5);
        seen[id]++;
    }
    for (size_t i = 0; i < 5; i++) assert_true(seen[i] > 140 && seen[i] < 260);
    assert_status(pare_make_random_ids(path, 50, 20, 5, 1, false, &err), PARE_ERR_IO, &err);
    assert_ok(pare_make_random_vectors(path, 50, 20, 4, 1, true, &err), &err);
    assert_ok(pare_npy_read(&v, a, path, &err), &err);
    assert_true(v.dtype == PARE_F32 && v.ndim == 3 && v.shape[2] == 4);
    double mean = 0, square = 0;
    for (size_t i = 0; i < 4000; i++) {
        mean += pare_array_f64(&v, i) / 4000;
        square += pow(pare_array_f64(&v, i), 2) / 4000;
    }
    assert_near(mean, 0, 0.06);
    assert_near(square, 1, 0.1);
    pare_arena_free(a);
    test_rmdir(dir);
}

static uint8_t *bytes_of(const char *dir, int kind, size_t n, uint64_t seed, size_t *bytes)
{
    char path[300];
    pare_err err;
    test_path(path, dir, kind == 2 ? "g.npy" : "g.npz");
    assert_ok(kind == 0   ? pare_make_angular(path, n, 4, seed, true, &err)
              : kind == 1 ? pare_make_sort(path, n, 5, 4, seed, true, &err)
                          : pare_make_random_ids(path, n, 6, 9, seed, true, &err),
              &err);
    return test_read_file(path, bytes);
}

static void same_seed_same_bytes(void **state)
{
    (void)state;
    char dir[200];
    test_mkdir(dir);
    for (int kind = 0; kind < 3; kind++) {
        size_t n, same, other;
        uint8_t *x = bytes_of(dir, kind, 8, 5, &n), *y = bytes_of(dir, kind, 8, 5, &same),
                *z = bytes_of(dir, kind, 8, 6, &other);
        assert_int_equal(n, same);
        assert_memory_equal(x, y, n);
        assert_true(n != other || memcmp(x, z, n) != 0);
        free(x);
        free(y);
        free(z);
    }
    test_rmdir(dir);
}

static void a_longer_file_begins_with_the_shorter(void **state)
{
    (void)state;
    char dir[200];
    test_mkdir(dir);
    size_t n, m;
    uint8_t *x = bytes_of(dir, 2, 4, 5, &n), *y = bytes_of(dir, 2, 8, 5, &m);
    const size_t row = 6 * 8;
    assert_true(n > 4 * row && m > 8 * row);
    assert_memory_equal(x + n - 4 * row, y + m - 8 * row, 4 * row);
    assert_memory_not_equal(y + m - 4 * row, y + m - 8 * row, 4 * row);
    free(x);
    free(y);
    test_rmdir(dir);
}

static void nothing_to_make_is_refused(void **state)
{
    (void)state;
    pare_err err;
    assert_status(pare_make_angular("x", 0, 4, 0, true, &err), PARE_ERR_USAGE, &err);
    assert_status(pare_make_angular("x", SIZE_MAX, 4, 0, true, &err), PARE_ERR_USAGE, &err);
    assert_status(pare_make_sort("x", 1, 0, 3, 0, true, &err), PARE_ERR_USAGE, &err);
    assert_status(pare_make_sort("x", 1, 3, 0, 0, true, &err), PARE_ERR_USAGE, &err);
    assert_status(pare_make_random_vectors("x", 1, 3, 0, 0, true, &err), PARE_ERR_USAGE, &err);
    assert_status(pare_make_random_vectors("x", 1, SIZE_MAX, 2, 0, true, &err), PARE_ERR_USAGE,
                  &err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_turn_at_the_velocity_they_say),
        cmocka_unit_test(sorting_rows_are_sorted),
        cmocka_unit_test(random_ids_and_vectors),
        cmocka_unit_test(same_seed_same_bytes),
        cmocka_unit_test(a_longer_file_begins_with_the_shorter),
        cmocka_unit_test(nothing_to_make_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
