/* Tests src/depth/balls.c: what a certificate says about every input near the given ones is found
 * again by its verifier from its name, holds on inputs of the ball, and cannot be made smaller. */
#include "../cert/pair_models.h"
#include "../cert/splitmix_nets.h"
#include "../../src/depth/ball.h"
#include "../../src/depth/theory.h"
#include <pare/depth.h>
#include <pare/publish.h>
#include <pare/random_model.h>
#include <pare_test.h>

typedef struct play {
    char dir[200], in[300], out[300], cert[320];
    pare_model *m;
    pare_inputs set;
    pare_arena *a;
    pare_err err;
} play;

static void play_open(play *p, pare_random_kind kind)
{
    *p = (play){.a = pare_arena_new()};
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.kind = kind, o.dim = 8, o.heads = 2, o.vocab = 11, o.context = 12, o.sigma = 0.1;
    test_mkdir(p->dir);
    test_path(p->in, p->dir, "in");
    test_path(p->out, p->dir, "out");
    snprintf(p->cert, sizeof p->cert, "%s.cert.json", p->out);
    assert_ok(pare_random_model(&p->m, &o, &p->err), &p->err);
    assert_ok(pare_model_save(p->m, p->in, false, NULL, &p->err), &p->err);
    assert_ok(pare_inputs_random(&p->set, p->a, p->m, 2, 6, 5, &p->err), &p->err);
}

static void play_close(play *p)
{
    pare_model_free(p->m);
    pare_arena_free(p->a);
    test_rmdir(p->dir);
}

static pare_cert publish(play *p, const char *const *ask, size_t nask)
{
    pare_cert cert = {0};
    pare_model *g = NULL;
    pare_depth_report r;
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    o.layers = 0;
    o.kind = PARE_ATTN_UNIFORM;
    const pare_publish_opts how = {.in_path = p->in,
                                   .out_path = p->out,
                                   .max_error = INFINITY,
                                   .seed = 5,
                                   .tokens = 6,
                                   .set = &p->set,
                                   .prover = &pare_depth_prover,
                                   .ask = ask,
                                   .nask = nask,
                                   .overwrite = true};
    assert_ok(pare_depth(&g, &r, p->m, NULL, &o, NULL, &p->err), &p->err);
    assert_ok(pare_publish(&cert, p->a, p->m, &g, &how, &p->err), &p->err);
    return cert;
}

static pare_status verify(play *p)
{
    const pare_verify_opts o = {.provers = &pare_depth_prover, .nprovers = 1};
    return pare_cert_verify(p->cert, &o, &p->err);
}

static const pare_statement *find(const pare_cert *c, const char *part)
{
    for (size_t i = 0; i < c->nstatements; i++)
        if (strstr(c->statements[i].name, part)) return &c->statements[i];
    return NULL;
}

static void a_name_says_which_ball(void **state)
{
    (void)state;
    pare_arena *const a = pare_arena_new();
    static const double radius[] = {0.1, 1e-300, 1 / 3.0, 17};
    for (size_t i = 0; i < 4; i++)
        for (int norm = 0; norm < 2; norm++) {
            const char *const name = pare_depth_ball_name(a, radius[i], (pare_ball_norm)norm);
            const depth_ball_of b = depth_ball_asked(name);
            assert_true(b.radius == radius[i] && (int)b.norm == norm);
            assert_true(depth_ball_asked(pare_sprintf(a, "%s: outputs", name)).radius == b.radius);
            assert_true(depth_ball_asked(pare_sprintf(a, "%s: rows", name)).radius == 0);
        }
    static const char *const none[] = {
        "ball of radius 0 in every entry",   "ball of radius -1 in every entry",
        "ball of radius inf in every entry", "ball of radius 0.1",
        "ball of radius in every entry",     "balls of radius 1 in every entry"};
    for (size_t i = 0; i < 6; i++) assert_true(depth_ball_asked(none[i]).radius == 0);
    assert_true(depth_ball_asked(NULL).radius == 0);
    pare_arena_free(a);
}

static void a_certificate_with_balls_verifies_and_not_with_smaller_ones(void **state)
{
    (void)state;
    play p;
    play_open(&p, PARE_RANDOM_BERT);
    const char *const ask[] = {pare_depth_ball_name(p.a, 0.001, PARE_BALL_TWO),
                               pare_depth_ball_name(p.a, 0.002, PARE_BALL_MAX)};
    pare_cert cert = publish(&p, ask, 2);
    assert_ok(verify(&p), &p.err);
    const pare_statement *const out = find(&cert, "0.001 in the euclidean norm: outputs");
    assert_non_null(out);
    assert_contains(out->domain, "rows after the embedding");
    assert_true(out->bound >= cert.proven && isfinite(out->bound));
    assert_non_null(find(&cert, "0.002 in every entry: the second output minus the first"));
    const pare_statement *const rows = find(&cert, "0.001 in the euclidean norm: rows");
    assert_true(rows && rows->bound < 1e-3);
    for (size_t i = 0; i < cert.nstatements; i++) {
        pare_statement *const s = &cert.statements[i];
        if (strncmp(s->name, "ball", 4) != 0 || s->bound == 0) continue;
        const double was = s->bound;
        s->bound = was * 0.99;
        assert_ok(pare_cert_write(&cert, p.cert, true, &p.err), &p.err);
        assert_status(verify(&p), PARE_ERR_VERIFY, &p.err);
        s->bound = was;
    }
    assert_ok(pare_cert_write(&cert, p.cert, true, &p.err), &p.err);
    assert_ok(verify(&p), &p.err);
    play_close(&p);
}

/* The radius is a part of the statement: a larger ball cannot be claimed with a smaller one's. */
static void the_radius_cannot_be_changed(void **state)
{
    (void)state;
    play p;
    play_open(&p, PARE_RANDOM_GPT);
    const char *const ask[] = {pare_depth_ball_name(p.a, 0.001, PARE_BALL_TWO)};
    pare_cert cert = publish(&p, ask, 1);
    for (size_t i = 0; i < cert.nstatements; i++) {
        char *const at = strstr((char *)(uintptr_t)cert.statements[i].name, "0.001");
        if (at) memcpy(at, "0.002", 5);
    }
    assert_ok(pare_cert_write(&cert, p.cert, true, &p.err), &p.err);
    assert_status(verify(&p), PARE_ERR_VERIFY, &p.err);
    play_close(&p);
}

/* Another bound that holds on the ball is taken where it is smaller; models that are no pair are
 * proven one by one, with the reason. */
static void the_smaller_bound_counts_and_what_is_no_pair_is_said(void **state)
{
    (void)state;
    play p;
    play_open(&p, PARE_RANDOM_GPT);
    pare_statement s[DEPTH_BALL_STATEMENTS];
    const char *why = NULL;
    size_t n = 0;
    const depth_ball_of b = {0.1, PARE_BALL_TWO};
    pare_model *g = NULL;
    pare_depth_report r;
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    o.layers = 0;
    o.kind = PARE_ATTN_ZERO;
    assert_ok(pare_depth(&g, &r, p.m, NULL, &o, NULL, &p.err), &p.err);
    assert_ok(depth_ball(s, &n, &why, p.a, p.m, g, &p.set, b, "it", 0, pare_ub_inf(), NULL, &p.err),
              &p.err);
    assert_null(why);
    assert_int_equal(n, 2);
    assert_true(isfinite(s[0].bound) && s[0].bound > 0);
    const pare_ub less = pare_ub_exact(s[0].bound / 2);
    assert_ok(depth_ball(s, &n, &why, p.a, p.m, g, &p.set, b, "it", 0, less, NULL, &p.err), &p.err);
    assert_true(s[0].bound == less.v);
    g->nblocks = 1;
    assert_ok(depth_ball(s, &n, &why, p.a, p.m, g, &p.set, b, "it", 0, pare_ub_inf(), NULL, &p.err),
              &p.err);
    assert_contains(why, "numbers of blocks");
    assert_true(isfinite(s[0].bound) && s[1].bound == 1); /* one by one */
    double measured;
    assert_ok(pare_measure(&measured, p.m, g, &p.set, NULL, &p.err), &p.err);
    assert_true(s[0].bound > measured);
    pare_model_free(g);
    play_close(&p);
}

static void no_input_near_a_one_layer_cut_is_worse(void **state)
{
    (void)state;
    double nearest = 0;
    for (uint64_t seed = 0; seed < 24; seed++) {
        stream s = {.x = seed};
        pair_case t = {.seed = seed};
        const depth_ball_of b = {seed % 3 ? 0.1 : 0.01, (pare_ball_norm)(seed % 2)};
        const depth_one_opts o = {.kind = seed % 4 == 3 ? PARE_ONE_PARALLEL : PARE_ONE_UNIFORM};
        const char *why = NULL;
        size_t n;
        pare_statement said[DEPTH_BALL_STATEMENTS];
        t.f = san_of(&s, 3, 2, 4, 0.1 + 0.1 * (double)(seed % 4), 0.5, PARE_FULL);
        t.in = rows_of(&s, 5, 4, 1);
        const pare_inputs set = {1, &t.in};
        assert_ok(depth_one_layer(&t.g, t.f, &o, &t.err), &t.err);
        pare_arena *const a = pare_arena_new();
        assert_ok(
            depth_ball(said, &n, &why, a, t.f, t.g, &set, b, "it", 0, pare_ub_inf(), NULL, &t.err),
            &t.err);
        const found seen = search(&t, b.radius, b.norm, 30, 3);
        assert_non_null(why);
        assert_le(seen.apart, said[0].bound);
        nearest = fmax(nearest, seen.apart / said[0].bound);
        pare_arena_free(a);
        pare_model_free(t.g);
        pare_model_free(t.f);
    }
    print_message("nearest: %.3f of what is proven\n", nearest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_says_which_ball),
        cmocka_unit_test(a_certificate_with_balls_verifies_and_not_with_smaller_ones),
        cmocka_unit_test(the_radius_cannot_be_changed),
        cmocka_unit_test(the_smaller_bound_counts_and_what_is_no_pair_is_said),
        cmocka_unit_test(no_input_near_a_one_layer_cut_is_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
