/* experiments.h - studies that are made of experiments, each a list of jobs that give
 * numbers, and a table made of them (experiments.c). */
#ifndef PARE_STUDIES_EXPERIMENTS_H
#define PARE_STUDIES_EXPERIMENTS_H
#include "study.h"
#include <pare/data.h>

/* What a job gives: numbers in an order that its table knows. */
typedef struct numbers {
    pare_arena *a;
    double *v;
    size_t n, room;
    bool no_memory;
} numbers;
void number_put(numbers *to, double v);

typedef struct setting {
    uint64_t seed;
    bool full;
    const pare_model *trained; /* E8, E9; NULL: there is none */
    const pare_dataset *data;
    const char *trained_name;
    bool tiny; /* it is that of our audit, whose figures are known */
} setting;

typedef struct experiment {
    const char *stem;           /* of the jobs' files: "orders" */
    size_t (*parts)(bool full); /* jobs */
    double cost;                /* of a job */
    bool trained;               /* needs the trained model */
    pare_status (*run)(numbers *out, const setting *s, size_t part, const pare_exec *exec,
                       pare_err *err);
    void (*table)(table_writer *s, const numbers *part, size_t n, const setting *of);
} experiment;

enum { MOST_CURVES = 400 }; /* of a study's experiments */

/* Room in f->r for tables, notes, and these curves beside those of the experiments. */
PARE_MUST_USE pare_status allocate_tables(study_context *f, size_t tables, size_t curves,
                                          size_t notes);
/* Does the jobs of the experiments that are wanted and adds their tables and curves to f->r.
 * `label` begins what a job says it is: "repro depth 1". `st`: how it went so far; all ranks agree
 * here. */
PARE_MUST_USE pare_status run_experiments(study_context *f, const experiment *const *list, size_t n,
                                          const setting *s, const char *label, pare_status st);
/* How many of the expected shapes are there and how many checks of the run by itself hold, as a
 * note; NULL: memory is out. */
const char *count_shapes(const study *r);

/* ---- rows ---- */

/* A number with nothing to compare it with. */
void row_ours(table_writer *s, const char *data, const char *what, double ours);
/* Ours beside a figure of our own audit, which drew other random numbers (nan: a row of ours):
 * agrees within `factor`, up or down; at most `factor` times it; within `within`. The note has the
 * tolerance. A factor above 2 is the largest ratio of two of the seeds 0 to 8, rounded up
 * (docs/repro.md, "Verdicts"). */
void row_ratio(table_writer *s, const char *data, const char *what, double reference, double ours,
               double factor);
void row_at_most(table_writer *s, const char *data, const char *what, double reference, double ours,
                 double factor);
void row_near(table_writer *s, const char *data, const char *what, double reference, double ours,
              double within);
/* Whether a shape that our audit saw is there; `ours` nan: a yes (1) is expected, and a 1 or a 0
 * comes. */
void row_shape(table_writer *s, const char *data, const char *what, bool holds, double ours);
/* The same of what must hold in any run: no error above its bound. */
void row_holds(table_writer *s, const char *data, const char *what, bool holds, double ours);
/* Ours beside a number, or a statement in a few words, that the paper prints. */
void row_printed(table_writer *s, const char *data, const char *what, double published, double ours,
                 row_verdict verdict, const char *note);
void row_claim(table_writer *s, const char *data, const char *what, const char *claim, double ours,
               row_verdict verdict, const char *note);
void row_curve(table_writer *s, const char *data, const char *what, const double *x,
               const double *y, size_t n);
/* Least squares of log y on log x. */
double log_slope(const double *x, const double *y, size_t n);
#endif
