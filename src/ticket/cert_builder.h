/* cert_builder.h - a certificate that is being filled in (verify.c), and what was fitted (fitted_entries.c). */
#ifndef PARE_SRC_TICKET_CERT_BUILDER_H
#define PARE_SRC_TICKET_CERT_BUILDER_H
#include "model_bound.h"

typedef struct cert_builder {
    pare_cert *cert;
    pare_arena *keep; /* of the certificate */
    const pare_exec *exec;
    pare_err *err;
    pare_status st; /* the first thing that went wrong */
} cert_builder;

/* What differs between a target and its ticket, matrix by matrix: merged forms where the heads have
 * other widths, stored matrices elsewhere. */
typedef struct ticket_entries {
    size_t matrices, entries;
    double largest, error; /* largest entry of a target, of a difference */
    double bits;           /* sum over the matrices of a k + k b - k^2 times log2(r / eta) */
} ticket_entries;
ticket_entries ticket_entries_of(const model_sizes *m, const pare_model *f, const pare_model *g);
#endif
