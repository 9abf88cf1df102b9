/* adamw.c - AdamW (Loshchilov, Hutter 2019), gradient clipping, and the cosine schedule.
 *
 *   m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
 *   x = x - lr ( (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps) + decay x )
 *
 * Every number is computed by itself with IEEE operations, and nothing is fused: threads and
 * instruction sets change no bit. */
#include "base/vexp.h"
#include "optimizer.h"
#include "adamw.h"
#include <math.h>

enum { LANES = 16, BLOCK = 1 << 14 };

static void step_plain(adamw_piece p, size_t n, const adamw_rates *r)
{
    for (size_t i = 0; i < n; i++) {
        const float g = p.g[i], x = p.x[i];
        p.m[i] = r->b1 * p.m[i] + r->a1 * g;
        p.v[i] = r->b2 * p.v[i] + r->a2 * (g * g);
        p.x[i] = (x - r->decay * x) - r->lr * (p.m[i] / (sqrtf(p.v[i]) * r->root + r->eps));
    }
}

/* By hand, since sqrtf may set errno and is no vector operation to a compiler. */
#if defined(__x86_64__)
PARE_AVX512 static void step_avx512(adamw_piece p, size_t n, const adamw_rates *r)
{
    const __m512 b1 = _mm512_set1_ps(r->b1), a1 = _mm512_set1_ps(r->a1);
    const __m512 b2 = _mm512_set1_ps(r->b2), a2 = _mm512_set1_ps(r->a2);
    const __m512 eps = _mm512_set1_ps(r->eps), root = _mm512_set1_ps(r->root);
    const __m512 lr = _mm512_set1_ps(r->lr), decay = _mm512_set1_ps(r->decay);
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 on = (__mmask16)(n - i >= 16 ? 0xffff : (1u << (n - i)) - 1);
        const __m512 g = _mm512_maskz_loadu_ps(on, p.g + i), x = _mm512_maskz_loadu_ps(on, p.x + i);
        __m512 m = _mm512_maskz_loadu_ps(on, p.m + i), v = _mm512_maskz_loadu_ps(on, p.v + i);
        m = _mm512_add_ps(_mm512_mul_ps(b1, m), _mm512_mul_ps(a1, g));
        v = _mm512_add_ps(_mm512_mul_ps(b2, v), _mm512_mul_ps(a2, _mm512_mul_ps(g, g)));
        const __m512 divisor = _mm512_add_ps(_mm512_mul_ps(_mm512_sqrt_ps(v), root), eps);
        const __m512 change = _mm512_mul_ps(lr, _mm512_div_ps(m, divisor));
        const __m512 decayed = _mm512_sub_ps(x, _mm512_mul_ps(decay, x));
        _mm512_mask_storeu_ps(p.m + i, on, m);
        _mm512_mask_storeu_ps(p.v + i, on, v);
        _mm512_mask_storeu_ps(p.x + i, on, _mm512_sub_ps(decayed, change));
    }
}

PARE_AVX2 static void step_avx2(adamw_piece p, size_t n, const adamw_rates *r)
{
    const __m256 b1 = _mm256_set1_ps(r->b1), a1 = _mm256_set1_ps(r->a1);
    const __m256 b2 = _mm256_set1_ps(r->b2), a2 = _mm256_set1_ps(r->a2);
    const __m256 eps = _mm256_set1_ps(r->eps), root = _mm256_set1_ps(r->root);
    const __m256 lr = _mm256_set1_ps(r->lr), decay = _mm256_set1_ps(r->decay);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m256 g = _mm256_loadu_ps(p.g + i), x = _mm256_loadu_ps(p.x + i);
        __m256 m = _mm256_loadu_ps(p.m + i), v = _mm256_loadu_ps(p.v + i);
        m = _mm256_add_ps(_mm256_mul_ps(b1, m), _mm256_mul_ps(a1, g));
        v = _mm256_add_ps(_mm256_mul_ps(b2, v), _mm256_mul_ps(a2, _mm256_mul_ps(g, g)));
        const __m256 divisor = _mm256_add_ps(_mm256_mul_ps(_mm256_sqrt_ps(v), root), eps);
        const __m256 change = _mm256_mul_ps(lr, _mm256_div_ps(m, divisor));
        const __m256 decayed = _mm256_sub_ps(x, _mm256_mul_ps(decay, x));
        _mm256_storeu_ps(p.m + i, m);
        _mm256_storeu_ps(p.v + i, v);
        _mm256_storeu_ps(p.x + i, _mm256_sub_ps(decayed, change));
    }
    step_plain((adamw_piece){p.x + i, p.m + i, p.v + i, p.g + i}, n - i, r);
}
#endif

size_t adamw_variants(adamw_variant out[3])
{
    size_t n = 0;
#if defined(__x86_64__)
    if (simd_best() >= SIMD_AVX512) out[n++] = (adamw_variant){"avx512", step_avx512};
    if (simd_best() >= SIMD_AVX2) out[n++] = (adamw_variant){"avx2", step_avx2};
#endif
    out[n++] = (adamw_variant){"portable", step_plain};
    return n;
}

typedef struct update {
    const pare_params *p;
    adamw_piece all;
    adamw_rates matrix, vector;
    adamw_variant with;
} update;

/* Numbers [from, to), slot by slot: vectors may decay differently. */
static void update_block(void *ctx, size_t block)
{
    const update *const u = ctx;
    const size_t from = block * BLOCK;
    const size_t to = u->p->count - from < BLOCK ? u->p->count : from + BLOCK;
    for (size_t s = 0; s < u->p->nslots; s++) {
        const pare_slot *const k = &u->p->slots[s];
        const size_t end = k->offset + k->rows * k->cols;
        const size_t a = k->offset > from ? k->offset : from, b = end < to ? end : to;
        if (a >= b) continue;
        const adamw_piece at = {u->all.x + a, u->all.m + a, u->all.v + a, u->all.g + a};
        u->with.run(at, b - a, k->vector ? &u->vector : &u->matrix);
    }
}

void pare_adamw_step(pare_params *p, const float *grad, const pare_adamw_state *s, double lr,
                     const pare_adamw_opts *o, const pare_exec *exec)
{
    PARE_ASSERT(p->dtype == PARE_F32 && s->step >= 1);
    const double t = (double)s->step;
    adamw_variant best[3];
    adamw_variants(best);
    update u = {.p = p, .all = {p->values, s->m, s->v, grad}, .with = best[0]};
    u.vector = (adamw_rates){.b1 = (float)o->beta1,
                             .a1 = (float)(1 - o->beta1),
                             .b2 = (float)o->beta2,
                             .a2 = (float)(1 - o->beta2),
                             .eps = (float)o->eps,
                             .lr = (float)(lr / (1 - pow(o->beta1, t))),
                             .root = (float)(1 / sqrt(1 - pow(o->beta2, t)))};
    u.matrix = u.vector;
    u.matrix.decay = (float)(lr * o->weight_decay);
    if (o->decay_vectors) u.vector.decay = u.matrix.decay;
    pare_parallel(exec, (p->count + BLOCK - 1) / BLOCK, update_block, &u);
}

/* ---- clipping ------------------------------------------------------------------------------- */

enum { PARTS = 256 };

typedef struct clipping {
    float *grad;
    size_t count, per;
    float scale;
    double part[PARTS];
} clipping;

static size_t part_end(const clipping *c, size_t block)
{
    const size_t end = (block + 1) * c->per;
    return end < c->count ? end : c->count;
}

/* Squares of f32 in f64 neither overflow nor vanish. */
static void square_part(void *ctx, size_t block)
{
    clipping *const c = ctx;
    double lane[LANES] = {0}, sum = 0;
    size_t i = block * c->per;
    const size_t end = part_end(c, block);
    for (; i + LANES <= end; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            const double g = (double)c->grad[i + l];
            lane[l] += g * g;
        }
    for (; i < end; i++) lane[0] += (double)c->grad[i] * (double)c->grad[i];
    for (size_t l = 0; l < LANES; l++) sum += lane[l];
    c->part[block] = sum;
}

static void scale_part(void *ctx, size_t block)
{
    const clipping *const c = ctx;
    for (size_t i = block * c->per; i < part_end(c, block); i++) c->grad[i] *= c->scale;
}

double pare_clip(float *grad, size_t count, double clip, const pare_exec *exec)
{
    clipping c = {.grad = grad, .count = count, .per = (count + PARTS - 1) / PARTS};
    if (count == 0) return 0;
    const size_t blocks = (count + c.per - 1) / c.per;
    pare_parallel(exec, blocks, square_part, &c);
    double sum = 0;
    for (size_t b = 0; b < blocks; b++) sum += c.part[b];
    const double norm = sqrt(sum);
    if (clip > 0 && norm > clip && isfinite(norm)) {
        c.scale = (float)(clip / norm);
        pare_parallel(exec, blocks, scale_part, &c);
    }
    return norm;
}

/* ---- schedule ------------------------------------------------------------------------------- */

double pare_cosine(uint64_t step, uint64_t steps, uint64_t warmup, double lr, double last)
{
    const double pi = 3.14159265358979323846;
    if (step < warmup) return lr * (double)(step + 1) / (double)(warmup + 1);
    if (step >= steps) return last;
    const double part = (double)(step - warmup) / (double)(steps - warmup);
    return last + (lr - last) * (1 + cos(pi * part)) / 2;
}
