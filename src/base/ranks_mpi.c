/* ranks_mpi.c - libpare-mpi.so: the only file that includes mpi.h; no part of libpare (ranks.c). */
#include "ranks_calls.h"
#include <limits.h>
#include <mpi.h>
#include <stdio.h>

/* MPI counts in int: more goes in pieces. */
enum { PIECE = 1 << 30 };

static int mpi_open(size_t *size, size_t *rank)
{
    int have = 0, n = 0, at = 0, begun = 0;
    int rc = MPI_Initialized(&begun);
    if (!rc && !begun) rc = MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &have);
    if (!rc) rc = MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (!rc) rc = MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (!rc) rc = MPI_Comm_rank(MPI_COMM_WORLD, &at);
    *size = (size_t)n;
    *rank = (size_t)at;
    return rc;
}

static void mpi_close(void)
{
    int done = 0;
    if (MPI_Finalized(&done) == MPI_SUCCESS && !done) MPI_Finalize();
}

static int mpi_bcast(void *data, size_t bytes, size_t from)
{
    int rc = 0;
    for (size_t at = 0; !rc && at < bytes; at += PIECE) {
        const size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        rc = MPI_Bcast((char *)data + at, (int)n, MPI_BYTE, (int)from, MPI_COMM_WORLD);
    }
    return rc;
}

/* By broadcasts: a part is not cut in pieces that would lie apart in `all`. */
static int mpi_gather(void *all, const void *mine, size_t bytes)
{
    int n = 0, at = 0, rc = MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (!rc) rc = MPI_Comm_rank(MPI_COMM_WORLD, &at);
    for (int r = 0; !rc && r < n; r++) {
        char *const part = (char *)all + (size_t)r * bytes;
        const char *const own = mine;
        for (size_t i = 0; r == at && i < bytes; i++) part[i] = own[i];
        rc = mpi_bcast(part, bytes, (size_t)r);
    }
    return rc;
}

static int mpi_barrier(void)
{
    return MPI_Barrier(MPI_COMM_WORLD);
}

static void mpi_why(char *text, size_t size, int code)
{
    char words[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    MPI_Error_string(code, words, &n);
    snprintf(text, size, "%s", words);
}

const ranks_calls pare_mpi_calls = {.version = RANKS_CALLS_VERSION,
                                    .open = mpi_open,
                                    .close = mpi_close,
                                    .bcast = mpi_bcast,
                                    .gather = mpi_gather,
                                    .barrier = mpi_barrier,
                                    .why = mpi_why};
