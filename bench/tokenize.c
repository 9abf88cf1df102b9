/* bench/tokenize.c - TOKENIZER TEXT [IDS]: how fast a text becomes ids, by one thread, and the ids
 * as 32-bit numbers into a file, for tests that compare them with another program's. */
#include <pare/run.h>

#include <stdio.h>
#include <stdlib.h>

enum { REPEATS = 3 };

static pare_status measure(pare_arena *a, char **argv, pare_err *err)
{
    pare_blob *vocab = NULL, *text = NULL;
    pare_tokenizer_kind kind;
    pare_tokenizer *t;
    int64_t *ids = NULL;
    size_t n = 0;
    double best = 0;
    pare_status st = pare_blob_open(&vocab, argv[1], err);
    if (!st) st = pare_blob_open(&text, argv[2], err);
    const double begin = pare_seconds();
    if (!st) st = pare_vocab_detect(&kind, vocab->data, vocab->bytes, err);
    if (!st) st = pare_tokenizer_new(&t, a, kind, vocab->data, vocab->bytes, err);
    const double loaded = pare_seconds() - begin;
    for (int i = 0; i < REPEATS && !st; i++) {
        const pare_mark mark = pare_arena_mark(a);
        if (i) pare_arena_reset(a, mark);
        const double start = pare_seconds();
        st = pare_encode(&ids, &n, a, t, (const char *)text->data, text->bytes, err);
        const double seconds = pare_seconds() - start;
        if (i == 0 || seconds < best) best = seconds;
    }
    if (!st)
        printf("%s,%s,%zu bytes,%zu ids,%.2f MB/s,read in %.3f s\n", argv[1], argv[2], text->bytes,
               n, (double)text->bytes / 1e6 / best, loaded);
    FILE *const out = !st && argv[3] ? fopen(argv[3], "wb") : NULL;
    for (size_t i = 0; i < n && out; i++) {
        const int32_t id = (int32_t)ids[i];
        if (fwrite(&id, sizeof id, 1, out) != 1)
            st = pare_fail(err, PARE_ERR_IO, "%s cannot be written", argv[3]);
    }
    if (out && fclose(out) && !st)
        st = pare_fail(err, PARE_ERR_IO, "%s cannot be written", argv[3]);
    pare_blob_release(vocab);
    pare_blob_release(text);
    return st;
}

int main(int argc, char **argv)
{
    pare_err err = {0};
    pare_arena *const a = pare_arena_new();
    if (argc < 3 || argc > 4 || !a) {
        fprintf(stderr, "usage: tokenize TOKENIZER TEXT [IDS]\n");
        return 1;
    }
    const pare_status st = measure(a, argv, &err);
    if (st) fprintf(stderr, "tokenize: %s\n", err.msg);
    pare_arena_free(a);
    return st ? 2 : 0;
}
