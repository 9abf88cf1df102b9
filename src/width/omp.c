/* omp.c - hidden units by greedy forward selection (orthogonal matching pursuit,
 * docs/theory/width.md section 9): each time the unit that explains most of what is still missing
 * of the next point of the stream, given the stream and the units selected before. Unlike
 * select_units.c it looks at what the units are used for, not at the units. */
#include "linalg/matrix.h"
#include "cuts.h"
#include <math.h>
#include <string.h>

#define EXPLAINED 1e-10 /* of a unit's square that is left when others explain it */

/* a -= q q^T a; q has orthonormal columns. */
static void project_out(pare_work *w, pare_mat *a, const pare_mat *q)
{
    const pare_mat c = mat_mul(w, q, true, a, false);
    if (!w->st) pare_gemm(a, -1, q, false, &c, false, 1);
}

static double *col_squares(pare_work *w, const pare_mat *a)
{
    double *const s = vec_zeros(w, a->cols);
    for (size_t i = 0; !w->st && i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) s[j] += pare_row(a, i)[j] * pare_row(a, i)[j];
    return s;
}

static pare_mat centered(pare_work *w, const pare_mat *m)
{
    const double *const mean = mat_col_means(w, m);
    return mat_centered(w, m, mean);
}

size_t *omp_units(pare_work *w, const pare_mat *base, const pare_mat *pool, const pare_mat *y,
                  size_t k, const pare_mat *g)
{
    bool *const selected = pare_work_alloc(w, pool->cols, sizeof *selected);
    size_t *const which = pare_work_alloc(w, k, sizeof *which);
    if (w->st) return NULL;
    PARE_ASSERT(k <= pool->cols);
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_mat rows = centered(w, base);
    const svd_factors s = svd_of(w, &rows);
    const pare_mat b = w->st ? rows : mat_first_cols(w, &s.u, svd_rank(&s, 1e-12));
    pare_mat q = centered(w, pool), t = centered(w, y);
    if (g) {
        const pare_mat root = metric_root(w, g, NULL);
        t = mat_mul(w, &t, false, &root, false);
    }
    double *const whole = col_squares(w, &q);
    for (size_t j = 0; !w->st && j < q.cols; j++) whole[j] += 1e-300;
    if (!w->st) {
        project_out(w, &t, &b);
        project_out(w, &q, &b);
    }
    for (size_t step = 0; !w->st && step < k; step++) {
        const pare_mark here = pare_arena_mark(w->arena);
        const pare_mat c = mat_mul(w, &t, true, &q, false);
        const double *const left = col_squares(w, &q), *const gain = col_squares(w, &c);
        size_t best = 0;
        double most = -2;
        for (size_t j = 0; !w->st && j < q.cols; j++) {
            double explains = gain[j] / fmax(left[j], 1e-12 * whole[j]);
            /* Units that others explain come after all that help. */
            if (left[j] < EXPLAINED * whole[j]) explains = -0.5;
            if (explains > most && !selected[j]) {
                most = explains;
                best = j;
            }
        }
        selected[best] = true;
        pare_mat u = mat_zeros(w, q.rows, 1);
        double sum = 0;
        for (size_t i = 0; !w->st && i < q.rows; i++) {
            u.v[i] = pare_row(&q, i)[best];
            sum += u.v[i] * u.v[i];
        }
        for (size_t i = 0; !w->st && i < q.rows; i++) u.v[i] /= fmax(sqrt(sum), 1e-300);
        project_out(w, &t, &u);
        project_out(w, &q, &u);
        pare_arena_reset(w->arena, here);
    }
    pare_arena_reset(w->arena, mark);
    for (size_t j = 0, at = 0; j < pool->cols; j++)
        if (selected[j]) which[at++] = j;
    return which;
}
