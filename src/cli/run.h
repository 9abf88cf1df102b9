/* run.h - one pass and what it gave: shared by the command and by what shows it. */
#ifndef PARE_CLI_RUN_H
#define PARE_CLI_RUN_H
#include "cli.h"

typedef struct run_opts {
    const char *input, *text, *data, *trace;
    size_t split;
    bool f64;
} run_opts;

typedef struct run_state {
    const run_opts *o;
    pare_model *m;
    pare_tokenizer *tok; /* --text */
    pare_inputs set;     /* usually one */
    size_t ndim, shape[4];
    size_t rows, cols; /* of all outputs together */
    void *out;         /* rows x cols, f32 or f64 */
    double ms;
} run_state;

/* A summary for people: shape, range, likeliest tokens or classes, time. */
void run_print(const cli *c, const run_state *s);
pare_status run_print_json(cli *c, const run_state *s);
#endif
