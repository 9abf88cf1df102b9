/* prove.h - what is proven about a cut, piece by piece (verify.c puts it together). */
#ifndef PARE_SRC_WIDTH_PROVE_H
#define PARE_SRC_WIDTH_PROVE_H
#include "cuts.h"

/* ---- from norms alone (apriori.c) ---- */

/* sup over inputs with |x_i|_2 <= x of |f - g| (largest entry): |f| + |g|, and for nets that differ
 * only in their queries and keys the recursion of Theorem 3.3 as it is true, if smaller. */
pare_ub apriori_gap(work *w, const net *f, const net *g, pare_ub x);
/* ---- attention weights (ratios.c) ---- */

/* Both models must see the same keys: attention weights are compared key by key. */
bool same_pattern(const pare_pattern *a, const pare_pattern *b);
/* Largest |ln(a / a^)| over all weights of layer `l` on the inputs: proven, and as measured. Both
 * models have as many heads there. */
typedef struct ratio_bound {
    pare_ub proven;
    double measured;
} ratio_bound;
ratio_bound ratios_of_layer(work *w, const pare_model *f, const pare_model *g,
                            const pare_inputs *set, size_t l);

/* ---- outputs (outputs.c) ---- */

typedef struct output_bound {
    pare_gap gap;
    size_t rows, certain; /* output rows; those whose largest entry is proven to be the same */
} output_bound;
void outputs_compare(work *w, output_bound *out, const pare_model *f, const pare_model *g,
                     const pare_inputs *set);

/* ---- models with norms (lm_prove.c): a pare_prover's function ---- */

pare_status lm_prove(pare_cert *again, pare_arena *a, const pare_cert *claimed, const pare_model *f,
                     const pare_model *g, const pare_inputs *set, const pare_exec *exec,
                     pare_err *err);
#endif
