/* eliminate.h - remove inputs of a linear map and let the others compensate.
 *
 * A sublayer writes y = [f, 1] W^T: f are hidden units or pooled values, W the map behind them with
 * its bias as the last column. Everything is in moments over the rows of the calibration set, with
 * r = target - y:
 *
 *     H = E [f,1]^T [f,1] + ridge,     X = E [f,1]^T r.
 *
 * The minimum of  |[f,1] W^T - target|^2 + ridge |W - W_0|^2  is at
 *
 *     W = W_0 + (H^-1 X)^T,
 *
 * and at any other V the loss is larger by tr G (V - W) H (V - W)^T, in the metric G of the
 * outputs. So the ridge holds the map in directions that the data do not show, and no fitted map
 * is worse on the calibration set than W_0 with the same inputs. */
#ifndef PARE_SRC_WIDTH_ELIMINATE_H
#define PARE_SRC_WIDTH_ELIMINATE_H
#include "matrices.h"

typedef struct ridge_fit {
    size_t inputs; /* without the constant */
    pare_mat h;    /* (inputs + 1)^2 */
    pare_mat map;  /* outputs x (inputs + 1) */
} ridge_fit;

/* Moments of rows, added up a few rows at a time. */
typedef struct moments {
    size_t rows;
    pare_mat square; /* (inputs + 1)^2: sum of [f,1]^T [f,1] */
    pare_mat cross;  /* (inputs + 1) x outputs: sum of [f,1]^T r */
} moments;
moments moments_new(pare_work *w, size_t inputs, size_t outputs);
/* r may be NULL: 0. */
void moments_add(pare_work *w, moments *m, const pare_mat *f, const pare_mat *r);

/* The best map with all inputs; map0: outputs x inputs, bias0: outputs, or NULL: without a bias, which
 * stays 0 in all that is made of the fit. The moments are overwritten. */
ridge_fit ridge_fit_of(pare_work *w, const moments *m, const pare_mat *map0, const double *bias0);
/* The fit in inputs f' = t f, t invertible and given with its inverse. */
ridge_fit ridge_fit_rebased(pare_work *w, const ridge_fit *r, const pare_mat *t,
                            const pare_mat *inverse);

/* Inputs that are removed together: columns [from, from + count) of `column`. Every group keeps one
 * bundle. */
typedef struct bundle {
    size_t from, count, group;
} bundle;
typedef struct bundles {
    size_t n, ngroups;
    const bundle *all; /* n */
    const size_t *column;
} bundles;
bundles bundles_single(pare_work *w, size_t inputs); /* every input by itself, one group */

/* Backward elimination: the bundle that costs least for each of its columns, compensated by the
 * inputs that are left, is removed first, until `keep` are left. order, cost: n - keep; the cost is
 * in E |G^1/2 (y - target)|^2, and what one group alone loses is never less than its own optimum
 * (lm_values.c). root: G^1/2. */
void elimination_order(pare_work *w, size_t *order, double *cost, const ridge_fit *r,
                       const pare_mat *root, const bundles *b, size_t keep);
/* The best map with the inputs `kept` (ascending) alone: outputs x (n + 1). */
pare_mat ridge_fit_restricted(pare_work *w, const ridge_fit *r, const size_t *kept, size_t n);
#endif
