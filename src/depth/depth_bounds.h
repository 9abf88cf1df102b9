/* depth_bounds.h - what is proven about cuts in depth. Private to this folder.
 *
 * Every statement is a function of (model before f, model after g, domain): the writer of a
 * certificate and its verifier call the same provers on the pair of models and never look at the
 * options by which g was made. A hypothesis that fails is no error: the bound is then +inf and
 * `why` says which sublayer spoils it. All figures are proven with the rounding of their own
 * evaluation; none is nan. Letters and lemmas: docs/notation.md, and the tops of the .c files.
 *
 * Which file proves what:
 *     theorem1_recurrence.c   Theorem 1: any replaced layers, sublayer by sublayer, for all inputs
 *     theorem2_parallel.c     Theorem 2: one-layer collapses with all heads side by side
 *     collapse_chain.c        the other one-layer collapses, by Theorem 1 on a chain
 *     apriori_bound.c         the least of these
 *     injected_error.c        what one replaced layer injects behind a layer or RMS norm
 *     rank_collapse.c         how fast rows become equal without skips
 *     lower_bound.c           what no one-layer network of a kind can do better
 *     paper_bound.c           the bound as printed, which is not sound
 *     certify_theorems.c      writes these into a certificate; verify.c proves a certificate
 * one_layer.c and replacement.c make the models; they prove nothing. */
#ifndef PARE_SRC_DEPTH_DEPTH_BOUNDS_H
#define PARE_SRC_DEPTH_DEPTH_BOUNDS_H
#include <pare/depth.h>

/* Norm of a token (a row): its largest entry, or its euclidean length. |X| is the largest over the
 * tokens; D(X) the largest norm of a difference of two tokens of one input. */
typedef enum depth_norm { DEPTH_NORM_INF, DEPTH_NORM_TWO, DEPTH_NORMS } depth_norm;

/* ---- domains --------------------------------------------------------------------------------- */

/* Which inputs a statement is about: all inputs of vectors whose entries are at most phi0 and in
 * which two tokens differ by at most diam0 in any entry (diam0 < 0: 2 phi0), any number of tokens
 * the model takes; or, for a model that takes ids, all sequences over its vocabulary (phi0 and
 * diam0 are not read). */
typedef struct depth_domain {
    double phi0, diam0;
} depth_domain;
/* The domain in words, as a certificate prints it ("all token sequences"; "all inputs with entries
 * at most 1, tokens at most 2 apart"); in the arena, NULL when memory is out. */
const char *depth_domain_words(pare_arena *a, const pare_model *f, const depth_domain *d);

/* ---- Theorem 1: sublayer by sublayer (theorem1_recurrence.c, apriori_bound.c) ---------------- */

typedef struct depth_bound {
    pare_ub bound; /* on the largest |f - g| over the output's entries: the least of all */
    pare_ub by[DEPTH_NORMS]; /* the same from the recurrence in one norm alone */
    pare_ub difference;      /* two outputs: on |(f_1 - f_0) - (g_1 - g_0)|; else +inf */
    const char *theorem;     /* "recurrence", "parallel", "parallel+uniform", "vocabulary", ... */
    char why[200];           /* empty, or why the bound is +inf */
} depth_bound;
/* All of it +inf; why may be NULL. */
depth_bound depth_nothing_proven(const char *theorem, const char *why);

/* f and g have the same blocks but for what their attentions are (any kinds), or g has one block
 * and is a one-layer collapse of f that is known (recognize_collapse.c). Norms must be affine
 * (none, batch, mean): else the bound is +inf. For ids the domain is all token sequences. PARE_OK
 * also where nothing is proven; other statuses are memory and non-finite weights. */
PARE_MUST_USE pare_status depth_apriori(depth_bound *out, const pare_model *f, const pare_model *g,
                                        const depth_domain *d, const pare_exec *exec,
                                        pare_err *err);

/* The error that replacing the attention of block b injects at its own sublayer (before skip and
 * later norms), for every input whatsoever; finite also behind layer and rms norms, whose output
 * is bounded: |branch_f(Z) - branch_g(Z)| over all Z the norm can give, in the euclidean norm of a
 * token. +inf without such a norm. 0 where nothing was replaced. */
PARE_MUST_USE pare_status depth_injected(pare_ub *out, const pare_model *f, const pare_model *g,
                                         size_t b, const pare_exec *exec, pare_err *err);

/* ---- one-layer collapses (one_layer.c, recognize_collapse.c) --------------------------------- */

typedef struct one_layer_opts {
    pare_collapse kind;
    size_t keep;              /* keep, keepbias, uniform+keep: which block */
    const pare_inputs *calib; /* keepbias, rankone: inputs whose means are taken */
    const pare_exec *exec;
    pare_dtype dtype; /* of the weights; 0: as in the input */
} one_layer_opts;

/* One attention layer in the place of all of in's: an ordinary model that owns its new weights
 * (others are shared as by pare_model_clone). PARE_ERR_INPUT names what is in the way unless `in`
 * is a pure residual attention network: exact attention (or none) in every block, no FFN, no norms
 * in the blocks, identity skips, not rotary; full attention except for identity, keep, parallel,
 * and umix. Embedding and top are kept as they are. Weights are stored in the type of the old ones;
 * `keep` of a one-block model is that model, bit for bit. */
PARE_MUST_USE pare_status collapse_to_one_layer(pare_model **out, const pare_model *in,
                                                const one_layer_opts *opts, pare_err *err);

/* ---- rank collapse (rank_collapse.c) --------------------------------------------------------- */

/* Lemma R: an upper bound on D(output of the last block) of a network without skips (attention
 * with affine norms only), as a natural logarithm, since the bound itself soon underflows; +inf
 * with why where the lemma does not apply (a mask, a skip, an FFN, a layer or rms norm). */
typedef struct depth_rank {
    double log_bound[DEPTH_NORMS]; /* of D after the last block, by norm; may be -inf */
    pare_ub input;                 /* D of the input, in the largest entry */
    pare_ub bound;                 /* least of both, in the largest entry: e^log, rounded up */
    bool collapses;                /* bound < what the input could have */
    char why[200];
} depth_rank;
PARE_MUST_USE pare_status depth_rank_collapse(depth_rank *out, const pare_model *f,
                                              const depth_domain *d, const pare_exec *exec,
                                              pare_err *err);

/* ---- the printed formulas (paper_bound.c) ---------------------------------------------------- */

/* Theorem D.1 as printed, for the report's "paper_not_sound". Never a bound. */
typedef struct depth_paper {
    double eta, phi0, eps, delta, k, a; /* largest entry; eps_L; delta; C; A */
    bool holds;          /* its hypotheses: eta <= 1, eps < 1, C < .5, 2 H eps < .5 */
    double bound, claim; /* (1 + C + ... + C^L) delta; 2 A / L */
} depth_paper;
depth_paper depth_paper_of(double eta, double phi0, size_t heads, size_t layers);
/* eta, heads (most in a block) and layers of a model. */
depth_paper depth_paper_model(const pare_model *f, double phi0);

/* ---- what no one-layer network can do (lower_bound.c) ---------------------------------------- */

/* A proven lower bound on sup |f - g| over |x| <= box for EVERY bias-free one-layer residual
 * network g of any number of heads, where f is the residual network of one head a layer, width 1,
 * two tokens, (wq wk, wv) per layer - and for every replication of it. By weak duality from a
 * signed measure on four points of a grid; 0 when nothing is proven. */
typedef struct depth_lower {
    double lb; /* proven */
} depth_lower;
PARE_MUST_USE pare_status depth_lower_bound(depth_lower *out, const double (*layers)[2],
                                            size_t nlayers, double box, size_t grid, pare_err *err);
/* The same for a stored model f, on inputs of two tokens of the domain: how far EVERY one-layer
 * network of softmax heads and an identity skip, without biases, is from it, whatever its heads.
 * Applies to bare residual attention networks without biases, full attention, of up to 64 layers
 * and 64 dimensions; g: the cut that is looked at, one layer of that class. */
bool depth_lower_applies(const pare_model *f, const pare_model *g);
PARE_MUST_USE pare_status depth_lower_model(depth_lower *out, const pare_model *f,
                                            const depth_domain *d, const pare_exec *exec,
                                            pare_err *err);
#endif
