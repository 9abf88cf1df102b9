/* What a kill -9 has left beside a file that is being written anew. A name says whose it was: that
 * of a living process is never touched, nor any that is not exactly of our making. */
#include <pare/base.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Past a plain number of at most 9 digits; NULL where there is none. */
static const char *number(const char *s, long *out)
{
    const size_t n = strspn(s, "0123456789");
    if (n == 0 || n > 9) return NULL;
    *out = strtol(s, NULL, 10);
    return s + n;
}

/* The pid in .PID-N.tmp, .part-PID, .part-PID.PID-N.tmp and, with `old`, .PID-old.tmp; 0: none of
 * these. */
static long owner(const char *tail, bool old)
{
    static const char part[] = ".part-";
    long pid = 0, again = 0, count;
    const char *s = tail;
    if (strncmp(s, part, sizeof part - 1) == 0) {
        s = number(s + sizeof part - 1, &pid);
        if (!s || *s == '\0') return s ? pid : 0;
    }
    if (*s != '.' || !(s = number(s + 1, &again)) || *s != '-' || (pid && pid != again)) return 0;
    if (strcmp(s, "-old.tmp") == 0) return old ? again : 0;
    s = number(s + 1, &count);
    return s && strcmp(s, ".tmp") == 0 ? again : 0;
}

static bool gone(long pid)
{
    return pid > 0 && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

static bool remove_plain(int folder, const char *name)
{
    struct stat info;
    return fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode) &&
           unlinkat(folder, name, 0) == 0;
}

static size_t sweep(const char *path, bool old)
{
    const char *const slash = strrchr(path, '/'), *const base = slash ? slash + 1 : path;
    char *const folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    DIR *const d = folder ? opendir(folder) : NULL;
    const size_t n = strlen(base);
    free(folder);
    size_t removed = 0;
    if (!d) return 0;
    for (const struct dirent *e; (e = readdir(d));)
        if (strncmp(e->d_name, base, n) == 0 && gone(owner(e->d_name + n, old)))
            removed += remove_plain(dirfd(d), e->d_name);
    closedir(d);
    return removed;
}

size_t pare_out_sweep(const char *path)
{
    return sweep(path, true);
}

size_t pare_out_sweep_begun(const char *path)
{
    return sweep(path, false);
}
