/* suggest.c - nearest words by the optimal string alignment distance. */
#include <pare/base.h>
#include "suggest.h"

#include <string.h>

enum { LONGEST = 40 }; /* longer words are not compared: no option is that long */

static size_t min_of(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* d[i][j] = edits between the first i letters of a and the first j of b. */
static size_t edit_distance(const char *a, const char *b)
{
    const size_t n = strlen(a), m = strlen(b);
    size_t d[LONGEST + 1][LONGEST + 1];
    if (n > LONGEST || m > LONGEST) return LONGEST;
    for (size_t i = 0; i <= n; i++) d[i][0] = i;
    for (size_t j = 0; j <= m; j++) d[0][j] = j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            const size_t change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = min_of(change, 1 + min_of(d[i - 1][j], d[i][j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min_of(d[i][j], 1 + d[i - 2][j - 2]);
        }
    return d[n][m];
}

const char *suggest_word(const char *typed, const char *const *words)
{
    const size_t length = strlen(typed);
    const size_t limit = length <= 5 ? 1 : 1 + (length - 3) / 3;
    const char *nearest = NULL, *begins = NULL;
    size_t least = limit + 1, nbegin = 0;
    for (size_t i = 0; words[i]; i++) {
        const size_t edits = edit_distance(typed, words[i]);
        if (edits < least) least = edits, nearest = words[i];
        if (length > 1 && strncmp(typed, words[i], length) == 0) begins = words[i], nbegin++;
    }
    /* Two letters that are both wrong are no hint. */
    if (nearest && least < length) return nearest;
    return nbegin == 1 ? begins : NULL;
}
