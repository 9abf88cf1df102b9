/* prove.h - what is proven about a cut, piece by piece (verify.c puts it together). */
#ifndef PARE_SRC_WIDTH_PROVE_H
#define PARE_SRC_WIDTH_PROVE_H
#include "cuts.h"

/* ---- from norms alone (apriori.c) ---- */

/* sup over inputs with |x_i|_2 <= x of |f - g| (largest entry): |f| + |g|, and for nets that differ
 * only in their queries and keys the recursion of Theorem 3.3 as it is true, if smaller. */
pare_ub apriori_gap(work *w, const net *f, const net *g, pare_ub x);
/* ---- attention weights (ratios.c) ---- */

/* Largest |ln(a / a^)| over all weights of layer `l` on one input: proven, and as measured. */
typedef struct ratio_bound {
    pare_ub proven;
    double measured;
} ratio_bound;
ratio_bound ratios_of_layer(work *w, const pare_model *f, const pare_model *g, const pare_input *in,
                            size_t l);

/* ---- outputs (outputs.c) ---- */

/* low <= auc <= high, proven; low above high: there is none. */
typedef struct auc_bound {
    double low, high;
} auc_bound;
/* Of two outputs on the rows that count, class 1 over class 0 (auc_interval.c). */
auc_bound auc_interval(work *w, const pare_enclosure *e, const int64_t *target);

typedef struct output_bound {
    pare_gap gap;
    size_t rows, certain; /* output rows; those whose largest entry is proven to be the same */
    auc_bound auc[2];     /* of both models, on the last input with targets */
} output_bound;
void outputs_compare(work *w, output_bound *out, const pare_model *f, const pare_model *g,
                     const pare_inputs *set);
/* One row more. */
void outputs_compare_row(output_bound *out, const pare_enclosure *f, const pare_enclosure *g,
                         size_t i);

/* ---- all single-node edits of a graph (edits.c) ---- */

typedef struct edits_bound {
    size_t rows, different; /* that a node is given; how many the data has */
    size_t edits;
    size_t pairs, certain; /* edits and nodes they reach; those with the same largest entry */
    pare_ub proven;        /* largest |f - g|, the graph without an edit included */
    double measured, slack;
} edits_bound;
/* The `most` most frequent rows of the data; 0: all. */
edits_bound edits_prove(work *w, const pare_model *f, const pare_model *g, const pare_input *in,
                        size_t most);
#endif
