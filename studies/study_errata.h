/* study_errata.h - what is wrong or imprecise in the papers as printed: one definition for each row
 * of docs/errata.md, which `pare repro errata` prints and the tests of the rows call.
 *
 * Both sides of a statement are computed at an example, never quoted: what the statement says
 * there, what is true there, and, where it is a number, what holds in its place. Where pare
 * computes one of these, pare's function is called. */
#ifndef PARE_STUDIES_STUDY_ERRATA_H
#define PARE_STUDIES_STUDY_ERRATA_H
#include "study.h"

typedef struct sides {
    double printed, is, holds; /* holds nan: what holds is no number */
    bool outside;              /* the example does not meet the hypotheses of the statement */
} sides;

/* What the statement says: `is` is ... `printed`. */
typedef enum claim { AT_MOST, AT_LEAST, EQUAL } claim;

typedef struct erratum {
    const char *paper;   /* its short name: "Shirzad 2024" */
    const char *where;   /* "Lemma 4.1" */
    const char *says;    /* the statement; what is compared */
    const char *example; /* where it is evaluated */
    const char *instead; /* what holds */
    const char *test;    /* the test of this row; no two rows have the same */
    row_verdict class;   /* MISPRINT, STEP_FALSE or IMPRECISE */
    claim claim;
    sides (*hand)(void); /* what needs a few numbers, or: */
    pare_status (*evaluate)(sides *out, const struct erratum *e, pare_err *err);
    double at[4]; /* of the example; with neither function at[0] is what is printed */
    bool stands;  /* no counter-example is known, or the statement holds and is merely loose */
} erratum;

typedef struct errata {
    const erratum *v;
    size_t n;
} errata;
extern const errata errata_width, errata_lemmas, errata_depth, errata_ticket, errata_length;

#define ERRATA_LISTS 5
extern const errata *const errata_lists[ERRATA_LISTS]; /* in the order of docs/errata.md */

/* "false as printed", ...: the name of a class. */
const char *erratum_class(row_verdict class);
/* The row of that test; NULL: there is none. */
const erratum *erratum_of(const char *test);
/* Computes both sides. `is` is nan where the row needs data that is not there. */
PARE_MUST_USE pare_status erratum_evaluate(sides *out, const erratum *e, pare_err *err);
/* Whether the example refutes the statement: by more than rounding, and inside its hypotheses. */
bool erratum_refuted(const erratum *e, const sides *s);

/* p = softmax(a); half the sum of |p - q|. */
void softmax_of(double *p, const double *a, size_t n);
double variation_of(const double *p, const double *q, size_t n);
#endif
