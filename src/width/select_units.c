/* select_units.c - k hidden units from which all others are decoded (Proposition 4.3 of Shirzad
 * 2024, with a deterministic choice).
 *
 * Let the activations p of every node lie near span(Q), Q F x d with orthonormal columns, and let S
 * be k rows. Choosing coordinates commutes with the activation, and for every node
 *
 *     |Q Q_S^+ p_S - p| <= sqrt(1 + |Q_S^+|_2^2) |r|,     r = (I - Q Q^T) p,
 *
 * because the two parts of the error are orthogonal. Greedy removal of the row that raises
 * |Q_S^+|_F^2 = tr M^-1 least, M = Q_S^T Q_S, guarantees
 *
 *     |Q_S^+|_F^2 <= d (F - d + 1) / (k - d + 1):
 *
 * with weights 1 - leverage, one removal from s rows costs on average the factor
 * (s - d + 1) / (s - d), and these telescope. The factor sqrt(F) cannot be avoided (example C.3.1
 * of Shirzad 2024). Cost O(F^2 d^2).
 *
 * The decoder that is written is the least-squares one on the data, which is better. */
#include "linalg/matrix.h"
#include "cuts.h"
#include <math.h>
#include <string.h>

double pinv_norm_limit(size_t f, size_t d, size_t k)
{
    return k < d ? INFINITY : sqrt((double)d * (double)(f - d + 1) / (double)(k - d + 1));
}

double pinv_norm(pare_work *w, const pare_mat *q, const size_t *which, size_t k)
{
    const pare_mat rows = mat_take_rows(w, q, which, k);
    const svd_factors s = svd_of(w, &rows);
    if (w->st) return NAN;
    return s.n < q->cols || !(s.s[s.n - 1] > 0) ? INFINITY : 1 / s.s[s.n - 1];
}

/* ---- greedy removal ------------------------------------------------------------------------- */

size_t *eliminate_rows(pare_work *w, const pare_mat *q, size_t k)
{
    const size_t d = q->cols;
    size_t n = q->rows, *const left = pare_work_alloc(w, n, sizeof *left);
    double *const z = vec_zeros(w, d), *const trial = vec_zeros(w, d);
    /* Q^T Q is I up to rounding e: its inverse is 2 I - Q^T Q up to e^2. */
    pare_mat inverse = mat_identity(w, d);
    if (w->st) return NULL;
    pare_gemm(&inverse, -1, q, true, q, false, 2);
    for (size_t i = 0; i < n; i++) left[i] = i;
    while (n > k) {
        /* The row whose removal costs least, with z = M^-1 q and rest = 1 - its leverage q.z. */
        size_t cheapest = 0;
        double least = INFINITY, rest = 1;
        for (size_t i = 0; i < n; i++) {
            const double *const row = pare_row(q, left[i]);
            double leverage = 0, square = 0;
            for (size_t a = 0; a < d; a++) {
                trial[a] = 0;
                for (size_t b = 0; b < d; b++) trial[a] += pare_row(&inverse, a)[b] * row[b];
                leverage += trial[a] * row[a];
                square += trial[a] * trial[a];
            }
            const double cost = 1 - leverage > 1e-12 ? square / (1 - leverage) : INFINITY;
            if (i > 0 && !(cost < least)) continue;
            cheapest = i;
            least = cost;
            rest = 1 - leverage;
            memcpy(z, trial, d * sizeof *z);
        }
        for (size_t i = 0; i < d; i++)
            for (size_t j = 0; j < d; j++) pare_row_mut(&inverse, i)[j] += z[i] * z[j] / rest;
        n--;
        for (size_t i = cheapest; i < n; i++) left[i] = left[i + 1];
    }
    return left;
}

/* ---- exactly, as many as the rank ------------------------------------------------------------ */

/* Pivoted Gram-Schmidt, twice for each step, on the units as rows of t; returns how many pivots are
 * above `cut` times the first. */
static size_t choose_pivots(pare_mat *t, bool *selected, size_t *order, double cut)
{
    double first = 0;
    for (size_t k = 0; k < t->rows; k++) {
        size_t best = t->rows;
        double largest = 0;
        for (size_t i = 0; i < t->rows; i++) {
            const double size = selected[i] ? 0 : vec_dot(pare_row(t, i), pare_row(t, i), t->cols);
            if (size > largest) {
                largest = size;
                best = i;
            }
        }
        if (k == 0) first = sqrt(largest);
        if (best == t->rows || !(sqrt(largest) > cut * first)) return k;
        double *const q = pare_row_mut(t, best);
        for (size_t j = 0; j < t->cols; j++) q[j] /= sqrt(largest);
        selected[best] = true;
        order[k] = best;
        for (size_t i = 0; i < t->rows; i++)
            for (int twice = 0; !selected[i] && twice < 2; twice++) {
                const double c = vec_dot(pare_row(t, i), q, t->cols);
                for (size_t j = 0; j < t->cols; j++) pare_row_mut(t, i)[j] -= c * q[j];
            }
    }
    return t->rows;
}

/* ---- decoders ------------------------------------------------------------------------------- */

/* p ~ decode p_S + offset by least squares over the nodes. */
static void fit_decoder(pare_work *w, unit_selection *s, const pare_mat *p)
{
    const double *const mean = mat_col_means(w, p);
    const pare_mat all = mat_centered(w, p, mean), some = mat_take_cols(w, &all, s->which, s->n);
    pare_mat g = mat_zeros(w, s->n, p->cols);
    if (!w->st && s->n > 0) w->st = pare_lstsq(&g, NULL, &some, &all, 1e-12, w->arena, w->err);
    s->decode = mat_transpose(w, &g);
    s->offset = vec_zeros(w, p->cols);
    for (size_t f = 0; !w->st && f < p->cols; f++) {
        s->offset[f] = mean[f];
        for (size_t i = 0; i < s->n; i++)
            s->offset[f] -= pare_row(&s->decode, f)[i] * mean[s->which[i]];
    }
}

/* ---- the choices ---------------------------------------------------------------------------- */

unit_selection select_all_units(pare_work *w, size_t f)
{
    unit_selection s = {.n = f, .pinv_norm = 1, .limit = NAN, .units = NAN};
    s.which = pare_work_alloc(w, f, sizeof *s.which);
    for (size_t i = 0; !w->st && i < f; i++) s.which[i] = i;
    s.decode = mat_identity(w, f);
    s.offset = vec_zeros(w, f);
    return s;
}

unit_selection select_units_exact(pare_work *w, const pare_mat *p, double cut)
{
    const size_t f = p->cols;
    unit_selection s = {.pinv_norm = NAN, .limit = NAN, .units = NAN};
    const double *const mean = mat_col_means(w, p);
    const pare_mat centered = mat_centered(w, p, mean);
    pare_mat t = mat_transpose(w, &centered);
    bool *const selected = pare_work_alloc(w, f, sizeof *selected);
    size_t *const order = pare_work_alloc(w, f, sizeof *order);
    s.which = pare_work_alloc(w, f, sizeof *s.which);
    if (w->st) return s;
    const size_t found = choose_pivots(&t, selected, order, cut);
    /* A part that never moves is a constant; one unit stays, as a map needs a row. */
    if (found == 0) selected[0] = f > 0;
    for (size_t i = 0; i < f; i++)
        if (selected[i]) s.which[s.n++] = i;
    fit_decoder(w, &s, p);
    return s;
}

/* The best of some draws by leverage scores. */
static void sample_units(pare_work *w, unit_selection *s, const basis *b, size_t k, size_t trials,
                         pare_rng *rng)
{
    const size_t f = b->u.rows, d = basis_dim(b);
    size_t rank, hit;
    const double *const scores = leverage_scores(w, &b->u, &rank);
    s->which = pare_work_alloc(w, k, sizeof *s->which);
    s->pinv_norm = INFINITY;
    for (size_t t = 0; !w->st && t < trials; t++) {
        const pare_mark mark = pare_arena_mark(w->arena);
        const size_t *const draw = leverage_sample(w, scores, f, k, rng, &hit, NULL);
        const double norm = pinv_norm(w, &b->u, draw, hit);
        if (w->st) return;
        if (s->n == 0 || norm < s->pinv_norm) {
            s->n = hit;
            s->pinv_norm = norm;
            memcpy(s->which, draw, hit * sizeof *draw);
        }
        pare_arena_reset(w->arena, mark);
    }
    s->units = leverage_draws(d);
    /* With that many draws sigma_min(Q_S)^2 >= 1/2, weights included. */
    s->limit = (double)k >= s->units ? leverage_constant(d, (double)k) : INFINITY;
}

unit_selection select_units(pare_work *w, const pare_mat *p, size_t k, const pare_width_opts *o,
                            uint64_t stream)
{
    unit_selection s = {0};
    const basis b = basis_pca(w, p, k, true);
    pare_rng rng = pare_rng_at(o->seed, stream);
    if (w->st) return s;
    if (o->rows == PARE_ROWS_SAMPLE)
        sample_units(w, &s, &b, k, o->trials, &rng);
    else {
        s.n = k;
        s.which = eliminate_rows(w, &b.u, k);
        s.pinv_norm = w->st ? NAN : pinv_norm(w, &b.u, s.which, k);
        s.limit = pinv_norm_limit(b.u.rows, basis_dim(&b), k);
        s.units = NAN;
    }
    fit_decoder(w, &s, p);
    return s;
}
