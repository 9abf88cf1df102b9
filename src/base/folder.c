/* folder.c - folders: the regular files in one, sorted by name, how large they are, and taking all
 * of it away. */
#include "support.h"
#include "list.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

pare_status pare_folder_list(char ***names, size_t *n, pare_arena *a, const char *folder,
                             pare_err *err)
{
    DIR *const d = opendir(folder);
    size_t capacity = 0;
    pare_status st = PARE_OK;
    *names = NULL;
    *n = 0;
    if (!d) return pare_fail(err, PARE_ERR_IO, "%s: %s", folder, strerror(errno));
    for (const struct dirent *e = readdir(d); e && st == PARE_OK; e = readdir(d)) {
        if (e->d_name[0] == '.') continue;
        const char *const path = pare_sprintf(a, "%s/%s", folder, e->d_name);
        struct stat info;
        /* Reading a pipe or a device may never end; a broken link stays and fails when it is
         * read. */
        if (path && stat(path, &info) == 0 && !S_ISREG(info.st_mode)) continue;
        *names = path ? list_grow(a, *names, *n, &capacity, sizeof **names) : NULL;
        char *const name = *names ? pare_strdup(a, e->d_name) : NULL;
        if (name)
            (*names)[(*n)++] = name;
        else
            st = pare_no_memory(err);
    }
    closedir(d);
    /* The file system's order means nothing; no result may depend on it. */
    if (st == PARE_OK) sort_texts(*names, *n);
    return st;
}

uint64_t pare_path_bytes(const char *path)
{
    struct stat info;
    uint64_t sum = 0;
    if (stat(path, &info) != 0) return 0;
    if (S_ISREG(info.st_mode)) return (uint64_t)info.st_size;
    DIR *d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));)
        if (fstatat(dirfd(d), e->d_name, &info, 0) == 0 && S_ISREG(info.st_mode))
            sum += (uint64_t)info.st_size;
    if (d) closedir(d);
    return sum;
}

void pare_folder_remove(const char *path)
{
    DIR *const d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d));) {
        char name[PATH_MAX];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        const int n = snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        struct stat info;
        if (n <= 0 || (size_t)n >= sizeof name || lstat(name, &info) != 0) continue;
        if (S_ISDIR(info.st_mode))
            pare_folder_remove(name);
        else
            unlink(name);
    }
    if (d) closedir(d);
    rmdir(path);
}
