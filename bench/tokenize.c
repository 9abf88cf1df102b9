/* bench/tokenize.c - TOKENIZER TEXT [OUT]: how fast a text becomes ids, by one thread, in CPU time.
 * For tests that compare with another program: the ids as 32-bit numbers into OUT.ids, and what they
 * print into OUT.text. */
#include <pare/run.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { REPEATS = 3 };

static double cpu_seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static pare_status write_out(const char *out, const char *ending, const pare_tokenizer *t,
                             const int64_t *ids, size_t n, pare_err *err)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s.%s", out, ending);
    FILE *const f = fopen(path, "wb");
    bool good = f != NULL;
    for (size_t i = 0; i < n && good; i++) {
        const int32_t id = (int32_t)ids[i];
        size_t bytes = sizeof id;
        const void *const what =
            t ? pare_decode(t, i ? ids[i - 1] : -1, ids[i], &bytes) : (const char *)&id;
        good = fwrite(what, 1, bytes, f) == bytes;
    }
    if (f && fclose(f)) good = false;
    return good ? PARE_OK : pare_fail(err, PARE_ERR_IO, "%s cannot be written", path);
}

static pare_status measure(pare_arena *a, char **argv, pare_err *err)
{
    pare_vocab vocab;
    pare_blob *text = NULL;
    pare_tokenizer *t = NULL;
    int64_t *ids = NULL;
    size_t n = 0;
    double best = 0;
    pare_status st = pare_blob_open(&text, argv[2], err);
    const double begin = pare_seconds();
    if (!st) st = pare_vocab_read(&vocab, a, argv[1], err);
    if (!st) st = pare_tokenizer_new(&t, a, vocab.kind, vocab.data, vocab.bytes, err);
    const double loaded = pare_seconds() - begin;
    for (int i = 0; i < REPEATS && !st; i++) {
        const pare_mark mark = pare_arena_mark(a);
        if (i) pare_arena_reset(a, mark);
        const double start = cpu_seconds();
        st = pare_encode(&ids, &n, a, t, (const char *)text->data, text->bytes, err);
        const double seconds = cpu_seconds() - start;
        if (i == 0 || seconds < best) best = seconds;
    }
    if (!st)
        printf("%s,%s,%zu bytes,%zu ids,%.2f MB/s,read in %.3f s\n", argv[1], argv[2], text->bytes,
               n, (double)text->bytes / 1e6 / best, loaded);
    if (!st && argv[3]) st = write_out(argv[3], "ids", NULL, ids, n, err);
    if (!st && argv[3]) st = write_out(argv[3], "text", t, ids, n, err);
    pare_blob_release(text);
    return st;
}

int main(int argc, char **argv)
{
    pare_err err = {0};
    pare_arena *const a = pare_arena_new();
    if (argc < 3 || argc > 4 || !a) {
        fprintf(stderr, "usage: tokenize TOKENIZER TEXT [OUT]\n");
        return 1;
    }
    const pare_status st = measure(a, argv, &err);
    if (st) fprintf(stderr, "tokenize: %s\n", err.msg);
    pare_arena_free(a);
    return st ? 2 : 0;
}
