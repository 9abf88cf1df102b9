/* child_process.h - another program, its standard input and output, and a deadline. */
#ifndef PARE_LENGTH_CHILD_H
#define PARE_LENGTH_CHILD_H
#include <pare/base.h>
#include <sys/types.h>

typedef struct child {
    pid_t pid;
    int fd; /* -1: gone */
    char name[64];
    double timeout;  /* seconds for an answer */
    double deadline; /* of the answer that is awaited now */
} child;

/* By sh -c, in a process group of its own. */
PARE_MUST_USE pare_status child_start(child *c, const char *command, double timeout, pare_err *err);
/* The clock of the next answer starts. */
void child_start_clock(child *c);
/* All bytes in, or out, before the deadline. While bytes go out, bytes that come in wait in the
 * socket; a program that answers before it has read all may fill it, so `early` keeps them. */
typedef struct early {
    uint8_t *data;
    size_t have, capacity, used;
} early;
PARE_MUST_USE pare_status child_send(child *c, const void *data, size_t bytes, early *e,
                                     pare_err *err);
PARE_MUST_USE pare_status child_receive(child *c, void *to, size_t bytes, early *e, pare_err *err);
/* The end of its input tells it to go; one that stays is ended. */
void child_stop(child *c);
#endif
