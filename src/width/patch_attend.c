/* patch_attend.c - softmax heads of one row, o = sum_j p_j v_j, and how far they may be from the
 * exact ones.
 *
 * Known are f64 vectors Q, K_j, V_j; the exact q, k_j, v_j are within eq, ek_j, ev_j of them. Let
 * P_j be the weights and O the output that real arithmetic would give at Q, K, V. The exact scores
 * differ from those by, up to a number that is the same for all keys,
 *     b_j = scale ( -dq.(K_j - C) - (Q - dq).dk_j ),    C = sum_j P_j K_j,
 *     |b_j| <= d = |scale| ( 2 eq max_j |K_j - c| + (|Q| + eq) max_j ek_j )     for any point c,
 * and p_j = P_j e^(b_j) / Z, e^-d <= Z <= e^d. As sum_j P_j (V_j - O) = 0,
 *     sum_j (p_j - P_j) V_j = 1/Z sum_j P_j (e^(b_j) - 1)(V_j - O),
 * where e^b - 1 = b + rho, |rho| <= d^2 e^d / 2. With S_v^2 = sum_j P_j |V_j - O|^2 and S_k^2 the
 * same for keys, Cauchy-Schwarz gives
 *     |o - O| <= e^2d sum_j P_j ev_j
 *                + e^d S_v ( |scale| eq S_k + |scale| (|Q| + eq) E + d^2 e^d / 2 )
 * with E^2 = sum_j P_j ek_j^2. A variance is least around the mean: S_k^2 may be taken around c,
 * and S_v^2 = sum_j P_j |V_j|^2 - |O|^2 needs no vector beside O.
 *
 * Computed are weights W_j: scores off by gamma_{dk+4} |scale||Q||K|, the largest one subtracted (u
 * times the range), exp (8 u): all of it a movement of the scores by at most m; then sums and a
 * division, off by gamma_{2n+8} max|V_j| in all. So the computed output is within
 *     e^m S_v (m + m^2 e^m / 2) + gamma_{2n+8} max|V_j|
 * of O, P_j <= g W_j with g = e^2m (1 + gamma_{2n+8}), and what is computed for S_v^2 is off by
 * gamma_{6n+2dv+32} max|V_j|^2 before it is multiplied by g.
 *
 * All this for d, m <= 1/10; beyond, |o - O| <= 4 max|V_j| + max ev_j. */
#include "patch.h"
#include "linalg/bounds.h"
#include "linalg/elementary.h"
#include "linalg/matrix.h"

#define UNIT  PARE_UNIT_F64
#define SMALL 0.1

#define ALWAYS static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define AVX2   __attribute__((target("avx2,fma")))
#define AVX512 __attribute__((target("avx512f,avx512vl,avx512dq")))
#endif

/* One row's keys as one head sees them. */
typedef struct keys {
    const patch_layer *l;
    const patch_view *v;
    const patch_head *hd;
    const uint32_t *idx;
    size_t n, g;    /* how many; which head */
    double *weight; /* n: computed, not divided by their sum */
} keys;

static const patch_rows *side_of(const patch_view *v, uint32_t *row)
{
    if (*row < v->split) return v->base;
    *row -= (uint32_t)v->split;
    return v->own;
}

/* ---- the sums ------------------------------------------------------------------------------- */

enum { LANES = 8 };

/* Eight partial sums in a fixed order: what a compiler may turn into vectors. */
ALWAYS double dot(const double *a, const double *b, size_t n)
{
    double part[LANES] = {0}, s = 0;
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t t = 0; t < LANES; t++) part[t] += a[i + t] * b[i + t];
    for (; i < n; i++) s += a[i] * b[i];
    return s + (((part[0] + part[4]) + (part[1] + part[5])) +
                ((part[2] + part[6]) + (part[3] + part[7])));
}

ALWAYS void add_times(double *y, double by, const double *x, size_t n)
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        double part[LANES];
        for (size_t t = 0; t < LANES; t++) part[t] = y[i + t] + by * x[i + t];
        for (size_t t = 0; t < LANES; t++) y[i + t] = part[t];
    }
    for (; i < n; i++) y[i] += by * x[i];
}

ALWAYS void scores_of(const keys *k, const double *q)
{
    for (size_t j = 0; j < k->n; j++) {
        uint32_t row = k->idx[j];
        const patch_rows *const t = side_of(k->v, &row);
        k->weight[j] = k->hd->scale * dot(q, pare_row(&t->qkv, row) + k->hd->k, k->hd->dk);
    }
}

ALWAYS void values_of(const keys *k, double *out)
{
    for (size_t c = 0; c < k->hd->dv; c++) out[c] = 0;
    for (size_t j = 0; j < k->n; j++) {
        uint32_t row = k->idx[j];
        const patch_rows *const t = side_of(k->v, &row);
        add_times(out, k->weight[j], pare_row(&t->qkv, row) + k->hd->v, k->hd->dv);
    }
}

static void scores_plain(const keys *k, const double *q)
{
    scores_of(k, q);
}
static void values_plain(const keys *k, double *out)
{
    values_of(k, out);
}
#if defined(__x86_64__)
AVX2 static void scores_avx2(const keys *k, const double *q)
{
    scores_of(k, q);
}
AVX2 static void values_avx2(const keys *k, double *out)
{
    values_of(k, out);
}
AVX512 static void scores_avx512(const keys *k, const double *q)
{
    scores_of(k, q);
}
AVX512 static void values_avx512(const keys *k, double *out)
{
    values_of(k, out);
}
#endif

typedef struct kernel {
    void (*scores)(const keys *k, const double *q);
    void (*values)(const keys *k, double *out);
} kernel;

static kernel best_kernel(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return (kernel){scores_avx512, values_avx512};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (kernel){scores_avx2, values_avx2};
#endif
    return (kernel){scores_plain, values_plain};
}

/* e^(score - largest) in the place of scores; their sum and the range of the scores. */
static double weigh(const keys *k, double *range)
{
    double top = -INFINITY, low = INFINITY, sum = 0;
    for (size_t j = 0; j < k->n; j++) {
        if (k->weight[j] > top) top = k->weight[j];
        if (k->weight[j] < low) low = k->weight[j];
    }
    for (size_t j = 0; j < k->n; j++) sum += k->weight[j] = pare_exp(k->weight[j] - top);
    *range = top - low;
    return sum;
}

/* ---- the radius ----------------------------------------------------------------------------- */

/* Weighted sums and largest values over the keys; W_j are the divided weights. */
typedef struct survey {
    double ev, ek2, off2, v2;                /* sum_j W_j of ev, ek^2, |K - c|^2, |V|^2 */
    double k_most, v_most, ek_most, ev_most; /* |K|, |V|, ek, ev */
    double off2_most;
} survey;

static void more(double *most, double x)
{
    if (!(x <= *most)) *most = x; /* a nan stays */
}

static survey survey_of(const keys *k, double sum)
{
    survey s = {0};
    for (size_t j = 0; j < k->n; j++) {
        uint32_t row = k->idx[j];
        const patch_rows *const t = side_of(k->v, &row);
        const patch_mark *const m = &t->mark[row * k->l->nheads + k->g];
        const double w = k->weight[j] / sum;
        s.ev += w * m->v_rad;
        s.ek2 += w * (m->k_rad * m->k_rad);
        s.off2 += w * m->k_off2;
        s.v2 += w * (m->v_norm * m->v_norm);
        more(&s.k_most, m->k_norm);
        more(&s.v_most, m->v_norm);
        more(&s.ek_most, m->k_rad);
        more(&s.ev_most, m->v_rad);
        more(&s.off2_most, m->k_off2);
    }
    return s;
}

static double gamma_n(size_t n)
{
    return (double)n * UNIT * (1 + 0x1p-20); /* n is far below 2^30 */
}

/* e^x for 0 <= x <= 1/5, from above. */
static double grows(double x)
{
    return 1 + x + x * x;
}

/* e^x - 1 for the first-order parts, x <= 1/10: x + x^2 e^x / 2. */
static double lifts(double x)
{
    return x + 0.56 * x * x;
}

static double radius_of(const keys *k, const patch_mark *q, const survey *s, double range,
                        const double *out)
{
    const patch_head *const hd = k->hd;
    const size_t n = k->n;
    const double scale = fabs(hd->scale), reach = scale * (q->q_norm + q->q_rad);
    const double sums = gamma_n(2 * n + 8) * s->v_most;
    const double m = hd->round * scale * q->q_norm * s->k_most + UNIT * (range + 10);
    const double d = 2 * scale * q->q_rad * sqrt(s->off2_most) + reach * s->ek_most;
    if (!(s->k_most <= PATCH_BIG && s->v_most <= PATCH_BIG && reach <= PATCH_BIG)) return INFINITY;
    if (n == 1) return raised(s->ev_most + sums);
    if (!(d <= SMALL && m <= SMALL)) return raised(4 * s->v_most + s->ev_most + sums);
    const double g = grows(2 * m) * (1 + gamma_n(2 * n + 8));
    double o2 = 0;
    for (size_t c = 0; c < hd->dv; c++) o2 += out[c] * out[c];
    const double spread = s->v2 - o2, lost = gamma_n(6 * n + 2 * hd->dv + 32);
    const double sv = sqrt(g * ((spread > 0 ? spread : 0) + lost * (s->v_most * s->v_most)));
    const double sk = sqrt(g * s->off2), e = sqrt(g * s->ek2);
    const double first = scale * q->q_rad * sk + reach * e + 0.56 * d * d;
    const double moved = grows(2 * d) * g * s->ev + grows(d) * sv * first;
    return raised(moved + grows(m) * sv * lifts(m) + sums);
}

/* ---- a row ---------------------------------------------------------------------------------- */

double patch_attend(double *out, const patch_layer *l, const patch_view *v, size_t i,
                    double *weight)
{
    const kernel kn = best_kernel();
    const size_t n = v->ptr[i + 1] - v->ptr[i];
    uint32_t self = v->self[i];
    const patch_rows *const own = side_of(v, &self);
    double squares = 0;
    for (size_t c = 0; n == 0 && c < l->pooled; c++) out[c] = 0;
    for (size_t g = 0; n > 0 && g < l->nheads; g++) {
        const patch_head *const hd = &l->heads[g];
        const keys k = {l, v, hd, v->idx + v->ptr[i], n, g, weight};
        double range, *const o = out + hd->o;
        kn.scores(&k, pare_row(&own->qkv, self) + hd->q);
        const double sum = weigh(&k, &range);
        kn.values(&k, o);
        for (size_t c = 0; c < hd->dv; c++) o[c] /= sum;
        const survey s = survey_of(&k, sum);
        const double r = radius_of(&k, &own->mark[self * l->nheads + g], &s, range, o);
        squares += r * r;
    }
    return n == 0 ? 0 : raised(sqrt(squares));
}
