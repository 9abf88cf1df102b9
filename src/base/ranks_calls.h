/* ranks_calls.h - what libpare-mpi.so gives to ranks.c. */
#ifndef PARE_BASE_RANKS_CALLS_H
#define PARE_BASE_RANKS_CALLS_H
#include <pare/base.h>
#include <stddef.h>

/* Counts up whenever the table changes: a library of another version is refused. */
#define RANKS_CALLS_VERSION 1
#define RANKS_LIBRARY       "libpare-mpi.so"
#define RANKS_SYMBOL        "pare_mpi_calls"

/* Each gives 0, or a number that `why` has words for. */
typedef struct ranks_calls {
    int version;
    int (*open)(size_t *size, size_t *rank);
    void (*close)(void);
    int (*bcast)(void *data, size_t bytes, size_t from);
    int (*gather)(void *all, const void *mine, size_t bytes);
    int (*barrier)(void);
    void (*why)(char *text, size_t size, int code);
} ranks_calls;

extern const ranks_calls pare_mpi_calls;
#endif
