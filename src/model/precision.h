/* precision.h - the precision that weights are stored in. In memory they are f32 or f64. A file has
 * f32 in half precision where that is the precision of the model and exact. */
#ifndef PARE_MODEL_PRECISION_H
#define PARE_MODEL_PRECISION_H
#include <pare/model.h>

/* The type that most bytes of the weights are stored in: F16, BF16, F32 or F64. */
pare_dtype pare_model_precision(const pare_model *m);

/* What a file holds this weight in: half precision, if that is the `precision` of the model and every
 * number is one; otherwise what it has in memory. */
pare_dtype weight_stored_dtype(const pare_weight *w, pare_dtype precision);
/* Its numbers in that type. */
void weight_store(void *out, pare_dtype t, const pare_weight *w);

/* Bytes of the weights of a file by their type: F16, BF16, F32, F64; others are not counted. */
typedef struct precision_counts {
    double bytes[4];
} precision_counts;
void precision_count(precision_counts *c, pare_dtype t, size_t numbers);
/* The half precision of most bytes; without any F32 or F64. */
pare_dtype precision_of(const precision_counts *c);
#endif
