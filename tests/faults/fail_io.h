/* fail_io.h - lets the n-th call that changes the disk fail.
 * The programs of tests/faults are linked with --wrap for each of these calls (Makefile), for our
 * own objects; shared libraries keep theirs. */
#ifndef FAIL_IO_H
#define FAIL_IO_H
#include <pare/base.h>
#include <stdbool.h>

/* From now on `n` calls succeed and the next one fails with `why` (an errno); `forever`: all later
 * ones as well, but for close. n < 0: none fails. */
void fail_io_after(long n, int why, bool forever);
/* From now on `n` calls come to pass, and in place of the next one the process is killed as by
 * kill -9 (a write first writes a part). */
void fail_io_kill_after(long n);
/* Every write and fsync is refused this often before it comes to pass (EINTR: a signal came). */
void fail_io_first_tries(int times, int why);
/* A write takes only a third of what it is given. */
void fail_io_short(bool on);
/* Which call failed since the last fail_io_after; NULL: none. */
const char *fail_io_hit(void);
/* How often files were opened, for reading or writing, whose path ends so since the last reset. */
int fail_io_opens(const char *end);
void fail_io_forget_opens(void);
#endif
