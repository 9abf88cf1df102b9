/* subword.h - the models of tokenizer.json: a word becomes ids. Private to src/text. */
#ifndef PARE_TEXT_SUBWORD_H
#define PARE_TEXT_SUBWORD_H
#include "base/json.h"
#include "bpe_merge.h"
#include "text_buffer.h"

typedef enum pare_subword_kind {
    PARE_SUBWORD_BPE,
    PARE_SUBWORD_WORDPIECE,
    PARE_SUBWORD_UNIGRAM,
    PARE_SUBWORD_WORDLEVEL
} pare_subword_kind;

typedef struct pare_subword {
    pare_subword_kind kind;
    size_t size;           /* ids: 0 .. size - 1, some perhaps without an entry */
    pare_piece *piece;     /* by id; s == NULL: no entry */
    pare_text_map by_text; /* entry -> id */
    int32_t unk;           /* -1: none */
    bool byte_fallback, fuse_unk;
    size_t twins;         /* entries that have the text of another */
    int32_t byte_id[256]; /* of <0x00> ...; -1: not there */
    /* BPE */
    bool ignore_merges;
    pare_piece prefix, suffix; /* continuing_subword_prefix, end_of_word_suffix */
    pare_pair_map merges;      /* pair -> rank */
    int32_t *into;             /* by rank */
    pare_pair_map inside;      /* neighboring characters inside of entries; NULL key: not made */
    /* WordPiece */
    size_t most_chars, longest; /* in a word; in bytes, of the entries */
    /* Unigram */
    double *score, unk_score; /* by id */
    pare_pair_map trie;       /* node, byte -> node; node 0 is the root */
    int32_t *node_id;         /* by node; -1: no entry ends here */
} pare_subword;

/* Reads the value of "model". `whole`: words may be whole texts, so that a BPE is to find places
 * where nothing can merge. */
PARE_MUST_USE pare_status pare_subword_read(pare_subword *out, pare_arena *a, const cJSON *json,
                                            bool whole, pare_err *err);
PARE_MUST_USE pare_status pare_bpe_model_read(pare_subword *m, pare_arena *a, const cJSON *json,
                                              bool whole, pare_err *err);
PARE_MUST_USE pare_status pare_unigram_read(pare_subword *m, pare_arena *a, const cJSON *json,
                                            pare_err *err);
/* The id of an entry; -1: there is none. */
int32_t pare_subword_id(const pare_subword *m, const char *s, size_t n);
/* Makes room for ids below `size` before they are put. */
PARE_MUST_USE pare_status pare_subword_reserve(pare_subword *m, pare_arena *a, size_t size,
                                               size_t entries, pare_err *err);
/* Of entries with equal texts the last counts. PARE_ERR_INPUT: two entries for one id. */
PARE_MUST_USE pare_status pare_subword_put(pare_subword *m, pare_arena *a, size_t id, const char *s,
                                           pare_err *err);
void pare_subword_find_bytes(pare_subword *m);

/* What one call needs; `out` grows. */
typedef struct pare_subword_run {
    const pare_subword *m;
    pare_arena *arena;
    pare_merger merger;
    pare_id_list *out;
    struct pare_known_word *known; /* words of this call and their ids in `out` */
    size_t mask;
    struct pare_best_path *path; /* Unigram */
    size_t path_capacity;
} pare_subword_run;

PARE_MUST_USE pare_status pare_subword_begin(pare_subword_run *r, const pare_subword *m,
                                             pare_arena *a, pare_id_list *out, size_t text_bytes,
                                             pare_err *err);
/* Appends the ids of a word of at least one byte. */
PARE_MUST_USE pare_status pare_subword_encode(pare_subword_run *r, pare_piece word, pare_err *err);
PARE_MUST_USE pare_status pare_bpe_word(pare_subword_run *r, pare_piece word, pare_err *err);
/* Bytes of the first part of a word that merges with nothing behind it. */
size_t pare_bpe_safe_cut(const pare_subword *m, pare_piece word);
PARE_MUST_USE pare_status pare_wordpiece_word(pare_subword_run *r, pare_piece word, pare_err *err);
PARE_MUST_USE pare_status pare_unigram_word(pare_subword_run *r, pare_piece word, pare_err *err);
#endif
