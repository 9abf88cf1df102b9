/* reduce.h - what all cuts share on the command line: where things go, publishing, and what is
 * shown about the model before and after. */
#ifndef PARE_CLI_REDUCE_H
#define PARE_CLI_REDUCE_H
#include "cut_shape.h"
#include "evaluate.h"
#include "out.h"

typedef struct reduction {
    const char *data;      /* file of the inputs, or NULL */
    const char *from, *to; /* files of the models before and after */
    double max_error;
    pare_files *files;         /* what the model before was read from */
    const pare_inputs *fitted; /* what the cut was fitted to, or NULL */
    size_t fitted_tokens;      /* held-out inputs are compared with those by so many tokens */
    const char *no_next; /* a note to give once all is well: why nothing is said of new ones */
    bool new_inputs;     /* statements about new inputs may be made */
    pare_claim ask[8];   /* claims wanted beside the prover's own (pare_publish_opts) */
    size_t nask;
    pare_cert cert;
    const char *cert_path, *run_path;
    facts before, after;
    double started, ms_before, ms_after, ms_reduction;
    bool time_attention;            /* asked for: the next two */
    double attn_before, attn_after; /* ms */
    bool has_metric;
    evaluation metric_before, metric_after; /* of a text: nats per token */
    pare_task task;                         /* that the metric belongs to */
    size_t metric_inputs;                   /* how many it is taken over */
    bool held_out;                          /* which the cut was not fitted to */
    double output_error;                    /* |f - g| / |f|, root mean squares over ... */
    size_t error_inputs;                    /* ... so many inputs; 0: not measured */
    double largest_output; /* of the input model, absolute, on what is proven on; nan: not known */
    bool all_tokens;       /* what is proven on was not cut to its first tokens */
    bool no_splits;        /* the data have none */
    size_t of_inputs;      /* inputs of which those are the first; 0: they are all */
    bool prove_more;       /* --prove N adds to them */
    const char *heldout;   /* the file that they are from, if --heldout names it */
    size_t rows;           /* output rows of what is proven on */
    const char *row_word;  /* "node", "position", "input" */
    cut_shape shape_before, shape_after;
} reduction;

/* Rows of the option table that several cuts have. */
#define REDUCE_MOST ((size_t)1 << 20)
/* clang-format off */
#define REDUCE_HELDOUT(var, otherwise)                                                             \
    {.name = "heldout", .kind = OPT_TEXT, .to = &(var), .metavar = "FILE", .unset = otherwise,     \
     .help = "measure and prove on these inputs, which the cut is not fitted to"}
#define REDUCE_WINDOWS(var)                                                                        \
    {.name = "windows", .kind = OPT_SIZE, .to = &(var), .metavar = "N", .min = 1,                  \
     .max = REDUCE_MOST, .rare = true,                                                             \
     .help = "fit the cut to at most so many inputs of --data"}
#define REDUCE_TOKENS(var)                                                                         \
    {.name = "tokens", .kind = OPT_SIZE, .to = &(var), .metavar = "N", .max = REDUCE_MOST,         \
     .rare = true, .help = "fit the cut to the first N tokens of each text; 0: to all of them"}
#define REDUCE_BALL(var, norm)                                                                     \
    {.name = "ball", .kind = OPT_REAL, .to = &(var), .metavar = "R", .unset = "none",              \
     .low = 1e-30, .high = 1e30, .rare = true,                                                                  \
     .help = "also prove a bound for every input within distance R of the given ones" norm}
#define REDUCE_MAX_ERROR(var, text)                                                                \
    {.name = "max-error", .kind = OPT_REAL, .to = &(var), .metavar = "E", .unset = "any",          \
     .high = INFINITY,                                                                             \
     .help = "write nothing (exit 3) unless it is proven that no output moves by more than E" text}
#define REDUCE_OUT_HELP                                                                            \
    "where the smaller model goes; beside it FILE.cert.json, its certificate, and FILE.run.json, " \
    "sizes, times and the command"
/* clang-format on */

/* One cut: its own steps, each given what the command knows (`o`). */
typedef struct reduce_steps {
    pare_status (*settle)(cli *c, void *o); /* options, before the model is read; NULL: none */
    pare_status (*cut)(cli *c, void *o, const pare_model *m); /* made, published, compared */
    void (*people)(const cli *c, const pare_model *m, const void *o);
    pare_status (*json)(cli *c, const void *o);
} reduce_steps;
/* The way through every cut: may everything be written? The clock starts; options are settled, the
 * model is read and cut, and what came of it is printed. */
pare_status reduce_run(cli *c, reduction *r, const reduce_steps *s, void *o);
/* Refuses --split where the model takes ids: texts have none. */
pare_status reduce_split_applies(cli *c, const pare_model *m);
/* pare_publish of *out, which is taken over. */
pare_status reduce_publish(cli *c, reduction *r, const pare_model *m, pare_model **out,
                           const cert_inputs *in, const pare_prover *prover);
/* Sizes, times and the metric of what is on the disk now; the run file is written. */
pare_status reduce_compare(cli *c, reduction *r, const pare_model *m, const cert_inputs *in);
/* {input, output, certificate} come first, {metric, time_ms} last. */
bool reduce_json_front(cJSON *root, const reduction *r);
bool reduce_json_end(cJSON *root, const reduction *r);
#endif
