/* work.h - a computation of many steps with one error: an arena, threads, and the first failure.
 *
 * After the first failure every step does nothing, so that a construction reads like its
 * mathematics and is asked once, at its end, whether it went well (w->st). Code that reads results
 * by hand asks w->st first. Types of their own (a page, an ONNX graph, a reader of tensors) have a
 * pare_work as their first member. */
#ifndef PARE_BASE_WORK_H
#define PARE_BASE_WORK_H
#include <pare/base.h>

typedef struct pare_work {
    pare_arena *arena;
    const pare_exec *exec; /* may be NULL */
    pare_err *err;         /* may be NULL */
    pare_status st;        /* the first failure, PARE_OK until then */
} pare_work;

/* Keeps st where it is the first failure. The first form has a message, the second is for a callee
 * that has written one into w->err. */
void pare_work_fail(pare_work *w, pare_status st, const char *fmt, ...) PARE_PRINTF(3, 4);
void pare_work_keep(pare_work *w, pare_status st);
/* count x size bytes of the arena, zeroed; NULL only after a failure. Looks at the stop flag: every
 * step of a construction allocates. */
void *pare_work_alloc(pare_work *w, size_t count, size_t size);
#endif
