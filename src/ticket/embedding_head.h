/* embedding_head.h - embedding and output head of a target and its ticket (embedding_head.c). */
#ifndef PARE_SRC_TICKET_EMBEDDING_HEAD_H
#define PARE_SRC_TICKET_EMBEDDING_HEAD_H
#include <pare/run.h>
#include "bounds.h"

typedef struct embedding_sizes {
    span rows;      /* embeddings: all words; given vectors: not read */
    span positions; /* what is added, if anything */
    bool ids, map, after_map;
    dense_sizes dense;
    norm_sizes norm;
} embedding_sizes;
embedding_sizes embedding_sizes_of(pare_work *p, const pare_model *f, const pare_model *g,
                                   char *why);
/* Where block 0 begins, for all words, or for given vectors that are in `x`. */
span embedding_move(const embedding_sizes *s, span x);
/* Row i of one input, where the embedding's norm begins. */
span embedding_row(const embedding_sizes *s, const pare_model *f, const pare_model *g,
                   const pare_input *in, size_t i);

typedef struct output_head_sizes {
    norm_sizes norm;
    pare_ub pooled; /* how much longer, and further apart, rows may be after pooling */
    bool dense_there, out_there;
    double slope;
    dense_sizes dense;
    size_t outputs;
    pare_ub *row_f, *row_g, *row_e, *bias_e; /* of each output */
} output_head_sizes;
output_head_sizes output_head_sizes_of(pare_work *p, const pare_model *f, const pare_model *g,
                                       char *why);
/* Largest |difference| of an output entry, before outputs are normalized. */
pare_ub output_head_move(const output_head_sizes *t, span s);
/* Of a row that is then divided by its length: `apart` before, `least` the length of f's row, from
 * below. */
pare_ub normalized_move(const output_head_sizes *t, pare_ub apart, double least);

/* Without given inputs nothing is known of how short an output row may be. */
void bounds_refuse_normalized(char *why, const pare_model *f);

/* Why two models cannot be compared as wholes; nothing where they can. */
void models_compare(const pare_model *f, const pare_model *g, char *why);
#endif
