/* The box of a training log: how the loss fell (items.h). */
#include "items.h"
#include "plot.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 9, SETTING = 0, RUN, STEP, LOSS, RATE, NORM, VAL, TEST, BEST, MOST_RUNS = 8 };

/* The numbers of a line; an empty field is nan. False: it is no line of numbers. */
static bool fields(const char *line, double v[COLUMNS])
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

static size_t lines_of(const char *text)
{
    size_t n = 1;
    while ((text = strchr(text, '\n'))) n++, text++;
    return n;
}

static const char *next_line(const char *line)
{
    const char *end = strchr(line, '\n');
    return end ? end + 1 : line + strlen(line);
}

/* All but comments and the names of the columns; a last line that was cut off by a kill is let
 * pass. */
static void check_lines(page *p, const item *it)
{
    static const char names[] = "setting,";
    double v[COLUMNS];
    size_t at = 1;
    for (const char *line = it->log; *line && !p->st; line = next_line(line), at++)
        if (*line != '#' && strncmp(line, names, sizeof names - 1) != 0 && strchr(line, '\n') &&
            !fields(line, v))
            p->st = pare_fail(p->err, PARE_ERR_INPUT, "%s: line %zu must be %d numbers", it->path,
                              at, COLUMNS);
}

/* One series for each setting and run, of one column. */
static void curve(page *p, const char *log, const char *title, const char *y, size_t column,
                  bool log_y)
{
    series s[MOST_RUNS];
    double key[MOST_RUNS][2], v[COLUMNS];
    const size_t most = lines_of(log);
    size_t n = 0;
    for (const char *line = log; *line; line = next_line(line)) {
        if (*line == '#' || !fields(line, v) || isnan(v[STEP]) || isnan(v[column])) continue;
        size_t i = 0;
        while (i < n && (key[i][0] != v[SETTING] || key[i][1] != v[RUN])) i++;
        if (i == MOST_RUNS) continue;
        if (i == n) {
            double *xs = page_alloc(p, most, sizeof *xs), *ys = page_alloc(p, most, sizeof *ys);
            const char *name = page_words(p, "setting %.0f, run %.0f", v[SETTING], v[RUN]);
            if (!xs || !ys) return;
            key[n][0] = v[SETTING];
            key[n][1] = v[RUN];
            s[n++] = (series){name, 0, xs, ys};
        }
        ((double *)s[i].x)[s[i].n] = v[STEP];
        ((double *)s[i].y)[s[i].n++] = v[column];
    }
    if (n > 0) plot_chart(p, &(chart){title, "step", y, .log_y = log_y, .s = s, .n = n});
}

static const char *command(page *p, const char *log)
{
    static const char key[] = "# command: ";
    const char *at = strstr(log, key);
    if (!at) return NULL;
    at += sizeof key - 1;
    return page_words(p, "%.*s", (int)strcspn(at, "\n"), at);
}

void card_log(page *p, const item *it)
{
    check_lines(p, it);
    page_card(p, it->id, "training", it->path);
    page_unverified(p, "the curves are what the log says");
    page_put(p, "<div class=\"grid\">\n");
    curve(p, it->log, "Loss", "loss", LOSS, true);
    curve(p, it->log, "Metric on the validation part", "validation", VAL, false);
    page_put(p, "</div>\n");
    page_source(p, it->path, command(p, it->log), "the log");
    page_card_end(p);
}
