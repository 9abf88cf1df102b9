/* Tests src/width/lower_bounds.c: no rows of d numbers, however they are found and decoded, are
 * nearer than the bound; the best ones are hardly farther. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "width_nets.h"
#include "width/prove.h"

enum { ROWS = 30, COLS = 7 };

#define RCOND 1e-10

/* A theorem about the exact stream of f: its best rank-d residual (Eckart-Young), at least. */
static double stream_lower_bound(pare_work *w, const pare_model *f, size_t place,
                                 const pare_input *in, size_t d)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    double *rad = NULL;
    const pare_mat a = stream_enclosed(w, &rad, f, place, in);
    const double least = w->st ? 0 : residual_lower_bound(w, &a, rad, d);
    pare_arena_reset(w->arena, mark);
    return least;
}

static pare_ub length_of(const double *rad, size_t n)
{
    return rad ? vector_norm(rad, n) : pare_ub_exact(0);
}

/* From above: some affine map of the rows of x leaves at most this of a (|.|_F), for all rows within
 * rad_a and rad_x (euclidean; NULL: exact) of those given. */
/* y = (x - mx) M + my is an affine map whatever M, mx, my are: any doubles do, and the better they
 * are the less is left. With C = fl(x - mx), T = fl(a - my), E = fl(T - C M):
 *
 *     |a - y|_F <= |E| + rounding of the product + u (|T| + |C||M|) + |rad_a| + |M| |rad_x|. */
static pare_ub decoding_residual_ub(pare_work *w, const pare_mat *a, const double *rad_a,
                                    const pare_mat *x, const double *rad_x)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    pare_ub left = pare_ub_inf();
    const double *const mx = mat_col_means(w, x), *const my = mat_col_means(w, a);
    const pare_mat c = mat_centered(w, x, mx), t = mat_centered(w, a, my);
    pare_mat map = mat_zeros(w, x->cols, a->cols);
    if (!w->st) w->st = pare_lstsq(&map, NULL, &c, &t, RCOND, w->arena, w->err);
    pare_mat e = mat_copy(w, &t);
    if (!w->st) {
        const pare_ub one = pare_ub_exact(1), size = fro_norm(&map);
        const pare_ub from = fro_norm(&c), to = fro_norm(&t), u = pare_ub_exact(0x1p-52);
        pare_gemm(&e, -1, &c, false, &map, false, 1);
        const pare_ub product = pare_ub_add(product_rounding(c.cols + 2, from, size),
                                            product_rounding(c.cols + 2, to, one));
        const pare_ub centers = pare_ub_mul(u, pare_ub_fma(from, size, to));
        const pare_ub rows =
            pare_ub_fma(size, length_of(rad_x, x->rows), length_of(rad_a, a->rows));
        const pare_ub off = pare_ub_mul(fro_norm(&e), pare_ub_exact(1 + 0x1p-51));
        left = pare_ub_add(pare_ub_add(off, product), pare_ub_add(centers, rows));
    }
    pare_arena_reset(w->arena, mark);
    return left;
}

static double fro_apart(const pare_mat *a, const pare_mat *b)
{
    double sum = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) sum += pow(pare_row(a, i)[j] - pare_row(b, i)[j], 2);
    return sqrt(sum);
}

/* Rows with a mean far from 0 and directions of very different size. */
static pare_mat some_rows(stage *s, size_t rows, size_t cols)
{
    pare_mat a = rand_mat(s, rows, cols, 1);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            pare_row_mut(&a, i)[j] = pare_row(&a, i)[j] * pow(0.5, (double)j) + 10;
    return a;
}

/* The best affine decoder of some d numbers a row: random ones, or steps of alternating least
 * squares from them, which end near the optimum. */
static double descend(stage *s, const pare_mat *a, size_t d, int steps)
{
    pare_mat x = rand_mat(s, a->rows, d, 1);
    for (int k = 0; k < steps; k++) { /* x: the coordinates of what its own decoder says */
        const pare_mat y = decode_rows(&s->w, &x, a);
        const basis b = basis_pca(&s->w, &y, d, true);
        x = basis_coords(&s->w, &b, a);
    }
    const pare_mat y = decode_rows(&s->w, &x, a);
    assert_work(s);
    return fro_apart(a, &y);
}

static void no_rows_are_nearer_and_the_best_are_hardly_farther(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        stage st, *const s = &st;
        stage_open(s, seed);
        const bool wide = seed % 2;
        const pare_mat a = wide ? some_rows(s, COLS, ROWS) : some_rows(s, ROWS, COLS);
        for (size_t d = 1; d < COLS - 1; d++) {
            const double least = residual_lower_bound(&s->w, &a, NULL, d);
            double best = INFINITY;
            for (int go = 0; go < 8; go++) best = fmin(best, descend(s, &a, d, 3 * go));
            const basis b = basis_pca(&s->w, &a, d, true);
            const pare_mat x = basis_coords(&s->w, &b, &a), y = decode_rows(&s->w, &x, &a);
            const double pca = fro_apart(&a, &y);
            assert_work(s);
            if (!(least <= best && least <= pca && least >= pca * (1 - 2e-4)))
                fail_msg("seed %d, %zu numbers: least %.9g, found %.9g, PCA %.9g", (int)seed, d,
                         least, best, pca);
            assert_true(fabs(decoding_residual_est(&s->w, &a, &x) - pca) <= 1e-9 * pca);
            assert_le(entry_lower_bound(&s->w, &a, NULL, d), mats_apart(&a, &y));
        }
        assert_true(residual_lower_bound(&s->w, &a, NULL, COLS) == 0); /* nothing is left */
        stage_close(s);
    }
}

/* Rows that are only known up to radii: all that they may be are above the bound. */
static void radii_are_taken_off(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 3);
    const pare_mat a = some_rows(s, ROWS, COLS);
    double rad[ROWS];
    for (size_t i = 0; i < ROWS; i++) rad[i] = 0.02;
    const double with = residual_lower_bound(&s->w, &a, rad, 2),
                 without = residual_lower_bound(&s->w, &a, NULL, 2);
    assert_true(with < without && with > 0);
    /* The rows moved as far as they may be, towards the plane of their two best numbers. */
    const basis b = basis_pca(&s->w, &a, 2, true);
    const pare_mat x = basis_coords(&s->w, &b, &a), y = decode_rows(&s->w, &x, &a);
    pare_mat nearer = mat_copy(&s->w, &a);
    for (size_t i = 0; i < ROWS; i++) {
        double len = 0;
        for (size_t j = 0; j < COLS; j++) len += pow(pare_row(&y, i)[j] - pare_row(&a, i)[j], 2);
        const double by = fmin(1, rad[i] / sqrt(len));
        for (size_t j = 0; j < COLS; j++)
            pare_row_mut(&nearer, i)[j] += by * (pare_row(&y, i)[j] - pare_row(&a, i)[j]);
    }
    assert_le(with, fro_apart(&nearer, &y));
    assert_work(s);
    stage_close(s);
}

/* What some affine map reaches, from above: the estimate is just below it, and it is above what no
 * map can beat; also for rows known up to radii, wherever in them they are. */
static void what_is_reached_is_bounded_from_above(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        stage st, *const s = &st;
        stage_open(s, seed);
        const pare_mat a = some_rows(s, ROWS, COLS);
        const size_t d = 1 + seed % 4;
        const basis b = basis_pca(&s->w, &a, d, true);
        const pare_mat x = basis_coords(&s->w, &b, &a);
        const double est = decoding_residual_est(&s->w, &a, &x);
        const pare_ub above = decoding_residual_ub(&s->w, &a, NULL, &x, NULL);
        assert_work(s);
        assert_le(residual_lower_bound(&s->w, &a, NULL, d), above.v);
        assert_le(est * (1 - 1e-12), above.v);
        assert_le(above.v, est * (1 + 1e-10) + 1e-12);
        double ra[ROWS], rx[ROWS];
        pare_mat a2 = mat_copy(&s->w, &a), x2 = mat_copy(&s->w, &x);
        for (size_t i = 0; i < ROWS; i++) { /* one entry takes the whole radius */
            ra[i] = 0.01 * pare_rng_uniform(&s->rng), rx[i] = 0.02 * pare_rng_uniform(&s->rng);
            pare_row_mut(&a2, i)[i % COLS] += i % 2 ? ra[i] : -ra[i];
            pare_row_mut(&x2, i)[i % d] -= i % 3 ? rx[i] : -rx[i];
        }
        const pare_ub wide = decoding_residual_ub(&s->w, &a, ra, &x, rx);
        /* every map is an upper bound of the best: the best of the moved rows is below it */
        assert_le(decoding_residual_est(&s->w, &a2, &x2), wide.v);
        assert_true(wide.v > above.v);
        assert_work(s);
        stage_close(s);
    }
}

/* Two dimensions and a third of 1e-10: seen where the rows are exact, not where they may be off by
 * more. */
static void the_affine_rank_is_proven_from_below(void **state)
{
    (void)state;
    stage st, *const s = &st;
    stage_open(s, 5);
    double rad[ROWS];
    pare_mat x = rand_mat(s, ROWS, 3, 1);
    const pare_mat m = rand_orthonormal(s, COLS, 3);
    for (size_t i = 0; i < ROWS; i++) pare_row_mut(&x, i)[2] *= 1e-10;
    pare_mat a = mat_mul(&s->w, &x, false, &m, true);
    for (size_t i = 0; i < ROWS; i++) {
        rad[i] = 1e-9;
        for (size_t j = 0; j < COLS; j++) pare_row_mut(&a, i)[j] += 3;
    }
    assert_int_equal(affine_rank_at_least(&s->w, &a, NULL), 3);
    assert_int_equal(affine_rank_at_least(&s->w, &a, rad), 2);
    const basis b = basis_within(&s->w, &a, 1e-9 * pare_mat_max_abs(&a), true);
    assert_int_equal(basis_dim(&b), 2); /* what an observation says */
    assert_work(s);
    stage_close(s);
}

/* The stream of the exact model: its f64 rows are within the radii, and no cut is below its
 * bound. */
static void streams_are_enclosed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        stage st, *const s = &st;
        stage_open(s, seed);
        const net n = rand_net(
            s,
            (net_shape){
                .features = 6, .dim = 8, .layers = 2, .classes = 3, .heads = 2, .residual = true});
        const pare_graph g = rand_graph(s, ROWS, 4, NULL);
        const pare_mat x = rand_mat(s, ROWS, 6, 1);
        const pare_input in = input_of(&x, &g);
        pare_model *const f = model_of(s, &n);
        const activations p = activations_of(&s->w, f, &n, &in);
        for (size_t place = 0; place <= 4; place++) {
            const pare_mat *const h = place % 2 ? &p.z[place / 2] : &p.h[place / 2];
            double *rad = NULL;
            const pare_mat e = stream_enclosed(&s->w, &rad, f, place, &in);
            assert_work(s);
            assert_true(e.rows == h->rows && e.cols == h->cols);
            for (size_t i = 0; i < ROWS; i++) {
                double sum = 0;
                for (size_t j = 0; j < e.cols; j++)
                    sum += pow(pare_row(&e, i)[j] - pare_row(h, i)[j], 2);
                assert_le(sqrt(sum), 2 * rad[i] + 1e-14);
                assert_le(rad[i], 1e-9);
            }
            const double proven = stream_lower_bound(&s->w, f, place, &in, 3);
            const double stored = residual_lower_bound(&s->w, h, NULL, 3);
            assert_le(proven, stored * (1 + 1e-9));
            assert_le(stored * (1 - 1e-6) - 1e-7, proven);
        }
        pare_model_free(f);
        stage_close(s);
    }
}

/* Outputs of many classes from a narrow last stream: cuts of every method stay above the bound. */
static void no_cut_has_better_outputs(void **state)
{
    (void)state;
    double share = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        stage st, *const s = &st;
        stage_open(s, seed);
        const net n = rand_net(
            s,
            (net_shape){
                .features = 6, .dim = 8, .layers = 1, .classes = 9, .heads = 2, .residual = true});
        const pare_graph g = rand_graph(s, ROWS, 4, NULL);
        const pare_mat x = rand_mat(s, ROWS, 6, 1);
        pare_input in = input_of(&x, &g);
        const pare_inputs set = {1, &in};
        pare_model *const f = model_of(s, &n);
        for (size_t d = 1; d <= 4; d++)
            for (int method = 0; method < 2; method++) {
                pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
                pare_model *cut = NULL;
                pare_width_report r;
                o.method = method ? PARE_WIDTH_AUTO : PARE_WIDTH_LOWRANK;
                o.dim = d;
                const double moved = cut_moves(s, &cut, &r, NULL, &n, &x, &g, &o);
                const double least = outputs_lower_bound(&s->w, f, &set, d);
                assert_work(s);
                assert_true(least > 0);
                assert_le(least, moved);
                share = fmax(share, least / moved);
                pare_model_free(cut);
            }
        assert_true(outputs_lower_bound(&s->w, f, &set, 9) == 0); /* as many numbers as classes */
        pare_model_free(f);
        stage_close(s);
    }
    print_message("the nearest cut is within a factor %.2f of what no cut can beat\n", 1 / share);
    assert_true(share > 0.2); /* auto's cuts differ a little between CPUs */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_rows_are_nearer_and_the_best_are_hardly_farther),
        cmocka_unit_test(radii_are_taken_off),
        cmocka_unit_test(what_is_reached_is_bounded_from_above),
        cmocka_unit_test(the_affine_rank_is_proven_from_below),
        cmocka_unit_test(streams_are_enclosed),
        cmocka_unit_test(no_cut_has_better_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
