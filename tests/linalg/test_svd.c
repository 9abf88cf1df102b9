/* Tests src/linalg/svd.c. */
#include "linalg_test.h"

static void check(pare_arena *a, size_t m, size_t n)
{
    const size_t k = m < n ? m : n;
    const pare_mat all = normal_mat(a, m, n + 2, 5), x = pare_mat_part(&all, 0, 1, m, n);
    pare_mat u_all = pare_mat_new(a, m, k + 1), u = pare_mat_part(&u_all, 0, 0, m, k);
    pare_mat vt = pare_mat_new(a, k, n), back = pare_mat_new(a, m, n), id = pare_mat_new(a, k, k);
    double *s = pare_alloc(a, k + 1, sizeof *s), *alone = pare_alloc(a, k + 1, sizeof *s);
    assert_true(u_all.v && vt.v && back.v && id.v && s && alone);
    assert_int_equal(pare_svd(&u, s, &vt, &x, a, NULL), PARE_OK);
    assert_int_equal(pare_svd(NULL, alone, NULL, &x, a, NULL), PARE_OK);
    for (size_t i = 0; i < k; i++) {
        assert_true(s[i] >= 0 && (i == 0 || s[i] <= s[i - 1]));
        assert_true(fabs(s[i] - alone[i]) <= 1e-12);
    }
    pare_gemm(&id, 1, &u, true, &u, false, 0);
    CHECK(distance_to_identity(&id) <= 1e-13, "u of %zu x %zu, seed 5", m, n);
    pare_gemm(&id, 1, &vt, false, &vt, true, 0);
    CHECK(distance_to_identity(&id) <= 1e-13, "vt of %zu x %zu, seed 5", m, n);
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < k; j++) pare_row_mut(&u, i)[j] *= s[j];
    pare_gemm(&back, 1, &u, false, &vt, false, 0);
    CHECK(distance(&back, &x) <= 1e-12, "%zu x %zu is not u s vt, seed 5", m, n);
    for (size_t i = 0; i < m; i++) assert_true(pare_row(&u_all, i)[k] == 0);
}

static void a_is_u_s_vt_for_every_shape(void **state)
{
    static const size_t shapes[][2] = {{1, 1},  {1, 9},   {9, 1}, {7, 7}, {5, 30},
                                       {30, 5}, {60, 61}, {0, 3}, {3, 0}, {0, 0}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check(*state, shapes[i][0], shapes[i][1]);
}

static void a_known_matrix_has_its_known_values(void **state)
{
    double v[] = {3, 0, 4, 5}, s[2]; /* a a^T = (9 12; 12 41): eigenvalues 45 and 5 */
    const pare_mat x = pare_mat_of(v, 2, 2);
    assert_int_equal(pare_svd(NULL, s, NULL, &x, *state, NULL), PARE_OK);
    assert_true(fabs(s[0] - sqrt(45)) <= 1e-14 && fabs(s[1] - sqrt(5)) <= 1e-14);
    assert_true(v[0] == 3 && v[2] == 4); /* the input is left alone */
}

static void a_nan_is_refused_before_lapack_sees_it(void **state)
{
    double v[] = {1, 2, NAN, 4}, s[2] = {-1, -1};
    const pare_mat x = pare_mat_of(v, 2, 2);
    pare_err err = {0};
    assert_int_equal(pare_svd(NULL, s, NULL, &x, *state, &err), PARE_ERR_NONFINITE);
    assert_non_null(strstr(err.msg, "(1, 0)"));
    assert_true(s[0] == -1);
    v[2] = INFINITY;
    assert_int_equal(pare_svd(NULL, s, NULL, &x, *state, NULL), PARE_ERR_NONFINITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(a_is_u_s_vt_for_every_shape),
        ARENA_TEST(a_known_matrix_has_its_known_values),
        ARENA_TEST(a_nan_is_refused_before_lapack_sees_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
