/* pare/plan.h - one budget, spent over the directions: which cuts, how deep, in which order.
 *
 * Every direction is tried by itself at a few settings; then the mixtures that promise most by the
 * sum of their errors and the product of their sizes are made and measured. Nothing is chosen that
 * was not made: the result is never worse than the best single direction. */
#ifndef PARE_PLAN_H
#define PARE_PLAN_H
#include <pare/cert.h>

typedef enum pare_plan_way {
    PARE_PLAN_WIDTH,
    PARE_PLAN_DEPTH,
    PARE_PLAN_WEIGHTS,
    PARE_PLAN_WAYS /* how many there are; a mixture goes through them in this order */
} pare_plan_way;

typedef struct pare_plan_step {
    pare_plan_way way;
    double setting; /* width: share of the parameters (below 1) or dimensions; depth: exact
                       attention layers; weights: bits */
} pare_plan_step;
extern const char *const pare_plan_way_names[]; /* "width", "depth", "ticket", NULL */
/* "width --dim 8": how the command would be told. */
const char *pare_plan_step_name(char buf[48], const pare_plan_step *s);
/* The cut of one step, and the bytes that its weights take in a file; the output may refer to
 * `in`. */
PARE_MUST_USE pare_status pare_plan_make(pare_model **out, uint64_t *bytes, const pare_plan_step *s,
                                         const pare_model *in, const pare_inputs *fit,
                                         uint64_t seed, const pare_exec *exec, pare_err *err);
/* How that step is proven: the prover of its direction. */
const pare_prover *pare_plan_prover(const pare_plan_step *s);

typedef struct pare_plan_try {
    size_t nsteps; /* 0: the model as it is */
    pare_plan_step steps[PARE_PLAN_WAYS];
    const char *refused; /* why it could not be made; NULL: it was */
    double error; /* sum over the steps of the largest difference on `on`, f64: what a chain of
                     proofs adds up to at least; with `seen`: from the first model to the last */
    uint64_t parameters, bytes;
    double ms;   /* of one pass: pare_forward_ms */
    double over; /* by what factor it misses the budget it misses most; at most 1: all are met */
} pare_plan_try;

typedef struct pare_plan_opts {
    /* Budgets: inf or UINT64_MAX where there is none. With an eps the smallest file wins, without
     * one the smallest error. */
    double eps, max_ms;
    uint64_t max_bytes;
    uint64_t frame_bytes; /* of the file, beside the weights */
    size_t mixtures;      /* that are made at most */
    unsigned ways;        /* that may be gone: a bit for each */
    bool seen;            /* errors are what is measured, and nothing has to be proven of them */
    uint64_t seed;
    void (*note)(void *self, const pare_plan_try *t); /* one for each that was made; may be NULL */
    void *self;
} pare_plan_opts;
#define PARE_PLAN_OPTS_DEFAULT                                                                     \
    {                                                                                              \
        .eps = __builtin_inf(), .max_ms = __builtin_inf(), .max_bytes = UINT64_MAX,                \
        .mixtures = 10, .ways = ~0u                                                                \
    }

typedef struct pare_plan {
    size_t n;
    pare_plan_try *tries; /* the best first; those that miss the budget after them, nearest first */
    size_t fit;           /* how many meet it */
    size_t singles;       /* how many tries were of one direction */
} pare_plan;

/* By what factor the budget that is missed most is missed. */
double pare_plan_over(const pare_plan_opts *o, double error, uint64_t bytes, double ms);

/* `fit`: what cuts are fitted to; `on`: what errors are measured on, its first input timed. The
 * plan lives in the arena. A cut that a model does not allow is a try with its reason, not an
 * error. */
PARE_MUST_USE pare_status pare_plan_search(pare_plan *out, pare_arena *a, const pare_model *m,
                                           const pare_inputs *fit, const pare_inputs *on,
                                           const pare_plan_opts *opts, const pare_exec *exec,
                                           pare_err *err);
#endif
