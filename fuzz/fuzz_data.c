/* Data sets: the first byte says which kind of file the others are and which model asks for it. */
#include "fuzz.h"
#include <pare/data.h>

#include <stdlib.h>
#include <string.h>

typedef struct asked {
    const char *path;
    pare_tokenizer_kind tokenizer;
    pare_pool pool;
    bool ids;
} asked;

static const asked kinds[] = {
    {"d.txt", PARE_TOK_BYTES, PARE_POOL_NONE, true},
    {"d.txt", PARE_TOK_WORDS, PARE_POOL_NONE, true},
    {"d.tsv", PARE_TOK_WORDS, PARE_POOL_FIRST, true},
    {"d.npy", PARE_TOK_NONE, PARE_POOL_NONE, true},
    {"d.npz", PARE_TOK_NONE, PARE_POOL_NONE, true},
    {"d.npz", PARE_TOK_NONE, PARE_POOL_FIRST, true},
    {"d.npz", PARE_TOK_NONE, PARE_POOL_MEAN, false},
    {"d.csv", PARE_TOK_BYTES, PARE_POOL_NONE, true},
    {"d.csv", PARE_TOK_WORDS, PARE_POOL_FIRST, true},
    {"d.jsonl", PARE_TOK_BYTES, PARE_POOL_NONE, true},
    {"d.jsonl", PARE_TOK_WORDS, PARE_POOL_FIRST, true},
    {"d.txt", PARE_TOK_WORDS, PARE_POOL_FIRST, true},
    {"d.tsv", PARE_TOK_BYTES, PARE_POOL_NONE, true},
};

static pare_model model_of(const asked *k)
{
    static const char words[] = "[CLS]\n[SEP]\ngood\nbad\n";
    const size_t outputs = k->pool == PARE_POOL_NONE ? 256 : 2;
    return (pare_model){
        .embedding = {.ids = k->ids, .width = 2, .vocab = k->ids ? 256 : 0},
        .context = 16,
        .head = {.pool = k->pool, .out.w = {.dtype = PARE_F32, .rows = outputs, .cols = 2}},
        .tokenizer = k->tokenizer,
        .vocab = (const uint8_t *)words,
        .vocab_bytes = sizeof words - 1,
    };
}

static void look_at(const pare_dataset *d, const pare_model *m)
{
    for (size_t i = 0; i < d->inputs.n; i++) {
        pare_err err = {0};
        const pare_input *const in = &d->inputs.in[i];
        FUZZ_EXPECT(pare_input_check(m, in, &err) == PARE_OK);
        for (size_t r = 0; r < pare_output_rows(m, in); r++)
            FUZZ_EXPECT(d->target[i][r] >= -1 && d->target[i][r] < (int64_t)pare_model_outputs(m));
    }
}

static void as_input(pare_arena *a, const pare_model *m, const char *path)
{
    pare_input in;
    size_t ndim, shape[4];
    pare_err err = {0};
    const pare_status st = pare_input_read(&in, &ndim, shape, a, m, path, &err);
    fuzz_expect_said(st, &err);
    if (!st) FUZZ_EXPECT(pare_input_check(m, &in, &err) == PARE_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const float none[512];
    if (size == 0) return 0;
    const asked *const k = &kinds[data[0] % (sizeof kinds / sizeof *kinds)];
    uint8_t *const copy = malloc(size - 1);
    pare_arena *const a = pare_arena_new();
    pare_model m = model_of(k);
    pare_dataset d;
    pare_err err = {0};
    m.head.out.w.data = none;
    FUZZ_EXPECT(a && (copy || size == 1));
    if (size > 1) memcpy(copy, data + 1, size - 1);
    if (strcmp(k->path, "d.npz") == 0) (void)fuzz_reseal_npz(copy, size - 1);
    fuzz_file(k->path, copy, size - 1);
    const pare_status st = pare_dataset_load(&d, a, &m, k->path, NULL, &err);
    fuzz_expect_said(st, &err);
    if (!st) look_at(&d, &m);
    if (strcmp(k->path, "d.npy") == 0) as_input(a, &m, k->path);
    fuzz_no_files();
    pare_arena_free(a);
    free(copy);
    return 0;
}
