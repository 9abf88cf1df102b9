/* Tests src/width/gradient_metric.c: the metric is the mean square of slopes, as differences give
 * them. */
#include "linalg/matrix.h"
#include "width_nets.h"

/* y at row j when x_i has moved by `step` along k: n x outputs. */
static pare_mat moved_output(stage *s, const pare_model *m, const pare_mat *x, const pare_graph *g,
                             size_t i, size_t k, double step)
{
    pare_mat at = mat_copy(&s->w, x);
    pare_row_mut(&at, i)[k] += step;
    const pare_input in = input_of(&at, g);
    return output_of(s, m, &in);
}

static double signal(const pare_mat *y, size_t i, size_t c)
{
    double mean = 0;
    if (y->cols == 1) return pare_row(y, i)[0];
    if (y->cols == 2) return pare_row(y, i)[1] - pare_row(y, i)[0];
    for (size_t j = 0; j < y->cols; j++) mean += pare_row(y, i)[j] / (double)y->cols;
    return pare_row(y, i)[c] - mean;
}

/* mean_i sum_j g g^T with g = d signal_j / d x_i, by central differences; the embedding is the
 * identity. */
static pare_mat by_differences(stage *s, const pare_model *m, const pare_mat *x,
                               const pare_graph *g)
{
    const size_t d = x->cols, n = x->rows, c = pare_model_outputs(m), rows = c > 2 ? c * n : n;
    const double step = 1e-5;
    pare_mat sum = mat_zeros(&s->w, d, d), slope = mat_zeros(&s->w, rows, d);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < d; k++) {
            const pare_mat up = moved_output(s, m, x, g, i, k, step);
            const pare_mat down = moved_output(s, m, x, g, i, k, -step);
            for (size_t r = 0; r < rows; r++)
                pare_row_mut(&slope, r)[k] =
                    (signal(&up, r % n, r / n) - signal(&down, r % n, r / n)) / (2 * step);
        }
        pare_gemm(&sum, 1 / (double)n, &slope, true, &slope, false, 1);
    }
    return sum;
}

static net net_on_features(stage *s, size_t d, size_t classes)
{
    net n = rand_net(s, (net_shape){.features = d,
                                    .dim = d,
                                    .layers = 2,
                                    .classes = classes,
                                    .heads = 2,
                                    .residual = true});
    n.we = mat_identity(&s->w, d);
    n.be = vec_zeros(&s->w, d);
    return n;
}

/* At the head the slopes of two classes are the difference of its rows, whatever the signs. */
static void at_the_head_it_is_the_head(void **state)
{
    (void)state;
    for (size_t classes = 1; classes <= 2; classes++) {
        stage s;
        stage_open(&s, 3);
        const net n = net_on_features(&s, 6, classes);
        const pare_mat x = rand_mat(&s, 20, 6, 1);
        const pare_graph g = rand_graph(&s, 20, 4, NULL);
        pare_model *const m = model_of(&s, &n);
        const pare_input in = input_of(&x, &g);
        const pare_mat *const metric = gradient_metric(&s.w, m, &in, 1);
        assert_work(&s);
        pare_mat want = mat_zeros(&s.w, 6, 6), row = mat_zeros(&s.w, 1, 6);
        for (size_t j = 0; j < 6; j++)
            row.v[j] = pare_row(&n.wh, classes - 1)[j] - (classes == 2 ? n.wh.v[j] : 0);
        pare_gemm(&want, 1, &row, true, &row, false, 0);
        assert_le(mats_apart(&metric[4], &want), 1e-12);
        pare_model_free(m);
        stage_close(&s);
    }
}

/* Outputs that are always the same: nothing counts more than anything else. */
static void without_slopes_it_is_the_identity(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 5);
    net n = net_on_features(&s, 6, 2);
    n.wh = mat_zeros(&s.w, 2, 6);
    const pare_mat x = rand_mat(&s, 15, 6, 1), want = mat_identity(&s.w, 6);
    const pare_graph g = rand_graph(&s, 15, 4, NULL);
    pare_model *const m = model_of(&s, &n);
    const pare_input in = input_of(&x, &g);
    const pare_mat *const metric = gradient_metric(&s.w, m, &in, 1);
    assert_work(&s);
    for (size_t k = 0; k <= 4; k++) assert_true(mats_apart(&metric[k], &want) == 0);
    pare_model_free(m);
    stage_close(&s);
}

/* Nodes that see nobody: every slope is its own node's, and the signs fall out. */
static void without_edges_it_is_exact_at_the_input(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 4);
    const net n = net_on_features(&s, 6, 2);
    const pare_mat x = rand_mat(&s, 15, 6, 1);
    const pare_graph g = rand_graph(&s, 15, 0, NULL);
    pare_model *const m = model_of(&s, &n);
    const pare_input in = input_of(&x, &g);
    const pare_mat *const metric = gradient_metric(&s.w, m, &in, 1);
    const pare_mat want = by_differences(&s, m, &x, &g);
    assert_work(&s);
    assert_le(mats_apart(&metric[0], &want), 1e-6 * pare_mat_max_abs(&want));
    pare_model_free(m);
    stage_close(&s);
}

/* With edges, and with three classes: on average over the signs. */
static void with_edges_it_is_right_on_average(void **state)
{
    (void)state;
    enum { SEEDS = 800 };
    for (size_t classes = 2; classes <= 3; classes++) {
        stage s;
        stage_open(&s, 5);
        const net n = net_on_features(&s, 4, classes);
        const pare_mat x = rand_mat(&s, 12, 4, 1);
        const pare_graph g = rand_graph(&s, 12, 3, NULL);
        pare_model *const m = model_of(&s, &n);
        const pare_input in = input_of(&x, &g);
        const pare_mat want = by_differences(&s, m, &x, &g);
        pare_mat mean = mat_zeros(&s.w, 4, 4);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            const pare_mat *const metric = gradient_metric(&s.w, m, &in, seed);
            assert_work(&s);
            for (size_t k = 0; k < 16; k++) mean.v[k] += metric[0].v[k] / SEEDS;
        }
        assert_le(mats_apart(&mean, &want), 0.05 * pare_mat_max_abs(&want));
        pare_model_free(m);
        stage_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_the_head_it_is_the_head),
        cmocka_unit_test(without_slopes_it_is_the_identity),
        cmocka_unit_test(without_edges_it_is_exact_at_the_input),
        cmocka_unit_test(with_edges_it_is_right_on_average),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
