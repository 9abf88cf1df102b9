/* suggest.h - the word a user may have meant. */
#ifndef PARE_CLI_SUGGEST_H
#define PARE_CLI_SUGGEST_H
#include <stddef.h>

/* The word of the list that is nearest to `typed`, or NULL when none is near: at most one edit for
 * words of up to five letters, one edit more for every three letters beyond. An edit inserts,
 * deletes or replaces one letter or swaps two neighbors. A word that begins with `typed` is near
 * as well if it is the only one. The list ends in NULL. */
const char *suggest_word(const char *typed, const char *const *words);
#endif
