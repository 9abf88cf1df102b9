/* sampling.h - sampled attention: what is known of the heads, and the bound of a row. */
#ifndef PARE_LENGTH_SAMPLING_H
#define PARE_LENGTH_SAMPLING_H
#include "modes.h"

typedef struct geometry { /* of one head: all proven upper bounds */
    double *kbar, *vbar;
    double key_radius, value_radius; /* max |k_j - kbar|, max |v_j - vbar| */
    double longest_key, longest_value;
} geometry;

typedef struct sampling {
    length_run *r;
    geometry *geo;
    uint32_t *order; /* n: for a permutation */
    double eps, log_term;
    uint64_t passes; /* over the rows that are not proven, so far */
    size_t keys;     /* drawn for each query block in this pass */
} sampling;

/* Geometry of the heads, references at q.kbar, and the log term of all passes over all rows. */
PARE_MUST_USE pare_status sampling_new(sampling *s, length_run *r);
/* How row i came about: n keys were drawn of a population that counts as `of` keys (n, where the
 * sums are those of the drawn ones), beside keys that were all seen. */
typedef struct drawn {
    double n, of;
    bool beside;
} drawn;
/* Bound of row i after a pass; *size is the norm of the estimate, from below. */
double sampling_bound(const sampling *s, size_t a, size_t i, const drawn *d, double *size);
/* Of a row that has seen all its keys: rounding. */
double sampling_exact_bound(const sampling *s, size_t a, size_t i);
/* Whether that is enough; if so, or if it must be, the row is proven (or counted as unproven). */
bool sampling_accept(const sampling *s, size_t a, size_t i, double bound, double size, bool must);
/* The first s->keys of a random order of `of` keys, anew for every pass, head and block; in the
 * arena. NULL: no memory. */
const uint32_t *sampling_draw(sampling *s, size_t a, size_t block, size_t of);
#endif
