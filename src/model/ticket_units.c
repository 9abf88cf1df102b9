/* ticket_units.c - which hidden units serve which column of a factored ticket, and their weights.
 *
 * Units of a ReLU source stand between two maps: A relu(B x). A unit whose only input is x_j passes
 * B_kj x_j+ on where B_kj > 0 and |B_kj| x_j- where it is not: column j of the ticket multiplies
 * x_j+ and column inputs + j multiplies x_j-, each served by units of its sign alone. */
#include "source.h"
#include "ticket_factored.h"
#include <stdlib.h>

unsigned unit_column_bits(size_t b)
{
    unsigned bits = 1;
    while ((uint64_t)b >> bits) bits++;
    return bits;
}

pare_status unit_layout_init(unit_layout *d, pare_arena *a, const uint32_t *own, pare_err *err)
{
    const size_t inputs = d->inputs ? d->inputs : d->b;
    d->first = pare_alloc(a, d->b + 2, sizeof *d->first);
    d->unit = pare_alloc(a, d->n + 1, sizeof *d->unit);
    d->weight = pare_alloc(a, d->n + 1, sizeof *d->weight);
    if (!d->first || !d->unit || !d->weight) return pare_no_memory(err);
    for (size_t k = 0; k < d->n; k++)
        if (own[k] != PARE_NO_COLUMN) d->first[own[k] + 2]++;
    for (size_t j = 0; j < d->b; j++) d->first[j + 2] += d->first[j + 1];
    for (size_t k = 0; k < d->n; k++)
        if (own[k] != PARE_NO_COLUMN) d->unit[d->first[own[k] + 1]++] = (uint32_t)k;
    for (size_t j = 0; j < d->b; j++)
        for (size_t u = d->first[j]; u < d->first[j + 1]; u++) {
            const uint64_t at = (uint64_t)d->unit[u] * inputs + j % inputs;
            int32_t w;
            pare_source_weights(&w, d->seed, d->stream + 1, at, 1);
            /* B as column j counts it; 0: the unit passes the other sign on. */
            d->weight[u] = !d->inputs ? w : (w > 0) == (j < inputs) ? abs(w) : 0;
        }
    d->donated = d->donor == PARE_NO_COLUMN ? 0 : d->first[d->donor + 1] - d->first[d->donor];
    return PARE_OK;
}

pare_status unit_layout_check(const unit_layout *d, pare_err *err)
{
    const size_t least = d->inputs ? 0 : 1; /* all units near an input may be of one sign */
    if (d->inputs && d->donor != PARE_NO_COLUMN)
        return pare_fail(err, PARE_ERR_INPUT,
                         "a ReLU ticket with a donor: two inputs of one unit do not separate");
    if (d->first[d->b] < (d->b + 3) / 4) /* few bytes must not stand for many columns of zeros */
        return pare_fail(err, PARE_ERR_INPUT, "a ticket whose %zu columns have %zu hidden units",
                         d->b, d->first[d->b]);
    for (size_t j = 0; j < d->b; j++) {
        const size_t units = d->first[j + 1] - d->first[j];
        if (units < least || units + d->donated > PARE_SOURCE_MOST)
            return pare_fail(
                err, PARE_ERR_INPUT,
                "a ticket whose column %zu has %zu hidden units: %zu to %d are possible", j, units,
                least, PARE_SOURCE_MOST);
        for (size_t u = d->first[j]; u < d->first[j + 1]; u++)
            if (d->weight[u] == 0)
                return pare_fail(err, PARE_ERR_INPUT,
                                 "a ReLU ticket whose hidden unit %u cannot serve column %zu: it "
                                 "passes the other sign on",
                                 (unsigned)d->unit[u], j);
    }
    return PARE_OK;
}

void unit_layout_items(int64_t *x, const unit_layout *d, const int32_t *row, size_t j)
{
    for (size_t u = d->first[j]; u < d->first[j + 1]; u++)
        x[u - d->first[j]] = (int64_t)row[d->unit[u]] * d->weight[u];
}
