/* params.h - a model that borrows nothing from another. Private to src/train. */
#ifndef PARE_TRAIN_PARAMS_H
#define PARE_TRAIN_PARAMS_H
#include <pare/model.h>

/* A copy with its own weights and vocabulary; caller frees with pare_model_free. */
PARE_MUST_USE pare_status model_deep_copy(pare_model **out, const pare_model *m, pare_err *err);
#endif
