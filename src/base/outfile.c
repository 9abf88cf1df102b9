/* outfile.c - files written whole or not at all: temporary name in the same folder, fsync, rename.
 *
 * The buffer is our own: stdio gives up when a signal interrupts a write, and forgets what it has
 * lost. */
#include "support.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
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
        return pare_fail(err, PARE_ERR_IO, "%s: exists, and may not be overwritten", path);
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

pare_status pare_out_open(pare_out **out, const char *path, bool overwrite, pare_err *err)
{
    *out = NULL;
    pare_status st = pare_out_check(path, overwrite, err);
    if (st != PARE_OK) return st;
    pare_out *o = calloc(1, sizeof *o);
    if (!o) return pare_no_memory(err);
    const size_t temp_bytes = strlen(path) + 64;
    *o = (pare_out){.path = strdup(path),
                    .temp = malloc(temp_bytes),
                    .buffer = malloc(BUFFER_BYTES),
                    .fd = -1,
                    .overwrite = overwrite};
    if (!o->path || !o->temp || !o->buffer) {
        out_free(o);
        return pare_no_memory(err);
    }
    errno = EEXIST;
    for (int i = 0; i < TEMP_TRIES && o->fd < 0 && (errno == EEXIST || errno == EINTR); i++) {
        snprintf(o->temp, temp_bytes, "%s" PARE_TEMP_SUFFIX, path, (long)getpid(), i);
        o->fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (o->fd >= 0) {
        *out = o;
        return PARE_OK;
    }
    /* All names taken: a thousand abandoned temporaries of our own pid. */
    if (errno == EEXIST || errno == EINTR) errno = EMFILE;
    st = out_error(err, path, "write");
    out_free(o);
    return st;
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

pare_status pare_out_write(pare_out *o, const void *data, size_t bytes, pare_err *err)
{
    if (bytes == 0) return PARE_OK;
    if (bytes > BUFFER_BYTES - o->used && !flush(o)) return out_error(err, o->path, "write");
    if (bytes <= BUFFER_BYTES - o->used) {
        memcpy(o->buffer + o->used, data, bytes);
        o->used += bytes;
        return PARE_OK;
    }
    o->failed = !write_all(o->fd, data, bytes);
    return o->failed ? out_error(err, o->path, "write") : PARE_OK;
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

static bool rename_file(const char *from, const char *to, bool overwrite)
{
    if (overwrite) return rename(from, to) == 0;
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    /* This file system cannot rename without replacing; a hard link never replaces. */
    return link(from, to) == 0 && unlink(from) == 0;
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
    if (!rename_file(from, to, overwrite)) {
        st = out_error(err, to, "write");
    } else {
        /* The rename itself must reach the disk. A folder that cannot be opened or synced
         * (permission, some file systems) is no failure: the content is safe. */
        const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && fsync(fd) != 0 && errno == EIO) st = out_error(err, to, "sync its folder");
        if (fd >= 0) close(fd);
    }
    free(folder);
    return st;
}

pare_status pare_out_commit(pare_out *o, pare_err *err)
{
    const pare_status st = flush_and_close(o) ? pare_file_move(o->temp, o->path, o->overwrite, err)
                                              : out_error(err, o->path, "write");
    if (st) { /* after a move that worked the temporary name is free, and abort removes nothing */
        pare_out_abort(o);
    } else {
        pare_out_sweep(o->path);
        out_free(o);
    }
    return st;
}

/* ---- stale files ----------------------------------------------------------------------------- */

/* What a kill -9 has left beside a file that is written again. The name says which process made it:
 * files of a living process are never touched, nor files whose name is not exactly of our
 * making. */

/* Past a plain number of at most 9 digits; NULL where there is none. */
static const char *read_number(const char *s, long *out)
{
    const size_t n = strspn(s, "0123456789");
    if (n == 0 || n > 9) return NULL;
    *out = strtol(s, NULL, 10);
    return s + n;
}

/* The pid in .PID-N.tmp, .part-PID, .part-PID.part-PID (of a folder that is made beside its place
 * twice), .part-PID.PID-N.tmp and, with `old`, .PID-old.tmp; 0: none of these. */
static long owner_pid(const char *tail, bool old)
{
    static const char part[] = ".part-";
    long pid = 0, again = 0, count;
    const char *s = tail;
    for (int i = 0; i < 2 && strncmp(s, part, sizeof part - 1) == 0; i++) {
        s = read_number(s + sizeof part - 1, &again);
        if (!s || (pid && pid != again)) return 0;
        pid = again;
        if (*s == '\0') return pid;
    }
    if (*s != '.' || !(s = read_number(s + 1, &again)) || *s != '-' || (pid && pid != again))
        return 0;
    if (strcmp(s, "-old.tmp") == 0) return old ? again : 0;
    s = read_number(s + 1, &count);
    return s && strcmp(s, ".tmp") == 0 ? again : 0;
}

static bool remove_inside(const char *folder, const char *name)
{
    char path[PATH_MAX];
    const int n = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (n <= 0 || (size_t)n >= sizeof path) return false;
    pare_folder_remove(path);
    return !pare_file_exists(path);
}

static size_t remove_stale(const char *path, bool old, bool folders)
{
    const char *const slash = strrchr(path, '/'), *const base = slash ? slash + 1 : path;
    char *const folder = folder_of(path);
    DIR *const d = folder ? opendir(folder) : NULL;
    const size_t n = strlen(base);
    size_t removed = 0;
    if (!d) {
        free(folder);
        return 0;
    }
    for (const struct dirent *e; (e = readdir(d));) {
        const long pid = strncmp(e->d_name, base, n) == 0 ? owner_pid(e->d_name + n, old) : 0;
        struct stat info;
        if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH ||
            fstatat(dirfd(d), e->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        if (S_ISREG(info.st_mode))
            removed += unlinkat(dirfd(d), e->d_name, 0) == 0;
        else if (folders && S_ISDIR(info.st_mode))
            removed += remove_inside(folder, e->d_name);
    }
    free(folder);
    closedir(d);
    return removed;
}

size_t pare_out_sweep(const char *path)
{
    return remove_stale(path, true, false);
}

size_t pare_out_sweep_begun(const char *path)
{
    return remove_stale(path, false, false);
}

size_t pare_folder_sweep(const char *path)
{
    return remove_stale(path, true, true);
}
