/* subset_coarse.c - most items greedily, the last few exactly: the coarse ones are taken largest
 * first whenever that brings the sum closer to the target minus half of all fine ones, where the
 * sums of the fine ones are densest. */
#include "subset_parts.h"
#include <stdlib.h>
#include <string.h>

typedef struct item {
    int64_t size, value;
    int64_t k;
} item;

static int largest_first(const void *a, const void *b)
{
    const item *const x = a, *const y = b;
    if (x->size != y->size) return x->size < y->size ? 1 : -1;
    return (x->k > y->k) - (x->k < y->k);
}

bool subset_coarse(pare_subset_solver *s, const subset_job *j, size_t fine, int64_t *rest,
                   uint64_t *mask)
{
    PARE_ASSERT(fine <= j->n);
    const size_t n = j->n - fine;
    item *const it = (item *)subset_cells(s, 3 * n);
    if (!it) return false;
    for (size_t k = 0; k < n; k++) it[k] = (item){subset_abs(j->x[k]), j->x[k], (int64_t)k};
    qsort(it, n, sizeof *it, largest_first);
    int64_t half = 0, missing = j->target;
    for (size_t k = n; k < j->n; k++) half += j->x[k];
    half /= 2;
    memset(mask, 0, (j->n + 63) / 64 * sizeof *mask);
    for (size_t i = 0; i < n; i++) {
        if (subset_abs(missing - half - it[i].value) >= subset_abs(missing - half)) continue;
        missing -= it[i].value;
        subset_put(mask, (size_t)it[i].k);
    }
    *rest = missing;
    return true;
}
