/* warn_text.h - warnings about a text that was read. */
#ifndef PARE_CLI_WARN_TEXT_H
#define PARE_CLI_WARN_TEXT_H
#include "cli.h"

/* Says on stderr that a text is not UTF-8, or how many of its words the vocabulary lacks; nothing
 * where nothing is odd. `where`: the file, or the option that the text came with. */
void warn_text(cli *c, const char *where, const pare_text_notes *n);
#endif
