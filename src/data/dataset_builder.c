/* dataset_builder.c - collects inputs and targets, and cuts texts into windows (dataset.h). */
#include "base/array.h"
#include "dataset.h"
#include <string.h>

pare_status pare_data_add(pare_data_reader *r, pare_input in, const int64_t *target)
{
    const pare_status st = pare_input_check(r->model, &in, r->err);
    if (st) return st;
    const size_t rows = pare_output_rows(r->model, &in), outputs = pare_model_outputs(r->model);
    for (size_t i = 0; i < rows; i++)
        if (target[i] < -1 || (target[i] >= 0 && (uint64_t)target[i] >= outputs))
            return pare_fail(r->err, PARE_ERR_INPUT,
                             "target %lld (row %zu) is not among the model's %zu outputs",
                             (long long)target[i], i, outputs);
    if (r->n == r->capacity) {
        const size_t capacity = r->capacity ? 2 * r->capacity : 16;
        pare_input *inputs = pare_alloc(r->arena, capacity, sizeof *inputs);
        const int64_t **targets = pare_alloc(r->arena, capacity, sizeof *targets);
        if (!inputs || !targets) return pare_no_memory(r->err);
        if (r->n) {
            memcpy(inputs, r->in, r->n * sizeof *inputs);
            memcpy(targets, r->target, r->n * sizeof *targets);
        }
        r->in = inputs;
        r->target = targets;
        r->capacity = capacity;
    }
    in.target = target;
    r->in[r->n] = in;
    r->target[r->n++] = target;
    return PARE_OK;
}

pare_status pare_data_add_windows(pare_data_reader *r, const int64_t *ids, size_t n)
{
    if (n < 2) return PARE_OK; /* nothing to predict */
    int64_t *next = pare_alloc(r->arena, n, sizeof *next);
    if (!next) return pare_no_memory(r->err);
    memcpy(next, ids + 1, (n - 1) * sizeof *next);
    next[n - 1] = -1;
    for (size_t at = 0; at + 1 < n; at += r->window) {
        const size_t tokens = n - at < r->window ? n - at : r->window;
        const pare_input in = {.batch = 1, .tokens = tokens, .ids = ids + at, .continues = at > 0};
        const pare_status st = pare_data_add(r, in, next + at);
        if (st) return st;
    }
    return PARE_OK;
}

pare_status pare_data_window(pare_data_reader *r)
{
    const pare_model *m = r->model;
    if (!m->embedding.ids)
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "text needs a model of tokens; this one takes "
                         "vectors of width %zu",
                         m->embedding.width);
    if (m->head.pool != PARE_POOL_NONE)
        return pare_fail(r->err, PARE_ERR_INPUT,
                         "text needs an output per token; this model pools its tokens into one");
    if (m->context && r->window > m->context)
        return pare_fail(r->err, PARE_ERR_USAGE,
                         "a window of %zu tokens is longer than the context %zu", r->window,
                         m->context);
    if (r->window == 0) r->window = m->context && m->context < 512 ? m->context : 512;
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

pare_status pare_input_fill(pare_input *in, pare_arena *arena, const pare_array *a,
                            const pare_model *m, pare_err *err)
{
    if (m->embedding.ids)
        in->ids = pare_array_ids(arena, a);
    else
        in->x = pare_array_numbers(arena, a);
    return in->ids || in->x ? PARE_OK : pare_no_memory(err);
}

void pare_err_name_file(pare_err *err, const char *path)
{
    if (err && err->code != PARE_ERR_MEMORY && strncmp(err->msg, path, strlen(path)) != 0)
        pare_err_prefix(err, path);
}
