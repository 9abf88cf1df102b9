/* decode_lanes.h - the decoder's loops, written once over sixteen lanes: one vector of AVX-512, two
 * of AVX2, four portable ones (base/vec.h). */
#include "base/vec.h"
#include "linalg/matrix.h"
#include "decode_kernels.h"
#include <math.h>

enum { VECS = LANES / VEC };
typedef struct lanes {
    vec v[VECS];
} lanes;

VEC_INLINE lanes lanes_load(const float *p)
{
    lanes r;
#pragma GCC unroll 4
    for (size_t i = 0; i < VECS; i++) r.v[i] = vec_load(p + i * VEC);
    return r;
}

VEC_INLINE void lanes_store(float *p, lanes a)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < VECS; i++) vec_store(p + i * VEC, a.v[i]);
}

VEC_INLINE lanes lanes_set(float a)
{
    lanes r;
#pragma GCC unroll 4
    for (size_t i = 0; i < VECS; i++) r.v[i] = vec_set(a);
    return r;
}

VEC_INLINE lanes lanes_add(lanes a, lanes b)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < VECS; i++) a.v[i] += b.v[i];
    return a;
}

VEC_INLINE lanes lanes_sub(lanes a, lanes b)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < VECS; i++) a.v[i] -= b.v[i];
    return a;
}

VEC_INLINE lanes lanes_mul(lanes a, lanes b)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < VECS; i++) a.v[i] *= b.v[i];
    return a;
}

VEC_INLINE lanes lanes_fma(lanes a, lanes b, lanes c)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < VECS; i++) a.v[i] = vec_fma(a.v[i], b.v[i], c.v[i]);
    return a;
}

VEC_INLINE lanes lanes_max(lanes a, lanes b) /* a nan in a stays */
{
#pragma GCC unroll 4
    for (size_t i = 0; i < VECS; i++) a.v[i] = vec_max(b.v[i], a.v[i]);
    return a;
}

VEC_INLINE lanes lanes_exp(lanes a) /* a <= 0 */
{
#pragma GCC unroll 4
    for (size_t i = 0; i < VECS; i++) a.v[i] = vec_exp(a.v[i]);
    return a;
}

/* Halves are added until one lane is left. */
VEC_INLINE float lanes_sum(lanes a)
{
#pragma GCC unroll 2
    for (size_t half = VECS / 2; half > 0; half /= 2)
#pragma GCC unroll 2
        for (size_t i = 0; i < half; i++) a.v[i] += a.v[i + half];
    return vec_sum(a.v[0]);
}

VEC_INLINE float lanes_largest(lanes a)
{
#pragma GCC unroll 4
    for (size_t i = 1; i < VECS; i++) a.v[0] = vec_max(a.v[0], a.v[i]);
    return vec_largest(a.v[0]);
}

/* ---- attention over the cache --------------------------------------------------------------- */

/* The visited groups of LANES tokens: [0, head) and [tail, end). Where they meet or share a group,
 * tail <= head, there is nothing to jump over. */
typedef struct visible_groups {
    size_t head, tail, end;
} visible_groups;

static inline visible_groups groups_of(const decode_query *q)
{
    return (visible_groups){(q->to0 + LANES - 1) / LANES, q->from1 / LANES,
                            (q->to1 + LANES - 1) / LANES};
}

/* Scores of a visited group; those at its borders are hidden by the caller. */
VEC_INLINE void group_scores(const decode_query *q, size_t group, float *s)
{
    const float *const k = q->k + group * q->kstep;
    lanes even = lanes_set(0), odd = lanes_set(0);
    size_t c = 0;
    for (; c + 2 <= q->dk; c += 2) {
        even = lanes_fma(lanes_set(q->q[c]), lanes_load(k + c * LANES), even);
        odd = lanes_fma(lanes_set(q->q[c + 1]), lanes_load(k + (c + 1) * LANES), odd);
    }
    if (c < q->dk) even = lanes_fma(lanes_set(q->q[c]), lanes_load(k + c * LANES), even);
    lanes_store(s, lanes_mul(lanes_add(even, odd), lanes_set(q->scale)));
}

/* What does not count becomes -inf. The last group is the common case: what follows the query. */
VEC_INLINE void mask_scores(const decode_query *q, size_t group, float *s)
{
    static const float mask[2 * LANES] = {
        0,         0,         0,         0,         0,         0,         0,         0,
        0,         0,         0,         0,         0,         0,         0,         0,
        -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY,
        -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY, -INFINITY};
    const size_t first = group * LANES, count = q->to1 - first;
    if (first >= q->from1) {
        if (count < LANES)
            lanes_store(s, lanes_add(lanes_load(s), lanes_load(mask + LANES - count)));
        return;
    }
    for (size_t l = 0; l < LANES; l++) {
        const size_t j = first + l;
        if (!(j < q->to0 || (j >= q->from1 && j < q->to1))) s[l] = -INFINITY;
    }
}

/* All scores of the visited groups, one behind the other; returns how many groups. */
VEC_INLINE size_t all_scores(const decode_query *q, const visible_groups *v)
{
    size_t n = 0;
    for (size_t g = 0; g < v->end; g++, n++) {
        if (g == v->head && g < v->tail) g = v->tail;
        float *const s = q->s + n * LANES;
        group_scores(q, g, s);
        /* The last group of the sinks, the first of the window and the last of all. */
        if (g + 1 == v->head || g == v->tail || g + 1 == v->end) mask_scores(q, g, s);
    }
    return n;
}

/* s = exp(s - max s); returns 1 / sum. */
VEC_INLINE float softmax(float *s, size_t groups)
{
    lanes row_max = lanes_load(s), sum = lanes_set(0);
    for (size_t g = 1; g < groups; g++) row_max = lanes_max(row_max, lanes_load(s + g * LANES));
    const lanes shift = lanes_set(lanes_largest(row_max));
    for (size_t g = 0; g < groups; g++) {
        const lanes p = lanes_exp(lanes_sub(lanes_load(s + g * LANES), shift));
        lanes_store(s + g * LANES, p);
        sum = lanes_add(sum, p);
    }
    return 1 / lanes_sum(sum);
}

enum { COLUMNS = 8 }; /* of the values at once: their sums stay in registers */

VEC_INLINE void sum_eight_columns(const decode_query *q, const visible_groups *v, size_t c,
                                  float scale)
{
    lanes sum[COLUMNS];
#pragma GCC unroll 8
    for (size_t e = 0; e < COLUMNS; e++) sum[e] = lanes_set(0);
    const float *s = q->s;
    for (size_t g = 0; g < v->end; g++, s += LANES) {
        if (g == v->head && g < v->tail) g = v->tail;
        const float *const from = q->v + g * q->vstep + c * LANES;
        const lanes p = lanes_load(s);
#pragma GCC unroll 8
        for (size_t e = 0; e < COLUMNS; e++)
            sum[e] = lanes_fma(p, lanes_load(from + e * LANES), sum[e]);
    }
#pragma GCC unroll 8
    for (size_t e = 0; e < COLUMNS; e++) q->y[c + e] = lanes_sum(sum[e]) * scale;
}

VEC_INLINE void sum_column(const decode_query *q, const visible_groups *v, size_t c, float scale)
{
    lanes sum = lanes_set(0);
    const float *s = q->s;
    for (size_t g = 0; g < v->end; g++, s += LANES) {
        if (g == v->head && g < v->tail) g = v->tail;
        sum = lanes_fma(lanes_load(s), lanes_load(q->v + g * q->vstep + c * LANES), sum);
    }
    q->y[c] = lanes_sum(sum) * scale;
}

VEC_TARGET static void attend(const decode_query *q)
{
    const visible_groups v = groups_of(q);
    const float scale = softmax(q->s, all_scores(q, &v));
    size_t c = 0;
    for (; c + COLUMNS <= q->dv; c += COLUMNS) sum_eight_columns(q, &v, c, scale);
    for (; c < q->dv; c++) sum_column(q, &v, c, scale);
}

/* ---- rows ------------------------------------------------------------------------------------ */

VEC_INLINE float row_sum(const float *x, size_t padded)
{
    lanes sum = lanes_set(0);
    for (size_t j = 0; j < padded; j += LANES) sum = lanes_add(sum, lanes_load(x + j));
    return lanes_sum(sum);
}

VEC_INLINE float row_squares(const float *x, size_t padded)
{
    lanes sum = lanes_set(0);
    for (size_t j = 0; j < padded; j += LANES) {
        const lanes a = lanes_load(x + j);
        sum = lanes_fma(a, a, sum);
    }
    return lanes_sum(sum);
}

VEC_TARGET static void norm(float *y, const float *x, const decode_norm *n)
{
    const size_t padded = pare_padded(n->d);
    const float *from = x;
    if (n->offset) {
        for (size_t j = 0; j < padded; j += LANES)
            lanes_store(y + j, lanes_add(lanes_load(x + j), lanes_load(n->offset + j)));
        from = y;
    }
    if (n->center) {
        const lanes mean = lanes_set(row_sum(from, padded) / (float)n->d);
        for (size_t j = 0; j < padded; j += LANES)
            lanes_store(y + j, lanes_sub(lanes_load(from + j), mean));
        for (size_t j = n->d; j < padded; j++) y[j] = 0;
        from = y;
    }
    float scale = 1;
    if (n->divide) {
        scale = sqrtf((row_squares(from, padded) + n->shift) / n->divisor + n->eps);
        scale = scale > 0 ? 1 / scale : 0; /* eps = 0 and a zero row: it stays zero */
    }
    for (size_t j = 0; j < padded; j += LANES) {
        const lanes a = lanes_mul(lanes_load(from + j), lanes_set(scale));
        const lanes gain = lanes_load(n->gain + j);
        lanes_store(y + j,
                    n->bias ? lanes_fma(a, gain, lanes_load(n->bias + j)) : lanes_mul(a, gain));
    }
}

VEC_TARGET static void add(float *y, const float *x, const float *w, size_t n)
{
    for (size_t j = 0; j < n; j += LANES) {
        const lanes a = lanes_load(x + j), b = lanes_load(y + j);
        lanes_store(y + j, w ? lanes_fma(a, lanes_load(w + j), b) : lanes_add(a, b));
    }
}
