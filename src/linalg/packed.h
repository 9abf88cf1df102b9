/* packed.h - matrices of integers with scales, or of half-precision numbers, that products read as
 * they are.
 *
 *     w[o][i] = s[o][g] (c[o][i] - z) + m[o][g]      g = i / group       integers
 *
 * They lie in panels of PARE_PANEL outputs, in the order in which a kernel reads them:
 *
 *   8 bits   i / 4, output, i % 4: one byte each
 *   4 bits   i / 8, output: a byte for inputs j and 4 + j, j = 0 .. 3, j in the lower half
 *   half     i, output: two bytes each
 *
 * Integers of 2 to 4 bits are stored in 4, those of 5 to 8 bits in 8. Scales and offsets are f32, in
 * panels too. Inputs are filled up to a multiple of 8 with c = z, outputs with scales of 0.
 *
 *   packed.c            packing, single entries, products over threads
 *   packed_tile.h       the kernel for rows of f32, and rounding them, over base/vec.h
 *   packed_avx512.c packed_avx2.c packed_portable.c    its instances; those for rows of int8 */
#ifndef PARE_LINALG_PACKED_H
#define PARE_LINALG_PACKED_H
#include "matrix.h"

typedef enum packed_kind { PACKED_INT8, PACKED_INT4, PACKED_F16, PACKED_BF16 } packed_kind;
enum {
    PACKED_STEP = 8,             /* inputs are filled up to a multiple of it */
    PACKED_MOST_GROUP = 1 << 16, /* inputs that share a scale: their products fit an int32 */
};

/* What `data` of a weight of type PARE_U8 points to. */
struct packed_matrix {
    pare_packed_weight base;
    packed_kind kind;
    size_t rows, cols, depth; /* depth: cols, filled up */
    size_t group, groups;     /* a multiple of PACKED_STEP, or at least cols */
    int zero;
    const uint8_t *codes;
    size_t bytes;                /* that it takes in its file */
    const float *scale, *offset; /* panel, group, PARE_PANEL; offset may be NULL */
};
typedef struct packed_matrix packed_matrix;

/* Whether these integers can be packed: their groups may be too small, or too large. */
bool packed_takes(size_t cols, size_t group);
/* Copies the integers, or the half-precision numbers (u16, row by row, may be unaligned), into
 * panels; in the arena. *out: a weight of type PARE_U8. */
PARE_MUST_USE pare_status packed_integers(pare_weight *out, pare_arena *a, const pare_int_groups *g,
                                          pare_err *err);
PARE_MUST_USE pare_status packed_halves(pare_weight *out, pare_arena *a, const uint8_t *from,
                                        size_t rows, size_t cols, pare_dtype t, pare_err *err);
/* The matrix of a packed weight; NULL: its numbers lie there as they are. */
static inline const packed_matrix *packed_of(const pare_weight *w)
{
    return w->dtype == PARE_U8 ? w->data : NULL;
}
/* Whether every number is finite; else *where, which may be NULL, is the first that is not. */
bool packed_finite(const packed_matrix *w, size_t *where);
/* Row r as f32 numbers: cols of them. */
void packed_row(float *to, const packed_matrix *w, size_t r);

/* ---- products ---------------------------------------------------------------------------------- */

/* How a product is computed. Scratch is what packed_scratch asks for. */
typedef struct packed_work {
    bool int8; /* rows of x are rounded to integers of 8 bits, in the groups of the weights */
    void *scratch;
    const pare_exec *exec;
} packed_work;
size_t packed_scratch(const packed_matrix *w, size_t n, bool int8);

/* y (n x outs) = x (n x cols) W^T + b, added to y where `add`; bias NULL: none, else outs numbers.
 * outs: the rows of w, or these filled up to whole panels (with zeros, and biases that are there).
 * A row's bits depend on that row alone: not on n, nor on the threads. */
typedef struct packed_product {
    float *y;
    size_t ldy, outs;
    const packed_matrix *w;
    const float *bias, *x;
    size_t ldx, n;
    bool add;
} packed_product;
void packed_apply(const packed_product *p, const packed_work *work);

/* ---- kernels ----------------------------------------------------------------------------------- */

/* A product, on panels [first, first + panels). */
typedef struct packed_job {
    packed_product p;
    size_t first, panels;
    const float *sums;    /* n x groups: of x; only with offsets */
    const int8_t *q;      /* n x depth: x as integers, padded with zeros ... */
    const float *scales;  /* ... n x groups: times these ... */
    const int32_t *qsums; /* ... n x groups: and their sums */
} packed_job;

typedef void packed_fn(const packed_job *j);
packed_fn packed_f32_portable, packed_int8_portable;
#if defined(__x86_64__)
packed_fn packed_f32_avx2, packed_f32_avx512, packed_int8_avx2, packed_int8_vnni;
#endif
/* x = s q, |q| <= 127, to nearest, ties to even, s = the largest |x| / 127, in groups; all 0 where
 * the largest is below 2^-100; s is nan where one is not finite. `from` to `depth`: zeros. */
typedef struct packed_rounding {
    const float *x;
    size_t cols, depth, group;
    int8_t *q;
    float *scale;
    int32_t *sum;
} packed_rounding;
typedef void packed_round_fn(const packed_rounding *r);
packed_round_fn packed_round_portable;
#if defined(__x86_64__)
packed_round_fn packed_round_avx2, packed_round_avx512;
#endif
#endif
