/* show_quant.h - what came of weights stored in few bits, as text and as JSON. */
#ifndef PARE_SRC_CLI_SHOW_QUANT_H
#define PARE_SRC_CLI_SHOW_QUANT_H
#include "reduce_command.h"

void show_quant(const cli *c, const reduction *of);
PARE_MUST_USE pare_status show_quant_json(cli *c, const reduction *of);
#endif
