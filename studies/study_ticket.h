/* study_ticket.h - the parts of `repro ticket`: small targets of the paper's experiments, their
 * tickets, and what these err by. */
#ifndef PARE_STUDIES_STUDY_TICKET_H
#define PARE_STUDIES_STUDY_TICKET_H
#include "experiments.h"
#include <pare/base.h>

/* One head on points of a circle, merged: a regression token r asks, out = softmax(r G X) X V. */
typedef struct circle_target {
    const char *name;
    double token[2], g[4], v[4]; /* g 2 x 2; v 2 x d2 */
    size_t d2;
} circle_target;
enum { CIRCLE_TARGETS = 3 };
enum { CHOSEN_AFTER = 1 }; /* this target was chosen after seeing the rate that is printed */
/* 0: trained here, but for its token; 1: largest entry of V is 2; 2: random. */
void circle_target_of(circle_target *out, size_t which, uint64_t seed);

/* Sequences of `tokens` points turning at a constant speed, the token in front: (tokens + 1) x 2.
 */
void circle_sequence(double *x, const double token[2], size_t tokens, uint64_t seed, size_t number);
/* Mean over `count` sequences of |out - out~| at the token. */
PARE_MUST_USE pare_status circle_error(double *out, const circle_target *f, const circle_target *g,
                                       size_t tokens, size_t count, uint64_t seed, pare_err *err);

/* How a ticket is found. */
typedef enum circle_way {
    WAY_PAPER,       /* blocks on the input side, U(-1, 1) after the scaling n_K^(1/4) */
    WAY_MINUS,       /* the same from U[-n_K^(-1/4), n_K^(-1/4)] */
    WAY_XAVIER,      /* the same from a Xavier source */
    WAY_ORIENTATION, /* blocks on the smaller side of V */
    WAY_OURS,        /* and donors */
    WAYS
} circle_way;
PARE_MUST_USE pare_status circle_ticket(circle_target *out, const circle_target *f, size_t n,
                                        circle_way way, uint64_t seed, const pare_exec *exec,
                                        pare_err *err);

/* gamma e^(-delta n) by least squares; slope of the logarithm. */
typedef struct decay {
    double gamma, delta;
} decay;
decay decay_of(const double *n, const double *y, size_t count);
/* Whether a fit is the one that is printed of figure 4. */
bool fit_is_printed(decay fit);
/* One delta for all `curves` (each of `count` numbers, side by side), a gamma for each: that whose
 * least R^2 is the largest. r2: of each curve. */
double shared_delta(double *r2, const double *n, const double *y, size_t curves, size_t count);
#define SHARED_R2 0.9 /* "only gamma changes" (figure 6): every R^2 is at least this */
double log_rate(const double *n, const double *y, size_t count); /* of positive y */
double median_of(double *v, size_t n);                           /* sorts v */

extern const experiment ticket_rates, ticket_sizes; /* ticket_rates.c: figure 4, P18 */
extern const experiment ticket_lengths;             /* ticket_lengths.c: figure 5 */
extern const experiment ticket_blocks;              /* ticket_blocks.c: figure 6 */
#endif
