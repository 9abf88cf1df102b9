/* bench_peer.c - peers: other programs that do the same work (bench.h). Each is started once and
 * answers lines, so that its runs can take turns with ours; it times itself, so that the time of
 * the pipe does not count. */
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_MS 300000 /* a peer that is silent for so long is gone */
#define GOODBYE_MS  3000

static pare_status peer_error(bench_peer *p, pare_err *err, const char *why)
{
    return pare_fail(err, PARE_ERR_IO, "peer %s: %s", p->name, why);
}

/* ---- lines ---------------------------------------------------------------------------------- */

static pare_status send_line(bench_peer *p, pare_err *err, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        const ssize_t n = send(p->fd, text, left, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return peer_error(p, err, "does not listen any more");
        text += n;
        left -= (size_t)n;
    }
    return PARE_OK;
}

/* The next line, without its end, into `to`. */
static pare_status receive_line(bench_peer *p, pare_err *err, char *to, size_t capacity)
{
    for (;;) {
        const char *end = memchr(p->line, '\n', p->have);
        if (end) {
            const size_t n = (size_t)(end - p->line);
            if (n >= capacity) return peer_error(p, err, "an answer is too long");
            memcpy(to, p->line, n);
            to[n] = '\0';
            p->have -= n + 1;
            memmove(p->line, end + 1, p->have);
            return PARE_OK;
        }
        if (p->have == sizeof p->line) return peer_error(p, err, "an answer is too long");
        struct pollfd wait = {.fd = p->fd, .events = POLLIN};
        const int ready = poll(&wait, 1, PATIENCE_MS);
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return peer_error(p, err, "does not answer");
        const ssize_t n = recv(p->fd, p->line + p->have, sizeof p->line - p->have, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return peer_error(p, err, "ended");
        p->have += (size_t)n;
    }
}

static pare_status request(bench_peer *p, pare_err *err, char *to, size_t capacity, const char *fmt,
                           ...) PARE_PRINTF(5, 6);
static pare_status request(bench_peer *p, pare_err *err, char *to, size_t capacity, const char *fmt,
                           ...)
{
    char text[4096];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text) return peer_error(p, err, "the question is too long");
    const pare_status st = send_line(p, err, text);
    return st ? st : receive_line(p, err, to, capacity);
}

/* ---- beginning and end ---------------------------------------------------------------------- */

static pare_status spawn(bench_peer *p, const char *command, pare_err *err)
{
    int pair[2];
    char sh[] = "sh", c[] = "-c";
    char *text = strdup(command);
    char *argv[] = {sh, c, text, NULL};
    posix_spawn_file_actions_t act;
    if (!text) return pare_no_memory(err);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        free(text);
        return peer_error(p, err, strerror(errno));
    }
    int rc = posix_spawn_file_actions_init(&act);
    if (rc == 0) {
        rc = posix_spawn_file_actions_adddup2(&act, pair[1], STDIN_FILENO);
        if (rc == 0) rc = posix_spawn_file_actions_adddup2(&act, pair[1], STDOUT_FILENO);
        if (rc == 0) rc = posix_spawn(&p->pid, "/bin/sh", &act, NULL, argv, environ);
        posix_spawn_file_actions_destroy(&act);
    }
    free(text);
    close(pair[1]);
    if (rc == 0) {
        p->fd = pair[0];
        return PARE_OK;
    }
    close(pair[0]);
    return peer_error(p, err, strerror(rc));
}

pare_status bench_peer_start(bench_peer *p, const char *command, bool cpu, pare_err *err)
{
    static const char hello[] = "pare-peer 1 ";
    char text[256];
    *p = (bench_peer){.fd = -1};
    snprintf(p->name, sizeof p->name, "%.60s", command);
    pare_status st = spawn(p, command, err);
    if (!st) st = receive_line(p, err, text, sizeof text);
    if (!st && (strncmp(text, hello, sizeof hello - 1) != 0 || strchr(text, ',')))
        st = peer_error(p, err, "does not begin with \"pare-peer 1 NAME\"");
    if (!st) snprintf(p->name, sizeof p->name, "%.60s", text + sizeof hello - 1);
    if (!st && cpu) st = request(p, err, text, sizeof text, "clock cpu\n");
    if (!st && cpu && strcmp(text, "ok") != 0) st = peer_error(p, err, "has no clock of CPU time");
    if (st) bench_peer_stop(p);
    return st;
}

/* The end of its input tells a peer to go. One that stays is our own child and is ended. */
void bench_peer_stop(bench_peer *p)
{
    const struct timespec nap = {0, 10000000};
    if (p->fd < 0) return;
    close(p->fd);
    p->fd = -1;
    for (int ms = 0; ms < GOODBYE_MS; ms += 10) {
        if (waitpid(p->pid, NULL, WNOHANG) != 0) return;
        nanosleep(&nap, NULL);
    }
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
}

/* ---- work ----------------------------------------------------------------------------------- */

pare_status bench_peer_load(bench_peer *p, const bench_job *j, bool *can, char label[64],
                            pare_err *err)
{
    char text[512];
    pare_status st = request(p, err, text, sizeof text, "load %d %s\n", j->exec.threads, j->dir);
    *can = false;
    if (st) return st;
    if (strncmp(text, "no", 2) == 0) return PARE_OK;
    if (strncmp(text, "ok", 2) != 0 || strchr(text, ',')) return peer_error(p, err, text);
    *can = true;
    snprintf(label, 64, "%.40s%.20s", p->name, text + 2);
    return PARE_OK;
}

pare_status bench_peer_run(bench_peer *p, size_t n, double *seconds, pare_err *err)
{
    char text[sizeof p->line];
    const pare_status st = request(p, err, text, sizeof text, "run %zu\n", n);
    if (st) return st;
    if (strncmp(text, "ms ", 3) != 0) return peer_error(p, err, text);
    const char *at = text + 2;
    for (size_t i = 0; i < n; i++) {
        char *end = NULL;
        seconds[i] = 1e-3 * strtod(at, &end);
        if (end == at || !(seconds[i] > 0 && isfinite(seconds[i])))
            return peer_error(p, err, "an answer to run is not a list of times");
        at = end;
    }
    return PARE_OK;
}

pare_status bench_peer_compare(bench_peer *p, bench_job *j, pare_err *err)
{
    const pare_mark mark = pare_arena_mark(j->arena);
    char text[512];
    pare_array a = {0};
    char *path = bench_path(j, "peer.npy");
    if (!path) return j->c->err.code;
    pare_status st = request(p, err, text, sizeof text, "save %s\n", path);
    if (!st && strcmp(text, "ok") != 0) st = peer_error(p, err, text);
    if (!st) st = pare_npy_read(&a, j->arena, path, err);
    if (!st && (a.dtype == PARE_TEXT || pare_array_count(&a) != j->nresult))
        st = peer_error(p, err, "its result has another shape");
    double worst = 0, largest = 0;
    for (size_t i = 0; !st && i < j->nresult; i++) {
        const double want = pare_array_f64(&a, i), d = fabs((double)j->result[i] - want);
        if (!(d <= worst)) worst = d; /* a nan stays */
        if (fabs(want) > largest) largest = fabs(want);
    }
    if (!st && !(worst <= j->tolerance * largest))
        st = pare_fail(err, PARE_ERR_VERIFY,
                       "%s: our result and that of %s differ by %.2g, largest entry %.2g", j->shape,
                       p->name, worst, largest);
    pare_arena_reset(j->arena, mark);
    return st;
}
