/* pare/exchange.h - what held-out inputs say about inputs that are not there yet.
 *
 * N independent draws of a source that neither the training of the model nor the cut has seen, and
 * what is proven of the error on each. Leave out the k largest; the next one is the bound b. Then
 *     one more draw is above b with probability at most (k + 1) / (N + 1), over all N + 1 draws,
 *     the share of the source above b is at most p, with confidence 1 - delta over the N draws,
 * p from the binomial tail (for k = 0: 1 - delta^(1/N)). "Above" is strict: errors may be equal.
 * Statements: docs/theory/depth.md, "On given inputs". */
#ifndef PARE_EXCHANGE_H
#define PARE_EXCHANGE_H
#include <pare/cert.h>

/* Which of these statements: with a confidence of the share, without one (0) of one more draw. */
typedef struct pare_new_input {
    size_t left_out;
    double confidence; /* 0, or in [1/2, 1) */
} pare_new_input;

/* How their names begin; PARE_NEW_INPUT is the whole name where no error is left out. */
#define PARE_NEW_INPUT "a new input of the same source"
#define PARE_NEW_SHARE "new inputs with larger errors"
/* The hypothesis behind them, which the files cannot decide. */
#define PARE_NEW_INPUT_UNSEEN                                                                      \
    "a new input: the data are independent draws of its source that neither the training of the "  \
    "model nor the cut has seen"

/* The name, in the arena: what to ask pare_publish for (its `ask`). NULL: memory is out. */
PARE_MUST_USE const char *pare_new_input_name(pare_arena *a, pare_new_input what);
/* Which statement a name asks for; false: none of these. */
bool pare_new_input_read(pare_new_input *what, const char *name);

/* How many draws a set is: those of a batch count one by one. */
size_t pare_draws(const pare_inputs *set);
/* Whether they may be independent: a window of a text is not where it begins amid the text, as the
 * tokens before it are the data's as well. */
bool pare_may_be_draws(const pare_inputs *set);
/* The statement from `draws` draws, more than are left out; `bound` is b. Where `data` says that
 * they are the first tokens of longer inputs, so are the new ones. Name NULL: memory is out. */
pare_statement pare_exchangeable(pare_arena *a, pare_new_input what, size_t draws,
                                 const pare_data_ref *data, double bound);
/* Appends those that are `asked` for by name, and their hypothesis, to the lists of a certificate,
 * which have room for them and whose `proven` is there. What cannot be said of so few draws, or of
 * what are none, is left out. The lists that are asked from may be the certificate's own before it
 * was filled. */
PARE_MUST_USE pare_status pare_exchange_say(pare_cert *cert, pare_arena *keep,
                                            const pare_data_ref *data, const pare_statement *asked,
                                            size_t nasked, const pare_model *f, const pare_model *g,
                                            const pare_inputs *set, const pare_exec *exec,
                                            pare_err *err);

/* ---- the binomial tail (src/cert/clopper_pearson.c) ------------------------------------------ */

/* P( at most k of n independent tries succeed ), each with probability p in [0, 1]: at most this;
 * within 1e-15 n of it, relatively. k < n. */
pare_ub pare_binomial_tail(size_t n, size_t k, double p);
/* The p above: n draws, k < n of them left out, confidence in [1/2, 1). At most 1, and within 1e-9
 * of the least there is, relatively. */
double pare_share_above(size_t n, size_t k, double confidence);
#endif
