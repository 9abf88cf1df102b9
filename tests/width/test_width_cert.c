/* Tests src/width/verify.c, attention_ratios.c and src/cert/outputs.c: what a certificate says is
 * true, it verifies, and no field of it can change unseen. */
#include "width_nets.h"
#include "width/prove.h"
#include <claims.h>
#include <forge.h>
#include <given_file.h>
#include "cert/outputs.h"
#include "linalg/matrix.h"
#include <pare/width.h>

typedef struct play {
    char dir[200], in[300], out[300], cert[320];
    pare_model *m;
    stage s;
    pare_inputs set;
    pare_publish_opts opts;
} play;

enum { NODES = 30 };

static void play_open(play *p, pare_model *m)
{
    test_mkdir(p->dir);
    test_path(p->in, p->dir, "in");
    test_path(p->out, p->dir, "out");
    snprintf(p->cert, sizeof p->cert, "%s.cert.json", p->out);
    p->m = m;
    assert_ok(pare_model_save(m, p->in, false, NULL, &p->s.err), &p->s.err);
    assert_ok(pare_inputs_random(&p->set, p->s.w.arena, m, 1, NODES, 5, &p->s.err), &p->s.err);
    p->opts = (pare_publish_opts){.in_path = p->in,
                                  .out_path = p->out,
                                  .max_error = INFINITY,
                                  .seed = 5,
                                  .tokens = NODES,
                                  .set = &p->set};
}

static void play_close(play *p)
{
    pare_model_free(p->m);
    stage_close(&p->s);
    test_rmdir(p->dir);
}

static pare_model *random_graph_model(play *p, size_t layers)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_model *m = NULL;
    stage_open(&p->s, 3);
    o.kind = PARE_RANDOM_GRAPH;
    o.dim = 8;
    o.heads = 2;
    o.layers = layers;
    o.classes = 3;
    assert_ok(pare_random_model(&m, &o, &p->s.err), &p->s.err);
    return m;
}

static pare_width_opts opts_of(pare_width_method method)
{
    pare_width_opts o = PARE_WIDTH_OPTS_DEFAULT;
    o.method = method;
    o.trials = 4;
    if (method == PARE_WIDTH_LOWRANK || method == PARE_WIDTH_LEVERAGE || method == PARE_WIDTH_AUTO)
        o.dim = 5;
    if (method == PARE_WIDTH_JL || method == PARE_WIDTH_QK) o.qk_dim = 2;
    if (method == PARE_WIDTH_CLUSTER) o.dim = 6;
    if (method == PARE_WIDTH_SLICE || method == PARE_WIDTH_SVD) o.dim = 5;
    return o;
}

static void publish(play *p, pare_cert *cert, pare_width_method method)
{
    pare_model *g = NULL;
    pare_width_report r;
    const pare_width_opts o = opts_of(method);
    p->opts.prover = &pare_width_provers[method];
    assert_ok(pare_width(&g, &r, p->m, &p->set, &o, NULL, &p->s.err), &p->s.err);
    assert_ok(pare_publish(cert, p->s.w.arena, p->m, &g, &p->opts, &p->s.err), &p->s.err);
}

static pare_status verify(play *p, const char *cert)
{
    const pare_verify_opts o = {.provers = pare_width_provers, .nprovers = PARE_WIDTH_METHODS};
    return pare_cert_verify(cert, &o, &p->s.err);
}

/* Softmax of the scores of one row, in the plainest way. */
static double worst_ratio(stage *s, const net *a, const net *b, const activations *x,
                          const activations *y, size_t l)
{
    double worst = 0;
    const pare_graph *const g = &x->graph;
    for (size_t h = 0; h < a->layers[l].nheads; h++) {
        const double *const u = head_scores(&s->w, &a->layers[l].heads[h], &x->h[l], g);
        const double *const v = head_scores(&s->w, &b->layers[l].heads[h], &y->h[l], g);
        for (size_t i = 0; i < g->n; i++) {
            double su = 0, sv = 0;
            for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++) su += exp(u[e]), sv += exp(v[e]);
            for (size_t e = g->ptr[i]; e < g->ptr[i + 1]; e++)
                worst = fmax(worst, fabs(log(exp(u[e]) / su) - log(exp(v[e]) / sv)));
        }
    }
    return worst;
}

static size_t largest(const double *v, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (v[i] > v[best]) best = i;
    return best;
}

static void every_method_is_certified_and_verifies(void **state)
{
    (void)state;
    for (int method = 0; method < PARE_WIDTH_METHODS; method++) {
        play p;
        pare_cert cert;
        pare_model *g = NULL;
        if (method == PARE_WIDTH_CLUSTER) continue; /* below */
        play_open(&p, random_graph_model(&p, 2));
        publish(&p, &cert, (pare_width_method)method);
        assert_le(cert.measured, cert.proven);
        assert_le(cert.proven, cert.measured * 1.01 + 1e-9);
        assert_ok(verify(&p, p.cert), &p.s.err);
        /* Nothing is below what nothing can beat; auto is compared in its own metric as well. */
        size_t by_slopes = 0, useful = 0;
        for (size_t i = 0; i < cert.nclaims; i++) {
            const pare_claim *const h = &cert.claims[i];
            if (pare_kinds[h->kind].section != PARE_EVIDENCE) continue;
            assert_le(h->limit, h->value);
            by_slopes += h->kind == PARE_STREAM_OPTIMALITY_WEIGHTED;
            useful += by_slopes && h->limit > 0.1 * h->value;
        }
        assert_int_equal(by_slopes, method == PARE_WIDTH_AUTO ? 5 : 0);
        assert_true(useful > 0 || by_slopes == 0);
        /* What the statements say, in the plainest way. */
        assert_ok(pare_model_load(&g, p.out, &p.s.err), &p.s.err);
        const pare_mat y = output_of(&p.s, p.m, &p.set.in[0]), z = output_of(&p.s, g, &p.set.in[0]);
        size_t changed = 0;
        for (size_t i = 0; i < NODES; i++)
            changed += largest(pare_row(&y, i), y.cols) != largest(pare_row(&z, i), z.cols);
        const bool graph_method = method < PARE_WIDTH_SLICE;
        assert_int_equal(claims_of(&cert, PARE_ATTENTION_RATIO), 2);
        assert_int_equal(claims_of(&cert, PARE_LOCAL_OUTPUTS), graph_method);
        const double share = claim_value(&cert, PARE_ROWS_CHANGED);
        assert_le((double)changed / NODES, share);
        assert_le(share, (double)changed / NODES * 1.001 + 0.1);
        play_close(&p);
        pare_model_free(g);
    }
}

/* Models that are folded already, in f64: the two nets are the models, and the streams can be
 * looked at by hand. */
static void attention_weights_are_within_what_is_stated(void **state)
{
    (void)state;
    static const size_t alone[] = {4, SIZE_MAX};
    for (uint64_t seed = 1; seed <= 12; seed++) {
        stage s;
        stage_open(&s, seed);
        const net n = rand_net(&s, (net_shape){.features = 5,
                                               .dim = 8,
                                               .layers = 2,
                                               .classes = 3,
                                               .heads = 1 + seed % 2,
                                               .residual = true});
        const pare_graph graph = rand_graph(&s, NODES, 4, alone);
        const pare_mat x = rand_mat(&s, NODES, 5, 1);
        const pare_input in = input_of(&x, &graph);
        pare_model *const f = model_of(&s, &n), *g = NULL;
        pare_input one = in;
        const pare_inputs set = {1, &one};
        pare_width_report r;
        const pare_width_opts o = opts_of(seed % 3 == 0   ? PARE_WIDTH_LOWRANK
                                          : seed % 3 == 1 ? PARE_WIDTH_QK
                                                          : PARE_WIDTH_JL);
        assert_ok(pare_width(&g, &r, f, &set, &o, NULL, &s.err), &s.err);
        const net k = net_read(&s.w, g);
        const activations pf = activations_of(&s.w, f, &n, &in),
                          pg = activations_of(&s.w, g, &k, &in);
        for (size_t l = 0; l < 2; l++) {
            const ratio_bound b = attention_ratios(&s.w, f, g, &set, l);
            const double truth = worst_ratio(&s, &n, &k, &pf, &pg, l);
            assert_work(&s);
            assert_le(truth, b.proven.v + 1e-12); /* the plain way is rounded too */
            assert_le(b.measured, b.proven.v);
            assert_le(b.proven.v, 1.001 * truth + 1e-9);
        }
        /* A model beside itself: nothing moves, and the bound says how well that is known. */
        const ratio_bound same = attention_ratios(&s.w, f, f, &set, 1);
        assert_true(same.measured == 0 && same.proven.v > 1e-16); /* rounding is counted */
        assert_le(same.proven.v, 1e-9);
        pare_model_free(f);
        pare_model_free(g);
        stage_close(&s);
    }
}

/* Rows whose two largest entries are nearer than what is proven are not certain. */
static void a_row_without_a_margin_is_not_certain(void **state)
{
    (void)state;
    stage s;
    pare_output_bound o;
    stage_open(&s, 2);
    const net n = rand_net(
        &s, (net_shape){
                .features = 4, .dim = 4, .layers = 1, .classes = 2, .heads = 1, .residual = true});
    const pare_graph graph = rand_graph(&s, NODES, 3, NULL);
    const pare_mat x = rand_mat(&s, NODES, 4, 1);
    pare_input in = input_of(&x, &graph);
    const pare_inputs set = {1, &in};
    for (size_t j = 0; j < 4; j++) pare_row_mut((pare_mat *)&n.wh, 1)[j] = pare_row(&n.wh, 0)[j];
    n.bh[1] = n.bh[0];
    pare_model *const tied = model_of(&s, &n);
    assert_ok(pare_outputs_compare(&o, NULL, tied, tied, &set, false, NULL, &s.err), &s.err);
    assert_int_equal(o.rows, NODES);
    assert_int_equal(o.certain, 0); /* both entries are equal in every row */
    n.bh[1] = n.bh[0] - 1e-3;
    pare_model *const apart = model_of(&s, &n);
    assert_ok(pare_outputs_compare(&o, NULL, apart, apart, &set, false, NULL, &s.err), &s.err);
    assert_int_equal(o.certain, NODES);
    assert_true(o.gap.measured == 0);
    assert_ok(pare_outputs_compare(&o, NULL, apart, tied, &set, false, NULL, &s.err), &s.err);
    assert_int_equal(o.certain, 0);
    pare_model_free(tied);
    pare_model_free(apart);
    stage_close(&s);
}

/* A net that cluster covers, on a ring of two kinds of nodes. */
static void clusters_are_certified_too(void **state)
{
    (void)state;
    play p;
    pare_cert cert;
    stage_open(&p.s, 9);
    const net n = rand_net(&p.s, (net_shape){.features = 6, .dim = 6, .layers = 1, .heads = 1});
    play_open(&p, model_of(&p.s, &n));
    double *const x = (double *)(uintptr_t)p.set.in[0].x; /* drawn for this test alone */
    for (size_t i = 0; i < NODES; i++)
        for (size_t j = 0; j < 6; j++) x[6 * i + j] = j == i % 2 ? 1 : 0;
    const pare_data_ref data = {.kind = "random", .count = 1, .tokens = NODES};
    const pare_cert claimed = {.reduction = "width.cluster", .data = data};
    pare_model *g = NULL;
    pare_width_report r;
    const pare_width_opts o = opts_of(PARE_WIDTH_CLUSTER);
    assert_ok(pare_width(&g, &r, p.m, &p.set, &o, NULL, &p.s.err), &p.s.err);
    cert = claimed;
    assert_ok(pare_width_provers[PARE_WIDTH_CLUSTER].prove(&cert, p.s.w.arena, &claimed, p.m, g,
                                                           &p.set, NULL, &p.s.err),
              &p.s.err);
    /* Exact but for rounding: the measured value is that of an f64 pass. */
    assert_le(cert.measured, cert.proven + cert.measured_radius);
    assert_le(cert.proven, 1e-9);
    assert_int_equal(r.dim, 2); /* two kinds of nodes: two codes */
    assert_true(claim_value(&cert, PARE_PAPER_SELECTOR) < 0);
    assert_int_equal(claims_in(&cert, PARE_PAPER), 1);
    assert_true(isfinite(pare_cert_apriori(&cert)));
    /* As a file, of which no field can be changed. */
    char file[300];
    forge f = {0};
    const pare_verify_opts how = {.provers = pare_width_provers,
                                  .nprovers = PARE_WIDTH_METHODS,
                                  .load = given_file_load,
                                  .evidence = true};
    given_file_write(test_path(file, p.dir, "data"), &p.set);
    p.opts.data_path = file;
    p.opts.prover = &pare_width_provers[PARE_WIDTH_CLUSTER];
    assert_ok(pare_publish(&cert, p.s.w.arena, p.m, &g, &p.opts, &p.s.err), &p.s.err);
    forge_all(&f, p.cert, &how, 1, 0);
    print_message("%zu changes, %zu refused\n", f.tried, f.refused);
    assert_int_equal(f.broken, 0);
    assert_true(f.refused > 300 && f.survived[FORGE_WEAKER] > 5);
    pare_model_free(g);
    play_close(&p);
}

/* Other layers, keys or widths than the method leaves: not a cut of this kind. */
static void a_model_that_is_no_cut_is_refused(void **state)
{
    (void)state;
    for (int what = 0; what < 3; what++) {
        play p;
        play_open(&p, random_graph_model(&p, 2));
        pare_model *g = NULL;
        pare_width_report r;
        const bool widths = what == 2;
        const pare_width_opts o = opts_of(widths ? PARE_WIDTH_LOWRANK : PARE_WIDTH_QK);
        const pare_data_ref data = {.kind = "random", .count = 1, .tokens = NODES};
        const pare_cert claimed = {.reduction = "width.qk", .data = data};
        pare_cert cert = claimed;
        assert_ok(pare_width(&g, &r, p.m, &p.set, &o, NULL, &p.s.err), &p.s.err);
        if (what == 0) g->nblocks = 1;
        if (what == 1) g->pattern.self_loops = false;
        assert_status(pare_width_provers[PARE_WIDTH_QK].prove(&cert, p.s.w.arena, &claimed, p.m, g,
                                                              &p.set, NULL, &p.s.err),
                      PARE_ERR_VERIFY, &p.s.err);
        pare_model_free(g);
        play_close(&p);
    }
}

static void no_field_of_the_certificate_can_change_unseen(void **state)
{
    (void)state;
    play p;
    pare_cert cert;
    forge f = {0};
    const pare_verify_opts o = {
        .provers = pare_width_provers, .nprovers = PARE_WIDTH_METHODS, .evidence = true};
    play_open(&p, random_graph_model(&p, 1));
    publish(&p, &cert, PARE_WIDTH_LOWRANK);
    assert_true(claim_value(&cert, PARE_ROWS_CHANGED) > 0); /* so that it can be made smaller */
    forge_all(&f, p.cert, &o, 1, 0);
    print_message("%zu changes, %zu refused\n", f.tried, f.refused);
    assert_int_equal(f.broken, 0);
    assert_true(f.refused > 300 && f.survived[FORGE_WEAKER] > 10);
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_is_certified_and_verifies),
        cmocka_unit_test(attention_weights_are_within_what_is_stated),
        cmocka_unit_test(a_row_without_a_margin_is_not_certain),
        cmocka_unit_test(clusters_are_certified_too),
        cmocka_unit_test(a_model_that_is_no_cut_is_refused),
        cmocka_unit_test(no_field_of_the_certificate_can_change_unseen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
