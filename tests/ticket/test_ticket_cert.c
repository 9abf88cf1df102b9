/* Tests src/ticket/verify.c: what a ticket's certificate says is true, it verifies, every statement
 * in it that is made smaller is found out, and another pair of models does not pass for this one.
 */
#include "ticket_pairs.h"
#include <claims.h>
#include <given_file.h>
#include "cert/prove.h"
#include <pare/ticket.h>

typedef struct play {
    pare_model *f;
    pare_arena *a;
    pare_inputs set;
    char dir[200], in[300], out[300], cert[320], data[300];
    pare_publish_opts opts;
    pare_err err;
} play;

enum { TOKENS = 6, INPUTS = 5 };

static void play_with(play *p, pare_model *f)
{
    *p = (play){.f = f, .a = pare_arena_new()};
    assert_non_null(p->a);
    test_mkdir(p->dir);
    test_path(p->in, p->dir, "in");
    test_path(p->out, p->dir, "out");
    snprintf(p->cert, sizeof p->cert, "%s.cert.json", p->out);
    assert_ok(pare_inputs_random(&p->set, p->a, f, INPUTS, TOKENS, 7, &p->err), &p->err);
    test_path(p->data, p->dir, "data");
    given_file_write(p->data, &p->set);
    assert_ok(pare_model_save(f, p->in, false, NULL, &p->err), &p->err);
    p->opts = (pare_publish_opts){.in_path = p->in,
                                  .out_path = p->out,
                                  .max_error = INFINITY,
                                  .seed = 7,
                                  .data_path = p->data,
                                  .set = &p->set,
                                  .new_inputs = true,
                                  .prover = &pare_ticket_prover};
}

static void play_open(play *p, pare_random_kind kind)
{
    pare_err err = {0};
    pare_model *f;
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.kind = kind;
    o.dim = 8, o.heads = 2, o.layers = 2, o.vocab = 20, o.context = 8;
    assert_ok(pare_random_model(&f, &o, &err), &err);
    play_with(p, f);
}

static void play_close(play *p)
{
    pare_model_free(p->f);
    pare_arena_free(p->a);
    test_rmdir(p->dir);
}

static void publish(play *p, pare_cert *cert, double size)
{
    pare_model *g = pair_ticket(p->f, 3, size, 0, false);
    p->opts.overwrite = true;
    assert_ok(pare_publish(cert, p->a, p->f, &g, &p->opts, &p->err), &p->err);
    pare_model_free(g);
}

static pare_status verify(play *p)
{
    const pare_verify_opts o = {
        .provers = &pare_ticket_prover, .nprovers = 1, .load = given_file_load, .evidence = true};
    return pare_cert_verify(p->cert, &o, &p->err);
}

static void every_kind_of_model_is_certified_and_verifies(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        play p;
        pare_cert cert;
        play_open(&p, (pare_random_kind)kind);
        publish(&p, &cert, 1e-4);
        assert_true(cert.measured > 0 && cert.measured <= cert.proven);
        assert_le(cert.proven, pare_cert_apriori(&cert));
        assert_true(isfinite(claim_value(&cert, PARE_APRIORI_OUTPUTS)));
        assert_true(claim_value(&cert, PARE_GIVEN_OUTPUTS) >= cert.measured);
        assert_true(claim_value(&cert, PARE_NEW_INPUT_OUTPUTS) == cert.proven);
        assert_ok(verify(&p), &p.err);
        play_close(&p);
    }
}

/* The printed form stands beside the theorem where it speaks of the model at all. */
static void the_printed_form_is_labeled(void **state)
{
    pare_rng r = pare_rng_at(1, 2);
    const pair_shape s = {.d1 = 4, .d2 = 4, .heads = 2, .dk = 4, .blocks = 1, .size = .6};
    play p;
    pare_cert cert;
    (void)state;
    play_with(&p, pair_target(&r, &s));
    publish(&p, &cert, 1e-2);
    assert_int_equal(claims_in(&cert, PARE_PAPER), 1);
    assert_true(claim_value(&cert, PARE_PAPER_TICKET) > claim_value(&cert, PARE_APRIORI_OUTPUTS));
    assert_ok(verify(&p), &p.err);
    play_close(&p);
}

/* ---- a certificate that says more than is true ----------------------------------------------- */

static void write_again(play *p, pare_cert *c)
{
    assert_ok(pare_cert_write(c, p->cert, true, &p->err), &p->err);
}

static void a_smaller_statement_is_found_out(void **state)
{
    play p;
    pare_cert cert, *read;
    (void)state;
    play_open(&p, PARE_RANDOM_GPT);
    publish(&p, &cert, 1e-3);
    assert_ok(pare_cert_read(&read, p.a, p.cert, &p.err), &p.err);
    assert_true(claims_in(read, PARE_THEOREM) >= 6);
    for (size_t i = 0; i < read->nclaims; i++) {
        pare_claim *const t = &read->claims[i];
        const pare_kind_row *const row = &pare_kinds[t->kind];
        const double was = t->value;
        if (row->section != PARE_THEOREM || was == 0) continue;
        assert_false(row->lower);
        t->value = was * .99;
        write_again(&p, read);
        assert_status(verify(&p), PARE_ERR_VERIFY, &p.err);
        assert_contains(p.err.msg, row->name);
        t->value = row->ceiling > 0 ? fmin(row->ceiling, was * 1.5) : was * 1.5;
        write_again(&p, read); /* larger is still true */
        assert_ok(verify(&p), &p.err);
        t->value = was;
    }
    for (size_t i = 0; i < 2; i++) {
        double *const top[] = {&read->proven, &read->measured};
        const double was = *top[i];
        *top[i] = was * .9;
        write_again(&p, read);
        assert_status(verify(&p), PARE_ERR_VERIFY, &p.err);
        *top[i] = was;
    }
    write_again(&p, read);
    assert_ok(verify(&p), &p.err);
    play_close(&p);
}

static void a_changed_hypothesis_domain_or_printed_value_is_found_out(void **state)
{
    pare_rng r = pare_rng_at(1, 2);
    const pair_shape s = {.d1 = 4, .d2 = 4, .heads = 2, .dk = 4, .blocks = 1, .size = .6};
    play p;
    pare_cert cert, *read;
    (void)state;
    play_with(&p, pair_target(&r, &s));
    publish(&p, &cert, 1e-2);
    assert_ok(pare_cert_read(&read, p.a, p.cert, &p.err), &p.err);
    assert_true(claims_in(read, PARE_HYPOTHESIS) + claims_in(read, PARE_EVIDENCE) +
                    claims_in(read, PARE_OBSERVATION) >=
                4);
    /* counting_bound.c proves it for this class, not for every target */
    assert_int_equal(claims_of(read, PARE_TICKET_LEAST_BITS), 1);
    assert_contains(pare_kinds[PARE_TICKET_LEAST_BITS].sentence, "whose first k rows and columns");
    for (size_t i = 0; i < read->nclaims; i++) {
        pare_claim *const h = &read->claims[i];
        const pare_claim was = *h;
        const pare_kind_row *const row = &pare_kinds[h->kind];
        if (row->section == PARE_HYPOTHESIS) {
            h->holds = h->holds == PARE_TRUE ? PARE_FALSE : PARE_TRUE;
            write_again(&p, read);
            assert_status(verify(&p), PARE_ERR_VERIFY, &p.err);
            *h = was;
        }
        if (row->section == PARE_THEOREM) continue;
        double *const number[] = {row->has_value ? &h->value : NULL,
                                  row->has_limit ? &h->limit : NULL};
        for (size_t k = 0; k < 2; k++) {
            if (!number[k] || row->one_sided) continue;
            *number[k] *= 1.1; /* also a least that was made larger */
            write_again(&p, read);
            assert_status(verify(&p), PARE_ERR_VERIFY, &p.err);
            *h = was;
        }
    }
    pare_claim *const paper = &read->claims[claim_must(read, PARE_PAPER_TICKET) - read->claims];
    paper->value *= .5;
    write_again(&p, read);
    assert_status(verify(&p), PARE_ERR_VERIFY, &p.err);
    paper->value *= 2;
    read->claims[claim_must(read, PARE_APRIORI_OUTPUTS) - read->claims].domain =
        "all inputs with rows of euclidean length up to 99";
    write_again(&p, read);
    assert_status(verify(&p), PARE_ERR_VERIFY, &p.err);
    play_close(&p);
}

/* What holds for all inputs holds for others than the given ones. */
static void all_inputs_are_others_as_well(void **state)
{
    play p;
    pare_cert cert;
    pare_inputs others;
    (void)state;
    play_open(&p, PARE_RANDOM_BERT);
    publish(&p, &cert, 1e-3);
    pare_model *const g = pair_ticket(p.f, 3, 1e-3, 0, false);
    assert_ok(pare_inputs_random(&others, p.a, p.f, 50, 8, 99, &p.err), &p.err);
    for (size_t i = 0; i < others.n; i++)
        assert_le(pair_apart(p.f, g, &others.in[i], NULL, NULL),
                  claim_value(&cert, PARE_APRIORI_OUTPUTS));
    pare_model_free(g);
    play_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_model_is_certified_and_verifies),
        cmocka_unit_test(the_printed_form_is_labeled),
        cmocka_unit_test(a_smaller_statement_is_found_out),
        cmocka_unit_test(a_changed_hypothesis_domain_or_printed_value_is_found_out),
        cmocka_unit_test(all_inputs_are_others_as_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
