/* Tests src/width/select_units.c and leverage.c: chosen rows stand for all, with the constants
 * told. */
#include "linalg/matrix.h"
#include "width_nets.h"

/* a (D_w a_S)^+ D_w; weight may be NULL (ones). */
static pare_mat unit_decoder(pare_work *w, const pare_mat *a, const size_t *which, size_t k,
                             const double *weight)
{
    pare_mat rows = mat_take_rows(w, a, which, k), eye = mat_identity(w, k),
             plus = mat_zeros(w, a->cols, k);
    for (size_t i = 0; !w->st && weight && i < k; i++) {
        for (size_t j = 0; j < a->cols; j++) pare_row_mut(&rows, i)[j] *= weight[i];
        pare_row_mut(&eye, i)[i] = weight[i];
    }
    if (!w->st) w->st = pare_lstsq(&plus, NULL, &rows, &eye, 1e-14, w->arena, w->err);
    return mat_mul(w, a, false, &plus, false);
}

static double pinv_fro2(stage *s, const pare_mat *q, const size_t *which, size_t k)
{
    const pare_mat rows = mat_take_rows(&s->w, q, which, k);
    const svd_factors v = svd_of(&s->w, &rows);
    double sum = 0;
    for (size_t i = 0; i < v.n; i++) sum += 1 / (v.s[i] * v.s[i]);
    return sum;
}

/* docs/theory/width.md section 4: |Q_S^+|_F^2 <= d (F - d + 1) / (k - d + 1), also on bases with
 * rows of very unequal size. */
static void greedy_removal_keeps_its_guarantee(void **state)
{
    (void)state;
    enum { F = 40 };
    double tightest = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        stage s;
        stage_open(&s, seed);
        const size_t d = 2 + seed % 6;
        pare_mat a = rand_mat(&s, F, d, 1), q = mat_zeros(&s.w, F, d), r = mat_zeros(&s.w, d, d);
        for (size_t i = 0; i < F; i++) {
            const double size = exp(2 * pare_rng_normal(&s.rng));
            for (size_t j = 0; j < d; j++) pare_row_mut(&a, i)[j] *= size;
        }
        assert_ok(pare_qr(&q, &r, &a, s.w.arena, &s.err), &s.err);
        const size_t ks[] = {d, d + 2, 3 * d};
        for (size_t i = 0; i < 3; i++) {
            const size_t *const which = eliminate_rows(&s.w, &q, ks[i]);
            const double got = pinv_fro2(&s, &q, which, ks[i]),
                         limit = pinv_norm_limit(F, d, ks[i]);
            assert_work(&s);
            assert_le(got, limit * limit * (1 + 1e-9));
            assert_le(pinv_norm(&s.w, &q, which, ks[i]), limit * (1 + 1e-9));
            tightest = fmax(tightest, got / (limit * limit));
        }
        stage_close(&s);
    }
    assert_true(tightest > 0.3); /* the limit is not far from what happens */
}

/* Each removal is the cheapest there is, by trying them all. */
static void each_removal_is_the_cheapest(void **state)
{
    (void)state;
    enum { F = 10, D = 3 };
    for (uint64_t seed = 1; seed <= 10; seed++) {
        stage s;
        stage_open(&s, seed);
        const pare_mat q = rand_orthonormal(&s, F, D);
        size_t left[F], n = F;
        for (size_t i = 0; i < F; i++) left[i] = i;
        while (n > D) {
            size_t best = 0;
            double least = INFINITY;
            for (size_t r = 0; r < n; r++) {
                size_t without[F], k = 0;
                for (size_t i = 0; i < n; i++)
                    if (i != r) without[k++] = left[i];
                const double cost = pinv_fro2(&s, &q, without, k);
                if (cost < least) {
                    least = cost;
                    best = r;
                }
            }
            n--;
            for (size_t i = best; i < n; i++) left[i] = left[i + 1];
            const size_t *const got = eliminate_rows(&s.w, &q, n);
            assert_work(&s);
            assert_memory_equal(got, left, n * sizeof *got);
        }
        stage_close(&s);
    }
}

/* For every node |U p_S - p| <= sqrt(1 + |Q_S^+|^2) |r|. */
static void all_nodes_are_within_the_spread(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 4);
    const pare_mat q = rand_orthonormal(&s, 40, 4), c = rand_mat(&s, 500, 4, 1);
    pare_mat p = rand_mat(&s, 500, 40, 0.01);
    pare_gemm(&p, 1, &c, false, &q, true, 1);
    const size_t *const which = eliminate_rows(&s.w, &q, 8);
    const pare_mat u = unit_decoder(&s.w, &q, which, 8, NULL);
    const pare_mat some = mat_take_cols(&s.w, &p, which, 8),
                   back = affine_rows(&s.w, &some, &u, NULL);
    const pare_mat on = mat_mul(&s.w, &p, false, &q, false),
                   near = affine_rows(&s.w, &on, &q, NULL);
    const double spread = pinv_norm(&s.w, &q, which, 8);
    assert_work(&s);
    for (size_t i = 0; i < p.rows; i++) {
        double off = 0, rest = 0;
        for (size_t j = 0; j < p.cols; j++) {
            off += pow(pare_row(&back, i)[j] - pare_row(&p, i)[j], 2);
            rest += pow(pare_row(&near, i)[j] - pare_row(&p, i)[j], 2);
        }
        assert_le(sqrt(off), sqrt(1 + spread * spread) * sqrt(rest) + 1e-12);
    }
    stage_close(&s);
}

static void leverage_scores_sum_to_the_rank(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 5);
    const pare_mat a = rand_product(&s, 40, 3, 7);
    size_t rank;
    const double *const lev = leverage_scores(&s.w, &a, &rank);
    double sum = 0;
    assert_work(&s);
    for (size_t i = 0; i < 40; i++) sum += lev[i];
    assert_int_equal(rank, 3);
    assert_near(sum, 3, 1e-10);
    stage_close(&s);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Nodes' errors relative to their residual when rows are drawn: 99 % are within the constant. */
static void sampled_rows_serve_almost_all_nodes(void **state)
{
    (void)state;
    enum { F = 300, D = 4, N = 500 };
    stage s;
    stage_open(&s, 6);
    const pare_mat q = rand_orthonormal(&s, F, D), c = rand_mat(&s, N, D, 1);
    pare_mat p = rand_mat(&s, N, F, 0.01);
    pare_gemm(&p, 1, &c, false, &q, true, 1);
    const size_t k = (size_t)leverage_draws(D);
    assert_int_equal(k, 175); /* 35, 79, 126, 175 for d = 1, 2, 3, 4 */
    assert_int_equal(leverage_draws(1), 35);
    assert_int_equal(leverage_draws(2), 79);
    assert_int_equal(leverage_draws(3), 126);
    const double constant = leverage_constant(D, (double)k);
    assert_true(constant > 4.2 && constant < 4.9);
    size_t rank, hit;
    double weight[F], ratio[N];
    const double *const lev = leverage_scores(&s.w, &q, &rank);
    const size_t *const which = leverage_sample(&s.w, lev, F, k, &s.rng, &hit, weight);
    const pare_mat u = unit_decoder(&s.w, &q, which, hit, weight);
    const pare_mat some = mat_take_cols(&s.w, &p, which, hit),
                   back = affine_rows(&s.w, &some, &u, NULL);
    const pare_mat on = mat_mul(&s.w, &p, false, &q, false),
                   near = affine_rows(&s.w, &on, &q, NULL);
    assert_work(&s);
    double square = 0; /* E w^2 = 1 over the draws: the weights sum to F in the mean */
    for (size_t i = 0; i < hit; i++) square += weight[i] * weight[i];
    assert_near(square, F, 0.25 * F);
    for (size_t i = 0; i < N; i++) {
        double off = 0, rest = 0;
        for (size_t j = 0; j < F; j++) {
            off += pow(pare_row(&back, i)[j] - pare_row(&p, i)[j], 2);
            rest += pow(pare_row(&near, i)[j] - pare_row(&p, i)[j], 2);
        }
        ratio[i] = sqrt(off / rest);
        assert_true(ratio[i] >= 1 - 1e-9); /* the residual itself cannot be got rid of */
    }
    qsort(ratio, N, sizeof *ratio, by_size);
    assert_le(ratio[N * 99 / 100], constant);
    stage_close(&s);
}

static void choices_are_the_golden_ones(void **state)
{
    (void)state;
    NEED_SHARED(TINY);
    stage s;
    tiny t;
    stage_open(&s, 1);
    tiny_open(&s, &t);
    const pare_mat q = tiny_mat(&s, &t, "basis5"), want = tiny_mat(&s, &t, "bwd_rows");
    const pare_mat lev5 = tiny_mat(&s, &t, "lev5");
    const size_t *const got = eliminate_rows(&s.w, &q, want.cols);
    size_t rank;
    const double *const lev = leverage_scores(&s.w, &q, &rank);
    assert_work(&s);
    for (size_t i = 0; i < want.cols; i++) assert_int_equal(got[i], (size_t)want.v[i]);
    for (size_t i = 0; i < lev5.cols; i++) assert_near(lev[i], lev5.v[i], 1e-12);
    tiny_close(&t);
    stage_close(&s);
}

/* The example of Shirzad 2024, C.3.1: H = 11^T/sqrt(D) + eps I, one row chosen to stand for all.
 * With coefficient 1 the bad column is off by eps sqrt(D - 1) (printed: eps D), all others by eps;
 * the best coefficient leaves eps sqrt(D) / (2 + eps sqrt(D)). */
static void one_row_for_all_costs_the_root_of_the_width(void **state)
{
    (void)state;
    enum { D = 100 };
    const double eps = 0.01, one = 1 / sqrt((double)D);
    double least = INFINITY;
    for (int step = 0; step <= 2000; step++) {
        const double c = 0.5 + step * 0.7 / 2000;
        double worst = 0;
        for (size_t col = 0; col < D; col++) {
            double off = 0;
            for (size_t row = 1; row < D; row++) {
                const double h = one + (row == col ? eps : 0), h0 = one + (col == 0 ? eps : 0);
                off += pow(h - c * h0, 2);
            }
            worst = fmax(worst, sqrt(off));
        }
        least = fmin(least, worst);
    }
    double bad = 0, other = 0; /* c = 1 */
    for (size_t row = 1; row < D; row++) bad += pow(one - (one + eps), 2);
    other = eps * eps; /* only row == col differs */
    assert_near(sqrt(bad), eps * sqrt(D - 1.0), 1e-12);
    assert_near(sqrt(other), eps, 1e-12);
    assert_true(sqrt(bad) < eps * D / 2);
    assert_near(least / (eps * sqrt(D) / (2 + eps * sqrt(D))), 1, 0.05);
}

/* Units that repeat each other: as many are kept as there are different ones, and the others come
 * back exactly; a part that never moves keeps one unit and its constant. */
static void as_many_units_as_the_rank_lose_nothing(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 8);
    pare_mat p = rand_product(&s, 60, 5, 20);
    for (size_t i = 0; i < p.rows; i++)
        for (size_t j = 0; j < p.cols; j++) pare_row_mut(&p, i)[j] += (double)j;
    const unit_selection n = select_units_exact(&s.w, &p, 1e-10);
    assert_work(&s);
    assert_int_equal(n.n, 5);
    const pare_mat some = mat_take_cols(&s.w, &p, n.which, n.n);
    const pare_mat back = affine_rows(&s.w, &some, &n.decode, n.offset);
    assert_le(mats_apart(&back, &p), 1e-10);
    const pare_mat dead = mat_zeros(&s.w, 10, 4);
    const unit_selection none = select_units_exact(&s.w, &dead, 1e-10);
    assert_work(&s);
    assert_int_equal(none.n, 1);
    for (size_t j = 0; j < 4; j++) assert_true(none.offset[j] == 0);
    stage_close(&s);
}

/* More units, less error; and least squares is not worse than Q Q_S^+ in the mean. */
static void chosen_units_decode_by_least_squares(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 9);
    pare_mat p = rand_product(&s, 80, 6, 20);
    for (size_t i = 0; i < 80 * 20; i++) p.v[i] += 0.05 * pare_rng_normal(&s.rng);
    double before = INFINITY;
    for (size_t k = 2; k <= 20; k += 6) {
        for (int rows = 0; rows < 2; rows++) {
            const pare_width_opts o = {.rows = (pare_width_rows)rows, .trials = 20};
            const unit_selection n = select_units(&s.w, &p, k, &o, 0);
            const pare_mat some = mat_take_cols(&s.w, &p, n.which, n.n);
            const pare_mat back = affine_rows(&s.w, &some, &n.decode, n.offset);
            assert_work(&s);
            pare_mat off = mat_copy(&s.w, &p);
            for (size_t i = 0; i < 80 * 20; i++) off.v[i] -= back.v[i];
            if (rows == 0) {
                assert_int_equal(n.n, k);
                assert_le(n.pinv_norm, n.limit * (1 + 1e-9));
                assert_le(pare_mat_fro_est(&off), before);
                before = pare_mat_fro_est(&off);
            } else
                assert_true(n.n <= k && n.n > 0);
        }
    }
    assert_le(before, 1e-10); /* all units */
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(greedy_removal_keeps_its_guarantee),
        cmocka_unit_test(each_removal_is_the_cheapest),
        cmocka_unit_test(all_nodes_are_within_the_spread),
        cmocka_unit_test(leverage_scores_sum_to_the_rank),
        cmocka_unit_test(sampled_rows_serve_almost_all_nodes),
        cmocka_unit_test(choices_are_the_golden_ones),
        cmocka_unit_test(one_row_for_all_costs_the_root_of_the_width),
        cmocka_unit_test(as_many_units_as_the_rank_lose_nothing),
        cmocka_unit_test(chosen_units_decode_by_least_squares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
