/* Tests src/depth/depth_ball.c: what a certificate says about every input near the given ones is found
 * again by its verifier from its parameters, holds on inputs of the ball, and cannot be made
 * smaller. */
#include "../cert/pair_models.h"
#include "../cert/splitmix_nets.h"
#include "depth/depth_ball.h"
#include "depth/depth_bounds.h"
#include "cert/ball.h"
#include "cert/prove.h"
#include <pare/depth.h>
#include <claims.h>
#include <pare_test.h>

/* Adds the claims of a ball to a certificate. */
static pare_status add_ball(pare_cert *cert, pare_arena *a, const pare_model *f,
                            const pare_model *g, const pare_inputs *set, depth_ball_of b,
                            pare_ub apriori, pare_err *err)
{
    cert_builder build = {.work = {.arena = a, .err = err}, .cert = cert};
    depth_ball(&build, f, g, set, b, 0, apriori);
    return build.work.st;
}

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
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
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

static pare_cert publish(play *p, const pare_claim *ask, size_t nask)
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

/* The claim of that kind about the ball of that radius and norm. */
static const pare_claim *find(const pare_cert *c, pare_kind kind, double radius, const char *norm)
{
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *const t = &c->claims[i];
        if (t->kind == kind && t->p[0] == radius && strcmp(t->text, norm) == 0) return t;
    }
    return NULL;
}

static void a_claim_says_which_ball(void **state)
{
    (void)state;
    static const double radius[] = {0.1, 1e-300, 1 / 3.0, 17};
    double got = 0;
    pare_ball_norm which = PARE_BALL_MAX;
    for (size_t i = 0; i < 4; i++)
        for (int norm = 0; norm < 2; norm++) {
            pare_claim c = pare_ball_claim(radius[i], (pare_ball_norm)norm);
            assert_true(pare_ball_asked(&got, &which, &c));
            assert_true(got == radius[i] && (int)which == norm);
            c.kind = PARE_BALL_ROWS_CHANGED;
            assert_false(pare_ball_asked(&got, &which, &c));
        }
    static const double none[] = {0, -1, NAN};
    for (size_t i = 0; i < 3; i++) {
        const pare_claim c = pare_ball_claim(none[i], PARE_BALL_TWO);
        assert_false(pare_ball_asked(&got, &which, &c));
    }
    pare_claim odd = pare_ball_claim(0.1, PARE_BALL_TWO);
    odd.text = "in the norm of the day";
    assert_false(pare_ball_asked(&got, &which, &odd));
}

static void a_certificate_with_balls_verifies_and_not_with_smaller_ones(void **state)
{
    (void)state;
    play p;
    play_open(&p, PARE_RANDOM_BERT);
    const pare_claim ask[] = {pare_ball_claim(0.001, PARE_BALL_TWO),
                              pare_ball_claim(0.002, PARE_BALL_MAX)};
    static const char two[] = "in the euclidean norm", max[] = "in every entry";
    pare_cert cert = publish(&p, ask, 2);
    assert_ok(verify(&p), &p.err);
    const pare_claim *const out = find(&cert, PARE_BALL_OUTPUTS, 0.001, two);
    assert_non_null(out);
    assert_contains(out->domain, "rows after the embedding");
    assert_true(out->value >= cert.proven && isfinite(out->value));
    assert_non_null(find(&cert, PARE_BALL_SCORE, 0.002, max));
    const pare_claim *const rows = find(&cert, PARE_BALL_ROWS_CHANGED, 0.001, two);
    assert_true(rows && rows->value < 1e-3);
    size_t balls = 0;
    for (size_t i = 0; i < cert.nclaims; i++) {
        pare_claim *const s = &cert.claims[i];
        if (strncmp(pare_kinds[s->kind].name, "ball.", 5) != 0 || s->value == 0) continue;
        const double was = s->value;
        balls++;
        s->value = was * 0.99;
        assert_ok(pare_cert_write(&cert, p.cert, true, &p.err), &p.err);
        assert_status(verify(&p), PARE_ERR_VERIFY, &p.err);
        s->value = was;
    }
    assert_true(balls >= 4);
    assert_ok(pare_cert_write(&cert, p.cert, true, &p.err), &p.err);
    assert_ok(verify(&p), &p.err);
    play_close(&p);
}

/* The radius is a part of the claim: a larger ball cannot be claimed with a smaller one's. */
static void the_radius_cannot_be_changed(void **state)
{
    (void)state;
    play p;
    play_open(&p, PARE_RANDOM_GPT);
    const pare_claim ask[] = {pare_ball_claim(0.001, PARE_BALL_TWO)};
    pare_cert cert = publish(&p, ask, 1);
    size_t changed = 0;
    for (size_t i = 0; i < cert.nclaims; i++) {
        pare_claim *const t = &cert.claims[i];
        if (strncmp(pare_kinds[t->kind].name, "ball.", 5) != 0) continue;
        t->p[0] = 0.002;
        changed++;
        /* the domain too: nothing but the bound is then too small */
        char *const at = strstr((char *)(uintptr_t)t->domain, "0.001");
        if (at) memcpy(at, "0.002", 5);
    }
    assert_true(changed > 0);
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
    const pare_neighborhood b = {0.1, PARE_BALL_TWO};
    pare_model *g = NULL;
    pare_depth_report r;
    pare_depth_opts o = PARE_DEPTH_OPTS_DEFAULT;
    o.layers = 0;
    o.kind = PARE_ATTN_ZERO;
    assert_ok(pare_depth(&g, &r, p.m, NULL, &o, NULL, &p.err), &p.err);
    const pare_cert blank = {.domain = "it"};
    pare_cert s = blank;
    assert_ok(add_ball(&s, p.a, p.m, g, &p.set, b, pare_ub_inf(), &p.err), &p.err);
    assert_null(pare_cert_find(&s, PARE_BALL_APPLIES));
    assert_int_equal(s.nclaims, 2);
    const double apart = claim_value(&s, PARE_BALL_OUTPUTS);
    assert_true(isfinite(apart) && apart > 0);
    const pare_ub less = pare_ub_exact(apart / 2);
    s = blank;
    assert_ok(add_ball(&s, p.a, p.m, g, &p.set, b, less, &p.err), &p.err);
    assert_true(claim_value(&s, PARE_BALL_OUTPUTS) == less.v);
    g->nblocks = 1;
    s = blank;
    assert_ok(add_ball(&s, p.a, p.m, g, &p.set, b, pare_ub_inf(), &p.err), &p.err);
    assert_contains(claim_must(&s, PARE_BALL_APPLIES)->text, "numbers of blocks");
    assert_true(claim_must(&s, PARE_BALL_APPLIES)->holds == PARE_FALSE);
    const double one_by_one = claim_value(&s, PARE_BALL_OUTPUTS);
    assert_true(isfinite(one_by_one) && claim_value(&s, PARE_BALL_ROWS_CHANGED) == 1);
    double measured;
    assert_ok(pare_measure(&measured, p.m, g, &p.set, NULL, &p.err), &p.err);
    assert_true(one_by_one > measured);
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
        const pare_neighborhood b = {seed % 3 ? 0.1 : 0.01, (pare_ball_norm)(seed % 2)};
        const one_layer_opts o = {.kind = seed % 4 == 3 ? PARE_ONE_PARALLEL : PARE_ONE_UNIFORM};
        pare_cert said = {.domain = "it"};
        t.f = san_of(&s, 3, 2, 4, 0.1 + 0.1 * (double)(seed % 4), 0.5, PARE_FULL);
        t.in = rows_of(&s, 5, 4, 1);
        const pare_inputs set = {1, &t.in};
        assert_ok(collapse_to_one_layer(&t.g, t.f, &o, &t.err), &t.err);
        pare_arena *const a = pare_arena_new();
        assert_ok(add_ball(&said, a, t.f, t.g, &set, b, pare_ub_inf(), &t.err), &t.err);
        const double bound = claim_value(&said, PARE_BALL_OUTPUTS);
        const found seen = search(&t, b.radius, b.norm, 30, 3);
        assert_non_null(pare_cert_find(&said, PARE_BALL_APPLIES));
        assert_le(seen.apart, bound);
        nearest = fmax(nearest, seen.apart / bound);
        pare_arena_free(a);
        pare_model_free(t.g);
        pare_model_free(t.f);
    }
    print_message("nearest: %.3f of what is proven\n", nearest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claim_says_which_ball),
        cmocka_unit_test(a_certificate_with_balls_verifies_and_not_with_smaller_ones),
        cmocka_unit_test(the_radius_cannot_be_changed),
        cmocka_unit_test(the_smaller_bound_counts_and_what_is_no_pair_is_said),
        cmocka_unit_test(no_input_near_a_one_layer_cut_is_worse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
