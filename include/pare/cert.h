/* pare/cert.h - the certificate: what a cut proved, in a file of its own; reading, writing,
 * composing and verifying one.
 *
 * The headline bounds sup |f(x) - g(x)| over x in `domain`, in `norm`; f is the input model, g the
 * output model, both as real-number functions of their stored weights: proven (a theorem about
 * these weights and inputs) and measured (the largest difference seen, never a bound). Beside it
 * stand claims, each of a kind of one table: hypotheses, theorems, observations, evidence and what
 * a paper prints, never mixed. docs/format.md describes the JSON file.
 *
 * A pare_cert holds what the file holds: nothing is changed by writing or reading. */
#ifndef PARE_CERT_H
#define PARE_CERT_H
#include <pare/data.h>

#define PARE_CERT_SCHEMA 2

/* ---- claims ---------------------------------------------------------------------------------- */

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

/* All kinds of claims; pare_kinds has a row for each (docs/format.md). */
typedef enum pare_kind {
    PARE_FOLD_SAME,
    PARE_FOLD_ROUNDED,
    PARE_FOLD_NOT_ROTARY,
    PARE_FOLD_ROWS_NOT_EMPTY,
    PARE_SHARED_ROWS_SAME,
    PARE_SHARED_ROWS_BOUNDED,
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
    PARE_SHARED_ROWS_OTHERS,
    PARE_SHARED_ROWS_OUTPUTS,
    PARE_SHARED_ROWS_KL,
    PARE_LAYER_INJECTED,
    PARE_LAYER_TICKET,
    PARE_RANK_COLLAPSE,
    PARE_DIAMETER_OUTPUTS,
    PARE_DIAMETER_SCORE,
    PARE_DIAMETER_RANK_COLLAPSE,
    PARE_ONE_LAYER_LEAST,
    PARE_OUTPUTS_LEAST,
    PARE_ROWS_CHANGED,
    PARE_COSINE_DISTANCE,
    PARE_NEIGHBORS_CHANGED,
    PARE_KL_MOST,
    PARE_KL_MEAN,
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
    PARE_NEW_INPUT_COSINE_DISTANCE,
    PARE_NEW_INPUT_KL,
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
    double probability; /* of claims that hold with a probability (pare_kind_is_drawn) */
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
    char sha256[PARE_SHA256_HEX]; /* of the file, or of the list `files` */
    size_t nfiles;
    pare_named_hash *files;             /* every file that loading it reads */
    char architecture[PARE_SHA256_HEX]; /* of its canonical form (docs/format.md) */
    size_t ntensors;
    pare_named_hash *tensors; /* as they are in memory: names, orientation and precision of pare,
                                  packed and coded weights unpacked; "vocab" too */
    pare_load_opts read_as;   /* what was told to its importer */
} pare_file_ref;

/* Inputs by their hashes, one by one and sorted: the first `tokens` tokens of each, 0: all. */
typedef struct pare_input_hashes {
    size_t tokens, n;
    char (*sha256)[PARE_SHA256_HEX];
} pare_input_hashes;

/* Which inputs: a file, or seeded random ones. */
typedef struct pare_data_ref {
    const char *kind;             /* "random", "file", or "part": some inputs of a file */
    const char *path;             /* file; NULL for random */
    char sha256[PARE_SHA256_HEX]; /* of the file; "" for random */
    size_t split;                 /* graphs */
    const char *column;           /* of .csv, .tsv, .jsonl: which one was asked for; NULL: none */
    size_t count, tokens;         /* inputs in the set; tokens of each (random, part: at
                                            most; 0: all) */
    const size_t *numbers;        /* part: in the file, ascending; NULL: from `first` on */
    size_t first;
    char inputs_sha256[PARE_SHA256_HEX]; /* of everything in the set: ids, vectors, edges, shapes */
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

/* The first claim of that kind, or NULL. */
const pare_claim *pare_cert_find(const pare_cert *c, pare_kind kind);
/* The bound of PARE_APRIORI_OUTPUTS; inf where there is none. */
double pare_cert_apriori(const pare_cert *c);

/* ---- file ------------------------------------------------------------------------------------ */

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

/* ---- verifying ------------------------------------------------------------------------------- */

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

/* ---- inputs near the given ones -------------------------------------------------------------- */

/* Two models on every input near the given ones.
 *
 * A ball around an input is every input whose rows are each within `radius` of its rows: of the
 * given vectors, or for models that take ids of the rows of the embedding that the ids name (before
 * positions, map and norm); all rows may move at once. */

typedef enum pare_ball_norm {
    PARE_BALL_MAX, /* no entry of a row moves by more than the radius */
    PARE_BALL_TWO  /* no row moves by more than it in the euclidean norm */
} pare_ball_norm;

typedef struct pare_neighborhood { /* how far the rows of an input may move */
    double radius;
    pare_ball_norm norm;
} pare_neighborhood;

typedef struct pare_ball {
    pare_ub apart;       /* largest |f - g| of an output entry */
    pare_ub rows2;       /* largest euclidean distance of an output row */
    pare_ub difference;  /* two outputs: largest |(f_1 - f_0) - (g_1 - g_0)|; else +inf */
    pare_ub moves;       /* how far an output entry of f itself may move */
    size_t rows;         /* output rows */
    size_t certain;      /* whose largest entry is the same one in both models, throughout */
    const char *refused; /* why nothing is said (all bounds are +inf), or NULL */
} pare_ball;

/* Over the balls around all inputs of the set. f and g have the same blocks, norms, feed-forward
 * parts, embedding and output head; their attentions may be of any kinds. The bounds hold for the
 * real-number functions of the stored weights, grow with the radius, and for radius 0 are the
 * difference on the inputs themselves up to rounding. A trained model with several norms may get a
 * finite but useless bound: each norm may stretch a distance by the inverse of its row's length. */
PARE_MUST_USE pare_status pare_prove_ball(pare_ball *out, const pare_model *f, const pare_model *g,
                                          const pare_inputs *set, pare_neighborhood near,
                                          const pare_exec *exec, pare_err *err);

/* ---- claims about balls ---------------------------------------------------------------------- */

extern const char *const pare_ball_norm_words[]; /* in the order of pare_ball_norm */
/* What to ask pare_publish for (its `ask`): claims for every input whose rows are each within
 * `radius` > 0 of the given ones. */
pare_claim pare_ball_claim(double radius, pare_ball_norm norm);

/* ---- fitted and held-out inputs -------------------------------------------------------------- */

/* The inputs of a reduction: some to fit it to, others, held out, to measure and to
 * prove it on.
 *
 * Which ones are held out: pare_dataset_heldout; of a file of its own the inputs that the seed
 * draws, or all. The metric is taken on whole inputs, PARE_HELDOUT_INPUTS at most, and is the same in
 * all commands. What is proven on are the first inputs that were drawn (of a text drawn by documents:
 * their beginnings), with the same limit of tokens for all. A
 * certificate may speak about new inputs only where the held-out ones were not
 * fitted to, are independent draws, and were not picked by what they are; `no_new_inputs` says why
 * it may not. */

/* Without data a certificate speaks about so many random inputs of so many tokens at most. */
enum { PARE_RANDOM_INPUTS = 64, PARE_RANDOM_TOKENS = 64 };

/* The inputs that a certificate speaks about. */
typedef struct pare_cert_inputs {
    pare_inputs set;
    const char *path;             /* NULL: random */
    char sha256[PARE_SHA256_HEX]; /* of the files that were read */
    size_t split, tokens;         /* of a graph; of each random input */
    const char *column;           /* as it was asked for */
    bool part; /* `set` is a part of the file's inputs, with at most `tokens` tokens of */
    const size_t *numbers; /* each; their numbers, ascending; NULL: 0, 1, ... */
    bool whole;            /* part: none of them is longer than that */
    pare_dataset data;     /* when there is a path */
} pare_cert_inputs;

/* All inputs of a file, or (path NULL) random ones drawn from the seed. PARE_ERR_INPUT: no input in
 * the file suits the model. Everything lives in the arena. */
PARE_MUST_USE pare_status pare_cert_inputs_load(pare_cert_inputs *out, pare_arena *a,
                                                const pare_model *m, const char *path,
                                                const pare_data_opts *opts, pare_err *err);

typedef struct pare_heldout_opts {
    /* One file (heldout NULL), two, or none (both NULL: random inputs, drawn from the seed, to
     * prove on, and none to fit to). */
    const char *data, *heldout;
    uint64_t seed;
    size_t split;          /* of a graph */
    const char *column;    /* pare_data_opts */
    size_t most_fitted;    /* inputs to fit to, at most, ... */
    size_t fit_tokens;     /* ... tokens of each; 0: all */
    size_t prove;          /* held-out inputs to prove on, at most, ... */
    size_t proven_tokens;  /* ... tokens of each; 0: all. Graphs and vectors stay whole */
    bool nothing_fitted;   /* no input is fitted to */
    const pare_exec *exec; /* of texts that the model writes itself */
} pare_heldout_opts;
#define PARE_HELDOUT_OPTS_DEFAULT                                                                  \
    {                                                                                              \
        .most_fitted = SIZE_MAX, .prove = PARE_HELDOUT_INPUTS, .proven_tokens = PARE_PROVEN_TOKENS \
    }

typedef struct pare_heldout {
    pare_inputs fit; /* n = 0: no data */
    /* set: what is proven on; data: what is measured on (n = 0: random inputs, no metric). */
    pare_cert_inputs held;
    pare_text_notes fit_notes; /* of the file that is fitted to, where it is another one */
    size_t compared_tokens;    /* fitted and held-out inputs are compared by so many; 0: all */
    bool nothing_fitted;       /* as asked */
    bool apart;       /* what is measured on is another part of the data, or another file */
    bool more;        /* a larger `prove` adds to what is proven on */
    size_t units, of; /* so many of so many inputs (or documents) of the file are measured on */
    bool documents;
    size_t seen;               /* so many of what is proven on are among what is fitted to */
    const char *no_new_inputs; /* why nothing can be said about new inputs; NULL: something can */
} pare_heldout;

/* Reads and splits the inputs; everything lives in the arena. On failure `out` holds what was read
 * before it. */
PARE_MUST_USE pare_status pare_heldout_load(pare_heldout *out, pare_arena *a, const pare_model *m,
                                            const pare_heldout_opts *opts, pare_err *err);

/* ---- publishing a cut ------------------------------------------------------------------------ */

/* How every reduction ends: the smaller model and its certificate appear together,
 * proven on what was really written, or nothing appears. */

/* The headline's norm, in which certificates compose. */
#define PARE_NORM_HEADLINE "largest absolute difference over the output entries"

/* What the name of a model has at its end until it is proven: the pid. */
#define PARE_PART_SUFFIX ".part-%ld"

/* Whether the bytes of files say which of two models is larger, or those of their weights: below 1 MB
 * the header of the file that came in would decide. */
bool pare_compare_files(uint64_t file_bytes);

typedef struct pare_publish_opts {
    const char *in_path, *out_path; /* the certificate goes to out_path.cert.json, ... */
    bool folder;      /* ... or to out_path/pare.cert.json: in_path is a Hugging Face folder, and
                         out_path becomes one of its kind (pare_export_like) */
    pare_dtype dtype; /* of the weights in a folder; 0: those of the input's */
    const pare_files *in_files; /* what the input model was loaded through; NULL: read again */
    bool overwrite;
    double max_error; /* compared with the proven bound; inf: no promise is asked for */
    bool must_shrink; /* PARE_ERR_PROMISE unless the file is smaller than what came in */
    uint64_t seed;
    const char *data_path;   /* where `set` came from; NULL: random inputs drawn from `seed` */
    const char *data_sha256; /* of the files it was read from; NULL: the file is hashed now */
    size_t split, tokens;    /* of a graph; of each random input */
    const char *column;      /* pare_data_opts */
    bool part;               /* the set is a part of the file's inputs, ... */
    const size_t *numbers;   /* ... of each its number in the file; NULL: 0, 1, ... */
    const pare_inputs *set;  /* what the headline speaks about */
    /* Statements about new inputs of the source of `set`. Only where no input of the set took part
     * in any choice: neither the cut nor its size, nor whether it is written at all (max_error). */
    bool new_inputs;
    const pare_inputs *fitted; /* what the cut was fitted to; NULL: to no input */
    size_t fitted_tokens;      /* both are compared by at most so many tokens; 0: all */
    const pare_prover *prover;
    /* Claims that cost extra work, by kind and parameters: balls, edits, diameters. */
    const pare_claim *ask;
    size_t nask;
    const pare_exec *exec;
} pare_publish_opts;
/* Asks for no promise. A struct that is all zero asks for an error of 0: begin with this one. */
#define PARE_PUBLISH_OPTS_DEFAULT                                                                  \
    {                                                                                              \
        .max_error = __builtin_inf()                                                               \
    }

/* Writes `out` under a temporary name, loads it again, measures both models by the f64 reference,
 * proves by the prover, checks that the two agree within their proven radii, writes the
 * certificate, then renames the model into place. PARE_ERR_PROMISE (nothing written) when proven >
 * max_error, or when the file must shrink and does not: it is compared with the files that came in,
 * below 1 MB the bytes of its weights with theirs; PARE_ERR_VERIFY when the reloaded model is not the one that was meant. `cert` lives in
 * the arena. `out` is freed as soon as it is on disk (the caller's pointer is set to NULL): memory
 * for one copy, not two. What lives in the arena of *out, the lists in the report of a cut among
 * it, is gone then: read it before, or use pare_reduce, whose report is in the caller's arena. */
PARE_MUST_USE pare_status pare_publish(pare_cert *cert, pare_arena *a, const pare_model *in,
                                       pare_model **out, const pare_publish_opts *opts,
                                       pare_err *err);

/* The largest distance of outputs y (as pare_forward_f32 gives them), however they were computed, from
 * the exact function of m on this input: proven. m is made of numbers (not loaded packed). Takes
 * as long as a proof on the input; +inf where nothing can be said. */
PARE_MUST_USE pare_status pare_engine_distance(double *out, const pare_model *m,
                                               const pare_input *in, const float *y,
                                               const pare_exec *exec, pare_err *err);
#endif
