/* show_depth.h - the depth part of a probe, for people. */
#ifndef PARE_CLI_SHOW_DEPTH_H
#define PARE_CLI_SHOW_DEPTH_H
#include "cli.h"

void show_depth(const cli *c, const pare_probe *p);
#endif
