/* subset_sums.c - all subset sums of a few items in order, by doubling: the sums with one item
 * more are those without it merged with the same ones shifted. No sorting.
 *
 * The complement of a subset has the sum (all - sum), so the upper half of each list is the mirror
 * image of the lower one, and only the lower one is merged. A merge is one long chain of dependent
 * loads; four chains that start on four diagonals of the merge and are walked in lock step hide
 * each other's latency. */
#include "subset_parts.h"

enum { CHAINS = 4, SHORT = 32 };

size_t subset_sums_cells(unsigned m)
{
    return ((size_t)2 << m) - 1 + 2 * (size_t)(m + 1); /* 1 + 2 + ... + 2^m, and the ends of each */
}

/* How many of the first `steps` outputs of merging (list + low) with (list + high) are of the
 * first; equal ones come from the first. */
static size_t diagonal(const int64_t *list, int64_t low, int64_t high, size_t steps)
{
    size_t from = 0, to = steps;
    while (from < to) {
        const size_t mid = (from + to) / 2;
        if (list[mid] + low <= list[steps - mid - 1] + high)
            from = mid + 1;
        else
            to = mid;
    }
    return from;
}

static void merge_short(int64_t *restrict out, const int64_t *list, size_t n, int64_t low,
                        int64_t high)
{
    size_t i = 0, j = 0;
    for (size_t k = 0; k < n; k++) {
        const int64_t a = list[i] + low, b = list[j] + high;
        const bool first = a <= b;
        out[k] = first ? a : b;
        i += first;
        j += !first;
    }
}

/* n is a multiple of CHAINS. Both cursors of a chain are pointers: their sum is what it has made.
 */
static void merge_long(int64_t *restrict out, const int64_t *list, size_t n, int64_t low,
                       int64_t high)
{
    const size_t part = n / CHAINS;
    size_t i[CHAINS], j[CHAINS];
    for (size_t c = 0; c < CHAINS; c++) {
        i[c] = diagonal(list, low, high, c * part);
        j[c] = c * part - i[c];
    }
    for (size_t k = 0; k < part; k++)
#pragma GCC unroll 4 /* the cursors of all chains in registers */
        for (size_t c = 0; c < CHAINS; c++) {
            const int64_t a = list[i[c]] + low, b = list[j[c]] + high;
            const bool first = a <= b;
            out[c * part + k] = first ? a : b;
            i[c] += first;
            j[c] += !first;
        }
}

void subset_sums_build(subset_sums *s, const int64_t *x, unsigned m, int64_t *cells)
{
    PARE_ASSERT(m <= SUBSET_HALF);
    s->x = x;
    s->m = m;
    for (unsigned r = 0; r <= m; r++) {
        const size_t n = (size_t)1 << r;
        cells[0] = -SUBSET_FAR;
        s->level[r] = cells + 1;
        cells[n + 1] = SUBSET_FAR;
        cells += n + 2;
    }
    s->level[0][0] = 0;
    int64_t all = 0;
    for (unsigned r = 0; r < m; r++) {
        const size_t n = (size_t)1 << r;
        int64_t *const out = s->level[r + 1];
        const int64_t low = x[r] < 0 ? x[r] : 0, high = x[r] < 0 ? 0 : x[r];
        all += x[r];
        (n < SHORT ? merge_short : merge_long)(out, s->level[r], n, low, high);
        for (size_t k = 0; k < n; k++) out[2 * n - 1 - k] = all - out[k];
    }
}

bool subset_sums_has(const int64_t *list, size_t n, int64_t value)
{
    size_t from = 0, to = n;
    while (from < to) {
        const size_t mid = (from + to) / 2;
        if (list[mid] < value)
            from = mid + 1;
        else
            to = mid;
    }
    return from < n && list[from] == value;
}

void subset_sums_mask(const subset_sums *s, int64_t value, size_t first, uint64_t *mask)
{
    for (unsigned r = s->m; r-- > 0;) {
        if (subset_sums_has(s->level[r], (size_t)1 << r, value)) continue; /* without item r */
        subset_put(mask, first + r);
        value -= s->x[r];
    }
    PARE_ASSERT(value == 0);
}
