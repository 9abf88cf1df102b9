/* A command that is told to stop takes its temporary files with it. The library keeps no state, so
 * the command has to know what they are called. */
#include "interrupt.h"

#include <limits.h>
#include <pare/publish.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { most_names = 64 };
static char names[most_names][PATH_MAX];
static volatile sig_atomic_t nnames; /* those that are complete */

/* Two texts in turn: the handler may come while the other is written. */
static char said[2][400];
static volatile sig_atomic_t latest = -1;

/* Only unlink, write and raise: all are allowed here. A name without a file does no harm. */
static void stop(int signal_number)
{
    const int which = latest;
    if (which >= 0 && write(STDERR_FILENO, said[which], strlen(said[which])) < 0) {
        /* nobody reads it */
    }
    for (int i = 0; i < nnames; i++) unlink(names[i]);
    raise(signal_number); /* now the default action: SA_RESETHAND */
}

/* A name that is too long for the system names no file. */
static void add(const char *out, const char *suffix, bool part, bool temp)
{
    const long pid = (long)getpid();
    if (nnames == most_names) return;
    char middle[40] = "", end[40] = "";
    if (part) snprintf(middle, sizeof middle, PARE_PART_SUFFIX, pid);
    if (temp) snprintf(end, sizeof end, PARE_TEMP_SUFFIX, pid, 0);
    const int n = snprintf(names[nnames], PATH_MAX, "%s%s%s%s", out, suffix, middle, end);
    if (n > 0 && n < PATH_MAX) nnames = nnames + 1;
}

/* What is ignored (nohup) stays ignored. */
static void handle_signals(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction old, act = {.sa_handler = stop, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&act.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(signals[i], &act, NULL);
}

void interrupt_cleans(const char *out)
{
    add(out, "", true, false);
    add(out, "", true, true);
    add(out, "", false, true);
    add(out, ".cert.json", true, false);
    add(out, ".cert.json", true, true);
    add(out, ".cert.json", false, true);
    add(out, ".run.json", false, true);
    handle_signals();
}

void interrupt_says(const char *command, const char *line)
{
    const int next = latest == 0;
    /* a bar on a terminal has no end of line */
    snprintf(said[next], sizeof said[next], "%spare %s: stopped: %s; the same command goes on\n",
             isatty(STDERR_FILENO) ? "\n" : "", command, line);
    const bool first = latest < 0;
    latest = next;
    if (first) handle_signals();
}

void interrupt_cleans_also(const char *out)
{
    add(out, "", false, true);
}

void interrupt_file_size(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
}
