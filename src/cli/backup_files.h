/* backup_files.h - backups of what -f would replace, until the command knows whether it does. */
#ifndef PARE_CLI_BACKUP_FILES_H
#define PARE_CLI_BACKUP_FILES_H
#include "cli.h"

enum { BACKUP_MOST = 16 };

typedef struct backup {
    const char *const *tails; /* behind the name after -o: all the files there may be */
    size_t n;
    const char *old[BACKUP_MOST]; /* second names of what was there before; NULL: nothing */
} backup;

/* Makes the backups. After that the files may be overwritten and removed. */
PARE_MUST_USE pare_status backup_begin(cli *c, backup *out, const char *const *tails, size_t n);
/* back: restores all of them. Else removes the backups, and the temporary files that killed runs
 * have left of any of these files. */
PARE_MUST_USE pare_status backup_end(cli *c, const backup *a, bool back);
#endif
