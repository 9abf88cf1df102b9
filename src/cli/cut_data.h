/* cut_data.h - the data of a cut that is fitted to several inputs: some to fit it to, others to
 * measure it on, and a few of those to prove it on. */
#ifndef PARE_CLI_CUT_DATA_H
#define PARE_CLI_CUT_DATA_H
#include "reduce.h"

typedef struct cut_plan {
    size_t split;         /* of a graph */
    size_t windows;       /* inputs that a cut is fitted to at most */
    size_t fit_tokens;    /* of each of them; 0: all */
    size_t held;          /* inputs that are measured at most */
    size_t proven;        /* inputs that are proven on at most, ... */
    size_t proven_tokens; /* ... tokens of each; 0: all, ... */
    double work;          /* ... and multiplications of a pass over them */
    bool only_texts;      /* tokens are left out of texts alone: sentences and graphs stay whole */
    bool unseen;          /* nothing is fitted: all inputs are held out */
} cut_plan;

typedef struct cut_data {
    pare_inputs fit; /* n = 0: no data */
    /* set: what is proven on; data: what is measured on (n = 0: random inputs, no metric). */
    cert_inputs held;
    size_t compared_tokens; /* fitted and held-out inputs are compared by so many; 0: all */
    bool nothing_fitted;    /* the cut is fitted to no input */
    bool apart;             /* what is measured on is another part of the data, or another file */
    bool more;              /* --prove N can add to what is proven on */
    size_t seen;            /* so many of what is proven on are among what is fitted to */
    const char *no_next;    /* why nothing can be said about a new input; NULL: something can */
} cut_data;

/* The last quarter of the inputs is held out; of the others the first ones are fitted to.
 * data NULL: random inputs to prove on, none to fit to. */
pare_status cut_data_load(cli *c, cut_data *out, const pare_model *m, const char *data,
                          const cut_plan *plan);
/* The same where what is held out is another file. */
pare_status cut_data_load_two(cli *c, cut_data *out, const pare_model *m, const char *data,
                              const char *heldout, const cut_plan *plan);

/* How many of `on` are among `fit`, as far as both are looked at: by at most `tokens` tokens of
 * each (0: all). */
pare_status cut_has_seen(cli *c, size_t *seen, const pare_inputs *fit, const pare_inputs *on,
                         size_t tokens);
extern const char cut_saw_some[]; /* the reason, if there are any */

/* How far the outputs are apart on what is held out: |f - g| / |f|, root mean squares. */
pare_status cut_output_error(cli *c, double *out, const pare_model *f, const pare_model *g,
                             const cut_data *d);
size_t cut_error_inputs(const cut_data *d); /* over so many inputs */
#endif
