/* Memory runs out, or one allocation is refused, at every place of a report: a status, no leak and
 * no page. */
#include "report_files.h"
#include <fail_alloc.h>

static void without_memory_there_is_no_page(void **state)
{
    (void)state;
    report_files r;
    make_files(&r);
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        for (long n = 0; hit; n++) {
            pare_err err = {0};
            unlink(r.out);
            (once ? fail_alloc_once : fail_alloc_after)(n);
            const pare_status st = pare_report_write(
                r.out, r.list, REPORT_FILES, &(pare_report_opts)PARE_REPORT_OPTS_DEFAULT, &err);
            hit = fail_alloc_hit();
            fail_alloc_after(-1);
            if (st != (hit ? PARE_ERR_MEMORY : PARE_OK))
                fail_msg("allocation %ld%s: status %d, %s", n, once ? " alone" : "", (int)st,
                         err.msg);
            assert_true(pare_file_exists(r.out) == !st);
        }
    }
    test_rmdir(r.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory_there_is_no_page)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
