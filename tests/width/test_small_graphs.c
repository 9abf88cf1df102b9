/* Tests that every cut of small graph transformers ends in a model, whatever the graph: few nodes,
 * fewer than the layers have weights; rows that are all alike; nodes without keys; maps of
 * zeros. */
#include "width_nets.h"

enum { SEEDS = 200 };

static size_t between(stage *s, size_t low, size_t high)
{
    return low + (size_t)pare_rng_below(&s->rng, high - low + 1);
}

static void clear(pare_mat *m)
{
    for (size_t i = 0; i < m->rows * m->cols; i++) m->v[i] = 0;
}

/* Normal rows, one-hot rows, one row for all, or zeros. */
static pare_mat features(stage *s, size_t n, size_t d)
{
    pare_mat x = rand_mat(s, n, d, 1);
    const size_t kind = between(s, 0, 5);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < d; j++) {
            double *const at = &pare_row_mut(&x, i)[j];
            if (kind == 3) *at = j == i % d;
            if (kind == 4) *at = x.v[j];
            if (kind == 5) *at = 0;
        }
    return x;
}

static net drawn_net(stage *s, size_t features)
{
    const double gains[] = {0.05, 1, 1, 3};
    const size_t heads = between(s, 1, 2);
    net_shape k = {.features = features,
                   .dim = heads * between(s, 1, 4),
                   .layers = between(s, 1, 3),
                   .classes = between(s, 1, 3),
                   .heads = heads,
                   .ffn = between(s, 1, 8),
                   .residual = between(s, 0, 3) > 0,
                   .gain = gains[between(s, 0, 3)]};
    net n = rand_net(s, k);
    net_layer *const l = &n.layers[between(s, 0, k.layers - 1)];
    switch (between(s, 0, 8)) {
    case 0:
        clear(&l->w2);
        break;
    case 1:
        clear(&l->w1);
        break;
    case 2:
        clear(&l->heads[0].wv);
        break;
    case 3:
        clear(&l->heads[0].wk);
        break;
    case 4:
        clear(&n.wh);
        break;
    default:
        break;
    }
    if (between(s, 0, 1)) n.dtype = PARE_F32;
    return n;
}

static pare_width_opts drawn_opts(stage *s, pare_width_method method, const net *n)
{
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    o.method = method;
    o.trials = 3;
    if (method == PARE_WIDTH_EXACT) return o;
    const bool scores = method == PARE_WIDTH_JL || method == PARE_WIDTH_QK;
    if (scores)
        o.qk_dim = between(s, 1, n->layers[0].heads[0].wq.rows);
    else
        o.dim = between(s, 1, n->wh.cols);
    return o;
}

static void one_graph(uint64_t seed)
{
    const pare_width_method methods[] = {PARE_WIDTH_AUTO,    PARE_WIDTH_AUTO, PARE_WIDTH_EXACT,
                                         PARE_WIDTH_LOWRANK, PARE_WIDTH_QK,   PARE_WIDTH_JL,
                                         PARE_WIDTH_LEVERAGE};
    stage s;
    stage_open(&s, seed);
    const size_t nodes = between(&s, 1, 9), keys = between(&s, 1, nodes < 4 ? nodes : 4);
    const size_t alone[] = {between(&s, 0, 2 * nodes), SIZE_MAX};
    const pare_graph graph = rand_graph(&s, nodes, keys, alone);
    const pare_mat x = features(&s, nodes, between(&s, 1, 4));
    const net n = drawn_net(&s, x.cols);
    pare_model *const m = model_of(&s, &n);
    pare_input in = input_of(&x, &graph);
    const pare_inputs set = {1, &in};
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        pare_model *g = NULL;
        pare_width_report report;
        pare_err err = {0};
        const pare_width_opts o = drawn_opts(&s, methods[i], &n);
        const pare_status st = pare_width(&g, &report, m, &set, &o, NULL, &err);
        if (st)
            print_error("seed %llu, %s: %s\n", (unsigned long long)seed,
                        pare_width_method_names[methods[i]], err.msg);
        assert_int_equal(st, PARE_OK);
        const pare_mat y = output_of(&s, g, &in);
        for (size_t k = 0; k < y.rows * y.cols; k++) assert_true(isfinite(y.v[k]));
        pare_model_free(g);
    }
    pare_model_free(m);
    stage_close(&s);
}

static void every_small_graph_can_be_cut(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) one_graph(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_small_graph_can_be_cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
