/* next_input.h - statements about inputs that are not there yet, from held-out ones. */
#ifndef PARE_CLI_NEXT_INPUT_H
#define PARE_CLI_NEXT_INPUT_H
#include "cut_data.h"

/* A row of the option table. */
#define NEXT_PROVE(var)                                                                            \
    {                                                                                              \
        .name = "prove", .kind = OPT_SIZE, .to = &(var), .metavar = "N", .help = "",               \
        .unset = "8 texts, all other inputs", .min = 1, .max = REDUCE_MOST                         \
    }

/* Asks for them in the certificate, unless `d` or --max-error says why nothing follows; then a note
 * says so. `chosen`: the held-out inputs chose the size of the cut. */
void next_ask(cli *c, reduction *r, const cut_data *d, bool chosen);
/* For people. */
void next_print(const pare_cert *cert);
#endif
