/* card_probe.c - the card of a probe: what each cut would cost, and the model layer by layer
 * (items.h). */
#include "items.h"
#include "plot.h"

#include <math.h>
#include <string.h>

static double *new_numbers(page *p, size_t n)
{
    return page_alloc(p, n, sizeof(double));
}

static size_t list_length(const cJSON *list)
{
    return list ? (size_t)cJSON_GetArraySize(list) : 0;
}

/* ---- heat maps ------------------------------------------------------------------------------- */

/* One row for each entry of the list, one column for each key. */
static void list_heatmap(page *p, const char *title, const cJSON *list, const char *const *keys,
                         const char *const *names, size_t cols)
{
    const size_t rows = list_length(list);
    double *v = new_numbers(p, rows * cols);
    const char **label = page_alloc(p, rows, sizeof *label);
    const cJSON *at;
    size_t i = 0;
    if (rows == 0 || !v || !label) return;
    cJSON_ArrayForEach(at, list)
    {
        const double block = item_number(p, at, "block"), head = item_number(p, at, "head");
        label[i] = isnan(head) ? page_format(p, "layer %.0f", block)
                               : page_format(p, "layer %.0f head %.0f", block, head);
        for (size_t j = 0; j < cols; j++) v[i * cols + j] = item_number(p, at, keys[j]);
        i++;
    }
    plot_heatmap(p, &(heatmap){title, rows, cols, label, names, v, .by_column = true});
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
    g->row[g->rows] = h < 0 ? page_format(p, "layer %.0f ffn", block)
                            : page_format(p, "layer %.0f head %.0f", block, h);
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
static void weights_heatmap(page *p, const cJSON *weights, const char *title, const char *key)
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
    double *v = new_numbers(p, g->rows * g->cols);
    if (!v || g->rows == 0) return;
    for (size_t i = 0; i < g->rows * g->cols; i++) v[i] = NAN;
    cJSON_ArrayForEach(w, weights)
    {
        const char *name = item_string(p, w, "name");
        if (!name || isnan(item_number(p, w, "block"))) continue;
        const size_t i = row_of(p, g, w), j = col_of(g, name);
        if (i < g->rows && j < g->cols) v[i * g->cols + j] = item_number(p, w, key);
    }
    plot_heatmap(p, &(heatmap){title, g->rows, g->cols, g->row, g->col, v, .by_column = false});
}

/* ---- curves ---------------------------------------------------------------------------------- */

/* How the stream's spectrum falls at a few places. */
static void stream_spectra(page *p, const cJSON *stream)
{
    enum { MAX_SERIES = 8 };
    series s[MAX_SERIES];
    size_t n = 0, seen = 0;
    const size_t places = list_length(stream), step = (places + MAX_SERIES - 1) / MAX_SERIES;
    const cJSON *at;
    cJSON_ArrayForEach(at, stream)
    {
        double *y;
        if (seen++ % (step ? step : 1) != 0 || n == MAX_SERIES) continue;
        const size_t axes = item_numbers(&y, p, at, "axes");
        double *const x = new_numbers(p, axes);
        if (!x || !y) return;
        for (size_t k = 0; k < axes; k++) x[k] = (double)(k + 1);
        const char *const place = item_string(p, at, "place");
        if (axes == 0) continue;
        s[n] = (series){.name = place ? place : "", .n = axes, .x = x, .y = y};
        n++;
    }
    if (n > 0)
        plot_chart(p, &(chart){"Spectrum of the residual stream",
                               "principal direction, 1 = largest", "standard deviation along it",
                               .log_y = true, .bare = true, .s = s, .n = n});
}

/* Parameters left against one figure of each cut that was tried. */
static bool cut_curves(page *p, const cJSON *cuts, const char *key, chart c)
{
    enum { MAX_SERIES = 12 };
    series s[MAX_SERIES];
    size_t n = 0;
    const cJSON *at;
    cJSON_ArrayForEach(at, cuts)
    {
        const char *method = item_string(p, at, "method");
        const double x = item_number(p, at, "parameters"), y = item_number(p, at, key);
        if (!method || isnan(x) || isnan(y)) continue;
        if (n == 0 || strcmp(s[n - 1].name, method) != 0) {
            double *xs = new_numbers(p, list_length(cuts)), *ys = new_numbers(p, list_length(cuts));
            if (n == MAX_SERIES || !xs || !ys) return false;
            s[n++] = (series){.name = method, .x = xs, .y = ys};
        }
        ((double *)s[n - 1].x)[s[n - 1].n] = x;
        ((double *)s[n - 1].y)[s[n - 1].n++] = y;
    }
    c.x = "parameters of the result";
    c.log_x = true;
    c.s = s;
    c.n = n;
    if (n > 0) plot_chart(p, &c);
    return n > 0;
}

/* ---- words ----------------------------------------------------------------------------------- */

typedef struct meaning {
    const char *word, *means;
} meaning;

static const meaning width_methods[] = {
    {"auto", "the best linear map, layer by layer, weighted by the gradients of the outputs"},
    {"exact", "drop only directions that the inputs never use: no error but rounding"},
    {"lowrank", "project the residual stream on an affine subspace (Theorem 4.2, Shirzad 2024)"},
    {"leverage", "lowrank, and keep the hidden units of largest leverage (Proposition 4.3)"},
    {"cluster", "replace nodes by cluster centers (Theorem 4.4)"},
    {"jl", "random projection of queries and keys (Theorem 3.3)"},
    {"qk", "best low-rank form of queries and keys on the data"},
    {"slice", "PCA of the residual stream, as SliceGPT does it"},
    {"svd", "truncated singular value decomposition of the weights, without data"},
    {NULL, NULL},
};

static const meaning replacement_kinds[] = {
    {"zero", "the attention is removed"},
    {"const", "the mean output of the layer, one row for all tokens"},
    {"uniform", "the average of all values a token sees"},
    {"constq", "attention with one fixed query a head"},
    {"meanq", "attention with the mean query of the input"},
    {"linear", "a linear map of each token by itself"},
    {"affmix", "a linear map of the token and of the average it sees"},
    {"pool", "a linear map of the token and of what fixed queries gather"},
    {NULL, NULL},
};

static const meaning column_names[] = {
    {"operator norm", "largest singular value of a weight matrix"},
    {"effective rank", "how many singular values matter (exponential of their entropy)"},
    {"h0, z0, h1", "residual stream before layer 0, after its attention, before layer 1"},
    {"eta", "largest entry of the head's weights"},
    {"|B|, |V|", "operator norms of the query-key form and of the value-output map"},
    {"logit range", "mean over tokens of the largest minus the smallest attention logit"},
    {"from uniform", "mean total variation of the attention weights from uniform ones"},
    {"entropy", "of the attention weights over the log of the number of keys: 1 is uniform"},
    {"K, proven / K, measured",
     "contraction: by what factor the head shrinks the differences between tokens"},
    {"|f| / |x|", "size of the attention's output relative to its input"},
    {"not rank one", "share of the output that differs between tokens"},
    {"importance", "predicted share of the layer's effect that a uniform attention loses"},
    {NULL, NULL},
};

/* Those words of the list that an entry of `by` has as its `key`; by NULL: all. */
static void explain(page *p, const char *title, const meaning *list, const cJSON *by,
                    const char *key)
{
    page_fold(p, title, NULL);
    page_put(p, "<dl class=\"terms\">\n");
    for (; list->word; list++) {
        const cJSON *at;
        bool used = !by;
        cJSON_ArrayForEach(at, by)
        {
            const char *const name = item_string(p, at, key);
            used |= name && strcmp(name, list->word) == 0 && !pare_json_has(at, "refused");
        }
        if (!used) continue;
        page_tag(p, "dt", NULL, list->word);
        page_tag(p, "dd", NULL, list->means);
    }
    page_put(p, "</dl>\n");
    page_fold_end(p);
}

static void put_theorems(page *p, const cJSON *list)
{
    static const char *const word[] = {"fails", "holds", "not decided"};
    static const char *const cls[] = {"chip warn", "chip", "chip dim"};
    number v;
    const cJSON *at;
    table t;
    if (list_length(list) == 0) return;
    page_fold(p, "Which theorem applies, and what blocks the others",
              page_format(p, "%zu hypotheses", list_length(list)));
    table_begin(p, &t, "hypothesis|theorem|method|verdict|#value|#limit|#fails by|", NULL);
    cJSON_ArrayForEach(at, list)
    {
        const pare_truth holds = item_truth(p, at, "holds");
        const double factor = item_number(p, at, "factor");
        table_row(p, &t);
        table_cell(p, &t, "what");
        page_put(p, "%s <span class=\"dim\">(%s)</span>", item_string(p, at, "hypothesis"),
                 item_string(p, at, "where"));
        table_cell_end(p);
        table_text(p, &t, item_string(p, at, "theorem"));
        table_text(p, &t, item_string(p, at, "method"));
        table_tag(p, &t, "span", cls[holds], word[holds]);
        table_text(p, &t, show_value(v, item_number(p, at, "value")));
        table_text(p, &t, show_value(v, item_number(p, at, "limit")));
        table_text(p, &t, isnan(factor) ? "" : page_format(p, "%sx", show_value(v, factor)));
        table_row_end(p);
    }
    table_end(p);
    page_fold_end(p);
}

static void error_cell(page *p, table *t, double v, bool bound)
{
    number buf;
    table_text(p, t,
               isnan(v)   ? ""
               : isinf(v) ? "no bound (inf)"
               : bound    ? show_bound(buf, v)
                          : show_value(buf, v));
}

/* Each direction in one line: what can be cut, at what price, and what blocks the rest. */
static void put_directions(page *p, const cJSON *list, const char *metric)
{
    static const char *const word[] = {"no", "yes", "not tried"};
    static const char *const cls[] = {"chip warn", "chip", "chip dim"};
    const cJSON *at;
    table t;
    if (list_length(list) == 0) return;
    page_put(p, "<h3>What can be cut, and at what price</h3>\n");
    if (metric && strchr(metric, '|')) metric = "metric"; /* it would end the name of the column */
    table_begin(p, &t,
                metric ? page_format(p,
                                     "direction|possible|cut that was tried|what is left|"
                                     "#error, proven|#error, measured|#%s|why not more|",
                                     metric)
                       : "direction|possible|cut that was tried|what is left|#error, proven|"
                         "#error, measured|why not more|",
                NULL);
    cJSON_ArrayForEach(at, list)
    {
        const pare_truth k = item_truth(p, at, "can");
        const char *const cut = item_string(p, at, "cut");
        table_row(p, &t);
        table_text(p, &t, item_string(p, at, "direction"));
        table_tag(p, &t, "span", cls[k], word[k]);
        table_cell(p, &t, "try");
        if (cut && *cut) page_tag(p, "code", NULL, cut);
        table_cell_end(p);
        table_text(p, &t, item_string(p, at, "left"));
        error_cell(p, &t, item_number(p, at, "proven"), true);
        error_cell(p, &t, item_number(p, at, "measured"), false);
        if (metric) error_cell(p, &t, item_number(p, at, "metric"), false);
        table_cell(p, &t, "small");
        page_text(p, item_string(p, at, "why"));
        table_cell_end(p);
        table_row_end(p);
    }
    table_end(p);
}

/* ---- the card -------------------------------------------------------------------------------- */

/* "width, depth and weights can be cut" */
static const char *sentence(page *p, const cJSON *probe)
{
    const char *can = "";
    const cJSON *at;
    size_t n = 0;
    cJSON_ArrayForEach(at, item_objects(p, probe, "directions"))
    {
        const char *const name = item_string(p, at, "direction");
        if (item_truth(p, at, "can") == PARE_TRUE && name)
            can = page_format(p, "%s%s%s", can, n++ ? ", " : "", name);
    }
    number v;
    return page_format(p, "%s parameters. %s%s.",
                       show_count(v, item_number(p, probe, "parameters")),
                       n ? "Cuts are possible in: " : "No cut was tried or found possible", can);
}

static void put_curves(page *p, const cJSON *probe, const cJSON *depth, const char *metric)
{
    const cJSON *const cuts = item_objects(p, probe, "cuts");
    page_put(p, "<div class=\"grid\">\n");
    bool width = cut_curves(p, cuts, "largest",
                            (chart){.title = "Width: error against size",
                                    .y = "largest change of an output entry",
                                    .log_y = true});
    width |= cut_curves(
        p, cuts, "metric",
        (chart){.title = page_format(p, "Width: %s against size", metric ? metric : "metric"),
                .y = metric ? metric : "metric",
                .y_limit = metric_limit(metric)});
    const cJSON *const curves = item_objects(p, depth, "curves");
    enum { MAX_SERIES = 12 };
    series s[MAX_SERIES];
    size_t n = 0;
    const cJSON *at, *point;
    cJSON_ArrayForEach(at, curves)
    {
        const cJSON *points = item_objects(p, at, "points");
        double *x = new_numbers(p, list_length(points)), *y = new_numbers(p, list_length(points));
        size_t k = 0;
        if (n == MAX_SERIES || !x || !y) break;
        cJSON_ArrayForEach(point, points)
        {
            x[k] = item_number(p, point, "exact");
            y[k++] = item_number(p, point, "error");
        }
        const char *const kind = item_string(p, at, "kind");
        s[n] = (series){.name = kind ? kind : "", .n = k, .x = x, .y = y};
        n++;
    }
    if (n > 0)
        plot_chart(p, &(chart){"Depth: error against attention layers that stay",
                               "attention layers that stay exact", "relative error of the outputs",
                               .s = s, .n = n});
    const bool kinds = n > 0;
    stream_spectra(p, item_objects(p, probe, "stream"));
    page_put(p, "</div>\n");
    if (width) explain(p, "What the width methods are", width_methods, cuts, "method");
    if (kinds)
        explain(p, "What replaces an attention layer", replacement_kinds,
                item_objects(p, depth, "curves"), "kind");
}

void card_probe(page *p, const item *it)
{
    const cJSON *probe = item_object(p, it->json, "probe"), *depth = item_object(p, probe, "depth");
    const char *const model = item_string(p, item_object(p, it->json, "input"), "path");
    const char *const metric = item_string(p, item_object(p, probe, "metric"), "name");
    page_card(p, &(card){it->id, it->number, "Probe", model ? model : it->path, "chip dim",
                         "not verified", sentence(p, probe), false});
    page_put(p, "<p class=\"small dim\">A probe has no certificate: its figures are what the file "
                "reports.");
    if (item_string(p, it->json, "data"))
        page_put(p, " Its inputs are those of <code>%s</code>.", item_string(p, it->json, "data"));
    page_put(p, "</p>\n");
    if (item_string(p, it->json, "kind")) page_tag(p, "p", NULL, item_string(p, it->json, "kind"));
    put_directions(p, item_objects(p, probe, "directions"), metric);
    const char *const verdict = item_string(p, depth, "verdict");
    if (verdict) {
        page_put(p, "<p>Attention: ");
        page_tag(p, "span", strncmp(verdict, "not", 3) == 0 ? "chip warn" : "chip", verdict);
        page_put(p, " <span class=\"small\">%s</span></p>\n", item_string(p, depth, "why"));
    }
    put_curves(p, probe, depth, metric);
    static const char *const head_keys[] = {"eta",        "b2",      "v2",      "range_mean",
                                            "tv_uniform", "entropy", "k_sound", "k_measured"};
    static const char *const head_names[] = {"eta",          "|B|",     "|V|",       "logit range",
                                             "from uniform", "entropy", "K, proven", "K, measured"};
    static const char *const layer_keys[] = {"x_max", "f_over_x", "not_rank_one", "predicted_lost"};
    static const char *const layer_names[] = {"largest input", "|f| / |x|", "not rank one",
                                              "importance"};
    page_fold(p, "Layer by layer: norms, ranks, attention", NULL);
    weights_heatmap(p, item_objects(p, probe, "weights"), "Operator norms", "norm");
    weights_heatmap(p, item_objects(p, probe, "weights"), "Effective ranks", "effective_rank");
    list_heatmap(p, "Attention heads", item_objects(p, depth, "heads"), head_keys, head_names, 8);
    list_heatmap(p, "Attention layers", item_objects(p, depth, "layers"), layer_keys, layer_names,
                 4);
    explain(p, "What the columns mean", column_names, NULL, NULL);
    page_fold_end(p);
    put_theorems(p, item_objects(p, probe, "theorems"));
    const cJSON *const unknown = item_strings(p, probe, "untold"), *at;
    if (list_length(unknown) > 0) {
        page_fold(p, "What was not looked at, and why", NULL);
        page_put(p, "<ul class=\"small\">\n");
        cJSON_ArrayForEach(at, unknown)
        {
            page_tag(p, "li", NULL, cJSON_GetStringValue(at));
        }
        page_put(p, "</ul>\n");
        page_fold_end(p);
    }
    page_source(p, it->path, item_string(p, it->json, "line"), "the file");
    page_card_end(p);
}
