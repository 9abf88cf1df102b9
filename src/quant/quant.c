/* quant.c - pare_quant: one matrix of a model after the other in few bits (pare/quant.h).
 *
 * The order is that of the file. Second moments of the rows that enter a matrix are those of the
 * model as it is by then, with the matrices before it quantized. */
#include "allocate_bits.h"
#include "encode.h"
#include "linalg/matrix.h"
#include "model/feedback.h"
#include "model/precision.h"
#include "model/source.h"
#include "output_gradients.h"
#include "quant_internal.h"
#include "seedlm.h"
#include "trellis.h"
#include <math.h>
#include <string.h>

#define WORTH_UNSEEN 0.15 /* of the mean row: what is left for tokens that were not seen */
#define WORTH_POWER  0.75 /* below 1: other texts have other tokens */

typedef struct maker {
    pare_model *m;            /* the output */
    const pare_model *before; /* what it was */
    const pare_quant_opts *o;
    const pare_exec *exec;
    pare_steps *steps;
    pare_coded *coded;
    pare_quant_report *r;
    size_t capacity, ncoded;
    double total;               /* weights */
    pare_arena *own;            /* of what only the making needs */
    quant_allocated *allocated; /* with a budget: the bits of each matrix; NULL: the options' */
    size_t nallocated;
    output_gradients gradients; /* with inputs to fit to */
    /* Moments of the place they were last taken at: q, k and v share one. */
    pare_arena *arena;
    uint64_t place;
    bool taken;
    input_moments moments;
} maker;

/* ---- which, and how -------------------------------------------------------------------------- */

static bool is_embedding(const char *name)
{
    return strcmp(name, "embedding.embedding") == 0 || strcmp(name, "embedding.positions") == 0 ||
           strcmp(name, "head.out.weight") == 0;
}

quant_choice quant_choose(const pare_quant_opts *o, const char *name, const pare_weight *w,
                          size_t number_bytes)
{
    const bool own = is_embedding(name);
    quant_choice c = {.bits = own && o->embedding_bits > 0 ? o->embedding_bits
                              : o->bits > 0                ? o->bits
                                                           : quant_bits_of(o->method).most};
    if (o->method == PARE_QUANT_SEEDLM) {
        c.group = seedlm_shape_of((unsigned)c.bits).n;
        c.bytes = seedlm_bytes(w->rows, w->cols, (unsigned)c.bits);
    } else if (o->method == PARE_QUANT_TRELLIS) {
        if (!trellis_possible(w->rows, w->cols, c.bits)) return (quant_choice){0};
        c.bytes = trellis_bytes(w->rows, w->cols, c.bits, own);
    } else {
        c.group = o->group && o->group < w->cols ? o->group : w->cols;
        c.bytes = pare_coded_groups_bytes(w->rows, w->cols, c.group, (unsigned)c.bits, o->affine,
                                          quant_is_wide(w, (unsigned)c.bits));
    }
    return c.bytes < number_bytes ? c : (quant_choice){0};
}

size_t quant_number_bytes(const pare_weight *w, pare_dtype precision)
{
    return w->rows * w->cols * pare_dtype_size(weight_stored_dtype(w, precision));
}

static quant_choice choice_of(const maker *k, const char *name, const pare_weight *w)
{
    for (size_t i = 0; k->allocated && i < k->nallocated; i++)
        if (strcmp(k->allocated[i].name, name) == 0) return k->allocated[i].c;
    if (k->allocated) return (quant_choice){0};
    return quant_choose(k->o, name, w, quant_number_bytes(w, k->m->precision));
}

/* ---- moments --------------------------------------------------------------------------------- */

/* The first matrix that has the same inputs. */
static uint64_t place_of(const pare_model *m, uint64_t stream)
{
    const size_t b = (size_t)(stream >> 48);
    const pare_source_matrix w = (pare_source_matrix)(stream >> 24 & 0xff);
    if (w == PARE_SOURCE_K || w == PARE_SOURCE_V) return pare_source_stream(b, 0, PARE_SOURCE_Q);
    const bool up = w == PARE_SOURCE_W2 && (stream >> 32 & 0xffff) == 0 &&
                    m->blocks[b].ffn.kind == PARE_FFN_GATED;
    return up ? pare_source_stream(b, 0, PARE_SOURCE_W1) : stream;
}

static pare_status take_moments(maker *k, const char *name, pare_err *err)
{
    uint64_t stream;
    const output_gradient *const own = output_gradient_find(&k->gradients, name);
    if (own && own->moments.v) { /* a row enters nothing: what counts is how the outputs feel it */
        k->moments = (input_moments){.square = own->moments};
        k->taken = false;
        return PARE_OK;
    }
    if (!k->o->fit || !pare_source_find(&stream, name)) {
        k->moments = (input_moments){0};
        k->taken = false;
        return PARE_OK;
    }
    const uint64_t place = place_of(k->m, stream);
    if (k->taken && k->place == place) return PARE_OK;
    pare_arena_free(k->arena);
    k->taken = false;
    k->arena = pare_arena_new();
    if (!k->arena) return pare_no_memory(err);
    const pare_status st =
        input_moments_of(&k->moments, k->arena, NULL, k->m, place, k->o->fit, k->exec, err);
    k->place = place;
    k->taken = !st;
    return st;
}

/* What feedback leaves of the loss to independent errors. */
static pare_status feedback_share(void *self, double *share, const char *name, pare_err *err)
{
    maker *const k = self;
    pare_status st = take_moments(k, name, err);
    const pare_mat *const m = &k->moments.square;
    *share = 1;
    if (st || !m->v) return st;
    feedback f;
    double trace = 0;
    pare_arena *const scratch = pare_arena_new();
    for (size_t i = 0; i < m->rows; i++) trace += pare_row(m, i)[i];
    st = scratch ? feedback_of(&f, scratch, m->rows, &k->moments, err) : pare_no_memory(err);
    if (!st && trace > 0) *share = f.cost / trace;
    pare_arena_free(scratch);
    return st;
}

/* ---- one weight after the other -------------------------------------------------------------- */

static pare_status count_weight(void *self, const char *name, pare_weight *w, bool vector,
                                pare_err *err)
{
    maker *const k = self;
    (void)err;
    if (!pare_has(w) || vector || !(choice_of(k, name, w).bits > 0)) return PARE_OK;
    k->capacity++;
    k->total += (double)w->rows * (double)w->cols;
    return PARE_OK;
}

/* tr(a M a^T), or |a|_F^2 where M is not known. */
static pare_status square_through(double *out, const pare_mat *a, const pare_mat *moments,
                                  pare_arena *scratch, pare_err *err)
{
    pare_mat through = *a;
    if (moments->v) {
        through = pare_mat_new(scratch, a->rows, a->cols);
        if (!through.v) return pare_no_memory(err);
        pare_gemm(&through, 1, a, false, moments, false, 0);
    }
    *out = 0;
    for (size_t i = 0; i < a->rows; i++)
        for (size_t j = 0; j < a->cols; j++) *out += pare_row(&through, i)[j] * pare_row(a, i)[j];
    return PARE_OK;
}

static double ratio(double error, double of)
{
    return of > 0 ? sqrt(fmax(error, 0) / of) : 0;
}

static pare_status measure_errors(pare_quant_matrix *to, const pare_mat *w, const float *expanded,
                                  const pare_mat *moments, pare_arena *scratch, pare_err *err)
{
    static const pare_mat unknown = {0};
    double e[2] = {0}, of[2] = {0};
    pare_mat error = pare_mat_new(scratch, w->rows, w->cols);
    pare_status st = error.v ? PARE_OK : pare_no_memory(err);
    for (size_t i = 0; !st && i < w->rows * w->cols; i++)
        error.v[i] = w->v[i] - (double)expanded[i];
    for (int k = 0; !st && k < (moments->v ? 2 : 1); k++) {
        st = square_through(&e[k], &error, k ? moments : &unknown, scratch, err);
        if (!st) st = square_through(&of[k], w, k ? moments : &unknown, scratch, err);
    }
    to->error = ratio(e[0], of[0]);
    to->output_error = ratio(e[1], of[1]);
    to->measured = moments->v;
    return st;
}

/* How much the errors of each row of an embedding count: as much as the outputs felt of them, but every row
 * something, because tokens that the inputs do not have occur in others. NULL: all the same. */
static pare_status row_weights(const double **out, const maker *k, const char *name, size_t rows,
                               pare_arena *scratch, pare_err *err)
{
    const output_gradient *const g = output_gradient_find(&k->gradients, name);
    double mean = 0;
    *out = NULL;
    if (!g || !g->row) return PARE_OK;
    double *const to = pare_alloc(scratch, rows, sizeof *to);
    if (!to) return pare_no_memory(err);
    for (size_t i = 0; i < rows; i++) mean += g->row[i] / (double)rows;
    for (size_t i = 0; i < rows; i++)
        to[i] = pow(mean > 0 ? g->row[i] / mean + WORTH_UNSEEN : 1, WORTH_POWER);
    *out = to;
    return PARE_OK;
}

static pare_status quantize(maker *k, const char *name, pare_weight *w, const quant_choice *c,
                            pare_arena *scratch, pare_err *err)
{
    pare_arena *const keep = k->m->arena;
    const size_t n = w->rows * w->cols;
    pare_coded *const coded = &k->coded[k->ncoded];
    pare_mat wide = pare_mat_new(scratch, w->rows, w->cols);
    float *const f = pare_alloc(scratch, n, sizeof *f), *expanded = NULL;
    const char *const copy = pare_strdup(keep, name);
    if (!wide.v || !f || !copy) return pare_no_memory(err);
    pare_weight_widen(&wide, w, 0, 0);
    for (size_t i = 0; i < n; i++) f[i] = (float)wide.v[i];
    for (size_t i = 0; i < n; i++)
        if (!(fabsf(f[i]) <= (float)QUANT_MOST_WEIGHT))
            return pare_fail(err, PARE_ERR_INPUT, "tensor %s: weight %zu is %g; scales end at %g",
                             name, i, wide.v[i], QUANT_MOST_WEIGHT);
    const double *worth;
    pare_status st = row_weights(&worth, k, name, w->rows, scratch, err);
    if (st) return st;
    uint64_t stream = 0;
    const quant_job job = {.rows = w->rows,
                           .cols = w->cols,
                           .w = f,
                           .moments = k->moments.square.v ? &k->moments.square : NULL,
                           .method = k->o->method,
                           .bits = c->bits,
                           .group = c->group,
                           .affine = k->o->affine,
                           .each_row = is_embedding(name),
                           .worth = worth,
                           .state_bits = (unsigned)k->o->state_bits,
                           .seed = k->o->seed,
                           .stream = pare_source_find(&stream, name) ? stream : 0,
                           .exec = k->exec};
    pare_quant_matrix *const to = &k->r->matrix[k->r->n];
    st = quant_matrix(coded, &expanded, keep, &job, err);
    if (!st) st = measure_errors(to, &wide, expanded, &k->moments.square, scratch, err);
    if (st) return st;
    coded->name = to->name = copy;
    to->rows = w->rows;
    to->cols = w->cols;
    to->group = c->group;
    to->bits = c->bits;
    to->affine = k->o->affine;
    to->bytes = coded->bytes;
    k->r->weights += n;
    k->r->bytes += coded->bytes;
    k->r->n++;
    k->ncoded++;
    *w = (pare_weight){PARE_F32, w->rows, w->cols, expanded};
    return PARE_OK;
}

static pare_status make_weight(void *self, const char *name, pare_weight *w, bool vector,
                               pare_err *err)
{
    maker *const k = self;
    if (!pare_has(w)) return PARE_OK;
    const quant_choice c = vector ? (quant_choice){0} : choice_of(k, name, w);
    if (!(c.bits > 0)) {
        k->r->numbers += (uint64_t)w->rows * w->cols;
        return PARE_OK;
    }
    const pare_exec *const exec = k->exec;
    k->exec = pare_step(k->steps, "quantize", (double)w->rows * (double)w->cols);
    pare_arena *const scratch = pare_arena_new();
    pare_status st = scratch ? take_moments(k, name, err) : pare_no_memory(err);
    if (!st) st = quantize(k, name, w, &c, scratch, err);
    pare_arena_free(scratch);
    k->exec = exec;
    return st;
}

/* ---- the model ------------------------------------------------------------------------------- */

static pare_status check_bits(const pare_quant_opts *o, double bits, const char *what,
                              pare_err *err)
{
    const quant_bits b = quant_bits_of(o->method);
    if (bits == 0 || (bits >= b.least && bits <= b.most && bits / b.step == floor(bits / b.step)))
        return PARE_OK;
    return pare_fail(err, PARE_ERR_USAGE, "%g bits for %s: the method %s takes %g to %g, %s", bits,
                     what, pare_quant_method_names[o->method], b.least, b.most,
                     b.step < 1 ? "in eighths" : "whole ones");
}

static pare_status make_all(maker *k, pare_err *err)
{
    pare_status st = PARE_OK;
    pare_steps steps = pare_steps_of(k->exec, k->o->max_bytes ? 2 : 1);
    const bool feeds_back =
        k->o->fit && (k->o->method == PARE_QUANT_GPTQ || k->o->method == PARE_QUANT_TRELLIS);
    if (feeds_back && k->m->embedding.ids)
        st = output_gradients_of(&k->gradients, k->own, k->m, k->o->fit, k->o->seed, k->exec, err);
    if (!st && k->o->max_bytes)
        st = quant_allocate_bits(&k->allocated, &k->nallocated, k->own, k->before, k->o,
                                 feeds_back ? feedback_share : NULL, k,
                                 pare_step(&steps, "allocate the bits", 1), err);
    k->taken = false; /* moments of the model as it was */
    if (!st) st = pare_model_each_weight(k->m, count_weight, k, err);
    if (st) return st;
    k->coded = pare_alloc(k->m->arena, k->capacity + 1, sizeof *k->coded);
    k->r->matrix = pare_alloc(k->m->arena, k->capacity + 1, sizeof *k->r->matrix);
    if (!k->coded || !k->r->matrix) return pare_no_memory(err);
    pare_steps each = pare_steps_of(pare_step(&steps, NULL, 1), k->total);
    k->steps = &each;
    return pare_model_each_weight(k->m, make_weight, k, err);
}

pare_status pare_quant(pare_model **out, pare_quant_report *report, const pare_model *in,
                       const pare_quant_opts *opts, const pare_exec *exec, pare_err *err)
{
    maker k = {.o = opts, .before = in, .exec = exec, .r = report};
    *out = NULL;
    *report = (pare_quant_report){0};
    pare_status st = check_bits(opts, opts->bits, "a weight", err);
    if (!st) st = check_bits(opts, opts->embedding_bits, "a weight of the embeddings", err);
    if (!st && opts->state_bits &&
        (opts->state_bits < PARE_QUANT_LEAST_STATE || opts->state_bits > PARE_QUANT_MOST_STATE))
        st = pare_fail(err, PARE_ERR_USAGE, "states of %zu bits: %d to %d are possible",
                       opts->state_bits, PARE_QUANT_LEAST_STATE, PARE_QUANT_MOST_STATE);
    if (!st && !(k.own = pare_arena_new())) st = pare_no_memory(err);
    if (!st) st = pare_model_clone(&k.m, in, err);
    if (!st) st = make_all(&k, err);
    if (!st) {
        k.m->coded = k.coded;
        k.m->ncoded = k.ncoded;
        st = pare_model_round(k.m, in, opts->dtype, err); /* the numbers beside them */
        if (!st) st = pare_model_check(k.m, err);
        report->number_bytes = pare_model_size(k.m, 1, 0).bytes - report->bytes;
    }
    pare_arena_free(k.arena);
    pare_arena_free(k.own);
    if (st) {
        pare_model_free(k.m);
        k.m = NULL;
    }
    *out = k.m;
    return st;
}
