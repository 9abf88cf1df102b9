/* merge_softmax.h - add the results of one call to the accumulators of its rows: scale factors and
 * weight sums (merge_softmax.c), weighted values (accumulate.c). All variants give the same
 * bits. */
#ifndef PARE_LENGTH_MERGE_SOFTMAX_H
#define PARE_LENGTH_MERGE_SOFTMAX_H
#include <pare/base.h>

/* Partial results (m, l) of n rows. row_max becomes the larger of row_max and m; scale_old and
 * scale_new are the factors of the old sums and of the new result, 1 and e^-|m - row_max| within
 * 1.5 ulp (0 below e^-708); weight_sum = scale_old weight_sum + scale_new l. weight_sum is a nan
 * where m is not finite or l is not above 0. */
typedef struct partial_merge {
    const void *m, *l; /* f32 or f64 */
    double *row_max, *weight_sum, *scale_old, *scale_new;
} partial_merge;
typedef void merge_partial_fn(const partial_merge *f, size_t n, bool f32);
merge_partial_fn merge_partial_rows;
/* Those this CPU can run, best first; the last one is portable. */
size_t merge_partial_variants(merge_partial_fn *out[3]);

/* Results of calls with a reference: softmax weight of the keys together, and of the reference.
 * scale_new = 1 / the reference's weight, scale_old = 1, weight_sum += scale_new times the keys'
 * weight; scale_new = 0 and a nan in weight_sum where the reference weighs less than `least`, both
 * more than `most`, or one is not finite. */
typedef struct reference_merge {
    const void *keys, *reference; /* f32 or f64 */
    double *weight_sum, *scale_old, *scale_new;
    double least, most;
} reference_merge;
typedef void merge_reference_fn(const reference_merge *s, size_t n, bool f32);
merge_reference_fn merge_reference_rows;
size_t merge_reference_variants(merge_reference_fn *out[3]);

/* Weighted values of some calls for up to STRIPE rows, one call after the other:
 * acc = scale_old acc + scale_new x. */
enum { STRIPE = 64, ADDENDS = 16 };
typedef struct addends {
    size_t count, ld;       /* calls; numbers from one row of x to the next */
    const void *x[ADDENDS]; /* of the oracle's type */
    double scale_old[ADDENDS][STRIPE], scale_new[ADDENDS][STRIPE];
} addends;
/* Into rows x n accumulators, which stay in registers: many addends cost little more than one.
 * False when an accumulator is not finite afterwards. */
typedef bool accumulate_fn(double *acc, size_t rows, size_t n, const addends *a);
accumulate_fn *accumulate_fn_for(pare_dtype t);
/* Those for f32. */
size_t accumulate_variants(accumulate_fn *out[3]);
#endif
