/* pare_ticket: a model whose matrices are masked random ones (pare/ticket.h). */
#include "matrix.h"
#include "merged.h"
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
    size_t room, ncoded;
    uint64_t done, total; /* weights */
} maker;

/* ---- which stream ---------------------------------------------------------------------------- */

typedef struct place {
    const char *name;
    pare_source_matrix matrix;
} place;

static const place attn_places[] = {{"wq", PARE_SOURCE_Q},          {"wk", PARE_SOURCE_K},
                                    {"wv", PARE_SOURCE_V},          {"wo", PARE_SOURCE_O},
                                    {"matrix", PARE_SOURCE_MATRIX}, {"mix", PARE_SOURCE_MIX},
                                    {"skip", PARE_SOURCE_ATTN_SKIP}};
static const place end_places[] = {{"stem.embedding", PARE_SOURCE_EMBEDDING},
                                   {"stem.positions", PARE_SOURCE_POSITIONS},
                                   {"stem.map.weight", PARE_SOURCE_MAP},
                                   {"top.dense.weight", PARE_SOURCE_DENSE},
                                   {"top.out.weight", PARE_SOURCE_OUT}};

static bool find_place(pare_source_matrix *out, const place *p, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(p[i].name, name) == 0) {
            *out = p[i].matrix;
            return true;
        }
    return false;
}

uint64_t matrix_stream(const char *name)
{
    size_t block, layer;
    int at = 0;
    pare_source_matrix m;
    if (sscanf(name, "blocks.%zu.attn.%n", &block, &at) == 1 && at &&
        find_place(&m, attn_places, sizeof attn_places / sizeof *attn_places, name + at))
        return pare_source_stream(block, 0, m);
    at = 0;
    if (sscanf(name, "blocks.%zu.ffn.%zu.weight%n", &block, &layer, &at) == 2 && at)
        return pare_source_stream(block, layer / 2, layer % 2 ? PARE_SOURCE_W2 : PARE_SOURCE_W1);
    if (sscanf(name, "blocks.%zu.ffn.skip%n", &block, &at) == 1 && at)
        return pare_source_stream(block, 0, PARE_SOURCE_FFN_SKIP);
    const bool end = find_place(&m, end_places, sizeof end_places / sizeof *end_places, name);
    PARE_ASSERT(end);
    return pare_source_stream(PARE_SOURCE_ENDS, 0, m);
}

/* ---- one weight after the other -------------------------------------------------------------- */

static pare_status count(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    maker *const k = self;
    (void)name, (void)err;
    if (!pare_has(w) || vector) return PARE_OK;
    k->room++;
    k->total += (uint64_t)w->rows * w->cols;
    return PARE_OK;
}

static void keep_numbers(maker *k, const pare_weight *w)
{
    const uint64_t n = (uint64_t)w->rows * w->cols;
    k->r->numbers += n;
    k->r->number_bytes += n * pare_dtype_size(w->dtype);
}

/* Identities side by side need no ticket of their own. */
static bool is_eyes(const pare_weight *w)
{
    if (w->cols % w->rows != 0) return false;
    for (size_t i = 0; i < w->rows * w->cols; i++)
        if (pare_weight_at(w, i) != (i % w->cols % w->rows == i / w->cols)) return false;
    return true;
}

static pare_status keep_eyes(maker *k, const char *name, pare_weight *w, pare_err *err)
{
    pare_coded *const coded = &k->coded[k->ncoded];
    pare_status st = pare_coded_eye(coded, k->m->arena, w->rows, w->cols, err);
    coded->name = pare_strdup(k->m->arena, name);
    if (!st && !coded->name) st = pare_no_memory(err);
    if (!st) st = pare_coded_expand(w, NULL, k->m->arena, coded->data, coded->bytes, err);
    if (st) return st;
    k->r->bytes += coded->bytes;
    k->ncoded++;
    return PARE_OK;
}

static pare_status draw_ticket(maker *k, const char *name, pare_weight *w, pare_err *err)
{
    pare_arena *const keep = k->m->arena;
    pare_arena *const scratch = pare_arena_new();
    pare_coded *const coded = &k->coded[k->ncoded];
    entering enters = {0};
    const matrix_job job = {.name = pare_strdup(keep, name),
                            .w = scratch ? pare_mat_new(scratch, w->rows, w->cols) : (pare_mat){0},
                            .stream = matrix_stream(name),
                            .o = k->o,
                            .enters = &enters,
                            .exec = k->exec};
    pare_weight expanded;
    pare_mat wide = job.w;
    pare_status st = job.name && wide.v ? PARE_OK : pare_no_memory(err);
    if (!st && k->before)
        st = entering_of(&enters, scratch, k->before, k->m, job.stream, k->o->fit, k->exec, err);
    if (!st) {
        pare_weight_widen(&wide, w, 0, 0);
        st = matrix_ticket(coded, &expanded, &k->r->matrix[k->r->n], keep, &job, err);
    }
    pare_arena_free(scratch);
    if (st) return st;
    coded->name = job.name;
    k->r->weights += (uint64_t)w->rows * w->cols;
    k->r->bytes += coded->bytes;
    k->r->n++;
    k->ncoded++;
    *w = expanded;
    return PARE_OK;
}

static pare_status make(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    maker *const k = self;
    if (!pare_has(w)) return PARE_OK;
    if (vector) {
        keep_numbers(k, w);
        return PARE_OK;
    }
    const uint64_t n = (uint64_t)w->rows * w->cols;
    const pare_status st = is_eyes(w) ? keep_eyes(k, name, w, err) : draw_ticket(k, name, w, err);
    k->done += n;
    pare_progress(k->exec, "fit", k->done, k->total);
    return st;
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
                         "stored bits are chosen by the method feedback, with "
                         "the coding bridge");
    if (o->stored > 0 && (o->hidden > 0 || o->bits > PARE_TICKET_STORED_BITS))
        return pare_fail(err, PARE_ERR_USAGE,
                         "stored bits are chosen from up to %d products of an entry (bits)",
                         PARE_TICKET_STORED_BITS);
    if (o->strict && o->exponent != PARE_TICKET_CHOOSE && o->exponent != 0)
        return pare_fail(err, PARE_ERR_USAGE, "strict tickets have scale 1");
    return PARE_OK;
}

/* Merged heads where they are asked for, or are fewer weights. */
static pare_status settle_mode(maker *k, const pare_model *in, pare_err *err)
{
    const char *const why = merge_refuses(in);
    uint64_t now, merged;
    merge_sizes(&now, &merged, in);
    if (k->o->mode == PARE_TICKET_MERGED && why) return pare_fail(err, PARE_ERR_INPUT, "%s", why);
    k->r->merged = k->o->mode == PARE_TICKET_MERGED ||
                   (k->o->mode == PARE_TICKET_AUTO && !why && merged < now);
    return k->r->merged ? merge_heads(k->m, err) : PARE_OK;
}

pare_status pare_ticket(pare_model **out, pare_ticket_report *report, const pare_model *in,
                        const pare_ticket_opts *opts, const pare_exec *exec, pare_err *err)
{
    maker k = {.o = opts, .exec = exec, .r = report};
    *out = NULL;
    *report = (pare_ticket_report){0};
    pare_status st = check_options(opts, err);
    if (!st) st = pare_model_clone(&k.m, in, err);
    if (!st) st = settle_mode(&k, in, err);
    if (!st && opts->method == PARE_TICKET_FEEDBACK && opts->fit)
        st = pare_model_clone(&k.before, k.m, err);
    if (!st) st = pare_model_visit(k.m, count, &k, err);
    if (!st) {
        k.coded = pare_alloc(k.m->arena, k.room + 1, sizeof *k.coded);
        report->matrix = pare_alloc(k.m->arena, k.room + 1, sizeof *report->matrix);
        st = k.coded && report->matrix ? pare_model_visit(k.m, make, &k, err) : pare_no_memory(err);
    }
    if (!st) {
        k.m->coded = k.coded;
        k.m->ncoded = k.ncoded;
        st = pare_model_check(k.m, err);
    }
    pare_model_free(k.before);
    if (st) {
        pare_model_free(k.m);
        k.m = NULL;
    }
    *out = k.m;
    return st;
}
