/* enclose.h - what the pieces of the proof kernel share: arithmetic that rounds outwards, the
 * engines, and the flow (midpoints with radii) that runs through the model.
 *
 * The law of a flow. For row i let X be the exact stream (real numbers, stored weights), M the
 * midpoint computed here, E what an engine computes. Then in the euclidean norm
 *
 *     |M - X| <= r[0][i],     |E - X| <= r[e][i]
 *
 * where e = 1 is the f32 engine and e = 0 what makes the midpoints: in a plain flow any f64 pass
 * (M is one of them), in a wide flow the double-double arithmetic of wide.h (M alone; r[0] then
 * says nothing of f64). So each of the three points is within r[0] + r[e] of M, which bounds its
 * norm from above and below. Wide midpoints are hi + lo, and |lo| <= 2^-53 |hi| entry by entry:
 * what is needed of M besides its own radius (norms, distances, covariances) is taken from hi
 * alone, and raised by that.
 *
 * Every step adds two things: how far the exact step moves the distance it was given
 * (a Lipschitz constant that holds between the two points), and what the engine's own roundings
 * add at the engine's own point.
 *
 * What is assumed of an engine with unit roundoff u and smallest normal number `tiny`:
 *  - + - * / sqrt round to nearest (or are fused), in any order; a result below `tiny` may be off
 *    by `tiny` (gradual underflow and flushed results are both covered);
 *  - its sin, cos, exp, tanh, erf and powers are within 4 ulp, that is 8 u relative;
 *  - the f32 engine takes the angles of rotary and sinusoidal positions, and their sine and
 *    cosine, in f64 and rounds once;
 *  - a softmax subtracts the largest score (or works in tiles of at least 32 keys that are merged
 *    by their largest scores), a layer norm subtracts the mean before it squares; where all rows
 * ask the same, keys may be weighed by e^(score - smallest score) instead, in f64 while that is
 * below e^600, in f32 below e^20, and sums of such weights and rows may be taken in f64;
 *  - a mean over the visible keys sums those keys, it does not subtract two running sums.
 * When a number may leave the engine's range, or an angle is above 2^30, the radius is +inf:
 * nothing is promised.
 *
 * Both engines of pare meet that: in f64, and for the angles of f32, by proof (elementary.c: 8 u at
 * most), the other functions of f32 by a test of every argument or of a grid (base/vmath.h,
 * src/model/vector_activation.c). Midpoints use the same functions, so that nothing that is proven
 * of the exact function assumes anything about libm; the radii use those that round upwards
 * (pare_exp_up and its like in pare/linalg.h). sqrt and fma are taken to be what IEEE 754 says. */
#ifndef PARE_CERT_ENCLOSE_H
#define PARE_CERT_ENCLOSE_H
#include "model_norms.h"
#include "wide.h"
#include "outputs.h"
#include "linalg/matrix.h"
#include <float.h>
#include <math.h>

/* ---- outward rounding --------------------------------------------------------------------- */

/* The least change that is certainly upwards: x (1 + 2^-52) >= the next double for a normal x >= 0
 * and the added 2^-1074 is the next one for the others. nan becomes +inf: nothing is known. */
static inline double up(double x)
{
    const double y = x * (1 + 0x1p-52) + 0x1p-1074;
    return y <= DBL_MAX ? y : INFINITY;
}
/* For x, y >= 0 upper bounds: an upper bound on the result. Exact zeros stay zero. */
static inline double up_add(double x, double y)
{
    return x == 0 ? y : y == 0 ? x : up(x + y);
}
static inline double up_mul(double x, double y)
{
    if (x == 0 && y <= DBL_MAX) return 0;
    if (y == 0 && x <= DBL_MAX) return 0;
    return up(x * y);
}
static inline double up_fma(double x, double y, double z) /* x y + z */
{
    return up_add(up_mul(x, y), z);
}
/* y > 0 is a lower bound; otherwise nothing is known. */
static inline double up_div(double x, double y)
{
    return y > 0 ? (x == 0 ? 0 : up(x / y)) : INFINITY;
}
static inline double up_sqrt(double x)
{
    return x == 0 ? 0 : up(sqrt(x));
}
/* Downwards: x - y for a lower bound x and an upper bound y, never below zero. */
static inline double down(double x)
{
    const double y = x * (1 - 0x1p-52) - 0x1p-1074;
    return y > 0 && y <= DBL_MAX ? y : 0; /* an overflow is no lower bound */
}
static inline double down_sub(double x, double y)
{
    return y == 0 ? x : down(x - y);
}
static inline double up_max(double x, double y) /* a nan wins and becomes inf */
{
    return x <= y ? y : y <= x ? x : INFINITY;
}
static inline double up_min(double x, double y)
{
    return x <= y ? x : y;
}
/* gamma_n = n u / (1 - n u) >= |(1 + d_1)^+-1 ... (1 + d_n)^+-1 - 1| for |d_k| <= u. */
static inline double gamma_of(size_t n, double u)
{
    const double nu = up_mul((double)n, u);
    return nu < 1 ? up_div(nu, down_sub(1, nu)) : INFINITY;
}
/* |x|_2 of stored numbers. The sum s of n squares is off by a factor within (1 -+ u)^n and by
 * n 2^-1022 for squares that underflow. */
double enclose_norm_up(const double *x, size_t n);
double enclose_norm_down(const double *x, size_t n);
/* |x - y|_2 of stored numbers, from above. */
double enclose_distance_up(const double *x, const double *y, size_t n);
double enclose_max_up(const double *x, size_t n); /* largest |x_k|; nan -> inf */

/* ---- engines ------------------------------------------------------------------------------ */

enum { ENGINES = 2 }; /* 0: of the midpoints, f64 or wide; 1: f32 */
typedef struct engine {
    double u, tiny;
    double angle; /* unit roundoff of angles, their sines and cosines, and powers */
    double big;   /* numbers up to it, and sums of squares up to it, stay in range */
    bool wide;    /* double-double: long sums cost one unit (wide.h) */
    bool narrows; /* rounds f64 weights and inputs to its own type first */
} engine;
const engine *enclose_engine(bool wide, size_t e);

/* Radii of one row for both engines. */
typedef struct radii {
    double r[ENGINES];
} radii;

#define LO_SHARE 0x1p-52 /* |lo| <= 2^-53 |hi| in a wide midpoint */

struct enclose_ctx;
typedef struct flow {
    pare_mat x;  /* midpoints, rows x cols */
    pare_mat lo; /* what a wide flow adds to them; nothing in a plain one */
    bool wide;
    double *r[ENGINES];
} flow;

/* In the arena of the context, wide if that is. */
PARE_MUST_USE pare_status enclose_flow_new(flow *f, const struct enclose_ctx *c, size_t rows,
                                           size_t cols, pare_err *err);
static inline radii flow_radii(const flow *f, size_t i)
{
    return (radii){{f->r[0][i], f->r[1][i]}};
}
static inline void flow_set(flow *f, size_t i, radii r)
{
    for (size_t e = 0; e < ENGINES; e++) f->r[e][i] = r.r[e];
}
/* One entry of a wide flow. */
static inline dd flow_at(const flow *f, size_t i, size_t k)
{
    return (dd){pare_row(&f->x, i)[k], pare_row(&f->lo, i)[k]};
}
static inline void flow_put(flow *f, size_t i, size_t k, dd x)
{
    pare_row_mut(&f->x, i)[k] = x.hi;
    pare_row_mut(&f->lo, i)[k] = x.lo;
}
/* Row i of y = row j of x, midpoints only. */
void enclose_copy_row(flow *y, size_t i, const flow *x, size_t j);
/* |M| of row i, from above and below. */
static inline double flow_norm(const flow *f, size_t i)
{
    const double hi = enclose_norm_up(pare_row(&f->x, i), f->x.cols);
    return f->wide ? up_mul(hi, 1 + LO_SHARE) : hi;
}
static inline double flow_norm_down(const flow *f, size_t i)
{
    const double hi = enclose_norm_down(pare_row(&f->x, i), f->x.cols);
    return f->wide ? down(hi * (1 - LO_SHARE)) : hi;
}
/* Upper bound on the norm of the midpoint, of the exact point and of engine e's point, when the
 * midpoint's is `norm`. */
static inline double reach(double norm, radii r, size_t e)
{
    return up_add(norm, up_add(r.r[0], r.r[e]));
}
/* What `plain` roundings of an f64 or f32 engine amount to, where n of them belong to a sum of that
 * many terms; double-double takes `wide` units for the same. */
static inline double roundings(const engine *e, size_t n, size_t plain, size_t wide)
{
    const size_t long_sums = n / WIDE_TERMS, more = long_sums * long_sums * long_sums;
    return gamma_of(e->wide ? wide + more : n + plain, e->u);
}
/* r unless a number of that size may be out of the engine's range. */
static inline double in_range(const engine *e, double size, double r)
{
    return size <= e->big ? r : INFINITY;
}

/* What every piece is given. */
typedef struct enclose_ctx {
    const pare_model *m;
    const pare_model_norms *norms;
    const pare_graph *graph; /* completed; NULL unless the pattern is a graph */
    size_t tokens;           /* of one sequence: rows = batch x tokens */
    bool wide;               /* double-double midpoints */
    pare_arena *a;
    const pare_exec *exec;
} enclose_ctx;

/* Calls fn(ctx, i) for every i < n, in blocks of rows over the threads. */
void enclose_rows(const pare_exec *exec, size_t n, void (*fn)(void *ctx, size_t i), void *ctx);

/* ---- pieces; each makes y in the arena ---------------------------------------------------- */

/* Rows of the embedding, or given vectors. */
void enclose_input(flow *x, const pare_embedding *s, const pare_input *in);
/* x += positions, where the model adds them. */
PARE_MUST_USE pare_status enclose_positions(flow *x, const enclose_ctx *c, pare_err *err);
/* One row for each sequence. */
PARE_MUST_USE pare_status enclose_pooled(flow *y, const enclose_ctx *c, const flow *x,
                                         pare_err *err);

PARE_MUST_USE pare_status enclose_dense(flow *y, const enclose_ctx *c, const flow *x,
                                        const pare_weight *w, const pare_weight *b,
                                        const dense_norms *n, pare_err *err);
/* Midpoints of W x + b alone, into y (and lo, for a wide x). */
PARE_MUST_USE pare_status enclose_product(pare_mat *y, pare_mat *lo, const flow *x,
                                          const pare_weight *w, const pare_weight *b,
                                          const pare_exec *exec, pare_err *err);
/* Radius of W x + b in engine e: the point has norm <= size and radius r. */
double enclose_dense_radius(const engine *e, const dense_norms *n, double size, double r);
/* Same for the largest entry of W x + b. */
double enclose_entry_radius(const engine *e, const dense_norms *n, double size, double r);
/* y += skip(x) */
PARE_MUST_USE pare_status enclose_skip(flow *y, const enclose_ctx *c, const flow *x,
                                       const pare_skip *skip, const dense_norms *n, pare_err *err);
void enclose_sum(flow *y, const flow *x); /* y += x */
/* In place. */
PARE_MUST_USE pare_status enclose_norm(flow *x, const enclose_ctx *c, const pare_norm *n,
                                       pare_err *err);
void enclose_act(flow *x, pare_act act, const pare_exec *exec);
/* The branch alone: no norms, no skip. */
PARE_MUST_USE pare_status enclose_ffn(flow *y, const enclose_ctx *c, const flow *z,
                                      const pare_ffn *f, const ffn_norms *n, pare_err *err);
PARE_MUST_USE pare_status enclose_attn(flow *y, const enclose_ctx *c, const flow *z,
                                       const pare_attn *at, const attn_norms *n, pare_err *err);
/* Softmax heads with queries by kind: their outputs side by side, as wo takes them. */
PARE_MUST_USE pare_status enclose_heads(flow *o, const enclose_ctx *c, const flow *z,
                                        const pare_attn *at, const attn_norms *n, pare_err *err);
/* y = U x: the mean over the visible rows, 0 where there are none. */
PARE_MUST_USE pare_status enclose_mean(flow *y, const enclose_ctx *c, const flow *x, pare_err *err);

/* Total variation between softmax(a) and softmax(a + b) for max|b| <= d: tanh(d/2); and less when
 * all weight but `rest` is on one entry of either. */
double enclose_tv(double d, double rest);
/* The better of two comparisons in every figure, into the first; the second has double-double
 * midpoints. PARE_ERR_VERIFY if their differences are further apart than their radii allow. */
PARE_MUST_USE pare_status enclose_merge(pare_output_bound *a, const pare_output_bound *b,
                                        pare_err *err);
/* Whether a gap proven in f64 is to be proven again with wide midpoints (output_difference.c). */
bool enclose_goes_wide(const pare_gap *gap, const pare_model *f, const pare_model *g,
                       const pare_inputs *set);

#endif
