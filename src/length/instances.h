/* instances.h - independent pieces of attention, put into the calls of a strict oracle (Yu 2025,
 * Lemma 3.3). */
#ifndef PARE_LENGTH_INSTANCES_H
#define PARE_LENGTH_INSTANCES_H
#include "run.h"

/* y = softmax(mask(q k^T)) v, n rows without gaps; or q, k, v side by side out of phi(raw). */
typedef struct instance {
    uint32_t n, dk, dv;
    bool causal;
    char *q, *k, *v;
    const char *raw;       /* n x phi->din, with phi */
    const pare_tokfn *phi; /* its outputs are q | k | v; NULL: given above */
    char *y;
} instance;

/* Zeros for q, k, v and y of its sizes; false: memory is out. */
bool instance_alloc(instance *i, pare_arena *a, pare_dtype t);
/* All of them, as many in a call as it holds (rule_capacity), and the barrier; adds to *calls. Of
 * the inputs: oracle, caps, strict, err. */
PARE_MUST_USE pare_status instances_run(const run_inputs *in, const instance *list, size_t count,
                                        uint64_t *calls);
/* The same; one call each where the oracle takes queries, keys and values. */
PARE_MUST_USE pare_status instances_run_any(const run_inputs *in, const instance *list,
                                            size_t count, uint64_t *calls);
#endif
