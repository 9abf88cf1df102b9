/* fit.h - one matrix as the product of two masked random ones. Private to this folder.
 *
 *   W (a x b)  ~  scale (A o MA) (B o MB)          A a x n, B n x b: source integers
 *
 * Hidden unit k couples column k of A with row k of B. A unit that serves column j of W alone adds
 * MA_ik A_ik B_kj to the entries (i, j): one question of subset sums per entry. */
#ifndef PARE_SRC_TICKET_FIT_H
#define PARE_SRC_TICKET_FIT_H
#include "model/ticket_store.h"

typedef struct fit_problem {
    size_t a, b, n;
    pare_mat w;   /* a x b */
    double scale; /* a power of two */
    const int32_t *A, *B;
    size_t inputs; /* of a ReLU source (fit_relu.c), which has no donors: B is 0 where a unit cannot
                      serve a column; 0: an ordinary one */
} fit_problem;

typedef struct fit_result {
    pare_bits ma, mb; /* a x n, n x b */
    uint32_t *own;    /* n: the column a unit serves, or PARE_NO_COLUMN */
    uint32_t donor;   /* the column whose units give to others, or PARE_NO_COLUMN */
    pare_mat e;       /* W - scale (A o MA)(B o MB), each entry rounded once or twice */
} fit_result;

/* Blocks of n / b units serve one column of W each; all is that of Otsuka 2025, but for the choice
 * of the side by the caller (fit_block.c). */
PARE_MUST_USE pare_status fit_block(fit_result *out, pare_arena *a, const fit_problem *p,
                                    const pare_exec *exec, pare_err *err);

/* Units that serve the columns which own says (n; PARE_NO_COLUMN: none); every entry is solved. */
PARE_MUST_USE pare_status fit_assigned(fit_result *out, pare_arena *a, const fit_problem *p,
                                       const uint32_t *own, const pare_exec *exec, pare_err *err);

/* The same units used better (fit_best.c): donors, choice of units, more units for the columns that
 * need them. */
typedef struct fit_best_opts {
    unsigned donors; /* bits of a column that its rows share; 0: 6 to 12, by rows */
    unsigned tries;  /* unit sets for the donor column; 0: 16 */
    uint64_t seed;   /* of those sets */
    bool no_trade;   /* units stay where they are given to first (fit_trade.c) */
} fit_best_opts;
PARE_MUST_USE pare_status fit_best(fit_result *out, pare_arena *a, const fit_problem *p,
                                   const fit_best_opts *o, const pare_exec *exec, pare_err *err);

/* ---- a ReLU between the two matrices (fit_relu.c) -------------------------------------------- */

/* What units with the weights B (n x inputs) pass on: n x 2 inputs, or n x inputs where no input is
 * negative. */
PARE_MUST_USE pare_status fit_relu_sides(const int32_t **out, pare_arena *a, const int32_t *B,
                                         size_t n, size_t inputs, bool signs, pare_err *err);
/* Otsuka 2025: n / inputs units in a row read one input; which sign, is as chance has it. */
PARE_MUST_USE pare_status fit_relu_block(fit_result *out, pare_arena *a, const fit_problem *p,
                                         const pare_exec *exec, pare_err *err);

/* The problem with a and b exchanged, and a result transposed back. Solve for a side of W with the
 * fewer rows or columns: n units then give n / min(a, b) items an entry. */
PARE_MUST_USE pare_status fit_transpose(fit_problem *out, pare_arena *a, const fit_problem *p,
                                        pare_err *err);
PARE_MUST_USE pare_status fit_transpose_back(fit_result *out, pare_arena *a, const fit_result *r,
                                             pare_err *err);
/* The masks of a result before anything is in them; no unit serves anyone. */
PARE_MUST_USE pare_status fit_result_new(fit_result *out, pare_arena *a, const fit_problem *p,
                                         pare_err *err);

/* ---- for all methods (fit.c) ----------------------------------------------------------------- */

/* `count` weights of a stream of the source. NULL: no memory. */
const int32_t *fit_draw(pare_arena *a, uint64_t seed, uint64_t stream, size_t count);
pare_mat fit_transposed_mat(pare_arena *a, const pare_mat *m); /* v NULL: no memory */
/* Where scales are tried from, downwards: 2^above times the largest entry, among those that a
 * ticket can have (2^-64 to 2^64). */
int fit_first_exponent(double largest, int above);
/* PARE_ERR_INPUT names the entry that is 2^11 scales or more, and what has fewer units than
 * columns; PARE_ERR_NONFINITE one that is no number. */
PARE_MUST_USE pare_status fit_check(const fit_problem *p, pare_err *err);
/* What passes the check: W / scale in units of 2^-48, nearest integers. */
PARE_MUST_USE pare_status fit_targets(int64_t **out, pare_arena *a, const fit_problem *p,
                                      pare_err *err);
static inline int64_t fit_item(const fit_problem *p, size_t i, size_t k, size_t j)
{
    return (int64_t)p->A[i * p->n + k] * p->B[k * p->b + j];
}
/* Unit k serves column j; bit c of `words` words at j a + i: whether entry (i, j) has it. */
void fit_put_unit(fit_result *r, const fit_problem *p, size_t k, size_t j, size_t c,
                  const uint64_t *mask, size_t words);
/* Unit c of each block of `items`. */
void fit_put_blocks(fit_result *r, const fit_problem *p, size_t items, const uint64_t *mask,
                    size_t words);
/* e from the masks alone. */
PARE_MUST_USE pare_status fit_residual(fit_result *r, pare_arena *a, const fit_problem *p,
                                       const pare_exec *exec, pare_err *err);
#endif
