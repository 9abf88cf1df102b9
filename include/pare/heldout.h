/* pare/heldout.h - the inputs of a reduction: some to fit it to, others, held out, to measure and to
 * prove it on.
 *
 * Of one file the last quarter of the inputs is held out (of a single input: all of it, which is
 * then seen by both sides); of the others the first ones are fitted to. Two files may be given
 * instead. What is proven on are the first of the held-out inputs, as many as one can afford. A
 * certificate may speak about new inputs (pare/exchange.h) only where the held-out ones were not
 * fitted to, are independent draws, and were not picked by what they are; `no_new_inputs` says why
 * it may not. */
#ifndef PARE_HELDOUT_H
#define PARE_HELDOUT_H
#include <pare/cert.h>
#include <pare/data.h>

/* Without data a certificate speaks about so many random inputs of so many tokens at most. */
enum { PARE_RANDOM_INPUTS = 64, PARE_RANDOM_TOKENS = 64 };
/* Tokens of an input when nobody says how many: the context, at most PARE_RANDOM_TOKENS. */
size_t pare_default_tokens(const pare_model *m);

/* The inputs that a certificate speaks about. */
typedef struct pare_cert_inputs {
    pare_inputs set;
    const char *path;             /* NULL: random */
    char sha256[PARE_SHA256_HEX]; /* of the files that were read */
    size_t split, tokens;         /* of a graph; of each random input */
    bool part;         /* `set` is a part of the file's inputs, from number `first`, with at */
    size_t first;      /* most `tokens` tokens of each */
    pare_dataset data; /* when there is a path */
} pare_cert_inputs;

/* All inputs of a file, or (path NULL) random ones drawn from the seed. PARE_ERR_INPUT: no input in
 * the file suits the model. Everything lives in the arena. */
PARE_MUST_USE pare_status pare_cert_inputs_load(pare_cert_inputs *out, pare_arena *a,
                                                const pare_model *m, const char *path, size_t split,
                                                uint64_t seed, pare_err *err);

typedef struct pare_heldout_opts {
    size_t split;         /* of a graph */
    size_t most_fitted;   /* inputs to fit to, at most, ... */
    size_t fit_tokens;    /* ... tokens of each; 0: all */
    size_t most_measured; /* held-out inputs to measure on, at most */
    size_t most_proven;   /* held-out inputs to prove on, at most, ... */
    size_t proven_tokens; /* ... tokens of each; 0: all, ... */
    double work;          /* ... and multiplications of a pass over them */
    bool cut_only_texts;  /* tokens are left out of texts alone: sentences and graphs stay whole */
    bool nothing_fitted;  /* no input is fitted to: all of them are held out */
} pare_heldout_opts;

typedef struct pare_heldout {
    pare_inputs fit; /* n = 0: no data */
    /* set: what is proven on; data: what is measured on (n = 0: random inputs, no metric). */
    pare_cert_inputs held;
    pare_text_notes fit_notes; /* of the file that is fitted to, where it is another one */
    size_t compared_tokens;    /* fitted and held-out inputs are compared by so many; 0: all */
    bool nothing_fitted;       /* as asked */
    bool apart;  /* what is measured on is another part of the data, or another file */
    bool more;   /* a larger most_proven adds to what is proven on */
    size_t seen; /* so many of what is proven on are among what is fitted to */
    const char *no_new_inputs; /* why nothing can be said about new inputs; NULL: something can */
} pare_heldout;

/* From one file (heldout NULL), from two, or from none (both NULL: random inputs to prove on, none
 * to fit to). On failure `out` holds what was read before it. */
PARE_MUST_USE pare_status pare_heldout_load(pare_heldout *out, pare_arena *a, const pare_model *m,
                                            const char *data, const char *heldout,
                                            const pare_heldout_opts *opts, uint64_t seed,
                                            pare_err *err);
/* The same of inputs that are there already: of one set (heldout NULL) or of two. */
PARE_MUST_USE pare_status pare_heldout_split(pare_heldout *out, pare_arena *a, const pare_model *m,
                                             const pare_cert_inputs *data,
                                             const pare_cert_inputs *heldout,
                                             const pare_heldout_opts *opts, pare_err *err);
/* What the metric is taken on: all held-out inputs, or the random ones. */
const pare_inputs *pare_heldout_measured(const pare_heldout *h);

/* How many of `on` are among `fit`, comparing at most `tokens` tokens of each (0: all); and the
 * reason against statements about new inputs if there are any. */
PARE_MUST_USE pare_status pare_count_seen(size_t *seen, pare_arena *scratch, const pare_inputs *fit,
                                          const pare_inputs *on, size_t tokens, pare_err *err);
extern const char pare_some_were_seen[];
#endif
