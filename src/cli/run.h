/* run.h - pare run: one forward pass and its outputs, or generated text; shared by its files. */
#ifndef PARE_CLI_RUN_H
#define PARE_CLI_RUN_H
#include "cli.h"
#include "base/json.h"

#define RUN_TOKENS     256      /* generated unless --tokens says otherwise */
#define RUN_NOT_GIVEN  SIZE_MAX /* --tokens */
#define RUN_MOST_HEAT  100.0    /* --temperature */
#define RUN_LEAST_MASS 1e-6     /* --top-p */
#define RUN_TOLERANCE  1e-3     /* --tol */
#define RUN_DELTA      0.01     /* --delta */

typedef struct run_opts {
    const char *input, *data, *trace, *prompts;
    opt_texts texts;
    size_t tokens;
    pare_sample_opts sample;
    bool f64;
    size_t engine;    /* a cli_engine_kind */
    bool distance;    /* of the outputs from the exact function */
    size_t attention; /* a run_attention */
    double tolerance; /* of the range of the values, --attention poly */
    size_t oracle;    /* tokens of the engine; 0: attention is our own */
    const char *plan; /* a file of `pare length`, instead */
    const char *backend;
    size_t mode; /* a pare_length_mode */
    double timeout;
    double eps, delta; /* sample, paper: asked accuracy (0: its own), and how seldom it may fail */
} run_opts;

typedef enum run_attention {
    RUN_ATTENTION_MODEL,
    RUN_ATTENTION_EXACT,
    RUN_ATTENTION_POLY
} run_attention;
typedef struct run_layer run_layer; /* what polynomials did in one layer: run_poly.c */

typedef struct run_state {
    const run_opts *o;
    const char *text; /* of one pass */
    pare_model *m;
    pare_tokenizer *tok;   /* --text */
    pare_text_notes notes; /* of the file of prompts */
    pare_inputs set;       /* usually one */
    size_t ndim, shape[4];
    size_t rows, cols;   /* of all outputs together */
    void *out;           /* rows x cols, f32 or f64 */
    size_t nonfinite;    /* numbers of it that are nan or infinite */
    double ms, distance; /* distance: with --distance */
    run_layer *layers;   /* by block; NULL: no attention of kind poly in f32 */
    pare_ranks *ranks;
    pare_oracle oracle;         /* --oracle */
    pare_oracle_caps engine;    /* that is asked for */
    pare_length_plan_file plan; /* --plan */
    pare_oracle_count count;
    pare_length_stats length;
} run_state;

/* A summary for people: shape, range, likeliest tokens or classes, time. */
void run_print(const cli *c, const run_state *s);
pare_status run_print_json(cli *c, const run_state *s);
/* Counts outputs that are nan or infinite and warns of them on stderr, also with -q. */
void run_check_finite(const cli *c, run_state *s);

/* The ids of a text, at least one and as many as the context takes; - is standard input. */
pare_status run_encode(cli *c, run_state *s, const char *text, pare_input *in);
/* Continues every text, on stdout as it comes; with --json all of it at the end. */
pare_status run_generate(cli *c, run_state *s);

/* --attention: every softmax layer becomes poly or exact. */
pare_status run_set_attention(cli *c, run_state *s);
/* Collects what polynomials did in each layer (run_add_poly is pare_trace.poly, self the state),
 * and reports it: notes on stderr, JSON. */
pare_status run_collect_poly(cli *c, run_state *s);
void run_add_poly(void *self, size_t block, size_t head, const pare_poly_report *r);
void run_note_poly(cli *c, const run_state *s);
bool run_json_poly(cJSON *root, const run_state *s);

/* --oracle and --plan: the options, the engine, a pass by its calls, and what is reported of it. */
pare_status run_check_length(cli *c, const run_opts *o);
pare_status run_read_plan(cli *c, run_state *s, run_opts *o);
pare_status run_open_oracle(cli *c, run_state *s);
pare_status run_by_oracle(cli *c, run_state *s, void *out, const pare_input *in,
                          const pare_trace *trace);
pare_status run_count_calls(cli *c, run_state *s);
void run_print_length(const run_state *s);
bool run_json_length(cJSON *root, const run_state *s);
#endif
