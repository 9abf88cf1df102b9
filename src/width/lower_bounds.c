/* lower_bounds.c - what no cut can beat: lower bounds beside the upper ones (Eckart-Young).
 *
 * Let A (n x D) be rows of the input model, and P subtract their mean. Rows that are an affine map
 * of n x d numbers, B = X W^T + 1 b^T, have rank(P B) <= d, so
 *
 *     |A - B|_F >= |P (A - B)|_F >= sqrt(sum_{i > d} sigma_i(P A)^2).
 *
 * For the outputs this holds for every model with an affine head on d numbers a row, however it was
 * found; the largest entry of A - B is at least 1/sqrt(n D) of it. For a place of the stream it is
 * the least that any d numbers a row can leave of what stood there.
 *
 * sum_{i > d} sigma_i^2 is taken from C = (PA)^T (PA), or (PA) (PA)^T if that is smaller: its
 * eigenvalues are enclosed (singular_bounds.c), C is off by gamma |PA|_F^2 in norm, and so is each
 * of the small eigenvalues at most. And the bound itself moves by at most |dA|_F when A does: so
 * rows known up to radii give it up to those. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "prove.h"
#include <math.h>
#include <string.h>

/* What the computed centered rows may be off by, in the Frobenius norm, with the rows' own
 * radii. */
static pare_ub centering_error(const pare_mat *a, const pare_mat *centered, const double *rad)
{
    pare_ub squares = pare_ub_exact(0);
    for (size_t i = 0; rad && i < a->rows; i++) {
        const pare_ub r = pare_ub_exact(rad[i]);
        squares = pare_ub_fma(r, r, squares);
    }
    const pare_ub mean = product_rounding(a->rows, fro_norm(a), pare_ub_exact(1));
    const pare_ub rounds = pare_ub_fma(pare_ub_exact(0x1p-52), fro_norm(centered), mean);
    return pare_ub_add(pare_ub_sqrt(squares), rounds);
}

enum { LARGEST = 1024 }; /* Gram matrices beyond it take too long: 0 is a bound as well */

double residual_lower_bound(pare_work *w, const pare_mat *a, const double *rad, size_t d)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    const double *const mean = mat_col_means(w, a);
    const bool tall = a->rows >= a->cols;
    const size_t side = tall ? a->cols : a->rows;
    double low = 0;
    if (!w->st && d < side && side <= LARGEST) {
        const pare_mat c = mat_centered(w, a, mean), gram = mat_mul(w, &c, tall, &c, !tall);
        const singular_bounds s = singular_bounds_of(w, &gram);
        const pare_ub size = fro_norm(&c);
        const pare_ub off = product_rounding(tall ? c.rows : c.cols, size, size);
        for (size_t i = d; !w->st && i < s.n; i++) low += s.low[i] > off.v ? s.low[i] - off.v : 0;
        /* n + 2 roundings downwards are covered many times over. */
        low = sqrt(low) * (1 - (double)(s.n + 2) * 0x1p-50) - centering_error(a, &c, rad).v;
    }
    pare_arena_reset(w->arena, mark);
    /* As a certificate writes it: one part in 1e4 lower, so that another CPU can prove it again. */
    return !w->st && low > 0 && isfinite(low) ? low * (1 - 1e-4) : 0;
}

/* Singular values move by at most |dA|_F (Weyl). */
size_t affine_rank_at_least(pare_work *w, const pare_mat *a, const double *rad)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    const double *const mean = mat_col_means(w, a);
    size_t rank = 0;
    if (!w->st && (a->rows < a->cols ? a->rows : a->cols) <= LARGEST) {
        const pare_mat c = mat_centered(w, a, mean);
        const singular_bounds s = singular_bounds_of(w, &c);
        const pare_ub off = w->st ? pare_ub_inf() : centering_error(a, &c, rad);
        while (!w->st && rank < s.n && s.low[rank] > off.v) rank++;
    }
    pare_arena_reset(w->arena, mark);
    return rank;
}

double entry_lower_bound(pare_work *w, const pare_mat *a, const double *rad, size_t d)
{
    const double most = (double)a->rows * (double)a->cols;
    return most > 0 ? residual_lower_bound(w, a, rad, d) / sqrt(most) * (1 - 0x1p-50) : 0;
}

/* ---- streams of the exact model -------------------------------------------------------------- */

pare_mat stream_enclosed(pare_work *w, double **rad, const pare_model *f, size_t place,
                         const pare_input *in)
{
    /* f up to that place: its own layers, and the stream as the output. */
    const size_t n = (place + 1) / 2;
    pare_model part = *f;
    pare_model_norms *norms = NULL;
    pare_enclosure e = {0};
    part.head = (pare_output_head){0};
    part.nblocks = n;
    part.blocks = pare_work_alloc(w, n, sizeof *part.blocks);
    if (!w->st) memcpy(part.blocks, f->blocks, n * sizeof *part.blocks);
    if (!w->st && place % 2) part.blocks[n - 1].ffn = (pare_ffn){0};
    if (!w->st) w->st = pare_model_norms_new(&norms, w->arena, &part, SILENT_EXEC(w), w->err);
    if (!w->st) w->st = pare_enclose(&e, w->arena, &part, norms, in, SILENT_EXEC(w), w->err);
    if (w->st) return (pare_mat){0};
    /* A row's radius is that of each of its entries. */
    for (size_t i = 0; i < e.rows; i++) e.rad[i] *= sqrt((double)e.cols) * (1 + 0x1p-50);
    *rad = e.rad;
    return pare_mat_of(e.mid, e.rows, e.cols);
}

/* ---- what an affine map reaches -------------------------------------------------------------- */

/* |a - (x m + b)|_F for the best m, b: what d numbers a row really leave of a. An estimate. */
double decoding_residual_est(pare_work *w, const pare_mat *a, const pare_mat *x)
{
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_mat y = decode_rows(w, x, a);
    double sum = 0;
    for (size_t i = 0; !w->st && i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) {
            const double off = pare_row(a, i)[j] - pare_row(&y, i)[j];
            sum += off * off;
        }
    pare_arena_reset(w->arena, mark);
    return sqrt(sum);
}

double outputs_lower_bound(pare_work *w, const pare_model *f, const pare_inputs *set, size_t d)
{
    pare_model_norms *norms = NULL;
    double most = 0;
    /* A head that normalizes is not affine. */
    if (w->st || pare_model_outputs(f) <= d || f->head.normalize) return 0;
    w->st = pare_model_norms_new(&norms, w->arena, f, SILENT_EXEC(w), w->err);
    for (size_t i = 0; !w->st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        pare_enclosure e = {0};
        w->st = pare_enclose(&e, w->arena, f, norms, &set->in[i], SILENT_EXEC(w), w->err);
        for (size_t k = 0; !w->st && k < e.rows; k++)
            e.rad[k] *= sqrt((double)e.cols) * (1 + 0x1p-50);
        const pare_mat y = pare_mat_of(e.mid, e.rows, e.cols);
        if (!w->st) most = fmax(most, entry_lower_bound(w, &y, e.rad, d));
        pare_arena_reset(w->arena, mark);
    }
    return w->st ? 0 : most;
}
