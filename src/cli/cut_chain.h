/* cut_chain.h - one certificate for a chain of cuts: of pare compose and of pare plan. */
#ifndef PARE_CLI_CUT_CHAIN_H
#define PARE_CLI_CUT_CHAIN_H
#include "cli.h"

/* From the certificates of the links, first cut first. It is measured anew between the ends, and
 * proven again from the files before it appears at `path`. */
pare_status chain_write(cli *c, pare_cert *whole, const char *path, char *const *links, size_t n);
#endif
