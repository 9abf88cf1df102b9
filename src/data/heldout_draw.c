/* heldout_draw.c - the one rule for held-out data (heldout_draw.h). */
#include "base/support.h"
#include "heldout_draw.h"
#include "model/inputs.h"
#include <stdlib.h>
#include <string.h>

enum { DRAW_STREAM = 0x68656c64 };

/* Where documents begin; or, where they are few, every input. */
static pare_status find_units(pare_heldout_draw *d, pare_arena *a, const pare_inputs *all,
                              pare_err *err)
{
    size_t documents = 0;
    for (size_t i = 0; i < all->n; i++) documents += !all->in[i].continues;
    d->documents = documents >= PARE_FEWEST_DOCUMENTS && documents < all->n;
    d->n = d->documents ? documents : all->n;
    size_t *const first = pare_alloc(a, d->n + 1, sizeof *first);
    if (!first) return pare_no_memory(err);
    size_t at = 0;
    for (size_t i = 0; i < all->n; i++)
        if (!d->documents || !all->in[i].continues || i == 0) first[at++] = i;
    PARE_ASSERT(at == d->n);
    first[at] = all->n;
    d->first = first;
    return PARE_OK;
}

pare_status pare_heldout_draw_make(pare_heldout_draw *out, pare_arena *a, const pare_inputs *all,
                                   size_t want, bool alone, uint64_t seed, pare_err *err)
{
    *out = (pare_heldout_draw){0};
    const pare_status st = find_units(out, a, all, err);
    if (st) return st;
    const size_t n = out->n, share = n / PARE_HELDOUT_SHARE ? n / PARE_HELDOUT_SHARE : 1;
    size_t *const order = pare_alloc(a, n ? n : 1, sizeof *order);
    if (!order) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) order[i] = i;
    out->order = order;
    out->held = pare_min_size(want, alone || n <= 1 ? n : share);
    if (want == SIZE_MAX) return PARE_OK;
    pare_rng rng = pare_rng_at(seed, DRAW_STREAM);
    for (size_t i = 0; i + 1 < n; i++) { /* Fisher and Yates: place i gets one of those left */
        const size_t j = i + (size_t)pare_rng_below(&rng, n - i), drawn = order[j];
        order[j] = order[i];
        order[i] = drawn;
    }
    return PARE_OK;
}

pare_status pare_heldout_numbers(size_t **numbers, size_t *n, pare_arena *a,
                                 const pare_heldout_draw *d, size_t from, size_t count,
                                 bool first_alone, pare_err *err)
{
    PARE_ASSERT(from <= d->n && count <= d->n - from);
    *n = 0;
    for (size_t i = from; i < from + count; i++) {
        const size_t u = d->order[i];
        *n += first_alone ? 1 : d->first[u + 1] - d->first[u];
    }
    size_t *const list = *numbers = pare_alloc(a, *n ? *n : 1, sizeof *list);
    if (!list) return pare_no_memory(err);
    size_t at = 0;
    for (size_t i = from; i < from + count; i++) {
        const size_t u = d->order[i], end = first_alone ? d->first[u] + 1 : d->first[u + 1];
        for (size_t k = d->first[u]; k < end; k++) list[at++] = k;
    }
    return PARE_OK;
}

static int by_number(const void *a, const void *b)
{
    const size_t x = *(const size_t *)a, y = *(const size_t *)b;
    return (x > y) - (x < y);
}

pare_status pare_heldout_proven(size_t **numbers, size_t *n, pare_arena *a,
                                const pare_heldout_draw *d, size_t count, pare_err *err)
{
    const pare_status st = pare_heldout_numbers(numbers, n, a, d, 0, count, true, err);
    if (!st) qsort(*numbers, *n, sizeof **numbers, by_number);
    return st;
}

pare_status pare_dataset_pick(pare_dataset *out, pare_arena *a, const pare_dataset *d,
                              const size_t *numbers, size_t n, pare_err *err)
{
    *out = *d;
    pare_status st = pare_inputs_pick(&out->inputs, a, &d->inputs, numbers, n, 0, err);
    if (st) return st;
    const int64_t **const target = pare_alloc(a, n, sizeof *target);
    double *const value = d->value ? pare_alloc(a, n * d->nvalues, sizeof *value) : NULL;
    if (!target || (d->value && !value)) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        if (d->target) target[i] = d->target[numbers[i]];
        if (value)
            memcpy(value + i * d->nvalues, d->value + numbers[i] * d->nvalues,
                   d->nvalues * sizeof *value);
    }
    out->target = d->target ? target : NULL;
    out->value = value;
    return PARE_OK;
}

pare_status pare_dataset_heldout(pare_dataset *out, pare_arena *a, const pare_dataset *d,
                                 uint64_t seed, pare_err *err)
{
    pare_heldout_draw draw;
    size_t *numbers = NULL, n = 0;
    const bool graphs = d->task == PARE_TASK_NODES;
    pare_status st = pare_heldout_draw_make(
        &draw, a, &d->inputs, graphs ? SIZE_MAX : PARE_HELDOUT_INPUTS, graphs, seed, err);
    if (!st) st = pare_heldout_numbers(&numbers, &n, a, &draw, 0, draw.held, false, err);
    return st ? st : pare_dataset_pick(out, a, d, numbers, n, err);
}
