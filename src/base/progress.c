/* A progress bar for a terminal. */
#include <pare/base.h>

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

void pare_bar_init(pare_bar *bar, FILE *out)
{
    *bar = (pare_bar){.out = out, .tty = isatty(fileno(out)) == 1, .start = pare_seconds()};
}

/* Time still needed if the rest goes as the part so far did. */
static void eta_text(char buf[32], double elapsed, double part)
{
    const double left = part > 0 ? elapsed * (1 - part) / part : INFINITY;
    if (!(left < 100 * 3600.0)) {
        snprintf(buf, 32, "--:--");
        return;
    }
    const unsigned s = (unsigned)(left + 0.5);
    if (s >= 3600)
        snprintf(buf, 32, "%u:%02u:%02u", s / 3600, s / 60 % 60, s % 60);
    else
        snprintf(buf, 32, "%02u:%02u", s / 60, s % 60);
}

/* Characters that fit: a longer line would wrap, and each drawing would leave one behind. */
static int room(FILE *out)
{
    struct winsize w;
    return ioctl(fileno(out), TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1 : INT_MAX;
}

void pare_bar_show(void *self, const char *what, uint64_t done, uint64_t total)
{
    pare_bar *bar = self;
    if (!bar->tty) return;
    const double now = pare_seconds();
    if (strncmp(bar->what, what, sizeof bar->what - 1) != 0) { /* a new task, a new clock */
        snprintf(bar->what, sizeof bar->what, "%s", what);
        bar->start = now;
    } else if (bar->drawn && done < total && now - bar->last < REDRAW_WAIT) {
        return;
    }
    const double part = total > 0 ? (double)done / (double)total : 1;
    char cells[BAR_CELLS + 1] = {0}, eta[32], line[256];
    for (int i = 0; i < BAR_CELLS; i++) cells[i] = i < (int)(part * BAR_CELLS) ? '#' : '.';
    eta_text(eta, now - bar->start, part);
    snprintf(line, sizeof line, "%s [%s] %3d%% eta %s%s%s", bar->what, cells, (int)(100 * part),
             eta, *bar->note ? "  " : "", bar->note);
    for (char *at = line; *at; at++) /* a label may be made of a name from a file */
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7F) *at = '?';
    fprintf(bar->out, "\r%.*s\033[K", room(bar->out), line);
    fflush(bar->out);
    bar->drawn = true;
    bar->last = now;
}

void pare_bar_clear(pare_bar *bar)
{
    if (!bar->drawn) return;
    fputs("\r\033[K", bar->out);
    fflush(bar->out);
    bar->drawn = false;
}
