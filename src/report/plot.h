/* plot.h - the pictures a report is made of. Private to the module.
 *
 * They are plain HTML and SVG written here: a few shapes on two kinds of axes need no library, and
 * a page without a script prints, works from a file and can be tested as text. Series differ
 * in the shape of their marks and the dashes of their lines as well as in color. */
#ifndef PARE_SRC_REPORT_PLOT_H
#define PARE_SRC_REPORT_PLOT_H
#include "page.h"

/* Bars on one logarithmic scale: the tiers of a certificate. */
typedef struct bar {
    const char *label, *note; /* note: shown when a mouse rests on it; NULL: none */
    double value;             /* +inf: no bound */
    unsigned color;           /* 0..7 */
    bool measured;            /* evidence: rounded to nearest, not up */
    bool vacuous;             /* larger than the largest output */
    bool claimed;             /* nobody has proven it again: drawn without a color */
    const char *none;         /* sentence in place of the bar where value is +inf */
} bar;
void plot_bars(page *p, const bar *rows, size_t n);

/* Lines, or points alone, over common axes. Points that are not finite, not positive on a
 * logarithmic axis, or beyond 1e300 on a linear one, are left out. */
typedef struct series {
    const char *name;
    size_t n;
    const double *x, *y;
    const char *const *label; /* beside each point; NULL: none */
    bool hollow;              /* the outline of the marks alone */
    unsigned style_index;     /* color, mark and dashes: 1 + number; 0: by its place */
} series;
typedef struct chart {
    const char *title, *x, *y; /* names of the axes, with their units */
    bool log_x, log_y, points;
    bool bare;      /* lines without a mark at each point */
    bool from_zero; /* the x axis begins at 0 */
    double y_limit; /* no value can be larger, so the axis ends there; 0: no such limit */
    const series *s;
    size_t n;
} chart;
void plot_chart(page *p, const chart *c);
/* Where an accuracy or an area ends: 1; 0 for a metric without a limit. */
double metric_limit(const char *metric);

/* Cells in the color of their value within their column (by_column) or the whole. nan: empty. */
typedef struct heatmap {
    const char *title;
    size_t rows, cols;
    const char *const *row, *const *col;
    const double *v;
    bool by_column;
} heatmap;
void plot_heatmap(page *p, const heatmap *h);
#endif
