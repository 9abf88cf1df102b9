/* leverage.c - leverage scores (Shirzad 2024, Lemma C.3 and Proposition 4.3 by sampling).
 *
 * l_i = |row i of an orthonormal basis|^2, they sum to the rank d. k independent draws with
 * p_i = l_i / d, each row weighted by 1 / sqrt(k p_i), equal rows merged. For
 * k >= 6.52 d ln(d / .005) a matrix Chernoff bound gives sigma_min(S Q)^2 >= 1/2 with probability
 * .995, and Markov's inequality with E|Q^T S^T S r|^2 <= (d / k) |r|^2 puts each node within
 * sqrt(1 + 800 d / k) times its residual with probability .99 (a plain 20 is looser). That k is
 * above 64 from d = 2 on: so units are drawn, and the draw is checked. */
#include "linalg/bounds.h"
#include "linalg/matrix.h"
#include "cuts.h"
#include <math.h>

double *leverage_scores(pare_work *w, const pare_mat *a, size_t *rank)
{
    const svd_factors s = svd_of(w, a);
    double *const lev = vec_zeros(w, a->rows);
    *rank = 0;
    if (w->st) return NULL;
    const double most = (double)(a->rows > a->cols ? a->rows : a->cols);
    *rank = svd_rank(&s, 1e-12 * most);
    for (size_t i = 0; i < a->rows; i++)
        for (size_t r = 0; r < *rank; r++) lev[i] += pare_row(&s.u, i)[r] * pare_row(&s.u, i)[r];
    return lev;
}

size_t *leverage_sample(pare_work *w, const double *scores, size_t f, size_t k, pare_rng *rng,
                        size_t *hit, double *weight)
{
    size_t *const count = pare_work_alloc(w, f, sizeof *count);
    size_t *const rows = pare_work_alloc(w, f, sizeof *rows);
    double sum = 0;
    *hit = 0;
    if (w->st) return NULL;
    for (size_t i = 0; i < f; i++) sum += scores[i];
    for (size_t draw = 0; draw < k; draw++) {
        double at = pare_rng_uniform(rng) * sum;
        size_t i = 0;
        while (i + 1 < f && at >= scores[i]) at -= scores[i++];
        while (i > 0 && !(scores[i] > 0)) i--; /* rounding may run past the last positive one */
        count[i]++;
    }
    for (size_t i = 0; i < f; i++) {
        if (count[i] == 0) continue;
        if (weight) weight[*hit] = sqrt((double)count[i] * sum / ((double)k * scores[i]));
        rows[(*hit)++] = i;
    }
    return rows;
}

double leverage_draws(size_t d)
{
    return ceil(6.52 * (double)d * pare_log_up((double)d / 0.005));
}

double leverage_constant(size_t d, double k)
{
    return sqrt(1 + 800 * (double)d / k);
}
