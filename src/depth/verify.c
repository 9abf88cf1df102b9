/* verify.c - proves a depth cut from the two files and the inputs alone. How layers were chosen
 * and fitted does not matter: both models are enclosed on every input, and their distance is
 * proven. Which layers were replaced, and the share of the attention that is lost, are
 * observations: they explain the result, and no bound depends on them. */
#include "depth_ball.h"
#include "replace_layers.h"
#include "certify_theorems.h"
#include "cert/ball.h"
#include "cert/conformal.h"
#include "cert/outputs.h"
#include "cert/prove.h"
#include <pare/depth.h>
#include <math.h>
#include <string.h>

static void add_replaced_layers(cert_builder *v, const pare_model *f, const pare_model *g)
{
    if (f->nblocks != g->nblocks) {
        add_statement(v, (pare_claim){.kind = PARE_LAYERS_MERGED,
                                      .p = {(double)f->nblocks, (double)g->nblocks},
                                      .holds = PARE_TRUE});
        return;
    }
    for (size_t b = 0; !v->work.st && b < f->nblocks; b++) {
        const pare_attn_kind x = f->blocks[b].attn.kind, y = g->blocks[b].attn.kind;
        if (x == y) continue;
        const char *const by =
            pare_sprintf(v->work.arena, "%s (it was %s)", pare_attn_name(y), pare_attn_name(x));
        if (!by) v->work.st = pare_no_memory(v->work.err);
        add_statement(
            v, (pare_claim){
                   .kind = PARE_LAYER_REPLACED, .p = {(double)b}, .text = by, .holds = PARE_TRUE});
    }
}

/* ---- observations ---------------------------------------------------------------------------- */

/* Squares over all outputs: of f, of f - g, and of f - f without attention; the largest sum of
 * those of f - g over a row. */
typedef struct squares {
    double size, apart, without, row;
} squares;

/* f without any attention. False where a layer has no skip. */
static bool remove_attention(pare_model *m, pare_block *blocks, const pare_model *f)
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

static void add_squares(squares *s, pare_work *w, const pare_model *const m[3],
                        const pare_input *in)
{
    double *y[3] = {NULL, NULL, NULL};
    const size_t width = pare_model_outputs(m[0]), n = pare_output_rows(m[0], in) * width;
    for (size_t k = 0; k < 3 && m[k]; k++) {
        const size_t count = pare_output_rows(m[k], in) * pare_model_outputs(m[k]);
        y[k] = pare_work_alloc(w, count, sizeof **y);
        if (!w->st) w->st = pare_forward_f64(y[k], m[k], in, NULL, w->exec, w->err);
    }
    double row = 0;
    for (size_t i = 0; !w->st && i < n; i++) {
        const double g = y[0][i] - y[1][i], none = m[2] ? y[0][i] - y[2][i] : 0;
        s->size += y[0][i] * y[0][i];
        s->apart += g * g;
        s->without += none * none;
        row = i % width ? row + g * g : g * g;
        s->row = fmax(s->row, row);
    }
}

static double ratio(double part, double of)
{
    return of > 0 ? sqrt(part / of) : part > 0 ? INFINITY : 0;
}

/* `radius`: how far an entry of f - g may be off in f64. Over n entries sums of squares are off by
 * sqrt(n) times as much, those of one row by the root of its length. */
static void add_observations(cert_builder *v, const pare_model *f, const pare_model *g,
                             const pare_inputs *set, double radius)
{
    squares s = {0};
    double entries = 0;
    pare_model none;
    pare_work w = scratch_open(&v->work);
    pare_block *const blocks = pare_work_alloc(&w, f->nblocks, sizeof *blocks);
    const bool stripped = blocks && remove_attention(&none, blocks, f);
    const pare_model *const m[3] = {f, g, stripped ? &none : NULL};
    for (size_t i = 0; !w.st && i < set->n; i++) {
        const pare_mark mark = pare_arena_mark(w.arena);
        entries += (double)(pare_output_rows(f, &set->in[i]) * pare_model_outputs(f));
        add_squares(&s, &w, m, &set->in[i]);
        pare_arena_reset(w.arena, mark);
    }
    scratch_close(&w, &v->work);
    const double all = radius * sqrt(entries), row = radius * sqrt((double)pare_model_outputs(f));
    add_statement(v, (pare_claim){.kind = PARE_RELATIVE_ERROR,
                                  .value = ratio(s.apart, s.size),
                                  .slack = s.size > 0 ? 2 * all / sqrt(s.size) : 0});
    add_statement(v, (pare_claim){.kind = PARE_ROW_ERROR, .value = sqrt(s.row), .slack = 2 * row});
    if (stripped && s.without > all * all)
        add_statement(v, (pare_claim){.kind = PARE_LOST_FRACTION,
                                      .value = ratio(s.apart, s.without),
                                      .slack = 2 * all / sqrt(s.without)});
}

/* ---- all of it ------------------------------------------------------------------------------- */

static pare_status prove(pare_cert *again, pare_arena *a, const pare_cert *claimed,
                         const pare_model *f, const pare_model *g, const pare_inputs *set,
                         const pare_exec *exec, pare_err *err)
{
    cert_builder v = {.work = {.arena = a, .err = err}, .cert = again};
    pare_work *const w = &v.work;
    pare_output_bound o;
    again->norm = PARE_NORM_HEADLINE;
    again->domain = pare_domain_text(a, &claimed->data);
    if (!again->domain) return pare_no_memory(err);
    /* In units of one enclosure of both models; the headline is likely to be proven twice. */
    double balls = 0;
    for (size_t i = 0; i < claimed->nclaims; i++)
        balls += claimed->claims[i].kind == PARE_BALL_OUTPUTS ||
                 claimed->claims[i].kind == PARE_DIAMETER_OUTPUTS;
    pare_steps steps = pare_steps_of(exec, 6 + 2 + 4 * balls);
    w->exec = pare_step(&steps, NULL, 6);
    w->st = pare_outputs_compare(&o, a, f, g, set, true, w->exec, err);
    w->exec = pare_step(&steps, "prove for all inputs", 2);
    if (!w->st) w->st = pare_cert_take_outputs(again, a, &o, err);
    add_replaced_layers(&v, f, g);
    theorems_add(&v, f, g, set);
    if (!w->st) add_observations(&v, f, g, set, o.gap.f64_radius);
    w->exec = pare_step(&steps, balls > 0 ? "prove the ball" : NULL, 4 * balls);
    for (size_t i = 0; !w->st && i < claimed->nclaims; i++) { /* balls and diameters it speaks of */
        const pare_claim *const c = &claimed->claims[i];
        pare_neighborhood b;
        if (pare_ball_asked(&b.radius, &b.norm, c)) {
            const pare_ub apriori = theorems_near_inputs(w, f, g, set, b.radius);
            depth_ball(&v, f, g, set, b, o.gap.scale, apriori);
        } else if (c->kind == PARE_DIAMETER_OUTPUTS && c->p[0] > 0) {
            theorems_within(&v, f, g, set, c->p[0]);
        }
    }
    if (w->st) return w->st;
    return pare_add_new_inputs(again, a, &claimed->data, set, o.each, err);
}

const pare_prover pare_depth_prover = {"depth", prove};
