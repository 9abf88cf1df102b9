/* outputs.h - what is proven about the outputs of two models on given inputs: how far they are
 * apart, which rows surely keep their largest entry, and where the area under the ROC curve lies.
 * Every direction's prover asks it. */
#ifndef PARE_CERT_OUTPUTS_H
#define PARE_CERT_OUTPUTS_H
#include "prove.h"

/* low <= auc <= high, proven; low above high: there is none. */
typedef struct pare_auc_bound {
    double low, high;
} pare_auc_bound;

/* How many nearest neighbors are looked at (neighbor_bound.c), where there are more than twice as many
 * inputs. */
enum { PARE_NEIGHBORS = 2 };
extern const size_t pare_neighbor_counts[PARE_NEIGHBORS];

/* What is proven of each input and of each output row by itself. Inputs of a batch count one by one;
 * what the models do not have is NULL. */
typedef struct pare_each_bound {
    size_t inputs, rows;
    size_t *first;    /* the first row of each input, and behind the last one `rows` */
    double *apart;    /* inputs: largest |f - g| of an output entry */
    double *distance; /* rows: 1 - cos(f, g), of embeddings (pare_model_embeds) */
    double *kl;       /* rows: KL(softmax f, softmax g), of models of ids with an output map */
    bool *stay[PARE_NEIGHBORS]; /* rows: the nearest are the same, of models with distances */
    double euclidean[2];        /* times this the radii of rows of f and g are euclidean */
} pare_each_bound;

typedef struct pare_output_bound {
    pare_gap gap;
    pare_each_bound *each; /* NULL: was not asked for */
    size_t rows, certain;  /* output rows; those whose largest entry is proven to be the same */
    pare_auc_bound auc[2]; /* of both models, where one input with targets is all there is */
} pare_output_bound;

/* Of two outputs on the rows that count, class 1 over class 0. */
PARE_MUST_USE pare_status pare_auc_interval(pare_auc_bound *out, pare_arena *scratch,
                                            const pare_enclosure *e, const int64_t *target,
                                            pare_err *err);

/* One row more, from the enclosures of both models (outputs.c): its bound on |f - g|. */
pare_ub pare_outputs_row(pare_output_bound *out, const pare_enclosure *f, const pare_enclosure *g,
                         size_t i);
/* How far the f32 engine's outputs y of g (NULL: it overflowed) are from the exact row. */
void pare_outputs_engine(pare_output_bound *out, const pare_enclosure *g, const float *y, size_t i);
/* The same enclosure around the high parts of its midpoints; low parts count as radius. */
PARE_MUST_USE pare_status pare_enclosure_flatten(pare_enclosure *out, pare_arena *a,
                                                 const pare_enclosure *e, pare_err *err);
/* Of all rows of the set (output_difference.c). With `labels`, rows that f64 alone cannot decide
 * are looked at again in double-double, where that is not too much work. `keep`: the arena of
 * out->each; NULL: what inputs do one by one is not asked for. */
PARE_MUST_USE pare_status pare_outputs_compare(pare_output_bound *out, pare_arena *keep,
                                               const pare_model *f, const pare_model *g,
                                               const pare_inputs *set, bool labels,
                                               const pare_exec *exec, pare_err *err);

/* ---- of each row (each_bound.c) ---------------------------------------------------------------- */

/* What can be said of the rows of these models, with nothing proven yet; in the arena. */
PARE_MUST_USE pare_status pare_each_bound_new(pare_each_bound **out, pare_arena *a,
                                              const pare_model *f, const pare_model *g,
                                              const pare_inputs *set, pare_err *err);
/* Rows that have become unit vectors: |exact/|exact| - unit| <= error, inf where nothing is known. */
typedef struct pare_unit_rows {
    size_t rows, cols;
    double *unit, *error; /* rows x cols; rows */
} pare_unit_rows;
/* The rows of one group of inputs, the first of which is row number `first` of the set; of models with
 * distances they are kept in units[0] (f) and units[1] (g). */
PARE_MUST_USE pare_status pare_each_bound_rows(pare_each_bound *each, pare_unit_rows units[2],
                                               size_t first, const pare_enclosure *f,
                                               const pare_enclosure *g, const pare_exec *exec,
                                               pare_err *err);
/* When all rows are there: which neighbors stay. */
PARE_MUST_USE pare_status pare_each_bound_finish(pare_each_bound *each,
                                                 const pare_unit_rows units[2], pare_err *err);
/* Memory for all rows of one model, where they are kept. */
PARE_MUST_USE pare_status pare_unit_rows_new(pare_unit_rows *out, pare_arena *a,
                                             const pare_each_bound *each, size_t cols,
                                             pare_err *err);
/* Of two that are true the better one, row by row. */
void pare_each_bound_merge(pare_each_bound *each, const pare_each_bound *other);
/* What a certificate says of it. */
PARE_MUST_USE pare_status pare_cert_take_each(pare_cert *c, pare_arena *a,
                                              const pare_each_bound *each, pare_err *err);

/* unit = mid / |mid| of a row whose exact entries are within `radius` (euclidean): its error. */
double pare_unit_row(double *unit, const double *mid, size_t n, double radius);
/* 1 - cos of two rows that are known as unit vectors; at most 2. */
pare_ub pare_cosine_distance(const double *u, double u_error, const double *v, double v_error,
                             size_t n);
/* KL(softmax f, softmax g) of rows whose entries are each within their radius. */
pare_ub pare_kl_bound(const double *f, double f_radius, const double *g, double g_radius, size_t n);
/* stay[i]: the `count` nearest of row i, by cosine, are the same ones in f and g. */
PARE_MUST_USE pare_status pare_neighbors_stay(bool *stay, const pare_unit_rows *f,
                                              const pare_unit_rows *g, size_t count, pare_err *err);

/* ---- claims ------------------------------------------------------------------------------------ */

/* Headline and engine (pare_cert_take_gap), rows whose largest entry may have changed, what was asked
 * of each row, and the AUC where the data have labels and the models two outputs. */
PARE_MUST_USE pare_status pare_cert_take_outputs(pare_cert *c, pare_arena *a,
                                                 const pare_output_bound *o, pare_err *err);
/* Multiply-adds of one pass of both models over the set: work, from shapes alone. */
double pare_passes_work(const pare_model *f, const pare_model *g, const pare_inputs *set);
#endif
