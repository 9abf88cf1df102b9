/* Tests src/cert/verify.c on chains: every link is proven again, the sum added up again, the
 * difference between the two ends measured again. */
#include "cert_tamper.h"

static void measure_ends(toy *t, pare_cert *c, const char *first, const char *last)
{
    pare_model *f = NULL, *g = NULL;
    pare_inputs set;
    assert_ok(pare_model_load(&f, toy_path(t, first), &t->err), &t->err);
    assert_ok(pare_model_load(&g, toy_path(t, last), &t->err), &t->err);
    assert_ok(pare_inputs_random(&set, t->a, f, 4, 2, c->seed, &t->err), &t->err);
    assert_ok(pare_measure(&c->measured, f, g, &set, NULL, &t->err), &t->err);
    pare_model_free(f);
    pare_model_free(g);
}

/* f -> g -> h by two cuts of 0.5 and 0.25, composed in all.json. */
static pare_cert world(toy *t)
{
    toy_begin(t);
    toy_save(t, "f.pare", 0);
    toy_save(t, "g.pare", 0.5);
    toy_save(t, "h.pare", 0.75);
    pare_cert first = toy_cert(t, "1.json", "f.pare", "g.pare", NULL, 42);
    pare_cert second = toy_cert(t, "2.json", "g.pare", "h.pare", NULL, 42);
    const char *const paths[] = {toy_path(t, "1.json"), toy_path(t, "2.json")};
    pare_cert *const links[] = {&first, &second};
    pare_cert c;
    assert_ok(pare_cert_compose(&c, t->a, toy_path(t, "all.json"), links, paths, 2, &t->err),
              &t->err);
    measure_ends(t, &c, "f.pare", "h.pare");
    toy_write(t, &c, "all.json");
    return c;
}

static void a_true_chain_holds(void **state)
{
    (void)state;
    toy t;
    const pare_cert c = world(&t);
    assert_true(c.measured == 0.75);
    assert_near(c.proven, 0.75 * 1.5, 1e-3);
    assert_ok(toy_verify(&t, "all.json"), &t.err);
    toy_end(&t);
}

static void any_change_of_a_chain_is_found(void **state)
{
    (void)state;
    toy t;
    world(&t);
    const size_t tried = tamper_all(&t, "all.json", "x.json");
    assert_true(tried > 1500);
    toy_end(&t);
}

static void links_that_do_not_fit_are_refused_before_any_file_is_read(void **state)
{
    (void)state;
    toy t;
    pare_cert c = world(&t);
    pare_cert *const swapped[] = {c.chain[1], c.chain[0]};
    pare_cert *const true_order[] = {c.chain[0], c.chain[1]};
    c.chain = (pare_cert **)swapped;
    c.input = swapped[0]->input;
    c.output = swapped[1]->output;
    toy_write(&t, &c, "x.json");
    assert_status(toy_verify(&t, "x.json"), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "do not follow each other");
    c.chain = (pare_cert **)true_order;
    c.output = true_order[1]->output;
    toy_write(&t, &c, "x.json"); /* the input is still the one in the middle */
    assert_status(toy_verify(&t, "x.json"), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "chain[0]");
    toy_end(&t);
}

/* The composed measured value must be that of the two ends, not the sum of the links'. */
static void the_sum_of_measured_values_is_not_a_measurement(void **state)
{
    (void)state;
    toy t;
    pare_cert c = world(&t);
    toy_save(&t, "h.pare", 0.25); /* back again: |f - h| = 0.25, the sum 0.75 */
    pare_cert second = toy_cert(&t, "2.json", "g.pare", "h.pare", NULL, 42);
    const char *const paths[] = {toy_path(&t, "1.json"), toy_path(&t, "2.json")};
    pare_cert *const links[] = {c.chain[0], &second};
    assert_ok(pare_cert_compose(&c, t.a, toy_path(&t, "x.json"), links, paths, 2, &t.err), &t.err);
    toy_write(&t, &c, "x.json");
    assert_status(toy_verify(&t, "x.json"), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "measured");
    measure_ends(&t, &c, "f.pare", "h.pare");
    assert_true(c.measured == 0.25);
    toy_write(&t, &c, "x.json");
    assert_ok(toy_verify(&t, "x.json"), &t.err);
    toy_end(&t);
}

static void a_changed_model_in_the_middle_breaks_the_chain(void **state)
{
    (void)state;
    toy t;
    world(&t);
    toy_save(&t, "g.pare", 0.625);
    assert_status(toy_verify(&t, "all.json"), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "chain[0]");
    assert_contains(t.err.msg, "g.pare");
    assert_int_equal(remove(toy_path(&t, "g.pare")), 0);
    assert_int_equal(pare_exit_code(toy_verify(&t, "all.json")), 2);
    toy_end(&t);
}

static void the_ends_of_a_chain_may_be_named_by_the_caller(void **state)
{
    (void)state;
    toy t;
    world(&t);
    assert_int_equal(rename(toy_path(&t, "f.pare"), toy_path(&t, "f2")), 0);
    assert_int_equal(rename(toy_path(&t, "h.pare"), toy_path(&t, "h2")), 0);
    pare_verify_opts o = toy_opts();
    o.input = toy_path(&t, "f2");
    o.output = toy_path(&t, "h2");
    assert_ok(pare_cert_verify(toy_path(&t, "all.json"), &o, &t.err), &t.err);
    toy_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_true_chain_holds),
        cmocka_unit_test(any_change_of_a_chain_is_found),
        cmocka_unit_test(links_that_do_not_fit_are_refused_before_any_file_is_read),
        cmocka_unit_test(the_sum_of_measured_values_is_not_a_measurement),
        cmocka_unit_test(a_changed_model_in_the_middle_breaks_the_chain),
        cmocka_unit_test(the_ends_of_a_chain_may_be_named_by_the_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
