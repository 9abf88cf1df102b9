/* blame.h - the file's name before a message, once. Private to src/data. */
#ifndef PARE_DATA_BLAME_H
#define PARE_DATA_BLAME_H
#include <pare/base.h>
#include <string.h>

/* The readers of base already name the file; what we find wrong ourselves does not. */
static inline void pare_blame(pare_err *err, const char *path)
{
    if (err && err->code != PARE_ERR_MEMORY && strncmp(err->msg, path, strlen(path)) != 0)
        pare_err_prefix(err, path);
}
#endif
