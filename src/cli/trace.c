/* trace.c - writes hidden states as files (trace.h): embedding.npy, block0.attn_in.npy,
 * block0.attn_out.npy, ..., head.npy. */
#include "trace.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static bool is_not_empty(const char *folder)
{
    DIR *d = opendir(folder);
    bool found = false;
    if (!d) return false;
    for (const struct dirent *e = readdir(d); e && !found; e = readdir(d))
        found = strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
    closedir(d);
    return found;
}

pare_status trace_open(tracer *t, cli *c, const char *folder)
{
    *t = (tracer){.c = c, .folder = folder, .batch = 1};
    if (mkdir(folder, 0777) == 0) return PARE_OK;
    if (errno != EEXIST || !pare_is_dir(folder))
        return pare_fail(&c->err, PARE_ERR_IO, "--trace %s: %s", folder, strerror(errno));
    if (!c->force && is_not_empty(folder))
        return pare_fail(&c->err, PARE_ERR_IO,
                         "--trace %s: the folder is not empty; use -f to overwrite", folder);
    return PARE_OK;
}

void trace_tap(void *self, pare_tap tap, size_t block, pare_dtype dtype, const void *v, size_t rows,
               size_t cols)
{
    tracer *t = self;
    if (t->st) return;
    pare_array a = {.dtype = dtype, .ndim = 2, .shape = {rows, cols}, .data = v};
    if (t->batch > 1) {
        a.ndim = 3;
        a.shape[0] = t->batch;
        a.shape[1] = rows / t->batch;
        a.shape[2] = cols;
    }
    static const char *const name[] = {"embedding", "attn_in", "attn_out",
                                       "ffn_in",    "ffn_out", "head"};
    const char *const path =
        tap == PARE_TAP_EMBEDDING || tap == PARE_TAP_HEAD
            ? pare_sprintf(t->c->arena, "%s/%s.npy", t->folder, name[tap])
            : pare_sprintf(t->c->arena, "%s/block%zu.%s.npy", t->folder, block, name[tap]);
    t->st = path ? pare_npy_write(path, &a, t->c->force, &t->c->err) : pare_no_memory(&t->c->err);
    t->files++;
}
