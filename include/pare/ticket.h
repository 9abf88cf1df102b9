/* pare/ticket.h - a model as a seed and masks: a part of a random network that computes almost what
 * the model does (strong lottery tickets; docs/ticket.md).
 *
 *   pare_ticket_opts o = PARE_TICKET_OPTS;
 *   o.bits = 12;                                  // stored mask bits for a weight
 *   st = pare_ticket(&small, &report, model, &o, NULL, &err);
 *   st = pare_model_save(small, "model.ticket", false, NULL, &err);   // loads like any model
 *
 * Every matrix becomes a product of two masked random ones; what is stored of it is the seed and
 * the masks. Gains stay numbers, and so do biases unless they are asked for. */
#ifndef PARE_TICKET_H
#define PARE_TICKET_H
#include <pare/coded.h>
#include <pare/forward.h>

typedef enum pare_ticket_mode {
    PARE_TICKET_AUTO,     /* whichever has fewer bytes: factored, but for few heads */
    PARE_TICKET_FACTORED, /* every stored matrix by itself: any model */
    PARE_TICKET_MERGED    /* Otsuka 2025: scale Wq^T Wk and Wo Wv of every head; not for rotary;
                             ReLU parts from a ReLU source, other feed-forward parts factored */
} pare_ticket_mode;
extern const char *const pare_ticket_mode_names[]; /* ended by NULL */

typedef enum pare_ticket_method {
    PARE_TICKET_BEST,    /* units chosen, shared, and given to the columns that need them */
    PARE_TICKET_BLOCK,   /* equal blocks of units: Otsuka 2025 */
    PARE_TICKET_FEEDBACK /* equal blocks; later entries make good for the errors of earlier ones on
                            given inputs, and bits are chosen by what they cost */
} pare_ticket_method;
extern const char *const pare_ticket_method_names[]; /* ended by NULL */

typedef struct pare_ticket_opts {
    pare_ticket_mode mode;
    pare_ticket_method method;
    size_t bits;   /* items of an entry: n = bits min(rows, cols) hidden units; BEST has 16 more */
    size_t hidden; /* hidden units of every matrix; 0: by bits */
    bool biases;   /* of maps, from the source as well: units whose input is 1 */
    bool strict;   /* scale 1, as in the theorems */
    int exponent;  /* the scale is 2^exponent; PARE_TICKET_CHOOSE: the best of a few, by matrix */
    uint64_t seed;
    pare_coding coding;
    /* of FEEDBACK */
    const pare_inputs *fit; /* what the ticket is fitted to; NULL: every entry for itself */
    double stored;          /* bits stored for a weight; 0: as many as it takes */
} pare_ticket_opts;
#define PARE_TICKET_CHOOSE INT32_MAX
#define PARE_TICKET_OPTS                                                                           \
    {                                                                                              \
        .bits = 12, .exponent = PARE_TICKET_CHOOSE, .coding = PARE_CODING_BRIDGE                   \
    }
enum {
    PARE_TICKET_MOST_BITS = 64,
    PARE_TICKET_STORED_BITS = 16 /* where `stored` says how many: all choices are weighed */
};

typedef struct pare_ticket_matrix {
    const char *name;
    size_t rows, cols, hidden;
    int exponent;
    size_t bytes;        /* in the file */
    double largest, rms; /* of the entries' errors */
    double reach;        /* largest |entry| over what the items of an entry reach on average */
} pare_ticket_matrix;

typedef struct pare_ticket_report {
    size_t n;
    pare_ticket_matrix *matrix; /* those that became tickets */
    uint64_t weights, bytes;    /* of these */
    uint64_t numbers;           /* weights that stayed numbers, 4 or 8 bytes each */
    uint64_t number_bytes;
    bool merged;
    size_t relu_parts;  /* merged: feed-forward parts that are layers of a ReLU source */
    size_t other_parts; /* and those that are factored */
} pare_ticket_report;

/* The report lives in the output model's arena. PARE_ERR_INPUT names the tensor that cannot be a
 * ticket, and why. `in` is not changed and must outlive *out; caller frees *out with
 * pare_model_free. Same seed, same bytes, for any number of threads. */
PARE_MUST_USE pare_status pare_ticket(pare_model **out, pare_ticket_report *report,
                                      const pare_model *in, const pare_ticket_opts *opts,
                                      const pare_exec *exec, pare_err *err);

/* What a round-to-nearest quantiser with one scale for each matrix does with so many bytes: the
 * same model, whose tickets' matrices are rounded to so many levels as fit the bytes. `fit` (may be
 * NULL): with the feedback of PARE_TICKET_FEEDBACK. */
PARE_MUST_USE pare_status pare_ticket_rounded(pare_model **out, double *bits, const pare_model *in,
                                              const pare_ticket_report *of, const pare_inputs *fit,
                                              const pare_exec *exec, pare_err *err);
#endif
