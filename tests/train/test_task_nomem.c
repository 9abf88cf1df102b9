/* Every allocation of fresh models and of the tasks fails once: a status, no crash, no leak. */
#include <pare/data.h>
#include <pare/train.h>
#include "task_cases.h"
#include <fail_alloc.h>

static char dir[200], board[300], text[300], sort[300], turn[300];

static pare_status use(const pare_task *l, const pare_task_facts *f, pare_init_kind kind,
                       pare_arena *a, pare_err *err)
{
    pare_model *m = NULL;
    pare_batch b;
    double mark;
    const pare_init o = {.kind = kind,
                         .dim = 4,
                         .layers = 1,
                         .heads = 2,
                         .vocab = f->ids,
                         .context = f->tokens,
                         .features = f->features,
                         .outputs = f->outputs,
                         .pool = f->pool};
    pare_status st = pare_init_model(&m, &o, err);
    if (!st) st = l->batch(l->self, &b, a, 0, 0, err);
    if (!st) st = l->score(l->self, &mark, m, PARE_PART_VAL, NULL, err);
    if (!st && !isfinite(mark)) st = PARE_ERR_VERIFY; /* lost without a word */
    pare_model_free(m);
    return st;
}

static pare_status with_graph(pare_err *err)
{
    pare_task l;
    pare_task_facts f;
    const pare_task_graph_opts o = {.path = board, .largest_component = true};
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_task_graph(&l, &f, a, &o, err);
    if (!st) st = use(&l, &f, PARE_INIT_GRAPH, a, err);
    pare_arena_free(a);
    return st;
}

static pare_status with_text(pare_err *err)
{
    pare_task l;
    pare_task_facts f;
    const pare_task_text_opts o = {
        .train = text, .val = text, .tokenizer = PARE_TOK_BYTES, .window = 5, .batch = 2};
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_task_text(&l, &f, a, &o, err);
    if (!st) st = use(&l, &f, PARE_INIT_GPT, a, err);
    pare_arena_free(a);
    return st;
}

static pare_status series(const char *path, pare_init_kind kind, pare_err *err)
{
    pare_task l;
    pare_task_facts f;
    const pare_task_series_opts o = {.train = path, .batch = 3};
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_task_series(&l, &f, a, &o, err);
    if (!st) st = use(&l, &f, kind, a, err);
    pare_arena_free(a);
    return st;
}

static pare_status with_ids(pare_err *err)
{
    return series(sort, PARE_INIT_GPT, err);
}

static pare_status with_values(pare_err *err)
{
    return series(turn, PARE_INIT_ENCODER, err);
}

static void fails_cleanly(pare_status (*work)(pare_err *), void (*refuse)(long n))
{
    for (long n = 0; n < 3000; n++) {
        pare_err err = {0};
        refuse(n);
        const pare_status st = work(&err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        if (!hit) {
            assert_ok(st, &err);
            assert_true(n > 0);
            return;
        }
        assert_status(st, PARE_ERR_MEMORY, &err);
    }
    fail();
}

static void out_of_memory_is_always_said(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_status (*const all[])(pare_err *) = {with_graph, with_text, with_ids, with_values};
    char bytes[100];
    test_mkdir(dir);
    write_graph(test_path(board, dir, "b.npz"), (small_graph){.ring = 18, .classes = 2});
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(i * 7);
    test_write_file(test_path(text, dir, "t.txt"), bytes, sizeof bytes);
    assert_ok(pare_make_sort(test_path(sort, dir, "s.npz"), 20, 3, 3, 0, true, &err), &err);
    assert_ok(pare_make_angular(test_path(turn, dir, "a.npz"), 20, 3, 0, true, &err), &err);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fails_cleanly(all[i], fail_alloc_after);
        fails_cleanly(all[i], fail_alloc_once);
    }
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(out_of_memory_is_always_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
