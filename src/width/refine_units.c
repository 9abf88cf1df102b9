/* refine_units.c - move the selected hidden units so that the layer, with the best linear map
 * behind it, explains most of the next point of the stream. Least squares in the gradient metric,
 * as in the selection before (omp.c) and the map after (rrr.c):
 *
 *     minimize over W  |T - Phi X^|_F^2,    Phi = [z, 1, act(W [z, 1])],    X^ the best X
 *
 * Variable projection: X is solved for; W moves by Gauss-Newton with derivatives projected
 * perpendicular to Phi (Kaufman), damped (Levenberg), and a step is accepted only when the squares
 * fall. With D the derivatives of the units, one column for each weight, V the rows of X that read
 * the units, E what is left of T, and (j, a) weight a of unit j:
 *
 *     H = (D^T D - D^T Phi (Phi^T Phi)^-1 Phi^T D) o (V V^T)_jj'     r_ja = sum_i D_ija (E V^T)_ij
 *
 * With more weights than nodes H can be the rounding of the two products whose difference it is: so
 * its ridge is a share of D^T D o V V^T. A step that is not finite, or far larger than the weights,
 * is not tried.
 *
 * Nodes come a block at a time, so that a step costs the product D^T D and no memory. No labels are
 * used, and nothing beyond this layer. */
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include "cuts.h"
#include <math.h>
#include <string.h>

#define STEPS  12
#define TRIES  4    /* dampings of a step */
#define ENOUGH 2e-3 /* of the squares: a step that wins less is the last one */
#define RIDGE  1e-9 /* of the largest eigenvalue */
#define STRIDE 1e6  /* of the largest weight (or 1): a step beyond it is none */
enum {
    WEIGHTS = 320, /* at most: beyond, there is much to do and little to win */
    NODES = 1024   /* of a block */
};

typedef struct layer_fit {
    pare_work *w;
    pare_act act;
    const pare_mat *z;
    pare_mat t;              /* the target, in the metric */
    pare_mat wb;             /* the weights: k x (d + 1), the bias last */
    pare_mat phi, pre, d, e; /* of a block: features, inputs of the units, derivatives, residual */
    pare_mat inverse, x;     /* (Phi^T Phi)^-1, the best map */
    double all, left;        /* squares of t; those that x leaves */
    double size;             /* the largest entry of (D^T D) o (V V^T): what H is a part of */
    pare_mat normal;         /* H ... */
    double *right;           /* ... and r */
} layer_fit;

/* ---- a block of nodes ------------------------------------------------------------------------ */

static pare_mat first_rows(const pare_mat *m, size_t n)
{
    return pare_mat_part(m, 0, 0, n, m->cols);
}

/* phi and pre of nodes `from` on; how many there are. */
static size_t load_block(layer_fit *f, const pare_mat *wb, size_t from)
{
    const size_t left = f->z->rows - from, n = left < NODES ? left : NODES;
    const size_t d = f->z->cols, k = wb->rows;
    for (size_t i = 0; i < n; i++) {
        double *const row = pare_row_mut(&f->phi, i);
        memcpy(row, pare_row(f->z, from + i), d * sizeof *row);
        row[d] = 1;
    }
    const pare_mat z1 = pare_mat_part(&f->phi, 0, 0, n, d + 1);
    pare_mat pre = first_rows(&f->pre, n);
    pare_gemm(&pre, 1, &z1, false, wb, true, 0);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++)
            pare_row_mut(&f->phi, i)[d + 1 + j] = pare_act_f64(f->act, pare_row(&pre, i)[j]);
    return n;
}

/* Column j (d + 1) + a of d: act'(pre_j) times entry a of [z, 1]. */
static void set_derivatives(layer_fit *f, size_t n)
{
    const size_t d1 = f->z->cols + 1, k = f->wb.rows;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < k; j++) {
            const double x = pare_row(&f->pre, i)[j], e = 1e-5 * (1 + fabs(x));
            const double slope =
                f->act == PARE_ACT_RELU
                    ? x > 0
                    : (pare_act_f64(f->act, x + e) - pare_act_f64(f->act, x - e)) / (2 * e);
            double *const to = pare_row_mut(&f->d, i) + j * d1;
            for (size_t a = 0; a < d1; a++) to[a] = slope * pare_row(&f->phi, i)[a];
        }
}

/* ---- the linear part ------------------------------------------------------------------------- */

static pare_mat inverse_of(pare_work *w, const pare_mat *a)
{
    const sym_roots r = sym_roots_of(w, a, RIDGE);
    return mat_mul(w, &r.inverse, false, &r.inverse, false);
}

/* The best map for these weights, and what it leaves. */
static double solve_map(layer_fit *f, const pare_mat *wb)
{
    pare_work *const w = f->w;
    pare_mat moment = mat_zeros(w, f->phi.cols, f->phi.cols);
    pare_mat cross = mat_zeros(w, f->phi.cols, f->t.cols);
    for (size_t from = 0; !w->st && from < f->z->rows; from += NODES) {
        const size_t n = load_block(f, wb, from);
        const pare_mat phi = first_rows(&f->phi, n);
        const pare_mat t = pare_mat_part(&f->t, from, 0, n, f->t.cols);
        pare_gemm(&moment, 1, &phi, true, &phi, false, 1);
        pare_gemm(&cross, 1, &phi, true, &t, false, 1);
    }
    f->inverse = inverse_of(w, &moment);
    f->x = mat_mul(w, &f->inverse, false, &cross, false);
    double explained = 0;
    for (size_t i = 0; !w->st && i < cross.rows; i++)
        for (size_t j = 0; j < cross.cols; j++)
            explained += pare_row(&cross, i)[j] * pare_row(&f->x, i)[j];
    return f->all - explained;
}

/* ---- a step ---------------------------------------------------------------------------------- */

/* D^T D and Phi^T D, and r, block by block; x is the best map. */
static void add_products(layer_fit *f, pare_mat *cross, const pare_mat *v)
{
    pare_work *const w = f->w;
    const size_t d1 = f->z->cols + 1;
    pare_mat ev = mat_zeros(w, NODES, v->rows);
    for (size_t from = 0; !w->st && from < f->z->rows; from += NODES) {
        const size_t n = load_block(f, &f->wb, from);
        set_derivatives(f, n);
        const pare_mat phi = first_rows(&f->phi, n), d = first_rows(&f->d, n);
        pare_mat e = first_rows(&f->e, n), seen = first_rows(&ev, n);
        for (size_t i = 0; i < n; i++)
            memcpy(pare_row_mut(&e, i), pare_row(&f->t, from + i), e.cols * sizeof *e.v);
        pare_gemm(&e, -1, &phi, false, &f->x, false, 1);
        pare_gemm(&seen, 1, &e, false, v, true, 0);
        pare_gemm(&f->normal, 1, &d, true, &d, false, 1);
        pare_gemm(cross, 1, &phi, true, &d, false, 1);
        for (size_t i = 0; i < n; i++)
            for (size_t p = 0; p < d.cols; p++)
                f->right[p] += pare_row(&d, i)[p] * pare_row(&seen, i)[p / d1];
    }
}

/* H and r where the weights are. */
static void normal_equations(layer_fit *f)
{
    pare_work *const w = f->w;
    const size_t d1 = f->z->cols + 1, k = f->wb.rows, n = k * d1;
    pare_mat cross = mat_zeros(w, f->phi.cols, n);
    f->normal = mat_zeros(w, n, n);
    f->right = vec_zeros(w, n);
    if (w->st) return;
    const pare_mat v = pare_mat_part(&f->x, d1, 0, k, f->x.cols);
    const pare_mat both = mat_mul(w, &v, false, &v, true);
    add_products(f, &cross, &v);
    const pare_mat along = mat_mul3(w, &cross, true, &f->inverse, &cross, false);
    f->size = 0;
    for (size_t p = 0; !w->st && p < n; p++) {
        f->size = fmax(f->size, pare_row(&both, p / d1)[p / d1] * pare_row(&f->normal, p)[p]);
        for (size_t q = 0; q < n; q++)
            pare_row_mut(&f->normal, p)[q] = pare_row(&both, p / d1)[q / d1] *
                                             (pare_row(&f->normal, p)[q] - pare_row(&along, p)[q]);
    }
}

/* The weights after a step; false: there is no such step. */
static bool try_step(layer_fit *f, pare_mat *to, double damping)
{
    pare_work *const w = f->w;
    pare_mat a = mat_copy(w, &f->normal);
    if (!(f->size > 1e-200 && f->size < 1e200)) return false; /* the outputs read no unit */
    for (size_t p = 0; !w->st && p < a.rows; p++) {
        double *const at = &pare_row_mut(&a, p)[p];
        *at = *at * (1 + damping) + RIDGE * f->size;
    }
    const pare_mat inverse = inverse_of(w, &a);
    const double *const step = mat_vec(w, &inverse, false, f->right, NULL);
    const double most = STRIDE * fmax(pare_mat_max_abs(&f->wb), 1);
    for (size_t p = 0; !w->st && p < a.rows; p++) {
        to->v[p] = f->wb.v[p] + step[p];
        if (!(fabs(to->v[p]) <= most)) return false;
    }
    return !w->st;
}

/* Whether another step is worth it. `next`: scratch for weights. */
static bool improve_weights(layer_fit *f, pare_mat *next, double *damping)
{
    pare_work *const w = f->w;
    f->left = solve_map(f, &f->wb);
    normal_equations(f);
    for (size_t t = 0; !w->st && t < TRIES; t++, *damping *= 8) {
        if (!try_step(f, next, *damping)) continue;
        const double left = solve_map(f, next);
        if (w->st || !(left < f->left)) continue;
        const double won = f->left - left;
        memcpy(f->wb.v, next->v, f->wb.rows * f->wb.cols * sizeof *next->v);
        *damping = fmax(*damping / 4, 1e-4);
        f->left = left;
        return won > ENOUGH * left;
    }
    return false;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static layer_fit layer_fit_of(pare_work *w, const net_layer *l, const pare_mat *z,
                              const pare_mat *y, const pare_mat *g)
{
    const size_t d = z->cols, k = l->w1.rows;
    const double *const mean = mat_col_means(w, y);
    layer_fit f = {.w = w, .act = l->act, .z = z, .t = mat_centered(w, y, mean)};
    if (g) {
        const pare_mat root = metric_root(w, g, NULL);
        f.t = mat_mul(w, &f.t, false, &root, false);
    }
    f.wb = mat_append_col(w, &l->w1, l->b1);
    f.phi = mat_zeros(w, NODES, d + 1 + k);
    f.pre = mat_zeros(w, NODES, k);
    f.d = mat_zeros(w, NODES, k * (d + 1));
    f.e = mat_zeros(w, NODES, y->cols);
    f.all = w->st ? 0 : pare_mat_fro_est(&f.t) * pare_mat_fro_est(&f.t);
    return f;
}

units_fit refine_units(pare_work *w, net_layer *l, const pare_mat *z, const pare_mat *y,
                       const pare_mat *g)
{
    const size_t d = z->cols, k = l->w1.rows;
    units_fit squares = {NAN, NAN, NAN};
    if (w->st || k * (d + 1) > WEIGHTS) return squares;
    pare_mat w1 = mat_zeros(w, k, d);
    double *const b1 = vec_zeros(w, k), damping = 0.01;
    const pare_mark mark = pare_arena_mark(w->arena);
    layer_fit f = layer_fit_of(w, l, z, y, g);
    pare_mat next = mat_zeros(w, k, d + 1);
    squares = (units_fit){f.all, w->st ? NAN : solve_map(&f, &f.wb), NAN};
    bool more = true;
    for (size_t s = 0; !w->st && more && s < STEPS; s++) {
        const pare_mark step = pare_arena_mark(w->arena);
        more = improve_weights(&f, &next, &damping);
        pare_arena_reset(w->arena, step);
    }
    for (size_t j = 0; !w->st && j < k; j++) {
        memcpy(pare_row_mut(&w1, j), pare_row(&f.wb, j), d * sizeof *w1.v);
        b1[j] = pare_row(&f.wb, j)[d];
    }
    squares.after = f.left;
    pare_arena_reset(w->arena, mark);
    l->w1 = w1;
    l->b1 = b1;
    return squares;
}
