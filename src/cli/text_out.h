/* text_out.h - a text that comes in tokens and goes out in whole characters. */
#ifndef PARE_CLI_TEXT_OUT_H
#define PARE_CLI_TEXT_OUT_H
#include "cli.h"

/* Tokens may end within a character: its bytes are held back until it is whole. What is no UTF-8,
 * and control characters that could play with the terminal, become U+FFFD. */
typedef struct text_out {
    unsigned char held[4];
    size_t nheld;
    char *all; /* n bytes and a zero, or NULL; in the arena */
    size_t n, capacity, shown;
    bool failed; /* memory was out */
} text_out;

void text_put(text_out *t, cli *c, const char *s, size_t n);
void text_end(text_out *t, cli *c); /* what is held back comes out */
/* Writes what has come since the last time to stdout. */
void text_show(text_out *t);
#endif
