/* lm_auto.h - the parts of the best cut of models with norms (lm_auto.c says how they work
 * together). "Removed" inputs are hidden units, directions of values, or directions of keys. */
#ifndef PARE_SRC_WIDTH_LM_AUTO_H
#define PARE_SRC_WIDTH_LM_AUTO_H
#include "eliminate.h"
#include "lm.h"

/* ---- the metric (gradient_metric.c) ---- */

/* One matrix for each point of the stream, the mean over the tokens; at most `max_tokens` tokens of
 * an input (0: all). */
pare_mat *lm_gradient_metric(pare_work *w, const lm *m, const pare_inputs *data, size_t max_tokens,
                             uint64_t seed);

/* ---- directions of values (lm_values.c) ---- */

/* The pooled values of a sublayer in a basis whose directions can be removed one by one. */
typedef struct value_directions {
    ridge_fit fit; /* in the new basis */
    bundles b;     /* one for each group of keys and direction: as many columns as heads */
    pare_mat *to;  /* of each group: v' = to v */
    pare_mat all;  /* of all inputs: f' = all f */
} value_directions;
value_directions value_directions_of(pare_work *w, const lm_attn *a, const ridge_fit *r,
                                     const pare_mat *root);
/* The sublayer without the removed bundles; map (dout x (columns that are left + 1)) becomes its
 * output projection and bias. */
lm_attn attn_without_values(pare_work *w, const lm_attn *a, const value_directions *t,
                            const bool *removed, const pare_mat *map);
pare_mat concat_wo(pare_work *w, const lm_attn *a); /* Wo of all heads side by side */

/* ---- directions of groups of heads, of values or of keys (lm_values.c) ---- */

/* The column at which the values (or the keys) of each head begin, and behind the last one. */
size_t *head_columns(pare_work *w, const lm_attn *a, bool keys);
/* The fit in the directions to[g] of every group (squares of their sizes, written), the columns of
 * head h from at[h] on; all: of all inputs, f' = all f. root: G^1/2. */
ridge_fit group_fit(pare_work *w, pare_mat *to, pare_mat *all, const lm_attn *a, const size_t *at,
                    const ridge_fit *r, const pare_mat *root);
/* What is removed together, heads of one group: of values every direction; of keys the rotary
 * planes, then every other dimension. */
bundles group_bundles(pare_work *w, const lm *m, const lm_attn *a, const size_t *at, bool keys);

/* ---- what is removed (lm_refit.c) ---- */

typedef struct removal {
    bool *removed; /* of each bundle */
    size_t *kept;  /* columns, ascending */
    size_t n;
} removal;
/* The `count` bundles that cost least. */
removal choose_removals(pare_work *w, const ridge_fit *r, const pare_mat *root, const bundles *b,
                        size_t count);
/* The bundles that are marked. */
removal removal_of(pare_work *w, const bundles *b, bool *removed, size_t inputs);

/* ---- statistics of attention (lm_attention_stats.c) ---- */

typedef struct attention_stats { /* of one head, means over a sample of queries */
    pare_mat query_metric;       /* dk x dk: C_i^T G C_i without the scale (lm_keys.c) */
    pare_mat key_covariance;     /* dk x dk: of the keys, weighted by attention */
    double value_moment;         /* sum_j a_ij^2 |Wo (v_j - mean_i)|^2 in the metric */
    size_t queries;
} attention_stats;
/* One for each head. root: G^1/2 behind the sublayer; the rows that queries read are added to
 * moment (din inputs). */
attention_stats *lm_attention_stats(pare_work *w, const lm *m, const lm_attn *a, const lm_rows *r,
                                    const pare_mat *root, moments *moment);

/* ---- directions of keys (lm_keys.c) ---- */

/* Queries as a linear map of keys; dimensions without rotary positions are in a basis of their
 * own. */
typedef struct key_directions {
    ridge_fit fit; /* inputs: the keys of every head, side by side */
    pare_mat root; /* (din + 1)^2: root of the second moment of what queries read */
    bundles b;     /* of each group: rotary planes, then the other directions */
    pare_mat *to;  /* of each group: k' = to k, for the dimensions without rotary positions */
} key_directions;
key_directions key_directions_of(pare_work *w, const lm *m, const lm_attn *a, const lm_rows *rows,
                                 const pare_mat *root);
lm_attn attn_without_keys(pare_work *w, const lm *m, const lm_attn *a, const key_directions *t,
                          const removal *c);
/* The cheapest removals that leave every group at most max_dim dimensions. */
removal choose_keys_within(pare_work *w, const lm_attn *a, const key_directions *t, size_t max_dim);
/* size[i]: parameters that are removed with bundle order[i]. */
void key_parameters(size_t *size, const lm_attn *a, const key_directions *t, const size_t *order,
                    size_t n);

/* ---- how many are removed where (lm_auto.c) ---- */

typedef struct part_cost { /* the hidden units of a layer, the values or the keys of its heads */
    size_t count;          /* how many there are */
    size_t n;              /* how many may be removed */
    double *cost;          /* n: of the next removal */
    size_t *size;          /* n: parameters that are removed with it */
    size_t removed;        /* how many are removed */
} part_cost;
/* Raises `removed` of the parts until `parameters` parameters are removed or nothing more may be.
 * Returns how many are. */
size_t allocate_removals(part_cost *p, size_t parts, size_t parameters);

/* ---- the two passes through the model ---- */

enum { VALUES, UNITS, KEYS, PARTS };

typedef struct prune_pass {
    pare_work *w;
    const lm *m;
    const pare_mat *metric; /* at each point of the stream */
    part_cost *parts;       /* PARTS for each block */
    size_t qk_dim;          /* that was requested; 0: parts say how many keys are removed */
    bool fit;               /* the last maps are fitted again */
    bool standard;          /* ... without biases that the model does not have */
    lm_rows large, small;   /* rows of the input model, and of the model as it is cut */
    bool changed;           /* they differ from here on */
    lm_out *out;
} prune_pass;

/* The costs of all parts, on the rows of the large model (lm_removal_costs.c). */
void lm_removal_costs(prune_pass *p);
pare_mat metric_root_at(prune_pass *p, size_t place); /* G^1/2 */
/* The fit of a sublayer's last map. residual: target minus output; NULL: 0. bias: it may have one. */
ridge_fit attn_fit(pare_work *w, const lm_attn *a, const pare_mat *pooled, const pare_mat *residual,
                   bool bias);
ridge_fit ffn_fit(pare_work *w, const lm_ffn *f, const pare_mat *x, const pare_mat *residual,
                  bool bias);
/* The hidden units of rows [i, i + LM_CHUNK) of x, the stream before the sublayer. */
enum { LM_CHUNK = 1024 };
pare_mat hidden_rows(pare_work *w, const lm_ffn *f, const pare_mat *x, size_t i);

/* The cut, block by block (lm_refit.c). */
void lm_refit(prune_pass *p);
#endif
