/* fold_prover.c - proves a fold again, from the two files alone.
 *
 * In real numbers folding changes nothing, so a fold that had to round no weight has error 0 for
 * every input (a priori). Otherwise the bound comes from the enclosure of both models on the given
 * inputs. The fold is redone block by block and compared with the output file: the weights, and the
 * settings, without which the same weights are another function. It is redone in both of its forms,
 * for pare's files and for folders, where a norm without gains has gains of 1; the form that agrees
 * better counts. */
#include "base/array.h"
#include "model/precision.h"
#include "fold_parts.h"
#include "attention/attend.h"
#include "cert/outputs.h"
#include "model/model_equality.h"
#include "model/model_facts.h"
#include <pare/fold.h>
#include <math.h>
#include <string.h>

typedef struct redo {
    size_t different; /* weights and settings of the output that are not the refolded ones */
    pare_dtype stored;
    pare_fold_report report;
} redo;

/* Two models of the same shape, weight by weight: the second list is walked in step. */
typedef struct pairing {
    pare_weight *list;
    size_t n, at, different, rounded;
    pare_dtype stored; /* precision of the second model */
} pairing;

static pare_status take(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)name, (void)vector, (void)err;
    pairing *const p = self;
    if (p->list) p->list[p->n] = *w;
    p->n++;
    return PARE_OK;
}

/* v as a file of this precision holds it. */
static double stored_value(double v, pare_dtype t)
{
    const uint32_t high = (uint32_t)pare_bf16_of(v) << 16;
    float f = (float)v;
    if (t == PARE_F16) return (double)pare_f16_to_f32(pare_f16_of(v));
    if (t == PARE_BF16) memcpy(&f, &high, sizeof f);
    return t == PARE_F64 ? v : (double)f;
}

static bool ends_with(const char *name, const char *tail)
{
    const size_t n = strlen(name), t = strlen(tail);
    return n >= t && strcmp(name + n - t, tail) == 0;
}

/* Gains of 1 and biases of 0 do what no gains and no biases do. */
static bool does_nothing(const char *name, const pare_weight *w)
{
    static const char *const biases[] = {".bias", ".bq", ".bk", ".bv", ".bo"};
    if (ends_with(name, ".gain")) return weight_is(w, 1);
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        if (ends_with(name, biases[i])) return weight_is(w, 0);
    return false;
}

/* Counts the entries in which a weight and its partner differ, apart from those that the file
 * rounded; all where their shapes differ. */
static pare_status compare(void *self, const char *name, pare_weight *w, bool vector, pare_err *err)
{
    (void)vector, (void)err;
    pairing *const p = self;
    const pare_weight none = {0}, *const a = w, *const b = p->at < p->n ? &p->list[p->at] : &none;
    const size_t n = pare_has(a) ? a->rows * a->cols : 0;
    p->at++;
    if (pare_same_weight(a, b)) return PARE_OK;
    if (pare_has(a) != pare_has(b) && does_nothing(name, pare_has(a) ? a : b)) return PARE_OK;
    if (pare_has(a) != pare_has(b) || a->dtype != b->dtype || a->rows != b->rows ||
        a->cols != b->cols) {
        p->different += pare_has(a) ? n : b->rows * b->cols;
        return PARE_OK;
    }
    for (size_t i = 0; i < n; i++) {
        const double x = pare_weight_at(a, i), y = pare_weight_at(b, i);
        if (x == y) continue;
        if (stored_value(x, p->stored) == y)
            p->rounded++;
        else
            p->different++;
    }
    return PARE_OK;
}

/* Counts the weights in which a and b differ; every weight when their lists have other lengths. */
static pare_status count_different(redo *r, pare_arena *a, pare_model *m, pare_model *g,
                                   pare_err *err)
{
    pairing p = {.stored = r->stored};
    pare_status st = pare_model_each_weight(g, take, &p, err);
    if (st) return st;
    p.list = pare_alloc(a, p.n ? p.n : 1, sizeof *p.list);
    if (!p.list) return pare_no_memory(err);
    p.n = 0;
    if ((st = pare_model_each_weight(g, take, &p, err)) ||
        (st = pare_model_each_weight(m, compare, &p, err)))
        return st;
    r->different += p.different + (p.at != p.n);
    r->report.rounded += p.rounded;
    return PARE_OK;
}

pare_status fold_count_different(size_t *out, pare_arena *a, pare_model *m, pare_model *g,
                                 pare_err *err)
{
    redo r = {.stored = PARE_F64};
    const pare_status st = count_different(&r, a, m, g, err);
    *out = r.different;
    return st;
}

static pare_status redo_fold(redo *r, const pare_model *in, const pare_model *out, bool standard,
                             pare_err *err)
{
    pare_arena *const scratch = pare_arena_new();
    if (!scratch) return pare_no_memory(err);
    *r = (redo){.stored = pare_model_precision(out)};
    folder f = folder_of(in, standard, scratch, &r->report, err);
    pare_work *const w = &f.work;
    pare_model mine = *in, theirs = *out;
    mine.nblocks = theirs.nblocks = 0; /* the blocks are walked one by one */
    fold_embedding(&f, &mine.embedding);
    fold_head(&f, &mine.head);
    if (!w->st) w->st = count_different(r, scratch, &mine, &theirs, err);
    r->different += outer_settings_differ(&mine, &theirs);
    const size_t nblocks = in->nblocks < out->nblocks ? in->nblocks : out->nblocks;
    const pare_mark mark = pare_arena_mark(scratch);
    for (size_t b = 0; !w->st && b < nblocks; b++) { /* fold a block again and compare it */
        pare_block block = in->blocks[b], other = out->blocks[b];
        const size_t layers = block.ffn.nlayers;
        block.ffn.layers = pare_work_alloc(w, layers, sizeof *block.ffn.layers);
        if (w->st) break;
        if (layers)
            memcpy(block.ffn.layers, in->blocks[b].ffn.layers, layers * sizeof *block.ffn.layers);
        fold_attention(&f, &block.attn);
        fold_ffn(&f, &block.ffn);
        /* models of one block, which the visitor can walk alone */
        pare_model my_model = {.nblocks = 1, .blocks = &block};
        pare_model their_model = {.nblocks = 1, .blocks = &other};
        if (!w->st) w->st = count_different(r, scratch, &my_model, &their_model, err);
        r->different += block_settings_differ(&block, &out->blocks[b]);
        pare_arena_reset(scratch, mark);
    }
    r->different += in->nblocks > nblocks ? in->nblocks - nblocks : out->nblocks - nblocks;
    pare_arena_free(scratch);
    return w->st;
}

static pare_truth truth(bool holds)
{
    return holds ? PARE_TRUE : PARE_FALSE;
}

/* Equal functions are equal on these inputs too; 1 - cosine is 0 where the row is proven not to be. */
static void equal_functions(pare_output_bound *o)
{
    pare_each_bound *const e = o->each;
    o->gap.proven = pare_ub_exact(0);
    for (size_t i = 0; i < e->rows; i++) {
        if (e->distance && e->distance[i] < 2) e->distance[i] = 0;
        if (e->kl) e->kl[i] = 0;
    }
}

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    redo r, standard;
    pare_output_bound o;
    pare_status st = redo_fold(&r, f, g, false, err);
    if (!st && r.different > 0) {
        st = redo_fold(&standard, f, g, true, err);
        if (!st && standard.different < r.different) r = standard;
    }
    if (!st) st = pare_outputs_compare(&o, a, f, g, set, false, exec, err);
    if (st) return st;
    const bool exact = r.different == 0 && r.report.rounded == 0;
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    if (!again->domain) return pare_no_memory(err);
    if (exact) equal_functions(&o);
    const pare_claim claims[] = {
        {.kind = PARE_FOLD_SAME, .holds = truth(r.different == 0), .value = (double)r.different},
        {.kind = PARE_FOLD_ROUNDED,
         .holds = truth(r.report.rounded == 0),
         .value = (double)r.report.rounded},
        {.kind = PARE_FOLD_NOT_ROTARY, .holds = truth(!pare_model_is_rotary(f))},
        {.kind = PARE_FOLD_ROWS_NOT_EMPTY, .holds = truth(pare_never_empty(&f->pattern))}};
    for (size_t i = 0; !st && i < sizeof claims / sizeof *claims; i++)
        st = pare_cert_add(again, a, claims[i], err);
    if (!st && exact)
        st = pare_cert_add(again, a,
                           (pare_claim){.kind = PARE_APRIORI_OUTPUTS, .domain = "all inputs"}, err);
    if (!st) st = pare_cert_take_gap(again, a, &o.gap, err);
    return st ? st : pare_cert_take_each(again, a, o.each, err);
}

const pare_prover pare_fold_prover = {"fold", prove};
