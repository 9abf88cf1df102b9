/* embedding_head.h - stem and head of a target and its ticket (embedding_head.c). */
#ifndef PARE_SRC_TICKET_EMBEDDING_HEAD_H
#define PARE_SRC_TICKET_EMBEDDING_HEAD_H
#include "bounds.h"

typedef struct stem_sizes {
    span rows;      /* embeddings: all words; given vectors: not read */
    span positions; /* what is added, if anything */
    bool ids, map, after_map;
    dense_sizes dense;
    norm_sizes norm;
} stem_sizes;
stem_sizes stem_sizes_of(proof *p, const pare_model *f, const pare_model *g, char *why);
/* Where block 0 begins, for all words, or for given vectors that are in `x`. */
span stem_move(const stem_sizes *s, span x);
/* Row i of one input, where the stem's norm begins. */
span stem_row(const stem_sizes *s, const pare_model *f, const pare_model *g, const pare_input *in,
              size_t i);

typedef struct top_sizes {
    norm_sizes norm;
    bool dense_there, out_there;
    double slope;
    dense_sizes dense;
    size_t outputs;
    pare_ub *row_f, *row_g, *row_e, *bias_e; /* of each output */
} top_sizes;
top_sizes top_sizes_of(proof *p, const pare_model *f, const pare_model *g, char *why);
/* Largest |difference| of an output entry. */
pare_ub top_move(const top_sizes *t, span s);

/* Why two models cannot be compared as wholes; nothing where they can. */
void ends_compare(const pare_model *f, const pare_model *g, char *why);
#endif
