/* plot_bars.c - bars on one logarithmic scale (plot.h). */
#include "plot.h"

#include <math.h>

/* Whole powers of ten around what is finite and positive. */
typedef struct decades {
    double low, high; /* exponents */
} decades;

/* False: a sentence stands in place of the bar. */
static bool draw_bar(page *p, const bar *b, decades d)
{
    number v;
    const bool vacuous = b->vacuous || isinf(b->value);
    const double percent = isinf(b->value)   ? 100
                           : !(b->value > 0) ? 0
                                             : 100 * (log10(b->value) - d.low) / (d.high - d.low);
    page_put(p, "<div class=\"tier%s\"", vacuous ? " vacuous" : "");
    if (b->note) page_put(p, " title=\"%s\"", b->note);
    page_put(p, "><span>%s</span>", b->label);
    if (b->none && isinf(b->value)) {
        page_put(p, "<span class=\"none\">%s</span></div>\n", b->none);
        return false;
    }
    page_put(
        p, "<span class=\"track\"><span class=\"fill\" style=\"width:%.2f%%;background:", percent);
    if (b->claimed)
        page_put(p, "var(--dim)");
    else
        page_put(p, "var(--c%u)", b->color % 8);
    page_put(p, "\"></span></span><span class=\"v\">%s</span></div>\n",
             b->measured ? show_value(v, b->value) : show_bound(v, b->value));
    return true;
}

void plot_bars(page *p, const bar *rows, size_t n)
{
    enum { MAX_TICKS = 5 };
    decades d = {INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        if (!(rows[i].value > 0) || isinf(rows[i].value)) continue;
        d.low = fmin(d.low, floor(log10(rows[i].value) - 0.3));
        d.high = fmax(d.high, ceil(log10(rows[i].value) + 1e-9));
    }
    if (d.low > d.high) d = (decades){-1, 0};
    if (d.high - d.low < 1) d.high = d.low + 1;
    bool any = false;
    page_put(p, "<div class=\"tiers\">\n");
    for (size_t i = 0; i < n; i++) any |= draw_bar(p, &rows[i], d);
    if (any) {
        const double span = d.high - d.low, step = ceil(span / (MAX_TICKS - 1));
        page_put(p, "<div class=\"ticks\">");
        if (fmod(span, step) == 0)
            for (double e = d.low; e <= d.high; e += step) page_put(p, "<span>1e%.0f</span>", e);
        else
            page_put(p, "<span>1e%.0f</span><span>1e%.0f</span>", d.low, d.high);
        page_put(p, "</div>\n");
    }
    page_put(p, "</div>\n");
}
