/* reduce_command.h - what the commands of all reductions share: files, notes, the run file,
 * JSON. */
#ifndef PARE_CLI_REDUCE_COMMAND_H
#define PARE_CLI_REDUCE_COMMAND_H
#include "cli.h"
#include "out.h"

typedef struct reduction {
    pare_reduce_opts o; /* what is asked of the library ... */
    pare_reduction r;   /* ... and what came of it */
    size_t dtype;       /* of --dtype: an index into dtype_names */
    bool any_shape;     /* of --any-shape */
    const char *run_path;
    cli *c;
} reduction;

/* What --dtype takes, and the precision that it means; 0: that of the input. */
extern const char *const dtype_names[];
pare_dtype dtype_of(size_t choice);
/* Says so where a fold or a conversion made a file that is larger, and why. */
void note_larger(cli *c, const facts *before, const facts *after);

/* Rows of the option table that several cuts have. */
#define REDUCE_MOST ((size_t)1 << 20)
/* clang-format off */
#define REDUCE_HELDOUT(var, otherwise)                                                             \
    {.name = "heldout", .kind = OPT_TEXT, .to = &(var), .metavar = "FILE", .unset = otherwise,     \
     .help = "measure and prove on these inputs, which the cut is not fitted to"}
#define REDUCE_USUAL_HELDOUT "128 inputs of --data that the seed draws, a quarter at most"
#define REDUCE_WINDOWS(var)                                                                        \
    {.name = "windows", .kind = OPT_SIZE, .to = &(var), .metavar = "N", .min = 1,                  \
     .max = REDUCE_MOST, .rare = true,                                                             \
     .help = "fit the cut to at most so many inputs of --data"}
#define REDUCE_FIT_TOKENS(var)                                                                     \
    {.name = "fit-tokens", .kind = OPT_SIZE, .to = &(var), .metavar = "N", .max = REDUCE_MOST,     \
     .rare = true, .help = "fit the cut to the first N tokens of each text; 0: to all of them"}
#define REDUCE_TOKENS(var)                                                                         \
    {.name = "tokens", .kind = OPT_SIZE, .to = &(var), .metavar = "N", .max = REDUCE_MOST,         \
     .help = "prove on the first N tokens of each held-out text; 0: on all of them"}
#define REDUCE_BALL(var, norm)                                                                     \
    {.name = "ball", .kind = OPT_REAL, .to = &(var), .metavar = "R", .unset = "none",              \
     .low = 1e-30, .high = 1e30, .rare = true,                                                                  \
     .help = "also prove a bound for every input within distance R of the given ones" norm}
#define REDUCE_MAX_ERROR(var, text)                                                                \
    {.name = "max-error", .kind = OPT_REAL, .to = &(var), .metavar = "E", .unset = "any",          \
     .high = INFINITY,                                                                             \
     .help = "write nothing (exit 3) unless it is proven that no output moves by more than E" text}
#define REDUCE_PROVE(var)                                                                          \
    {.name = "prove", .kind = OPT_SIZE, .to = &(var), .metavar = "N", .unset = "128", .min = 1,    \
     .max = REDUCE_MOST,                                                                           \
     .help = "prove on so many held-out inputs; more take longer and say more about new inputs"}
#define REDUCE_DTYPE(var)                                                                          \
    {.name = "dtype", .kind = OPT_CHOICE, .to = &(var), .metavar = "W", .choices = dtype_names,    \
     .help = "round all weights to this precision, before anything is proven"}
#define REDUCE_ALLOW_LARGER(var)                                                                   \
    {.name = "allow-larger", .kind = OPT_FLAG, .to = &(var), .rare = true,                         \
     .help = "also write a result that is not smaller than what came in"}
#define REDUCE_ANY_SHAPE(var)                                                                      \
    {.name = "any-shape", .kind = OPT_FLAG, .to = &(var),                                          \
     .help = "of a Hugging Face folder: cut whatever costs least, also what no config can express, and write a pare file"}
#define REDUCE_OUT_HELP                                                                            \
    "where the smaller model goes, a file, or NAME/ for the cut of a folder; beside it FILE.cert.json, its certificate, and FILE.run.json, " \
    "sizes, times and the command"
/* clang-format on */

/* One command: its own steps, each given what the command knows (`self`). */
typedef struct reduce_steps {
    pare_status (*check_options)(cli *c, void *self); /* before the model is read; NULL: nothing */
    pare_status (*check_model)(cli *c, void *self, const pare_model *m);
    void (*print_text)(const cli *c, const void *self);
    pare_status (*print_json)(cli *c, const void *self);
} reduce_steps;
/* Every reduction: may everything be written? The clock starts; options are checked, the model is
 * read and reduced, the run file is written, and what came of it is printed. */
pare_status reduce_run(cli *c, reduction *r, const reduce_steps *s, void *self);
/* The whole command, from its command line to its exit code. */
int reduce_command(const opt_spec *spec, int argc, char **argv, reduction *r, const reduce_steps *s,
                   void *self);
/* A check_model: refuses --split where the model takes ids, because texts have none. */
pare_status reduce_split_applies(cli *c, void *self, const pare_model *m);

/* Decides whether the result is a folder (r->o.folder), and takes slashes off the end of its name;
 * `file`: it is a file unless the name ends in /. */
void reduce_choose_form(cli *c, reduction *r, bool file);
/* Whether that folder may be written: what it is made of, where it goes. */
PARE_MUST_USE pare_status reduce_may_write_folder(cli *c, const reduction *r);
/* Refuses --any-shape where there is no folder, and says what it makes. */
PARE_MUST_USE pare_status reduce_any_shape_applies(cli *c, const reduction *r);
/* Whether the cut of `from` goes to a folder by the name `to`: one that ends in /, or that of a
 * folder's cut without an ending. */
bool reduce_names_folder(const char *from, const char *to);
/* Where the certificate and the run file go: CERT, and beside it without its .cert.json. */
pare_status reduce_paths(reduction *r, const char *cert_path);
/* pare_reduce_opts.event: notes on stderr; self is the reduction. */
pare_status reduce_on_event(void *self, pare_reduce_event e, const pare_reduction *r);
/* Errors of the library in the words of the options. Returns st. */
pare_status reduce_reword(cli *c, pare_status st);
/* Sizes, times and the command, beside the certificate. */
pare_status reduce_write_run_file(const reduction *r);

/* {input, output, certificate} come first, {metric, time_ms} last. */
bool reduce_json_front(cJSON *root, const pare_reduction *r);
bool reduce_json_end(cJSON *root, const pare_reduction *r);
#endif
