/* Tests src/length/pipe.c, child_process.c: an allocation that is refused anywhere is a status, no
 * leak and no process left; calls that the program cannot take never reach it. */
#include "../support/fail_alloc.h"
#include "length/backend.h"
#include <pare_test.h>
#include <sys/wait.h>

enum { M = 4, D = 2 };
static const char command[] = "exec /usr/bin/python3 tests/peers/faulty.py none";

typedef struct numbers {
    float q[M * D], k[M * D], v[M * D], y[M * D];
} numbers;

static pare_call plain_call(numbers *x, uint32_t n)
{
    return (pare_call){
        .kind = PARE_CALL_QKV,
        .u.a = {.q = x->q, .k = x->k, .v = x->v, .n = n, .dk = D, .dv = D, .y = x->y}};
}

static pare_status one_round(numbers *x, pare_err *err)
{
    const pare_pipe_opts o = {.command = command, .length = M, .dtype = PARE_F32};
    const pare_call c = plain_call(x, M);
    pare_oracle orc = {0};
    pare_status st = pare_oracle_pipe(&orc, &o, err);
    if (!st) st = orc.ops->evaluate(orc.self, &c, 1, err);
    if (!st) st = orc.ops->barrier(orc.self, err);
    pare_oracle_free(&orc);
    return st;
}

static void a_refused_allocation_leaves_nothing_behind(void **state)
{
    numbers x = {.v = {1, 2, 3, 4, 5, 6, 7, 8}};
    bool hit = true;
    (void)state;
    for (long n = 0; hit; n++) {
        pare_err err = {0};
        fail_alloc_once(n);
        const pare_status st = one_round(&x, &err);
        hit = fail_alloc_hit();
        fail_alloc_after(-1);
        if (st != (hit ? PARE_ERR_MEMORY : PARE_OK))
            fail_msg("allocation %ld: status %d, %s", n, (int)st, err.msg);
        assert_true(waitpid(-1, NULL, WNOHANG) < 0); /* no child, running or dead */
        assert_true(n < 1000);
    }
    assert_near(x.y[0], 4, 1e-6); /* equal weights: the mean */
    assert_near(x.y[2 * M - 1], 5, 1e-6);
}

static void calls_it_cannot_take_do_not_reach_it(void **state)
{
    numbers x = {0};
    pare_err err = {0};
    pare_oracle orc;
    pare_oracle_caps caps;
    const pare_pipe_opts o = {.command = command, .length = M - 1, .dtype = PARE_F32};
    (void)state;
    assert_ok(pare_oracle_pipe(&orc, &o, &err), &err);
    orc.ops->caps(orc.self, &caps);
    assert_int_equal(caps.max_len, M - 1);
    pare_call calls[] = {plain_call(&x, 1), plain_call(&x, M)};
    assert_status(orc.ops->evaluate(orc.self, calls, 2, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "at most 3");
    calls[1] = plain_call(&x, 1);
    calls[1].u.a.bias = x.v;
    assert_status(orc.ops->evaluate(orc.self, calls, 2, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "a bias");
    calls[1] = (pare_call){.kind = PARE_CALL_PARTIAL};
    assert_status(orc.ops->evaluate(orc.self, calls, 2, &err), PARE_ERR_INPUT, &err);
    assert_ok(orc.ops->evaluate(orc.self, calls, 1, &err), &err); /* it has heard of none */
    pare_oracle_free(&orc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_allocation_leaves_nothing_behind),
        cmocka_unit_test(calls_it_cannot_take_do_not_reach_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
