/* Tests src/linalg/lstsq.c. */
#include "linalg_test.h"

/* The gradient a' (a x - b) of the objective. */
static double gradient(pare_arena *s, const pare_mat *a, const pare_mat *x, const pare_mat *b)
{
    pare_mat r = pare_mat_new(s, b->rows, b->cols), g = pare_mat_new(s, a->cols, b->cols);
    pare_mat zero = pare_mat_new(s, a->cols, b->cols);
    pare_gemm(&r, 1, a, false, x, false, 0);
    for (size_t i = 0; i < b->rows; i++)
        for (size_t j = 0; j < b->cols; j++) pare_row_mut(&r, i)[j] -= pare_row(b, i)[j];
    pare_gemm(&g, 1, a, true, &r, false, 0);
    return distance(&g, &zero);
}

static void normal_equations_hold_for_every_shape(void **state)
{
    static const size_t shapes[][3] = {{1, 1, 1}, {9, 4, 3}, {4, 9, 2}, {20, 20, 1},
                                       {0, 3, 2}, {3, 0, 2}, {5, 3, 0}, {1, 6, 4}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const size_t m = shapes[i][0], n = shapes[i][1], p = shapes[i][2];
        const pare_mat a = normal_mat(*state, m, n, 9), b = normal_mat(*state, m, p, 10);
        pare_mat x = normal_mat(*state, n, p, 11);
        size_t rank = 99;
        assert_int_equal(pare_lstsq(&x, &rank, &a, &b, 1e-12, *state, NULL), PARE_OK);
        CHECK(gradient(*state, &a, &x, &b) <= 1e-11, "%zu x %zu, %zu, seeds 9 10", m, n, p);
        assert_int_equal(rank, m < n ? m : n);
        for (size_t j = 0; j < n * p && m == 0; j++) assert_true(x.v[j] == 0);
    }
}

static void of_all_solutions_the_shortest_is_taken(void **state)
{
    double av[] = {1, 1, 1, 1, 1, 1}, bv[] = {2, 4, 6}, xv[2];
    const pare_mat a = pare_mat_of(av, 3, 2), b = pare_mat_of(bv, 3, 1);
    pare_mat x = pare_mat_of(xv, 2, 1);
    size_t rank = 0;
    assert_int_equal(pare_lstsq(&x, &rank, &a, &b, 1e-12, *state, NULL), PARE_OK);
    assert_int_equal(rank, 1);
    assert_true(fabs(xv[0] - 2) <= 1e-14 && fabs(xv[1] - 2) <= 1e-14);
}

static void rcond_decides_the_rank(void **state)
{
    double av[] = {1, 0, 0, 1e-6}, bv[] = {1, 1}, xv[2];
    const pare_mat a = pare_mat_of(av, 2, 2), b = pare_mat_of(bv, 2, 1);
    pare_mat x = pare_mat_of(xv, 2, 1);
    size_t rank;
    assert_int_equal(pare_lstsq(&x, &rank, &a, &b, 1e-3, *state, NULL), PARE_OK);
    assert_true(rank == 1 && fabs(xv[0] - 1) <= 1e-14 && fabs(xv[1]) <= 1e-14);
    assert_int_equal(pare_lstsq(&x, &rank, &a, &b, 1e-9, *state, NULL), PARE_OK);
    assert_true(rank == 2 && fabs(xv[1] - 1e6) <= 1e-6);
    assert_int_equal(pare_lstsq(&x, NULL, &a, &b, 1e-9, *state, NULL), PARE_OK);
}

static void a_nan_on_either_side_is_refused(void **state)
{
    double av[] = {1, NAN, 3, 4}, bv[] = {1, 1}, xv[2];
    const pare_mat a = pare_mat_of(av, 2, 2), b = pare_mat_of(bv, 2, 1);
    pare_mat x = pare_mat_of(xv, 2, 1);
    assert_int_equal(pare_lstsq(&x, NULL, &a, &b, 1e-9, *state, NULL), PARE_ERR_NONFINITE);
    av[1] = 2;
    bv[1] = INFINITY;
    assert_int_equal(pare_lstsq(&x, NULL, &a, &b, 1e-9, *state, NULL), PARE_ERR_NONFINITE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ARENA_TEST(normal_equations_hold_for_every_shape),
        ARENA_TEST(of_all_solutions_the_shortest_is_taken),
        ARENA_TEST(rcond_decides_the_rank),
        ARENA_TEST(a_nan_on_either_side_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
