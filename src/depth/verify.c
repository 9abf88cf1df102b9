/* Proving a depth cut again, from the two files and the inputs alone. How layers were chosen and
 * what they were fitted to is not asked: both models are enclosed on every input, and what lies
 * between them is proven. What stands where, and how much of what attention does is lost, is looked
 * at in the same way: it says why the cut is as good as it is, and no bound rests on it. */
#include "ball.h"
#include "cut.h"
#include "theorems.h"
#include <pare/exchange.h>
#include <pare/outputs.h>
#include <pare/publish.h>
#include <math.h>
#include <string.h>

#define UNSEEN 1e-9 /* of the outputs: what f64 does not see is 0 on every machine */

typedef struct view {
    pare_cert *cert;
    pare_arena *keep;            /* of the certificate */
    size_t room;                 /* hypotheses and statements that fit */
    const pare_statement *asked; /* of the claimed certificate */
    size_t nasked;
    const pare_exec *exec;
    pare_err *err;
} view;

/* ---- lists ----------------------------------------------------------------------------------- */

static pare_status suppose(view *v, pare_truth holds, double value, const char *name)
{
    if (!name) return pare_no_memory(v->err);
    PARE_ASSERT(v->cert->nhypotheses < v->room);
    v->cert->hypotheses[v->cert->nhypotheses++] = (pare_hypothesis){name, holds, value, NAN};
    return PARE_OK;
}

static void state(view *v, const char *norm, double bound, const char *name)
{
    PARE_ASSERT(v->cert->nstatements < v->room);
    v->cert->statements[v->cert->nstatements++] =
        (pare_statement){name, norm, v->cert->domain, 1, bound};
}

static pare_status open_lists(view *v, const pare_model *f)
{
    v->room = THEOREM_ROOM(f) + f->nblocks + 16 +
              (DEPTH_BALL_STATEMENTS + THEOREM_WITHIN + 1) * v->nasked;
    v->cert->hypotheses = pare_alloc(v->keep, v->room, sizeof *v->cert->hypotheses);
    v->cert->statements = pare_alloc(v->keep, v->room, sizeof *v->cert->statements);
    const bool there = v->cert->hypotheses && v->cert->statements;
    return there ? PARE_OK : pare_no_memory(v->err);
}

/* ---- what stands where ----------------------------------------------------------------------- */

static pare_status kinds_of(view *v, const pare_model *f, const pare_model *g)
{
    pare_status st = PARE_OK;
    if (f->nblocks != g->nblocks)
        return suppose(
            v, PARE_TRUE, NAN,
            pare_sprintf(v->keep, "%zu layer in the place of %zu", g->nblocks, f->nblocks));
    for (size_t b = 0; !st && b < f->nblocks; b++) {
        const pare_attn_kind x = f->blocks[b].attn.kind, y = g->blocks[b].attn.kind;
        if (x != y)
            st = suppose(v, PARE_TRUE, NAN,
                         pare_sprintf(v->keep, "layer %zu: %s in the place of %s attention", b,
                                      pare_attn_name(y), pare_attn_name(x)));
    }
    return st;
}

/* ---- evidence -------------------------------------------------------------------------------- */

/* Squares over all outputs: of f, of f - g, and of f - f without attention; the largest sum of
 * those of f - g over a row. */
typedef struct squares {
    double size, apart, without, row;
} squares;

/* f without any attention: nothing stands in its place. False where a layer has no skip. */
static bool strip(pare_model *m, pare_block *blocks, const pare_model *f)
{
    *m = *f;
    m->blocks = blocks;
    for (size_t b = 0; b < f->nblocks; b++) {
        const pare_attn *const a = &f->blocks[b].attn;
        blocks[b] = f->blocks[b];
        if (a->kind == PARE_ATTN_NONE) continue;
        if (a->skip.kind == PARE_SKIP_NONE) return false;
        blocks[b].attn = (pare_attn){.kind = PARE_ATTN_ZERO, .din = a->din, .dout = a->dout};
        blocks[b].attn.skip = a->skip;
        blocks[b].attn.out_norm = a->out_norm;
    }
    return true;
}

static pare_status outputs_of(double **y, pare_arena *a, const view *v, const pare_model *m,
                              const pare_input *in)
{
    *y = pare_alloc(a, pare_output_rows(m, in) * pare_model_outputs(m) + 1, sizeof **y);
    if (!*y) return pare_no_memory(v->err);
    return pare_forward_f64(*y, m, in, NULL, v->exec, v->err);
}

static pare_status add_input(squares *s, pare_arena *a, const view *v, const pare_model *const m[3],
                             const pare_input *in)
{
    double *y[3] = {NULL, NULL, NULL};
    const size_t width = pare_model_outputs(m[0]), n = pare_output_rows(m[0], in) * width;
    pare_status st = PARE_OK;
    for (size_t k = 0; !st && k < 3; k++)
        if (m[k]) st = outputs_of(&y[k], a, v, m[k], in);
    double row = 0;
    for (size_t i = 0; !st && i < n; i++) {
        const double g = y[0][i] - y[1][i], none = m[2] ? y[0][i] - y[2][i] : 0;
        s->size += y[0][i] * y[0][i];
        s->apart += g * g;
        s->without += none * none;
        row = i % width ? row + g * g : g * g;
        s->row = fmax(s->row, row);
    }
    return st;
}

static pare_status measure(squares *s, bool *stripped, const view *v, const pare_model *f,
                           const pare_model *g, const pare_inputs *set)
{
    pare_arena *const a = pare_arena_new();
    pare_block *const blocks = a ? pare_alloc(a, f->nblocks + 1, sizeof *blocks) : NULL;
    pare_model none;
    pare_status st = blocks ? PARE_OK : pare_no_memory(v->err);
    *s = (squares){0};
    *stripped = blocks && strip(&none, blocks, f);
    const pare_model *const m[3] = {f, g, *stripped ? &none : NULL};
    for (size_t i = 0; !st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(a);
        st = add_input(s, a, v, m, &set->in[i]);
        pare_arena_reset(a, mark);
    }
    pare_arena_free(a);
    return st;
}

static double ratio(double part, double of)
{
    const double r = of > 0 ? sqrt(part / of) : part > 0 ? INFINITY : 0;
    return r > UNSEEN ? r : 0;
}

static pare_status evidence(view *v, const pare_model *f, const pare_model *g,
                            const pare_inputs *set)
{
    squares s;
    bool stripped;
    pare_status st = measure(&s, &stripped, v, f, g, set);
    if (!st) st = suppose(v, PARE_TRUE, ratio(s.apart, s.size), PARE_DEPTH_RELATIVE);
    const double row = ratio(s.apart, s.size) > 0 ? sqrt(s.row) : 0;
    if (!st) st = suppose(v, PARE_TRUE, row, PARE_DEPTH_ROW);
    if (!st && stripped && s.without > UNSEEN * UNSEEN * s.size)
        st = suppose(v, PARE_TRUE, ratio(s.apart, s.without), PARE_DEPTH_LOST);
    return st;
}

/* ---- statements ------------------------------------------------------------------------------ */

static void rows_and_auc(view *v, const pare_output_bound *o)
{
    static const char *const area = "area under the ROC curve of the test rows";
    const pare_auc_bound f = o->auc[0], g = o->auc[1];
    state(v, "share of the output rows",
          (double)(o->rows - o->certain) / (double)(o->rows ? o->rows : 1),
          "rows whose largest entry may have changed");
    if (!(f.low <= f.high && g.low <= g.high)) return;
    state(v, area, g.high, PARE_AUC);
    state(v, area, pare_ub_of(1 - g.low).v, PARE_AUC_BELOW);
    state(v, "difference of the areas under the ROC curve of the test rows",
          pare_ub_of(fmax(f.high - g.low, g.high - f.low)).v, PARE_AUC_APART);
}

/* A statement that stands there twice is proven once, and then there are too many of them. */
static bool asked_first(const view *v, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (strcmp(v->asked[k].name, v->asked[i].name) == 0) return false;
    return true;
}

/* The balls that the certificate speaks of. */
static pare_status near_by(view *v, const pare_model *f, const pare_model *g,
                           const pare_inputs *set, double scale)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < v->nasked; i++) {
        const depth_ball_of b = depth_ball_asked(v->asked[i].name);
        if (!(b.radius > 0) || !asked_first(v, i)) continue;
        const char *why = NULL;
        size_t n = 0;
        pare_ub apriori;
        pare_statement *const to = v->cert->statements + v->cert->nstatements;
        PARE_ASSERT(v->cert->nstatements + DEPTH_BALL_STATEMENTS <= v->room);
        st = theorems_near(&apriori, f, g, set, b.radius, v->exec, v->err);
        if (!st)
            st = depth_ball(to, &n, &why, v->keep, f, g, set, b, v->cert->domain, scale, apriori,
                            v->exec, v->err);
        v->cert->nstatements += n;
        if (!st && why) st = suppose(v, PARE_FALSE, NAN, pare_sprintf(v->keep, "balls: %s", why));
    }
    return st;
}

/* The diameters that it speaks of. */
static pare_status within(view *v, const pare_model *f, const pare_model *g, const pare_inputs *set)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < v->nasked; i++) {
        const double diam = theorems_diam_asked(v->asked[i].name);
        if (!(diam > 0) || !asked_first(v, i)) continue;
        PARE_ASSERT(v->cert->nstatements + THEOREM_WITHIN <= v->room);
        st = theorems_within(v->cert, v->keep, f, g, set, diam, v->exec, v->err);
    }
    return st;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static pare_status fill(view *v, const pare_cert *claimed, const pare_model *f, const pare_model *g,
                        const pare_inputs *set)
{
    pare_cert *const c = v->cert;
    pare_output_bound o;
    c->norm = PARE_NORM_HEADLINE;
    c->domain = pare_domain_text(v->keep, &claimed->data);
    if (!c->domain) return pare_no_memory(v->err);
    pare_status st = open_lists(v, f);
    if (!st) st = pare_outputs_compare(&o, f, g, set, v->exec, v->err);
    if (!st) st = pare_outputs_certain(&o, f, g, set, v->exec, v->err);
    if (st) return st;
    c->proven = o.gap.proven.v;
    c->measured = o.gap.measured;
    c->measured_slack = pare_measured_slack(&o.gap);
    c->rounding = o.gap.rounding.v;
    rows_and_auc(v, &o);
    st = kinds_of(v, f, g);
    if (!st) st = theorems_say(c, v->keep, f, g, set, v->exec, v->err);
    if (!st) st = evidence(v, f, g, set);
    if (!st) st = near_by(v, f, g, set, o.gap.scale);
    if (!st) st = within(v, f, g, set);
    if (st) return st;
    PARE_ASSERT(c->nstatements + v->nasked <= v->room && c->nhypotheses < v->room);
    return pare_exchange_say(c, v->keep, &claimed->data, v->asked, v->nasked, f, g, set, v->exec,
                             v->err);
}

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    view v = {again, a, 0, claimed->statements, claimed->nstatements, exec, err};
    again->nhypotheses = again->nstatements = again->npaper = 0; /* `again` may be `claimed` */
    return fill(&v, claimed, f, g, set);
}

const pare_prover pare_depth_prover = {"depth", prove};
