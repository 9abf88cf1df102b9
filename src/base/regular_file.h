/* regular_file.h - regular files read from their beginning to their end, for blob.c and sha256.c. A
 * pipe or a device may never end, or never begin: neither is opened. */
#ifndef PARE_SRC_REGULAR_FILE_H
#define PARE_SRC_REGULAR_FILE_H
#include <pare/base.h>

typedef struct regular {
    const char *path; /* borrowed, for messages */
    int fd;
    size_t bytes, done; /* of the file when it was opened, and read of them */
} regular;

/* PARE_ERR_IO for what cannot be opened, and for what is not a regular file; links are followed.
 * What was opened is given back by regular_close. */
PARE_MUST_USE pare_status regular_open(regular *r, const char *path, pare_err *err);
/* The next `count` bytes; at most those that are left. PARE_ERR_IO when the file has become
 * shorter. */
PARE_MUST_USE pare_status regular_read(regular *r, void *to, size_t count, pare_err *err);
/* PARE_ERR_IO when there is more in the file than when it was opened. */
PARE_MUST_USE pare_status regular_end(regular *r, pare_err *err);
void regular_close(regular *r);
#endif
