/* ticket.c - pare_ticket: a model whose matrices are masked random ones (pare/ticket.h). */
#include "linalg/matrix.h"
#include "model/source.h"
#include "ticket_internal.h"
#include "ticket_matrix.h"
#include "merged_heads.h"
#include <math.h>
#include <string.h>

const char *const pare_ticket_mode_names[] = {"auto", "factored", "merged", NULL};
const char *const pare_ticket_method_names[] = {"best", "block", "feedback", NULL};

typedef struct maker {
    pare_model *m;      /* the output */
    pare_model *before; /* of FEEDBACK: what it was */
    const pare_ticket_opts *o;
    const pare_exec *exec;
    pare_coded *coded;
    pare_ticket_report *r;
    size_t capacity, ncoded;
    uint64_t total; /* weights */
    pare_steps *steps;
} maker;

/* ---- one weight after the other -------------------------------------------------------------- */

/* Matrices, and biases where they are asked for. */
static bool is_drawn(const maker *k, const char *name, bool vector)
{
    uint64_t stream;
    const char *const dot = strrchr(name, '.');
    return !vector || (k->o->biases && dot && dot[1] == 'b' && pare_source_find(&stream, name));
}

static pare_status count_weight(void *self, const char *name, pare_weight *w, bool vector,
                                pare_err *err)
{
    maker *const k = self;
    (void)err;
    if (!pare_has(w) || !is_drawn(k, name, vector)) return PARE_OK;
    k->capacity++;
    k->total += (uint64_t)w->rows * w->cols;
    return PARE_OK;
}

/* Identities side by side, or one above its negative, need no ticket of their own. */
static bool is_identities(const pare_weight *w)
{
    const bool above = w->rows == 2 * w->cols;
    if (!above && w->cols % w->rows != 0) return false;
    for (size_t i = 0; i < w->rows; i++)
        for (size_t j = 0; j < w->cols; j++) {
            const double one = above && i >= w->cols ? -1 : 1;
            const bool on = above ? i % w->cols == j : j % w->rows == i;
            if (pare_weight_at(w, i * w->cols + j) != (on ? one : 0)) return false;
        }
    return true;
}

static pare_status draw_ticket(maker *k, const char *name, pare_weight *w, bool vector,
                               pare_err *err)
{
    pare_arena *const keep = k->m->arena;
    pare_arena *const scratch = pare_arena_new();
    pare_coded *const coded = &k->coded[k->ncoded];
    input_moments moments = {0};
    const matrix_job job = {.name = pare_strdup(keep, name),
                            .w = scratch ? pare_mat_new(scratch, w->rows, w->cols) : (pare_mat){0},
                            .relu = k->r->relu_parts ? relu_source_of(k->m, name) : PARE_RELU_NONE,
                            .vector = vector,
                            .stream = pare_source_of(name),
                            .o = k->o,
                            .moments = &moments,
                            .exec = k->exec};
    pare_weight expanded;
    pare_mat wide = job.w;
    pare_status st = job.name && wide.v ? PARE_OK : pare_no_memory(err);
    if (!st && k->before)
        st = input_moments_of(&moments, scratch, k->before, k->m, job.stream, k->o->fit, k->exec,
                              err);
    if (!st) {
        pare_weight_widen(&wide, w, 0, 0);
        st = matrix_ticket(coded, &expanded, &k->r->matrix[k->r->n], keep, &job, err);
    }
    pare_arena_free(scratch);
    if (st) return st;
    coded->name = job.name;
    k->r->weights += (uint64_t)w->rows * w->cols;
    k->r->n++;
    *w = expanded;
    return PARE_OK;
}

static pare_status make_weight(void *self, const char *name, pare_weight *w, bool vector,
                               pare_err *err)
{
    maker *const k = self;
    pare_arena *const keep = k->m->arena;
    const uint64_t n = (uint64_t)w->rows * w->cols;
    if (!pare_has(w)) return PARE_OK;
    if (!is_drawn(k, name, vector)) {
        k->r->numbers += n;
        return PARE_OK;
    }
    const pare_exec *const exec = k->exec;
    k->exec = pare_step(k->steps, "fit", (double)w->rows * (double)w->cols);
    pare_coded *const coded = &k->coded[k->ncoded];
    pare_status st;
    if (is_identities(w)) {
        st = pare_coded_identity(coded, keep, w->rows, w->cols, err);
        coded->name = pare_strdup(keep, name);
        if (!st && !coded->name) st = pare_no_memory(err);
        if (!st) st = pare_coded_expand(w, NULL, keep, coded->data, coded->bytes, SIZE_MAX, err);
    } else {
        st = draw_ticket(k, name, w, vector, err);
    }
    k->exec = exec;
    if (st) return st;
    k->r->bytes += coded->bytes;
    k->ncoded++;
    return PARE_OK;
}

static pare_status check_options(const pare_ticket_opts *o, pare_err *err)
{
    if (o->hidden == 0 && (o->bits == 0 || o->bits > PARE_TICKET_MOST_BITS))
        return pare_fail(err, PARE_ERR_USAGE, "%zu bits for a weight: 1 to %d are possible",
                         o->bits, PARE_TICKET_MOST_BITS);
    if (o->exponent != PARE_TICKET_CHOOSE && (o->exponent < -64 || o->exponent > 64))
        return pare_fail(err, PARE_ERR_USAGE, "scale 2^%d: -64 to 64 are possible", o->exponent);
    if (o->stored > 0 && (o->method != PARE_TICKET_FEEDBACK || o->coding != PARE_CODING_BRIDGE))
        return pare_fail(err, PARE_ERR_USAGE,
                         "a number of stored bits needs the method feedback and the coding bridge");
    if (o->stored > 0 && (o->hidden > 0 || o->bits > PARE_TICKET_STORED_BITS))
        return pare_fail(err, PARE_ERR_USAGE,
                         "with a number of stored bits each weight may have at most %d random "
                         "products (bits): every subset of them is tried",
                         PARE_TICKET_STORED_BITS);
    if (o->biases && o->method == PARE_TICKET_FEEDBACK)
        return pare_fail(err, PARE_ERR_USAGE, "the method feedback stores biases as they are");
    if (o->strict && o->exponent != PARE_TICKET_CHOOSE && o->exponent != 0)
        return pare_fail(err, PARE_ERR_USAGE, "a strict ticket has scale 1");
    return PARE_OK;
}

/* Merged heads where they are requested, or have fewer weights; a ReLU source, which needs twice
 * the masks for the first layer of a part, only where it is requested, and not by feedback,
 * whose units come in blocks. */
static pare_status choose_mode(maker *k, const pare_model *in, pare_err *err)
{
    const char *const why = merge_refused(in);
    uint64_t now, merged;
    merge_sizes(&now, &merged, in);
    if (k->o->mode == PARE_TICKET_MERGED && why) return pare_fail(err, PARE_ERR_INPUT, "%s", why);
    k->r->merged = k->o->mode == PARE_TICKET_MERGED ||
                   (k->o->mode == PARE_TICKET_AUTO && !why && merged < now);
    pare_status st = k->r->merged ? merge_heads(k->m, err) : PARE_OK;
    if (!st && k->o->mode == PARE_TICKET_MERGED && k->o->method != PARE_TICKET_FEEDBACK)
        st = relu_split(k->m, &k->r->relu_parts, &k->r->other_parts, err);
    return st;
}

pare_status pare_ticket(pare_model **out, pare_ticket_report *report, const pare_model *in,
                        const pare_ticket_opts *opts, const pare_exec *exec, pare_err *err)
{
    maker k = {.o = opts, .exec = exec, .r = report};
    *out = NULL;
    *report = (pare_ticket_report){0};
    pare_status st = check_options(opts, err);
    if (!st) st = pare_model_clone(&k.m, in, err);
    if (!st) st = choose_mode(&k, in, err);
    if (!st && opts->method == PARE_TICKET_FEEDBACK && opts->fit)
        st = pare_model_clone(&k.before, k.m, err);
    if (!st) st = pare_model_each_weight(k.m, count_weight, &k, err);
    if (!st) {
        k.coded = pare_alloc(k.m->arena, k.capacity + 1, sizeof *k.coded);
        report->matrix = pare_alloc(k.m->arena, k.capacity + 1, sizeof *report->matrix);
        pare_steps steps = pare_steps_of(exec, (double)k.total);
        k.steps = &steps;
        st = k.coded && report->matrix ? pare_model_each_weight(k.m, make_weight, &k, err)
                                       : pare_no_memory(err);
    }
    if (!st) {
        k.m->coded = k.coded;
        k.m->ncoded = k.ncoded;
        st = pare_model_round(k.m, in, opts->dtype, err); /* the numbers beside them */
        if (!st) st = pare_model_check(k.m, err);
        report->number_bytes = pare_model_size(k.m, 1, 0).bytes - report->bytes;
    }
    pare_model_free(k.before);
    if (st) {
        pare_model_free(k.m);
        k.m = NULL;
    }
    *out = k.m;
    return st;
}
