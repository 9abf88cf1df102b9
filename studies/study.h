/* study.h - the tables and figures of the papers, made again: what the paper prints, ours, and
 * the file or command behind every number. Most rows have no printed number; each says what it is
 * compared with (row_class).
 *
 * Every run leaves a small file in the folder. Killed at any moment, the same call goes on; the
 * ranks of an mpirun share the runs. Same options, same seed, same tables: for any number of
 * threads and ranks. */
#ifndef PARE_STUDIES_STUDY_H
#define PARE_STUDIES_STUDY_H
#include "cached_jobs.h"
#include "base/json.h"

typedef enum row_verdict {
    REPRODUCED, /* as near to what the row is compared with as its rule asks */
    DIFFERS,    /* not */
    MISPRINT,   /* the data, or a counter-example inside the hypotheses, refutes it */
    NOT_MADE,   /* a printed row that is not made again here, or whose data is missing */
    ADDED,      /* nothing to compare with */
    UNDECIDED,  /* a printed claim that runs of this size do not decide */
    STEP_FALSE, /* errata: a step of a proof is false, its statement may hold */
    IMPRECISE   /* errata: loose, or open to a reading that is false */
} row_verdict;

/* What a row is compared with. Only ROW_PRINTED can be reproduced from a paper. */
typedef enum row_class {
    ROW_OURS,      /* nothing: a row that we add */
    ROW_PRINTED,   /* a number or a claim that the paper prints */
    ROW_REFERENCE, /* a figure or a shape of our own earlier experiments, other draws */
    ROW_SELF       /* another computation of the same run: plan and execution, proof and
                           measurement */
} row_class;
extern const char *const row_class_names[]; /* "ours", "printed in the paper", ..., NULL */

/* What can come of a row of a class, in the order of the summary, and the word for it. The list
 * ends with a NULL word. */
typedef struct outcome {
    row_class of;
    row_verdict is;
    const char *word; /* "reproduced" */
    const char *head; /* a short one, for the head of a column */
} outcome;
extern const outcome outcomes[];
enum { OUTCOMES = 12 };
/* Its number in outcomes; OUTCOMES: a row of that class has no such verdict. */
size_t outcome_of(row_class of, row_verdict is);

typedef struct table_row {
    const char *data, *what;
    double published, published_std; /* as the paper prints them; nan: none */
    double ours, ours_std;           /* nan: none; std with n - 1 */
    size_t runs;                     /* behind ours; 0: it is counted, not sampled */
    size_t parameters;               /* of a model; 0: does not apply */
    row_verdict verdict;
    const char *note;    /* "" or a sentence */
    const char *from;    /* the files behind it; "" where there are none */
    const char *command; /* that gives this row alone; NULL: the table's does */
    row_class source;
    double reference;  /* what the other classes compare with; nan: none, or no number */
    const char *claim; /* what the paper states, where that is no number; NULL: nothing */
} table_row;

typedef struct study_table {
    const char *name, *about;
    int digits; /* after the point; below 0: so many significant ones */
    size_t nrows;
    table_row *rows;
    const char *command; /* that makes it again */
} study_table;

typedef struct run_series { /* of a histogram: one number for each run */
    const char *data, *what, *metric, *from;
    double published; /* mean, as the paper prints it; nan: none */
    size_t n;
    double *value;
} run_series;

typedef struct figure_curve { /* of a figure: y over x */
    const char *table, *data, *what;
    size_t n;
    const double *x, *y;
} figure_curve;

typedef struct study {
    const char *name, *folder;
    const char *line; /* the command that makes it again */
    bool full;
    uint64_t seed;
    size_t ntables, nseries, ncurves, nnotes;
    study_table *tables;
    run_series *series;
    const char *figure; /* name of the histogram */
    figure_curve *curves;
    const char **notes;
    size_t jobs, found; /* runs in all; of them, runs that were there already */
    pare_arena *arena;
} study;

typedef struct study_opts {
    const char *folder;      /* made where it is missing; its parent must be there */
    const char *model;       /* depth: the trained model; NULL: one is made */
    const char *const *data; /* width: graph files, recognized by what is in them; depth: one file
                                for the model */
    size_t ndata;
    const char *only; /* "orders,rank": these parts alone; NULL: all */
    bool full;
    bool again;          /* make every run again, also those that are there */
    size_t side;         /* of the board that is generated */
    size_t large, small; /* runs with D = 64, with d = 4; 0: as quick or full say */
    size_t epochs;       /* at most, of every training; 0: as the recipes say */
    uint64_t seed;
    void (*note)(void *self, const char *line); /* one for each run that ends; may be NULL */
    /* How far the study is, its time so far and an estimate of the rest: after every run. May be
     * NULL. A command prints the last one when it is interrupted. */
    void (*state)(void *self, const char *line);
    void *self; /* of both */
} study_opts;
#define STUDY_OPTS_DEFAULT                                                                         \
    {                                                                                              \
        .side = 100                                                                                \
    }

/* What Rank collapse 2025 claims and what is true of it: experiments of ours (the paper has none),
 * each with the shape that is expected and the figure of our own audit. */
PARE_MUST_USE pare_status study_depth(study **out, const study_opts *o, const pare_exec *exec,
                                      const pare_ranks *ranks, pare_err *err);
/* Figures 4 to 8 of Otsuka 2025, its construction and ours on the same sources. data: text to
 * learn from, to choose by and to test on, for figures 7 and 8; none: a text is made. */
PARE_MUST_USE pare_status study_ticket(study **out, const study_opts *o, const pare_exec *exec,
                                       const pare_ranks *ranks, pare_err *err);
/* Tables 1, 3 and 4 and figure 1 of Shirzad 2024. Caller frees *out with study_free.
 * PARE_ERR_INPUT names a file that is none of Minesweeper, Tolokers and Photo. */
PARE_MUST_USE pare_status study_width(study **out, const study_opts *o, const pare_exec *exec,
                                      const pare_ranks *ranks, pare_err *err);
/* Calls against N/M, errors of robust and literal modes, sampling against its bound. */
PARE_MUST_USE pare_status study_length(study **out, const study_opts *o, const pare_exec *exec,
                                       const pare_ranks *ranks, pare_err *err);
/* What is false, loose or imprecise in the four papers (docs/errata.md), a table for each class:
 * every example is computed, what the paper says of it beside what is. */
PARE_MUST_USE pare_status study_errata(study **out, const study_opts *o, const pare_exec *exec,
                                       const pare_ranks *ranks, pare_err *err);
void study_free(study *r); /* accepts NULL */

/* As text for a terminal, in the arena; as JSON (caller frees with cJSON_Delete). */
PARE_MUST_USE pare_status study_text(char **out, pare_arena *a, const study *r, pare_err *err);
PARE_MUST_USE pare_status study_json(cJSON **out, const study *r, pare_err *err);
/* FOLDER/tables.txt, tables.json, figure.csv and figure.svg (a study with curves: curves.csv and
 * curves.svg); those of an earlier call are replaced. */
PARE_MUST_USE pare_status study_write(const study *r, pare_err *err);

/* ---- all of them ---- */

typedef struct study_kind {
    const char *name;              /* "width" */
    const char *(*part)(size_t i); /* what `only` may name; NULL behind the last */
    pare_status (*make)(study **out, const study_opts *o, const pare_exec *exec,
                        const pare_ranks *ranks, pare_err *err);
    bool boards; /* looks at side, large and small */
    bool trains; /* looks at epochs */
} study_kind;
#define STUDIES 5
extern const study_kind study_kinds[STUDIES];   /* in the order of `all` */
const study_kind *find_study(const char *name); /* NULL: there is none */
/* One study by itself: s->make, with one progress over all its stages. */
PARE_MUST_USE pare_status run_study(study **out, const study_kind *s, const study_opts *o,
                                    const pare_exec *exec, const pare_ranks *ranks, pare_err *err);
/* PARE_ERR_USAGE names the word of `only` that is no part of the study (NULL: of any study). */
PARE_MUST_USE pare_status check_parts(const study_kind *s, const char *only, pare_err *err);

typedef struct study_set {
    size_t n;
    study *study[STUDIES];
} study_set;
/* Every study that has a part in `only`, in a folder of its own below o->folder; the files of each
 * (study_write) are there as soon as it is made. data: graphs (.npz) go to width, texts to
 * ticket; the model to depth, with its own windows in it. One progress over all. */
PARE_MUST_USE pare_status run_all_studies(study_set *out, const study_opts *o,
                                          const pare_exec *exec, const pare_ranks *ranks,
                                          pare_err *err);
void study_set_free(study_set *s);
/* How many rows of each table have which outcome, the classes apart, for a terminal. */
PARE_MUST_USE pare_status study_set_summary(char **out, pare_arena *a, const study_set *s,
                                            pare_err *err);

/* ---- what every study has: its folder, its jobs (study_context.c) ---- */

typedef struct study_context {
    study *r;
    const study_opts *o;
    const pare_exec *exec;
    const pare_ranks *ranks;
    pare_err *err;
    const char *runs; /* folder of the jobs' results */
    tally all;        /* over all lists of jobs; `later` is the caller's */
} study_context;

enum { MOST_TABLES = 16, MOST_SERIES = 6, MOST_CURVES = 400, MOST_NOTES = 12 };
/* Lists for so many tables, series, curves and notes, in its arena. */
PARE_MUST_USE pare_status study_allocate(study *r, pare_err *err);
/* An empty study in an arena of its own. All ranks agree whether it is there. */
PARE_MUST_USE pare_status study_begin(study_context *c, const char *name, const study_opts *o,
                                      const pare_exec *exec, const pare_ranks *ranks,
                                      pare_err *err);
/* *out where `st` is well, else everything is freed; returns st. */
pare_status study_end(study **out, study_context *c, pare_status st);
bool is_first_rank(const study_context *c); /* rank 0 */
/* Whether the part of that name is asked for. */
bool wants_part(const study_context *c, const char *part);
/* The command line that makes this part again, or (NULL) the whole study; NULL: memory is out. */
const char *study_command(const study_context *c, const char *part);
PARE_MUST_USE pare_status add_note(study_context *c, const char *line); /* NULL: memory was out */
/* Both folders, by the first rank. */
PARE_MUST_USE pare_status make_study_folders(study_context *c);
PARE_MUST_USE pare_status make_folder(const char *path, pare_err *err); /* or it is there */
PARE_MUST_USE pare_status new_jobs(study_context *c, jobs *b, size_t n);
/* Does them and counts them; title, run and self of `b` are the caller's. `st`: how the making of
 * the list went. No rank may wait for one that has left. */
PARE_MUST_USE pare_status do_jobs(study_context *c, jobs *b, pare_status st);

/* A table while it is written; the first failure stays. */
typedef struct table_writer {
    study *r;
    pare_err *err;
    pare_status st;
    study_table *t;
    size_t capacity;         /* of its rows */
    const struct setting *s; /* of an experiment (experiments.h) */
} table_writer;
/* `digits` below 0: so many significant ones. */
void begin_table(table_writer *w, const char *name, const char *about, int digits);
void add_row(table_writer *w, table_row row); /* NULL in its texts: memory was out */
/* A text for a row, in the study's arena; NULL after a failure, which `w` keeps. */
const char *row_text(table_writer *w, const char *fmt, ...) PARE_PRINTF(2, 3);

/* What `put` writes, as a string in the arena. */
PARE_MUST_USE pare_status print_text(char **out, pare_arena *a,
                                     void (*put)(FILE *to, const void *what), const void *what,
                                     pare_err *err);

/* ---- the parts of the studies, by number: what `only` may name ---- */

bool names_part(const char *only, const char *part); /* only NULL: all */
const char *width_part(size_t i);
const char *depth_part(size_t i);
const char *ticket_part(size_t i);
const char *length_part(size_t i);
const char *errata_part(size_t i);

/* ---- figures ---- */

/* Bins that all series of one data set share, so that their histograms can be laid on one another
 * (plot_histogram.c). */
typedef struct histogram {
    size_t bins;
    double from, width;
} histogram;
histogram histogram_of(const study *r, size_t series);
double histogram_edge(const histogram *h, size_t bin);
size_t histogram_count(const histogram *h, const run_series *s, size_t bin);
/* Curves as CSV and as SVG, a panel for each table and data (plot_curves.c). */
PARE_MUST_USE pare_status curves_csv(pare_out *o, const study *r, pare_err *err);
PARE_MUST_USE pare_status curves_svg(pare_out *o, const study *r, pare_err *err);
#endif
