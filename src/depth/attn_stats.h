/* attn_stats.h - statistics of attention heads (pare/depth.h): the parts of attn_stats.c. */
#ifndef PARE_SRC_DEPTH_ATTN_STATS_H
#define PARE_SRC_DEPTH_ATTN_STATS_H
#include <pare/depth.h>

/* The queries, keys and values of one head on one sequence. */
typedef struct head_inputs {
    const pare_model *m;
    const pare_attn *a;
    const pare_head *h;
    const pare_graph *graph;   /* completed; NULL unless the pattern is a graph */
    pare_mat q, k, v;          /* n x dk, n x dk, n x dv: rotated where positions are rotary */
    double *constq, *meanq;    /* n: scores of one query for all rows; NULL: none */
    const double *qmid, *kmid; /* query and key of the midrange row; NULL: rotary */
    bool pairs;                /* compare all pairs of rows: rho and tau */
} head_inputs;

/* Sums and maxima over the rows of one sequence that see a key. */
typedef struct head_stats {
    size_t rows, wide; /* wide: rows with two keys or more */
    double range, tv_uniform, tv_constq, tv_meanq, entropy;
    double range_max, constq_max, meanq_max;
    double theta, rho, tau; /* nan: not computed */
    double res_out, diam, poly_b;
} head_stats;

/* One head on one sequence (attn_stats_head.c). */
PARE_MUST_USE pare_status head_stats_of(head_stats *out, const head_inputs *v, pare_err *err);
/* Applies rotary positions to rows of one head in place: row i has position i
 * (attn_stats_rows.c). */
void rotate_rows(pare_mat *x, const pare_attn *a, const pare_head *h, bool interleaved);

/* ---- sums over sequences (attn_stats_bounds.c) ----------------------------------------------- */

typedef struct layer_stats { /* sums; divided by the number of sequences at the end */
    double *mean;            /* din: of the normed rows that were fitted to */
    size_t fitted;           /* rows */
    size_t sequences;
    double res_x, res_x1, res_f, share, varied;
} layer_stats;

typedef struct head_totals {
    head_stats all;
    double theta, pairs; /* sum over sequences; n^3 spent */
    size_t thetas;
} head_totals;

void head_totals_add(head_totals *to, const head_stats *s);
/* Figures and bounds of all layers and heads. */
void attn_stats_finish(pare_attention_stats *out, const pare_model *m, const layer_stats *layers,
                       const head_totals *heads);

/* eta, the norms and the constants of `out`'s lists (attn_stats_weights.c). */
PARE_MUST_USE pare_status attn_stats_weights(pare_attention_stats *out, const pare_model *m,
                                             const pare_exec *exec, pare_err *err);

/* ---- rows (attn_stats_rows.c) ---------------------------------------------------------------- */

/* Largest range of a column over the rows that count (NULL: all); 0 of no row. */
double widest_column_range(const pare_mat *m, const bool *counts);
/* sqrt(largest column sum times largest row sum) of |m - 1 y^T|, at the best of the mean, the
 * median and the midrange y: |Res(m)|_{1,inf} from above. */
PARE_MUST_USE pare_status residual_norm_1inf(double *out, const pare_mat *m, pare_err *err);
/* |m - mean row|_F^2 / |m|_F^2; 0 for zeros. */
double varying_share(const pare_mat *m);
#endif
