/* Tests src/cert/cert_json.c and src/cert/cert_read.c: the file. */
#include "cert_toy.h"

static pare_cert *read_back(toy *t, const char *name)
{
    pare_cert *c = NULL;
    assert_ok(pare_cert_read(&c, t->a, toy_path(t, name), &t->err), &t->err);
    return c;
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

static void what_is_written_is_what_is_read(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    const pare_cert *const c = toy_made(&t, '1', '2');
    toy_write(&t, c, "c.json");
    const pare_cert *const r = read_back(&t, "c.json");
    assert_string_equal(r->reduction, "toy");
    assert_true(r->seed == UINT64_MAX);
    assert_string_equal(r->input.path, "1.pare");
    assert_string_equal(r->output.sha256, c->output.sha256);
    assert_int_equal(r->input.ntensors, 0);
    assert_int_equal(r->output.ntensors, 2);
    assert_string_equal(r->output.tensors[1].name, "top.out.bias");
    assert_string_equal(r->output.tensors[1].sha256, c->output.tensors[1].sha256);
    assert_string_equal(r->data.kind, "random");
    assert_null(r->data.path);
    assert_int_equal(r->data.count, 4);
    assert_int_equal(r->data.tokens, 2);
    assert_string_equal(r->data.inputs_sha256, c->data.inputs_sha256);
    assert_int_equal(strlen(r->data.seal), 64);
    assert_string_equal(r->norm, TOY_NORM);
    assert_string_equal(r->domain, TOY_DOMAIN);
    assert_true(isinf(r->apriori) && same_bits(r->proven, 0.1));
    assert_true(same_bits(r->measured, 1.0 / 3) && same_bits(r->rounding, 5e-324));
    assert_int_equal(r->nhypotheses, 2);
    assert_string_equal(r->hypotheses[0].name, "small \"quoted\"");
    assert_int_equal(r->hypotheses[0].holds, PARE_TRUE);
    assert_true(same_bits(r->hypotheses[0].value, 0.1) && same_bits(r->hypotheses[0].limit, 0.2));
    assert_int_equal(r->hypotheses[1].holds, PARE_UNKNOWN);
    assert_true(isnan(r->hypotheses[1].value) && isnan(r->hypotheses[1].limit));
    assert_int_equal(r->nstatements, 1);
    assert_string_equal(r->statements[0].domain, "one more");
    assert_true(same_bits(r->statements[0].probability, 0.9));
    assert_true(same_bits(r->statements[0].bound, 0.7));
    assert_int_equal(r->npaper, 1);
    assert_string_equal(r->paper[0].name, "theorem 4");
    assert_true(same_bits(r->paper[0].value, 1e300));
    assert_int_equal(r->nchain, 0);
    toy_end(&t);
}

static void a_data_file_is_read_with_its_split(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = toy_made(&t, '1', '2');
    c->data = (pare_data_ref){.kind = "file", .path = "../d.npz", .split = 7, .count = 1};
    toy_hash(c->data.sha256, 'd');
    toy_hash(c->data.inputs_sha256, 'e');
    toy_write(&t, c, "c.json");
    const pare_cert *const r = read_back(&t, "c.json");
    assert_string_equal(r->data.kind, "file");
    assert_string_equal(r->data.path, "../d.npz");
    assert_string_equal(r->data.sha256, c->data.sha256);
    assert_int_equal(r->data.split, 7);
    assert_int_equal(r->data.count, 1);
    toy_end(&t);
}

static void every_double_comes_back_bit_by_bit(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = toy_made(&t, '1', '2');
    pare_rng rng = pare_rng_at(11, 0);
    const size_t n = 500;
    c->paper = pare_alloc(t.a, n, sizeof *c->paper);
    c->npaper = n;
    for (size_t i = 0; i < n; i++) {
        double v = 0;
        do {
            const uint64_t bits = pare_rng_u64(&rng);
            memcpy(&v, &bits, sizeof v);
        } while (isnan(v));
        c->paper[i] = (pare_named){pare_sprintf(t.a, "value %zu", i), v};
    }
    toy_write(&t, c, "c.json");
    const pare_cert *const r = read_back(&t, "c.json");
    for (size_t i = 0; i < n; i++)
        if (!same_bits(c->paper[i].value, r->paper[i].value))
            fail_msg("seed 11, value %zu: %.17g came back as %.17g", i, c->paper[i].value,
                     r->paper[i].value);
    toy_end(&t);
}

static void same_certificate_same_bytes_and_rereading_changes_none(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = toy_made(&t, '1', '2'), *const d = toy_made(&t, '2', '3');
    const char *const paths[] = {toy_path(&t, "x"), toy_path(&t, "y")};
    pare_cert chain;
    assert_ok(pare_cert_compose(&chain, t.a, paths[0], (pare_cert *[]){c, d}, paths, 2, &t.err),
              &t.err);
    toy_write(&t, &chain, "1.json");
    toy_write(&t, &chain, "2.json");
    toy_write(&t, read_back(&t, "1.json"), "3.json");
    const char *const text = toy_text(&t, "1.json");
    assert_string_equal(text, toy_text(&t, "2.json"));
    assert_string_equal(text, toy_text(&t, "3.json"));
    assert_contains(text, "\n  \"apriori\": \"inf\",\n");
    assert_contains(text, "\n  \"seed\": \"18446744073709551615\",\n");
    assert_true(text[strlen(text) - 1] == '\n');
    toy_end(&t);
}

static void an_existing_file_is_not_overwritten_unasked(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    const pare_cert *const c = toy_made(&t, '1', '2');
    test_write_file(toy_path(&t, "c.json"), "x", 1);
    assert_status(pare_cert_write(c, toy_path(&t, "c.json"), false, &t.err), PARE_ERR_IO, &t.err);
    assert_string_equal(toy_text(&t, "c.json"), "x");
    toy_end(&t);
}

static void nothing_is_written_with_a_nan_or_a_negative_bound(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    for (size_t i = 0; i < 7; i++)
        for (size_t k = 0; k < 2; k++) {
            pare_cert *const c = toy_made(&t, '1', '2');
            double *const field[] = {&c->apriori,
                                     &c->proven,
                                     &c->measured,
                                     &c->rounding,
                                     &c->statements[0].bound,
                                     &c->statements[0].probability,
                                     &c->paper[0].value};
            *field[i] = k ? NAN : -1;
            if (i == 6 && !k) continue; /* a paper's formula may be negative */
            assert_status(pare_cert_write(c, toy_path(&t, "c.json"), true, &t.err),
                          PARE_ERR_NONFINITE, &t.err);
            assert_false(pare_file_exists(toy_path(&t, "c.json")));
        }
    toy_end(&t);
}

static void inflate_raises_bounds_and_nothing_else(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = toy_made(&t, '1', '2');
    pare_cert_inflate(c);
    assert_true(isinf(c->apriori));
    assert_true(c->proven >= 0.1 * (1 + 0.99e-4) && c->proven <= 0.1 * (1 + 1.01e-4));
    assert_true(c->rounding >= 5e-324);
    assert_true(c->statements[0].bound >= 0.7 * (1 + 0.99e-4));
    assert_true(c->statements[0].bound <= 0.7 * (1 + 1.01e-4));
    assert_true(same_bits(c->measured, 1.0 / 3));
    assert_true(same_bits(c->hypotheses[0].value, 0.1));
    assert_true(same_bits(c->paper[0].value, 1e300));
    toy_end(&t);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static pare_status read_text(toy *t, const char *text, size_t n)
{
    pare_cert *c = NULL;
    test_write_file(toy_path(t, "bad.json"), text, n);
    t->err = (pare_err){0};
    const pare_status st = pare_cert_read(&c, t->a, toy_path(t, "bad.json"), &t->err);
    assert_true((st == PARE_OK) == (c != NULL));
    return st;
}

static void a_certificate_cut_at_any_byte_is_refused(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    toy_write(&t, toy_made(&t, '1', '2'), "c.json");
    const char *const text = toy_text(&t, "c.json");
    const size_t n = strlen(text) - 1; /* without the line end, which may go */
    assert_ok(read_text(&t, text, n), &t.err);
    for (size_t i = 0; i < n; i++) {
        const pare_mark m = pare_arena_mark(t.a);
        assert_status(read_text(&t, text, i), PARE_ERR_INPUT, &t.err);
        pare_arena_reset(t.a, m);
    }
    toy_end(&t);
}

/* `from` in the text replaced by `to` must be refused with a message that names `where`. */
static void refused(toy *t, const char *text, const char *from, const char *to, const char *where)
{
    const char *const bad = toy_replace(t, text, from, to);
    const pare_status st = read_text(t, bad, strlen(bad));
    /* A bound below 0 can be read, and is not true. */
    const pare_status want = strstr(where, "negative") ? PARE_ERR_VERIFY : PARE_ERR_INPUT;
    if (st != want) print_error("%s -> %s\n", from, to);
    assert_int_equal(st, want);
    assert_contains(t->err.msg, where);
    assert_contains(t->err.msg, "bad.json");
}

static void wrong_keys_types_and_ranges_are_named(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"\"pare\": 1", "\"pare\": 2", "pare: "},
        {"\"pare\": 1", "\"pare\": \"1\"", "pare: "},
        {"\"reduction\"", "\"Reduction\"", "Reduction: unknown key"},
        {"\"reduction\": \"toy\",", "", "reduction: this key is missing"},
        {"\"reduction\": \"toy\"", "\"reduction\": \"\"", "reduction: "},
        {"\"reduction\": \"toy\"", "\"reduction\": \"chain\"", "chain: "},
        {"\"18446744073709551615\"", "\"18446744073709551616\"", "seed: "},
        {"\"18446744073709551615\"", "7", "seed: "},
        {"\"18446744073709551615\"", "\"-1\"", "seed: "},
        {"\"1.pare\"", "3", "input.path: "},
        {"\"1111", "\"111", "input.sha256: must be 64 hex"},
        {"\"1111", "\"g111", "input.sha256: must be 64 hex"},
        {"\"2222", "\"A222", "output.sha256: must be 64 hex"},
        {"\"tensors\": {}", "\"tensors\": []", "input.tensors: "},
        {"\"cccc", "\"ccc", "output.tensors.top.out.weight: must be 64 hex"},
        {"\"kind\": \"random\"", "\"kind\": \"magic\"", "data.kind: "},
        {"\"kind\": \"random\"", "\"kind\": \"file\"", "data.tokens: unknown key"},
        {"\"count\": 4", "\"count\": 4.5", "data.count: "},
        {"\"count\": 4", "\"count\": 0", "data.count: "},
        {"\"count\": 4", "\"count\": -4", "data.count: "},
        {"\"count\": 4", "\"count\": 1e17", "data.count: "},
        {"\"tokens\": 2", "\"tokens\": null", "data.tokens: "},
        {"\"tokens\": 2", "\"tokens\": 2, \"split\": 0", "data.split: unknown key"},
        {"\"norm\": \"max\"", "\"norm\": null", "norm: "},
        {"\"apriori\": \"inf\"", "\"apriori\": \"Inf\"", "apriori: "},
        {"\"apriori\": \"inf\"", "\"apriori\": \"-inf\"", "apriori: must not be negative"},
        {"\"apriori\": \"inf\"", "\"apriori\": \"nan\"", "apriori: "},
        {"\"apriori\": \"inf\"", "\"apriori\": null", "apriori: "},
        {"\"proven\": 0.1", "\"proven\": -0.1", "proven: must not be negative"},
        {"\"proven\": 0.1", "\"proven\": true", "proven: "},
        {"\"measured\": 0.", "\"measured\": -0.", "measured: must not be negative"},
        {"\"rounding\": 5", "\"rounding\": -5", "rounding: must not be negative"},
        {"\"holds\": true", "\"holds\": 1", "hypotheses[0].holds: "},
        {"\"holds\": null", "\"holds\": \"null\"", "hypotheses[1].holds: "},
        {"\"value\": 0.1", "\"value\": \"0.1\"", "hypotheses[0].value: "},
        {"\"limit\": 0.2", "\"limit\": 0.2, \"why\": 1", "hypotheses[0].why: unknown key"},
        {"\"limit\": null", "\"limits\": null", "hypotheses[1].limits: unknown key"},
        {"\"probability\": 0.9", "\"probability\": 1.5", "statements[0].probability: "},
        {"\"probability\": 0.9", "\"probability\": 0", "statements[0].probability: "},
        {"\"bound\": 0.7", "\"bound\": -0.7", "statements[0].bound: must not be negative"},
        {"\"theorem 4\": ", "\"theorem 4\": true, \"x\": ", "paper_not_sound.theorem 4: "},
        {"\"chain\": []", "\"chain\": {}", "chain: must be an array"},
        {"\"chain\": []", "\"chain\": [{}]", "chain: "},
        {"\"chain\": []", "\"chain\": [], \"more\": 1", "more: unknown key"},
        {"\"chain\": []", "\"chain\": [], \"chain\": []", "chain"},
    };
    toy t;
    toy_begin(&t);
    toy_write(&t, toy_made(&t, '1', '2'), "c.json");
    const char *const text = toy_text(&t, "c.json");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        refused(&t, text, cases[i][0], cases[i][1], cases[i][2]);
    assert_status(read_text(&t, "[]", 2), PARE_ERR_INPUT, &t.err);
    assert_status(read_text(&t, "null", 4), PARE_ERR_INPUT, &t.err);
    toy_end(&t);
}

static void a_chain_in_a_chain_is_refused(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *c = NULL, *const link = toy_made(&t, '1', '2'), inner = *link, outer = *link;
    pare_cert *in[] = {link}, *out[] = {&inner};
    inner.reduction = outer.reduction = "chain";
    inner.chain = in, outer.chain = out;
    inner.nchain = outer.nchain = 1;
    toy_write(&t, &inner, "c.json");
    assert_non_null(read_back(&t, "c.json"));
    toy_write(&t, &outer, "c.json");
    assert_status(pare_cert_read(&c, t.a, toy_path(&t, "c.json"), &t.err), PARE_ERR_INPUT, &t.err);
    assert_contains(t.err.msg, "chain[0].reduction");
    toy_end(&t);
}

static void a_missing_certificate_is_bad_input_by_name(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *c = NULL;
    const pare_status st = pare_cert_read(&c, t.a, toy_path(&t, "none.json"), &t.err);
    assert_int_equal(pare_exit_code(st), 2);
    assert_contains(t.err.msg, "none.json");
    toy_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_what_is_read),
        cmocka_unit_test(a_data_file_is_read_with_its_split),
        cmocka_unit_test(every_double_comes_back_bit_by_bit),
        cmocka_unit_test(same_certificate_same_bytes_and_rereading_changes_none),
        cmocka_unit_test(an_existing_file_is_not_overwritten_unasked),
        cmocka_unit_test(nothing_is_written_with_a_nan_or_a_negative_bound),
        cmocka_unit_test(inflate_raises_bounds_and_nothing_else),
        cmocka_unit_test(a_certificate_cut_at_any_byte_is_refused),
        cmocka_unit_test(wrong_keys_types_and_ranges_are_named),
        cmocka_unit_test(a_chain_in_a_chain_is_refused),
        cmocka_unit_test(a_missing_certificate_is_bad_input_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
