/* pare/ticket_bounds.h - what is proven about a ticket.
 *
 * A ticket, once loaded, is an ordinary model g beside its target f: the same blocks, heads that
 * pair up one by one (of any dk and dv: merged heads compute with c Wq^T Wk and Wo Wv themselves),
 * the same norms, positions and pattern. Every statement is a function of (f, g, inputs); nobody
 * asks how g was found. Norms of rows are euclidean; alpha bounds the length of every token. */
#ifndef PARE_TICKET_BOUNDS_H
#define PARE_TICKET_BOUNDS_H
#include <pare/cert.h>

/* How a ticket is published (pare_publish) and how `pare verify` proves it again. */
extern const pare_prover pare_ticket_prover;

/* ---- one softmax (lemma_a.c) ----------------------------------------------------------------- */

/* Lemma A: sum_k |p_k - p'_k| / 2 <= tanh(r / 4) for p = softmax(l), p' = softmax(l + e),
 * r = max e - min e. */
pare_ub pare_softmax_moves(pare_ub range);

/* ---- one attention layer (bound_free.c, bound_rows.c, bound_paper.c) ------------------------- */

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
/* Theorem C: the same for the rows x (n x din, one sequence) and the model's pattern (graph: the
 * completed one; else NULL), row by row into out (n). An empty row has 0 in both. */
PARE_MUST_USE pare_status pare_ticket_rows_bound(pare_ub *out, const pare_model *f,
                                                 const pare_model *g, size_t b, const pare_mat *x,
                                                 const pare_graph *graph, const pare_exec *exec,
                                                 pare_err *err);

/* ---- blocks and models (recursion.c) --------------------------------------------------------- */

typedef struct pare_ticket_bound {
    pare_ub outputs; /* largest |f - g| of an output entry */
    pare_ub rows;    /* largest euclidean distance of a row of the stream where the head begins */
    char why[200];   /* empty, or why they are inf */
} pare_ticket_bound;
/* For all inputs whose rows have length at most alpha (ids: all token sequences, alpha is not
 * read). alpha not positive and finite: nothing is said. */
PARE_MUST_USE pare_status pare_ticket_bound_free(pare_ticket_bound *out, const pare_model *f,
                                                 const pare_model *g, double alpha,
                                                 const pare_exec *exec, pare_err *err);
/* For the given inputs alone, with the lengths that f's own rows have there (enclosed), and
 * Theorem C in every attention layer. */
PARE_MUST_USE pare_status pare_ticket_bound_given(pare_ticket_bound *out, const pare_model *f,
                                                  const pare_model *g, const pare_inputs *set,
                                                  const pare_exec *exec, pare_err *err);
/* Length of the longest row of the set's vectors, from above; 0 for ids. */
double pare_ticket_alpha(const pare_inputs *set);

/* ---- how many units an entry needs (required.c) ---------------------------------------------- */

/* What a weight's generator costs: the lattice of 2^24 values is coupled to the density that the
 * lemma is about by moving n' products by less than 2^-23 each. A statement with an error at or
 * below n' 2^-23 is not proven for this generator. */
double pare_ticket_coupling(size_t units);

/* Lemma S: with n' products of two independent U[-1, 1] an entry of size at most `reach` is met
 * within `eta` with probability at least 1 - p, whatever the entry. The least n' the lemma gives,
 * coupling included; 0: the statement is refused (eta is not above the coupling). */
typedef struct pare_ticket_need {
    size_t units;    /* 0: refused */
    double a;        /* half the width of the covered interval */
    double coupling; /* n' 2^-23 of that n', or of the n' that would do without a lattice */
    size_t density;  /* n' for weights with a density: no lattice */
} pare_ticket_need;
pare_ticket_need pare_ticket_units(double eta, double p, double reach);

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
pare_ticket_plan pare_ticket_plan_layer(const pare_ticket_layer_size *s, double eps, double p);

/* The same for every attention layer of a model, each by itself: alpha is the length of the input's
 * rows (ids: not read), and each layer's own follows from it. out: nblocks. `why` is empty, or why
 * nothing is said of the model; out[b].why: which hypothesis of Theorem 3 a layer fails. */
typedef struct pare_ticket_layer_plan {
    bool there; /* the block has attention */
    pare_ticket_layer_size size;
    pare_ticket_plan plan;
    char why[200];
} pare_ticket_layer_plan;
PARE_MUST_USE pare_status pare_ticket_plan_layers(pare_ticket_layer_plan *out, char why[200],
                                                  const pare_model *f, double alpha, double eps,
                                                  double p, const pare_exec *exec, pare_err *err);

/* The whole target: one common eta for all entries of all blocks so that Theorem B's recursion with
 * |E| <= sqrt(ab) eta ends at eps for all tokens of length alpha. 0: there is none above 2^-60, or
 * `why` says what is in the way. */
typedef struct pare_ticket_blocks_plan {
    double eta;
    size_t entries; /* over which the failure p is split */
    pare_ticket_need need;
    char why[200];
} pare_ticket_blocks_plan;
PARE_MUST_USE pare_status pare_ticket_plan_blocks(pare_ticket_blocks_plan *out, const pare_model *f,
                                                  double alpha, double eps, double p,
                                                  const pare_exec *exec, pare_err *err);

/* ---- what no construction can do without (counting.c) ---------------------------------------- */

/* Masks of n units over an a x b matrix of rank at most k: 2^(n (a + b)) pairs must cover a cube of
 * side 2 r in as many dimensions as such matrices have with balls of radius eta, at one source and
 * scale: n >= (a k + k b - k^2) log2(r / eta) / (a + b). Full rank: k = min(a, b). */
double pare_ticket_least_units(size_t a, size_t b, size_t rank, double r, double eta);
#endif
