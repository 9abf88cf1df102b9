/* Tests src/depth/theorem1_recurrence.c and the steps below it. A test is named after the claim it would
 * refute. */
#include "depth_kinds.h"

/* ---- soundness on models of every kind ------------------------------------------------------- */

static depth_domain domain_of(const pare_input *in, bool measure)
{
    depth_domain d = {0, -1};
    double widest = 0;
    for (size_t j = 0; in->x && j < in->width; j++) {
        double lo = INFINITY, hi = -INFINITY;
        for (size_t i = 0; i < in->batch * in->tokens; i++) {
            const double x = in->x[i * in->width + j];
            lo = fmin(lo, x), hi = fmax(hi, x);
            d.phi0 = fmax(d.phi0, fabs(x));
        }
        widest = fmax(widest, hi - lo);
    }
    if (measure) d.diam0 = widest * (1 + 1e-15);
    return d;
}

static double apart(const pare_model *f, const pare_model *g, const pare_input *in, double *scale)
{
    pare_err err = {0};
    const size_t n = pare_output_rows(f, in) * pare_model_outputs(f);
    double *const y = calloc(2 * n + 1, sizeof *y);
    double far = 0;
    assert_non_null(y);
    assert_ok(pare_forward_f64(y, f, in, NULL, NULL, &err), &err);
    assert_ok(pare_forward_f64(y + n, g, in, NULL, NULL, &err), &err);
    for (size_t i = 0; i < n; i++) {
        far = fmax(far, fabs(y[i] - y[n + i]));
        *scale = fmax(*scale, fabs(y[i]));
    }
    free(y);
    return far;
}

static void no_input_is_beyond_the_bound_whatever_the_model(void **state)
{
    (void)state;
    size_t finite = 0, tight = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        pare_model *const f = some_model(seed, seed % 3 ? 0.3 : 0.08);
        soften_all(f);
        pare_model *const g = net_clone(f);
        maker k = {.m = g, .r = pare_rng_at(seed, 79), .sigma = 0.3};
        for (size_t b = 0; b < g->nblocks; b++) replace(&k, &g->blocks[b].attn);
        const pare_input in = some_input(f, seed, 1, 0.5);
        const depth_domain d = domain_of(&in, seed % 2);
        depth_bound b;
        pare_err err = {0};
        assert_ok(pare_model_check(g, &err), &err);
        assert_ok(depth_apriori(&b, f, g, &d, NULL, &err), &err);
        double scale = 0;
        const double seen = apart(f, g, &in, &scale);
        if (!(seen <= b.bound.v + 1e-12 * (1 + scale)))
            fail_msg("seed %llu: seen %g, bound %g", (unsigned long long)seed, seen, b.bound.v);
        assert_true(b.bound.v >= 0);
        assert_true(isfinite(b.bound.v) || b.why[0]);
        finite += isfinite(b.bound.v) != 0;
        tight += seen > 0 && b.bound.v < 30 * seen;
        pare_model_free(g);
        pare_model_free(f);
    }
    print_message("%zu of 400 finite, %zu within 30 of what was seen\n", finite, tight);
    assert_true(finite == 400 && tight >= 70); /* of bounds twice as large 62 */
}

/* ---- exact cases ----------------------------------------------------------------------------- */

static void a_model_is_at_no_distance_from_itself(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 40; seed++) {
        pare_model *const f = some_model(seed, 0.3);
        soften_all(f);
        pare_model *const g = net_clone(f);
        const depth_bound b = bound_of(f, g, 1, -1);
        if (b.why[0]) assert_true(isinf(b.bound.v));
        assert_true(b.bound.v == 0 || b.why[0]);
        pare_model_free(g);
        pare_model_free(f);
    }
}

static void behind_a_layer_norm_nothing_is_promised_but_what_is_injected(void **state)
{
    (void)state;
    pare_rng r = pare_rng_at(5, 0);
    const net_shape s = {.layers = 2, .heads = 2, .d = 4, .eta = .3, .beta = .5, .bias = .1};
    pare_model *const f = net_of(&r, &s);
    for (size_t b = 0; b < 2; b++)
        f->blocks[b].attn.in_norm = (pare_norm){.kind = PARE_NORM_LAYER, .eps = 1e-5, .divisor = 4};
    pare_model *const g = net_clone(f);
    become_zero(&g->blocks[0].attn);
    const depth_bound b = bound_of(f, g, 1, -1);
    assert_true(isinf(b.bound.v));
    assert_contains(b.why, "norm in front");
    pare_ub in[2];
    pare_err err = {0};
    for (size_t i = 0; i < 2; i++) assert_ok(depth_injected(&in[i], f, g, i, NULL, &err), &err);
    assert_true(in[1].v == 0);
    /* the branch of block 0 on its own, over many inputs */
    pare_model *const branch = net_clone(f), *const none = net_clone(g);
    branch->nblocks = none->nblocks = 1;
    double x[20], worst = 0;
    for (size_t t = 0; t < 300; t++) {
        hostile_input(x, &r, 5, 4, t % 2 ? 1 : 100);
        double y[40];
        net_run(y, branch, x, 5, 4);
        net_run(y + 20, none, x, 5, 4);
        for (size_t i = 0; i < 5; i++) {
            double e = 0;
            for (size_t j = 0; j < 4; j++) e += pow(y[i * 4 + j] - y[20 + i * 4 + j], 2);
            worst = fmax(worst, sqrt(e));
        }
    }
    print_message("injected: seen %g, bound %g\n", worst, in[0].v);
    assert_le(worst, in[0].v);
    assert_le(in[0].v, 6 * worst);
    pare_model_free(branch);
    pare_model_free(none);
    pare_model_free(g);
    pare_model_free(f);
}

/* All weights +eta, X = phi0: what the theorem allows does happen. */
static double tightness(pare_collapse kind, double eta, double phi, bool spread)
{
    pare_rng r = pare_rng_at(1, 0);
    const net_shape s = {
        .layers = 4, .heads = 2, .d = 4, .eta = eta, .beta = 1, .law = LAW_ALL_ETA};
    pare_model *const f = net_of(&r, &s), *const g = collapsed(f, kind, 3, NULL);
    const depth_bound b = bound_of(f, g, phi, -1);
    double x[16 * 4], worst = 0;
    for (size_t n = 2; n <= 16; n++)
        for (size_t low = 0; low < (spread ? n : 1); low++) {
            for (size_t i = 0; i < n * 4; i++) x[i] = i / 4 < low ? -phi : phi;
            worst = fmax(worst, net_apart(f, g, x, n, 4));
        }
    print_message("%s: seen %.6g, bound %.6g (%.3f)\n", pare_collapse_names[kind], worst, b.bound.v,
                  b.bound.v / worst);
    assert_le(worst, b.bound.v);
    pare_model_free(g);
    pare_model_free(f);
    return b.bound.v / worst;
}

static void for_the_worst_weights_the_bounds_are_met(void **state)
{
    (void)state;
    assert_le(tightness(PARE_ONE_KEEP, .01, 1, false), 1.05);
    assert_le(tightness(PARE_ONE_IDENTITY, .01, 1, false), 1.05);
    assert_le(tightness(PARE_ONE_PARALLEL, .01, 1, false), 1.05);
    assert_le(tightness(PARE_ONE_UNIFORM, .003, 1, true), 1.1);
    assert_le(tightness(PARE_ONE_UNIFORM, .01, 1, true), 1.2);
}

/* ---- all token sequences --------------------------------------------------------------------- */

#define BERT "../shared/data/models/bert_sst_3layer.safetensors"

static double logit_gap(const pare_model *f, const pare_model *g, const int64_t *ids, size_t n,
                        double each[2])
{
    const pare_input in = {.batch = 1, .tokens = n, .ids = ids};
    pare_err err = {0};
    double y[4];
    assert_ok(pare_forward_f64(y, f, &in, NULL, NULL, &err), &err);
    assert_ok(pare_forward_f64(y + 2, g, &in, NULL, NULL, &err), &err);
    for (size_t i = 0; i < 2; i++) each[i] = fmax(each[i], fabs(y[i] - y[2 + i]));
    return fabs((y[1] - y[0]) - (y[3] - y[2]));
}

/* Greedy: change one word at a time to whatever is worst of some. */
static double worst_sentence(const pare_model *f, const pare_model *g, pare_rng *r, size_t n,
                             size_t rounds, double each[2])
{
    int64_t ids[8];
    for (size_t i = 0; i < n; i++) ids[i] = (int64_t)pare_rng_below(r, f->embedding.vocab);
    double worst = logit_gap(f, g, ids, n, each);
    for (size_t t = 0; t < rounds; t++) {
        const size_t i = (size_t)pare_rng_below(r, n);
        const int64_t old = ids[i];
        ids[i] = (int64_t)pare_rng_below(r, f->embedding.vocab);
        const double e = logit_gap(f, g, ids, n, each);
        if (e > worst)
            worst = e;
        else
            ids[i] = old;
    }
    return worst;
}

static void no_sentence_is_beyond_the_bound_of_bert_sst(void **state)
{
    (void)state;
    NEED_SHARED(BERT);
    pare_model *f = NULL;
    pare_err err = {0};
    depth_bound b;
    assert_ok(pare_model_load(&f, BERT, &err), &err);
    pare_model *const g = all_uniform(f);
    const depth_domain all_sequences = {0, 0};
    assert_ok(depth_apriori(&b, f, g, &all_sequences, NULL, &err), &err);
    pare_rng r = pare_rng_at(11, 0);
    double worst = 0, each[2] = {0, 0};
    for (size_t t = 0; t < 12; t++)
        worst = fmax(worst, worst_sentence(f, g, &r, 1 + t % 6, 150, each));
    print_message("logit difference: seen %.3g, bound %.3g; logits %.3g, bound %.3g; "
                  "in one number %.3g\n",
                  worst, b.difference.v, fmax(each[0], each[1]), b.bound.v, b.by[DEPTH_NORM_TWO].v);
    assert_le(worst, b.difference.v);
    assert_le(fmax(each[0], each[1]), b.bound.v);
    assert_le(b.difference.v, 1e-4);
    assert_le(b.by[DEPTH_NORM_TWO].v, 3e-4); /* the published recurrence, too */
    pare_model_free(g);
    pare_model_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_input_is_beyond_the_bound_whatever_the_model),
        cmocka_unit_test(a_model_is_at_no_distance_from_itself),
        cmocka_unit_test(behind_a_layer_norm_nothing_is_promised_but_what_is_injected),
        cmocka_unit_test(for_the_worst_weights_the_bounds_are_met),
        cmocka_unit_test(no_sentence_is_beyond_the_bound_of_bert_sst),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
