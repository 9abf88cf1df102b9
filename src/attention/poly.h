/* poly.h - what the files of polynomial attention share: runs of monomials, the state (sums over
 * keys), workspaces, and the error bound of a row. */
#ifndef PARE_ATTENTION_POLY_H
#define PARE_ATTENTION_POLY_H
#include "panel.h"
#include "poly_kernels.h"
#include "poly_remez.h"
#include "polynomial.h"
#include <stdatomic.h>

#define POLY_MAX_FEATURES ((size_t)1 << 24)
enum {
    POLY_BLOCK = 128,       /* monomials of a block: 128 x 64 rows stay in the first-level cache */
    POLY_LONG_RUN = 24,     /* runs of at least so many monomials are not stored for keys */
    POLY_KEYS = 64,         /* keys of a block; rows of a chunk under the causal pattern */
    POLY_KEYS_AT_ONCE = 32, /* keys that are summed at a time */
    POLY_FLUSH = 4,         /* blocks of keys that are added in f32 before f64 takes over */
    POLY_BINS = 64,         /* of row norms, in the proof */
    POLY_F32_DEGREE = 12
};
#define POLY_REMEZ_BOUND 8.0 /* largest B for which one polynomial may serve all rows in f32 */
/* Largest |q'| |k'| at all: powers up to POLY_F32_DEGREE of either side, balanced, then stay within
 * 2^43. Longer rows are left to the exact kernel one by one. */
#define POLY_F32_LOGITS 64.0

static inline double poly_power(double x, size_t n)
{
    double y = 1;
    for (size_t i = 0; i < n; i++) y *= x;
    return y;
}

/* Monomials [first, first + count), all of one degree. */
typedef struct poly_block {
    size_t first, count, run, nruns;
} poly_block;

/* Monomials in the order of the kernels: in blocks, blocks in runs, no run across blocks. */
typedef struct poly_table {
    const pare_monomials *m;
    poly_run *runs;
    poly_block *blocks;
    size_t nruns, nblocks;
    size_t low; /* monomials below the highest degree */
    size_t ld;  /* count, padded: of a row of sums */
    /* For keys: the first `stored` monomials by whole runs; the others, which are long runs of the
     * highest degree, are multiplied while they are summed. */
    poly_run *whole;
    size_t stored, nstored, nwhole; /* monomials; runs of these; all runs */
    size_t copied;        /* monomials 1 .. copied are the first variables, and in no run */
    size_t ldphi;         /* of a row of monomials: stored, and what kernels may touch behind it */
    poly_factors factors; /* of the first `stored`; NULL: too many variables, or degree too high */
} poly_table;
/* m is ascending by degree. */
PARE_MUST_USE pare_status poly_table_new(poly_table *out, pare_arena *a, const pare_monomials *m,
                                         pare_err *err);

/* ---- centering (poly_center.c) --------------------------------------------------------------- */

/* Smallest and largest number of each column; PARE_ERR_NONFINITE names `what`. */
PARE_MUST_USE pare_status poly_column_ranges(float *low, float *high, const pare_mat32 *x,
                                             const char *what, const pare_exec *exec,
                                             pare_err *err);
/* Row by row without gaps: x = (from - center) by, |x_i|_2 from above, and
 * a_i = with . (from_i - center) in f64, or with32 . x_i in f32. Results may be NULL. */
typedef struct poly_side {
    const pare_mat32 *from;
    const float *center; /* d */
    float by;
    const double *with;  /* d, or NULL */
    const float *with32; /* d, or NULL */
    float *x, *norm;
    double *a;
} poly_side;
void poly_center(const poly_side *s, const pare_exec *exec);
/* x (rows x d) = rows [first, first + rows), centered. */
void poly_centered_rows(float *x, const poly_side *s, size_t first, size_t rows);

/* ---- the error bound of a row (poly_proof.c) ------------------------------------------------- */

/* All that the bound of a row depends on besides its own numbers, by bins of |q'|. */
typedef struct poly_proof {
    double per_bin; /* bins per unit of |q'| */
    double most;    /* largest |q'| that the bins cover */
    double tv;      /* of every row; < 0: by moments */
    size_t power;   /* of |q'| before the moment: g - 1; 1 for degree 0 */
    double spread;  /* largest distance from the center, in units of half the range */
    double largest; /* sum of weights whose products with values fit f32 */
    double polynomial[POLY_BINS + 1]; /* kappa */
    double size[POLY_BINS + 1];       /* sum |c_m| B^m */
    double noise[POLY_BINS + 1];      /* roundings of numerator and denominator, per unit weight */
    double moment[POLY_BINS + 1];     /* roundings of the moment */
    double exact[POLY_BINS + 1];      /* of keys with exact weights e^x: relative */
} poly_proof;

typedef struct poly_row {
    double norm;   /* |q'| from above */
    double sum;    /* the denominator as computed */
    double moment; /* as computed: q'^T (sum_j w_j |k'_j|^(g-1) k'_j k'_j^T) q', for degree 0
                      sum_j w_j |k'_j|; or, where `full`, sum_j w_j x_j^(g+1) itself */
    double weight; /* sum of w_j in the state */
    bool full, with_exact; /* with_exact: some keys have exact weights e^x */
} poly_row;

typedef struct poly_sizes {
    double q, key, all_keys; /* largest norms: of queries, of keys in the state, of all keys */
    double depth;            /* largest |log w| in f32 */
    double spread;
    double value_radius; /* largest distance of a value from its center, at least 1 */
    size_t flush;        /* blocks of keys added in f32 */
} poly_sizes;
void poly_proof_new(poly_proof *out, const pare_poly_plan *plan, const poly_sizes *s);
/* For moments of degree g + 1 from that many monomials, `full` rows. */
void poly_proof_full(poly_proof *p, const pare_poly_plan *plan, const poly_sizes *s, size_t count);
/* |y - exact| <= this times the range of the values (and the rounding of y); inf: nothing is
 * known. */
double poly_row_bound(const poly_proof *p, const poly_row *r);
/* sum_{k > g} B^(k-g-1) / k!, from above; so |e^x - T_g(x)| <= kappa |x|^(g+1), |x| <= B. */
double poly_kappa(size_t degree, double B);

/* ---- one call (poly_prepare.c) --------------------------------------------------------------- */

/* Columns of the state: the centered values, 1, and |k'|^(g-1) for the moment. */
typedef struct poly_job {
    const pare_poly_plan *plan;
    const poly_kernel *kernel;
    poly_table table;
    poly_proof proof;
    const pare_mat32 *q, *k, *v;
    pare_mat32 y;
    size_t n, rows; /* keys; queries */
    size_t d, dv, cols, cols4, chunks;
    bool moment;             /* the last column is there */
    poly_side queries, keys; /* how they are centered and balanced */
    float q_size, k_size;    /* powers of two: the factors of the plan's norms by balancing */
    float *w;                /* weights of the keys, e^(a - shift of their chunk) */
    double *shift;           /* of each chunk: the largest a so far (causal), or of all */
    float *center;           /* of the values, dv */
    double least_radius;     /* of 1 and the radii of the columns of values that are not 0 */
    double *factor, *moment_factor; /* table.ld: from sums to coefficients of query monomials */
    uint8_t *heavy;                 /* n: not in the state; NULL: none */
    float *heavy_k, *heavy_u;       /* of the heavy keys, nheavy4 x d and x cols4 */
    double *bound;                  /* n */
    float *sum;                     /* n: the denominators, in units of e^shift */
    float *lse;                     /* n: saved for the caller; NULL: not wanted */
    double *weight;           /* chunks: of the keys in the state that a chunk reads; full: [0] */
    bool sums_only;           /* nothing but `sum` is wanted, of the state alone */
    const size_t *row_list;   /* only these rows, `rows` in number; NULL: all, in order */
    const size_t *chunk_rows; /* causal: of these, [chunk_rows[t], chunk_rows[t + 1]) of chunk t */
    poly_sizes sizes;
} poly_job;

static inline float query_norm(const poly_job *w, size_t i)
{
    return w->plan->query_norms[i] * w->q_size;
}

static inline float key_norm(const poly_job *w, size_t j)
{
    return w->plan->key_norms[j] * w->k_size;
}

static inline size_t chunk_end(const poly_job *w, size_t chunk)
{
    const size_t end = (chunk + 1) * POLY_KEYS;
    return end < w->n ? end : w->n;
}

/* The queries are centered, scaled and divided by this, the keys multiplied. */
double poly_balance(const pare_poly_plan *p);
/* Fills a job whose plan, kernel, q, k, v and sizes are set; in the arena. *fit: false when values
 * are of a size that f32 cannot sum, or weights of keys so unequal that some underflow f32. */
PARE_MUST_USE pare_status poly_job_new(poly_job *w, pare_arena *a, bool *fit, const pare_exec *exec,
                                       pare_err *err);

/* ---- the state: sums over keys (poly_state.c) ------------------------------------------------ */

/* Sums over keys in f64, cols4 x table.ld. */
typedef struct poly_sums {
    double *v;
    double shift; /* the logarithm of its unit; -inf: it is 0 */
} poly_sums;

/* Workspace of a thread that sums keys: of a chunk, x (centered) and u (what x is summed with). */
typedef struct poly_workspace {
    float *phi, *u, *x; /* POLY_KEYS x ldphi, x cols4, x d */
    float *s;           /* cols4 x ld: sums that are not in f64 yet */
} poly_workspace;
poly_workspace poly_workspace_new(const poly_job *w, layout *l);
/* u (rows x cols4): what the keys of a chunk are summed with; 0 for heavy keys where `state`. */
void poly_weighted_values(float *u, const poly_job *w, size_t first, size_t rows, bool state);
/* Loads the keys of a chunk into the workspace, */
void poly_load_keys(const poly_workspace *r, const poly_job *w, size_t chunk);
/* adds `rows` loaded rows to its sums, */
void poly_add_loaded(const poly_workspace *r, const poly_job *w, size_t rows);
/* and adds these to sums in f64, of the same unit. */
void poly_flush(poly_sums *to, const poly_workspace *r, const poly_job *w);
/* The factor that brings sums to another unit; and the sums with it. */
double poly_rescale_factor(const poly_sums *s, double shift);
void poly_set_shift(poly_sums *s, const poly_job *w, double shift);
/* state (table.count x cols4, by blocks) = the sums with the factors of the monomials. */
void poly_state_from_sums(float *state, const poly_job *w, const double *sums);
/* poly_flush and poly_set_shift of `now`, and the state of both, in one pass. */
void poly_update_state(float *state, poly_sums *now, const poly_workspace *r, const poly_job *w,
                       double shift, const poly_sums *before);

/* ---- rows from a state (poly_panel.c) -------------------------------------------------------- */

/* Workspace of a thread that computes rows: x, k, u have rows of queries and keys, the others
 * queries in the lanes. */
typedef struct poly_panel_workspace {
    float *q, *low, *high, *o, *s, *ones, *x, *k, *u;
} poly_panel_workspace;
poly_panel_workspace poly_panel_workspace_new(const poly_job *w, layout *l);
/* o (cols4 x p) = state^T monomials of the rows in r->q, highest degree first; those below the
 * highest degree are left in r->low. */
void poly_evaluate_state(const poly_job *w, const poly_panel_workspace *r, const float *state,
                         const panel *p);
/* Rows [first, end), from a state; NULL: none. Under the causal pattern they are of this chunk,
 * whose keys are loaded. y, with bounds; or, where only sums are wanted, these. */
void poly_rows(const poly_job *w, const poly_panel_workspace *r, const float *state,
               const poly_workspace *keys, size_t chunk, size_t first, size_t end);

/* ---- chunks over the threads (poly_scan.c) --------------------------------------------------- */

/* Chunks in segments, by their number alone, and the sums before each segment. */
typedef struct poly_segments {
    const poly_job *w;
    bool backward;        /* chunks from the end, in units of e^-shift */
    size_t count, chunks; /* segments; chunks of each but the last */
    poly_sums *sums;      /* count + 1: before each segment, and of all */
    /* Adds a chunk to the sums of a workspace. */
    void (*add_chunk)(const void *ctx, const poly_workspace *r, size_t chunk);
    const void *ctx;
    float *state;
    atomic_bool no_memory;
} poly_segments;
/* With w, backward, add_chunk and ctx set; segments have at least so many chunks. */
PARE_MUST_USE pare_status poly_segments_new(poly_segments *s, size_t least_chunks, pare_arena *a,
                                            pare_err *err);
size_t poly_segment_end(const poly_segments *s, size_t i);
/* The chunk at place t of the order, and the logarithm of the unit of sums that end with it. */
size_t poly_chunk_at(const poly_segments *s, size_t t);
double poly_unit_of(const poly_segments *s, size_t chunk);
/* The sums of all segments. False: out of memory. */
bool poly_sum_segments(poly_segments *s, const pare_exec *exec);
/* All rows of y with their bounds. */
PARE_MUST_USE pare_status poly_scan(const poly_job *w, pare_arena *a, const pare_exec *exec,
                                    pare_err *err);

/* ---- the other steps ------------------------------------------------------------------------- */

/* Rows above the tolerance: by their true moments, then by the exact kernel (poly_fallback.c). */
PARE_MUST_USE pare_status poly_fallback(poly_job *w, uint8_t *exact, pare_poly_report *report,
                                        pare_arena *a, const pare_exec *exec, pare_err *err);
/* Centers (midranges or means), norms, heavy keys and B of a plan (poly_measure.c); coordinate (d):
 * max |q'_c| max |k'_c|. */
PARE_MUST_USE pare_status poly_measure(pare_poly_plan *p, double *coordinate, bool mean,
                                       pare_arena *a, const pare_mat32 *q, const pare_mat32 *k,
                                       size_t heavy, const pare_exec *exec, pare_err *err);
/* Cost in multiply-adds of the kernels (poly_cost.c). */
double poly_exact_cost(double pairs, size_t d, size_t dv);
double poly_cost(double rows, size_t features, size_t d, size_t cols, bool causal);
double poly_moment_cost(double keys, double rows, size_t features, size_t d, bool causal);
bool poly_fits(size_t features, size_t cols, size_t max_bytes);

/* pare_poly_attend_f32 with a chosen kernel: the tests run every variant. */
PARE_MUST_USE pare_status poly_attend_with(const poly_kernel *kernel, pare_mat32 *y,
                                           const pare_poly_kept *saved, pare_poly_report *report,
                                           const pare_poly_plan *plan, const pare_mat32 *q,
                                           const pare_mat32 *k, const pare_mat32 *v,
                                           const pare_exec *exec, pare_err *err);
/* pare_poly_backward_f32, likewise. */
PARE_MUST_USE pare_status poly_backward_with(const poly_kernel *kernel, pare_mat32 *dq,
                                             pare_mat32 *dk, pare_mat32 *dv, const pare_mat32 *dy,
                                             const pare_poly_plan *plan, const pare_mat32 *q,
                                             const pare_mat32 *k, const pare_mat32 *v,
                                             const uint8_t *exact, const pare_exec *exec,
                                             pare_err *err);

#endif
