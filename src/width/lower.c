/* What no cut can beat: lower bounds beside the upper ones (Eckart-Young).
 *
 * Let A (n x D) be rows of the input model, and P take their mean away. Rows that are an affine map
 * of n x d numbers, B = X W^T + 1 b^T, have rank(P B) <= d, so
 *     |A - B|_F >= |P (A - B)|_F >= sqrt(sum_{i > d} sigma_i(P A)^2).
 * For the outputs this speaks of every model with an affine head on d numbers a row, however it was
 * found; the largest entry of A - B is at least 1/sqrt(n D) of it. For a place of the stream it is
 * the least that any d numbers a row can leave of what stood there.
 *
 * sum_{i > d} sigma_i^2 is taken from C = (PA)^T (PA), or (PA) (PA)^T if that is smaller: its
 * eigenvalues are enclosed (svals.c), C is off by gamma |PA|_F^2 in norm, and so is each of the
 * small eigenvalues at most. And the bound itself moves by at most |dA|_F when A does: so rows
 * known up to radii give it up to those. */
#include "prove.h"
#include <math.h>

/* What the computed centred rows may be off by, in the Frobenius norm, with the rows' own radii. */
static pare_ub centring(const pare_mat *a, const pare_mat *centred, const double *rad)
{
    pare_ub squares = pare_ub_exact(0);
    for (size_t i = 0; rad && i < a->rows; i++) {
        const pare_ub r = pare_ub_exact(rad[i]);
        squares = pare_ub_fma(r, r, squares);
    }
    const pare_ub mean = product_rounding(a->rows, fro_norm(a), pare_ub_exact(1));
    const pare_ub rounds = pare_ub_fma(pare_ub_exact(0x1p-52), fro_norm(centred), mean);
    return pare_ub_add(pare_ub_sqrt(squares), rounds);
}

enum { LARGEST = 1024 }; /* Gram matrices beyond it take too long: 0 is a bound as well */

double least_residual(work *w, const pare_mat *a, const double *rad, size_t d)
{
    const pare_mark mark = pare_arena_mark(w->a);
    const double *const mean = w_col_means(w, a);
    const bool tall = a->rows >= a->cols;
    const size_t side = tall ? a->cols : a->rows;
    double low = 0;
    if (!w->st && d < side && side <= LARGEST) {
        const pare_mat c = w_centred(w, a, mean), gram = w_mul(w, &c, tall, &c, !tall);
        const svals s = svals_of(w, &gram);
        const pare_ub size = fro_norm(&c);
        const pare_ub off = product_rounding(tall ? c.rows : c.cols, size, size);
        for (size_t i = d; !w->st && i < s.n; i++) low += s.low[i] > off.v ? s.low[i] - off.v : 0;
        /* n + 2 roundings downwards are covered many times over. */
        low = sqrt(low) * (1 - (double)(s.n + 2) * 0x1p-50) - centring(a, &c, rad).v;
    }
    pare_arena_reset(w->a, mark);
    /* As a certificate writes it: one part in 1e4 lower, so that another CPU can prove it again. */
    return !w->st && low > 0 ? low * (1 - 1e-4) : 0;
}

double least_entry(work *w, const pare_mat *a, const double *rad, size_t d)
{
    const double most = (double)a->rows * (double)a->cols;
    return most > 0 ? least_residual(w, a, rad, d) / sqrt(most) * (1 - 0x1p-50) : 0;
}

/* |a - (x m + b)|_F for the best m, b: what d numbers a row really leave of a. An estimate. */
double decoded_residual(work *w, const pare_mat *a, const pare_mat *x)
{
    const pare_mark mark = pare_arena_mark(w->a);
    const pare_mat y = nearest_rows(w, x, a);
    double sum = 0;
    for (size_t i = 0; !w->st && i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            const double off = pare_row(a, i)[j] - pare_row(&y, i)[j];
            sum += off * off;
        }
    pare_arena_reset(w->a, mark);
    return sqrt(sum);
}

double least_of_outputs(work *w, const pare_model *f, const pare_inputs *set, size_t d)
{
    pare_model_norms *norms = NULL;
    double most = 0;
    if (w->st || pare_model_outputs(f) <= d) return 0;
    w->st = pare_model_norms_new(&norms, w->a, f, w->exec, w->err);
    for (size_t i = 0; !w->st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(w->a);
        pare_enclosure e = {0};
        w->st = pare_enclose(&e, w->a, f, norms, &set->in[i], w->exec, w->err);
        for (size_t k = 0; !w->st && k < e.rows; k++)
            e.rad[k] *= sqrt((double)e.cols) * (1 + 0x1p-50);
        const pare_mat y = pare_mat_of(e.mid, e.rows, e.cols);
        if (!w->st) most = fmax(most, least_entry(w, &y, e.rad, d));
        pare_arena_reset(w->a, mark);
    }
    return w->st ? 0 : most;
}
