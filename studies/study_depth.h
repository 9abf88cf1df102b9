/* study_depth.h - the parts of `repro depth`: its experiments and what they share. */
#ifndef PARE_STUDIES_STUDY_DEPTH_H
#define PARE_STUDIES_STUDY_DEPTH_H
#include "experiments.h"
#include "attention_nets.h"
#include <pare/depth.h>

/* Loads or makes the trained model (depth_trained_model.c); caller frees it. */
PARE_MUST_USE pare_status depth_model(study_context *c, setting *s, pare_model **out);

/* Each in the file that is named after its group. */
extern const experiment orders, lscale, rank_collapse; /* depth_random_nets.c */
extern const experiment large;                         /* depth_large.c */
extern const experiment tightness, subsets;            /* depth_bounds.c */
extern const experiment replication;                   /* depth_replicated.c */
extern const experiment balls;                         /* depth_ball.c */
extern const experiment trained, scaled;               /* depth_trained.c */
extern const experiment polynomials;                   /* depth_poly.c */

/* ---- a network and what stands in its place ---- */

typedef struct compared { /* a network, its inputs, its outputs on them */
    const pare_model *m;
    const pare_inputs *in, *calib;
    double *y;
    size_t n;
    pare_arena *a;
    pare_err *err;
    pare_model *own; /* of compared_new: caller frees it */
    san_pair x;
} compared;
PARE_MUST_USE pare_status compared_open(compared *c, pare_arena *a, const pare_model *m,
                                        const pare_inputs *in, const pare_inputs *calib,
                                        pare_err *err);
/* Draws the network, t.n inputs for it, and `fit` others to calibrate with. Free c->own in any
 * case. */
PARE_MUST_USE pare_status compared_new(compared *c, pare_arena *a, const san_shape *net,
                                       san_tokens t, size_t fit, pare_rng *rng, pare_err *err);
/* One layer in the place of all; `keep` counts where one is kept. */
PARE_MUST_USE pare_status one_layer(pare_model **out, const pare_model *m, pare_collapse kind,
                                    size_t keep, const pare_inputs *calib, pare_err *err);
typedef double distance_fn(const double *a, const double *b, size_t n);
/* Distance of a model g, or of one layer, from the network. */
PARE_MUST_USE pare_status compared_model(double *out, const compared *c, const pare_model *g,
                                         distance_fn *by);
PARE_MUST_USE pare_status compared_collapse(double *out, const compared *c, pare_collapse kind,
                                            size_t keep, distance_fn *by);

/* Largest |a - b|_2 of a row of 8 entries. */
double longest_row_of_8(const double *a, const double *b, size_t n);
/* Largest range of a column of x, n x d. */
double widest_column(const double *x, size_t n, size_t d);
#endif
