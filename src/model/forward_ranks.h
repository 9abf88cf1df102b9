/* forward_ranks.h - rows of a pass that several processes make together. */
#ifndef PARE_MODEL_FORWARD_RANKS_H
#define PARE_MODEL_FORWARD_RANKS_H
#include "layer_ops.h"
#include <pare/ranks.h>

/* Rank r has the ranges from this one on, up to the first of rank r + 1. */
size_t first_of_rank(size_t ranges, const pare_ranks *ranks, size_t rank);
/* Every rank's rows of x, which is cut into ranges of `size` rows, to all. */
PARE_MUST_USE pare_status trade_rows(const rows *x, size_t size, const pare_ranks *ranks,
                                     pare_err *err);
#endif
