/* variant.h - models that leave parts of the usual architecture out, for theorems that are
 * about nets without them (Shirzad 2024, Theorems 3.3, 4.2 and 4.4: no skips, norms, biases). */
#ifndef PARE_MODEL_VARIANT_H
#define PARE_MODEL_VARIANT_H
#include <pare/model.h>

/* Takes the parts out of a model that has them; every other weight stays as it is. */
void pare_model_vary(pare_model *m, const pare_variant *v);
#endif
