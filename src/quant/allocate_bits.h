/* allocate_bits.h - how many bits each matrix gets where the file may have so many bytes
 * (allocate_bits.c). */
#ifndef PARE_QUANT_ALLOCATE_BITS_H
#define PARE_QUANT_ALLOCATE_BITS_H
#include "quant_internal.h"

typedef struct quant_allocated {
    const char *name; /* of the matrix */
    quant_choice c;
} quant_allocated;

/* What error feedback leaves of the loss that independent errors of this matrix make: 0 .. 1. */
typedef pare_status quant_feedback_fn(void *self, double *share, const char *name, pare_err *err);

/* For every matrix that is quantized, in the order of the file: so that the file has at most
 * o->max_bytes. PARE_ERR_PROMISE: with the fewest bits it has more. `feedback` NULL: none. In the
 * arena. */
PARE_MUST_USE pare_status quant_allocate_bits(quant_allocated **out, size_t *n, pare_arena *a,
                                              const pare_model *in, const pare_quant_opts *o,
                                              quant_feedback_fn *feedback, void *self,
                                              const pare_exec *exec, pare_err *err);
#endif
