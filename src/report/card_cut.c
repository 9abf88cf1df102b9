/* The box of one cut: what it promised, what was seen, what it saved (items.h). */
#include "items.h"
#include "plot.h"

#include <math.h>
#include <string.h>

/* ---- before and after ------------------------------------------------------------------------ */

static void fact(page *p, const char *label, const char *before, const char *after, double ratio)
{
    const bool has = isfinite(ratio) && ratio > 0;
    page_fact(p, label, after, NULL,
              has ? page_words(p, "before %s (%.3gx)", before, ratio)
                  : page_words(p, "before %s", before));
}

static void counted(page *p, const item *it, const char *label, const char *key)
{
    number b, a;
    const double before = item_number(p, item_object(p, it->json, "input"), key);
    const double after = item_number(p, item_object(p, it->json, "output"), key);
    if (isnan(before) || isnan(after)) return;
    fact(p, label, show_count(b, before), show_count(a, after), before / after);
}

static void measured(page *p, const cJSON *from, const char *label, const char *unit, bool faster)
{
    number b, a;
    const double before = item_number(p, from, "before"), after = item_number(p, from, "after");
    if (isnan(before) || isnan(after)) return;
    show_value(b, before);
    show_value(a, after);
    strncat(a, unit, sizeof a - strlen(a) - 1);
    fact(p, label, b, a, faster ? before / after : NAN);
}

/* Rows whose largest entry may have changed: the rest keeps its label for certain. */
static void labels(page *p, const pare_cert *c)
{
    const pare_claim *const t = pare_cert_find(c, PARE_ROWS_CHANGED);
    if (!t) return;
    page_fact(p, "labels certified unchanged",
              page_words(p, "%.4g %%", floor(1e4 * (1 - fmin(1, t->value))) / 100), "good",
              page_words(p, "of the rows, on %s", t->domain));
}

static void saved(page *p, const item *it)
{
    const cJSON *metric = item_object(p, it->json, "metric");
    const char *name = item_string(p, metric, "name");
    page_put(p, "<div class=\"facts\">\n");
    counted(p, it, "parameters", "parameters");
    counted(p, it, "file, bytes", "file_bytes");
    counted(p, it, "multiply-adds", "macs");
    measured(p, item_object(p, it->json, "time_ms"), "time of one pass", " ms", true);
    if (name) measured(p, metric, name, "", false);
    labels(p, it->cert);
    page_put(p, "</div>\n");
}

/* ---- the three tiers ------------------------------------------------------------------------- */

static bool vacuous(const item *it, double bound)
{
    return bound >= 2 * it->largest; /* false where that is nan */
}

static const char *sentence(page *p, const pare_claim *t)
{
    const char *const text = pare_claim_sentence(p->arena, t);
    return text ? text : "";
}

/* Rounded down. */
static const char *probability(page *p, const pare_claim *t)
{
    return page_words(p, "%.6f", floor(1e6 * t->probability) / 1e6);
}

static bool is_theorem(const pare_claim *t)
{
    return pare_kinds[t->kind].section == PARE_THEOREM;
}

/* Upper bounds in the norm of the headline stand in one plot with it. */
static bool is_tier(const pare_cert *c, const pare_claim *t)
{
    const pare_kind_row *const row = &pare_kinds[t->kind];
    return is_theorem(t) && !row->lower && strcmp(row->norm, c->norm) == 0;
}

static void tiers(page *p, const item *it)
{
    const pare_cert *c = it->cert;
    tier *t = page_alloc(p, 2 + c->nclaims, sizeof *t);
    size_t n = 0;
    if (!t) return;
    t[n++] = (tier){"measured", c->domain, c->measured, 2, .measured = true};
    t[n++] = (tier){"proven", c->domain, c->proven, 0, .vacuous = vacuous(it, c->proven)};
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *const s = &c->claims[i];
        if (s->kind == PARE_ENGINE_DISTANCE)
            t[n++] = (tier){"rounding of the f32 engine", "seen on these inputs", s->value, 7,
                            .measured = true};
        if (!is_tier(c, s)) continue;
        const char *const name = pare_kind_is_drawn(s->kind)
                                     ? page_words(p, "%s (probability %s)", sentence(p, s),
                                                  probability(p, s))
                                     : sentence(p, s);
        t[n++] = (tier){name, s->domain, s->value, 6, .vacuous = vacuous(it, s->value)};
    }
    page_tag(p, "h3", NULL, "Error: seen, proven, promised in advance");
    plot_tiers(p, t, n);
    page_put(p, "<p class=\"small dim\">Norm: ");
    page_text(p, c->norm);
    page_put(p, ". Measured and proven speak of ");
    page_text(p, c->domain);
    page_put(p, ".</p>\n");
}

static void other_theorems(page *p, const pare_cert *c)
{
    number v;
    bool any = false;
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *const s = &c->claims[i];
        const pare_kind_row *const row = &pare_kinds[s->kind];
        if (!is_theorem(s) || is_tier(c, s)) continue;
        if (!any)
            page_put(p, "<h3>Also proven</h3><div class=\"wide\"><table>"
                        "<tr><th>theorem</th><th class=\"n\">bound</th><th>norm</th>"
                        "<th>domain</th></tr>\n");
        any = true;
        page_put(p, "<tr>");
        page_tag(p, "td", NULL, sentence(p, s));
        page_tag(p, "td", "n",
                 row->lower ? page_words(p, "at least %s", show_lower(v, s->value))
                            : page_words(p, "at most %s", show_bound(v, s->value)));
        page_tag(p, "td", NULL, row->norm);
        page_put(p, "<td>");
        page_text(p, s->domain);
        if (pare_kind_is_drawn(s->kind)) page_put(p, " (probability %s)", probability(p, s));
        page_put(p, "</td></tr>\n");
    }
    if (any) page_put(p, "</table></div>\n");
}

/* ---- hypotheses, observations, evidence -------------------------------------------------------
 */

/* A figure and its optimum, both in f64. */
static void optimality(page *p, const pare_cert *c)
{
    number v, l;
    bool any = false;
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *h = &c->claims[i];
        const pare_kind_row *const row = &pare_kinds[h->kind];
        if (row->section != PARE_EVIDENCE) continue;
        if (!any)
            page_put(p, "<h3>How far from the best possible cut (evidence, not proven)</h3>"
                        "<div class=\"wide\"><table><tr><th>what</th><th class=\"n\">reached</th>"
                        "<th class=\"n\">optimum</th><th class=\"n\">times the best</th></tr>\n");
        any = true;
        page_put(p, "<tr>");
        page_tag(p, "td", NULL, sentence(p, h));
        page_tag(p, "td", "n", row->has_value ? show_value(v, h->value) : "");
        page_tag(p, "td", "n", row->has_limit ? show_value(l, h->limit) : "");
        page_tag(p, "td", "n",
                 row->has_value && h->limit > 0 ? show_value(v, h->value / h->limit) : "");
        page_put(p, "</tr>\n");
    }
    if (any) page_put(p, "</table></div>\n");
}

static void chip(page *p, const pare_claim *h)
{
    static const char *const word[] = {"fails", "holds", "undecided"};
    static const char *const cls[] = {"chip bad", "chip good", "chip dim"};
    if (pare_kinds[h->kind].section == PARE_OBSERVATION)
        page_tag(p, "span", "chip dim", "seen");
    else
        page_tag(p, "span", cls[h->holds], word[h->holds]);
}

static void hypotheses(page *p, const pare_cert *c)
{
    number v, l;
    bool any = false;
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *h = &c->claims[i];
        const pare_kind_row *const row = &pare_kinds[h->kind];
        if (row->section != PARE_HYPOTHESIS && row->section != PARE_OBSERVATION) continue;
        if (!any)
            page_put(p, "<h3>What it rests on, and what was seen</h3><div class=\"wide\"><table>"
                        "<tr><th></th><th>hypothesis or observation</th><th class=\"n\">value"
                        "</th><th class=\"n\">limit</th><th class=\"n\">factor</th></tr>\n");
        any = true;
        page_put(p, "<tr><td>");
        chip(p, h);
        page_put(p, "</td>");
        page_tag(p, "td", NULL, sentence(p, h));
        page_tag(p, "td", "n", row->has_value ? show_value(v, h->value) : "");
        page_tag(p, "td", "n", row->has_limit ? show_value(l, h->limit) : "");
        const double factor = row->has_value && row->has_limit ? h->value / h->limit : NAN;
        page_tag(p, "td", "n", isfinite(factor) ? show_value(v, factor) : "");
        page_put(p, "</tr>\n");
    }
    if (any) page_put(p, "</table></div>\n");
}

static void paper(page *p, const pare_cert *c)
{
    number v;
    bool any = false;
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *t = &c->claims[i];
        if (pare_kinds[t->kind].section != PARE_PAPER) continue;
        if (!any)
            page_put(p, "<h3>The paper's printed formulas <span class=\"chip bad\">not sound</span>"
                        "</h3><div class=\"wide\"><table>\n");
        any = true;
        page_put(p, "<tr>");
        page_tag(p, "td", NULL, sentence(p, t));
        page_tag(p, "td", "n", show_value(v, t->value));
        page_put(p, "</tr>\n");
    }
    if (any) page_put(p, "</table></div>\n");
}

static void links(page *p, const pare_cert *c)
{
    if (c->nchain == 0) return;
    page_put(p, "<h3>The chain</h3><ol>\n");
    for (size_t i = 0; i < c->nchain; i++) {
        number v;
        page_put(p, "<li>");
        page_tag(p, "b", NULL, c->chain[i]->reduction);
        page_put(p, ": ");
        page_text(p, c->chain[i]->input.path);
        page_put(p, " to ");
        page_text(p, c->chain[i]->output.path);
        page_put(p, ", proven %s</li>\n", show_bound(v, c->chain[i]->proven));
    }
    page_put(p, "</ol>\n");
}

/* ---- the box --------------------------------------------------------------------------------- */

void page_verdict(page *p, const item *it)
{
    static const char *const word[] = {"not true", "verified", "not verified by this page"};
    static const char *const cls[] = {"chip bad", "chip good", "chip dim"};
    page_put(p, "<p>");
    page_tag(p, "span", cls[it->holds], word[it->holds]);
    page_put(p, " <span class=\"small dim\">");
    if (it->lie)
        page_text(p, it->lie);
    else {
        page_put(p, "prove it again: <code>pare verify ");
        page_text(p, it->path);
        page_put(p, "</code>");
    }
    page_put(p, "</span></p>\n");
}

void card_cut(page *p, const item *it)
{
    const pare_cert *c = it->cert;
    page_card(p, it->id, c->reduction, page_words(p, "%s to %s", c->input.path, c->output.path));
    page_verdict(p, it);
    saved(p, it);
    tiers(p, it);
    other_theorems(p, c);
    optimality(p, c);
    hypotheses(p, c);
    paper(p, c);
    links(p, c);
    page_source(p, it->path, item_string(p, it->json, "line"));
    page_card_end(p);
}

/* ---- all cuts in one table ------------------------------------------------------------------- */

/* "25 %" of what was there before. */
static void left_cell(page *p, const item *it, const char *key)
{
    const double before = item_number(p, item_object(p, it->json, "input"), key);
    const double after = item_number(p, item_object(p, it->json, "output"), key);
    if (after / before >= 0)
        page_put(p, "<td class=\"n\">%.3g %%</td>", 100 * after / before);
    else
        page_tag(p, "td", "n", "-");
}

static void summary_row(page *p, const item *it)
{
    static const char *const word[] = {"not true", "holds", "not asked"};
    static const char *const cls[] = {"chip bad", "chip good", "chip dim"};
    number v;
    p->file = it->from;
    const cJSON *ms = item_object(p, it->json, "time_ms");
    const double faster = item_number(p, ms, "before") / item_number(p, ms, "after");
    page_put(p, "<tr><td><a href=\"#%s\">", it->id);
    page_text(p, it->cert->output.path);
    page_put(p, "</a></td>");
    page_tag(p, "td", NULL, it->cert->reduction);
    left_cell(p, it, "parameters");
    left_cell(p, it, "file_bytes");
    if (isfinite(faster))
        page_put(p, "<td class=\"n\">%.3gx</td>", faster);
    else
        page_tag(p, "td", "n", "-");
    page_tag(p, "td", "n", show_bound(v, it->cert->proven));
    page_tag(p, "td", "n", show_value(v, it->cert->measured));
    page_put(p, "<td>");
    page_tag(p, "span", cls[it->holds], word[it->holds]);
    page_put(p, "</td></tr>\n");
}

void summary_cuts(page *p, const items *all)
{
    bool any = false;
    for (size_t i = 0; i < all->n; i++) {
        if (all->v[i].kind != ITEM_CUT) continue;
        if (!any) {
            page_card(p, "cuts", "summary", "Every cut, and what it costs");
            page_put(p, "<div class=\"wide\"><table><tr><th>result</th><th>cut</th><th class=\"n\">"
                        "parameters left</th><th class=\"n\">bytes left</th><th class=\"n\">"
                        "speed</th><th class=\"n\">proven error"
                        "</th><th class=\"n\">measured</th><th>certificate</th></tr>\n");
        }
        any = true;
        summary_row(p, &all->v[i]);
    }
    if (!any) return;
    page_put(p, "</table></div>\n");
    page_card_end(p);
}
