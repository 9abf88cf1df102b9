/* calls.h - from tiles to calls: which tiles go into one call, and in which rows. Pure functions of
 * the sizes: plans count the calls, runs execute them. */
#ifndef PARE_LENGTH_CALLS_H
#define PARE_LENGTH_CALLS_H
#include "attend_plan.h"

enum { MAX_BATCH_BYTES = 16 << 20 }; /* bytes of calls under way, at most, but for a large one */

typedef enum call_kind {
    CALL_TILE,  /* one tile, any staircase: partial results, or a bias */
    CALL_FULL,  /* softmax over all rows of the call */
    CALL_CAUSAL /* over the rows up to the own one */
} call_kind;

/* How an oracle is used. */
typedef struct call_rule {
    call_kind kind;
    bool reference;       /* row 0 of a call belongs to the reference */
    uint32_t m;           /* rows of a call, at most */
    bool pack;            /* several tiles in one call, told apart by codes */
    bool plain;           /* everything is one call, without a reference */
    bool leave_remainder; /* keys beyond the last whole block are the host's */
    bool one_vector;      /* query and key of a row are the same token's */
    uint32_t group_rows;  /* rows of queries that share a block of keys, about */
} call_rule;

/* ---- call_rule.c ----------------------------------------------------------------------------- */

/* How a mode uses an oracle; o->mode becomes the one that AUTO means, and caps are narrowed to what
 * the options allow. */
PARE_MUST_USE pare_status resolve_call_rule(call_rule *out, pare_length_opts *o,
                                            pare_oracle_caps *caps, size_t n, const pare_pattern *p,
                                            pare_err *err);
/* Instances that one call holds (Lemma 3.3): 1 unless the oracle has layers and heads. */
uint64_t rule_capacity(const pare_oracle_caps *caps);
/* Whether calls go out as tokens and weights. */
bool rule_strict(const pare_length_opts *o, const pare_oracle_caps *caps);
/* Whether every call has max_len rows: the oracle wants it, or instances share a call. */
bool rule_pads(const call_rule *r, const pare_oracle_caps *caps);
/* Strict: whether calls can merge so many partial results of a row. */
PARE_MUST_USE pare_status rule_merges(const call_rule *r, size_t parts, pare_err *err);

/* ---- call_packing.c -------------------------------------------------------------------------- */

typedef pare_placed placed;
uint32_t placed_key_row(const placed *p, uint32_t x);

/* The tiles are the caller's only during the call of fn. */
typedef pare_length_call_fn call_fn;
PARE_MUST_USE pare_status calls_of_pattern(const call_rule *r, size_t n, const pare_pattern *p,
                                           const pare_graph *g, call_fn fn, void *ctx,
                                           pare_err *err);

/* Rows of queries that meet a block of keys before the next block of keys. */
size_t rows_of_group(const call_rule *r, const pare_pattern *p);

/* Causal samples: of the keys before a block of queries only those that are drawn. */
typedef struct causal_draw {
    /* `keys` of the first `of` tokens for the block of that number; NULL: no memory. */
    const uint32_t *(*fn)(void *ctx, size_t block, size_t of);
    void *ctx;
    size_t keys;
} causal_draw;
/* d NULL: each block of queries with itself instead. */
PARE_MUST_USE pare_status calls_of_causal_sample(const call_rule *r, size_t n, const causal_draw *d,
                                                 call_fn fn, void *ctx, pare_err *err);

/* ---- tile_cover.c, tile_split.c -------------------------------------------------------------- */

/* pare_tiles, but that blocks of queries of a full or causal pattern go in groups: a block of keys
 * meets all of a group before the next block does. The tiles of a query come in the same order. */
PARE_MUST_USE pare_status tiles_in_groups(size_t n, const pare_pattern *p, const pare_graph *g,
                                          uint32_t bq, uint32_t bk, uint32_t group, pare_tile_fn fn,
                                          void *ctx);
/* The tile as tiles that an oracle without masks can take: rectangles, by halving. */
PARE_MUST_USE pare_status tile_to_rects(const pare_tile *t, pare_tile_fn fn, void *ctx);
/* The tile as staircases that fit into a causal call of m rows, the first of them the reference's.
 */
PARE_MUST_USE pare_status tile_to_stairs(const pare_tile *t, uint32_t m, pare_tile_fn fn,
                                         void *ctx);
#endif
