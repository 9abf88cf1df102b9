/* card_repro.c - the cards of the tables and figures of the papers, ours beside theirs, and the
 * summary that counts their rows (items.h). */
#include "items.h"
#include "plot.h"

#include <math.h>
#include <string.h>

/* The words of a study's JSON for what a row is compared with, and for what came of it, in the
 * order of the summary (tests/studies/test_all_studies.c compares them with those of
 * pare-repro). */
static const char *const row_classes[] = {"printed in the paper", "own reference",
                                          "self-consistency", "ours"};
enum { ROW_CLASSES = sizeof row_classes / sizeof *row_classes };

static const struct outcome {
    int class_index; /* into row_classes */
    const char *word, *chip;
} outcomes[] = {
    {0, "reproduced", "chip"},
    {0, "differs", "chip warn"},
    {0, "false as printed", "chip bad"},
    {0, "proof step false, statement may hold", "chip warn"},
    {0, "loose or imprecise", "chip dim"},
    {0, "not decided", "chip dim"},
    {0, "not made", "chip dim"},
    {1, "agrees", "chip"},
    {1, "differs", "chip warn"},
    {2, "holds", "chip"},
    {2, "fails", "chip warn"},
    {3, "ours", "chip dim"},
};
enum { OUTCOMES = sizeof outcomes / sizeof *outcomes };

/* The outcome of a row, OUTCOMES for none. Files of older versions name no class: what their rows
 * are compared with is not known. */
static size_t outcome_of_row(page *p, const cJSON *r)
{
    const char *const row_class = item_string(p, r, "class"), *const verdict =
                                                                  item_string(p, r, "verdict");
    size_t i = 0;
    while (i < OUTCOMES &&
           !(row_class && strcmp(row_class, row_classes[outcomes[i].class_index]) == 0 && verdict &&
             strcmp(verdict, outcomes[i].word) == 0))
        i++;
    return i;
}

static const cJSON *study_of(page *p, const item *it)
{
    const cJSON *const inner = item_object(p, it->json, "repro");
    return inner ? inner : it->json;
}

/* ---- a table --------------------------------------------------------------------------------- */

static void spread_cell(page *p, table *t, double mean, double std)
{
    number m, s;
    table_cell(p, t, NULL);
    const bool count = mean == floor(mean) && fabs(mean) >= 1000; /* 78,804 */
    if (!isnan(mean)) page_text(p, count ? show_count(m, mean) : show_value(m, mean));
    if (!isnan(std)) page_put(p, " &plusmn; %s", show_value(s, std));
    table_cell_end(p);
}

static void put_row(page *p, table *t, const cJSON *r, const char *shared)
{
    const size_t outcome = outcome_of_row(p, r);
    const char *const command = item_string(p, r, "command");
    const char *const of = item_string(p, r, "class");
    table_row(p, t);
    table_text(p, t, item_string(p, r, "data"));
    table_cell(p, t, "what");
    page_text(p, item_string(p, r, "what"));
    table_cell_end(p);
    /* What the paper prints, and in a column of its own what else the row is compared with. */
    const char *const claim = item_string(p, r, "claim");
    const double published = item_number(p, r, "published");
    if (claim) {
        table_tag(p, t, "span", "claim", claim);
    } else
        spread_cell(p, t, of ? published : NAN, of ? item_number(p, r, "published_std") : NAN);
    spread_cell(p, t, of ? item_number(p, r, "reference") : published, NAN);
    /* one run has no spread; a file that does not say how many has */
    spread_cell(p, t, item_number(p, r, "ours"),
                item_number(p, r, "runs") <= 1 ? NAN : item_number(p, r, "ours_std"));
    table_cell(p, t, NULL);
    page_tag(p, "span", outcome < OUTCOMES ? outcomes[outcome].chip : "chip dim",
             item_string(p, r, "verdict"));
    if (of && strcmp(of, "ours") != 0) page_tag(p, "div", "small dim", of);
    table_cell_end(p);
    table_cell(p, t, "small");
    page_text(p, item_string(p, r, "note"));
    if (command && *command && (!shared || strcmp(command, shared) != 0)) {
        page_put(p, "<details><summary>command</summary>");
        page_tag(p, "code", NULL, command);
        page_put(p, "</details>");
    }
    table_cell_end(p);
    table_row_end(p);
}

static void put_table(page *p, const cJSON *of)
{
    const char *const command = item_string(p, of, "command");
    const cJSON *r;
    table t;
    page_tag(p, "p", "small dim", item_string(p, of, "about"));
    if (command && *command)
        page_put(p, "<p class=\"small dim\">Made by <code>%s</code></p>\n", command);
    table_begin(p, &t, "on|what|#printed in the paper|#compared with|#pare|verdict|note|", NULL);
    cJSON_ArrayForEach(r, item_objects(p, of, "rows"))
    {
        put_row(p, &t, r, command);
    }
    table_end(p);
}

/* ---- curves ---------------------------------------------------------------------------------- */

static bool same_string(page *p, const cJSON *a, const cJSON *b, const char *key)
{
    const char *const x = item_string(p, a, key), *const y = item_string(p, b, key);
    return x && y && strcmp(x, y) == 0;
}

/* A logarithmic axis where all its numbers are above 0 and they span a factor of 30. */
static bool suits_log_axis(const series *s, size_t n, bool of_x)
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

/* What the axes of the curves of a table are. */
typedef struct axis_names {
    const char *table, *data, *x, *y; /* data NULL: all */
} axis_names;

static const axis_names *axes_of(const char *name, const char *data)
{
    static const axis_names all[] = {
        {"E1 orders", NULL, "size eta of the weights", "error of one layer"},
        {"E2 depth", NULL, "layers", "error"},
        {"E3 rank", NULL, "layer", "log10 of the distance from rank one"},
        {"E4 large weights", NULL, "gain a of the weights", "share of the network's effect lost"},
        {"E6 balls", NULL, "radius r of the ball", "error of a row"},
        {"E8 trained", NULL, "attention layers that stay exact",
         "share of attention's effect lost"},
        {"E9 scaled", NULL, "mean total variation from uniform",
         "share of attention's effect lost"},
        {"E10 polynomials", "time", "tokens", "seconds"},
        {"E10 polynomials", NULL, "degree", "total variation"},
        {"calls", NULL, "tokens of the input / tokens of a call", "calls of one head"},
        {"figure 4", NULL, "width n_K", "error at the regression token"},
        {"figure 5", NULL, "tokens T", "error at the regression token"},
        {"figure 6", NULL, "width n", "mean error of all tokens"},
        {"figure 7", NULL, "weights of the random network", "nats per byte"},
        {"figure 8", NULL, "factor of queries and keys", "nats per byte"},
        {"rate and size", NULL, "largest entry of V", "rate delta of the mean error"},
        {NULL, NULL, "x of the curve", "y of the curve"},
    };
    const axis_names *at = all;
    while (at->table && (!name || strcmp(at->table, name) != 0 ||
                         (at->data && (!data || strcmp(at->data, data) != 0))))
        at++;
    return at;
}

/* The curves of one table on one data stand side by side in the file: one picture. */
static const cJSON *plot_curves(page *p, const cJSON *first)
{
    enum { MAX_SERIES = 16 };
    series s[MAX_SERIES];
    size_t n = 0;
    const char *const name = item_string(p, first, "table"), *const data =
                                                                 item_string(p, first, "data");
    const cJSON *c = first;
    for (; c && same_string(p, c, first, "table") && same_string(p, c, first, "data");
         c = c->next) {
        double *x, *y;
        const char *const what = item_string(p, c, "what");
        const size_t nx = item_numbers(&x, p, c, "x"), ny = item_numbers(&y, p, c, "y");
        if (n == MAX_SERIES || nx != ny || p->w.st) continue;
        s[n] = (series){.name = what ? what : "", .n = nx, .x = x, .y = y};
        n++;
    }
    const axis_names *const names = axes_of(name, data);
    if (n > 0)
        plot_chart(p, &(chart){.title = page_format(p, "%s: %s", name, data ? data : ""),
                               .x = names->x,
                               .y = names->y,
                               .log_x = suits_log_axis(s, n, true),
                               .log_y = suits_log_axis(s, n, false),
                               .s = s,
                               .n = n});
    return c == first ? c->next : c;
}

static void put_curves(page *p, const cJSON *all, const char *name)
{
    bool any = false;
    for (const cJSON *c = all ? all->child : NULL; c && !p->w.st;) {
        const char *const of = item_string(p, c, "table");
        if (!of || strcmp(of, name) != 0) {
            c = c->next;
            continue;
        }
        if (!any) page_put(p, "<div class=\"grid\">\n");
        any = true;
        c = plot_curves(p, c);
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
    series s = {.name = what ? what : "", .x = xy, .y = xy ? xy + 2 * (BINS + 1) : NULL};
    if (!xy) return s;
    for (size_t i = 0; i < n; i++) count[(size_t)fmin(BINS - 1, (v[i] - low) / width)]++;
    for (size_t b = 0; b <= BINS; b++)
        for (size_t end = 0; end < 2; end++, s.n++) {
            xy[s.n] = low + (double)b * width;
            xy[2 * (BINS + 1) + s.n] = b + end == 0 || b + end > BINS ? 0 : count[b + end - 1];
        }
    return s;
}

static const cJSON *plot_histogram(page *p, const cJSON *first, const char *figure)
{
    enum { MAX_SERIES = 4 };
    series s[MAX_SERIES];
    size_t n = 0;
    double low = INFINITY, high = -INFINITY;
    const char *const data = item_string(p, first, "data"), *const metric =
                                                                item_string(p, first, "metric");
    const cJSON *c;
    for (c = first; c && same_string(p, c, first, "data"); c = c->next) {
        double *v;
        const size_t values = item_numbers(&v, p, c, "values");
        for (size_t i = 0; i < values; i++) {
            low = fmin(low, v[i]);
            high = fmax(high, v[i]);
        }
    }
    const double width = high > low ? (high - low) / BINS : 1e-3;
    for (c = first; c && same_string(p, c, first, "data"); c = c->next)
        if (n < MAX_SERIES && isfinite(low) && !p->w.st) s[n++] = outline(p, c, low, width);
    if (n > 0)
        plot_chart(p, &(chart){.title = page_format(p, "%s: %s", figure, data ? data : ""),
                               .x = metric ? metric : "",
                               .y = "number of runs",
                               .bare = true,
                               .s = s,
                               .n = n});
    return c == first ? c->next : c;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static void count_rows(page *p, size_t count[OUTCOMES + 1], const cJSON *of)
{
    const cJSON *r;
    cJSON_ArrayForEach(r, item_objects(p, of, "rows"))
    {
        count[outcome_of_row(p, r)]++;
    }
}

/* "false as printed: 18; not made: 2": the outcomes of a class, or of all (-1). */
static const char *counts_of(page *p, const size_t count[OUTCOMES], int of)
{
    const char *text = "";
    for (size_t i = 0; i < OUTCOMES; i++)
        if (count[i] > 0 && (of < 0 || outcomes[i].class_index == of))
            text =
                page_format(p, "%s%s%s: %zu", text, *text ? "; " : "", outcomes[i].word, count[i]);
    return text;
}

/* ---- the card -------------------------------------------------------------------------------- */

static const char *title_of(page *p, const cJSON *study)
{
    static const char *const titles[][2] = {
        {"width", "Width: Shirzad 2024, ours beside theirs"},
        {"depth", "Depth: our own experiments on Rank collapse 2025, which has none"},
        {"ticket", "Weights: Otsuka 2025, ours beside theirs"},
        {"length", "Length: the algorithms of Yu 2025, checked against themselves"},
        {"errata", "What is false, loose or imprecise as printed, computed"}};
    const char *const name = item_string(p, study, "name");
    for (size_t i = 0; name && i < sizeof titles / sizeof *titles; i++)
        if (strcmp(name, titles[i][0]) == 0) return titles[i][1];
    return page_format(p, "Tables: %s", name ? name : "");
}

void card_repro(page *p, const item *it)
{
    const cJSON *const study = study_of(p, it);
    const cJSON *t, *note;
    size_t at = 0, all[OUTCOMES + 1] = {0};
    cJSON_ArrayForEach(t, item_objects(p, study, "tables"))
    {
        count_rows(p, all, t);
    }
    const char *const counts = counts_of(p, all, -1);
    page_card(p,
              &(card){it->id, it->number, "Tables", title_of(p, study), "chip dim", "not verified",
                      *counts ? page_format(p, "Rows by verdict: %s.", counts) : NULL, false});
    page_put(p, "<p class=\"small dim\">The figures are what the file reports; the commands beside "
                "them compute them again.</p>\n");
    cJSON_ArrayForEach(t, item_objects(p, study, "tables"))
    {
        const char *const of = item_string(p, t, "name");
        size_t count[OUTCOMES + 1] = {0};
        count_rows(p, count, t);
        page_fold(p, of ? of : "", counts_of(p, count, -1));
        page_put(p, "<div class=\"inside\" id=\"%s-%zu\">\n", it->id, at++);
        put_table(p, t);
        if (of) put_curves(p, item_objects(p, study, "curves"), of);
        page_put(p, "</div>\n");
        page_fold_end(p);
    }
    const cJSON *const figure = item_object(p, study, "figure");
    const cJSON *const runs = item_objects(p, figure, "series");
    if (runs && runs->child) {
        const char *const name = item_string(p, figure, "name");
        page_fold(p, page_format(p, "%s: how the runs are spread", name ? name : ""), NULL);
        page_put(p, "<div class=\"grid\">\n");
        for (const cJSON *c = runs->child; c && !p->w.st;)
            c = plot_histogram(p, c, name ? name : "");
        page_put(p, "</div>\n");
        page_fold_end(p);
    }
    const cJSON *const notes = item_strings(p, study, "notes");
    if (notes && notes->child) {
        page_put(p, "<ul class=\"small\">\n");
        cJSON_ArrayForEach(note, notes)
        {
            page_tag(p, "li", NULL, cJSON_GetStringValue(note));
        }
        page_put(p, "</ul>\n");
    }
    page_source(p, it->path,
                item_string(p, it->json, "line") ? item_string(p, it->json, "line")
                                                 : item_string(p, study, "line"),
                "the file");
    page_card_end(p);
}

/* ---- all tables of all papers in one --------------------------------------------------------- */

static void put_counts(page *p, table *t, const size_t count[OUTCOMES])
{
    for (int i = 0; i < ROW_CLASSES; i++) table_text(p, t, counts_of(p, count, i));
    table_row_end(p);
}

/* One row for each table of a study; adds its outcomes to `all`. */
static void put_study_rows(page *p, table *rows, const item *it, size_t all[OUTCOMES])
{
    p->file = it->from;
    const cJSON *const study = study_of(p, it);
    const char *const name = item_string(p, study, "name");
    const cJSON *t;
    size_t at = 0;
    cJSON_ArrayForEach(t, item_objects(p, study, "tables"))
    {
        size_t count[OUTCOMES + 1] = {0};
        count_rows(p, count, t);
        for (size_t i = 0; i < OUTCOMES; i++) all[i] += count[i];
        table_row(p, rows);
        table_cell(p, rows, NULL);
        page_put(p, "<a href=\"#%s-%zu\">%s: %s</a>", it->id, at++, name ? name : "",
                 item_string(p, t, "name"));
        table_cell_end(p);
        put_counts(p, rows, count);
    }
}

void summary_repro(page *p, const items *all)
{
    size_t papers = 0, count[OUTCOMES] = {0};
    table t;
    for (size_t i = 0; i < all->n; i++) papers += all->v[i].kind == ITEM_REPRO;
    if (papers < 2) return;
    page_put(p,
             "<section class=\"summary\" id=\"papers\"><h2>Summary: every table, and what came of "
             "its rows</h2>\n");
    table_begin(p, &t, "table|printed in the paper|own reference|self-consistency|ours|", NULL);
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].kind == ITEM_REPRO) put_study_rows(p, &t, &all->v[i], count);
    table_row(p, &t);
    table_cell(p, &t, NULL);
    page_put(p, "<b>all</b>");
    table_cell_end(p);
    put_counts(p, &t, count);
    table_end(p);
    page_fold(p, "What these words mean", NULL);
    page_put(
        p,
        "<p class=\"small dim\"><b>printed in the paper</b>: the paper has the "
        "number or makes the claim, and only such a row can be reproduced; <b>false as "
        "printed</b>: the data or a counter-example refutes it; <b>proof step false, statement "
        "may hold</b>: a step of a proof fails; <b>loose or imprecise</b>: true and weak, or "
        "open to a false reading; <b>not decided</b>: runs of this size do not decide it; "
        "<b>not made</b>: a rival method that pare does not have, or its file is missing. <b>own "
        "reference</b>: a figure of our own earlier experiments, with other random numbers. "
        "<b>self-consistency</b>: two computations of one run, a plan and its execution or a "
        "proof and a measurement. <b>ours</b>: nothing to compare with. docs/repro.md has the "
        "tolerances.</p>\n");
    page_fold_end(p);
    page_put(p, "</section>\n");
}
