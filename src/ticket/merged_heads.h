/* merged_heads.h - a model in the form of the theorems: heads whose matrices are multiplied
 * (merged_heads.c), feed-forward parts as layers of a ReLU source (relu_split.c). Private to this
 * folder. */
#ifndef PARE_SRC_TICKET_MERGED_HEADS_H
#define PARE_SRC_TICKET_MERGED_HEADS_H
#include "model/ticket_store.h"

/* NULL, or why the heads of a model cannot be merged. */
const char *merge_refused(const pare_model *m);
/* Weights of all attention layers now, and when merged. */
void merge_sizes(uint64_t *now, uint64_t *merged, const pare_model *m);
/* The same function with merged heads; new weights in m's arena. */
PARE_MUST_USE pare_status merge_heads(pare_model *m, pare_err *err);

/* A part with ReLU between its layers. */
bool is_relu_ffn(const pare_ffn *f);
/* The same function with such parts split by sign; counts them, and those that are not. */
PARE_MUST_USE pare_status relu_split(pare_model *m, size_t *parts, size_t *others, pare_err *err);
/* What the weight of that name multiplies in a model that was split. */
pare_relu_source relu_source_of(const pare_model *m, const char *name);
#endif
