/* The box of a probe: the X-ray, layer by layer, and what each cut would cost (items.h). */
#include "items.h"
#include "plot.h"

#include <math.h>
#include <string.h>

static double *numbers(page *p, size_t n)
{
    return page_alloc(p, n, sizeof(double));
}

static size_t length(const cJSON *list)
{
    return list ? (size_t)cJSON_GetArraySize(list) : 0;
}

/* ---- heat maps ------------------------------------------------------------------------------- */

/* One row for each entry of the list, one column for each key. */
static void table_of(page *p, const char *title, const cJSON *list, const char *const *keys,
                     const char *const *names, size_t cols)
{
    const size_t rows = length(list);
    double *v = numbers(p, rows * cols);
    const char **label = page_alloc(p, rows, sizeof *label);
    const cJSON *at;
    size_t i = 0;
    if (rows == 0 || !v || !label) return;
    cJSON_ArrayForEach(at, list)
    {
        const double block = item_number(p, at, "block"), head = item_number(p, at, "head");
        label[i] = isnan(head) ? page_words(p, "layer %.0f", block)
                               : page_words(p, "layer %.0f head %.0f", block, head);
        for (size_t j = 0; j < cols; j++) v[i * cols + j] = item_number(p, at, keys[j]);
        i++;
    }
    plot_heat(p, &(heat){title, rows, cols, label, names, v, .by_column = true});
}

/* Weights by their name (columns) in each block and head (rows). */
typedef struct grid {
    size_t rows, cols;
    const char *row[256], *col[16];
    double block[256], head[256];
} grid;

static size_t row_of(page *p, grid *g, const cJSON *w)
{
    const double block = item_number(p, w, "block"), head = item_number(p, w, "head");
    const double h = isnan(head) ? -1 : head;
    for (size_t i = 0; i < g->rows; i++)
        if (g->block[i] == block && g->head[i] == h) return i;
    if (g->rows == 256) return 256;
    g->block[g->rows] = block;
    g->head[g->rows] = h;
    g->row[g->rows] = h < 0 ? page_words(p, "layer %.0f ffn", block)
                            : page_words(p, "layer %.0f head %.0f", block, h);
    return g->rows++;
}

static size_t col_of(grid *g, const char *name)
{
    for (size_t j = 0; j < g->cols; j++)
        if (strcmp(g->col[j], name) == 0) return j;
    if (g->cols == 16) return 16;
    g->col[g->cols] = name;
    return g->cols++;
}

/* Two passes: which rows and columns there are, then the cells. */
static void weights_heat(page *p, const cJSON *weights, const char *title, const char *key)
{
    grid *g = page_alloc(p, 1, sizeof *g);
    const cJSON *w;
    if (!g) return;
    cJSON_ArrayForEach(w, weights)
    {
        const char *name = item_string(p, w, "name");
        if (!name || isnan(item_number(p, w, "block"))) continue;
        row_of(p, g, w);
        col_of(g, name);
    }
    double *v = numbers(p, g->rows * g->cols);
    if (!v || g->rows == 0) return;
    for (size_t i = 0; i < g->rows * g->cols; i++) v[i] = NAN;
    cJSON_ArrayForEach(w, weights)
    {
        const char *name = item_string(p, w, "name");
        if (!name || isnan(item_number(p, w, "block"))) continue;
        const size_t i = row_of(p, g, w), j = col_of(g, name);
        if (i < g->rows && j < g->cols) v[i * g->cols + j] = item_number(p, w, key);
    }
    plot_heat(p, &(heat){title, g->rows, g->cols, g->row, g->col, v, .by_column = false});
}

/* ---- curves ---------------------------------------------------------------------------------- */

/* How the stream's spectrum falls at a few places. */
static void spectra(page *p, const cJSON *stream)
{
    enum { MOST = 8 };
    series s[MOST];
    size_t n = 0, seen = 0;
    const size_t places = length(stream), step = (places + MOST - 1) / MOST;
    const cJSON *at;
    cJSON_ArrayForEach(at, stream)
    {
        double *y;
        if (seen++ % (step ? step : 1) != 0 || n == MOST) continue;
        const size_t axes = item_numbers(&y, p, at, "axes");
        double *const x = numbers(p, axes);
        if (!x || !y) return;
        for (size_t k = 0; k < axes; k++) x[k] = (double)(k + 1);
        if (axes > 0) s[n++] = (series){item_string(p, at, "place"), axes, x, y};
    }
    if (n > 0)
        plot_chart(p, &(chart){"How many directions the stream uses", "direction", "size along it",
                               .log_y = true, .s = s, .n = n});
}

/* Parameters left against one figure of each cut that was tried. */
static void cut_curves(page *p, const cJSON *cuts, const char *title, const char *key, bool log_y)
{
    enum { MOST = 12 };
    series s[MOST];
    size_t n = 0;
    const cJSON *at;
    cJSON_ArrayForEach(at, cuts)
    {
        const char *method = item_string(p, at, "method");
        const double x = item_number(p, at, "parameters"), y = item_number(p, at, key);
        if (!method || isnan(x) || isnan(y)) continue;
        if (n == 0 || strcmp(s[n - 1].name, method) != 0) {
            double *xs = numbers(p, length(cuts)), *ys = numbers(p, length(cuts));
            if (n == MOST || !xs || !ys) return;
            s[n++] = (series){method, 0, xs, ys};
        }
        ((double *)s[n - 1].x)[s[n - 1].n] = x;
        ((double *)s[n - 1].y)[s[n - 1].n++] = y;
    }
    if (n > 0)
        plot_chart(p, &(chart){title, "parameters left", key, .log_x = true, .log_y = log_y, .s = s,
                               .n = n});
}

static void depth_curves(page *p, const cJSON *curves)
{
    enum { MOST = 12 };
    series s[MOST];
    size_t n = 0;
    const cJSON *at, *point;
    cJSON_ArrayForEach(at, curves)
    {
        const cJSON *points = item_objects(p, at, "points");
        double *x = numbers(p, length(points)), *y = numbers(p, length(points));
        size_t k = 0;
        if (n == MOST || !x || !y) break;
        cJSON_ArrayForEach(point, points)
        {
            x[k] = item_number(p, point, "exact");
            y[k++] = item_number(p, point, "error");
        }
        s[n++] = (series){item_string(p, at, "kind"), k, x, y};
    }
    if (n > 0)
        plot_chart(p, &(chart){"Attention layers left, by what replaces the others",
                               "exact attention layers", "relative error", .s = s, .n = n});
}

/* ---- words ----------------------------------------------------------------------------------- */

static void theorems(page *p, const cJSON *list)
{
    number v;
    const cJSON *t;
    if (length(list) == 0) return;
    page_put(p, "<h3>Which theorem applies, and what blocks the others</h3><div class=\"wide\">"
                "<table><tr><th></th><th>theorem</th><th>method</th><th>hypothesis</th>"
                "<th class=\"n\">value</th><th class=\"n\">limit</th><th class=\"n\">fails by</th>"
                "</tr>\n");
    cJSON_ArrayForEach(t, list)
    {
        const bool holds = item_truth(p, t, "holds") == PARE_TRUE;
        const double factor = item_number(p, t, "factor");
        page_put(p, "<tr><td>");
        page_tag(p, "span", holds ? "chip" : "chip warn", holds ? "holds" : "fails");
        page_put(p, "</td>");
        page_tag(p, "td", NULL, item_string(p, t, "theorem"));
        page_tag(p, "td", NULL, item_string(p, t, "method"));
        page_put(p, "<td>");
        page_text(p, item_string(p, t, "hypothesis"));
        page_put(p, " <span class=\"dim\">(");
        page_text(p, item_string(p, t, "where"));
        page_put(p, ")</span></td>");
        page_tag(p, "td", "n", show_value(v, item_number(p, t, "value")));
        page_tag(p, "td", "n", show_value(v, item_number(p, t, "limit")));
        page_tag(p, "td", "n", isnan(factor) ? "" : show_value(v, factor));
        page_put(p, "</tr>\n");
    }
    page_put(p, "</table></div>\n");
}

/* Each direction in one line: what can be cut, at what price, and what blocks the rest. */
static void directions(page *p, const cJSON *list, const char *metric)
{
    static const char *const word[] = {"no", "yes", "not tried"};
    static const char *const cls[] = {"chip warn", "chip", "chip dim"};
    number v;
    const cJSON *t;
    if (length(list) == 0) return;
    page_put(p, "<h3>What can be cut, and at what price</h3><div class=\"wide\"><table><tr>"
                "<th>direction</th><th></th><th>cut, made here and thrown away</th><th>left</th>"
                "<th class=\"n\">proven error</th><th class=\"n\">measured</th>");
    if (metric) page_tag(p, "th", "n", metric);
    page_put(p, "</tr>\n");
    cJSON_ArrayForEach(t, list)
    {
        const pare_truth k = item_truth(p, t, "can");
        page_put(p, "<tr>");
        page_tag(p, "td", NULL, item_string(p, t, "direction"));
        page_put(p, "<td>");
        page_tag(p, "span", cls[k], word[k]);
        page_put(p, "</td><td><code>");
        page_text(p, item_string(p, t, "cut"));
        page_put(p, "</code></td>");
        page_tag(p, "td", NULL, item_string(p, t, "left"));
        page_tag(p, "td", "n", show_bound(v, item_number(p, t, "proven")));
        page_tag(p, "td", "n", show_value(v, item_number(p, t, "measured")));
        if (metric) page_tag(p, "td", "n", show_value(v, item_number(p, t, "metric")));
        page_put(p, "</tr>\n<tr><td></td><td colspan=\"6\" class=\"small dim\">Why not more: ");
        page_text(p, item_string(p, t, "why"));
        page_put(p, "</td></tr>\n");
    }
    page_put(p, "</table></div>\n");
}

static void verdict(page *p, const cJSON *depth)
{
    const char *word = item_string(p, depth, "verdict");
    if (!word) return;
    page_put(p, "<p>Attention: ");
    page_tag(p, "span", strncmp(word, "not", 3) == 0 ? "chip warn" : "chip", word);
    page_put(p, " <span class=\"small\">");
    page_text(p, item_string(p, depth, "why"));
    page_put(p, "</span></p>\n");
}

static void untold(page *p, const cJSON *list)
{
    const cJSON *at;
    if (length(list) == 0) return;
    page_put(p, "<h3>What was not looked at, and why</h3><ul class=\"small\">\n");
    cJSON_ArrayForEach(at, list)
    {
        page_tag(p, "li", NULL, cJSON_GetStringValue(at));
    }
    page_put(p, "</ul>\n");
}

void card_probe(page *p, const item *it)
{
    static const char *const head_keys[] = {"eta",        "b2",      "v2",      "range_mean",
                                            "tv_uniform", "entropy", "k_sound", "k_measured"};
    static const char *const head_names[] = {"eta",          "|B|",     "|V|",       "logit range",
                                             "from uniform", "entropy", "K, proven", "K, seen"};
    static const char *const layer_keys[] = {"x_max", "f_over_x", "not_rank_one", "predicted_lost"};
    static const char *const layer_names[] = {"largest input", "|f| / |x|", "not rank one",
                                              "importance"};
    const cJSON *probe = item_object(p, it->json, "probe"), *depth = item_object(p, probe, "depth");
    const char *model = item_string(p, item_object(p, it->json, "input"), "path");
    number v;
    page_card(p, it->id, "probe", model ? model : it->path);
    page_unverified(p, "a probe has no certificate: its figures are what the file says");
    page_put(p, "<p class=\"small dim\">%s parameters",
             show_count(v, item_number(p, probe, "parameters")));
    if (item_string(p, it->json, "data")) {
        page_put(p, ", looked at on ");
        page_text(p, item_string(p, it->json, "data"));
    }
    page_put(p, "</p>\n");
    if (item_string(p, it->json, "kind")) page_tag(p, "p", NULL, item_string(p, it->json, "kind"));
    directions(p, item_objects(p, probe, "directions"),
               item_string(p, item_object(p, probe, "metric"), "name"));
    verdict(p, depth);
    page_put(p, "<div class=\"grid\">\n");
    cut_curves(p, item_objects(p, probe, "cuts"), "Width: largest difference against size",
               "largest", true);
    cut_curves(p, item_objects(p, probe, "cuts"), "Width: the metric against size", "metric",
               false);
    depth_curves(p, item_objects(p, depth, "curves"));
    spectra(p, item_objects(p, probe, "stream"));
    page_put(p, "</div>\n<h3>Layer by layer</h3>\n<div class=\"grid\">\n");
    weights_heat(p, item_objects(p, probe, "weights"), "Operator norms", "norm");
    weights_heat(p, item_objects(p, probe, "weights"), "Effective ranks", "effective_rank");
    table_of(p, "Attention heads", item_objects(p, depth, "heads"), head_keys, head_names, 8);
    table_of(p, "Attention layers", item_objects(p, depth, "layers"), layer_keys, layer_names, 4);
    page_put(p, "</div>\n");
    theorems(p, item_objects(p, probe, "theorems"));
    untold(p, item_strings(p, probe, "untold"));
    page_source(p, it->path, item_string(p, it->json, "line"), "the file");
    page_card_end(p);
}
