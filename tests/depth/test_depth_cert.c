/* Tests src/depth/verify.c and certify_theorems.c: what a certificate of a cut says is true, and
 * another pair of models does not pass for this one. */
#include "depth_models.h"
#include <claims.h>
#include <given_file.h>
#include "cert/conformal.h"
#include "cert/prove.h"
#include "linalg/matrix.h"
#include <pare/depth.h>

enum { HELD_OUT = 39 }; /* so many that one error is left out as well */

typedef struct play {
    stage s;
    pare_inputs held;
    char dir[200], in[300], out[300], cert[320], data[300];
    pare_publish_opts opts;
} play;

static void play_open(play *p, pare_random_kind kind, size_t layers, uint64_t seed)
{
    stage_open(&p->s, kind, layers, seed);
    test_mkdir(p->dir);
    test_path(p->in, p->dir, "in");
    test_path(p->out, p->dir, "out");
    snprintf(p->cert, sizeof p->cert, "%s.cert.json", p->out);
    test_path(p->data, p->dir, "data");
    assert_ok(pare_model_save(p->s.m, p->in, false, NULL, &p->s.err), &p->s.err);
    assert_ok(
        pare_inputs_random(&p->held, p->s.a, p->s.m, HELD_OUT, TOKENS, seed + 1000, &p->s.err),
        &p->s.err);
    given_file_write(p->data, &p->held);
    p->opts = (pare_publish_opts){.in_path = p->in,
                                  .out_path = p->out,
                                  .max_error = INFINITY,
                                  .seed = seed,
                                  .data_path = p->data,
                                  .set = &p->held,
                                  .new_inputs = true,
                                  .fitted = &p->s.set,
                                  .prover = &pare_depth_prover};
}

static void play_close(play *p)
{
    stage_close(&p->s);
    test_rmdir(p->dir);
}

static pare_status publish(play *p, pare_cert *cert, pare_attn_kind kind, size_t layers)
{
    pare_depth_report r;
    pare_model *g = cut_to(&p->s, kind, layers, &r);
    const pare_status st = pare_publish(cert, p->s.a, p->s.m, &g, &p->opts, &p->s.err);
    pare_model_free(g);
    return st;
}

static pare_status verify(play *p)
{
    const pare_verify_opts o = {
        .provers = &pare_depth_prover, .nprovers = 1, .load = given_file_load, .evidence = true};
    return pare_cert_verify(p->cert, &o, &p->s.err);
}

static double looked_at(const pare_cert *c, pare_kind kind)
{
    const pare_claim *const claim = pare_cert_find(c, kind);
    return claim ? claim->value : NAN;
}

/* The largest error of all inputs is that of one of them: left out, the next one counts. */
static void assert_new_inputs(play *p, const pare_cert *cert)
{
    const pare_claim *const next = claim_at(cert, PARE_NEW_INPUT_OUTPUTS, 0);
    const pare_claim *const but = claim_at(cert, PARE_NEW_INPUT_OUTPUTS, 1);
    const pare_claim *const share = claim_at(cert, PARE_NEW_INPUTS_SHARE, 0);
    const pare_claim *const others = claim_at(cert, PARE_NEW_INPUTS_SHARE, 1);
    pare_model *g = NULL;
    double first = 0, second = 0;
    assert_true(next && but && share && others);
    assert_true(claim_must(cert, PARE_NEW_INPUT_INDEPENDENT)->holds == PARE_UNKNOWN);
    assert_true(next->p[0] == HELD_OUT && next->p[1] == 0 && but->p[1] == 1);
    assert_true(share->p[1] == 0 && others->p[1] == 1);
    assert_ok(pare_model_load(&g, p->out, &p->s.err), &p->s.err);
    for (size_t i = 0; i < p->held.n; i++) {
        double e = 0;
        const pare_inputs one = {1, &p->held.in[i]};
        assert_ok(pare_measure(&e, p->s.m, g, &one, NULL, &p->s.err), &p->s.err);
        second = fmax(second, fmin(first, e));
        first = fmax(first, e);
    }
    assert_near(next->probability, (double)HELD_OUT / (HELD_OUT + 1), 1e-15);
    assert_near(but->probability, (double)(HELD_OUT - 1) / (HELD_OUT + 1), 1e-15);
    assert_true(next->value == cert->proven && but->value >= second && but->value <= next->value);
    assert_le(but->value, second * (1 + 2e-4) + 1e-9);
    assert_true(share->probability == PARE_CONFIDENCE);
    assert_near(share->value, 1 - pow(0.05, 1. / HELD_OUT), 2e-4);
    assert_true(others->value > share->value && others->probability == PARE_CONFIDENCE);
    pare_model_free(g);
}

static void every_kind_is_certified_and_verifies(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        for (int k = -1; k < PARE_DEPTH_KINDS; k++) {
            play p;
            pare_cert cert;
            play_open(&p, (pare_random_kind)kind, 2, 3);
            const pare_attn_kind to = k < 0 ? PARE_ATTN_NONE : (pare_attn_kind)(PARE_ATTN_ZERO + k);
            if (to != PARE_ATTN_MEANQ || p.s.m->pattern.kind == PARE_FULL) {
                assert_ok(publish(&p, &cert, to, 1), &p.s.err);
                assert_true(cert.measured > 0 && cert.measured <= cert.proven);
                assert_le(cert.proven, cert.measured * 1.01 + 1e-6);
                assert_true(cert.proven <= pare_cert_apriori(&cert) * (1 + 1e-3));
                assert_ok(verify(&p), &p.s.err);
                assert_new_inputs(&p, &cert);
                const double row = looked_at(&cert, PARE_ROW_ERROR);
                const double wide = sqrt((double)pare_model_outputs(p.s.m));
                assert_true(looked_at(&cert, PARE_RELATIVE_ERROR) > 0);
                /* above the largest entry, below that in every column */
                assert_true(row > cert.measured * 1.0001 && row < cert.measured * wide);
            }
            play_close(&p);
        }
}

/* Dropping all attention loses all of what it does. */
static void the_lost_fraction_of_nothing_left_is_one(void **state)
{
    (void)state;
    play p;
    pare_cert cert;
    play_open(&p, PARE_RANDOM_LLAMA, 2, 4);
    assert_ok(publish(&p, &cert, PARE_ATTN_ZERO, 0), &p.s.err);
    assert_near(looked_at(&cert, PARE_LOST_FRACTION), 1, 1e-12);
    p.opts.overwrite = true;
    assert_ok(publish(&p, &cert, PARE_ATTN_ZERO, 2), &p.s.err);
    assert_true(looked_at(&cert, PARE_LOST_FRACTION) == 0 && cert.measured == 0);
    play_close(&p);
}

/* A layer without skip: there is no model without attention to compare with. */
static void without_skips_no_fraction_is_said(void **state)
{
    (void)state;
    play p;
    pare_cert cert;
    play_open(&p, PARE_RANDOM_GRAPH, 2, 5);
    p.s.m->blocks[1].attn.skip = (pare_skip){0};
    assert_ok(pare_model_save(p.s.m, p.in, true, NULL, &p.s.err), &p.s.err);
    assert_ok(publish(&p, &cert, PARE_ATTN_UNIFORM, 0), &p.s.err);
    assert_true(isnan(looked_at(&cert, PARE_LOST_FRACTION)));
    assert_ok(verify(&p), &p.s.err);
    play_close(&p);
}

/* What is proven for all inputs of the domain holds for others than the given ones. */
static void statements_for_all_inputs_hold_for_others(void **state)
{
    (void)state;
    play p;
    pare_cert cert;
    double most = 0;
    play_open(&p, PARE_RANDOM_BERT, 2, 6);
    for (size_t b = 0; b < 2; b++) { /* mean-only norms are affine */
        p.s.m->blocks[b].attn.out_norm.kind = PARE_NORM_MEAN;
        p.s.m->blocks[b].ffn.out_norm.kind = PARE_NORM_MEAN;
        p.s.m->blocks[b].attn.wq = filled(&p.s, &p.s.m->blocks[b].attn.wq, 0.01);
    }
    p.s.m->embedding.norm.kind = PARE_NORM_MEAN;
    assert_ok(pare_model_save(p.s.m, p.in, true, NULL, &p.s.err), &p.s.err);
    assert_ok(publish(&p, &cert, PARE_ATTN_UNIFORM, 0), &p.s.err);
    const pare_claim *const all = claim_must(&cert, PARE_APRIORI_OUTPUTS);
    assert_contains(all->domain, "all token sequences");
    assert_true(all->value == pare_cert_apriori(&cert));
    pare_inputs others;
    pare_model *g = NULL;
    assert_ok(pare_inputs_random(&others, p.s.a, p.s.m, 200, 12, 99, &p.s.err), &p.s.err);
    assert_ok(pare_model_load(&g, p.out, &p.s.err), &p.s.err);
    assert_ok(pare_measure(&most, p.s.m, g, &others, NULL, &p.s.err), &p.s.err);
    print_message("others: %.3g measured, %.3g proven\n", most, all->value);
    assert_true(most > cert.measured && most <= all->value);
    pare_model_free(g);
    play_close(&p);
}

/* What a replaced layer adds behind its norm is bounded for every input: also for these. */
static void what_a_layer_adds_is_bounded(void **state)
{
    (void)state;
    static const pare_attn_kind to[] = {PARE_ATTN_ZERO, PARE_ATTN_UNIFORM, PARE_ATTN_CONSTQ,
                                        PARE_ATTN_LINEAR};
    static const double loosest[] = {2, 6, 6, 3}; /* times what is measured */
    for (size_t i = 0; i < 4; i++) {
        play p;
        pare_cert cert;
        double most = 0;
        play_open(&p, PARE_RANDOM_GPT, 1, 7);
        /* The attention's own output is the model's: its error is the whole error. */
        p.s.m->blocks[0].ffn = (pare_ffn){0};
        p.s.m->head = (pare_output_head){0};
        assert_ok(pare_model_save(p.s.m, p.in, true, NULL, &p.s.err), &p.s.err);
        assert_ok(publish(&p, &cert, to[i], 0), &p.s.err);
        const pare_claim *const adds = claim_must(&cert, PARE_LAYER_INJECTED);
        assert_true(adds->p[0] == 0);
        pare_model *g = NULL;
        assert_ok(pare_model_load(&g, p.out, &p.s.err), &p.s.err);
        for (size_t k = 0; k < p.held.n; k++) {
            const pare_mat y = outputs(&p.s, p.s.m, &p.held.in[k]);
            const pare_mat z = outputs(&p.s, g, &p.held.in[k]);
            for (size_t r = 0; r < y.rows; r++) {
                double sum = 0;
                for (size_t j = 0; j < y.cols; j++) {
                    const double d = pare_row(&y, r)[j] - pare_row(&z, r)[j];
                    sum += d * d;
                }
                most = fmax(most, sqrt(sum));
            }
        }
        print_message("%s: %.3g measured, %.3g proven\n", pare_attn_name(to[i]), most, adds->value);
        assert_true(most > 0 && most <= adds->value);
        assert_le(adds->value, loosest[i] * most);
        pare_model_free(g);
        play_close(&p);
    }
}

/* The certificate of one cut with the model of another: every bound is proven on what is there. */
static void another_output_is_not_verified(void **state)
{
    (void)state;
    play p;
    pare_cert cert;
    pare_cert *read = NULL, again;
    play_open(&p, PARE_RANDOM_GPT, 2, 8);
    assert_ok(publish(&p, &cert, PARE_ATTN_AFFMIX, 1), &p.s.err);
    assert_ok(pare_cert_read(&read, p.s.a, p.cert, &p.s.err), &p.s.err);
    pare_depth_report r;
    pare_model *const worse = cut_to(&p.s, PARE_ATTN_ZERO, 0, &r);
    again = (pare_cert){.reduction = read->reduction, .data = read->data};
    assert_ok(pare_depth_prover.prove(&again, p.s.a, read, p.s.m, worse, &p.held, NULL, &p.s.err),
              &p.s.err);
    assert_status(pare_cert_compare(read, &again, &p.s.err), PARE_ERR_VERIFY, &p.s.err);
    assert_true(again.proven > read->proven);
    assert_contains(p.s.err.msg, "proven");
    pare_model_free(worse);
    play_close(&p);
}

static void a_promise_that_cannot_be_kept_leaves_nothing(void **state)
{
    (void)state;
    play p;
    pare_cert cert;
    play_open(&p, PARE_RANDOM_GPT, 2, 9);
    p.opts.max_error = 1e-9;
    assert_status(publish(&p, &cert, PARE_ATTN_UNIFORM, 0), PARE_ERR_PROMISE, &p.s.err);
    assert_true(access(p.out, F_OK) != 0 && access(p.cert, F_OK) != 0);
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_is_certified_and_verifies),
        cmocka_unit_test(the_lost_fraction_of_nothing_left_is_one),
        cmocka_unit_test(without_skips_no_fraction_is_said),
        cmocka_unit_test(statements_for_all_inputs_hold_for_others),
        cmocka_unit_test(what_a_layer_adds_is_bounded),
        cmocka_unit_test(another_output_is_not_verified),
        cmocka_unit_test(a_promise_that_cannot_be_kept_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
