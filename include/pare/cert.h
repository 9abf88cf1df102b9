/* pare/cert.h - the certificate: what a reduction proved, in a file of its own.
 *
 * Everything speaks of sup |f(x) - g(x)| over x in `domain`, in `norm`; f is the input model, g
 * the output model, both as real-number functions of their stored weights. Three tiers that are
 * never mixed: apriori (theorem, from sizes and norms), proven (theorem, from these very weights
 * and inputs), measured (the largest difference seen; evidence, never a bound). docs/format.md
 * describes the JSON file.
 *
 * A pare_cert holds what the file holds: nothing is changed by writing or reading. Bounds are
 * raised by one part in 1e4 exactly once, by the reduction, with pare_cert_inflate just before it
 * writes; a prover leaves them as it proved them. That gap is what lets another CPU prove the
 * written figure again. */
#ifndef PARE_CERT_H
#define PARE_CERT_H
#include <pare/forward.h>
#include <pare/json.h>

#define PARE_CERT_SCHEMA 1

typedef enum pare_truth { PARE_FALSE, PARE_TRUE, PARE_UNKNOWN } pare_truth;

/* A hypothesis with these words in its name has a lower bound as its limit: what nothing can beat.
 */
#define PARE_LEAST "the least of any"
typedef struct pare_hypothesis {
    const char *name;
    pare_truth holds;
    double value, limit; /* nan: does not apply */
} pare_hypothesis;

typedef struct pare_statement {
    const char *name, *norm, *domain;
    double probability; /* 1: certain */
    double bound;       /* or inf */
} pare_statement;

typedef struct pare_named {
    const char *name;
    double value;
} pare_named;

typedef struct pare_tensor_hash {
    const char *name;
    char sha256[PARE_SHA256_HEX];
} pare_tensor_hash;

typedef struct pare_file_ref {
    const char *path; /* relative to the certificate */
    char sha256[PARE_SHA256_HEX];
    size_t ntensors;
    pare_tensor_hash *tensors;
} pare_file_ref;

/* Which inputs: a file, or seeded random ones. */
typedef struct pare_data_ref {
    const char *kind;                    /* "random", "file", or "part": some inputs of a file */
    const char *path;                    /* file; NULL for random */
    char sha256[PARE_SHA256_HEX];        /* of the file; "" for random */
    size_t split;                        /* graphs */
    size_t count, tokens;                /* inputs in the set; tokens of each (random, part: at
                                            most; 0: all) */
    size_t first;                        /* part: the number of the first one */
    char inputs_sha256[PARE_SHA256_HEX]; /* pare_inputs_sha256 of the set */
    /* One hash over reduction, seed and what is said here except the path: what no prover can
     * find in the models (a seed that only chose the cut, a split) cannot be changed unseen.
     * The writer computes it; reading fills it in; "" in a certificate that was never a file. */
    char seal[PARE_SHA256_HEX];
} pare_data_ref;

typedef struct pare_cert {
    const char *reduction;
    uint64_t seed;
    pare_file_ref input, output;
    pare_data_ref data;
    const char *norm, *domain;
    double apriori, proven, measured, rounding;
    size_t nhypotheses, nstatements, npaper, nchain;
    pare_hypothesis *hypotheses;
    pare_statement *statements;
    pare_named *paper;        /* paper_not_sound */
    struct pare_cert **chain; /* the links, first cut first; none for a single cut */
    /* Only while verifying: how far `measured` may be from the recomputed one (the prover says:
     * pare_measured_slack). Not in the file. Not finite counts as 0. */
    double measured_slack;
} pare_cert;

/* ---- file -------------------------------------------------------------------------------- */

/* apriori, proven, rounding and the bounds of the statements, each through pare_ub_written. */
void pare_cert_inflate(pare_cert *c);
/* Same certificate, same bytes: every key of docs/format.md in its order, 17 digits where needed.
 * PARE_ERR_NONFINITE names a bound that is nan or negative. */
PARE_MUST_USE pare_status pare_cert_write(const pare_cert *c, const char *path, bool overwrite,
                                          pare_err *err);
/* PARE_ERR_INPUT naming the key ("chain[0].data.kind") when it is missing, unknown, of the wrong
 * type or out of range; PARE_ERR_VERIFY for a bound below 0, which nothing can meet. Everything
 * lives in the arena. */
PARE_MUST_USE pare_status pare_cert_read(pare_cert **out, pare_arena *a, const char *path,
                                         pare_err *err);
/* Caller frees *out with cJSON_Delete. */
PARE_MUST_USE pare_status pare_cert_json(cJSON **out, const pare_cert *c, pare_err *err);
/* Hashes of the file and of every tensor of the model loaded from it ("vocab" too). A folder's
 * hash is that of the sorted lines "<sha256>  <name>" of its plain files, without hidden ones and
 * without what pare wrote there (a file with its .cert.json beside it, reports, temporaries). */
PARE_MUST_USE pare_status pare_file_ref_make(pare_file_ref *out, pare_arena *a,
                                             const char *cert_path, const char *path,
                                             const pare_model *m, pare_err *err);

/* The inputs of a certificate: `path` NULL for random ones of `tokens` tokens, else a file. */
PARE_MUST_USE pare_status pare_data_ref_make(pare_data_ref *out, pare_arena *a,
                                             const char *cert_path, const char *path, size_t split,
                                             size_t tokens, const pare_inputs *set, pare_err *err);

/* ---- composing ----------------------------------------------------------------------------- */

/* f -> g -> h: apriori and proven add up (rounded up) in the common norm on the common inputs,
 * rounding is the last link's (it speaks of the last model's engine alone), and one hypothesis per
 * link says whether all of its own hold. The reduction is "chain"; a link that is a chain itself
 * gives its links. Links must fit: the output of one is the input of the next (by hash), same
 * norm, domain and inputs; else PARE_ERR_INPUT. Paths are rewritten to be relative to `cert_path`;
 * the links are copied, their strings and lists borrowed. `measured` is the sum's stand-in until
 * measured anew: it is taken by the caller, between the first input and the last output. */
PARE_MUST_USE pare_status pare_cert_compose(pare_cert *out, pare_arena *a, const char *cert_path,
                                            pare_cert *const *links, const char *const *link_paths,
                                            size_t n, pare_err *err);

/* ---- proving ------------------------------------------------------------------------------- */

/* Largest |f - g| over the set by the f64 reference: the measured tier of every reduction. */
PARE_MUST_USE pare_status pare_measure(double *out, const pare_model *f, const pare_model *g,
                                       const pare_inputs *set, const pare_exec *exec,
                                       pare_err *err);

/* An enclosure of the exact function on one input (src/cert/enclose.c: the piece an auditor
 * reads): |exact - mid| <= rad[row] for every entry of the row, and the f32 engine is within
 * rad32[row] of the exact function. Radii may be +inf. */
typedef struct pare_enclosure {
    size_t rows, cols;
    double *mid;
    double *lo; /* wide: the midpoint is mid + lo; NULL otherwise */
    double *rad, *rad32;
} pare_enclosure;
/* Proven norms of every weight, made once for as many enclosures as there are; in the arena. */
typedef struct pare_model_norms pare_model_norms;
PARE_MUST_USE pare_status pare_model_norms_new(pare_model_norms **out, pare_arena *a,
                                               const pare_model *m, const pare_exec *exec,
                                               pare_err *err);
/* The enclosure of one input, in the arena. A radius that overflows is +inf, no error. */
PARE_MUST_USE pare_status pare_enclose(pare_enclosure *out, pare_arena *a, const pare_model *m,
                                       const pare_model_norms *norms, const pare_input *in,
                                       const pare_exec *exec, pare_err *err);
/* The same with midpoints in double-double: |exact - (mid + lo)| <= rad[row], where rad counts
 * units of 2^-102 in place of 2^-53 (and no longer speaks of f64 passes). Slower than pare_enclose.
 */
PARE_MUST_USE pare_status pare_enclose_wide(pare_enclosure *out, pare_arena *a, const pare_model *m,
                                            const pare_model_norms *norms, const pare_input *in,
                                            const pare_exec *exec, pare_err *err);
/* On the whole set: proven bound on |f - g|, the value measured in f64 by this path, its f64 slack
 * (both models' radii at most), and the proven rounding of g's f32 engine. Where the slack makes
 * proven much larger than measured, and the work is not too much, the bounds are proven again with
 * wide midpoints (src/cert/gap.c says when). */
typedef struct pare_gap {
    pare_ub proven, rounding;
    double measured, slack, scale; /* scale: largest |output| of f */
} pare_gap;
PARE_MUST_USE pare_status pare_prove_gap(pare_gap *out, const pare_model *f, const pare_model *g,
                                         const pare_inputs *set, const pare_exec *exec,
                                         pare_err *err);
/* The proven bounds of each input by itself, those of a batch one by one: pare_draws of them. */
PARE_MUST_USE pare_status pare_prove_each(double *each, const pare_model *f, const pare_model *g,
                                          const pare_inputs *set, const pare_exec *exec,
                                          pare_err *err);

/* ---- verifying ----------------------------------------------------------------------------- */

/* How one reduction is proven again from its files; each room owns its own. Fills `again` (norm,
 * domain, bounds, measured, its slack, hypotheses, statements, paper) from the models and inputs
 * alone. Bounds as proven, not inflated; they come in as nan, so one that is forgotten fails. */
typedef struct pare_prover {
    const char *reduction;
    pare_status (*prove)(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err);
} pare_prover;

typedef struct pare_verify_opts {
    const char *input, *output, *data; /* override the paths in the certificate; may be NULL */
    const pare_prover *provers;
    size_t nprovers;
    /* Loads the inputs a certificate names as "file" (the data room does; cert may not). Every byte
     * is read through `files`, so that what was hashed is what was parsed. */
    pare_status (*load)(pare_inputs *out, pare_arena *a, const pare_model *m, const char *path,
                        size_t split, pare_files *files, pare_err *err);
    const pare_exec *exec;
} pare_verify_opts;

/* The slack for `measured`: the proven one, but at most 1e-9 of the largest output, far above any
 * f64 drift seen: a vacuous slack must not let `measured` say anything. */
double pare_measured_slack(const pare_gap *gap);

/* PARE_ERR_VERIFY, naming the field and both values, unless everything in `claimed` follows from
 * `again`: the same words, hypotheses and paper values up to 1e-3; bounds at least as large;
 * `measured` within max(1e-3 relative, again's slack) and not above proven by more than the slack.
 * Files, data and seed are not looked at. */
PARE_MUST_USE pare_status pare_cert_compare(const pare_cert *claimed, const pare_cert *again,
                                            pare_err *err);

/* PARE_OK: every statement holds. PARE_ERR_VERIFY: not true, err says what. Others: unreadable.
 * Hashes are compared before anything is parsed. A chain is verified link by link, added up again
 * and measured anew; the options' input is then the first model, output the last. */
PARE_MUST_USE pare_status pare_cert_verify(const char *path, const pare_verify_opts *opts,
                                           pare_err *err);
#endif
