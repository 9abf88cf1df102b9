/* Tests src/depth/one_layer.c, collapse_chain.c, theorem2_parallel.c and recognize_collapse.c: one-layer collapses are what
 * they are said to be, exactly where theory says so, and of the order it says elsewhere. */
#include "depth_nets.h"

enum { TOKENS = 7 };

static const net_shape small = {
    .layers = 4, .heads = 2, .d = 4, .eta = .4, .beta = 1, .bias = .3, .law = LAW_GAUSS};

static void zero_queries(pare_model *m, bool biases_too)
{
    for (size_t b = 0; b < m->nblocks; b++) {
        pare_attn *const at = &m->blocks[b].attn;
        double *const zero = net_room(m, at->wq.rows * at->wq.cols);
        at->wq.data = zero;
        if (biases_too) at->bq = (pare_weight){0};
    }
}

static void fill(double *x, pare_rng *r, size_t n, double size)
{
    for (size_t i = 0; i < n; i++) x[i] = size * pare_rng_normal(r);
}

/* Output of g equals that of f within `tol`, and the bound knows it. */
static void assert_exact(const pare_model *f, pare_model *g, const double *x, double tol,
                         double proven)
{
    assert_le(net_apart(f, g, x, TOKENS, 4), tol);
    const depth_bound b = bound_of(f, g, 3, -1);
    assert_le(b.bound.v, proven);
    pare_model_free(g);
}

static void without_queries_uniform_is_exact(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(1, 0);
    pare_model *const f = net_of(&r, &small);
    double x[TOKENS * 4];
    zero_queries(f, true);
    fill(x, &r, TOKENS * 4, 1);
    assert_exact(f, collapsed(f, PARE_ONE_UNIFORM, 0, NULL), x, 1e-10, 1e-9);
    assert_exact(f, collapsed(f, PARE_ONE_PARALLEL_UNIFORM, 0, NULL), x, 1e-10, 1e-9);
    assert_exact(f, collapsed(f, PARE_ONE_UNIFORM_KEEP, 1, NULL), x, 1e-10, 1e-9);
    assert_exact(f, collapsed(f, PARE_ONE_UMIX, 0, NULL), x, 1e-10, 1e-9);
    pare_model_free(f);
}

static void with_constant_queries_rankone_is_exact(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(2, 0);
    pare_model *const f = net_of(&r, &small);
    double x[TOKENS * 4], other[TOKENS * 4];
    zero_queries(f, false);
    fill(x, &r, TOKENS * 4, 1);
    fill(other, &r, TOKENS * 4, 1);
    pare_input in = net_input(x, TOKENS, 4);
    const pare_inputs calib = {1, &in};
    assert_exact(f, collapsed(f, PARE_ONE_RANKONE, 0, &calib), other, 1e-10, 1e-8);
    pare_model_free(f);
}

static void one_token_sees_itself_and_uniform_is_exact(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(3, 0);
    pare_model *const f = net_of(&r, &small), *const g = collapsed(f, PARE_ONE_UNIFORM, 0, NULL);
    double x[4];
    fill(x, &r, 4, 1);
    assert_le(net_apart(f, g, x, 1, 4), 1e-10);
    assert_le(bound_of(f, g, 3, 0).bound.v, 1e-9); /* no two tokens differ */
    pare_model_free(g);
    pare_model_free(f);
}

static void umix_is_the_chain_of_means_for_every_mask(void **state)
{
    (void)state;
    static const pare_pattern_kind patterns[] = {PARE_CAUSAL, PARE_WINDOW, PARE_GRAPH};
    static const size_t ptr[] = {0, 2, 3, 5, 7, 8, 9, 11};
    static const uint32_t idx[] = {1, 3, 2, 0, 5, 2, 6, 1, 3, 0, 4};
    const pare_graph graph = {TOKENS, ptr, idx};
    for (size_t p = 0; p < 3; p++) {
        pare_rng r = pare_rng_at(4, p);
        net_shape s = small;
        s.pattern = patterns[p];
        pare_model *const f = net_of(&r, &s), *const g = collapsed(f, PARE_ONE_UMIX, 0, NULL);
        pare_model *const chain = all_uniform(f);
        double x[TOKENS * 4], y[2][TOKENS * 4];
        pare_err err = {0};
        fill(x, &r, TOKENS * 4, 1);
        pare_input in = net_input(x, TOKENS, 4);
        if (s.pattern == PARE_GRAPH) in.graph = &graph;
        assert_ok(pare_forward_f64(y[0], chain, &in, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f64(y[1], g, &in, NULL, NULL, &err), &err);
        for (size_t i = 0; i < TOKENS * 4; i++) assert_near(y[0][i], y[1][i], 1e-10);
        /* the same function of other weights: both bounds are the same */
        const double a = bound_of(f, chain, 1, -1).bound.v, b = bound_of(f, g, 1, -1).bound.v;
        assert_near(a, b, 1e-9 * a);
        pare_model_free(chain);
        pare_model_free(g);
        pare_model_free(f);
    }
}

static void keeping_the_only_layer_keeps_every_bit(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(5, 0);
    net_shape s = small;
    s.layers = 1;
    pare_model *const f = net_of(&r, &s), *const g = collapsed(f, PARE_ONE_KEEP, 0, NULL);
    char a[PARE_SHA256_HEX], b[PARE_SHA256_HEX];
    pare_err err = {0};
    assert_ok(pare_model_sha256(a, f, &err), &err);
    assert_ok(pare_model_sha256(b, g, &err), &err);
    assert_string_equal(a, b);
    assert_true(bound_of(f, g, 2, -1).bound.v == 0);
    pare_model_free(g);
    pare_model_free(f);
}

/* ---- symmetries ------------------------------------------------------------------------------ */

static void tokens_may_be_permuted_and_keys_shifted(void **state)
{
    (void)state;
    static const pare_collapse kinds[] = {PARE_ONE_KEEP, PARE_ONE_PARALLEL, PARE_ONE_UNIFORM,
                                          PARE_ONE_PARALLEL_UNIFORM};
    static const size_t turn[TOKENS] = {3, 0, 6, 1, 5, 2, 4};
    pare_rng r = pare_rng_at(6, 0);
    pare_model *const f = net_of(&r, &small);
    double x[TOKENS * 4], z[TOKENS * 4], y[TOKENS * 4], w[TOKENS * 4];
    fill(x, &r, TOKENS * 4, 1);
    for (size_t i = 0; i < TOKENS * 4; i++) z[i] = x[turn[i / 4] * 4 + i % 4];
    for (size_t k = 0; k < 5; k++) {
        pare_model *const g = k < 4 ? collapsed(f, kinds[k], 1, NULL) : net_clone(f);
        net_run(y, g, x, TOKENS, 4);
        net_run(w, g, z, TOKENS, 4);
        for (size_t i = 0; i < TOKENS * 4; i++)
            assert_near(w[i], y[turn[i / 4] * 4 + i % 4], 1e-12);
        for (size_t b = 0; b < g->nblocks; b++)
            if (pare_has(&g->blocks[b].attn.bk)) g->blocks[b].attn.bk = (pare_weight){0};
        net_run(w, g, x, TOKENS, 4);
        for (size_t i = 0; i < TOKENS * 4; i++) assert_near(w[i], y[i], 1e-12);
        pare_model_free(g);
    }
    pare_model_free(f);
}

/* ---- orders ---------------------------------------------------------------------------------- */

/* log-log slope of the error against the size of the weights, eta from 1e-3 to 2e-2. */
static double slope_of(pare_collapse kind, pare_pattern_kind pattern)
{
    const size_t n = 16, d = 8, steps = 6;
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (size_t t = 0; t < steps; t++) {
        const double eta = 1e-3 * pow(20, (double)t / (double)(steps - 1));
        pare_rng r = pare_rng_at(7, 0); /* the same net, larger and larger */
        const net_shape s = {
            .layers = 4, .heads = 2, .d = d, .eta = eta, .beta = 1, .pattern = pattern};
        pare_model *const f = net_of(&r, &s);
        pare_model *const g = collapsed(f, kind, 3, NULL);
        double x[16 * 8];
        fill(x, &r, n * d, 1);
        const double e = net_apart(f, g, x, n, d);
        sx += log(eta), sy += log(e), sxx += log(eta) * log(eta), sxy += log(eta) * log(e);
        pare_model_free(g);
        pare_model_free(f);
    }
    const double m = (double)steps;
    return (m * sxy - sx * sy) / (m * sxx - sx * sx);
}

static void assert_slope(pare_collapse kind, pare_pattern_kind pattern, double want)
{
    const double s = slope_of(kind, pattern);
    print_message("%s, %s: slope %.3f\n", pare_collapse_names[kind], pare_pattern_name(pattern), s);
    assert_near(s, want, 0.1);
}

static void errors_are_of_the_order_that_theory_says(void **state)
{
    (void)state;
    assert_slope(PARE_ONE_IDENTITY, PARE_FULL, 1);
    assert_slope(PARE_ONE_KEEP, PARE_FULL, 1);
    assert_slope(PARE_ONE_PARALLEL, PARE_FULL, 2);
    assert_slope(PARE_ONE_UNIFORM, PARE_FULL, 3);
    assert_slope(PARE_ONE_UNIFORM_KEEP, PARE_FULL, 3);
    assert_slope(PARE_ONE_PARALLEL_UNIFORM, PARE_FULL, 4);
    assert_slope(PARE_ONE_UMIX, PARE_CAUSAL, 3);
}

/* One mean for all layers: exact under full attention, of second order under a mask. */
static void under_a_mask_one_mean_is_only_of_second_order(void **state)
{
    (void)state;
    const size_t n = 16, d = 8;
    double e[2];
    for (size_t t = 0; t < 2; t++) {
        pare_rng r = pare_rng_at(7, 0);
        const net_shape s = {.layers = 4, .heads = 2, .d = d, .eta = t ? 2e-2 : 1e-3, .beta = 1};
        pare_model *const f = net_of(&r, &s), *const g = collapsed(f, PARE_ONE_UNIFORM, 0, NULL);
        double x[16 * 8];
        f->pattern.kind = g->pattern.kind = PARE_CAUSAL;
        fill(x, &r, n * d, 1);
        e[t] = net_apart(f, g, x, n, d);
        pare_model_free(g);
        pare_model_free(f);
    }
    const double slope = log(e[1] / e[0]) / log(20);
    print_message("uniform, causal: slope %.3f\n", slope);
    assert_near(slope, 2, 0.1);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static void every_collapse_is_within_its_bound_with_biases(void **state)
{
    (void)state;
    size_t close = 0, all = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        pare_rng r = pare_rng_at(seed, 8);
        const net_shape s = {.layers = 1 + pare_rng_below(&r, 4),
                             .heads = 1 + pare_rng_below(&r, 2),
                             .d = 1 + pare_rng_below(&r, 4),
                             .eta = seed % 3 ? .05 : .3,
                             .beta = 1,
                             .bias = seed % 2 ? .1 : 0,
                             .law = (weight_law)pare_rng_below(&r, 4)};
        const size_t n = 1 + pare_rng_below(&r, 6);
        pare_model *const f = net_of(&r, &s);
        double x[24];
        hostile_input(x, &r, n, s.d, 1.5);
        pare_input in = net_input(x, n, s.d);
        const pare_inputs calib = {1, &in};
        for (pare_collapse k = 0; k < PARE_ONES; k++) {
            const size_t keep = (size_t)pare_rng_below(&r, s.layers);
            pare_model *const g = collapsed(f, k, keep, &calib);
            const depth_bound b = bound_of(f, g, 1.5, -1);
            const double seen = net_apart(f, g, x, n, s.d);
            if (!(seen <= b.bound.v + 1e-13))
                fail_msg("seed %llu, %s: seen %g, bound %g (%s)", (unsigned long long)seed,
                         pare_collapse_names[k], seen, b.bound.v, b.why);
            all++;
            close += b.bound.v < 20 * seen || b.bound.v < 1e-12;
            pare_model_free(g);
        }
        pare_model_free(f);
    }
    print_message("%zu of %zu bounds within 20 of what was seen\n", close, all);
    assert_true(3 * close > all);
}

/* One number of a weight, 5 larger. */
static void change(pare_model *m, pare_weight *w, size_t cols)
{
    const size_t n = pare_has(w) ? w->rows * w->cols : cols;
    double *const v = net_room(m, n);
    for (size_t i = 0; pare_has(w) && i < n; i++) v[i] = pare_weight_at(w, i);
    v[n - 2] += 5;
    *w = (pare_weight){PARE_F64, pare_has(w) ? w->rows : 1, pare_has(w) ? w->cols : n, v};
}

/* A changed weight is another model: the bound must cover it, not trust the name. */
static void a_changed_collapse_has_a_larger_bound(void **state)
{
    (void)state;
    for (size_t t = 0; t < 2 * PARE_ONES; t++) {
        const pare_collapse kind = (pare_collapse)(t / 2);
        pare_rng r = pare_rng_at(9, 0);
        net_shape s = small;
        s.eta = .05, s.bias = .02;
        pare_model *const f = net_of(&r, &s);
        double x[TOKENS * 4];
        for (size_t i = 0; i < TOKENS * 4; i++) x[i] = 1.5; /* on the edge of the box */
        pare_input in = net_input(x, TOKENS, 4);
        const pare_inputs calib = {1, &in};
        pare_model *const g = collapsed(f, kind, 1, &calib);
        pare_attn *const at = &g->blocks[0].attn;
        pare_weight *const matrix = pare_has(&at->mix) ? &at->mix : &at->wo;
        if (t % 2 == 0)
            change(g, &at->bo, 4);
        else if (pare_has(matrix))
            change(g, matrix, 0);
        const double seen = net_apart(f, g, x, TOKENS, 4);
        const depth_bound b = bound_of(f, g, 1.5, -1);
        assert_true(seen > (t % 2 ? 0 : 3));
        if (!(seen <= b.bound.v))
            fail_msg("%s: %g > %g", pare_collapse_names[kind], seen, b.bound.v);
        pare_model_free(g);
        pare_model_free(f);
    }
}

/* ---- refused --------------------------------------------------------------------------------- */

static void assert_refused(const pare_model *m, pare_collapse kind, size_t keep, pare_status want,
                           const char *part)
{
    pare_model *g = NULL;
    pare_err err = {0};
    const one_layer_opts o = {.kind = kind, .keep = keep};
    assert_status(collapse_to_one_layer(&g, m, &o, &err), want, &err);
    assert_null(g);
    assert_contains(err.msg, part);
}

static void what_is_no_pure_network_is_refused_with_the_reason(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(10, 0);
    pare_model *const f = net_of(&r, &small);
    assert_refused(f, PARE_ONE_KEEP, 4, PARE_ERR_USAGE, "cannot keep layer 4");
    assert_refused(f, PARE_ONE_KEEPBIAS, 0, PARE_ERR_USAGE, "calibration");
    assert_refused(f, PARE_ONE_RANKONE, 0, PARE_ERR_USAGE, "calibration");
    f->pattern.kind = PARE_CAUSAL;
    assert_refused(f, PARE_ONE_UNIFORM, 0, PARE_ERR_INPUT, "causal");
    f->pattern.kind = PARE_GRAPH;
    f->pattern.self_loops = false;
    assert_refused(f, PARE_ONE_UMIX, 0, PARE_ERR_INPUT, "self loops");
    f->pattern.kind = PARE_FULL;
    f->blocks[1].attn.skip.kind = PARE_SKIP_NONE;
    assert_refused(f, PARE_ONE_UNIFORM, 0, PARE_ERR_INPUT, "block 1 has no residual");
    f->blocks[1].attn.skip.kind = PARE_SKIP_IDENTITY;
    f->blocks[2].attn.in_norm.kind = PARE_NORM_MEAN;
    assert_refused(f, PARE_ONE_PARALLEL, 0, PARE_ERR_INPUT, "block 2 has a norm");
    f->blocks[2].attn.in_norm.kind = PARE_NORM_NONE;
    f->blocks[3].ffn.kind = PARE_FFN_MLP;
    assert_refused(f, PARE_ONE_IDENTITY, 0, PARE_ERR_INPUT, "block 3 has an FFN");
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_queries_uniform_is_exact),
        cmocka_unit_test(with_constant_queries_rankone_is_exact),
        cmocka_unit_test(one_token_sees_itself_and_uniform_is_exact),
        cmocka_unit_test(umix_is_the_chain_of_means_for_every_mask),
        cmocka_unit_test(keeping_the_only_layer_keeps_every_bit),
        cmocka_unit_test(tokens_may_be_permuted_and_keys_shifted),
        cmocka_unit_test(errors_are_of_the_order_that_theory_says),
        cmocka_unit_test(under_a_mask_one_mean_is_only_of_second_order),
        cmocka_unit_test(every_collapse_is_within_its_bound_with_biases),
        cmocka_unit_test(a_changed_collapse_has_a_larger_bound),
        cmocka_unit_test(what_is_no_pure_network_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
