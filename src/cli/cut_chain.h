/* cut_chain.h - one certificate for a chain of cuts: of pare compose and of pare plan. */
#ifndef PARE_CLI_CUT_CHAIN_H
#define PARE_CLI_CUT_CHAIN_H
#include "reduce.h"

/* Where the certificate of r goes, and the run file beside it. */
pare_status chain_paths(cli *c, reduction *r, const char *cert_path);
/* From the certificates of the links, first cut first. It is measured anew between the ends, and
 * proven again from the files before it appears at r->cert_path; then sizes, times and the metric
 * of the ends are taken and the run file is written. */
pare_status chain_write(cli *c, reduction *r, char *const *links, size_t n);
#endif
