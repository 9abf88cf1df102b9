/* pare/ticket.h - a model as a seed and masks: a part of a random network that computes almost what
 * the model does (strong lottery tickets; docs/ticket.md). pare_reduce makes one from file to file
 * (pare/cut.h):
 *
 *   pare_reduce_opts o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_TICKET);
 *   o.from = "model.safetensors", o.to = "ticket.safetensors";       loads like any model
 *   o.ticket.bits = 12;                                              mask bits for a weight
 *   st = pare_reduce(&r, arena, model, &o, NULL, &err);
 *
 * Every matrix becomes a product of two masked random ones; what is stored of it is the seed and
 * the masks. Gains stay numbers, and so do biases unless they are asked for. */
#ifndef PARE_TICKET_H
#define PARE_TICKET_H
#include <pare/cert.h>

typedef enum pare_ticket_mode {
    PARE_TICKET_AUTO,     /* whichever has fewer bytes: factored, but for few heads */
    PARE_TICKET_FACTORED, /* every stored matrix by itself: any model */
    PARE_TICKET_MERGED    /* Otsuka 2025: scale Wq^T Wk and Wo Wv of every head; not for rotary;
                             ReLU parts from a ReLU source, other feed-forward parts factored */
} pare_ticket_mode;
extern const char *const pare_ticket_mode_names[]; /* ended by NULL */

typedef enum pare_ticket_method {
    PARE_TICKET_BEST,    /* units chosen, shared, and given to the columns that need them */
    PARE_TICKET_BLOCK,   /* equal blocks of units: Otsuka 2025 */
    PARE_TICKET_FEEDBACK /* equal blocks; later entries make good for the errors of earlier ones on
                            given inputs, and bits are chosen by what they cost */
} pare_ticket_method;
extern const char *const pare_ticket_method_names[]; /* ended by NULL */

typedef struct pare_ticket_opts {
    pare_ticket_mode mode;
    pare_ticket_method method;
    size_t bits;   /* items of an entry: n = bits min(rows, cols) hidden units; BEST has 16 more */
    size_t hidden; /* hidden units of every matrix; 0: by bits */
    bool biases;   /* of maps, from the source as well: units whose input is 1 */
    bool strict;   /* scale 1, as in the theorems */
    int exponent;  /* the scale is 2^exponent; PARE_TICKET_CHOOSE: the best of a few, by matrix */
    uint64_t seed;
    pare_coding coding;
    pare_dtype dtype; /* of weights that stay numbers; 0: as in the input */
    /* of FEEDBACK */
    const pare_inputs *fit; /* what the ticket is fitted to; NULL: every entry for itself */
    double stored;          /* bits stored for a weight; 0: as many as it takes */
} pare_ticket_opts;
#define PARE_TICKET_CHOOSE INT32_MAX
#define PARE_TICKET_OPTS_DEFAULT                                                                   \
    {                                                                                              \
        .bits = 12, .exponent = PARE_TICKET_CHOOSE, .coding = PARE_CODING_BRIDGE                   \
    }
enum {
    PARE_TICKET_MOST_BITS = 64,
    PARE_TICKET_STORED_BITS = 16 /* where `stored` says how many: all choices are weighed */
};

typedef struct pare_ticket_matrix {
    const char *name;
    size_t rows, cols, hidden;
    int exponent;
    size_t bytes;        /* in the file */
    double largest, rms; /* of the entries' errors */
    double reach;        /* largest |entry| over what the items of an entry reach on average */
} pare_ticket_matrix;

typedef struct pare_ticket_report {
    size_t n;
    pare_ticket_matrix *matrix; /* those that became tickets */
    uint64_t weights, bytes;    /* of these */
    uint64_t numbers;           /* weights that stayed numbers, 4 or 8 bytes each */
    uint64_t number_bytes;
    bool merged;
    size_t relu_parts;  /* merged: feed-forward parts that are layers of a ReLU source */
    size_t other_parts; /* and those that are factored */
} pare_ticket_report;

/* ---- fitting one matrix ---------------------------------------------------------------------- */

/* One matrix as a part of a random product:
 *     W (a x b)  ~  scale (A o MA)(B o MB),    A a x n, B n x b with entries U(-1, 1).
 * What a ticket of a whole model is made of, for those who study it. */

/* Which side of W is dealt out in blocks of units: entries get n / (columns or rows) items. */
typedef enum pare_fit_side { PARE_FIT_COLUMNS, PARE_FIT_ROWS, PARE_FIT_SMALLER } pare_fit_side;

typedef struct pare_fit_opts {
    uint64_t seed, left, right; /* of the source; streams of A and of B, which differ */
    size_t hidden;              /* n */
    double scale;               /* a power of two; 1: as in the theorems */
    pare_fit_side side;
    bool best;       /* donors and units where they are needed; false: equal blocks (Otsuka 2025) */
    unsigned donors; /* of `best`: bits that the rows of a column share; time doubles with each;
                        0: 6 to 12, fewer for more rows */
} pare_fit_opts;
#define PARE_FIT_OPTS_DEFAULT                                                                      \
    {                                                                                              \
        .left = 1, .right = 2, .scale = 1                                                          \
    }

/* out = scale (A o MA)(B o MB), each entry rounded once or twice. PARE_ERR_INPUT: fewer units than
 * blocks, an entry of 2^11 scales or more, equal streams, a scale that is not positive and finite.
 */
PARE_MUST_USE pare_status pare_ticket_fit(pare_mat *out, const pare_mat *w, const pare_fit_opts *o,
                                          const pare_exec *exec, pare_err *err);

/* ---- what is proven about a ticket ----------------------------------------------------------- */

/* A ticket, once loaded, is an ordinary model g beside its target f: the same blocks, heads that
 * pair up one by one (of any dk and dv: merged heads compute with c Wq^T Wk and Wo Wv themselves),
 * the same norms, positions and pattern. Every statement is a function of (f, g, inputs); nobody
 * asks how g was found. Norms of rows are euclidean; alpha bounds the length of every token. */

/* How a ticket is proven, and proven again by pare_verify_file. */
extern const pare_prover pare_ticket_prover;

/* ---- one softmax ---------------------------------------------------------------------------- */

/* Lemma A: sum_k |p_k - p'_k| / 2 <= tanh(r / 4) for p = softmax(l), p' = softmax(l + e),
 * r = max e - min e. */
pare_ub pare_softmax_perturbation(pare_ub range);

/* ---- one attention layer --------------------------------------------------------------------- */

/* max over tokens of |out_i - out~_i| between the attention of block b in f and in g, on the same
 * rows: heads and bo, without norms and skip. */
typedef struct pare_ticket_layer {
    pare_ub free;      /* Theorem B: all rows of length alpha, any number of tokens, any pattern of
                          the model's kind; inf where alpha is not positive and finite */
    double paper_est;  /* the printed form (needs |V_h| <= 1 and has no biases): not a bound */
    double largest_vo; /* largest |V_h| (estimate from above): 1 is what the printed form needs */
    char why[200];     /* empty, or why nothing is said */
} pare_ticket_layer;
PARE_MUST_USE pare_status pare_ticket_layer_bound(pare_ticket_layer *out, const pare_model *f,
                                                  const pare_model *g, size_t b, double alpha,
                                                  const pare_exec *exec, pare_err *err);

/* ---- blocks and models ----------------------------------------------------------------------- */

typedef struct pare_ticket_bound {
    pare_ub outputs; /* largest |f - g| of an output entry */
    pare_ub rows;    /* largest euclidean distance of a row of the stream where the head begins */
    char why[200];   /* empty, or why they are inf */
} pare_ticket_bound;
/* For the given inputs alone, with the lengths that f's own rows have there (enclosed), and
 * Theorem C in every attention layer. */
PARE_MUST_USE pare_status pare_ticket_bound_given(pare_ticket_bound *out, const pare_model *f,
                                                  const pare_model *g, const pare_inputs *set,
                                                  const pare_exec *exec, pare_err *err);
/* Length of the longest row of the set's vectors, from above; 0 for ids. */
double pare_ticket_alpha(const pare_inputs *set);

/* ---- how many units an entry needs ----------------------------------------------------------- */

/* Lemma S: with n' products of two independent U[-1, 1] an entry of size at most `reach` is met
 * within `eta` with probability at least 1 - p, whatever the entry. The least n' the lemma gives,
 * coupling included; 0: the statement is refused (eta is not above the coupling). */
typedef struct pare_ticket_need {
    size_t units;    /* 0: refused */
    double a;        /* half the width of the covered interval */
    double coupling; /* n' 2^-23 of that n', or of the n' that would do without a lattice */
    size_t density;  /* n' for weights with a density: no lattice */
} pare_ticket_need;

/* Theorem 3, mended: one layer of H heads, d1 -> d2, tokens of length alpha, |V_h| <= omega,
 * entries of G_h and V_h at most rq, rv: error at most eps with probability 1 - p. */
typedef struct pare_ticket_layer_size {
    size_t heads, d1, d2;
    double alpha, omega, rq, rv;
    size_t dk, dv; /* ranks of G_h and V_h, for the lower bounds; 0: any */
} pare_ticket_layer_size;
typedef struct pare_ticket_plan {
    double eta_q, eta_v;     /* what the entries must be met within */
    pare_ticket_need q, v;   /* units an entry */
    double n_k, n_v;         /* hidden units of a head: proven; 0: refused */
    double paper_k, paper_v; /* the printed widths with C = 1: no statement, for comparison */
    double least_k, least_v; /* what no construction can do without, at these errors */
} pare_ticket_plan;

typedef struct pare_ticket_goal {
    double alpha; /* length of the rows of an input; not read of models that take ids */
    double eps;   /* error that is allowed ... */
    double p;     /* ... but for this probability */
} pare_ticket_goal;

/* The same for every attention layer of a model, each by itself: the length of the rows that enter
 * a layer follows from goal->alpha. out: nblocks. `why` is empty, or why nothing is said of the
 * model; out[b].why: which hypothesis of Theorem 3 a layer fails. */
typedef struct pare_ticket_layer_plan {
    bool there; /* the block has attention */
    pare_ticket_layer_size size;
    pare_ticket_plan plan;
    char why[200];
} pare_ticket_layer_plan;
PARE_MUST_USE pare_status pare_ticket_plan_layers(pare_ticket_layer_plan *out, char why[200],
                                                  const pare_model *f, const pare_ticket_goal *goal,
                                                  const pare_exec *exec, pare_err *err);

/* The whole target: one common eta for all entries of all blocks so that Theorem B's recursion with
 * |E| <= sqrt(ab) eta ends at goal->eps for all tokens of length goal->alpha. 0: there is none
 * above 2^-60, or `why` says what is in the way. */
typedef struct pare_ticket_blocks_plan {
    double eta;
    size_t entries; /* over which the failure p is split */
    pare_ticket_need need;
    char why[200];
} pare_ticket_blocks_plan;
PARE_MUST_USE pare_status pare_ticket_plan_blocks(pare_ticket_blocks_plan *out, const pare_model *f,
                                                  const pare_ticket_goal *goal,
                                                  const pare_exec *exec, pare_err *err);

/* ---- subset sums ----------------------------------------------------------------------------- */

/* Which of these integers add up closest to a target?
 *
 *   const int64_t x[] = {30, -7, 12, 55, 8};
 *   uint64_t mask[1];
 *   pare_subset best;
 *   pare_status st = pare_subset_sum(&best, mask, x, 5, 43, NULL, &err);
 *   // 30 - 7 + 12 + 8: best.error == 0, best.proof == PARE_SUBSET_BEST, mask[0] == 0x17
 *
 * Everything is in exact integers: same answer on every machine, and an answer that calls itself
 * the best one is the best one. Up to 26 items the search is always exact. */

#define PARE_SUBSET_ITEMS  4096               /* at most */
#define PARE_SUBSET_ITEM   ((int64_t)1 << 49) /* |x| at most */
#define PARE_SUBSET_TARGET ((int64_t)1 << 60) /* |target| at most */
#define PARE_SUBSET_EXACT  60                 /* most items of an exact search */

typedef enum pare_subset_proof {
    PARE_SUBSET_FOUND,   /* by a heuristic: another subset may be closer */
    PARE_SUBSET_REACHED, /* |error| <= tolerance, which is all that was asked */
    PARE_SUBSET_BEST     /* no subset is closer */
} pare_subset_proof;

typedef struct pare_subset {
    int64_t error; /* sum of the chosen items - target */
    pare_subset_proof proof;
} pare_subset;

typedef struct pare_subset_opts {
    int64_t tolerance; /* good enough; heuristics end there, an exact search over more than 40 items
                          as well. 0: as close as the method gets */
    bool exact;        /* search until no subset can be closer: time 2^(n/2), memory 2^(n/4) above
                          40 items; refused above PARE_SUBSET_EXACT */
} pare_subset_opts;
#define PARE_SUBSET_OPTS_DEFAULT                                                                   \
    {                                                                                              \
        .tolerance = 0                                                                             \
    }

/* The subset of x (n numbers) whose sum is nearest to the target. Number k is in it where bit k %
 * 64 of mask[k / 64] is set; mask has (n + 63) / 64 words. `o` may be NULL. */
PARE_MUST_USE pare_status pare_subset_sum(pare_subset *out, uint64_t *mask, const int64_t *x,
                                          size_t n, int64_t target, const pare_subset_opts *o,
                                          pare_err *err);
#endif
