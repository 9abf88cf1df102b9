/* Memory runs out, or one allocation is refused, at every place of a probe and of its JSON: a
 * status, no leak, no probe. */
#include <pare_test.h>
#include <fail_alloc.h>
#include "plan/probe_internal.h"

typedef struct scene {
    pare_model *m;
    pare_arena *a;
    pare_dataset data;
    const pare_dataset *with; /* NULL: the weights alone */
    pare_probe_part part;
    pare_probe *done;
    pare_err err;
} scene;

static pare_status heldout(scene *s)
{
    static const size_t dims[] = {2};
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    pare_probe *p = NULL;
    o.dims = dims, o.ndims = 1, o.trials = 1;
    o.part = s->part;
    o.no_cuts = s->part == PARE_PROBE_DEPTH; /* tests/depth/test_attn_stats_nomem.c makes them */
    const pare_status st = pare_probe_model(&p, s->m, s->with, &o, NULL, &s->err);
    assert_int_equal(p == NULL, st != PARE_OK);
    pare_probe_free(p);
    return st;
}

static pare_status to_json(scene *s)
{
    cJSON *json = NULL;
    const pare_status st = pare_probe_json(&json, s->done, &s->err);
    assert_int_equal(json == NULL, st != PARE_OK);
    cJSON_Delete(json);
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

static void scene_open(scene *s, pare_random_kind kind)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    static const int64_t target[8] = {0, 1, 0, 1, 1, 0, 1, 0};
    static const int64_t *const targets[1] = {target};
    memset(s, 0, sizeof *s);
    s->a = pare_arena_new();
    s->part = PARE_PROBE_WIDTH;
    o.kind = kind;
    o.dim = 4, o.heads = 1, o.layers = 1, o.ffn = 4;
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
    assert_ok(pare_inputs_random(&s->data.inputs, s->a, s->m, 1, 8, 5, &s->err), &s->err);
    s->data.task = kind == PARE_RANDOM_GRAPH ? PARE_TASK_NODES : PARE_TASK_TEXT;
    s->data.target = targets;
}

static void without_memory_there_is_a_status_and_nothing_else(void **state)
{
    (void)state;
    const pare_random_kind kinds[] = {PARE_RANDOM_GRAPH, PARE_RANDOM_LLAMA};
    for (size_t k = 0; k < 2; k++) {
        scene s;
        pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
        scene_open(&s, kinds[k]);
        refuse_each(&s, heldout, "weights");
        s.with = &s.data;
        refuse_each(&s, heldout, "with data");
        o.trials = 1;
        assert_ok(pare_probe_model(&s.done, s.m, s.with, &o, NULL, &s.err), &s.err);
        refuse_each(&s, to_json, "json");
        pare_probe_free(s.done);
        pare_model_free(s.m);
        pare_arena_free(s.a);
    }
}

static void without_memory_the_depth_part_says_so(void **state)
{
    (void)state;
    scene s;
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    scene_open(&s, PARE_RANDOM_GRAPH);
    s.part = PARE_PROBE_DEPTH;
    s.with = &s.data;
    refuse_each(&s, heldout, "depth");
    o.part = PARE_PROBE_DEPTH;
    assert_ok(pare_probe_model(&s.done, s.m, s.with, &o, NULL, &s.err), &s.err);
    assert_true(s.done->has_depth);
    refuse_each(&s, to_json, "json");
    pare_probe_free(s.done);
    pare_model_free(s.m);
    pare_arena_free(s.a);
}

static void without_memory_the_length_part_says_so(void **state)
{
    (void)state;
    scene s;
    pare_probe_opts o = PARE_PROBE_OPTS_DEFAULT;
    scene_open(&s, PARE_RANDOM_BERT);
    s.part = o.part = PARE_PROBE_LENGTH;
    s.m->context = 40; /* learned positions end there: short plans */
    refuse_each(&s, heldout, "length");
    assert_ok(pare_inputs_random(&s.data.inputs, s.a, s.m, 1, 34, 5, &s.err), &s.err);
    s.with = &s.data;
    refuse_each(&s, heldout, "length with data");
    assert_ok(pare_probe_model(&s.done, s.m, s.with, &o, NULL, &s.err), &s.err);
    assert_true(s.done->has_length && s.done->length.rows);
    refuse_each(&s, to_json, "json");
    pare_probe_free(s.done);
    pare_model_free(s.m);
    pare_arena_free(s.a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_memory_there_is_a_status_and_nothing_else),
        cmocka_unit_test(without_memory_the_depth_part_says_so),
        cmocka_unit_test(without_memory_the_length_part_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
