/* tokenizer.h - one struct for all kinds of vocabulary. Private to src/text. */
#ifndef PARE_TEXT_TOKENIZER_H
#define PARE_TEXT_TOKENIZER_H
#include <pare/run.h>
#include "tokenizer_json.h"

struct pare_tokenizer {
    pare_tokenizer_kind kind;
    size_t size;
    pare_piece *piece;     /* what every id prints */
    pare_text_map by_text; /* llama2c: vocabulary text -> id; words: word -> id */
    pare_pair_map merges;  /* gpt2 */
    float *score;          /* llama2c */
    int64_t begin, end;    /* words: [CLS] and [SEP], -1 when the list has none */
    pare_json_tokenizer *json;
    const char *notes; /* lines for the user; NULL: none */
    char byte[256];    /* byte[b] == b: what single bytes point at */
};

/* Ids of a text, with capacity for the worst case: one per byte and three more. */
typedef struct pare_ids {
    int32_t *v;
    size_t n;
} pare_ids;

/* Takes the first line off *rest, without its end (\n or \r\n); false when nothing is left. */
bool pare_next_line(pare_piece *line, pare_piece *rest);

PARE_MUST_USE pare_status pare_bpe_read(pare_tokenizer *t, pare_arena *a, const char *vocab,
                                        size_t bytes, pare_err *err);
PARE_MUST_USE pare_status pare_bpe_encode(pare_ids *out, pare_arena *scratch,
                                          const pare_tokenizer *t, const char *text, size_t bytes,
                                          pare_err *err);
/* Length of the first piece that GPT-2's pattern cuts off; at least 1, for bytes > 0. */
size_t pare_bpe_cut(const char *text, size_t bytes);

PARE_MUST_USE pare_status pare_llama2c_read(pare_tokenizer *t, pare_arena *a, const char *vocab,
                                            size_t bytes, pare_err *err);
PARE_MUST_USE pare_status pare_llama2c_encode(pare_ids *out, pare_arena *scratch,
                                              const pare_tokenizer *t, const char *text,
                                              size_t bytes, pare_err *err);
pare_piece pare_llama2c_decode(const pare_tokenizer *t, int64_t previous, int64_t id);

PARE_MUST_USE pare_status pare_words_read(pare_tokenizer *t, pare_arena *a, const char *vocab,
                                          size_t bytes, pare_err *err);
PARE_MUST_USE pare_status pare_words_encode(pare_ids *out, pare_arena *scratch,
                                            const pare_tokenizer *t, const char *text, size_t bytes,
                                            pare_err *err);
#endif
