/* progress.c - several steps as one range of progress, and a progress bar for a terminal. */
#include "support.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define BAR_CELLS   24
#define REDRAW_WAIT 0.1 /* seconds: faster is flicker */

double pare_seconds(void)
{
    struct timespec t;
    PARE_ASSERT(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* Parts of the whole: fine enough for steps within steps within steps. */
#define WHOLE ((uint64_t)1 << 40)

/* Reports `share` of the current step. Progress never goes back, even where a step is made of loops
 * that do not know of one another. */
static void report_share(pare_steps *s, const char *what, double share)
{
    s->most = fmin(fmax(s->at + share * s->span, s->most), 1);
    const pare_status st = pare_progress(s->whole, s->what ? s->what : what,
                                         (uint64_t)(s->most * (double)WHOLE), WHOLE, NULL);
    (void)st; /* the worker looks at the stop flag itself */
}

static void report_step(void *self, const char *what, uint64_t done, uint64_t total)
{
    report_share(self, what, total > 0 ? (double)done / (double)total : 1);
}

pare_steps pare_steps_of(const pare_exec *x, double total)
{
    return (pare_steps){.whole = x, .exec = pare_exec_silent(x), .left = total};
}

void pare_steps_add(pare_steps *s, double weight)
{
    s->left += weight;
}

const pare_exec *pare_step(pare_steps *s, const char *what, double weight)
{
    s->at += s->span;
    s->left -= s->now;
    s->now = weight;
    s->span = s->left > weight ? (1 - s->at) * weight / s->left : 1 - s->at;
    s->what = what;
    if (s->whole && s->whole->progress) {
        s->exec.progress = report_step;
        s->exec.self = s;
        if (what) report_share(s, what, 0);
    }
    return &s->exec;
}

/* ---- the bar --------------------------------------------------------------------------------- */

void pare_bar_init(pare_bar *bar, FILE *out)
{
    *bar = (pare_bar){.out = out, .tty = isatty(fileno(out)) == 1, .clock = pare_seconds};
}

double pare_bar_left(const pare_bar *bar)
{
    const double done = bar->part - bar->first, took = bar->last - bar->start;
    return done > 0 && took > 0 ? took * (1 - bar->part) / done : INFINITY;
}

static void draw(pare_bar *bar, const char *what)
{
    char cells[BAR_CELLS + 1] = {0}, eta[32] = "--:--", line[256];
    for (int i = 0; i < BAR_CELLS; i++) cells[i] = i < (int)(bar->part * BAR_CELLS) ? '#' : '.';
    const double left = bar->part < 1 ? pare_bar_left(bar) : 0;
    const unsigned s = left < 100 * 3600.0 ? (unsigned)(left + 0.5) : 0;
    if (s >= 3600)
        snprintf(eta, sizeof eta, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    else if (left < 100 * 3600.0)
        snprintf(eta, sizeof eta, "%02u:%02u", s / 60, s % 60);
    snprintf(line, sizeof line, "%.48s [%s] %3d%% eta %s%s%s", what, cells, (int)(100 * bar->part),
             eta, *bar->note ? "  " : "", bar->note);
    for (char *at = line; *at; at++) /* a label may be made of a name from a file */
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7F) *at = '?';
    /* Cut to the terminal: a longer line would wrap, and each drawing would leave one behind. */
    struct winsize w;
    const bool known = ioctl(fileno(bar->out), TIOCGWINSZ, &w) == 0 && w.ws_col > 1;
    fprintf(bar->out, "\r%.*s\033[K", known ? w.ws_col - 1 : INT_MAX, line);
    fflush(bar->out);
    bar->drawn = true;
}

void pare_bar_show(void *self, const char *what, uint64_t done, uint64_t total)
{
    pare_bar *bar = self;
    if (!bar->tty) return;
    const double now = bar->clock(), part = total > 0 ? (double)done / (double)total : 1;
    if (!bar->begun) {
        bar->begun = true;
        bar->first = bar->part = part;
        bar->start = now;
    } else if (part > bar->part) {
        bar->part = part;
    }
    if (bar->drawn && bar->part < 1 && now - bar->last < REDRAW_WAIT) return;
    bar->last = now;
    draw(bar, what);
}

void pare_bar_clear(pare_bar *bar)
{
    if (!bar->drawn) return;
    fputs("\r\033[K", bar->out);
    fflush(bar->out);
    bar->drawn = false;
}
