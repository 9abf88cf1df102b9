/* Tests that the tasks of src/train follow the one rule for held-out data: a score is what evaluation
 * finds on the inputs that the seed holds out, and no batch has a token of them. */
#include <pare/data.h>
#include <pare/train.h>
#include "task_cases.h"

enum { STEPS = 400, WINDOW = 16 };

static char dir[200], text[300], documents[300], sort[300], turn[300], sentences[300];
static pare_arena *arena;

/* Random letters: a few of them in a row stand in one place only. */
static void write_letters(FILE *f, pare_rng *r, size_t n)
{
    for (size_t i = 0; i < n; i++) fputc('a' + (int)pare_rng_below(r, 26), f);
}

static int set_up(void **state)
{
    (void)state;
    pare_err err = {0};
    pare_rng r = pare_rng_at(7, 7);
    test_mkdir(dir);
    arena = pare_arena_new();
    FILE *f = fopen(test_path(text, dir, "t.txt"), "w");
    assert_non_null(f);
    write_letters(f, &r, 4000);
    assert_int_equal(fclose(f), 0);
    assert_non_null(f = fopen(test_path(documents, dir, "d.txt"), "w"));
    for (size_t i = 0; i < 40; i++) {
        if (i) fputs("\n\n", f);
        write_letters(f, &r, 9 + i); /* shorter and longer than a window */
    }
    assert_int_equal(fclose(f), 0);
    assert_non_null(f = fopen(test_path(sentences, dir, "s.tsv"), "w"));
    fputs("sentence\tlabel\n", f);
    for (size_t i = 0; i < 90; i++) {
        write_letters(f, &r, 8 + i % 5);
        fprintf(f, "\t%zu\n", i % 2);
    }
    assert_int_equal(fclose(f), 0);
    assert_ok(pare_make_sort(test_path(sort, dir, "s.npz"), 700, 9, 9, 0, false, &err), &err);
    assert_ok(pare_make_angular(test_path(turn, dir, "a.npz"), 60, 5, 0, false, &err), &err);
    return arena ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    test_rmdir(dir);
    pare_arena_free(arena);
    return 0;
}

/* ---- what every task is asked ---------------------------------------------------------------- */

static pare_model *model_for(const pare_task_facts *f)
{
    pare_model *m = NULL;
    pare_err err = {0};
    const pare_init init = {.kind = f->pool == PARE_POOL_NONE ? PARE_INIT_GPT : PARE_INIT_ENCODER,
                            .dim = 8,
                            .layers = 1,
                            .heads = 2,
                            .vocab = f->ids,
                            .context = f->tokens,
                            .features = f->features,
                            .outputs = f->outputs,
                            .pool = f->pool};
    assert_ok(pare_init_model(&m, &init, &err), &err);
    m->tokenizer = f->ids == 256 ? PARE_TOK_BYTES : PARE_TOK_NONE;
    return m;
}

/* Whether `n` numbers occur in `all`, which has a row of `size` numbers in each input. */
static bool occurs(const pare_input *in, const int64_t *ids, size_t n)
{
    for (size_t at = 0; at + n <= in->tokens; at++)
        if (memcmp(in->ids + at, ids, n * sizeof *ids) == 0) return true;
    return false;
}

/* No `least` tokens in a row of a held-out input stand in the batch (vectors: no whole input does). */
static void check_batch(const pare_batch *b, const pare_inputs *held, size_t least)
{
    for (size_t i = 0; i < b->in.n; i++)
        for (size_t s = 0; s < b->in.in[i].batch; s++)
            for (size_t h = 0; h < held->n; h++) {
                const pare_input *const in = &b->in.in[i], *const out = &held->in[h];
                const size_t row = in->tokens * (in->x ? in->width : 1);
                if (in->x) assert_memory_not_equal(in->x + s * row, out->x, row * sizeof *in->x);
                for (size_t k = 0; in->ids && k + least <= in->tokens; k++)
                    assert_false(occurs(out, in->ids + s * row + k, least));
            }
}

static void check_task(const pare_task *l, const pare_task_facts *f, const char *path,
                       uint64_t seed, bool whole, size_t least)
{
    pare_model *const m = model_for(f);
    pare_err err = {0};
    pare_dataset all, held;
    pare_evaluation e;
    double got;
    const pare_data_opts o = {.whole = whole};
    assert_ok(pare_dataset_load(&all, arena, m, path, &o, &err), &err);
    assert_ok(pare_dataset_heldout(&held, arena, &all, seed, &err), &err);
    assert_ok(pare_evaluate(&e, m, &held, false, NULL, &err), &err);
    assert_ok(l->score(l->self, &got, m, PARE_PART_TEST, NULL, &err), &err);
    assert_true(got == (all.task == PARE_TASK_TEXT ? e.scores.nats : e.value));
    assert_true(held.inputs.n < all.inputs.n && f->on[PARE_PART_TEST].of > 0);
    assert_int_equal(f->on[PARE_PART_TEST].inputs, f->on[PARE_PART_VAL].inputs);
    for (uint64_t step = 0; step < STEPS; step++) {
        pare_batch b;
        const pare_mark mark = pare_arena_mark(arena);
        assert_ok(l->batch(l->self, &b, arena, 1, step, &err), &err);
        check_batch(&b, &held.inputs, least);
        pare_arena_reset(arena, mark);
    }
    pare_model_free(m);
}

/* Every window stands in the text as it is: none reaches over what was taken out. */
static void check_no_gap(const pare_task *l)
{
    static char all[5000];
    int64_t ids[sizeof all];
    pare_err err = {0};
    FILE *const f = fopen(text, "r");
    assert_non_null(f);
    const size_t n = fread(all, 1, sizeof all, f);
    assert_int_equal(fclose(f), 0);
    for (size_t i = 0; i < n; i++) ids[i] = all[i];
    const pare_input whole = {.batch = 1, .tokens = n, .ids = ids};
    size_t shorter = 0;
    for (uint64_t step = 0; step < STEPS; step++) {
        pare_batch b;
        assert_ok(l->batch(l->self, &b, arena, 1, step, &err), &err);
        const int64_t *label = b.label;
        for (size_t i = 0; i < b.in.n; i++) {
            const pare_input *const in = &b.in.in[i];
            assert_true(occurs(&whole, in->ids, in->tokens + 1)); /* with the last label */
            assert_memory_equal(label, in->ids + 1, (in->tokens - 1) * sizeof *label);
            assert_int_equal(label[in->tokens - 1], in->ids[in->tokens]);
            label += in->tokens;
            shorter += in->tokens < WINDOW;
        }
    }
    assert_true(shorter > 0); /* single windows between two that are held out */
}

/* ---- the tasks ------------------------------------------------------------------------------- */

static void windows_of_a_text(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        pare_task l;
        pare_task_facts f;
        pare_err err = {0};
        const pare_task_text_opts o = {
            .train = text, .seed = seed, .tokenizer = PARE_TOK_BYTES, .window = WINDOW, .batch = 5};
        assert_ok(pare_task_text(&l, &f, arena, &o, &err), &err);
        assert_true(f.on[PARE_PART_TEST].of == 250 && f.on[PARE_PART_TEST].inputs == 62);
        assert_false(f.on[PARE_PART_TEST].documents);
        check_task(&l, &f, text, seed, false, 6);
        check_no_gap(&l);
    }
}

static void documents_of_a_text_or_all_as_one(void **state)
{
    (void)state;
    for (unsigned whole = 0; whole < 2; whole++) {
        pare_task l;
        pare_task_facts f;
        pare_err err = {0};
        const pare_task_text_opts o = {.train = documents,
                                       .seed = 4,
                                       .whole = whole,
                                       .tokenizer = PARE_TOK_BYTES,
                                       .window = WINDOW,
                                       .batch = 5};
        assert_ok(pare_task_text(&l, &f, arena, &o, &err), &err);
        assert_int_equal(f.on[PARE_PART_TEST].documents, !whole);
        if (!whole) assert_int_equal(f.on[PARE_PART_TEST].of, 40);
        check_task(&l, &f, documents, 4, whole, 6);
    }
}

/* Blank lines between documents are learned: they come between two in a window. */
static void what_separates_documents_stands_between_them(void **state)
{
    (void)state;
    pare_task l;
    pare_task_facts f;
    pare_err err = {0};
    size_t between = 0, single = 0;
    const pare_task_text_opts o = {
        .train = documents, .tokenizer = PARE_TOK_BYTES, .window = WINDOW, .batch = 5};
    assert_ok(pare_task_text(&l, &f, arena, &o, &err), &err);
    for (uint64_t step = 0; step < 50; step++) {
        pare_batch b;
        assert_ok(l.batch(l.self, &b, arena, 1, step, &err), &err);
        for (size_t i = 0; i < b.in.n; i++)
            for (size_t k = 0; k + 2 < b.in.in[i].tokens; k++) {
                const int64_t *const at = b.in.in[i].ids + k;
                between += at[0] != '\n' && at[1] == '\n' && at[2] == '\n';
                single += at[0] != '\n' && at[1] == '\n' && at[2] != '\n';
            }
    }
    assert_true(between > 20 && single == 0);
}

static void rows_of_sequences_and_sentences(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 3; seed++) {
        pare_task l;
        pare_task_facts f;
        pare_err err = {0};
        pare_task_series_opts o = {.train = sort, .seed = seed, .batch = 8};
        assert_ok(pare_task_series(&l, &f, arena, &o, &err), &err);
        assert_true(f.test == 128 && f.val == 128 && f.train == 700 - 256);
        check_task(&l, &f, sort, seed, false, 17);
        o.train = turn;
        assert_ok(pare_task_series(&l, &f, arena, &o, &err), &err);
        assert_true(f.test == 15 && f.val == 15 && f.train == 30);
        check_task(&l, &f, turn, seed, false, 0);
        const pare_task_sentences_opts s = {
            .train = sentences, .seed = seed, .tokenizer = PARE_TOK_BYTES, .batch = 8};
        assert_ok(pare_task_sentences(&l, &f, arena, &s, &err), &err);
        assert_true(f.test == 22 && f.val == 22 && f.train == 46);
        check_task(&l, &f, sentences, seed, false, 6);
    }
}

static void a_run_of_another_draw_has_another_fingerprint(void **state)
{
    (void)state;
    pare_task a, b;
    pare_task_facts f;
    pare_err err = {0};
    pare_task_series_opts o = {.train = sort, .batch = 8};
    assert_ok(pare_task_series(&a, &f, arena, &o, &err), &err);
    o.seed = 1;
    assert_ok(pare_task_series(&b, &f, arena, &o, &err), &err);
    assert_string_not_equal(a.id, b.id);
    o = (pare_task_series_opts){.train = sort, .batch = 8, .shares = true};
    assert_ok(pare_task_series(&b, &f, arena, &o, &err), &err);
    assert_string_not_equal(a.id, b.id);
    assert_int_equal(f.on[PARE_PART_TEST].of, 0);
}

static void too_little_to_set_aside_is_said(void **state)
{
    (void)state;
    char few[300];
    pare_task l;
    pare_task_facts f;
    pare_err err = {0};
    test_write_file(test_path(few, dir, "few.txt"), "0123456789abcdefghij", 20);
    const pare_task_text_opts o = {
        .train = few, .tokenizer = PARE_TOK_BYTES, .window = 10, .batch = 5};
    assert_status(pare_task_text(&l, &f, arena, &o, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "few.txt: too few inputs (2) to train on some");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_of_a_text),
        cmocka_unit_test(documents_of_a_text_or_all_as_one),
        cmocka_unit_test(what_separates_documents_stands_between_them),
        cmocka_unit_test(rows_of_sequences_and_sentences),
        cmocka_unit_test(a_run_of_another_draw_has_another_fingerprint),
        cmocka_unit_test(too_little_to_set_aside_is_said),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
