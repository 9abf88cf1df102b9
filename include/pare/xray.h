/* pare/xray.h - an X-ray of attention: head by head and layer by layer, how far each attention is
 * from one that could be replaced, looked at on given inputs.
 *
 * Norms (pare_ub) are proven. Everything else is a measurement in f64: what was seen on these
 * inputs, never a bound for others. Figures that do not apply are nan. */
#ifndef PARE_XRAY_H
#define PARE_XRAY_H
#include <pare/depth.h>

#define PARE_XRAY_PAIRS 512  /* rho and tau compare all pairs of rows: of sequences up to here */
#define PARE_XRAY_LONG  4096 /* theta compares all rows with all keys: of sequences up to here */

#define PARE_XRAY_POLY 1e-2 /* total variation that a polynomial may cost */

typedef struct pare_xray_head {
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
     * it (keys are not turned by rotary positions): fitted, or the mean of the sequence (pattern
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
     * moves no row by more than PARE_XRAY_POLY: its degree (SIZE_MAX: none up to 24) and features
     */
    double poly_b;
    size_t poly_degree, poly_features;
    pare_ub poly_tv;  /* what is proven of it; +inf: none */
    double direction; /* sum of |entries| of scale Wk^T q for the fitted query: a constq head's */
} pare_xray_head;

typedef struct pare_xray_layer {
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
} pare_xray_layer;

typedef struct pare_xray {
    size_t nlayers, nheads;
    pare_xray_layer *layers; /* blocks with softmax heads */
    pare_xray_head *heads;
    size_t fitted, inputs, tokens; /* inputs that were fitted to; inputs and tokens looked at */
    size_t longest;                /* tokens of the longest sequence */
} pare_xray;

/* `fit`: what the constant queries are fitted to; `look`: what is measured on. Lists live in the
 * arena. A model without softmax heads gives empty lists. */
PARE_MUST_USE pare_status pare_depth_xray(pare_xray *out, pare_arena *a, const pare_model *m,
                                          const pare_inputs *fit, const pare_inputs *look,
                                          const pare_exec *exec, pare_err *err);

/* ---- what replacing costs ----------------------------------------------------------------------
 */

typedef struct pare_xray_kind { /* one kind in the place of one attention */
    const char *refused;        /* NULL, or why it cannot stand there: the figures are then nan */
    double local;               /* largest |difference| of what the branch says */
    double loo;                 /* |h - h'|_F / |h|_F of the hidden rows, this one replaced alone */
    double metric;              /* of the outputs then; nan: none */
    double macs;                /* share of the pass's multiplications that is saved */
} pare_xray_kind;

typedef struct pare_xray_point { /* some layers exact, all others replaced */
    size_t exact;
    const bool *kept; /* of each layer */
    double error;     /* |h - h'|_F / |h|_F */
    double lost;      /* of what attention does: |h - h'|_F / |h - h without attention|_F */
    double metric, macs;
} pare_xray_point;

typedef struct pare_xray_curve {
    pare_attn_kind kind;
    pare_xray_point *points; /* nlayers + 1: all exact, one less, ..., none */
} pare_xray_curve;

typedef struct pare_xray_costs {
    size_t nlayers; /* as the layers of pare_xray */
    pare_xray_kind (*kinds)[PARE_DEPTH_KINDS];
    size_t ncurves; /* kinds that can stand for every layer */
    pare_xray_curve *curves;
    double state; /* bytes a token leaves for the next ones in a cache, all exact layers, f32 */
    const char *skipped; /* NULL, or why nothing was tried */
} pare_xray_costs;

typedef struct pare_xray_costs_opts {
    double macs; /* at most so many multiplications in all; 0: any number */
    /* What outputs are worth; nan: cannot be told. May be NULL. */
    pare_status (*metric)(void *self, double *out, const pare_model *m, pare_err *err);
    void *self;
} pare_xray_costs_opts;

/* Kinds are fitted to `fit`, layers are chosen by it (greedy, backwards), costs are measured on
 * `look`. Where that would take too many multiplications, *skipped says so. */
PARE_MUST_USE pare_status pare_depth_costs(pare_xray_costs *out, pare_arena *a, const pare_model *m,
                                           const pare_inputs *fit, const pare_inputs *look,
                                           const pare_xray_costs_opts *o, const pare_exec *exec,
                                           pare_err *err);
#endif
