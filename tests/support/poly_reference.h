/* poly_reference.h - gradients of polynomial attention by plain loops in f64. */
#ifndef PARE_TEST_POLY_REFERENCE_H
#define PARE_TEST_POLY_REFERENCE_H
#include "attention/polynomial.h"

/* pare_poly_backward_f32 in f64, with the chunks given. */
PARE_MUST_USE pare_status pare_poly_backward_f64(pare_mat *dq, pare_mat *dk, pare_mat *dv,
                                                 const pare_mat *dy, const pare_poly_plan *plan,
                                                 const pare_mat *q, const pare_mat *k,
                                                 const pare_mat *v, const uint8_t *exact,
                                                 size_t chunk, pare_err *err);
#endif
