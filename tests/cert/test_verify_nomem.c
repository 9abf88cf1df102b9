/* Every allocation of writing, composing and verifying fails once: no crash, no leak, no verdict.
 */
#include "cert_toy.h"
#include <fail_alloc.h>

typedef struct job {
    toy t;
    pare_cert *link[2];
    const char *path;
} job;

static pare_status verify(job *j)
{
    const pare_verify_opts opts = toy_opts();
    return pare_cert_verify(j->path, &opts, &j->t.err);
}

static pare_status compose_and_write(job *j)
{
    static const char *const paths[] = {"a/1.json", "b/2.json"};
    pare_cert c;
    pare_arena *const a = pare_arena_new();
    if (!a) return PARE_ERR_MEMORY;
    pare_status st = pare_cert_compose(&c, a, j->path, j->link, paths, 2, &j->t.err);
    if (st == PARE_OK) st = pare_cert_write(&c, j->path, true, &j->t.err);
    pare_arena_free(a);
    return st;
}

/* Runs `work` with 0, 1, 2, ... allocations allowed, until none is refused any more. */
static long exhaust_when(job *j, pare_status (*work)(job *), void (*refuse)(long n))
{
    for (long n = 0;; n++) {
        refuse(n);
        const pare_status st = work(j);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        if (!hit) {
            assert_ok(st, &j->t.err);
            return n;
        }
        if (st != PARE_ERR_MEMORY)
            fail_msg("after %ld allocations: status %d (%s)", n, (int)st, j->t.err.msg);
    }
}

static long exhaust(job *j, pare_status (*work)(job *))
{
    const long n = exhaust_when(j, work, fail_alloc_after);
    return exhaust_when(j, work, fail_alloc_once) == n ? n : -1;
}

static void verifying_without_memory_is_no_verdict(void **state)
{
    (void)state;
    job j;
    toy_begin(&j.t);
    toy_save(&j.t, "f.pare", 0);
    toy_save(&j.t, "g.pare", 0.5);
    const pare_cert c = toy_cert(&j.t, "g.pare.cert.json", "f.pare", "g.pare", NULL, 42);
    toy_write(&j.t, &c, "g.pare.cert.json");
    j.path = toy_path(&j.t, "g.pare.cert.json");
    assert_true(exhaust(&j, verify) > 10);
    toy_end(&j.t);
}

static void composing_without_memory_writes_nothing(void **state)
{
    (void)state;
    job j;
    toy_begin(&j.t);
    j.link[0] = toy_made(&j.t, '1', '2');
    j.link[1] = toy_made(&j.t, '2', '3');
    j.path = toy_path(&j.t, "all.json");
    assert_true(exhaust(&j, compose_and_write) > 2);
    toy_end(&j.t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(verifying_without_memory_is_no_verdict),
        cmocka_unit_test(composing_without_memory_writes_nothing),
    };
    fail_alloc_in_json();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
