/* pare/variant.h - models that leave parts of the usual architecture out, for theorems that are
 * about nets without them (Shirzad 2024, Theorems 3.3, 4.2 and 4.4: no skips, norms, biases). */
#ifndef PARE_VARIANT_H
#define PARE_VARIANT_H
#include <pare/model.h>

/* All zero: the usual model of its kind. */
typedef struct pare_variant {
    bool no_skips;  /* around attention and feed-forward parts */
    bool no_norms;  /* at all */
    bool no_biases; /* of maps and of norms; a batch norm still subtracts its mean */
    bool has_act;   /* feed-forward parts have `act` instead of their kind's activation */
    pare_act act;
} pare_variant;

/* Whether nothing is left out or changed. */
bool pare_variant_is_usual(const pare_variant *v);
/* Takes the parts out of a model that has them; every other weight stays as it is. */
void pare_model_vary(pare_model *m, const pare_variant *v);
#endif
