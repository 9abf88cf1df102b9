/* heldout.h - the inputs of a reduction: some to fit it to, others, held out, to measure and to
 * prove it on.
 *
 * Which ones are held out is the rule of data/heldout_draw.h. A certificate may speak about new inputs (conformal.h) only where the held-out ones were not
 * fitted to, are independent draws, and were not picked by what they are; `no_new_inputs` says why
 * it may not. */
#ifndef PARE_CERT_HELDOUT_H
#define PARE_CERT_HELDOUT_H
#include <pare/cert.h>

/* Tokens of an input when nobody says how many: the context, at most PARE_RANDOM_TOKENS. */
size_t pare_default_tokens(const pare_model *m);

/* The same of inputs that are there already: of one set (heldout NULL) or of two. */
PARE_MUST_USE pare_status pare_heldout_split(pare_heldout *out, pare_arena *a, const pare_model *m,
                                             const pare_cert_inputs *data,
                                             const pare_cert_inputs *heldout,
                                             const pare_heldout_opts *opts, pare_err *err);
/* What the metric is taken on: all held-out inputs, or the random ones. */
const pare_inputs *pare_heldout_measured(const pare_heldout *h);

/* The reason against claims about new inputs where held-out inputs were fitted to. */
extern const char pare_some_were_seen[];
/* How many of `on` are among `fit`, comparing at most `tokens` tokens of each (0: all); and the
 * reason against statements about new inputs if there are any. */
PARE_MUST_USE pare_status pare_count_seen(size_t *seen, pare_arena *scratch, const pare_inputs *fit,
                                          const pare_inputs *on, size_t tokens, pare_err *err);
#endif
