/* Memory runs out, or one allocation is refused, at every place of a cut in depth, and at many of
 * its proof: a status, no leak, no model. */
#include <fail_alloc.h>
#include "depth_models.h"

typedef struct play {
    stage s;
    pare_model *g;
    pare_depth_opts o;
} play;

typedef pare_status work_fn(play *p);

enum { EACH = 150, STRIDE = 41 }; /* the first ones each, of the others some */

static pare_status cut(play *p)
{
    pare_model *g = NULL;
    pare_depth_report r;
    const pare_status st = pare_depth(&g, &r, p->s.m, &p->s.set, &p->o, NULL, &p->s.err);
    assert_int_equal(g == NULL, st != PARE_OK);
    pare_model_free(g);
    return st;
}

static pare_status prove(play *p)
{
    const pare_cert claimed = {
        .reduction = "depth",
        .data = {.kind = "random", .count = INPUTS, .tokens = TOKENS, .candidates = 1}};
    pare_cert again = claimed;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(&p->s.err);
    const pare_status st =
        pare_depth_prover.prove(&again, a, &claimed, p->s.m, p->g, &p->s.set, NULL, &p->s.err);
    pare_arena_free(a);
    return st;
}

static void refuse_each(play *p, work_fn *run)
{
    long n = 0;
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        for (n = 0; hit; n += n < EACH ? 1 : STRIDE) {
            p->s.err = (pare_err){0};
            (once ? fail_alloc_once : fail_alloc_after)(n);
            const pare_status st = run(p);
            hit = fail_alloc_hit();
            fail_alloc_after(-1);
            if (st != (hit ? PARE_ERR_MEMORY : PARE_OK) || p->s.err.code != st)
                fail_msg("allocation %ld%s: status %d, %s", n, once ? " alone" : "", (int)st,
                         p->s.err.msg);
            assert_true(n < 100000);
        }
    }
    print_message("%ld allocations\n", n);
}

static void one_case(pare_random_kind kind, pare_attn_kind to, size_t layers, pare_depth_select how)
{
    play p = {.o = PARE_DEPTH_OPTS_DEFAULT};
    pare_depth_report r;
    stage_open(&p.s, kind, layers + 1, 3);
    p.s.set.n = 1;
    p.o.kind = to;
    p.o.layers = layers;
    p.o.select = how;
    refuse_each(&p, cut);
    assert_ok(pare_depth(&p.g, &r, p.s.m, &p.s.set, &p.o, NULL, &p.s.err), &p.s.err);
    refuse_each(&p, prove);
    pare_model_free(p.g);
    stage_close(&p.s);
}

static void a_cut_and_its_proof_without_memory(void **state)
{
    (void)state;
    one_case(PARE_RANDOM_BERT, PARE_ATTN_NONE, 0, PARE_DEPTH_GREEDY);
    one_case(PARE_RANDOM_LLAMA, PARE_ATTN_POOL, 1, PARE_DEPTH_EXHAUSTIVE);
    one_case(PARE_RANDOM_GRAPH, PARE_ATTN_UNIFORM, 1, PARE_DEPTH_INFLUENCE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_cut_and_its_proof_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
