/* lm_auto.h - pieces of the best cut of models with norms (lm_auto.c says what it does). */
#ifndef PARE_SRC_WIDTH_LM_AUTO_H
#define PARE_SRC_WIDTH_LM_AUTO_H
#include "lm.h"
#include "repair.h"

/* lm_slopes.c: one matrix for each place, mean over the tokens; at most `most` tokens of an input
 * (0: all). */
pare_mat *lm_metric(work *w, const lm *m, const pare_inputs *data, size_t most, uint64_t seed);

/* lm_values.c: the pooled values of a sublayer, turned so that directions can go one by one. */
typedef struct values_turn {
    repair fit;         /* in the turned inputs */
    bundles b;          /* one for each group of keys and direction: as many columns as heads */
    pare_mat *to;       /* of each group: v' = to v */
    pare_mat t;         /* of all inputs */
} values_turn;
values_turn values_turned(work *w, const lm_attn *a, const repair *r, const pare_mat *root);
/* What is left of the sublayer: directions kept (by bundle), the map (dout x (kept columns + 1)). */
lm_attn values_taken(work *w, const lm_attn *a, const values_turn *t, const bool *gone,
                     const pare_mat *map);

/* lm_share.c: how many go from each part. */
typedef struct part_cost {
    size_t n;          /* units or directions that may go, in order */
    size_t of;         /* all of them */
    double *cost;      /* n: what the next one costs */
    size_t parameters; /* that each takes with it */
    size_t gone;       /* settled by lm_share */
} part_cost;
/* Until `parameters` are gone, or nothing is left that may go. */
size_t lm_share(work *w, part_cost *p, size_t parts, size_t parameters);
#endif
