/* run.h - one run of attention through an oracle: the inputs, which do not change; the accumulators
 * of every row; and the round of calls at work.
 *
 * Who calls whom, downwards:
 *
 *     length.c                           chooses the mode
 *     mode_*.c                           rounds of a mode, fall-backs
 *     reference.c, sampling_bound.c      logit of the reference; bound of a sampled row
 *     softmax_calls.c, mode_native.c     what a call looks like (call_ops)
 *     rounds.c                           the executor: batches of calls
 *     merge_rows.c, oracle_accumulate.c  results of a batch into the accumulators
 *     accumulators.c, instances.c        rows and their window; calls of tokens and weights
 *     merge_softmax.c, accumulate.c      vector code
 *     run.c, calls.h                     memory; which tiles make a call */
#ifndef PARE_LENGTH_RUN_H
#define PARE_LENGTH_RUN_H
#include "calls.h"
#include "merge_softmax.h"
#include <stdatomic.h>

/* What is asked, fixed before the first round. */
typedef struct run_inputs {
    const pare_oracle *oracle;
    pare_oracle_caps caps;
    pare_length_opts opts;
    call_rule rule;
    const pare_pattern *pattern;
    const pare_graph *graph;
    size_t n, nheads;
    bool strict;       /* calls go out as tokens and weights (instances.c) */
    uint64_t capacity; /* instances of one call */
    const pare_exec *exec;
    pare_err *err;
} run_inputs;

/* One head, and what is known of its rows so far:
 *
 *     acc = sum_j e^(s_j - c) v_j,   weight_sum = sum_j e^(s_j - c),   y = acc / weight_sum,
 *
 * where c is the row's running maximum (native) or the logit of its reference. */
typedef struct head_state {
    pare_length_job job;     /* queries scaled */
    double lmax;             /* >= every |logit| */
    double *acc;             /* of the rows in the window */
    double *weight_sum;      /* n */
    double *row_max;         /* n: running maximum; or the largest candidate for a reference */
    double *ref_logit;       /* n; NULL: 0 */
    unsigned char *bad;      /* n: rows whose accumulators cannot be trusted */
    char *partials;          /* strict: partial results of each row, one after the other ... */
    uint32_t *partial_count; /* ... and how many there are */
    /* zeroref: one call's keys and values, for each key block, and the indicator columns where they
     * are separate */
    char *key_blocks, *value_blocks, *indicator_blocks;
    struct length_run *run;
} head_state;

/* One call under way. */
typedef struct pending_call {
    size_t head, tile, tiles; /* which head; its tiles from `tile` on in the batch */
    uint32_t n, dk, dv;       /* rows and widths as the oracle sees them */
    uint32_t code;            /* width of the group codes */
    uint64_t number;          /* of the call, counted from 0 */
    char *q, *k, *v, *y, *bias;
    char *indicator, *weights; /* the indicator columns and their results, where separate */
    char *m, *l;               /* native */
    bool q_in_place;           /* zeroref: q is the head's own array */
    bool kv_in_block;          /* zeroref: k and v are in the head's key blocks */
    bool split_weights;        /* zeroref: the indicator columns are an array of their own */
} pending_call;

typedef struct call_batch {
    pending_call *entries;
    pare_call *calls;
    size_t count, capacity;
    placed *tiles;
    size_t tile_count, tile_capacity;
    char *memory;
    size_t used, bytes;
    unsigned char *touched; /* heads x stripes: has a row of the batch */
    size_t *stripes;        /* those that have, in the order in which they were touched */
    size_t stripe_count;
} call_batch;

typedef struct length_run length_run;

/* What a kind of call looks like, and how its results are merged. */
typedef struct call_ops {
    /* Widths of the call and its parts from e->y on; the bytes it needs, or SIZE_MAX when the
     * oracle cannot take it (err says why). */
    size_t (*lay_out)(const length_run *r, pending_call *e, const placed *tiles);
    /* Inputs of the call, in its memory; outputs are marked as unwritten. */
    void (*build)(const length_run *r, const pending_call *e, pare_call *out);
    /* Rows row, row + 1, ... of the call belong to queries i, i + 1, ... (n <= STRIPE of them):
     * their weights go into the head. True when their values are to be added: scale factors. */
    bool (*merge)(length_run *r, const pending_call *e, size_t row, size_t i, size_t n,
                  double *scale_old, double *scale_new);
    bool reference;      /* softmax calls: with a reference and its indicator columns */
    bool keys_as_values; /* softmax calls: for the softmax mean of the keys */
    bool may_fail;       /* rows that are not finite are bad, not an error */
    /* Rows [first, end) of a head, all calls of which are merged, before their accumulators are
     * reused; NULL: nothing to do. */
    void (*finish)(length_run *r, size_t head, size_t first, size_t end);
    /* What `merge` does, from the numbers themselves: m and l of rows i, i + 1, ... of the head, or
     * the weights of keys and reference. NULL: only `merge` can do it. */
    void (*merge_raw)(const length_run *r, const head_state *h, size_t i, size_t n, const void *a,
                      const void *b, double *scale_old, double *scale_new);
} call_ops;

struct length_run {
    run_inputs in;
    pare_length_stats *stats; /* the counters */
    pare_arena *arena;
    struct aligned_block *aligned; /* of run_alloc_aligned */

    head_state *heads;
    struct {           /* rows that have accumulators: all n, or some of the head at work */
        bool in_order; /* no call has rows before those of the calls before it */
        size_t first, rows;
        size_t complete_to, reached; /* ends of those that are complete, that had calls */
    } window;
    struct { /* strict: partial results of a row, at most; numbers of one */
        size_t max, width;
    } partials;

    struct {
        const call_ops *ops;
        size_t head;   /* whose calls are made now */
        bool only_bad; /* calls without a bad row are left out */
        bool extra;    /* calls are counted as a fall-back's */
        bool fused;    /* the oracle itself adds rows to the accumulators (oracle_accumulate.c) */
        uint64_t calls;
        atomic_size_t failed; /* first call of the batch with an answer that is not finite */
    } round;
    call_batch batch;
};

/* ---- run.c ----------------------------------------------------------------------------------- */

void run_free(length_run *r);
/* Memory for `count` numbers of `size` bytes until the run ends: in whole cache lines, not cleared,
 * since large arrays are written once anyway. */
void *run_alloc_aligned(length_run *r, size_t count, size_t size);
/* Bytes of `count` numbers of the oracle, rounded up to a cache line. */
size_t run_padded_bytes(const length_run *r, size_t count);
/* Bytes of calls under way at a time, where one needs `need` of them. */
size_t run_batch_bytes(const length_run *r, size_t need);
/* An error when logits may be too large for the type. */
PARE_MUST_USE pare_status run_check_overflow(const length_run *r, size_t head);
/* A nan in each row of an output, so that what is not written is not taken for an answer. */
void run_mark_unwritten(const length_run *r, char *y, size_t rows, size_t ld);
/* Rows of all heads over the threads: fn(r, head, first, end) in stripes of STRIPE rows. */
void run_for_rows(length_run *r, void (*fn)(length_run *r, size_t head, size_t first, size_t end));

/* q_i . k_key in f64. */
double run_logit(const length_run *r, const pare_length_job *j, size_t i, size_t key);

/* ---- accumulators.c -------------------------------------------------------------------------- */

PARE_MUST_USE pare_status accumulators_new(length_run *r);
void accumulators_clear_bad(length_run *r); /* to 0 where bad */
bool accumulators_finite(const length_run *r, const head_state *h, size_t i);
/* y = acc / weight_sum, where all rows are in the window; of some rows of one head. */
void accumulators_write(length_run *r);
void accumulators_write_rows(length_run *r, size_t head, size_t first, size_t end);
/* Whether row i sees no key at all. */
bool row_sees_nothing(const length_run *r, size_t i);

/* Before a call with these tiles: the row below which all rows must be completed to make space for
 * it in the window; 0: none. *end: behind the last row of the tiles. */
size_t window_admit(const length_run *r, const placed *tiles, size_t count, size_t *end);
/* Rows below `to` of the head at work have all their calls merged: they are finished, and the
 * window moves on. */
void window_complete(length_run *r, size_t to);
static inline bool window_is_whole(const length_run *r)
{
    return r->window.rows == r->in.n;
}
static inline double *accumulator_row(const length_run *r, const head_state *h, size_t i)
{
    return h->acc + (i - r->window.first) * h->job.dv;
}
#endif
