/* What a page says about its files, and what it refuses. */
#include "report/report_write.h"
#include "report_files.h"

static char *read_page(const char *path, pare_arena *a)
{
    char *text = NULL;
    size_t n;
    pare_err err;
    assert_ok(pare_text_read(&text, &n, a, path, &err), &err);
    return text;
}

static pare_status says(void *self, const char *path, const pare_cert *cert, const cJSON *length,
                        pare_err *err)
{
    (void)path;
    assert_true(!cert == !!length);
    const pare_status st = *(const pare_status *)self;
    return st ? pare_fail(err, st, "proven: claimed 1, but it is <2>") : PARE_OK;
}

static char *page_of(const report_files *r, const pare_report_opts *o, pare_arena *a)
{
    pare_err err;
    assert_ok(
        report_write(r->out, r->list, REPORT_FILES, o, o->verify ? says : NULL, o->self, &err),
        &err);
    return read_page(r->out, a);
}

static void every_figure_is_on_the_page(void **state)
{
    (void)state;
    static const char *const words[] = {"before 0.9",
                                        "No bound holds for all inputs (inf).",
                                        "75 %",
                                        "1.5",
                                        "0.001",
                                        "at least 0.75",
                                        "ball of radius 0.5 in the 2-norm: outputs",
                                        "Formulas as a paper prints them: not sound",
                                        "pare width a.st -o small.st",
                                        "clusters &lt;all&gt;",
                                        "Theorem 3.3",
                                        "false as printed",
                                        "1.4 &plusmn; 0.1",
                                        "setting 0, run 1",
                                        "pare train --kind gpt",
                                        "collapsible",
                                        "width --dim 4",
                                        "6 % of the parameters",
                                        "0.375",
                                        "dim 2 &lt;fails&gt;",
                                        "not tried",
                                        "nobody asked",
                                        "Not verified by this page",
                                        "4 kB in place of 16 kB (25 %). Claimed, not verified: no "
                                        "output entry differs from the original&#39;s by more than "
                                        "0.25, on 64 random inputs.",
                                        "Written by pare ",
                                        "an EPYC of 1, 3 threads",
                                        "optional bounds of link 0 (fold)",
                                        "<span class=\"chip dim\">not all available</span>"};
    report_files r;
    pare_arena *a = pare_arena_new();
    make_files(&r);
    const char *text = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) assert_contains(text, words[i]);
    /* The run file is nobody's proof: each of its figures is marked, in the summary as well. */
    assert_contains(text, "<b>1,000</b><span class=\"dim small\">before 4,000 (4x smaller)</span>"
                          " <span class=\"chip dim\">not verified</span>");
    static const char *const starred[] = {">16 kB &rarr; 4 kB*<", ">0.9 &rarr; 0.89*<",
                                          ">4 &rarr; 1 ms*<",     "<div>0.25*</div>",
                                          "<div>0.125*</div>",    "data-l=\"inputs\"><div>64<"};
    for (size_t i = 0; i < sizeof starred / sizeof *starred; i++) assert_contains(text, starred[i]);
    assert_contains(text, "<span class=\"v\">0.125</span>");
    assert_contains(text, "<span class=\"v\">0.25</span>");
    pare_arena_free(a);
    test_rmdir(r.dir);
}

static size_t count(const char *text, const char *word)
{
    size_t n = 0;
    while ((text = strstr(text, word))) n++, text++;
    return n;
}

/* Statements that differ in a layer alone share a table: the norm is said once. */
static void statements_of_a_kind_share_a_table(void **state)
{
    (void)state;
    static const char *const rows[] = {"<div>layer 0</div>", "<div>at most 0.625</div>",
                                       "layer 1</div>", "layer 2</div>", "at most 1.125"};
    report_files r;
    pare_arena *a = pare_arena_new();
    make_files(&r);
    const char *const text = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    assert_int_equal(count(text, "over the attention weights"), 1);
    assert_contains(text, "<p class=\"small\">Attention weights, per layer</p>");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) assert_contains(text, rows[i]);
    pare_arena_free(a);
    test_rmdir(r.dir);
}

/* The top counts what is on the page, the summary has a row for each cut and each plan, and errors
 * in another norm than the first are marked. */
static void results_are_counted_and_norms_told_apart(void **state)
{
    (void)state;
    static const char *const words[] = {
        "This page shows 2 results with their certificates, 1 length plan, 1 probe, 1 set of "
        "tables, 1 training log. ",
        "<div>0.25*</div>",
        "<div>0.02001* <span class=\"dim\">[2]</span></div>",
        "<div>0.01* <span class=\"dim\">[2]</span></div>",
        "Error: largest absolute difference over the output entries; where marked [2]: largest "
        "difference. ",
        "<span class=\"dim\">5</span> <a href=\"#box5\">",
        "<span class=\"chip dim\">none</span>",
        ">4 &rarr; 1 ms*<br><span class=\"dim small\">4x faster<"};
    report_files r;
    pare_arena *a = pare_arena_new();
    pare_status answer = PARE_ERR_VERIFY;
    make_files(&r);
    const char *text = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) assert_contains(text, words[i]);
    text = page_of(&r, &(pare_report_opts){.overwrite = true, .verify = true, .self = &answer}, a);
    assert_contains(text, "This page shows 2 refuted certificates, 1 length plan, ");
    pare_arena_free(a);
    test_rmdir(r.dir);
}

/* An axis says that it is logarithmic, and its ticks enclose its points (0.5 and 5). */
static void logarithmic_axes_say_so(void **state)
{
    (void)state;
    report_files r;
    pare_arena *a = pare_arena_new();
    make_files(&r);
    const char *const text = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    char *const plot = strstr(text, "<figcaption>Width: error against size");
    assert_non_null(plot);
    *strstr(plot, "</svg>") = 0;
    static const char *const words[] = {"largest change of an output entry (logarithmic)<",
                                        "parameters of the result (logarithmic)<",
                                        "text-anchor=\"end\">0.1<", "text-anchor=\"end\">10<"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) assert_contains(plot, words[i]);
    pare_arena_free(a);
    test_rmdir(r.dir);
}

/* Times and sizes that round to the same are called so. */
static void what_rounds_to_the_same_is_called_so(void **state)
{
    (void)state;
    report_files r;
    pare_arena *a = pare_arena_new();
    make_files(&r);
    put_file(r.file[RUN_FILE], r.dir, "small.st.run.json",
             "{\"input\":{\"sha256\":\"%1$s\"},\"output\":{\"sha256\":\"%1$s\"},"
             "\"time_ms\":{\"before\":1,\"after\":1.0045}}");
    const char *const text = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    assert_contains(text, "before 1 (the same)");
    assert_null(strstr(text, "1x slower"));
    pare_arena_free(a);
    test_rmdir(r.dir);
}

/* Words of files never become markup, and nothing is fetched. */
static void the_page_is_closed_in_itself(void **state)
{
    (void)state;
    static const char *const never[] = {
        "<script", "http:", "https:", " src=", "@import", "a<b>", "url("};
    report_files r;
    pare_arena *a = pare_arena_new();
    make_files(&r);
    const char *text = page_of(&r, &(pare_report_opts){.title = "a <b> & c"}, a);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(text, never[i])) fail_msg("'%s' is on the page", never[i]);
    assert_contains(text, "a&lt;b&gt;&amp;&#39;.st");
    assert_contains(text, "<title>a &lt;b&gt; &amp; c</title>");
    pare_arena_free(a);
    test_rmdir(r.dir);
}

/* A probe of the same model says that outputs are at most 10: a bound of 900 says nothing. A bound
 * as large as the outputs is not vacuous, one above them is. */
static void bounds_above_the_outputs_are_called_vacuous(void **state)
{
    (void)state;
    report_files r;
    pare_arena *a = pare_arena_new();
    pare_err err;
    make_files(&r);
    assert_int_equal(count(page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a),
                           "class=\"tier vacuous\""),
                     2);
    assert_ok(pare_report_write(r.out, r.list, 1, &(pare_report_opts){.overwrite = true}, &err),
              &err);
    assert_int_equal(count(read_page(r.out, a), "class=\"tier vacuous\""), 1);
    /* Without a probe the run file may say it. */
    put_file(r.file[RUN_FILE], r.dir, "small.st.run.json",
             "{\"input\":{\"sha256\":\"%1$s\"},\"output\":{\"sha256\":\"%1$s\"},"
             "\"largest_output\":10}");
    assert_ok(pare_report_write(r.out, r.list, 1, &(pare_report_opts){.overwrite = true}, &err),
              &err);
    assert_int_equal(count(read_page(r.out, a), "class=\"tier vacuous\""), 2);
    static const char *const largest[] = {"900", "899.5"};
    for (size_t i = 0; i < 2; i++) {
        char run[400];
        snprintf(run, sizeof run,
                 "{\"input\":{\"sha256\":\"%%1$s\"},\"output\":{\"sha256\":\"%%1$s\"},"
                 "\"largest_output\":%s}",
                 largest[i]);
        put_file(r.file[RUN_FILE], r.dir, "small.st.run.json", run);
        assert_ok(pare_report_write(r.out, r.list, 1, &(pare_report_opts){.overwrite = true}, &err),
                  &err);
        assert_int_equal(count(read_page(r.out, a), "class=\"tier vacuous\""), 1 + i);
    }
    pare_arena_free(a);
    test_rmdir(r.dir);
}

static void the_verifier_is_quoted(void **state)
{
    (void)state;
    report_files r;
    pare_arena *a = pare_arena_new();
    pare_err err;
    make_files(&r);
    pare_status answer = PARE_OK;
    pare_report_opts o = {.overwrite = true, .verify = true, .self = &answer};
    assert_contains(page_of(&r, &o, a), "<span class=\"chip good\">verified</span>");
    answer = PARE_ERR_VERIFY;
    const char *const refuted = page_of(&r, &o, a);
    assert_contains(refuted, "claimed 1, but it is &lt;2&gt;");
    static const char *const names[] = {"/small.st.cert.json</h2>", "/length.cert.json</h2>"};
    for (size_t i = 0; i < 2; i++) {
        assert_contains(refuted, names[i]);
        const char *title = strstr(refuted, names[i]);
        while (*title != '<') title--;
        assert_memory_equal(title, "<h2>REFUTED: ", 13);
    }
    /* Nothing green, none of its figures, no bar; 1,000 parameters are the run file's. */
    static const char *const never[] = {"chip good",  "class=\"good\"", "class=\"tier",
                                        "<b>1,000<",  "labels",         ">verified</span",
                                        "the 2-norm", "Also",           "25 %"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strstr(refuted, never[i])) fail_msg("'%s' is on the page of a lie", never[i]);
    assert_contains(refuted, "<span class=\"chip bad\">refuted</span></div></td></tr>");
    assert_contains(refuted,
                    "It claims that the largest absolute difference over the output entries "
                    "is at most 0.25, on 64 random inputs.");
    assert_null(strstr(refuted, "proven 0"));
    answer = PARE_ERR_IO; /* the page that was there stays */
    assert_status(pare_report_write(r.out, r.list, REPORT_FILES, &o, &err), PARE_ERR_IO, &err);
    assert_contains(read_page(r.out, a), "claimed 1, but it is &lt;2&gt;");
    pare_arena_free(a);
    test_rmdir(r.dir);
}

/* Green is for what this page has seen proven; of the rest it says who claims it. */
static void nothing_is_green_unless_it_was_verified(void **state)
{
    (void)state;
    report_files r;
    pare_arena *a = pare_arena_new();
    make_files(&r);
    pare_status answer = PARE_OK;
    pare_report_opts o = {.overwrite = true};
    const char *text = page_of(&r, &o, a);
    assert_null(strstr(text, "chip good"));
    assert_null(strstr(text, "class=\"good\""));
    assert_null(strstr(text, "proven unchanged"));
    assert_null(strstr(text, "proven bound"));
    assert_null(strstr(text, "Also proven"));
    assert_contains(text, "labels claimed to be unchanged");
    assert_contains(text, "claimed bound");
    assert_contains(text, "said to hold");
    o.verify = true;
    o.self = &answer;
    text = page_of(&r, &o, a);
    /* Two certificates, on their cards and in the summary; no hypothesis, which nobody proves. */
    assert_int_equal(count(text, "chip good"), 4);
    assert_contains(text, "<span class=\"chip\">holds</span>");
    assert_contains(text, "<span class=\"chip dim\">not decided</span>");
    assert_contains(text, "labels proven unchanged");
    assert_null(strstr(text, "says the certificate"));
    pare_arena_free(a);
    test_rmdir(r.dir);
}

/* A run file of other models, or of none that it names, is not believed. */
static void figures_of_other_models_are_not_shown(void **state)
{
    (void)state;
    static const char *const from[] = {"\"input\":{\"sha256\":\"0", "\"output\":{\"sha256\":\"0",
                                       "\"output\":{\"sha256\""};
    static const char *const to[] = {"\"input\":{\"sha256\":\"1", "\"output\":{\"sha256\":\"1",
                                     "\"output\":{\"sha255\""};
    report_files r;
    pare_arena *a = pare_arena_new();
    make_files(&r);
    for (size_t i = 0; i < 3; i++) {
        char path[260];
        put_file(path, r.dir, "small.st.run.json", run_text);
        char *const text = read_page(path, a), *const at = strstr(text, from[i]);
        assert_non_null(at);
        memcpy(at, to[i], strlen(to[i]));
        FILE *const f = fopen(path, "w");
        assert_non_null(f);
        assert_true(fputs(text, f) >= 0);
        assert_int_equal(fclose(f), 0);
        const char *const page = page_of(&r, &(pare_report_opts){.overwrite = true}, a);
        assert_contains(page, "small.st.run.json are not shown: its");
        assert_null(strstr(page, "before 4,000"));
        assert_null(strstr(page, "25 %"));
        assert_null(strstr(page, "before 0.9"));
    }
    pare_arena_free(a);
    test_rmdir(r.dir);
}

static void other_files_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *name, *text, *says;
    } bad[] = {
        {"x.json", "{\"command\":\"eval\"}", "x.json: is no certificate, no plan"},
        {"y.json", "[1,", "y.json"},
        {"z.csv", "a,b\n1,2\n", "z.csv: is no log of pare train"},
        {"w.json", "{\"reduction\":\"width\"}", "w.json"},
        {"v.json", "{\"reduction\":3}", "v.json"},
        {"t.json", "{\"tables\":3}", "t.json: key \"tables\" must be an array"},
        {"u.json", "{\"tables\":[3]}", "u.json: key \"tables\" must be a list of objects"},
        {"p.json", "{\"probe\":[]}", "p.json: key \"probe\" must be an object"},
        {"l.csv", "# pare train log 1\n0,0,1,x,1,1,,,\n", "l.csv: line 2 must be 9 numbers"},
        {"m.csv", "# pare train log 1\n0,0,1,2,1,1,,\n", "m.csv: line 2 must be 9 numbers"},
    };
    report_files r;
    pare_err err;
    make_files(&r);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char path[260];
        put_file(path, r.dir, bad[i].name, bad[i].text);
        const char *const list[] = {r.file[0], path};
        assert_status(
            pare_report_write(r.out, list, 2, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, &err),
            PARE_ERR_INPUT, &err);
        assert_contains(err.msg, bad[i].says);
        assert_false(pare_file_exists(r.out));
    }
    test_rmdir(r.dir);
}

/* ---- values of another type ------------------------------------------------------------------ */

/* The n-th value below `at`, in the order of the file; NULL: there are fewer. */
static cJSON *value_at(cJSON *at, size_t *n)
{
    for (cJSON *c = at->child; c; c = c->next) {
        if ((*n)-- == 0) return c;
        cJSON *const below = value_at(c, n);
        if (below) return below;
    }
    return NULL;
}

/* A value that nobody could take for it; what is null may be anything. */
static bool spoil(cJSON *v)
{
    static char word[] = "neither here nor there";
    if (cJSON_IsNull(v)) return false;
    const bool number = cJSON_IsNumber(v) || (v->valuestring && strcmp(v->valuestring, "inf") == 0);
    cJSON_Delete(v->child);
    free(v->valuestring);
    v->child = NULL;
    v->valuestring = number ? strdup(word) : NULL;
    v->type = number ? cJSON_String : cJSON_Number;
    v->valuedouble = 3;
    return true;
}

static void write_text(const char *path, const char *text)
{
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Value n of file `at` spoilt: refused with the name of the file, or the page has never shown it.
 * False: there is no such value. */
static bool refused_or_not_read(const report_files *r, size_t at, size_t n, const char *page,
                                pare_arena *a)
{
    cJSON *root = NULL;
    char *text;
    pare_err err;
    assert_ok(pare_json_read(&root, r->file[at], &err), &err);
    cJSON *const v = value_at(root, &n);
    const char *const path = r->file[at];
    if (v && spoil(v)) {
        assert_ok(pare_json_print(&text, NULL, a, root, 0, &err), &err);
        char *const before = read_page(path, a);
        write_text(path, text);
        const pare_status st = pare_report_write(r->out, r->list, REPORT_FILES,
                                                 &(pare_report_opts){.overwrite = true}, &err);
        if (st)
            assert_contains(err.msg, strrchr(path, '/') + 1);
        else if (strcmp(read_page(r->out, a), page) != 0)
            fail_msg("%s: \"%s\" of another type changed the page", path,
                     v->string ? v->string : "");
        write_text(path, before);
    }
    cJSON_Delete(root);
    return v != NULL;
}

static void values_of_another_type_are_refused(void **state)
{
    (void)state;
    report_files r;
    pare_arena *const a = pare_arena_new();
    make_files(&r);
    const char *const page = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    size_t count = 0;
    for (size_t at = 0; at <= REPORT_FILES; at++) {
        const char *const end = strrchr(r.file[at], '.');
        for (size_t n = 0; strcmp(end, ".json") == 0; n++, count++) {
            const pare_mark mark = pare_arena_mark(a);
            if (!refused_or_not_read(&r, at, n, page, a)) break;
            pare_arena_reset(a, mark);
        }
    }
    print_message("%zu values\n", count);
    assert_true(count > 150);
    test_rmdir(r.dir);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure_is_on_the_page),
        cmocka_unit_test(statements_of_a_kind_share_a_table),
        cmocka_unit_test(results_are_counted_and_norms_told_apart),
        cmocka_unit_test(logarithmic_axes_say_so),
        cmocka_unit_test(what_rounds_to_the_same_is_called_so),
        cmocka_unit_test(the_page_is_closed_in_itself),
        cmocka_unit_test(bounds_above_the_outputs_are_called_vacuous),
        cmocka_unit_test(the_verifier_is_quoted),
        cmocka_unit_test(nothing_is_green_unless_it_was_verified),
        cmocka_unit_test(figures_of_other_models_are_not_shown),
        cmocka_unit_test(other_files_are_refused_by_name),
        cmocka_unit_test(values_of_another_type_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
