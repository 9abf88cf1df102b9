/* Tests src/quant/{quant,allocate_bits,rtn,gptq,encode,trellis}.c when memory is out: a status, no leak, no model. */
#include "fail_alloc.h"
#include "pare_test.h"
#include "quant/quant_internal.h"
#include <pare/pare.h>

/* How many allocations there are: each was refused, alone. */
static long refuse(const pare_model *m, const pare_quant_opts *o, long step)
{
    long refused = 0, hits = 0;
    for (;; refused += step) {
        pare_model *g = NULL;
        pare_quant_report r;
        pare_err err = {0};
        fail_alloc_once(refused);
        const pare_status st = pare_quant(&g, &r, m, o, NULL, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        if (st != (hit ? PARE_ERR_MEMORY : PARE_OK) || (g != NULL) != (st == PARE_OK))
            fail_msg("allocation %ld: status %d, %s", refused, (int)st, err.msg);
        pare_model_free(g);
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
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.dim = 8, o.heads = 2, o.layers = 1, o.vocab = 20, o.context = 4;
    assert_ok(pare_random_model(&m, &o, NULL), NULL);
    assert_ok(pare_inputs_random(&set, a, m, 2, 3, 1, NULL), NULL);
    for (int how = 0; how < 8; how++) {
        pare_quant_opts q = PARE_QUANT_OPTS_DEFAULT;
        q.bits = 3, q.affine = how & 1, q.group = 4;
        q.method = how < 2 ? PARE_QUANT_RTN : PARE_QUANT_GPTQ;
        if (how > 1) q.fit = &set;
        if (how > 5)
            q.method = PARE_QUANT_TRELLIS, q.group = 0, q.affine = false, q.state_bits = 11;
        if (how > 3) q.bits = 0, q.max_bytes = 5000;
        if (how == 6) q.bits = 2.5, q.max_bytes = 0;
        const long n = refuse(m, &q, how > 3 ? 5 : 2);
        print_message("%ld allocations refused\n", n);
        assert_true(n > 15);
    }
    pare_model_free(m);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_refused_allocation_is_said)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
