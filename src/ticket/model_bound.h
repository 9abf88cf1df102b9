/* model_bound.h - all sizes of a pair of models, and the recursion through their blocks
 * (model_bound.c). */
#ifndef PARE_SRC_TICKET_MODEL_BOUND_H
#define PARE_SRC_TICKET_MODEL_BOUND_H
#include <pare/ticket.h>
#include "embedding_head.h"

typedef struct block_sizes {
    attn_sizes attn;
    ffn_sizes ffn;
} block_sizes;

typedef struct model_sizes {
    embedding_sizes embedding;
    size_t nblocks;
    block_sizes *blocks;
    output_head_sizes top;
} model_sizes;

model_sizes model_sizes_of(pare_work *p, const pare_model *f, const pare_model *g, char *why);
/* Through the attention of a block, its skip and its norms; then through all of the block. */
span block_attention_move(const block_sizes *b, span x);
span block_move(const block_sizes *b, span x);
/* For all inputs whose rows are at most alpha long (not read for ids). */
void model_move(pare_ticket_bound *out, const model_sizes *m, double alpha);
#endif
