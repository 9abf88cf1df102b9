/* Tests src/cert/compose.c: certificates of a chain become one. */
#include "cert_toy.h"
#include "cert/prove.h"

/* Links 1 -> 2 -> ... in the folders a, b, ..., the composed certificate beside those folders. */
static pare_status compose(toy *t, pare_cert *out, pare_cert *const *links, size_t n)
{
    static const char *const paths[] = {"w/a/c.json", "w/b/c.json", "w/c/c.json"};
    assert_true(n <= 3);
    t->err = (pare_err){0};
    return pare_cert_compose(out, t->a, "w/all.json", links, paths, n, &t->err);
}

static void bounds_add_up_and_round_up(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const l[] = {toy_made(&t, '1', '2'), toy_made(&t, '2', '3'), toy_made(&t, '3', '4')};
    pare_cert c;
    l[0]->proven = 1, l[1]->proven = 0x1p-60, l[2]->proven = 0x1p-60; /* to nearest: 1 */
    for (size_t i = 0; i < 3; i++) l[i]->claims[TOY_APRIORI].value = (double)(4 >> i);
    l[0]->measured = 0.5, l[1]->measured = 0.25, l[2]->measured = 0;
    assert_ok(compose(&t, &c, l, 3), &t.err);
    assert_true(c.proven > 1 && c.proven <= 1 + 0x1p-51);
    assert_true(pare_cert_apriori(&c) == 7);
    assert_string_equal(pare_cert_find(&c, PARE_APRIORI_OUTPUTS)->domain, "all inputs");
    assert_true(c.measured == 0.75);
    l[1]->claims[TOY_APRIORI].value = INFINITY;
    assert_ok(compose(&t, &c, l, 3), &t.err);
    assert_true(isinf(pare_cert_apriori(&c)));
    l[1]->claims[TOY_APRIORI].value = 2;
    l[1]->claims[TOY_APRIORI].domain = "all short inputs"; /* other inputs: nothing adds up */
    assert_ok(compose(&t, &c, l, 3), &t.err);
    assert_null(pare_cert_find(&c, PARE_APRIORI_OUTPUTS));
    l[1]->claims[TOY_APRIORI].kind = PARE_RANK_COLLAPSE; /* one link has none */
    assert_ok(compose(&t, &c, l, 3), &t.err);
    assert_null(pare_cert_find(&c, PARE_APRIORI_OUTPUTS));
    toy_end(&t);
}

static void the_sum_of_random_bounds_is_never_below_the_exact_sum(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_rng rng = pare_rng_at(5, 0);
    for (size_t i = 0; i < 200; i++) {
        const pare_mark m = pare_arena_mark(t.a);
        pare_cert *const l[] = {toy_made(&t, '1', '2'), toy_made(&t, '2', '3')};
        pare_cert c;
        l[0]->proven = pare_rng_uniform(&rng), l[1]->proven = pare_rng_uniform(&rng);
        assert_ok(compose(&t, &c, l, 2), &t.err);
        /* Exact in 64 bits of mantissa unless the exponents are far apart. */
        const long double exact = (long double)l[0]->proven + (long double)l[1]->proven;
        if (!((long double)c.proven >= exact && (long double)c.proven <= exact * (1 + 1e-15L)))
            fail_msg("seed 5, case %zu: %.17g + %.17g gave %.17g", i, l[0]->proven, l[1]->proven,
                     c.proven);
        pare_arena_reset(t.a, m);
    }
    toy_end(&t);
}

static void a_chain_leads_from_the_first_input_to_the_last_output(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const l[] = {toy_made(&t, '1', '2'), toy_made(&t, '2', '3')};
    pare_cert c;
    l[0]->seed = 5, l[1]->seed = 6;
    assert_ok(compose(&t, &c, l, 2), &t.err);
    assert_string_equal(c.reduction, "chain");
    assert_string_equal(c.input.sha256, l[0]->input.sha256);
    assert_string_equal(c.output.sha256, l[1]->output.sha256);
    assert_int_equal(c.output.ntensors, 2);
    assert_string_equal(c.input.path, "a/1.pare");
    assert_string_equal(c.output.path, "b/3.pare");
    assert_int_equal(c.nchain, 2);
    assert_string_equal(c.chain[0]->output.path, "a/2.pare");
    assert_string_equal(c.chain[1]->input.path, "b/2.pare");
    assert_string_equal(l[1]->input.path, "2.pare"); /* the link itself is not changed */
    assert_int_equal(c.seed, 5);
    assert_int_equal(c.nclaims, 3); /* a hypothesis for each link, and the bound of all inputs */
    assert_int_equal(c.data.candidates, 0);
    assert_string_equal(c.data.inputs_sha256, l[0]->data.inputs_sha256);
    toy_end(&t);
}

static void a_chain_of_chains_is_one_chain(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const l[] = {toy_made(&t, '1', '2'), toy_made(&t, '2', '3')};
    pare_cert pair, all;
    assert_ok(compose(&t, &pair, l, 2), &t.err);
    pare_cert *const more[] = {&pair, toy_made(&t, '3', '4')};
    const char *const paths[] = {"w/all.json", "w/c.json"};
    assert_ok(pare_cert_compose(&all, t.a, "x.json", more, paths, 2, &t.err), &t.err);
    assert_int_equal(all.nchain, 3);
    assert_string_equal(all.chain[1]->input.path, "w/b/2.pare");
    assert_int_equal(all.chain[1]->nchain, 0);
    assert_true(all.proven >= 0.1 + 0.1 + 0.1 && all.proven < 0.3 + 1e-15);
    toy_end(&t);
}

static void a_failed_hypothesis_of_a_link_is_seen_in_the_chain(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const l[] = {toy_made(&t, '1', '2'), toy_made(&t, '2', '3'), toy_made(&t, '3', '4')};
    pare_cert c;
    l[0]->claims[TOY_TRUE].holds = PARE_FALSE; /* the second one is open in all of them */
    l[2]->claims[TOY_OPEN].holds = PARE_TRUE;
    assert_ok(compose(&t, &c, l, 3), &t.err);
    static const pare_truth holds[] = {PARE_FALSE, PARE_UNKNOWN, PARE_TRUE};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(c.claims[i].kind, PARE_LINK_HYPOTHESES);
        assert_int_equal(c.claims[i].holds, holds[i]);
        assert_true(c.claims[i].p[0] == (double)i);
        assert_string_equal(c.claims[i].text, "toy");
    }
    toy_end(&t);
}

static void links_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    static const char *const words[] = {"do not follow", "norms", "inputs: \"", "inputs", "inputs"};
    toy t;
    toy_begin(&t);
    for (size_t i = 0; i < 5; i++) {
        pare_cert *const l[] = {toy_made(&t, '1', '2'), toy_made(&t, '2', '3')};
        pare_cert c;
        if (i == 0) toy_hash(l[1]->input.sha256, '9');
        if (i == 1) l[1]->norm = "2";
        if (i == 2) l[1]->domain = "all inputs";
        if (i == 3) toy_hash(l[1]->data.inputs_sha256, 'b');
        if (i == 4) l[1]->data.kind = "file", l[1]->data.path = "d.npz";
        assert_status(compose(&t, &c, l, 2), PARE_ERR_INPUT, &t.err);
        assert_contains(t.err.msg, words[i]);
    }
    pare_cert c;
    assert_status(compose(&t, &c, NULL, 0), PARE_ERR_USAGE, &t.err);
    toy_end(&t);
}

/* Six inputs of a file, none longer than 64 tokens: by one cut the first 64 of each, by the other
 * whole. */
static void inputs_may_have_two_names_but_not_two_hashes(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const l[] = {toy_made(&t, '1', '2'), toy_made(&t, '2', '3')};
    pare_cert c;
    for (size_t i = 0; i < 2; i++) {
        l[i]->data.kind = "part";
        l[i]->data.path = "d.npz";
        l[i]->data.first = 18;
        l[i]->data.count = 6;
        l[i]->data.tokens = i == 0 ? 64 : 0;
        l[i]->domain = pare_domain_text(t.a, &l[i]->data);
    }
    assert_string_not_equal(l[0]->domain, l[1]->domain);
    assert_ok(compose(&t, &c, l, 2), &t.err);
    assert_string_equal(c.domain, l[0]->domain);
    assert_int_equal(c.data.tokens, 64);
    l[1]->data.kind = "file"; /* all that there are */
    l[1]->domain = pare_domain_text(t.a, &l[1]->data);
    assert_ok(compose(&t, &c, l, 2), &t.err);
    toy_hash(l[1]->data.inputs_sha256, 'b');
    assert_status(compose(&t, &c, l, 2), PARE_ERR_INPUT, &t.err);
    toy_hash(l[1]->data.inputs_sha256, 'b' - 1);
    toy_hash(l[0]->data.inputs_sha256, 'b' - 1);
    l[1]->domain = "a ball around the inputs"; /* more than they */
    assert_status(compose(&t, &c, l, 2), PARE_ERR_INPUT, &t.err);
    assert_contains(t.err.msg, "different inputs");
    toy_end(&t);
}

/* The same tensors under another architecture are another function. */
static void models_of_other_architectures_do_not_fit(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const l[] = {toy_made(&t, '1', '2'), toy_made(&t, '2', '3')};
    pare_cert c;
    toy_hash(l[1]->input.architecture, 'e');
    assert_status(compose(&t, &c, l, 2), PARE_ERR_INPUT, &t.err);
    assert_contains(t.err.msg, "architectures");
    toy_end(&t);
}

/* What a link says of new inputs is not said of the chain. */
static void a_chain_says_nothing_of_new_inputs(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const l[] = {toy_made(&t, '1', '2'), toy_made(&t, '2', '3')};
    pare_cert c;
    l[0]->data.candidates = 1;
    l[0]->data.heldout.n = 1;
    l[0]->data.heldout.sha256 = pare_alloc(t.a, 1, PARE_SHA256_HEX);
    assert_ok(compose(&t, &c, l, 2), &t.err);
    assert_int_equal(c.data.candidates, 0);
    assert_int_equal(c.data.heldout.n, 0);
    assert_null(pare_cert_find(&c, PARE_NEW_INPUT_OUTPUTS));
    toy_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_add_up_and_round_up),
        cmocka_unit_test(the_sum_of_random_bounds_is_never_below_the_exact_sum),
        cmocka_unit_test(a_chain_leads_from_the_first_input_to_the_last_output),
        cmocka_unit_test(a_chain_of_chains_is_one_chain),
        cmocka_unit_test(a_failed_hypothesis_of_a_link_is_seen_in_the_chain),
        cmocka_unit_test(links_that_do_not_fit_are_refused),
        cmocka_unit_test(inputs_may_have_two_names_but_not_two_hashes),
        cmocka_unit_test(models_of_other_architectures_do_not_fit),
        cmocka_unit_test(a_chain_says_nothing_of_new_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
