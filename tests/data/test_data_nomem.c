/* Every allocation of src/data fails once: a status, no crash, no leak, no half-written file. */
#include "data/graph_data.h"
#include "small.h"
#include <fail_alloc.h>

static char dir[200], text[300], table[300], rows[300], lines[300], board[300], arrays[300],
    made[300];

static pare_model text_model(void)
{
    static const char merges[] = "a b\nab c\n";
    pare_model m = small_model(259, 259, PARE_POOL_NONE);
    m.tokenizer = PARE_TOK_GPT2;
    m.vocab = (const uint8_t *)merges;
    m.vocab_bytes = sizeof merges - 1;
    return m;
}

static pare_model word_model(void)
{
    static const char words[] = "good\nbad\n";
    pare_model m = small_model(2, 2, PARE_POOL_FIRST);
    m.tokenizer = PARE_TOK_WORDS;
    m.vocab = (const uint8_t *)words;
    m.vocab_bytes = sizeof words - 1;
    return m;
}

static pare_status load(const pare_model *m, const char *path, pare_err *err)
{
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_dataset set;
    const pare_status st = pare_dataset_load(&set, a, m, path, NULL, err);
    pare_arena_free(a);
    return st;
}

static pare_status load_txt(pare_err *err)
{
    const pare_model m = text_model();
    return load(&m, text, err);
}

static pare_status load_tsv(pare_err *err)
{
    const pare_model m = word_model();
    return load(&m, table, err);
}

static pare_status load_csv(pare_err *err)
{
    const pare_model m = word_model();
    return load(&m, rows, err);
}

static pare_status load_jsonl(pare_err *err)
{
    const pare_model m = text_model();
    return load(&m, lines, err);
}

static pare_status load_board(pare_err *err)
{
    pare_model m = small_vector_model(7, 2, PARE_POOL_NONE);
    m.pattern.kind = PARE_GRAPH;
    return load(&m, board, err);
}

static pare_status load_arrays(pare_err *err)
{
    const pare_model m = small_model(3, 3, PARE_POOL_NONE);
    return load(&m, arrays, err);
}

static pare_status make_all(pare_err *err)
{
    pare_status st = pare_make_minesweeper(made, 4, 0, true, err);
    if (st == PARE_OK) st = pare_make_angular(made, 3, 4, 0, true, err);
    if (st == PARE_OK) st = pare_make_sort(made, 3, 4, 3, 0, true, err);
    if (st == PARE_OK) st = pare_make_random_vectors(made, 3, 4, 2, 0, true, err);
    return st;
}

static pare_status measure(pare_err *err)
{
    static const float x[8] = {0, 1, 1, 0, 3, 1, 0, 2};
    static const int64_t y[4] = {0, 1, 0, 1};
    pare_arena *a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_metric *m;
    pare_kl *k;
    pare_scores s;
    pare_kl_report r;
    pare_status st = pare_metric_new(&m, a, 2, err);
    if (st == PARE_OK) st = pare_metric_add(m, x, y, 4, err);
    if (st == PARE_OK) st = pare_metric_scores(&s, m, err);
    if (st == PARE_OK) st = pare_kl_new(&k, a, 2, err);
    if (st == PARE_OK) st = pare_kl_add(k, x, x, 4, err);
    if (st == PARE_OK) st = pare_kl_scores(&r, k, err);
    if (st == PARE_OK && isnan(s.auc)) st = PARE_ERR_VERIFY; /* lost without a word */
    pare_arena_free(a);
    return st;
}

static pare_status detect(pare_err *err)
{
    pare_tokenizer_kind kind;
    const pare_status st = pare_vocab_detect(&kind, (const uint8_t *)"good\nbad\n", 9, err);
    return st == PARE_OK && kind != PARE_TOK_WORDS ? PARE_ERR_VERIFY : st;
}

static void fails_cleanly_when(pare_status (*work)(pare_err *), const char *what,
                               void (*refuse)(long n))
{
    for (long n = 0; n < 2000; n++) {
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
        if (st != PARE_ERR_MEMORY) {
            print_error("%s, allocation %ld: status %d, %s\n", what, n, (int)st, err.msg);
            fail();
        }
    }
    fail();
}

/* One allocation is refused, and all after it or none. */
static void fails_cleanly(pare_status (*work)(pare_err *), const char *what)
{
    fails_cleanly_when(work, what, fail_alloc_after);
    fails_cleanly_when(work, what, fail_alloc_once);
}

static void out_of_memory_is_always_said(void **state)
{
    (void)state;
    pare_err err;
    test_mkdir(dir);
    test_path(text, dir, "t.txt");
    test_path(table, dir, "t.tsv");
    test_path(rows, dir, "t.csv");
    test_path(lines, dir, "t.jsonl");
    test_path(board, dir, "b.npz");
    test_path(arrays, dir, "a.npz");
    test_path(made, dir, "m.npz");
    test_write_file(text, "abc ab <|endoftext|> abcab", 26);
    test_write_file(table, "sentence\tlabel\ngood bad\t1\n", 26);
    test_write_file(rows, "text,label\n\"good \"\"bad\",1\n", 26);
    test_write_file(lines, "{\"text\": \"abc ab\"}\n{\"text\": \"abc\"}\n", 35);
    assert_ok(pare_make_minesweeper(board, 4, 0, true, &err), &err);
    assert_ok(pare_make_sort(arrays, 3, 4, 3, 0, true, &err), &err);
    fails_cleanly(load_txt, "txt");
    fails_cleanly(load_tsv, "tsv");
    fails_cleanly(load_csv, "csv");
    fails_cleanly(load_jsonl, "jsonl");
    fails_cleanly(load_board, "graph");
    fails_cleanly(load_arrays, "arrays");
    fails_cleanly(make_all, "generators");
    fails_cleanly(measure, "metrics");
    fails_cleanly(detect, "detect");
    test_rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(out_of_memory_is_always_said)};
    fail_alloc_in_json();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
