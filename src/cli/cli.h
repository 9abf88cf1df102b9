/* cli.h - what the commands share: their common options, loading, inputs, and how they end. */
#ifndef PARE_CLI_CLI_H
#define PARE_CLI_CLI_H
#include <pare/pare.h>

#include "opt.h"

#define CLI_MAX_THREADS 1024
#define CLI_COMMON_ROWS 10

typedef enum cli_out { CLI_NO_OUT, CLI_MAY_OUT, CLI_MUST_OUT } cli_out;

typedef struct cli {
    opt_spec spec;
    opt common[CLI_COMMON_ROWS];
    bool json, quiet, verbose, force;
    size_t threads;
    uint64_t seed;
    const char *out;
    size_t pool; /* what importers are told about the outputs (pare_load_opts) ... */
    bool normalize;
    bool packed;      /* models are loaded to be run, not to be changed or certified (cli_engine) */
    const char *line; /* the whole command, as a shell would have to be told again */
    char **operand;
    size_t noperands;
    opt_line words;    /* what was on the command line */
    bool json_printed; /* the object of --json is on stdout */

    pare_arena *arena; /* for everything that lives until the end */
    pare_bar bar;
    pare_exec whole;  /* the bar, over the whole command ... */
    pare_steps steps; /* ... its phases (cli_phase) ... */
    pare_exec exec;   /* ... and the one that is at work: what everything long is given */
    const char
        *stopped; /* what is said when the user has stopped it; NULL: that nothing was written */
    pare_err err;
} cli;

/* Parses; false when the command is over already, *rc is then its exit code. out_help explains
 * -o where there is one. */
bool cli_start(cli *c, const opt_spec *spec, cli_out out, const char *out_help, int argc,
               char **argv, int *rc);
/* Says what went wrong (with --json on stdout as well, unless the command has printed its object),
 * frees, and gives the exit code. */
int cli_finish(cli *c, pare_status st);
/* A whole command: parses, runs it with what its options were written into (`self`), and ends. */
int cli_command(const opt_spec *spec, cli_out out, const char *out_help, int argc, char **argv,
                pare_status (*run)(cli *c, void *self), void *self);
/* The end of main: the exit code `rc`, unless what was printed did not arrive (a full disk, a
 * closed pipe). A process that was stopped by a signal ends by it. */
int cli_end(int rc);

/* A mistake on the command line: the message, and PARE_ERR_USAGE. */
pare_status cli_usage_error(cli *c, const char *fmt, ...) PARE_PRINTF(2, 3);
/* Whether an option was on the command line. */
bool cli_given(const cli *c, const char *name);
/* Refuses options that have no meaning in this call: unless it `applies`, none of `names` ("trials,
 * rows" without the space) may have been given; `with` says what they go with. */
pare_status cli_only(cli *c, const char *names, bool applies, const char *with);
/* The same, rule by rule; a rule without names ends the list. */
typedef struct cli_rule {
    const char *names;
    bool applies;
    const char *with;
} cli_rule;
pare_status cli_check_rules(cli *c, const cli_rule *rules);
/* The place of a word in a list ended by NULL; else an error that suggests the nearest or lists
 * all. `what` is what the words are: "study". */
pare_status cli_choose(cli *c, size_t *index, const char *what, const char *word,
                       const char *const *words);
/* The complaint of cli_choose where there is no cli yet; word NULL: it is missing. Returns the exit
 * code. */
int cli_unknown_word(const char *command, const char *what, const char *word,
                     const char *const *words, int argc, char *const *argv);

/* Runs it in every process that an mpirun started (ranks NULL: there was none) and ends as
 * cli_finish does; the first rank speaks for all. */
int cli_ranked(cli *c, pare_status (*run)(cli *c, void *self, pare_ranks *ranks), void *self);

/* The next phase of the command: `share` percent of its bar are for what is done with c->exec from
 * now on; the shares of all phases add up to 100. `what` is shown beside the bar; NULL: what the
 * library reports. Without any call all of the bar is one phase. */
void cli_phase(cli *c, const char *what, double share);
/* Draws the end of the bar and takes it off the line: before results are printed. */
void cli_bar_end(cli *c);

/* A message on stderr, but for -q. */
void cli_note(cli *c, const char *fmt, ...) PARE_PRINTF(2, 3);
/* Refuses an input that does not exist; a path of NULL is fine. A command asks for every input
 * before it looks at its output, so that an output that exists does not hide a missing input. */
pare_status cli_is_there(cli *c, const char *path);
/* Refuses inputs that do not exist; then, with -o, an output that may not be written beside
 * them. */
pare_status cli_check_files(cli *c, const char *const *inputs, size_t n);
/* Refuses before any work is done: an `input` (may be NULL) that is not there, an output that
 * exists (without -f), a folder that does not or that may not be written to, a folder in the place
 * of a file, and the very file that `input` is. */
pare_status cli_may_write(cli *c, const char *path, const char *input);
/* The same of a folder to be written whole; none of the inputs (each may be NULL) may lie in it. */
pare_status cli_may_write_folder(cli *c, const char *path, const char *const *inputs, size_t n);
/* Letters behind the last dot of the name: a.pdf, but not v1.5; slashes at the end do not count. */
bool cli_has_ending(const char *path);
/* Without slashes at the end; NULL when memory is out (and c->err says so). */
const char *cli_folder_name(cli *c, const char *path);
/* Whether both names lead to one file or folder that is there. */
bool cli_same_file(const char *a, const char *b);
/* Row of --engine for a table of options, of which *to is the place in the table; and what it asks
 * for, once models are loaded: with int8 PARE_ERR_INPUT for a model without integers. */
typedef enum cli_engine_kind { CLI_ENGINE_F32, CLI_ENGINE_INT8 } cli_engine_kind;
extern const char *const cli_engine_words[], *const cli_engine_help[]; /* ended by NULL */
pare_status cli_engine(cli *c, size_t engine, const pare_model *m);
/* As --pool and --normalize say; what reading it decided is said on stderr. */
pare_status cli_load(cli *c, pare_model **out, const char *path);
pare_status cli_load_files(cli *c, pare_model **out, const char *path, pare_files *files);
/* Puts the path before the message unless it is in it already or the fault lies in the options.
 * Returns st. */
pare_status cli_name(cli *c, pare_status st, const char *path);
/* The library's messages name things, the command's name options: the first `words` in the message
 * become `option`. Returns st. */
pare_status cli_reword(cli *c, pare_status st, const char *words, const char *option);
/* The same in any text, in the arena; the text itself where there is nothing to replace. */
const char *cli_replaced(cli *c, const char *text, const char *words, const char *option);
/* The same for all sentences of the library that speak of an option of the command: messages, and
 * what a probe says. `text` itself where there is none. */
const char *cli_option_words(cli *c, const char *text);
/* A path with a suffix, in the arena; NULL when memory is out (and c->err says so). */
char *cli_suffixed(cli *c, const char *path, const char *suffix);
/* A name beside `path` for what is still to be checked: no file of the user has it. */
char *cli_fresh(cli *c, const char *path);

/* Writes the Hugging Face folder that is the operand to c->out, which may be written: uncut, its
 * files byte for byte; what --pool and --normalize say is added as sentence-transformers' files. Loaded
 * again and compared before it appears. Prints what was written. */
pare_status cli_copy_folder(cli *c);

/* ---- what a model file is ------------------------------------------------------------------ */

typedef pare_model_facts facts;

/* MACs of one pass over `in`; in NULL: over the default number of tokens. Hashes the file only
 * when asked to. */
pare_status cli_facts(cli *c, facts *out, const char *path, const pare_model *m,
                      const pare_input *in, bool hash);
/* ---- one function per command -------------------------------------------------------------- */

int cmd_info(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_data(int argc, char **argv);
int cmd_fold(int argc, char **argv);
int cmd_width(int argc, char **argv);
int cmd_depth(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_length(int argc, char **argv);
int cmd_ticket(int argc, char **argv);
int cmd_quant(int argc, char **argv);
int cmd_probe(int argc, char **argv);
int cmd_repro(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_compose(int argc, char **argv);
int cmd_train(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_bench(int argc, char **argv);
#endif
