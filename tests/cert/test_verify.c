/* Tests src/cert/verify.c on single cuts: a true certificate holds, any other does not. */
#include "cert_tamper.h"

static void world(toy *t, const char *data)
{
    toy_begin(t);
    toy_save(t, "f.pare", 0);
    toy_save(t, "g.pare", 0.5);
    if (data) test_write_file(toy_path(t, "d.bin"), data, strlen(data));
    const pare_cert c =
        toy_cert(t, "g.pare.cert.json", "f.pare", "g.pare", data ? "d.bin" : NULL, 42);
    toy_write(t, &c, "g.pare.cert.json");
    assert_ok(toy_verify(t, "g.pare.cert.json"), &t->err);
}

static void any_change_of_a_certificate_is_found(void **state)
{
    (void)state;
    toy t;
    world(&t, NULL);
    const size_t tried = tamper_all(&t, "g.pare.cert.json", "x.json");
    assert_true(tried > 600);
    toy_end(&t);
}

static void any_change_of_a_certificate_on_a_data_file_is_found(void **state)
{
    (void)state;
    toy t;
    world(&t, "some inputs");
    const size_t tried = tamper_all(&t, "g.pare.cert.json", "x.json");
    assert_true(tried > 700);
    toy_end(&t);
}

static pare_status verify_changed(toy *t, const char *from, const char *to)
{
    const char *const bad = toy_replace(t, toy_text(t, "g.pare.cert.json"), from, to);
    test_write_file(toy_path(t, "x.json"), bad, strlen(bad));
    return toy_verify(t, "x.json");
}

/* Another reduction has another prover, which finds other hypotheses. */
static void another_reduction_is_proven_by_its_own_prover(void **state)
{
    (void)state;
    toy t;
    world(&t, "some inputs");
    assert_status(verify_changed(&t, "\"toy\"", "\"toy.twin\""), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "fold.not_rotary");
    assert_contains(t.err.msg, "leaves out");
    toy_end(&t);
}

/* Random inputs are drawn from the seed; beside a file it is the writer's word. */
static void another_seed_is_refused_where_inputs_are_drawn_from_it(void **state)
{
    (void)state;
    toy t;
    world(&t, NULL);
    assert_status(verify_changed(&t, "\"42\"", "\"43\""), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "inputs are not those");
    toy_end(&t);
    world(&t, "some inputs");
    assert_ok(verify_changed(&t, "\"42\"", "\"43\""), &t.err);
    toy_end(&t);
}

/* A split that was not used is another domain. */
static void another_split_is_refused(void **state)
{
    (void)state;
    toy t;
    world(&t, "some inputs");
    assert_status(verify_changed(&t, "\"split\": 0", "\"split\": 2"), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "data.split");
    toy_end(&t);
}

/* Evidence proves nothing; it is looked at when somebody asks. */
static void evidence_is_checked_on_request(void **state)
{
    (void)state;
    toy t;
    world(&t, NULL);
    pare_verify_opts o = toy_opts();
    pare_cert c = toy_cert(&t, "x.json", "f.pare", "g.pare", NULL, 42);
    for (size_t i = 0; i < c.nclaims; i++)
        if (c.claims[i].kind == PARE_STREAM_OPTIMALITY) c.claims[i].limit *= 0.99;
    toy_write(&t, &c, "x.json");
    assert_status(toy_verify(&t, "x.json"), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "stream.optimality");
    o.evidence = false;
    assert_ok(pare_cert_verify(toy_path(&t, "x.json"), &o, &t.err), &t.err);
    toy_end(&t);
}

static void flip_bytes(toy *t, const char *name)
{
    size_t n = 0;
    uint8_t *const bytes = test_read_file(toy_path(t, name), &n);
    for (size_t i = 0; i < n; i += 1 + n / 64) {
        bytes[i] ^= 1;
        test_write_file(toy_path(t, name), bytes, n);
        assert_status(toy_verify(t, "g.pare.cert.json"), PARE_ERR_VERIFY, &t->err);
        assert_contains(t->err.msg, name);
        assert_contains(t->err.msg, "sha256");
        bytes[i] ^= 1;
    }
    test_write_file(toy_path(t, name), bytes, n);
    assert_ok(toy_verify(t, "g.pare.cert.json"), &t->err);
    free(bytes);
}

/* Also where the file could no longer be parsed: hashes come first. */
static void any_changed_byte_of_a_named_file_is_found(void **state)
{
    (void)state;
    toy t;
    world(&t, "some inputs");
    flip_bytes(&t, "f.pare");
    flip_bytes(&t, "g.pare");
    flip_bytes(&t, "d.bin");
    toy_end(&t);
}

static void a_missing_file_is_named_and_is_not_a_verdict(void **state)
{
    (void)state;
    static const char *const names[] = {"f.pare", "g.pare", "d.bin"};
    toy t;
    world(&t, "some inputs");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(rename(toy_path(&t, names[i]), toy_path(&t, "away")), 0);
        const pare_status st = toy_verify(&t, "g.pare.cert.json");
        assert_int_equal(pare_exit_code(st), 2);
        assert_contains(t.err.msg, names[i]);
        assert_int_equal(rename(toy_path(&t, "away"), toy_path(&t, names[i])), 0);
    }
    assert_int_equal(pare_exit_code(toy_verify(&t, "none.json")), 2);
    toy_end(&t);
}

static void files_may_be_named_by_the_caller(void **state)
{
    (void)state;
    toy t;
    world(&t, "some inputs");
    assert_int_equal(rename(toy_path(&t, "f.pare"), toy_path(&t, "f2")), 0);
    assert_int_equal(rename(toy_path(&t, "g.pare"), toy_path(&t, "g2")), 0);
    assert_int_equal(rename(toy_path(&t, "d.bin"), toy_path(&t, "d2")), 0);
    pare_verify_opts o = toy_opts();
    o.input = toy_path(&t, "f2");
    o.output = toy_path(&t, "g2");
    o.data = toy_path(&t, "d2");
    assert_ok(pare_cert_verify(toy_path(&t, "g.pare.cert.json"), &o, &t.err), &t.err);
    o.output = o.input; /* another model is still another model */
    assert_status(pare_cert_verify(toy_path(&t, "g.pare.cert.json"), &o, &t.err), PARE_ERR_VERIFY,
                  &t.err);
    toy_end(&t);
}

static void a_reduction_nobody_can_prove_is_unreadable(void **state)
{
    (void)state;
    toy t;
    world(&t, NULL);
    pare_verify_opts o = toy_opts();
    o.nprovers = 0;
    assert_status(pare_cert_verify(toy_path(&t, "g.pare.cert.json"), &o, &t.err), PARE_ERR_INPUT,
                  &t.err);
    assert_contains(t.err.msg, "toy");
    toy_end(&t);
}

static pare_status lazy_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                              const pare_model *f, const pare_model *g, const pare_inputs *set,
                              const pare_exec *exec, pare_err *err)
{
    const double untouched = again->proven;
    const pare_status st = toy_prove(again, a, claimed, f, g, set, exec, err);
    again->proven = untouched;
    return st;
}

static pare_status lazier_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                                const pare_model *f, const pare_model *g, const pare_inputs *set,
                                const pare_exec *exec, pare_err *err)
{
    const pare_status st = toy_prove(again, a, claimed, f, g, set, exec, err);
    for (size_t i = 0; !st && i < again->nclaims; i++)
        if (again->claims[i].kind == PARE_ONE_LAYER_LEAST)
            again->claims[i] = again->claims[--again->nclaims];
    return st;
}

static void a_prover_that_forgets_a_bound_proves_nothing(void **state)
{
    (void)state;
    const pare_prover lazy = {"toy", lazy_prove}, lazier = {"toy", lazier_prove};
    toy t;
    world(&t, NULL);
    pare_verify_opts o = toy_opts();
    o.provers = &lazy;
    o.nprovers = 1;
    assert_status(pare_cert_verify(toy_path(&t, "g.pare.cert.json"), &o, &t.err), PARE_ERR_VERIFY,
                  &t.err);
    assert_contains(t.err.msg, "proven");
    o.provers = &lazier;
    assert_status(pare_cert_verify(toy_path(&t, "g.pare.cert.json"), &o, &t.err), PARE_ERR_VERIFY,
                  &t.err);
    assert_contains(t.err.msg, "one_layer.least");
    toy_end(&t);
}

/* The certificate is consistent with itself, but claims another model's figures. */
static void figures_of_another_cut_are_refused(void **state)
{
    (void)state;
    toy t;
    world(&t, NULL);
    toy_save(&t, "h.pare", 0.75);
    pare_cert c = toy_cert(&t, "x.json", "f.pare", "g.pare", NULL, 42);
    const pare_cert h = toy_cert(&t, "x.json", "f.pare", "h.pare", NULL, 42);
    c.output = h.output;
    toy_write(&t, &c, "x.json");
    assert_status(toy_verify(&t, "x.json"), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "proven");
    toy_end(&t);
}

/* These are not the inputs that the file gives. */
static void inputs_other_than_those_named_are_refused(void **state)
{
    (void)state;
    toy t;
    world(&t, "some inputs");
    pare_cert c = toy_cert(&t, "x.json", "f.pare", "g.pare", "d.bin", 42);
    c.data.count++;
    toy_write(&t, &c, "x.json");
    assert_status(toy_verify(&t, "x.json"), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "11 inputs, the certificate says 12");
    c.data.count--;
    toy_hash(c.data.inputs_sha256, '7');
    toy_write(&t, &c, "x.json");
    assert_status(toy_verify(&t, "x.json"), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "not 777777777777");
    toy_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_change_of_a_certificate_is_found),
        cmocka_unit_test(any_change_of_a_certificate_on_a_data_file_is_found),
        cmocka_unit_test(another_reduction_is_proven_by_its_own_prover),
        cmocka_unit_test(another_seed_is_refused_where_inputs_are_drawn_from_it),
        cmocka_unit_test(another_split_is_refused),
        cmocka_unit_test(evidence_is_checked_on_request),
        cmocka_unit_test(any_changed_byte_of_a_named_file_is_found),
        cmocka_unit_test(a_missing_file_is_named_and_is_not_a_verdict),
        cmocka_unit_test(files_may_be_named_by_the_caller),
        cmocka_unit_test(a_reduction_nobody_can_prove_is_unreadable),
        cmocka_unit_test(a_prover_that_forgets_a_bound_proves_nothing),
        cmocka_unit_test(figures_of_another_cut_are_refused),
        cmocka_unit_test(inputs_other_than_those_named_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
