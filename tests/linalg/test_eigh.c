/* Tests src/linalg/eigh.c. */
#include "linalg_test.h"

static void check(pare_arena *a, size_t n)
{
    const pare_mat half = normal_mat(a, n, n, 6);
    pare_mat x = pare_mat_new(a, n, n), v = pare_mat_new(a, n, n), t = pare_mat_new(a, n, n);
    pare_mat back = pare_mat_new(a, n, n);
    double *w = pare_alloc(a, n + 1, sizeof *w), *alone = pare_alloc(a, n + 1, sizeof *w);
    assert_true(x.v && v.v && t.v && back.v && w && alone);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            pare_row_mut(&x, i)[j] = pare_row(&half, i)[j] + pare_row(&half, j)[i];
    assert_int_equal(pare_eigh(w, &v, &x, a, NULL), PARE_OK);
    assert_int_equal(pare_eigh(alone, NULL, &x, a, NULL), PARE_OK);
    pare_gemm(&t, 1, &v, true, &v, false, 0);
    CHECK(distance_to_identity(&t) <= 1e-13, "v of size %zu, seed 6", n);
    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || w[i] >= w[i - 1]);
        assert_true(fabs(w[i] - alone[i]) <= 1e-12);
        for (size_t j = 0; j < n; j++) pare_row_mut(&t, i)[j] = pare_row(&v, i)[j] * w[j];
    }
    pare_gemm(&back, 1, &t, false, &v, true, 0);
    CHECK(distance(&back, &x) <= 1e-12, "size %zu is not v w v', seed 6", n);
}

static void a_is_v_w_vt_for_every_size(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 8, 33, 70};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check(*state, sizes[i]);
}

static void vectors_are_columns(void **state)
{
    double sym[] = {2, 1, 0, 1, 2, 0, 0, 0, 7}, w[3], v[9];
    const pare_mat a = pare_mat_of(sym, 3, 3);
    pare_mat vec = pare_mat_of(v, 3, 3);
    assert_int_equal(pare_eigh(w, &vec, &a, *state, NULL), PARE_OK);
    assert_true(fabs(w[0] - 1) <= 1e-15 && fabs(w[1] - 3) <= 1e-15 && fabs(w[2] - 7) <= 1e-14);
    assert_true(fabs(v[0] + v[3]) <= 1e-15 && fabs(fabs(v[0]) - sqrt(0.5)) <= 1e-15);
    assert_true(fabs(v[1] - v[4]) <= 1e-15 && fabs(fabs(v[8]) - 1) <= 1e-15);
}

static void a_nan_is_refused(void **state)
{
    double v[] = {1, NAN, NAN, 4}, w[2];
    const pare_mat x = pare_mat_of(v, 2, 2);
    assert_int_equal(pare_eigh(w, NULL, &x, *state, NULL), PARE_ERR_NONFINITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(a_is_v_w_vt_for_every_size),
        ARENA_TEST(vectors_are_columns),
        ARENA_TEST(a_nan_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
