/* intro.c - the top of a report: what the page is, what its words mean, what is on it, which
 * version of pare wrote it and on which machines the times were measured (items.h). */
#include "items.h"

#include <math.h>
#include <string.h>

const char *pare_version(void);

/* clang-format off */
static const cut_kind kinds[] = {
    {"width", "Width", "Fewer dimensions: the residual stream, queries and keys, or hidden units "
                       "become narrower.", 1},
    {"depth", "Depth", "Some attention layers are replaced by cheaper ones, or removed.", 2},
    {"ticket", "Weights", "The weights are stored as a random seed and bit masks.", 3},
    {"fold", "Fold", "Biases and scales are merged into the matrices beside them; the outputs stay "
                     "the same up to rounding.", 4},
    {"chain", "Chain", "Several cuts one after the other; their bounds add up.", 8},
    {"length", "Length", "A long input is computed by several calls of an engine that takes "
                         "shorter ones.", 6},
    {"", "Cut", "", 7},
};
/* clang-format on */

const cut_kind *cut_kind_of(const item *it)
{
    const char *const name = it->cert ? it->cert->reduction : "length";
    const cut_kind *k = kinds;
    while (strncmp(name, k->prefix, strlen(k->prefix)) != 0) k++;
    return k;
}

static size_t count_of(const items *all, item_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n; i++) n += all->v[i].kind == kind;
    return n;
}

/* ---- what it is ------------------------------------------------------------------------------ */

static void term(page *p, const char *word, const char *means)
{
    page_put(p, "<div><dt>%s</dt> <dd>%s</dd></div>\n", word, means);
}

static void put_terms(page *p, const items *all)
{
    const bool certs = count_of(all, ITEM_CUT) + count_of(all, ITEM_LENGTH) > 0;
    page_put(p, "<dl class=\"words\">\n");
    if (certs || count_of(all, ITEM_PROBE) > 0) {
        term(p, "proven",
             "An upper bound, rounded up: no input of the domain gives a larger "
             "difference. It is a theorem about the two model files in exact "
             "arithmetic.");
        term(p, "measured",
             "The largest difference that was seen on the inputs of the domain. It "
             "is evidence, not a bound.");
        term(p, "domain",
             "The inputs that a statement is about, for example 8 sentences of a data "
             "file. It makes no claim about other inputs.");
    }
    if (certs)
        term(p, "verified",
             "pare proved every statement of the certificate again from the files "
             "while it wrote this page. Refuted: a statement is false. Not verified: "
             "the page repeats what a file says.");
    if (certs)
        term(p, "vacuous",
             "A bound that is infinite, or larger than the largest output of the model: true, but "
             "of no use.");
    for (size_t k = 0; k + 1 < sizeof kinds / sizeof *kinds; k++)
        for (size_t i = 0; i < all->n; i++) {
            const item_kind kind = all->v[i].kind;
            if (kind != ITEM_CUT && kind != ITEM_LENGTH && kind != ITEM_PLAN) continue;
            if (cut_kind_of(&all->v[i]) != &kinds[k]) continue;
            term(p, kinds[k].word, kinds[k].does);
            break;
        }
    page_put(p, "</dl>\n");
}

/* ---- who and where --------------------------------------------------------------------------- */

/* Version of pare, and every machine that times were measured on, once. */
static void put_machines(page *p, const items *all)
{
    const char **const seen = page_alloc(p, all->n, sizeof *seen);
    size_t n = 0;
    page_put(p, "<p class=\"small dim\">Written by pare %s.", pare_version());
    for (size_t i = 0; i < all->n && seen && !p->w.st; i++) {
        const item *const it = &all->v[i];
        p->file = it->from;
        const cJSON *const m = it->kind == ITEM_CUT && it->holds != PARE_FALSE
                                   ? item_object(p, it->json, "machine")
                                   : NULL;
        const char *machine = item_string(p, m, "cpu");
        const double threads = item_number(p, it->json, "threads");
        if (!machine) continue;
        if (!isnan(threads))
            machine =
                page_format(p, "%s, %.0f thread%s", machine, threads, threads == 1 ? "" : "s");
        size_t k = 0;
        while (k < n && strcmp(seen[k], machine) != 0) k++;
        if (k == n) seen[n++] = machine;
    }
    if (n > 0) page_put(p, " According to the run files, times were measured on ");
    for (size_t k = 0; k < n; k++) page_put(p, "%s%s", k ? "; " : "", seen[k]);
    page_put(p, "%s</p>\n", n > 0 ? "." : "");
}

/* ---- contents -------------------------------------------------------------------------------- */

const char *item_title(page *p, const item *it)
{
    if (it->holds == PARE_FALSE) return page_format(p, "REFUTED: %s", it->path);
    switch (it->kind) {
    case ITEM_CUT:
        return page_format(p, "%s: %s", cut_kind_of(it)->word, it->cert->output.path);
    case ITEM_PROBE: {
        const char *const model = item_string(p, item_object(p, it->json, "input"), "path");
        return page_format(p, "Probe: %s", model ? model : it->path);
    }
    case ITEM_REPRO: {
        const cJSON *const inner = item_object(p, it->json, "repro");
        const char *const name = item_string(p, inner ? inner : it->json, "name");
        return page_format(p, "Tables: %s", name ? name : it->path);
    }
    case ITEM_LOG:
        return page_format(p, "Training: %s", it->path);
    case ITEM_PLAN:
    case ITEM_LENGTH:
        break;
    }
    return page_format(p, "Length: %s", it->path);
}

void page_contents(page *p, const items *all)
{
    if (all->n < 2) return;
    page_put(p, "<nav aria-label=\"Contents\"><b>Contents</b><ol>\n");
    for (size_t i = 0; i < all->n && !p->w.st; i++) {
        p->file = all->v[i].from;
        page_put(p, "<li><a href=\"#%s\">%s</a></li>\n", all->v[i].id, item_title(p, &all->v[i]));
    }
    page_put(p, "</ol></nav>\n");
}

void page_intro(page *p, const items *all)
{
    page_put(p, "<section class=\"top\">\n");
    size_t refuted = 0;
    for (size_t i = 0; i < all->n; i++) refuted += all->v[i].holds == PARE_FALSE;
    const size_t certs = count_of(all, ITEM_CUT) + count_of(all, ITEM_LENGTH);
    const struct {
        size_t n;
        const char *one, *more;
    } of[] = {
        {certs - refuted, "result with its certificate", "results with their certificates"},
        {refuted, "refuted certificate", "refuted certificates"},
        {count_of(all, ITEM_PLAN), "length plan", "length plans"},
        {count_of(all, ITEM_PROBE), "probe", "probes"},
        {count_of(all, ITEM_REPRO), "set of tables", "sets of tables"},
        {count_of(all, ITEM_LOG), "training log", "training logs"},
    };
    page_put(p, "<p>");
    if (certs > 0)
        page_put(p, "pare makes transformers smaller and proves how far the outputs of the smaller "
                    "model can be from those of the original. ");
    /* "This page shows 6 results with their certificates, 1 refuted certificate, 2 probes." */
    const char *before = "This page shows ";
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        if (of[i].n == 0) continue;
        page_put(p, "%s%zu %s", before, of[i].n, of[i].n == 1 ? of[i].one : of[i].more);
        before = ", ";
    }
    page_put(p, ". ");
    if (certs > 0)
        page_put(p,
                 "A certificate is a file that anyone can check with <code>pare verify</code>. ");
    if (count_of(all, ITEM_PROBE) > 0)
        page_put(p, "A <b>probe</b> tries cuts on a model, reports what each would cost, and keeps "
                    "none of them. ");
    if (count_of(all, ITEM_PLAN) > 0)
        page_put(p, "A <b>length plan</b> lists the calls by which an engine for short inputs "
                    "computes a long one. ");
    if (count_of(all, ITEM_REPRO) > 0)
        page_put(p, "The <b>tables</b> put what the papers behind pare print beside what pare "
                    "computes for the same row. ");
    if (count_of(all, ITEM_LOG) > 0)
        page_put(p, "A <b>training log</b> shows how the loss and the validation metric changed. ");
    page_put(p, "</p>\n");
    put_terms(p, all);
    page_contents(p, all);
    put_machines(p, all);
    page_put(p, "</section>\n");
}
