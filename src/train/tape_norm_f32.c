/* Norms in f32. Sums over a row have 16 partial sums, what is done once per row is f64; sums over
 * the rows of a span are f32, over spans f64. */
#include "lanes.h"
#include "tape_norm.h"
#include <math.h>

/* A row's figures on the way back. */
typedef struct row_figures {
    float mean, inv, s1, s2; /* s1: mean of dy gain (0: not centred), s2: of dy gain u */
} row_figures;

/* ---- row by row ------------------------------------------------------------------------------ */

LANES_INLINE float row_mean(const float *x, const float *offset, size_t d)
{
    float part[LANES] = {0}, v[LANES], o[LANES];
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_at(j, d);
        lanes_load(v, x, j, n, 0);
        lanes_load(o, offset, j, n, 0);
        for (size_t l = 0; l < LANES; l++) part[l] += v[l] + o[l];
    }
    return lanes_total(part) / (float)d;
}

LANES_INLINE float row_squares(const float *x, const float *offset, float mean, size_t d)
{
    float part[LANES] = {0}, v[LANES], o[LANES], rest = 0;
    size_t j = 0;
    for (; j + LANES <= d; j += LANES) {
        lanes_load(v, x, j, LANES, 0);
        lanes_load(o, offset, j, LANES, 0);
        for (size_t l = 0; l < LANES; l++) {
            const float c = v[l] + o[l] - mean;
            part[l] += c * c;
        }
    }
    for (; j < d; j++) {
        const float c = x[j] + (offset ? offset[j] : 0) - mean;
        rest += c * c;
    }
    return lanes_total(part) + rest;
}

LANES_INLINE void scale_row(float *y, const float *x, float mean, float inv, const float *offset,
                            const float *gain, const float *bias, size_t d)
{
    float v[LANES], o[LANES], g[LANES], b[LANES];
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_at(j, d);
        lanes_load(v, x, j, n, 0);
        lanes_load(o, offset, j, n, 0);
        lanes_load(g, gain, j, n, 1);
        lanes_load(b, bias, j, n, 0);
        for (size_t l = 0; l < LANES; l++) v[l] = (v[l] + o[l] - mean) * inv * g[l] + b[l];
        lanes_store(y, v, j, n);
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
        double by = 1;
        if (divides) {
            const double squares = (double)row_squares(x, offset, mean, d);
            by = sqrt((squares + n->shift) / n->divisor + n->eps);
        }
        w->k->mean[i] = (double)mean;
        w->k->inv[i] = by > 0 ? 1 / by : 0;
        scale_row(rows_at(w->y, i, 0), x, mean, (float)w->k->inv[i], offset, gain, n->bias.data, d);
    }
}

/* Adds this row to the sums of gain and bias, and finds its own. */
LANES_INLINE void back_sums(row_figures *f, float *dgain, float *dbias, const float *x,
                            const float *dy, const float *offset, const float *gain, size_t d)
{
    float p1[LANES] = {0}, p2[LANES] = {0};
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_at(j, d);
        float v[LANES], o[LANES], e[LANES], g[LANES], a[LANES], b[LANES];
        lanes_load(v, x, j, n, 0);
        lanes_load(o, offset, j, n, 0);
        lanes_load(e, dy, j, n, 0); /* 0 where it is filled up: the sums do not see it */
        lanes_load(g, gain, j, n, 1);
        memcpy(a, dgain + j, sizeof a);
        memcpy(b, dbias + j, sizeof b);
        for (size_t l = 0; l < LANES; l++) {
            const float u = (v[l] + o[l] - f->mean) * f->inv, q = e[l] * g[l];
            a[l] += e[l] * u;
            b[l] += e[l];
            p1[l] += q;
            p2[l] += q * u;
        }
        memcpy(dgain + j, a, sizeof a);
        memcpy(dbias + j, b, sizeof b);
    }
    f->s1 = lanes_total(p1);
    f->s2 = lanes_total(p2);
}

LANES_INLINE void back_row(float *dx, const row_figures *f, float *doffset, const float *x,
                           const float *dy, const float *plus, const float *offset,
                           const float *gain, size_t d)
{
    for (size_t j = 0; j < d; j += LANES) {
        const size_t n = lanes_at(j, d);
        float v[LANES], o[LANES], e[LANES], g[LANES], p[LANES];
        lanes_load(v, x, j, n, 0);
        lanes_load(o, offset, j, n, 0);
        lanes_load(e, dy, j, n, 0);
        lanes_load(g, gain, j, n, 1);
        lanes_load(p, plus, j, n, 0);
        for (size_t l = 0; l < LANES; l++) {
            const float u = (v[l] + o[l] - f->mean) * f->inv;
            v[l] = (e[l] * g[l] - f->s1 - u * f->s2) * f->inv;
        }
        if (offset)
            for (size_t l = 0; l < n; l++) doffset[j + l] += v[l];
        for (size_t l = 0; l < LANES; l++) v[l] += p[l];
        lanes_store(dx, v, j, n);
    }
}

LANES_INLINE void norm_rows_back(const norm_job *w, const span *s)
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
        row_figures f = {(float)w->k->mean[i], (float)w->k->inv[i], 0, 0};
        back_sums(&f, sum[0], sum[1], x, dy, offset, gain, d);
        f.s1 = centres ? f.s1 / (float)d : 0;
        f.s2 = divides ? (float)((double)f.s2 / n->divisor) : 0;
        back_row(rows_at(w->y, i, 0), &f, sum[2], x, dy, plus, offset, gain, d);
    }
    for (size_t k = 0; k < 3; k++) lanes_hand_over(s->sum + k * d, sum[k], d);
}

/* ---- batch ------------------------------------------------------------------------------------
 */

LANES_INLINE void column_sums(const norm_job *w, const span *s, bool squares)
{
    const size_t d = w->x->d;
    float *const sum = s->row32[0];
    memset(sum, 0, (d + LANES) * sizeof *sum);
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0);
        for (size_t j = 0; j < d; j += LANES) {
            const size_t n = lanes_at(j, d);
            float v[LANES], m[LANES], a[LANES];
            lanes_load(v, x, j, n, 0);
            lanes_load(m, squares ? w->mean : NULL, j, n, 0);
            memcpy(a, sum + j, sizeof a);
            for (size_t l = 0; l < LANES; l++)
                a[l] += squares ? (v[l] - m[l]) * (v[l] - m[l]) : v[l];
            memcpy(sum + j, a, sizeof a);
        }
    }
    lanes_hand_over(s->sum, sum, d);
}

LANES_INLINE void norm_columns(const norm_job *w, const span *s)
{
    const size_t d = w->x->d;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0);
        float *const y = rows_at(w->y, i, 0);
        for (size_t j = 0; j < d; j += LANES) {
            const size_t n = lanes_at(j, d);
            float v[LANES], m[LANES], a[LANES], b[LANES];
            lanes_load(v, x, j, n, 0);
            lanes_load(m, w->mean, j, n, 0);
            lanes_load(a, w->by, j, n, 0);
            lanes_load(b, w->shift, j, n, 0);
            for (size_t l = 0; l < LANES; l++) v[l] = (v[l] - m[l]) * a[l] + b[l];
            lanes_store(y, v, j, n);
        }
    }
}

/* by is inv here. */
LANES_INLINE void sums_back(const norm_job *w, const span *s)
{
    const size_t d = w->x->d;
    float *const s1 = s->row32[0], *const s2 = s->row32[1];
    memset(s1, 0, (d + LANES) * sizeof *s1);
    memset(s2, 0, (d + LANES) * sizeof *s2);
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0), *const dy = rows_at(w->dy, i, 0);
        for (size_t j = 0; j < d; j += LANES) {
            const size_t n = lanes_at(j, d);
            float v[LANES], e[LANES], m[LANES], a[LANES], b[LANES];
            lanes_load(v, x, j, n, 0);
            lanes_load(e, dy, j, n, 0);
            lanes_load(m, w->mean, j, n, 0);
            memcpy(a, s1 + j, sizeof a);
            memcpy(b, s2 + j, sizeof b);
            for (size_t l = 0; l < LANES; l++) {
                a[l] += e[l] * (v[l] - m[l]);
                b[l] += e[l];
            }
            memcpy(s1 + j, a, sizeof a);
            memcpy(s2 + j, b, sizeof b);
        }
    }
    for (size_t j = 0; j < d; j++) s->sum[j] = (double)s1[j] * w->k->inv[j];
    lanes_hand_over(s->sum + d, s2, d);
}

LANES_INLINE void columns_back(const norm_job *w, const span *s)
{
    const size_t d = w->x->d;
    for (size_t i = s->first; i < s->end; i++) {
        const float *const x = rows_at(w->x, i, 0), *const dy = rows_at(w->dy, i, 0);
        const float *const plus = w->plus ? rows_at(w->plus, i, 0) : NULL;
        float *const dx = rows_at(w->y, i, 0);
        for (size_t j = 0; j < d; j += LANES) {
            const size_t n = lanes_at(j, d);
            float v[LANES], e[LANES], m[LANES], a[LANES], b[LANES], c[LANES], p[LANES];
            lanes_load(v, x, j, n, 0);
            lanes_load(e, dy, j, n, 0);
            lanes_load(m, w->mean, j, n, 0);
            lanes_load(a, w->by, j, n, 0);
            lanes_load(b, w->shift, j, n, 0);
            lanes_load(c, w->lean, j, n, 0);
            lanes_load(p, plus, j, n, 0);
            for (size_t l = 0; l < LANES; l++)
                v[l] = (e[l] - b[l] - (v[l] - m[l]) * c[l]) * a[l] + p[l];
            lanes_store(dx, v, j, n);
        }
    }
}

/* ---- by instruction set -----------------------------------------------------------------------
 */

LANES_INLINE void run(const norm_job *w, const span *s)
{
    switch (w->op) {
    case NORM_ROWS:
        norm_rows(w, s);
        return;
    case NORM_ROWS_BACK:
        norm_rows_back(w, s);
        return;
    case NORM_SUM:
        column_sums(w, s, false);
        return;
    case NORM_SQUARES:
        column_sums(w, s, true);
        return;
    case NORM_COLUMNS:
        norm_columns(w, s);
        return;
    case NORM_SUMS_BACK:
        sums_back(w, s);
        return;
    case NORM_COLUMNS_BACK:
        columns_back(w, s);
        return;
    }
}

LANES_CHOICE(norm_f32, run)
