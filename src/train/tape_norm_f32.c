/* tape_norm_f32.c - norms in f32 (equations: tape_norm.c). Sums over a row have 16 partial sums, what
 * is done once per row is f64; sums over the rows of a span are f32 (f64 where a mean comes of them),
 * sums over spans f64. */
#include "simd_lanes.h"
#include <math.h>

/* Moments of a row in the backward pass. */
typedef struct row_moments {
    float mean, inv, s1, s2; /* s1: mean of dy gain (0: not centred), s2: of dy gain u */
} row_moments;

/* ---- row by row ------------------------------------------------------------------------------ */

LANES_INLINE float row_mean(const float *x, const float *offset, size_t d)
{
    lanes part = {0}, v, o;
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_count(j, d);
        lanes_load(&v, x, j, n, 0);
        lanes_load(&o, offset, j, n, 0);
        part += v + o;
    }
    return lanes_total(&part) / (float)d;
}

LANES_INLINE float row_squares(const float *x, const float *offset, float mean, size_t d)
{
    lanes part = {0}, v, o;
    float rest = 0;
    size_t j = 0;
    for (; j + LANES <= d; j += LANES) {
        lanes_load(&v, x, j, LANES, 0);
        lanes_load(&o, offset, j, LANES, 0);
        v = v + o - mean;
        part += v * v;
    }
    for (; j < d; j++) {
        const float c = x[j] + (offset ? offset[j] : 0) - mean;
        rest += c * c;
    }
    return lanes_total(&part) + rest;
}

LANES_INLINE void scale_row(float *y, const float *x, float mean, float inv, const float *offset,
                            const float *gain, const float *bias, size_t d)
{
    lanes v, o, g, b;
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_count(j, d);
        lanes_load(&v, x, j, n, 0);
        lanes_load(&o, offset, j, n, 0);
        lanes_load(&g, gain, j, n, 1);
        lanes_load(&b, bias, j, n, 0);
        v = (v + o - mean) * inv * g + b;
        lanes_store(y, &v, j, n);
    }
}

LANES_INLINE void norm_rows(const norm_job *w, const span *s)
{
    const pare_norm *const n = w->n;
    const float *const offset = n->offset.data, *const gain = n->gain.data;
    const bool centres = n->kind != PARE_NORM_RMS, divides = n->kind != PARE_NORM_MEAN;
    const size_t d = w->x->d;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0);
        const float mean = centres ? row_mean(x, offset, d) : 0;
        double deviation = 1;
        if (divides) {
            const double squares = (double)row_squares(x, offset, mean, d);
            deviation = sqrt((squares + n->shift) / n->divisor + n->eps);
        }
        w->k->mean[i] = (double)mean;
        w->k->inv[i] = deviation > 0 ? 1 / deviation : 0;
        scale_row(rows_at(w->y, i, 0), x, mean, (float)w->k->inv[i], offset, gain, n->bias.data, d);
    }
}

/* Adds this row to the sums of gain and bias, and finds its own. */
LANES_INLINE void row_backward_sums(row_moments *f, float *dgain, float *dbias, const float *x,
                                    const float *dy, const float *offset, const float *gain,
                                    size_t d)
{
    lanes p1 = {0}, p2 = {0};
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_count(j, d);
        lanes v, o, e, g;
        lanes_load(&v, x, j, n, 0);
        lanes_load(&o, offset, j, n, 0);
        lanes_load(&e, dy, j, n, 0); /* 0 where it is filled up: the sums do not see it */
        lanes_load(&g, gain, j, n, 1);
        const lanes u = (v + o - f->mean) * f->inv, q = e * g;
        *(lanes_unaligned *)(dgain + j) += e * u;
        *(lanes_unaligned *)(dbias + j) += e;
        p1 += q;
        p2 += q * u;
    }
    f->s1 = lanes_total(&p1);
    f->s2 = lanes_total(&p2);
}

LANES_INLINE void row_backward(float *dx, const row_moments *f, float *doffset, const float *x,
                               const float *dy, const float *plus, const float *offset,
                               const float *gain, size_t d)
{
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_count(j, d);
        lanes v, o, e, g, p;
        lanes_load(&v, x, j, n, 0);
        lanes_load(&o, offset, j, n, 0);
        lanes_load(&e, dy, j, n, 0);
        lanes_load(&g, gain, j, n, 1);
        lanes_load(&p, plus, j, n, 0);
        v = (e * g - f->s1 - (v + o - f->mean) * f->inv * f->s2) * f->inv;
        if (offset)
            for (size_t l = 0; l < n; l++) doffset[j + l] += v[l];
        v += p;
        lanes_store(dx, &v, j, n);
    }
}

LANES_INLINE void norm_rows_backward(const norm_job *w, const span *s)
{
    const pare_norm *const n = w->n;
    const float *const offset = n->offset.data, *const gain = n->gain.data;
    const bool centres = n->kind != PARE_NORM_RMS, divides = n->kind != PARE_NORM_MEAN;
    const size_t d = w->x->d;
    float *const sum[3] = {s->row32[0], s->row32[1], s->row32[2]};
    for (size_t k = 0; k < 3; k++) memset(sum[k], 0, (d + LANES) * sizeof(float));
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0), *const dy = rows_at(w->dy, i, 0);
        const float *const plus = w->plus ? rows_at(w->plus, i, 0) : NULL;
        row_moments f = {(float)w->k->mean[i], (float)w->k->inv[i], 0, 0};
        row_backward_sums(&f, sum[0], sum[1], x, dy, offset, gain, d);
        f.s1 = centres ? f.s1 / (float)d : 0;
        f.s2 = divides ? (float)((double)f.s2 / n->divisor) : 0;
        row_backward(rows_at(w->y, i, 0), &f, sum[2], x, dy, plus, offset, gain, d);
    }
    for (size_t k = 0; k < 3; k++) lanes_widen(s->sum + k * d, sum[k], d);
}

/* ---- batch norm: by columns ------------------------------------------------------------------ */

/* The n columns from j on of a row; n is known where this is inlined, unless they are the last. */
LANES_INLINE void sum_chunk(double *sum, const float *x, size_t j, size_t n)
{
    lanes v;
    lanes_load(&v, x, j, n, 0);
    *(lanes_f64 *)(sum + j) += __builtin_convertvector(v, lanes_f64);
}

LANES_INLINE void squares_chunk(float *sum, const float *x, const float *mean, size_t j, size_t n)
{
    lanes v, m;
    lanes_load(&v, x, j, n, 0);
    lanes_load(&m, mean, j, n, 0);
    v -= m;
    *(lanes_unaligned *)(sum + j) += v * v;
}

/* Of the rows of a span: their sums, their squared distances from the span's own mean, so that
 * nothing cancels where that is large, and sum^2 / rows, from which the distances from the mean of
 * all rows follow. The second pass finds the rows in the cache. */
LANES_INLINE void column_moments(const norm_job *w, const span *s)
{
    const size_t d = w->x->d, whole = d / LANES * LANES;
    const double count = (double)(s->end - s->first);
    double *const sum = s->row[0];
    float *const squares = s->row32[1], *const mean = s->row32[2];
    memset(sum, 0, (d + LANES) * sizeof *sum);
    memset(squares, 0, (d + LANES) * sizeof *squares);
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0);
        for (size_t j = 0; j < whole; j += LANES) sum_chunk(sum, x, j, LANES);
        if (whole < d) sum_chunk(sum, x, whole, d - whole);
    }
    for (size_t j = 0; j < d; j++) mean[j] = (float)(sum[j] / count);
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0);
        for (size_t j = 0; j < whole; j += LANES) squares_chunk(squares, x, mean, j, LANES);
        if (whole < d) squares_chunk(squares, x, mean, whole, d - whole);
    }
    for (size_t j = 0; j < d; j++) {
        s->sum[j] = sum[j];
        s->sum[d + j] = (double)squares[j];
        s->sum[2 * d + j] = sum[j] * sum[j] / count;
    }
}

LANES_INLINE void norm_chunk(const norm_job *w, float *y, const float *x, size_t j, size_t n)
{
    lanes v, m, a, b;
    lanes_load(&v, x, j, n, 0);
    lanes_load(&m, w->mean, j, n, 0);
    lanes_load(&a, w->scale, j, n, 0);
    lanes_load(&b, w->shift, j, n, 0);
    v = (v - m) * a + b;
    lanes_store(y, &v, j, n);
}

LANES_INLINE void norm_columns(const norm_job *w, const span *s)
{
    const norm_job here = *w; /* a copy that no store can change */
    const size_t d = w->x->d;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0);
        float *const y = rows_at(w->y, i, 0);
        size_t j = 0;
        for (; j + LANES <= d; j += LANES) norm_chunk(&here, y, x, j, LANES);
        if (j < d) norm_chunk(&here, y, x, j, d - j);
    }
}

LANES_INLINE void sums_chunk(float *s1, float *s2, const float *x, const float *dy,
                             const float *mean, size_t j, size_t n)
{
    lanes v, e, m;
    lanes_load(&v, x, j, n, 0);
    lanes_load(&e, dy, j, n, 0);
    lanes_load(&m, mean, j, n, 0);
    *(lanes_unaligned *)(s1 + j) += e * (v - m);
    *(lanes_unaligned *)(s2 + j) += e;
}

LANES_INLINE void column_sums_backward(const norm_job *w, const span *s)
{
    const size_t d = w->x->d;
    const float *const mean = w->mean;
    float *const s1 = s->row32[0], *const s2 = s->row32[1];
    memset(s1, 0, (d + LANES) * sizeof *s1);
    memset(s2, 0, (d + LANES) * sizeof *s2);
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0), *const dy = rows_at(w->dy, i, 0);
        size_t j = 0;
        for (; j + LANES <= d; j += LANES) sums_chunk(s1, s2, x, dy, mean, j, LANES);
        if (j < d) sums_chunk(s1, s2, x, dy, mean, j, d - j);
    }
    for (size_t j = 0; j < d; j++) s->sum[j] = (double)s1[j] * w->k->inv[j];
    lanes_widen(s->sum + d, s2, d);
}

LANES_INLINE void columns_backward_chunk(const norm_job *w, float *dx, const float *x,
                                         const float *dy, const float *plus, size_t j, size_t n)
{
    lanes v, e, m, a, b, c, p;
    lanes_load(&v, x, j, n, 0);
    lanes_load(&e, dy, j, n, 0);
    lanes_load(&m, w->mean, j, n, 0);
    lanes_load(&a, w->scale, j, n, 0);
    lanes_load(&b, w->shift, j, n, 0);
    lanes_load(&c, w->coupling, j, n, 0);
    lanes_load(&p, plus, j, n, 0);
    v = (e - b - (v - m) * c) * a + p;
    lanes_store(dx, &v, j, n);
}

LANES_INLINE void norm_columns_backward(const norm_job *w, const span *s)
{
    const norm_job here = *w;
    const size_t d = w->x->d;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0), *const dy = rows_at(w->dy, i, 0);
        const float *const plus = w->plus ? rows_at(w->plus, i, 0) : NULL;
        float *const dx = rows_at(w->y, i, 0);
        size_t j = 0;
        for (; j + LANES <= d; j += LANES) columns_backward_chunk(&here, dx, x, dy, plus, j, LANES);
        if (j < d) columns_backward_chunk(&here, dx, x, dy, plus, j, d - j);
    }
}

/* ---- dispatch -------------------------------------------------------------------------------- */

LANES_INLINE void norm_any(const norm_job *w, const span *s)
{
    switch (w->op) {
    case NORM_ROWS:
        norm_rows(w, s);
        return;
    case NORM_ROWS_BACKWARD:
        norm_rows_backward(w, s);
        return;
    case NORM_SUM:
    case NORM_SQUARES: /* in f64 alone */
        return;
    case NORM_MOMENTS:
        column_moments(w, s);
        return;
    case NORM_COLUMNS:
        norm_columns(w, s);
        return;
    case NORM_SUMS_BACKWARD:
        column_sums_backward(w, s);
        return;
    case NORM_COLUMNS_BACKWARD:
        norm_columns_backward(w, s);
        return;
    }
}

LANES_DISPATCH(norm_f32, norm_any)
