/* Tests src/width/jl.c: the tail of random projections, the dimension the lemma asks for, and the
 * best of several draws. */
#include "width_nets.h"

/* 4,000 draws stay below the Chernoff value. */
static void the_tail_is_below_the_chernoff_value(void **state)
{
    (void)state;
    enum { D = 64, T = 4000 };
    static const struct {
        size_t d;
        double eps;
    } cases[] = {{32, 0.5}, {16, 0.5}, {8, 1}};
    for (size_t c = 0; c < 3; c++) {
        stage s;
        stage_open(&s, 11 + c);
        double *const x = rand_vec(&s, D, 1), *const y = rand_vec(&s, D, 1);
        double nx = 0, ny = 0, dot = 0;
        for (size_t i = 0; i < D; i++) nx += x[i] * x[i], ny += y[i] * y[i], dot += x[i] * y[i];
        dot /= sqrt(nx * ny);
        size_t over = 0;
        for (size_t t = 0; t < T; t++) {
            const pare_mark mark = pare_arena_mark(s.w.arena);
            const pare_mat m = jl_map(&s.w, cases[c].d, D, &s.rng);
            const double *const mx = mat_vec(&s.w, &m, false, x, NULL);
            const double *const my = mat_vec(&s.w, &m, false, y, NULL);
            double got = 0;
            for (size_t i = 0; i < cases[c].d; i++) got += mx[i] * my[i];
            over += fabs(got / sqrt(nx * ny) - dot) > cases[c].eps;
            pare_arena_reset(s.w.arena, mark);
        }
        const double eps = cases[c].eps;
        const double tail = 2 * exp(-(double)cases[c].d / 2 * (eps - log1p(eps)));
        assert_le((double)over / T, tail);
        assert_true(c == 0 || over > 0); /* the test can fail */
        stage_close(&s);
    }
}

/* Minesweeper's 78,804 pairs (docs/theory/width.md section 1): with delta = 1, and with .01. */
static void the_dimension_it_asks_for_is_above_64(void **state)
{
    (void)state;
    static const double eps[] = {1, 0.5, 0.25};
    static const size_t bare[] = {79, 254, 892}, safe[] = {109, 351, 1235};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pare_jl_dim(78804, eps[i], 1), bare[i]);
        assert_int_equal(pare_jl_dim(78804, eps[i], 0.01), safe[i]);
    }
    assert_true(pare_jl_dim(49, 1, 1) < 64);             /* with 7 different rows it is not */
    assert_true(pare_jl_dim(1e6, 1e-7, 1) > 1000000000); /* no cancellation, no overflow */
}

static void more_draws_are_never_worse(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 5);
    const net n = rand_net(
        &s, (net_shape){
                .features = 6, .dim = 12, .layers = 1, .classes = 2, .heads = 1, .residual = true});
    const pare_graph g = rand_graph(&s, 40, 5, NULL);
    const pare_mat h = rand_mat(&s, 40, 12, 1);
    double before = INFINITY;
    for (size_t trials = 1; trials <= 64; trials *= 2) {
        jl_draws d = {.trials = trials, .rng = pare_rng_at(3, 0)};
        const net_head best = jl_search(&s.w, &n.layers[0].heads[0], &h, &g, 6, &d);
        double *const a = head_scores(&s.w, &n.layers[0].heads[0], &h, &g);
        double *const b = head_scores(&s.w, &best, &h, &g);
        assert_work(&s);
        assert_near(score_half_range(a, b, &g), d.best,
                    1e-12); /* the draw that is told is the kept */
        assert_le(d.best, before);
        assert_le(d.best, d.first);
        before = d.best;
    }
    stage_close(&s);
}

static void equal_rows_count_once(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 6);
    const pare_mat three = rand_mat(&s, 3, 4, 1);
    pare_mat h = mat_zeros(&s.w, 30, 4);
    for (size_t i = 0; i < 30; i++)
        memcpy(pare_row_mut(&h, i), pare_row(&three, i % 3), 4 * sizeof(double));
    const pare_graph g = rand_graph(&s, 30, 8, NULL);
    size_t rows, pairs, kinds;
    jl_distinct(&s.w, &rows, &pairs, &h, &g);
    assert_work(&s);
    assert_int_equal(rows, 3);
    assert_int_equal(pairs, 9);
    const size_t *const one = jl_representatives(&s.w, &kinds, &h);
    assert_int_equal(kinds, 3);
    assert_true(one[0] + one[1] + one[2] == 3); /* rows 0, 1, 2 in some order */
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tail_is_below_the_chernoff_value),
        cmocka_unit_test(the_dimension_it_asks_for_is_above_64),
        cmocka_unit_test(more_draws_are_never_worse),
        cmocka_unit_test(equal_rows_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
