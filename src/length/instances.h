/* instances.h - pieces of attention, put into the calls of a strict oracle (Lemma 3.3). */
#ifndef PARE_LENGTH_INSTANCES_H
#define PARE_LENGTH_INSTANCES_H
#include "rounds.h"

/* y = softmax(mask(q k^T)) v, n rows without gaps; or q, k, v side by side out of phi(raw). */
typedef struct instance {
    uint32_t n, dk, dv;
    bool causal;
    const char *q, *k, *v;
    const char *raw;       /* n x phi->din, with phi */
    const pare_tokfn *phi; /* its outputs are q | k | v; NULL: given above */
    char *y;
} instance;

/* All of them, rule_capacity in a call, and the end of the round; adds to *calls. */
PARE_MUST_USE pare_status instances_run(run *r, const instance *list, size_t count,
                                        uint64_t *calls);
/* The same through an oracle of queries, keys and values where it is one, a call each. */
PARE_MUST_USE pare_status pieces_run(run *r, const instance *list, size_t count, uint64_t *calls);
#endif
