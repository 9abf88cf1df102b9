/* folder_out.c - a folder that appears whole or not at all: it is made under a temporary name
 * beside its place and then renamed. An older folder of the same name is exchanged for it in one
 * step where the file system can do that, so that there is a whole folder at every moment. */
#include "base/support.h"
#include <pare/model.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- may it be written ----------------------------------------------------------------------- */

static bool is_dot(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* What makes a folder one of a model, so that -f may replace all of it. */
static bool is_sign(const char *name)
{
    return strcmp(name, "config.json") == 0 || strcmp(name, "modules.json") == 0 ||
           strcmp(name, "pare.cert.json") == 0;
}

/* Looks at every entry. *foreign: the first that no model folder has: a link, a device, a folder
 * other than those of sentence-transformers' modules (1_Pooling). */
static pare_status look_into(const char *path, size_t *n, bool *model, char foreign[256],
                             pare_err *err)
{
    DIR *const d = opendir(path);
    if (!d) return pare_fail(err, PARE_ERR_IO, "%s: %s", path, strerror(errno));
    *n = 0;
    *model = false;
    foreign[0] = '\0';
    for (const struct dirent *e; (e = readdir(d));) {
        struct stat info;
        if (is_dot(e->d_name)) continue;
        const bool seen = fstatat(dirfd(d), e->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0;
        const bool module = e->d_name[0] >= '0' && e->d_name[0] <= '9';
        const bool fits = seen && (S_ISREG(info.st_mode) || (S_ISDIR(info.st_mode) && module));
        if (!fits && !*foreign) snprintf(foreign, 256, "%s", e->d_name);
        *model |= is_sign(e->d_name);
        ++*n;
    }
    closedir(d);
    return PARE_OK;
}

pare_status pare_folder_check(const char *path, bool overwrite, pare_err *err)
{
    struct stat info;
    char foreign[256];
    size_t n = 0;
    bool model = false;
    if (!*path) return pare_fail(err, PARE_ERR_IO, "the name of the output folder is empty");
    if (lstat(path, &info) != 0) {
        if (errno == ENOENT) return PARE_OK;
        return pare_fail(err, PARE_ERR_IO, "%s: %s", path, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode))
        return pare_fail(err, PARE_ERR_IO, "%s: is %s, and a folder is to be written there", path,
                         S_ISLNK(info.st_mode) ? "a link" : "a file");
    const pare_status st = look_into(path, &n, &model, foreign, err);
    if (st || n == 0) return st;
    if (!overwrite)
        return pare_fail(err, PARE_ERR_IO, "%s: exists, and may not be overwritten", path);
    if (*foreign || !model)
        return pare_fail(err, PARE_ERR_IO,
                         "%s: is not replaced, because it holds %s%s; give another name", path,
                         *foreign ? "more than a model: " : "files and no model", foreign);
    return PARE_OK;
}

/* ---- into its place -------------------------------------------------------------------------- */

/* Names in a folder reach the disk. One that cannot be opened or synced (permission, some file
 * systems) is no failure: what its files hold is safe. */
static pare_status sync_folder(const char *path, pare_err *err)
{
    pare_status st = PARE_OK;
    const int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fsync(fd) != 0 && errno == EIO)
        st = pare_fail(err, PARE_ERR_IO, "%s: cannot sync the folder: %s", path, strerror(errno));
    if (fd >= 0) close(fd);
    return st;
}

static pare_status not_moved(const char *to, pare_err *err)
{
    return pare_fail(err, PARE_ERR_IO, "%s: cannot write: %s", to, strerror(errno));
}

/* For file systems that cannot exchange names. *old: where the old folder is; the caller removes
 * it. */
static pare_status replace_by_two_renames(const char *from, const char *to, const char *old,
                                          pare_err *err)
{
    if (rename(to, old) != 0) return not_moved(to, err);
    if (rename(from, to) == 0) return PARE_OK;
    const int why = errno;
    if (rename(old, to) != 0)
        return pare_fail(err, PARE_ERR_IO, "%s: cannot write: %s; the old folder is now %s", to,
                         strerror(why), old);
    errno = why;
    return not_moved(to, err);
}

pare_status pare_folder_move(const char *from, const char *to, bool overwrite, pare_err *err)
{
    pare_arena *const a = pare_arena_new();
    const char *const slash = strrchr(to, '/');
    const char *const parent = !a      ? NULL
                               : slash ? pare_strndup(a, to, (size_t)(slash - to) + 1)
                                       : pare_strdup(a, ".");
    const char *const old = a ? pare_sprintf(a, "%s.%ld-old.tmp", to, (long)getpid()) : NULL;
    const char *left = NULL; /* the old folder, to be removed */
    pare_status st = parent && old ? pare_folder_check(to, overwrite, err) : pare_no_memory(err);
    if (!st) st = sync_folder(from, err);
    /* A folder replaces an empty one and no other. */
    if (!st && rename(from, to) != 0) {
        const bool full = errno == ENOTEMPTY || errno == EEXIST;
        if (!full || !overwrite) {
            st = not_moved(to, err);
        } else if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_EXCHANGE) == 0) {
            left = from;
        } else if (errno == EINVAL || errno == ENOSYS) {
            st = replace_by_two_renames(from, to, old, err);
            left = st ? NULL : old;
        } else {
            st = not_moved(to, err);
        }
    }
    if (!st) st = sync_folder(parent, err);
    if (left) pare_folder_remove(left);
    if (!st) pare_folder_sweep(to);
    pare_arena_free(a);
    return st;
}
