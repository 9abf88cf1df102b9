/* sequence_layout.c - inputs of different lengths become one batch (sequence_layout.h). */
#include "sequence_layout.h"
#include "base/support.h"
#include <string.h>

/* Where each sequence begins, and whose each row is. */
static pare_status lay_out(sequence_layout *s, pare_arena *a, const pare_inputs *set, pare_err *err)
{
    *s = (sequence_layout){0};
    for (size_t i = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        s->n += in->batch;
        s->rows += in->batch * in->tokens;
        if (in->tokens > s->longest) s->longest = in->tokens;
    }
    if (s->n > UINT32_MAX) return pare_no_memory(err);
    size_t *const start = pare_alloc(a, s->n + 1, sizeof *start);
    uint32_t *const of = pare_alloc(a, s->rows, sizeof *of);
    if (!start || !of) return pare_no_memory(err);
    size_t k = 0, row = 0;
    for (size_t i = 0; i < set->n; i++)
        for (size_t b = 0; b < set->in[i].batch; b++, k++) {
            start[k] = row;
            for (size_t t = 0; t < set->in[i].tokens; t++) of[row++] = (uint32_t)k;
        }
    start[k] = row;
    s->start = start;
    s->of = of;
    return PARE_OK;
}

pare_status sequences_join(pare_input *joined, sequence_layout *out, pare_arena *a,
                           const pare_model *m, const pare_inputs *set, pare_err *err)
{
    pare_status st = PARE_OK;
    if (set->n > 1 && m->pattern.kind == PARE_GRAPH)
        return pare_fail(err, PARE_ERR_INPUT, "graphs do not go side by side through a model");
    for (size_t i = 0; !st && i < set->n; i++) st = pare_input_check(m, &set->in[i], err);
    if (st) return st;
    if (set->n == 1) {
        *joined = set->in[0];
        *out = sequences_of_input(joined);
        return PARE_OK;
    }
    st = lay_out(out, a, set, err);
    if (st) return st;
    const size_t width = m->embedding.ids ? 0 : m->embedding.width;
    int64_t *const ids = width ? NULL : pare_alloc(a, out->rows, sizeof *ids);
    double *const x = width ? pare_alloc(a, out->rows, width * sizeof *x) : NULL;
    if (!ids && !x) return pare_no_memory(err);
    for (size_t i = 0, row = 0; i < set->n; i++) {
        const pare_input *const in = &set->in[i];
        const size_t rows = in->batch * in->tokens;
        if (ids) memcpy(ids + row, in->ids, rows * sizeof *ids);
        if (x) memcpy(x + row * width, in->x, rows * width * sizeof *x);
        row += rows;
    }
    *joined =
        (pare_input){.batch = out->n, .tokens = out->longest, .width = width, .ids = ids, .x = x};
    return PARE_OK;
}
