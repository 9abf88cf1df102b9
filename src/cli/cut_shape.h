/* cut_shape.h - how large the parts of a model are: what a cut changed, part by part. */
#ifndef PARE_CLI_CUT_SHAPE_H
#define PARE_CLI_CUT_SHAPE_H
#include "cli.h"

/* Smallest, largest and sum over the places that have this width; n = 0: there is none. */
typedef struct width_range {
    size_t least, most, sum, n;
} width_range;

typedef struct cut_shape {
    uint64_t attention, ffn, rest; /* parameters */
    width_range stream;            /* of the residual stream, where each block begins and ends */
    width_range qk, values;        /* of a head */
    width_range hidden;            /* units of a feed-forward layer */
    size_t exact, replaced;        /* attention layers */
} cut_shape;

void cut_shape_of(cut_shape *out, const pare_model *m);
/* "192", or "120 to 184" where places differ. */
const char *cut_range_words(char buf[48], const width_range *r);
#endif
