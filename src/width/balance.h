/* balance.h - the factors of an attention head, rewritten so that neither side is much larger
 * than the other. */
#ifndef PARE_SRC_WIDTH_BALANCE_H
#define PARE_SRC_WIDTH_BALANCE_H
#include "lm.h"
#include "folded_net.h"

/* left (r x m) and right (r x n) become balanced factors of the same product left^T right. Pairs
 * that are balanced already (balance.c) stay as they are, bit for bit. */
void balance_pair(pare_work *w, pare_mat *left, pare_mat *right);

/* Every group of keys and values of a sublayer that a cut has written: queries and keys, values
 * and output projections, or both. The lists of heads and groups must be the sublayer's own
 * (lm_shallow). A pair that no cut has touched is not to be rewritten: rounding it to f32 again
 * would move the outputs, and its imbalance is in the input model as well. */
void lm_balance_scores(pare_work *w, const lm *m, lm_attn *a);
void lm_balance_values(pare_work *w, lm_attn *a);
void lm_balance(pare_work *w, const lm *m, lm_attn *a);

/* Every head of a net; `values` false: queries and keys alone. */
void net_balance(pare_work *w, net *n, bool values);
#endif
