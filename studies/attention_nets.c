/* attention_nets.c - networks and inputs of Rank collapse 2025. */
#include "attention_nets.h"
#include <math.h>
#include <string.h>

static double draw(san_draw how, double size, pare_rng *rng)
{
    if (how == SAN_SAME) return size;
    return size * (how == SAN_EVEN ? 2 * pare_rng_uniform(rng) - 1 : pare_rng_normal(rng));
}

static void fill(double *w, size_t n, san_draw how, double size, pare_rng *rng)
{
    for (size_t i = 0; i < n; i++) w[i] = draw(how, size, rng);
}

static pare_weight weight_of(const double *v, size_t rows, size_t cols)
{
    return (pare_weight){PARE_F64, rows, cols, v};
}

static pare_status new_layer(pare_attn *a, pare_arena *arena, const san_shape *s, double gain,
                             pare_rng *rng, pare_err *err)
{
    const size_t d = s->dim, h = s->heads, each = d * d;
    double *const q = pare_alloc(arena, h * each, sizeof *q);
    double *const k = pare_alloc(arena, h * each, sizeof *k);
    double *const v = pare_alloc(arena, h * each, sizeof *v);
    double *const o = pare_alloc(arena, h * each, sizeof *o);
    *a = (pare_attn){.kind = PARE_ATTN_EXACT, .din = d, .dout = d, .nheads = h};
    a->heads = pare_alloc(arena, h, sizeof *a->heads);
    if (!q || !k || !v || !o || !a->heads) return pare_no_memory(err);
    for (size_t i = 0; i < h; i++) {
        a->heads[i] = (pare_head){
            .dk = d, .dv = d, .q = i * d, .k = i * d, .v = i * d, .o = i * d, .scale = s->scale};
        fill(q + i * each, each, s->draw, gain * s->size, rng);
        fill(k + i * each, each, s->draw, gain * s->size, rng);
        fill(v + i * each, each, s->draw, gain * (s->values > 0 ? s->values : s->size), rng);
        for (size_t c = 0; c < d; c++) o[c * h * d + i * d + c] = 1;
    }
    a->wq = weight_of(q, h * d, d);
    a->wk = weight_of(k, h * d, d);
    a->wv = weight_of(v, h * d, d);
    a->wo = weight_of(o, d, h * d);
    a->skip.kind = s->no_skip ? PARE_SKIP_NONE : PARE_SKIP_IDENTITY;
    return PARE_OK;
}

pare_status san_new(pare_model **out, const san_shape *s, pare_rng *rng, pare_err *err)
{
    pare_status st = pare_model_new(out, err);
    if (st) return st;
    pare_model *const m = *out;
    m->embedding.width = s->dim;
    m->pattern.kind = s->causal ? PARE_CAUSAL : PARE_FULL;
    m->nblocks = s->layers;
    m->blocks = pare_alloc(m->arena, s->layers ? s->layers : 1, sizeof *m->blocks);
    if (!m->blocks) st = pare_no_memory(err);
    for (size_t l = 0; !st && l < s->layers; l++)
        st = new_layer(&m->blocks[l].attn, m->arena, s, s->gains ? s->gains[l] : 1, rng, err);
    if (!st) st = pare_model_check(m, err);
    if (!st) return PARE_OK;
    pare_model_free(m);
    *out = NULL;
    return st;
}

static bool scale_weight(pare_weight *w, pare_arena *a, double by)
{
    const size_t n = w->rows * w->cols;
    double *const v = pare_alloc(a, n ? n : 1, sizeof *v);
    for (size_t i = 0; v && i < n; i++) v[i] = by * pare_weight_at(w, i);
    if (v && pare_has(w)) *w = weight_of(v, w->rows, w->cols);
    return v != NULL;
}

/* The biases go with their matrices: logits are scaled by by^2 as a whole. */
pare_status san_scaled(pare_model **out, const pare_model *in, double by, double values,
                       pare_err *err)
{
    pare_status st = pare_model_clone(out, in, err);
    for (size_t b = 0; !st && b < in->nblocks; b++) {
        pare_attn *const a = &(*out)->blocks[b].attn;
        pare_arena *const to = (*out)->arena;
        if (!scale_weight(&a->wq, to, by) || !scale_weight(&a->bq, to, by) ||
            !scale_weight(&a->wk, to, by) || !scale_weight(&a->bk, to, by) ||
            !scale_weight(&a->wv, to, values) || !scale_weight(&a->bv, to, values))
            st = pare_no_memory(err);
    }
    if (!st) return PARE_OK;
    pare_model_free(*out);
    *out = NULL;
    return st;
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

pare_status san_inputs(pare_inputs *out, pare_arena *a, const san_tokens *t, pare_rng *rng,
                       pare_err *err)
{
    const size_t each = t->tokens * t->dim;
    out->n = t->n;
    out->in = pare_alloc(a, t->n ? t->n : 1, sizeof *out->in);
    double *x = pare_alloc(a, t->n * each + 1, sizeof *x);
    if (!out->in || !x) return pare_no_memory(err);
    for (size_t i = 0; i < t->n; i++, x += each) {
        for (size_t k = 0; k < each; k++)
            x[k] = draw(t->normal ? SAN_NORMAL : SAN_EVEN, t->spread, rng) +
                   (t->offset ? t->offset[k % t->dim] : 0);
        out->in[i] = (pare_input){.batch = 1, .tokens = t->tokens, .width = t->dim, .x = x};
    }
    return PARE_OK;
}

pare_status san_pairs(san_pair *out, pare_arena *a, san_tokens t, size_t fit, pare_rng *rng,
                      pare_err *err)
{
    const pare_status st = san_inputs(&out->heldout, a, &t, rng, err);
    t.n = fit;
    return st ? st : san_inputs(&out->fit, a, &t, rng, err);
}

pare_status san_answers(double **out, size_t *n, pare_arena *a, const pare_model *m,
                        const pare_inputs *in, pare_err *err)
{
    const size_t cols = pare_model_outputs(m);
    pare_status st = PARE_OK;
    *n = 0;
    for (size_t i = 0; i < in->n; i++) *n += pare_output_rows(m, &in->in[i]) * cols;
    double *at = *out = pare_alloc(a, *n + 1, sizeof **out);
    if (!at) return pare_no_memory(err);
    for (size_t i = 0; !st && i < in->n; i++) {
        st = pare_forward_f64(at, m, &in->in[i], NULL, NULL, err);
        at += pare_output_rows(m, &in->in[i]) * cols;
    }
    return st;
}

double san_largest(const double *a, const double *b, size_t n)
{
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = fabs(a[i] - (b ? b[i] : 0));
        if (!(off <= most)) most = off; /* a nan is not small */
    }
    return most;
}

double san_distance(const double *a, const double *b, size_t n)
{
    double s = 0;
    for (size_t i = 0; i < n; i++) {
        const double off = a[i] - (b ? b[i] : 0);
        s += off * off;
    }
    return sqrt(s);
}
