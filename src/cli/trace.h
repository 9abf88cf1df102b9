/* trace.h - every tap of a pass as an .npy file in a folder. */
#ifndef PARE_CLI_TRACE_H
#define PARE_CLI_TRACE_H
#include "cli.h"

typedef struct tracer {
    cli *c;
    const char *folder;
    size_t batch, files;
    pare_status st; /* the first failure; nothing is written after it */
} tracer;

/* Makes the folder; one that holds something is refused without -f. */
pare_status trace_open(tracer *t, cli *c, const char *folder);
/* pare_trace.fn; self is the tracer. */
void trace_tap(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v, size_t rows,
               size_t cols);
#endif
