/* lm_auto.h - pieces of the best cut of models with norms (lm_auto.c says what it does). */
#ifndef PARE_SRC_WIDTH_LM_AUTO_H
#define PARE_SRC_WIDTH_LM_AUTO_H
#include "lm.h"
#include "repair.h"

/* ---- lm_slopes.c ---- */

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

/* ---- lm_share.c ---- */

typedef struct part_cost { /* the hidden units of a layer, or the values of its heads */
    size_t of;             /* how many there are */
    size_t n;              /* that may go */
    double *cost;          /* n: of the next one to go */
    size_t parameters;     /* that each takes with it */
    size_t gone;           /* how many go */
} part_cost;
/* Settles `gone` until `parameters` are gone, or nothing is left that may go; how many are. */
size_t lm_share(part_cost *p, size_t parts, size_t parameters);

/* ---- the two ways through the model ---- */

typedef struct pass {
    work *w;
    const lm *m;
    const pare_mat *metric; /* of each place */
    part_cost *parts;       /* 2 for each block: values, hidden units */
    lm_rows large, small;   /* small: of the model as it is cut */
    bool changed;           /* they differ from here on */
    lm_out *out;
} pass;

/* lm_weigh.c: what every part would cost, on the rows of the large model. */
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
