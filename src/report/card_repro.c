/* The boxes of the tables and figures of the papers, ours beside theirs, and the box that counts
 * them (items.h). */
#include "items.h"
#include "plot.h"

#include <math.h>
#include <pare/repro.h>
#include <string.h>

static bool is_class(const char *word, pare_row_class c)
{
    return word && strcmp(word, pare_row_class_names[c]) == 0;
}

/* Its number in pare_outcomes; PARE_OUTCOMES: none. Files of older versions name no class: what
 * their rows are compared with nobody knows. */
static size_t outcome(page *p, const cJSON *r)
{
    const char *const of = item_string(p, r, "class"), *const is = item_string(p, r, "verdict");
    size_t i = 0;
    while (i < PARE_OUTCOMES &&
           !(is_class(of, pare_outcomes[i].of) && is && strcmp(is, pare_outcomes[i].word) == 0))
        i++;
    return i;
}

static const char *chip_of(size_t outcome_is)
{
    if (outcome_is == PARE_OUTCOMES) return "chip dim";
    switch (pare_outcomes[outcome_is].is) {
    case PARE_REPRODUCED:
        return "chip";
    case PARE_DIFFERS:
    case PARE_STEP_FALSE:
        return "chip warn";
    case PARE_MISPRINT:
        return "chip bad";
    default:
        return "chip dim";
    }
}

static const cJSON *study_of(page *p, const item *it)
{
    const cJSON *const inner = item_object(p, it->json, "repro");
    return inner ? inner : it->json;
}

/* ---- a table --------------------------------------------------------------------------------- */

/* Counts as counts: 78,804. */
static const char *show_figure(number buf, double v)
{
    return v == floor(v) && fabs(v) >= 1000 ? show_count(buf, v) : show_value(buf, v);
}

static void spread(page *p, double mean, double std)
{
    number m, s;
    page_put(p, "<td class=\"n\">%s", isnan(mean) ? "" : show_figure(m, mean));
    if (!isnan(std)) page_put(p, " &plusmn; %s", show_value(s, std));
    page_put(p, "</td>");
}

/* What the paper prints, and in a column of its own what else a row is compared with. */
static void compared(page *p, const cJSON *r)
{
    const char *const claim = item_string(p, r, "claim"), *const of = item_string(p, r, "class");
    const double published = item_number(p, r, "published");
    if (claim)
        page_tag(p, "td", "n", claim);
    else
        spread(p, of ? published : NAN, of ? item_number(p, r, "published_std") : NAN);
    spread(p, of ? item_number(p, r, "reference") : published, NAN);
}

static void row(page *p, const cJSON *r, const char *shared)
{
    const char *const command = item_string(p, r, "command"), *const of =
                                                                  item_string(p, r, "class");
    page_put(p, "<tr>");
    page_tag(p, "td", NULL, item_string(p, r, "data"));
    page_tag(p, "td", NULL, item_string(p, r, "what"));
    compared(p, r);
    /* one run has no spread; a file that does not say how many has */
    spread(p, item_number(p, r, "ours"),
           item_number(p, r, "runs") <= 1 ? NAN : item_number(p, r, "ours_std"));
    page_put(p, "<td>");
    page_tag(p, "span", chip_of(outcome(p, r)), item_string(p, r, "verdict"));
    if (of && !is_class(of, PARE_ROW_OURS)) page_tag(p, "div", "small dim", of);
    page_put(p, "</td><td class=\"small\">");
    page_text(p, item_string(p, r, "note"));
    if (command && *command && (!shared || strcmp(command, shared) != 0)) {
        page_put(p, "<details><summary>command</summary>");
        page_tag(p, "code", NULL, command);
        page_put(p, "</details>");
    }
    page_put(p, "</td></tr>\n");
}

static void table(page *p, const item *it, const cJSON *t, size_t at)
{
    const char *const command = item_string(p, t, "command");
    const cJSON *r;
    page_put(p, "<h3 id=\"%s-%zu\">", it->id, at);
    page_text(p, item_string(p, t, "name"));
    page_put(p, "</h3>\n");
    page_tag(p, "p", "small dim", item_string(p, t, "about"));
    if (command && *command) {
        page_put(p, "<p class=\"small dim\">Made by <code>");
        page_text(p, command);
        page_put(p, "</code></p>\n");
    }
    page_put(
        p,
        "<div class=\"wide\"><table class=\"papers\"><tr><th>on</th><th>what</th><th class=\"n\">"
        "printed in the paper</th><th class=\"n\">compared with</th><th class=\"n\">ours</th>"
        "<th>verdict</th><th>note</th></tr>\n");
    cJSON_ArrayForEach(r, item_objects(p, t, "rows"))
    {
        row(p, r, command);
    }
    page_put(p, "</table></div>\n");
}

/* ---- curves ---------------------------------------------------------------------------------- */

static bool same(page *p, const cJSON *a, const cJSON *b, const char *key)
{
    const char *const x = item_string(p, a, key), *const y = item_string(p, b, key);
    return x && y && strcmp(x, y) == 0;
}

/* A logarithmic axis where all its numbers are above 0 and they span a factor of 30. */
static bool wide_range(const series *s, size_t n, bool of_x)
{
    double low = INFINITY, high = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < s[i].n; k++) {
            const double v = of_x ? s[i].x[k] : s[i].y[k];
            if (!isfinite(v)) continue;
            low = fmin(low, v);
            high = fmax(high, v);
        }
    return low > 0 && high > 30 * low;
}

/* The curves of one table on one data stand side by side in the file: one picture. */
static const cJSON *panel(page *p, const cJSON *first)
{
    enum { MOST = 16 };
    series s[MOST];
    size_t n = 0;
    const char *const name = item_string(p, first, "table"), *const data =
                                                                 item_string(p, first, "data");
    const cJSON *c = first;
    for (; c && same(p, c, first, "table") && same(p, c, first, "data"); c = c->next) {
        double *x, *y;
        const char *const what = item_string(p, c, "what");
        const size_t nx = item_numbers(&x, p, c, "x"), ny = item_numbers(&y, p, c, "y");
        if (n < MOST && nx == ny && !p->st) s[n++] = (series){what ? what : "", nx, x, y};
    }
    if (n > 0)
        plot_chart(p, &(chart){.title = page_words(p, "%s: %s", name, data ? data : ""),
                               .x = "",
                               .y = "",
                               .log_x = wide_range(s, n, true),
                               .log_y = wide_range(s, n, false),
                               .s = s,
                               .n = n});
    return c == first ? c->next : c;
}

static void curves(page *p, const cJSON *all, const char *name)
{
    bool any = false;
    for (const cJSON *c = all ? all->child : NULL; c && !p->st;) {
        const char *const of = item_string(p, c, "table");
        if (!of || strcmp(of, name) != 0) {
            c = c->next;
            continue;
        }
        if (!any) page_put(p, "<div class=\"grid\">\n");
        any = true;
        c = panel(p, c);
    }
    if (any) page_put(p, "</div>\n");
}

/* ---- histograms ------------------------------------------------------------------------------ */

enum { BINS = 12 };

/* The outline of the bars of one series. */
static series outline(page *p, const cJSON *c, double low, double width)
{
    double *v = NULL, count[BINS] = {0};
    const size_t n = item_numbers(&v, p, c, "values");
    const char *const what = item_string(p, c, "what");
    double *const xy = page_alloc(p, 4 * (BINS + 1), sizeof *xy);
    series s = {what ? what : "", 0, xy, xy ? xy + 2 * (BINS + 1) : NULL};
    if (!xy) return s;
    for (size_t i = 0; i < n; i++) count[(size_t)fmin(BINS - 1, (v[i] - low) / width)]++;
    for (size_t b = 0; b <= BINS; b++)
        for (size_t end = 0; end < 2; end++, s.n++) {
            xy[s.n] = low + (double)b * width;
            xy[2 * (BINS + 1) + s.n] = b + end == 0 || b + end > BINS ? 0 : count[b + end - 1];
        }
    return s;
}

static const cJSON *histogram(page *p, const cJSON *first, const char *figure)
{
    enum { MOST = 4 };
    series s[MOST];
    size_t n = 0;
    double low = INFINITY, high = -INFINITY;
    const char *const data = item_string(p, first, "data"), *const metric =
                                                                item_string(p, first, "metric");
    const cJSON *c;
    for (c = first; c && same(p, c, first, "data"); c = c->next) {
        double *v;
        const size_t values = item_numbers(&v, p, c, "values");
        for (size_t i = 0; i < values; i++) {
            low = fmin(low, v[i]);
            high = fmax(high, v[i]);
        }
    }
    const double width = high > low ? (high - low) / BINS : 1e-3;
    for (c = first; c && same(p, c, first, "data"); c = c->next)
        if (n < MOST && isfinite(low) && !p->st) s[n++] = outline(p, c, low, width);
    if (n > 0)
        plot_chart(p, &(chart){.title = page_words(p, "%s: %s", figure, data ? data : ""),
                               .x = metric ? metric : "",
                               .y = "runs",
                               .bare = true,
                               .s = s,
                               .n = n});
    return c == first ? c->next : c;
}

static void histograms(page *p, const cJSON *figure)
{
    const cJSON *const list = item_objects(p, figure, "series");
    const char *const name = item_string(p, figure, "name");
    if (!list || !list->child) return;
    page_put(p, "<h3>%s: how the runs are spread</h3>\n<div class=\"grid\">\n", name);
    for (const cJSON *c = list->child; c && !p->st;) c = histogram(p, c, name ? name : "");
    page_put(p, "</div>\n");
}

/* ---- the box --------------------------------------------------------------------------------- */

static const char *title_of(page *p, const cJSON *study)
{
    const char *const name = item_string(p, study, "name");
    if (name && strcmp(name, "errata") == 0)
        return "What is false, loose or imprecise as printed, computed";
    return page_words(p, "The %s paper, ours beside theirs", name ? name : "");
}

void card_repro(page *p, const item *it)
{
    const cJSON *const study = study_of(p, it);
    const cJSON *t, *note;
    size_t at = 0;
    page_card(p, it->id, "repro", title_of(p, study));
    page_unverified(p, "the figures are what the file says; its commands make them again");
    cJSON_ArrayForEach(t, item_objects(p, study, "tables"))
    {
        const char *const of = item_string(p, t, "name");
        table(p, it, t, at++);
        if (of) curves(p, item_objects(p, study, "curves"), of);
    }
    histograms(p, item_object(p, study, "figure"));
    page_put(p, "<ul class=\"small\">\n");
    cJSON_ArrayForEach(note, item_strings(p, study, "notes"))
    {
        page_tag(p, "li", NULL, cJSON_GetStringValue(note));
    }
    page_put(p, "</ul>\n");
    page_source(p, it->path,
                item_string(p, it->json, "line") ? item_string(p, it->json, "line")
                                                 : item_string(p, study, "line"),
                "the file");
    page_card_end(p);
}

/* ---- all tables of all papers in one --------------------------------------------------------- */

static void count_rows(page *p, size_t count[PARE_OUTCOMES + 1], const cJSON *table_of)
{
    const cJSON *r;
    cJSON_ArrayForEach(r, item_objects(p, table_of, "rows"))
    {
        count[outcome(p, r)]++;
    }
}

static void put_counts(page *p, const size_t count[PARE_OUTCOMES])
{
    for (size_t i = 0; i < PARE_OUTCOMES; i++) {
        if (count[i] > 0)
            page_put(p, "<td class=\"n\">%zu</td>", count[i]);
        else
            page_put(p, "<td class=\"n dim\">-</td>");
    }
    page_put(p, "</tr>\n");
}

/* The classes, each over its outcomes. */
static void put_heads(page *p)
{
    page_put(p, "<tr><th></th><th></th>");
    for (size_t i = 0; i < PARE_OUTCOMES;) {
        const pare_row_class of = pare_outcomes[i].of;
        size_t n = 0;
        for (; i < PARE_OUTCOMES && pare_outcomes[i].of == of; i++) n++;
        page_put(p, "<th colspan=\"%zu\">%s</th>", n,
                 of == PARE_ROW_OURS ? "" : pare_row_class_names[of]);
    }
    page_put(p, "</tr>\n<tr><th>paper</th><th>table</th>");
    for (size_t i = 0; i < PARE_OUTCOMES; i++) page_tag(p, "th", "n", pare_outcomes[i].word);
    page_put(p, "</tr>\n");
}

static void summary_study(page *p, const item *it, size_t all[PARE_OUTCOMES])
{
    p->file = it->from;
    const cJSON *const study = study_of(p, it);
    const cJSON *t;
    size_t at = 0;
    cJSON_ArrayForEach(t, item_objects(p, study, "tables"))
    {
        size_t count[PARE_OUTCOMES + 1] = {0};
        count_rows(p, count, t);
        for (size_t i = 0; i < PARE_OUTCOMES; i++) all[i] += count[i];
        page_put(p, "<tr>");
        page_tag(p, "td", NULL, at == 0 ? item_string(p, study, "name") : "");
        page_put(p, "<td><a href=\"#%s-%zu\">", it->id, at++);
        page_text(p, item_string(p, t, "name"));
        page_put(p, "</a></td>");
        put_counts(p, count);
    }
}

void summary_repro(page *p, const items *all)
{
    size_t papers = 0, count[PARE_OUTCOMES] = {0};
    for (size_t i = 0; i < all->n; i++) papers += all->v[i].kind == ITEM_REPRO;
    if (papers < 2) return;
    page_card(p, "papers", "summary", "Every table, and what came of its rows");
    page_put(p, "<div class=\"wide\"><table>");
    put_heads(p);
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].kind == ITEM_REPRO) summary_study(p, &all->v[i], count);
    page_put(p, "<tr><td><b>all</b></td><td></td>");
    put_counts(p, count);
    page_put(
        p,
        "</table></div>\n<p class=\"small dim\"><b>printed in the paper</b>: the paper has the "
        "number or makes the claim, and only such a row can be reproduced; <b>false as "
        "printed</b>: "
        "the data or a counter-example refutes it; <b>proof step false, statement may hold</b>: a "
        "step of a proof fails; <b>loose or imprecise</b>: true and weak, or open to a false "
        "reading; <b>not decided</b>: runs of this size do not; "
        "<b>not made</b>: a rival that is not made again, or its file is missing. <b>own "
        "reference</b>: a figure of our own earlier experiments, with other random numbers. "
        "<b>self-consistency</b>: two computations of one run, a plan and its execution or a proof "
        "and a measurement. <b>ours</b>: nothing to compare with. docs/repro.md has the "
        "tolerances.</p>\n");
    page_card_end(p);
}
