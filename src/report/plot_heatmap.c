/* plot_heatmap.c - a table in colors (plot.h). */
#include "plot.h"

#include <math.h>
#include <string.h>

typedef struct range {
    double low, high;
} range;

static range range_of(const heatmap *h, size_t first, size_t step)
{
    range r = {INFINITY, -INFINITY};
    for (size_t i = first; i < h->rows * h->cols; i += step)
        if (isfinite(h->v[i])) {
            r.low = fmin(r.low, h->v[i]);
            r.high = fmax(r.high, h->v[i]);
        }
    return r;
}

/* Pixels that the table takes at most: a letter 7.8, the padding of a cell 16. */
static double table_width(const heatmap *h)
{
    double all = 0, names = 0;
    for (size_t i = 0; i < h->rows; i++) names = fmax(names, 7.8 * (double)strlen(h->row[i]));
    for (size_t j = 0; j < h->cols; j++) {
        /* A heading wraps between its words. */
        size_t word = 0;
        for (const char *at = h->col[j]; *at; at += strcspn(at, " "), at += strspn(at, " "))
            word = strcspn(at, " ") > word ? strcspn(at, " ") : word;
        for (size_t i = 0; i < h->rows; i++) {
            number buf;
            const double v = h->v[i * h->cols + j];
            const size_t n = isnan(v) ? 0 : strlen(show_value(buf, v));
            word = n > word ? n : word;
        }
        all += 7.8 * (double)word + 16;
    }
    return all + names + 16;
}

void plot_heatmap(page *p, const heatmap *h)
{
    page_put(p, "<figure class=\"heatbox\">");
    page_tag(p, "figcaption", NULL, h->title);
    page_put(p,
             "<p class=\"hint need%d\">This table has %zu columns: move it sideways to see all of "
             "them &rarr;</p>\n",
             page_need(table_width(h)), h->cols);
    page_put(p, "<div class=\"wide\" tabindex=\"0\"><table class=\"heat\"><tr><th></th>");
    for (size_t j = 0; j < h->cols; j++) page_tag(p, "th", NULL, h->col[j]);
    page_put(p, "</tr>\n");
    for (size_t i = 0; i < h->rows; i++) {
        page_put(p, "<tr>");
        page_tag(p, "th", NULL, h->row[i]);
        for (size_t j = 0; j < h->cols; j++) {
            number buf;
            const double v = h->v[i * h->cols + j];
            if (isnan(v)) {
                page_put(p, "<td></td>");
                continue;
            }
            /* 0..70 percent of the hot color: the ink stays readable. Halves: 2 |v| may
             * overflow. */
            const range r = h->by_column ? range_of(h, j, h->cols) : range_of(h, 0, 1);
            const double part = (v / 2 - r.low / 2) / (r.high / 2 - r.low / 2);
            const double hot = isinf(v) ? 70 : r.high > r.low && isfinite(part) ? 70 * part : 0;
            page_put(p,
                     "<td style=\"background:color-mix(in oklab,var(--hot) "
                     "%.0f%%,var(--box))\">%s</td>",
                     hot, isinf(v) ? "inf" : show_value(buf, v));
        }
        page_put(p, "</tr>\n");
    }
    page_put(p, "</table></div></figure>\n");
}
