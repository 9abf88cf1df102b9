/* reduce_parts.h - one reduction on its way: what its steps share (reduce.c). */
#ifndef PARE_PLAN_REDUCE_PARTS_H
#define PARE_PLAN_REDUCE_PARTS_H
#include <pare/cut.h>

typedef struct reducer {
    const pare_reduce_opts *o;
    const pare_model *m;
    pare_reduction *out;
    pare_arena *arena;
    pare_steps steps;
    const pare_exec *exec; /* of the phase that is at work */
    pare_err *err;
} reducer;

/* The next phase: `share` percent of all work. */
void reduce_phase(reducer *r, const char *what, double share);
PARE_MUST_USE pare_status reduce_event(const reducer *r, pare_reduce_event e);
/* Reports what was loaded, also after a failure: st, or else what the event returns. */
PARE_MUST_USE pare_status reduce_loaded(const reducer *r, pare_status st);
/* Loads the inputs: files, split, seed and limits are the options'. */
PARE_MUST_USE pare_status reduce_load(reducer *r, pare_heldout_opts limits);
/* Decides whether the certificate may speak about new inputs; `chosen`: the held-out inputs chose
 * the size of the cut. */
PARE_MUST_USE pare_status reduce_new_inputs(reducer *r, bool chosen);
PARE_MUST_USE pare_status reduce_publish(reducer *r, pare_model **small, const char *reduction);
PARE_MUST_USE pare_status reduce_measure(reducer *r);
/* |f - g| / |f| of what is on the disk, on the held-out inputs. */
PARE_MUST_USE pare_status reduce_output_error(reducer *r);
/* The loss in nats per token, not its exponential: the quality of a text model in all
 * reductions. */
void reduce_in_nats(pare_evaluation *e);
/* n things of `size` bytes, copied into the caller's arena; NULL: memory is out. */
void *reduce_copy(reducer *r, const void *list, size_t n, size_t size);

/* Whether a cut by these options can be written as a folder like the one that `m` was read from:
 * PARE_ERR_USAGE says what no config of its family can hold (folder_shapes.c). */
PARE_MUST_USE pare_status reduce_fits_folder(const pare_model *m, const pare_reduce_opts *o,
                                             pare_err *err);

PARE_MUST_USE pare_status reduce_width(reducer *r);
PARE_MUST_USE pare_status reduce_depth(reducer *r);
PARE_MUST_USE pare_status reduce_ticket(reducer *r);
PARE_MUST_USE pare_status reduce_quant(reducer *r);
#endif
