/* poly_lanes.h - the inner loops of polynomial attention, written once over a vector (base/vec.h).
 *
 * The monomials of one key are contiguous, so that a run is a vector times one number and the sum
 * over keys broadcasts a value to a vector of monomials; the monomials of a panel of queries have
 * one row of lanes each, so that a run is a product of vectors. accumulate holds columns x vectors
 * of sums in registers. In the backward pass a run has one variable: its numbers and its gradient
 * stay in registers. */
#include "base/vec.h"
#include "poly_kernels.h"

/* Rows that are computed together: a run reads what the run before has stored, and a load across
 * two recent stores waits for both; with other rows in between it does not. */
/* Vectors at a time: as many as there are registers for. Arrays have the most, so that static
 * analysis, which does not fold POLY_VECS, sees no index out of bounds; what is not used is free. */
enum { ROWS_AT_ONCE = 8, MOST_VECS = 4, POLY_VECS = VEC == 16 ? MOST_VECS : VEC == 8 ? 3 : 2 };

VEC_TARGET static void poly_rows(float *phi, size_t ldphi, const poly_run *runs, size_t n,
                                 const float *x, size_t ldx, size_t rows)
{
    for (size_t first = 0; first < rows; first += ROWS_AT_ONCE) {
        const size_t end = rows - first < ROWS_AT_ONCE ? rows : first + ROWS_AT_ONCE;
        for (const poly_run *r = runs; r < runs + n; r++)
            for (size_t j = first; j < end; j++) {
                const vec by = vec_set(x[j * ldx + r->var]);
                const float *const from = phi + j * ldphi + r->from;
                float *const to = phi + j * ldphi + r->to;
                for (size_t i = 0; i < r->count; i += VEC)
                    vec_store(to + i, vec_load(from + i) * by);
            }
    }
}

VEC_INLINE void poly_columns_of(float *to, const float *from, const float *x, size_t count,
                                const size_t v)
{
    vec by[MOST_VECS];
#pragma GCC unroll 4
    for (size_t e = 0; e < v; e++) by[e] = vec_load(x + VEC * e);
    for (size_t i = 0; i < count; i++, to += VEC * v, from += VEC * v)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++) vec_store(to + VEC * e, vec_load(from + VEC * e) * by[e]);
}

VEC_TARGET static void poly_columns(float *to, size_t first, const float *from,
                                    const poly_run *runs, size_t n, const float *x, size_t v)
{
    const size_t p = VEC * v;
    for (const poly_run *r = runs; r < runs + n; r++) {
        float *const t = to + (r->to - first) * p;
        const float *const f = from + r->from * p, *const by = x + r->var * p;
        if (v == 1) poly_columns_of(t, f, by, r->count, 1);
        if (v == 2) poly_columns_of(t, f, by, r->count, 2);
        if (POLY_VECS >= 3 && v == 3) poly_columns_of(t, f, by, r->count, 3);
        if (POLY_VECS >= 4 && v == 4) poly_columns_of(t, f, by, r->count, 4);
    }
}

enum { SUM_COLS = VEC == 16 ? 12 : TILE_STEP, SUM_VECS = VEC == 16 ? 3 : 2 };

/* `cols` columns by `v` vectors, constants where this is inlined, of which `count` numbers are
 * written. */
VEC_INLINE void poly_sums(float *s, size_t lds, const poly_keys *k, const float *u,
                          const float *phi, const float *x, size_t count, const size_t cols,
                          const size_t v)
{
    vec acc[SUM_COLS][SUM_VECS];
#pragma GCC unroll 12
    for (size_t c = 0; c < cols; c++)
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) acc[c][e] = vec_set(0);
    for (size_t j = 0; j < k->keys; j++, phi += k->ldphi, u += k->ldu) {
        vec part[SUM_VECS];
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) {
            part[e] = vec_load(phi + VEC * e);
            if (x) part[e] *= vec_set(x[j * k->ldx]);
        }
#pragma GCC unroll 12
        for (size_t c = 0; c < cols; c++) {
            const vec b = vec_set(u[c]);
#pragma GCC unroll 3
            for (size_t e = 0; e < v; e++) acc[c][e] = vec_fma(b, part[e], acc[c][e]);
        }
    }
#pragma GCC unroll 12
    for (size_t c = 0; c < cols; c++)
#pragma GCC unroll 3
        for (size_t e = 0; e < v; e++) {
            float *const at = s + c * lds + VEC * e;
            const size_t n = e + 1 < v ? VEC : count - VEC * e;
            vec_store_some(at, vec_load_some(at, n) + acc[c][e], n);
        }
}

/* All of `count` for some columns, v vectors at a time. */
VEC_INLINE void poly_strip(float *s, size_t lds, const poly_keys *k, size_t c, const float *phi,
                           const float *x, size_t count, const size_t cols, const size_t v)
{
    size_t i = 0;
    s += c * lds;
    for (; i + VEC * v <= count; i += VEC * v)
        poly_sums(s + i, lds, k, k->u + c, phi + i, x, VEC * v, cols, v);
    for (; i < count; i += VEC) poly_sums(s + i, lds, k, k->u + c, phi + i, x, count - i, cols, 1);
}

VEC_TARGET static void poly_accumulate(float *s, size_t lds, const poly_keys *k, const float *phi,
                                       const float *x, size_t count)
{
    for (size_t c = 0, take; c < k->cols; c += take) {
        const size_t left = k->cols - c;
        take = SUM_COLS == 4 || left == 4 ? 4 : left % 8 ? 12 : 8;
        if (take == 4) poly_strip(s, lds, k, c, phi, x, count, 4, SUM_VECS);
        if (SUM_COLS >= 8 && take == 8) poly_strip(s, lds, k, c, phi, x, count, 8, SUM_VECS);
        if (SUM_COLS >= 12 && take == 12) poly_strip(s, lds, k, c, phi, x, count, 12, 2);
    }
}

VEC_TARGET static void poly_flush(double *to, float *from, size_t n)
{
    enum { PART = VEC == 16 ? 8 : 4 };
    typedef float part __attribute__((vector_size(PART * sizeof(float)), aligned(4), may_alias));
    typedef double wide __attribute__((vector_size(PART * sizeof(double)), aligned(8), may_alias));
    for (size_t i = 0; i < n; i += PART) {
        *(wide *)(to + i) += __builtin_convertvector(*(const part *)(from + i), wide);
        *(part *)(from + i) = (part){0};
    }
}

/* v is a constant where this is inlined. */
VEC_INLINE void poly_run_backward(float *dfrom, float *dx, const float *dto, const float *from,
                                  const float *x, size_t count, const size_t v)
{
    vec by[MOST_VECS], sum[MOST_VECS];
#pragma GCC unroll 4
    for (size_t e = 0; e < v; e++) {
        by[e] = vec_load(x + VEC * e);
        sum[e] = vec_load(dx + VEC * e);
    }
    for (size_t i = 0; i < count; i++, dfrom += VEC * v, dto += VEC * v, from += VEC * v)
#pragma GCC unroll 4
        for (size_t e = 0; e < v; e++) {
            const vec d = vec_load(dto + VEC * e);
            vec_store(dfrom + VEC * e, vec_fma(d, by[e], vec_load(dfrom + VEC * e)));
            sum[e] = vec_fma(d, vec_load(from + VEC * e), sum[e]);
        }
#pragma GCC unroll 4
    for (size_t e = 0; e < v; e++) vec_store(dx + VEC * e, sum[e]);
}

VEC_TARGET static void poly_monomials_backward(float *dfrom, float *dx, const float *dto,
                                               size_t first, const float *from,
                                               const poly_run *runs, size_t n, const float *x,
                                               size_t v)
{
    const size_t p = VEC * v;
    for (const poly_run *r = runs; r < runs + n; r++) {
        float *const df = dfrom + r->from * p, *const to = dx + r->var * p;
        const float *const d = dto + (r->to - first) * p, *const f = from + r->from * p;
        const float *const by = x + r->var * p;
        if (v == 1) poly_run_backward(df, to, d, f, by, r->count, 1);
        if (v == 2) poly_run_backward(df, to, d, f, by, r->count, 2);
        if (POLY_VECS >= 3 && v == 3) poly_run_backward(df, to, d, f, by, r->count, 3);
        if (POLY_VECS >= 4 && v == 4) poly_run_backward(df, to, d, f, by, r->count, 4);
    }
}
