/* path.c - paths as they are stored inside files: relative to the file that holds them. */
#include <pare/base.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* `path` absolute, without ".", ".." and doubled slashes, by text alone. Ends without a slash
 * (the root is ""). NULL: no memory or no working folder. */
static char *absolute_by_text(pare_arena *a, const char *path)
{
    char *cwd = *path == '/' ? NULL : getcwd(NULL, 0);
    if (*path != '/' && !cwd) return NULL;
    char *full = pare_sprintf(a, "%s/%s/", cwd ? cwd : "", path);
    free(cwd);
    if (!full) return NULL;
    char *w = full; /* everything before w is in normal form: ("/" name)* */
    for (const char *r = full; *r;) {
        while (*r == '/') r++;
        const size_t n = strcspn(r, "/");
        if (n == 2 && memcmp(r, "..", 2) == 0) {
            while (w > full && *--w != '/') {}
        } else if (n > 0 && !(n == 1 && *r == '.')) {
            *w++ = '/';
            memmove(w, r, n);
            w += n;
        }
        r += n;
    }
    *w = '\0';
    return full;
}

/* The folder named by the first `bytes` of `path` (none: the working folder), links resolved when
 * it exists: ".." after a link then means what the system means by it. */
static char *folder_absolute(pare_arena *a, const char *path, size_t bytes)
{
    char *part = bytes ? pare_strndup(a, path, bytes) : pare_strdup(a, ".");
    if (!part) return NULL;
    char *real = realpath(part, NULL);
    char *full = absolute_by_text(a, real ? real : part);
    free(real);
    return full;
}

static size_t folder_bytes(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

char *pare_path_relative(pare_arena *a, const char *from, const char *path)
{
    const char *base = folder_absolute(a, from, folder_bytes(from));
    if (!base) return NULL;
    /* A file's own name is kept even if it is a link: only its folder is resolved. */
    const char *name = path + folder_bytes(path);
    const bool is_folder = !*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    const char *target = folder_absolute(a, path, is_folder ? strlen(path) : (size_t)(name - path));
    if (target && !is_folder) target = pare_sprintf(a, "%s/%s", target, name);
    if (!target) return NULL;
    size_t same = 0; /* length of the common folders, without a slash at the end */
    for (size_t i = 0;; i++) {
        const bool end_b = base[i] == '\0' || base[i] == '/';
        const bool end_t = target[i] == '\0' || target[i] == '/';
        if (end_b && end_t) same = i;
        if (base[i] != target[i] || base[i] == '\0') break;
    }
    size_t ups = 0;
    for (const char *p = base + same; *p; p++) ups += *p == '/';
    const char *rest = target + same;
    if (*rest == '/') rest++;
    char *out = pare_alloc(a, 3 * ups + strlen(rest) + 2, 1);
    if (!out) return NULL;
    char *w = out;
    for (size_t i = 0; i < ups; i++, w += 3) memcpy(w, "../", 3);
    memcpy(w, rest, strlen(rest));
    w += strlen(rest);
    if (w > out && w[-1] == '/') *--w = '\0'; /* the target is a folder above */
    if (w == out) *w = '.';
    return out;
}

char *pare_path_beside(pare_arena *a, const char *file, const char *relative)
{
    const size_t n = folder_bytes(file);
    if (*relative == '/') return pare_strdup(a, relative);
    /* The folder itself: without the slash behind it, unless it is the root. */
    if (strcmp(relative, ".") == 0)
        return n ? pare_strndup(a, file, n > 1 ? n - 1 : n) : pare_strdup(a, ".");
    const char *folder = pare_strndup(a, file, n);
    return folder ? pare_sprintf(a, "%s%s", folder, relative) : NULL;
}
