/* Tests src/base/json.c, json_check.c and json_print.c. */
#include <pare_test.h>
#include "base/json.h"
#include "base/support.h"

#include <locale.h>

static pare_status parse(cJSON **out, const char *text, pare_err *err)
{
    /* an exact malloc'ed copy: the sanitizer sees a read behind the end */
    const size_t n = strlen(text);
    char *copy = malloc(n ? n : 1);
    memcpy(copy, text, n);
    const pare_status st = pare_json_parse(out, copy, n, err);
    free(copy);
    return st;
}

static void what_is_not_json_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char *const bad[][2] = {
        {"", "line 1, column 1"},
        {"   ", "the text ends here"},
        {"{\"a\": 1,\n \"b\" 2}", "line 2, column 6: ':' is expected"},
        {"{\"a\": 1} x", "column 10: text after the end"},
        {"{} {}", "text after the end"},
        {"[1, 2", "',' or ']'"},
        {"{\"a\": 1", "',' or '}'"},
        {"[1,]", "a value is expected"},
        {"{\"a\": 1,}", "a string in double quotes"},
        {"{a: 1}", "a string in double quotes"},
        {"['a']", "a value is expected"},
        {"[01]", "',' or ']'"},
        {"[1.]", "a digit"},
        {"[.5]", "a value"},
        {"[-.5]", "a digit"},
        {"[+1]", "a value"},
        {"[1e]", "a digit"},
        {"[1e+]", "a digit"},
        {"[0x10]", "',' or ']'"},
        {"[NaN]", "a value"},
        {"[nul]", "a value"},
        {"[1e999]", "too large for a double"},
        {"{\"k\": -1e999}", "\"k\" is too large for a double"},
        {"[1234567890123456789012345678901234567890123456789012345678901234567890]",
         "too many digits"},
        {"[\"abc]", "string without end"},
        {"[\"a\nb\"]", "control character"},
        {"[\"\\x\"]", "unknown escape"},
        {"[\"\\u00g0\"]", "four hexadecimal"},
        {"[\"\\u0000\"]", "zero character"},
        {"[\"\\ud800x\"]", "surrogate"},
        {"[\"\\udc00\"]", "surrogate"},
        {"[\"\\ud800\\u0041\"]", "surrogate"},
        {"[\"\xff\"]", "UTF-8"},
        {"[\"\xc0\xaf\"]", "UTF-8"},
        {"[\"\xe2\x82\"]", "UTF-8"},
        {"[\"\xe2\x82", "UTF-8"},
        {"[\"\xf0", "UTF-8"},
        {"[\"\xe0\x80\x80\"]", "UTF-8"},
        {"[\"\xed\xa0\x80\"]", "UTF-8"},
        {"[\"\xf4\x90\x80\x80\"]", "UTF-8"},
        {"{\"a\": 1, \"b\": 2, \"a\": 3}", "\"a\" is given twice"},
        {"{\"x\": [{\"a\": 1, \"\\u0061\": 3}]}", "\"a\" is given twice"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pare_err err = {0};
        cJSON *root = (cJSON *)&err;
        assert_status(parse(&root, bad[i][0], &err), PARE_ERR_INPUT, &err);
        assert_null(root);
        assert_contains(err.msg, bad[i][1]);
    }
    pare_err err = {0};
    cJSON *root;
    assert_status(pare_json_parse(&root, "[1]\0", 4, &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_parse(&root, "[1", 2, NULL), PARE_ERR_INPUT, NULL);
}

static void nesting_has_a_limit(void **state)
{
    (void)state;
    pare_err err = {0};
    cJSON *root;
    char text[2 * PARE_JSON_MAX_DEPTH + 3] = {0};
    const size_t d = PARE_JSON_MAX_DEPTH;
    memset(text, '[', d);
    memset(text + d, ']', d);
    assert_ok(parse(&root, text, &err), &err);
    cJSON_Delete(root);
    memset(text, '[', d + 1);
    memset(text + d + 1, ']', d + 1);
    assert_status(parse(&root, text, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "nested too deeply");
    char *deep = malloc(1000000);
    memset(deep, '[', 1000000);
    assert_status(pare_json_parse(&root, deep, 1000000, &err), PARE_ERR_INPUT, &err);
    free(deep);
}

static void getters_give_values_or_name_the_key(void **state)
{
    (void)state;
    pare_err err = {0};
    cJSON *root;
    assert_ok(parse(&root,
                    "{\"n\": 1.5, \"i\": 9007199254740992, \"neg\": -1, \"half\": 0.5, "
                    "\"s\": \"text\", \"t\": true, \"z\": null, \"inf\": \"inf\", "
                    "\"u\": \"18446744073709551615\", \"big\": \"18446744073709551616\", "
                    "\"o\": {\"deep\": 3}, \"a\": [1, 2], \"N\": 7, \"minus\": \"-1\", "
                    "\"empty\": \"\", \"large\": 9007199254740994}",
                    &err),
              &err);
    double d = 0;
    size_t n = 0;
    uint64_t u = 0;
    bool b = false;
    const char *s = NULL;
    const cJSON *o = NULL, *a = NULL;
    assert_ok(pare_json_number(&d, root, "n", &err), &err);
    assert_true(d == 1.5);
    assert_ok(pare_json_number(&d, root, "N", &err), &err); /* keys differ by case */
    assert_true(d == 7);
    assert_ok(pare_json_bound(&d, root, "n", &err), &err);
    assert_true(d == 1.5);
    assert_ok(pare_json_bound(&d, root, "inf", &err), &err);
    assert_true(d == INFINITY);
    assert_ok(pare_json_size(&n, root, "i", &err), &err);
    assert_true(n == (size_t)1 << 53);
    assert_ok(pare_json_u64(&u, root, "u", &err), &err);
    assert_true(u == UINT64_MAX);
    assert_ok(pare_json_bool(&b, root, "t", &err), &err);
    assert_true(b);
    assert_ok(pare_json_string(&s, root, "s", &err), &err);
    assert_string_equal(s, "text");
    assert_ok(pare_json_object(&o, root, "o", &err), &err);
    assert_ok(pare_json_size(&n, o, "deep", &err), &err);
    assert_int_equal(n, 3);
    assert_ok(pare_json_array(&a, root, "a", &err), &err);
    assert_int_equal(cJSON_GetArraySize(a), 2);

    assert_status(pare_json_number(&d, root, "s", &err), PARE_ERR_INPUT, &err);
    assert_string_equal(err.msg, "key \"s\" must be a number");
    assert_status(pare_json_number(&d, root, "inf", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_number(&d, o, "gone", &err), PARE_ERR_INPUT, &err);
    assert_string_equal(err.msg, "key \"o.gone\" is missing; it must be a number");
    assert_status(pare_json_bound(&d, root, "s", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_size(&n, root, "neg", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_size(&n, root, "half", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_size(&n, root, "large", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_u64(&u, root, "big", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_u64(&u, root, "minus", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_u64(&u, root, "empty", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_u64(&u, root, "i", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_bool(&b, root, "n", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_string(&s, root, "n", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_object(&o, root, "a", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_array(&a, root, "o", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_array(&a, NULL, "o", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_number(&d, a, "0", NULL), PARE_ERR_INPUT, NULL);
    cJSON_Delete(root);
}

static void optional_keys_keep_the_default_but_not_a_wrong_type(void **state)
{
    (void)state;
    pare_err err = {0};
    cJSON *root;
    assert_ok(parse(&root, "{\"z\": null, \"s\": \"x\", \"n\": 2}", &err), &err);
    double d = 0.25;
    size_t n = 5;
    uint64_t u = 6;
    bool b = true;
    const char *s = "default";
    const cJSON *o = root, *a = root;
    const char *const absent[] = {"gone", "z"};
    for (size_t i = 0; i < 2; i++) {
        const char *k = absent[i];
        assert_false(pare_json_has(root, k));
        assert_ok(pare_json_number_opt(&d, root, k, &err), &err);
        assert_ok(pare_json_bound_opt(&d, root, k, &err), &err);
        assert_ok(pare_json_size_opt(&n, root, k, &err), &err);
        assert_ok(pare_json_u64_opt(&u, root, k, &err), &err);
        assert_ok(pare_json_bool_opt(&b, root, k, &err), &err);
        assert_ok(pare_json_string_opt(&s, root, k, &err), &err);
        assert_ok(pare_json_object_opt(&o, root, k, &err), &err);
        assert_ok(pare_json_array_opt(&a, root, k, &err), &err);
    }
    assert_true(d == 0.25 && n == 5 && u == 6 && b && o == root && a == root);
    assert_string_equal(s, "default");
    assert_ok(pare_json_number_opt(&d, root, "n", &err), &err);
    assert_ok(pare_json_size_opt(&n, root, "n", &err), &err);
    assert_ok(pare_json_string_opt(&s, root, "s", &err), &err);
    assert_true(d == 2 && n == 2 && s[0] == 'x');
    assert_status(pare_json_number_opt(&d, root, "s", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_u64_opt(&u, root, "n", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_bool_opt(&b, root, "s", &err), PARE_ERR_INPUT, &err);
    assert_status(pare_json_object_opt(&o, root, "s", &err), PARE_ERR_INPUT, &err);
    cJSON_Delete(root);
}

static void printing_is_canonical(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_arena *a = pare_arena_new();
    cJSON *root = cJSON_CreateObject(), *list, *inner;
    char *text;
    size_t n;
    assert_true(pare_json_add_string(root, "z", "q\"\\\n\t\x01\xc3\xa9/") &&
                pare_json_add_size(root, "a", 9007199254740992) &&
                pare_json_add_u64(root, "seed", UINT64_MAX) &&
                pare_json_add_bool(root, "yes", true) && pare_json_add_bool(root, "no", false) &&
                pare_json_add_null(root, "nil"));
    assert_non_null(list = pare_json_add_array(root, "list"));
    assert_true(pare_json_add_number(list, NULL, 0.1) &&
                pare_json_add_number(list, NULL, INFINITY) &&
                pare_json_add_number(list, NULL, -INFINITY) &&
                pare_json_add_number(list, NULL, -3) && pare_json_add_number(list, NULL, 1e300));
    assert_non_null(inner = pare_json_add_object(root, "inner"));
    assert_non_null(pare_json_add_array(inner, "empty"));
    assert_ok(pare_json_print(&text, &n, a, root, 0, &err), &err);
    assert_string_equal(text,
                        "{\"z\": \"q\\\"\\\\\\n\\t\\u0001\xc3\xa9/\", \"a\": 9007199254740992, "
                        "\"seed\": \"18446744073709551615\", \"yes\": true, \"no\": false, "
                        "\"nil\": null, \"list\": [0.1, \"inf\", \"-inf\", -3, 1e+300], "
                        "\"inner\": {\"empty\": []}}");
    assert_int_equal(n, strlen(text));
    cJSON *again;
    char *twice;
    assert_ok(parse(&again, text, &err), &err);
    assert_ok(pare_json_print(&twice, NULL, a, again, 0, &err), &err);
    assert_string_equal(text, twice);
    assert_ok(pare_json_print(&text, NULL, a, inner, 2, &err), &err);
    assert_string_equal(text, "{\n  \"empty\": []\n}");
    cJSON_AddItemToArray(list, cJSON_CreateNumber(NAN));
    assert_status(pare_json_print(&text, NULL, a, root, 0, &err), PARE_ERR_NONFINITE, &err);
    cJSON_Delete(again);
    cJSON_Delete(root);
    pare_arena_free(a);
}

static void every_double_comes_back_with_the_same_bits(void **state)
{
    (void)state;
    pare_err err = {0};
    const uint64_t seed = 99;
    pare_rng r = pare_rng_at(seed, 0);
    for (int i = 0; i < 20000; i++) {
        pare_arena *a = pare_arena_new();
        uint64_t bits = pare_rng_u64(&r);
        double v, back = 0;
        memcpy(&v, &bits, sizeof v);
        if (i < 6) v = (const double[]){0, -0.0, 5e-324, 0x1.fffffffffffffp1023, 0x1p53, 0.1}[i];
        if (!isfinite(v)) v = pare_rng_normal(&r);
        cJSON *root = cJSON_CreateObject(), *again;
        char *text;
        assert_true(pare_json_add_number(root, "v", v));
        assert_ok(pare_json_print(&text, NULL, a, root, 0, &err), &err);
        assert_true(strlen(text) <= 7 + 24 + 1); /* sign, 17 digits, point, exponent */
        assert_ok(parse(&again, text, &err), &err);
        assert_ok(pare_json_number(&back, again, "v", &err), &err);
        if (memcmp(&v, &back, sizeof v) != 0) fail_msg("seed 99, draw %d: %a is %a", i, v, back);
        cJSON_Delete(root);
        cJSON_Delete(again);
        pare_arena_free(a);
    }
}

/* A locale with a decimal comma is made for the test: images without one are common. */
static bool comma_locale_make(const char *dir)
{
    const char *source = "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\n"
                         "grouping 3;3\nEND LC_NUMERIC\n";
    char path[300], command[1000];
    test_write_file(test_path(path, dir, "source"), source, strlen(source));
    snprintf(command, sizeof command,
             "localedef -c -i '%s' -f UTF-8 '%s/xx_XX.utf8' >/dev/null 2>&1", path, dir);
    (void)!system(command); /* it warns, which is an exit code as well: the next line tells */
    setenv("LOCPATH", dir, 1);
    return setlocale(LC_NUMERIC, "xx_XX.utf8") && localeconv()->decimal_point[0] == ',';
}

static void a_comma_locale_changes_nothing(void **state)
{
    (void)state;
    char dir[200];
    test_mkdir(dir);
    if (!comma_locale_make(dir)) {
        test_rmdir(dir);
        SKIP("needs localedef to make a locale with a decimal comma");
    }
    char probe[8];
    snprintf(probe, sizeof probe, "%.1f", 0.5);
    assert_string_equal(probe, "0,5"); /* the locale is in force */
    pare_err err = {0};
    pare_arena *a = pare_arena_new();
    cJSON *root;
    char *text;
    double d = 0;
    assert_ok(parse(&root, "{\"v\": 1.25, \"w\": -1.5e-7}", &err), &err);
    assert_ok(pare_json_number(&d, root, "v", &err), &err);
    assert_true(d == 1.25);
    assert_ok(pare_json_print(&text, NULL, a, root, 0, &err), &err);
    setlocale(LC_NUMERIC, "C");
    test_rmdir(dir);
    assert_string_equal(text, "{\"v\": 1.25, \"w\": -1.5e-07}");
    cJSON_Delete(root);
    pare_arena_free(a);
}

static void files_are_read_and_named_in_messages(void **state)
{
    (void)state;
    pare_err err = {0};
    char dir[200], path[300];
    cJSON *root;
    test_mkdir(dir);
    test_write_file(test_path(path, dir, "c.json"), "{\"a\": 1}\n", 9);
    assert_ok(pare_json_read(&root, path, &err), &err);
    assert_true(pare_json_has(root, "a"));
    cJSON_Delete(root);
    test_write_file(path, "{\"a\" 1}\n", 8);
    assert_status(pare_json_read(&root, path, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, path);
    assert_status(pare_json_read(&root, dir, &err), PARE_ERR_IO, &err);
    test_rmdir(dir);
}

static void changed_bytes_never_crash(void **state)
{
    (void)state;
    const char *good = "{\"a\": [1.5e3, -2, {\"k\": \"v\\u00e9\\n\", \"t\": true}], \"b\": null, "
                       "\"\xc3\xa9\": \"\\ud83d\\ude00\"}";
    const size_t n = strlen(good);
    pare_rng r = pare_rng_at(5, 0);
    char *bad = malloc(n);
    for (int i = 0; i < 30000; i++) {
        cJSON *root;
        memcpy(bad, good, n);
        for (uint64_t k = 1 + pare_rng_below(&r, 4); k > 0; k--)
            bad[pare_rng_below(&r, n)] = (char)(uint8_t)pare_rng_u32(&r);
        const pare_status st = pare_json_parse(&root, bad, (size_t)pare_rng_below(&r, n + 1), NULL);
        /* The check and cJSON agree: what the check lets pass cJSON must build. */
        assert_true(st == PARE_OK || st == PARE_ERR_INPUT);
        cJSON_Delete(root);
    }
    free(bad);
}

/* Elsewhere a key given twice stays an error. */
static void of_a_vocabulary_the_last_of_equal_keys_counts(void **state)
{
    (void)state;
    static const char text[] =
        "{\"m\": {\"vocab\": {\"a\": 1, \"b\": 2, \"a\": 3, \"c\": 4, \"a\": 5}}}";
    static const char bad[] = "{\"vocab\": {\"a\": 1, \"a\": 2}, \"x\": {\"y\": 1, \"y\": 2}}";
    pare_err err = {0};
    cJSON *root;
    size_t twins = 9;
    assert_ok(pare_json_parse_vocab(&root, &twins, text, sizeof text - 1, "vocab", &err), &err);
    assert_int_equal(twins, 2);
    char *const left = cJSON_PrintUnformatted(root);
    assert_string_equal(left, "{\"m\":{\"vocab\":{\"b\":2,\"c\":4,\"a\":5}}}");
    cJSON_free(left);
    cJSON_Delete(root);
    assert_status(pare_json_parse_vocab(&root, &twins, bad, sizeof bad - 1, "vocab", &err),
                  PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "\"y\" is given twice");
    assert_ok(pare_json_parse_vocab(&root, &twins, "{\"a\": 1, \"a\": 2}", 16, "", &err), &err);
    assert_int_equal(twins, 1);
    cJSON_Delete(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_a_vocabulary_the_last_of_equal_keys_counts),
        cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(getters_give_values_or_name_the_key),
        cmocka_unit_test(optional_keys_keep_the_default_but_not_a_wrong_type),
        cmocka_unit_test(printing_is_canonical),
        cmocka_unit_test(every_double_comes_back_with_the_same_bits),
        cmocka_unit_test(a_comma_locale_changes_nothing),
        cmocka_unit_test(files_are_read_and_named_in_messages),
        cmocka_unit_test(changed_bytes_never_crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
