/* The box of one cut: what it promised, what was seen, what it saved (items.h). */
#include "items.h"
#include "plot.h"

#include <math.h>
#include <string.h>

/* ---- before and after ------------------------------------------------------------------------ */

static void fact(page *p, const char *label, const char *before, const char *after, double ratio,
                 bool verified)
{
    const bool has = isfinite(ratio) && ratio > 0;
    page_fact(p, label, after, NULL,
              has ? page_words(p, "before %s (%.3gx)", before, ratio)
                  : page_words(p, "before %s", before),
              verified);
}

/* A figure of both models: counted in the verified ones, or as the run file says. */
typedef struct both {
    double before, after;
    bool verified;
} both;

static both figure_of(page *p, const item *it, const char *key)
{
    return (both){item_number(p, item_object(p, it->json, "input"), key),
                  item_number(p, item_object(p, it->json, "output"), key), false};
}

static both parameters_of(page *p, const item *it)
{
    return it->counted ? (both){(double)it->before.parameters, (double)it->after.parameters, true}
                       : figure_of(p, it, "parameters");
}

static both bytes_of(page *p, const item *it)
{
    return it->counted ? (both){(double)it->before.bytes, (double)it->after.bytes, true}
                       : figure_of(p, it, "bytes");
}

static void counted(page *p, const char *label, both v)
{
    number b, a;
    if (isnan(v.before) || isnan(v.after)) return;
    fact(p, label, show_count(b, v.before), show_count(a, v.after), v.before / v.after, v.verified);
}

static void measured(page *p, const cJSON *from, const char *label, const char *unit, bool faster)
{
    number b, a;
    const double before = item_number(p, from, "before"), after = item_number(p, from, "after");
    if (isnan(before) || isnan(after)) return;
    show_value(b, before);
    show_value(a, after);
    strncat(a, unit, sizeof a - strlen(a) - 1);
    fact(p, label, b, a, faster ? before / after : NAN, false);
}

/* Rows whose largest entry may have changed: the rest keeps its label for certain. */
static void labels(page *p, const item *it)
{
    const pare_claim *const t = pare_cert_find(it->cert, PARE_ROWS_CHANGED);
    const bool verified = it->holds == PARE_TRUE;
    if (!t) return;
    page_fact(p, verified ? "labels certified unchanged" : "labels claimed to be unchanged",
              page_words(p, "%.4g %%", floor(1e4 * (1 - fmin(1, t->value))) / 100),
              verified ? "good" : NULL, page_words(p, "of the rows, on %s", t->domain), verified);
}

static void saved(page *p, const item *it)
{
    const cJSON *metric = item_object(p, it->json, "metric");
    const char *name = item_string(p, metric, "name");
    page_put(p, "<div class=\"facts\">\n");
    counted(p, "parameters", parameters_of(p, it));
    counted(p, "weights, bytes", bytes_of(p, it));
    counted(p, "file, bytes", figure_of(p, it, "file_bytes"));
    counted(p, "multiply-adds", figure_of(p, it, "macs"));
    measured(p, item_object(p, it->json, "time_ms"), "time of one pass", " ms", true);
    if (name) measured(p, metric, name, "", false);
    labels(p, it);
    page_put(p, "</div>\n");
    if (it->json)
        page_put(p,
                 "<p class=\"small dim\">%s, multiply-adds, times and the metric are what "
                 "<code>%s</code> says. No certificate covers them.</p>\n",
                 it->counted ? "The size of the file" : "Sizes", it->from);
    if (it->run_refused) page_tag(p, "p", "warn small", it->run_refused);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

static bool vacuous(const item *it, double bound)
{
    return bound >= 2 * it->largest; /* false where that is nan */
}

static const char *sentence(page *p, const pare_claim *t)
{
    const char *const text = p->st ? "" : pare_claim_sentence(p->arena, t);
    if (!text) p->st = pare_no_memory(p->err);
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

static const char *tier_name(page *p, const pare_claim *t)
{
    if (t->kind == PARE_ENGINE_DISTANCE) return "rounding of the f32 engine, seen";
    if (!pare_kind_is_drawn(t->kind)) return sentence(p, t);
    return page_words(p, "%s (probability %s)", sentence(p, t), probability(p, t));
}

static void tiers(page *p, const item *it)
{
    const pare_cert *const c = it->cert;
    const bool claimed = it->holds != PARE_TRUE;
    tier *t = page_alloc(p, 2 + c->nclaims, sizeof *t);
    size_t n = 0;
    if (!t) return;
    t[n++] = (tier){claimed ? "measured, says the certificate" : "measured",
                    c->domain,
                    c->measured,
                    1,
                    .measured = true,
                    .claimed = claimed};
    t[n++] = (tier){claimed ? "proven, says the certificate" : "proven",
                    c->domain,
                    c->proven,
                    0,
                    .vacuous = vacuous(it, c->proven),
                    .claimed = claimed};
    for (size_t i = 0; i < c->nclaims; i++) {
        const pare_claim *const s = &c->claims[i];
        if (s->kind == PARE_ENGINE_DISTANCE)
            t[n++] = (tier){tier_name(p, s),  "on the same inputs", s->value, 7,
                            .measured = true, .claimed = claimed};
        else if (is_tier(c, s))
            t[n++] =
                (tier){tier_name(p, s),   s->domain, s->value, 6, .vacuous = vacuous(it, s->value),
                       .claimed = claimed};
    }
    page_put(p, "<h3>How far the outputs can move%s</h3>\n",
             claimed ? ", according to the certificate" : "");
    plot_tiers(p, t, n);
    page_put(p,
             "<p class=\"small dim\">Norm: %s. Measured and proven are about %s. Measured figures "
             "were seen and bound nothing; the others are upper bounds.</p>\n",
             c->norm, c->domain);
}

/* ---- claims, section by section -------------------------------------------------------------- */

/* One table of the claims that `wanted` picks; nothing where there is none. */
typedef struct claim_table {
    const char *title, *columns; /* names of the columns, each ended by "|"; "#": of figures */
    bool (*wanted)(const pare_cert *c, const pare_claim *t);
    void (*cells)(page *p, const item *it, const pare_claim *t); /* all but the first */
} claim_table;

static void table_head(page *p, const claim_table *t)
{
    page_put(p, "<h3>%s</h3><div class=\"wide\"><table><tr>", t->title);
    for (const char *at = t->columns; *at; at = strchr(at, '|') + 1)
        if (*at == '#')
            page_put(p, "<th class=\"n\">%.*s</th>", (int)strcspn(at + 1, "|"), at + 1);
        else
            page_put(p, "<th>%.*s</th>", (int)strcspn(at, "|"), at);
    page_put(p, "</tr>\n");
}

static void claims(page *p, const item *it, const claim_table *t)
{
    const pare_cert *const c = it->cert;
    bool any = false;
    for (size_t i = 0; i < c->nclaims; i++) {
        if (!t->wanted(c, &c->claims[i])) continue;
        if (!any) table_head(p, t);
        any = true;
        page_put(p, "<tr><td>%s</td>", sentence(p, &c->claims[i]));
        t->cells(p, it, &c->claims[i]);
        page_put(p, "</tr>\n");
    }
    if (any) page_put(p, "</table></div>\n");
}

static void value_cell(page *p, bool has, double v)
{
    number n;
    page_tag(p, "td", "n", has ? show_value(n, v) : "");
}

static bool other_theorem(const pare_cert *c, const pare_claim *t)
{
    return is_theorem(t) && !is_tier(c, t);
}

static void theorem_cells(page *p, const item *it, const pare_claim *t)
{
    const pare_kind_row *const row = &pare_kinds[t->kind];
    const bool same = strcmp(t->domain, it->cert->domain) == 0;
    number v;
    page_put(p, "<td class=\"n\">%s %s</td><td>%s</td><td>%s", row->lower ? "at least" : "at most",
             row->lower ? show_lower(v, t->value) : show_bound(v, t->value), row->norm,
             same ? "the same inputs" : t->domain);
    if (pare_kind_is_drawn(t->kind)) page_put(p, " (probability %s)", probability(p, t));
    page_put(p, "</td>");
}

static bool is_hypothesis(const pare_cert *c, const pare_claim *t)
{
    (void)c;
    return pare_kinds[t->kind].section == PARE_HYPOTHESIS;
}

/* Green is what this page has seen proven. */
static void hypothesis_cells(page *p, const item *it, const pare_claim *t)
{
    static const char *const word[] = {"fails", "holds", "not decided"};
    static const char *const cls[] = {"chip warn", "chip good", "chip dim"};
    static const char *const claimed[] = {"said to fail", "said to hold", "not decided"};
    const pare_kind_row *const row = &pare_kinds[t->kind];
    const bool verified = it->holds == PARE_TRUE;
    page_put(p, "<td><span class=\"%s\">%s</span></td>", verified ? cls[t->holds] : "chip dim",
             verified ? word[t->holds] : claimed[t->holds]);
    value_cell(p, row->has_value, t->value);
    value_cell(p, row->has_limit, t->limit);
}

static bool is_observation(const pare_cert *c, const pare_claim *t)
{
    (void)c;
    return pare_kinds[t->kind].section == PARE_OBSERVATION;
}

static void value_only(page *p, const item *it, const pare_claim *t)
{
    (void)it;
    value_cell(p, pare_kinds[t->kind].has_value, t->value);
}

static bool is_evidence(const pare_cert *c, const pare_claim *t)
{
    (void)c;
    return pare_kinds[t->kind].section == PARE_EVIDENCE;
}

/* A figure and its optimum, both in f64. */
static void evidence_cells(page *p, const item *it, const pare_claim *t)
{
    const pare_kind_row *const row = &pare_kinds[t->kind];
    (void)it;
    value_cell(p, row->has_value, t->value);
    value_cell(p, row->has_limit, t->limit);
    value_cell(p, row->has_value && row->has_limit && t->limit > 0, t->value / t->limit);
}

static bool is_paper(const pare_cert *c, const pare_claim *t)
{
    (void)c;
    return pare_kinds[t->kind].section == PARE_PAPER;
}

static void sections(page *p, const item *it)
{
    const bool verified = it->holds == PARE_TRUE;
    const claim_table all[] = {
        {verified ? "Also proven" : "Also claimed", "theorem|#bound|norm|on|", other_theorem,
         theorem_cells},
        {"Hypotheses: what the theorems need", "hypothesis||#value|#limit|", is_hypothesis,
         hypothesis_cells},
        {"Observations: seen on these inputs, no bounds", "what|#seen|", is_observation,
         value_only},
        {"Evidence: how close to the best possible cut; not proven, and not checked by this page",
         "what|#reached|#optimum|#ratio|", is_evidence, evidence_cells},
        {"Formulas as a paper prints them: not sound, no bounds", "formula|#gives|", is_paper,
         value_only},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) claims(p, it, &all[i]);
}

static void links(page *p, const item *it)
{
    const pare_cert *const c = it->cert;
    number v;
    if (c->nchain == 0) return;
    page_put(p, "<h3>The chain</h3><ol>\n");
    for (size_t i = 0; i < c->nchain; i++)
        page_put(p, "<li><b>%s</b>: %s to %s, %s %s</li>\n", c->chain[i]->reduction,
                 c->chain[i]->input.path, c->chain[i]->output.path,
                 it->holds == PARE_TRUE ? "proven" : "claimed", show_bound(v, c->chain[i]->proven));
    page_put(p, "</ol>\n");
}

/* ---- the box --------------------------------------------------------------------------------- */

void page_verdict(page *p, const item *it)
{
    static const char *const word[] = {"refuted", "verified", "not verified by this page"};
    static const char *const cls[] = {"chip bad", "chip good", "chip dim"};
    page_put(p, "<p><span class=\"%s\">%s</span> <span class=\"small dim\">", cls[it->holds],
             word[it->holds]);
    if (it->holds == PARE_FALSE)
        page_text(p, it->lie);
    else if (it->holds == PARE_TRUE)
        page_put(p,
                 "every theorem was proven again from the files; by hand: "
                 "<code>pare verify %s</code>",
                 it->path);
    else
        page_put(p,
                 "the figures are the certificate's word; to prove them: "
                 "<code>pare verify %s</code>, or <code>pare report --verify</code>",
                 it->path);
    page_put(p, "</span></p>\n");
}

void page_refuted(page *p, const item *it, const char *kicker, const char *norm, const char *domain,
                  double proven)
{
    number v;
    page_card(p, it->id, kicker, page_words(p, "REFUTED: %s", it->path));
    page_verdict(p, it);
    page_put(
        p,
        "<p class=\"small\">It claims %s as a bound of the %s, on %s. A certificate is true as "
        "a whole or not at all: no other figure of it is shown.</p>\n",
        show_bound(v, proven), norm, domain);
    page_source(p, it->path, NULL, NULL);
    page_card_end(p);
}

void card_cut(page *p, const item *it)
{
    const pare_cert *const c = it->cert;
    if (it->holds == PARE_FALSE) {
        page_refuted(p, it, c->reduction, c->norm, c->domain, c->proven);
        return;
    }
    page_card(p, it->id, c->reduction, page_words(p, "%s to %s", c->input.path, c->output.path));
    page_verdict(p, it);
    saved(p, it);
    tiers(p, it);
    sections(p, it);
    links(p, it);
    page_source(p, it->path, item_string(p, it->json, "line"), it->from);
    page_card_end(p);
}

/* ---- all cuts in one table ------------------------------------------------------------------- */

static void not_verified(page *p, bool verified)
{
    if (!verified) page_put(p, "<br><span class=\"dim small\">not verified</span>");
    page_put(p, "</td>");
}

/* "25 %" of what was there before. */
static void left_cell(page *p, both v)
{
    if (!(v.after / v.before >= 0)) {
        page_tag(p, "td", "n", "-");
        return;
    }
    page_put(p, "<td class=\"n\">%.3g %%", 100 * v.after / v.before);
    not_verified(p, v.verified);
}

static void summary_row(page *p, const item *it)
{
    static const char *const word[] = {"refuted", "verified", "not verified"};
    static const char *const cls[] = {"chip bad", "chip good", "chip dim"};
    const bool refuted = it->holds == PARE_FALSE;
    number v;
    p->file = it->from;
    page_put(p, "<tr><td><a href=\"#%s\">%s</a></td><td>%s</td>", it->id,
             refuted ? it->path : it->cert->output.path, it->cert->reduction);
    if (refuted) {
        page_put(p, "<td class=\"n\">-</td><td class=\"n\">-</td><td class=\"n\">-</td>"
                    "<td class=\"n\">-</td><td class=\"n\">-</td>");
    } else {
        const cJSON *const ms = item_object(p, it->json, "time_ms");
        const double faster = item_number(p, ms, "before") / item_number(p, ms, "after");
        left_cell(p, parameters_of(p, it));
        left_cell(p, bytes_of(p, it));
        if (isfinite(faster)) {
            page_put(p, "<td class=\"n\">%.3gx", faster);
            not_verified(p, false);
        } else
            page_tag(p, "td", "n", "-");
        page_put(p, "<td class=\"n\">%s", show_bound(v, it->cert->proven));
        not_verified(p, it->holds == PARE_TRUE);
        page_put(p, "<td class=\"n\">%s", show_value(v, it->cert->measured));
        not_verified(p, it->holds == PARE_TRUE);
    }
    page_put(p, "<td><span class=\"%s\">%s</span></td></tr>\n", cls[it->holds], word[it->holds]);
}

void summary_cuts(page *p, const items *all)
{
    bool any = false;
    for (size_t i = 0; i < all->n; i++) {
        if (all->v[i].kind != ITEM_CUT) continue;
        if (!any) {
            page_card(p, "cuts", "summary", "Every cut, and what it costs");
            page_put(
                p, "<div class=\"wide\"><table><tr><th>result</th><th>cut</th><th class=\"n\">"
                   "parameters left</th><th class=\"n\">bytes of weights left</th><th class=\"n\">"
                   "speed</th><th class=\"n\">proven error"
                   "</th><th class=\"n\">measured error</th><th>certificate</th></tr>\n");
        }
        any = true;
        summary_row(p, &all->v[i]);
    }
    if (!any) return;
    page_put(p, "</table></div>\n");
    page_card_end(p);
}
