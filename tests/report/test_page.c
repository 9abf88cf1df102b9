/* Strings of files stay text on the page: whatever is in them, tags and attributes are the same. */
#include "report/report_write.h"
#include "report_files.h"

/* Markup, quotes of both kinds, and bytes that change what a terminal or a reader sees. */
static const char *const hostile[] = {
    "\"><script>alert(1)</script><!--",
    "' onmouseover='alert(1)' x=\"1\" </title></style></svg>&lt;b&gt;",
    "a\nb\x1b[31m\x01\x7f\xc2\x9b\xe2\x80\xae \"quoted\" <i>",
    "%s%n|%.*s{word}",
};
static const char harmless[] = "a word";

static char *read_text(const char *path, pare_arena *a)
{
    char *text = NULL;
    size_t n;
    pare_err err;
    assert_ok(pare_text_read(&text, &n, a, path, &err), &err);
    return text;
}

static void write_text(const char *path, const char *text)
{
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Tags with the names of their attributes: what a parser would take for markup. Text between tags
 * and values between double quotes are left out, and so is the style sheet. */
static char *skeleton(const char *page, pare_arena *a)
{
    char *const out = pare_alloc(a, strlen(page) + 1, 1);
    size_t n = 0;
    bool tag = false, quoted = false;
    assert_non_null(out);
    for (const char *p = strstr(page, "</style>"); *p; p++) {
        if (!tag && *p == '<') tag = true;
        if (tag && *p == '"') quoted = !quoted;
        if (tag && !quoted) out[n++] = *p;
        if (tag && !quoted && *p == '>') tag = false;
    }
    assert_false(tag || quoted);
    out[n] = '\0';
    return out;
}

static void no_control_bytes(const char *page)
{
    for (const unsigned char *p = (const unsigned char *)page; *p; p++)
        if ((*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f ||
            (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) || memcmp(p, "\xe2\x80\xae", 3) == 0)
            fail_msg("byte %02x on the page", *p);
}

static pare_status refuses(void *self, const char *path, const pare_cert *cert, const cJSON *length,
                           pare_err *err)
{
    (void)path, (void)cert, (void)length;
    return self ? pare_fail(err, PARE_ERR_VERIFY, "%s", (const char *)self) : PARE_OK;
}

/* NULL: the files were refused. */
static char *page_of(const report_files *r, const pare_report_opts *o, pare_arena *a)
{
    pare_err err;
    pare_report_opts opts = *o;
    opts.overwrite = true;
    const pare_status st = report_write(r->out, r->list, REPORT_FILES, &opts,
                                        o->verify ? refuses : NULL, o->self, &err);
    return st ? NULL : read_text(r->out, a);
}

static void check_same(const char *page, const char *plain, const char *what, pare_arena *a)
{
    assert_null(strstr(page, "<script"));
    assert_null(strstr(page, "<!--"));
    no_control_bytes(page);
    const char *const x = skeleton(page, a), *const y = skeleton(plain, a);
    size_t i = 0;
    while (x[i] && x[i] == y[i]) i++;
    if (x[i] != y[i]) fail_msg("%s: the markup changed: ...%.60s", what, x + i);
}

/* ---- every string of every file ---------------------------------------------------------------
 */

/* The n-th string below `at`, in the order of the file; NULL: there are fewer. */
static cJSON *string_at(cJSON *at, size_t *n)
{
    for (cJSON *c = at->child; c; c = c->next) {
        if (cJSON_IsString(c) && (*n)-- == 0) return c;
        cJSON *const below = string_at(c, n);
        if (below) return below;
    }
    return NULL;
}

/* The page with string n of file `at` replaced. */
static char *page_with(const report_files *r, size_t at, size_t n, const char *word, bool *done,
                       pare_arena *a)
{
    cJSON *root = NULL;
    char *text, *page = NULL;
    pare_err err;
    assert_ok(pare_json_read(&root, r->file[at], &err), &err);
    cJSON *const v = string_at(root, &n);
    *done = v == NULL;
    if (v) {
        char *const before = read_text(r->file[at], a);
        assert_non_null(cJSON_SetValuestring(v, word));
        assert_ok(pare_json_print(&text, NULL, a, root, 0, &err), &err);
        write_text(r->file[at], text);
        page = page_of(r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
        write_text(r->file[at], before);
    }
    cJSON_Delete(root);
    return page;
}

static void strings_of_files_are_not_markup(void **state)
{
    (void)state;
    report_files r;
    size_t shown = 0, tried = 0;
    make_files(&r);
    for (size_t at = 0; at <= REPORT_FILES; at++) {
        bool done = !strstr(r.file[at], ".json");
        for (size_t n = 0; !done; n++)
            for (size_t k = 0; k < sizeof hostile / sizeof *hostile && !done; k++, tried++) {
                pare_arena *const a = pare_arena_new();
                const char *const page = page_with(&r, at, n, hostile[k], &done, a);
                const char *const plain = page ? page_with(&r, at, n, harmless, &done, a) : NULL;
                if (page && plain) check_same(page, plain, r.file[at], a);
                shown += page && strstr(page, k == 0 ? "alert(1)" : "}");
                pare_arena_free(a);
            }
    }
    print_message("%zu pages, %zu of them with the word on it\n", tried, shown);
    assert_true(tried > 250 && shown > 60);
    test_rmdir(r.dir);
}

/* ---- certificates, whose words must be consistent ---------------------------------------------
 */

static void strings_of_certificates_are_not_markup(void **state)
{
    (void)state;
    report_files r;
    make_files(&r);
    for (size_t k = 0; k < sizeof hostile / sizeof *hostile; k++)
        for (size_t verdict = 0; verdict < 3; verdict++) {
            pare_arena *const a = pare_arena_new();
            pare_report_opts o = {.title = hostile[k], .verify = verdict > 0};
            if (verdict == 2) o.self = (char *)hostile[k];
            put_cert(r.file[0], hostile[k]);
            const char *const page = page_of(&r, &o, a);
            put_cert(r.file[0], harmless);
            const char *const plain = page_of(&r, &o, a);
            assert_non_null(page);
            assert_non_null(plain);
            if (k == 0) assert_contains(page, "&lt;script&gt;alert(1)");
            check_same(page, plain, "certificate", a);
            pare_arena_free(a);
        }
    test_rmdir(r.dir);
}

/* ---- names of files, and the command of a log -------------------------------------------------
 */

static void names_of_files_are_not_markup(void **state)
{
    (void)state;
    report_files r;
    pare_arena *const a = pare_arena_new();
    make_files(&r);
    const char *const plain = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    for (size_t i = 0; i < REPORT_FILES; i++) {
        char path[260];
        const char *const end = strstr(strrchr(r.file[i], '/'), ".");
        snprintf(path, sizeof path, "%s/\"><script>x<!--\x1b[2J\n'%zu%s", r.dir, i, end);
        if (i == 4) continue; /* the plan that a certificate names */
        assert_int_equal(rename(r.file[i], path), 0);
        snprintf(r.file[i], sizeof r.file[i], "%s", path);
    }
    char run[260];
    snprintf(run, sizeof run, "%s/\"><script>x<!--\x1b[2J\n'0.st.run.json", r.dir);
    assert_int_equal(rename(r.file[RUN_FILE], run), 0);
    const char *const page = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    assert_non_null(page);
    check_same(page, plain, "names", a);
    pare_arena_free(a);
    test_rmdir(r.dir);
}

static void the_command_of_a_log_is_not_markup(void **state)
{
    (void)state;
    report_files r;
    make_files(&r);
    pare_arena *const a = pare_arena_new();
    const char *const plain = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    const char *const rest = strstr(log_text, "setting,");
    const char *const text = pare_sprintf(
        a, "# pare train log 1\n# command: \"><script>alert(1)</script>\x1b[2J\xff\n%s", rest);
    write_text(r.file[3], text);
    const char *const page = page_of(&r, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, a);
    assert_non_null(page);
    assert_contains(page, "&quot;&gt;&lt;script&gt;alert(1)");
    check_same(page, plain, "log", a);
    pare_arena_free(a);
    test_rmdir(r.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_of_files_are_not_markup),
        cmocka_unit_test(strings_of_certificates_are_not_markup),
        cmocka_unit_test(names_of_files_are_not_markup),
        cmocka_unit_test(the_command_of_a_log_is_not_markup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
