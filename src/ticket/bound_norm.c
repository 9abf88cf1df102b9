/* bound_norm.c - norms in both models (docs/theory/ticket.md "Blocks and models (Theorems 6, 11,
 * 14)"; Otsuka 2025 has none).
 *
 * Layer and rms: phi(x) = P x / sqrt((|P x|^2 + shift) / D + eps) = sqrt(D) P x / s(x),
 * s(x) = sqrt(|P x|^2 + c), c = shift + D eps. With |x - x~| <= d and |P x| >= m,
 *     |phi(x) - phi(x~)| <= sqrt(D) d / sqrt(s(x) s(x~)),   s(x~)^2 >= max(0, m - d)^2 + c
 * (proof: src/cert/enclose_norm.c), at most 2 sqrt(D), and |phi(x)| <= sqrt(D) |x| / sqrt(|x|^2+c).
 * Gains and biases of the two models may differ:
 *     |gain phi(x) - gain~ phi(x~)| <= |gain|_max |phi - phi~| + |gain - gain~|_max |phi~|.
 * Batch (stored statistics) and mean norms are affine and must be the same in both. */
#include "bounds.h"
#include "linalg/bounds.h"
#include "model/model_equality.h"
#include <math.h>
#include <stdarg.h>
#include <string.h>

void bounds_refuse(char *why, const char *fmt, ...)
{
    va_list args;
    if (*why) return;
    va_start(args, fmt);
    vsnprintf(why, 200, fmt, args);
    va_end(args);
}

static pare_ub length(const pare_weight *w)
{
    return pare_has(w) ? pare_norm_fro(w) : pare_ub_exact(0);
}

static double entry(const pare_weight *w, size_t i, double absent)
{
    return pare_has(w) ? pare_weight_at(w, i) : absent;
}

/* Of f minus g, entry by entry: the largest, and the length. */
static void gap_of(pare_ub *most, pare_ub *two, const pare_weight *f, const pare_weight *g,
                   size_t n, double absent)
{
    pare_ub sum = pare_ub_exact(0);
    *most = pare_ub_exact(0);
    for (size_t i = 0; i < n; i++) {
        const double x = entry(f, i, absent), y = entry(g, i, absent);
        const pare_ub gap = x == y ? pare_ub_exact(0) : pare_ub_of(x - y);
        *most = pare_ub_max(*most, gap);
        sum = pare_ub_fma(gap, gap, sum);
    }
    *two = pare_ub_sqrt(sum);
}

static pare_ub gain_of(const pare_norm *n)
{
    return pare_has(&n->gain) ? pare_norm_max(&n->gain) : pare_ub_exact(1);
}

/* Largest |gain / sqrt(var + eps)|, and the length of offset - mean. */
static void batch_sizes(norm_sizes *s, const pare_norm *n, size_t width)
{
    pare_ub scale = pare_ub_exact(0);
    for (size_t i = 0; i < width; i++) {
        const double var = nextafter(pare_weight_at(&n->var, i) + n->eps, 0);
        const double root = var > 0 ? nextafter(sqrt(var), 0) : 0;
        scale = pare_ub_max(scale, pare_ub_div(pare_ub_exact(entry(&n->gain, i, 1)), root));
    }
    s->gain_f = s->gain_g = scale;
    s->offset = pare_ub_add(s->offset, length(&n->mean));
}

static void dividing_sizes(norm_sizes *s, const pare_norm *f)
{
    const double c = f->shift + f->divisor * f->eps;
    s->root = pare_ub_sqrt(pare_ub_exact(f->divisor));
    s->c = c > 0 ? c * (1 - 0x1p-50) : 0;
}

norm_sizes norm_sizes_of(const pare_norm *f, const pare_norm *g, size_t width, char *why)
{
    norm_sizes s = {.kind = f->kind};
    pare_ub unused;
    if (f->kind == PARE_NORM_NONE && g->kind == PARE_NORM_NONE) return s;
    const bool divides = f->kind == PARE_NORM_LAYER || f->kind == PARE_NORM_RMS;
    const bool same = divides
                          ? f->kind == g->kind && f->eps == g->eps && f->divisor == g->divisor &&
                                f->shift == g->shift && pare_same_weight(&f->offset, &g->offset)
                          : pare_same_norm(f, g);
    if (!same) bounds_refuse(why, "a norm of the ticket is not the target's");
    s.gain_f = gain_of(f);
    s.gain_g = gain_of(g);
    s.bias_f = length(&f->bias);
    s.bias_g = length(&g->bias);
    s.offset = length(&f->offset);
    gap_of(&s.gain_e, &unused, &f->gain, &g->gain, width, 1);
    gap_of(&unused, &s.bias_e, &f->bias, &g->bias, width, 0);
    if (f->kind == PARE_NORM_BATCH) batch_sizes(&s, f, width);
    if (divides) dividing_sizes(&s, f);
    return s;
}

/* sqrt(D) x / sqrt(x^2 + c): grows with x, at most sqrt(D). */
static pare_ub normed_length(const norm_sizes *n, pare_ub x)
{
    if (!(n->c > 0) || isinf(x.v)) return n->root;
    const double low = sqrt(x.v * x.v * (1 - 0x1p-50) + n->c) * (1 - 0x1p-50);
    return pare_ub_min(n->root, pare_ub_mul(n->root, pare_ub_div(x, low)));
}

/* Lower bounds on s(x) and s(x~). */
static double root_below(double least, double c)
{
    const double l = least > 0 ? least : 0;
    return sqrt(l * l * (1 - 0x1p-50) + c) * (1 - 0x1p-50);
}

static pare_ub normed_distance(const norm_sizes *n, span s)
{
    const double other = s.least - s.d.v;
    const double near = root_below(s.least, n->c),
                 far = root_below(other > 0 ? other * (1 - 0x1p-50) : 0, n->c);
    const double both = sqrt(near) * sqrt(far) * (1 - 0x1p-50);
    const pare_ub most = pare_ub_mul(pare_ub_exact(2), n->root);
    if (s.d.v == 0) return pare_ub_exact(0);
    return pare_ub_min(most, pare_ub_mul(n->root, pare_ub_div(s.d, both)));
}

static span dividing_move(const norm_sizes *n, span s)
{
    const pare_ub f = normed_length(n, pare_ub_add(s.f, n->offset)),
                  g = normed_length(n, pare_ub_add(s.g, n->offset));
    const pare_ub d = pare_ub_min(normed_distance(n, s), pare_ub_add(f, g));
    span y = {pare_ub_fma(n->gain_f, f, n->bias_f), pare_ub_fma(n->gain_g, g, n->bias_g), {0}, 0};
    const pare_ub by_g = pare_ub_fma(n->gain_f, d, pare_ub_mul(n->gain_e, g)),
                  by_f = pare_ub_fma(n->gain_g, d, pare_ub_mul(n->gain_e, f));
    y.d = pare_ub_add(pare_ub_min(by_f, by_g), n->bias_e);
    return span_tightened(y);
}

span norm_move(const norm_sizes *n, span s)
{
    if (n->kind == PARE_NORM_NONE) return s;
    if (n->kind == PARE_NORM_LAYER || n->kind == PARE_NORM_RMS) return dividing_move(n, s);
    const span y = {pare_ub_fma(n->gain_f, pare_ub_add(s.f, n->offset), n->bias_f),
                    pare_ub_fma(n->gain_g, pare_ub_add(s.g, n->offset), n->bias_g),
                    pare_ub_mul(n->gain_f, s.d), 0};
    return span_tightened(y);
}
