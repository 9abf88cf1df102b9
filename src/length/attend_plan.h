/* attend_plan.h - N tokens on an engine that takes only M: attention as a plan of small oracle
 * calls.
 *
 * A pattern is covered by disjoint staircase tiles; a tile is one call (or part of one), and the
 * results of a row are merged in f64. Scores are scale q.k.
 *   native    tile calls that return (m, l, acc): an oracle with PARE_ORC_PARTIAL
 *   zeroref   plain softmax calls with one key of zeros, the reference, whose weight says how much
 *             the other keys weigh together: exact on any softmax oracle
 *   strict    the same, merged by calls too; nothing is computed outside (PARE_ORC_STRICT)
 *   paper     the algorithm of Yu 2025 (unions, subtraction, a dominating token), for comparison
 *   sample    some keys for each query, with a bound for each row that holds with probability
 *   chunk     each chunk attends to itself: what others do; no bound at all */
#ifndef PARE_LENGTH_ATTEND_PLAN_H
#define PARE_LENGTH_ATTEND_PLAN_H
#include "base/json.h"
#include <pare/length.h>

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Query p = 0 .. nq-1 of the tile sees the first min(nk, max(0, vis0 + p)) keys of its list. */
typedef struct pare_tile {
    size_t q0;       /* the first query; the others follow upwards, or downwards if q_down */
    size_t k0;       /* the first key behind the shared ones; likewise */
    uint32_t nq, nk; /* nk with the shared ones */
    uint32_t shared; /* the first keys of the list are tokens 0 .. shared-1: sinks */
    bool q_down, k_down;
    int64_t vis0;         /* PARE_VIS_ALL: every query sees every key */
    const uint32_t *keys; /* nk tokens instead of k0, upwards or downwards from here; NULL = none */
    const uint32_t *rows; /* nq queries instead of q0; NULL = none */
} pare_tile;

typedef pare_status (*pare_tile_fn)(void *ctx, const pare_tile *t);
/* A tile in a call: query p in row q_at + p; key x in row k_at + x, but the first `shared` keys in
 * rows 1 + x, where other tiles of the call find them too. */
typedef struct pare_placed {
    pare_tile t;
    uint32_t q_at, k_at, shared;
} pare_placed;
/* The calls of one head, one at a time: they are generated, not stored (native and zeroref). */
typedef pare_status (*pare_length_call_fn)(void *ctx, const pare_placed *tiles, size_t count,
                                           uint32_t rows);

/* Queries q0, q0 + 1, ... and keys k0, k0 + 1, ...; vis0: keys that the first query sees. */
static inline pare_tile tile_of(size_t q0, size_t nq, size_t k0, size_t nk, int64_t vis0)
{
    return (pare_tile){.q0 = q0, .nq = (uint32_t)nq, .k0 = k0, .nk = (uint32_t)nk, .vis0 = vis0};
}
size_t pare_tile_query(const pare_tile *t, size_t p); /* which token query p is */
size_t pare_tile_key(const pare_tile *t, size_t x);   /* which token key x is */
size_t pare_tile_sees(const pare_tile *t, size_t p);  /* how many keys */

/* Gives every tile of a cover of the pattern to `fn`, in a fixed order and one at a time, with at
 * most bq queries and bk keys each: every visible pair is in exactly one tile, and no other pair
 * is. Ends early when fn does not answer PARE_OK. */
PARE_MUST_USE pare_status pare_tiles(size_t n, const pare_pattern *p, const pare_graph *g,
                                     uint32_t bq, uint32_t bk, pare_tile_fn fn, void *ctx);

/* ---- attention through an oracle ------------------------------------------------------------- */

/* The mode of that name; -1 when there is none. */
int pare_length_mode_of(const char *name);

/* The other way round: many short inputs (one head each, equal widths) in as few calls of the
 * oracle as next fit gives, isolated by codes; equal to separate calls up to rounding. Full or
 * causal, or windows that no input fills. `by`: the penalty between inputs, 0 = so large that
 * nothing leaks. *stats may be NULL. */
PARE_MUST_USE pare_status pare_length_pack(const pare_oracle *orc, const pare_length_job *jobs,
                                           size_t count, const pare_pattern *p, double by,
                                           pare_pack_stats *stats, pare_err *err);

/* The gradient of one head of a native run. The job is that of the run, with its y and lse. */
typedef struct pare_length_grad {
    pare_length_job job;
    const void *dy; /* n x dv: d loss / d y */
    size_t lddy;
    void *dq, *dk, *dv; /* n x dk, n x dk, n x dv: written */
    size_t lddq, lddk, lddv;
} pare_length_grad;
/* By the tiles of a native plan of that length, one at a time on the built-in engine, added in f64:
 * no N x N memory. An oracle that is a black box has no gradient. *count (may be NULL): the tiles
 * are added to its calls, and max_len is raised to the rows of the largest. */
PARE_MUST_USE pare_status pare_length_backward(const pare_length_grad *g, pare_dtype dtype,
                                               uint32_t length, const pare_pattern *p,
                                               const pare_graph *graph, pare_oracle_count *count,
                                               const pare_exec *exec, pare_err *err);

/* How far rounding can take the exact modes (native, zeroref) from attention over the stored
 * numbers in real arithmetic: bound[i] for every column of row i, underflow included. A theorem,
 * for engines whose caps say the truth and rows that pass (pare_length_attend ends with an error
 * otherwise). O(n^2 (dk + dv)). */
PARE_MUST_USE pare_status pare_length_rounding(double *bound, const pare_length_job *job,
                                               const pare_pattern *p, const pare_graph *g,
                                               const pare_oracle_caps *caps,
                                               const pare_length_opts *opts, const pare_exec *exec,
                                               pare_err *err);

/* ---- plans: pure functions of the sizes ------------------------------------------------------ */

/* The calls of one head, one at a time: they are generated, not stored (native and zeroref). */
PARE_MUST_USE pare_status pare_length_plan_calls(const pare_length_plan *plan,
                                                 pare_length_call_fn fn, void *ctx, pare_err *err);
/* One layer's heads through any oracle that is at least what the plan is for. */
PARE_MUST_USE pare_status pare_length_plan_attend(const pare_length_plan *plan,
                                                  const pare_oracle *orc,
                                                  const pare_length_job *jobs, size_t count,
                                                  pare_length_stats *stats, const pare_exec *exec,
                                                  pare_err *err);
/* As JSON (no times, no host facts), and back: the costs of the sizes must be those that are
 * written. */
PARE_MUST_USE pare_status pare_length_plan_json(cJSON **out, const pare_length_plan *plan,
                                                pare_err *err);
PARE_MUST_USE pare_status pare_length_plan_parse(pare_length_plan *out, pare_arena *a,
                                                 const cJSON *json, const pare_graph *g,
                                                 pare_err *err);
#endif
