/* Bars on one logarithmic scale (plot.h). */
#include "plot.h"

#include <math.h>

/* Whole powers of ten around what is finite and positive. */
typedef struct decades {
    double low, high; /* exponents */
} decades;

static decades around(const tier *rows, size_t n)
{
    decades d = {INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) {
        if (!(rows[i].value > 0) || isinf(rows[i].value)) continue;
        d.low = fmin(d.low, floor(log10(rows[i].value) - 0.3));
        d.high = fmax(d.high, ceil(log10(rows[i].value) + 1e-9));
    }
    if (d.low > d.high) d = (decades){-1, 0};
    if (d.high - d.low < 1) d.high = d.low + 1;
    return d;
}

static double percent(decades d, double v)
{
    if (isinf(v)) return 100;
    if (!(v > 0)) return 0;
    return 100 * (log10(v) - d.low) / (d.high - d.low);
}

static void row(page *p, const tier *t, decades d)
{
    number v;
    const bool vacuous = t->vacuous || isinf(t->value);
    page_put(p, "<div class=\"tier%s\"", vacuous ? " vacuous" : "");
    if (t->note) page_put(p, " title=\"%s\"", t->note);
    page_put(p, "><span>%s</span>", t->label);
    if (t->none && isinf(t->value)) {
        page_put(p, "<span class=\"none\">%s</span></div>\n", t->none);
        return;
    }
    page_put(p, "<span class=\"track\"><span class=\"fill\" style=\"width:%.2f%%;background:",
             percent(d, t->value));
    if (t->claimed)
        page_put(p, "var(--dim)");
    else
        page_put(p, "var(--c%u)", t->color % 8);
    page_put(p, "\"></span></span><span class=\"v\">%s</span></div>\n",
             t->measured ? show_value(v, t->value) : show_bound(v, t->value));
}

/* Only where there is a bar. */
static bool any_bar(const tier *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!rows[i].none || !isinf(rows[i].value)) return true;
    return false;
}

void plot_tiers(page *p, const tier *rows, size_t n)
{
    enum { MOST_TICKS = 5 };
    const decades d = around(rows, n);
    page_put(p, "<div class=\"tiers\">\n");
    for (size_t i = 0; i < n; i++) row(p, &rows[i], d);
    if (!any_bar(rows, n)) {
        page_put(p, "</div>\n");
        return;
    }
    const double span = d.high - d.low, step = ceil(span / (MOST_TICKS - 1));
    page_put(p, "<div class=\"ticks\">");
    if (fmod(span, step) == 0)
        for (double e = d.low; e <= d.high; e += step) page_put(p, "<span>1e%.0f</span>", e);
    else
        page_put(p, "<span>1e%.0f</span><span>1e%.0f</span>", d.low, d.high);
    page_put(p, "</div>\n</div>\n");
}
