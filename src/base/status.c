/* status.c - status codes, error messages, exit codes, failed assertions. */
#include <pare/base.h>

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

pare_status pare_fail(pare_err *err, pare_status code, const char *fmt, ...)
{
    if (!err) return code;
    /* Formatted aside, because an argument may be the old err->msg itself. */
    char text[sizeof err->msg] = {0};
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0) snprintf(text, sizeof text, "error without words (bad message format)");
    err->code = code;
    memcpy(err->msg, text, sizeof text);
    err->msg[sizeof err->msg - 1] = '\0';
    return code;
}

pare_status pare_no_memory(pare_err *err)
{
    return pare_fail(err, PARE_ERR_MEMORY, "out of memory");
}

void pare_err_prefix(pare_err *err, const char *prefix)
{
    if (!err) return;
    pare_fail(err, err->code, "%s: %s", prefix, err->msg);
}

pare_status pare_err_path(pare_err *err, pare_status st, const char *path)
{
    if (st && st != PARE_ERR_MEMORY && st != PARE_ERR_USAGE && err && path &&
        !strstr(err->msg, path))
        pare_err_prefix(err, path);
    return st;
}

int pare_exit_code(pare_status st)
{
    switch (st) {
    case PARE_OK:
        return 0;
    case PARE_ERR_USAGE:
        return 1;
    case PARE_ERR_INPUT:
    case PARE_ERR_IO:
    case PARE_ERR_MEMORY:
    case PARE_ERR_NONFINITE:
    case PARE_ERR_NUMERIC:
        return 2;
    case PARE_ERR_PROMISE:
        return 3;
    case PARE_ERR_VERIFY:
        return 4;
    case PARE_ERR_STOPPED:
        return 130;
    }
    return 2;
}

_Noreturn void pare_assert_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: this must hold and does not: %s\n", file, line, what);
    abort();
}
