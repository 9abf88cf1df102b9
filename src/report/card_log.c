/* card_log.c - the card of a training log: how loss and metric changed (items.h). */
#include "items.h"
#include "plot.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 9, SETTING = 0, RUN, STEP, LOSS, RATE, NORM, VAL, TEST, BEST, MAX_RUNS = 8 };

/* The numbers of a line; an empty field is nan. False: it is no line of numbers. */
static bool read_fields(const char *line, double v[COLUMNS])
{
    for (size_t i = 0; i < COLUMNS; i++) {
        char *end = (char *)line;
        if (!isspace((unsigned char)*line))
            v[i] = strtod(line, &end); /* it would skip a line's end */
        if (end == line) v[i] = NAN;
        line = end;
        if (*line++ != (i + 1 < COLUMNS ? ',' : '\n')) return false;
    }
    return true;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* One series for each setting and run, of one column. */
static void plot_column(page *p, const char *log, const char *title, const char *y, size_t column,
                        bool log_y, double y_limit)
{
    series s[MAX_RUNS];
    double key[MAX_RUNS][2], v[COLUMNS];
    size_t n = 0, lines = 1;
    for (const char *at = log; (at = strchr(at, '\n')); at++) lines++;
    for (const char *line = log; *line; line = next_line(line)) {
        if (*line == '#' || !read_fields(line, v) || isnan(v[STEP]) || isnan(v[column])) continue;
        size_t i = 0;
        while (i < n && (key[i][0] != v[SETTING] || key[i][1] != v[RUN])) i++;
        if (i == MAX_RUNS) continue;
        if (i == n) {
            double *xs = page_alloc(p, lines, sizeof *xs), *ys = page_alloc(p, lines, sizeof *ys);
            const char *name = page_format(p, "setting %.0f, run %.0f", v[SETTING], v[RUN]);
            if (!xs || !ys) return;
            key[n][0] = v[SETTING];
            key[n][1] = v[RUN];
            s[n++] = (series){.name = name, .x = xs, .y = ys};
        }
        ((double *)s[i].x)[s[i].n] = v[STEP];
        ((double *)s[i].y)[s[i].n++] = v[column];
    }
    if (n > 0)
        plot_chart(p, &(chart){title, "training step", y, .log_y = log_y, .y_limit = y_limit,
                               .s = s, .n = n});
}

/* What stands behind "# key: " up to one of `ends`; NULL: nothing does. */
static const char *header_value(page *p, const char *log, const char *key, const char *ends)
{
    const char *const line = page_format(p, "# %s: ", key), *at = strstr(log, line);
    if (!at || !*line) return NULL;
    at += strlen(line);
    return page_format(p, "%.*s", (int)strcspn(at, ends), at);
}

void card_log(page *p, const item *it)
{
    const char *const metric = header_value(p, it->log, "metric", ",\n");
    const char *const name = metric ? metric : "metric";
    /* All lines are numbers but comments and the names of the columns, and a last line that was cut
     * off by a kill. */
    double v[COLUMNS];
    size_t number_of = 1;
    for (const char *line = it->log; *line && !p->w.st; line = next_line(line), number_of++)
        if (*line != '#' && strncmp(line, "setting,", 8) != 0 && strchr(line, '\n') &&
            !read_fields(line, v))
            pare_work_fail(&p->w, PARE_ERR_INPUT, "%s: line %zu must be %d numbers", it->path,
                           number_of, COLUMNS);
    page_card(p,
              &(card){it->id, it->number, "Training", it->path, "chip dim", "not verified",
                      "How loss and validation metric changed, as the log reports them.", false});
    page_put(p, "<div class=\"grid\">\n");
    plot_column(p, it->log, "Loss on the training part", "loss", LOSS, true, 0);
    plot_column(p, it->log, page_format(p, "%s on the validation part", name), name, VAL, false,
                metric_limit(metric));
    page_put(p, "</div>\n");
    page_source(p, it->path, header_value(p, it->log, "command", "\n"), "the log");
    page_card_end(p);
}
