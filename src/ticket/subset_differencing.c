/* subset_differencing.c - largest differencing (Karmarkar and Karp). The error (sum over the
 * chosen of x) - target is half of (sum of +-x) - (2 target - sum of all), so the numbers |x| and
 * |2 target - sum of all| are to be divided into two heaps of equal weight. The two largest
 * numbers are put on different sides, which leaves their difference as one number, until one
 * number is left. Going back, a difference gives opposite sides to its two numbers. */
#include "subset_parts.h"
#include <string.h>

typedef struct heap { /* of numbers, largest first */
    uint32_t *id;
    size_t n;
    const int64_t *value;
} heap;

/* Of equal numbers the earlier one first: the order is always the same. */
static bool larger(const heap *h, uint32_t a, uint32_t b)
{
    const int64_t x = h->value[a], y = h->value[b];
    return x != y ? x > y : a < b;
}

static void sink(heap *h, size_t i)
{
    const uint32_t id = h->id[i];
    for (size_t c; (c = 2 * i + 1) < h->n; i = c) {
        if (c + 1 < h->n && larger(h, h->id[c + 1], h->id[c])) c++;
        if (!larger(h, h->id[c], id)) break;
        h->id[i] = h->id[c];
    }
    h->id[i] = id;
}

typedef struct tree { /* numbers 0 .. n: the items and the target; then the differences */
    int64_t *value;
    uint32_t (*from)[2]; /* a difference is the first less the second */
    int8_t *side;
    size_t leaves, nodes;
} tree;

static void difference_all(tree *t, heap *h)
{
    for (size_t i = h->n / 2; i-- > 0;) sink(h, i);
    while (h->n > 1) {
        const uint32_t a = h->id[0];
        h->id[0] = h->id[--h->n];
        sink(h, 0);
        const uint32_t b = h->id[0], d = (uint32_t)t->nodes++;
        t->value[d] = t->value[a] - t->value[b];
        t->from[d][0] = a;
        t->from[d][1] = b;
        h->id[0] = d;
        sink(h, 0);
    }
}

/* The items of one side, the target being on the other. Kept when closer than before. */
static void take_side(subset_job *j, const tree *t, int64_t goal)
{
    const int sign = t->side[j->n] == (goal >= 0 ? -1 : 1) ? 1 : -1;
    int64_t sum = 0;
    for (size_t k = 0; k < j->n; k++)
        if (t->side[k] * sign * (j->x[k] < 0 ? -1 : 1) > 0) sum += j->x[k];
    if (subset_abs(sum - j->target) >= subset_abs(j->error)) return;
    j->error = sum - j->target;
    memset(j->mask, 0, (j->n + 63) / 64 * sizeof *j->mask);
    for (size_t k = 0; k < j->n; k++)
        if (t->side[k] * sign * (j->x[k] < 0 ? -1 : 1) > 0) subset_put(j->mask, k);
}

bool subset_differencing(pare_subset_solver *s, subset_job *j)
{
    const size_t leaves = j->n + 1, nodes = 2 * leaves;
    int64_t *const v = subset_cells(s, nodes + nodes + leaves + nodes);
    if (!v) return false;
    tree t = {.value = v,
              .from = (uint32_t(*)[2])(v + nodes),
              .side = (int8_t *)(v + 2 * nodes + leaves),
              .leaves = leaves,
              .nodes = leaves};
    heap h = {(uint32_t *)(v + 2 * nodes), leaves, v};
    int64_t all = 0;
    for (size_t k = 0; k < j->n; k++) all += j->x[k];
    const int64_t goal = 2 * j->target - all;
    for (size_t k = 0; k < leaves; k++) {
        v[k] = subset_abs(k < j->n ? j->x[k] : goal);
        h.id[k] = (uint32_t)k;
    }
    difference_all(&t, &h);
    t.side[t.nodes - 1] = 1; /* a difference gives opposite sides to its two numbers */
    for (size_t d = t.nodes; d-- > t.leaves;) {
        t.side[t.from[d][0]] = t.side[d];
        t.side[t.from[d][1]] = (int8_t)-t.side[d];
    }
    take_side(j, &t, goal);
    return true;
}
