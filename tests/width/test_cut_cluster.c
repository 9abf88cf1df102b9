/* Tests src/width/cut_cluster.c on graphs whose nodes come in types: type a sees type a + 1
 * only. */
#include "width_nets.h"

enum { TYPES = 6, EACH = 12, N = TYPES * EACH };

static pare_graph typed_graph(stage *s)
{
    size_t *const ptr = pare_work_alloc(&s->w, N + 1, sizeof *ptr);
    uint32_t *const idx = pare_work_alloc(&s->w, N * 7, sizeof *idx);
    for (size_t i = 0; i < N; i++) {
        const size_t first = (i / EACH + 1) % TYPES * EACH;
        size_t at = ptr[i], left = 7;
        for (size_t j = 0; j < EACH && left > 0; j++)
            if (pare_rng_below(&s->rng, EACH - j) < left) {
                idx[at++] = (uint32_t)(first + j);
                left--;
            }
        ptr[i + 1] = at;
    }
    return (pare_graph){N, ptr, idx};
}

/* One orthonormal row for each type, and noise of size eps. */
static pare_mat typed_rows(stage *s, size_t d, double eps)
{
    const pare_mat base = rand_orthonormal(s, d, TYPES);
    pare_mat x = rand_mat(s, N, d, 1);
    for (size_t i = 0; i < N; i++) {
        double size = 0;
        for (size_t j = 0; j < d; j++) size += pare_row(&x, i)[j] * pare_row(&x, i)[j];
        for (size_t j = 0; j < d; j++)
            pare_row_mut(&x, i)[j] =
                pare_row(&base, j)[i / EACH] + eps * pare_row(&x, i)[j] / sqrt(size);
    }
    return x;
}

/* Values are transposed, the hidden part is the identity as relu(Qz) - relu(-Qz): the hypotheses of the
 * theorem hold in every layer. */
static net exact_net(stage *s, size_t d, size_t layers)
{
    const net n = rand_net(
        s, (net_shape){.features = d, .dim = d, .layers = layers, .heads = 1, .ffn = 2 * d});
    for (size_t l = 0; l < layers; l++) {
        const pare_mat q = rand_orthonormal(s, d, d);
        net_layer *const at = &n.layers[l];
        at->heads[0].wv = rand_orthonormal(s, d, d);
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++) {
                pare_row_mut(&at->w1, i)[j] = pare_row(&q, i)[j];
                pare_row_mut(&at->w1, d + i)[j] = -pare_row(&q, i)[j];
                pare_row_mut(&at->w2, j)[i] = pare_row(&q, i)[j];
                pare_row_mut(&at->w2, j)[d + i] = -pare_row(&q, i)[j];
            }
    }
    return n;
}

static pare_width_opts cluster_opts(pare_width_rule rule, pare_width_start start)
{
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    o.method = PARE_WIDTH_CLUSTER;
    o.rule = rule;
    o.start = start;
    o.dim = TYPES;
    return o;
}

/* Shirzad 2024, Theorem 4.4: errors fall with eps, the margins' rule is the better one. */
static void the_error_is_of_the_order_of_the_radius(void **state)
{
    (void)state;
    double error[2][3];
    for (int rule = 0; rule < 2; rule++)
        for (int k = 0; k < 3; k++) {
            stage s;
            pare_model *cut = NULL;
            pare_width_report r;
            stage_open(&s, 3);
            const pare_graph g = typed_graph(&s);
            const net n = exact_net(&s, 32, 3);
            const pare_mat x = typed_rows(&s, 32, pow(10, -2 - k));
            for (size_t i = 0; i < N * 32; i++) x.v[i] *= 1.5; /* centers need not have norm 1 */
            const pare_width_opts o = cluster_opts((pare_width_rule)rule, PARE_START_RANK);
            error[rule][k] = cut_moves(&s, &cut, &r, NULL, &n, &x, &g, &o);
            assert_int_equal(r.dim, TYPES);
            pare_model_free(cut);
            stage_close(&s);
        }
    for (int rule = 0; rule < 2; rule++)
        for (int k = 0; k < 2; k++) {
            assert_true(error[rule][k] / error[rule][k + 1] > 5);
            assert_true(error[rule][k] / error[rule][k + 1] < 20);
        }
    for (int k = 0; k < 3; k++) assert_le(error[PARE_RULE_MARGIN][k], error[PARE_RULE_PAPER][k]);
}

/* The numbers of the hypothesis, by hand: orthonormal centers. */
static void radius_and_separation_are_told(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 4);
    const pare_mat x = typed_rows(&s, 16, 1e-3);
    const clusters c = clusters_of(&s.w, &x, TYPES);
    const cluster_facts f = clusters_check(&s.w, &x, &c);
    assert_work(&s);
    assert_int_equal(c.k, TYPES);
    for (size_t i = 0; i < N; i++) assert_int_equal(c.label[i], c.label[i / EACH * EACH]);
    assert_true(f.eps > 8e-4 && f.eps <= 1.4e-3);
    assert_near(f.least, 1, 1e-2);
    assert_near(f.most, 1, 1e-2);
    assert_true(f.sep < 0.01);
    const clusters more = clusters_of(&s.w, &c.center, N); /* six different rows */
    assert_int_equal(more.k, TYPES);
    stage_close(&s);
}

/* Random maps for the first layer: the features stay, more draws are never worse, and the codes are
 * one-hot once the dimension is large enough; the clusters are still those of the types. */
static void the_first_layer_may_be_drawn(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 3);
    const pare_graph g = typed_graph(&s);
    const net n = exact_net(&s, 64, 2);
    const pare_mat x = typed_rows(&s, 64, 1e-6);
    pare_model *const m = model_of(&s, &n);
    const pare_input in = input_of(&x, &g);
    const activations p = activations_of(&s.w, m, &n, &in);
    double before = INFINITY;
    for (size_t trials = 1; trials <= 16; trials *= 4) {
        pare_width_opts o = cluster_opts(PARE_RULE_MARGIN, PARE_START_JL);
        o.dim = 48;
        o.trials = trials;
        cut_record r = record_new(&s.w, &n);
        cluster_facts f[2];
        const net few = cut_cluster(&s.w, &n, &p, &o, &r, f);
        assert_work(&s);
        assert_int_equal(few.layers[0].heads[0].wq.cols, 64);
        assert_int_equal(few.layers[0].heads[0].wv.rows, 48);
        assert_int_equal(few.layers[1].heads[0].wq.cols, TYPES);
        assert_int_equal(f[0].k, TYPES);
        assert_true(f[0].values > 0 && f[1].values == 0);
        assert_le(f[0].values, before);
        assert_le(f[0].onehot, 1e-3);
        before = f[0].values;
        pare_model *const small = model_of(&s, &few);
        const pare_mat y = output_of(&s, m, &in), z = output_of(&s, small, &in);
        assert_le(mats_apart(&y, &z), 1e-3);
        pare_model_free(small);
    }
    pare_model_free(m);
    stage_close(&s);
}

static void refused(stage *s, const net *n, const pare_mat *x, const pare_graph *g,
                    pare_width_opts o, const char *why)
{
    pare_model *cut = NULL, *const m = model_of(s, n);
    pare_width_report r;
    pare_input in = input_of(x, g);
    const pare_inputs set = {1, &in};
    assert_status(pare_width(&cut, &r, m, &set, &o, NULL, &s->err), PARE_ERR_INPUT, &s->err);
    assert_null(cut);
    assert_contains(s->err.msg, why);
    pare_model_free(m);
}

static void what_it_does_not_cover_is_refused_with_its_numbers(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 3);
    const pare_graph g = typed_graph(&s);
    const net n = exact_net(&s, 16, 2);
    const pare_mat x = typed_rows(&s, 16, 1e-3);
    const pare_width_opts o = cluster_opts(PARE_RULE_MARGIN, PARE_START_RANK);
    net other = net_shallow(&s.w, &n);
    other.layers[1].act = PARE_ACT_TANH;
    refused(&s, &other, &x, &g, o, "without activations other than ReLU; block 1");
    other = net_shallow(&s.w, &n);
    other.layers[1].r1 = mat_identity(&s.w, 16);
    refused(&s, &other, &x, &g, o, "without skip connections; block 1");
    other = net_shallow(&s.w, &n);
    other.layers[0].heads[0].bv = rand_vec(&s, 16, 1);
    refused(&s, &other, &x, &g, o, "without biases on values or outputs of attention; block 0");
    /* Rows everywhere, in no clusters. */
    const pare_mat loose = rand_mat(&s, N, 16, 1);
    refused(&s, &n, &loose, &g, o, "not separable: a node outside has");
    pare_width_opts paper = o;
    paper.rule = PARE_RULE_PAPER;
    refused(&s, &n, &loose, &g, paper, "are not separable: c.c' = ");
    /* A node without keys pools to 0: a center that cannot be selected. */
    size_t *const ptr = pare_work_alloc(&s.w, N + 1, sizeof *ptr);
    memcpy(ptr, g.ptr, (N + 1) * sizeof *ptr);
    for (size_t i = N - EACH + 1; i <= N; i++) ptr[i] = ptr[N - EACH];
    const pare_graph alone = {N, ptr, g.idx};
    refused(&s, &n, &x, &alone, o, "is 0");
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_error_is_of_the_order_of_the_radius),
        cmocka_unit_test(radius_and_separation_are_told),
        cmocka_unit_test(the_first_layer_may_be_drawn),
        cmocka_unit_test(what_it_does_not_cover_is_refused_with_its_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
