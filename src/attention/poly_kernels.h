/* poly_kernels.h - the inner loops of polynomial attention that dense attention does not have. */
#ifndef PARE_ATTENTION_POLY_KERNELS_H
#define PARE_ATTENTION_POLY_KERNELS_H
#include <pare/base.h>
#include "tile.h"
#include <stdint.h>

enum { POLY_LANES = 16 }; /* rows of features are padded to it, whatever the vectors */

/* Numbers [to, to + count) = variable var times [from, from + count). */
typedef struct poly_run {
    size_t to, from, count, var;
} poly_run;

/* A block of keys: what they are summed with, and how far apart their rows lie. */
typedef struct poly_keys {
    const float *u;
    size_t ldu, ldphi, ldx, keys, cols;
} poly_keys;

/* Monomials as products of variables: number e is the product of the variables factor[f ld + e],
 * f < degree, in this order; variable POLY_LANES is 1. Padded to ld, a multiple of POLY_LANES. */
typedef struct poly_factors {
    const uint32_t *factor;
    size_t degree, ld;
} poly_factors;
enum { POLY_FACTORS = 4 }; /* at most: for more, products of products are faster */

/* Factors of sums when their unit changes: of those of this segment, of those before it. */
typedef struct poly_rescale {
    double now, before;
} poly_rescale;

typedef struct poly_kernel {
    const char *name;
    tile_kernel tile;
    /* The monomials of rows x (ldx apart) of at most POLY_LANES variables, each row of phi (ldphi
     * apart) by itself, up to ld of them. NULL: by `rows`. */
    void (*products)(float *phi, size_t ldphi, const poly_factors *m, const float *x, size_t ldx,
                     size_t d, size_t rows);
    /* The monomials of rows x (ldx apart), each row of phi (ldphi apart) by itself; phi[0] = 1 is
     * there. Up to POLY_LANES - 1 numbers behind a run may be written. */
    void (*rows)(float *phi, size_t ldphi, const poly_run *runs, size_t n, const float *x,
                 size_t ldx, size_t rows);
    /* The same for v vectors of rows, number e of all of them side by side: those of the runs go
     * to `to`, which begins at monomial `first`; x likewise. */
    void (*columns)(float *to, size_t first, const float *from, const poly_run *runs, size_t n,
                    const float *x, size_t v);
    /* s (cols x count) += sum over keys of u^T (x phi): u keys x cols (a multiple of TILE_STEP),
     * phi keys x count and what a vector reads behind it, x one number a key; NULL: 1. The keys'
     * sum is taken first, then added. */
    void (*accumulate)(float *s, size_t lds, const poly_keys *k, const float *phi, const float *x,
                       size_t count);
    /* to[i] += from[i], and from[i] = 0; n a multiple of POLY_LANES. */
    void (*flush)(double *to, float *from, size_t n);
    /* The same for sums that grow chunk by chunk, and the state that queries read: now[i] = (now[i]
     * + from[i]) f->now, from[i] = 0, to[i] = (f->before before[i] + now[i]) by[i]; any n. */
    void (*update_state)(float *to, double *now, float *from, const poly_rescale *f,
                         const double *before, const double *by, size_t n);
    /* The gradient through monomials, for v vectors of rows side by side, and every monomial
     * e = parent x_var of the runs:
     *     dfrom_parent += dto_e x_var,   dx_var += dto_e from_parent.
     * dto begins at monomial `first`, dfrom and from at the constant. */
    void (*monomials_backward)(float *dfrom, float *dx, const float *dto, size_t first,
                               const float *from, const poly_run *runs, size_t n, const float *x,
                               size_t v);
} poly_kernel;

/* Without their tile, and update_state where it is plain C. */
extern const poly_kernel poly_portable, poly_avx2, poly_avx512;

/* The kernels this CPU can run, best first; the last is the portable one. Returns how many. */
size_t poly_kernels(poly_kernel out[3]);

#endif
