/* pare/probe.h - an X-ray of a model: what its weights and its stream look like, which theorem
 * applies and which hypothesis fails by what factor, and what each cut would cost.
 *
 * Everything is an estimate or a measurement in f64; what is proven is a pare_ub. Figures that do
 * not apply are nan. */
#ifndef PARE_PROBE_H
#define PARE_PROBE_H
#include <pare/data.h>
#include <pare/json.h>
#include <pare/collapse.h>
#include <pare/length_probe.h>
#include <pare/survey.h>
#include <pare/width.h>
#include <pare/xray.h>

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
    double *s_est;               /* width: root mean squares along the axes of the centred rows */
    double effective_est;        /* of the centred rows */
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
    pare_xray xray;
    pare_xray_costs costs;
    size_t nbounds;
    pare_probe_bound *bounds;
    size_t paper_heads, paper_layers;
    pare_collapse_printed paper; /* as printed: not sound */
    pare_depth_verdict verdict;
    const char *why;      /* of the verdict: what was tried, what was found; one sentence */
    const char *violated; /* the first condition of a collapse that fails; "" where none does */
} pare_depth_probe;

typedef struct pare_probe_kind { /* matrices of one kind in all blocks, as targets of tickets */
    const char *name;            /* "attn.wq", "ffn.0.weight", "stem.embedding" */
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
typedef struct pare_prospect {
    const char *direction;   /* "width", "depth", "weights", "length" */
    pare_truth can;          /* the price may be borne; unknown: nobody looked, `why` says why */
    const char *cut;         /* as the command is told: "width --dim 8"; "": none was made */
    const char *left;        /* what is left of what, in words; "" */
    pare_ub proven;          /* largest difference of an output on `domain`; inf: nothing */
    double measured, metric; /* the same, as seen; what the data say afterwards; nan: not looked */
    const char *domain;      /* what `proven` speaks of, in words; "" */
    const char *why;         /* what blocks it, or more of it; "": nothing does */
} pare_prospect;
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
    pare_survey_opts survey;
} pare_probe_opts;
#define PARE_PROBE_OPTS_DEFAULT                                                                    \
    {                                                                                              \
        .trials = 4, .tokens = 4096, .depth_tokens = 1024, .depth_macs = 5e10,                     \
        .survey = PARE_SURVEY_OPTS_DEFAULT                                                         \
    }

typedef struct pare_probe {
    size_t nspectra;
    pare_spectrum *spectra;
    pare_norms operators; /* of Wq, Wk, Wv and the maps of the feed-forward parts: |W|_2 */
    /* with data */
    size_t nstreams, inputs, tokens;
    pare_stream *streams;
    pare_norms vectors; /* of the rows that enter a block */
    bool has_survey;
    pare_survey survey;
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
    size_t nprospects;
    pare_prospect prospects[PARE_PROBE_DIRECTIONS];
    pare_length_probe length;
    const char **untold; /* sentences: what could not be told, and why */
    pare_arena *arena;
} pare_probe;

/* `data` may be NULL: then what the weights alone say. Caller frees *out with pare_probe_free. */
PARE_MUST_USE pare_status pare_probe_model(pare_probe **out, const pare_model *m,
                                           const pare_dataset *data, const pare_probe_opts *o,
                                           const pare_exec *exec, pare_err *err);
void pare_probe_free(pare_probe *p); /* accepts NULL */

/* All of it; caller frees with cJSON_Delete. Keys: docs/probe.md. */
PARE_MUST_USE pare_status pare_probe_json(cJSON **out, const pare_probe *p, pare_err *err);
/* The same as text, in the arena. */
PARE_MUST_USE pare_status pare_probe_text(char **out, pare_arena *a, const pare_probe *p,
                                          pare_err *err);

/* Table 1 of Shirzad 2024 for one model on one input: the norms alone. */
PARE_MUST_USE pare_status pare_probe_norms(pare_norms *operators, pare_norms *vectors,
                                           const pare_model *m, const pare_input *in,
                                           const pare_exec *exec, pare_err *err);
#endif
