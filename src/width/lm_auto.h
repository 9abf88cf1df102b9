/* lm_auto.h - pieces of the best cut of models with norms (lm_auto.c says what it does). */
#ifndef PARE_SRC_WIDTH_LM_AUTO_H
#define PARE_SRC_WIDTH_LM_AUTO_H
#include "lm.h"
#include "eliminate.h"

/* ---- lm_gradient_metric.c ---- */

/* One matrix for each place, mean over the tokens; at most `most` tokens of an input (0: all). */
pare_mat *lm_gradient_metric(pare_work *w, const lm *m, const pare_inputs *data, size_t most,
                             uint64_t seed);

/* ---- lm_values.c ---- */

/* The pooled values of a sublayer, turned so that directions can go one by one. */
typedef struct value_directions {
    ridge_fit fit; /* in the turned inputs */
    bundles b;     /* one for each group of keys and direction: as many columns as heads */
    pare_mat *to;  /* of each group: v' = to v */
    pare_mat all;  /* of all inputs: f' = all f */
} value_directions;
value_directions value_directions_of(pare_work *w, const lm_attn *a, const ridge_fit *r,
                                     const pare_mat *root);
/* What is left of the sublayer: the bundles that are not gone, with a map (dout x (their columns
 * + 1)) behind them. */
lm_attn attn_without_values(pare_work *w, const lm_attn *a, const value_directions *t,
                            const bool *gone, const pare_mat *map);
pare_mat concat_wo(pare_work *w, const lm_attn *a); /* Wo of all heads side by side */
/* The directions of group g among inputs of which each head has to->rows, beginning at[h]: k = H^-1
 * and v = G^1/2 W of all. to = E^T B^1/2 and back = B^-1/2 E, its inverse. */
void group_directions(pare_work *w, pare_mat *to, pare_mat *back, const lm_attn *a, size_t g,
                      const size_t *at, const pare_mat *k, const pare_mat *v);
void put_block(pare_mat *big, size_t at, const pare_mat *block); /* on the diagonal */

/* ---- lm_refit.c ---- */

typedef struct removal {
    bool *gone;   /* of each bundle */
    size_t *kept; /* columns, ascending */
    size_t n;
} removal;
/* The bundles that cost least go, `gone` of them; or those that are named. */
removal choose_removals(pare_work *w, const ridge_fit *r, const pare_mat *root, const bundles *b,
                        size_t gone);
removal removal_of(pare_work *w, const bundles *b, bool *gone, size_t inputs);

/* ---- lm_attention_stats.c ---- */

typedef struct attention_stats { /* means over the queries that were looked at */
    pare_mat first;              /* dk x dk: C_i^T G C_i without the scale (lm_keys.c) */
    pare_mat spread;             /* dk x dk: covariance of the keys by attention weight */
    double moves;                /* sum_j a_ij^2 |Wo (v_j - mean_i)|^2 in the metric */
    size_t queries;
} attention_stats;
/* root: G^1/2 of the place behind; moment (din inputs) gets the rows that queries read. */
attention_stats *lm_attention_stats(pare_work *w, const lm *m, const lm_attn *a, const lm_rows *r,
                                    const pare_mat *root, moments *moment);

/* ---- lm_keys.c ---- */

/* Queries as a map that reads keys; what does not turn is turned to its own directions. */
typedef struct key_directions {
    ridge_fit fit; /* inputs: the keys of every head, side by side */
    pare_mat root; /* (din + 1)^2: the metric of what queries read */
    bundles b;     /* of each group: planes, then what stands still; as many columns as heads */
    pare_mat *to;  /* of each group: k' = to k, of what stands still */
} key_directions;
key_directions key_directions_of(pare_work *w, const lm *m, const lm_attn *a, const lm_rows *rows,
                                 const pare_mat *root);
lm_attn attn_without_keys(pare_work *w, const lm *m, const lm_attn *a, const key_directions *t,
                          const removal *c);
/* So that no group has more than that many dimensions. */
removal choose_keys_within(pare_work *w, const lm_attn *a, const key_directions *t, size_t most);
/* Numbers that go with the n bundles of an order, one after the other. */
void key_parameters(size_t *size, const lm_attn *a, const key_directions *t, const size_t *order,
                    size_t n);

/* ---- lm_budget.c ---- */

typedef struct part_cost { /* hidden units of a layer, values or keys of its heads */
    size_t of;             /* how many there are */
    size_t n;              /* that may go */
    double *cost;          /* n: of the next one to go */
    size_t *size;          /* n: parameters that it takes with it */
    size_t gone;           /* how many go */
} part_cost;
/* Settles `gone` until `parameters` are gone, or nothing is left that may go; how many are. */
size_t allocate_removals(part_cost *p, size_t parts, size_t parameters);

/* ---- the two ways through the model ---- */

enum { VALUES, UNITS, KEYS, PARTS };

typedef struct prune_pass {
    pare_work *w;
    const lm *m;
    const pare_mat *metric; /* of each place */
    part_cost *parts;       /* PARTS for each block */
    size_t qk_dim;          /* that was asked for; 0: parts say how many keys go */
    bool fit;               /* last maps are fitted again */
    lm_rows large, small;   /* small: of the model as it is cut */
    bool changed;           /* they differ from here on */
    lm_out *out;
} prune_pass;

/* lm_removal_costs.c: what every part would cost, on the rows of the large model. */
void lm_removal_costs(prune_pass *p);
/* G^1/2 of a place. */
pare_mat metric_root_at(prune_pass *p, size_t place);
/* The fit of a sublayer's last map. missed: what the outputs miss; NULL: nothing. */
ridge_fit attn_fit(pare_work *w, const lm_attn *a, const pare_mat *pooled, const pare_mat *missed);
ridge_fit ffn_fit(pare_work *w, const lm_ffn *f, const pare_mat *x, const pare_mat *missed);
/* The hidden units of rows [i, i + LM_CHUNK) of x, the stream before the sublayer. */
enum { LM_CHUNK = 1024 };
pare_mat hidden_rows(pare_work *w, const lm_ffn *f, const pare_mat *x, size_t i);

/* lm_refit.c: the cut, block by block. */
void lm_refit(prune_pass *p);
#endif
