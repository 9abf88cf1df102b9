/* interrupt.c - how a command stops on a signal (interrupt.h): on the first one it finishes its
 * step and saves; on the second one it removes its temporary files and ends at once. The library
 * keeps no state, so the command has to know the names of these files. */
#include <pare/cert.h>
#include "interrupt.h"

#include <limits.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

enum { MOST_NAMES = 64, PATIENCE = 2 };
static char names[MOST_NAMES][PATH_MAX];
static volatile sig_atomic_t nnames;       /* those that are complete */
static volatile sig_atomic_t first_signal; /* the signal that set the flag */
static volatile sig_atomic_t at_once;
volatile int interrupt_flag;

/* Only unlink, write, alarm, sigaction and raise: all are allowed here. A name without a file does
 * no harm. */
static void on_signal(int signal_number)
{
    if (!first_signal && !at_once) {
        first_signal = signal_number;
        interrupt_flag = 1;
        alarm(PATIENCE);
        return;
    }
    for (int i = 0; i < nnames; i++) unlink(names[i]);
    struct sigaction usual = {.sa_handler = SIG_DFL};
    (void)sigaction(signal_number, &usual, NULL);
    raise(signal_number); /* comes when this function returns */
}

/* Most work ends before anybody sees this. */
static void on_alarm(int unused)
{
    static const char line[] = "\r\033[Kstopping; press Ctrl-C again to end at once\n";
    (void)unused;
    if (isatty(STDERR_FILENO) && write(STDERR_FILENO, line, sizeof line - 1) < 0) {
        /* nobody reads it */
    }
}

/* A name that is too long for the system names no file. */
static void add_name(const char *out, const char *suffix, bool part, bool temp)
{
    const long pid = (long)getpid();
    if (nnames == MOST_NAMES) return;
    char middle[40] = "", end[40] = "";
    if (part) snprintf(middle, sizeof middle, PARE_PART_SUFFIX, pid);
    if (temp) snprintf(end, sizeof end, PARE_TEMP_SUFFIX, pid, 0);
    const int n = snprintf(names[nnames], PATH_MAX, "%s%s%s%s", out, suffix, middle, end);
    if (n > 0 && n < PATH_MAX) nnames = nnames + 1;
}

/* What is ignored (nohup) stays ignored. */
void interrupt_watch(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction old, act = {.sa_handler = on_signal};
    struct sigaction later = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigemptyset(&act.sa_mask);
    sigemptyset(&later.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(signals[i], &act, NULL);
    (void)sigaction(SIGALRM, &later, NULL);
}

void interrupt_at_once(void)
{
    at_once = 1;
}

void interrupt_end(void)
{
    if (!first_signal) return;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    (void)sigaction(first_signal, &usual, NULL);
    raise(first_signal);
}

void interrupt_cleans(const char *out)
{
    add_name(out, "", true, false);
    add_name(out, "", true, true);
    add_name(out, "", false, true);
    add_name(out, ".cert.json", true, false);
    add_name(out, ".cert.json", true, true);
    add_name(out, ".cert.json", false, true);
    add_name(out, ".run.json", false, true);
}

void interrupt_cleans_also(const char *out)
{
    add_name(out, "", false, true);
}

void interrupt_file_size(void)
{
    (void)signal(SIGXFSZ, SIG_IGN);
}
