/* feedback.c - error feedback: the weights that are still open compensate the errors of those
 * already chosen.
 *
 * With H = E y y^T of the rows y that enter a matrix, an error e of the weights of one output costs
 * e^T H e. When the first weights are settled and have their errors, the others can be chosen to
 * cost least: that is the elimination of H^-1, one input after the other. With P what is left of
 * H^-1 before input k,
 *
 *     w_r  <-  w_r - e_k P_kr / P_kk      for all r that are still open,
 *
 * and the k-th error, all later ones at their best, costs e_k^2 / P_kk. Inputs with the largest
 * second moment go first, while there are many to make good for them. */
#include "base/support.h"
#include "linalg/matrix.h"
#include "feedback.h"
#include <math.h>
#include <stdlib.h>

#define RIDGE 0.01 /* of the mean square of an input: what the data do not show is not free */

static double mean_square(const pare_mat *h)
{
    double sum = 0;
    for (size_t i = 0; i < h->rows; i++) sum += pare_row(h, i)[i];
    return sum / (double)h->rows;
}

/* p becomes the pushes, row by row; what an error is worth is 1 / pivot. */
static void eliminate_inputs(pare_mat *p, double *worth)
{
    const size_t n = p->rows;
    for (size_t k = 0; k < n; k++) {
        double *const row = pare_row_mut(p, k);
        const double pivot = row[k];
        for (size_t i = k + 1; i < n; i++) {
            double *const other = pare_row_mut(p, i);
            const double by = row[i] / pivot;
            for (size_t j = i; j < n; j++) other[j] -= by * row[j];
        }
        for (size_t j = k + 1; j < n; j++) row[j] /= pivot;
        worth[k] = 1 / pivot;
    }
}

pare_status feedback_of(feedback *out, pare_arena *a, size_t inputs, const input_moments *e,
                        pare_err *err)
{
    uint32_t *const order = pare_alloc(a, inputs + 1, sizeof *order);
    double *const worth = pare_alloc(a, inputs + 1, sizeof *worth), mean = 0;
    if (!order || !worth) return pare_no_memory(err);
    *out = (feedback){.n = inputs, .order = order, .worth = worth, .cost = (double)inputs};
    const double square = e && e->square.v ? mean_square(&e->square) : 0;
    for (size_t i = 0; i < inputs; i++) {
        order[i] = (uint32_t)i;
        worth[i] = 1;
    }
    if (!(square > 0)) return PARE_OK;
    PARE_ASSERT(e->square.rows == inputs);
    out->push = pare_mat_new(a, inputs, inputs);
    const pare_mark mark = pare_arena_mark(a);
    pare_mat h = pare_mat_new(a, inputs, inputs);
    pare_keyed *const list = pare_alloc(a, inputs, sizeof *list);
    if (!out->push.v || !h.v || !list) return pare_no_memory(err);
    for (size_t i = 0; i < inputs; i++)
        list[i] = (pare_keyed){pare_row(&e->square, i)[i], (uint32_t)i};
    pare_largest_first(list, inputs);
    for (size_t i = 0; i < inputs; i++) order[i] = list[i].id;
    for (size_t i = 0; i < inputs; i++)
        for (size_t j = 0; j < inputs; j++)
            pare_row_mut(&h, i)[j] =
                pare_row(&e->square, order[i])[order[j]] + (i == j ? RIDGE * square : 0);
    pare_status st = pare_spd_inverse(&out->push, &h, err);
    if (!st) eliminate_inputs(&out->push, worth);
    for (size_t k = 0; !st && k < inputs; k++) mean += worth[k] / (double)inputs;
    for (size_t k = 0; !st && k < inputs; k++) worth[k] /= mean;
    out->cost = mean * (double)inputs;
    pare_arena_reset(a, mark);
    return st;
}

pare_status feedback_aim(pare_mat *out, const pare_mat *w, const input_moments *e,
                         pare_arena *scratch, pare_err *err)
{
    const size_t n = w->cols;
    const double ridge = RIDGE * mean_square(&e->square);
    const pare_mark mark = pare_arena_mark(scratch);
    pare_mat square = pare_mat_new(scratch, n, n), cross = pare_mat_new(scratch, n, n),
             inverse = pare_mat_new(scratch, n, n), half = pare_mat_new(scratch, w->rows, n);
    if (!square.v || !cross.v || !inverse.v || !half.v) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            pare_row_mut(&square, i)[j] = pare_row(&e->square, i)[j] + (i == j ? ridge : 0);
            pare_row_mut(&cross, i)[j] = pare_row(&e->cross, i)[j] + (i == j ? ridge : 0);
        }
    const pare_status st = pare_spd_inverse(&inverse, &square, err);
    if (!st) {
        pare_gemm(&half, 1, w, false, &cross, false, 0);
        pare_gemm(out, 1, &half, false, &inverse, false, 0);
    }
    pare_arena_reset(scratch, mark);
    return st;
}

void feedback_run(const feedback *f, const double *weights, double *scratch, size_t output,
                  feedback_choose *fn, void *self)
{
    for (size_t k = 0; k < f->n; k++) scratch[k] = weights[f->order[k]];
    for (size_t k = 0; k < f->n; k++) {
        const double goal = scratch[k];
        const double error = goal - fn(self, output, f->order[k], goal, f->worth[k]);
        for (size_t r = k + 1; f->push.v && r < f->n; r++)
            scratch[r] -= error * pare_row(&f->push, k)[r];
    }
}
