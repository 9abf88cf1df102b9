/* neighbor_bound.c - inputs whose nearest neighbors, by the cosine of outputs, surely stay.
 *
 * With unit vectors x_i = f_i / |f_i| known as u_i up to e_i (cosine_bound.c), |u_i| <= 1 + 2^-50,
 *
 *     | <x_i, x_j> - <u_i, u_j> |  <=  |x_i - u_i| + |u_i| |x_j - u_j|  <=  (1 + 2^-50)(e_i + e_j),
 *
 * and the computed product is within gamma_n of <u_i, u_j>. Let K be the k inputs whose computed cosine
 * with i is largest in f. If in f and in g every cosine with an input of K is, by these intervals, above
 * every cosine with an input that is not, then K is the set of the k nearest of i in both models. */
#include "enclose.h"
#include "linalg/bounds.h"

static double cosine_at(const pare_unit_rows *r, size_t i, size_t j)
{
    const double *const x = r->unit + i * r->cols, *const y = r->unit + j * r->cols;
    double sum = 0;
    for (size_t k = 0; k < r->cols; k++) sum += x[k] * y[k];
    return sum;
}

/* How far the exact cosine may be from the computed one; 2^-48 is more than what adding it to the cosine
 * rounds. */
static double cosine_error(const pare_unit_rows *r, size_t i, size_t j)
{
    const double rows = up_mul(1 + 0x1p-50, up_add(r->error[i], r->error[j]));
    return up_add(rows, up_add(up_mul(1 + 0x1p-48, gamma_of(r->cols + 1, PARE_UNIT_F64)), 0x1p-48));
}

/* The inputs marked as nearest are above all others. */
static bool surely_nearest(const pare_unit_rows *r, size_t i, const bool *nearest)
{
    double within = INFINITY, beyond = -INFINITY;
    for (size_t j = 0; j < r->rows; j++) {
        if (j == i) continue;
        const double cosine = cosine_at(r, i, j), error = cosine_error(r, i, j);
        if (nearest[j])
            within = fmin(within, cosine - error);
        else
            beyond = fmax(beyond, cosine + error);
    }
    return within > beyond;
}

static void mark_nearest(bool *nearest, double *cosine, const pare_unit_rows *r, size_t i,
                         size_t count)
{
    for (size_t j = 0; j < r->rows; j++) {
        cosine[j] = j == i ? -INFINITY : cosine_at(r, i, j);
        nearest[j] = false;
    }
    for (size_t k = 0; k < count; k++) {
        size_t best = i;
        for (size_t j = 0; j < r->rows; j++)
            if (!nearest[j] && cosine[j] > cosine[best]) best = j;
        nearest[best] = true;
    }
}

pare_status pare_neighbors_stay(bool *stay, const pare_unit_rows *f, const pare_unit_rows *g,
                                size_t count, pare_err *err)
{
    PARE_ASSERT(f->rows == g->rows && count > 0 && count < f->rows);
    pare_arena *const a = pare_arena_new();
    double *const cosine = a ? pare_alloc(a, f->rows, sizeof *cosine) : NULL;
    bool *const nearest = a ? pare_alloc(a, f->rows, sizeof *nearest) : NULL;
    const bool ready = cosine && nearest;
    for (size_t i = 0; ready && i < f->rows; i++) {
        mark_nearest(nearest, cosine, f, i, count);
        stay[i] = surely_nearest(f, i, nearest) && surely_nearest(g, i, nearest);
    }
    pare_arena_free(a);
    return ready ? PARE_OK : pare_no_memory(err);
}
