/* Tests src/width/cluster_bound.c: Theorem 4.4 as it is true, of the cut that was made. */
#include "width_nets.h"
#include "width/prove.h"

enum { NODES = 8 };

/* ---- one number a row: every term by hand -------------------------------------------------------
 *
 * Node i sees node i + 1 alone, so that its pooled row is x_(i+1): c + r or c - r. The input model
 * is y = wh w2 relu(w1 z), the cut y^ = wh^ relu(w1^ z + b^) + bh^, a net of one code. */

typedef struct line {
    double w1, w2, wh;    /* of the input model */
    double v1, b, vh, bh; /* of the cut */
    double c, r;
} line;

static net one_number(stage *s, double w1, double b1, double w2, double wh, double bh)
{
    net n = rand_net(s, (net_shape){.features = 1, .dim = 1, .layers = 1, .heads = 1});
    n.layers[0].heads[0].wv.v[0] = 1;
    n.layers[0].w1.v[0] = w1;
    n.layers[0].b1[0] = b1;
    n.layers[0].w2.v[0] = w2;
    n.wh.v[0] = wh;
    n.bh[0] = bh;
    return n;
}

/* The bound, and in *seen the largest difference. */
static double gap_of(const line *t, double *seen)
{
    stage s;
    stage_open(&s, 1);
    const net f = one_number(&s, t->w1, 0, t->w2, t->wh, 0),
              g = one_number(&s, t->v1, t->b, 1, t->vh, t->bh);
    pare_mat x = mat_zeros(&s.w, NODES, 1);
    size_t ptr[NODES + 1];
    uint32_t idx[NODES];
    for (size_t i = 0; i < NODES; i++) {
        x.v[i] = t->c + (i % 2 ? t->r : -t->r);
        ptr[i] = i;
        idx[i] = (uint32_t)((i + 1) % NODES);
    }
    ptr[NODES] = NODES;
    const pare_graph graph = {NODES, ptr, idx};
    const pare_input in = input_of(&x, &graph);
    pare_model *const mf = model_of(&s, &f), *const mg = model_of(&s, &g);
    const activations pf = activations_of(&s.w, mf, &f, &in);
    const pare_mat y = output_of(&s, mf, &in), z = output_of(&s, mg, &in);
    *seen = mats_apart(&y, &z);
    const pare_ub bound = cluster_gap(&s.w, mf, mg, &f, &g, &pf, &in);
    assert_work(&s);
    pare_model_free(mf);
    pare_model_free(mg);
    stage_close(&s);
    return bound.v;
}

#define assert_met(bound, want)                                                                    \
    do {                                                                                           \
        assert_le((want), (bound));                                                                \
        assert_le((bound), (want) * (1 + 1e-9) + 1e-12);                                           \
    } while (0)

static void each_term_alone_is_met(void **state)
{
    (void)state;
    double seen;
    /* The radius: the code of every node is 1, the outputs of f differ by r |wh w2 w1|. */
    const line radius = {.w1 = 3, .w2 = -2, .wh = .5, .v1 = 0, .b = 1, .vh = -6, .c = 2, .r = .25};
    assert_met(gap_of(&radius, &seen), .25 * 3);
    assert_near(seen, .75, 1e-12);
    /* The codes: they are off by .125, and the head multiplies by 6. */
    const line codes = {.w1 = 3, .w2 = -2, .wh = .5, .v1 = 0, .b = 1.125, .vh = -6, .c = 2};
    assert_met(gap_of(&codes, &seen), .125 * 6);
    assert_near(seen, .75, 1e-12);
    /* What the code stands for: -6 is right, -6.5 and a bias of .25 are off by .25. */
    const line meaning = {
        .w1 = 3, .w2 = -2, .wh = .5, .v1 = 0, .b = 1, .vh = -6.5, .bh = .25, .c = 2};
    assert_met(gap_of(&meaning, &seen), .25);
    assert_near(seen, .25, 1e-12);
}

/* Radius and codes against one another: f rises with z where the cut falls. */
static void both_terms_together_are_met(void **state)
{
    (void)state;
    double seen;
    const line t = {.w1 = 1, .w2 = 1, .wh = 1, .v1 = -.5, .b = 2, .vh = 2, .c = 2, .r = .125};
    assert_met(gap_of(&t, &seen), .25);
    assert_near(seen, .25, 1e-12);
}

/* 3 fl(1/3) = 1 - 2^-54: a product that is rounded makes 0 of an output of 2^-24. */
static void what_rounding_hides_is_counted(void **state)
{
    (void)state;
    stage s;
    stage_open(&s, 2);
    net f = one_number(&s, -3 * 0x1p30, 0x1p30, 1, 1, 0), g = one_number(&s, 0, 1, 1, 0, 0);
    pare_mat x = mat_zeros(&s.w, 1, 1);
    x.v[0] = 1.0 / 3;
    size_t ptr[2] = {0, 1};
    uint32_t idx[1] = {0};
    const pare_graph graph = {1, ptr, idx};
    const pare_input in = input_of(&x, &graph);
    pare_model *const mf = model_of(&s, &f), *const mg = model_of(&s, &g);
    const activations pf = activations_of(&s.w, mf, &f, &in);
    assert_le(0x1p-24, cluster_gap(&s.w, mf, mg, &f, &g, &pf, &in).v);
    /* Not of nets with a skip there, or another activation. */
    f.layers[0].act = PARE_ACT_TANH;
    assert_true(isinf(cluster_gap(&s.w, mf, mg, &f, &g, &pf, &in).v));
    f.layers[0].act = PARE_ACT_RELU;
    f.layers[0].r2 = mat_identity(&s.w, 1);
    assert_true(isinf(cluster_gap(&s.w, mf, mg, &f, &g, &pf, &in).v));
    pare_model_free(mf);
    pare_model_free(mg);
    stage_close(&s);
}

/* ---- nets of any shape, and cuts that are no clusters ---------------------------------------- */

static void no_pair_of_nets_is_farther_apart(void **state)
{
    (void)state;
    double tightest = INFINITY;
    for (uint64_t seed = 0; seed < 60; seed++) {
        stage s;
        stage_open(&s, seed);
        const size_t d = 2 + seed % 5, k = 1 + seed % 4;
        net f = rand_net(&s, (net_shape){.features = 3, .dim = d, .layers = 2, .heads = 1});
        net g = rand_net(&s, (net_shape){.features = 3, .dim = k, .layers = 2, .heads = 1});
        f.wh = rand_mat(&s, 3, d, 1);
        g.wh = rand_mat(&s, 3, k, 1);
        f.bh = rand_vec(&s, 3, 1);
        g.bh = rand_vec(&s, 3, 1);
        for (size_t j = 0; j < k; j++) g.layers[1].b1[j] = pare_rng_normal(&s.rng);
        const pare_mat x = rand_mat(&s, 20, 3, 1);
        const pare_graph graph = rand_graph(&s, 20, 3, NULL);
        const pare_input in = input_of(&x, &graph);
        pare_model *const mf = model_of(&s, &f), *const mg = model_of(&s, &g);
        const activations pf = activations_of(&s.w, mf, &f, &in);
        const pare_mat y = output_of(&s, mf, &in), z = output_of(&s, mg, &in);
        const double bound = cluster_gap(&s.w, mf, mg, &f, &g, &pf, &in).v;
        assert_work(&s);
        assert_le(mats_apart(&y, &z), bound);
        tightest = fmin(tightest, bound / mats_apart(&y, &z));
        pare_model_free(mf);
        pare_model_free(mg);
        stage_close(&s);
    }
    assert_true(tightest < 2); /* some are nearly met */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_term_alone_is_met),
        cmocka_unit_test(both_terms_together_are_met),
        cmocka_unit_test(what_rounding_hides_is_counted),
        cmocka_unit_test(no_pair_of_nets_is_farther_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
