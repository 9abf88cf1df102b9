/* certify_theorems.h - adds the theorems of depth to a certificate (certify_theorems.c). */
#ifndef PARE_SRC_DEPTH_CERTIFY_THEOREMS_H
#define PARE_SRC_DEPTH_CERTIFY_THEOREMS_H
#include "cert/prove.h"

/* Theorems 1 and 2, what they need, and what Rank collapse 2025 prints; texts live in the arena. */
void theorems_add(cert_builder *b, const pare_model *f, const pare_model *g,
                  const pare_inputs *set);
/* Theorem 1 or 2, and rank collapse, for all inputs whose tokens are at most `diam` apart in every
 * entry, and whose entries are no larger than those of the set or diam / 2. +inf for ids, of
 * which all sequences are covered anyway. */
void theorems_within(cert_builder *b, const pare_model *f, const pare_model *g,
                     const pare_inputs *set, double diam);
/* Theorem 1 or 2 for all inputs whose entries are within `radius` of those of the set, vectors
 * only: +inf for ids, whose theorem speaks of words and not of rows near them. */
pare_ub theorems_near_inputs(pare_work *w, const pare_model *f, const pare_model *g,
                             const pare_inputs *set, double radius);
#endif
