/* sort_by_key.c - largest key first; of equal keys the smaller number, the same on every machine.
 * And plain numbers in order. */
#include "support.h"

#include <stdlib.h>

static int larger(const void *a, const void *b)
{
    const pare_keyed *const x = a, *const y = b;
    if (x->key != y->key) return x->key < y->key ? 1 : -1;
    return (x->id > y->id) - (x->id < y->id);
}

void pare_largest_first(pare_keyed *list, size_t n)
{
    qsort(list, n, sizeof *list, larger);
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void pare_sort_doubles(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
}
