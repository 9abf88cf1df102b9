/* Tests src/cert/heldout.c: when nothing may be said about a new input. */
#include <pare_test.h>
#include <math.h>
#include "cert/outputs.h"
#include "cert/heldout.h"
#include <string.h>

enum { MOST = 16, COUNT = 8 };

static int64_t ids[2][COUNT][MOST];
static pare_input in[2][COUNT];
static size_t counts[2];

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
    pare_arena *arena;
    pare_err err;
    pare_model *m;
    pare_heldout_opts o;
} scene;

static void open_scene(scene *s)
{
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    o.dim = 8;
    o.context = MOST;
    *s = (scene){.o = {.most_fitted = COUNT, .prove = COUNT}};
    s->arena = pare_arena_new();
    assert_non_null(s->arena);
    assert_ok(pare_random_model(&s->m, &o, &s->err), &s->err);
}

static void close_scene(scene *s)
{
    pare_model_free(s->m);
    pare_arena_free(s->arena);
}

/* What loading file k would give. */
static pare_cert_inputs file(int k)
{
    pare_cert_inputs f = {.path = k ? "1" : "0"};
    f.data = (pare_dataset){.task = PARE_TASK_TEXT, .inputs = {counts[k], in[k]}};
    f.set = f.data.inputs;
    return f;
}

static pare_heldout two(scene *s)
{
    pare_heldout h;
    const pare_cert_inputs data = file(0), heldout = file(1);
    assert_ok(pare_heldout_split(&h, s->arena, s->m, &data, &heldout, &s->o, &s->err), &s->err);
    return h;
}

static pare_heldout one(scene *s)
{
    pare_heldout h;
    const pare_cert_inputs data = file(0);
    assert_ok(pare_heldout_split(&h, s->arena, s->m, &data, NULL, &s->o, &s->err), &s->err);
    return h;
}

static void one_input_that_was_fitted_to_is_enough(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    fill(8);
    assert_null(two(&s).no_new_inputs);
    assert_null(one(&s).no_new_inputs);
    memcpy(ids[1][5], ids[0][2], sizeof ids[1][5]);
    assert_true(two(&s).no_new_inputs == pare_some_were_seen);
    s.o.most_fitted = 2; /* two of the eight, and which ones the seed says */
    size_t clean = 0;
    for (s.o.seed = 0; s.o.seed < 32; s.o.seed++) clean += !two(&s).no_new_inputs;
    assert_in_range(clean, 12, 31); /* 24 on average */
    s.o.seed = 0;
    s.o.most_fitted = COUNT;
    s.o.nothing_fitted = true;
    assert_null(two(&s).no_new_inputs);
    s.o.nothing_fitted = false;
    const pare_heldout h = one(&s); /* two are held out: one of them is made like a fitted one */
    assert_true(h.held.set.n == 2 && h.fit.n == COUNT - 2);
    memcpy(ids[0][h.held.numbers[0]], h.fit.in[0].ids, sizeof ids[0][0]);
    assert_true(one(&s).no_new_inputs == pare_some_were_seen);
    counts[0] = 1;
    assert_true(one(&s).no_new_inputs == pare_some_were_seen);
    close_scene(&s);
}

/* What is behind the tokens that are looked at makes no other input. */
static void an_input_is_what_is_left_of_it(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    fill(12);
    s.o.fit_tokens = 10;
    s.o.proven_tokens = 6;
    memcpy(ids[1][5], ids[0][2], 6 * sizeof ids[1][5][0]);
    assert_true(two(&s).no_new_inputs == pare_some_were_seen);
    ids[1][5][5]++;
    assert_null(two(&s).no_new_inputs);
    close_scene(&s);
}

/* One by one, also where they come as a batch. */
static void a_batch_is_looked_through(void **state)
{
    (void)state;
    scene s;
    open_scene(&s);
    fill(MOST);
    counts[0] = 1;
    in[0][0].batch = COUNT;
    assert_null(two(&s).no_new_inputs);
    memcpy(ids[1][5], ids[0][6], sizeof ids[1][5]);
    assert_true(two(&s).no_new_inputs == pare_some_were_seen);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_input_that_was_fitted_to_is_enough),
        cmocka_unit_test(an_input_is_what_is_left_of_it),
        cmocka_unit_test(a_batch_is_looked_through),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
