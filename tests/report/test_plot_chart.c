/* Axes of a chart whatever its values are: few ticks, at places that are numbers, and an end. */
#include "report_files.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const char curve_text[] =
    "{\"repro\":{\"name\":\"width\",\"tables\":[{\"name\":\"T\",\"about\":\"\",\"rows\":[]}],"
    "\"curves\":[{\"table\":\"T\",\"data\":\"d\",\"what\":\"w\",\"x\":[%s],\"y\":[%s]}]}}\n";

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    while ((text = strstr(text, word))) n++, text++;
    return n;
}

/* Every attribute of the picture that has a figure has a finite one. */
static void check_page(const char *text, const char *x, const char *y)
{
    static const char *const never[] = {"\"nan", "\"-nan", "\"inf", "\"-inf",
                                        " nan",  "Lnan",   "Mnan"};
    const size_t lines = count(text, "<line class=\"axis\"");
    if (lines < 2 || lines > 18) fail_msg("x %s, y %s: %zu ticks", x, y, lines);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(text, never[i])) fail_msg("x %s, y %s: %s in the picture", x, y, never[i]);
}

static void every_axis_has_few_ticks(void **state)
{
    (void)state;
    char ulp1[80], ulp16[80], ulp300[80];
    snprintf(ulp1, sizeof ulp1, "%.17g,%.17g", 1.0, 1.0 + DBL_EPSILON);
    snprintf(ulp16, sizeof ulp16, "%.17g,%.17g", 1e16, 1e16 + 2);
    snprintf(ulp300, sizeof ulp300, "%.17g,%.17g", 1e300, 1e300 * (1 - DBL_EPSILON));
    const char *const values[] = {
        "1,2",
        ulp1,
        ulp16,
        ulp300,
        "5,5",
        "0,0",
        "-7,-7",
        "0,5e-324",
        "5e-324,5e-324",
        "5e-324,1",
        "2e-308,3e-308",
        "-1.7e308,1.7e308",
        "1.7e308,1.7e308",
        "-1e300,1e300",
        "1e-300,1e300",
        "null,null",
        "\"inf\",\"-inf\"",
        "null,3",
        "1e15,1000000000000001",
        "0.1,0.10000000000000002",
        "1e-20,2e-20",
    };
    char dir[200], path[260], out[260];
    test_mkdir(dir);
    snprintf(path, sizeof path, "%s/repro.json", dir);
    snprintf(out, sizeof out, "%s/page.html", dir);
    const size_t n = sizeof values / sizeof *values;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++) {
            pare_arena *const a = pare_arena_new();
            const char *const list[] = {path};
            char *text = NULL;
            size_t bytes;
            pare_err err;
            FILE *const f = fopen(path, "w");
            assert_non_null(f);
            fprintf(f, curve_text, values[i], values[k]);
            assert_int_equal(fclose(f), 0);
            assert_ok(pare_report_write(out, list, 1, &(pare_report_opts){.overwrite = true}, &err),
                      &err);
            assert_ok(pare_text_read(&text, &bytes, a, out, &err), &err);
            check_page(text, values[i], values[k]);
            pare_arena_free(a);
        }
    test_rmdir(dir);
}

/* The largest tick that stands at the left of a picture of a training log with this metric. */
static double largest_tick(const char *metric)
{
    char dir[200], path[260], out[260];
    pare_arena *const a = pare_arena_new();
    char *text = NULL;
    size_t bytes;
    pare_err err;
    double most = 0;
    test_mkdir(dir);
    snprintf(path, sizeof path, "%s/log.csv", dir);
    snprintf(out, sizeof out, "%s/page.html", dir);
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "# pare train log 1\n# metric: %s, more is better\n", metric);
    fprintf(f, "0,0,1,0.5,0.1,1,1,1,1\n0,0,2,0.5,0.1,1,1,1,1\n");
    assert_int_equal(fclose(f), 0);
    const char *const list[] = {path};
    assert_ok(pare_report_write(out, list, 1, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, &err),
              &err);
    assert_ok(pare_text_read(&text, &bytes, a, out, &err), &err);
    /* The second picture: the loss is in the first. */
    const char *at = strstr(text, "on the validation part</figcaption>");
    assert_non_null(at);
    while ((at = strstr(at, "text-anchor=\"end\">"))) most = fmax(most, atof(at += 18));
    pare_arena_free(a);
    test_rmdir(dir);
    return most;
}

static void an_accuracy_ends_at_1(void **state)
{
    (void)state;
    assert_true(largest_tick("accuracy") == 1);
    assert_true(largest_tick("auc") == 1);
    assert_true(largest_tick("nats") > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_axis_has_few_ticks),
                                       cmocka_unit_test(an_accuracy_ends_at_1)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
