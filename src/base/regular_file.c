/* regular_file.c - regular files, read to their end (regular_file.h). They are not mapped: what
 * others do to the file afterwards must not change bytes that were checked, nor end the process. */
#include "regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static pare_status io_error(pare_err *err, const char *path, const char *verb)
{
    if (errno == ENOMEM) return pare_no_memory(err);
    return pare_fail(err, PARE_ERR_IO, "%s: cannot %s: %s", path, verb, strerror(errno));
}

static pare_status check_kind(const char *path, mode_t mode, pare_err *err)
{
    if (S_ISREG(mode)) return PARE_OK;
    if (S_ISDIR(mode))
        return pare_fail(err, PARE_ERR_IO, "%s: is a folder, a file is needed", path);
    const char *const kind = S_ISFIFO(mode)                   ? "a pipe"
                             : S_ISSOCK(mode)                 ? "a socket"
                             : S_ISCHR(mode) || S_ISBLK(mode) ? "a device"
                                                              : "something else";
    return pare_fail(err, PARE_ERR_IO,
                     "%s: is not a regular file (%s); write its bytes to a file first", path, kind);
}

/* Looked at before it is opened, because to open a device may already do something; and again
 * afterwards, because it may have been replaced in between. */
pare_status regular_open(regular *r, const char *path, pare_err *err)
{
    struct stat info;
    *r = (regular){.path = path, .fd = -1};
    if (stat(path, &info) != 0) return io_error(err, path, "open");
    pare_status st = check_kind(path, info.st_mode, err);
    if (st) return st;
    r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (r->fd < 0) return io_error(err, path, "open");
    st = fstat(r->fd, &info) == 0 ? check_kind(path, info.st_mode, err)
                                  : io_error(err, path, "look at it");
    if (!st && (uint64_t)info.st_size > SIZE_MAX / 2) st = pare_no_memory(err);
    if (st)
        regular_close(r);
    else
        r->bytes = (size_t)info.st_size;
    return st;
}

/* As read(), but tried again when a signal interrupts it. */
static ssize_t read_some(const regular *r, void *to, size_t count)
{
    enum { MOST = 1 << 30 }; /* a single read() gives no more than 2 GB */
    ssize_t n;
    do n = read(r->fd, to, count < MOST ? count : MOST);
    while (n < 0 && errno == EINTR);
    return n;
}

static pare_status changed(const regular *r, const char *how, pare_err *err)
{
    return pare_fail(err, PARE_ERR_IO,
                     "%s: changed while it was read: it had %zu bytes at first, now %s", r->path,
                     r->bytes, how);
}

pare_status regular_read(regular *r, void *to, size_t count, pare_err *err)
{
    PARE_ASSERT(count <= r->bytes - r->done);
    for (size_t got = 0; got < count;) {
        const ssize_t n = read_some(r, (uint8_t *)to + got, count - got);
        if (n < 0) return io_error(err, r->path, "read");
        if (n == 0) return changed(r, "fewer", err);
        got += (size_t)n;
        r->done += (size_t)n;
    }
    return PARE_OK;
}

pare_status regular_end(regular *r, pare_err *err)
{
    uint8_t more;
    PARE_ASSERT(r->done == r->bytes);
    const ssize_t n = read_some(r, &more, 1);
    if (n < 0) return io_error(err, r->path, "read");
    return n == 0 ? PARE_OK : changed(r, "more", err);
}

void regular_close(regular *r)
{
    if (r->fd >= 0) close(r->fd);
    r->fd = -1;
}
