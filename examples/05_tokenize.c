/* 05_tokenize.c - turn text into token ids and back, with a list of words and with plain bytes.
 * The word tokenizer adds [CLS] and [SEP], lower-cases the text and drops unknown words. */
#include <pare/pare.h>

#include <string.h>

static const char words[] = "[PAD]\n[CLS]\n[SEP]\na\nsmall\nmodel\n";

static pare_status show(pare_arena *a, pare_tokenizer_kind kind, const char *vocab,
                        const char *text, pare_err *err)
{
    pare_tokenizer *t = NULL;
    int64_t *ids = NULL;
    size_t n = 0;
    pare_status st = pare_tokenizer_new(&t, a, kind, (const uint8_t *)vocab, strlen(vocab), err);
    if (!st) st = pare_encode(&ids, &n, a, t, text, strlen(text), err);
    if (st) return st;
    printf("%s, vocabulary of %zu:", pare_tokenizer_name(kind), pare_tokenizer_size(t));
    for (size_t i = 0; i < n; i++) {
        size_t bytes = 0;
        const char *s = pare_decode(t, i ? ids[i - 1] : -1, ids[i], &bytes);
        printf(" %lld=%.*s", (long long)ids[i], (int)bytes, s);
    }
    putchar('\n');
    return PARE_OK;
}

int main(void)
{
    pare_err err = {0};
    pare_arena *a = pare_arena_new();
    if (!a) return 2;
    pare_status st = show(a, PARE_TOK_WORDS, words, "A small unknown model", &err);
    if (!st) st = show(a, PARE_TOK_BYTES, "", "pare", &err);
    if (st) fprintf(stderr, "%s\n", err.msg);
    pare_arena_free(a);
    return pare_exit_code(st);
}
