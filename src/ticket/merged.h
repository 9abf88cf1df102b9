/* merged.h - heads whose matrices are multiplied (merged.c). Private to the room. */
#ifndef PARE_SRC_TICKET_MERGED_H
#define PARE_SRC_TICKET_MERGED_H
#include <pare/ticket.h>

/* NULL, or why the heads of a model cannot be merged. */
const char *merge_refuses(const pare_model *m);
/* Weights of all attention layers now, and when merged. */
void merge_sizes(uint64_t *now, uint64_t *merged, const pare_model *m);
/* The same function with merged heads; new weights in m's arena. */
PARE_MUST_USE pare_status merge_heads(pare_model *m, pare_err *err);
#endif
