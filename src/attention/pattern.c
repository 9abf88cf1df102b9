/* pattern.c - the keys that a query sees under each pattern. */
#include "attend.h"

pare_keys pare_visible(const pare_pattern *p, const pare_graph *g, size_t n, size_t query)
{
    pare_keys k = {0};
    switch (p->kind) {
    case PARE_FULL:
        k.to[0] = n;
        break;
    case PARE_CAUSAL:
        k.to[0] = query + 1;
        break;
    case PARE_WINDOW: {
        const size_t first = query + 1 > p->window ? query + 1 - p->window : 0;
        k.to[0] = p->sinks < first ? p->sinks : first;
        k.from[1] = first;
        k.to[1] = query + 1;
        break;
    }
    case PARE_GRAPH:
        k.list = g->idx + g->ptr[query];
        k.count = g->ptr[query + 1] - g->ptr[query];
        return k;
    }
    k.count = (k.to[0] - k.from[0]) + (k.to[1] - k.from[1]);
    return k;
}

bool pare_never_empty(const pare_pattern *p)
{
    return p->kind != PARE_GRAPH || p->self_loops;
}
