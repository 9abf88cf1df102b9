/* stored_weights.h - between stored weights and the matrices a cut works on. */
#ifndef PARE_SRC_WIDTH_STORED_WEIGHTS_H
#define PARE_SRC_WIDTH_STORED_WEIGHTS_H
#include "matrices.h"
#include <pare/model.h>

/* ---- reading: widened copies ---- */

pare_mat read_part(work *w, const pare_weight *from, size_t r, size_t c, size_t rows, size_t cols);
pare_mat read_all(work *w, const pare_weight *from);
/* n entries of a vector from `at`; zeros where it is absent. */
double *read_bias(work *w, const pare_weight *b, size_t at, size_t n);
/* The columns of wo that a head has; without wo the heads side by side are the output. */
pare_mat read_join(work *w, const pare_attn *a, const pare_head *h);
/* f64 when any matrix of the model is. */
pare_dtype read_dtype(work *w, const pare_model *m);

/* ---- writing: into an arena, as f32 or f64; the first failure stays ---- */

typedef struct store {
    pare_arena *a;
    pare_dtype t;
    pare_status st;
    pare_err *err;
} store;

pare_weight store_room(store *o, size_t rows, size_t cols); /* zeros */
void store_put(store *o, pare_weight *v, size_t r, size_t c, const pare_mat *m);
pare_weight store_all(store *o, const pare_mat *m);
/* A vector of zeros is not stored. */
pare_weight store_bias(store *o, double *v, size_t n);
bool all_zero(const double *v, size_t n);
/* Does a head with this map write its values to the outputs from `first` as they are? */
bool is_join(const pare_mat *m, size_t first);
/* An identity and a diagonal are stored as what they are; m->v NULL: no skip. */
pare_skip store_skip(store *o, const pare_mat *m);
size_t store_skip_count(const pare_mat *m); /* numbers that store_skip stores */
#endif
