/* Tokens into whole characters that are safe to print. */
#include "text_out.h"
#include "out.h"

#include <string.h>

static void emit(text_out *t, cli *c, const char *s, size_t n)
{
    if (t->room - t->n < n + 1) {
        const size_t room = 2 * t->room + n + 256;
        char *const more = pare_alloc(c->arena, room, 1);
        if (!more) {
            t->failed = true;
            return;
        }
        if (t->n) memcpy(more, t->all, t->n);
        t->all = more;
        t->room = room;
    }
    memcpy(t->all + t->n, s, n);
    t->n += n;
    t->all[t->n] = '\0';
}

static bool harmless(const unsigned char *p, size_t n)
{
    if (n == 1) return p[0] >= 0x20 ? p[0] != 0x7F : p[0] == '\n' || p[0] == '\t';
    return !(n == 2 && p[0] == 0xC2 && p[1] < 0xA0);
}

/* Could more bytes make a character of these? */
static bool unfinished(const unsigned char *p, size_t n)
{
    const size_t want = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;
    if (p[0] < 0xC2 || p[0] > 0xF4 || n >= want) return false;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return false;
    return true;
}

/* Gives out what is decided; at the end everything is. */
static void settle(text_out *t, cli *c, bool end)
{
    while (t->nheld) {
        size_t n = out_utf8_length(t->held, t->nheld);
        if (n == 0 && !end && unfinished(t->held, t->nheld)) return;
        if (n && harmless(t->held, n))
            emit(t, c, (const char *)t->held, n);
        else
            emit(t, c, "\xEF\xBF\xBD", 3);
        if (n == 0) n = 1;
        t->nheld -= n;
        memmove(t->held, t->held + n, t->nheld);
    }
}

void text_put(text_out *t, cli *c, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        t->held[t->nheld++] = (unsigned char)s[i];
        settle(t, c, false);
    }
}

void text_end(text_out *t, cli *c)
{
    settle(t, c, true);
}

void text_show(text_out *t)
{
    if (t->n > t->shown) fwrite(t->all + t->shown, 1, t->n - t->shown, stdout);
    t->shown = t->n;
}
