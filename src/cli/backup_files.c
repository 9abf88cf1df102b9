/* backup_files.c - backups under a second name beside the first; only a killed process leaves them
 * behind. */
#include "backup_files.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { BACKUP_NUMBER = 1000 /* in names: no other file of ours has it */ };

pare_status backup_begin(cli *c, backup *out, const char *const *tails, size_t n)
{
    PARE_ASSERT(n <= BACKUP_MOST);
    *out = (backup){.tails = tails, .n = n};
    for (size_t i = 0; c->force && i < n; i++) {
        const char *const path = cli_suffixed(c, c->out, tails[i]);
        const char *const old = path ? pare_sprintf(c->arena, "%s" PARE_TEMP_SUFFIX, path,
                                                    (long)getpid(), BACKUP_NUMBER)
                                     : NULL;
        if (!old) return pare_no_memory(&c->err);
        unlink(old); /* of a process of our number that was killed */
        if (link(path, old) == 0 || (errno != ENOENT && rename(path, old) == 0))
            out->old[i] = old;
        else if (errno != ENOENT)
            return pare_fail(&c->err, PARE_ERR_IO, "%s: cannot be replaced: %s", path,
                             strerror(errno));
    }
    return PARE_OK;
}

pare_status backup_end(cli *c, const backup *a, bool back)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; i < a->n; i++) {
        const char *const path = back && !a->old[i] ? NULL : cli_suffixed(c, c->out, a->tails[i]);
        if (back && a->old[i] && (!path || rename(a->old[i], path) != 0))
            st = pare_fail(&c->err, PARE_ERR_IO, "%s%s: is now %s", c->out, a->tails[i], a->old[i]);
        else if (a->old[i])
            unlink(a->old[i]); /* renaming leaves both names where they are of one file */
        if (!back && path) pare_out_sweep(path);
    }
    return st;
}
