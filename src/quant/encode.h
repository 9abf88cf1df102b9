/* encode.h - one matrix in few bits, whatever its place in the model. Private to this folder.
 *
 * A new method has a name in pare_quant_method and a line in the table of encode.c. */
#ifndef PARE_QUANT_ENCODE_H
#define PARE_QUANT_ENCODE_H
#include "model/ticket_store.h"
#include "quant_internal.h"

typedef struct quant_job {
    size_t rows, cols;
    const float *w;          /* rows x cols, without gaps: what the numbers should be */
    const pare_mat *moments; /* E y y^T of the rows y that enter it, cols x cols; NULL: unknown, all
                                errors weigh the same */
    pare_quant_method method;
    double bits;  /* a weight; groups of integers take whole ones */
    size_t group; /* weights of a row that share a scale, 1 .. cols */
    bool affine;
    const double *worth;   /* of the squared errors of each row, with each_row; NULL: 1 */
    bool each_row;         /* rows are vectors of their own: of a path, a scale for each */
    unsigned state_bits;   /* of a path; 0: the usual */
    uint64_t seed, stream; /* of methods that draw random numbers; the stream is the matrix's own */
    const pare_exec *exec;
} quant_job;

/* The bytes and the numbers they expand to (rows x cols), in the arena; coded->name is left to the
 * caller. Same bytes for any number of threads. */
PARE_MUST_USE pare_status quant_matrix(pare_coded *coded, float **expanded, pare_arena *a,
                                       const quant_job *job, pare_err *err);

/* That what it writes has in its file. */
pare_coded_kind quant_kind_of(pare_quant_method method);

/* ---- groups of integers ---------------------------------------------------------------------- */

/* Of one group: w ~ scale q + offset, least <= q <= most. */
typedef struct group_scale {
    float scale, offset;
} group_scale;
typedef struct group_range {
    int least, most;
    bool affine, wide; /* wide: scales are f32, else f16 */
} group_range;
group_range group_range_of(const quant_job *job);
/* Whether the scales of these weights need f32: those of f16 would be 0, lose digits, or overflow. */
bool quant_is_wide(const pare_weight *w, unsigned bits);
#define QUANT_MOST_WEIGHT 0x1p96 /* no scale of such weights is refused when the file is read */
/* The scale that is best for rounding n weights to nearest: of several, that with the least
 * sum of worth (w - rounded)^2; `worth` NULL: 1 each. */
group_scale best_scale(const float *w, const double *worth, size_t n, const group_range *r);
/* The integer nearest to w. */
int nearest_code(double w, group_scale s, const group_range *r);

/* Integers and scales of a matrix, in the arena: what a method fills in. */
typedef struct quant_groups {
    size_t groups; /* of a row */
    int8_t *q;
    float *scale, *offset; /* offset NULL where not affine */
} quant_groups;

typedef pare_status quant_method_fn(quant_groups *to, const quant_job *job, const group_range *r,
                                    pare_arena *scratch, pare_err *err);
quant_method_fn quant_rtn, quant_gptq;
/* Scales of all groups by themselves, `worth` of each column's squared error (NULL: 1). */
void quant_scales(quant_groups *to, const quant_job *job, const group_range *r,
                  const double *worth);
#endif
