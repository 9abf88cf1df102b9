/* Tests src/width/rrr.c: the least squares of any map of that rank, and no coordinate of noise. */
#include "linalg/matrix.h"
#include "width_nets.h"

/* |(Y - fit) root|_F */
static double missed(stage *s, const rrr_fit *f, const pare_mat *phi, const pare_mat *y,
                     const pare_mat *root)
{
    const pare_mat h = rrr_coords(&s->w, f, phi);
    pare_mat gap = affine_rows(&s->w, &h, &f->u, f->to);
    assert_work(s);
    for (size_t i = 0; i < y->rows * y->cols; i++) gap.v[i] = y->v[i] - gap.v[i];
    if (!root) return pare_mat_fro_est(&gap);
    gap = mat_mul(&s->w, &gap, false, root, false);
    return pare_mat_fro_est(&gap);
}

/* The rest of least squares on [phi, 1], in the coordinates of root. */
static pare_mat ols_fit(stage *s, double *rest, const pare_mat *phi, const pare_mat *y,
                        const pare_mat *root)
{
    pare_mat a = mat_zeros(&s->w, phi->rows, phi->cols + 1), x = mat_zeros(&s->w, a.cols, y->cols);
    for (size_t i = 0; i < a.rows; i++) {
        memcpy(pare_row_mut(&a, i), pare_row(phi, i), phi->cols * sizeof *a.v);
        pare_row_mut(&a, i)[phi->cols] = 1;
    }
    const pare_mat t = root ? mat_mul(&s->w, y, false, root, false) : *y;
    assert_ok(pare_lstsq(&x, NULL, &a, &t, 1e-12, s->w.arena, &s->err), &s->err);
    pare_mat fit = mat_mul(&s->w, &a, false, &x, false), gap = mat_copy(&s->w, &t);
    for (size_t i = 0; i < gap.rows * gap.cols; i++) gap.v[i] -= fit.v[i];
    *rest = pare_mat_fro_est(&gap);
    return fit;
}

/* With as many dimensions as the fit has, the residual of ordinary least squares. */
static void at_full_rank_it_is_least_squares(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        stage s;
        double want;
        stage_open(&s, seed);
        const pare_mat phi = rand_mat(&s, 80, 7, 1), y = rand_mat(&s, 80, 10, 2);
        (void)ols_fit(&s, &want, &phi, &y, NULL);
        const rrr_fit f = rrr(&s.w, &phi, &y, 10, NULL);
        assert_int_equal(f.c.cols, 7); /* not 10: the map has no more */
        assert_le(fabs(missed(&s, &f, &phi, &y, NULL) - want), 1e-8 * want);
        stage_close(&s);
    }
}

/* Of all maps of rank d: |rest|^2 + what the fit loses beyond d (Eckart-Young), in any metric. */
static void of_lower_rank_it_is_the_least(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        stage s;
        double rest, tail = 0;
        stage_open(&s, seed);
        const size_t d = 1 + seed % 5;
        const bool in_metric = seed % 2;
        const pare_mat phi = rand_mat(&s, 80, 7, 1), y = rand_mat(&s, 80, 10, 2);
        const pare_mat half = rand_mat(&s, 10, 10, 1), g = mat_mul(&s.w, &half, true, &half, false);
        const pare_mat root = metric_root(&s.w, &g, NULL);
        const pare_mat fit = ols_fit(&s, &rest, &phi, &y, in_metric ? &root : NULL);
        const double *const mean = mat_col_means(&s.w, &fit);
        const pare_mat centered = mat_centered(&s.w, &fit, mean);
        const svd_factors v = svd_of(&s.w, &centered);
        assert_work(&s);
        for (size_t k = d; k < v.n; k++) tail += v.s[k] * v.s[k];
        const double want = sqrt(rest * rest + tail);
        const rrr_fit f = rrr(&s.w, &phi, &y, d, in_metric ? &g : NULL);
        assert_int_equal(f.c.cols, d);
        const double got = missed(&s, &f, &phi, &y, in_metric ? &root : NULL);
        assert_le(fabs(got - want), 1e-8 * want);
        stage_close(&s);
    }
}

static void coordinates_have_mean_0_and_variance_1(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 3);
    pare_mat phi = rand_mat(&s, 50, 5, 3);
    for (size_t i = 0; i < 250; i++) phi.v[i] += 10;
    const pare_mat y = rand_mat(&s, 50, 6, 1e-3);
    const rrr_fit f = rrr(&s.w, &phi, &y, 3, NULL);
    const pare_mat h = rrr_coords(&s.w, &f, &phi);
    const double *const offset = rrr_offset(&s.w, &f);
    for (size_t j = 0; j < 3; j++) {
        double mean = 0, square = 0, affine = offset[j];
        for (size_t i = 0; i < 50; i++) {
            mean += pare_row(&h, i)[j] / 50;
            square += pow(pare_row(&h, i)[j], 2) / 50;
        }
        for (size_t k = 0; k < 5; k++) affine += phi.v[k] * pare_row(&f.c, k)[j];
        assert_le(fabs(mean), 1e-12);
        assert_le(fabs(square - 1), 1e-10);
        assert_le(fabs(affine - pare_row(&h, 0)[j]), 1e-9); /* c^T phi + offset */
    }
    stage_close(&s);
}

/* The guard: columns that repeat others, constants, and data that is not there give no
 * coordinate. */
static void noise_is_no_coordinate(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 4);
    const pare_mat phi = rand_product(&s, 60, 3, 8), map = rand_mat(&s, 8, 12, 1);
    const pare_mat y = mat_mul(&s.w, &phi, false, &map, false);
    const rrr_fit f = rrr(&s.w, &phi, &y, 12, NULL);
    assert_work(&s);
    assert_int_equal(f.c.cols, 3);
    assert_le(missed(&s, &f, &phi, &y, NULL), 1e-6 * pare_mat_fro_est(&y));
    const pare_mat none = mat_zeros(&s.w, 60, 8), still = mat_zeros(&s.w, 60, 12);
    const rrr_fit empty = rrr(&s.w, &none, &still, 12, NULL);
    assert_work(&s);
    assert_int_equal(empty.c.cols, 1); /* a stream of width 0 is no stream */
    for (size_t i = 0; i < 8; i++) assert_true(empty.c.v[i] == 0);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_full_rank_it_is_least_squares),
        cmocka_unit_test(of_lower_rank_it_is_the_least),
        cmocka_unit_test(coordinates_have_mean_0_and_variance_1),
        cmocka_unit_test(noise_is_no_coordinate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
