/* child_process.c - the program at the other end of a pipe. One socket is its standard input and
 * output: a program that has ended is then an error and no signal. */
#include "child_process.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { GOODBYE_MS = 2000, NAP_MS = 5, STEP = 1 << 16 };

/* ---- how it ended ---------------------------------------------------------------------------- */

/* Waits a while for the process; false when it is still there. */
static bool wait_for_exit(child *c, int ms, int *how)
{
    for (int waited = 0; waited <= ms; waited += NAP_MS) {
        const pid_t got = waitpid(c->pid, how, WNOHANG);
        if (got == c->pid || (got < 0 && errno != EINTR)) {
            c->pid = -1;
            return true;
        }
        const struct timespec t = {0, NAP_MS * 1000000};
        nanosleep(&t, NULL);
    }
    return false;
}

/* The error for a program that has ended. */
static pare_status fail_ended(child *c, pare_err *err)
{
    int how = 0;
    if (!wait_for_exit(c, GOODBYE_MS, &how))
        return pare_fail(err, PARE_ERR_IO, "the program closed its output: %s", c->name);
    if (WIFSIGNALED(how))
        return pare_fail(err, PARE_ERR_IO, "the program was ended by signal %d: %s", WTERMSIG(how),
                         c->name);
    return pare_fail(err, PARE_ERR_IO, "the program ended with exit code %d: %s", WEXITSTATUS(how),
                     c->name);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

void child_start_clock(child *c)
{
    c->deadline = pare_seconds() + c->timeout;
}

/* Waits until something of `events` can be done. */
static pare_status await(child *c, short events, short *ready, pare_err *err)
{
    for (;;) {
        const double left = c->deadline - pare_seconds();
        struct pollfd p = {.fd = c->fd, .events = events};
        const int ms = left > 1e6 ? 1000000000 : (int)(left * 1000) + 1;
        const int n = left > 0 ? poll(&p, 1, ms) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return pare_fail(err, PARE_ERR_IO, "poll: %s", strerror(errno));
        if (n == 0 && pare_seconds() >= c->deadline)
            return pare_fail(err, PARE_ERR_IO, "no answer within %g s (timeout): %s", c->timeout,
                             c->name);
        if (n == 0) continue;
        *ready = p.revents;
        return PARE_OK;
    }
}

pare_status child_send(child *c, const void *data, size_t bytes, early *e, pare_err *err)
{
    const uint8_t *at = data;
    while (bytes > 0) {
        short ready = 0;
        const pare_status st = await(c, POLLOUT | POLLIN, &ready, err);
        if (st) return st;
        if (ready & (POLLIN | POLLHUP | POLLERR)) { /* keeps what comes in early */
            if (e->capacity - e->have < STEP) {
                const size_t capacity = 2 * e->capacity + 2 * STEP;
                uint8_t *const more = realloc(e->data, capacity);
                if (!more) return pare_no_memory(err);
                e->data = more;
                e->capacity = capacity;
            }
            const ssize_t got = recv(c->fd, e->data + e->have, e->capacity - e->have, MSG_DONTWAIT);
            if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
                return fail_ended(c, err);
            if (got > 0) e->have += (size_t)got;
        }
        if (!(ready & POLLOUT)) continue;
        const ssize_t n = send(c->fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n < 0) return fail_ended(c, err);
        at += n;
        bytes -= (size_t)n;
    }
    return PARE_OK;
}

pare_status child_receive(child *c, void *to, size_t bytes, early *e, pare_err *err)
{
    uint8_t *at = to;
    const size_t early_bytes = e->have - e->used;
    const size_t first = early_bytes < bytes ? early_bytes : bytes;
    if (first) memcpy(at, e->data + e->used, first);
    e->used += first;
    if (e->used == e->have) e->used = e->have = 0;
    at += first;
    bytes -= first;
    while (bytes > 0) {
        short ready = 0;
        const pare_status st = await(c, POLLIN, &ready, err);
        if (st) return st;
        const ssize_t n = recv(c->fd, at, bytes, MSG_DONTWAIT);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n <= 0) return fail_ended(c, err);
        at += n;
        bytes -= (size_t)n;
    }
    return PARE_OK;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* Its standard input and output, and a group of its own: what it has started ends with it. */
static int spawn(child *c, int fd, const char *command)
{
    char sh[] = "sh", flag[] = "-c", *const text = strdup(command);
    char *argv[] = {sh, flag, text, NULL};
    posix_spawn_file_actions_t act;
    posix_spawnattr_t how;
    int rc = text ? posix_spawn_file_actions_init(&act) : ENOMEM;
    if (rc == 0) {
        rc = posix_spawnattr_init(&how);
        if (rc == 0) {
            rc = posix_spawn_file_actions_adddup2(&act, fd, STDIN_FILENO);
            if (rc == 0) rc = posix_spawn_file_actions_adddup2(&act, fd, STDOUT_FILENO);
            if (rc == 0) rc = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
            if (rc == 0) rc = posix_spawnattr_setpgroup(&how, 0);
            if (rc == 0) rc = posix_spawn(&c->pid, "/bin/sh", &act, &how, argv, environ);
            posix_spawnattr_destroy(&how);
        }
        posix_spawn_file_actions_destroy(&act);
    }
    free(text);
    return rc;
}

pare_status child_start(child *c, const char *command, double timeout, pare_err *err)
{
    int pair[2];
    *c = (child){.pid = -1, .fd = -1, .timeout = timeout};
    snprintf(c->name, sizeof c->name, "%s", command);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return pare_fail(err, PARE_ERR_IO, "cannot start %s: %s", c->name, strerror(errno));
    const int rc = spawn(c, pair[1], command);
    close(pair[1]);
    c->fd = pair[0];
    if (rc == 0) return PARE_OK;
    child_stop(c);
    if (rc == ENOMEM) return pare_no_memory(err);
    return pare_fail(err, PARE_ERR_IO, "cannot start %s: %s", c->name, strerror(rc));
}

void child_stop(child *c)
{
    const pid_t group = c->pid;
    int how;
    /* Closed at once, the socket would be reset under a program that still has to read. */
    if (c->fd >= 0) shutdown(c->fd, SHUT_WR);
    if (group > 0 && !wait_for_exit(c, GOODBYE_MS, &how)) {
        kill(-group, SIGKILL);
        while (waitpid(group, &how, 0) < 0 && errno == EINTR) continue;
        c->pid = -1;
    }
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}
