/* verify.c - proves a depth cut from the two files and the inputs alone. How layers were chosen
 * and fitted does not matter: both models are enclosed on every input, and their distance is
 * proven. Which layers were replaced, and the share of the attention that is lost, are
 * observations: they explain the result, and no bound depends on them. */
#include "depth_ball.h"
#include "replace_layers.h"
#include "theorems.h"
#include <pare/exchange.h>
#include <pare/outputs.h>
#include <pare/publish.h>
#include <math.h>
#include <string.h>

typedef struct view {
    pare_cert *cert;
    pare_arena *keep; /* of the certificate */
    const pare_cert *claimed;
    const pare_exec *exec;
    pare_err *err;
} view;

static pare_status add(view *v, pare_claim c)
{
    return pare_cert_add(v->cert, v->keep, c, v->err);
}

/* ---- what stands where ----------------------------------------------------------------------- */

static pare_status kinds_of(view *v, const pare_model *f, const pare_model *g)
{
    pare_status st = PARE_OK;
    if (f->nblocks != g->nblocks)
        return add(v, (pare_claim){.kind = PARE_LAYERS_MERGED,
                                   .p = {(double)f->nblocks, (double)g->nblocks},
                                   .holds = PARE_TRUE});
    for (size_t b = 0; !st && b < f->nblocks; b++) {
        const pare_attn_kind x = f->blocks[b].attn.kind, y = g->blocks[b].attn.kind;
        if (x == y) continue;
        const char *const by =
            pare_sprintf(v->keep, "%s (it was %s)", pare_attn_name(y), pare_attn_name(x));
        if (!by) return pare_no_memory(v->err);
        st = add(
            v, (pare_claim){
                   .kind = PARE_LAYER_REPLACED, .p = {(double)b}, .text = by, .holds = PARE_TRUE});
    }
    return st;
}

/* ---- observations ---------------------------------------------------------------------------- */

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
    return of > 0 ? sqrt(part / of) : part > 0 ? INFINITY : 0;
}

/* `radius`: how far an entry of f - g may be off in f64. Over n entries sums of squares are off by
 * sqrt(n) times as much, those of one row by the root of its length. */
static pare_status observations(view *v, const pare_model *f, const pare_model *g,
                                const pare_inputs *set, double radius)
{
    squares s;
    bool stripped;
    double entries = 0;
    for (size_t i = 0; i < set->n; i++)
        entries += (double)(pare_output_rows(f, &set->in[i]) * pare_model_outputs(f));
    const double all = radius * sqrt(entries), row = radius * sqrt((double)pare_model_outputs(f));
    pare_status st = measure(&s, &stripped, v, f, g, set);
    if (!st)
        st = add(v, (pare_claim){.kind = PARE_RELATIVE_ERROR,
                                 .value = ratio(s.apart, s.size),
                                 .slack = s.size > 0 ? 2 * all / sqrt(s.size) : 0});
    if (!st)
        st = add(v, (pare_claim){.kind = PARE_ROW_ERROR, .value = sqrt(s.row), .slack = 2 * row});
    if (!st && stripped && s.without > all * all)
        st = add(v, (pare_claim){.kind = PARE_LOST_FRACTION,
                                 .value = ratio(s.apart, s.without),
                                 .slack = 2 * all / sqrt(s.without)});
    return st;
}

/* ---- theorems beside the headline ------------------------------------------------------------ */

/* Balls and diameters that the certificate speaks of. */
static pare_status asked(view *v, const pare_model *f, const pare_model *g, const pare_inputs *set,
                         double scale)
{
    pare_status st = PARE_OK;
    for (size_t i = 0; !st && i < v->claimed->nclaims; i++) {
        const pare_claim *const c = &v->claimed->claims[i];
        depth_ball_of b;
        pare_ub apriori;
        if (pare_ball_asked(&b.radius, &b.norm, c)) {
            st = theorems_near_inputs(&apriori, f, g, set, b.radius, v->exec, v->err);
            if (!st)
                st = depth_ball(v->cert, v->keep, f, g, set, b, scale, apriori, v->exec, v->err);
        } else if (c->kind == PARE_DIAMETER_OUTPUTS && c->p[0] > 0) {
            st = theorems_within(v->cert, v->keep, f, g, set, c->p[0], v->exec, v->err);
        }
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
    /* In units of one enclosure of both models; the headline is likely to be proven twice. */
    const bool draws = claimed->data.candidates == 1;
    double balls = 0;
    for (size_t i = 0; i < claimed->nclaims; i++)
        balls += claimed->claims[i].kind == PARE_BALL_OUTPUTS ||
                 claimed->claims[i].kind == PARE_DIAMETER_OUTPUTS;
    pare_steps steps = pare_steps_of(v->exec, 6 + 2 + 4 * balls + (draws ? 1 : 0));
    v->exec = pare_step(&steps, NULL, 6);
    pare_status st = pare_outputs_compare(&o, f, g, set, true, v->exec, v->err);
    v->exec = pare_step(&steps, "prove for all inputs", 2);
    if (!st) st = pare_cert_take_outputs(c, v->keep, &o, v->err);
    if (!st) st = kinds_of(v, f, g);
    if (!st) st = theorems_add(c, v->keep, f, g, set, v->exec, v->err);
    if (!st) st = observations(v, f, g, set, o.gap.f64_radius);
    v->exec = pare_step(&steps, balls > 0 ? "prove the ball" : NULL, 4 * balls);
    if (!st) st = asked(v, f, g, set, o.gap.scale);
    if (st) return st;
    v->exec = pare_step(&steps, "prove for new inputs", draws ? 1 : 0);
    return pare_add_new_inputs(c, v->keep, &claimed->data, f, g, set, v->exec, v->err);
}

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    view v = {again, a, claimed, exec, err};
    return fill(&v, claimed, f, g, set);
}

const pare_prover pare_depth_prover = {"depth", prove};
