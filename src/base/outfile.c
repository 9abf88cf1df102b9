/* Files written whole or not at all: temporary name in the same folder, fsync, rename. */
#include <pare/base.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEMP_TRIES 1000

struct pare_out {
    char *path, *temp, *folder;
    FILE *file;
    bool overwrite;
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
    free(o->temp);
    free(o->folder);
    free(o);
}

void pare_out_abort(pare_out *o)
{
    if (!o) return;
    if (o->file) fclose(o->file);
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
    const char *slash = strrchr(path, '/');
    const size_t len = strlen(path), folder = slash ? (size_t)(slash - path) + 1 : 0;
    o->path = malloc(len + 1);
    o->temp = malloc(len + 64);
    o->folder = malloc(folder + 2);
    if (!o->path || !o->temp || !o->folder) return false;
    memcpy(o->path, path, len + 1);
    o->temp[0] = '\0';
    memcpy(o->folder, folder ? path : ".", folder ? folder : 1);
    o->folder[folder ? folder : 1] = '\0';
    return true;
}

/* Creates the temporary file; on failure errno says why and o->temp names nothing. */
static int temp_create(pare_out *o)
{
    const size_t room = strlen(o->path) + 64;
    for (int i = 0; i < TEMP_TRIES; i++) {
        snprintf(o->temp, room, "%s" PARE_TEMP_SUFFIX, o->path, (long)getpid(), i);
        const int fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST) return fd;
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
    if (!o || !names_make(o, path)) {
        if (o) out_free(o);
        return pare_no_memory(err);
    }
    o->overwrite = overwrite;
    const int fd = temp_create(o);
    if (fd < 0) {
        const pare_status st = out_error(err, path, "write");
        out_free(o);
        return st;
    }
    o->file = fdopen(fd, "wb");
    if (!o->file) {
        close(fd);
        pare_out_abort(o);
        return pare_no_memory(err);
    }
    *out = o;
    return PARE_OK;
}

pare_status pare_out_write(pare_out *o, const void *data, size_t bytes, pare_err *err)
{
    if (bytes == 0 || fwrite(data, 1, bytes, o->file) == bytes) return PARE_OK;
    return out_error(err, o->path, "write");
}

pare_status pare_out_printf(pare_out *o, pare_err *err, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int n = vfprintf(o->file, fmt, args);
    va_end(args);
    return n >= 0 ? PARE_OK : out_error(err, o->path, "write");
}

/* Everything on the disk and the file closed, or errno. */
static bool flush_and_close(pare_out *o)
{
    /* A write that failed earlier was reported then; a commit after it must fail as well. */
    if (ferror(o->file)) {
        errno = EIO;
        return false;
    }
    if (fflush(o->file) != 0 || fsync(fileno(o->file)) != 0) return false;
    FILE *file = o->file;
    o->file = NULL;
    return fclose(file) == 0;
}

static bool put_in_place(const pare_out *o)
{
    if (o->overwrite) return rename(o->temp, o->path) == 0;
    if (renameat2(AT_FDCWD, o->temp, AT_FDCWD, o->path, RENAME_NOREPLACE) == 0) return true;
    if (errno != EINVAL && errno != ENOSYS) return false;
    /* This file system cannot rename without replacing; a hard link never replaces. */
    return link(o->temp, o->path) == 0 && unlink(o->temp) == 0;
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

pare_status pare_out_commit(pare_out *o, pare_err *err)
{
    if (!flush_and_close(o) || !put_in_place(o)) {
        const pare_status st = out_error(err, o->path, "write");
        pare_out_abort(o);
        return st;
    }
    const pare_status st =
        folder_sync(o->folder) ? PARE_OK : out_error(err, o->path, "sync its folder");
    out_free(o);
    return st;
}
