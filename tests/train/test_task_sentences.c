/* Tests src/train/task_sentences.c. */
#include <pare/train.h>
#include "task_cases.h"

#include <stdio.h>

static char dir[200], some[300], others[300], bad[300];
static pare_arena *arena;

/* n sentences: row i has 1 + i % 3 letters, all of them 'a' + i % 5; the label says whether the sum
 * of both is odd. */
static void write_rows(const char *path, size_t n)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("sentence\tlabel\n", f);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k <= i % 3; k++) fputc('a' + (int)(i % 5), f);
        fprintf(f, "\t%zu\n", (i % 3 + i % 5) % 2);
    }
    assert_int_equal(fclose(f), 0);
}

static int set_up(void **state)
{
    (void)state;
    test_mkdir(dir);
    arena = pare_arena_new();
    write_rows(test_path(some, dir, "some.tsv"), 100);
    write_rows(test_path(others, dir, "others.tsv"), 12);
    test_path(bad, dir, "bad.tsv");
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    test_rmdir(dir);
    pare_arena_free(arena);
    return 0;
}

static pare_task make(pare_task_sentences_opts o, pare_task_facts *f)
{
    pare_task l;
    pare_err err = {0};
    o.tokenizer = PARE_TOK_BYTES;
    assert_ok(pare_task_sentences(&l, f, arena, &o, &err), &err);
    return l;
}

static void the_facts_are_those_of_the_files(void **state)
{
    (void)state;
    pare_task_facts f;
    const pare_task l =
        make((pare_task_sentences_opts){.train = some, .shares = true, .batch = 8}, &f);
    assert_true(f.ids == 256 && f.outputs == 2 && f.tokens == 3 && f.pool == PARE_POOL_FIRST);
    assert_true(f.train == 80 && f.val == 10 && f.test == 10);
    assert_string_equal(l.metric, "accuracy");
    assert_true(l.more_is_better && l.epoch == 10);
    make((pare_task_sentences_opts){.train = some, .val = others, .test = others, .batch = 8}, &f);
    assert_true(f.train == 100 && f.val == 12 && f.test == 12);
    make((pare_task_sentences_opts){.train = some, .shares = true, .batch = 8, .context = 2}, &f);
    assert_int_equal(f.tokens, 2); /* longer ones are cut */
    assert_true(f.notes.longer > 0 && f.notes.most == 2 && f.notes.longest == 3);
    assert_int_equal(f.train + f.val + f.test, 100);
}

/* Labels with their sentences, several lengths in a batch, and every length as often as it is there. */
static void a_batch_has_any_lengths_and_every_row_its_turn(void **state)
{
    (void)state;
    enum { STEPS = 3000 };
    pare_task_facts f;
    pare_err err = {0};
    const pare_task l =
        make((pare_task_sentences_opts){.train = some, .shares = true, .batch = 4}, &f);
    size_t length[4] = {0}, mixed = 0;
    for (uint64_t step = 0; step < STEPS; step++) {
        pare_batch b;
        const pare_mark mark = pare_arena_mark(arena);
        assert_ok(l.batch(l.self, &b, arena, 0, step, &err), &err);
        assert_true(b.in.n == 4 && !b.value);
        for (size_t i = 0; i < 4; i++) {
            const pare_input *const in = &b.in.in[i];
            assert_true(in->batch == 1 && in->tokens >= 1 && in->tokens <= 3);
            length[in->tokens]++;
            mixed += in->tokens != b.in.in[0].tokens;
            assert_int_equal(b.label[i], ((int64_t)in->tokens - 1 + in->ids[0] - 'a') % 2);
            for (size_t k = 1; k < in->tokens; k++) assert_int_equal(in->ids[k], in->ids[0]);
        }
        pare_arena_reset(arena, mark);
    }
    for (size_t t = 1; t <= 3; t++) /* about a third each: 80 of 100 rows are drawn from */
        assert_true(length[t] > (size_t)4 * STEPS / 5 && length[t] < (size_t)4 * STEPS / 2);
    assert_true(mixed > STEPS);
}

static void parts_follow_the_split(void **state)
{
    (void)state;
    pare_task_facts f;
    const pare_task a =
        make((pare_task_sentences_opts){.train = some, .shares = true, .batch = 4}, &f);
    const pare_task b =
        make((pare_task_sentences_opts){.train = some, .shares = true, .batch = 4, .split = 1}, &f);
    assert_string_not_equal(a.id, b.id);
}

static void refused(pare_task_sentences_opts o, const char *why)
{
    pare_task l;
    pare_task_facts f;
    pare_err err = {0};
    o.tokenizer = PARE_TOK_BYTES;
    o.batch = 2;
    o.shares = true;
    assert_status(pare_task_sentences(&l, &f, arena, &o, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, why);
}

static void bad_files_are_named(void **state)
{
    (void)state;
    write_rows(bad, 5);
    refused((pare_task_sentences_opts){.train = bad}, "too few sentences");
    refused((pare_task_sentences_opts){.train = some, .outputs = 1}, "line 5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_facts_are_those_of_the_files),
        cmocka_unit_test(a_batch_has_any_lengths_and_every_row_its_turn),
        cmocka_unit_test(parts_follow_the_split),
        cmocka_unit_test(bad_files_are_named),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
