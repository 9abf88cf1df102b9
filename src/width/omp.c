/* Hidden units by greedy forward choice: each time the one that explains most of what is still
 * missing of the next stream point, given the stream and the units chosen before (orthogonal
 * matching pursuit, docs/theory/width.md section 9). Unlike the choices of select_units.c it looks at
 * what the units are for, not at the units. */
#include "cuts.h"
#include <math.h>
#include <string.h>

#define GONE 1e-10 /* of a unit's square that is left when others explain it */

/* a -= q q^T a; q has orthonormal columns. */
static void take_out(pare_work *w, pare_mat *a, const pare_mat *q)
{
    const pare_mat c = mat_mul(w, q, true, a, false);
    if (!w->st) pare_gemm(a, -1, q, false, &c, false, 1);
}

static double *squares(pare_work *w, const pare_mat *a)
{
    double *const s = vec_zeros(w, a->cols);
    for (size_t i = 0; !w->st && i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) s[j] += pare_row(a, i)[j] * pare_row(a, i)[j];
    return s;
}

static pare_mat orthonormal(pare_work *w, const pare_mat *a)
{
    const svd_factors s = svd_of(w, a);
    return w->st ? (pare_mat){0} : mat_first_cols(w, &s.u, svd_rank(&s, 1e-12));
}

/* What each unit explains of t; units that others explain come after all that help. */
static size_t most_helpful(pare_work *w, const pare_mat *t, const pare_mat *q, const double *whole,
                           const bool *chosen)
{
    const pare_mat c = mat_mul(w, t, true, q, false);
    const double *const left = squares(w, q), *const gain = squares(w, &c);
    size_t best = 0;
    double most = -2;
    for (size_t j = 0; !w->st && j < q->cols; j++) {
        double g = gain[j] / fmax(left[j], 1e-12 * whole[j]);
        if (chosen[j]) g = -1;
        if (left[j] < GONE * whole[j]) g = -0.5;
        if (g > most && !chosen[j]) {
            most = g;
            best = j;
        }
    }
    return best;
}

static void take_unit(pare_work *w, pare_mat *t, pare_mat *q, size_t unit)
{
    pare_mat u = mat_zeros(w, q->rows, 1);
    double sum = 0;
    for (size_t i = 0; !w->st && i < q->rows; i++) {
        u.v[i] = pare_row(q, i)[unit];
        sum += u.v[i] * u.v[i];
    }
    for (size_t i = 0; !w->st && i < q->rows; i++) u.v[i] /= fmax(sqrt(sum), 1e-300);
    take_out(w, t, &u);
    take_out(w, q, &u);
}

static pare_mat centered(pare_work *w, const pare_mat *m)
{
    const double *const mean = mat_col_means(w, m);
    return mat_centered(w, m, mean);
}

static void choose_removals(pare_work *w, bool *chosen, size_t k, const pare_mat *base,
                            const pare_mat *pool, const pare_mat *y, const pare_mat *g)
{
    const pare_mat given = centered(w, base), b = orthonormal(w, &given);
    pare_mat q = centered(w, pool), t = centered(w, y);
    if (g) {
        const pare_mat root = metric_root(w, g, NULL);
        t = mat_mul(w, &t, false, &root, false);
    }
    double *const whole = squares(w, &q);
    for (size_t j = 0; !w->st && j < q.cols; j++) whole[j] += 1e-300;
    if (w->st) return;
    take_out(w, &t, &b);
    take_out(w, &q, &b);
    for (size_t step = 0; !w->st && step < k; step++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const size_t unit = most_helpful(w, &t, &q, whole, chosen);
        chosen[unit] = true;
        take_unit(w, &t, &q, unit);
        pare_arena_reset(w->arena, mark);
    }
}

size_t *omp_units(pare_work *w, const pare_mat *base, const pare_mat *pool, const pare_mat *y,
                  size_t k, const pare_mat *g)
{
    bool *const chosen = pare_work_alloc(w, pool->cols, sizeof *chosen);
    size_t *const which = pare_work_alloc(w, k, sizeof *which);
    if (w->st) return NULL;
    PARE_ASSERT(k <= pool->cols);
    const pare_mark mark = pare_arena_mark(w->arena);
    choose_removals(w, chosen, k, base, pool, y, g);
    pare_arena_reset(w->arena, mark);
    for (size_t j = 0, at = 0; j < pool->cols; j++)
        if (chosen[j]) which[at++] = j;
    return which;
}
