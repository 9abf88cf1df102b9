/* pare/plan.h - looking across the cuts: what each would cost (probe), spending one budget over
 * all of them (plan), and one page that shows it (report). */
#ifndef PARE_PLAN_H
#define PARE_PLAN_H
#include <pare/depth.h>
#include <pare/length.h>
#include <pare/width.h>

/* ---- what length would cost ------------------------------------------------------------------ */

/* What an engine of M tokens would have to do for a model: which modes apply, how many calls,
 * whether its small weights can be trusted, and whether sampling is sound. */

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

/* ---- probe ----------------------------------------------------------------------------------- */

/* What one sees of a model before any cut: what its weights and its stream look like, which theorem
 * applies and which hypothesis fails by what factor, and what each cut would cost.
 *
 * Everything is an estimate or a measurement in f64; what is proven is a pare_ub. Figures that do
 * not apply are nan. */

#define PARE_PROBE_RANK 1e-6 /* of the largest: singular values below count as 0 */

typedef struct pare_spectrum { /* of one matrix */
    char name[24];             /* "Wq", "W1", "gate", "embedding" */
    size_t block, head;        /* SIZE_MAX: of no block, of no head */
    size_t rows, cols, n, rank_est;
    double *s_est; /* n = min(rows, cols) singular values, descending */
    /* exp of the entropy of s / sum s; |W|_F^2 / |W|_2^2 */
    double effective_est, stable_est;
} pare_spectrum;

typedef struct pare_norms { /* of many things: Table 1 of Shirzad 2024 */
    size_t n;
    double mean, std, sup; /* std: with n - 1 */
} pare_norms;

typedef struct pare_stream { /* one place of the stream: h0, z0, h1, ... */
    char name[24];
    size_t width, rows;
    size_t rank_est, affine_est; /* of the rows; of the rows without their mean */
    double *s_est;               /* width: root mean squares along the axes of the centered rows */
    double effective_est;        /* of the centered rows */
    double mean, std, sup;       /* of the euclidean norms of the rows */
} pare_stream;

typedef struct pare_finding { /* one hypothesis of one theorem */
    const char *theorem, *method, *what, *where;
    pare_truth holds;
    double value, limit;
    double factor; /* by which it fails; 1 or less where it holds; nan: no such number */
} pare_finding;

typedef struct pare_cut_cost { /* one cut, made and thrown away */
    pare_width_method method;
    size_t dim;             /* asked for; 0: the method finds its own */
    size_t stream, qk, ffn; /* largest after the cut */
    uint64_t parameters;
    double largest, rms; /* difference of the outputs, f64 */
    double metric;       /* nan: no labels */
    const char *refused; /* NULL, or why there is no such cut: the figures are then nan */
} pare_cut_cost;

/* Attentions replaced: what is proven a priori. "keep" and "parallel" leave a model with a single
 * attention as it is: they are not listed for it. */
typedef struct pare_probe_bound {
    const char *what;          /* "uniform", "parallel+uniform", ... */
    const char *domain;        /* in words */
    pare_ub bound, difference; /* of an output; of the difference of two outputs */
    double measured;           /* largest |difference| of an output on the data; nan: not made */
    const char *why;           /* "", or why nothing is proven or it cannot be made */
} pare_probe_bound;

typedef enum pare_depth_verdict {
    /* Collapsible: some replacement has a proven bound below PARE_PROBE_SMALL. */
    PARE_DEPTH_PROVED,
    /* Collapsible on this data: at most one attention (of several) need stay. */
    PARE_DEPTH_MEASURED,
    /* Kinds were tried, and each loses more than PARE_PROBE_LOST. Others may not. */
    PARE_DEPTH_NOT,
    PARE_DEPTH_UNKNOWN /* nothing was tried, and no bound is small: nothing is known */
} pare_depth_verdict;
extern const char *const pare_depth_verdict_names[]; /* "collapsible (proved)", ... */
#define PARE_PROBE_SMALL 0.01 /* of the largest output: a bound that is of use */
#define PARE_PROBE_LOST  0.1  /* of what attention does: may be lost */
#define PARE_PROBE_RANGE 0.3  /* mean logit range up to which uniform weights are usable */

typedef struct pare_depth_probe {
    pare_attention_stats stats;
    pare_replacement_costs costs;
    size_t nbounds;
    pare_probe_bound *bounds;
    size_t paper_heads, paper_layers;
    pare_collapse_printed paper; /* as printed: not sound */
    pare_depth_verdict verdict;
    const char *why;      /* of the verdict: what was tried, what was found; one sentence */
    const char *violated; /* the first condition of a collapse that fails; "" where none does */
} pare_depth_probe;

typedef struct pare_probe_kind { /* matrices of one kind in all blocks, as targets of tickets */
    const char *name;            /* "attn.wq", "ffn.0.weight", "embedding.embedding" */
    size_t count, rows, cols;    /* rows, cols: of the first */
    uint64_t weights;
    double largest, rms; /* of the entries */
    size_t reach;        /* items whose sums reach the largest entry on average at scale 1: 8 |w| */
} pare_probe_kind;

typedef struct pare_probe_need { /* what a ticket takes whose entries err by this */
    double error;                /* of the largest entry of their matrix */
    size_t seen;                 /* items an entry for 99 of 100 entries, in draws; 0: above 26 */
    size_t proven;               /* by Lemma S for all entries, p = .99; 0: not proven */
    size_t density;              /* the same for weights off the lattice */
    double coupling;             /* what the lattice costs, in the same unit as error */
    uint64_t factored, merged;   /* bytes at `seen` items; 0: no such ticket */
} pare_probe_need;

typedef struct pare_ticket_probe {
    size_t nkinds, nneeds;
    pare_probe_kind *kinds;
    pare_probe_need *needs;
    uint64_t f32;           /* bytes of the same weights */
    const char *not_merged; /* "", or why merged heads (Otsuka 2025) are impossible */
} pare_ticket_probe;

/* One direction in one line: one cut that it offers, made here and thrown away; its price, and what
 * blocks it or more of it. */
typedef struct pare_cost_estimate {
    const char *direction;   /* "width", "depth", "weights", "length" */
    pare_truth can;          /* the price may be borne; unknown: not tried, `why` says why */
    const char *cut;         /* as the command is told: "width --dim 8"; "": none was made */
    const char *left;        /* what is left of what, in words; "" */
    pare_ub proven;          /* largest difference of an output on `domain`; inf: nothing */
    double measured, metric; /* the same, as seen; what the data say afterwards; nan: not looked */
    const char *domain;      /* what `proven` speaks of, in words; "" */
    const char *why;         /* what blocks it, or more of it; "": nothing does */
} pare_cost_estimate;
enum { PARE_PROBE_DIRECTIONS = 4 };
/* What may be borne: so much less accuracy or area, so many nats more; without labels
 * PARE_PROBE_LOST of the largest output. */
#define PARE_PROBE_LOSS 0.01
#define PARE_PROBE_NATS 0.05

typedef enum pare_probe_part {
    PARE_PROBE_ALL,
    PARE_PROBE_WIDTH,
    PARE_PROBE_DEPTH,
    PARE_PROBE_TICKET,
    PARE_PROBE_LENGTH
} pare_probe_part;

typedef struct pare_probe_opts {
    const size_t *dims; /* widths to try; NULL: 1/4, 1/8, 1/16; of text models 3/4, 1/2, 1/4 */
    size_t ndims;
    size_t trials; /* of methods that draw */
    size_t tokens; /* of the data that are looked at, at most (a graph: all) */
    uint64_t seed;
    bool no_cuts;
    pare_probe_part part;
    size_t depth_tokens; /* that the depth part fits to and looks at, at most (a graph: all) */
    double depth_macs;   /* multiplications that trying replacements may take; 0: any number */
    pare_width_facts_opts width_facts;
} pare_probe_opts;
#define PARE_PROBE_OPTS_DEFAULT                                                                    \
    {                                                                                              \
        .trials = 4, .tokens = 4096, .depth_tokens = 1024, .depth_macs = 5e10,                     \
        .width_facts = PARE_WIDTH_FACTS_OPTS_DEFAULT                                               \
    }

typedef struct pare_probe {
    size_t nspectra;
    pare_spectrum *spectra;
    pare_norms operators; /* of Wq, Wk, Wv and the maps of the feed-forward parts: |W|_2 */
    /* with data */
    size_t nstreams, inputs, tokens;
    pare_stream *streams;
    pare_norms vectors; /* of the rows that enter a block */
    bool has_width_facts;
    pare_width_facts width_facts;
    size_t nfindings, ncuts, nuntold;
    pare_finding *findings;
    uint64_t parameters; /* before any cut */
    double output;       /* largest |output| */
    const char *metric;  /* "auc", "accuracy", "nats", or NULL */
    double metric_before;
    pare_cut_cost *cuts;
    bool has_depth, has_ticket, has_length;
    pare_depth_probe depth;
    pare_ticket_probe ticket;
    size_t nestimates;
    pare_cost_estimate estimates[PARE_PROBE_DIRECTIONS];
    pare_length_probe length;
    const char **untold; /* sentences: what could not be told, and why */
    pare_arena *arena;
} pare_probe;

/* `data` may be NULL: then what the weights alone say. Caller frees *out with pare_probe_free. */
PARE_MUST_USE pare_status pare_probe_model(pare_probe **out, const pare_model *m,
                                           const pare_dataset *data, const pare_probe_opts *o,
                                           const pare_exec *exec, pare_err *err);
void pare_probe_free(pare_probe *p); /* accepts NULL */

/* The same as text, in the arena. */
PARE_MUST_USE pare_status pare_probe_text(char **out, pare_arena *a, const pare_probe *p,
                                          pare_err *err);

/* Table 1 of Shirzad 2024 for one model on one input: the norms alone. */
PARE_MUST_USE pare_status pare_probe_norms(pare_norms *operators, pare_norms *vectors,
                                           const pare_model *m, const pare_input *in,
                                           const pare_exec *exec, pare_err *err);

/* ---- plan ------------------------------------------------------------------------------------ */

/* One budget, spent over the directions: which cuts, how deep, in which order.
 *
 * Every direction is tried by itself at a few settings; then the mixtures that promise most by the
 * sum of their errors and the product of their sizes are made and measured. Nothing is chosen that
 * was not made: the result is never worse than the best single direction. */

typedef enum pare_plan_direction {
    PARE_PLAN_WIDTH,
    PARE_PLAN_DEPTH,
    PARE_PLAN_WEIGHTS,   /* a ticket */
    PARE_PLAN_QUANT,     /* integers with scales; not together with a ticket */
    PARE_PLAN_DIRECTIONS /* how many there are; a mixture goes through them in this order */
} pare_plan_direction;

typedef struct pare_plan_step {
    pare_plan_direction direction;
    double setting;   /* width: share of the parameters (below 1), dimensions, or hidden units of a
                         folder; depth: exact attention layers, or blocks of a folder; weights:
                         bits; quant: bits, or from PARE_PLAN_BYTES on the bytes of the file */
    pare_dtype dtype; /* of the weights; 0: as in the model */
    bool folder;      /* only shapes that the config of a Hugging Face folder can express */
} pare_plan_step;
#define PARE_PLAN_BYTES 64
extern const char
    *const pare_plan_direction_names[]; /* "width", "depth", "ticket", "quant", NULL */
/* "width --dim 8": how the command would be told. */
const char *pare_plan_step_name(char buf[48], const pare_plan_step *s);
/* The cut of one step. `in` is not changed and need not outlive *out, which the caller frees with
 * pare_model_free. */
PARE_MUST_USE pare_status pare_plan_make(pare_model **out, const pare_plan_step *s,
                                         const pare_model *in, const pare_inputs *fit,
                                         uint64_t seed, const pare_exec *exec, pare_err *err);
/* How that step is proven: the prover of its direction. */
const pare_prover *pare_plan_prover(const pare_plan_step *s);

typedef struct pare_plan_try {
    size_t nsteps; /* 0: the model as it is */
    pare_plan_step steps[PARE_PLAN_DIRECTIONS];
    const char *refused; /* why it could not be made; NULL: it was */
    double
        error; /* sum over the steps of the largest difference on held-out inputs, f64: what a chain of
                     proofs adds up to at least; with `seen` or `folder`: from the first model to the last */
    /* What a user sees, more than of the first model (nan: not known): nats per byte of a text, 1 -
     * the mean cosine of embeddings, the accuracy or area that is lost. A mixture that is only
     * predicted has the sum of its parts. */
    double loss;
    uint64_t parameters, bytes;
    double ms;   /* of one pass */
    double over; /* by what factor it misses the budget it misses most; at most 1: all are met */
} pare_plan_try;

typedef struct pare_plan_opts {
    /* Budgets: inf or UINT64_MAX where there is none. With an eps the smallest file wins, without
     * one the smallest loss where it is known, else the smallest error. */
    double eps, max_ms;
    uint64_t max_bytes;
    const pare_dataset *scored; /* held-out data that losses are measured on; NULL: none is */
    const pare_files *files;    /* that the model was read through; NULL: as pare would store it */
    /* The Hugging Face folder that the model was read from: each cut becomes a folder of its kind, whose
     * config can express it, with one certificate of all steps. NULL: pare files of any shape. */
    const char *folder;
    pare_dtype dtype;    /* of the weights of the cuts; 0: as in the model */
    size_t mixtures;     /* that are made at most */
    unsigned directions; /* to try: 1u << PARE_PLAN_WIDTH and so on, added */
    bool seen;           /* errors are what is measured, and nothing has to be proven of them */
    uint64_t seed;
    void (*note)(void *self, const pare_plan_try *t); /* one for each that was made; may be NULL */
    void *self;
} pare_plan_opts;
#define PARE_PLAN_OPTS_DEFAULT                                                                     \
    {                                                                                              \
        .eps = __builtin_inf(), .max_ms = __builtin_inf(), .max_bytes = UINT64_MAX,                \
        .mixtures = 10, .directions = ~0u                                                          \
    }

typedef struct pare_plan {
    size_t n;
    pare_plan_try *tries; /* the best first; those that miss the budget after them, nearest first */
    size_t fit;           /* how many meet it */
    size_t singles;       /* how many tries were of one direction */
    const char *loss;     /* what losses are, in words; NULL: none is known */
} pare_plan;

/* By what factor the budget that is missed most is missed. */
double pare_plan_over(const pare_plan_opts *o, double error, uint64_t bytes, double ms);

/* Cuts are fitted to data->fit; errors are measured on data->heldout, whose first input is timed.
 * The plan lives in the arena. A cut that a model does not allow is a try with its reason, not an
 * error. */
PARE_MUST_USE pare_status pare_plan_search(pare_plan *out, pare_arena *a, const pare_model *m,
                                           const pare_input_split *data, const pare_plan_opts *opts,
                                           const pare_exec *exec, pare_err *err);

/* ---- report ---------------------------------------------------------------------------------- */

/* One page for people: certificates, probes, training logs and tables of the
 * papers in a single HTML file. It needs no network and no script, follows light and dark, fits a
 * phone and a sheet of paper, and names the file and the command behind every number. */

typedef struct pare_report_opts {
    const char *title; /* NULL: "pare report" */
    bool overwrite;
    /* Every certificate is proven again: of one that does not hold the page shows the reason and
     * none of its figures. False: the page marks every certificate as not verified. */
    bool verify;
    const pare_exec *exec;                        /* of the proofs */
    void (*before)(void *self, const char *path); /* each proof; may be NULL */
    void *self;
} pare_report_opts;
#define PARE_REPORT_OPTS_DEFAULT                                                                   \
    {                                                                                              \
        .title = NULL                                                                              \
    }

/* Each file is recognized by what is in it: a certificate (with the run file beside it, when there
 * is one that is of the same models), what `pare probe --json` or `pare repro --json` printed, a
 * log of `pare train`, a plan of `pare length`. PARE_ERR_INPUT names the file that is none of
 * these. Strings of files are escaped; what no verified certificate covers is marked "not
 * verified", and green stands only for what was verified. */
PARE_MUST_USE pare_status pare_report_write(const char *path, const char *const *files, size_t n,
                                            const pare_report_opts *opts, pare_err *err);
#endif
