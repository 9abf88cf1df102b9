/* Inputs that are not there yet (next_input.h). */
#include "next_input.h"
#include <pare/exchange.h>

#include <string.h>

/* One more input, and the share of all of them. */
static pare_status ask_both(cli *c, reduction *r, size_t left_out, double confidence)
{
    const pare_new_input what[] = {{left_out, 0}, {left_out, confidence}};
    for (size_t i = 0; i < 2; i++) {
        const char *const name = pare_new_input_name(c->arena, what[i]);
        if (!name) return pare_no_memory(&c->err);
        PARE_ASSERT(r->nask < sizeof r->ask / sizeof *r->ask);
        r->ask[r->nask++] = name;
    }
    return PARE_OK;
}

pare_status next_ask(cli *c, reduction *r, const next_opts *o, const pare_inputs *set,
                     const char *why)
{
    const size_t n = pare_draws(set);
    const double room = o->exceed * ((double)n + 1); /* errors that may lie above */
    if (why && o->exceed > 0)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--exceed: %s: nothing can be said about a new input", why);
    if (why) {
        cli_note(c, "%s: nothing is said about a new input", why);
        return PARE_OK;
    }
    if (o->exceed > 0 && room < 1)
        return pare_fail(&c->err, PARE_ERR_USAGE,
                         "--exceed %g: %zu held-out input%s can prove %.3g at best", o->exceed, n,
                         n == 1 ? "" : "s", 1 / ((double)n + 1));
    pare_status st = ask_both(c, r, 0, o->confidence);
    if (!st && room >= 2) st = ask_both(c, r, (size_t)room - 1, o->confidence);
    return st;
}

void next_print(const pare_cert *cert)
{
    for (size_t i = 0; i < cert->nstatements; i++) {
        const pare_statement *const s = &cert->statements[i];
        pare_new_input what;
        char bound[40], left[64] = "";
        if (!pare_new_input_read(&what, s->name)) continue;
        pare_ub_format(bound, pare_ub_exact(s->bound), 4);
        if (what.left_out)
            snprintf(left, sizeof left, " (%zu larger error%s left out)", what.left_out,
                     what.left_out == 1 ? "" : "s");
        if (what.confidence > 0)
            out_row("new inputs", "at most %s of all are above that, with confidence %.9g", bound,
                    what.confidence);
        else
            out_row("new input", "%s%s with probability %.6g, on %s", bound, left, s->probability,
                    s->domain);
    }
}
