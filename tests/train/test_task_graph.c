/* Tests src/train/task_graph.c. */
#include <pare/train.h>
#include "task_cases.h"

static char dir[200], path[300];
static pare_arena *arena;

static int set_up(void **state)
{
    (void)state;
    test_mkdir(dir);
    test_path(path, dir, "g.npz");
    arena = pare_arena_new();
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    test_rmdir(dir);
    pare_arena_free(arena);
    return 0;
}

static void a_step_is_the_whole_graph_with_the_labels_of_the_training_mask(void **state)
{
    (void)state;
    pare_task l;
    pare_task_facts f;
    pare_batch b;
    pare_err err = {0};
    write_graph(path, (small_graph){.ring = 18, .classes = 3});
    const pare_task_graph_opts o = {.path = path};
    assert_ok(pare_task_graph(&l, &f, arena, &o, &err), &err);
    assert_true(f.features == 2 && f.ids == 0 && f.outputs == 3 && f.tokens == 20);
    assert_true(f.train == 10 && f.val == 5 && f.test == 5 && l.epoch == 1 && l.fixed);
    assert_string_equal(l.metric, "accuracy");
    assert_true(l.more_is_better);
    assert_ok(l.batch(l.self, &b, arena, 5, 7, &err), &err);
    const pare_input *const in = b.in.in;
    assert_true(b.in.n == 1 && in->batch == 1 && in->tokens == 20 && in->x[2 * 4] == 4 &&
                in->graph);
    assert_int_equal(b.in.in[0].graph->ptr[20], 2 * 19);
    for (size_t i = 0; i < 20; i++)
        assert_int_equal(b.label[i], i % 4 < 2 ? (int64_t)(i / 4 % 3) : -1);
}

static void a_model_without_edges_gets_none(void **state)
{
    (void)state;
    pare_task l;
    pare_task_facts f;
    pare_batch b;
    pare_err err = {0};
    write_graph(path, (small_graph){.ring = 18, .classes = 2});
    const pare_task_graph_opts o = {.path = path, .full = true};
    assert_ok(pare_task_graph(&l, &f, arena, &o, &err), &err);
    assert_ok(l.batch(l.self, &b, arena, 0, 0, &err), &err);
    assert_null(b.in.in[0].graph);
    assert_string_equal(l.metric, "auc");
}

static void the_largest_component_keeps_numbers_labels_and_masks_together(void **state)
{
    (void)state;
    pare_task l;
    pare_task_facts f;
    pare_batch b;
    pare_err err = {0};
    write_graph(path, (small_graph){.ring = 18, .classes = 3});
    const pare_task_graph_opts o = {.path = path, .largest_component = true};
    assert_ok(pare_task_graph(&l, &f, arena, &o, &err), &err);
    assert_int_equal(f.tokens, 18); /* the path of two nodes is gone */
    assert_true(f.train == 10 && f.val == 4 && f.test == 4);
    assert_ok(l.batch(l.self, &b, arena, 0, 0, &err), &err);
    assert_int_equal(b.in.in[0].graph->n, 18);
    assert_int_equal(b.in.in[0].graph->ptr[18], 36);
    for (size_t i = 0; i < 18; i++) {
        assert_true(b.in.in[0].x[2 * i] == (double)i);
        assert_int_equal(b.label[i], i % 4 < 2 ? (int64_t)(i / 4 % 3) : -1);
        assert_int_equal(b.in.in[0].graph->ptr[i + 1] - b.in.in[0].graph->ptr[i], 2);
    }
}

/* A component that begins in the middle: numbers are moved, not copied. */
static void the_component_gets_new_numbers(void **state)
{
    (void)state;
    static const char *const names[] = {"node_features", "node_labels", "edges"};
    const float x[7] = {10, 11, 12, 13, 14, 15, 16};
    const int64_t label[7] = {0, 1, 0, 1, 0, 1, 0}, edge[] = {0, 1, 2, 4, 4, 6, 6, 3, 3, 2};
    const pare_array arrays[] = {
        {PARE_F32, 2, {7, 1}, x}, {PARE_I64, 1, {7}, label}, {PARE_I64, 2, {5, 2}, edge}};
    pare_task l;
    pare_task_facts f;
    pare_batch b;
    pare_err err = {0};
    assert_ok(pare_npz_write(path, 3, names, arrays, false, true, &err), &err);
    size_t split = 0;
    pare_task_graph_opts o = {.path = path, .largest_component = true};
    /* The file has no masks: look for a shuffle that leaves every part with both classes. */
    for (; split < 500; split++) {
        o.split = split;
        if (pare_task_graph(&l, &f, arena, &o, &err) == PARE_OK) break;
    }
    if (split == 500) { /* 2 of 7 nodes in val and test: both classes may never meet */
        o.classes = 3;
        for (split = 0; pare_task_graph(&l, &f, arena, &o, &err) != PARE_OK; o.split = ++split)
            assert_true(split < 500);
    }
    assert_ok(l.batch(l.self, &b, arena, 0, 0, &err), &err);
    assert_int_equal(b.in.in[0].graph->n, 4); /* 2, 3, 4, 6 */
    const double want[4] = {12, 13, 14, 16};
    for (size_t i = 0; i < 4; i++) assert_true(b.in.in[0].x[i] == want[i]);
    const uint32_t keys[] = {1, 2, 0, 3, 0, 3, 1, 2}; /* of 2: 3, 4; of 3: 2, 6; ... */
    assert_memory_equal(b.in.in[0].graph->idx, keys, sizeof keys);
}

static void refused(small_graph s, pare_task_graph_opts o, const char *why)
{
    pare_task l;
    pare_task_facts f;
    pare_err err = {0};
    write_graph(path, s);
    o.path = path;
    assert_true(pare_task_graph(&l, &f, arena, &o, &err) == PARE_ERR_INPUT);
    assert_contains(err.msg, path);
    assert_contains(err.msg, why);
}

static void bad_data_are_named_by_node(void **state)
{
    (void)state;
    const small_graph good = {.ring = 18, .classes = 2};
    small_graph s = good;
    s.odd_feature = NAN;
    refused(s, (pare_task_graph_opts)PARE_TASK_GRAPH_OPTS_DEFAULT, "[3, 1] is nan");
    s = good;
    s.odd_label = 99;
    refused(s, (pare_task_graph_opts)PARE_TASK_GRAPH_OPTS_DEFAULT,
            "node 19 has the label 99: more classes than the 20 nodes");
    s.odd_label = 4;
    refused(s, (pare_task_graph_opts){.classes = 2}, "node 19 has the label 4, the model has 2");
    s.odd_label = -3;
    refused(s, (pare_task_graph_opts)PARE_TASK_GRAPH_OPTS_DEFAULT, "node 19 has the label -3");
    s = good;
    s.no_test = true;
    refused(s, (pare_task_graph_opts)PARE_TASK_GRAPH_OPTS_DEFAULT, "split 0 has no test node");
    s = good;
    s.one_class_val = true;
    refused(s, (pare_task_graph_opts)PARE_TASK_GRAPH_OPTS_DEFAULT,
            "all 5 validation nodes have the label 0, and AUC needs both");
    s = good;
    s.classes = 1;
    refused(s, (pare_task_graph_opts)PARE_TASK_GRAPH_OPTS_DEFAULT, "every node has the label 0");
}

static void a_split_that_is_not_there_is_the_fault_of_the_options(void **state)
{
    (void)state;
    pare_task l;
    pare_task_facts f;
    pare_err err = {0};
    write_graph(path, (small_graph){.ring = 18, .classes = 2});
    const pare_task_graph_opts o = {.path = path, .split = 3};
    assert_status(pare_task_graph(&l, &f, arena, &o, &err), PARE_ERR_USAGE, &err);
    assert_contains(err.msg, "split 3");
}

/* A model that says feature 1, which is node % 3, beside labels node / 4 % 2: known by hand. */
static void the_score_is_the_metric_of_its_part(void **state)
{
    (void)state;
    pare_task l;
    pare_task_facts f;
    pare_model *m = NULL;
    pare_err err = {0};
    double val, test;
    write_graph(path, (small_graph){.ring = 18, .classes = 2, .odd_label = 0});
    const pare_task_graph_opts o = {.path = path};
    assert_ok(pare_task_graph(&l, &f, arena, &o, &err), &err);
    const pare_init init = {
        .kind = PARE_INIT_MLP, .dim = 2, .layers = 1, .heads = 1, .features = 2, .outputs = 2};
    assert_ok(pare_init_model(&m, &init, &err), &err);
    static const float eye[4] = {1, 0, 0, 1}, none[4] = {0}, head[4] = {0, 0, 0, 1};
    m->embedding.map.w.data = eye;
    m->embedding.map.b.data = none;
    m->blocks[0].ffn.layers[1].w.data = none;
    m->blocks[0].ffn.layers[1].b.data = none;
    m->head.out.w.data = head; /* logit 1 - logit 0 = feature 1 */
    m->head.out.b.data = none;
    assert_ok(l.score(l.self, &val, m, PARE_PART_VAL, NULL, &err), &err);
    assert_ok(l.score(l.self, &test, m, PARE_PART_TEST, NULL, &err), &err);
    /* validation: nodes 2, 6, 10, 14, 18, labels 0 1 0 1 0, scores 2 0 1 2 0: 3 of 6 pairs, ties
     * halved; test: nodes 3, 7, ..., scores 0 1 2 0 1: 2 of 6 */
    assert_near(val, 0.5, 1e-6);
    assert_near(test, 1.0 / 3, 1e-6);
    static const float huge[4] = {3e38F, 3e38F, 3e38F, 3e38F};
    m->head.out.w.data = huge;
    assert_ok(l.score(l.self, &val, m, PARE_PART_VAL, NULL, &err), &err);
    assert_true(isnan(val)); /* diverged: no failure, no mark */
    pare_model_free(m);
}

static void the_id_tells_data_and_settings_apart(void **state)
{
    (void)state;
    pare_task a, b, c;
    pare_task_facts f;
    pare_err err = {0};
    write_graph(path, (small_graph){.ring = 18, .classes = 3});
    pare_task_graph_opts o = {.path = path};
    assert_ok(pare_task_graph(&a, &f, arena, &o, &err), &err);
    o.largest_component = true;
    assert_ok(pare_task_graph(&b, &f, arena, &o, &err), &err);
    assert_string_not_equal(a.id, b.id);
    o.largest_component = false;
    write_graph(path, (small_graph){.ring = 18, .classes = 3, .odd_feature = 1});
    assert_ok(pare_task_graph(&c, &f, arena, &o, &err), &err);
    assert_string_not_equal(a.id, c.id);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_the_whole_graph_with_the_labels_of_the_training_mask),
        cmocka_unit_test(a_model_without_edges_gets_none),
        cmocka_unit_test(the_largest_component_keeps_numbers_labels_and_masks_together),
        cmocka_unit_test(the_component_gets_new_numbers),
        cmocka_unit_test(bad_data_are_named_by_node),
        cmocka_unit_test(a_split_that_is_not_there_is_the_fault_of_the_options),
        cmocka_unit_test(the_score_is_the_metric_of_its_part),
        cmocka_unit_test(the_id_tells_data_and_settings_apart),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
