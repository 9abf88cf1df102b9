/* token_norm.h - three norms for tokens, and one arithmetic for all of them.
 *
 *   INF   one number: the largest entry            TWO   one number: the euclidean length
 *   BOX   d numbers: |entries of x q| one by one, in a basis q chosen freely (no q: the entries
 *         of x themselves)
 *
 * What is known of a set of tokens is a row of k nonnegative numbers (k = 1 or d); a linear map is
 * a k x k' matrix of nonnegative numbers, so that size(x M) <= size(x) |M| holds for each norm. A
 * recurrence written with these rows and matrices is three theorems at once. */
#ifndef PARE_SRC_DEPTH_TOKEN_NORM_H
#define PARE_SRC_DEPTH_TOKEN_NORM_H
#include "imat.h"

typedef enum norm_kind { NORM_INF, NORM_TWO, NORM_BOX, NORM_KINDS } norm_kind;

typedef struct token_norm {
    norm_kind kind;
    size_t d, k;  /* width of a token; numbers that say its size */
    imat q, back; /* BOX in a basis: coordinates x q; back = q^-1, enclosed */
} token_norm;

token_norm norm_plain(norm_kind kind, size_t d);
/* BOX in the basis q (d x d, near orthogonal); without one where q's inverse cannot be proven. */
token_norm norm_in_basis(pare_work *k, const pare_mat *q);

pare_mat norm_of_map(pare_work *k, const token_norm *in, const token_norm *out, const imat *m);
/* The same for x_1 M_1 + ... + x_n M_n where every x_h has at most the size of x. */
pare_mat norm_of_stack(pare_work *k, const token_norm *in, const token_norm *out,
                       const imat *const *m, size_t n);
/* |u B v^T| <= size(u) |B| size(v)^T */
pare_mat norm_of_form(pare_work *k, const token_norm *in, const imat *b);
/* |x . l| <= size(x) . dual */
pare_mat norm_of_functional(pare_work *k, const token_norm *in, const imat *l);
/* size of a row */
pare_mat norm_of_row(pare_work *k, const token_norm *at, const imat *row);
/* In coordinates: q_in^-1 m q_out for BOX (else m itself). */
imat map_in_bases(pare_work *k, const token_norm *in, const token_norm *out, const imat *m);

/* ---- rows of nonnegative numbers, rounded up ------------------------------------------------- */

pare_mat up_row(pare_work *k, size_t n, double value);
pare_mat up_mul(pare_work *k, const pare_mat *x, const pare_mat *m); /* x m */
pare_mat up_sum(pare_work *k, const pare_mat *x, const pare_mat *y);
pare_mat up_scale(pare_work *k, const pare_mat *x, pare_ub s);
pare_mat up_min(pare_work *k, const pare_mat *x, const pare_mat *y); /* entry by entry */
pare_mat up_max(pare_work *k, const pare_mat *x, const pare_mat *y);
pare_ub up_dot(const pare_mat *x, const pare_mat *y);
void up_add(pare_work *k, pare_mat *x, const pare_mat *y); /* x += y */
#endif
