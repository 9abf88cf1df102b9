/* plot_histogram.c - histograms: as bins, as CSV, as a plain SVG file; and the files of a folder.
 * */
#include "study.h"
#include <math.h>
#include <string.h>

enum { BINS = 12 };

/* ---- bins ----------------------------------------------------------------------------------- */

histogram histogram_of(const study *r, size_t series)
{
    double low = INFINITY, high = -INFINITY;
    for (size_t i = 0; i < r->nseries; i++) {
        const run_series *const s = &r->series[i];
        if (strcmp(s->data, r->series[series].data) != 0) continue;
        for (size_t k = 0; k < s->n; k++) {
            low = fmin(low, s->value[k]);
            high = fmax(high, s->value[k]);
        }
    }
    if (!(high >= low)) return (histogram){1, 0, 1};
    const double width = high > low ? (high - low) / BINS : 1e-3;
    return (histogram){high > low ? BINS : 1, low, width};
}

double histogram_edge(const histogram *h, size_t bin)
{
    return h->from + (double)bin * h->width;
}

static size_t bin_of(const histogram *h, double v)
{
    const double at = floor((v - h->from) / h->width);
    return !(at > 0) ? 0 : at >= (double)h->bins ? h->bins - 1 : (size_t)at;
}

size_t histogram_count(const histogram *h, const run_series *s, size_t bin)
{
    size_t n = 0;
    for (size_t k = 0; k < s->n; k++) n += bin_of(h, s->value[k]) == bin;
    return n;
}

/* ---- CSV ------------------------------------------------------------------------------------ */

static pare_status write_csv(pare_out *o, const study *r, pare_err *err)
{
    pare_status st = pare_out_printf(o, err, "data,series,metric,value\n");
    for (size_t i = 0; !st && i < r->nseries; i++)
        for (size_t k = 0; !st && k < r->series[i].n; k++)
            st = pare_out_printf(o, err, "%s,\"%s\",%s,%.9g\n", r->series[i].data,
                                 r->series[i].what, r->series[i].metric, r->series[i].value[k]);
    return st;
}

/* ---- SVG ------------------------------------------------------------------------------------ */

enum { PANEL_W = 320, PANEL_H = 190, LEFT = 40, BASE = 150, TOP = 34, PLOT_W = 264 };

static double tallest_bin(const study *r, const histogram *h, const char *data)
{
    size_t most = 1;
    for (size_t i = 0; i < r->nseries; i++)
        for (size_t b = 0; strcmp(r->series[i].data, data) == 0 && b < h->bins; b++) {
            const size_t n = histogram_count(h, &r->series[i], b);
            if (n > most) most = n;
        }
    return (double)most;
}

/* The bars of one series; `at`: which of the data set, for its color and its legend. */
static pare_status draw_bars(pare_out *o, const histogram *h, const run_series *s, size_t at,
                             double most, pare_err *err)
{
    static const char *const color[] = {"#1f77b4", "#ff7f0e"};
    const double w = (double)PLOT_W / (double)h->bins;
    pare_status st = PARE_OK;
    for (size_t b = 0; !st && b < h->bins; b++) {
        const double tall = (double)(BASE - TOP) * (double)histogram_count(h, s, b) / most;
        if (tall > 0)
            st = pare_out_printf(o, err,
                                 "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" "
                                 "fill=\"%s\" fill-opacity=\"0.6\"/>\n",
                                 LEFT + (double)b * w, BASE - tall, w - 1, tall, color[at % 2]);
    }
    if (!st)
        st = pare_out_printf(o, err, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s (%zu runs)</text>\n",
                             LEFT + (int)at % 2 * 140, TOP - 6, color[at % 2], s->what, s->n);
    return st;
}

static pare_status draw_frame(pare_out *o, const histogram *h, const run_series *s, double most,
                              pare_err *err)
{
    return pare_out_printf(o, err,
                           "<text x=\"%d\" y=\"14\" font-weight=\"bold\">%s, test %s</text>\n"
                           "<path d=\"M%d %d H%d M%d %d V%d\" stroke=\"#777\" fill=\"none\"/>\n"
                           "<text x=\"%d\" y=\"%d\">%.4f</text>\n"
                           "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.4f</text>\n"
                           "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.0f</text>\n",
                           LEFT, s->data, s->metric, LEFT, BASE, LEFT + PLOT_W, LEFT, BASE, TOP,
                           LEFT, BASE + 16, h->from, LEFT + PLOT_W, BASE + 16,
                           histogram_edge(h, h->bins), LEFT - 4, TOP + 8, most);
}

/* One panel for each data set: its series follow one another. */
static pare_status write_svg(pare_out *o, const study *r, pare_err *err)
{
    size_t panels = 0, at = 0;
    for (size_t i = 0; i < r->nseries; i++)
        panels += i == 0 || strcmp(r->series[i].data, r->series[i - 1].data) != 0;
    pare_status st = pare_out_printf(
        o, err,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%d\" "
        "font-family=\"sans-serif\" font-size=\"11\" fill=\"#555\">\n<title>%s</title>\n",
        (panels ? panels : 1) * PANEL_W, PANEL_H, r->figure);
    panels = 0;
    for (size_t i = 0; !st && i < r->nseries; i++) {
        const run_series *const s = &r->series[i];
        const histogram h = histogram_of(r, i);
        const double most = tallest_bin(r, &h, s->data);
        const bool first = i == 0 || strcmp(s->data, r->series[i - 1].data) != 0;
        if (first) at = 0;
        st = pare_out_printf(o, err, "<g transform=\"translate(%zu 0)\">\n",
                             (panels += first) * PANEL_W - PANEL_W);
        if (!st && first) st = draw_frame(o, &h, s, most, err);
        if (!st) st = draw_bars(o, &h, s, at++, most, err);
        if (!st) st = pare_out_printf(o, err, "</g>\n");
    }
    return st ? st : pare_out_printf(o, err, "</svg>\n");
}

/* ---- files ---------------------------------------------------------------------------------- */

static pare_status write_text(pare_out *o, const study *r, pare_err *err)
{
    char *text;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? study_text(&text, a, r, err) : pare_no_memory(err);
    if (!st) st = pare_out_write(o, text, strlen(text), err);
    pare_arena_free(a);
    return st;
}

static pare_status write_json(pare_out *o, const study *r, pare_err *err)
{
    cJSON *root = NULL;
    char *text = NULL;
    pare_arena *const a = pare_arena_new();
    pare_status st = a ? study_json(&root, r, err) : pare_no_memory(err);
    if (!st) st = pare_json_print(&text, NULL, a, root, 2, err);
    if (!st) st = pare_out_printf(o, err, "%s\n", text);
    cJSON_Delete(root);
    pare_arena_free(a);
    return st;
}

static pare_status write_one(const study *r, const char *name,
                             pare_status (*write)(pare_out *, const study *, pare_err *),
                             pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    const char *const path = a ? pare_sprintf(a, "%s/%s", r->folder, name) : NULL;
    pare_out *o = NULL;
    pare_status st = path ? pare_out_open(&o, path, true, err) : pare_no_memory(err);
    if (!st) st = write(o, r, err);
    if (!st)
        st = pare_out_commit(o, err);
    else
        pare_out_abort(o);
    pare_arena_free(a);
    return st;
}

pare_status study_write(const study *r, pare_err *err)
{
    pare_status st = PARE_OK;
    if (r->figure) st = write_one(r, "figure.csv", write_csv, err);
    if (!st && r->figure) st = write_one(r, "figure.svg", write_svg, err);
    if (!st && r->ncurves) st = write_one(r, "curves.csv", curves_csv, err);
    if (!st && r->ncurves) st = write_one(r, "curves.svg", curves_svg, err);
    if (!st) st = write_one(r, "tables.json", write_json, err);
    if (!st) st = write_one(r, "tables.txt", write_text, err);
    return st;
}
