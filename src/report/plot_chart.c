/* plot_chart.c - lines and points as SVG (plot.h).
 *
 * No two words of a picture overlap: the left margin is as wide as the longest tick of the y axis,
 * the name of the y axis stands above the plot, a tick of the x axis or a label of a point that
 * would touch another one is left out. Widths of words are estimated from above (EM a letter). */
#include "plot.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 380, HEIGHT = 250, RIGHT = 14, TOP = 30, BOTTOM = 42, MAX_TICKS = 9, STYLES = 8 };
#define EM      7.4  /* pixels a letter takes at most at 11 pixels */
#define LETTERS 14.0 /* pixels a line takes */

/* A linear axis ends here, so that sums and differences of its values are finite. */
#define LARGEST 1e300
/* Narrower than this, relative and absolute, an axis shows one value. */
#define NARROW   1e-12
#define SMALLEST 1e-290

typedef struct axis {
    bool log, of_x;
    double low, high; /* of the value, or of its logarithm */
    double from, to;  /* where they stand in the picture */
    size_t n;         /* ticks */
    double at[MAX_TICKS];
    number word[MAX_TICKS];
} axis;

double metric_limit(const char *metric)
{
    return metric && (strcmp(metric, "auc") == 0 || strcmp(metric, "accuracy") == 0) ? 1 : 0;
}

/* ---- axes ------------------------------------------------------------------------------------ */

/* The value or its logarithm; nan where the axis cannot show it. */
static double axis_value(const axis *a, double v)
{
    if (a->log) return v > 0 ? log10(v) : NAN;
    return fabs(v) <= LARGEST ? v : NAN;
}

/* A step of 1, 2 or 5 times a power of ten that gives about four ticks; whole powers on a
 * logarithmic axis. */
static double tick_step(const axis *a)
{
    const double want = (a->high - a->low) / 4;
    if (a->log) return fmax(1, ceil(want));
    const double ten = pow(10, floor(log10(want)));
    return want <= 1.5 * ten   ? ten
           : want <= 3.5 * ten ? 2 * ten
           : want <= 7.5 * ten ? 5 * ten
                               : 10 * ten;
}

static axis fit_axis(const chart *c, bool of_x, bool log)
{
    axis a = {.log = log, .of_x = of_x, .low = INFINITY, .high = -INFINITY};
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->s[i].n; k++) {
            const double other = of_x ? c->s[i].y[k] : c->s[i].x[k];
            const double v = axis_value(&a, of_x ? c->s[i].x[k] : c->s[i].y[k]);
            if (!isfinite(v) || !isfinite(other)) continue;
            a.low = fmin(a.low, v);
            a.high = fmax(a.high, v);
        }
    /* Less than a power of ten wide: a logarithm shows nothing more. */
    if (log && a.low <= a.high && a.high - a.low < 1) return fit_axis(c, of_x, false);
    if (a.low > a.high) a.low = 0, a.high = 1;
    const double limit = of_x || c->y_limit == 0 ? INFINITY : axis_value(&a, c->y_limit);
    const bool below = a.high <= limit;
    if (log && a.high - a.low >= 1) { /* whole powers of ten: no point beyond the last tick */
        a.low = floor(a.low + 1e-9);
        a.high = ceil(a.high - 1e-9);
    } else { /* a margin; a single value gets an axis that is wide enough to have ticks */
        const double scale = fmax(fabs(a.low), fabs(a.high)), width = a.high - a.low;
        const bool one = !(width > NARROW * scale && width > SMALLEST);
        const double margin = !one ? 0.04 * width : a.log || scale < SMALLEST ? 0.5 : 0.05 * scale;
        a.low -= margin;
        a.high += margin;
    }
    if (below && a.high > limit) a.high = limit;
    if (of_x && c->from_zero && !log && a.low > 0) {
        a.low = 0;
        a.high = ceil(a.high / tick_step(&a)) * tick_step(&a); /* no point beyond the last tick */
    }
    return a;
}

/* Pixels of t, the value or its logarithm. */
static double position(const axis *a, double t)
{
    return a->from + (t - a->low) / (a->high - a->low) * (a->to - a->from);
}

/* Pixels of a value; nan where the axis cannot show it. */
static double position_of(const axis *a, double v)
{
    return position(a, axis_value(a, v));
}

/* 10,000 and 1e7: as people write it, without "e+07". */
static void format_tick(number buf, double v)
{
    if (fabs(v) >= 1000 && fabs(v) < 1e6 && v == floor(v) && v > 0) {
        show_count(buf, v);
        return;
    }
    show_value(buf, v);
    char *const e = strchr(buf, 'e');
    if (!e) return;
    char *from = e + 1, *to = e + 1;
    if (*from == '-') *to++ = *from;
    from += *from == '-' || *from == '+';
    while (*from == '0' && from[1]) from++;
    memmove(to, from, strlen(from) + 1);
}

/* Whole multiples of the step, counted: a sum t += step need not move where t is large. */
static void find_ticks(axis *a)
{
    const double step = tick_step(a), first = ceil(a->low / step - 1e-9),
                 last = floor(a->high / step + 1e-9);
    for (int k = 0; k < MAX_TICKS && first + k <= last; k++, a->n++) {
        a->at[a->n] = (first + k) * step;
        format_tick(a->word[a->n], a->log ? pow(10, a->at[a->n]) : a->at[a->n]);
    }
}

static double word_width(const char *word)
{
    return EM * (double)strlen(word);
}

/* A logarithmic scale is named, in as many letters as there is space for. */
static const char *scale_name(const axis *a, const char *name, double space)
{
    static const char *const words[] = {" (logarithmic)", " (log)"};
    for (size_t i = 0; a->log && i < 2; i++)
        if (word_width(name) + word_width(words[i]) <= space) return words[i];
    return "";
}

/* ---- marks ----------------------------------------------------------------------------------- */

static unsigned style_of(const series *s, size_t index)
{
    return (s->style_index ? s->style_index - 1 : (unsigned)index) % STYLES;
}

/* Disc, square, triangle, diamond, cross, triangle on its head, plus, flat bar: around (x, y). */
static void draw_mark(page *p, double x, double y, unsigned style_index, bool hollow)
{
    static const char *const shape[STYLES] = {
        "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",
        "m-3-3h6v6h-6z",
        "m0-4l4 7h-8z",
        "m0-4.4l4.4 4.4l-4.4 4.4l-4.4-4.4z",
        "m-3.4-3.4l6.8 6.8m0-6.8l-6.8 6.8",
        "m0 4l4-7h-8z",
        "m-4 0h8m-4-4v8",
        "m-4-1.6h8v3.2h-8z",
    };
    /* An outline goes around a filled mark at the same place. */
    page_put(p,
             "<path class=\"mark\" transform=\"translate(%.1f %.1f) scale(%.1f)\" d=\"M0 0%s\" "
             "style=\"stroke:var(--c%u);stroke-width:1.2;fill:",
             x, y, hollow ? 1.8 : 1.0, shape[style_index], style_index);
    if (hollow || style_index == 4 || style_index == 6)
        page_put(p, "none\"");
    else
        page_put(p, "var(--c%u)\"", style_index);
}

static void begin_line(page *p, unsigned style_index)
{
    static const char *const dashes[STYLES] = {"none",        "7 3",  "2 3", "9 3 2 3",
                                               "5 2 1 2 1 2", "12 4", "4 4", "1 2"};
    page_put(p, "<path class=\"series\" style=\"stroke:var(--c%u);stroke-dasharray:%s\" d=\"",
             style_index, dashes[style_index]);
}

/* ---- labels of points ------------------------------------------------------------------------ */

typedef struct box {
    double x0, y0, x1, y1;
} box;
typedef struct boxes {
    box *v;
    size_t n;
} boxes;

/* Right, left, above or below of the point, where there is space; else nowhere. */
static void draw_label(page *p, boxes *taken, double x, double y, const char *word, double left)
{
    const double w = word_width(word), h = LETTERS;
    const box side[] = {{x + 9, y - h / 2, x + 9 + w, y + h / 2},
                        {x - 9 - w, y - h / 2, x - 9, y + h / 2},
                        {x - w / 2, y - 9 - h, x + w / 2, y - 9},
                        {x - w / 2, y + 9, x + w / 2, y + 9 + h}};
    for (size_t i = 0; i < 4; i++) {
        const box b = side[i];
        bool free = b.x0 >= left && b.x1 <= WIDTH && b.y0 >= TOP - 4 && b.y1 <= HEIGHT - BOTTOM;
        for (size_t k = 0; free && k < taken->n; k++) {
            const box *const t = &taken->v[k];
            free = !(b.x0 < t->x1 && t->x0 < b.x1 && b.y0 < t->y1 && t->y0 < b.y1);
        }
        if (!free) continue;
        taken->v[taken->n++] = b;
        page_put(p, "<text class=\"ink\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", b.x0, b.y1 - 3, word);
        return;
    }
}

static void draw_labels(page *p, const chart *c, const axis *ax, const axis *ay)
{
    size_t most = 0;
    for (size_t i = 0; i < c->n; i++) most += 2 * c->s[i].n;
    boxes taken = {page_alloc(p, most, sizeof *taken.v), 0};
    if (!taken.v) return;
    /* No label on a mark. */
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->s[i].n; k++) {
            const double x = position_of(ax, c->s[i].x[k]), y = position_of(ay, c->s[i].y[k]);
            if (isfinite(x) && isfinite(y)) taken.v[taken.n++] = (box){x - 7, y - 7, x + 7, y + 7};
        }
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; c->s[i].label && k < c->s[i].n; k++) {
            const double x = position_of(ax, c->s[i].x[k]), y = position_of(ay, c->s[i].y[k]);
            if (isfinite(x) && isfinite(y)) draw_label(p, &taken, x, y, c->s[i].label[k], ax->from);
        }
}

/* ---- series ---------------------------------------------------------------------------------- */

static void draw_series(page *p, const chart *c, size_t i, const axis *ax, const axis *ay)
{
    const series *const s = &c->s[i];
    const unsigned style_index = style_of(s, i);
    if (!c->points) {
        bool pen = false;
        begin_line(p, style_index);
        for (size_t k = 0; k < s->n; k++) {
            const double x = position_of(ax, s->x[k]), y = position_of(ay, s->y[k]);
            const bool seen = isfinite(x) && isfinite(y);
            if (seen) page_put(p, "%s%.1f %.1f", pen ? "L" : "M", x, y);
            pen = seen;
        }
        page_put(p, "\"/>\n");
    }
    if (s->n > 60 || c->bare) return;
    for (size_t k = 0; k < s->n; k++) {
        number vx, vy;
        const double x = position_of(ax, s->x[k]), y = position_of(ay, s->y[k]);
        if (!isfinite(x) || !isfinite(y)) continue;
        draw_mark(p, x, y, style_index, s->hollow);
        page_put(p, "><title>%s%s%s: %s, %s</title></path>\n", s->label ? s->label[k] : "",
                 s->label ? " " : "", s->name, show_value(vx, s->x[k]), show_value(vy, s->y[k]));
    }
}

static void draw_legend(page *p, const chart *c)
{
    page_put(p, "<div class=\"legend\">");
    for (size_t i = 0; i < c->n; i++) {
        const unsigned style_index = style_of(&c->s[i], i);
        page_put(
            p, "<span><svg width=\"30\" height=\"16\" viewBox=\"0 0 30 16\" aria-hidden=\"true\">");
        if (!c->points) {
            begin_line(p, style_index);
            page_put(p, "M0 8H30\"/>");
        }
        if (!c->bare && c->s[i].n <= 60) {
            draw_mark(p, 15, 8, style_index, c->s[i].hollow);
            page_put(p, "/>");
        }
        page_put(p, "</svg>%s</span>", c->s[i].name);
    }
    page_put(p, "</div>\n");
}

void plot_chart(page *p, const chart *c)
{
    axis ax = fit_axis(c, true, c->log_x), ay = fit_axis(c, false, c->log_y);
    double widest = 20; /* tick of the y axis */
    find_ticks(&ay);
    find_ticks(&ax);
    for (size_t k = 0; k < ay.n; k++) widest = fmax(widest, word_width(ay.word[k]));
    ax.from = widest + 8;
    ax.to = WIDTH - RIGHT;
    ay.from = HEIGHT - BOTTOM;
    ay.to = TOP;
    page_put(p,
             "<figure><figcaption>%s</figcaption>\n<svg class=\"plot\" viewBox=\"0 0 %d %d\" "
             "role=\"img\" aria-label=\"%s\">\n",
             c->title, WIDTH, HEIGHT, c->title);
    /* Grid lines and ticks. */
    double free_from = 0;
    for (size_t k = 0; k < ax.n; k++) {
        const double x = position(&ax, ax.at[k]), half = word_width(ax.word[k]) / 2;
        const double middle = fmin(x, WIDTH - half);
        page_put(p, "<line class=\"axis\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", x, x, TOP,
                 HEIGHT - BOTTOM);
        if (middle - half >= free_from) {
            page_put(p, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", middle,
                     HEIGHT - BOTTOM + 15, ax.word[k]);
            free_from = middle + half + 4;
        }
        page_put(p, "\n");
    }
    for (size_t k = 0; k < ay.n; k++) {
        const double y = position(&ay, ay.at[k]);
        page_put(p,
                 "<line class=\"axis\" x1=\"%.1f\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>"
                 "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                 ax.from, WIDTH - RIGHT, y, y, ax.from - 5, y + 4, ay.word[k]);
    }
    for (size_t i = 0; i < c->n; i++) draw_series(p, c, i, &ax, &ay);
    draw_labels(p, c, &ax, &ay);
    if (*c->y)
        page_put(p, "<text x=\"2\" y=\"12\">%s%s</text>", c->y, scale_name(&ay, c->y, WIDTH - 2));
    if (*c->x)
        page_put(p, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s%s</text>\n",
                 (ax.from + WIDTH - RIGHT) / 2, HEIGHT - 7, c->x,
                 scale_name(&ax, c->x, WIDTH - RIGHT - ax.from));
    page_put(p, "</svg>\n");
    draw_legend(p, c);
    page_put(p, "</figure>\n");
}
