/* pare/cut.h - the product in two calls: pare_reduce cuts a model from file to file and certifies
 * it, pare_verify_file proves a certificate again. */
#ifndef PARE_CUT_H
#define PARE_CUT_H
#include <pare/depth.h>
#include <pare/fold.h>
#include <pare/length.h>
#include <pare/quant.h>
#include <pare/ticket.h>
#include <pare/width.h>

/* ---- a cut from file to file ----------------------------------------------------------------- */

/* model + data + options -> smaller model + certificate, and how good it is.
 *
 *     pare_reduce_opts o = PARE_REDUCE_OPTS_DEFAULT(PARE_REDUCE_WIDTH);
 *     o.from = "model.safetensors", o.to = "small.safetensors", o.data = "text.txt";
 *     o.width.keep = 0.75;
 *     pare_reduce(&r, arena, model, &o, &exec, &err);
 *
 * `model` is what pare_model_load read from o.from: that path and the hash of its files go into the
 * certificate, and another model is refused by pare_verify_file. The inputs are split into fitted
 * and held-out ones (pare_heldout_opts), the model is cut, written, proven and certified, and both
 * files are measured. With max_error and no size the smallest cut is
 * searched that is proven to stay within it. Results are in the caller's arena. */

/* ---- what a model is, and how large its parts are -------------------------------------------- */

typedef struct pare_model_facts {
    const char *path;
    char sha256[PARE_SHA256_HEX]; /* "": it was not asked for */
    uint64_t file_bytes; /* of a folder: of the plain files in it, or those that were read */
    pare_size size;      /* MACs: of one pass over `tokens` */
    pare_dtype dtype;    /* that most bytes of the weights are stored in */
    size_t tokens;
} pare_model_facts;
/* MACs of one pass over `in`; NULL: over as many tokens as suit the model. */
PARE_MUST_USE pare_status pare_model_facts_of(pare_model_facts *out, const char *path,
                                              const pare_model *m, const pare_input *in,
                                              pare_arena *scratch, pare_err *err);

/* Smallest, largest and sum over the places that have this width; n = 0: there is none. */
typedef struct pare_width_range {
    size_t least, most, sum, n;
} pare_width_range;
typedef struct pare_model_shape {
    uint64_t attention, ffn, rest; /* parameters */
    pare_width_range stream;       /* of the residual stream, where each block begins and ends */
    pare_width_range qk, values;   /* of a head */
    pare_width_range hidden;       /* units of a feed-forward layer */
    size_t exact, replaced;        /* attention layers */
} pare_model_shape;

/* ---- what came of a reduction ---------------------------------------------------------------- */

/* Plain rounding of the same weights into as many bytes as a ticket takes. */
typedef struct pare_rounded {
    double bits;     /* a weight */
    double measured; /* largest difference of an output; nan: there is none to compare */
    double error;    /* as pare_reduction.output_error */
    bool has_metric;
    pare_evaluation metric;
} pare_rounded;

typedef struct pare_reduction {
    const char *from, *to, *cert_path; /* files */
    const char *heldout;               /* the file of the held-out inputs, if it is another one */
    pare_heldout inputs;               /* what it was fitted to, measured and proven on */
    /* Why the certificate makes no claim about new inputs though it might, or NULL. */
    const char *no_new_inputs;
    bool new_inputs;   /* the certificate speaks about new inputs */
    double new_share;  /* with new_inputs, before the proof: if no held-out input is above the
                          bound, at most this share of new ones is (confidence 95 %) */
    bool prove_more;   /* more inputs could be proven on (pare_reduce_opts.prove) */
    double proof_work; /* multiplications of the passes that the proof makes */
    pare_cert cert;
    bool published;      /* the model and its certificate are written */
    double ms_reduction; /* from opts.started on */

    /* Reports of the directions. */
    pare_fold_report fold;
    pare_share_report shared; /* fold, with opts.share_rows */
    pare_width_report width;
    pare_train_result distilled; /* width, with opts.distill.epochs */
    pare_depth_report depth;
    pare_depth_one_report one_layer;
    pare_ticket_report ticket;
    pare_ticket_opts ticket_made; /* the options with the bits that were found */
    pare_rounded rounded, rounded_with_feedback;
    pare_quant_report quant;
    pare_quant_opts quant_made;
    double keep; /* width: the share that was found or asked for; 0: none */

    /* Both models as they are on the disk. */
    pare_model_facts before, after;
    pare_model_shape shape_before, shape_after;
    double ms_before, ms_after;     /* of a pass */
    bool has_attention_ms;          /* asked for: */
    double attn_before, attn_after; /* ms, attention of all heads by itself */
    bool has_metric;
    const char *no_metric; /* why quality could not be measured though there are targets, or NULL */
    pare_evaluation metric_before, metric_after; /* of a text: "nats" per token */
    pare_cosine_report cosine;                   /* of embeddings without targets; else all 0 */
    pare_task_kind task;                         /* that the metric belongs to */
    size_t metric_inputs;                        /* how many it is taken over */
    bool held_out;                               /* which the cut was not fitted to */
    double output_error;   /* |f - g|_F / |f|_F of the outputs over so many inputs; ... */
    size_t error_inputs;   /* ... 0: not measured */
    double largest_output; /* of the model before, on what is proven on; nan: it overflows */
    bool all_tokens;       /* what is proven on was not cut to its first tokens */
    bool no_splits;        /* the data have none */
    size_t of_inputs;      /* number of held-out inputs in the file; 0: all were proven on */
    size_t rows;           /* output rows of what is proven on */
    const char *row_word;  /* "node", "position", "input" */
    const char *
        label_word; /* what its largest entry is: "class", "top token", "label", "largest output" */
} pare_reduction;

/* ---- doing it -------------------------------------------------------------------------------- */

typedef enum pare_reduce_kind {
    PARE_REDUCE_FOLD,
    PARE_REDUCE_WIDTH,
    PARE_REDUCE_DEPTH,
    PARE_REDUCE_ONE_LAYER, /* depth: all attention layers become one */
    PARE_REDUCE_TICKET,
    PARE_REDUCE_QUANT
} pare_reduce_kind;

/* What has happened, as it happens. */
typedef enum pare_reduce_event {
    PARE_REDUCE_LOADED, /* the inputs are read: their notes are worth a look */
    PARE_REDUCE_MADE, /* the smaller model is made, its report filled in; of a chain: it is composed,
                           and the paths of its ends are known */
    PARE_REDUCE_PROVING,  /* the proof begins: proof_work */
    PARE_REDUCE_PUBLISHED /* the files are written */
} pare_reduce_event;

enum { PARE_REDUCE_ASK = 8 };
typedef struct pare_reduce_opts {
    pare_reduce_kind kind;
    const char *from;        /* where the model was read */
    const pare_files *files; /* what it was read through; NULL: it is read again */
    const char *to;          /* the certificate goes to TO.cert.json; of a chain: its certificate */
    /* `from` is a Hugging Face folder, and `to` becomes one of its kind, with its certificate in it
     * (pare.cert.json): only what the family's config can express is cut. */
    bool folder;
    const char *data, *heldout; /* files, or NULL */
    size_t split;
    const char *column;            /* pare_data_opts */
    size_t fit_inputs, fit_tokens; /* what is fitted to, at most; fit_tokens 0: all of each text */
    size_t prove;                  /* held-out inputs to prove on; 0: PARE_HELDOUT_INPUTS */
    size_t proven_tokens;          /* ... and the first tokens of each; 0: all */
    double max_error;              /* of the proven bound; inf: none */
    bool overwrite, time_attention;
    /* Also write what is not smaller than what came in, and what is not cut at all. A fold is
     * always written. */
    bool allow_larger;
    pare_dtype dtype; /* rounds the cut to it (F16, BF16, F32, F64); 0: to the model's precision */
    uint64_t seed;
    double started;                  /* pare_seconds() when the work began; 0: now */
    pare_claim ask[PARE_REDUCE_ASK]; /* claims wanted beside the prover's own: pare_publish_opts */
    size_t nask;
    const pare_prover *prover; /* pare_reduce_publish alone: how the cut is proven */

    /* Fold: rows of the embedding are shared, and nothing is folded (pare_share_report). */
    bool share_rows;
    double share_distance; /* below 0: found by a gap */
    pare_width_opts width;
    pare_distill_opts distill; /* width of graphs: trained for so many epochs afterwards; 0: not */
    pare_depth_opts depth;     /* without a number of layers max_error looks for the fewest */
    pare_depth_one_opts one_layer;
    pare_ticket_opts ticket;
    pare_quant_opts quant;

    /* Called as it happens, may be NULL; an error ends the reduction. */
    pare_status (*event)(void *self, pare_reduce_event e, const pare_reduction *r);
    void *self;
} pare_reduce_opts;
/* Usual limits of a kind; from, to, data and the direction's own options are the caller's. */
#define PARE_REDUCE_OPTS_DEFAULT(KIND)                                                             \
    {                                                                                              \
        .kind = (KIND),                                                                            \
        .fit_inputs = (KIND) == PARE_REDUCE_WIDTH    ? 128                                         \
                      : (KIND) == PARE_REDUCE_QUANT  ? 256                                         \
                      : (KIND) == PARE_REDUCE_TICKET ? 48                                          \
                                                     : 64,                                         \
        .fit_tokens = (KIND) == PARE_REDUCE_TICKET ? 128 : 256, .max_error = __builtin_inf(),      \
        .proven_tokens = PARE_PROVEN_TOKENS, .width = PARE_WIDTH_OPTS_DEFAULT,                     \
        .distill = PARE_DISTILL_OPTS_DEFAULT, .depth = PARE_DEPTH_OPTS_DEFAULT,                    \
        .one_layer = PARE_DEPTH_ONE_OPTS_DEFAULT, .ticket = PARE_TICKET_OPTS_DEFAULT,              \
        .quant = PARE_QUANT_OPTS_DEFAULT                                                           \
    }

/* PARE_ERR_PROMISE: nothing is proven to stay within max_error, or the result is not smaller than
 * what came in; so is one that the options leave as it is. PARE_ERR_USAGE: they ask for what no
 * folder can hold (before any data is read). Nothing was written. On failure
 * *out has what was found until then. */
PARE_MUST_USE pare_status pare_reduce(pare_reduction *out, pare_arena *a, const pare_model *m,
                                      const pare_reduce_opts *o, const pare_exec *exec,
                                      pare_err *err);

/* ---- its parts, for cuts that are made elsewhere --------------------------------------------- */

/* pare_publish of *small, which is taken over, on r->inputs.held, by the prover o->prover. */
PARE_MUST_USE pare_status pare_reduce_publish(pare_reduction *r, pare_arena *a, const pare_model *m,
                                              pare_model **small, const pare_reduce_opts *o,
                                              const pare_exec *exec, pare_err *err);
/* Sizes, times and the metric of r->from (m) and of what is at r->to now. */
PARE_MUST_USE pare_status pare_reduce_measure(pare_reduction *r, pare_arena *a, const pare_model *m,
                                              const pare_reduce_opts *o, const pare_exec *exec,
                                              pare_err *err);
/* One certificate of the certificates of several cuts (the files `links`, first cut first),
 * written to o->to: measured anew between the ends, and proven again from the files before it
 * appears. Of the other options started, overwrite, time_attention and event are read. */
PARE_MUST_USE pare_status pare_reduce_chain(pare_reduction *r, pare_arena *a, char *const *links,
                                            size_t n, const pare_reduce_opts *o,
                                            const pare_exec *exec, pare_err *err);

/* ---- ways to store weights, side by side ----------------------------------------------------- */

/* The same number of stored bits a weight by every method, and what each leaves of the model. */
enum { PARE_RIVALS = 5 };
typedef struct pare_rival {
    const char *method; /* "rtn", "gptq", "seedlm", "masks" (of pare/ticket.h), "trellis" */
    double bits;        /* stored of a weight of the matrices: scales, seeds and heads counted */
    uint64_t bytes;     /* of all weights of the model */
    double error;       /* |E|^2 / |W|^2 over the matrices, Frobenius norms */
    pare_comparison inside, outside; /* on held-out inputs of `data`; on inputs of `other` */
    double seconds;                  /* to make it */
} pare_rival;
typedef struct pare_rivals_opts {
    double bits;         /* 2 to 6. Groups of integers: scales of 16 bits take what is behind the
                                point, at 4.25 one for 64 weights; none: a scale for each row */
    const char *methods; /* "rtn,trellis": these alone, by the names above; NULL: all */
    const char *data;    /* what methods are fitted to, and measured on a held-out part of */
    const char *other;   /* of another domain; NULL: none */
    const char *column;  /* of both (pare_data_opts) */
    size_t fit_inputs, fit_tokens; /* at most */
    uint64_t seed;
} pare_rivals_opts;
#define PARE_RIVALS_OPTS_DEFAULT                                                                   \
    {                                                                                              \
        .bits = 4.25, .fit_inputs = 256, .fit_tokens = 256                                         \
    }
/* What the methods are measured on. */
typedef struct pare_rivals_inputs {
    pare_heldout data;
    pare_dataset other; /* without `other`: no inputs */
} pare_rivals_inputs;
typedef struct pare_rivals {
    size_t n;
    pare_rival of[PARE_RIVALS];
    pare_rivals_inputs on;
} pare_rivals;
/* Nothing is written and nothing is proven. Everything lives in the arena. PARE_ERR_USAGE names a
 * word of `methods` that is none. */
PARE_MUST_USE pare_status pare_compare_rivals(pare_rivals *out, pare_arena *a, const pare_model *m,
                                              const pare_rivals_opts *o, const pare_exec *exec,
                                              pare_err *err);

/* ---- verifying any certificate --------------------------------------------------------------- */

/* Prove a certificate again, whatever wrote it: one call for every reduction.
 *
 *     pare_err err = {0};
 *     if (pare_verify_file("small.safetensors", NULL, &err) == PARE_ERR_VERIFY)
 *         fprintf(stderr, "refused: %s\n", err.msg); */

typedef struct pare_verify_file_opts {
    /* Where the files are now; NULL: where the certificate says. Of the certificate of a length run
     * `input` is the model and `output` the plan. */
    const char *input, *output, *data;
    bool evidence;             /* evidence is computed again as well */
    const pare_engine *engine; /* certificates of length runs: runs the model once more; NULL: the
                                  built-in kernels in f64 */
    const pare_exec *exec;
} pare_verify_file_opts;
#define PARE_VERIFY_FILE_OPTS_DEFAULT                                                              \
    {                                                                                              \
        .input = NULL                                                                              \
    }

/* What was read and proven, as far as it went. */
typedef struct pare_verified {
    const char *path;   /* of the certificate: what was named, or the one beside the model */
    bool is_length;     /* it is about a length run */
    pare_cert *claimed; /* of a cut; NULL: it could not be read */
    pare_cert *again;   /* what was proven; NULL: it was not */
    pare_length_verified length;
} pare_verified;

/* `path` is a certificate, or a model or plan with a certificate beside it: PATH.cert.json, or
 * PATH/pare.cert.json in a folder. PARE_OK: every claim holds. PARE_ERR_VERIFY: it is refused, and
 * err says why. PARE_ERR_USAGE: `data` of a certificate about random inputs, or `engine` of one
 * that is not about a length run. Others: a file is missing or unreadable. opts may be NULL. */
PARE_MUST_USE pare_status pare_verify_file(const char *path, const pare_verify_file_opts *opts,
                                           pare_err *err);
/* The same, and what was proven, in the arena. */
PARE_MUST_USE pare_status pare_verify_file_report(pare_verified *out, pare_arena *a,
                                                  const char *path,
                                                  const pare_verify_file_opts *opts, pare_err *err);
/* The certificate that `path` names, as pare_verify_file finds it; in the arena. */
PARE_MUST_USE pare_status pare_find_certificate(const char **out, pare_arena *a, const char *path,
                                                pare_err *err);

/* ---- unpacking any certificate --------------------------------------------------------------- */

/* What a certificate is about in plain files, for a checker that reads neither folders nor tickets
 * nor texts (docs/format.md "Unpacked certificates"). */
typedef struct pare_unpacked {
    const char *path; /* of the certificate */
    bool is_length;
    size_t links;  /* of a chain; 0: it is none */
    size_t inputs; /* how many it is about */
} pare_unpacked;

/* Writes both models, the inputs and unpacked.json into `folder`, which is made; with `overwrite`
 * it may be one that an earlier call has made. Every file is compared with the certificate's hashes
 * first: PARE_ERR_VERIFY when one is another. Nothing is proven. unpacked.json is written last, and
 * after a failure no file of this call is left. opts as above, without engine and evidence. */
PARE_MUST_USE pare_status pare_unpack_file(pare_unpacked *out, pare_arena *a, const char *path,
                                           const char *folder, bool overwrite,
                                           const pare_verify_file_opts *opts, pare_err *err);
#endif
