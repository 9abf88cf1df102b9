/* Tests src/cert/claim_kinds.c: the table of kinds, and the sentences that are made of it. */
#include "cert/prove.h"
#include <pare_test.h>

static bool is_parameter(const pare_kind_row *row, const char *name, size_t n)
{
    for (size_t i = 0; i < PARE_PARAMETERS && row->parameters[i]; i++)
        if (strlen(row->parameters[i]) == n && strncmp(row->parameters[i], name, n) == 0)
            return true;
    return row->text && strlen(row->text) == n && strncmp(row->text, name, n) == 0;
}

static bool stands_in(const char *sentence, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, "{%s}", name);
    return strstr(sentence, word) != NULL;
}

static void names_are_unique(void **state)
{
    (void)state;
    for (size_t i = 0; i < PARE_KINDS; i++) {
        const char *const name = pare_kinds[i].name;
        if (!name) fail_msg("kind %zu has no row", i);
        assert_true(*name &&
                    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789._") == strlen(name));
        for (size_t k = 0; k < i; k++)
            if (strcmp(name, pare_kinds[k].name) == 0) fail_msg("%s stands there twice", name);
    }
}

/* Two claims with other parameters never read alike. */
static void a_sentence_has_exactly_the_parameters_of_its_kind(void **state)
{
    (void)state;
    for (size_t k = 0; k < PARE_KINDS; k++) {
        const pare_kind_row *const row = &pare_kinds[k];
        assert_true(row->sentence && *row->sentence);
        for (const char *at = row->sentence; (at = strchr(at, '{')); at++) {
            const char *const end = strchr(at, '}');
            if (!end || !is_parameter(row, at + 1, (size_t)(end - at) - 1))
                fail_msg("%s: \"%s\" is no parameter", row->name, at);
        }
        for (size_t i = 0; i < PARE_PARAMETERS && row->parameters[i]; i++)
            if (!stands_in(row->sentence, row->parameters[i]))
                fail_msg("%s: its sentence has no {%s}", row->name, row->parameters[i]);
        if (row->text && !stands_in(row->sentence, row->text))
            fail_msg("%s: its sentence has no {%s}", row->name, row->text);
    }
}

static void rows_have_what_their_section_needs(void **state)
{
    (void)state;
    for (size_t k = 0; k < PARE_KINDS; k++) {
        const pare_kind_row *const row = &pare_kinds[k];
        const bool theorem = row->section == PARE_THEOREM, seen = row->section == PARE_OBSERVATION;
        const bool limited = row->section == PARE_HYPOTHESIS || row->section == PARE_EVIDENCE;
        if (row->section >= PARE_SECTIONS || (row->norm != NULL) != theorem ||
            (row->lower && !theorem) ||
            (row->ceiling != 0 && row->ceiling != 1 && row->ceiling != 2) ||
            (row->ceiling > 0 && (!theorem || row->lower)) || (row->tolerance > 0) != seen ||
            (row->one_sided && !seen) || (row->has_limit && !limited) ||
            (row->has_value && theorem) ||
            ((seen || row->section == PARE_PAPER) && !row->has_value) ||
            (row->section == PARE_EVIDENCE && !row->has_limit) ||
            (pare_kind_is_drawn((pare_kind)k) && !theorem))
            fail_msg("%s: its row does not fit its section", row->name);
        /* A share is never above 1. */
        if (theorem && strncmp(row->norm, "share", 5) == 0) assert_true(row->ceiling == 1);
        if (k > 0) assert_true(pare_kinds[k - 1].section <= row->section);
    }
}

static void sentences_name_numbers_and_words(void **state)
{
    (void)state;
    static const struct {
        pare_claim claim;
        const char *sentence;
    } cases[] = {
        {{.kind = PARE_BALL_OUTPUTS, .p = {0.1}, .text = "in every entry"},
         "ball of radius 0.1 in every entry: outputs"},
        {{.kind = PARE_BALL_OUTPUTS, .p = {0.1 + 1e-16}, .text = "in every entry"},
         "ball of radius 0.1000000000000001 in every entry: outputs"},
        {{.kind = PARE_JL_DIMENSION, .p = {2, 0.5, 0.01}},
         "layer 2: dimension of queries and keys, and what the Johnson-Lindenstrauss lemma needs "
         "(eps 0.5, delta 0.01)"},
        {{.kind = PARE_STREAM_OPTIMALITY, .p = {8}, .text = "layer 1"},
         "layer 1: residual of the stream decoded from 8 numbers a row (root mean square), and the "
         "best rank-8 residual (Eckart-Young)"},
        {{.kind = PARE_LAYERS_MERGED, .p = {12, 1}}, "layers of the model: 12 before, 1 after"},
        {{.kind = PARE_LEVERAGE_DRAWS, .p = {1, 12345678}},
         "layer 1: hidden units, and the draws that sampling by leverage scores needs at rank "
         "12345678"},
        {{.kind = PARE_AUC_LEAST}, "AUC of the output model"},
    };
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    assert_true(0.1 + 1e-16 != 0.1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(pare_claim_sentence(a, &cases[i].claim), cases[i].sentence);
    pare_arena_free(a);
}

/* Numbers beyond those of the kind, and words of kinds without one, are no part of it. */
static void claims_are_the_same_by_kind_and_parameters(void **state)
{
    (void)state;
    const pare_claim ball = {.kind = PARE_BALL_OUTPUTS, .p = {0.1}, .text = "in every entry"};
    pare_claim other = ball;
    other.value = 7, other.p[1] = 3, other.domain = "elsewhere";
    assert_true(pare_same_claim(&ball, &other));
    other.p[0] = 0.2;
    assert_false(pare_same_claim(&ball, &other));
    other.p[0] = NAN;
    assert_false(pare_same_claim(&other, &other));
    other = ball, other.text = "in the euclidean norm";
    assert_false(pare_same_claim(&ball, &other));
    other.text = NULL;
    assert_false(pare_same_claim(&ball, &other));
    other = ball, other.kind = PARE_BALL_SCORE;
    assert_false(pare_same_claim(&ball, &other));
}

static void a_list_grows_and_finds_the_first_of_a_kind(void **state)
{
    (void)state;
    pare_cert c = {.domain = "here"};
    pare_err err;
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    assert_null(pare_cert_find(&c, PARE_APRIORI_OUTPUTS));
    assert_true(isinf(pare_cert_apriori(&c)));
    for (size_t i = 0; i < 100; i++) {
        const pare_claim claim = {.kind = PARE_LAYER_INJECTED, .p = {(double)i}, .value = 1};
        assert_ok(pare_cert_add(&c, a, claim, &err), &err);
    }
    const pare_claim bound = {.kind = PARE_APRIORI_OUTPUTS, .value = 3, .domain = "everywhere"};
    assert_ok(pare_cert_add(&c, a, bound, &err), &err);
    assert_int_equal(c.nclaims, 101);
    for (size_t i = 0; i < 100; i++) assert_true(c.claims[i].p[0] == (double)i);
    assert_true(pare_cert_find(&c, PARE_LAYER_INJECTED) == c.claims);
    assert_string_equal(c.claims[7].domain, "here"); /* that of the headline */
    assert_string_equal(c.claims[100].domain, "everywhere");
    assert_true(pare_cert_apriori(&c) == 3);
    pare_arena_free(a);
}

/* Of a figure and its optimum, both in f64, the optimum is not written above the figure. */
static void an_optimum_is_not_above_what_is_reached(void **state)
{
    (void)state;
    pare_cert c = {0};
    pare_err err;
    pare_arena *const a = pare_arena_new();
    assert_non_null(a);
    const pare_claim at = {
        .kind = PARE_STREAM_OPTIMALITY, .text = "x", .value = 1, .limit = 1 + 1e-12};
    assert_ok(pare_cert_add(&c, a, at, &err), &err);
    assert_true(c.claims[0].limit == 1 && c.claims[0].value == 1);
    pare_arena_free(a);
}

/* docs/format.md has the same table. */
static void the_documentation_knows_every_kind(void **state)
{
    (void)state;
    size_t n = 0;
    if (access("docs/format.md", R_OK) != 0) SKIP("docs/format.md is not here");
    uint8_t *const bytes = test_read_file("docs/format.md", &n);
    char *const text = malloc(n + 1);
    assert_non_null(text);
    memcpy(text, bytes, n);
    text[n] = '\0';
    free(bytes);
    const bool there = strstr(text, "`engine.distance`") != NULL;
    for (size_t k = 0; there && k < PARE_KINDS; k++) {
        char word[64];
        snprintf(word, sizeof word, "`%s`", pare_kinds[k].name);
        if (!strstr(text, word)) fail_msg("docs/format.md has no %s", word);
    }
    free(text);
    if (!there) SKIP("docs/format.md has no table of kinds yet");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(a_sentence_has_exactly_the_parameters_of_its_kind),
        cmocka_unit_test(rows_have_what_their_section_needs),
        cmocka_unit_test(sentences_name_numbers_and_words),
        cmocka_unit_test(claims_are_the_same_by_kind_and_parameters),
        cmocka_unit_test(a_list_grows_and_finds_the_first_of_a_kind),
        cmocka_unit_test(an_optimum_is_not_above_what_is_reached),
        cmocka_unit_test(the_documentation_knows_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
