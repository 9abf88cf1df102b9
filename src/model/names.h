/* names.h - the words of the file format, both ways. */
#ifndef PARE_MODEL_NAMES_H
#define PARE_MODEL_NAMES_H
#include <pare/base.h>

/* A table of words indexed by an enum. */
typedef struct word_table {
    const char *what; /* "norm kind": for messages */
    const char *const *words;
    int n;
} word_table;

extern const word_table norm_words, act_words, skip_words, attn_words, ffn_words, position_words,
    pool_words, pattern_words, tokenizer_words;

/* *out = the index of the word; PARE_ERR_INPUT naming the word and the table. */
PARE_MUST_USE pare_status word_find(int *out, const word_table *t, const char *word, pare_err *err);
#endif
