/* Tests src/data/dataset.c, dataset_builder.c and text_dataset.c. */
#include "base/array.h"
#include "base/support.h"
#include "data/graph_data.h"
#include "model/inputs.h"
#include "small.h"

typedef struct place {
    char dir[200], path[300];
    pare_arena *arena;
    pare_err err;
    pare_dataset set;
} place;

static void open_place(place *p, const char *name)
{
    test_mkdir(p->dir);
    test_path(p->path, p->dir, name);
    p->arena = pare_arena_new();
}

static void close_place(place *p)
{
    pare_arena_free(p->arena);
    test_rmdir(p->dir);
}

static pare_status load_text(place *p, const pare_model *m, const char *text, size_t window)
{
    test_write_file(p->path, text, strlen(text));
    return pare_dataset_load(&p->set, p->arena, m, p->path, &(pare_data_opts){.window = window},
                             &p->err);
}

static void assert_refused(place *p, pare_status st, pare_status want, const char *says)
{
    assert_status(st, want, &p->err);
    assert_contains(p->err.msg, says);
    assert_contains(p->err.msg, p->path);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void windows_cover_every_token_once(void **state)
{
    (void)state;
    place p;
    open_place(&p, "t.txt");
    pare_model m = small_model(256, 256, PARE_POOL_NONE);
    m.tokenizer = PARE_TOK_BYTES;
    assert_ok(load_text(&p, &m, "abcdefgh", 3), &p.err);
    assert_true(p.set.task == PARE_TASK_TEXT && p.set.inputs.n == 3 && p.set.skipped == 0);
    const pare_input *in = p.set.inputs.in;
    assert_true(in[0].batch == 1 && in[0].tokens == 3 && in[1].tokens == 3 && in[2].tokens == 2);
    assert_true(in[0].ids[0] == 'a' && in[1].ids[0] == 'd' && in[2].ids[1] == 'h');
    const int64_t want[3][3] = {{'b', 'c', 'd'}, {'e', 'f', 'g'}, {'h', -1, 0}};
    for (size_t i = 0; i < 3; i++)
        assert_memory_equal(p.set.target[i], want[i], in[i].tokens * sizeof(int64_t));
    /* One token left over predicts nothing: dropped, but it is a target. */
    assert_ok(load_text(&p, &m, "abcdefg", 3), &p.err);
    assert_int_equal(p.set.inputs.n, 2);
    assert_int_equal(p.set.target[1][2], 'g');
    assert_refused(&p, load_text(&p, &m, "a", 3), PARE_ERR_INPUT, "fewer than two tokens");
    assert_refused(&p, load_text(&p, &m, "", 3), PARE_ERR_INPUT, "fewer than two tokens");
    close_place(&p);
}

static void the_window_is_the_context_but_at_most_512(void **state)
{
    (void)state;
    place p;
    open_place(&p, "t.txt");
    pare_model m = small_model(256, 256, PARE_POOL_NONE);
    m.tokenizer = PARE_TOK_BYTES;
    char text[1200];
    memset(text, 'x', sizeof text);
    text[1199] = 0;
    static const size_t context[] = {0, 100, 512, 4096}, want[] = {512, 100, 512, 512};
    for (size_t i = 0; i < 4; i++) {
        m.context = context[i];
        assert_ok(load_text(&p, &m, text, 0), &p.err);
        assert_int_equal(p.set.inputs.in[0].tokens, want[i]);
    }
    m.context = 100;
    assert_refused(&p, load_text(&p, &m, text, 101), PARE_ERR_USAGE, "longer than the context 100");
    close_place(&p);
}

static void text_needs_a_model_that_reads_text(void **state)
{
    (void)state;
    place p;
    open_place(&p, "t.txt");
    pare_model m = small_model(256, 256, PARE_POOL_NONE);
    m.tokenizer = PARE_TOK_NONE;
    assert_refused(&p, load_text(&p, &m, "abc", 0), PARE_ERR_INPUT, "no tokenizer");
    m = small_vector_model(4, 2, PARE_POOL_NONE);
    assert_refused(&p, load_text(&p, &m, "abc", 0), PARE_ERR_INPUT, "vectors of width 4");
    m = small_model(98, 256, PARE_POOL_NONE); /* 'c' is 99 */
    m.tokenizer = PARE_TOK_BYTES;
    assert_refused(&p, load_text(&p, &m, "abc", 0), PARE_ERR_INPUT, "vocabulary of 98");
    m = small_model(256, 99, PARE_POOL_NONE);
    m.tokenizer = PARE_TOK_BYTES;
    assert_refused(&p, load_text(&p, &m, "abc", 0), PARE_ERR_INPUT, "target 99");
    close_place(&p);
}

/* A vocabulary of llama2.c with the bytes alone: 0 unknown, 1 begins a text, 2 ends it. */
static size_t byte_vocabulary(uint8_t vocab[4096])
{
    size_t n = 4;
    memcpy(vocab, &(int32_t){8}, 4);
    for (int id = 0; id < 259; id++) {
        char text[16];
        if (id < 3)
            strcpy(text, id == 0 ? "<unk>" : id == 1 ? "\n<s>\n" : "\n</s>\n");
        else
            sprintf(text, "<0x%02X>", (unsigned)(id - 3) & 255);
        memcpy(vocab + n, &(float){0}, 4);
        memcpy(vocab + n + 4, &(int32_t){(int32_t)strlen(text)}, 4);
        memcpy(vocab + n + 8, text, strlen(text));
        n += 8 + strlen(text);
    }
    return n;
}

static void stories_begin_anew_for_llama(void **state)
{
    (void)state;
    uint8_t vocab[4096];
    const size_t n = byte_vocabulary(vocab);
    place p;
    open_place(&p, "t.txt");
    pare_model m = small_model(259, 259, PARE_POOL_NONE);
    m.tokenizer = PARE_TOK_LLAMA2C;
    m.vocab = vocab;
    m.vocab_bytes = n;
    assert_ok(
        load_text(&p, &m,
                  "\na\n\nb\n<|endoftext|>\n  \n<|endoftext|>\r\n c <|endoftext|>\n<|endoftext|>",
                  9),
        &p.err);
    /* "a", an empty line, "b"; nothing; and one in whose middle the mark is not a line. */
    assert_int_equal(p.set.inputs.n, 3);
    const pare_input *in = p.set.inputs.in;
    const int64_t first[6] = {1, ' ' + 3, 'a' + 3, '\n' + 3, '\n' + 3, 'b' + 3};
    assert_int_equal(in[0].tokens, 6);
    assert_memory_equal(in[0].ids, first, sizeof first);
    assert_true(in[1].ids[0] == 1 && in[1].ids[2] == 'c' + 3 && in[1].ids[4] == '<' + 3);
    assert_int_equal(in[1].tokens + in[2].tokens, 2 + 15); /* "c <|endoftext|>" */
    close_place(&p);
}

static void rows_of_ids_are_texts(void **state)
{
    (void)state;
    place p;
    open_place(&p, "t.npy");
    const pare_model m = small_model(10, 10, PARE_POOL_NONE);
    static const int32_t ids[] = {1, 2, 3, 4, 5, 6, 7, 8};
    pare_array a = {PARE_I32, 2, {2, 4}, ids};
    assert_ok(pare_npy_write(p.path, &a, true, &p.err), &p.err);
    assert_ok(pare_dataset_load(&p.set, p.arena, &m, p.path, NULL, &p.err), &p.err);
    assert_true(p.set.task == PARE_TASK_TEXT && p.set.inputs.n == 2);
    const int64_t want[4] = {6, 7, 8, -1};
    assert_memory_equal(p.set.target[1], want, sizeof want);
    a.shape[0] = 8;
    a.shape[1] = 1;
    assert_ok(pare_npy_write(p.path, &a, true, &p.err), &p.err);
    assert_refused(&p, pare_dataset_load(&p.set, p.arena, &m, p.path, NULL, &p.err), PARE_ERR_INPUT,
                   "no row has two tokens");
    a.ndim = 1;
    assert_ok(pare_npy_write(p.path, &a, true, &p.err), &p.err);
    assert_ok(pare_dataset_load(&p.set, p.arena, &m, p.path, NULL, &p.err), &p.err);
    assert_int_equal(p.set.inputs.n, 1); /* one row needs no batch around it */
    assert_int_equal(p.set.inputs.in[0].tokens, 8);
    assert_int_equal(p.set.target[0][6], 8);
    const float reals[] = {1, 2};
    const pare_array numbers = {PARE_F32, 1, {2}, reals};
    assert_ok(pare_npy_write(p.path, &numbers, true, &p.err), &p.err);
    assert_refused(&p, pare_dataset_load(&p.set, p.arena, &m, p.path, NULL, &p.err), PARE_ERR_INPUT,
                   "F32 [2], expected ids [T] or [B, T]");
    close_place(&p);
}

/* ---- texts of the model itself ----------------------------------------------------------------- */

static void a_model_writes_texts_that_depend_on_the_seed_and_their_number(void **state)
{
    (void)state;
    uint8_t vocab[4096];
    pare_random_model_opts o = PARE_RANDOM_MODEL_OPTS_DEFAULT;
    pare_dataset five, three, other;
    pare_model *m;
    pare_err err = {0};
    pare_arena *const a = pare_arena_new();
    size_t n;
    o.dim = 16, o.layers = 1, o.heads = 2, o.vocab = 259, o.context = 20;
    assert_ok(pare_random_model(&m, &o, &err), &err);
    m->tokenizer = PARE_TOK_LLAMA2C;
    m->vocab = vocab;
    m->vocab_bytes = byte_vocabulary(vocab);
    assert_ok(pare_dataset_load(&five, a, m, "self:5", NULL, &err), &err);
    assert_ok(pare_dataset_load(&three, a, m, "self:3", NULL, &err), &err);
    assert_ok(pare_dataset_load(&other, a, m, "self:5", &(pare_data_opts){.seed = 1}, &err), &err);
    assert_true(five.task == PARE_TASK_TEXT && five.documents == 5 && five.inputs.n == 5);
    size_t same = 0;
    for (size_t i = 0; i < 5; i++) {
        const pare_input *const x = &five.inputs.in[i], *const y = &other.inputs.in[i];
        assert_true(x->ids[0] == 1 && x->tokens <= 20 && !x->continues);
        for (size_t k = 1; k < x->tokens; k++) assert_true(x->ids[k] != 2);
        if (i < 3) {
            assert_int_equal(three.inputs.in[i].tokens, x->tokens);
            assert_memory_equal(three.inputs.in[i].ids, x->ids, x->tokens * sizeof *x->ids);
        }
        for (size_t j = 0; j < i; j++) /* texts differ, and from those of another seed */
            assert_memory_not_equal(x->ids, five.inputs.in[j].ids, 3 * sizeof *x->ids);
        same += memcmp(x->ids, y->ids, 3 * sizeof *x->ids) == 0;
    }
    assert_int_equal(same, 0);
    assert_true(pare_data_is_self("self:12", &n) && n == 12);
    assert_false(pare_data_is_self("self:0", &n) || pare_data_is_self("self:", &n) ||
                 pare_data_is_self("self:1x", &n) || pare_data_is_self("self:9999999999", &n) ||
                 pare_data_is_self("itself:3", &n));
    m->tokenizer = PARE_TOK_BYTES;
    m->vocab = NULL;
    m->vocab_bytes = 0;
    assert_status(pare_dataset_load(&five, a, m, "self:5", NULL, &err), PARE_ERR_INPUT, &err);
    assert_contains(err.msg, "no token that begins or ends a text");
    pare_model_free(m);
    pare_arena_free(a);
}

/* ---- sentences ------------------------------------------------------------------------------- */

static pare_model sentence_model(void)
{
    static const char words[] = "[CLS]\n[SEP]\ngood\nbad\n";
    pare_model m = small_model(4, 2, PARE_POOL_FIRST);
    m.tokenizer = PARE_TOK_WORDS;
    m.vocab = (const uint8_t *)words;
    m.vocab_bytes = sizeof words - 1;
    return m;
}

static void sentences_come_with_their_labels(void **state)
{
    (void)state;
    place p;
    open_place(&p, "s.tsv");
    pare_model m = sentence_model();
    assert_ok(load_text(&p, &m, "sentence\tlabel\nGood good film\t1\r\nbad\t0\n\r\n\n", 0), &p.err);
    assert_true(p.set.task == PARE_TASK_SENTENCE && p.set.inputs.n == 2);
    const int64_t first[4] = {0, 2, 2, 1};
    assert_int_equal(p.set.inputs.in[0].tokens, 4);
    assert_memory_equal(p.set.inputs.in[0].ids, first, sizeof first);
    assert_true(p.set.target[0][0] == 1 && p.set.target[1][0] == 0);
    m.context = 3;
    assert_ok(load_text(&p, &m, "sentence\tlabel\ngood good\t1\nbad\t0", 0), &p.err);
    assert_true(p.set.inputs.n == 2 && p.set.skipped == 0); /* cut, and [SEP] stays at its end */
    const int64_t cut[3] = {0, 2, 1};
    assert_int_equal(p.set.inputs.in[0].tokens, 3);
    assert_memory_equal(p.set.inputs.in[0].ids, cut, sizeof cut);
    const pare_text_notes *const notes = &p.set.notes;
    assert_true(notes->longer == 1 && notes->longest == 4 && notes->most == 3);
    close_place(&p);
}

static void bad_lines_are_named(void **state)
{
    (void)state;
    place p;
    open_place(&p, "s.tsv");
    const pare_model m = sentence_model();
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "empty"},
        {"a\tb\n", "which column is the text? The first row has: 1 \"a\", 2 \"b\""},
        {"sentence\tlabel\n", "the file is empty"},
        {"sentence\tlabel\ngood\t1\nbad\n", "line 3: 1 field; the first row has 2"},
        {"sentence\tlabel\ngood\t\n", "line 2"},
        {"sentence\tlabel\ngood\t-1\n", "line 2"},
        {"sentence\tlabel\ngood\t1 \n", "line 2"},
        {"sentence\tlabel\ngood\tbad\t1\n", "line 2"},
        {"sentence\tlabel\n\ngood\t1\n", "line 2"},
        {"sentence\tlabel\ngood\t1\ngood\t2\n", "line 3: target 2"},
        {"sentence\tlabel\ngood\t99999999999999999999\n", "line 2"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_refused(&p, load_text(&p, &m, bad[i].text, 0), PARE_ERR_INPUT, bad[i].says);
    close_place(&p);
}

/* ---- arrays ---------------------------------------------------------------------------------- */

static pare_status load_arrays(place *p, const pare_model *m, size_t n, pare_array in,
                               pare_array target)
{
    static const char *const names[2] = {"inputs", "targets"};
    const pare_array arrays[2] = {in, target};
    assert_ok(pare_npz_write(p->path, n, names, arrays, false, true, &p->err), &p->err);
    return pare_dataset_load(&p->set, p->arena, m, p->path, NULL, &p->err);
}

static void arrays_are_read_row_by_row(void **state)
{
    (void)state;
    place p;
    open_place(&p, "a.npz");
    static const int64_t ids[6] = {0, 1, 2, 3, 4, 0}, y[6] = {-1, 1, 2, -1, 0, 1};
    static const float x[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    const pare_array in = {PARE_I64, 2, {2, 3}, ids}, per_token = {PARE_I64, 2, {2, 3}, y},
                     per_row = {PARE_I64, 1, {2}, y + 1}, vectors = {PARE_F32, 3, {2, 3, 2}, x};
    pare_model m = small_model(5, 3, PARE_POOL_NONE);
    assert_ok(load_arrays(&p, &m, 2, in, per_token), &p.err);
    assert_true(p.set.task == PARE_TASK_TOKENS && p.set.inputs.n == 2);
    assert_memory_equal(p.set.inputs.in[1].ids, ids + 3, 3 * sizeof *ids);
    assert_memory_equal(p.set.target[1], y + 3, 3 * sizeof *y);
    assert_refused(&p, load_arrays(&p, &m, 2, in, per_row), PARE_ERR_INPUT,
                   "targets is I64 [2], expected integers [2, 3]");
    assert_refused(&p, load_arrays(&p, &m, 2, vectors, per_token), PARE_ERR_INPUT,
                   "inputs is F32 [2, 3, 2], the model takes ids of 5");
    m = small_vector_model(2, 3, PARE_POOL_MEAN);
    assert_ok(load_arrays(&p, &m, 2, vectors, per_row), &p.err);
    assert_int_equal(p.set.task, PARE_TASK_SENTENCE);
    assert_true(p.set.inputs.in[1].x[0] == 7 && p.set.inputs.in[1].width == 2);
    assert_true(p.set.target[0][0] == 1 && p.set.target[1][0] == 2);
    assert_refused(&p, load_arrays(&p, &m, 2, vectors, per_token), PARE_ERR_INPUT,
                   "expected integers [2]");
    assert_ok(load_arrays(&p, &m, 1, vectors, per_row), &p.err); /* without targets */
    assert_true(p.set.target[0][0] == -1 && p.set.target[1][0] == -1);
    m.embedding.width = 3;
    assert_refused(&p, load_arrays(&p, &m, 2, vectors, per_row), PARE_ERR_INPUT, "vectors of 3");
    close_place(&p);
}

static void sorting_data_fit_the_sorting_model(void **state)
{
    (void)state;
    place p;
    open_place(&p, "s.npz");
    pare_model m = small_model(3, 3, PARE_POOL_NONE);
    m.context = 11;
    assert_ok(pare_make_sort(p.path, 20, 6, 3, 1, false, &p.err), &p.err);
    assert_ok(pare_dataset_load(&p.set, p.arena, &m, p.path, NULL, &p.err), &p.err);
    assert_true(p.set.inputs.n == 20 && p.set.inputs.in[7].tokens == 11);
    m.context = 10;
    assert_refused(&p, pare_dataset_load(&p.set, p.arena, &m, p.path, NULL, &p.err), PARE_ERR_INPUT,
                   "at most 10");
    close_place(&p);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void graphs_count_on_the_test_mask_of_the_split(void **state)
{
    (void)state;
    place p;
    open_place(&p, "g.npz");
    pare_model m = small_vector_model(7, 2, PARE_POOL_NONE);
    m.pattern.kind = PARE_GRAPH;
    pare_graph_data d;
    assert_ok(pare_make_minesweeper(p.path, 6, 1, false, &p.err), &p.err);
    assert_ok(pare_graph_load(&d, p.arena, p.path, &p.err), &p.err);
    assert_ok(pare_dataset_load(&p.set, p.arena, &m, p.path, &(pare_data_opts){.split = 3}, &p.err),
              &p.err);
    assert_true(p.set.task == PARE_TASK_NODES && p.set.inputs.n == 1 && p.set.split == 3);
    assert_true(p.set.inputs.in[0].tokens == 36 && p.set.inputs.in[0].graph->n == 36);
    for (size_t i = 0; i < 36; i++)
        assert_int_equal(p.set.target[0][i], d.test[3 * 36 + i] ? d.labels[i] : -1);
    assert_refused(
        &p, pare_dataset_load(&p.set, p.arena, &m, p.path, &(pare_data_opts){.split = 10}, &p.err),
        PARE_ERR_USAGE, "split 10");
    m.pattern.kind = PARE_FULL; /* every node sees every node: the edges are not needed */
    assert_ok(pare_dataset_load(&p.set, p.arena, &m, p.path, NULL, &p.err), &p.err);
    assert_null(p.set.inputs.in[0].graph);
    m.embedding.width = 8;
    assert_refused(&p, pare_dataset_load(&p.set, p.arena, &m, p.path, NULL, &p.err), PARE_ERR_INPUT,
                   "the nodes have 7 features; this model takes vectors of 8 numbers");
    close_place(&p);
}

/* ---- files read once ------------------------------------------------------------------------- */

static void inputs_through(char hex[PARE_SHA256_HEX], place *p, const pare_model *m,
                           const char *path, pare_files *files)
{
    assert_ok(pare_dataset_load_files(&p->set, p->arena, m, path, NULL, files, &p->err), &p->err);
    assert_ok(pare_inputs_sha256(hex, &p->set.inputs, &p->err), &p->err);
}

static void bytes_are_read_once_whatever_happens_to_the_file(void **state)
{
    (void)state;
    static const int64_t ids[6] = {0, 1, 2, 3, 4, 0};
    const pare_array rows = {PARE_I64, 2, {2, 3}, ids};
    static const char *const names[] = {"t.txt", "s.tsv", "a.npy", "a.npz", "g.npz"};
    for (size_t k = 0; k < 5; k++) {
        place p;
        char first[PARE_SHA256_HEX], again[PARE_SHA256_HEX], hex[PARE_SHA256_HEX];
        open_place(&p, names[k]);
        pare_model m = k == 4 ? small_vector_model(7, 2, PARE_POOL_NONE)
                              : small_model(256, 256, k == 1 ? PARE_POOL_FIRST : PARE_POOL_NONE);
        if (k < 2) m.tokenizer = PARE_TOK_BYTES;
        static const char *const name = "inputs";
        if (k == 0) test_write_file(p.path, "abcdefgh", 8);
        if (k == 1) test_write_file(p.path, "sentence\tlabel\nabc\t1\n", 21);
        if (k == 2) assert_ok(pare_npy_write(p.path, &rows, false, &p.err), &p.err);
        if (k == 3)
            assert_ok(pare_npz_write(p.path, 1, &name, &rows, false, false, &p.err), &p.err);
        if (k == 4) assert_ok(pare_make_minesweeper(p.path, 6, 1, false, &p.err), &p.err);
        pare_files *const files = pare_files_new();
        inputs_through(first, &p, &m, p.path, files);
        assert_ok(pare_sha256_file(hex, p.path, &p.err), &p.err);
        test_write_file(p.path, "no data", 7);
        inputs_through(again, &p, &m, p.path, files);
        assert_string_equal(again, first);
        unlink(p.path);
        inputs_through(again, &p, &m, p.path, files);
        assert_string_equal(again, first);
        assert_int_equal(pare_files_count(files), 1);
        assert_ok(pare_files_identity(again, files, p.path, &p.err), &p.err);
        assert_string_equal(again, hex);
        pare_files_free(files);
        close_place(&p);
    }
}

static void of_a_folder_only_what_was_read_counts(void **state)
{
    (void)state;
    place p;
    char path[300], hex[PARE_SHA256_HEX], again[PARE_SHA256_HEX];
    open_place(&p, "b.npz");
    pare_model m = small_vector_model(7, 2, PARE_POOL_NONE);
    assert_ok(pare_make_minesweeper(p.path, 6, 1, false, &p.err), &p.err);
    assert_ok(pare_make_minesweeper(test_path(path, p.dir, "a.npz"), 6, 2, false, &p.err), &p.err);
    test_write_file(test_path(path, p.dir, "README"), "about", 5);
    test_write_file(test_path(path, p.dir, "a.npz.cert.json"), "{}", 2); /* hides nothing */
    pare_files *files = pare_files_new();
    inputs_through(again, &p, &m, p.dir, files);
    assert_int_equal(p.set.inputs.n, 2);
    assert_int_equal(pare_files_count(files), 2);
    assert_contains(pare_files_path(files, 0), "/a.npz");
    assert_contains(pare_files_path(files, 1), "/b.npz");
    assert_ok(pare_files_identity(hex, files, p.dir, &p.err), &p.err);
    pare_files_free(files);
    assert_ok(pare_make_minesweeper(p.path, 6, 3, true, &p.err), &p.err);
    files = pare_files_new();
    inputs_through(again, &p, &m, p.dir, files);
    assert_ok(pare_files_identity(again, files, p.dir, &p.err), &p.err);
    assert_string_not_equal(again, hex);
    pare_files_free(files);
    close_place(&p);
}

static void unknown_files_are_refused(void **state)
{
    (void)state;
    place p;
    open_place(&p, "x.bin");
    const pare_model m = small_model(5, 5, PARE_POOL_NONE);
    assert_refused(&p, load_text(&p, &m, "abc", 0), PARE_ERR_INPUT,
                   ".txt, .csv, .tsv, .jsonl, .npy and .npz");
    test_path(p.path, p.dir, "missing.npz");
    assert_refused(&p, pare_dataset_load(&p.set, p.arena, &m, p.path, NULL, &p.err), PARE_ERR_IO,
                   "missing.npz");
    test_path(p.path, p.dir, "x.npz");
    assert_refused(&p, load_text(&p, &m, "abc", 0), PARE_ERR_INPUT, "x.npz");
    close_place(&p);
}

static void the_sentiment_sentences_can_all_be_used(void **state)
{
    (void)state;
    static const char words[] = "../shared/data/models/bert_sst_vocab.txt";
    static const char path[] = "../shared/data/text/sst_dev.tsv";
    NEED_SHARED(words);
    NEED_SHARED(path);
    pare_arena *a = pare_arena_new();
    pare_err err;
    pare_dataset set;
    pare_model m = small_model(7145, 2, PARE_POOL_FIRST);
    size_t bytes;
    uint8_t *vocab = test_read_file(words, &bytes);
    m.tokenizer = PARE_TOK_WORDS;
    m.vocab = vocab;
    m.vocab_bytes = bytes;
    assert_ok(pare_dataset_load(&set, a, &m, path, NULL, &err), &err);
    assert_int_equal(set.inputs.n, 872);
    assert_int_equal(set.skipped, 0);
    free(vocab);
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_cover_every_token_once),
        cmocka_unit_test(the_window_is_the_context_but_at_most_512),
        cmocka_unit_test(text_needs_a_model_that_reads_text),
        cmocka_unit_test(stories_begin_anew_for_llama),
        cmocka_unit_test(rows_of_ids_are_texts),
        cmocka_unit_test(a_model_writes_texts_that_depend_on_the_seed_and_their_number),
        cmocka_unit_test(sentences_come_with_their_labels),
        cmocka_unit_test(bad_lines_are_named),
        cmocka_unit_test(arrays_are_read_row_by_row),
        cmocka_unit_test(sorting_data_fit_the_sorting_model),
        cmocka_unit_test(graphs_count_on_the_test_mask_of_the_split),
        cmocka_unit_test(bytes_are_read_once_whatever_happens_to_the_file),
        cmocka_unit_test(of_a_folder_only_what_was_read_counts),
        cmocka_unit_test(unknown_files_are_refused),
        cmocka_unit_test(the_sentiment_sentences_can_all_be_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
