/* next_input.h - what a cut that is proven on held-out inputs says about inputs that are not there
 * yet: the options, what is asked for, and how it is shown. */
#ifndef PARE_CLI_NEXT_INPUT_H
#define PARE_CLI_NEXT_INPUT_H
#include "reduce.h"

typedef struct next_opts {
    double confidence;
    double exceed; /* 0: not asked */
} next_opts;
#define NEXT_OPTS_DEFAULT ((next_opts){.confidence = 0.95})

/* Rows of the option table, on one line of the help with what comes before them. */
#define NEXT_CONFIDENCE(var)                                                                       \
    {                                                                                              \
        .name = "confidence", .kind = OPT_REAL, .to = &(var), .metavar = "C", .help = "",          \
        .low = 0.5, .high = 0.999999, .joined = true                                               \
    }
#define NEXT_EXCEED(var)                                                                           \
    {                                                                                              \
        .name = "exceed", .kind = OPT_REAL, .to = &(var), .metavar = "P", .help = "",              \
        .unset = "not asked", .low = 0, .high = 0.5                                                \
    }

/* Asks for what the draws of the set can say; `why` not: a note says so. An --exceed that cannot be
 * answered is refused. */
pare_status next_ask(cli *c, reduction *r, const next_opts *o, const pare_inputs *set,
                     const char *why);
/* For people. */
void next_print(const pare_cert *cert);
#endif
