/* Lines and points as SVG (plot.h). */
#include "plot.h"

#include <math.h>

enum { WIDTH = 360, HEIGHT = 230, LEFT = 48, RIGHT = 12, TOP = 10, BOTTOM = 38 };

typedef struct axis {
    bool log;
    double low, high; /* of the value, or of its logarithm */
} axis;

static double on(const axis *a, double v)
{
    return a->log ? (v > 0 ? log10(v) : NAN) : v;
}

static axis fit(const chart *c, bool of_x, bool log)
{
    axis a = {log, INFINITY, -INFINITY};
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->s[i].n; k++) {
            const double other = of_x ? c->s[i].y[k] : c->s[i].x[k];
            const double v = on(&a, of_x ? c->s[i].x[k] : c->s[i].y[k]);
            if (!isfinite(v) || !isfinite(other)) continue;
            a.low = fmin(a.low, v);
            a.high = fmax(a.high, v);
        }
    /* Less than a power of ten wide: a logarithm shows nothing more. */
    if (log && a.low <= a.high && a.high - a.low < 1) return fit(c, of_x, false);
    if (a.low > a.high) a.low = 0, a.high = 1;
    if (a.high - a.low < 1e-12 * (1 + fabs(a.low))) a.low -= 0.5, a.high += 0.5;
    const double room = 0.04 * (a.high - a.low);
    a.low -= room;
    a.high += room;
    return a;
}

static double at_x(const axis *a, double v)
{
    return LEFT + (on(a, v) - a->low) / (a->high - a->low) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const axis *a, double v)
{
    return HEIGHT - BOTTOM - (on(a, v) - a->low) / (a->high - a->low) * (HEIGHT - TOP - BOTTOM);
}

/* A step of 1, 2 or 5 times a power of ten that gives about four ticks; whole powers on a
 * logarithmic axis. */
static double tick_step(const axis *a)
{
    const double want = (a->high - a->low) / 4;
    if (a->log) return fmax(1, ceil(want));
    const double ten = pow(10, floor(log10(want)));
    return want <= ten ? ten : want <= 2 * ten ? 2 * ten : want <= 5 * ten ? 5 * ten : 10 * ten;
}

static void tick(page *p, const axis *a, double t, bool of_x)
{
    number v;
    const double value = a->log ? pow(10, t) : fabs(t) < 1e-12 * (a->high - a->low) ? 0 : t;
    show_value(v, value);
    if (of_x)
        page_put(p,
                 "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                 "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                 at_x(a, value), at_x(a, value), TOP, HEIGHT - BOTTOM, at_x(a, value),
                 HEIGHT - BOTTOM + 14, v);
    else
        page_put(p,
                 "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                 "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                 LEFT, WIDTH - RIGHT, at_y(a, value), at_y(a, value), LEFT - 5, at_y(a, value) + 4,
                 v);
}

static void ticks(page *p, const axis *a, bool of_x)
{
    const double step = tick_step(a);
    for (double t = ceil(a->low / step) * step; t <= a->high; t += step) tick(p, a, t, of_x);
}

static void draw(page *p, const chart *c, size_t i, const axis *ax, const axis *ay)
{
    const series *s = &c->s[i];
    if (!c->points) {
        bool pen = false;
        page_put(p, "<path class=\"series\" style=\"stroke:var(--c%zu)\" d=\"", i % 8);
        for (size_t k = 0; k < s->n; k++) {
            const double x = at_x(ax, s->x[k]), y = at_y(ay, s->y[k]);
            const bool seen = isfinite(x) && isfinite(y);
            if (seen) page_put(p, "%c%.1f %.1f", pen ? 'L' : 'M', x, y);
            pen = seen;
        }
        page_put(p, "\"/>\n");
    }
    if (s->n > 60 || c->bare) return;
    for (size_t k = 0; k < s->n; k++) {
        number vx, vy;
        const double x = at_x(ax, s->x[k]), y = at_y(ay, s->y[k]);
        if (!isfinite(x) || !isfinite(y)) continue;
        page_put(p, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.2\" style=\"fill:var(--c%zu)\"><title>",
                 x, y, i % 8);
        page_text(p, s->name);
        page_put(p, ": %s, %s</title></circle>\n", show_value(vx, s->x[k]),
                 show_value(vy, s->y[k]));
    }
}

static void legend(page *p, const chart *c)
{
    page_put(p, "<div class=\"legend\">");
    for (size_t i = 0; i < c->n; i++) {
        page_put(p, "<span><i style=\"background:var(--c%zu)\"></i>", i % 8);
        page_text(p, c->s[i].name);
        page_put(p, "</span>");
    }
    page_put(p, "</div>\n");
}

/* What the axes are; "" says nothing. */
static void names(page *p, const chart *c)
{
    if (*c->x) {
        page_put(p, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2,
                 HEIGHT - 6);
        page_text(p, c->x);
        page_put(p, "</text>");
    }
    if (*c->y) {
        page_put(p, "<text transform=\"translate(11 %d) rotate(-90)\" text-anchor=\"middle\">",
                 (HEIGHT - BOTTOM + TOP) / 2);
        page_text(p, c->y);
        page_put(p, "</text>");
    }
}

void plot_chart(page *p, const chart *c)
{
    const axis ax = fit(c, true, c->log_x), ay = fit(c, false, c->log_y);
    page_put(p, "<figure>");
    page_tag(p, "figcaption", NULL, c->title);
    page_put(p, "\n<svg class=\"plot\" viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"", WIDTH,
             HEIGHT);
    page_text(p, c->title);
    page_put(p, "\">\n");
    ticks(p, &ax, true);
    ticks(p, &ay, false);
    for (size_t i = 0; i < c->n; i++) draw(p, c, i, &ax, &ay);
    names(p, c);
    page_put(p, "</svg>\n");
    legend(p, c);
    page_put(p, "</figure>\n");
}
