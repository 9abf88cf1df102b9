/* Tests src/cli/cut_data.c: when nothing may be said about a new input. The work that one can
 * afford is a plan's: the command's own is a minute of it. */
#include <pare_test.h>
#include <pare/random_model.h>
#include "cli/cut_data.c"

enum { MOST = 16, COUNT = 8 };

static int64_t ids[2][COUNT][MOST];
static pare_input in[2][COUNT];
static size_t counts[2];

/* Files "0" and "1". */
pare_status cli_inputs(cli *c, cert_inputs *out, const pare_model *m, const char *data,
                       size_t split)
{
    (void)c;
    (void)m;
    const int k = data[0] - '0';
    *out = (cert_inputs){.path = data, .split = split};
    out->data = (pare_dataset){.task = PARE_TASK_TEXT, .inputs = {counts[k], in[k]}};
    out->set = out->data.inputs;
    return PARE_OK;
}

pare_status cli_name(cli *c, pare_status st, const char *path)
{
    (void)c;
    (void)path;
    return st;
}

pare_status forward_floats(cli *c, float *out, const pare_model *m, const pare_input *x, bool ref)
{
    (void)c;
    (void)out;
    (void)m;
    (void)x;
    (void)ref;
    return PARE_OK;
}

/* No two inputs of both files are the same. */
static void fill(size_t tokens)
{
    for (int k = 0; k < 2; k++) {
        counts[k] = COUNT;
        for (size_t i = 0; i < COUNT; i++) {
            for (size_t j = 0; j < MOST; j++) ids[k][i][j] = (int64_t)(j + i + COUNT * (size_t)k);
            in[k][i] = (pare_input){.batch = 1, .tokens = tokens, .ids = ids[k][i]};
        }
    }
}

typedef struct scene {
    cli c;
    pare_model *m;
    cut_plan plan;
} scene;

static void open_scene(scene *s)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_DEFAULT;
    o.dim = 8;
    o.context = MOST;
    *s = (scene){.plan = {.windows = COUNT,
                          .held = COUNT,
                          .proven = COUNT,
                          .work = INFINITY,
                          .only_texts = true}};
    s->c.arena = pare_arena_new();
    assert_non_null(s->c.arena);
    assert_ok(pare_random_model(&s->m, &o, &s->c.err), &s->c.err);
}

static void close_scene(scene *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->c.arena);
}

static cut_data two(scene *s)
{
    cut_data d;
    assert_ok(cut_data_load_two(&s->c, &d, s->m, "0", "1", &s->plan), &s->c.err);
    return d;
}

static cut_data one(scene *s)
{
    cut_data d;
    assert_ok(cut_data_load(&s->c, &d, s->m, "0", &s->plan), &s->c.err);
    return d;
}

static void inputs_that_the_work_leaves_out_by_their_size_are_not_like_a_new_one(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    fill(8);
    s.plan.work = 3.5 * work_of(s.m, &in[1][0]);
    cut_data d = two(&s);
    assert_true(d.held.set.n == 3 && !d.no_next); /* all of one size: three, whatever they are */
    in[1][COUNT - 1].tokens = 9;
    d = two(&s);
    assert_true(d.held.set.n == 3 && d.no_next);
    s.plan.work = INFINITY;
    d = two(&s);
    assert_true(d.held.set.n == COUNT && !d.no_next);
    s.plan.work = 3.5 * work_of(s.m, &in[1][0]);
    s.plan.proven_tokens = 8; /* cut to one size */
    d = two(&s);
    assert_true(d.held.set.n == 3 && !d.no_next);
    close_scene(&s);
}

static void one_input_that_was_fitted_to_is_enough(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    fill(8);
    assert_null(two(&s).no_next);
    assert_null(one(&s).no_next);
    memcpy(ids[1][5], ids[0][2], sizeof ids[1][5]);
    assert_true(two(&s).no_next == cut_saw_some);
    s.plan.windows = 2; /* not fitted to number 2 */
    assert_null(two(&s).no_next);
    s.plan.windows = COUNT;
    s.plan.unseen = true;
    assert_null(two(&s).no_next);
    s.plan.unseen = false;
    memcpy(ids[0][COUNT - 1], ids[0][1], sizeof ids[0][1]); /* the last quarter is held out */
    assert_true(one(&s).no_next == cut_saw_some);
    counts[0] = 1;
    assert_true(one(&s).no_next == cut_saw_some);
    close_scene(&s);
}

/* What is behind the tokens that are looked at makes no other input. */
static void an_input_is_what_is_left_of_it(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    fill(12);
    s.plan.fit_tokens = 10;
    s.plan.proven_tokens = 6;
    memcpy(ids[1][5], ids[0][2], 6 * sizeof ids[1][5][0]);
    assert_true(two(&s).no_next == cut_saw_some);
    ids[1][5][5]++;
    assert_null(two(&s).no_next);
    close_scene(&s);
}

/* One by one, also where they come as a batch. */
static void a_batch_is_looked_through(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    fill(MOST);
    s.plan.windows = 1;
    in[0][0].batch = COUNT;
    assert_null(two(&s).no_next);
    memcpy(ids[1][5], ids[0][6], sizeof ids[1][5]);
    assert_true(two(&s).no_next == cut_saw_some);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_that_the_work_leaves_out_by_their_size_are_not_like_a_new_one),
        cmocka_unit_test(one_input_that_was_fitted_to_is_enough),
        cmocka_unit_test(an_input_is_what_is_left_of_it),
        cmocka_unit_test(a_batch_is_looked_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
