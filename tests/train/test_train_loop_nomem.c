/* Every allocation of a run, and of several runs, fails once: a status, no crash, no leak, and the
 * checkpoint that was there is whole. */
#include "tiny_task.h"
#include <fail_alloc.h>
#include <pare/train.h>

typedef struct scene {
    tiny t, teacher;
    char dir[200], path[300];
    pare_train_opts o;
} scene;

static void open_scene(scene *s, pare_random_kind kind)
{
    test_mkdir(s->dir);
    tiny_open(&s->t, kind, 1);
    tiny_open(&s->teacher, kind, 2);
    s->o = tiny_opts(2);
    s->o.eval_every = 1;
    s->o.checkpoint = test_path(s->path, s->dir, "x.ckpt");
    s->o.teacher = s->teacher.start, s->o.distill = 0.5, s->o.hidden = 1;
}

static void close_scene(scene *s)
{
    tiny_close(&s->t), tiny_close(&s->teacher);
    test_rmdir(s->dir);
}

static pare_status one(scene *s, pare_err *err)
{
    pare_model *m = NULL;
    pare_train_result r;
    const pare_status st = pare_train(&m, &r, s->t.start, &s->t.task, &s->o, NULL, err);
    assert_true(!m == (st != PARE_OK));
    pare_model_free(m);
    return st;
}

static pare_status open_run(void *self, pare_run_parts *out, size_t run, size_t at, pare_err *err)
{
    const scene *const s = self;
    (void)at, (void)err;
    *out = (pare_run_parts){.start = s->t.start, .task = &s->t.task, .opts = s->o};
    out->opts.checkpoint = NULL;
    out->opts.seed = run;
    return PARE_OK;
}

static pare_status several(scene *s, pare_err *err)
{
    const pare_run_source source = {.self = s, .runs = 2, .settings = 1, .open = open_run};
    pare_model *m = NULL;
    pare_runs_result *r = NULL;
    const pare_status st = pare_runs(&m, &r, &source, NULL, NULL, err);
    assert_true(!m == (st != PARE_OK) && !r == (st != PARE_OK));
    pare_model_free(m);
    pare_runs_free(r);
    return st;
}

static void fail_everywhere(scene *s, pare_status (*work)(scene *s, pare_err *err))
{
    for (long n = 0;; n++) {
        pare_err err = {0};
        fail_alloc_once(n);
        const pare_status st = work(s, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_once(-1);
        if (!hit) {
            assert_ok(st, &err);
            assert_true(n > 20);
            return;
        }
        assert_status(st, PARE_ERR_MEMORY, &err);
    }
}

static void any_failing_allocation_of_a_run_is_a_status(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, PARE_RANDOM_GPT);
    fail_alloc_in_json();
    fail_everywhere(&s, one);
    s.o.resume = true;
    fail_everywhere(&s, one);
    close_scene(&s);
}

static void any_failing_allocation_of_several_runs_is_a_status(void **state)
{
    (void)state;
    scene s;
    open_scene(&s, PARE_RANDOM_GRAPH);
    fail_alloc_in_json();
    fail_everywhere(&s, several);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_failing_allocation_of_a_run_is_a_status),
        cmocka_unit_test(any_failing_allocation_of_several_runs_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
