/* group_codes.h - codes that keep groups of rows of one call from attending to one another
 * (docs/theory/length.md "Codes"). */
#ifndef PARE_LENGTH_GROUP_CODES_H
#define PARE_LENGTH_GROUP_CODES_H
#include <pare/base.h>

/* Group codes (Yu 2025, Theorem 4.2, repaired): u_g . v_g = 0 exactly, u_g . v_h <= -1 for g != h.
 * A query that carries P u_g gives keys of other groups a logit at least P lower. */
uint32_t group_width(size_t groups); /* entries of a code; 0 for one group */
/* The subset of group g as bits (0 for width 0): v_g is 1 there, u_g is -1 elsewhere. g < C(width,
 * width/2), in lexicographic order. */
uint64_t group_bits(uint32_t width, size_t g);
/* P u_g and v_g into entries at, at + 1, ... of a row. */
void put_query_code(pare_dtype t, void *row, size_t at, uint32_t width, uint64_t bits, double p);
void put_key_code(pare_dtype t, void *row, size_t at, uint32_t width, uint64_t bits);

/* Position codes of +-1, `width` = max(1, ceil(log2 n)) bits of i: p_i . p_i = width, and
 * p_i . p_j <= width - 2. */
uint32_t position_width(size_t n);
double position_bit(size_t i, uint32_t bit);
/* Copy heads multiply queries by it: 2 beta is beyond exp_flush, and every logit is exact. */
double position_beta(pare_dtype t);

/* A power of two so large that a key pushed down by it weighs exactly 0 beside any other, when no
 * logit is larger than lmax; inf when the type cannot hold it. */
double penalty(pare_dtype t, double exp_flush, double lmax);
#endif
