/* scratch_stack.h - working memory of a forward pass: a stack that keeps what it has.
 *
 * An arena gives memory back at every reset and zeroes what it hands out; a pass would pay for that
 * once per sublayer. Here a reset only moves the top, and what is handed out is not cleared. */
#ifndef PARE_MODEL_SCRATCH_STACK_H
#define PARE_MODEL_SCRATCH_STACK_H
#include <pare/base.h>

typedef struct scratch_part scratch_part;
typedef struct scratch {
    scratch_part *first, *now; /* parts in use: first .. now */
} scratch;
typedef struct scratch_mark {
    scratch_part *now;
    size_t used;
} scratch_mark;

enum { SCRATCH_ALIGNMENT = 64 };

/* An empty scratch is {0}. */
void scratch_free(scratch *s);
/* Aligned; NULL when memory is out or the product overflows. */
PARE_MUST_USE void *scratch_get(scratch *s, size_t count, size_t size);
/* The next `bytes` lie in one piece: one large allocation per pass is one that malloc keeps for the
 * next pass, with its pages. */
PARE_MUST_USE bool scratch_reserve(scratch *s, size_t bytes);
scratch_mark scratch_save(const scratch *s);
void scratch_reset(scratch *s, scratch_mark m);
#endif
