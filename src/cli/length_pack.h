/* length_pack.h - pare length --pack: short inputs that share the calls of an engine. */
#ifndef PARE_CLI_LENGTH_PACK_H
#define PARE_CLI_LENGTH_PACK_H
#include "cli.h"

typedef struct pack_opts {
    const char *data, *backend;
    pare_oracle_caps engine; /* that is asked for: tokens, layers, heads, type */
    double penalty;          /* between inputs; 0: so large that nothing leaks */
    size_t rows;             /* of each head and input that bounds are computed for; 0 = all */
} pack_opts;
/* Runs the inputs of the data packed and one by one, and says what differs. */
PARE_MUST_USE pare_status length_pack(cli *c, const pack_opts *o);
#endif
