/* Inputs and targets as they come, and the cutting of texts into windows. */
#include "base/array.h"
#include "dataset.h"
#include <string.h>

static pare_status make_room(pare_gather *g, pare_err *err)
{
    if (g->n < g->room) return PARE_OK;
    const size_t room = g->room ? 2 * g->room : 16;
    pare_input *in = pare_alloc(g->arena, room, sizeof *in);
    const int64_t **target = pare_alloc(g->arena, room, sizeof *target);
    if (!in || !target) return pare_no_memory(err);
    if (g->n) {
        memcpy(in, g->in, g->n * sizeof *in);
        memcpy(target, g->target, g->n * sizeof *target);
    }
    g->in = in;
    g->target = target;
    g->room = room;
    return PARE_OK;
}

static pare_status check_targets(const pare_model *m, const pare_input *in, const int64_t *target,
                                 pare_err *err)
{
    const size_t rows = pare_output_rows(m, in), outputs = pare_model_outputs(m);
    for (size_t i = 0; i < rows; i++)
        if (target[i] < -1 || (target[i] >= 0 && (uint64_t)target[i] >= outputs))
            return pare_fail(err, PARE_ERR_INPUT,
                             "target %lld (row %zu) is not among the model's %zu outputs",
                             (long long)target[i], i, outputs);
    return PARE_OK;
}

pare_status pare_gather_add(pare_gather *g, pare_input in, const int64_t *target, pare_err *err)
{
    pare_status st = pare_input_check(g->model, &in, err);
    if (st == PARE_OK) st = check_targets(g->model, &in, target, err);
    if (st == PARE_OK) st = make_room(g, err);
    if (st) return st;
    in.target = target;
    g->in[g->n] = in;
    g->target[g->n++] = target;
    return PARE_OK;
}

pare_status pare_gather_windows(pare_gather *g, const int64_t *ids, size_t n, size_t window,
                                pare_err *err)
{
    if (n < 2) return PARE_OK; /* nothing to predict */
    int64_t *next = pare_alloc(g->arena, n, sizeof *next);
    if (!next) return pare_no_memory(err);
    memcpy(next, ids + 1, (n - 1) * sizeof *next);
    next[n - 1] = -1;
    for (size_t at = 0; at + 1 < n; at += window) {
        const size_t tokens = n - at < window ? n - at : window;
        const pare_input in = {.batch = 1, .tokens = tokens, .ids = ids + at, .continues = at > 0};
        const pare_status st = pare_gather_add(g, in, next + at, err);
        if (st) return st;
    }
    return PARE_OK;
}

pare_status pare_window_of(size_t *window, const pare_model *m, size_t asked, pare_err *err)
{
    if (!m->stem.ids)
        return pare_fail(err, PARE_ERR_INPUT,
                         "text needs a model of tokens; this one takes "
                         "vectors of width %zu",
                         m->stem.width);
    if (m->top.pool != PARE_POOL_NONE)
        return pare_fail(err, PARE_ERR_INPUT,
                         "text needs an output per token; this model pools its tokens into one");
    if (m->context && asked > m->context)
        return pare_fail(err, PARE_ERR_USAGE,
                         "a window of %zu tokens is longer than the context %zu", asked,
                         m->context);
    *window = asked ? asked : m->context && m->context < 512 ? m->context : 512;
    return PARE_OK;
}

int64_t *pare_array_ids(pare_arena *arena, const pare_array *a)
{
    const size_t n = pare_array_count(a);
    int64_t *v = pare_alloc(arena, n ? n : 1, sizeof *v);
    for (size_t i = 0; v && i < n; i++) v[i] = pare_array_i64(a, i);
    return v;
}

double *pare_array_numbers(pare_arena *arena, const pare_array *a)
{
    const size_t n = pare_array_count(a);
    double *v = pare_alloc(arena, n ? n : 1, sizeof *v);
    for (size_t i = 0; v && i < n; i++) v[i] = pare_array_f64(a, i);
    return v;
}
