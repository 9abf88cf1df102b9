/* output_difference.c - two models on a set of inputs: how far their outputs are apart, proven.
 *
 * For every input and every output entry, with midpoints F, G and radii rf, rg of its row,
 *
 *     |f - g| <= |F - G| + rf + rg,
 *
 * and the largest of these is the bound. Each model's weights are bounded once; then one group of
 * sequences of one length at a time is enclosed, from whichever inputs of the set, so that weights
 * are read once for many tokens, and memory does not grow with the set. The same enclosures say
 * which rows keep their largest entry, between which numbers the AUC lies, and how far the f32
 * engine was from the exact function: |y - G| + rg.
 *
 * First in f64. Through many layers the worst-case growth of 2^-53 may be larger than the
 * difference itself; then, unless it is too much work, everything is enclosed again with
 * double-double midpoints, and of each figure the better one is taken (both are true). The rule:
 *
 *     again, if  proven > (1 + SHARE) measured, or more labels may be kept and are asked for,
 *     and the work of both models is at most WORK.
 *
 * The first group is one sequence. If the radius of f64 is above its difference and above FAR times its
 * outputs, f64 has nothing to say of the others, and the set is looked at in double-double alone.
 *
 * All of this depends on shapes and on the f64 result alone, so a verifier does the same. (On another CPU
 * the f64 result has other last bits. SHARE is below the 1e-4 by which writers raise a bound: where
 * the two would differ, one proves what the other has written.)
 *
 * Both enclosures hold the exact difference, so their figures must meet; if they do not, one of
 * them is wrong, and nothing is proven. */
#include "enclose.h"
#include "base/support.h"
#include "conformal.h"
#include "outputs.h"
#include "linalg/bounds.h"
#include "model/inputs.h"
#include "model/model_facts.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tokens and output entries enclosed at a time, but for a single sequence that has more. */
enum { ROWS = 512, ENTRIES = 1 << 21 };
#define SHARE 3e-5
#define FAR   0x1p-10
#define WORK  2e11   /* multiplications, about fifteen seconds on two cores */
#define NORMS 0.02   /* the norms of the weights of one model, likewise */
#define WIDE  5.0    /* times the work of f64, for the progress alone */
enum { PAIR = 256 }; /* multiplications that the weight of one key costs beside its products */

static const pare_output_bound nothing_yet = {.auc = {{1, 0}, {1, 0}}}; /* no area */

typedef struct prover {
    const pare_model *m[2]; /* f, g */
    pare_model_norms *norms[2];
    const pare_exec *exec;
    pare_steps *steps; /* of the whole proof */
    bool wide;
    bool scout;   /* whether f64 may give up after one sequence ... */
    bool gave_up; /* ... and has */
    pare_output_bound *out;
    pare_each_bound *each;   /* NULL: not asked for */
    pare_unit_rows units[2]; /* of f and g */
} prover;

static double pairs_of(const pare_model *m, const pare_input *in)
{
    const double t = (double)in->tokens;
    double n = 0;
    if (m->pattern.kind == PARE_GRAPH) {
        if (in->graph) n = (double)in->graph->ptr[in->graph->n];
        return n + t * (1 + (double)m->pattern.expander_degree);
    }
    for (size_t i = 0; i < in->tokens; i++)
        n += (double)pare_visible(&m->pattern, NULL, in->tokens, i).count;
    return n;
}

static double work_on(const pare_model *m, const pare_input *in)
{
    double heads = 0;
    for (size_t b = 0; b < m->nblocks; b++)
        if (m->blocks[b].attn.kind != PARE_ATTN_NONE) heads += (double)m->blocks[b].attn.nheads;
    const double pairs = pairs_of(m, in);
    const uint64_t macs = pare_model_macs(m, in->tokens, (uint64_t)pairs);
    return (double)in->batch * ((double)macs + PAIR * heads * pairs);
}

static double work_of(const pare_model *m, const pare_inputs *set)
{
    double work = 0;
    for (size_t i = 0; i < set->n; i++) work += work_on(m, &set->in[i]);
    return work;
}

/* g's f32 engine on these inputs; NULL where it overflows. */
static pare_status run_engine(float **y, pare_arena *a, const prover *p, const pare_input *in,
                              const pare_enclosure *g, pare_err *err)
{
    *y = pare_alloc(a, g->rows * g->cols, sizeof **y);
    if (!*y) return pare_no_memory(err);
    const pare_exec quiet = pare_exec_silent(p->exec);
    const pare_status st = pare_forward_f32(*y, p->m[1], in, NULL, &quiet, err);
    if (st == PARE_ERR_NONFINITE) *y = NULL;
    return st == PARE_ERR_NONFINITE ? PARE_OK : st;
}

/* Of the only sequence there is. */
static pare_status bound_auc(pare_auc_bound *auc, pare_arena *a, const pare_enclosure *e,
                             const int64_t *target, pare_err *err)
{
    pare_enclosure flat;
    const pare_status st = pare_enclosure_flatten(&flat, a, e, err);
    return st == PARE_OK ? pare_auc_interval(auc, a, &flat, target, err) : st;
}

/* Rows [from, from + rows) of an enclosure. */
static pare_enclosure rows_of(const pare_enclosure *e, size_t from, size_t rows)
{
    return (pare_enclosure){.rows = rows,
                            .cols = e->cols,
                            .mid = e->mid + from * e->cols,
                            .lo = e->lo ? e->lo + from * e->cols : NULL,
                            .rad = e->rad + from,
                            .rad32 = e->rad32 + from};
}

/* What is proven of input `number` by itself, from its rows. */
static pare_status one_sequence(prover *p, size_t number, const pare_enclosure *f,
                                const pare_enclosure *g, pare_ub apart, pare_err *err)
{
    double *const to = &p->each->apart[number];
    *to = up_max(*to, apart.v);
    return pare_each_bound_rows(p->each, p->units, p->each->first[number], f, g, p->exec, err);
}

/* number: those of these sequences in the set. */
static pare_status one_group(prover *p, const size_t *number, const pare_input *in, bool alone,
                             pare_err *err)
{
    pare_enclosure e[2];
    const pare_enclosure *const f = &e[0], *const g = &e[1];
    float *y = NULL;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = PARE_OK;
    for (int k = 0; st == PARE_OK && k < 2; k++) {
        const pare_exec *const exec =
            pare_step(p->steps, p->wide ? "prove again, in double-double" : "prove",
                      (p->wide ? WIDE : 1) * work_on(p->m[k], in));
        st = p->wide ? pare_enclose_dd(&e[k], a, p->m[k], p->norms[k], in, exec, err)
                     : pare_enclose(&e[k], a, p->m[k], p->norms[k], in, exec, err);
    }
    if (st == PARE_OK && (f->rows != g->rows || f->cols != g->cols))
        st = pare_fail(err, PARE_ERR_INPUT, "gap: outputs [%zu, %zu] and [%zu, %zu] of the models",
                       f->rows, f->cols, g->rows, g->cols);
    if (st == PARE_OK) st = run_engine(&y, a, p, in, g, err);
    const size_t rows = st == PARE_OK ? f->rows / in->batch : 0;
    for (size_t s = 0; st == PARE_OK && s < in->batch; s++) {
        const pare_enclosure of_f = rows_of(f, s * rows, rows), of_g = rows_of(g, s * rows, rows);
        pare_ub apart = pare_ub_exact(0);
        for (size_t i = s * rows; i < (s + 1) * rows; i++) {
            apart = pare_ub_max(apart, pare_outputs_row(p->out, f, g, i));
            pare_outputs_engine(p->out, g, y, i);
        }
        if (p->each) st = one_sequence(p, number[s], &of_f, &of_g, apart, err);
    }
    for (int k = 0; st == PARE_OK && alone && in->target && k < 2; k++)
        st = bound_auc(&p->out->auc[k], a, &e[k], in->target, err);
    pare_arena_free(a);
    return st;
}

/* ---- groups ----------------------------------------------------------------------------------- */

/* One sequence of the set, and the number it has there. */
typedef struct sequence {
    pare_input in;
    size_t number;
} sequence;

/* Longer ones first; among equals, as they come. */
static int by_length(const void *a, const void *b)
{
    const sequence *const x = a, *const y = b;
    if (x->in.tokens != y->in.tokens) return x->in.tokens < y->in.tokens ? 1 : -1;
    return x->number < y->number ? -1 : x->number > y->number;
}

static pare_status list_sequences(sequence **out, size_t *n, pare_arena *a, const prover *p,
                                  const pare_inputs *set, pare_err *err)
{
    *n = 0;
    sequence *const list = *out = pare_alloc(a, pare_draw_count(set) + 1, sizeof *list);
    if (!list) return pare_no_memory(err);
    for (size_t i = 0; i < set->n; i++) {
        const pare_status st = pare_input_check(p->m[0], &set->in[i], err);
        if (st != PARE_OK) return st;
        for (size_t b = 0; b < set->in[i].batch; b++, (*n)++)
            list[*n] = (sequence){pare_input_sequence(&set->in[i], b), *n};
    }
    qsort(list, *n, sizeof *list, by_length);
    return PARE_OK;
}

/* How many of n sequences are enclosed together, the first of them and others of its length. */
static size_t group_size(const prover *p, const sequence *list, size_t n)
{
    const pare_input *const one = &list->in;
    const size_t entries = pare_output_rows(p->m[0], one) * pare_model_outputs(p->m[0]);
    const size_t tokens = one->tokens ? one->tokens : 1;
    size_t size = 1;
    if (one->graph) return 1;
    while (size < n && list[size].in.tokens == one->tokens && (size + 1) * tokens <= ROWS &&
           (size + 1) * entries <= ENTRIES)
        size++;
    return size;
}

/* n sequences of one length as one batch. */
static pare_status join(pare_input *out, size_t *number, pare_arena *a, const sequence *list,
                        size_t n, pare_err *err)
{
    *out = list->in;
    number[0] = list->number;
    if (n == 1) return PARE_OK;
    const size_t row = out->tokens * (out->ids ? 1 : out->width);
    int64_t *const ids = out->ids ? pare_alloc(a, n, row * sizeof *ids) : NULL;
    double *const x = out->x ? pare_alloc(a, n, row * sizeof *x) : NULL;
    if ((out->ids && !ids) || (out->x && !x)) return pare_no_memory(err);
    for (size_t i = 0; i < n; i++) {
        number[i] = list[i].number;
        if (ids) memcpy(ids + i * row, list[i].in.ids, row * sizeof *ids);
        if (x) memcpy(x + i * row, list[i].in.x, row * sizeof *x);
    }
    out->batch = n;
    out->ids = ids;
    out->x = x;
    out->target = NULL;
    return PARE_OK;
}

static pare_status whole_set(prover *p, pare_output_bound *out, const pare_inputs *set,
                             pare_err *err)
{
    size_t n = 0, number[ROWS];
    sequence *list = NULL;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = list_sequences(&list, &n, a, p, set, err);
    *out = nothing_yet;
    p->out = out;
    p->gave_up = false;
    for (size_t i = 0, size; st == PARE_OK && !p->gave_up && i < n; i += size) {
        const pare_mark mark = pare_arena_mark(a);
        const bool scout = p->scout && !p->wide && i == 0;
        pare_input in;
        size = scout ? 1 : group_size(p, list + i, n - i);
        st = join(&in, number, a, list + i, size, err);
        if (st == PARE_OK) st = one_group(p, number, &in, n == 1, err);
        p->gave_up = scout && size < n && !(out->gap.radius <= out->gap.measured) &&
                     !(out->gap.radius <= FAR * out->gap.scale);
        for (size_t k = i + size; p->gave_up && k < n;
             k++) /* nothing of these is to be waited for */
            pare_step(p->steps, NULL,
                      work_on(p->m[0], &list[k].in) + work_on(p->m[1], &list[k].in));
        pare_arena_reset(a, mark);
    }
    if (st == PARE_OK && p->each && !p->gave_up)
        st = pare_each_bound_finish(p->each, p->units, err);
    pare_arena_free(a);
    return st;
}

static bool affordable(const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    return work_of(f, set) + work_of(g, set) <= WORK;
}

bool enclose_goes_wide(const pare_gap *gap, const pare_model *f, const pare_model *g,
                       const pare_inputs *set)
{
    return !(gap->proven.v <= (1 + SHARE) * gap->measured) && affordable(f, g, set);
}

pare_status enclose_merge(pare_output_bound *a, const pare_output_bound *b, pare_err *err)
{
    const double apart = fabs(a->gap.measured - b->gap.measured); /* nan: nothing is known */
    const double most = up_add(up_add(a->gap.radius, b->gap.radius), 0x1p-50 * b->gap.measured);
    if (apart > most)
        return pare_fail(err, PARE_ERR_VERIFY,
                         "self-check: the differences %.9g (f64) and %.9g (double-double) are "
                         "further apart than their proven radii %.3g and %.3g: a fault in pare",
                         a->gap.measured, b->gap.measured, a->gap.radius, b->gap.radius);
    a->gap.proven = pare_ub_min(a->gap.proven, b->gap.proven);
    a->gap.rounding = pare_ub_min(a->gap.rounding, b->gap.rounding);
    a->gap.engine = fmin(a->gap.engine, b->gap.engine);
    if (b->gap.radius < a->gap.radius) {
        a->gap.measured = b->gap.measured;
        a->gap.radius = b->gap.radius;
    }
    if (b->certain > a->certain) a->certain = b->certain;
    for (int k = 0; k < 2; k++) {
        a->auc[k].low = fmax(a->auc[k].low, b->auc[k].low);
        a->auc[k].high = fmin(a->auc[k].high, b->auc[k].high);
    }
    return PARE_OK;
}

/* The set once more with double-double midpoints; in the place of f64 where that gave up. */
static pare_status again_wide(prover *p, pare_output_bound *out, pare_arena *a,
                              const pare_inputs *set, pare_err *err)
{
    pare_output_bound wide;
    pare_each_bound *const narrow = p->each;
    const bool alone = p->gave_up;
    pare_status st = PARE_OK;
    p->wide = true;
    if (narrow) st = pare_each_bound_new(&p->each, a, p->m[0], p->m[1], set, err);
    if (st == PARE_OK) st = whole_set(p, &wide, set, err);
    if (st != PARE_OK) return st;
    if (alone) {
        wide.gap.f64_radius = INFINITY;
        *out = wide;
        return PARE_OK;
    }
    st = enclose_merge(out, &wide, err);
    if (st == PARE_OK && narrow) {
        pare_each_bound_merge(narrow, p->each);
        p->each = narrow;
    }
    return st;
}

/* again: double-double is likely to be needed; only the progress is planned by it. */
static pare_status prove_set(pare_output_bound *out, pare_arena *keep, const pare_model *f,
                             const pare_model *g, const pare_inputs *set, bool labels, bool again,
                             const pare_exec *exec, pare_err *err)
{
    pare_output_bound found;
    const double work = work_of(f, set) + work_of(g, set), few = NORMS * work;
    const bool can = affordable(f, g, set); /* to be looked at in double-double */
    const bool likely = again && can;
    pare_steps steps = pare_steps_of(exec, 2 * few + work * (likely ? 1 + WIDE : 1));
    prover p = {.m = {f, g}, .exec = exec, .steps = &steps, .scout = can};
    pare_arena *const a = pare_arena_new();
    *out = nothing_yet;
    out->gap.proven = out->gap.rounding = pare_ub_inf();
    out->gap.radius = out->gap.f64_radius = out->gap.engine = INFINITY;
    if (!a) return pare_no_memory(err);
    pare_each_bound *each = NULL;
    pare_status st = keep ? pare_each_bound_new(&each, keep, f, g, set, err) : PARE_OK;
    for (int k = 0; st == PARE_OK && each && k < 2; k++)
        st = pare_unit_rows_new(&p.units[k], a, each, pare_model_outputs(p.m[k]), err);
    p.each = each;
    for (int k = 0; st == PARE_OK && k < 2; k++)
        st = pare_model_norms_new(&p.norms[k], a, p.m[k], pare_step(&steps, "prove", few), err);
    if (st == PARE_OK) st = whole_set(&p, &found, set, err);
    if (st == PARE_OK) {
        found.gap.f64_radius = found.gap.radius;
        const bool more = labels && found.certain < found.rows && can;
        if (p.gave_up || more || enclose_goes_wide(&found.gap, f, g, set)) {
            if (!likely) pare_steps_add(&steps, WIDE * work);
            st = again_wide(&p, &found, keep ? keep : a, set, err);
        }
    }
    if (st == PARE_OK) {
        *out = found;
        out->each = p.each;
    }
    pare_arena_free(a);
    return st;
}

pare_status pare_outputs_compare(pare_output_bound *out, pare_arena *keep, const pare_model *f,
                                 const pare_model *g, const pare_inputs *set, bool labels,
                                 const pare_exec *exec, pare_err *err)
{
    return prove_set(out, keep, f, g, set, labels, labels, exec, err);
}

pare_status pare_prove_gap(pare_gap *out, const pare_model *f, const pare_model *g,
                           const pare_inputs *set, const pare_exec *exec, pare_err *err)
{
    pare_output_bound all;
    const pare_status st = prove_set(&all, NULL, f, g, set, false, true, exec, err);
    *out = all.gap;
    return st;
}

/* ---- what a certificate says of it ------------------------------------------------------------
 */

/* The least number of one digit that is not below x. */
static double one_digit_up(double x)
{
    char text[32];
    snprintf(text, sizeof text, "%.0e", x);
    const double nearest = strtod(text, NULL);
    if (!(nearest < x)) return nearest;
    const int next = text[0] - '0' + 1;
    const long exponent = strtol(text + 2, NULL, 10);
    snprintf(text, sizeof text, "%de%ld", next, exponent);
    return strtod(text, NULL);
}

pare_status pare_cert_take_gap(pare_cert *c, pare_arena *a, const pare_gap *gap, pare_err *err)
{
    c->proven = gap->proven.v;
    c->measured = gap->measured;
    c->measured_radius = gap->radius;
    c->f64_radius = gap->f64_radius;
    pare_status st = PARE_OK;
    /* Larger than the outputs themselves it tells nobody anything. */
    if (gap->rounding.v < gap->scale)
        st = pare_cert_add(
            c, a, (pare_claim){.kind = PARE_ENGINE_ROUNDING, .value = gap->rounding.v}, err);
    if (st != PARE_OK) return st;
    return pare_cert_add(
        c, a, (pare_claim){.kind = PARE_ENGINE_DISTANCE, .value = one_digit_up(gap->engine)}, err);
}
