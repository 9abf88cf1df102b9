/* ticket_matrix.h - one matrix as a ticket, whatever its place in the model. Private to this
 * folder. */
#ifndef PARE_SRC_TICKET_TICKET_MATRIX_H
#define PARE_SRC_TICKET_TICKET_MATRIX_H
#include "model/input_moments.h"
#include "fit.h"
#include <pare/ticket.h>

/* w (rows x cols) is fitted, coded and expanded again; the bytes and the numbers live in `a`. The
 * stream is the matrix's own. */
typedef struct matrix_job {
    const char *name;
    pare_mat w;
    uint64_t stream;
    pare_relu_source relu; /* what w multiplies */
    bool vector;           /* a bias: one row, which multiplies 1 */
    const pare_ticket_opts *o;
    const input_moments *moments; /* of FEEDBACK: the rows that enter it; NULL: not known */
    const pare_exec *exec;
} matrix_job;
PARE_MUST_USE pare_status matrix_ticket(pare_coded *coded, pare_weight *expanded,
                                        pare_ticket_matrix *report, pare_arena *a,
                                        const matrix_job *job, pare_err *err);
#endif
