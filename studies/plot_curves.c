/* plot_curves.c - curves of a study: as CSV, and as plain SVG panels, one for each table and data.
 * An axis is logarithmic where all its numbers are above 0 and they span a factor of 30. */
#include "study.h"
#include <math.h>
#include <string.h>

pare_status curves_csv(pare_out *o, const study *r, pare_err *err)
{
    pare_status st = pare_out_printf(o, err, "table,data,curve,x,y\n");
    for (size_t i = 0; !st && i < r->ncurves; i++) {
        const figure_curve *const c = &r->curves[i];
        for (size_t k = 0; !st && k < c->n; k++)
            st = pare_out_printf(o, err, "\"%s\",\"%s\",\"%s\",%.9g,%.9g\n", c->table, c->data,
                                 c->what, c->x[k], c->y[k]);
    }
    return st;
}

/* ---- panels ---------------------------------------------------------------------------------- */

enum { WIDE = 460, TALL = 260, LEFT = 60, RIGHT = 290, TOP = 30, BASE = 220, ACROSS = 2 };

typedef struct axis {
    double low, high;
    bool logarithmic;
} axis;

static bool same_panel(const figure_curve *a, const figure_curve *b)
{
    return strcmp(a->table, b->table) == 0 && strcmp(a->data, b->data) == 0;
}

static axis axis_of(const study *r, size_t first, bool vertical)
{
    axis a = {INFINITY, -INFINITY, false};
    for (size_t i = first; i < r->ncurves && same_panel(&r->curves[i], &r->curves[first]); i++)
        for (size_t k = 0; k < r->curves[i].n; k++) {
            const double v = vertical ? r->curves[i].y[k] : r->curves[i].x[k];
            if (!isfinite(v)) continue;
            a.low = fmin(a.low, v);
            a.high = fmax(a.high, v);
        }
    if (!(a.high >= a.low)) a = (axis){0, 1, false};
    a.logarithmic = a.low > 0 && a.high > 30 * a.low;
    if (a.high == a.low) a.high = a.low + 1;
    return a;
}

/* 0 .. 1 along the axis. */
static double axis_position(const axis *a, double v)
{
    if (!a->logarithmic) return (v - a->low) / (a->high - a->low);
    return log(v / a->low) / log(a->high / a->low);
}

static pare_status draw_curve(pare_out *o, const figure_curve *c, const axis *x, const axis *y,
                              size_t at, pare_err *err)
{
    static const char *const color[] = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
                                        "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"};
    const char *const paint = color[at % (sizeof color / sizeof *color)];
    pare_status st =
        pare_out_printf(o, err, "<polyline fill=\"none\" stroke=\"%s\" points=\"", paint);
    for (size_t k = 0; !st && k < c->n; k++)
        if (isfinite(c->y[k]) && isfinite(c->x[k]))
            st = pare_out_printf(o, err, "%.1f,%.1f ",
                                 LEFT + (RIGHT - LEFT) * axis_position(x, c->x[k]),
                                 BASE - (BASE - TOP) * axis_position(y, c->y[k]));
    if (st) return st;
    return pare_out_printf(o, err, "\"/>\n<text x=\"%d\" y=\"%zu\" fill=\"%s\">%s</text>\n",
                           RIGHT + 8, (size_t)TOP + 8 + 14 * at, paint, c->what);
}

static pare_status draw_frame(pare_out *o, const figure_curve *c, const axis *x, const axis *y,
                              pare_err *err)
{
    return pare_out_printf(o, err,
                           "<text x=\"%d\" y=\"16\" font-weight=\"bold\">%s: %s</text>\n"
                           "<path d=\"M%d %d H%d M%d %d V%d\" stroke=\"#777\" fill=\"none\"/>\n"
                           "<text x=\"%d\" y=\"%d\">%.3g</text>\n"
                           "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.3g</text>\n"
                           "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.2g</text>\n"
                           "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.2g</text>\n",
                           LEFT, c->table, c->data, LEFT, BASE, RIGHT, LEFT, BASE, TOP, LEFT,
                           BASE + 16, x->low, RIGHT, BASE + 16, x->high, LEFT - 4, BASE, y->low,
                           LEFT - 4, TOP + 8, y->high);
}

static pare_status draw_panel(pare_out *o, const study *r, size_t first, size_t panel, size_t *next,
                              pare_err *err)
{
    const axis x = axis_of(r, first, false), y = axis_of(r, first, true);
    pare_status st = pare_out_printf(o, err, "<g transform=\"translate(%zu %zu)\">\n",
                                     panel % ACROSS * WIDE, panel / ACROSS * TALL);
    if (!st) st = draw_frame(o, &r->curves[first], &x, &y, err);
    size_t i = first;
    for (; !st && i < r->ncurves && same_panel(&r->curves[i], &r->curves[first]); i++)
        st = draw_curve(o, &r->curves[i], &x, &y, i - first, err);
    *next = i;
    return st ? st : pare_out_printf(o, err, "</g>\n");
}

pare_status curves_svg(pare_out *o, const study *r, pare_err *err)
{
    size_t panels = 0, at = 0, panel = 0;
    for (size_t i = 0; i < r->ncurves; i++)
        panels += i == 0 || !same_panel(&r->curves[i], &r->curves[i - 1]);
    pare_status st = pare_out_printf(
        o, err,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
        "font-family=\"sans-serif\" font-size=\"11\" fill=\"#555\">\n<title>%s</title>\n",
        ACROSS * WIDE, (panels + ACROSS - 1) / ACROSS * TALL, r->name);
    while (!st && at < r->ncurves) st = draw_panel(o, r, at, panel++, &at, err);
    return st ? st : pare_out_printf(o, err, "</svg>\n");
}
