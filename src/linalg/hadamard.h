/* hadamard.h - matrices of +-1 with orthogonal rows, as fast transforms.
 *
 * The order of a factor is q + 1, for a prime q = 3 mod 4 (Paley 1933), times a power of two:
 * 1, 2, 4, ..., 12, 24, 48, ..., 20, 40, ... A transform of n numbers is applied to each of the n /
 * order blocks by itself. */
#ifndef PARE_LINALG_HADAMARD_H
#define PARE_LINALG_HADAMARD_H
#include <pare/base.h>

typedef struct hadamard {
    unsigned paley; /* 1, or q + 1 */
    unsigned twos;
} hadamard;

enum { HADAMARD_MOST_PALEY = 128, HADAMARD_MOST_TWOS = 20 };

static inline size_t hadamard_order(hadamard h)
{
    return (size_t)h.paley << h.twos;
}
bool hadamard_exists(hadamard h);
/* The largest order that divides n and is at most `most`; of these the smallest Paley factor. */
hadamard hadamard_for(size_t n, size_t most);

/* Vectors of HADAMARD_LANES numbers, one after the other: n of them, a multiple of the order, become
 * H times them, block by block. H = paley (x) two (x) two ..., H[0][j] = 1. */
enum { HADAMARD_LANES = 32 };
void hadamard_lanes(int32_t *v, size_t n, hadamard h);
/* n numbers at v, v + stride, ...; with `transposed` H^T. Not divided by anything. */
void hadamard_apply(double *v, size_t n, size_t stride, hadamard h, bool transposed);
#endif
