/* Memory runs out, or one allocation is refused, at every place of the statistics and of their costs: a
 * status and no leak. */
#include <pare_test.h>
#include <fail_alloc.h>
#include <pare/depth.h>
#include "../../studies/attention_nets.h"

typedef struct scene {
    pare_model *m;
    pare_arena *a;
    pare_inputs in;
    pare_err err;
} scene;

static pare_status heldout(scene *s)
{
    pare_arena *const a = pare_arena_new();
    pare_attention_stats x;
    const pare_status st =
        a ? pare_depth_attention_stats(
                &x, a, s->m, &(pare_input_split){.fit = &s->in, .heldout = &s->in}, NULL, &s->err)
          : pare_no_memory(&s->err);
    pare_arena_free(a);
    return st;
}

static pare_status cost(scene *s)
{
    pare_arena *const a = pare_arena_new();
    const pare_replacement_costs_opts o = PARE_REPLACEMENT_COSTS_OPTS_DEFAULT;
    pare_replacement_costs c;
    const pare_status st =
        a ? pare_depth_replacement_costs(&c, a, s->m,
                                         &(pare_input_split){.fit = &s->in, .heldout = &s->in}, &o,
                                         NULL, &s->err)
          : pare_no_memory(&s->err);
    pare_arena_free(a);
    return st;
}

static void refuse_each(scene *s, pare_status (*run)(scene *), const char *name)
{
    for (int once = 0; once < 2; once++) {
        bool hit = true;
        for (long n = 0; hit; n++) {
            s->err = (pare_err){0};
            (once ? fail_alloc_once : fail_alloc_after)(n);
            const pare_status st = run(s);
            hit = fail_alloc_hit();
            fail_alloc_after(-1);
            if (st != (hit ? PARE_ERR_MEMORY : PARE_OK) || s->err.code != st)
                fail_msg("%s, allocation %ld%s: status %d, %s", name, n, once ? " alone" : "",
                         (int)st, s->err.msg);
            assert_true(n < 100000);
        }
    }
}

static void without_memory_there_is_a_status_and_nothing_else(void **state)
{
    (void)state;
    scene s = {.a = pare_arena_new()};
    pare_rng rng = pare_rng_at(1, 0);
    const san_shape shape = {.layers = 1, .heads = 1, .dim = 2, .scale = 1, .size = 1};
    const san_tokens t = {.n = 1, .tokens = 3, .dim = 2, .spread = 1};
    assert_ok(san_new(&s.m, &shape, &rng, &s.err), &s.err);
    assert_ok(san_inputs(&s.in, s.a, &t, &rng, &s.err), &s.err);
    refuse_each(&s, heldout, "xray");
    refuse_each(&s, cost, "costs");
    pare_model_free(s.m);
    pare_arena_free(s.a);
}

/* Norms, biases, feed-forward parts, rotary positions. */
static void without_memory_a_whole_model_gives_a_status(void **state)
{
    (void)state;
    const pare_random_kind kinds[] = {PARE_RANDOM_GRAPH, PARE_RANDOM_LLAMA};
    for (size_t k = 0; k < 2; k++) {
        scene s = {.a = pare_arena_new()};
        pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
        o.kind = kinds[k];
        o.dim = 4, o.heads = 1, o.layers = 1, o.ffn = 4, o.vocab = 8;
        assert_ok(pare_random_model(&s.m, &o, &s.err), &s.err);
        assert_ok(pare_inputs_random(&s.in, s.a, s.m, 1, 4, 5, &s.err), &s.err);
        refuse_each(&s, heldout, "xray");
        refuse_each(&s, cost, "costs");
        pare_model_free(s.m);
        pare_arena_free(s.a);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_a_status_and_nothing_else),
        cmocka_unit_test(without_memory_a_whole_model_gives_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
