/* The linker sends the calls here (--wrap); see fail_io.h. */
#include "fail_io.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>

int __real_open(const char *path, int flags, mode_t mode);
ssize_t __real_write(int fd, const void *data, size_t bytes);
int __real_fsync(int fd);
int __real_close(int fd);
int __real_rename(const char *from, const char *to);
int __real_renameat2(int fd, const char *from, int fd2, const char *to, unsigned flags);
int __real_link(const char *from, const char *to);
int __real_mkdir(const char *path, mode_t mode);
int __wrap_open(const char *path, int flags, ...);
ssize_t __wrap_write(int fd, const void *data, size_t bytes);
int __wrap_fsync(int fd);
int __wrap_close(int fd);
int __wrap_rename(const char *from, const char *to);
int __wrap_renameat2(int fd, const char *from, int fd2, const char *to, unsigned flags);
int __wrap_link(const char *from, const char *to);
int __wrap_mkdir(const char *path, mode_t mode);

static long left = -1;
static int reason, tries_left, times;
static bool always, is_short, kills;
static const char *hit;

void fail_io_after(long n, int why, bool forever)
{
    left = n;
    reason = why;
    always = forever;
    hit = NULL;
    times = 0;
    kills = false;
}

void fail_io_kill_after(long n)
{
    fail_io_after(n, 0, false);
    kills = true;
}

void fail_io_first_tries(int n, int why)
{
    fail_io_after(-1, why, false);
    times = tries_left = n;
}

void fail_io_short(bool on)
{
    is_short = on;
}

const char *fail_io_hit(void)
{
    return hit;
}

static bool again(const char *call)
{
    if (times == 0) return false;
    const bool now = tries_left-- > 0;
    if (!now) tries_left = times;
    if (now) errno = reason, hit = call;
    return now;
}

static bool refuse(const char *call)
{
    if (left < 0 || left-- > 0) return false;
    if (kills) raise(SIGKILL);
    left = always ? 0 : -1;
    hit = call;
    errno = reason;
    return true;
}

/* ---- who was opened ----------------------------------------------------------------------------
 */

enum { OPENS = 256 };
static char opened[OPENS][300];
static size_t nopened;

void fail_io_forget_opens(void)
{
    nopened = 0;
}

int fail_io_opens(const char *end)
{
    int n = 0;
    for (size_t i = 0; i < nopened && i < OPENS; i++) {
        const size_t all = strlen(opened[i]), tail = strlen(end);
        n += all >= tail && strcmp(opened[i] + all - tail, end) == 0;
    }
    return n;
}

static void note(const char *path)
{
    if (nopened < OPENS) snprintf(opened[nopened], sizeof opened[0], "%s", path);
    nopened++;
}

/* ---- the calls ---------------------------------------------------------------------------------
 */

int __wrap_open(const char *path, int flags, ...)
{
    note(path);
    va_list args;
    va_start(args, flags);
    const mode_t mode = va_arg(args, mode_t);
    va_end(args);
    return refuse("open") ? -1 : __real_open(path, flags, mode);
}

ssize_t __wrap_write(int fd, const void *data, size_t bytes)
{
    if (kills && left == 0) (void)!__real_write(fd, data, bytes / 2);
    if (again("write") || refuse("write")) return -1;
    return __real_write(fd, data, is_short && bytes > 1 ? 1 + bytes / 3 : bytes);
}

int __wrap_fsync(int fd)
{
    return again("fsync") || refuse("fsync") ? -1 : __real_fsync(fd);
}

/* Linux: the descriptor is gone even when close fails. */
int __wrap_close(int fd)
{
    const int rc = __real_close(fd);
    return !always && refuse("close") ? -1 : rc;
}

int __wrap_rename(const char *from, const char *to)
{
    return refuse("rename") ? -1 : __real_rename(from, to);
}

int __wrap_renameat2(int fd, const char *from, int fd2, const char *to, unsigned flags)
{
    return refuse("renameat2") ? -1 : __real_renameat2(fd, from, fd2, to, flags);
}

int __wrap_link(const char *from, const char *to)
{
    return refuse("link") ? -1 : __real_link(from, to);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return refuse("mkdir") ? -1 : __real_mkdir(path, mode);
}
