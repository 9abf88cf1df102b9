/* Tests src/linalg/spd.c. */
#include "linalg_test.h"

/* b b^T + I */
static pare_mat positive(pare_arena *a, size_t n)
{
    const pare_mat half = normal_mat(a, n, n, 6);
    pare_mat x = pare_mat_new(a, n, n);
    assert_true(x.v || n == 0);
    pare_gemm(&x, 1, &half, false, &half, true, 0);
    for (size_t i = 0; i < n; i++) pare_row_mut(&x, i)[i] += 1;
    return x;
}

static void inverse_times_matrix_is_the_identity(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 8, 33, 70};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        const size_t n = sizes[k];
        const pare_mat x = positive(*state, n);
        pare_mat y = pare_mat_new(*state, n, n), t = pare_mat_new(*state, n, n);
        assert_int_equal(pare_spd_inverse(&y, &x, NULL), PARE_OK);
        pare_gemm(&t, 1, &y, false, &x, false, 0);
        CHECK(distance_to_identity(&t) <= 1e-10, "size %zu, seed 6", n);
    }
}

static void what_has_no_such_inverse_is_refused(void **state)
{
    (void)state;
    double flat[] = {1, 0, 0, -1}, bad[] = {1, NAN, NAN, 4}, to[4];
    const pare_mat a = pare_mat_of(flat, 2, 2), b = pare_mat_of(bad, 2, 2);
    pare_mat y = pare_mat_of(to, 2, 2);
    assert_int_equal(pare_spd_inverse(&y, &a, NULL), PARE_ERR_INPUT);
    assert_int_equal(pare_spd_inverse(&y, &b, NULL), PARE_ERR_NONFINITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(inverse_times_matrix_is_the_identity),
        ARENA_TEST(what_has_no_such_inverse_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
