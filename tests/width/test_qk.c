/* Tests src/width/qk.c: nothing is lost at full rank, and below it nothing better
 * exists in the metric of the data. */
#include "width_nets.h"
#include "width/prove.h"

static net some_net(stage *s, size_t heads)
{
    return rand_net(
        s,
        (net_shape){
            .features = 6, .dim = 10, .layers = 1, .classes = 2, .heads = heads, .residual = true});
}

static void at_full_rank_scores_are_kept(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        stage s;
        stage_open(&s, seed);
        const net n = some_net(&s, 2);
        const pare_graph g = rand_graph(&s, 40, 5, NULL);
        const pare_mat h = rand_mat(&s, 40, 10, 1);
        const net_head *const hd = &n.layers[0].heads[0];
        qk_fit fit;
        const net_head few = qk_optimal(&s.w, hd, &h, &g, 5, &fit);
        double *const a = head_scores(&s.w, hd, &h, &g), *const b = head_scores(&s.w, &few, &h, &g);
        assert_work(&s);
        double most = 0;
        for (size_t e = 0; e < g.ptr[g.n]; e++) most = fmax(most, fabs(a[e]));
        if (!(score_half_range(a, b, &g) <= 1e-6 * most))
            fail_msg("seed %llu: rank 5 of 5 loses %g", (unsigned long long)seed,
                     score_half_range(a, b, &g));
        assert_int_equal(fit.rank, 5);
        stage_close(&s);
    }
}

/* The objective is the tail of the singular values; it falls with d; and no random form of the
 * same rank is below the lower bound. */
static void the_objective_is_the_tail_and_nothing_is_below_it(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 3);
    const net n = some_net(&s, 1);
    const pare_graph g = rand_graph(&s, 40, 5, NULL);
    const pare_mat h = rand_mat(&s, 40, 10, 1);
    const net_head *const hd = &n.layers[0].heads[0];
    double before = INFINITY;
    for (size_t d = 1; d <= 10; d++) {
        qk_fit fit;
        (void)qk_optimal(&s.w, hd, &h, &g, d, &fit);
        assert_work(&s);
        assert_near(fit.objective, fit.least, 1e-8 * (1 + fit.least));
        assert_le(fit.least, before);
        before = fit.least;
    }
    assert_le(before, 1e-9);
    stage_close(&s);
}

static double rms_apart(const double *a, const double *b, const pare_graph *g)
{
    double sum = 0;
    for (size_t i = 0; i < g->n; i++) {
        double mean = 0;
        const size_t deg = g->ptr[i + 1] - g->ptr[i];
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) mean += (a[e] - b[e]) / (double)deg;
        for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) sum += pow(a[e] - b[e] - mean, 2);
    }
    return sqrt(sum / (double)g->ptr[g->n]);
}

static void it_beats_random_projections_of_the_same_size(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        stage s;
        stage_open(&s, seed);
        const net n = some_net(&s, 1);
        const pare_graph g = rand_graph(&s, 60, 6, NULL);
        const pare_mat h = rand_mat(&s, 60, 10, 1);
        const net_head *const hd = &n.layers[0].heads[0];
        const net_head best = qk_optimal(&s.w, hd, &h, &g, 3, NULL);
        double *const a = head_scores(&s.w, hd, &h, &g);
        const double ours = rms_apart(a, head_scores(&s.w, &best, &h, &g), &g);
        for (int t = 0; t < 20; t++) {
            jl_draws one = {.trials = 1, .rng = pare_rng_at(seed, 100 + (uint64_t)t)};
            const net_head drawn = jl_search(&s.w, hd, &h, &g, 3, &one);
            if (!(ours < rms_apart(a, head_scores(&s.w, &drawn, &h, &g), &g)))
                fail_msg("seed %llu draw %d is better", (unsigned long long)seed, t);
        }
        stage_close(&s);
    }
}

/* Keys that hardly differ: their map must be large, but not the whole of the scores' size. */
static void both_maps_have_one_length(void **state)
{
    (void)state;
    for (int size = 0; size >= -80; size -= 40) {
        stage s;
        stage_open(&s, 5);
        const net n = some_net(&s, 1);
        const pare_graph g = rand_graph(&s, 40, 5, NULL);
        pare_mat h = rand_mat(&s, 40, 10, pow(10, size));
        const net_head *const hd = &n.layers[0].heads[0];
        const net_head few = qk_optimal(&s.w, hd, &h, &g, 1, NULL);
        assert_work(&s);
        const double q = hypot(vec_norm_est(pare_row(&few.wq, 0), 10), few.bq[0]);
        const double k = vec_norm_est(pare_row(&few.wk, 0), 10);
        if (!(fabs(q / k - 1) <= 1e-9 && q > 0 && q < 1e30))
            fail_msg("rows of size 1e%d: queries %g, keys %g", size, q, k);
        stage_close(&s);
    }
}

/* f32 weights, as a certificate meets them. */
static void to_f32(pare_mat *m)
{
    for (size_t i = 0; i < m->rows * m->cols; i++) m->v[i] = (float)m->v[i];
}

/* The least of any form is never above what a form reaches: the best one in f64 and f32, forms near
 * it, random ones. Sizes from 1e-60 to 1e60, ranks that are full, d where nothing is lost. */
static void no_form_is_below_the_enclosed_least(void **state)
{
    (void)state;
    double closest = INFINITY;
    for (uint64_t seed = 0; seed < 120; seed++) {
        stage s;
        stage_open(&s, seed);
        const double size = seed % 4 == 3 ? pow(10, (double)(seed % 120) - 60) : 1;
        const net n = some_net(&s, 1);
        const pare_graph g = rand_graph(&s, 40, 1 + seed % 6, NULL);
        const pare_mat h = rand_mat(&s, 40, 10, size);
        const net_head *const hd = &n.layers[0].heads[0];
        const size_t d = 1 + seed % hd->wq.rows;
        qk_fit fit;
        net_head b = qk_optimal(&s.w, hd, &h, &g, d, &fit);
        assert_work(&s);
        const qk_bounds exact = qk_bounds_of(&s.w, hd, &b, &h, &g);
        assert_le(exact.least, exact.reached.v);
        assert_le(fit.objective, exact.reached.v);
        if (exact.least > 1e-9 * fit.total) closest = fmin(closest, exact.reached.v / exact.least);
        if (exact.least > 1e-6 * fit.total) assert_le(exact.reached.v, exact.least * (1 + 1e-3));
        to_f32(&b.wq), to_f32(&b.wk);
        const qk_bounds stored = qk_bounds_of(&s.w, hd, &b, &h, &g);
        assert_le(stored.least, stored.reached.v);
        assert_true(stored.least == exact.least);
        for (int t = 0; t < 4; t++) {
            net_head other = b;
            other.wq = rand_mat(&s, b.wq.rows, 10, t ? pow(10, -2 * t) : 1);
            for (size_t i = 0; t && i < b.wq.rows * 10; i++) other.wq.v[i] += b.wq.v[i];
            const qk_bounds near = qk_bounds_of(&s.w, hd, &other, &h, &g);
            assert_le(exact.least, near.reached.v);
        }
        b.scale *= 2;
        assert_true(isinf(qk_bounds_of(&s.w, hd, &b, &h, &g).reached.v));
        assert_work(&s);
        stage_close(&s);
    }
    print_message("the best form is within %.7f of the least\n", closest);
    assert_le(closest, 1 + 2e-4);
}

static void scores_are_the_golden_ones(void **state)
{
    (void)state;
    NEED_SHARED(TINY);
    stage s;
    tiny t;
    stage_open(&s, 1);
    tiny_open(&s, &t);
    const net n = net_read(&s.w, t.m);
    const activations p = activations_of(&s.w, t.m, &n, &t.in);
    for (size_t d = 1; d <= 3; d++) {
        char name[40];
        snprintf(name, sizeof name, "qk_opt_scores_d%zu", d);
        const pare_mat want = tiny_mat(&s, &t, name);
        const net_head few = qk_optimal(&s.w, &n.layers[0].heads[0], &p.h[0], &p.graph, d, NULL);
        double *const got = head_scores(&s.w, &few, &p.h[0], &p.graph);
        assert_work(&s);
        assert_le(score_half_range(got, want.v, &p.graph), 1e-7);
    }
    tiny_close(&t);
    stage_close(&s);
}

/* h = U x + mu exactly: same scores up to a constant in each row, of rank(Wk U) dimensions, with a
 * query bias whose direction Wq U does not reach. */
static void in_an_affine_basis_nothing_is_lost_not_even_the_query_bias(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 9);
    const net n = some_net(&s, 1);
    net_head hd = n.layers[0].heads[0];
    const pare_graph g = rand_graph(&s, 40, 5, NULL);
    const pare_mat x = rand_mat(&s, 40, 3, 1);
    basis b = {rand_orthonormal(&s, 10, 3), rand_vec(&s, 10, 1)};
    const pare_mat wqu = mat_mul(&s.w, &hd.wq, false, &b.u, false);
    pare_mat gone = mat_mul(&s.w, &wqu, false, &b.u, true); /* Wq U U^T: now Wq mu+ drops out */
    hd.wq = gone;
    for (size_t j = 0; j < 10; j++) hd.bq[j] = pare_rng_normal(&s.rng);
    const pare_mat h = affine_rows(&s.w, &x, &b.u, b.mu);
    const net_head few = qk_exact(&s.w, &hd, &b);
    double *const a = head_scores(&s.w, &hd, &h, &g), *const c = head_scores(&s.w, &few, &x, &g);
    assert_work(&s);
    assert_int_equal(few.wq.rows, 3);
    assert_le(score_half_range(a, c, &g), 1e-12);
    memset(few.bq, 0, 3 * sizeof(double)); /* it is the bias that does it */
    double *const without = head_scores(&s.w, &few, &x, &g);
    assert_true(score_half_range(a, without, &g) > 0.01);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_full_rank_scores_are_kept),
        cmocka_unit_test(the_objective_is_the_tail_and_nothing_is_below_it),
        cmocka_unit_test(it_beats_random_projections_of_the_same_size),
        cmocka_unit_test(both_maps_have_one_length),
        cmocka_unit_test(no_form_is_below_the_enclosed_least),
        cmocka_unit_test(scores_are_the_golden_ones),
        cmocka_unit_test(in_an_affine_basis_nothing_is_lost_not_even_the_query_bias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
