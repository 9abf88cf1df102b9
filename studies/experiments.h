/* experiments.h - studies that are made of experiments. An experiment is a list of jobs, each of
 * which gives numbers, and a table made of them (experiments.c). */
#ifndef PARE_STUDIES_EXPERIMENTS_H
#define PARE_STUDIES_EXPERIMENTS_H
#include "study.h"
#include <pare/data.h>

/* What all jobs of a study share. */
typedef struct setting {
    uint64_t seed;
    bool full;
    const pare_model *trained; /* E8, E9; NULL: there is none */
    const pare_dataset *data;
    const char *trained_name;
    bool tiny; /* it is that of our audit, whose figures are known */
} setting;

/* What a job gives: numbers in an order that its table knows. */
typedef struct numbers {
    pare_arena *a;
    double *v;
    size_t n, capacity;
    bool no_memory;
} numbers;

/* One job while it runs. */
typedef struct trial {
    const setting *s;
    size_t part;
    pare_arena *a; /* scratch of the job */
    const pare_exec *exec;
    pare_err *err;
    numbers out;
} trial;
void append_number(numbers *to, double v);
void append_numbers(trial *t, const double *v, size_t n);
/* Progress of this job; PARE_ERR_STOPPED where the user asked to stop. */
PARE_MUST_USE pare_status trial_progress(const trial *t, size_t done, size_t total);

typedef struct experiment {
    const char *file_prefix;  /* of the jobs' files: "orders" */
    size_t parts, parts_full; /* jobs; with --full, where that is not 0 */
    double cost;              /* of a job */
    bool trained;             /* needs the trained model */
    pare_status (*run)(trial *t);
    void (*table)(table_writer *w, const numbers *part, size_t n);
} experiment;
size_t experiment_parts(const experiment *e, bool full);

/* Does the jobs of the experiments that are wanted and adds their tables and curves to c->r.
 * `label` begins what a job says it is: "repro depth 1". `st`: how it went so far; all ranks agree
 * here. */
PARE_MUST_USE pare_status run_experiments(study_context *c, const experiment *const *list, size_t n,
                                          const setting *s, const char *label, pare_status st);
/* Adds a note: how many of the expected shapes are there, how many checks of the run by itself
 * hold. */
PARE_MUST_USE pare_status note_shapes(study_context *c);

/* ---- rows ---- */

/* A row with nothing to compare with, to be filled in further. */
table_row row_of(const char *data, const char *what, double ours);
/* A number with nothing to compare it with. */
void row_ours(table_writer *w, const char *data, const char *what, double ours);
/* Ours beside a figure of our own audit, which drew other random numbers (nan: a row of ours):
 * agrees within `factor`, up or down; at most `factor` times it; within `within`. The note has the
 * tolerance. A factor above 2 is the largest ratio of two of the seeds 0 to 8, rounded up
 * (docs/repro.md, "Verdicts"). */
void row_ratio(table_writer *w, const char *data, const char *what, double reference, double ours,
               double factor);
void row_at_most(table_writer *w, const char *data, const char *what, double reference, double ours,
                 double factor);
void row_near(table_writer *w, const char *data, const char *what, double reference, double ours,
              double within);
/* Whether a shape that our audit saw is there; `ours` nan: a yes (1) is expected, and a 1 or a 0
 * comes. */
void row_shape(table_writer *w, const char *data, const char *what, bool holds, double ours);
/* The same of what must hold in any run: no error above its bound. */
void row_holds(table_writer *w, const char *data, const char *what, bool holds, double ours);
/* Ours beside a number (nan: none), or a statement in a few words (NULL: none), that the paper
 * prints. */
void row_printed(table_writer *w, const char *data, const char *what, double published,
                 const char *claim, double ours, row_verdict verdict, const char *note);
void row_curve(table_writer *w, const char *data, const char *what, const double *x,
               const double *y, size_t n);
/* Least squares of log y on log x. */
double log_slope(const double *x, const double *y, size_t n);
#endif
