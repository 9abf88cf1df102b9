/* lm_auto.h - pieces of the best cut of models with norms (lm_auto.c says what it does). */
#ifndef PARE_SRC_WIDTH_LM_AUTO_H
#define PARE_SRC_WIDTH_LM_AUTO_H
#include "lm.h"
#include "eliminate.h"

/* ---- lm_gradient_metric.c ---- */

/* One matrix for each place, mean over the tokens; at most `most` tokens of an input (0: all). */
pare_mat *lm_metric(work *w, const lm *m, const pare_inputs *data, size_t most, uint64_t seed);

/* ---- lm_values.c ---- */

/* The pooled values of a sublayer, turned so that directions can go one by one. */
typedef struct values_turn {
    repair fit;   /* in the turned inputs */
    bundles b;    /* one for each group of keys and direction: as many columns as heads */
    pare_mat *to; /* of each group: v' = to v */
    pare_mat all; /* of all inputs: f' = all f */
} values_turn;
values_turn values_turned(work *w, const lm_attn *a, const repair *r, const pare_mat *root);
/* What is left of the sublayer: the bundles that are not gone, with a map (dout x (their columns
 * + 1)) behind them. */
lm_attn values_taken(work *w, const lm_attn *a, const values_turn *t, const bool *gone,
                     const pare_mat *map);
pare_mat values_map(work *w, const lm_attn *a); /* Wo of all heads side by side */
/* The directions of group g among inputs of which each head has to->rows, beginning at[h]: k = H^-1
 * and v = G^1/2 W of all. to = E^T B^1/2 and back = B^-1/2 E, its inverse. */
void group_directions(work *w, pare_mat *to, pare_mat *back, const lm_attn *a, size_t g,
                      const size_t *at, const pare_mat *k, const pare_mat *v);
void put_block(pare_mat *big, size_t at, const pare_mat *block); /* on the diagonal */

/* ---- lm_refit.c ---- */

typedef struct choice {
    bool *gone;   /* of each bundle */
    size_t *kept; /* columns, ascending */
    size_t n;
} choice;
/* The bundles that cost least go, `gone` of them; or those that are named. */
choice choose(work *w, const repair *r, const pare_mat *root, const bundles *b, size_t gone);
choice chosen(work *w, const bundles *b, bool *gone, size_t inputs);

/* ---- lm_attention_stats.c ---- */

typedef struct head_seen { /* means over the queries that were looked at */
    pare_mat first;        /* dk x dk: C_i^T G C_i without the scale (lm_keys.c) */
    pare_mat spread;       /* dk x dk: covariance of the keys by attention weight */
    double moves;          /* sum_j a_ij^2 |Wo (v_j - mean_i)|^2 in the metric */
    size_t queries;
} head_seen;
/* root: G^1/2 of the place behind; moment (din inputs) gets the rows that queries read. */
head_seen *lm_look(work *w, const lm *m, const lm_attn *a, const lm_rows *r, const pare_mat *root,
                   moments *moment);

/* ---- lm_keys.c ---- */

/* Queries as a map that reads keys; what does not turn is turned to its own directions. */
typedef struct keys_turn {
    repair fit;    /* inputs: the keys of every head, side by side */
    pare_mat root; /* (din + 1)^2: the metric of what queries read */
    bundles b;     /* of each group: planes, then what stands still; as many columns as heads */
    pare_mat *to;  /* of each group: k' = to k, of what stands still */
} keys_turn;
keys_turn keys_turned(work *w, const lm *m, const lm_attn *a, const lm_rows *rows,
                      const pare_mat *root);
lm_attn keys_taken(work *w, const lm *m, const lm_attn *a, const keys_turn *t, const choice *c);
/* So that no group has more than that many dimensions. */
choice keys_within(work *w, const lm_attn *a, const keys_turn *t, size_t most);
/* Numbers that go with the n bundles of an order, one after the other. */
void keys_sizes(size_t *size, const lm_attn *a, const keys_turn *t, const size_t *order, size_t n);

/* ---- lm_budget.c ---- */

typedef struct part_cost { /* hidden units of a layer, values or keys of its heads */
    size_t of;             /* how many there are */
    size_t n;              /* that may go */
    double *cost;          /* n: of the next one to go */
    size_t *size;          /* n: parameters that it takes with it */
    size_t gone;           /* how many go */
} part_cost;
/* Settles `gone` until `parameters` are gone, or nothing is left that may go; how many are. */
size_t lm_share(part_cost *p, size_t parts, size_t parameters);

/* ---- the two ways through the model ---- */

enum { VALUES, UNITS, KEYS, PARTS };

typedef struct pass {
    work *w;
    const lm *m;
    const pare_mat *metric; /* of each place */
    part_cost *parts;       /* PARTS for each block */
    size_t qk_dim;          /* that was asked for; 0: parts say how many keys go */
    bool fit;               /* last maps are fitted again */
    lm_rows large, small;   /* small: of the model as it is cut */
    bool changed;           /* they differ from here on */
    lm_out *out;
} pass;

/* lm_removal_costs.c: what every part would cost, on the rows of the large model. */
void lm_weigh(pass *p);
/* G^1/2 of a place. */
pare_mat metric_at(pass *p, size_t place);
/* The fit of a sublayer's last map. missed: what the outputs miss; NULL: nothing. */
repair attn_fit(work *w, const lm_attn *a, const pare_mat *pooled, const pare_mat *missed);
repair ffn_fit(work *w, const lm_ffn *f, const pare_mat *x, const pare_mat *missed);
/* The hidden units of rows [i, i + LM_CHUNK) of x, the stream before the sublayer. */
enum { LM_CHUNK = 1024 };
pare_mat units_of_rows(work *w, const lm_ffn *f, const pare_mat *x, size_t i);

/* lm_refit.c: the cut, block by block. */
void lm_refit(pass *p);
#endif
