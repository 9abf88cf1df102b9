/* pare/ranks.h - several processes on one task: what MPI is needed for, and nothing of MPI itself.
 *
 * A program that uses this is not linked with MPI: the calls are in libpare-mpi.so, which is built
 * where MPI is installed and loaded by pare_ranks_open alone. NULL is a valid pare_ranks: one
 * process. Calls come from the thread that opened it, in the same order in every process. */
#ifndef PARE_RANKS_H
#define PARE_RANKS_H
#include <pare/base.h>

typedef struct pare_ranks pare_ranks;

/* Environment variables, NULL at the end: a program that finds one of them was started by an mpirun
 * and should call pare_ranks_open. (The library does not read the environment.) */
extern const char *const pare_ranks_signs[];

/* Joins the processes that mpirun started. PARE_ERR_IO when libpare-mpi.so or MPI is not there: a
 * process that went on alone would do everything once more, and write the same files. */
PARE_MUST_USE pare_status pare_ranks_open(pare_ranks **out, pare_err *err);
void pare_ranks_close(pare_ranks *r); /* every process, also after a failure; accepts NULL */

size_t pare_ranks_size(const pare_ranks *r); /* processes; 1 for NULL */
size_t pare_ranks_rank(const pare_ranks *r); /* 0 .. size - 1 */

/* `bytes` bytes of rank `from` go to all. */
PARE_MUST_USE pare_status pare_ranks_bcast(const pare_ranks *r, void *data, size_t bytes,
                                           size_t from, pare_err *err);
/* all: size x bytes, the parts in the order of the ranks; every rank has them afterwards. */
PARE_MUST_USE pare_status pare_ranks_gather(const pare_ranks *r, void *all, const void *mine,
                                            size_t bytes, pare_err *err);
/* Every rank comes here with how it fared; the first failure by number becomes that of all, words
 * included, so that nobody waits for one who has left. */
PARE_MUST_USE pare_status pare_ranks_agree(const pare_ranks *r, pare_status mine, pare_err *err);
/* Comes back when every rank has come here. */
PARE_MUST_USE pare_status pare_ranks_barrier(const pare_ranks *r, pare_err *err);
#endif
