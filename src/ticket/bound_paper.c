/* bound_paper.c - the bound that Otsuka 2025 prints for one attention layer (its Lemma 8 and
 * equation 17), with the errors as they are:   sum_h [ sqrt(d1) alpha (e^(2 alpha^2 d1 |E^q|_max) -
 * 1) + d1 sqrt(d2) alpha |E^v|_max ]. It needs |V_h| <= 1, no biases and no rotary positions, and
 * is evaluated without its rounding: shown beside the theorem, labeled as not sound, never used
 * (docs/errata.md). */
#include "bounds.h"
#include <math.h>

double paper_form(const attn_sizes *m, size_t d1, size_t d2, double alpha)
{
    const double d = (double)d1;
    double sum = 0;
    for (size_t h = 0; h < m->nheads; h++) {
        const head_sizes *const s = &m->heads[h];
        if (s->factored) return INFINITY;
        sum += sqrt(d) * alpha * expm1(2 * alpha * alpha * d * s->ge_max.v) +
               d * sqrt((double)d2) * alpha * s->ve_max.v;
    }
    return isnan(sum) ? INFINITY : sum;
}
