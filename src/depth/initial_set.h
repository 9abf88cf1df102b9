/* initial_set.h - the set of tokens where block 0 begins, for all inputs of a domain. */
#ifndef PARE_SRC_DEPTH_INITIAL_SET_H
#define PARE_SRC_DEPTH_INITIAL_SET_H
#include "depth_bounds.h"
#include "walk.h"

/* false: *why says what is in the way (a norm that is not affine). */
bool initial_set(pare_work *k, token_set *out, const token_norm *at, const pare_model *m,
                 const depth_domain *d, const char **why);
/* An orthogonal basis for every place of the stream (2 nblocks + 1: embedding, after each
 * attention, after each FFN) in which the tokens of random inputs are uncorrelated; v NULL where
 * none was seen. A choice, no proof rests on it. */
PARE_MUST_USE pare_status sample_bases(pare_mat **out, pare_work *k, const pare_model *m,
                                       const pare_exec *exec);
#endif
