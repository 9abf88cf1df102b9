/* stored_weights.h - between the weights of a model file and the matrices a construction uses. */
#ifndef PARE_SRC_WIDTH_STORED_WEIGHTS_H
#define PARE_SRC_WIDTH_STORED_WEIGHTS_H
#include "matrices.h"
#include <pare/model.h>

/* ---- reading: copies in f64 ---- */

pare_mat read_matrix_part(pare_work *w, const pare_weight *from, size_t r, size_t c, size_t rows,
                          size_t cols);
pare_mat read_matrix(pare_work *w, const pare_weight *from);
/* n entries of a vector from `at`; zeros where the vector is absent. */
double *read_vector(pare_work *w, const pare_weight *b, size_t at, size_t n);
/* A head's columns of Wo. A model without Wo writes the heads side by side: the identity. */
pare_mat read_wo(pare_work *w, const pare_attn *a, const pare_head *h);
/* The skip as a matrix; v NULL: none. */
pare_mat read_skip(pare_work *w, const pare_skip *s, size_t din);
/* PARE_ERR_INPUT: the model is not of the form that can be cut. block SIZE_MAX: not in a block. */
void refuse_model(pare_work *w, const char *where, size_t block, const char *what);
/* What a cut of the model to this precision (0: its own) is held in before it is rounded: f64 when
 * any matrix needs it. */
pare_dtype memory_dtype(const pare_model *m, pare_dtype dtype);

/* ---- writing: into the arena of a model, as f32 or f64 ---- */

typedef struct weight_writer {
    pare_work w; /* its arena is the model's */
    pare_dtype dtype;
} weight_writer;

pare_weight writer_reserve(weight_writer *o, size_t rows, size_t cols); /* zeros */
/* Writes m into v from row r, column c. */
void writer_put(weight_writer *o, pare_weight *v, size_t r, size_t c, const pare_mat *m);
pare_weight writer_matrix(weight_writer *o, const pare_mat *m);
/* A vector of zeros is not stored. */
pare_weight writer_vector(weight_writer *o, double *v, size_t n);
pare_dense writer_dense(weight_writer *o, const pare_mat *m, double *b);
/* An identity and a diagonal are stored as what they are; m->v NULL: no skip. */
pare_skip writer_skip(weight_writer *o, const pare_mat *m);
size_t skip_parameters(const pare_mat *m); /* numbers that writer_skip stores */

bool all_zero(const double *v, size_t n);
/* Whether the head with this Wo copies its values to the outputs from `first` on. */
bool is_identity_wo(const pare_mat *m, size_t first);
#endif
