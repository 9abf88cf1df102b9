/* pare/depth.h - a shallower model: attention layers are replaced by something cheaper, as few as
 * asked for stay exact. Residual streams and feed-forward layers stay as they are. What the cut
 * costs is proven afterwards, on the model as it is written (pare_publish with pare_depth_prover).
 *
 *   zero     nothing                                        no data needed
 *   const    one row, the mean of what the layer says       fitted
 *   uniform  the mean of the visible values                 no data needed
 *   constq   one query a head for all tokens: the mean      fitted
 *   meanq    the same, from the tokens at hand (full)       no data needed
 *   linear   an affine map of each token                    fitted
 *   affmix   the same, and of the mean of the visible ones  fitted
 *   pool     an affine map of each token and the values that constq heads gather   fitted
 *
 * docs/depth.md says when to use which. */
#ifndef PARE_DEPTH_H
#define PARE_DEPTH_H
#include <pare/ball.h>
#include <pare/collapse.h>

/* What may stand in the place of attention: the kinds of model.h from ZERO to POOL. */
enum { PARE_DEPTH_KINDS = PARE_ATTN_POOL - PARE_ATTN_ZERO + 1 };
/* "zero", ..., "pool", "auto", NULL: in the order of the kinds. */
extern const char *const pare_depth_kind_names[];

typedef enum pare_depth_select {
    PARE_DEPTH_GREEDY,     /* one after the other, each time the one that costs least */
    PARE_DEPTH_EXHAUSTIVE, /* all choices, where there are at most PARE_DEPTH_MOST_CHOICES */
    PARE_DEPTH_LOO,        /* by what each costs alone */
    PARE_DEPTH_INFLUENCE   /* by 1 - cosine of what enters a block and what leaves it: the peers' */
} pare_depth_select;
extern const char *const pare_depth_select_names[]; /* in the order of the enum, then NULL */
#define PARE_DEPTH_MOST_CHOICES 2000

#define PARE_DEPTH_UNSET SIZE_MAX

typedef struct pare_depth_opts {
    size_t layers;       /* exact attention layers left; PARE_DEPTH_UNSET: those of `exact` */
    const size_t *exact; /* blocks whose attention stays, in any order */
    size_t nexact;
    pare_attn_kind kind; /* PARE_ATTN_NONE: auto, for each layer the one that costs least alone */
    pare_depth_select select;
} pare_depth_opts;

#define PARE_DEPTH_OPTS_DEFAULT                                                                    \
    {                                                                                              \
        .layers = PARE_DEPTH_UNSET                                                                 \
    }

typedef struct pare_depth_layer {
    size_t block;
    pare_attn_kind kind;  /* what stands there now */
    double loo_est;       /* |h - h'|_F / |h|_F of the last hidden rows when this layer alone is
                             replaced; nan: not looked at */
    double influence_est; /* 1 - cosine, mean over tokens; nan: not looked at */
} pare_depth_layer;

typedef struct pare_depth_report {
    size_t nlayers; /* blocks with attention in the input model, in order */
    pare_depth_layer *layers;
    size_t exact;     /* that are left */
    size_t tokens;    /* that the kinds were fitted to; 0: none */
    size_t unknowns;  /* of the largest least-squares problem; 0: none */
    double error_est; /* |h - h'|_F / |h|_F of the cut on the data; nan: no data */
} pare_depth_report;

/* Whether this cut looks at data at all: kinds that are fitted, layers that are chosen. */
bool pare_depth_needs_data(const pare_model *m, const pare_depth_opts *opts);

/* `data`: inputs to fit and to choose by; NULL where none are needed. The report's list lives in
 * the output model's arena. PARE_ERR_USAGE: options; PARE_ERR_INPUT names the layer that a kind
 * cannot stand for. `in` is not changed and must outlive *out. Caller frees *out with
 * pare_model_free. */
PARE_MUST_USE pare_status pare_depth(pare_model **out, pare_depth_report *report,
                                     const pare_model *in, const pare_inputs *data,
                                     const pare_depth_opts *opts, const pare_exec *exec,
                                     pare_err *err);

/* ---- one layer in the place of all ----------------------------------------------------------- */

/* Of a pure residual attention network (no feed-forward layers, no norms in its blocks). */
typedef struct pare_depth_one_opts {
    pare_collapse which;
    size_t keep; /* keep, keepbias, uniform+keep: which block; PARE_DEPTH_UNSET: the best on data */
} pare_depth_one_opts;

typedef struct pare_depth_one_report {
    size_t keep;      /* PARE_DEPTH_UNSET: none */
    double error_est; /* |h - h'|_F / |h|_F on the data; nan: no data */
} pare_depth_one_report;

/* Whether the collapse takes means, or chooses its layer, on data. */
bool pare_depth_one_needs_data(const pare_depth_one_opts *o);
/* As pare_depth; `data` also gives the means that some collapses take. PARE_ERR_INPUT says what in
 * the model is in the way. `report` may be NULL: the error is then not measured. */
PARE_MUST_USE pare_status pare_depth_one_layer(pare_model **out, pare_depth_one_report *report,
                                               const pare_model *in, const pare_inputs *data,
                                               const pare_depth_one_opts *opts,
                                               const pare_exec *exec, pare_err *err);

/* ---- proving --------------------------------------------------------------------------------- */

/* "inf", "2", NULL: the norms of balls on the command line, in the order of pare_ball_norm. */
extern const char *const pare_depth_ball_norms[];
/* What to ask pare_publish for (its `ask`), beside pare_ball_claim: the theorems for every input
 * whose tokens are at most `diameter` > 0 apart in every entry (models of vectors). */
pare_claim pare_depth_diameter(double diameter);
/* How `pare verify` proves it again. */
extern const pare_prover pare_depth_prover;
#endif
