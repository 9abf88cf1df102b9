/* pare/cert.h - the certificate: what a reduction proved, in a file of its own.
 *
 * The headline bounds sup |f(x) - g(x)| over x in `domain`, in `norm`; f is the input model, g the
 * output model, both as real-number functions of their stored weights: proven (a theorem about
 * these weights and inputs) and measured (the largest difference seen, never a bound). Beside it
 * stand claims, each of a kind of one table: hypotheses, theorems, observations, evidence and what
 * a paper prints, never mixed. docs/format.md describes the JSON file.
 *
 * A pare_cert holds what the file holds: nothing is changed by writing or reading. Bounds are
 * weakened by one part in 1e4 exactly once, by the reduction, with pare_cert_inflate just before it
 * writes; a prover leaves them as it proved them. That gap is what lets another CPU prove the
 * written figure again. */
#ifndef PARE_CERT_H
#define PARE_CERT_H
#include <pare/forward.h>
#include <pare/json.h>

#define PARE_CERT_SCHEMA 2

/* ---- claims --------------------------------------------------------------------------------- */

typedef enum pare_truth { PARE_FALSE, PARE_TRUE, PARE_UNKNOWN } pare_truth;

/* Where a claim stands in the file, which is how it is checked.
 *   hypothesis   what a theorem needs; looked at again, must be the same
 *   theorem      a bound, upper or lower; proven again, must still be true
 *   observation  measured; measured again, must agree within the tolerance of its kind
 *   evidence     figures that prove nothing (optimality); checked on request
 *   paper        what a printed formula of a paper gives; computed again */
typedef enum pare_section {
    PARE_HYPOTHESIS,
    PARE_THEOREM,
    PARE_OBSERVATION,
    PARE_EVIDENCE,
    PARE_PAPER,
    PARE_SECTIONS
} pare_section;

/* The keys of the sections in the file: "hypotheses", ... */
extern const char *const pare_section_keys[PARE_SECTIONS];

/* All kinds of claims; what each says is in one table (src/cert/claim_kinds.c, docs/format.md). */
typedef enum pare_kind {
    PARE_FOLD_SAME,
    PARE_FOLD_ROUNDED,
    PARE_FOLD_NOT_ROTARY,
    PARE_FOLD_ROWS_NOT_EMPTY,
    PARE_APRIORI_APPLIES,
    PARE_APRIORI_FOLDED,
    PARE_LOCAL_APPLIES,
    PARE_BALL_APPLIES,
    PARE_PLAIN_APPLIES,
    PARE_LEVERAGE_DRAWS,
    PARE_CLUSTER_RADIUS,
    PARE_CLUSTER_SEPARATION,
    PARE_JL_DIMENSION,
    PARE_JL_DISTORTION,
    PARE_LAYERS_MERGED,
    PARE_LAYER_REPLACED,
    PARE_TICKET_LATTICE,
    PARE_NEW_INPUT_INDEPENDENT,
    PARE_LINK_HYPOTHESES,
    /* theorems */
    PARE_APRIORI_OUTPUTS,
    PARE_APRIORI_SCORE,
    PARE_APRIORI_HIDDEN,
    PARE_LAYER_INJECTED,
    PARE_LAYER_TICKET,
    PARE_RANK_COLLAPSE,
    PARE_DIAMETER_OUTPUTS,
    PARE_DIAMETER_SCORE,
    PARE_DIAMETER_RANK_COLLAPSE,
    PARE_ONE_LAYER_LEAST,
    PARE_OUTPUTS_LEAST,
    PARE_ROWS_CHANGED,
    PARE_AUC_MOST,
    PARE_AUC_LEAST,
    PARE_AUC_DIFFERENCE,
    PARE_ATTENTION_RATIO,
    PARE_BALL_OUTPUTS,
    PARE_BALL_ROWS_CHANGED,
    PARE_BALL_SCORE,
    PARE_EDITS_OUTPUTS,
    PARE_EDITS_ROWS_CHANGED,
    PARE_LOCAL_OUTPUTS,
    PARE_GIVEN_OUTPUTS,
    PARE_PLAIN_OUTPUTS,
    PARE_CLUSTER_OUTPUTS,
    PARE_ENGINE_ROUNDING,
    PARE_NEW_INPUT_OUTPUTS,
    PARE_NEW_INPUTS_SHARE,
    /* observations */
    PARE_ENGINE_DISTANCE,
    PARE_STREAM_RANK,
    PARE_STREAM_RESIDUAL,
    PARE_ATTENTION_RATIO_SEEN,
    PARE_PLAIN_EPS,
    PARE_RELATIVE_ERROR,
    PARE_ROW_ERROR,
    PARE_LOST_FRACTION,
    PARE_TICKET_ENTRY_ERROR,
    /* evidence */
    PARE_QK_OPTIMALITY,
    PARE_STREAM_OPTIMALITY,
    PARE_STREAM_OPTIMALITY_WEIGHTED,
    PARE_TICKET_LEAST_BITS,
    PARE_TICKET_PRODUCTS,
    /* paper */
    PARE_PAPER_PLAIN,
    PARE_PAPER_JL,
    PARE_PAPER_SCORES,
    PARE_PAPER_SELECTOR,
    PARE_PAPER_COLLAPSE_BOUND,
    PARE_PAPER_COLLAPSE_CLAIM,
    PARE_PAPER_TICKET,
    PARE_KINDS
} pare_kind;

enum { PARE_PARAMETERS = 5 };
typedef struct pare_kind_row {
    const char *name; /* in the file: "ball.outputs" */
    pare_section section;
    bool lower;                              /* theorem: nothing is below the bound */
    const char *norm;                        /* theorem: in which the bound is */
    const char *parameters[PARE_PARAMETERS]; /* names of the numbers in `p`; NULL ends them */
    const char *text;                        /* name of the parameter that is a word, or NULL */
    const char *sentence;                    /* {name} stands for a parameter */
    bool has_value, has_limit;               /* those that are not there are null in the file */
    double ceiling;                          /* no such figure is larger; 0: no limit */
    double tolerance; /* observation: relative; evidence, paper and hypotheses have 1e-3 */
    bool one_sided;   /* observation: one that was larger than what is seen now is fine */
} pare_kind_row;
/* The table, by kind. */
extern const pare_kind_row pare_kinds[PARE_KINDS];

/* One claim. Kind, p and text are its identity; what the table says the kind does not have is not
 * looked at, so that a literal names only what it needs. */
typedef struct pare_claim {
    pare_kind kind;
    double p[PARE_PARAMETERS];
    const char *text;
    pare_truth holds;   /* hypothesis */
    double value;       /* or the bound of a theorem, may be inf */
    double limit;       /* hypothesis, evidence */
    double probability; /* of claims that are drawn (pare_kind_is_drawn); others are certain */
    const char *domain; /* theorem; NULL when it is added: that of the headline */
    double slack;       /* only while verifying: absolute, what f64 alone may change in the value */
} pare_claim;

bool pare_kind_is_drawn(pare_kind k); /* holds with a probability */
/* Same kind and parameters. */
bool pare_same_claim(const pare_claim *a, const pare_claim *b);
/* The claim in one English sentence, from kind and parameters alone. NULL: memory is out. */
PARE_MUST_USE const char *pare_claim_sentence(pare_arena *a, const pare_claim *c);

typedef struct pare_named_hash {
    const char *name;
    char sha256[PARE_SHA256_HEX];
} pare_named_hash;

/* A model: its files as bytes, and what is in them as pare holds it. */
typedef struct pare_file_ref {
    const char *path;             /* relative to the certificate */
    char sha256[PARE_SHA256_HEX]; /* of the file, or of the list `files` (pare_files_identity) */
    size_t nfiles;
    pare_named_hash *files;             /* every file that loading it reads */
    char architecture[PARE_SHA256_HEX]; /* of its canonical form (pare_architecture_sha256) */
    size_t ntensors;
    pare_named_hash *tensors; /* as they are in memory: names, orientation and precision of pare,
                                  packed and coded weights unpacked; "vocab" too */
} pare_file_ref;

/* Inputs by their hashes, one by one and sorted: the first `tokens` tokens of each, 0: all. */
typedef struct pare_input_hashes {
    size_t tokens, n;
    char (*sha256)[PARE_SHA256_HEX];
} pare_input_hashes;

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
    /* What claims about new inputs rest on. `fitted` and `candidates` are the writer's word: no
     * file shows to which inputs a cut was fitted, or how many cuts the held-out inputs decided
     * between. That none of the held-out inputs is a fitted one is checked. */
    pare_input_hashes fitted, heldout;
    size_t candidates; /* 1: nothing was chosen by the held-out inputs; 0: no such claim is made */
} pare_data_ref;

typedef struct pare_cert {
    const char *reduction;
    uint64_t seed; /* the writer's word, but for random inputs, which are drawn from it */
    pare_file_ref input, output;
    pare_data_ref data;
    const char *norm, *domain;
    double proven, measured; /* the headline, on the inputs of `data` */
    size_t nclaims, claims_capacity;
    pare_claim *claims; /* in the order of their sections */
    size_t nchain;
    struct pare_cert **chain; /* the links, first cut first; none for a single cut */
    /* Not in the file. How far `measured` may be from the exact largest difference: the proven
     * radii of the enclosures it was read off, and those of the f64 pass (inf: nothing is known).
     */
    double measured_radius, f64_radius;
    bool evidence; /* a prover adds evidence only where this is set */
} pare_cert;

/* Appends a claim; the list grows in the arena. */
PARE_MUST_USE pare_status pare_cert_add(pare_cert *c, pare_arena *a, pare_claim claim,
                                        pare_err *err);
/* The first claim of that kind, or NULL. */
const pare_claim *pare_cert_find(const pare_cert *c, pare_kind kind);
/* The bound of PARE_APRIORI_OUTPUTS; inf where there is none. */
double pare_cert_apriori(const pare_cert *c);

/* ---- file -------------------------------------------------------------------------------- */

/* Bounds are written a little weaker than they were proven, so that another CPU proves them again:
 * upper ones (and `proven`) through pare_ub_written, lower ones through pare_lb_written, none above
 * the ceiling of its kind. PARE_ERR_VERIFY if a lower bound is above its upper one. */
PARE_MUST_USE pare_status pare_cert_inflate(pare_cert *c, pare_err *err);
/* Same certificate, same bytes: every key of docs/format.md in its order, 17 digits where needed.
 * PARE_ERR_NONFINITE names a bound that is nan or negative. */
PARE_MUST_USE pare_status pare_cert_write(const pare_cert *c, const char *path, bool overwrite,
                                          pare_err *err);
/* PARE_ERR_INPUT naming the key ("chain[0].data.kind") when it is missing, unknown, of the wrong
 * type or out of range; PARE_ERR_VERIFY for a bound below 0, which nothing can meet. Everything
 * lives in the arena. */
PARE_MUST_USE pare_status pare_cert_read(pare_cert **out, pare_arena *a, const char *path,
                                         pare_err *err);
/* The text of its file, in the arena. */
PARE_MUST_USE pare_status pare_cert_text(char **out, pare_arena *a, const pare_cert *c,
                                         pare_err *err);
/* Caller frees *out with cJSON_Delete. */
PARE_MUST_USE pare_status pare_cert_json(cJSON **out, const pare_cert *c, pare_err *err);
/* The same from a tree that was read before; `path` is for messages. */
PARE_MUST_USE pare_status pare_cert_parse(pare_cert **out, pare_arena *a, const cJSON *root,
                                          const char *path, pare_err *err);
/* What a certificate says of a model that was loaded from `path` through `files`. */
PARE_MUST_USE pare_status pare_file_ref_make(pare_file_ref *out, pare_arena *a,
                                             const char *cert_path, const char *path,
                                             const pare_files *files, const pare_model *m,
                                             pare_err *err);

/* The inputs of a certificate: `path` NULL for random ones of `tokens` tokens, else a file whose
 * bytes have that hash. */
PARE_MUST_USE pare_status pare_data_ref_make(pare_data_ref *out, pare_arena *a,
                                             const char *cert_path, const char *path,
                                             const char *sha256, size_t split, size_t tokens,
                                             const pare_inputs *set, pare_err *err);
/* The hashes of all inputs of a set, those of a batch one by one. */
PARE_MUST_USE pare_status pare_input_hashes_make(pare_input_hashes *out, pare_arena *a,
                                                 const pare_inputs *set, size_t tokens,
                                                 pare_err *err);
/* Whether an input is in both. */
bool pare_inputs_meet(const pare_input_hashes *a, const pare_input_hashes *b);

/* ---- composing ----------------------------------------------------------------------------- */

/* f -> g -> h: the bounds of the headlines add up (rounded up) in the common norm on the common
 * inputs, so do those a priori where every link has one on the same domain, and one hypothesis per
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
/* Two models on a whole set of inputs (src/cert/gap.c). Each is enclosed in f64; where the radii
 * make the bound much larger than what is seen, and the work is not too much, once more with
 * double-double midpoints. */
typedef struct pare_gap {
    pare_ub proven;  /* |f - g| of every output entry, for the exact functions */
    double measured; /* largest |f - g| between the midpoints: never above proven */
    double radius;   /* of these midpoints: the exact largest difference is within it of measured */
    double f64_radius; /* the same of f64 passes */
    double scale;      /* largest |output| of f */
    pare_ub rounding;  /* a priori: how far g's f32 engine may be from the exact function */
    double engine;     /* how far it was, on these inputs and this machine: |y - mid| + radius */
} pare_gap;
PARE_MUST_USE pare_status pare_prove_gap(pare_gap *out, const pare_model *f, const pare_model *g,
                                         const pare_inputs *set, const pare_exec *exec,
                                         pare_err *err);
/* The proven bounds of each input by itself, those of a batch one by one: pare_draws of them. */
PARE_MUST_USE pare_status pare_prove_each(double *each, const pare_model *f, const pare_model *g,
                                          const pare_inputs *set, const pare_exec *exec,
                                          pare_err *err);
/* Headline, radii, and the claims about g's engine: what every prover takes from a gap. */
PARE_MUST_USE pare_status pare_cert_take_gap(pare_cert *c, pare_arena *a, const pare_gap *gap,
                                             pare_err *err);

/* ---- verifying ----------------------------------------------------------------------------- */

/* How one reduction is proven again from its files; each module owns its own. Fills `again` (norm,
 * domain, headline, claims) from the models and inputs alone. Bounds as proven, not inflated; the
 * headline comes in as nan, so that one that is forgotten fails. Claims that cost extra work
 * (balls, edits, diameters, new inputs) are made where `claimed` has them. */
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
    /* Loads the inputs a certificate names as "file" (the data module does; cert may not). Every
     * byte is read through `files`, so that what was hashed is what was parsed. */
    pare_status (*load)(pare_inputs *out, pare_arena *a, const pare_model *m, const char *path,
                        size_t split, pare_files *files, pare_err *err);
    bool evidence; /* evidence is computed again as well */
    const pare_exec *exec;
} pare_verify_opts;

/* PARE_ERR_VERIFY, naming the claim and both values, unless everything in `claimed` follows from
 * `again`:
 *   headline      same norm and domain; proven at least as large; measured within 1e-3 or twice the
 *                 proven radius of what is measured again, and not above proven by more than it
 *   hypotheses    the same ones, with the same truth; values and limits within 1e-3
 *   theorems      each is proven again: upper bounds at least what is provable, lower ones at most
 *   observations  the same ones, within the tolerance of their kind
 *   evidence      if again->evidence: within 1e-3
 * Files, data and seed are not looked at. */
PARE_MUST_USE pare_status pare_cert_compare(const pare_cert *claimed, const pare_cert *again,
                                            pare_err *err);

/* PARE_OK: every claim holds. PARE_ERR_VERIFY: not true, err says what. Others: unreadable. Every
 * file is opened once and read into memory; hashes are of the bytes that were parsed. A chain is
 * verified link by link, added up again and measured anew; the options' input is then the first
 * model, output the last. `path` is where the certificate came from: files are beside it. `again`,
 * in the arena, is what was proven. */
PARE_MUST_USE pare_status pare_cert_check(pare_cert **again, pare_arena *a, const pare_cert *c,
                                          const char *path, const pare_verify_opts *opts,
                                          pare_err *err);
/* The same for a file. */
PARE_MUST_USE pare_status pare_cert_verify(const char *path, const pare_verify_opts *opts,
                                           pare_err *err);
#endif
