/* repro_depth.h - the parts of `repro depth`: experiments, each a list of jobs that give numbers,
 * and a table made of them. */
#ifndef PARE_SRC_STUDY_REPRO_DEPTH_H
#define PARE_SRC_STUDY_REPRO_DEPTH_H
#include "repro.h"
#include "repro_nets.h"
#include <pare/depth.h>
#include <pare/data.h>

/* What a job gives: numbers in an order that its table knows. */
typedef struct numbers {
    pare_arena *a;
    double *v;
    size_t n, room;
    bool no_memory;
} numbers;
void number_put(numbers *to, double v);

typedef struct depth_study {
    uint64_t seed;
    bool full;
    const pare_model *trained; /* E8, E9; NULL: there is none */
    const pare_dataset *data;
    const char *trained_name;
    bool tiny; /* it is the reference's */
} depth_study;

/* Loads or makes the trained model (repro_depth_model.c); caller frees it. */
PARE_MUST_USE pare_status depth_model(frame *f, depth_study *s, pare_model **out);

typedef struct experiment {
    const char *stem;           /* of the jobs' files: "orders" */
    size_t (*parts)(bool full); /* jobs */
    double cost;                /* of a job */
    bool trained;               /* needs the trained model */
    pare_status (*run)(numbers *out, const depth_study *s, size_t part, const pare_exec *exec,
                       pare_err *err);
    void (*table)(sheet *s, const numbers *part, size_t n, const depth_study *of);
} experiment;

/* Each in the file that is named after its group. */
extern const experiment orders, lscale, rank_collapse; /* repro_depth_san.c */
extern const experiment large;                         /* repro_depth_large.c */
extern const experiment tightness, subsets;            /* repro_depth_bounds.c */
extern const experiment replication;                   /* repro_depth_replicated.c */
extern const experiment balls;                         /* repro_depth_ball.c */
extern const experiment trained, scaled;               /* repro_depth_trained.c */
extern const experiment polynomials;                   /* repro_depth_poly.c */

/* ---- rows ---- */

/* Ours beside the reference's (nan: none): "reproduced" within `factor`, up or down. */
void row_ratio(sheet *s, const char *data, const char *what, double reference, double ours,
               double factor);
void row_near(sheet *s, const char *data, const char *what, double reference, double ours,
              double within);
/* Whether what was expected is there; `ours` may be nan. */
void row_shape(sheet *s, const char *data, const char *what, bool holds, double ours);
void row_curve(sheet *s, const char *data, const char *what, const double *x, const double *y,
               size_t n);
/* Least squares of log y on log x. */
double log_slope(const double *x, const double *y, size_t n);

/* ---- collapses ---- */

typedef struct compared { /* a network and what it says on its inputs */
    const pare_model *m;
    const pare_inputs *in, *calib;
    double *y;
    size_t n;
    pare_arena *a;
    pare_err *err;
} compared;
PARE_MUST_USE pare_status compared_open(compared *c, pare_arena *a, const pare_model *m,
                                        const pare_inputs *in, const pare_inputs *calib,
                                        pare_err *err);
typedef double distance_fn(const double *a, const double *b, size_t n);
/* Distance of a collapse (or of any model g) from the network. */
/* One layer in the place of all; `keep` counts where one is kept. */
PARE_MUST_USE pare_status compared_make(pare_model **out, const pare_model *m, pare_collapse kind,
                                        size_t keep, const pare_inputs *calib, pare_err *err);
PARE_MUST_USE pare_status compared_collapse(double *out, const compared *c, pare_collapse kind,
                                            size_t keep, distance_fn *by);
PARE_MUST_USE pare_status compared_model(double *out, const compared *c, const pare_model *g,
                                         distance_fn *by);
#endif
