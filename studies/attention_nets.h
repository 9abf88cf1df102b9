/* attention_nets.h - the networks of Rank collapse 2025, made in memory: attention with or without
 * skips, no feed-forward parts, no norms, tokens are vectors. */
#ifndef PARE_STUDIES_ATTENTION_NETS_H
#define PARE_STUDIES_ATTENTION_NETS_H
#include <pare/run.h>

typedef enum san_draw {
    SAN_EVEN,   /* uniform in [-size, size] */
    SAN_NORMAL, /* mean 0, standard deviation `size` */
    SAN_SAME    /* all are `size` */
} san_draw;

typedef struct san_shape {
    size_t layers, heads, dim;
    double scale;        /* of the scores */
    double size, values; /* of Wq and Wk; of Wv (0: size) */
    san_draw draw;
    bool no_skip;
    bool causal;
    const double *gains; /* a factor of each layer's weights; NULL: 1 */
} san_shape;

/* Heads of dim x dim with a Wo that adds them up. Weights in f64, drawn layer by layer and head by
 * head: Wq, Wk, Wv. Caller frees with pare_model_free. */
PARE_MUST_USE pare_status san_new(pare_model **out, const san_shape *s, pare_rng *rng,
                                  pare_err *err);
/* The same network with every Wq, Wk, Wv times `by` (queries, keys) and `values`. */
PARE_MUST_USE pare_status san_scaled(pare_model **out, const pare_model *in, double by,
                                     double values, pare_err *err);

/* n inputs of `tokens` rows in the arena: entries even in [-1, 1] or standard normal, times
 * `spread`, plus `offset` (a row, or NULL). */
typedef struct san_tokens {
    size_t n, tokens, dim;
    bool normal;
    double spread;
    const double *offset;
} san_tokens;
PARE_MUST_USE pare_status san_inputs(pare_inputs *out, pare_arena *a, const san_tokens *t,
                                     pare_rng *rng, pare_err *err);
/* Inputs to look at (t.n of them) and `fit` others of the same kind to fit to. */
typedef struct san_pair {
    pare_inputs heldout, fit;
} san_pair;
PARE_MUST_USE pare_status san_pairs(san_pair *out, pare_arena *a, san_tokens t, size_t fit,
                                    pare_rng *rng, pare_err *err);
/* Outputs of a model on all inputs, one after another, in the arena; *n numbers. */
PARE_MUST_USE pare_status san_answers(double **out, size_t *n, pare_arena *a, const pare_model *m,
                                      const pare_inputs *in, pare_err *err);
double san_largest(const double *a, const double *b, size_t n);  /* |a - b|; b may be NULL */
double san_distance(const double *a, const double *b, size_t n); /* |a - b|_2 */
#endif
