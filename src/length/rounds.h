/* rounds.h - one round of calls for all heads: built, evaluated and merged in batches of bounded
 * memory. What a call looks like and how its rows are merged is a construction's affair. */
#ifndef PARE_LENGTH_ROUNDS_H
#define PARE_LENGTH_ROUNDS_H
#include "calls.h"
#include <stdatomic.h>

/* A head, and what is known of its rows so far. */
typedef struct head {
    pare_length_job job;       /* queries scaled */
    double lmax;               /* >= every |logit| */
    double *num, *den;         /* sums of weighted values (of the rows that are held), of weights */
    double *top;               /* ... divided by e^top; or the best reference so far */
    double *c;                 /* n: logit of the reference; NULL = 0 */
    char *parts;               /* strict: partial results of each row, one after the other ... */
    uint32_t *nparts;          /* ... and how many there are */
    unsigned char *bad;        /* n: rows whose sums cannot be trusted */
    char *blocks_k, *blocks_v; /* zeroref: keys and values of a call, for each block of keys, ... */
    char *blocks_side;         /* ... and the two columns, where they stand alone */
    struct run *of;
} head;

/* What some calls have to add to the sums of up to STRIPE rows, one call after the other:
 * sum = keep sum + by x. */
enum { STRIPE = 64, ADDENDS = 16 };
typedef struct addends {
    size_t count, ld;       /* calls; numbers from one row of x to the next */
    const void *x[ADDENDS]; /* of the oracle's type */
    double keep[ADDENDS][STRIPE], by[ADDENDS][STRIPE];
} addends;

/* One call under way. */
typedef struct entry {
    size_t head, tile, tiles; /* which head; its tiles from `tile` on in the batch */
    uint32_t n, dk, dv,
        code;        /* rows and widths as the oracle sees them; code: of the group codes */
    uint64_t number; /* of the call, counted from 0 */
    char *q, *k, *v, *y, *bias;
    char *side, *mass;  /* the two columns and their results, where these stand alone */
    char *m, *l;        /* native */
    bool ready, shared; /* zeroref: q stands in the head's own array; k and v in its key blocks */
    bool split;         /* zeroref: the two columns stand alone */
} entry;

typedef struct batch {
    entry *entries;
    pare_call *calls;
    size_t count, room;
    placed *tiles;
    size_t tile_count, tile_room;
    char *memory;
    size_t used, bytes;
    unsigned char *touched; /* heads x stripes: has a row of the batch */
    size_t *stripes;        /* those that are, in the order in which they were */
    size_t stripe_count;
} batch;

typedef struct construction construction;
typedef struct run {
    const pare_oracle *orc;
    pare_oracle_caps caps;
    pare_length_opts o;
    call_rule rule;
    const pare_pattern *p;
    const pare_graph *g;
    head *heads;
    size_t count, n;
    const pare_exec *exec;
    pare_arena *arena;
    struct room *rooms; /* of run_room */
    pare_length_stats *stats;
    pare_err *err;
    const construction *how;
    bool strict;                   /* calls go through instances.c */
    uint64_t capacity;             /* instances of a call */
    size_t most_parts, part_width; /* strict: of a row; numbers of one */
    size_t at;                     /* the head whose calls are made now */
    bool only_bad;                 /* calls without a bad row are left out */
    bool extra;                    /* calls are counted as a fall-back's */
    bool adds;                     /* of the round: the oracle adds rows up (oracle_accumulate.c) */
    bool in_order;                 /* no call has rows before those of the calls before it */
    size_t first, held;            /* rows whose sums there are: n, or fewer of the head at work */
    size_t done_to, reached;       /* ends of those of them that are complete, that had calls */
    uint64_t number;
    batch b;
    atomic_size_t failed; /* of the batch: the first entry with numbers that are none */
} run;

struct construction {
    /* Widths of the call and the bytes it needs, SIZE_MAX when the oracle cannot take it (err says
     * why). */
    size_t (*size)(const run *r, entry *e, const placed *tiles);
    /* Inputs of the call, in its memory; outputs are poisoned. */
    void (*build)(const run *r, const entry *e, pare_call *out);
    /* Rows row, row + 1, ... of the call belong to queries i, i + 1, ... (n <= STRIPE of them):
     * what they say about these goes into the head. True when their values are to be added: how. */
    bool (*part)(run *r, const entry *e, size_t row, size_t i, size_t n, double *keep, double *by);
    /* Row i of the head when the batch is merged: false when its numbers are none. */
    bool (*sound)(const run *r, const head *h, size_t i);
    bool may_fail; /* rows that are not sound are bad, not an error */
    /* Rows [first, end) of a head, all calls of which are merged, before their sums are forgotten;
     * NULL: there is nothing to do. */
    void (*done)(run *r, size_t head, size_t first, size_t end);
    /* What `part` does, from the numbers themselves: m and l of rows i, i + 1, ... of the head, or
     * the two columns. NULL: only `part` knows. */
    void (*weigh)(const run *r, const head *h, size_t i, size_t n, const void *m, const void *l,
                  double *keep, double *by);
};

/* All calls of all heads; only those with a bad row where r->only_bad. */
PARE_MUST_USE pare_status run_round(run *r, const construction *how);
/* Calls of tiles that are handed in, instead of a pattern's: begin, any number of run_call (a
 * call_fn, for head r->at), end. */
void run_begin(run *r, const construction *how);
pare_status run_call(void *run, const placed *tiles, size_t count, uint32_t n);
PARE_MUST_USE pare_status run_end(run *r, pare_status so_far);
/* Calls so far are evaluated and merged. */
PARE_MUST_USE pare_status run_flush(run *r);
void run_free(run *r);

/* Memory for `count` numbers of `size` bytes until the run ends: in whole lines of the cache, with
 * anything in it, since large arrays are written once anyway. */
void *run_room(run *r, size_t count, size_t size);
/* Bytes of `count` numbers of the oracle, rounded up to a cache line. */
size_t run_bytes(const run *r, size_t count);
/* merge_rows.c: the batch's results into the sums; its first entry with numbers that are none, or
 * SIZE_MAX. */
size_t merge_batch(run *r);
/* An error when logits may be too large for the type. */
PARE_MUST_USE pare_status run_overflow(const run *r, size_t at);
/* What is not written shall not be taken for an answer. */
void run_poison(const run *r, char *y, size_t rows, size_t ld);
/* Rows over the threads: fn(ctx, head, first, end) in stripes of STRIPE rows. */
void run_rows(const run *r, void (*fn)(run *r, size_t head, size_t first, size_t end), run *ctx);
/* Bytes of calls under way at a time, where one has `need` of them. */
size_t run_batch_bytes(const run *r, size_t need);

/* ---- oracle_accumulate.c: an oracle that adds rows up -------------------------------------------------- */

bool adding_can(const run *r, const construction *how);
/* Where the rows of a call go; nowhere, where the round is not such. */
pare_call_sums adding_sums(const run *r, const entry *e);
/* The first call of the batch, from `from` on, that answers no numbers. */
size_t adding_blame(const run *r, size_t from);

/* ---- accumulator_window.c: sums of the rows that calls are at ---------------------------------------------- */

PARE_MUST_USE pare_status held_new(run *r);
/* Rows before those of a call that comes next are done with, where it has rows beyond the held. */
PARE_MUST_USE pare_status held_reach(run *r, const placed *tiles, size_t count);
/* The head at work has no more calls. */
PARE_MUST_USE pare_status held_end(run *r);
static inline double *held_row(const run *r, const head *h, size_t i)
{
    return h->num + (i - r->first) * h->job.dv;
}
static inline bool held_all(const run *r)
{
    return r->held == r->n;
}

/* ---- constructions --------------------------------------------------------------------------- */

extern const construction native_calls, zeroref_calls, plain_calls, mean_calls;
/* Where many calls share them: blocks of keys with their values (or keys once more), laid out once.
 */
PARE_MUST_USE pare_status softmax_blocks(run *r, bool keys);
PARE_MUST_USE pare_status native_attend(run *r);
/* Rounds of zero-reference calls until no row is bad: sums (or parts) are complete then. */
PARE_MUST_USE pare_status zeroref_rounds(run *r, const construction *how);
void zeroref_done(run *r, size_t head, size_t first, size_t end);
bool zeroref_part(run *r, const entry *e, size_t row, size_t i, size_t n, double *keep, double *by);
/* Rows that are bad after the rounds so far get a reference of their own; an error if that does not
 * help. */
PARE_MUST_USE pare_status zeroref_settle(run *r, const construction *how);
PARE_MUST_USE pare_status strict_attend(run *r);
PARE_MUST_USE pare_status sample_attend(run *r);
PARE_MUST_USE pare_status chunk_attend(run *r);
PARE_MUST_USE pare_status paper_attend(run *r);
PARE_MUST_USE pare_status zeroref_attend(run *r);

/* reference.c: lmax of every head, and c where the options ask for probes or norms do not suffice.
 */
PARE_MUST_USE pare_status reference_choose(run *r);
/* As a call can hold it: the same number in every call, and on the host. */
double reference_logit(const run *r, double c);

/* accumulators.c */
PARE_MUST_USE pare_status sums_new(run *r);
void sums_clear_bad(run *r); /* to 0 where bad */
/* Into rows x n sums, which stay in registers: many addends cost little more than one. False when a
 * sum is no number then. */
typedef bool sums_add_fn(double *sum, size_t rows, size_t n, const addends *a);
sums_add_fn *sums_adder(pare_dtype t);
/* Those for f32 that this CPU can run, best first; the last is the portable one. All give the same
 * bits. */
size_t sums_variants(sums_add_fn *out[3]);
bool sums_finite(const run *r, const head *h, size_t i);
/* merge_softmax.c: n partial results meet the sums of their rows. top becomes the larger of top and m, keep
 * and by what the old sums and the result are multiplied by, 1 and e^-|m - top| within 1.5 ulp (0
 * below e^-708), and den = keep den + by l: a nan where m is no number or l is not above 0. */
typedef struct fading {
    const void *m, *l; /* f32 or f64 */
    double *top, *den, *keep, *by;
} fading;
typedef void fade_fn(const fading *f, size_t n, bool f32);
fade_fn fade_rows;
size_t fade_variants(fade_fn *out[3]); /* as above */
/* n results of calls with a reference: what the keys weigh and what the reference does.
 * by = 1 / the reference's weight, keep = 1, den += by times the keys' weight; by = 0 and a nan in
 * den where the reference weighs less than `least`, both more than `most`, or one is no number. */
typedef struct sharing {
    const void *keys, *reference; /* f32 or f64 */
    double *den, *keep, *by;
    double least, most;
} sharing;
typedef void share_fn(const sharing *s, size_t n, bool f32);
share_fn share_rows;
size_t share_variants(share_fn *out[3]); /* as above */
void sums_write(run *r);                 /* y = num / den, where all rows are held still */
void sums_write_rows(run *r, size_t head, size_t first, size_t end);
/* Whether row i sees no key at all. */
bool sums_empty(const run *r, size_t i);
#endif
