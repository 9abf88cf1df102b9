/* pare/width.h - a narrower model: fewer dimensions of the residual stream, of queries and keys, of
 * the hidden layers. What the cut costs is proven afterwards, on the model as it is written
 * (pare_publish with one of pare_width_provers).
 *
 *   auto      the practical one: least squares from layer to layer in the metric of the gradients
 *   exact     the rank of the data: the same outputs with fewer dimensions
 *   lowrank   the stream in affine subspaces of `dim` dimensions
 *   leverage  lowrank, and `ffn_dim` hidden units that stand for all
 *   cluster   `dim` clusters of nodes; nets of ReLU without skips
 *   jl        queries and keys by random projection, best of `trials` draws
 *   qk        queries and keys by the best bilinear form of rank `qk_dim` in the metric of the data
 *
 * for models with norms, positions and ids (language models, encoders):
 *   auto      queries and keys, values and hidden units go where it costs least, what is left is
 *             fitted again
 *   qk        queries and keys alone (qk_dim, keep), in the metric of the outputs; rotary ones in
 *             whole planes
 *   slice     the stream in its first `dim` principal directions on the data
 *   svd       no data: singular values of the maps that read the stream, of the products Q K and
 *             V O (v_dim), hidden units by their norms
 *
 * docs/width.md says when to use which. */
#ifndef PARE_WIDTH_H
#define PARE_WIDTH_H
#include <pare/cert.h>
#include <pare/train.h>

typedef enum pare_width_method {
    PARE_WIDTH_EXACT,
    PARE_WIDTH_LOWRANK,
    PARE_WIDTH_LEVERAGE,
    PARE_WIDTH_CLUSTER,
    PARE_WIDTH_JL,
    PARE_WIDTH_QK,
    PARE_WIDTH_AUTO,
    PARE_WIDTH_SLICE,
    PARE_WIDTH_SVD,
    PARE_WIDTH_METHODS /* how many there are */
} pare_width_method;
/* "exact", ..., NULL: in the order of the enum. */
extern const char *const pare_width_method_names[];

typedef enum pare_width_rows {                   /* how hidden units are chosen */
                               PARE_ROWS_GREEDY, /* by removal, with a guarantee for all nodes */
                               PARE_ROWS_SAMPLE  /* by leverage scores, at random; the best of
                                                    `trials` */
} pare_width_rows;
extern const char *const pare_width_rows_names[]; /* in the order of the enum, then NULL */

/* cluster: how the first layer is mapped: by the least dimension that keeps clusters apart, or by a
 * random one (Johnson-Lindenstrauss). */
typedef enum pare_width_start { PARE_START_RANK, PARE_START_JL } pare_width_start;
extern const char *const pare_width_start_names[]; /* in the order of the enum, then NULL */

/* cluster: how units tell clusters apart: by the largest margin, or as Shirzad 2024
 * prints it, corrected. */
typedef enum pare_width_rule { PARE_RULE_MARGIN, PARE_RULE_PAPER } pare_width_rule;
extern const char *const pare_width_rule_names[]; /* in the order of the enum, then NULL */

typedef enum pare_width_basis {
    PARE_BASIS_PCA,
    PARE_BASIS_MINMAX, /* a smaller largest residual, a larger mean one */
    PARE_BASIS_SHARED  /* slice: one for all places of the stream, so that skips stay identities */
} pare_width_basis;
extern const char *const pare_width_basis_names[]; /* in the order of the enum, then NULL */

/* 0 leaves a dimension as it is (where the method does not choose it). */
typedef struct pare_width_opts {
    pare_width_method method;
    size_t dim, qk_dim, ffn_dim;
    size_t v_dim;  /* svd, auto of text */
    size_t tokens; /* slice, auto and qk of text: no more than that many of each input are looked
                      at; 0: all */
    bool untie;    /* slice, svd: a tied head becomes a matrix of its own */
    /* auto of text: only shapes that the config of a Hugging Face model can express: hidden units
     * alone, as many in every layer, and no bias where there was none. */
    bool standard;
    /* When dim (stream methods) or qk_dim (jl, qk) is 0: the largest one with which at most this
     * share of the parameters is left, or the smallest one with which no output moves by more than
     * max_move in f64. 0 and inf: not asked. */
    double keep, max_move;
    size_t trials;          /* jl, cluster, rows `sample`: random draws; the best one is taken */
    uint64_t seed;          /* of the draws */
    pare_width_rows rows;   /* leverage, lowrank with ffn_dim: how hidden units are chosen */
    pare_width_start start; /* cluster */
    pare_width_rule rule;   /* cluster */
    pare_width_basis basis; /* which directions of the stream stay */
    pare_dtype dtype; /* of the weights; 0: as pare_model_round rounds to those of the input */
} pare_width_opts;

#define PARE_WIDTH_OPTS_DEFAULT                                                                    \
    {                                                                                              \
        .method = PARE_WIDTH_AUTO, .max_move = __builtin_inf(), .trials = 100                      \
    }

/* One place of the stream after the cut: h0, z0, h1, z1, ... */
typedef struct pare_width_point {
    char name[24];
    size_t before, after;
    double residual_est; /* largest distance of a row from its subspace; nan: none was made */
} pare_width_point;

typedef struct pare_width_head {
    size_t layer, head, before, after; /* dimensions of queries and keys */
    double scores_est;                 /* largest half-oscillation of the score error in a row */
    /* qk: the root mean square error in the metric of the data, and the least that any form of this
     * rank has (Eckart-Young); nan elsewhere. */
    double objective_est, least_est;
} pare_width_head;

typedef struct pare_width_hidden {
    size_t layer, before, after;
    double spread_est; /* |Q_S^+|_2: an error in the hidden units grows by at most sqrt(1 + its
                          square) */
    double limit_est;  /* what the choice guarantees for it */
    double units_est;  /* leverage: draws the sampling theorem asks for; nan: greedy */
} pare_width_hidden;

typedef struct pare_width_report {
    size_t dim, qk_dim, ffn_dim; /* largest after the cut */
    size_t npoints, nheads, nhidden;
    pare_width_point *points;
    pare_width_head *heads;
    pare_width_hidden *hidden;
} pare_width_report;

/* Whether this cut is one of a language model or an encoder: any number of inputs to fit it to, its
 * own options. slice and svd always are; auto and qk are where the model has ids, positions or
 * norms that do not fold. */
bool pare_width_is_text(const pare_model *m, pare_width_method method);

/* `data`: one graph (or one sequence of vectors) with its features; for slice, auto and qk of text
 * any number of inputs, for svd none is needed (NULL). The report's lists live in the output
 * model's arena. PARE_ERR_INPUT names the layer that the method does not cover; `in` is not changed
 * and need not outlive *out. Caller frees *out with pare_model_free. */
PARE_MUST_USE pare_status pare_width(pare_model **out, pare_width_report *report,
                                     const pare_model *in, const pare_inputs *data,
                                     const pare_width_opts *opts, const pare_exec *exec,
                                     pare_err *err);

/* ---- distillation ---------------------------------------------------------------------------- */

typedef struct pare_distill_opts {
    const pare_model *teacher; /* pare_reduce: the model before the cut, whatever is here */
    uint64_t epochs;
    double lr, weight; /* loss = (1 - weight) the task's + weight KL(teacher || cut), all nodes */
    uint64_t seed;
} pare_distill_opts;

#define PARE_DISTILL_OPTS_DEFAULT                                                                  \
    {                                                                                              \
        .lr = 0.02, .weight = 0.5                                                                  \
    }

/* Trains the cut model to predict what its teacher does. AdamW without decay, a short warm-up,
 * half a cosine, gradients clipped to 1; *out (freed with pare_model_free) is the model of the
 * epoch with the best validation score, in f32. */
PARE_MUST_USE pare_status pare_width_distill(pare_model **out, pare_train_result *result,
                                             const pare_model *cut, const pare_task *task,
                                             const pare_distill_opts *o, const pare_exec *exec,
                                             pare_err *err);

/* ---- what the Johnson-Lindenstrauss lemma asks for ------------------------------------------- */

/* The least d such that one draw keeps |q.k - q^.k^| <= eps |q||k| for `pairs` pairs at once with
 * probability 1 - delta: d >= 2 ln(2 pairs / delta) / (eps - ln(1 + eps)). 0 < delta <= 1: 1 says
 * that a draw exists, no more. */
size_t pare_jl_dim(double pairs, double eps, double delta);

/* ---- the theorems with one norm for everything ----------------------------------------------- */

/* Plain nets (one head, no skips, norms or biases, scores not scaled): every map has norm at most
 * beta, every row of the stream norm at most root_alpha. How far the last rows are at most.
 * Theorem 3.3: every score is off by at most eps |q||k|. Linear: c2 (c1^L - 1) / (c1 - 1) eps with
 * c1 = b^3 + b^5 s (2 s + 1), c2 = b^5 s (s + 1)^2, true while that is at most 1. */
pare_ub pare_jl_bound(pare_ub beta, pare_ub root_alpha, size_t layers, pare_ub eps);
/* Theorem 4.2: rows are within eps (beta eps after the first layer) of their subspaces. */
pare_ub pare_lowrank_bound(pare_ub beta, pare_ub root_alpha, size_t layers, pare_ub eps);

/* The same two as Shirzad 2024 prints them, with a = root_alpha^2. Both are exceeded inside their
 * hypotheses (docs/errata.md): never a bound.
 * Theorem 3.3: c2 (c1^L - 1) / (c1 - 1) eps with c1 = b^3 + 8 b a + 4 b^2 sqrt(a) and
 * c2 = 4 b^2 (a sqrt(a) + 2 a + sqrt(a)).
 * Theorem 4.2, last line of C.3: e' = b eps + b^3 (1 + (8 a + b sqrt(a))) e, from e = eps. */
double pare_jl_printed(double beta, double root_alpha, size_t layers, double eps);
double pare_lowrank_printed(double beta, double root_alpha, size_t layers, double eps);

/* ---- proving --------------------------------------------------------------------------------- */

/* What pare_publish_opts.ask may hold: the bound over all graphs that differ from the data in the
 * features of one node, which then are another row of the data; for data with many different rows
 * only the `rows` most frequent of them (0: all). */
pare_claim pare_width_edits(size_t rows);
/* One for each method ("width.exact", ...), in the order of the enum. */
extern const pare_prover pare_width_provers[PARE_WIDTH_METHODS];

/* ---- the hypotheses of the theorems ---------------------------------------------------------- */

/* What the theorems about width find in a model on its data: looked at, not cut.
 *
 * Everything here is an estimate in f64. It explains why a cut is cheap or expensive; no bound
 * rests on it. */

typedef struct pare_width_facts_opts {
    size_t dim;        /* the width that is thought of; 0: an eighth of the stream */
    size_t clusters;   /* at most; 0: dim */
    double eps, delta; /* of the Johnson-Lindenstrauss lemma */
} pare_width_facts_opts;
#define PARE_WIDTH_FACTS_OPTS_DEFAULT                                                              \
    {                                                                                              \
        .eps = 0.5, .delta = 0.01                                                                  \
    }

/* Theorem 4.2: one place of the stream. */
typedef struct pare_width_facts_point {
    char name[24];       /* h0, z0, h1, ... */
    size_t width;        /* as it is */
    double residual_est; /* largest distance of a row from an affine subspace of `dim` dimensions */
} pare_width_facts_point;

/* The bilinear form of a head in the metric of the data: how many dimensions its scores need. */
typedef struct pare_width_facts_head {
    size_t layer, head;
    size_t dim; /* of queries and keys */
    size_t n;
    double *
        form_est; /* n singular values, descending; how much each dimension contributes to the scores */
    size_t needed; /* dimensions after which less than 1 % of the scores is lost */
} pare_width_facts_head;

typedef struct pare_width_facts_layer {
    /* what stands in the way of the plain nets of the theorems */
    bool skip, bias, scaled, relu;
    size_t nheads;
    /* Theorem 3.3: different rows of the stream, different pairs among the visible ones, and the
     * dimension that the lemma asks for, all heads at once */
    size_t rows, pairs, jl_dim;
    size_t qk_dim; /* largest of the heads */
    /* Proposition 4.3 at rank `rank`: hidden units, the largest leverage score among them (rank /
     * units would be even), and the draws that sampling asks for */
    size_t units, rank;
    double leverage_est, draws;
    /* Theorem 4.4 with at most `clusters` clusters of z: radius and separation must be below 1 */
    size_t clusters;
    double radius_est, separation_est, least_est, most_est; /* norms of the centres */
} pare_width_facts_layer;

typedef struct pare_width_facts {
    size_t dim;
    double eps, delta;
    size_t nlayers, npoints, nheads;
    pare_width_facts_layer *layers;
    pare_width_facts_point *points;
    pare_width_facts_head *heads;
} pare_width_facts;
#endif
