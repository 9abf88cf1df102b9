/* arch.h - the architecture as JSON text: everything about a model that is not a tensor. */
#ifndef PARE_MODEL_ARCH_H
#define PARE_MODEL_ARCH_H
#include <pare/model.h>

/* Version 1 called the two ends of a model `stem` and `top`, in keys and in tensor names, and wrote
 * `attn` and `act` in keys. It is still read. */
#define ARCH_VERSION 2

PARE_MUST_USE pare_status arch_write(char **text, pare_arena *a, const pare_model *m,
                                     pare_err *err);
/* Fills the structs of an empty model; the tensors come after. *version: of the file. */
PARE_MUST_USE pare_status arch_read(pare_model *m, size_t *version, const char *text,
                                    pare_err *err);
#endif
