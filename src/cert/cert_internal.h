/* cert_internal.h - what the files of this module share about certificates. */
#ifndef PARE_SRC_CERT_INTERNAL_H
#define PARE_SRC_CERT_INTERNAL_H
#include "base/json.h"
#include <pare/cert.h>

#define CERT_CHAIN "chain" /* the reduction of a composed certificate */

/* Appends a claim as it is; pare_cert_add fills in and rounds what a prover leaves open. */
PARE_MUST_USE pare_status cert_append(pare_cert *c, pare_arena *a, pare_claim claim, pare_err *err);
/* One claim as an object of a list; false: memory is out. */
bool cert_add_claim(cJSON *list, pare_arena *a, const pare_claim *c);
/* PARE_ERR_VERIFY if a lower bound is above the upper bound of the same figure. */
PARE_MUST_USE pare_status cert_bounds_meet(const pare_cert *c, pare_err *err);
/* Every weight that is there, and the vocabulary. */
PARE_MUST_USE pare_status cert_tensor_hashes(pare_named_hash **out, size_t *n, pare_arena *a,
                                             const pare_model *m, pare_err *err);
/* `code` naming the first place where the links do not form one chain; the arena is for words. */
PARE_MUST_USE pare_status cert_links_fit(pare_cert *const *links, size_t n, pare_arena *a,
                                         pare_status code, pare_err *err);
/* What a composed certificate says: reduction, norm, domain, bounds, measured (the sum), and one
 * hypothesis per link. Files, data and seed are left alone. */
PARE_MUST_USE pare_status cert_add_up(pare_cert *out, pare_arena *a, pare_cert *const *links,
                                      size_t n, pare_err *err);
#endif
