/* Lines and points as SVG (plot.h). */
#include "plot.h"

#include <math.h>

enum { WIDTH = 360, HEIGHT = 230, LEFT = 48, RIGHT = 12, TOP = 10, BOTTOM = 38 };

/* A linear axis ends here, so that sums and differences of its values are finite. */
#define LARGEST 1e300
/* Narrower than this, relative and absolute, an axis shows one value. */
#define NARROW   1e-12
#define SMALLEST 1e-290

typedef struct axis {
    bool log;
    double low, high; /* of the value, or of its logarithm */
} axis;

static double on(const axis *a, double v)
{
    if (a->log) return v > 0 ? log10(v) : NAN;
    return fabs(v) <= LARGEST ? v : NAN;
}

/* Room around the values; a single value gets an axis that is wide enough to have ticks. */
static void widen(axis *a)
{
    const double scale = fmax(fabs(a->low), fabs(a->high)), width = a->high - a->low;
    const bool one = !(width > NARROW * scale && width > SMALLEST);
    const double margin = !one ? 0.04 * width : a->log || scale < SMALLEST ? 0.5 : 0.05 * scale;
    a->low -= margin;
    a->high += margin;
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
    widen(&a);
    return a;
}

/* Where a value of the axis stands, t being the value or its logarithm. */
static double place(const axis *a, double t, bool of_x)
{
    const double part = (t - a->low) / (a->high - a->low);
    return of_x ? LEFT + part * (WIDTH - LEFT - RIGHT)
                : HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM);
}

static double at_x(const axis *a, double v)
{
    return place(a, on(a, v), true);
}

static double at_y(const axis *a, double v)
{
    return place(a, on(a, v), false);
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
    const double at = place(a, t, of_x);
    show_value(v, a->log ? pow(10, t) : t);
    if (of_x)
        page_put(p,
                 "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
                 "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
                 at, at, TOP, HEIGHT - BOTTOM, at, HEIGHT - BOTTOM + 14, v);
    else
        page_put(p,
                 "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                 "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                 LEFT, WIDTH - RIGHT, at, at, LEFT - 5, at + 4, v);
}

/* Whole multiples of the step, counted: a sum t += step need not move where t is large. */
static void ticks(page *p, const axis *a, bool of_x)
{
    enum { MOST = 9 };
    const double step = tick_step(a), first = ceil(a->low / step), last = floor(a->high / step);
    for (int k = 0; k < MOST && first + k <= last; k++) tick(p, a, (first + k) * step, of_x);
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
            if (seen) page_put(p, "%s%.1f %.1f", pen ? "L" : "M", x, y);
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
