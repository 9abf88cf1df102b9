/* conformal.h - what held-out inputs say about inputs that are not there yet.
 *
 * N independent draws of a source that neither the training of the model nor the cut has seen, and
 * what is proven of the error on each. Leave out the k largest; the next one is the bound b. Then
 *     one more draw is above b with probability at most (k + 1) / (N + 1), over all N + 1 draws,
 *     the share of the source above b is at most p, with confidence 1 - delta over the N draws,
 * p from the binomial tail (for k = 0: 1 - delta^(1/N)). "Above" is strict: errors may be equal.
 * Statements: docs/theory/depth.md, "On given inputs". */
#ifndef PARE_CERT_CONFORMAL_H
#define PARE_CERT_CONFORMAL_H
#include <pare/cert.h>

/* The confidence of every statement about a share, and how many errors are left out beside none:
 * about one in PARE_ONE_IN. Functions of the number of draws alone, so that nobody can choose them
 * by looking at the errors. */
#define PARE_CONFIDENCE 0.95
enum { PARE_ONE_IN = 20 };
size_t pare_left_out_count(size_t draws); /* 0: too few for more than none */

/* How many draws a set is: those of a batch count one by one. */
size_t pare_draw_count(const pare_inputs *set);
/* Whether they may be independent: a window of a text is not where it begins amid the text, as the
 * tokens before it are the data's as well. */
bool pare_may_be_independent(const pare_inputs *set);
/* One more draw, and the share of the source above; from `draws` draws, more than are left out. */
pare_claim pare_new_input(pare_kind kind, size_t draws, size_t left_out, double bound,
                          const char *domain);
pare_claim pare_new_inputs(size_t draws, size_t left_out, const char *domain);
/* PARE_ERR_VERIFY unless what the certificate says of held-out and fitted inputs fits the set and
 * allows a statement about new ones; PARE_OK where it makes none. */
PARE_MUST_USE pare_status pare_heldout_check(const pare_data_ref *d, pare_arena *a,
                                             const pare_inputs *set, pare_err *err);
/* Adds the statements that the data allow (candidates = 1 and the set may be draws), and their
 * hypothesis, from what is proven of each input. `proven` is there already. */
struct pare_each_bound;
PARE_MUST_USE pare_status pare_add_new_inputs(pare_cert *cert, pare_arena *a,
                                              const pare_data_ref *data, const pare_inputs *set,
                                              const struct pare_each_bound *each, pare_err *err);

/* ---- the binomial tail (src/cert/clopper_pearson.c) ------------------------------------------ */

/* P( at most k of n independent tries succeed ), each with probability p in [0, 1]: at most this;
 * within 1e-15 n of it, relatively. k < n. */
pare_ub pare_binomial_tail(size_t n, size_t k, double p);
/* The p above: n draws, k < n of them left out, confidence in [1/2, 1). At most 1, and within 1e-9
 * of the least there is, relatively. */
double pare_share_above(size_t n, size_t k, double confidence);
#endif
