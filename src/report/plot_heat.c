/* A table in colours (plot.h). */
#include "plot.h"

#include <math.h>

typedef struct range {
    double low, high;
} range;

static range of_cells(const heat *h, size_t first, size_t step)
{
    range r = {INFINITY, -INFINITY};
    for (size_t i = first; i < h->rows * h->cols; i += step)
        if (isfinite(h->v[i])) {
            r.low = fmin(r.low, h->v[i]);
            r.high = fmax(r.high, h->v[i]);
        }
    return r;
}

/* 0..70 percent of the hot colour: the ink stays readable. */
static double heat_of(range r, double v)
{
    if (!(r.high > r.low)) return 0;
    const double part = (v / 2 - r.low / 2) / (r.high / 2 - r.low / 2); /* 2 |v| may overflow */
    return isfinite(part) ? 70 * part : 0;
}

static void cell(page *p, const heat *h, size_t i, size_t j)
{
    number buf;
    const double v = h->v[i * h->cols + j];
    if (isnan(v)) {
        page_put(p, "<td></td>");
        return;
    }
    const range r = h->by_column ? of_cells(h, j, h->cols) : of_cells(h, 0, 1);
    page_put(p, "<td style=\"background:color-mix(in oklab,var(--hot) %.0f%%,var(--box))\">%s</td>",
             isinf(v) ? 70 : heat_of(r, v), isinf(v) ? "inf" : show_value(buf, v));
}

void plot_heat(page *p, const heat *h)
{
    page_put(p, "<figure class=\"wide\">");
    page_tag(p, "figcaption", NULL, h->title);
    page_put(p, "<table class=\"heat\"><tr><th></th>");
    for (size_t j = 0; j < h->cols; j++) page_tag(p, "th", NULL, h->col[j]);
    page_put(p, "</tr>\n");
    for (size_t i = 0; i < h->rows; i++) {
        page_put(p, "<tr>");
        page_tag(p, "th", NULL, h->row[i]);
        for (size_t j = 0; j < h->cols; j++) cell(p, h, i, j);
        page_put(p, "</tr>\n");
    }
    page_put(p, "</table></figure>\n");
}
