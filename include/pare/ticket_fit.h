/* pare/ticket_fit.h - one matrix as a part of a random product:
 *     W (a x b)  ~  scale (A o MA)(B o MB),    A a x n, B n x b with entries U(-1, 1).
 * What a ticket of a whole model is made of (pare/ticket.h), for those who study it. */
#ifndef PARE_TICKET_FIT_H
#define PARE_TICKET_FIT_H
#include <pare/linalg.h>

/* Which side of W is dealt out in blocks of units: entries get n / (columns or rows) items. */
typedef enum pare_fit_side { PARE_FIT_COLUMNS, PARE_FIT_ROWS, PARE_FIT_SMALLER } pare_fit_side;

typedef struct pare_fit_opts {
    uint64_t seed, left, right; /* of the source; streams of A and of B, which differ */
    size_t hidden;              /* n */
    double scale;               /* a power of two; 1: as in the theorems */
    pare_fit_side side;
    bool best; /* donors and units where they are needed; false: equal blocks (Otsuka 2025) */
    unsigned
        donors; /* of `best`: bits that the rows of a column share; time doubles with each; 0: 14 */
} pare_fit_opts;

/* out = scale (A o MA)(B o MB), each entry rounded once or twice. PARE_ERR_INPUT: fewer units than
 * blocks, an entry of 2^11 scales or more, equal streams, a scale that is not positive and finite.
 */
PARE_MUST_USE pare_status pare_ticket_fit(pare_mat *out, const pare_mat *w, const pare_fit_opts *o,
                                          const pare_exec *exec, pare_err *err);
#endif
