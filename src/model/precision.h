/* precision.h - the precision that weights are stored in. In memory they are f32 or f64; a file has
 * those that need no more in half precision. */
#ifndef PARE_MODEL_PRECISION_H
#define PARE_MODEL_PRECISION_H
#include <pare/model.h>

/* What a file holds this weight in: `precision` where that is no wider than the weight and exact
 * for all of its numbers, otherwise f32 where that is, otherwise what it is. */
pare_dtype weight_stored_dtype(const pare_weight *w, pare_dtype precision);
/* Its numbers in type t, which is exact for them. */
void weight_store(void *out, pare_dtype t, const pare_weight *w);

/* Bytes of the weights of a file by their type: F16, BF16, F32, F64; others are not counted. */
typedef struct precision_counts {
    double bytes[4];
} precision_counts;
void precision_count(precision_counts *c, pare_dtype t, size_t numbers);
pare_dtype precision_of(const precision_counts *c); /* the type of most bytes; F32 of none */
#endif
