/* Tests src/report/card_repro.c: what a paper prints and what else a row is compared with stand in
 * columns of their own, and only rows that name their class are counted. */
#include "report_files.h"

static const struct {
    const char *what, *rest, *printed, *compared;
} rows[] = {
    {"number", "\"published\":3.5,\"class\":\"printed in the paper\",\"verdict\":\"differs\"",
     "3.5", ""},
    {"claim", "\"claim\":\"a < b\",\"class\":\"printed in the paper\",\"verdict\":\"not decided\"",
     "<span class=\"claim\">a &lt; b</span>", ""},
    {"audit", "\"reference\":6.5,\"class\":\"own reference\",\"verdict\":\"agrees\"", "", "6.5"},
    {"plan", "\"reference\":5.5,\"class\":\"self-consistency\",\"verdict\":\"holds\"", "", "5.5"},
    /* a file of 0.1: nobody knows whose number it is */
    {"older", "\"published\":4.5,\"verdict\":\"reproduced\"", "", "4.5"},
};
enum { ROWS = sizeof rows / sizeof *rows };

static void write_study(const char *path, const char *name)
{
    FILE *const f = fopen(path, "w");
    assert_non_null(f);
    fprintf(f, "{\"repro\":{\"name\":\"%s\",\"tables\":[{\"name\":\"T\",\"about\":\"\",\"rows\":[",
            name);
    for (size_t i = 0; i < ROWS; i++)
        fprintf(f, "%s{\"data\":\"d\",\"what\":\"%s\",\"ours\":7.5,\"note\":\"\",%s}", i ? "," : "",
                rows[i].what, rows[i].rest);
    fprintf(f, "]}]}}\n");
    assert_int_equal(fclose(f), 0);
}

static void a_number_stands_in_the_column_of_its_class(void **state)
{
    (void)state;
    char dir[200], one[260], two[260], out[260], cells[400];
    char *text = NULL;
    size_t bytes;
    pare_err err;
    pare_arena *const a = pare_arena_new();
    test_mkdir(dir);
    snprintf(one, sizeof one, "%s/one.json", dir);
    snprintf(two, sizeof two, "%s/two.json", dir);
    snprintf(out, sizeof out, "%s/page.html", dir);
    write_study(one, "width");
    write_study(two, "depth");
    const char *const list[] = {one, two};
    assert_ok(pare_report_write(out, list, 2, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, &err),
              &err);
    assert_ok(pare_text_read(&text, &bytes, a, out, &err), &err);
    for (size_t i = 0; i < ROWS; i++) {
        snprintf(cells, sizeof cells,
                 "data-l=\"what\"><div>%s</div></td>"
                 "<td class=\"n\" data-l=\"printed in the paper\"><div>%s</div></td>"
                 "<td class=\"n\" data-l=\"compared with\"><div>%s</div></td>"
                 "<td class=\"n\" data-l=\"pare\"><div>7.5</div></td>",
                 rows[i].what, rows[i].printed, rows[i].compared);
        assert_contains(text, cells);
    }
    /* Both studies together: two of each outcome that a row with a class names, no other. */
    assert_contains(text,
                    "<b>all</b></div></td>"
                    "<td data-l=\"printed in the paper\"><div>differs: 2; not decided: 2</div>"
                    "</td><td data-l=\"own reference\"><div>agrees: 2</div></td>"
                    "<td data-l=\"self-consistency\"><div>holds: 2</div></td>"
                    "<td data-l=\"ours\"><div></div></td>");
    pare_arena_free(a);
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_stands_in_the_column_of_its_class),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
