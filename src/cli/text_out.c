/* text_out.c - turns tokens into whole characters that are safe to print (text_out.h). */
#include "text_out.h"
#include "base/utf8.h"

#include <string.h>

static void emit(text_out *t, cli *c, const char *s, size_t n)
{
    if (t->capacity - t->n < n + 1) {
        const size_t capacity = 2 * t->capacity + n + 256;
        char *const more = pare_alloc(c->arena, capacity, 1);
        if (!more) {
            t->failed = true;
            return;
        }
        if (t->n) memcpy(more, t->all, t->n);
        t->all = more;
        t->capacity = capacity;
    }
    memcpy(t->all + t->n, s, n);
    t->n += n;
    t->all[t->n] = '\0';
}

/* Whether more bytes could complete a character. */
static bool is_prefix(const unsigned char *p, size_t n)
{
    const size_t want = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || n >= want) return false;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return false;
    return true;
}

/* Emits the characters that are complete; at the end, all bytes. */
static void emit_complete(text_out *t, cli *c, bool end)
{
    while (t->nheld) {
        size_t n;
        const uint32_t b = pare_utf8_next((const char *)t->held, t->nheld, &n);
        if (b == PARE_NO_CHAR && !end && is_prefix(t->held, t->nheld)) return;
        const bool control = (b < 0x20 && b != '\n' && b != '\t') || (b >= 0x7F && b < 0xA0);
        if (b != PARE_NO_CHAR && !control)
            emit(t, c, (const char *)t->held, n);
        else
            emit(t, c, "\xEF\xBF\xBD", 3);
        t->nheld -= n;
        memmove(t->held, t->held + n, t->nheld);
    }
}

void text_put(text_out *t, cli *c, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        t->held[t->nheld++] = (unsigned char)s[i];
        emit_complete(t, c, false);
    }
}

void text_end(text_out *t, cli *c)
{
    emit_complete(t, c, true);
}

void text_show(text_out *t)
{
    if (t->n > t->shown) fwrite(t->all + t->shown, 1, t->n - t->shown, stdout);
    t->shown = t->n;
}
