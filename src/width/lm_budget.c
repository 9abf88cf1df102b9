/* How a share of the parameters is spread over the parts of a model: what costs least goes first.
 *
 * Every part (the hidden units of a layer, the values of its heads) has a list of what its next
 * loss costs, from the large model, in the metric of the outputs. Costs of different layers are not
 * simply added up: an error on top of another one costs more than alone. So the price of going
 * further in one part rises with the share x of it that is gone already, by 1 + STEEP x^2, and the
 * cut is spread wider than the sum alone would say. */
#include "lm_auto.h"
#include <math.h>

#define STEEP 8

static double price(const part_cost *p)
{
    const double x = (double)(p->gone + 1) / (double)p->of;
    return p->cost[p->gone] * (1 + STEEP * x * x) / (double)p->size[p->gone];
}

/* Costs that never fall: greedy removal meets a cheap unit late now and then. */
static void rise(part_cost *p)
{
    for (size_t i = 1; i < p->n; i++) p->cost[i] = fmax(p->cost[i], p->cost[i - 1]);
}

size_t allocate_removals(part_cost *p, size_t parts, size_t parameters)
{
    size_t done = 0;
    for (size_t k = 0; k < parts; k++) {
        rise(&p[k]);
        p[k].gone = 0;
    }
    while (done < parameters) {
        part_cost *best = NULL;
        for (size_t k = 0; k < parts; k++)
            if (p[k].gone < p[k].n && (!best || price(&p[k]) < price(best))) best = &p[k];
        if (!best) break;
        done += best->size[best->gone++];
    }
    return done;
}
