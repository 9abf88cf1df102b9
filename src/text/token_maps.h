/* token_maps.h - hash tables of the tokenizers: a token's bytes -> its id, and a pair of ids ->
 * the id they merge into. Private to src/text. */
#ifndef PARE_TEXT_TOKEN_MAPS_H
#define PARE_TEXT_TOKEN_MAPS_H
#include <pare/base.h>

typedef struct pare_piece { /* the bytes of a token, borrowed */
    const char *s;
    size_t n;
} pare_piece;

typedef struct pare_text_map {
    const pare_piece *piece; /* by id */
    uint32_t *slot;          /* id + 1; 0 = free */
    size_t mask;
} pare_text_map;

/* Capacity for `count` ids of `piece`; NULL slot when memory is out. */
pare_text_map pare_text_map_new(pare_arena *a, const pare_piece *piece, size_t count);
/* Enters piece[id]; returns the id that already has these bytes, or -1 when they are new. */
int64_t pare_text_map_put(pare_text_map *m, size_t id);
/* Enters piece[id] in the place of the id that has these bytes, if there is one. */
void pare_text_map_set(pare_text_map *m, size_t id);
/* The id of the bytes a followed by b; -1 when there is none. */
int64_t pare_text_map_find(const pare_text_map *m, pare_piece a, pare_piece b);

typedef struct pare_pair_map {
    uint64_t *key;  /* left << 32 | right */
    int32_t *value; /* id + 1; 0 = free */
    size_t mask;
} pare_pair_map;

pare_pair_map pare_pair_map_new(pare_arena *a, size_t count); /* NULL key: memory is out */
void pare_pair_map_put(pare_pair_map *m, int32_t left, int32_t right, int32_t id);
int32_t pare_pair_map_find(const pare_pair_map *m, int32_t left, int32_t right); /* -1: none */
#endif
