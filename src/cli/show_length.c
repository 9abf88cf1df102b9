/* show_length.c - the length part of a probe as text: engines, modes, logits, number types,
 * sampling. */
#include "show_length.h"
#include "describe.h"
#include "out.h"

#include <math.h>
#include <string.h>

/* The heads of one block on one line: the worst of each. */
static void logits_row(const pare_length_probe *l, size_t first, size_t end)
{
    pare_probe_logits w = l->heads[first];
    for (size_t i = first + 1; i < end; i++) {
        const pare_probe_logits *const h = &l->heads[i];
        w.largest = fmax(w.largest, h->largest);
        w.lmax = fmax(w.lmax, h->lmax);
        w.c = fmax(w.c, h->c);
        w.d = fmin(w.d, h->d);
        w.proven += h->proven;
    }
    char where[48], proven[32] = "-";
    if (end - first == 1)
        snprintf(where, sizeof where, "%zu.%zu", w.block, w.head);
    else
        snprintf(where, sizeof where, "%zu", w.block);
    if (l->rows) snprintf(proven, sizeof proven, "%zu", w.proven);
    out_line("  %-6s %9.3g %9.3g %9.3g %9.3g %8s", where, w.largest, w.lmax, w.c, w.d, proven);
}

static void print_sampling(const pare_length_probe *l)
{
    if (!l->samples) {
        out_row("sampling", "no: it is for full and causal attention only");
        return;
    }
    out_row("sampling", "Theorem 4.1 asks for M >= %.3g of %zu keys: %s", l->asked, l->looked,
            l->asked < (double)l->looked ? "it applies" : "vacuous here");
    if (l->rows)
        out_row("",
                "our bound proves %zu of %zu rows to within 0.5 by %zu sampled keys (p = .99): %s",
                l->proven, l->rows, l->drawn,
                l->proven == l->rows ? "sampling works here"
                : l->proven          ? "the others are computed exactly"
                                     : "all rows would be computed exactly");
}

void show_length(const cli *c, const pare_model *m, const pare_length_probe *l)
{
    char pattern[DESCRIBE_BYTES], n[4][32], many[32];
    describe_pattern(pattern, m);
    out_row("length", "%s tokens on an engine that takes M: calls of the whole model, attention %s",
            out_count(many, l->tokens), pattern);
    out_line("  %6s %10s %10s %10s %10s %7s %7s %9s %9s", "M", "native", "zeroref", "Yu 2025",
             "at least", "rounds", "flops", "MB moved", "MB used");
    for (size_t i = 0; i < l->nengines; i++) {
        const pare_probe_engine *const e = &l->engines[i];
        out_line("  %6u %10s %10s %10s %10s %7llu %7.3f %9.3g %9.3g", (unsigned)e->m,
                 out_count(n[0], e->native), out_count(n[1], e->reference),
                 e->paper ? out_count(n[2], e->paper) : "n/a", out_count(n[3], e->lower),
                 (unsigned long long)e->rounds, e->ratio, e->bytes / 1e6, e->scratch / 1e6);
    }
    out_row("", "flops: beside attention in one piece; fewest at M = %u: %.3f times",
            (unsigned)l->cheapest, l->cheapest_ratio);
    if (l->context)
        out_row("",
                l->endless ? "inputs may be longer than the context of %zu tokens"
                           : "positions are learned: no input may be longer than %zu tokens",
                l->context);
    char yes[128] = "";
    for (size_t i = 0; i < l->nmodes; i++) {
        const char *const name = pare_length_mode_name(l->modes[i].mode);
        const size_t at = strlen(yes);
        if (!*l->modes[i].why_not)
            snprintf(yes + at, sizeof yes - at, "%s%s", at ? ", " : "", name);
    }
    out_row("modes", "%s", yes);
    for (size_t i = 0; i < l->nmodes; i++)
        if (*l->modes[i].why_not)
            out_row("", "not %s: %s", pare_length_mode_name(l->modes[i].mode), l->modes[i].why_not);
    if (!l->looked) return;
    out_row("logits",
            "attention scores on %zu tokens: largest measured, largest that norms allow, C and "
            "D of Theorem 4.1, rows that sampling proves",
            l->looked);
    out_line("  %-6s %9s %9s %9s %9s %8s", "", "largest", "at most", "C", "D", "proven");
    for (size_t i = 0, end; i < l->nheads; i = end) {
        for (end = i + 1; !c->verbose && end < l->nheads;)
            if (l->heads[end].block == l->heads[i].block)
                end++;
            else
                break;
        logits_row(l, i, end);
    }
    static const char *const says[] = {"", "a reference key of zeros is enough",
                                       "reference keys from a few scores",
                                       "reference keys from mean keys, one more round"};
    for (size_t i = 0; i < l->ntypes; i++) {
        const pare_probe_type *const t = &l->types[i];
        out_row(i ? "" : "types", "%s: %s (zeros are proven safe up to scores of %.3g at M = %d)",
                t->name, says[t->reference], t->limit, PARE_PROBE_ORACLE);
    }
    print_sampling(l);
}
