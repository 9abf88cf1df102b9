/* run.h - one pass and what it gave, or a text that goes on: shared by the command and its parts.
 */
#ifndef PARE_CLI_RUN_H
#define PARE_CLI_RUN_H
#include "cli.h"

#define RUN_TOKENS     256      /* generated unless --tokens says otherwise */
#define RUN_NOT_GIVEN  SIZE_MAX /* --tokens */
#define RUN_MOST_HEAT  100.0    /* --temperature */
#define RUN_LEAST_MASS 1e-6     /* --top-p */

typedef struct run_opts {
    const char *input, *data, *trace, *prompts;
    opt_texts texts;
    size_t split, tokens;
    pare_sample_opts sample;
    bool f64;
} run_opts;

typedef struct run_state {
    const run_opts *o;
    const char *text; /* of one pass */
    pare_model *m;
    pare_tokenizer *tok; /* --text */
    pare_inputs set;     /* usually one */
    size_t ndim, shape[4];
    size_t rows, cols; /* of all outputs together */
    void *out;         /* rows x cols, f32 or f64 */
    size_t nonfinite;  /* numbers of it that are nan or infinite */
    double ms;
} run_state;

/* A summary for people: shape, range, likeliest tokens or classes, time. */
void run_print(const cli *c, const run_state *s);
pare_status run_print_json(cli *c, const run_state *s);
/* Counts what is no number, and says so on stderr, also with -q: a model that overflows. */
void run_check_finite(const cli *c, run_state *s);

/* The ids of a text, at least one and as many as the context takes; - is standard input. */
pare_status run_encode(cli *c, run_state *s, const char *text, pare_input *in);
/* Does the model write text? NULL, or why not. */
const char *run_cannot_generate(const pare_model *m);
/* Goes on with every text, on stdout as it comes; with --json all of it at the end. */
pare_status run_generate(cli *c, run_state *s);
#endif
