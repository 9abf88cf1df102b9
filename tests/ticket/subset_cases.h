/* subset_cases.h - problems for the subset-sum search, and the slow right answer. */
#ifndef PARE_TESTS_TICKET_SUBSET_CASES_H
#define PARE_TESTS_TICKET_SUBSET_CASES_H
#include "pare_test.h"
#include <pare/ticket.h>
#include <stdlib.h>

/* A product of two weights of a random source: odd integers below 2^24. */
static inline int64_t source_item(pare_rng *r)
{
    const int64_t a = 2 * (int64_t)(pare_rng_u32(r) >> 8) + 1 - (1 << 24);
    const int64_t b = 2 * (int64_t)(pare_rng_u32(r) >> 8) + 1 - (1 << 24);
    return a * b;
}

static inline int64_t below(pare_rng *r, int64_t n)
{
    return (int64_t)pare_rng_below(r, (uint64_t)n);
}

enum { KINDS = 6 };
/* What a search may meet: sources, tiny integers (many ties), equal items, one sign with a target
 * out of reach, very different sizes, the largest numbers that are allowed. */
static inline int64_t make_problem(int64_t *x, size_t n, int kind, pare_rng *r)
{
    const int64_t same = source_item(r);
    for (size_t k = 0; k < n; k++) switch (kind) {
        case 1:
            x[k] = below(r, 7) - 3;
            break;
        case 2:
            x[k] = same;
            break;
        case 3:
            x[k] = llabs(source_item(r));
            break;
        case 4:
            x[k] = source_item(r) >> below(r, 48);
            break;
        case 5:
            x[k] = below(r, 2) ? PARE_SUBSET_ITEM : -PARE_SUBSET_ITEM;
            break;
        default:
            x[k] = source_item(r);
        }
    switch (kind) {
    case 1:
        return below(r, 2 * (int64_t)n + 3) - (int64_t)n - 1;
    case 2:
        return same * below(r, (int64_t)n + 2) + below(r, 3) - 1;
    case 3:
        return below(r, 2) ? -source_item(r) : PARE_SUBSET_TARGET;
    case 5:
        return below(r, 2) ? -PARE_SUBSET_TARGET : below(r, PARE_SUBSET_TARGET);
    default:
        return (source_item(r) / 2) * (1 + below(r, 4));
    }
}

static inline int64_t chosen_sum(const int64_t *x, size_t n, const uint64_t *mask)
{
    int64_t sum = 0;
    for (size_t k = 0; k < n; k++)
        if (mask[k / 64] >> (k % 64) & 1) sum += x[k];
    return sum;
}

/* The least |sum - target| over all subsets, each one item away from the one before. */
static inline int64_t by_force(const int64_t *x, size_t n, int64_t target)
{
    int64_t gap = -target, least = llabs(gap);
    uint64_t in = 0;
    for (uint64_t i = 1; i < (uint64_t)1 << n; i++) {
        const int k = __builtin_ctzll(i);
        in ^= (uint64_t)1 << k;
        gap += in >> k & 1 ? x[k] : -x[k];
        const int64_t far = llabs(gap);
        if (far < least) least = far;
    }
    return least;
}
#endif
