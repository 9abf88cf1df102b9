/* pare/collapse.h - one attention layer in the place of all, and what is proven about it: the
 * networks of Rank collapse 2025, which have skips but no norms and no feed-forward layers.
 *
 * docs/depth.md lists the collapses; docs/errata.md what is wrong with the printed theorem. */
#ifndef PARE_COLLAPSE_H
#define PARE_COLLAPSE_H
#include <pare/cert.h>

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

/* Whether it keeps one of the layers as it is. pare_depth_one_layer (pare/depth.h) makes them all.
 */
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
#endif
