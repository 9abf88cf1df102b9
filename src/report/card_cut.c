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
    for (size_t i = 0; i < c->nstatements; i++) {
        const pare_statement *s = &c->statements[i];
        if (strcmp(s->name, "rows whose largest entry may have changed") != 0) continue;
        page_fact(p, "labels certified unchanged",
                  page_words(p, "%.4g %%", floor(1e4 * (1 - fmin(1, s->bound))) / 100), "good",
                  page_words(p, "of the rows, on %s", s->domain));
        return;
    }
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

static void tiers(page *p, const item *it)
{
    const pare_cert *c = it->cert;
    tier *t = page_alloc(p, 4 + c->nstatements, sizeof *t);
    size_t n = 0;
    if (!t) return;
    t[n++] = (tier){"measured", c->domain, c->measured, 2, .measured = true};
    t[n++] = (tier){"proven", c->domain, c->proven, 0, .vacuous = vacuous(it, c->proven)};
    for (size_t i = 0; i < c->nstatements; i++) {
        const pare_statement *s = &c->statements[i];
        if (strcmp(s->norm, c->norm) != 0) continue;
        const char *name = s->probability < 1
                               ? page_words(p, "%s (probability %.6g)", s->name, s->probability)
                               : s->name;
        t[n++] = (tier){name, s->domain, s->bound, 6, .vacuous = vacuous(it, s->bound)};
    }
    t[n++] = (tier){"a priori", "from sizes and norms alone", c->apriori, 3,
                    .vacuous = vacuous(it, c->apriori)};
    t[n++] = (tier){"rounding of the f32 engine", "proven; a bound of its own", c->rounding, 7,
                    .vacuous = vacuous(it, c->rounding)};
    page_tag(p, "h3", NULL, "Error: seen, proven, promised in advance");
    plot_tiers(p, t, n);
    page_put(p, "<p class=\"small dim\">Norm: ");
    page_text(p, c->norm);
    page_put(p, ". Measured and proven speak of ");
    page_text(p, c->domain);
    page_put(p, ".</p>\n");
}

static void other_statements(page *p, const pare_cert *c)
{
    number v;
    bool any = false;
    for (size_t i = 0; i < c->nstatements; i++) {
        const pare_statement *s = &c->statements[i];
        if (strcmp(s->norm, c->norm) == 0) continue;
        if (!any)
            page_put(p, "<h3>Also proven</h3><div class=\"wide\"><table>"
                        "<tr><th>statement</th><th class=\"n\">at most</th><th>norm</th>"
                        "<th>domain</th></tr>\n");
        any = true;
        page_put(p, "<tr>");
        page_tag(p, "td", NULL, s->name);
        page_tag(p, "td", "n", show_bound(v, s->bound));
        page_tag(p, "td", NULL, s->norm);
        page_put(p, "<td>");
        page_text(p, s->domain);
        if (s->probability < 1) page_put(p, " (probability %.6g)", s->probability);
        page_put(p, "</td></tr>\n");
    }
    if (any) page_put(p, "</table></div>\n");
}

/* ---- hypotheses ------------------------------------------------------------------------------ */

static bool is_least(const pare_hypothesis *h)
{
    return strstr(h->name, PARE_LEAST) != NULL;
}

/* Upper against lower: what was reached, and what nothing of that size can beat. */
static void lower_bounds(page *p, const pare_cert *c)
{
    number v, l;
    bool any = false;
    for (size_t i = 0; i < c->nhypotheses; i++) {
        const pare_hypothesis *h = &c->hypotheses[i];
        if (!is_least(h)) continue;
        if (!any)
            page_put(p, "<h3>How far from the best possible cut</h3><div class=\"wide\">"
                        "<table><tr><th>what</th><th class=\"n\">reached</th><th class=\"n\">"
                        "least possible</th><th class=\"n\">times the best</th></tr>\n");
        any = true;
        page_put(p, "<tr>");
        page_tag(p, "td", NULL, h->name);
        page_tag(p, "td", "n", show_value(v, h->value));
        page_tag(p, "td", "n", show_value(l, h->limit));
        page_tag(p, "td", "n", h->limit > 0 ? show_value(v, h->value / h->limit) : "");
        page_put(p, "</tr>\n");
    }
    if (any) page_put(p, "</table></div>\n");
}

static void chip(page *p, pare_truth holds)
{
    static const char *const word[] = {"fails", "holds", "seen"};
    static const char *const cls[] = {"chip bad", "chip good", "chip dim"};
    page_tag(p, "span", cls[holds], word[holds]);
}

static void hypotheses(page *p, const pare_cert *c)
{
    number v, l;
    bool any = false;
    for (size_t i = 0; i < c->nhypotheses; i++) {
        const pare_hypothesis *h = &c->hypotheses[i];
        if (is_least(h)) continue;
        if (!any)
            page_put(p, "<h3>What it rests on</h3><div class=\"wide\"><table>"
                        "<tr><th></th><th>hypothesis or evidence</th><th class=\"n\">value"
                        "</th><th class=\"n\">limit</th><th class=\"n\">factor</th></tr>\n");
        any = true;
        page_put(p, "<tr><td>");
        chip(p, h->holds);
        page_put(p, "</td>");
        page_tag(p, "td", NULL, h->name);
        page_tag(p, "td", "n", show_value(v, h->value));
        page_tag(p, "td", "n", show_value(l, h->limit));
        const double factor = h->value / h->limit;
        page_tag(p, "td", "n", h->limit != 0 && isfinite(factor) ? show_value(v, factor) : "");
        page_put(p, "</tr>\n");
    }
    if (any) page_put(p, "</table></div>\n");
}

static void paper(page *p, const pare_cert *c)
{
    number v;
    if (c->npaper == 0) return;
    page_put(p, "<h3>The paper's printed formulas <span class=\"chip bad\">not sound</span></h3>"
                "<div class=\"wide\"><table>\n");
    for (size_t i = 0; i < c->npaper; i++) {
        page_put(p, "<tr>");
        page_tag(p, "td", NULL, c->paper[i].name);
        page_tag(p, "td", "n", show_value(v, c->paper[i].value));
        page_put(p, "</tr>\n");
    }
    page_put(p, "</table></div>\n");
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
    other_statements(p, c);
    lower_bounds(p, c);
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
