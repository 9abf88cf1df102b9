/* show_length.h - the length part of a probe, for people. */
#ifndef PARE_CLI_SHOW_LENGTH_H
#define PARE_CLI_SHOW_LENGTH_H
#include "cli.h"

void show_length(const cli *c, const pare_model *m, const pare_length_probe *l);
#endif
