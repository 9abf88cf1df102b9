/* attn_stats.h - the parts of an X-ray (pare/xray.h): one head on one sequence, and the stream around it.
 */
#ifndef PARE_SRC_DEPTH_ATTN_STATS_H
#define PARE_SRC_DEPTH_ATTN_STATS_H
#include <pare/xray.h>

/* What one head is looked at with: a sequence, normed and projected. */
typedef struct xray_view {
    const pare_model *m;
    const pare_attn *a;
    const pare_head *h;
    const pare_graph *graph;   /* completed; NULL unless the pattern is a graph */
    pare_mat q, k, v;          /* n x dk, n x dk, n x dv: turned where positions are rotary */
    double *constq, *meanq;    /* n: scores of one query for all rows; NULL: none */
    const double *qmid, *kmid; /* query and key of the midrange row; NULL: rotary */
    bool pairs;                /* rho and tau */
} xray_view;

/* Sums over the rows of one sequence that see a key; largest ones. */
typedef struct xray_sums {
    size_t rows, wide; /* wide: of them, with two keys or more */
    double range, tv_uniform, tv_constq, tv_meanq, entropy;
    double range_max, constq_max, meanq_max;
    double theta, rho, tau; /* nan: not looked at */
    double res_out, diam, poly_b;
} xray_sums;

/* One head on one sequence (attn_stats_head.c). */
PARE_MUST_USE pare_status xray_head(xray_sums *out, const xray_view *v, pare_err *err);
/* Turns rows of one head in place: row i has position i (attn_stats_rows.c). */
void xray_turn(pare_mat *x, const pare_attn *a, const pare_head *h, bool interleaved);

/* ---- sums over sequences (attn_stats_bounds.c) ---- */

typedef struct xray_layer_sums { /* means of sequences are taken at the end */
    double *mean;                /* din: of the normed rows that were fitted to */
    size_t fitted;               /* rows */
    size_t sequences;
    double res_x, res_x1, res_f, share, varied;
} xray_layer_sums;

typedef struct xray_head_sums {
    xray_sums all;
    double theta, pairs; /* sum of the sequences'; n^3 spent */
    size_t thetas;
} xray_head_sums;

void xray_add(xray_head_sums *to, const xray_sums *s);
/* Figures and bounds of all layers and heads. */
void xray_end(pare_xray *out, const pare_model *m, const xray_layer_sums *layers,
              const xray_head_sums *heads);

/* eta, the norms and the constants of `out`'s lists (attn_stats_weights.c). */
PARE_MUST_USE pare_status xray_weights(pare_xray *out, const pare_model *m, const pare_exec *exec,
                                       pare_err *err);

/* ---- rows (attn_stats_rows.c) ---- */

/* Largest range of a column over the rows that count (NULL: all); 0 of no row. */
double xray_widest(const pare_mat *m, const bool *counts);
double xray_largest(const pare_mat *m); /* |entry| */
/* Largest column sum times largest row sum of |m - 1 y^T|, its root, at the best of the mean, the
 * median and the midrange: |Res(m)|_{1,inf} from above. */
PARE_MUST_USE pare_status xray_res_1inf(double *out, const pare_mat *m, pare_err *err);
/* |m - mean row|_F^2 / |m|_F^2; 0 of nothing. */
double xray_varied(const pare_mat *m);
double xray_frobenius(const pare_mat *m);
#endif
