/* list.h - lists of texts and records in an arena. */
#ifndef PARE_BASE_LIST_H
#define PARE_BASE_LIST_H
#include <pare/base.h>

/* Makes sure that a list of n elements of `size` bytes can take one more. Returns the list, moved
 * where it had to grow, or NULL when memory is out. */
void *list_grow(pare_arena *a, void *list, size_t n, size_t *capacity, size_t size);
/* Sorts by bytes, as strcmp compares: the same order on every machine and in every locale. */
void sort_texts(char **text, size_t n);
#endif
