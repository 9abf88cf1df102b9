/* oracle_wrappers.h - an engine that takes at most M tokens, as an interface: what the length direction
 * plans for, and what a trainer can swap. Backends implement pare_oracle_ops; the built-in one sits
 * on the attention kernels. A call is one small piece of attention; calls of one round are
 * independent of one another. Scores are plain q.k: a scale is folded into q. */
#ifndef PARE_TEST_ORACLE_WRAPPERS_H
#define PARE_TEST_ORACLE_WRAPPERS_H
#include <pare/attention.h>

/* What `checked` looks at and finds. */
typedef struct pare_oracle_check {
    double fraction;         /* in: of the calls, evenly; 1: all */
    uint64_t calls, checked; /* out; strict calls are never checked */
    double deviation;        /* out: the largest difference seen, of any output number ... */
    double used;             /* ... and the largest part of its bound that a difference took */
} pare_oracle_check;
/* Passes everything on to `inner`, which it owns as above, and computes partial and qkv calls anew
 * in f64 at the barrier. Where a number is further away than the rounding of the oracle's dtype and
 * exp_err explains, or is a nan, the barrier answers PARE_ERR_VERIFY and names the call (counted
 * from 0 since the oracle was made) and the number. The inputs of a call must live until then. */
PARE_MUST_USE pare_status pare_oracle_checked(pare_oracle *out, pare_oracle inner,
                                              pare_oracle_check *check, pare_err *err);

/* An oracle that fails where it is told to: for tests of what sits on top of one. */
typedef enum pare_fault_kind {
    PARE_FAULT_REFUSE, /* evaluate fails with PARE_ERR_IO, nothing is run */
    PARE_FAULT_LOSE,   /* the barrier fails with PARE_ERR_IO */
    PARE_FAULT_NAN,    /* the first number of the last row becomes a nan */
    PARE_FAULT_SHORT,  /* the last row is not written */
    PARE_FAULT_WRONG   /* the first number of the last row is off by `by`, added */
} pare_fault_kind;
typedef struct pare_fault {
    uint64_t call; /* counted from 0 since the oracle was made */
    pare_fault_kind kind;
    double by;
} pare_fault;
/* Passes everything on to `inner`, which it owns as above; `faults` is borrowed. The row meant is
 * that of acc or y. */
PARE_MUST_USE pare_status pare_oracle_faulty(pare_oracle *out, pare_oracle inner,
                                             const pare_fault *faults, size_t n, pare_err *err);
#endif
