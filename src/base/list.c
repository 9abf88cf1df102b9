/* list.c - lists of texts and records in an arena (list.h). */
#include "list.h"

#include <stdlib.h>
#include <string.h>

void *list_grow(pare_arena *a, void *list, size_t n, size_t *capacity, size_t size)
{
    if (n < *capacity) return list;
    const size_t more = 2 * *capacity + 8;
    void *const to = pare_alloc(a, more, size);
    if (!to) return NULL;
    if (n) memcpy(to, list, n * size);
    *capacity = more;
    return to;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void sort_texts(char **text, size_t n)
{
    if (n > 1) qsort(text, n, sizeof *text, by_bytes);
}
