/* backend.h - engines of small attention calls as options: --backend and --mode. */
#ifndef PARE_CLI_BACKEND_H
#define PARE_CLI_BACKEND_H
#include "cli.h"

/* PARE_ERR_USAGE when there is no engine of that name. */
PARE_MUST_USE pare_status backend_check(cli *c, const char *name);
/* The engine of --backend, with the client of ONNX Runtime that lies beside this command. */
pare_engine backend_engine(cli *c, const char *name, double timeout);
/* pare_engine_open of it. */
PARE_MUST_USE pare_status backend_open(cli *c, pare_oracle *out, const char *name,
                                       const pare_model *m, const pare_oracle_caps *like,
                                       double timeout);
/* The ways to compute long attention by small calls, as --mode of `run` and `length` has them, in
 * the order of pare_length_mode, and a line that explains each. Both end with NULL. */
extern const char *const backend_modes[], *const backend_mode_help[];
#endif
