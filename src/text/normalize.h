/* normalize.h - the normalizers of tokenizer.json, one after the other. Private to src/text. */
#ifndef PARE_TEXT_NORMALIZE_H
#define PARE_TEXT_NORMALIZE_H
#include "base/json.h"
#include "regex.h"
#include "text_buffer.h"

typedef struct pare_normalizer pare_normalizer;
typedef struct pare_normalizers {
    pare_normalizer *v;
    size_t n, capacity;
} pare_normalizers;

/* Reads the value of "normalizer"; nothing for NULL and null. PARE_ERR_INPUT names what is wrong,
 * and a kind that pare does not read. */
PARE_MUST_USE pare_status pare_normalizers_read(pare_normalizers *out, pare_arena *a,
                                                const cJSON *json, pare_err *err);
/* *text is replaced by its normalized form, in the arena where it has changed. */
PARE_MUST_USE pare_status pare_normalize(pare_piece *text, const pare_normalizers *list,
                                         pare_arena *a, pare_regex_run *run, pare_err *err);

/* The character that ByteLevel writes for a byte, and back (-1: stands for none). */
uint32_t pare_byte_char(uint8_t byte);
int pare_char_byte(uint32_t c);
/* Appends the bytes of a text as such characters. */
void pare_put_byte_chars(pare_buffer *out, const char *s, size_t n);

/* A pattern of tokenizer.json: {"String": ...} or {"Regex": ...}. */
PARE_MUST_USE pare_status pare_pattern_read(pare_regex **out, pare_arena *a, const cJSON *in,
                                            const char *key, pare_err *err);
/* The text of a key as a piece in the arena; `fallback` where it is missing or null. */
PARE_MUST_USE pare_status pare_piece_read(pare_piece *out, pare_arena *a, const cJSON *in,
                                          const char *key, const char *fallback, pare_err *err);
/* Calls `fn` for the entries of a Sequence (of Sequences), or for the one object that it is. `list`
 * is the key of the entries. */
typedef pare_status pare_entry_fn(void *self, const char *type, const cJSON *entry, pare_err *err);
PARE_MUST_USE pare_status pare_each_entry(const cJSON *json, const char *list, pare_entry_fn *fn,
                                          void *self, pare_err *err);

/* SentencePiece's map of characters (normalize_charsmap.c). */
typedef struct pare_charsmap {
    const uint32_t *trie; /* a double array */
    size_t units;
    const char *text; /* what is put in place, ended by zeros */
    size_t bytes;
} pare_charsmap;
/* From base64. */
PARE_MUST_USE pare_status pare_charsmap_read(pare_charsmap *out, pare_arena *a, const char *base64,
                                             pare_err *err);
void pare_charsmap_apply(pare_buffer *out, const pare_charsmap *m, const char *s, size_t n);
#endif
