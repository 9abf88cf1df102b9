/* rotary.h - rotary positions: rotate queries and keys, plane by plane, by position x frequency. */
#ifndef PARE_MODEL_ROTARY_H
#define PARE_MODEL_ROTARY_H
#include "layer_ops.h"
#include "sequence_layout.h"

/* Cosines and sines of position x frequency, made once per pass: angles and functions in f64, the
 * result rounded to the type of the pass. One table for all blocks with the same frequencies. */
typedef struct angles {
    const struct angles *next;
    pare_weight freqs;
    const void *cosine, *sine; /* tokens x freqs.cols */
} angles;

/* The tables of all blocks; NULL when positions are not rotary, or after a failure. */
const angles *angles_new(rows_ctx *c, const pare_model *m, size_t tokens, pare_dtype t);

/* Rotates q and k (packed rows of all heads) in place: plane f of a head by position * freqs[f].
 * Row i is row (first + i) of the layout. Keys shared by several heads are rotated once. */
void rotate(rows *q, rows *k, const pare_attn *a, const angles *tables,
            const sequence_layout *layout, size_t first, bool interleaved, rows_ctx *c);

/* Has an earlier head rotated the keys of head h already? */
bool rotary_keys_done(const pare_attn *a, size_t h);

/* One head of one row. Plane f is the pair (2 f, 2 f + 1), or (f, f + planes). */
static inline void rotary_head(float *x, const float *cosine, const float *sine, size_t planes,
                               bool interleaved)
{
    if (interleaved)
        for (size_t f = 0; f < planes; f++) {
            const float a = x[2 * f], b = x[2 * f + 1];
            x[2 * f] = a * cosine[f] - b * sine[f];
            x[2 * f + 1] = a * sine[f] + b * cosine[f];
        }
    else
        for (size_t f = 0; f < planes; f++) {
            const float a = x[f], b = x[f + planes];
            x[f] = a * cosine[f] - b * sine[f];
            x[f + planes] = a * sine[f] + b * cosine[f];
        }
}
#endif
