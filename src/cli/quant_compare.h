/* quant_compare.h - pare quant --compare: a table of all methods, and no file. */
#ifndef PARE_CLI_QUANT_COMPARE_H
#define PARE_CLI_QUANT_COMPARE_H
#include "cli.h"

PARE_MUST_USE pare_status quant_compare(cli *c, const pare_rivals_opts *o);
#endif
