/* next_input.c - inputs that are not there yet (next_input.h). */
#include "next_input.h"
#include <math.h>

void next_ask(cli *c, reduction *r, const cut_data *d, bool chosen)
{
    const char *const why = d->no_next ? d->no_next
                            : chosen   ? "the held-out inputs chose the size of the cut"
                            : r->max_error < INFINITY
                                ? "with --max-error the held-out inputs decide whether the model "
                                  "is written"
                                : NULL;
    if (why) cli_note(c, "the certificate makes no statement about new inputs: %s", why);
    r->new_inputs = !why;
    r->fitted = d->nothing_fitted ? NULL : &d->fit;
    r->fitted_tokens = d->compared_tokens;
}

void next_print(const pare_cert *cert)
{
    const char *label = "new input";
    for (size_t i = 0; i < cert->nclaims; i++) {
        const pare_claim *const t = &cert->claims[i];
        const size_t left_out = (size_t)t->p[1];
        char bound[40], p[40], left[64] = "";
        if (!pare_kind_is_drawn(t->kind)) continue;
        if (left_out)
            snprintf(left, sizeof left, " (%zu larger error%s left out)", left_out,
                     left_out == 1 ? "" : "s");
        out_bound(bound, t);
        out_probability(p, t->probability);
        if (t->kind == PARE_NEW_INPUTS_SHARE) {
            out_row("", "of all new inputs at most the share %s exceeds that, with confidence %s",
                    bound, p);
            continue;
        }
        out_row(label, "no output moves by more than %s%s, with probability %s", bound, left, p);
        if (*label) out_row("", "on %s", t->domain);
        label = "";
    }
}
