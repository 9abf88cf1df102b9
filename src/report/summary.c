/* summary.c - all cuts in one table and one plot (items.h). */
#include "items.h"
#include "plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool has_certificate(const item *it)
{
    return it->kind == ITEM_CUT || it->kind == ITEM_LENGTH;
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* NULL: no error is shown. */
static const char *norm_of(page *p, const item *it)
{
    if (!has_certificate(it) || it->holds == PARE_FALSE) return NULL;
    p->file = it->from;
    return it->cert ? it->cert->norm : item_string(p, it->json, "norm");
}

/* The first item with the norm of item i; i itself where it has none. */
static size_t first_with_norm(page *p, const items *all, size_t i)
{
    const char *const norm = norm_of(p, &all->v[i]);
    for (size_t k = 0; norm && k < i; k++) {
        const char *const other = norm_of(p, &all->v[k]);
        if (other && strcmp(other, norm) == 0) return k;
    }
    return i;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* What no verified certificate covers has a star. */
static const char *star_unless_verified(bool verified)
{
    return verified ? "" : "*";
}

static const char *show_short(number buf, double v)
{
    snprintf(buf, sizeof(number), "%.3g", v);
    return buf;
}

static void change_cell(page *p, table *t, const cJSON *of, const char *name, const char *unit)
{
    const double before = item_number(p, of, "before"), after = item_number(p, of, "after");
    number b, a;
    table_cell(p, t, NULL);
    if (!isnan(before) && !isnan(after))
        page_put(p, "%s &rarr; %s%s*<br><span class=\"dim small\">%s</span>", show_short(b, before),
                 show_short(a, after), unit, name);
    table_cell_end(p);
}

static void mark_norm(page *p, size_t norm)
{
    if (norm > 0) page_put(p, " <span class=\"dim\">[%zu]</span>", norm + 1);
}

static void error_cells(page *p, table *t, double proven, double measured, bool verified,
                        size_t norm)
{
    number v;
    table_cell(p, t, NULL);
    page_put(p, "%s%s", isinf(proven) ? "no bound (inf)" : show_bound(v, proven),
             star_unless_verified(verified));
    mark_norm(p, norm);
    table_cell_end(p);
    table_cell(p, t, NULL);
    page_put(p, "%s%s", show_value(v, measured), star_unless_verified(verified));
    mark_norm(p, norm);
    table_cell_end(p);
}

static void empty_cells(page *p, table *t, size_t n)
{
    for (size_t i = 0; i < n; i++) table_text(p, t, "");
}

/* Columns that some cut fills. */
typedef struct columns {
    bool metric, time;
} columns;

static void put_row(page *p, table *t, const items *all, size_t i, columns c)
{
    const item *const it = &all->v[i];
    const bool refuted = it->holds == PARE_FALSE, plan = it->kind == ITEM_PLAN;
    /* Which norm of the table it is, from 0: all but the first are marked. */
    const size_t first = first_with_norm(p, all, i);
    size_t norm = 0;
    for (size_t k = 0; k < first; k++)
        norm += norm_of(p, &all->v[k]) && first_with_norm(p, all, k) == k;
    p->file = it->from;
    table_row(p, t);
    table_cell(p, t, NULL);
    page_put(p, "<span class=\"dim\">%zu</span> <a href=\"#%s\">%s</a>", it->number, it->id,
             refuted || !it->cert ? it->path : it->cert->output.path);
    table_cell_end(p);
    table_text(p, t, cut_kind_of(it)->word);
    if (refuted || plan)
        empty_cells(p, t, 4u + c.metric + c.time);
    else if (it->cert) {
        const before_after size = file_bytes_of(p, it);
        const cJSON *const metric = item_object(p, it->json, "metric");
        const cJSON *const ms = item_object(p, it->json, "time_ms");
        const char *const name = item_string(p, metric, "name");
        const double faster = item_number(p, ms, "before") / item_number(p, ms, "after");
        number b, a;
        table_cell(p, t, NULL);
        if (!isnan(size.before) && !isnan(size.after))
            page_put(p, "%s &rarr; %s%s<br><span class=\"dim small\">%.3g %%</span>",
                     show_file_size(b, size.before), show_file_size(a, size.after),
                     star_unless_verified(size.verified), 100 * size.after / size.before);
        table_cell_end(p);
        if (c.metric) change_cell(p, t, metric, name ? name : "", "");
        if (c.time)
            change_cell(p, t, ms,
                        !isfinite(faster)                  ? ""
                        : fmax(faster, 1 / faster) < 1.005 ? "the same"
                        : faster > 1                       ? page_format(p, "%.3gx faster", faster)
                                     : page_format(p, "%.3gx slower", 1 / faster),
                        " ms");
        error_cells(p, t, it->cert->proven, it->cert->measured, it->holds == PARE_TRUE, norm);
        table_text(p, t, isnan(inputs_of(it)) ? "" : show_count(b, inputs_of(it)));
    } else {
        empty_cells(p, t, 1u + c.metric + c.time);
        error_cells(p, t, item_number(p, it->json, "proven"), item_number(p, it->json, "measured"),
                    it->holds == PARE_TRUE, norm);
        empty_cells(p, t, 1);
    }
    table_tag(p, t, "span", plan ? "chip dim" : verdict_class(it),
              plan ? "none" : verdict_word(it));
    table_row_end(p);
}

/* ---- the plot -------------------------------------------------------------------------------- */

typedef struct point {
    double x, proven, measured;
    const item *it;
} point;

/* Cuts of one model (by its hash; NULL: of any) whose size and error are known, in the norm of the
 * first: others are on another scale. */
static size_t points_of(page *p, point *out, const items *all, const char *model)
{
    size_t n = 0;
    for (size_t i = 0; i < all->n && !p->w.st; i++) {
        const item *const it = &all->v[i];
        if (it->kind != ITEM_CUT || it->holds == PARE_FALSE) continue;
        if (model && strcmp(it->cert->input.sha256, model) != 0) continue;
        p->file = it->from;
        const before_after size = file_bytes_of(p, it);
        const double left = 100 * size.after / size.before;
        if (!isfinite(left) || (n > 0 && strcmp(it->cert->norm, out[0].it->cert->norm) != 0))
            continue;
        out[n++] = (point){left, it->cert->proven, it->cert->measured, it};
    }
    return n;
}

/* Two series for each kind of cut: filled for proven, outlines for measured. */
static size_t series_of(page *p, series *s, const point *at, size_t n)
{
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        const cut_kind *const kind = cut_kind_of(at[i].it);
        bool seen = false;
        for (size_t k = 0; k < i; k++) seen |= cut_kind_of(at[k].it) == kind;
        if (seen) continue;
        for (int hollow = 0; hollow < 2; hollow++) {
            double *const x = page_alloc(p, n, sizeof *x), *const y = page_alloc(p, n, sizeof *y);
            const char **const label = page_alloc(p, n, sizeof *label);
            size_t m = 0;
            if (!x || !y || !label) return 0;
            for (size_t k = i; k < n; k++) {
                if (cut_kind_of(at[k].it) != kind) continue;
                x[m] = at[k].x;
                y[m] = hollow ? at[k].measured : at[k].proven;
                label[m++] = page_format(p, "%zu", at[k].it->number);
            }
            s[count++] = (series){
                .name = page_format(p, "%s, %s", kind->word, hollow ? "measured" : "bound"),
                .n = m,
                .x = x,
                .y = y,
                .label = hollow ? NULL : label,
                .hollow = hollow,
                .style_index = kind->style_index,
            };
        }
    }
    return count;
}

static bool put_plot(page *p, const items *all, const char *model, bool first)
{
    point *const at = page_alloc(p, all->n, sizeof *at);
    const size_t n = at ? points_of(p, at, all, model) : 0;
    series *const s = page_alloc(p, 2 * n, sizeof *s);
    if (n < 2 || !s) return false;
    const size_t count = series_of(p, s, at, n);
    if (p->w.st) return false;
    const char *const path = at[0].it->cert->input.path, *const slash = strrchr(path, '/');
    const bool entries = strcmp(at[0].it->cert->norm, OUTPUT_ENTRIES) == 0;
    if (first) page_put(p, "<div class=\"grid\">\n");
    plot_chart(p, &(chart){page_format(p, "Size against error: cuts of %s",
                                       !model  ? "different models"
                                       : slash ? slash + 1
                                               : path),
                           "size of the result, % of the original file",
                           entries ? "largest change of an output entry" : "error", .log_y = true,
                           .points = true, .from_zero = true, .s = s, .n = count});
    return true;
}

/* One plot for each model that was cut more than once: errors of different models are on
 * different scales. */
static void put_plots(page *p, const items *all)
{
    bool any = false;
    for (size_t i = 0; i < all->n; i++) {
        const pare_cert *const c = all->v[i].cert;
        bool seen = !c;
        for (size_t k = 0; k < i && !seen; k++)
            seen = all->v[k].cert && strcmp(all->v[k].cert->input.sha256, c->input.sha256) == 0;
        if (!seen) any |= put_plot(p, all, c->input.sha256, !any);
    }
    if (!any) any = put_plot(p, all, NULL, true);
    if (any)
        page_put(p,
                 "</div>\n<p class=\"small dim\">The best cuts are at the lower left. Numbers are "
                 "those of the cards below. A filled mark is the bound, the outline is the "
                 "measured value.</p>\n");
}

void summary_cuts(page *p, const items *all)
{
    bool any = false;
    table t;
    columns c = {false, false};
    for (size_t i = 0; i < all->n; i++) {
        const item *const it = &all->v[i];
        any |= has_certificate(it);
        if (it->kind != ITEM_CUT || it->holds == PARE_FALSE) continue;
        p->file = it->from;
        c.metric |= item_object(p, it->json, "metric") != NULL;
        c.time |= item_object(p, it->json, "time_ms") != NULL;
    }
    if (!any) return;
    page_put(p, "<section class=\"summary\" id=\"cuts\"><h2>Summary: every result and what it "
                "costs</h2>\n");
    table_begin(p, &t,
                page_format(p,
                            "result|cut|#file size|%s%s#error, at most|#error, measured|#inputs|"
                            "certificate|",
                            c.metric ? "#metric|" : "", c.time ? "#time of one pass|" : ""),
                "all");
    for (size_t i = 0; i < all->n && !p->w.st; i++)
        if (has_certificate(&all->v[i]) || all->v[i].kind == ITEM_PLAN) put_row(p, &t, all, i, c);
    table_end(p);
    /* Every norm once. */
    size_t shown = 0;
    page_put(p, "<p class=\"small dim\">");
    for (size_t i = 0; i < all->n && !p->w.st; i++) {
        const char *const norm = norm_of(p, &all->v[i]);
        if (!norm || first_with_norm(p, all, i) != i) continue;
        if (shown++ == 0)
            page_put(p, "Error: %s", norm);
        else
            page_put(p, "; where marked [%zu]: %s", shown, norm);
    }
    page_put(p,
             "%sInputs: on how many the bound was proven. * taken from a file, not verified by "
             "this page.</p>\n",
             shown ? ". " : "");
    put_plots(p, all);
    page_put(p, "</section>\n");
}
