/* train.h - what the files of `pare train` share. */
#ifndef PARE_CLI_TRAIN_H
#define PARE_CLI_TRAIN_H
#include "cli.h"

#include "base/json.h"

extern const char *const train_kinds[]; /* in the order of pare_init_kind */

#define WARMUP_DEFAULT SIZE_MAX

typedef struct train_opts {
    size_t kind, preset; /* preset: of train_presets */
    bool has_kind;
    const struct recipe *recipe; /* of the kind or of the preset */
    const char *data, *val, *test, *vocab;
    size_t dim, layers, heads, ffn;
    pare_variant variant;
    size_t act;       /* pare_act; ACT_DEFAULT */
    size_t attention; /* ATTENTION_UNCHANGED, or of train_attentions */
    double tolerance;
    size_t expander;
    bool self_loops, full, largest_component;
    size_t epochs, steps; /* 0: not given */
    size_t warmup, batch, window;
    double lr, last_lr, dropout, decay, clip;
    size_t split, runs, over;
    const char *grid;
    const char *teacher, *from, *log;
    double distill, temperature, hidden;
    bool popup;
    double keep;          /* nan: not given */
    const char *qk_scale; /* NULL: not given */
    double scale;         /* the number that qk_scale means */
    size_t source;        /* pare_frozen_kind; SOURCE_DEFAULT */
    bool resume;
    size_t checkpoint_every, eval_every, eval_tokens;
    bool whole;    /* a .txt is one document */
    size_t parts;  /* PARTS_HELDOUT, PARTS_SHARES */
    size_t oracle; /* tokens of the engine that attends; 0: our own attention */
} train_opts;

enum { OVER_SEED, OVER_SPLIT };
enum { PARTS_HELDOUT, PARTS_SHARES };
enum { ATTENTION_EXACT, ATTENTION_POLY, ATTENTION_UNCHANGED };
enum { ACT_DEFAULT = PARE_ACT_TANH + 1 };
#define TRAIN_MOST_RUNS 100000
enum { TRAIN_SHARE = 96 }; /* percent of the bar that are for the steps */

/* The defaults of a kind. */
typedef struct recipe {
    size_t dim, layers, heads, epochs, steps, warmup, batch, window;
    double lr, last_lr, dropout, decay, clip;
    bool decay_vectors;
} recipe;
extern const recipe train_recipes[];
/* The sizes of GPT-2 and how they were pruned ("none" first: the recipe of the kind). */
extern const char *const train_preset_names[], *const train_source_names[];
extern const recipe train_presets[]; /* behind "none" */
enum { SOURCE_DEFAULT = 2 };
#define TRAIN_KEEP 0.3 /* what Otsuka 2025 keeps */

typedef struct run_progress { /* one run under one setting: the source of its log lines */
    struct training *training;
    size_t run, at; /* at: the setting */
    uint64_t step;  /* of its last log line */
} run_progress;

typedef struct training {
    cli *c;
    const train_opts *o;
    pare_ranks *ranks;
    pare_task *task; /* one for all runs, or one each */
    pare_task_facts facts;
    pare_task full_text; /* text: scores over all of it; else self is NULL */
    pare_model *from, *teacher;
    pare_tokenizer_kind tokenizer;
    pare_blob *vocab;
    pare_popup popup;
    size_t runs, settings;
    pare_setting *setting; /* epochs 0: o->steps */
    const char **checkpoint;
    run_progress *progress;              /* settings x runs, as the checkpoints are */
    pare_length_training *engine;        /* of each run, in the same order; NULL without --oracle */
    pare_oracle_count forward, backward; /* of all of them */
    uint64_t done, total;
    double last_score;
    const char *unit; /* what the data count: nodes, tokens, sequences, sentences */
    bool graph;
    FILE *log;
} training;

/* ---- train_setup.c ------------------------------------------------------------------------- */

/* Reads the data and the models, and refuses what does not fit. training_close accepts a
 * zeroed struct, too. */
pare_status training_open(training *tr, cli *c, const train_opts *o, pare_ranks *ranks);
void training_close(training *tr);
const pare_task *training_task(const training *tr, size_t run);
uint64_t training_steps(const training *tr, size_t at);
uint64_t training_seed(const training *tr, size_t run);
size_t training_split(const training *tr, size_t run);
/* Of what is held out of the data: of every run, unless they differ in the split. */
uint64_t training_heldout_seed(const training *tr, size_t run);
/* For pare_runs; self is the training. */
pare_status training_open_run(void *self, pare_run_parts *out, size_t run, size_t at,
                              pare_err *err);
void training_close_run(void *self, pare_run_parts *parts);

/* ---- train_popup.c ------------------------------------------------------------------------- */

/* What --popup and its options mean, and whether they fit. */
pare_status popup_check_options(cli *c, train_opts *o);
/* Where the weights of a run with this seed come from. */
pare_frozen_gpt popup_source(const train_opts *o, uint64_t seed);

/* ---- train_oracle.c ------------------------------------------------------------------------ */

/* --oracle: whether the model of the runs can be trained so, and an engine for each run. */
pare_status oracle_prepare(training *tr, const pare_model *m);
/* The attention of run i; NULL without --oracle. */
pare_status oracle_open_run(training *tr, const pare_attention_provider **out, size_t i,
                            pare_err *err);
/* Calls of all runs on all ranks. */
pare_status oracle_sum_calls(training *tr);
void oracle_close_all(training *tr);
void oracle_print(const training *tr);
bool oracle_json(cJSON *to, const training *tr);

/* ---- train_log.c --------------------------------------------------------------------------- */

/* Begins the file of --log, or continues it. */
pare_status log_open(training *tr);
pare_status log_close(training *tr); /* fails when a line could not be written */
/* pare_train_opts.log: a line of the file, the bar, and with -v a note; self is a run_progress. */
void log_step(void *self, const pare_train_log *line);
/* pare_train_opts.poly: a note. */
void log_poly(void *self, size_t block, const pare_poly_use *use);

/* ---- train_show.c -------------------------------------------------------------------------- */

typedef struct train_result {
    const pare_runs_result *runs;
    facts model;
    const char *name;
    double full_val, full_test; /* nan unless scores looked at a part only */
    double seconds;
} train_result;
pare_status train_show(training *tr, const train_result *r);
#endif
