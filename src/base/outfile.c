/* Files written whole or not at all: temporary name in the same folder, fsync, rename.
 *
 * The buffer is our own: stdio gives up when a signal interrupts a write, and forgets what it has
 * lost. */
#include <pare/base.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_TRIES   1000
#define BUFFER_BYTES ((size_t)64 * 1024)

struct pare_out {
    char *path, *temp;
    int fd; /* -1: closed */
    uint8_t *buffer;
    size_t used;
    bool overwrite, failed; /* failed: a commit after a failed write must fail as well */
};

static pare_status out_error(pare_err *err, const char *path, const char *verb)
{
    if (errno == ENOMEM) return pare_no_memory(err);
    if (errno == EEXIST)
        return pare_fail(err, PARE_ERR_IO, "%s: exists; use -f to overwrite", path);
    return pare_fail(err, PARE_ERR_IO, "%s: cannot %s: %s", path, verb, strerror(errno));
}

static void out_free(pare_out *o)
{
    free(o->path);
    free(o->buffer);
    free(o->temp);
    free(o);
}

void pare_out_abort(pare_out *o)
{
    if (!o) return;
    if (o->fd >= 0) close(o->fd);
    if (o->temp) unlink(o->temp);
    out_free(o);
}

pare_status pare_out_check(const char *path, bool overwrite, pare_err *err)
{
    struct stat info;
    if (!*path) return pare_fail(err, PARE_ERR_IO, "the name of the output file is empty");
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return pare_fail(err, PARE_ERR_IO, "%s: %s", path,
                         S_ISDIR(info.st_mode) ? "is a folder, a file name is needed"
                                               : "is not a plain file, cannot be replaced");
    if (!overwrite && lstat(path, &info) == 0) {
        errno = EEXIST;
        return out_error(err, path, "write");
    }
    return PARE_OK;
}

static bool names_make(pare_out *o, const char *path)
{
    const size_t len = strlen(path);
    o->path = malloc(len + 1);
    o->temp = malloc(len + 64);
    o->buffer = malloc(BUFFER_BYTES);
    if (!o->path || !o->temp || !o->buffer) return false;
    memcpy(o->path, path, len + 1);
    o->temp[0] = '\0';
    return true;
}

/* Creates the temporary file; on failure errno says why and o->temp names nothing. */
static int temp_create(pare_out *o)
{
    const size_t room = strlen(o->path) + 64;
    for (int i = 0; i < TEMP_TRIES; i++) {
        snprintf(o->temp, room, "%s" PARE_TEMP_SUFFIX, o->path, (long)getpid(), i);
        const int fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || (errno != EEXIST && errno != EINTR)) return fd;
    }
    errno = EMFILE; /* a thousand abandoned temporaries of our own pid */
    return -1;
}

pare_status pare_out_open(pare_out **out, const char *path, bool overwrite, pare_err *err)
{
    *out = NULL;
    const pare_status ok = pare_out_check(path, overwrite, err);
    if (ok != PARE_OK) return ok;
    pare_out *o = calloc(1, sizeof *o);
    if (o) o->fd = -1;
    if (!o || !names_make(o, path)) {
        if (o) out_free(o);
        return pare_no_memory(err);
    }
    o->overwrite = overwrite;
    o->fd = temp_create(o);
    if (o->fd < 0) {
        const pare_status st = out_error(err, path, "write");
        out_free(o);
        return st;
    }
    *out = o;
    return PARE_OK;
}

/* All bytes, or errno. A write may take a part of them, and a signal is no failure. */
static bool write_all(int fd, const uint8_t *data, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t n = write(fd, data, bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return false;
        if (n == 0) { /* no progress and no reason: not to be waited for */
            errno = EIO;
            return false;
        }
        data += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool flush(pare_out *o)
{
    if (o->failed || !write_all(o->fd, o->buffer, o->used)) {
        if (o->failed) errno = EIO; /* it was reported then, with its own reason */
        o->failed = true;
        return false;
    }
    o->used = 0;
    return true;
}

static bool put(pare_out *o, const uint8_t *data, size_t bytes)
{
    if (bytes > BUFFER_BYTES - o->used && !flush(o)) return false;
    if (bytes <= BUFFER_BYTES - o->used) {
        memcpy(o->buffer + o->used, data, bytes);
        o->used += bytes;
        return true;
    }
    o->failed = !write_all(o->fd, data, bytes);
    return !o->failed;
}

pare_status pare_out_write(pare_out *o, const void *data, size_t bytes, pare_err *err)
{
    return bytes == 0 || put(o, data, bytes) ? PARE_OK : out_error(err, o->path, "write");
}

pare_status pare_out_printf(pare_out *o, pare_err *err, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, fmt);
    const int n = vasprintf(&text, fmt, args);
    va_end(args);
    if (n < 0) {
        o->failed = true;
        return pare_no_memory(err);
    }
    const pare_status st = pare_out_write(o, text, (size_t)n, err);
    free(text);
    return st;
}

/* Everything on the disk and the file closed, or errno. */
static bool flush_and_close(pare_out *o)
{
    if (!flush(o)) return false;
    while (fsync(o->fd) != 0)
        if (errno != EINTR) return false;
    const int fd = o->fd;
    o->fd = -1;
    /* The descriptor is gone also when a signal came, and the bytes are on the disk. */
    return close(fd) == 0 || errno == EINTR;
}

static bool put_in_place(const char *from, const char *to, bool overwrite)
{
    if (overwrite) return rename(from, to) == 0;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    /* This file system cannot rename without replacing; a hard link never replaces. */
    return link(from, to) == 0 && unlink(from) == 0;
}

/* The rename itself must reach the disk. Folders that cannot be opened or synced (permission,
 * some file systems) are let pass: the content is safe. */
static bool folder_sync(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return true;
    const bool ok = fsync(fd) == 0 || errno != EIO;
    close(fd);
    return ok;
}

/* The folder of `path`, malloc'ed: "." where it names none. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
}

pare_status pare_file_move(const char *from, const char *to, bool overwrite, pare_err *err)
{
    pare_status st = pare_out_check(to, overwrite, err);
    if (st) return st;
    char *const folder = folder_of(to);
    if (!folder) return pare_no_memory(err);
    if (!put_in_place(from, to, overwrite))
        st = out_error(err, to, "write");
    else if (!folder_sync(folder))
        st = out_error(err, to, "sync its folder");
    free(folder);
    return st;
}

pare_status pare_out_commit(pare_out *o, pare_err *err)
{
    const pare_status st = flush_and_close(o) ? pare_file_move(o->temp, o->path, o->overwrite, err)
                                              : out_error(err, o->path, "write");
    if (st) { /* the name is free again where the move came to pass */
        pare_out_abort(o);
    } else {
        pare_out_sweep(o->path);
        out_free(o);
    }
    return st;
}
