/* allocate_bits.c - how many bits each matrix gets where the file may have so many bytes.
 *
 * What the rounding of a matrix to b bits does to the outputs is measured once, with that matrix
 * alone rounded to PROBE_BITS, and follows its relative error e(b) from there:
 *
 *     loss(b) = loss(PROBE) e(b)^2 / e(PROBE)^2,       e(b): of a sample of its rows
 *
 * times what error feedback leaves of it, which differs much from matrix to matrix.
 * The roundings of two matrices are independent, so their losses add up. All begin with the fewest
 * bits; the next one goes to the matrix where it saves most loss for a byte, as long as the file
 * stays within the budget. The loss is the KL divergence of the predictions of a language model,
 * else the mean square of what the outputs move by. */
#include "base/support.h"
#include "data/graph_data.h"
#include "allocate_bits.h"
#include "encode.h"
#include "linalg/matrix.h"
#include "model/model_file.h"
#include "model/ticket_codec.h"
#include <math.h>
#include <pare/run.h>
#include <string.h>

enum {
    PROBE_BITS = 4,
    SAMPLE_ROWS = 32,
    MOST_INPUTS = 32,
    RANDOM_INPUTS = 8, /* without data */
    MOST_STEPS = 37    /* of bits: whole ones, or eighths from 1.5 to 6 */
};
#define PROBE_MACS 4e11 /* of all passes together, while there is more than one input */

typedef struct candidate {
    const char *name;
    pare_weight *w;  /* in the clone */
    pare_weight was; /* its numbers */
    size_t number_bytes;
    quant_choice step[MOST_STEPS]; /* the fewest bits first */
    double loss[MOST_STEPS];
    size_t nsteps, at; /* at: the step that it has now */
} candidate;

typedef struct allocation {
    pare_arena *arena;
    const pare_quant_opts *o;
    pare_model *m; /* a clone, whose weights are exchanged */
    const pare_exec *exec;
    candidate *list;
    size_t n, capacity;
    quant_feedback_fn *feedback; /* or NULL */
    void *self;
    pare_coded *coded; /* n, of the sizes of now; what is in them is not looked at */
} allocation;

/* ---- candidates ------------------------------------------------------------------------------ */

/* The choices of more bits than those before, each of which takes less than the numbers do. */
static void list_steps(candidate *c, const allocation *d)
{
    pare_quant_opts o = *d->o;
    const quant_bits range = quant_bits_of(o.method);
    const double most = o.bits > 0 ? o.bits : range.most;
    for (double b = range.least; b <= most && c->nsteps < MOST_STEPS; b += range.step) {
        o.bits = b;
        const quant_choice next = quant_choose(&o, c->name, c->w, c->number_bytes);
        if (!(next.bits > 0) || (c->nsteps && next.bits == c->step[c->nsteps - 1].bits)) continue;
        c->step[c->nsteps++] = next;
    }
}

static pare_status add_candidate(void *self, const char *name, pare_weight *w, bool vector,
                                 pare_err *err)
{
    allocation *const d = self;
    if (!pare_has(w) || vector) return PARE_OK;
    if (d->n == d->capacity) {
        const size_t capacity = d->capacity ? 2 * d->capacity : 64;
        candidate *const list = pare_alloc(d->arena, capacity, sizeof *list);
        if (!list) return pare_no_memory(err);
        if (d->n) memcpy(list, d->list, d->n * sizeof *list);
        d->list = list;
        d->capacity = capacity;
    }
    candidate *const c = &d->list[d->n];
    *c = (candidate){.name = pare_strdup(d->arena, name),
                     .w = w,
                     .was = *w,
                     .number_bytes = quant_number_bytes(w, d->m->precision)};
    if (!c->name) return pare_no_memory(err);
    list_steps(c, d);
    d->n += c->nsteps > 0;
    return PARE_OK;
}

/* ---- losses ---------------------------------------------------------------------------------- */

/* What plain rounding leaves of rows first, first + every, ... of the matrix: |E|^2 / |W|^2, and
 * all of it in `expanded` where that is not NULL and every is 1. */
static pare_status round_rows(double *error, float **expanded, const candidate *c, size_t every,
                              unsigned bits, const allocation *d, pare_arena *a, pare_err *err)
{
    const size_t rows = (c->was.rows + every - 1) / every, cols = c->was.cols;
    float *const w = pare_alloc(a, rows * cols, sizeof *w), *made = NULL;
    pare_coded coded;
    if (!w) return pare_no_memory(err);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            w[i * cols + j] = (float)pare_weight_at(&c->was, i * every * cols + j);
    const size_t group = d->o->group && d->o->group < cols ? d->o->group : cols;
    const quant_job job = {.rows = rows,
                           .cols = cols,
                           .w = w,
                           .method = PARE_QUANT_RTN,
                           .bits = bits,
                           .group = group,
                           .affine = d->o->affine,
                           .exec = d->exec};
    const pare_status st = quant_matrix(&coded, &made, a, &job, err);
    double e = 0, of = 0;
    for (size_t i = 0; !st && i < rows * cols; i++) {
        const double x = (double)w[i], gap = x - (double)made[i];
        e += gap * gap;
        of += x * x;
    }
    *error = of > 0 ? e / of : 0;
    if (expanded) *expanded = made;
    return st;
}

/* |E|^2 / |W|^2 at that many bits. */
static pare_status sample_error(double *error, const candidate *c, double bits, const allocation *d,
                                pare_err *err)
{
    if (quant_kind_of(d->o->method) !=
        PARE_CODED_GROUPS) { /* paths, seeds: a quarter for every bit */
        *error = pow(4, -bits);
        return PARE_OK;
    }
    pare_arena *const scratch = pare_arena_new();
    const size_t every = (c->was.rows + SAMPLE_ROWS - 1) / SAMPLE_ROWS;
    const pare_status st = scratch
                               ? round_rows(error, NULL, c, every, (unsigned)bits, d, scratch, err)
                               : pare_no_memory(err);
    pare_arena_free(scratch);
    return st;
}

/* The mean loss of an output row, of g beside what f gives. */
static pare_status output_loss(double *loss, const float *f, const float *g, size_t rows,
                               size_t cols, bool predicts, pare_arena *scratch, pare_err *err)
{
    double sum = 0;
    *loss = 0;
    if (!predicts) {
        for (size_t i = 0; i < rows * cols; i++) {
            const double gap = (double)g[i] - (double)f[i];
            sum += gap * gap;
        }
        *loss = sum / (double)rows;
        return PARE_OK;
    }
    pare_kl *kl = NULL;
    pare_kl_report report = {0};
    pare_status st = pare_kl_new(&kl, scratch, cols, err);
    if (!st) st = pare_kl_add(kl, f, g, rows, err);
    if (!st) st = pare_kl_scores(&report, kl, err);
    if (!st) *loss = fmax(report.mean, 0);
    return st;
}

/* Adds to loss[k] what matrix k alone does to the outputs of one input. */
static pare_status probe_input(double *loss, allocation *d, float *const *rounded,
                               const pare_input *in, pare_arena *scratch, pare_err *err)
{
    const size_t rows = pare_output_rows(d->m, in), cols = pare_model_outputs(d->m);
    const bool predicts =
        d->m->embedding.ids && d->m->head.pool == PARE_POOL_NONE && cols == d->m->embedding.vocab;
    float *const f = pare_alloc(scratch, rows * cols + 1, sizeof *f), *const g = pare_alloc(
                                                                          scratch, rows * cols + 1,
                                                                          sizeof *g);
    if (!f || !g) return pare_no_memory(err);
    pare_status st = pare_forward_f32(f, d->m, in, NULL, d->exec, err);
    for (size_t k = 0; !st && k < d->n; k++) {
        candidate *const c = &d->list[k];
        double more = 0;
        if (!rounded[k]) continue;
        *c->w = (pare_weight){PARE_F32, c->was.rows, c->was.cols, rounded[k]};
        st = pare_forward_f32(g, d->m, in, NULL, d->exec, err);
        *c->w = c->was;
        if (!st) st = output_loss(&more, f, g, rows, cols, predicts, scratch, err);
        loss[k] += isfinite(more) ? more : 0;
        if (!st) st = pare_stopped(d->exec, err);
    }
    return st;
}

/* Losses at PROBE_BITS, over the square of the relative error there. */
static pare_status probe_losses(double *slope, allocation *d, pare_arena *scratch, pare_err *err)
{
    float **const rounded = pare_alloc(scratch, d->n + 1, sizeof *rounded);
    double *const error = pare_alloc(scratch, d->n + 1, sizeof *error);
    pare_inputs own;
    const pare_inputs *set = d->o->fit;
    pare_status st = rounded && error ? PARE_OK : pare_no_memory(err);
    if (!st && !set) {
        st = pare_inputs_random(&own, scratch, d->m, RANDOM_INPUTS, 0, 0, err);
        set = &own;
    }
    for (size_t k = 0; !st && k < d->n; k++)
        if (d->list[k].nsteps > 1)
            st = round_rows(&error[k], &rounded[k], &d->list[k], 1, PROBE_BITS, d, scratch, err);
    double macs = 0;
    for (size_t i = 0; !st && i < set->n && i < MOST_INPUTS; i++) {
        macs += (double)(d->n + 1) *
                (double)pare_model_size(d->m, set->in[i].batch * set->in[i].tokens, 0).macs;
        if (i > 0 && macs > PROBE_MACS) break;
        const pare_mark mark = pare_arena_mark(scratch);
        st = probe_input(slope, d, rounded, &set->in[i], scratch, err);
        pare_arena_reset(scratch, mark);
    }
    for (size_t k = 0; !st && k < d->n; k++) slope[k] /= error[k] > 0 ? error[k] : 1;
    return st;
}

static pare_status measure_losses(allocation *d, pare_err *err)
{
    pare_arena *const scratch = pare_arena_new();
    double *const slope = pare_alloc(d->arena, d->n + 1, sizeof *slope);
    pare_status st = scratch && slope ? probe_losses(slope, d, scratch, err) : pare_no_memory(err);
    pare_arena_free(scratch);
    for (size_t k = 0; !st && k < d->n; k++) {
        candidate *const c = &d->list[k];
        double share = 1;
        if (d->feedback && c->nsteps > 1) st = d->feedback(d->self, &share, c->name, err);
        slope[k] *= share;
        for (size_t s = 0; !st && s < c->nsteps && c->nsteps > 1; s++) {
            double e = 0;
            st = sample_error(&e, c, c->step[s].bits, d, err);
            c->loss[s] = slope[k] * e;
        }
    }
    return st;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Of the file that has these bits. */
static pare_status file_bytes(uint64_t *out, allocation *d, pare_err *err)
{
    for (size_t k = 0; k < d->n; k++) {
        const candidate *const c = &d->list[k];
        d->coded[k].bytes = c->step[c->at].bytes;
    }
    d->m->coded = d->coded;
    d->m->ncoded = d->n;
    const pare_status st = model_file_bytes(out, d->m, err);
    d->m->coded = NULL;
    d->m->ncoded = 0;
    return st;
}

/* Names and kinds of what will be in the file; the numbers beside them are rounded as they will be. */
static pare_status lay_out(allocation *d, const pare_model *in, pare_err *err)
{
    uint8_t *const head = pare_alloc(d->arena, TICKET_HEADER_BYTES, 1);
    d->coded = pare_alloc(d->arena, d->n + 1, sizeof *d->coded);
    if (!head || !d->coded) return pare_no_memory(err);
    put_u32(head + 8, (uint32_t)quant_kind_of(d->o->method));
    for (size_t k = 0; k < d->n; k++) d->coded[k] = (pare_coded){d->list[k].name, head, 0};
    d->m->coded = d->coded;
    d->m->ncoded = d->n;
    const pare_status st = pare_model_round(d->m, in, d->o->dtype, err);
    d->m->coded = NULL;
    d->m->ncoded = 0;
    return st;
}

/* The matrix whose next bit saves most loss for a byte, of those that may have one; n: none. */
static size_t best_next(const allocation *d, const bool *full)
{
    size_t best = d->n;
    double most = -1;
    for (size_t k = 0; k < d->n; k++) {
        const candidate *const c = &d->list[k];
        if (full[k] || c->at + 1 >= c->nsteps) continue;
        const double bytes = (double)(c->step[c->at + 1].bytes - c->step[c->at].bytes);
        const double saved = (c->loss[c->at] - c->loss[c->at + 1]) / bytes;
        if (saved > most) most = saved, best = k;
    }
    return best;
}

static pare_status spend(allocation *d, pare_err *err)
{
    const uint64_t budget = d->o->max_bytes;
    bool *const full = pare_alloc(d->arena, d->n + 1, sizeof *full);
    uint64_t bytes = 0;
    pare_status st = full ? file_bytes(&bytes, d, err) : pare_no_memory(err);
    if (!st && bytes > budget)
        return pare_fail(err, PARE_ERR_PROMISE,
                         "with the fewest bits (%g a weight) the file has %llu bytes, more than "
                         "max_bytes %llu; nothing was written",
                         d->n ? d->list[0].step[0].bits : 0, (unsigned long long)bytes,
                         (unsigned long long)budget);
    for (size_t k; !st && (k = best_next(d, full)) < d->n;) {
        d->list[k].at++;
        st = file_bytes(&bytes, d, err);
        if (st || bytes <= budget) continue;
        d->list[k].at--;
        full[k] = true;
    }
    return st;
}

pare_status quant_allocate_bits(quant_allocated **out, size_t *n, pare_arena *a,
                                const pare_model *in, const pare_quant_opts *o,
                                quant_feedback_fn *feedback, void *self, const pare_exec *exec,
                                pare_err *err)
{
    allocation d = {.arena = a, .o = o, .feedback = feedback, .self = self, .exec = exec};
    pare_status st = pare_model_clone(&d.m, in, err);
    if (!st) st = pare_model_each_weight(d.m, add_candidate, &d, err);
    if (!st) st = measure_losses(&d, err);
    if (!st) st = lay_out(&d, in, err);
    if (!st) st = spend(&d, err);
    *n = d.n;
    *out = st ? NULL : pare_alloc(a, d.n + 1, sizeof **out);
    if (!st && !*out) st = pare_no_memory(err);
    for (size_t k = 0; !st && k < d.n; k++)
        (*out)[k] = (quant_allocated){d.list[k].name, d.list[k].step[d.list[k].at]};
    pare_model_free(d.m);
    return st;
}
