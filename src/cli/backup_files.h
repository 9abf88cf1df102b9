/* aside.h - backups of what -f would replace, until the command knows whether it does. */
#ifndef PARE_SRC_CLI_ASIDE_H
#define PARE_SRC_CLI_ASIDE_H
#include "cli.h"

enum { ASIDE_MOST = 16 };

typedef struct aside {
    const char *const *tails; /* behind the name after -o: all the files there may be */
    size_t n;
    const char *old[ASIDE_MOST]; /* second names of what was there before; NULL: nothing */
} aside;

/* Makes the backups. After that the files may be overwritten and removed. */
PARE_MUST_USE pare_status aside_begin(cli *c, aside *out, const char *const *tails, size_t n);
/* back: restores all of them. Else removes the backups, and the temporary files that killed runs
 * have left of any of these files. */
PARE_MUST_USE pare_status aside_end(cli *c, const aside *a, bool back);
#endif
