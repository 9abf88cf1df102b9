/* text_buffer.c - text and pieces of text that grow in an arena (text_buffer.h). */
#include "text_buffer.h"
#include "unicode.h"
#include <string.h>

/* A longer copy of a list, or NULL: at least n + more elements, at least twice as many as before. */
static void *grown(pare_arena *a, const void *old, size_t n, size_t more, size_t *capacity,
                   size_t size)
{
    size_t want;
    if (__builtin_add_overflow(n, more, &want) || want > SIZE_MAX / 4) return NULL;
    want = want < 2 * *capacity ? 2 * *capacity : want + 32;
    void *const list = pare_alloc(a, want, size);
    if (!list) return NULL;
    if (n) memcpy(list, old, n * size);
    *capacity = want;
    return list;
}

void pare_buffer_put(pare_buffer *b, const char *s, size_t n)
{
    if (b->failed || n == 0) return;
    if (b->capacity - b->n < n) {
        char *const longer = grown(b->arena, b->s, b->n, n, &b->capacity, 1);
        b->failed = !longer;
        if (b->failed) return;
        b->s = longer;
    }
    memcpy(b->s + b->n, s, n);
    b->n += n;
}

void pare_buffer_put_char(pare_buffer *b, uint32_t c)
{
    char s[4];
    pare_buffer_put(b, s, pare_utf8_put(s, c));
}

void pare_spans_put(pare_spans *list, pare_span span)
{
    if (list->failed || span.n == 0) return;
    if (list->n == list->capacity) {
        pare_span *const longer =
            grown(list->arena, list->v, list->n, 1, &list->capacity, sizeof *list->v);
        list->failed = !longer;
        if (list->failed) return;
        list->v = longer;
    }
    list->v[list->n++] = span;
}

int32_t *pare_id_list_reserve(pare_id_list *list, size_t count)
{
    if (!list->failed && list->capacity - list->n < count) {
        int32_t *const longer =
            grown(list->arena, list->v, list->n, count, &list->capacity, sizeof *list->v);
        list->failed = !longer;
        if (longer) list->v = longer;
    }
    return list->failed ? NULL : list->v + list->n;
}

void pare_id_list_put(pare_id_list *list, int32_t id)
{
    int32_t *const to = pare_id_list_reserve(list, 1);
    if (!to) return;
    *to = id;
    list->n++;
}

pare_status pare_add_note(const char **notes, pare_arena *a, const char *line, pare_err *err)
{
    *notes = pare_sprintf(a, "%s%s%s", *notes ? *notes : "", *notes ? "\n" : "", line);
    return *notes ? PARE_OK : pare_no_memory(err);
}
