/* Tests src/train/train_loop.c, batch_loss.c and run_fingerprint.c: whole runs of tiny models. */
#include "train/optimizer.h"
#include "tiny_task.h"

#include <sys/wait.h>

static const pare_random_kind kinds[] = {PARE_RANDOM_GPT, PARE_RANDOM_GRAPH};
enum { KINDS = 2 };

static void a_tiny_model_learns_a_tiny_lesson(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        tiny t;
        pare_err err = {0};
        pare_model *m = NULL;
        pare_train_result r;
        double before = 0, after = 0;
        tiny_open(&t, kinds[k], 1);
        pare_train_opts o = tiny_opts(300);
        o.dropout = 0;
        assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
        assert_ok(tiny_nats(&before, &t, t.start, &t.set[1], NULL, &err), &err);
        assert_ok(tiny_nats(&after, &t, m, &t.set[1], NULL, &err), &err);
        assert_le(0.5, before);
        assert_le(after, 0.6 * before);
        assert_near(after, r.val, 0); /* the model that is given is the one that was marked */
        assert_ok(tiny_nats(&after, &t, m, &t.set[2], NULL, &err), &err);
        assert_near(after, r.test, 0);
        assert_true(!r.diverged && r.steps == 300 && r.best_step > 0);
        assert_ok(pare_model_check(m, &err), &err);
        tiny_close(&t); /* m borrows nothing from it */
        char hex[PARE_SHA256_HEX];
        tiny_hash(hex, m);
    }
}

typedef struct stopper {
    volatile int flag;
    uint64_t at, last;
} stopper;

static void stop_there(void *self, const char *what, uint64_t done, uint64_t total)
{
    stopper *const s = self;
    (void)what, (void)total;
    s->last = done;
    if (done == s->at) s->flag = 1;
}

/* Not at a step that checkpoint_every asks for: the checkpoint is of the step it was stopped at, and a
 * run that is continued gives the bytes of one that was never stopped. */
static void a_run_that_is_stopped_keeps_its_last_step(void **state)
{
    (void)state;
    tiny t;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result r;
    char hex[2][PARE_SHA256_HEX], dir[200], path[256];
    test_mkdir(dir);
    snprintf(path, sizeof path, "%s/checkpoint", dir);
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    pare_train_opts o = tiny_opts(20);
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    tiny_hash(hex[0], m);
    o.checkpoint = path;
    o.checkpoint_every = 10;
    o.resume = true;
    stopper s = {.at = 7};
    const pare_exec x = {.threads = 2, .progress = stop_there, .self = &s, .stop = &s.flag};
    assert_status(pare_train(&m, &r, t.start, &t.task, &o, &x, &err), PARE_ERR_STOPPED, &err);
    assert_null(m);
    assert_true(r.steps == 7 && s.last == 7);
    s = (stopper){.at = UINT64_MAX};
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, &x, &err), &err);
    tiny_hash(hex[1], m);
    assert_string_equal(hex[0], hex[1]);
    tiny_close(&t);
    test_rmdir(dir);
}

/* Each says something: a run without it, or with another one, ends elsewhere. */
static void seed_and_dropout_decide(void **state)
{
    (void)state;
    tiny t;
    pare_err err = {0};
    char hex[4][PARE_SHA256_HEX];
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    for (size_t i = 0; i < 4; i++) {
        pare_train_opts o = tiny_opts(6);
        pare_model *m = NULL;
        pare_train_result r;
        if (i == 1) o.seed++;
        if (i == 2) o.dropout = 0;
        if (i == 3) o.dropout = 0.2;
        assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
        tiny_hash(hex[i], m);
        for (size_t j = 0; j < i; j++) assert_string_not_equal(hex[i], hex[j]);
    }
    tiny_close(&t);
}

static void threads_change_no_bit(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        tiny t;
        pare_err err = {0};
        pare_train_result r[2];
        char hex[2][PARE_SHA256_HEX];
        tiny_open(&t, kinds[k], 1);
        const pare_train_opts o = tiny_opts(20);
        for (int x = 0; x < 2; x++) {
            const pare_exec exec = {.threads = x ? 3 : 1};
            pare_model *m = NULL;
            assert_ok(pare_train(&m, &r[x], t.start, &t.task, &o, &exec, &err), &err);
            tiny_hash(hex[x], m);
        }
        assert_string_equal(hex[0], hex[1]);
        assert_true(r[0].val == r[1].val && r[0].loss == r[1].loss);
        tiny_close(&t);
    }
}

/* ---- stopped and taken up ------------------------------------------------------------------- */

static void die_at(void *self, const pare_train_log *line)
{
    if (line->step == *(const uint64_t *)self) _exit(9);
}

/* A run in a process that ends at step `at`. */
static void killed_at(const tiny *t, pare_train_opts o, uint64_t at)
{
    int how = 0;
    o.log = die_at, o.log_self = &at;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        pare_model *m = NULL;
        pare_train_result r;
        _exit(pare_train(&m, &r, t->start, &t->task, &o, NULL, NULL) != PARE_OK);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 9);
}

static void assert_same_file(const char *a, const char *b)
{
    size_t n = 0, m = 0;
    uint8_t *const x = test_read_file(a, &n), *const y = test_read_file(b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x), free(y);
}

static void taken_up_at_any_step_a_run_ends_with_the_same_bytes(void **state)
{
    (void)state;
    enum { STEPS = 14 };
    for (size_t k = 0; k < KINDS; k++) {
        tiny t;
        pare_err err = {0};
        pare_model *m = NULL;
        pare_train_result whole, r;
        char dir[200], a[300], b[300], want[PARE_SHA256_HEX], hex[PARE_SHA256_HEX];
        test_mkdir(dir);
        tiny_open(&t, kinds[k], 1);
        pare_train_opts o = tiny_opts(STEPS);
        o.resume = true;
        o.checkpoint = test_path(a, dir, "whole.ckpt");
        assert_ok(pare_train(&m, &whole, t.start, &t.task, &o, NULL, &err), &err);
        tiny_hash(want, m);
        o.checkpoint = test_path(b, dir, "cut.ckpt");
        /* STEPS + 1: a second time after the end */
        for (uint64_t at = 1; at <= STEPS + 1; at++) {
            if (at <= STEPS) {
                unlink(b);
                killed_at(&t, o, at);
            }
            assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
            tiny_hash(hex, m);
            assert_string_equal(hex, want);
            assert_same_file(a, b);
            assert_true(r.val == whole.val && r.test == whole.test && r.loss == whole.loss);
            assert_true(r.best_step == whole.best_step && r.steps == STEPS);
        }
        unlink(b);
        for (uint64_t at = 1; at <= STEPS; at++) killed_at(&t, o, at); /* all of them in one run */
        assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
        tiny_hash(hex, m);
        assert_string_equal(hex, want);
        tiny_close(&t);
        test_rmdir(dir);
    }
}

/* Without `resume` a checkpoint that is there is not looked at. */
static void a_fresh_start_replaces_the_checkpoint(void **state)
{
    (void)state;
    tiny t;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result r;
    char dir[200], path[300], a[PARE_SHA256_HEX], b[PARE_SHA256_HEX];
    test_mkdir(dir);
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    pare_train_opts o = tiny_opts(5);
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    tiny_hash(a, m);
    o.checkpoint = test_path(path, dir, "x.ckpt");
    test_write_file(path, "old", 3);
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    tiny_hash(b, m);
    assert_string_equal(a, b);
    tiny_close(&t);
    test_rmdir(dir);
}

static void another_run_is_not_taken_up(void **state)
{
    (void)state;
    tiny t, other;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result r;
    char dir[200], path[300];
    test_mkdir(dir);
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    tiny_open(&other, PARE_RANDOM_GPT, 2);
    pare_train_opts o = tiny_opts(5);
    o.checkpoint = test_path(path, dir, "x.ckpt");
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    pare_model_free(m);
    o.resume = true;
    const char *const why[] = {"it began with another model",
                               "it learned from other data",
                               "lr was 0.01 in it",
                               "steps was 5 in it and is 6 now",
                               "seed was ",
                               "dropout was ",
                               "it had another teacher"};
    for (size_t i = 0; i < sizeof why / sizeof *why; i++) {
        pare_train_opts p = o;
        pare_task task = t.task;
        char want[80];
        if (i == 1) task.id = "another";
        if (i == 2) p.lr *= 2;
        if (i == 3) p.steps++;
        if (i == 4) p.seed++;
        if (i == 5) p.dropout = 0;
        if (i == 6) p.teacher = other.start, p.distill = 0.5;
        snprintf(want, sizeof want, "of another run: %s", why[i]);
        assert_status(pare_train(&m, &r, i == 0 ? other.start : t.start, &task, &p, NULL, &err),
                      PARE_ERR_INPUT, &err);
        assert_contains(err.msg, want);
        assert_null(m);
    }
    o.checkpoint_every = 1; /* says nothing about the run */
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    pare_model_free(m);
    tiny_close(&t), tiny_close(&other);
    test_rmdir(dir);
}

/* ---- marks ---------------------------------------------------------------------------------- */

typedef struct record {
    size_t n, marked;
    pare_train_log line[64];
} record;

static void remember(void *self, const pare_train_log *line)
{
    record *const r = self;
    assert_true(r->n < 64);
    r->line[r->n++] = *line;
    r->marked += isnan(line->val) ? 0 : 1;
}

static void the_model_with_the_best_mark_is_given(void **state)
{
    (void)state;
    static const double marks[] = {3, 1, 2, 1, 5}; /* of steps 4, 8, 12, 16, 18 */
    for (int more = 0; more < 2; more++) {
        tiny t;
        record log = {0};
        pare_err err = {0};
        pare_model *m = NULL;
        pare_train_result r;
        char hex[PARE_SHA256_HEX];
        tiny_open(&t, PARE_RANDOM_GRAPH, 1);
        t.marks = marks;
        t.task.more_is_better = more;
        pare_train_opts o = tiny_opts(18);
        o.log = remember, o.log_self = &log;
        assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
        tiny_hash(hex, m);
        assert_int_equal(t.marked, 5);
        assert_int_equal(r.best_step, more ? 18 : 8); /* the first of two equal ones */
        assert_string_equal(hex, t.seen[more ? 4 : 1]);
        assert_true(r.val == (more ? 5 : 1));
        assert_int_equal(log.n, 18);
        assert_int_equal(log.marked, 5);
        assert_true(log.line[3].val == 3 && log.line[3].best && log.line[7].best != (bool)more);
        assert_true(log.line[17].step == 18 && log.line[17].steps == 18 && log.line[17].val == 5);
        assert_true(isnan(log.line[0].val) && log.line[0].norm > 0);
        for (size_t i = 0; i < log.n; i++)
            assert_true(log.line[i].best == !isnan(log.line[i].test)); /* only the best is tested */
        assert_int_equal(t.tested, 2);                                 /* 3, 1; or 3, 5 */
        assert_true(r.test == log.line[more ? 17 : 7].test);
        assert_near(log.line[0].lr, 0.01 / 3, 1e-12);
        tiny_close(&t);
    }
}

/* ---- divergence ----------------------------------------------------------------------------- */

static void a_run_that_diverges_keeps_its_best_model_and_its_checkpoint(void **state)
{
    (void)state;
    tiny t;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result r, again;
    char dir[200], path[300], copy[300], a[PARE_SHA256_HEX], b[PARE_SHA256_HEX];
    size_t n = 0;
    test_mkdir(dir);
    tiny_open(&t, PARE_RANDOM_GRAPH, 1);
    t.poison = 10;
    pare_train_opts o = tiny_opts(20);
    o.checkpoint = test_path(path, dir, "x.ckpt");
    o.resume = true;
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    tiny_hash(a, m);
    assert_true(r.diverged && r.steps == 11 && r.best_step > 0 && r.best_step <= 8);
    assert_true(isinf(r.loss) && isfinite(r.val));
    uint8_t *const kept = test_read_file(path, &n);
    test_write_file(test_path(copy, dir, "copy"), kept, n);
    free(kept);
    /* Once more from what was kept: the same end, and the file is as it was. */
    assert_ok(pare_train(&m, &again, t.start, &t.task, &o, NULL, &err), &err);
    tiny_hash(b, m);
    assert_string_equal(a, b);
    assert_true(again.diverged && again.steps == 11);
    assert_same_file(path, copy);
    t.poison = 0; /* what was kept is good: without the poison it goes to the end */
    assert_ok(pare_train(&m, &again, t.start, &t.task, &o, NULL, &err), &err);
    pare_model_free(m);
    assert_false(again.diverged);
    tiny_close(&t);
    test_rmdir(dir);
}

static void a_run_that_diverges_at_once_is_an_error(void **state)
{
    (void)state;
    tiny t;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result r;
    char dir[200], path[300];
    test_mkdir(dir);
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    pare_train_opts o = tiny_opts(20);
    o.checkpoint = test_path(path, dir, "x.ckpt");
    o.lr = 1e38, o.clip = 0, o.warmup = 0;
    o.checkpoint_every = 1;
    assert_status(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), PARE_ERR_NUMERIC, &err);
    assert_contains(err.msg, "diverged at step");
    assert_null(m);
    assert_true(r.diverged && r.best_step == 0 && isnan(r.val));
    /* If there is a checkpoint at all, it is one that can be taken up. */
    o.resume = true;
    assert_status(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), PARE_ERR_NUMERIC, &err);
    tiny_close(&t);
    test_rmdir(dir);
}

static void a_mark_that_is_no_number_ends_the_run(void **state)
{
    (void)state;
    static const double marks[] = {2, NAN, 1};
    tiny t;
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result r;
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    t.marks = marks;
    const pare_train_opts o = tiny_opts(12);
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    pare_model_free(m);
    assert_true(r.diverged && r.best_step == 4 && r.steps == 8 && r.val == 2);
    tiny_close(&t);
}

/* ---- a teacher ------------------------------------------------------------------------------ */

/* Mean KL of the two models' outputs on the test set. */
static double apart(const tiny *t, const pare_model *teacher, const pare_model *m)
{
    double sum = 0;
    for (size_t i = 0; i < t->set[2].n; i++) {
        const pare_input *const in = &t->set[2].in[i];
        float y[64 * TINY_VOCAB], s[64 * TINY_VOCAB], dy[64 * TINY_VOCAB] = {0};
        double kl = 0;
        pare_err err = {0};
        const pare_logits l = {PARE_F32, in->batch * in->tokens, pare_model_outputs(m), y};
        assert_ok(pare_forward_f32(y, m, in, NULL, NULL, &err), &err);
        assert_ok(pare_forward_f32(s, teacher, in, NULL, NULL, &err), &err);
        assert_ok(pare_loss_kl(&kl, dy, &l, s, 1, 0, NULL, &err), &err);
        sum += kl / (double)t->set[2].n;
    }
    return sum;
}

static void first_and_last(void *self, const pare_train_log *line)
{
    double *const loss = self;
    if (line->step == 1) loss[0] = line->loss;
    loss[1] = line->loss;
}

static void a_teacher_pulls_the_student(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        tiny t, teacher;
        pare_err err = {0};
        pare_model *m = NULL;
        pare_train_result r;
        tiny_open(&t, kinds[k], 1);
        tiny_open(&teacher, kinds[k], 2);
        pare_train_opts o = tiny_opts(400);
        o.dropout = 0, o.eval_every = 0;
        o.teacher = teacher.start, o.distill = 1, o.temperature = 2;
        double loss[2] = {0};
        o.log = first_and_last, o.log_self = loss;
        const double before = apart(&t, teacher.start, t.start);
        assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
        assert_le(apart(&t, teacher.start, m), 0.25 * before);
        assert_le(0.05, loss[0]);
        assert_le(loss[1], 0.5 * loss[0]);
        pare_model_free(m);
        tiny_close(&t), tiny_close(&teacher);
    }
}

/* With hidden alone the first stream (of the embedding) comes to the teacher's. */
static void hidden_states_are_learned(void **state)
{
    (void)state;
    tiny t, teacher;
    record log = {0};
    pare_err err = {0};
    pare_model *m = NULL;
    pare_train_result r;
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    tiny_open(&teacher, PARE_RANDOM_GPT, 2);
    pare_train_opts o = tiny_opts(60);
    o.dropout = 0, o.lr = 0.05, o.clip = 0;
    o.teacher = teacher.start, o.distill = 1, o.hidden = 10, o.log = remember, o.log_self = &log;
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    assert_le(log.line[59].loss, 0.2 * log.line[0].loss);
    const pare_weight *const x = &m->embedding.table, *const y = &teacher.start->embedding.table,
                             *const z = &t.start->embedding.table;
    double now = 0, then = 0;
    for (size_t i = 0; i < x->rows * x->cols; i++) {
        now += pow(pare_weight_at(x, i) - pare_weight_at(y, i), 2);
        then += pow(pare_weight_at(z, i) - pare_weight_at(y, i), 2);
    }
    assert_le(now, 0.8 * then);
    pare_model_free(m);
    /* A teacher of itself has nothing to say: only labels move it. */
    o.teacher = t.start, o.steps = 1, o.eval_every = 1, o.warmup = 0;
    log = (record){0};
    assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
    assert_near(log.line[0].loss, 0, 1e-6);
    pare_model_free(m);
    tiny_close(&t), tiny_close(&teacher);
}

/* The teacher of a batch that stays is asked once: the same bits, and no batch after the first one
 * reaches it. */
static void a_fixed_lesson_asks_its_teacher_once(void **state)
{
    (void)state;
    char hex[4][PARE_SHA256_HEX];
    for (size_t i = 0; i < 4; i++) { /* fixed or not, of batches that stay or do not */
        tiny t, teacher;
        pare_err err = {0};
        pare_model *m = NULL;
        pare_train_result r;
        tiny_open(&t, PARE_RANDOM_GRAPH, 1);
        tiny_open(&teacher, PARE_RANDOM_GRAPH, 2);
        pare_train_opts o = tiny_opts(9);
        o.teacher = teacher.start, o.distill = 0.5, o.hidden = 1;
        t.task.fixed = i % 2;
        t.same_batch = i < 2;
        assert_ok(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), &err);
        tiny_hash(hex[i], m);
        tiny_close(&t), tiny_close(&teacher);
    }
    assert_string_equal(hex[0], hex[1]);
    assert_string_not_equal(hex[2], hex[3]); /* the second one was promised what is not so */
}

static void options_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    tiny t, graph;
    tiny_open(&t, PARE_RANDOM_GPT, 1);
    tiny_open(&graph, PARE_RANDOM_GRAPH, 1);
    for (size_t i = 0; i < 14; i++) {
        pare_err err = {0};
        pare_model *m = NULL;
        pare_train_result r;
        pare_train_opts o = tiny_opts(5);
        if (i == 0) o.steps = 0;
        if (i == 1) o.warmup = 6;
        if (i == 2) o.lr = NAN;
        if (i == 3) o.lr = -1;
        if (i == 4) o.dropout = 1;
        if (i == 5) o.clip = INFINITY;
        if (i == 6) o.adamw.beta1 = 1;
        if (i == 7) o.adamw.eps = -1;
        if (i == 8) o.distill = 0.5; /* without a teacher */
        if (i == 9) o.teacher = t.start, o.distill = 1.5;
        if (i == 10) o.teacher = t.start, o.distill = 0.5, o.temperature = 0;
        if (i == 11) o.teacher = graph.start, o.distill = 0.5; /* 2 outputs, 5 here */
        if (i == 12) o.hidden = 1;
        if (i == 13) o.adamw.weight_decay = NAN;
        assert_status(pare_train(&m, &r, t.start, &t.task, &o, NULL, &err), PARE_ERR_USAGE, &err);
        assert_true(err.msg[0] && !m);
    }
    tiny_close(&t), tiny_close(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tiny_model_learns_a_tiny_lesson),
        cmocka_unit_test(seed_and_dropout_decide),
        cmocka_unit_test(a_run_that_is_stopped_keeps_its_last_step),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(taken_up_at_any_step_a_run_ends_with_the_same_bytes),
        cmocka_unit_test(a_fresh_start_replaces_the_checkpoint),
        cmocka_unit_test(another_run_is_not_taken_up),
        cmocka_unit_test(the_model_with_the_best_mark_is_given),
        cmocka_unit_test(a_run_that_diverges_keeps_its_best_model_and_its_checkpoint),
        cmocka_unit_test(a_run_that_diverges_at_once_is_an_error),
        cmocka_unit_test(a_mark_that_is_no_number_ends_the_run),
        cmocka_unit_test(a_teacher_pulls_the_student),
        cmocka_unit_test(hidden_states_are_learned),
        cmocka_unit_test(a_fixed_lesson_asks_its_teacher_once),
        cmocka_unit_test(options_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
