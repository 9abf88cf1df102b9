/* softmax_row.c - one row of logits through a softmax (softmax_row.h).
 *
 * The f32 rows go in pieces through small buffers, so that one vector exp (base/vmath.h) serves
 * every CPU. The loops around it have fixed lengths and one order of sums; each is written once,
 * in plain C, and compiled for several instruction sets. No operation is fused: except for exp
 * every CPU gives the same bits. */
#include "softmax_row.h"
#include "base/simd.h"
#include <math.h>
#include "base/vmath.h"
#include <string.h>

enum { LANES = 16, PIECE = 256 };

/* ---- f32, for any instruction set ------------------------------------------------------------- */

PARE_INLINE size_t piece_at(size_t i, size_t n)
{
    return n - i < PIECE ? n - i : PIECE;
}

/* A nan is skipped here and shows in the sum. */
PARE_INLINE float max_of(const float *x, size_t n)
{
    float part[LANES], row_max = -INFINITY;
    for (size_t l = 0; l < LANES; l++) part[l] = -INFINITY;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) part[l] = x[i + l] > part[l] ? x[i + l] : part[l];
    for (; i < n; i++) part[0] = x[i] > part[0] ? x[i] : part[0];
    for (size_t l = 0; l < LANES; l++) row_max = part[l] > row_max ? part[l] : row_max;
    return row_max;
}

/* z_i = scale (x_i - row_max) and e_i = e^z_i for one piece; e = 0 beyond its end. */
PARE_INLINE void exp_piece(float *e, float *z, const float *x, size_t n, float row_max, float scale)
{
    if (n < PIECE)
        for (size_t i = 0; i < PIECE; i++) z[i] = -INFINITY;
    memcpy(z, x, n * sizeof *z);
    for (size_t i = 0; i < PIECE; i++) z[i] = scale * (z[i] - row_max);
    pare_exp_f32(e, z, PIECE);
}

PARE_INLINE double sum_piece(const float *e)
{
    double part[LANES] = {0}, sum = 0;
    for (size_t i = 0; i < PIECE; i += LANES)
        for (size_t l = 0; l < LANES; l++) part[l] += (double)e[i + l];
    for (size_t l = 0; l < LANES; l++) sum += part[l];
    return sum;
}

PARE_INLINE softmax_row row_any(const float *x, size_t n, float scale)
{
    const float row_max = max_of(x, n);
    double sum = 0;
    float e[PIECE], z[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        exp_piece(e, z, x + i, piece_at(i, n), row_max, scale);
        sum += sum_piece(e);
    }
    return (softmax_row){(double)row_max, sum};
}

/* y_i += w e_i, through a copy of fixed length */
PARE_INLINE void add_piece(float *y, const float *e, size_t n, float w)
{
    float sum[PIECE];
    memcpy(sum, y, n * sizeof *y);
    if (n < PIECE) memset(sum + n, 0, (PIECE - n) * sizeof *sum);
    for (size_t i = 0; i < PIECE; i++) sum[i] += w * e[i];
    memcpy(y, sum, n * sizeof *y);
}

PARE_INLINE void backward_any(float *dy, const float *x, size_t n, softmax_row s, float w)
{
    const float row_max = (float)s.row_max, share = (float)((double)w / s.sum);
    float e[PIECE], z[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t m = piece_at(i, n);
        exp_piece(e, z, x + i, m, row_max, 1);
        add_piece(dy + i, e, m, share);
    }
}

/* log p_i - log q_i = scale ((t_i - max_t) - (y_i - max_y)) - (log sum_t - log sum_y): the maxima
 * are subtracted first: logits of 1e4 would lose the difference to rounding. Where p_i is 0 its
 * term is 0, whatever the other factor. */
PARE_INLINE double kl_any(float *dy, const float *y, softmax_row q, const float *t, softmax_row p,
                          size_t n, float scale, float w)
{
    const float qy = (float)(1 / q.sum), pt = (float)(1 / p.sum);
    const float apart = (float)(log(p.sum) - log(q.sum));
    float ey[PIECE], zy[PIECE], et[PIECE], zt[PIECE], term[PIECE];
    double kl = 0;
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t m = piece_at(i, n);
        exp_piece(ey, zy, y + i, m, (float)q.row_max, scale);
        exp_piece(et, zt, t + i, m, (float)p.row_max, scale);
        for (size_t k = 0; k < PIECE; k++) {
            const float a = et[k] * pt, product = a * ((zt[k] - zy[k]) - apart);
            term[k] = a == 0 ? 0 : product;
            ey[k] = ey[k] * qy - a;
        }
        kl += sum_piece(term);
        add_piece(dy + i, ey, m, w);
    }
    return kl;
}

/* ---- f32, chosen at run time ------------------------------------------------------------------ */

typedef struct kernels {
    softmax_row (*row)(const float *x, size_t n, float scale);
    void (*backward)(float *dy, const float *x, size_t n, softmax_row s, float w);
    double (*kl)(float *dy, const float *y, softmax_row q, const float *t, softmax_row p, size_t n,
                 float scale, float w);
} kernels;

/* The three kernels compiled for one instruction set. */
#define SOFTMAX_KERNELS(isa, target)                                                               \
    target static softmax_row row_##isa(const float *x, size_t n, float scale)                     \
    {                                                                                              \
        return row_any(x, n, scale);                                                               \
    }                                                                                              \
    target static void backward_##isa(float *dy, const float *x, size_t n, softmax_row s, float w) \
    {                                                                                              \
        backward_any(dy, x, n, s, w);                                                              \
    }                                                                                              \
    target static double kl_##isa(float *dy, const float *y, softmax_row q, const float *t,        \
                                  softmax_row p, size_t n, float scale, float w)                   \
    {                                                                                              \
        return kl_any(dy, y, q, t, p, n, scale, w);                                                \
    }

SOFTMAX_KERNELS(plain, )
SOFTMAX_KERNELS(avx2, PARE_AVX2)
SOFTMAX_KERNELS(avx512, PARE_AVX512)

static kernels best(void)
{
    static const kernels k[] = {{row_plain, backward_plain, kl_plain},
                                {row_avx2, backward_avx2, kl_avx2},
                                {row_avx512, backward_avx512, kl_avx512}};
    return k[simd_best()];
}

softmax_row softmax_row_f32(const float *x, size_t n, float scale)
{
    return best().row(x, n, scale);
}

void softmax_backward_f32(float *dy, const float *x, size_t n, softmax_row s, float w)
{
    best().backward(dy, x, n, s, w);
}

double softmax_kl_f32(float *dy, const float *y, softmax_row q, const float *t, softmax_row p,
                      size_t n, float scale, float w)
{
    return best().kl(dy, y, q, t, p, n, scale, w);
}

/* ---- f64 -------------------------------------------------------------------------------------- */

softmax_row softmax_row_f64(const double *x, size_t n, double scale)
{
    softmax_row s = {-INFINITY, 0};
    for (size_t i = 0; i < n; i++) s.row_max = x[i] > s.row_max ? x[i] : s.row_max;
    for (size_t i = 0; i < n; i++) s.sum += exp(scale * (x[i] - s.row_max));
    return s;
}

void softmax_backward_f64(double *dy, const double *x, size_t n, softmax_row s, double w)
{
    for (size_t i = 0; i < n; i++) dy[i] += w * (exp(x[i] - s.row_max) / s.sum);
}

double softmax_kl_f64(double *dy, const double *y, softmax_row q, const double *t, softmax_row p,
                      size_t n, double scale, double w)
{
    const double apart = log(p.sum) - log(q.sum);
    double kl = 0;
    for (size_t i = 0; i < n; i++) {
        const double a = exp(scale * (t[i] - p.row_max)) / p.sum,
                     b = exp(scale * (y[i] - q.row_max)) / q.sum;
        const double lead = (t[i] - p.row_max) - (y[i] - q.row_max);
        if (a > 0 || isnan(a)) kl += a * (scale * lead - apart);
        dy[i] += w * (b - a);
    }
    return kl;
}
