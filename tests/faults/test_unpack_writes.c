/* Every call that changes the disk fails once, at every place of an unpacking: the folder is whole or
 * it is not there; one that is replaced is whole or has no index. */
#include "fail_io.h"
#include <unpack_certs.h>

#include <errno.h>

static bool has(const unpack_certs *s, const char *name)
{
    char path[420];
    snprintf(path, sizeof path, "%s/%s", s->to, name);
    return pare_file_exists(path);
}

static void fail_each(unpack_certs *s, const char *cert, const char *last, bool replaced)
{
    const char *hit = "";
    for (long n = 0; hit; n++) {
        test_rmdir(s->to);
        if (replaced) assert_ok(unpack_once(s, cert, false), &s->err);
        fail_io_after(n, ENOSPC, false);
        const pare_status st = unpack_once(s, cert, replaced);
        hit = fail_io_hit();
        fail_io_after(-1, 0, false);
        /* When only the folder could not be synced, nothing is lost. */
        const bool whole = has(s, "unpacked.json") && has(s, "inputs.npz") && has(s, last);
        const bool gone = replaced ? !has(s, "unpacked.json") : !pare_file_exists(s->to);
        const bool unread = st == PARE_ERR_IO && whole && replaced; /* before anything was done */
        if (!(st == PARE_OK ? whole : st == PARE_ERR_IO && (gone || unread)))
            fail_msg("%s, call %ld (%s): status %d, %s", cert, n, hit ? hit : "none", (int)st,
                     s->err.msg);
        assert_true(n < 1000);
    }
}

static void a_failing_disk_leaves_a_whole_folder_or_none(void **state)
{
    (void)state;
    unpack_certs s;
    unpack_certs_make(&s);
    for (int replaced = 0; replaced < 2; replaced++) {
        fail_each(&s, s.cut, "output.safetensors", replaced);
        fail_each(&s, s.length, "attention.npz", replaced);
    }
    test_rmdir(s.dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_disk_leaves_a_whole_folder_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
