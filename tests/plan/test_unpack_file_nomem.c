/* Memory runs out, or one allocation is refused, at every place of an unpacking: a status, and no
 * folder. */
#include <fail_alloc.h>
#include <unpack_certs.h>

static void refuse_each(unpack_certs *s, const char *cert)
{
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        for (long n = 0; hit; n++) {
            (once ? fail_alloc_once : fail_alloc_after)(n);
            const pare_status st = unpack_once(s, cert, false);
            hit = fail_alloc_hit();
            fail_alloc_after(-1);
            if (st != (hit ? PARE_ERR_MEMORY : PARE_OK) || pare_file_exists(s->to) == hit)
                fail_msg("%s, allocation %ld%s: status %d, %s", cert, n, once ? " alone" : "",
                         (int)st, s->err.msg);
            assert_true(n < 100000);
        }
        test_rmdir(s->to);
    }
}

static void without_memory_there_is_a_status_and_no_folder(void **state)
{
    (void)state;
    unpack_certs s;
    unpack_certs_make(&s);
    refuse_each(&s, s.cut);
    refuse_each(&s, s.length);
    test_rmdir(s.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_a_status_and_no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
