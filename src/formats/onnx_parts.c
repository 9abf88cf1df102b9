/* onnx_parts.c - dense maps, norms, activations, skips and feed-forward branches as ONNX nodes. */
#include "onnx_parts.h"
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#ifndef M_SQRT1_2
#define M_SQRT1_2 0.70710678118654752440
#endif

static const pare_int_groups *integers_of(const pare_model *m, const pare_weight *w)
{
    for (size_t i = 0; i < m->nints; i++)
        if (m->ints[i].of == w->data) return &m->ints[i];
    return NULL;
}

/* The numbers of a quantized matrix: with its groups as rows, DequantizeLinear has a scale for each
 * row, which every version that knows the operator reads. The products and sums are those of
 * pare. */
static value put_integers(writer *x, const char *name, const pare_int_groups *q, onnx_form form)
{
    onnx *const g = &x->g;
    char part[160];
    const size_t groups = (q->cols + q->group - 1) / q->group, n = q->rows * groups;
    for (const dequantized *d = x->dequantized; d; d = d->next)
        if (d->of == q && d->form == form) return d->v;
    snprintf(part, sizeof part, "%s.integers", name);
    const value integers = onnx_integers(g, part, q);
    snprintf(part, sizeof part, "%s.scale", name);
    const pare_weight scale = {PARE_F32, 1, n, q->scale}, offset = {PARE_F32, n, 1, q->offset};
    const value in[] = {integers, onnx_weight(g, part, &scale, ONNX_ROW)};
    value v = onnx_node(g, "DequantizeLinear", in, 2, ONE_NUMBER("axis", 0));
    snprintf(part, sizeof part, "%s.offset", name);
    if (q->offset) v = onnx_op2(g, "Add", v, onnx_weight(g, part, &offset, ONNX_MATRIX));
    const int64_t shape[] = {(int64_t)q->rows, (int64_t)(groups * q->group)};
    if (groups > 1) v = onnx_op2(g, "Reshape", v, onnx_numbers(g, 2, shape));
    if (groups * q->group > q->cols) v = put_slice(x, v, 1, 0, (int64_t)q->cols, 1);
    if (form == ONNX_TRANSPOSED) v = onnx_node(g, "Transpose", &v, 1, NUMBERS("perm", 2, 1, 0));
    dequantized *const d = g->st ? NULL : pare_alloc(g->arena, 1, sizeof *d);
    if (!d) {
        onnx_no_memory(g);
        return NULL;
    }
    *d = (dequantized){x->dequantized, q, form, v};
    x->dequantized = d;
    return v;
}

value put_weight(writer *x, const char *name, const pare_weight *w, onnx_form form)
{
    char full[128];
    snprintf(full, sizeof full, "%s%s%s", x->where, *x->where ? "." : "", name);
    const pare_int_groups *const q = form == ONNX_ROW ? NULL : integers_of(x->m, w);
    return q ? put_integers(x, full, q, form) : onnx_weight(&x->g, full, w, form);
}

value put_bias(writer *x, value v, const char *name, const pare_weight *b)
{
    return pare_has(b) ? onnx_op2(&x->g, "Add", v, put_weight(x, name, b, ONNX_ROW)) : v;
}

value put_dense(writer *x, value v, const char *name, const char *bias, const pare_weight *w,
                const pare_weight *b)
{
    const value y = onnx_op2(&x->g, "MatMul", v, put_weight(x, name, w, ONNX_TRANSPOSED));
    return b ? put_bias(x, y, bias, b) : y;
}

value put_slice(writer *x, value v, int64_t axis, int64_t from, int64_t to, int64_t step)
{
    onnx *const g = &x->g;
    const value in[] = {v, onnx_numbers(g, 1, &from), onnx_numbers(g, 1, &to),
                        onnx_numbers(g, 1, &axis), onnx_numbers(g, 1, &step)};
    return onnx_node(g, "Slice", in, 5, NO_ATTRIBUTE);
}

value put_spread(writer *x, value row, size_t d)
{
    onnx *const g = &x->g;
    const int64_t wide = (int64_t)d;
    const value parts[] = {x->rows, onnx_numbers(g, 1, &wide)};
    return onnx_op2(g, "Expand", row, onnx_node(g, "Concat", parts, 2, ONE_NUMBER("axis", 0)));
}

value put_waves(writer *x, const double *freq, const double *phase, size_t n)
{
    onnx *const g = &x->g;
    const int64_t last = 1;
    const attribute f64 = ONE_NUMBER("to", ONNX_DOUBLE), f32 = ONE_NUMBER("to", ONNX_FLOAT);
    const value column = onnx_op2(g, "Unsqueeze", x->positions, onnx_numbers(g, 1, &last));
    const value at = onnx_node(g, "Cast", &column, 1, f64);
    const value angle =
        onnx_op2(g, "Add", onnx_op2(g, "Mul", at, onnx_vector(g, freq, n, ONNX_DOUBLE)),
                 onnx_vector(g, phase, n, ONNX_DOUBLE));
    const value wave = onnx_op1(g, "Sin", angle);
    return onnx_node(g, "Cast", &wave, 1, f32);
}

/* ---- norms ----------------------------------------------------------------------------------- */

/* sqrt((|v|^2 + shift) / divisor + eps) of every row */
static value deviation(writer *x, value v, const pare_norm *n)
{
    onnx *const g = &x->g;
    const int64_t last = -1;
    value s = onnx_op2(g, "ReduceSum", onnx_op2(g, "Mul", v, v), onnx_numbers(g, 1, &last));
    if (n->shift != 0) s = onnx_op2(g, "Add", s, onnx_real(g, n->shift));
    s = onnx_op2(g, "Div", s, onnx_real(g, n->divisor));
    return onnx_op1(g, "Sqrt", onnx_op2(g, "Add", s, onnx_real(g, n->eps)));
}

value put_norm(writer *x, value v, const char *name, const pare_norm *n)
{
    onnx *const g = &x->g;
    char part[48];
    if (n->kind == PARE_NORM_NONE) return v;
    if (n->kind == PARE_NORM_BATCH) {
        /* With stored mean and variance the norm is a product and a sum. */
        const size_t d = n->mean.cols;
        double *const slope = pare_alloc(g->arena, d, sizeof *slope);
        double *const rest = pare_alloc(g->arena, d, sizeof *rest);
        if (!slope || !rest) {
            onnx_no_memory(g);
            return NULL;
        }
        for (size_t j = 0; j < d; j++) {
            slope[j] = 1 / sqrt(pare_weight_at(&n->var, j) + n->eps);
            if (pare_has(&n->gain)) slope[j] *= pare_weight_at(&n->gain, j);
            rest[j] = (pare_has(&n->bias) ? pare_weight_at(&n->bias, j) : 0) -
                      pare_weight_at(&n->mean, j) * slope[j];
        }
        return onnx_op2(g, "Add", onnx_op2(g, "Mul", v, onnx_vector(g, slope, d, ONNX_FLOAT)),
                        onnx_vector(g, rest, d, ONNX_FLOAT));
    }
    snprintf(part, sizeof part, "%s.offset", name);
    v = put_bias(x, v, part, &n->offset);
    if (n->kind != PARE_NORM_RMS)
        v = onnx_op2(g, "Sub", v, onnx_reduce(&x->g, "ReduceMean", v, -1));
    if (n->kind != PARE_NORM_MEAN) v = onnx_op2(g, "Div", v, deviation(x, v, n));
    snprintf(part, sizeof part, "%s.gain", name);
    if (pare_has(&n->gain)) v = onnx_op2(g, "Mul", v, put_weight(x, part, &n->gain, ONNX_ROW));
    snprintf(part, sizeof part, "%s.bias", name);
    return put_bias(x, v, part, &n->bias);
}

/* ---- activations ----------------------------------------------------------------------------- */

/* v (1 + f(v)) / 2 */
static value half_gate(onnx *g, value v, value f)
{
    const value gate = onnx_op2(g, "Add", f, onnx_real(g, 1));
    return onnx_op2(g, "Mul", onnx_op2(g, "Mul", v, onnx_real(g, 0.5)), gate);
}

/* sqrt(2/pi) (v + 0.044715 v^3) */
static value gelu_inner(onnx *g, value v)
{
    const value square = onnx_op2(g, "Mul", v, v);
    const value cubic = onnx_op2(g, "Mul", onnx_op2(g, "Mul", square, v), onnx_real(g, 0.044715));
    return onnx_op2(g, "Mul", onnx_op2(g, "Add", v, cubic), onnx_real(g, 0.79788456080286535588));
}

value put_act(writer *x, value v, pare_act act)
{
    onnx *const g = &x->g;
    switch (act) {
    case PARE_ACT_NONE:
        return v;
    case PARE_ACT_RELU:
        return onnx_op1(g, "Relu", v);
    case PARE_ACT_TANH:
        return onnx_op1(g, "Tanh", v);
    case PARE_ACT_SILU:
        return onnx_op2(g, "Mul", v, onnx_op1(g, "Sigmoid", v));
    case PARE_ACT_GELU:
        return half_gate(g, v, onnx_op1(g, "Erf", onnx_op2(g, "Mul", v, onnx_real(g, M_SQRT1_2))));
    case PARE_ACT_GELU_TANH:
        return half_gate(g, v, onnx_op1(g, "Tanh", gelu_inner(g, v)));
    }
    return v;
}

/* ---- sublayers ------------------------------------------------------------------------------- */

value put_finish(writer *x, value branch, value v, const pare_skip *s, const pare_norm *n)
{
    onnx *const g = &x->g;
    value skip = v;
    if (s->kind == PARE_SKIP_DIAGONAL)
        skip = onnx_op2(g, "Mul", v, put_weight(x, "skip", &s->w, ONNX_ROW));
    if (s->kind == PARE_SKIP_DENSE) skip = put_dense(x, v, "skip", NULL, &s->w, NULL);
    const value sum = s->kind == PARE_SKIP_NONE ? branch : onnx_op2(g, "Add", skip, branch);
    return put_norm(x, sum, "out_norm", n);
}

static value put_layer(writer *x, value v, const pare_ffn *f, size_t l)
{
    char w[40], b[40];
    snprintf(w, sizeof w, "%zu.weight", l);
    snprintf(b, sizeof b, "%zu.bias", l);
    return put_dense(x, v, w, b, &f->layers[l].w, &f->layers[l].b);
}

value put_ffn(writer *x, value z, const pare_ffn *f)
{
    if (f->kind == PARE_FFN_GATED) {
        const value gate = put_act(x, put_layer(x, z, f, 0), f->act);
        return put_layer(x, onnx_op2(&x->g, "Mul", gate, put_layer(x, z, f, 1)), f, 2);
    }
    for (size_t l = 0; l < f->nlayers; l++) {
        z = put_layer(x, z, f, l);
        if (l + 1 < f->nlayers) z = put_act(x, z, f->act);
    }
    return z;
}
