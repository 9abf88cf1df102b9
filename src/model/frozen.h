/* frozen.h - random weights that are a seed: never stored, never trained.
 *
 *   normal: the sum of eight 16-bit numbers less its mean, an integer v with 0 < |v| <= 262140,
 *           times `unit` in one f32 product: nearly normal, and the same bits on every machine
 *   signed: unit or -unit
 *
 * No weight is 0, so a matrix of frozen weights and zeros shows its mask. */
#ifndef PARE_MODEL_FROZEN_H
#define PARE_MODEL_FROZEN_H
#include <pare/model.h>

#define PARE_FROZEN_MOST 1e6f /* of the unit */

/* The unit with which weights have this standard deviation. */
float pare_frozen_unit(pare_frozen_kind kind, double std);
/* Weights first .. first + count - 1 of the matrix, row by row: any part by itself. */
void pare_frozen_fill(float *out, const pare_frozen *f, uint64_t first, size_t count);
#endif
