/* ticket_mask_choice.c - which items of an entry to choose when bits have a price: those with the
 * least (sum - target)^2 + price bits; and how the coder learns from the choices.
 *
 * All choices are the leaves of a tree, one item a level, in the order of the coder. A branch is
 * given up where its bits so far, and the distance of the target from all that the items below can
 * still add, cost no less than the best leaf: with a price few branches are left, for few masks
 * have few bits. */
#include "source.h"
#include "ticket_factored.h"
#include <math.h>

typedef struct search {
    mask_entry e;
    const pare_bridge *b;
    double item[CODER_UNITS];                           /* in the coder's order, in 1 */
    double low[CODER_UNITS + 1], high[CODER_UNITS + 1]; /* what items k and later can add */
    double target, price, best;
    uint64_t path;
    pare_chosen chosen;
} search;

static double bits_of(uint32_t probability)
{
    return (double)(PROBABILITY_BITS - log2f((float)probability));
}

/* The sum of the items chosen so far, also as the coder sees it, and their bits. */
static void descend(search *w, size_t k, double sum, int64_t coarse, double bits)
{
    /* How far all that can still be reached is from the target. */
    const double low = sum + w->low[k] - w->target, high = sum + w->high[k] - w->target;
    const double distance = low > 0 ? low : high < 0 ? -high : 0;
    const double cost = distance * distance + w->price * bits;
    if (!(cost < w->best)) return;
    if (k == w->e.count) {
        w->best = cost;
        w->chosen = (pare_chosen){w->path, bits};
        return;
    }
    const uint32_t p = mask_probability(&w->e, k, coarse, w->b);
    const double one = bits + bits_of(p), zero = bits + bits_of((1u << PROBABILITY_BITS) - p);
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
    search w = {.b = b, .target = target, .price = price, .best = INFINITY};
    PARE_ASSERT(count <= CODER_UNITS);
    mask_entry_init(&w.e, item, count);
    for (size_t k = count; k-- > 0;) {
        w.item[k] = (double)item[w.e.order[k]] * PARE_SOURCE_UNIT;
        w.low[k] = w.low[k + 1] + fmin(w.item[k], 0);
        w.high[k] = w.high[k + 1] + fmax(w.item[k], 0);
    }
    descend(&w, 0, 0, 0, 0);
    return w.chosen;
}

void pare_bridge_statistics(pare_bridge_counts *s, const int64_t *item, size_t count, uint64_t mask,
                            const pare_bridge *b)
{
    mask_entry e;
    int64_t sum = 0;
    mask_entry_init(&e, item, count);
    for (size_t k = 0; k < count; k++) {
        const bool one = mask >> e.order[k] & 1;
        const double p = ldexp(mask_probability(&e, k, sum, b), -PROBABILITY_BITS);
        s->more[k] += one - p;
        s->unsure[k] += p * (1 - p);
        if (one) sum += e.item[k];
    }
}

/* A step of Newton's: the likelihood of the masks is concave in the priors. */
void pare_bridge_learn(pare_bridge *b, const pare_bridge_counts *s)
{
    for (size_t k = 0; k < b->ranks; k++) {
        const double step = s->unsure[k] > 0 ? LOG_ODDS_STEPS * s->more[k] / s->unsure[k] : 0;
        const double v = nearbyint(b->prior[k] + fmax(-LOG_ODDS_STEPS, fmin(LOG_ODDS_STEPS, step)));
        b->prior[k] = (int8_t)fmax(-96, fmin(96, v));
    }
}
