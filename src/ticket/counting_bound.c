/* counting_bound.c - a lower bound on the units of any construction, by counting
 * (docs/theory/ticket.md "Counting: what no construction can do without").
 *
 * Claim. Fix a source of n units and a scale. If for every a x b matrix W of rank at most k whose
 * first k rows and first k columns have entries in [-r, r] some pair of masks comes within eta of W
 * in every entry, then
 *     n (a + b) >= (a k + k b - k^2) log2(r / eta).
 * Proof. A generic choice of those a k + k b - k^2 entries is completed to a matrix of rank k
 * (Schur complement: the rest is A21 A11^-1 A12, and A11 is regular but for a null set). So the
 * 2^(n (a + b)) products that masks can make, seen in those entries alone, cover the cube [-r, r]
 * but for a null set with cubes of side 2 eta: volumes.  []
 * Merged forms of a head have rank dk: at d = 768, dk = 64 the bound is 61 log2(r / eta) units and
 * not 384. A single W may need less: the bound is about all of them. */
#include "linalg/bounds.h"
#include "ticket_bounds.h"
#include "bounds.h"
#include <math.h>

double pare_ticket_least_units(size_t a, size_t b, size_t rank, double r, double eta)
{
    const size_t least = a < b ? a : b, k = rank < least ? rank : least;
    if (!(r > 0 && eta > 0) || r <= eta || a + b == 0) return 0;
    const double x = (double)a, y = (double)b, z = (double)k;
    return (x * z + z * y - z * z) / (x + y) *
           (pare_log_down(r / eta) / 0x1.62e42fefa39f0p-1); /* over ln 2, rounded up */
}
