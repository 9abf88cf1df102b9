/* warn_text.c - warnings about a text (warn_text.h). */
#include "warn_text.h"

void warn_text(cli *c, const char *where, const pare_text_notes *n)
{
    if (n->invalid)
        cli_note(c,
                 "warning: %s is not UTF-8: %zu invalid %s, the first in line %zu (byte %zu); each "
                 "is read as a single byte",
                 where, n->invalid, n->invalid == 1 ? "byte" : "bytes", n->invalid_line,
                 n->invalid_byte);
    if (n->longer)
        cli_note(c,
                 "%s: %zu text%s longer than the %zu tokens that the model takes (the longest has "
                 "%zu): cut to them",
                 where, n->longer, n->longer == 1 ? " is" : "s are", n->most, n->longest);
    if (n->unknown)
        cli_note(c,
                 "warning: %s: the vocabulary lacks %zu of %zu words, the first is '%s'; they are "
                 "left out",
                 where, n->unknown, n->words, n->first_unknown);
}
