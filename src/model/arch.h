/* arch.h - the architecture as JSON text: everything about a model that is not a tensor. */
#ifndef PARE_MODEL_ARCH_H
#define PARE_MODEL_ARCH_H
#include <pare/model.h>

#define ARCH_VERSION 1

PARE_MUST_USE pare_status arch_write(char **text, pare_arena *a, const pare_model *m,
                                     pare_err *err);
/* Fills the structs of an empty model; the tensors come after. */
PARE_MUST_USE pare_status arch_read(pare_model *m, const char *text, pare_err *err);
#endif
