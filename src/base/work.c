/* work.c - a computation of many steps with one error (work.h). */
#include "work.h"

#include <stdarg.h>

void pare_work_fail(pare_work *w, pare_status st, const char *fmt, ...)
{
    char text[sizeof w->err->msg];
    if (w->st) return;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    w->st = pare_fail(w->err, st, "%s", text);
}

void pare_work_keep(pare_work *w, pare_status st)
{
    if (!w->st) w->st = st;
}

void *pare_work_alloc(pare_work *w, size_t count, size_t size)
{
    if (!w->st) w->st = pare_stopped(w->exec, w->err);
    if (w->st) return NULL;
    void *const p = pare_alloc(w->arena, count > 0 ? count : 1, size);
    if (!p) w->st = pare_no_memory(w->err);
    return p;
}
