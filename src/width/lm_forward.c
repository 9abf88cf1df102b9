/* lm_forward.c - the calibration rows, one point of the stream after the other (lm.h). Steps are
 * run by the f64 reference on models of one sublayer, so that a cut block and the model's own run
 * by the same code. */
#include "model/inputs.h"
#include "linalg/matrix.h"
#include "model/model_facts.h"
#include "lm.h"
#include "folded_net.h"
#include <math.h>
#include <string.h>

enum { CHUNK = 1024 }; /* rows that go through a feed-forward part at a time */

/* ---- running one sublayer ------------------------------------------------------------------- */

/* A model of one block, which reads rows of that width. */
static pare_model one_block_model(const lm *m, pare_block *b, size_t width)
{
    pare_model p = {.pattern = m->m->pattern, .nblocks = 1, .blocks = b};
    p.embedding.width = width;
    if (pare_model_is_rotary(m->m)) p.embedding.pos = m->m->embedding.pos;
    if (b->attn.kind == PARE_ATTN_NONE) {
        p.pattern = (pare_pattern){.kind = PARE_FULL};
        p.embedding.pos = (pare_positions){0};
    }
    return p;
}

static void run_model(pare_work *w, const pare_model *p, double *out, const double *x, size_t batch,
                      size_t tokens, const pare_graph *graph)
{
    const pare_input in = {
        .batch = batch, .tokens = tokens, .width = p->embedding.width, .x = x, .graph = graph};
    if (!w->st) w->st = pare_forward_f64(out, p, &in, NULL, w->exec, w->err);
}

/* The rows that a step has written to `spare` become x. */
static void swap_rows(lm_rows *r, size_t width)
{
    double *const old = r->x.v;
    r->x = pare_mat_of(r->spare, r->x.rows, width);
    r->spare = old;
}

void lm_attention_step(pare_work *w, const lm *m, const lm_attn *a, lm_rows *r)
{
    if (w->st || !a->present) return;
    const pare_mark mark = pare_arena_mark(w->arena);
    const lm_block one = {.attn = *a, .ffn = {.present = false}};
    weight_writer s = {{w->arena, NULL, w->err, PARE_OK}, PARE_F64};
    pare_block b = lm_stored_block(&s, &one);
    const pare_model p = one_block_model(m, &b, a->din);
    w->st = s.w.st;
    for (size_t i = 0, n, at = 0; !w->st && i < r->n; i += n) {
        for (n = 1; i + n < r->n && !r->graph[i] && r->tokens[i + n] == r->tokens[i];) n++;
        run_model(w, &p, r->spare + at * a->dout, r->x.v + at * a->din, n, r->tokens[i],
                  r->graph[i]);
        at += n * r->tokens[i];
    }
    pare_arena_reset(w->arena, mark);
    if (!w->st) swap_rows(r, a->dout);
}

void lm_ffn_step(pare_work *w, const lm *m, const lm_ffn *f, lm_rows *r)
{
    if (w->st || !f->present) return;
    const pare_mark mark = pare_arena_mark(w->arena);
    const lm_block one = {.attn = {.present = false}, .ffn = *f};
    weight_writer s = {{w->arena, NULL, w->err, PARE_OK}, PARE_F64};
    pare_block b = lm_stored_block(&s, &one);
    const pare_model p = one_block_model(m, &b, f->din);
    w->st = s.w.st;
    for (size_t i = 0; !w->st && i < r->x.rows; i += CHUNK) {
        const size_t n = r->x.rows - i < CHUNK ? r->x.rows - i : CHUNK;
        run_model(w, &p, r->spare + i * f->dout, r->x.v + i * f->din, 1, n, NULL);
    }
    pare_arena_reset(w->arena, mark);
    if (!w->st) swap_rows(r, f->dout);
}

/* ---- norms ---------------------------------------------------------------------------------- */

pare_mat lm_normed(pare_work *w, const lm_norm *n, const pare_mat *x)
{
    pare_mat y = mat_copy(w, x);
    if (w->st || !n->present) return y;
    if (n->raw) {
        const pare_model p = {.embedding.width = x->cols, .head.norm = *n->raw};
        run_model(w, &p, y.v, x->v, 1, x->rows, NULL);
    }
    for (size_t i = 0; !n->raw && i < y.rows; i++) {
        double *const row = pare_row_mut(&y, i), squares = 0;
        for (size_t j = 0; n->offset && j < y.cols; j++) row[j] += n->offset[j];
        for (size_t j = 0; j < y.cols; j++) squares += row[j] * row[j];
        const double by = sqrt((squares + n->shift) / n->divisor + n->eps);
        for (size_t j = 0; j < y.cols; j++) row[j] = by > 0 ? row[j] / by : 0; /* as in forward */
    }
    return y;
}

/* ---- the streams ---------------------------------------------------------------------------- */

void lm_norm_rows(pare_work *w, const lm_norm *n, lm_rows *r)
{
    if (w->st || !n->present) return;
    const pare_mark mark = pare_arena_mark(w->arena);
    const pare_mat y = lm_normed(w, n, &r->x);
    if (!w->st) memcpy(r->x.v, y.v, y.rows * y.cols * sizeof *y.v);
    pare_arena_reset(w->arena, mark);
}

/* ---- the embedding -------------------------------------------------------------------------- */

lm_rows lm_embedding_rows(pare_work *w, const lm *m, const pare_inputs *data, size_t max_tokens)
{
    lm_rows r = {0};
    size_t widest = 0, rows = 0;
    for (size_t p = 0; p < m->nplaces; p++)
        if (m->width[p] > widest) widest = m->width[p];
    for (size_t i = 0; i < data->n; i++) r.n += data->in[i].batch;
    r.tokens = pare_work_alloc(w, r.n, sizeof *r.tokens);
    r.graph = pare_work_alloc(w, r.n, sizeof *r.graph);
    for (size_t i = 0, k = 0; !w->st && i < data->n; i++)
        for (size_t b = 0; b < data->in[i].batch; b++, k++) {
            const pare_input *const in = &data->in[i];
            const bool cut = max_tokens && !in->graph && in->tokens > max_tokens;
            r.graph[k] = in->graph;
            r.tokens[k] = cut ? max_tokens : in->tokens;
            rows += r.tokens[k];
        }
    r.x = mat_zeros(w, rows, widest);
    r.spare = mat_zeros(w, rows, widest).v;
    if (w->st) return r;
    r.x.cols = r.x.ld = m->width[0];
    /* The model's own embedding without its norm. */
    pare_model p = {
        .embedding = m->m->embedding, .pattern = {.kind = PARE_FULL}, .context = m->m->context};
    p.embedding.norm = (pare_norm){0};
    double *to = r.x.v;
    for (size_t i = 0, k = 0; !w->st && i < data->n; i++)
        for (size_t b = 0; !w->st && b < data->in[i].batch; b++, k++) {
            pare_input in = pare_input_sequence(&data->in[i], b);
            in.graph = NULL;
            in.tokens = r.tokens[k];
            w->st = pare_forward_f64(to, &p, &in, NULL, w->exec, w->err);
            to += in.tokens * r.x.cols;
        }
    if (w->st) return r;
    const bool center = m->stream && (m->centered || m->m->embedding.norm.kind == PARE_NORM_LAYER);
    for (size_t i = 0; center && i < r.x.rows; i++)
        lm_subtract_mean(pare_row_mut(&r.x, i), r.x.cols);
    lm_norm_rows(w, &m->embedding_norm, &r);
    return r;
}

/* ---- inside a sublayer ----------- ----------------------------------------------------------- */

pare_mat lm_pooled(pare_work *w, const lm *m, const lm_attn *a, const lm_rows *r)
{
    size_t dv = 0, at = 0;
    lm_attn inner = *a;
    for (size_t i = 0; i < a->nheads; i++) dv += a->heads[i].wo.cols;
    pare_mat y = mat_zeros(w, r->x.rows, dv);
    inner.heads = pare_work_alloc(w, a->nheads, sizeof *inner.heads);
    for (size_t i = 0; !w->st && i < a->nheads; i++) {
        inner.heads[i] = a->heads[i];
        inner.heads[i].wo = mat_zeros(w, dv, a->heads[i].wo.cols);
        for (size_t j = 0; !w->st && j < a->heads[i].wo.cols; j++)
            pare_row_mut(&inner.heads[i].wo, at++)[j] = 1;
    }
    inner.dout = dv;
    inner.bo = vec_zeros(w, dv);
    inner.out = (lm_norm){0};
    inner.skip = (lm_skip){.kind = PARE_SKIP_NONE};
    lm_rows copy = *r;
    copy.spare = y.v;
    lm_attention_step(w, m, &inner, &copy);
    return y;
}

pare_mat lm_hidden(pare_work *w, const lm_ffn *f, const pare_mat *u)
{
    pare_mat p = affine_rows(w, u, &f->w1, f->b1);
    const pare_mat up = f->gated ? affine_rows(w, u, &f->w3, f->b3) : (pare_mat){0};
    for (size_t i = 0; !w->st && i < p.rows; i++)
        for (size_t j = 0; j < p.cols; j++) {
            double *const v = &pare_row_mut(&p, i)[j];
            *v = pare_act_f64(f->act, *v);
            if (f->gated) *v *= pare_row(&up, i)[j];
        }
    return p;
}

void lm_gram(pare_work *w, pare_mat *g, const pare_mat *x)
{
    mat_add_product(w, g, 1, x, x);
}
