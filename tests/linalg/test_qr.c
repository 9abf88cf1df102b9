/* Tests src/linalg/qr.c. */
#include "linalg_test.h"

static void check(pare_arena *a, size_t m, size_t n, bool rank_one)
{
    pare_mat all = normal_mat(a, m, n + 3, 7), x = pare_mat_part(&all, 0, 2, m, n);
    for (size_t i = 0; i < m && rank_one; i++)
        for (size_t j = 1; j < n; j++) pare_row_mut(&x, i)[j] = 2 * pare_row(&x, i)[0];
    pare_mat q_all = pare_mat_new(a, m, n + 1), q = pare_mat_part(&q_all, 0, 0, m, n);
    pare_mat r = normal_mat(a, n, n, 8), id = pare_mat_new(a, n, n), back = pare_mat_new(a, m, n);
    assert_int_equal(pare_qr(&q, &r, &x, a, NULL), PARE_OK);
    pare_gemm(&id, 1, &q, true, &q, false, 0);
    CHECK(distance_to_identity(&id) <= 1e-13, "q of %zu x %zu, seed 7", m, n);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) assert_true(pare_row(&r, i)[j] == 0);
    pare_gemm(&back, 1, &q, false, &r, false, 0);
    CHECK(distance(&back, &x) <= 1e-12, "%zu x %zu is not q r, seed 7", m, n);
    for (size_t i = 0; i < m; i++) assert_true(pare_row(&q_all, i)[n] == 0);
}

static void a_is_q_r_for_every_tall_shape(void **state)
{
    static const size_t shapes[][2] = {{0, 0}, {4, 0}, {1, 1}, {6, 1}, {5, 5}, {40, 7}, {70, 64}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        check(*state, shapes[i][0], shapes[i][1], false);
        check(*state, shapes[i][0], shapes[i][1], true);
    }
}

static void r_is_known_up_to_sign(void **state)
{
    double v[] = {3, 1, 4, 2}, qv[4], rv[4]; /* |first column| = 5, det = 2 */
    const pare_mat x = pare_mat_of(v, 2, 2);
    pare_mat q = pare_mat_of(qv, 2, 2), r = pare_mat_of(rv, 2, 2);
    assert_int_equal(pare_qr(&q, &r, &x, *state, NULL), PARE_OK);
    assert_true(fabs(fabs(rv[0]) - 5) <= 1e-14 && fabs(fabs(rv[1]) - 2.2) <= 1e-14);
    assert_true(rv[2] == 0 && fabs(fabs(rv[3]) - 0.4) <= 1e-14);
}

static void a_nan_is_refused(void **state)
{
    double v[] = {1, 2, 3, NAN}, qv[4], rv[4];
    const pare_mat x = pare_mat_of(v, 2, 2);
    pare_mat q = pare_mat_of(qv, 2, 2), r = pare_mat_of(rv, 2, 2);
    assert_int_equal(pare_qr(&q, &r, &x, *state, NULL), PARE_ERR_NONFINITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(a_is_q_r_for_every_tall_shape),
        ARENA_TEST(r_is_known_up_to_sign),
        ARENA_TEST(a_nan_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
