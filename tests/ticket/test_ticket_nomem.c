/* Tests src/ticket/{ticket,matrix,merged,relu_layers,fit*,column}.c and src/model/coded*.c when
 * memory is out: a status, no leak, no ticket. */
#include "pare_test.h"
#include "fail_alloc.h"
#include "ticket/ticket_internal.h"
#include <pare/pare.h>

/* How many allocations there are: each was refused, alone. `step`: not all of them are tried. */
static long refuse(const pare_model *m, const pare_ticket_opts *o, long step)
{
    long refused = 0, hits = 0;
    for (;; refused += step) {
        pare_model *t = NULL;
        pare_ticket_report r;
        pare_err err = {0};
        fail_alloc_once(refused);
        const pare_status st = pare_ticket(&t, &r, m, o, NULL, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        if (st != (hit ? PARE_ERR_MEMORY : PARE_OK) || (t != NULL) != (st == PARE_OK))
            fail_msg("allocation %ld: status %d, %s", refused, (int)st, err.msg);
        pare_model_free(t);
        if (!hit) return hits;
        hits++;
    }
}

static void every_refused_allocation_is_said(void **state)
{
    (void)state;
    pare_model *m = NULL;
    pare_inputs set;
    pare_arena *const a = pare_arena_new();
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.dim = 4, o.heads = 2, o.layers = 1, o.ffn = 3, o.vocab = 3, o.context = 3;
    assert_ok(pare_random_model(&m, &o, NULL), NULL);
    assert_ok(pare_inputs_random(&set, a, m, 1, 3, 1, NULL), NULL);
    for (int mode = PARE_TICKET_FACTORED; mode <= PARE_TICKET_MERGED; mode++)
        for (int method = 0; pare_ticket_method_names[method]; method++) {
            pare_ticket_opts t = PARE_TICKET_OPTS;
            t.bits = 3;
            if (method == PARE_TICKET_FEEDBACK) t.fit = &set, t.stored = 2;
            t.mode = (pare_ticket_mode)mode;
            t.method = (pare_ticket_method)method;
            const long n = refuse(m, &t, 7);
            print_message("%ld allocations refused\n", n);
            assert_true(n > 20);
        }
    pare_model_free(m);
    o.kind = PARE_RANDOM_GRAPH; /* ReLU */
    assert_ok(pare_random_model(&m, &o, NULL), NULL);
    for (int method = 0; method < 2; method++) {
        pare_ticket_opts t = PARE_TICKET_OPTS;
        t.bits = 3;
        t.mode = PARE_TICKET_MERGED;
        t.method = (pare_ticket_method)method;
        t.biases = true;
        assert_true(refuse(m, &t, 7) > 20);
    }
    pare_model_free(m);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_refused_allocation_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
