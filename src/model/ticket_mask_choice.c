/* Which items of an entry, when bits cost something: the least (sum - target)^2 + price bits; and
 * what a coder learns from those that were chosen.
 *
 * All choices are the leaves of a tree, one item a level, in the order of the coder. A branch is
 * given up where its bits so far, and the distance of the target from all that the items below can
 * still add, cost no less than the best leaf: with a price few branches are left, for few masks
 * have few bits. */
#include "ticket_factored.h"
#include <math.h>

typedef struct walk {
    bridge_entry e;
    const pare_bridge *b;
    double item[BRIDGE_UNITS];                            /* in the coder's order, in 1 */
    double low[BRIDGE_UNITS + 1], high[BRIDGE_UNITS + 1]; /* what items k and later can add */
    double target, price, best;
    uint64_t path;
    pare_chosen chosen;
} walk;

static double bits_of(uint32_t chance)
{
    return (double)(BRIDGE_BITS - log2f((float)chance));
}

/* How far what can still be reached is from the target. */
static double off(const walk *w, size_t k, double sum)
{
    const double low = sum + w->low[k] - w->target, high = sum + w->high[k] - w->target;
    return low > 0 ? low : high < 0 ? -high : 0;
}

/* The sum of the items chosen so far, also as the coder sees it, and their bits. */
static void descend(walk *w, size_t k, double sum, int64_t coarse, double bits)
{
    const double far = off(w, k, sum), cost = far * far + w->price * bits;
    if (!(cost < w->best)) return;
    if (k == w->e.count) {
        w->best = cost;
        w->chosen = (pare_chosen){w->path, bits};
        return;
    }
    const uint32_t p = bridge_chance(&w->e, k, coarse, w->b);
    const double one = bits + bits_of(p), zero = bits + bits_of((1u << BRIDGE_BITS) - p);
    const double middle = (w->low[k] + w->high[k] - w->item[k]) / 2 + sum - w->target;
    const bool first = fabs(middle + w->item[k] / 2) < fabs(middle - w->item[k] / 2);
    const uint64_t bit = (uint64_t)1 << w->e.order[k];
    for (int turn = 0; turn < 2; turn++) {
        if ((turn == 0) == first) {
            w->path |= bit;
            descend(w, k + 1, sum + w->item[k], coarse + w->e.item[k], one);
            w->path &= ~bit;
        } else {
            descend(w, k + 1, sum, coarse, zero);
        }
    }
}

pare_chosen pare_bridge_choose(const int64_t *item, size_t count, double target, double price,
                               const pare_bridge *b)
{
    walk w = {.b = b, .target = target, .price = price, .best = INFINITY};
    PARE_ASSERT(count <= BRIDGE_UNITS);
    bridge_entry_open(&w.e, item, count);
    for (size_t k = count; k-- > 0;) {
        w.item[k] = (double)item[w.e.order[k]] * PARE_SOURCE_UNIT;
        w.low[k] = w.low[k + 1] + fmin(w.item[k], 0);
        w.high[k] = w.high[k + 1] + fmax(w.item[k], 0);
    }
    descend(&w, 0, 0, 0, 0);
    return w.chosen;
}

void pare_bridge_look(pare_bridge_seen *s, const int64_t *item, size_t count, uint64_t mask,
                      const pare_bridge *b)
{
    bridge_entry e;
    int64_t sum = 0;
    bridge_entry_open(&e, item, count);
    for (size_t k = 0; k < count; k++) {
        const bool one = mask >> e.order[k] & 1;
        const double p = ldexp(bridge_chance(&e, k, sum, b), -BRIDGE_BITS);
        s->more[k] += one - p;
        s->unsure[k] += p * (1 - p);
        if (one) sum += e.item[k];
    }
}

/* A step of Newton's: the likelihood of the masks is concave in the priors. */
void pare_bridge_learn(pare_bridge *b, const pare_bridge_seen *s)
{
    for (size_t k = 0; k < b->ranks; k++) {
        const double step = s->unsure[k] > 0 ? BRIDGE_ODDS * s->more[k] / s->unsure[k] : 0;
        const double v = nearbyint(b->prior[k] + fmax(-BRIDGE_ODDS, fmin(BRIDGE_ODDS, step)));
        b->prior[k] = (int8_t)fmax(-96, fmin(96, v));
    }
}
