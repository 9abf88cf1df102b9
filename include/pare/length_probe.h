/* pare/length_probe.h - what an engine of M tokens would have to do for a model: which modes apply,
 * how many calls, whether its small weights can be trusted, and whether sampling is sound. A part
 * of pare/probe.h. */
#ifndef PARE_LENGTH_PROBE_H
#define PARE_LENGTH_PROBE_H
#include <pare/data.h>
#include <pare/json.h>
#include <pare/length.h>

#define PARE_PROBE_LONG   4096 /* tokens that are planned for, unless positions end before */
#define PARE_PROBE_ORACLE 128  /* M at which types are judged */

typedef struct pare_probe_mode {
    pare_length_mode mode;
    const char *why_not; /* "": it applies */
} pare_probe_mode;

typedef struct pare_probe_engine { /* of m tokens, for the whole model */
    uint32_t m;
    uint64_t rounds;
    uint64_t native, reference; /* calls: with partial results; plain ones of exactly m rows */
    uint64_t paper, lower;      /* of Yu 2025's algorithm (0: it has none); of any cover */
    double ratio;               /* flops of the plain calls over those without calls */
    double bytes, scratch;      /* of the plain calls: moved; memory beside inputs and outputs */
} pare_probe_engine;

typedef struct pare_probe_type { /* of an engine's numbers */
    const char *name;            /* "f32", "f64", "f16" */
    double w_min;                /* smallest softmax weight to be trusted */
    double limit;                /* |logits| up to which a reference of logit 0 is proven safe */
    pare_reference reference;    /* the one this data asks for */
} pare_probe_type;

typedef struct pare_probe_logits { /* of one head on the data */
    size_t block, head;
    double largest; /* |logit| that was seen */
    double lmax;    /* no logit is larger: |q| |k| */
    double c, d;    /* the constants of Theorem 4.1 */
    size_t proven;  /* rows that a sample of some keys proves */
} pare_probe_logits;

typedef struct pare_length_probe {
    size_t tokens;  /* that the plans are for */
    size_t context; /* of the model; 0: none */
    bool endless;   /* positions say something about tokens beyond it */
    size_t nmodes, nengines;
    pare_probe_mode *modes;
    pare_probe_engine *engines;
    uint32_t cheapest; /* M up to the largest engine whose plain calls take fewest flops */
    double cheapest_ratio;
    /* with data */
    size_t looked; /* tokens */
    size_t nheads, ntypes;
    pare_probe_logits *heads;
    pare_probe_type *types;
    bool samples;       /* there is a sampling of this pattern */
    double asked;       /* M that Theorem 4.1 asks for here, at eps = 1/2 */
    size_t rows, drawn; /* that were sampled, all heads; keys of each */
    size_t proven;      /* of the rows: within eps = 1/2 with probability .99 together */
} pare_length_probe;

/* Everything in the arena. `in` may be NULL: then what sizes alone say; of a graph nothing. */
PARE_MUST_USE pare_status pare_length_look(pare_length_probe *out, pare_arena *a,
                                           const pare_model *m, const pare_input *in, uint64_t seed,
                                           const pare_exec *exec, pare_err *err);
#endif
