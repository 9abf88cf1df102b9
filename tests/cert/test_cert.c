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

/* What the kind does not have is not in the file. */
static void same_claim(const pare_claim *a, const pare_claim *b)
{
    const pare_kind_row *const row = &pare_kinds[b->kind];
    assert_true(pare_same_claim(a, b));
    if (row->section == PARE_HYPOTHESIS) assert_int_equal(a->holds, b->holds);
    if (row->section == PARE_THEOREM) assert_string_equal(a->domain, b->domain);
    if (row->has_value || row->section == PARE_THEOREM) assert_true(same_bits(a->value, b->value));
    if (row->has_limit) assert_true(same_bits(a->limit, b->limit));
    if (pare_kind_is_drawn(b->kind)) assert_true(same_bits(a->probability, b->probability));
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
    assert_string_equal(r->output.tensors[1].name, "head.out.bias");
    assert_string_equal(r->output.tensors[1].sha256, c->output.tensors[1].sha256);
    assert_string_equal(r->data.kind, "random");
    assert_null(r->data.path);
    assert_int_equal(r->data.count, 4);
    assert_int_equal(r->data.tokens, 2);
    assert_string_equal(r->data.inputs_sha256, c->data.inputs_sha256);
    assert_int_equal(r->data.candidates, 0);
    assert_int_equal(r->input.nfiles, 0);
    assert_int_equal(r->output.nfiles, 1);
    assert_string_equal(r->output.files[0].name, "2.pare");
    assert_string_equal(r->output.files[0].sha256, c->output.files[0].sha256);
    assert_string_equal(r->output.architecture, c->output.architecture);
    assert_string_equal(r->norm, TOY_NORM);
    assert_string_equal(r->domain, TOY_DOMAIN);
    assert_true(same_bits(r->proven, 0.1) && same_bits(r->measured, 0.1 / 3));
    assert_int_equal(r->nclaims, TOY_CLAIMS);
    for (size_t i = 0; i < TOY_CLAIMS; i++) same_claim(&r->claims[i], &c->claims[i]);
    assert_int_equal(r->claims[TOY_TRUE].holds, PARE_TRUE);
    assert_int_equal(r->claims[TOY_OPEN].holds, PARE_UNKNOWN);
    assert_string_equal(r->claims[TOY_OPEN].text, "small \"quoted\"");
    assert_string_equal(r->claims[TOY_DRAWN].domain, "one more");
    assert_string_equal(r->claims[TOY_SHARE].domain, TOY_DOMAIN); /* that of the headline */
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
    const size_t n = 500, first = c->nclaims;
    for (size_t i = 0; i < n; i++) {
        double v = 0;
        do {
            const uint64_t bits = pare_rng_u64(&rng);
            memcpy(&v, &bits, sizeof v);
        } while (!isfinite(v));
        const pare_claim claim = {.kind = PARE_PAPER_SCORES, .p = {v}, .value = -v};
        assert_ok(pare_cert_add(c, t.a, claim, &t.err), &t.err);
    }
    toy_write(&t, c, "c.json");
    const pare_cert *const r = read_back(&t, "c.json");
    assert_int_equal(r->nclaims, first + n);
    for (size_t i = first; i < r->nclaims; i++)
        if (!same_bits(c->claims[i].value, r->claims[i].value) ||
            !same_bits(c->claims[i].p[0], r->claims[i].p[0]))
            fail_msg("seed 11, claim %zu: %.17g came back as %.17g", i, c->claims[i].value,
                     r->claims[i].value);
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
    assert_contains(text, "\n      \"bound\": \"inf\",\n");
    assert_contains(text, "\n    \"seed\": \"18446744073709551615\"\n");
    assert_contains(text, "\"pare\": 2");
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
            double *const field[] = {&c->proven,
                                     &c->measured,
                                     &c->claims[TOY_LEAST].value,
                                     &c->claims[TOY_BALL].value,
                                     &c->claims[TOY_DRAWN].probability,
                                     &c->claims[TOY_PAPER].value,
                                     &c->claims[TOY_TRUE].limit};
            *field[i] = k ? NAN : -1;
            if (i >= 5 && !k) continue; /* a formula or a limit may be negative */
            assert_status(pare_cert_write(c, toy_path(&t, "c.json"), true, &t.err),
                          PARE_ERR_NONFINITE, &t.err);
            assert_false(pare_file_exists(toy_path(&t, "c.json")));
        }
    toy_end(&t);
}

static void inflate_weakens_bounds_and_changes_nothing_else(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = toy_made(&t, '1', '2'), *const as_it_was = toy_made(&t, '1', '2');
    assert_ok(pare_cert_inflate(c, &t.err), &t.err);
    assert_true(isinf(c->claims[TOY_APRIORI].value));
    assert_true(c->proven >= 0.1 * (1 + 0.99e-4) && c->proven <= 0.1 * (1 + 1.01e-4));
    assert_true(c->claims[TOY_BALL].value >= 5e-324);
    assert_true(c->claims[TOY_DRAWN].value >= 0.7 * (1 + 0.99e-4));
    assert_true(c->claims[TOY_DRAWN].value <= 0.7 * (1 + 1.01e-4));
    /* A lower bound goes down. */
    assert_true(c->claims[TOY_LEAST].value <= 0.05 * (1 - 0.99e-4));
    assert_true(c->claims[TOY_LEAST].value >= 0.05 * (1 - 1.01e-4));
    assert_true(same_bits(c->measured, 0.1 / 3));
    for (size_t i = 0; i < TOY_CLAIMS; i++)
        if (pare_kinds[c->claims[i].kind].section != PARE_THEOREM)
            same_claim(&c->claims[i], &as_it_was->claims[i]);
    assert_true(same_bits(c->claims[TOY_DRAWN].probability, 0.875));
    toy_end(&t);
}

static void inflate_does_not_pass_the_ceiling(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = toy_made(&t, '1', '2');
    c->claims[TOY_SHARE].value = 1 - 1e-5;
    assert_ok(pare_cert_inflate(c, &t.err), &t.err);
    assert_true(c->claims[TOY_SHARE].value == 1);
    toy_end(&t);
}

/* What no model can be below, above what this one is not above: nothing of it is written. */
static void a_lower_bound_above_its_upper_bound_is_not_written(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *c = toy_made(&t, '1', '2');
    c->claims[TOY_APRIORI].value = 0.049;
    assert_status(pare_cert_inflate(c, &t.err), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "one_layer.least");
    assert_contains(t.err.msg, "apriori.outputs");
    c = toy_made(&t, '1', '2');
    c->claims[TOY_APRIORI].value = 0.049;
    c->claims[TOY_APRIORI].domain = "all short inputs"; /* not the same figure */
    assert_ok(pare_cert_inflate(c, &t.err), &t.err);
    c = toy_made(&t, '1', '2');
    const pare_claim auc[] = {{.kind = PARE_AUC_MOST, .value = 0.8},
                              {.kind = PARE_AUC_LEAST, .value = 0.9}};
    for (size_t i = 0; i < 2; i++) assert_ok(pare_cert_add(c, t.a, auc[i], &t.err), &t.err);
    assert_status(pare_cert_inflate(c, &t.err), PARE_ERR_VERIFY, &t.err);
    assert_contains(t.err.msg, "auc.least");
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
static void refused(toy *t, const char *text, pare_status want, const char *from, const char *to,
                    const char *where)
{
    const char *const bad = toy_replace(t, text, from, to);
    const pare_status st = read_text(t, bad, strlen(bad));
    if (st != want) print_error("%s -> %s: %s\n", from, to, t->err.msg);
    assert_int_equal(st, want);
    assert_contains(t->err.msg, where);
    assert_contains(t->err.msg, "bad.json");
}

typedef struct change {
    const char *from, *to, *where;
} change;

static void all_refused(const change *cases, size_t n, pare_status want)
{
    toy t;
    toy_begin(&t);
    toy_write(&t, toy_made(&t, '1', '2'), "c.json");
    const char *const text = toy_text(&t, "c.json");
    for (size_t i = 0; i < n; i++)
        refused(&t, text, want, cases[i].from, cases[i].to, cases[i].where);
    toy_end(&t);
}

static void wrong_keys_types_and_ranges_are_named(void **state)
{
    (void)state;
    static const change cases[] = {
        {"\"pare\": 2", "\"pare\": 3", "pare: "},
        {"\"pare\": 2", "\"pare\": \"2\"", "pare: "},
        {"\"reduction\"", "\"Reduction\"", "Reduction: unknown key"},
        {"\"name\": \"toy\",", "", "reduction.name: this key is missing"},
        {"\"name\": \"toy\"", "\"name\": \"\"", "reduction.name: "},
        {"\"name\": \"toy\"", "\"name\": \"chain\"", "chain: "},
        {"\"18446744073709551615\"", "\"18446744073709551616\"", "reduction.seed: "},
        {"\"18446744073709551615\"", "7", "reduction.seed: "},
        {"\"18446744073709551615\"", "\"-1\"", "reduction.seed: "},
        {"\"1.pare\"", "3", "input.path: "},
        {"\"1111", "\"111", "input.sha256: must be 64 hex"},
        {"\"1111", "\"g111", "input.sha256: must be 64 hex"},
        {"\"2222", "\"A222", "output.sha256: must be 64 hex"},
        {"\"dddd", "\"ddd", "input.architecture: must be 64 hex"},
        {"\"files\": {}", "\"files\": []", "input.files: "},
        {"\"2.pare\": \"2", "\"2.pare\": \"", "output.files.2.pare: must be 64 hex"},
        {"\"tensors\": {}", "\"tensors\": []", "input.tensors: "},
        {"\"cccc", "\"ccc", "output.tensors.head.out.weight: must be 64 hex"},
        {"\"kind\": \"random\"", "\"kind\": \"magic\"", "data.kind: "},
        {"\"kind\": \"random\"", "\"kind\": \"file\"", "data.tokens: unknown key"},
        {"\"count\": 4", "\"count\": 4.5", "data.count: "},
        {"\"count\": 4", "\"count\": 0", "data.count: "},
        {"\"count\": 4", "\"count\": -4", "data.count: "},
        {"\"count\": 4", "\"count\": 1e17", "data.count: "},
        {"\"tokens\": 2", "\"tokens\": null", "data.tokens: "},
        {"\"tokens\": 2", "\"tokens\": 2, \"split\": 0", "data.split: unknown key"},
        {"\"norm\": \"max\"", "\"norm\": null", "headline.norm: "},
        {"\"domain\": \"the given", "\"more\": 1, \"domain\": \"the given",
         "headline.more: unknown key"},
        {"\"bound\": \"inf\"", "\"bound\": \"Inf\"", "theorems[0].bound: "},
        {"\"bound\": \"inf\"", "\"bound\": \"nan\"", "theorems[0].bound: "},
        {"\"bound\": \"inf\"", "\"bound\": null", "theorems[0].bound: "},
        {"\"proven\": 0.1", "\"proven\": true", "headline.proven: "},
        {"\"holds\": true", "\"holds\": 1", "hypotheses[0].holds: "},
        {"\"holds\": null", "\"holds\": \"null\"", "hypotheses[1].holds: "},
        {"\"value\": 0.1", "\"value\": \"0.1\"", "hypotheses[0].value: "},
        {"\"value\": null", "\"value\": 1", "hypotheses[1].value: must be null"},
        {"\"value\": 0.1", "\"value\": null", "hypotheses[0].value: "},
        {"\"limit\": 0.2", "\"limit\": 0.2, \"why\": 1", "hypotheses[0].why: unknown key"},
        {"\"limit\": null", "\"limits\": null", "hypotheses[1].limits: unknown key"},
        {"\"chain\": []", "\"chain\": {}", "chain: must be an array"},
        {"\"chain\": []", "\"chain\": [{}]", "chain: "},
        {"\"chain\": []", "\"chain\": [], \"more\": 1", "more: unknown key"},
        {"\"chain\": []", "\"chain\": [], \"chain\": []", "chain"},
        /* kinds */
        {"\"kind\": \"ticket.lattice\"", "\"kind\": \"ticket.lettuce\"",
         "hypotheses[0].kind: this program knows no such kind in this list"},
        {"\"kind\": \"ticket.lattice\"", "\"kind\": \"apriori.outputs\"",
         "hypotheses[0].kind: this program knows no such kind in this list"},
        {"\"kind\": \"rows.changed\"", "\"kind\": \"relative_error\"",
         "theorems[2].kind: this program knows no such kind in this list"},
        /* parameters */
        {"\"radius\": 0.1", "\"radius\": 0.1, \"layer\": 1",
         "theorems[3].parameters.layer: unknown key"},
        {"\"radius\": 0.1,", "", "theorems[3].parameters.radius: this key is missing"},
        {"\"radius\": 0.1", "\"radius\": \"inf\"",
         "theorems[3].parameters.radius: must be a finite number"},
        {"\"left_out\": 0", "\"left_out\": null", "theorems[4].parameters.left_out: "},
        {"\"width\": 2", "\"width\": 2, \"spot\": \"x\"",
         "evidence[0].parameters.spot: unknown key"},
        /* figures that cannot be */
        {"\"bound\": 0.75", "\"bound\": 1.0000000000000002",
         "theorems[2].bound: is larger than this figure can be"},
        {"\"bound\": 0.75", "\"bound\": \"inf\"", "theorems[2].bound: is larger"},
        {"\"probability\": 0.875", "\"probability\": 1", "theorems[4].probability: "},
        {"\"probability\": 0.875", "\"probability\": 1.5", "theorems[4].probability: "},
        {"\"probability\": 0.875", "\"probability\": 0", "theorems[4].probability: "},
        {"\"probability\": 0.875", "\"probability\": -0.5", "theorems[4].probability: "},
        {"\"probability\": 0.875,", "", "theorems[4].probability: this key is missing"},
        {"\"bound\": 0.75", "\"bound\": 0.75, \"probability\": 0.5",
         "theorems[2].probability: unknown key"},
    };
    all_refused(cases, sizeof cases / sizeof *cases, PARE_ERR_INPUT);
    toy t;
    toy_begin(&t);
    assert_status(read_text(&t, "[]", 2), PARE_ERR_INPUT, &t.err);
    assert_status(read_text(&t, "null", 4), PARE_ERR_INPUT, &t.err);
    toy_end(&t);
}

/* It can be read, and no file makes it true: exit 4. */
static void words_that_the_kind_does_not_say_are_not_true(void **state)
{
    (void)state;
    static const change cases[] = {
        {"\"proven\": 0.1", "\"proven\": -0.1", "headline.proven: must not be negative"},
        {"\"measured\": 0.", "\"measured\": -0.", "headline.measured: must not be negative"},
        {"\"bound\": \"inf\"", "\"bound\": \"-inf\"", "theorems[0].bound: must not be negative"},
        {"\"bound\": 0.7,", "\"bound\": -0.7,", "theorems[4].bound: must not be negative"},
        {"\"side\": \"upper\"", "\"side\": \"lower\"", "theorems[0].side: "},
        {"\"side\": \"lower\"", "\"side\": \"upper\"", "theorems[1].side: "},
        {"\"norm\": \"share of the output rows\"", "\"norm\": \"share of the rows\"",
         "theorems[2].norm: "},
        {"\"sentence\": \"rows whose", "\"sentence\": \"All rows whose",
         "theorems[2].sentence: is not what the kind and its parameters say"},
        {"\"radius\": 0.1", "\"radius\": 0.2", "theorems[3].sentence: "},
        {"\"draws\": 8", "\"draws\": 9", "theorems[4].sentence: "},
        {"\"tolerance\": 3", "\"tolerance\": 4", "observations[0].tolerance: "},
        {"\"tolerance\": 0.001", "\"tolerance\": 0.01", "observations[1].tolerance: "},
        {"\"sound\": false", "\"sound\": true", "paper[0].sound: "},
        {"\"sound\": false", "\"sound\": null", "paper[0].sound: "},
    };
    all_refused(cases, sizeof cases / sizeof *cases, PARE_ERR_VERIFY);
}

/* Schema 1 is refused with what to do about it. */
static void the_first_schema_is_refused_with_advice(void **state)
{
    (void)state;
    static const char old[] = "{\"pare\": 1, \"reduction\": \"fold\", \"seed\": \"0\"}";
    toy t;
    toy_begin(&t);
    assert_status(read_text(&t, old, sizeof old - 1), PARE_ERR_INPUT, &t.err);
    assert_contains(t.err.msg, "schema 1");
    assert_contains(t.err.msg, "make the certificate again with the same command");
    toy_end(&t);
}

/* Same kind and parameters: whatever the figures, one of them would hide the other. */
static void a_claim_stands_there_once(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    for (size_t i = 0; i < TOY_CLAIMS; i++) {
        pare_cert *const c = toy_made(&t, '1', '2');
        pare_claim twin = c->claims[i];
        twin.value *= 2;
        if (pare_kinds[twin.kind].ceiling > 0) twin.value = 1;
        assert_ok(pare_cert_add(c, t.a, twin, &t.err), &t.err);
        toy_write(&t, c, "c.json");
        const char *const text = toy_text(&t, "c.json");
        assert_status(read_text(&t, text, strlen(text)), PARE_ERR_INPUT, &t.err);
        assert_contains(t.err.msg, "stands there twice");
    }
    pare_cert *const c = toy_made(&t, '1', '2'); /* other parameters are another claim */
    pare_claim other = c->claims[TOY_BALL];
    other.p[0] = 0.2;
    assert_ok(pare_cert_add(c, t.a, other, &t.err), &t.err);
    other.text = "in the euclidean norm";
    assert_ok(pare_cert_add(c, t.a, other, &t.err), &t.err);
    toy_write(&t, c, "c.json");
    assert_int_equal(read_back(&t, "c.json")->nclaims, TOY_CLAIMS + 2);
    toy_end(&t);
}

static void a_list_of_claims_has_an_end(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    pare_cert *const c = toy_made(&t, '1', '2');
    for (size_t i = 0; i < 10000; i++) { /* and the one that is there */
        const pare_claim claim = {.kind = PARE_PAPER_SCORES, .p = {(double)i}};
        assert_ok(pare_cert_add(c, t.a, claim, &t.err), &t.err);
    }
    toy_write(&t, c, "c.json");
    const char *const text = toy_text(&t, "c.json");
    assert_status(read_text(&t, text, strlen(text)), PARE_ERR_INPUT, &t.err);
    assert_contains(t.err.msg, "paper: has more claims");
    toy_end(&t);
}

/* ---- held-out inputs ---------------------------------------------------------------------------
 */

static pare_cert *held_out(toy *t)
{
    pare_cert *const c = toy_made(t, '1', '2');
    c->data = (pare_data_ref){.kind = "file", .path = "d.npz", .count = 2, .candidates = 1};
    toy_hash(c->data.sha256, 'd');
    toy_hash(c->data.inputs_sha256, 'e');
    pare_input_hashes *const h[] = {&c->data.fitted, &c->data.heldout};
    for (size_t k = 0; k < 2; k++) {
        *h[k] = (pare_input_hashes){.tokens = 7, .n = 2};
        h[k]->sha256 = pare_alloc(t->a, 2, PARE_SHA256_HEX);
        assert_non_null(h[k]->sha256);
        toy_hash(h[k]->sha256[0], k ? '5' : '3');
        toy_hash(h[k]->sha256[1], k ? '6' : '4');
    }
    return c;
}

static void held_out_and_fitted_inputs_are_read(void **state)
{
    (void)state;
    toy t;
    toy_begin(&t);
    const pare_cert *const c = held_out(&t);
    toy_write(&t, c, "c.json");
    const pare_cert *const r = read_back(&t, "c.json");
    assert_int_equal(r->data.candidates, 1);
    assert_int_equal(r->data.fitted.tokens, 7);
    assert_int_equal(r->data.fitted.n, 2);
    assert_int_equal(r->data.heldout.n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_string_equal(r->data.fitted.sha256[i], c->data.fitted.sha256[i]);
        assert_string_equal(r->data.heldout.sha256[i], c->data.heldout.sha256[i]);
    }
    toy_end(&t);
}

static void a_set_of_inputs_is_written_in_one_way(void **state)
{
    (void)state;
    static const change cases[] = {
        {"\"candidates\": 1", "\"candidates\": 0", "data.writers_word.candidates: "},
        {"\"candidates\": 1", "\"candidates\": 1, \"x\": 1", "data.writers_word.x: unknown key"},
        {"\"writers_word\"", "\"their_word\"", "data.their_word: unknown key"},
        {"\"heldout\"", "\"held\"", "data.held: unknown key"},
        {"\"tokens\": 7", "\"tokens\": -1", "data.writers_word.fitted.tokens: "},
        {"\"333", "\"833", "data.writers_word.fitted.inputs[1]: must not be below"},
        {"\"555", "\"855", "data.heldout.inputs[1]: must not be below"},
        {"\"555", "\"55", "data.heldout.inputs[0]: must be 64 hex"},
    };
    toy t;
    toy_begin(&t);
    toy_write(&t, held_out(&t), "c.json");
    const char *const text = toy_text(&t, "c.json");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        refused(&t, text, PARE_ERR_INPUT, cases[i].from, cases[i].to, cases[i].where);
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
        cmocka_unit_test(inflate_weakens_bounds_and_changes_nothing_else),
        cmocka_unit_test(inflate_does_not_pass_the_ceiling),
        cmocka_unit_test(a_lower_bound_above_its_upper_bound_is_not_written),
        cmocka_unit_test(a_certificate_cut_at_any_byte_is_refused),
        cmocka_unit_test(wrong_keys_types_and_ranges_are_named),
        cmocka_unit_test(words_that_the_kind_does_not_say_are_not_true),
        cmocka_unit_test(the_first_schema_is_refused_with_advice),
        cmocka_unit_test(a_claim_stands_there_once),
        cmocka_unit_test(a_list_of_claims_has_an_end),
        cmocka_unit_test(held_out_and_fitted_inputs_are_read),
        cmocka_unit_test(a_set_of_inputs_is_written_in_one_way),
        cmocka_unit_test(a_chain_in_a_chain_is_refused),
        cmocka_unit_test(a_missing_certificate_is_bad_input_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
