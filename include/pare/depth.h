/* pare/depth.h - a shallower model: attention layers are replaced by something cheaper, as few as
 * asked for stay exact. Residual streams and feed-forward layers stay as they are. What the cut
 * costs is proven afterwards, on the model as it is written (pare_publish with pare_depth_prover).
 *
 *   zero     nothing                                        no data needed
 *   const    one row, the mean of the layer's outputs        fitted
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
#include <pare/cert.h>

/* ---- one attention layer in the place of all ------------------------------------------------- */

/* One attention layer in the place of all, and what is proven about it: the
 * networks of Rank collapse 2025, which have skips but no norms and no feed-forward layers.
 *
 * docs/depth.md lists the collapses; docs/errata.md what is wrong with the printed theorem. */

typedef enum pare_collapse {
    PARE_ONE_IDENTITY,         /* S'(X) = X */
    PARE_ONE_KEEP,             /* one layer as it is: Rank collapse 2025 */
    PARE_ONE_KEEPBIAS,         /* the same, with the means of the others */
    PARE_ONE_PARALLEL,         /* all layers at once, on the input */
    PARE_ONE_UNIFORM,          /* one head whose weights are uniform */
    PARE_ONE_UNIFORM_KEEP,     /* one layer, and a uniform head for the others */
    PARE_ONE_PARALLEL_UNIFORM, /* all layers at once, and a uniform head for what they miss */
    PARE_ONE_RANKONE,          /* heads with constant queries */
    PARE_ONE_UMIX,             /* powers of the uniform matrix: for patterns other than full */
    PARE_ONES
} pare_collapse;
/* "identity", "keep", ..., NULL: in the order of the enum. */
extern const char *const pare_collapse_names[];

/* Whether it keeps one of the layers as it is. */
bool pare_collapse_keeps(pare_collapse kind);

typedef struct pare_collapse_bound {
    pare_ub bound;      /* on the largest |f - g| over the entries of the output */
    pare_ub difference; /* of two outputs: on |(f_1 - f_0) - (g_1 - g_0)|; else +inf */
    char why[200];      /* empty, or why it is +inf */
} pare_collapse_bound;
/* For all inputs whose entries are at most phi0 (a model of ids: for all token sequences). g is a
 * one-layer collapse of f, or f with other attention kinds in its blocks. */
PARE_MUST_USE pare_status pare_collapse_apriori(pare_collapse_bound *out, const pare_model *f,
                                                const pare_model *g, double phi0,
                                                const pare_exec *exec, pare_err *err);
/* Natural logarithm of a bound on the largest difference of two tokens, entry by entry, after the
 * last block of a network without skips; inputs with entries at most phi0 and differences at most
 * diam0 (below 0: 2 phi0). +inf where nothing is proven. */
PARE_MUST_USE pare_status pare_collapse_rank(double *log_bound, const pare_model *f, double phi0,
                                             double diam0, const pare_exec *exec, pare_err *err);

/* Proven: every bias-free one-layer network of any number of heads is at least so far from the
 * residual network of width 1 with layers (wq wk, wv) on two tokens, |x| <= box. `grid`: how finely
 * it is looked at. */
PARE_MUST_USE pare_status pare_collapse_lower(double *lb, const double (*layers)[2], size_t nlayers,
                                              double box, size_t grid, pare_err *err);

/* Theorem D.1 of Rank collapse 2025 as printed. It is false: never a bound. */
typedef struct pare_collapse_printed {
    double eta, phi0, eps, c, a;
    bool holds;          /* its hypotheses */
    double bound, claim; /* (1 + C + ... + C^L) delta; 2 A / L */
} pare_collapse_printed;
pare_collapse_printed pare_collapse_paper(double eta, double phi0, size_t heads, size_t layers);

/* ---- replacing attention layers -------------------------------------------------------------- */

/* What may stand in the place of attention: the kinds of model.h from ZERO to POOL. */
enum { PARE_DEPTH_KINDS = PARE_ATTN_POOL - PARE_ATTN_ZERO + 1 };
/* "zero", ..., "pool", "auto", NULL: in the order of the kinds. */
extern const char *const pare_depth_kind_names[];

typedef enum pare_depth_select {
    PARE_DEPTH_GREEDY,     /* one after the other, each time the one that costs least */
    PARE_DEPTH_EXHAUSTIVE, /* all choices, where there are at most PARE_DEPTH_MOST_CHOICES */
    PARE_DEPTH_LOO,        /* by what each costs alone */
    PARE_DEPTH_INFLUENCE   /* by 1 - cosine of what enters a block and what leaves it (ShortGPT) */
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
    /* Instead: whole blocks go until so many are left, one after the other, each time the one that
     * costs least; 0: none does. */
    size_t blocks;
    pare_dtype dtype; /* of the weights; 0: as pare_model_round rounds to those of the input */
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
 * cannot stand for. `in` is not changed and need not outlive *out. Caller frees *out with
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
    pare_dtype dtype; /* as pare_depth_opts.dtype */
} pare_depth_one_opts;
#define PARE_DEPTH_ONE_OPTS_DEFAULT                                                                \
    {                                                                                              \
        .keep = PARE_DEPTH_UNSET                                                                   \
    }

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

/* "inf", "2", NULL: short names of the norms of balls, in the order of pare_ball_norm. */
extern const char *const pare_depth_ball_norms[];
/* What to ask pare_publish for (its `ask`), beside pare_ball_claim: the theorems for every input
 * whose tokens are at most `diameter` > 0 apart in every entry (models of vectors). */
pare_claim pare_depth_diameter(double diameter);
/* How it is proven, and proven again by pare_verify_file. */
extern const pare_prover pare_depth_prover;

/* ---- attention statistics -------------------------------------------------------------------- */

/* Statistics of attention: head by head and layer by layer, how far each attention is
 * from one that could be replaced, looked at on given inputs.
 *
 * Norms (pare_ub) are proven. Everything else is a measurement in f64: what was seen on these
 * inputs, never a bound for others. Figures that do not apply are nan. */

#define PARE_STATS_PAIRS 512  /* rho and tau compare all pairs of rows: of sequences up to here */
#define PARE_STATS_LONG  4096 /* theta compares all rows with all keys: of sequences up to here */

#define PARE_STATS_POLY 1e-2 /* total variation that a polynomial may cost */

typedef struct pare_head_stats {
    size_t block, head;
    double eta; /* largest |entry| of its Wq, Wk, Wv, Wo */
    /* With the gain of the norm before it: B = scale Wq^T Wk, V = Wo Wv. |B|_2 and |V|_2; Bil_inf =
     * sup |u B v| over |u|, |v| <= 1 in every entry; N_inf = sup |V x| over the same. */
    pare_ub b2, bil, v2, vinf;
    pare_ub vz;       /* N_inf of V without the gain: as it acts on Z, what the norm gives */
    double value_max; /* |Wv|_max: what the printed K uses */
    /* on the inputs: over the keys a row sees */
    double range_mean, range_max; /* largest minus smallest logit */
    /* range of the logits minus those of a query that is the same for all rows, as the kinds have
     * it (keys are not rotated by positions): fitted, or the mean of the sequence (pattern
     * full) */
    double constq_max, meanq_max;
    double theta, theta_mean; /* range of the rows of Res(Z) B Res(Z)^T: largest, mean of inputs */
    double rho;               /* largest (z_i - z_i') B (z_j - z_j') */
    double tau;               /* Dobrushin: largest TV of two rows of P; pattern full */
    double tv_uniform, tv_constq, tv_meanq; /* mean TV of a row of P from these */
    double entropy;                         /* mean of entropy / log(number of keys) */
    double k_paper;                         /* (e^theta - 1) |Wv|_max: printed, not sound */
    double k_sound; /* tanh(theta/2) N_inf(V); N_inf(V) unless the pattern is full */
    double k_seen;  /* largest |Res(out)|_max / |Res(Z)|_max */
    double diam;    /* largest over columns: range of Z V^T */
    /* A polynomial for e^x on [-poly_b, poly_b], the largest |logit| after both centrings, that
     * moves no row by more than PARE_STATS_POLY: its degree (SIZE_MAX: none up to 24) and features
     */
    double poly_b;
    size_t poly_degree, poly_features;
    pare_ub poly_tv;  /* what is proven of it; +inf: none */
    double direction; /* sum of |entries| of scale Wk^T q for the fitted query: a constq head's */
} pare_head_stats;

typedef struct pare_layer_stats {
    size_t block;
    bool skip;            /* false: the attention carries the whole signal */
    double x;             /* largest |entry| of the stream before it */
    double z;             /* the same after its norm */
    double res_x, res_f;  /* |Res|_max of the stream, of the branch: means of the inputs */
    double res_x1;        /* |Res|_{1,inf} of the stream: from above, mean of the inputs */
    double share;         /* |F|_F / |X|_F, mean of the inputs */
    double varied;        /* |F - mean row|_F^2 / |F|_F^2, mean of the inputs */
    double f;             /* largest |entry| of the branch */
    pare_ub constant;     /* largest |entry| of bo and the value biases together, */
    pare_ub value_bias;   /* and of these alone */
    size_t first, nheads; /* of the list of heads */
    /* Local error by kind (zero first), largest entry: a bound, up to the rounding of f64, for
     * every input whose ranges, diameters and entries are at most those above; +inf: there is none,
     * as for all that is fitted by least squares. And of polynomials of the heads' degrees. */
    pare_ub bound[PARE_DEPTH_KINDS], bound_poly;
} pare_layer_stats;

typedef struct pare_attention_stats {
    size_t nlayers, nheads;
    pare_layer_stats *layers; /* blocks with softmax heads */
    pare_head_stats *heads;
    size_t fitted, inputs, tokens; /* inputs that were fitted to; inputs and tokens looked at */
    size_t longest;                /* tokens of the longest sequence */
} pare_attention_stats;

/* Constant queries are fitted to data->fit, everything is measured on data->heldout. Lists live in
 * the arena. A model without softmax heads gives empty lists. */
PARE_MUST_USE pare_status pare_depth_attention_stats(pare_attention_stats *out, pare_arena *a,
                                                     const pare_model *m,
                                                     const pare_input_split *data,
                                                     const pare_exec *exec, pare_err *err);

/* ---- what replacing costs -------------------------------------------------------------------- */

typedef struct pare_replacement_cost { /* one kind in the place of one attention */
    const char *refused; /* NULL, or why it cannot stand there: the figures are then nan */
    double local;        /* largest |difference| of what the branch adds to the stream */
    double loo;          /* |h - h'|_F / |h|_F of the hidden rows, this one replaced alone */
    double metric;       /* of the outputs then; nan: none */
    double macs;         /* share of the pass's multiplications that is saved */
} pare_replacement_cost;

typedef struct pare_replacement_point { /* some layers exact, all others replaced */
    size_t exact;
    const bool *kept; /* of each layer */
    double error;     /* |h - h'|_F / |h|_F */
    double lost;      /* of what attention does: |h - h'|_F / |h - h without attention|_F */
    double metric, macs;
} pare_replacement_point;

typedef struct pare_replacement_curve {
    pare_attn_kind kind;
    pare_replacement_point *points; /* nlayers + 1: all exact, one less, ..., none */
} pare_replacement_curve;

typedef struct pare_replacement_costs {
    size_t nlayers; /* as the layers of pare_attention_stats */
    pare_replacement_cost (*kinds)[PARE_DEPTH_KINDS];
    size_t ncurves; /* kinds that can stand for every layer */
    pare_replacement_curve *curves;
    double state; /* bytes a token leaves for the next ones in a cache, all exact layers, f32 */
    const char *skipped; /* NULL, or why nothing was tried */
} pare_replacement_costs;

typedef struct pare_replacement_costs_opts {
    double macs; /* at most so many multiplications in all; 0: any number */
    /* The metric of a model; nan: there is none. May be NULL. */
    pare_status (*metric)(void *self, double *out, const pare_model *m, pare_err *err);
    void *self;
} pare_replacement_costs_opts;
#define PARE_REPLACEMENT_COSTS_OPTS_DEFAULT                                                        \
    {                                                                                              \
        .macs = 0                                                                                  \
    }

/* Kinds are fitted to data->fit, layers are chosen by it (greedy, backwards), costs are measured on
 * data->heldout. Where that would take too many multiplications, out->skipped says so. Lists live
 * in the arena. */
PARE_MUST_USE pare_status pare_depth_replacement_costs(pare_replacement_costs *out, pare_arena *a,
                                                       const pare_model *m,
                                                       const pare_input_split *data,
                                                       const pare_replacement_costs_opts *o,
                                                       const pare_exec *exec, pare_err *err);
#endif
