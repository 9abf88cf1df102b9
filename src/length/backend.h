/* backend.h - whole models through an oracle, and oracles that are other programs. */
#ifndef PARE_LENGTH_BACKEND_H
#define PARE_LENGTH_BACKEND_H
#include <pare/length.h>

/* A head that a pass hands over (pare_attender), as a job of this direction. */
pare_length_job pare_length_job_of(const pare_attend_job *j);

/* ---- another program (docs/pipe.md) ---------------------------------------------------------- */

#define PARE_PIPE_VERSION 1
typedef struct pare_pipe_opts {
    const char *command; /* for sh -c */
    uint32_t length;     /* M that it is asked for; it may answer less; 0: its own */
    uint32_t dk, dv;     /* widest head, for its information */
    pare_dtype dtype;    /* PARE_F32 or PARE_F64 */
    double timeout;      /* seconds for an answer; 0 = PARE_PIPE_TIMEOUT */
} pare_pipe_opts;
/* Starts the program and asks what it can do. Calls go over its standard input, results come from
 * its standard output. Whatever it does wrong (it ends, is silent, or answers something else than
 * results of these calls) is PARE_ERR_IO with the number of the call, counted from 0. The process
 * is ended with the oracle. */
PARE_MUST_USE pare_status pare_oracle_pipe(pare_oracle *out, const pare_pipe_opts *o,
                                           pare_err *err);
#endif
