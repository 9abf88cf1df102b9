/* bound_ffn.c - dense layers, skips and feed-forward parts in both models (docs/theory/ticket.md
 * "Blocks and models (Theorems 6, 11, 14)").
 *
 * A layer:  |W x + b - W~ x~ - b~| <= |W| d + |E| |x~| + |b - b~|, or with the models changed over.
 * Activations act entry by entry with slopes at most L (proofs: src/cert/enclose_ffn.c: relu and
 * tanh 1, gelu 1.12891, its tanh form 1.129, silu 1.09984), and |act(x)| <= |x|.
 * Gated: |a u - a~ u~| <= |a - a~| |u|_max + |a~|_max |u - u~|, |u|_max from the longest row of the
 * map: the largest entry of a row is not its length. */
#include "linalg/bounds.h"
#include "model/model_facts.h"
#include "bounds.h"
#include <math.h>

/* ---- sizes ----------------------------------------------------------------------------------- */

affine affine_sizes(pare_work *p, const rmat *w, const rmat *b)
{
    const rmat both = rmat_beside(p, w, b);
    const affine m = {rmat_two(p, w), rmat_fro(b), rmat_two(p, &both)};
    return m;
}

dense_sizes dense_sizes_of(pare_work *p, const pare_dense *f, const pare_dense *g, char *why)
{
    dense_sizes s = {0};
    if (f->w.rows != g->w.rows || f->w.cols != g->w.cols) {
        bounds_refuse(why, "a layer of the ticket is %zu x %zu, the target's is %zu x %zu",
                      g->w.rows, g->w.cols, f->w.rows, f->w.cols);
        return s;
    }
    const size_t o = f->w.rows, in = f->w.cols;
    const pare_mark mark = pare_arena_mark(p->arena);
    const rmat w = rmat_weight(p, &f->w, 0, 0, o, in), b = rmat_column(p, &f->b, 0, o);
    const rmat wt = rmat_weight(p, &g->w, 0, 0, o, in), bt = rmat_column(p, &g->b, 0, o);
    const rmat we = rmat_diff(p, &w, &wt), be = rmat_diff(p, &b, &bt);
    s.f = affine_sizes(p, &w, &b);
    s.g = affine_sizes(p, &wt, &bt);
    s.e = affine_sizes(p, &we, &be);
    s.row_f = rmat_max_row2(&w);
    s.row_g = rmat_max_row2(&wt);
    s.max_f = rmat_max(&b);
    s.max_g = rmat_max(&bt);
    s.w_max = rmat_max(&w);
    s.e_max = rmat_max(&we);
    pare_arena_reset(p->arena, mark);
    return s;
}

skip_sizes skip_sizes_of(pare_work *p, const pare_skip *f, const pare_skip *g, char *why)
{
    const pare_ub one = pare_ub_exact(1);
    skip_sizes s = {.there = f->kind != PARE_SKIP_NONE, .f = one, .g = one};
    if (f->kind != g->kind) bounds_refuse(why, "a skip of the ticket is not of the target's kind");
    if (!s.there || f->kind == PARE_SKIP_IDENTITY || *why) return s;
    const pare_mark mark = pare_arena_mark(p->arena);
    const rmat w = rmat_weight(p, &f->w, 0, 0, f->w.rows, f->w.cols);
    const rmat wt = rmat_weight(p, &g->w, 0, 0, g->w.rows, g->w.cols);
    const rmat we = rmat_diff(p, &w, &wt);
    const bool diagonal = f->kind == PARE_SKIP_DIAGONAL;
    s.f = diagonal ? rmat_max(&w) : rmat_two(p, &w);
    s.g = diagonal ? rmat_max(&wt) : rmat_two(p, &wt);
    s.e = diagonal ? rmat_max(&we) : rmat_two(p, &we);
    pare_arena_reset(p->arena, mark);
    return s;
}

/* ---- moves ----------------------------------------------------------------------------------- */

span dense_move(const dense_sizes *m, span s)
{
    const span y = {affine_at(&m->f, s.f), affine_at(&m->g, s.g),
                    pare_ub_min(pare_ub_fma(m->f.w, s.d, affine_at(&m->e, s.g)),
                                pare_ub_fma(m->g.w, s.d, affine_at(&m->e, s.f))),
                    0};
    return span_tightened(y);
}

span skip_move(const skip_sizes *k, span s, span branch)
{
    if (!k->there) return branch;
    const pare_ub d = pare_ub_min(pare_ub_fma(k->f, s.d, pare_ub_mul(k->e, s.g)),
                                  pare_ub_fma(k->g, s.d, pare_ub_mul(k->e, s.f)));
    const span y = {pare_ub_fma(k->f, s.f, branch.f), pare_ub_fma(k->g, s.g, branch.g),
                    pare_ub_add(d, branch.d), 0};
    return span_tightened(y);
}

static span act_move(double slope, span s)
{
    s.d = pare_ub_mul(pare_ub_exact(slope), s.d);
    s.least = 0;
    return span_tightened(s);
}

/* Largest entry of w x + b. */
static pare_ub largest(pare_ub row, pare_ub most, pare_ub x)
{
    return pare_ub_fma(row, x, most);
}

static span gated_move(const ffn_sizes *m, span s)
{
    const dense_sizes *const gate = &m->layers[0], *const up = &m->layers[1];
    const span a = act_move(m->slope, dense_move(gate, s)), u = dense_move(up, s);
    const pare_ub a_f = pare_ub_min(a.f, largest(gate->row_f, gate->max_f, s.f)),
                  a_g = pare_ub_min(a.g, largest(gate->row_g, gate->max_g, s.g)),
                  u_f = pare_ub_min(u.f, largest(up->row_f, up->max_f, s.f)),
                  u_g = pare_ub_min(u.g, largest(up->row_g, up->max_g, s.g));
    const span y = {pare_ub_min(pare_ub_mul(a.f, u_f), pare_ub_mul(a_f, u.f)),
                    pare_ub_min(pare_ub_mul(a.g, u_g), pare_ub_mul(a_g, u.g)),
                    pare_ub_min(pare_ub_fma(a.d, u_f, pare_ub_mul(a_g, u.d)),
                                pare_ub_fma(a.d, u_g, pare_ub_mul(a_f, u.d))),
                    0};
    return dense_move(&m->layers[2], span_tightened(y));
}

span ffn_move_from(const ffn_sizes *m, size_t l, span s)
{
    for (; l < m->nlayers; l++) {
        s = dense_move(&m->layers[l], s);
        if (l + 1 < m->nlayers) s = act_move(m->slope, s);
    }
    return s;
}

span ffn_move(const ffn_sizes *m, span s)
{
    return m->kind == PARE_FFN_GATED ? gated_move(m, s) : ffn_move_from(m, 0, s);
}

/* ---- a feed-forward part --------------------------------------------------------------------- */

/* Layers of g for each of f; one layer is linear whatever its activation is called. */
static bool is_relu_ticket(const pare_ffn *f, const pare_ffn *g)
{
    return f->kind == PARE_FFN_MLP && g->kind == PARE_FFN_MLP && f->nlayers > 0 &&
           g->act == PARE_ACT_RELU && (f->nlayers == 1 || f->act == PARE_ACT_RELU);
}

static ffn_form form_of(const pare_ffn *f, const pare_ffn *g, char *why)
{
    if (f->kind == PARE_FFN_NONE && g->kind == PARE_FFN_NONE) return FFN_EQUAL;
    if (is_relu_ticket(f, g) && g->nlayers == f->nlayers + 1) return FFN_SPLIT;
    if (is_relu_ticket(f, g) && g->nlayers == 2 * f->nlayers) return FFN_PAIRS;
    if (f->kind != g->kind || f->nlayers != g->nlayers || f->act != g->act)
        bounds_refuse(why, "a feed-forward part of the ticket is not of the target's kind");
    return FFN_EQUAL;
}

static dense_sizes layer_sizes(pare_work *p, const pare_ffn *f, const pare_ffn *g, ffn_form form,
                               size_t l, char *why)
{
    const pare_dense *const x = &f->layers[l], *const y = g->layers;
    if (form == FFN_PAIRS) return relu_pair_sizes(p, x, &y[2 * l], &y[2 * l + 1], l > 0, why);
    if (form == FFN_SPLIT && l == 0) return relu_pair_sizes(p, x, &y[0], &y[1], false, why);
    return dense_sizes_of(p, x, &y[form == FFN_SPLIT ? l + 1 : l], why);
}

ffn_sizes ffn_sizes_of(pare_work *p, const pare_ffn *f, const pare_ffn *g, char *why)
{
    ffn_sizes s = {.kind = f->kind, .nlayers = f->nlayers, .slope = pare_act_lipschitz(f->act)};
    s.form = form_of(f, g, why);
    if (f->kind == PARE_FFN_NONE || *why || p->st) return s;
    s.layers = pare_alloc(p->arena, f->nlayers, sizeof *s.layers);
    if (!s.layers) p->st = pare_no_memory(p->err);
    for (size_t l = 0; !p->st && !*why && l < f->nlayers; l++)
        s.layers[l] = layer_sizes(p, f, g, s.form, l, why);
    s.in = norm_sizes_of(&f->in_norm, &g->in_norm, f->din, why);
    s.out = norm_sizes_of(&f->out_norm, &g->out_norm, f->dout, why);
    s.skip = skip_sizes_of(p, &f->skip, &g->skip, why);
    return s;
}
