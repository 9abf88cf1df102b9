/* The files of a folder, in an order of our own. */
#include "support.h"
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Pipes and devices are no files of ours, and reading one may never end. */
static bool is_plain(const char *path)
{
    struct stat info;
    return stat(path, &info) != 0 || S_ISREG(info.st_mode); /* what is broken fails when read */
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static pare_status keep(char ***names, size_t n, size_t *room, pare_arena *a, const char *name,
                        pare_err *err)
{
    if (n == *room) {
        char **const more = pare_alloc(a, *room = 2 * *room + 16, sizeof *more);
        if (more && n) memcpy(more, *names, n * sizeof *more);
        *names = more;
    }
    char *const copy = pare_strdup(a, name);
    if (!copy || !*names) return pare_no_memory(err);
    (*names)[n] = copy;
    return PARE_OK;
}

pare_status pare_folder_list(char ***names, size_t *n, pare_arena *a, const char *folder,
                             pare_err *err)
{
    DIR *const d = opendir(folder);
    size_t room = 0;
    pare_status st = PARE_OK;
    *names = NULL;
    *n = 0;
    if (!d) return pare_fail(err, PARE_ERR_IO, "%s: %s", folder, strerror(errno));
    for (const struct dirent *e = readdir(d); e && st == PARE_OK; e = readdir(d)) {
        if (e->d_name[0] == '.') continue;
        const char *const path = pare_sprintf(a, "%s/%s", folder, e->d_name);
        if (path && !is_plain(path)) continue;
        st = path ? keep(names, *n, &room, a, e->d_name, err) : pare_no_memory(err);
        if (st == PARE_OK) ++*n;
    }
    closedir(d);
    /* The order of a folder is the file system's own; nothing may depend on it. */
    if (st == PARE_OK && *n) qsort(*names, *n, sizeof **names, by_name);
    return st;
}
