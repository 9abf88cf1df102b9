/* next_input.h - statements about inputs that are not there yet, from held-out ones. */
#ifndef PARE_CLI_NEXT_INPUT_H
#define PARE_CLI_NEXT_INPUT_H
#include "cut_data.h"

/* A row of the option table. */
/* clang-format off */
#define NEXT_PROVE(var, usual)                                                                     \
    {.name = "prove", .kind = OPT_SIZE, .to = &(var), .metavar = "N", .unset = usual, .min = 1,    \
     .max = REDUCE_MOST, .rare = true,                                                             \
     .help = "prove on so many inputs; more take longer and say more about new inputs"}
/* clang-format on */

/* Asks for them in the certificate, unless `d` or --max-error says why nothing follows; then a note
 * says so once the model is published. `chosen`: the held-out inputs chose the size of the cut. */
void next_ask(cli *c, reduction *r, const cut_data *d, bool chosen);
/* Says so where there are fewer held-out inputs than --prove asks for (0: nothing was asked). */
void next_prove_note(cli *c, const cut_data *d, size_t prove);
/* For people. */
void next_print(const pare_cert *cert);
#endif
