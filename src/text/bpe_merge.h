/* bpe_merge.h - the merge loop that both byte-pair tokenizers share. Private to src/text.
 *
 * Given a row of ids, as long as two neighbors may merge: merge the pair with the largest key,
 * the leftmost among equals. A heap with lazy deletion over a linked list: O(n log n), where the
 * plain loop is O(n^2) and a megabyte without a blank would never end. */
#ifndef PARE_TEXT_BPE_MERGE_H
#define PARE_TEXT_BPE_MERGE_H
#include <pare/base.h>

/* What left and right merge into and how urgently, or -1. */
typedef int32_t pare_pair_fn(const void *self, int32_t left, int32_t right, double *key);

typedef struct pare_merge_node {
    int32_t id; /* -1 when it has gone into its left neighbor */
    uint32_t prev, next;
} pare_merge_node;
typedef struct pare_merge_item {
    double key;
    uint32_t at; /* the left node */
    int32_t left, right, into;
} pare_merge_item;

typedef struct pare_merger {
    pare_pair_fn *pair;
    const void *self;
    pare_arena *arena; /* the buffers grow here and are used again for the next row */
    size_t capacity;
    pare_merge_node *node;
    pare_merge_item *heap;
    size_t items;
} pare_merger;

/* Merges ids[0 .. *n) in place. */
PARE_MUST_USE pare_status pare_merge(pare_merger *m, int32_t *ids, size_t *n, pare_err *err);
#endif
