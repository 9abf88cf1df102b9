/* The f32 rows go in pieces through small buffers, so that one e^x (pare/vmath.h) serves every CPU.
 * The loops around it have fixed lengths and one order of sums; each is written once, in plain C,
 * and compiled for several instruction sets. No operation is fused: but for e^x every CPU gives the
 * same bits. */
#include "softmax_row.h"
#include <math.h>
#include <pare/vmath.h>
#include <string.h>

#define SOFTMAX_INLINE static inline __attribute__((always_inline))

enum { LANES = 16, PIECE = 256 };

/* ---- f32, for any instruction set ---------------------------------------------------------------
 */

SOFTMAX_INLINE size_t piece_at(size_t i, size_t n)
{
    return n - i < PIECE ? n - i : PIECE;
}

/* A nan is passed over here and comes back in the sum. */
SOFTMAX_INLINE float top_of(const float *x, size_t n)
{
    float part[LANES], top = -INFINITY;
    for (size_t l = 0; l < LANES; l++) part[l] = -INFINITY;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t l = 0; l < LANES; l++) part[l] = x[i + l] > part[l] ? x[i + l] : part[l];
    for (; i < n; i++) part[0] = x[i] > part[0] ? x[i] : part[0];
    for (size_t l = 0; l < LANES; l++) top = part[l] > top ? part[l] : top;
    return top;
}

/* z_i = by (x_i - top) and e_i = e^z_i for one piece; what is beyond its end counts nothing. */
SOFTMAX_INLINE void exp_piece(float *e, float *z, const float *x, size_t n, float top, float by)
{
    if (n < PIECE)
        for (size_t i = 0; i < PIECE; i++) z[i] = -INFINITY;
    memcpy(z, x, n * sizeof *z);
    for (size_t i = 0; i < PIECE; i++) z[i] = by * (z[i] - top);
    pare_exp_f32(e, z, PIECE);
}

SOFTMAX_INLINE double sum_piece(const float *e)
{
    double part[LANES] = {0}, sum = 0;
    for (size_t i = 0; i < PIECE; i += LANES)
        for (size_t l = 0; l < LANES; l++) part[l] += (double)e[i + l];
    for (size_t l = 0; l < LANES; l++) sum += part[l];
    return sum;
}

SOFTMAX_INLINE softmax_row of_row(const float *x, size_t n, float by)
{
    const float top = top_of(x, n);
    double sum = 0;
    float e[PIECE], z[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        exp_piece(e, z, x + i, piece_at(i, n), top, by);
        sum += sum_piece(e);
    }
    return (softmax_row){(double)top, sum};
}

/* y_i += w e_i, through a copy of fixed length */
SOFTMAX_INLINE void add_piece(float *y, const float *e, size_t n, float w)
{
    float sum[PIECE];
    memcpy(sum, y, n * sizeof *y);
    if (n < PIECE) memset(sum + n, 0, (PIECE - n) * sizeof *sum);
    for (size_t i = 0; i < PIECE; i++) sum[i] += w * e[i];
    memcpy(y, sum, n * sizeof *y);
}

SOFTMAX_INLINE void back_row(float *dy, const float *x, size_t n, softmax_row s, float w)
{
    const float top = (float)s.top, scale = (float)((double)w / s.sum);
    float e[PIECE], z[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t m = piece_at(i, n);
        exp_piece(e, z, x + i, m, top, 1);
        add_piece(dy + i, e, m, scale);
    }
}

/* log p_i - log q_i = by ((t_i - top_t) - (y_i - top_y)) - (log sum_t - log sum_y): the tops are
 * taken away first, since logits of 1e4 would lose what is to be seen. Where p_i is 0 its term is
 * 0, whatever the other factor. */
SOFTMAX_INLINE double kl_row(float *dy, const float *y, softmax_row q, const float *t,
                             softmax_row p, size_t n, float by, float w)
{
    const float qy = (float)(1 / q.sum), pt = (float)(1 / p.sum);
    const float apart = (float)(log(p.sum) - log(q.sum));
    float ey[PIECE], zy[PIECE], et[PIECE], zt[PIECE], term[PIECE];
    double kl = 0;
    for (size_t i = 0; i < n; i += PIECE) {
        const size_t m = piece_at(i, n);
        exp_piece(ey, zy, y + i, m, (float)q.top, by);
        exp_piece(et, zt, t + i, m, (float)p.top, by);
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

/* ---- f32, chosen at run time
 * --------------------------------------------------------------------- */

typedef struct kernels {
    softmax_row (*of)(const float *x, size_t n, float by);
    void (*back)(float *dy, const float *x, size_t n, softmax_row s, float w);
    double (*kl)(float *dy, const float *y, softmax_row q, const float *t, softmax_row p, size_t n,
                 float by, float w);
} kernels;

static softmax_row of_plain(const float *x, size_t n, float by)
{
    return of_row(x, n, by);
}
static void back_plain(float *dy, const float *x, size_t n, softmax_row s, float w)
{
    back_row(dy, x, n, s, w);
}
static double kl_plain(float *dy, const float *y, softmax_row q, const float *t, softmax_row p,
                       size_t n, float by, float w)
{
    return kl_row(dy, y, q, t, p, n, by, w);
}

#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl")))

AVX2 static softmax_row of_avx2(const float *x, size_t n, float by)
{
    return of_row(x, n, by);
}
AVX2 static void back_avx2(float *dy, const float *x, size_t n, softmax_row s, float w)
{
    back_row(dy, x, n, s, w);
}
AVX2 static double kl_avx2(float *dy, const float *y, softmax_row q, const float *t, softmax_row p,
                           size_t n, float by, float w)
{
    return kl_row(dy, y, q, t, p, n, by, w);
}
AVX512 static softmax_row of_avx512(const float *x, size_t n, float by)
{
    return of_row(x, n, by);
}
AVX512 static void back_avx512(float *dy, const float *x, size_t n, softmax_row s, float w)
{
    back_row(dy, x, n, s, w);
}
AVX512 static double kl_avx512(float *dy, const float *y, softmax_row q, const float *t,
                               softmax_row p, size_t n, float by, float w)
{
    return kl_row(dy, y, q, t, p, n, by, w);
}
#endif

static kernels best(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return (kernels){of_avx512, back_avx512, kl_avx512};
    if (__builtin_cpu_supports("avx2")) return (kernels){of_avx2, back_avx2, kl_avx2};
#endif
    return (kernels){of_plain, back_plain, kl_plain};
}

softmax_row softmax_row_f32(const float *x, size_t n, float by)
{
    return best().of(x, n, by);
}

void softmax_backward_f32(float *dy, const float *x, size_t n, softmax_row s, float w)
{
    best().back(dy, x, n, s, w);
}

double softmax_kl_f32(float *dy, const float *y, softmax_row q, const float *t, softmax_row p,
                      size_t n, float by, float w)
{
    return best().kl(dy, y, q, t, p, n, by, w);
}

/* ---- f64 ---------------------------------------------------------------------------------------
 */

softmax_row softmax_row_f64(const double *x, size_t n, double by)
{
    softmax_row s = {-INFINITY, 0};
    for (size_t i = 0; i < n; i++) s.top = x[i] > s.top ? x[i] : s.top;
    for (size_t i = 0; i < n; i++) s.sum += exp(by * (x[i] - s.top));
    return s;
}

void softmax_backward_f64(double *dy, const double *x, size_t n, softmax_row s, double w)
{
    for (size_t i = 0; i < n; i++) dy[i] += w * (exp(x[i] - s.top) / s.sum);
}

double softmax_kl_f64(double *dy, const double *y, softmax_row q, const double *t, softmax_row p,
                      size_t n, double by, double w)
{
    const double apart = log(p.sum) - log(q.sum);
    double kl = 0;
    for (size_t i = 0; i < n; i++) {
        const double a = exp(by * (t[i] - p.top)) / p.sum, b = exp(by * (y[i] - q.top)) / q.sum;
        const double lead = (t[i] - p.top) - (y[i] - q.top);
        if (a > 0 || isnan(a)) kl += a * (by * lead - apart);
        dy[i] += w * (b - a);
    }
    return kl;
}
