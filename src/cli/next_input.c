/* next_input.c - inputs that are not there yet (next_input.h). */
#include "next_input.h"
#include <math.h>
#include <string.h>

/* "1 of the 8 held-out inputs also occurs among ..." */
static const char *seen_words(char buf[160], const cut_data *d)
{
    const size_t n = d->held.set.n;
    snprintf(buf, 160,
             "%zu of the %zu held-out inputs also occur%s among those that the cut was fitted to; "
             "give other data with --heldout",
             d->seen, n, d->seen == 1 ? "s" : "");
    return buf;
}

void next_prove_note(cli *c, const cut_data *d, size_t prove)
{
    const size_t n = d->held.data.inputs.n;
    if (prove > n)
        cli_note(c, "--prove %zu: there %s only %zu held-out input%s", prove, n == 1 ? "is" : "are",
                 n, n == 1 ? "" : "s");
}

void next_ask(cli *c, reduction *r, const cut_data *d, bool chosen)
{
    char found[160];
    const char *why = d->no_next ? d->no_next
                      : chosen   ? "the held-out inputs chose the size of the cut"
                      : r->max_error < INFINITY
                          ? "with --max-error the held-out inputs decide whether the model "
                            "is written"
                          : NULL;
    if (d->no_next == cut_saw_some && d->apart) why = seen_words(found, d);
    if (why)
        r->no_next =
            pare_sprintf(c->arena, "the certificate makes no statement about new inputs: %s", why);
    r->new_inputs = !why;
    r->prove_more = d->more;
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
            out_row("", "at most %.1f %% of new inputs exceed that (confidence %.4g %%)",
                    fmin(100, ceil(1e3 * t->value) / 10), 100 * t->probability);
            continue;
        }
        out_row(label, "no output moves by more than %s%s, with probability %s", bound, left, p);
        if (*label) {
            /* What follows it is the hypothesis, which has a row of its own. */
            const char *const end = strstr(t->domain, ", which neither");
            out_row("", "on %.*s", (int)(end ? (size_t)(end - t->domain) : strlen(t->domain)),
                    t->domain);
            out_row("", "provided that those were drawn independently and the model was not "
                        "trained on them");
        }
        label = "";
    }
}
