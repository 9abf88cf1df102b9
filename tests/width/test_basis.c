/* Tests src/width/basis.c: affine subspaces, their residuals and their dimensions. */
#include "width_nets.h"

/* One-hot rows in 7 columns: rank 7, affine rank 6. */
static void affine_beats_linear_by_one_dimension(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 1);
    pare_mat x = mat_zeros(&s.w, 70, 7);
    for (size_t i = 0; i < 70; i++) pare_row_mut(&x, i)[i % 7] = 1;
    const basis a = basis_pca(&s.w, &x, 7, true), b = basis_pca(&s.w, &x, 7, false);
    const basis c = basis_within(&s.w, &x, 1e-9, true), d = basis_within(&s.w, &x, 1e-9, false);
    assert_work(&s);
    assert_int_equal(basis_dim(&a), 6);
    assert_int_equal(basis_dim(&b), 7);
    assert_int_equal(basis_dim(&c), 6);
    assert_int_equal(basis_dim(&d), 7);
    assert_le(basis_residual(&s.w, &a, &x), 1e-14);
    stage_close(&s);
}

static void columns_are_orthonormal_and_the_residual_is_the_rest(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 2);
    const pare_mat h = rand_mat(&s, 60, 9, 1);
    for (size_t d = 1; d <= 9; d++) {
        const basis b[] = {basis_pca(&s.w, &h, d, true), basis_minmax(&s.w, &h, d)};
        for (int k = 0; k < 2; k++) {
            const pare_mat gram = mat_mul(&s.w, &b[k].u, true, &b[k].u, false);
            const pare_mat eye = mat_identity(&s.w, d);
            assert_work(&s);
            assert_le(mats_apart(&gram, &eye), 1e-13);
        }
        const pare_mat c = basis_coords(&s.w, &b[0], &h);
        const pare_mat back = affine_rows(&s.w, &c, &b[0].u, b[0].mu);
        assert_near(basis_residual(&s.w, &b[0], &h), rows_apart(&back, &h), 1e-13);
        assert_le(basis_residual(&s.w, &b[1], &h), basis_residual(&s.w, &b[0], &h));
    }
    stage_close(&s);
}

/* One row far away: least squares leaves it, minmax follows it. */
static void minmax_follows_the_worst_row(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 3);
    pare_mat h = rand_mat(&s, 200, 6, 1);
    for (size_t i = 0; i < 200; i++)
        for (size_t j = 2; j < 6; j++) pare_row_mut(&h, i)[j] *= 0.1;
    pare_row_mut(&h, 7)[5] = 3;
    const basis pca = basis_pca(&s.w, &h, 2, true), best = basis_minmax(&s.w, &h, 2);
    assert_work(&s);
    assert_le(1.3 * basis_residual(&s.w, &best, &h), basis_residual(&s.w, &pca, &h));
    stage_close(&s);
}

static void the_smallest_dimension_within_a_tolerance_is_found(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 4);
    pare_mat h = rand_product(&s, 50, 3, 8);
    for (size_t i = 0; i < 50 * 8; i++) h.v[i] += 1e-6 * pare_rng_normal(&s.rng);
    const basis loose = basis_within(&s.w, &h, 1e-4, true),
                tight = basis_within(&s.w, &h, 1e-8, true);
    assert_work(&s);
    assert_int_equal(basis_dim(&loose), 3);
    assert_int_equal(basis_dim(&tight), 8);
    assert_le(basis_residual(&s.w, &loose, &h), 1e-4);
    /* A stream that never moves still has one dimension. */
    const pare_mat still = mat_zeros(&s.w, 5, 3);
    const basis one = basis_within(&s.w, &still, 0, true), other = basis_pca(&s.w, &still, 2, true);
    assert_work(&s);
    assert_true(basis_dim(&one) == 1 && basis_dim(&other) == 1);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(affine_beats_linear_by_one_dimension),
        cmocka_unit_test(columns_are_orthonormal_and_the_residual_is_the_rest),
        cmocka_unit_test(minmax_follows_the_worst_row),
        cmocka_unit_test(the_smallest_dimension_within_a_tolerance_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
