/* pare/engine.h - an attention engine by its name. */
#ifndef PARE_ENGINE_H
#define PARE_ENGINE_H
#include <pare/backend.h>

/*   cpu            the kernels of this library; mpi: the same, in every process of an mpirun
 *   paper          the strict oracle of Yu 2025: slow, a reference
 *   pipe:COMMAND   another program, run by the shell (pare_oracle_pipe)
 *   onnx:FILE      ONNX Runtime by the program onnx.js, which node runs */
typedef struct pare_engine {
    const char *name;
    const char *onnx_client; /* the path of onnx.js; NULL: onnx:FILE is refused */
    double timeout;          /* seconds for an answer of a program; 0: PARE_PIPE_TIMEOUT */
} pare_engine;

/* PARE_ERR_USAGE when there is none of that name. */
PARE_MUST_USE pare_status pare_engine_check(const char *name, pare_err *err);
/* Whether it takes strict calls and no others. */
bool pare_engine_is_strict(const char *name);
/* One for calls of like->max_len tokens in like->dtype, whose heads are as wide as those of the
 * model; a strict one has like's layers, heads and features (0: one head, both masks). Freed with
 * pare_oracle_free. */
PARE_MUST_USE pare_status pare_engine_open(pare_oracle *out, const pare_engine *e,
                                           const pare_model *m, const pare_oracle_caps *like,
                                           const pare_exec *exec, pare_err *err);
#endif
