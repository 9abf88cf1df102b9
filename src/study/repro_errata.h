/* repro_errata.h - what is false as printed in the papers: each line of docs/errata.md with its
 * counter-example, which is computed and not quoted. */
#ifndef PARE_SRC_STUDY_REPRO_ERRATA_H
#define PARE_SRC_STUDY_REPRO_ERRATA_H
#include "repro_experiments.h"

/* Both sides of a printed statement on its counter-example, and what holds there. */
typedef struct sides {
    double printed, is, holds; /* holds nan: what holds is no number */
} sides;

/* What the statement says: `is` is ... `printed`. */
typedef enum claim { AT_MOST, AT_LEAST, EQUAL } claim;

typedef struct erratum {
    const char *where;   /* "Lemma 4.1" */
    const char *says;    /* the statement; what is compared */
    const char *example; /* where it fails */
    const char *instead; /* what holds */
    const char *test;    /* of docs/errata.md: where it is also tested */
    claim claim;
    sides (*hand)(void); /* what needs a few numbers, or: */
    pare_status (*look)(sides *out, const struct erratum *e, pare_err *err);
    double at[4]; /* for `look`: of the example */
    bool open;    /* not reached by us, which is no proof that it is false */
} erratum;

typedef struct errata {
    const erratum *v;
    size_t n;
} errata;
extern const errata errata_width, errata_lemmas, errata_depth, errata_ticket, errata_length;

/* p = softmax(a); half the sum of |p - q|. */
void softmax_of(double *p, const double *a, size_t n);
double variation_of(const double *p, const double *q, size_t n);
#endif
