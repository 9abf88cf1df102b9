/* engine.h - an engine by its name: cpu, paper, mpi, pipe:COMMAND or onnx:FILE. */
#ifndef PARE_CLI_ENGINE_H
#define PARE_CLI_ENGINE_H
#include "cli.h"

/* PARE_ERR_USAGE when there is none of that name. */
PARE_MUST_USE pare_status engine_check(cli *c, const char *name);
/* Whether it takes strict calls and no others. */
bool engine_is_strict(const char *name);
/* One with these tokens and of this type; a strict one with these layers, heads and features (0:
 * one head, both masks). Freed with pare_oracle_free. */
PARE_MUST_USE pare_status engine_open(cli *c, pare_oracle *out, const char *name,
                                      const pare_model *m, const pare_oracle_caps *like,
                                      double timeout);
/* The ways to compute long attention by small calls, as --mode of `run` and `length` has them, in
 * the order of pare_length_mode, and a line that explains each. Both end with NULL. */
extern const char *const engine_modes[], *const engine_mode_help[];
#endif
