/* oracle_paper.c - the oracle of Yu 2025: a small softmax transformer and nothing else. Tokens,
 * weights and token functions go in, rows come out; L' layers of H' heads, no norm, a residual
 * stream only where the features say so:
 *
 *     x <- psi_l( concat_h softmax(mask((x Wq_h)(x Wk_h)^T)) (x Wv_h) )
 *
 * It is the reference for the strict constructions: every operation is rounded to its type, weights
 * are normalized before they multiply, and speed does not matter. */
#include "numbers.h"
#include <math.h>
#include "base/support.h"
#include "linalg/elementary.h"
#include <pare/length.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct paper_oracle {
    pare_oracle_caps caps;
    const pare_exec *exec;
} paper_oracle;

static void caps(void *self, pare_oracle_caps *out)
{
    *out = ((const paper_oracle *)self)->caps;
}

static uint32_t outputs_of(const paper_oracle *o, const pare_call_strict *c, uint32_t layer)
{
    uint32_t d = 0;
    for (uint32_t h = 0; h < o->caps.heads; h++) d += c->heads[layer * o->caps.heads + h].dv;
    return d;
}

static bool has_residual(const paper_oracle *o)
{
    return o->caps.features & PARE_ORC_RESIDUAL;
}

/* Width of the state behind a layer whose input has `d` columns; 0 when the call contradicts
 * itself.
 */
static uint32_t width_behind(const paper_oracle *o, const pare_call_strict *c, uint32_t layer,
                             uint32_t d)
{
    const uint32_t heads = outputs_of(o, c, layer), inputs = has_residual(o) ? d + heads : heads;
    for (uint32_t h = 0; h < o->caps.heads; h++) {
        const pare_head_w *const w = &c->heads[layer * o->caps.heads + h];
        if (w->din != d || !w->dk) return 0;
        if (!(o->caps.features & PARE_ORC_WIDE_HEAD) && w->dv != c->heads[layer * o->caps.heads].dv)
            return 0;
    }
    if (c->psi && c->psi[layer].fn) return c->psi[layer].din == inputs ? c->psi[layer].dout : 0;
    return has_residual(o) ? (d == heads ? d : 0) : heads;
}

static pare_status check_call(const paper_oracle *o, const pare_call *call, pare_err *err)
{
    if (call->kind != PARE_CALL_STRICT)
        return pare_fail(err, PARE_ERR_INPUT, "oracle call: the paper's oracle is strict");
    const pare_call_strict *const c = &call->u.s;
    if (c->n > o->caps.max_len)
        return pare_fail(err, PARE_ERR_INPUT, "oracle call: %u tokens, the oracle takes at most %u",
                         (unsigned)c->n, (unsigned)o->caps.max_len);
    if (!(o->caps.features & (c->causal ? PARE_ORC_CAUSAL : PARE_ORC_FULL)))
        return pare_fail(err, PARE_ERR_INPUT, "oracle call: the oracle has no %s softmax",
                         c->causal ? "causal" : "full");
    uint32_t d = c->phi ? c->phi->dout : c->din;
    for (uint32_t l = 0; l < o->caps.layers && d; l++) d = width_behind(o, c, l, d);
    if (d && d == c->dout && (!c->phi || c->phi->din == c->din)) return PARE_OK;
    return pare_fail(err, PARE_ERR_INPUT,
                     "oracle call: widths of tokens, heads and token functions do not fit");
}

/* ---- arithmetic of the type ------------------------------------------------------------------ */

static double round_to_type(pare_dtype t, double x)
{
    return t == PARE_F32 ? (double)(float)x : x;
}

/* out (n x cols) = x (n x d) w (d x cols) */
static void product(pare_dtype t, double *out, const double *x, const void *w, size_t n, size_t d,
                    size_t cols)
{
    memset(out, 0, n * cols * sizeof *out);
    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; e < d; e++) {
            const double a = x[i * d + e];
            for (size_t c = 0; c < cols && a != 0; c++) {
                const double b = num_at(t, w, e * cols + c);
                if (b != 0)
                    out[i * cols + c] =
                        round_to_type(t, out[i * cols + c] + round_to_type(t, a * b));
            }
        }
}

/* ---- one call -------------------------------------------------------------------------------- */

typedef struct job {
    const paper_oracle *o;
    const pare_call *calls;
    atomic_bool no_memory;
} job;

/* A token function over all rows: from and to arrays of f64, through the oracle's type. */
static bool apply_token_function(pare_dtype t, const pare_tokfn *f, double *out, const double *in,
                                 size_t n)
{
    const size_t b = pare_dtype_size(t);
    char *const from = calloc((size_t)f->din + 1, b), *const to = calloc((size_t)f->dout + 1, b);
    for (size_t i = 0; from && to && i < n; i++) {
        for (size_t c = 0; c < f->din; c++) num_put(t, from, c, in[i * f->din + c]);
        f->fn(f->ctx, (uint32_t)i, from, to);
        for (size_t c = 0; c < f->dout; c++) out[i * f->dout + c] = num_at(t, to, c);
    }
    const bool ok = from && to;
    free(from);
    free(to);
    return ok;
}

static double *alloc_numbers(size_t n)
{
    return calloc(n + 1, sizeof(double));
}

/* out = softmax(mask(q k^T)) v of one head; false: no memory. */
static bool run_head(const paper_oracle *o, double *out, size_t ld, const double *x, size_t d,
                     const pare_head_w *w, const pare_call_strict *c)
{
    const pare_dtype t = o->caps.dtype;
    const size_t n = c->n, dk = w->dk, dv = w->dv;
    double *const q = alloc_numbers(n * dk), *const k = alloc_numbers(n * dk),
                  *const v = alloc_numbers(n * dv);
    double *const p = alloc_numbers(n);
    const bool ok = q && k && v && p;
    if (ok) {
        product(t, q, x, w->wq, n, d, dk);
        product(t, k, x, w->wk, n, d, dk);
        product(t, v, x, w->wv, n, d, dv);
    }
    for (size_t i = 0; ok && i < n; i++) {
        const size_t sees = c->causal ? i + 1 : n;
        double row_max = -INFINITY, sum = 0;
        for (size_t j = 0; j < sees; j++) {
            double s = 0;
            for (size_t e = 0; e < dk; e++)
                s = round_to_type(t, s + round_to_type(t, q[i * dk + e] * k[j * dk + e]));
            p[j] = s;
            row_max = s > row_max || isnan(s) ? s : row_max;
        }
        for (size_t j = 0; j < sees; j++) {
            p[j] = round_to_type(t, pare_exp(round_to_type(t, p[j] - row_max)));
            sum = round_to_type(t, sum + p[j]);
        }
        for (size_t e = 0; e < dv; e++) out[i * ld + e] = 0;
        for (size_t j = 0; j < sees; j++) {
            const double weight = round_to_type(t, p[j] / sum);
            for (size_t e = 0; e < dv; e++)
                out[i * ld + e] =
                    round_to_type(t, out[i * ld + e] + round_to_type(t, weight * v[j * dv + e]));
        }
    }
    free(q), free(k), free(v), free(p);
    return ok;
}

/* The state behind a layer, a new array; NULL when memory is out. */
static double *run_layer(const paper_oracle *o, const double *x, size_t d,
                         const pare_call_strict *c, uint32_t layer)
{
    const size_t lead = has_residual(o) ? d : 0, heads = outputs_of(o, c, layer), n = c->n;
    const bool has_psi = c->psi && c->psi[layer].fn;
    const size_t wide = has_psi ? c->psi[layer].dout : heads;
    double *const all = alloc_numbers(n * (lead + heads)), *next = alloc_numbers(n * wide);
    bool ok = all && next;
    size_t at = lead;
    for (size_t i = 0; ok && i < n && lead; i++)
        memcpy(all + i * (lead + heads), x + i * d, d * sizeof *all);
    for (uint32_t h = 0; ok && h < o->caps.heads; h++) {
        const pare_head_w *const w = &c->heads[layer * o->caps.heads + h];
        ok = run_head(o, all + at, lead + heads, x, d, w, c);
        at += w->dv;
    }
    if (ok && has_psi)
        ok = apply_token_function(o->caps.dtype, &c->psi[layer], next, all, n);
    else if (ok)
        for (size_t i = 0; i < n; i++)
            for (size_t e = 0; e < wide; e++)
                next[i * wide + e] =
                    round_to_type(o->caps.dtype, all[i * (lead + heads) + lead + e] +
                                                     (lead ? all[i * (lead + heads) + e] : 0));
    free(all);
    if (ok) return next;
    free(next);
    return NULL;
}

static void run_call(void *ctx, size_t i)
{
    job *const j = ctx;
    const paper_oracle *const o = j->o;
    const pare_call_strict *const c = &j->calls[i].u.s;
    const pare_dtype type = o->caps.dtype;
    size_t d = c->din;
    double *x = alloc_numbers((size_t)c->n * d);
    for (size_t e = 0; x && e < (size_t)c->n * d; e++) x[e] = num_at(type, c->x, e);
    if (x && c->phi) {
        double *y = alloc_numbers((size_t)c->n * c->phi->dout);
        if (y && !apply_token_function(type, c->phi, y, x, c->n)) {
            free(y);
            y = NULL;
        }
        free(x);
        x = y;
        d = c->phi->dout;
    }
    for (uint32_t l = 0; x && l < o->caps.layers; l++) {
        double *const y = run_layer(o, x, d, c, l);
        d = width_behind(o, c, l, (uint32_t)d);
        free(x);
        x = y;
    }
    for (size_t e = 0; x && e < (size_t)c->n * d; e++) num_put(type, c->y, e, x[e]);
    if (!x) atomic_store(&j->no_memory, true);
    free(x);
}

static pare_status evaluate(void *self, const pare_call *calls, size_t n, pare_err *err)
{
    const paper_oracle *const o = self;
    for (size_t i = 0; i < n; i++) {
        const pare_status st = check_call(o, &calls[i], err);
        if (st) return st;
    }
    job j = {.o = o, .calls = calls};
    const pare_status st = pare_parallel_until(o->exec, n, run_call, &j, err);
    return atomic_load(&j.no_memory) ? pare_no_memory(err) : st;
}

static pare_status barrier(void *self, pare_err *err)
{
    (void)self, (void)err; /* evaluate has waited */
    return PARE_OK;
}

pare_status pare_oracle_paper(pare_oracle *out, const pare_oracle_caps *like, const pare_exec *exec,
                              pare_err *err)
{
    static const pare_oracle_ops ops = {caps, evaluate, barrier, free};
    const pare_dtype dtype = like->dtype;
    PARE_ASSERT((dtype == PARE_F32 || dtype == PARE_F64) && like->max_len);
    paper_oracle *const o = malloc(sizeof *o);
    if (!o) return pare_no_memory(err);
    const bool f32 = dtype == PARE_F32;
    *o = (paper_oracle){
        .caps = {.size = sizeof o->caps,
                 .features = (like->features ? like->features : PARE_ORC_FULL | PARE_ORC_CAUSAL) |
                             PARE_ORC_STRICT,
                 .max_len = like->max_len,
                 .layers = like->layers ? like->layers : 1,
                 .heads = like->heads ? like->heads : 1,
                 .dtype = dtype,
                 .exp_flush = f32 ? 104 : 746,
                 .exp_err = f32 ? 2 : 2,
                 .w_min = f32 ? 0x1p-80 : 0x1p-900},
        .exec = exec};
    out->ops = &ops;
    out->self = o;
    return PARE_OK;
}
