/* width_text.h - the data of a cut of a language model or an encoder: some inputs to fit it to,
 * others to measure it on, and a few of those to prove it on. */
#ifndef PARE_CLI_WIDTH_TEXT_H
#define PARE_CLI_WIDTH_TEXT_H
#include "reduce.h"

enum {
    WIDTH_WINDOWS = 128,  /* inputs that a cut is fitted to, unless asked otherwise ... */
    WIDTH_TOKENS = 256,   /* ... and tokens of each */
    WIDTH_HELD_OUT = 256, /* inputs that are measured at most */
    WIDTH_PROVEN = 8,     /* inputs that are proven on, and tokens of each */
    WIDTH_PROVEN_TOKENS = 64
};

typedef struct width_data {
    pare_inputs fit; /* n = 0: no data */
    /* set: what is proven on; data: what is measured on (n = 0: random inputs, no metric). */
    cert_inputs held;
    bool same; /* there is one input: it serves for all */
} width_data;

/* The last quarter of the inputs is held out; of the others the first `windows` are fitted to.
 * data NULL: random inputs to prove on, none to fit to. */
pare_status width_data_load(cli *c, width_data *out, const pare_model *m, const char *data,
                            size_t windows);

/* How far the outputs are apart on what is held out: |f - g| / |f|, root mean squares. */
pare_status width_output_error(cli *c, double *out, const pare_model *f, const pare_model *g,
                               const width_data *d);
#endif
