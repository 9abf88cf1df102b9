/* fit_matrix.c - pare_ticket_fit: the public interface to the fits of a matrix. */
#include "fit.h"
#include "linalg/matrix.h"
#include <pare/ticket.h>
#include <math.h>

static pare_status fit_one(fit_result *r, pare_arena *a, const fit_problem *p,
                           const pare_fit_opts *o, const pare_exec *exec, pare_err *err)
{
    const fit_best_opts best = {.seed = o->seed, .donors = o->donors};
    return o->best ? fit_best(r, a, p, &best, exec, err) : fit_block(r, a, p, exec, err);
}

pare_status pare_ticket_fit(pare_mat *out, const pare_mat *w, const pare_fit_opts *o,
                            const pare_exec *exec, pare_err *err)
{
    PARE_ASSERT(out->rows == w->rows && out->cols == w->cols);
    if (o->left == o->right)
        return pare_fail(err, PARE_ERR_INPUT, "both matrices of a ticket have one stream: %llu",
                         (unsigned long long)o->left);
    if (!(o->scale > 0 && o->scale < INFINITY))
        return pare_fail(err, PARE_ERR_INPUT, "a ticket's scale %g is not a positive number",
                         o->scale);
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    fit_problem p = {.a = w->rows, .b = w->cols, .n = o->hidden, .w = *w, .scale = o->scale};
    fit_result r = {0};
    p.A = fit_draw(a, o->seed, o->left, w->rows * o->hidden);
    p.B = fit_draw(a, o->seed, o->right, o->hidden * w->cols);
    pare_status st = p.A && p.B ? PARE_OK : pare_no_memory(err);
    if (o->side == PARE_FIT_ROWS || (o->side == PARE_FIT_SMALLER && p.a < p.b)) {
        fit_problem transposed;
        fit_result half;
        if (!st) st = fit_transpose(&transposed, a, &p, err);
        if (!st) st = fit_one(&half, a, &transposed, o, exec, err);
        if (!st) st = fit_transpose_back(&r, a, &half, err);
    } else if (!st) {
        st = fit_one(&r, a, &p, o, exec, err);
    }
    for (size_t i = 0; !st && i < w->rows; i++)
        for (size_t j = 0; j < w->cols; j++)
            pare_row_mut(out, i)[j] = pare_row(w, i)[j] - pare_row(&r.e, i)[j];
    pare_arena_free(a);
    return st;
}
