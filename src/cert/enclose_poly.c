/* enclose_poly.c - what attention of kind poly adds to the radius of the f32 engine.
 *
 * The f32 engine may evaluate such a head by a polynomial; pare/attention.h promises that each
 * entry of a row is then within tolerance times the range of its column of values of exact
 * attention at the engine's own queries, keys and values, beside the rounding of the entry itself,
 * which the exact kernel's radius contains. The f64 pass is exact. The range of column c over the
 * sequence is that of the midpoints and at most twice the largest distance of a value from its
 * midpoint:
 *     |off|_2 <= tolerance (|range of the midpoints|_2 + 2 sqrt(dv) max_j (r[0]_j + r[1]_j)). */
#include "enclose_heads.h"

static double range_of(const heads *h, size_t first, size_t g)
{
    const size_t t = h->c->tokens, dv = h->at->heads[g].dv;
    double squares = 0, far = 0;
    for (size_t c = 0; c < dv; c++) {
        double low = INFINITY, high = -INFINITY, lo = 0;
        for (size_t j = first; j < first + t; j++) {
            const double v = part(&h->v, j, g)[c];
            if (!(v >= -DBL_MAX && v <= DBL_MAX)) return INFINITY;
            if (v < low) low = v;
            if (v > high) high = v;
            lo = up_max(lo, up_mul(LO_SHARE, fabs(v))); /* what a wide midpoint adds */
        }
        const double range = up_add(up(high - low), up_mul(2, lo));
        squares = up_fma(range, range, squares);
    }
    for (size_t j = first; j < first + t; j++) {
        const size_t at = j * h->at->nheads + g;
        far = up_max(far, up_add(h->v.r[0][at], h->v.r[1][at]));
    }
    return up_fma(up_mul(2, up_sqrt((double)dv)), far, up_sqrt(squares));
}

pare_status enclose_poly_slack(heads *h, pare_err *err)
{
    const size_t t = h->c->tokens, nh = h->at->nheads;
    if (h->at->kind != PARE_ATTN_POLY || t == 0) return PARE_OK;
    h->slack = pare_alloc(h->c->a, h->v.x.rows / t + 1, nh * sizeof *h->slack);
    if (!h->slack) return pare_no_memory(err);
    for (size_t s = 0; s * t < h->v.x.rows; s++)
        for (size_t g = 0; g < nh; g++)
            h->slack[s * nh + g] = up_mul(h->at->tolerance, range_of(h, s * t, g));
    return PARE_OK;
}
