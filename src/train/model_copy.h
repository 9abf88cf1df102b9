/* detach.h - a model that borrows nothing from another. */
#ifndef PARE_SRC_DETACH_H
#define PARE_SRC_DETACH_H
#include <pare/model.h>

/* A copy with its own weights and vocabulary; caller frees with pare_model_free. */
PARE_MUST_USE pare_status model_deep_copy(pare_model **out, const pare_model *m, pare_err *err);
#endif
