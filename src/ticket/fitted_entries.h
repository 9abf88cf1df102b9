/* fitted_entries.h - the matrices of a target that were fitted (fitted_entries.c). */
#ifndef PARE_SRC_TICKET_FITTED_ENTRIES_H
#define PARE_SRC_TICKET_FITTED_ENTRIES_H
#include "model_bound.h"

/* The differences between a target and its ticket, matrix by matrix: merged forms where the heads
 * have other widths, stored matrices elsewhere. */
typedef struct ticket_entries {
    size_t matrices, entries;
    double largest, error; /* largest entry of a target, of a difference */
    double bits;           /* sum over the matrices of a k + k b - k^2 times log2(r / eta) */
} ticket_entries;
ticket_entries ticket_entries_of(const model_sizes *m, const pare_model *f, const pare_model *g);
#endif
