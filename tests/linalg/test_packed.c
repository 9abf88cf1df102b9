/* Tests src/linalg/packed*.c: products with packed weights are those of a plain loop, by every
 * kernel this machine can run. */
#include "base/array.h"
#include "linalg/packed.h"
#include <math.h>
#include <pare_test.h>

typedef struct kernel {
    const char *name;
    packed_fn *f32, *int8;
    packed_round_fn *round;
} kernel;

static size_t kernels(kernel k[4])
{
    size_t n = 0;
    k[n++] = (kernel){"portable", packed_f32_portable, packed_int8_portable, packed_round_portable};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        k[n++] = (kernel){"avx2", packed_f32_avx2, packed_int8_avx2, packed_round_avx2};
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        k[n++] = (kernel){"avx512", packed_f32_avx512, packed_int8_avx2, packed_round_avx512};
        if (__builtin_cpu_supports("avx512vnni"))
            k[n++] = (kernel){"vnni", packed_f32_avx512, packed_int8_vnni, packed_round_avx512};
    }
#endif
    return n;
}

/* ---- problems ---------------------------------------------------------------------------------- */

typedef struct problem {
    pare_arena *arena;
    pare_int_groups g;
    pare_weight w, expanded; /* packed, and as f32 numbers */
    const packed_matrix *m;
    float *x, *bias;
    size_t n, ldx;
} problem;

/* extreme: every integer and every entry of x is the largest or the smallest that there is. */
static problem make(size_t out, size_t in, size_t group, unsigned bits, bool affine, size_t n,
                    bool extreme, uint64_t seed)
{
    problem p = {.arena = pare_arena_new(), .n = n, .ldx = in + 3};
    pare_rng r = pare_rng_at(seed, 5);
    const size_t groups = (in + group - 1) / group;
    int8_t *const q = pare_alloc(p.arena, out * in, 1);
    float *const scale = pare_alloc(p.arena, out * groups, sizeof *scale);
    float *const offset = pare_alloc(p.arena, out * groups, sizeof *offset);
    float *const w = pare_alloc(p.arena, out * in, sizeof *w);
    p.x = pare_alloc(p.arena, n * p.ldx, sizeof *p.x);
    p.bias = pare_alloc(p.arena, pare_padded(out), sizeof *p.bias);
    const int most = (1 << bits) - 1, zero = affine && bits < 8 ? 0 : 1 << (bits - 1);
    for (size_t i = 0; i < out * in; i++)
        q[i] = (int8_t)((extreme ? (seed % 3 == 0 || pare_rng_below(&r, 2) ? 0 : most)
                                 : (int)pare_rng_below(&r, (uint64_t)most + 1)) -
                        zero);
    for (size_t i = 0; i < out * groups; i++) {
        scale[i] = (float)(0.01 + pare_rng_uniform(&r));
        offset[i] = (float)pare_rng_normal(&r);
    }
    for (size_t i = 0; i < n * p.ldx; i++)
        p.x[i] =
            extreme ? (pare_rng_below(&r, 2) || seed % 2 ? -1 : 1) : (float)pare_rng_normal(&r);
    for (size_t o = 0; o < out; o++) p.bias[o] = (float)pare_rng_normal(&r);
    p.g = (pare_int_groups){.rows = out,
                            .cols = in,
                            .group = group,
                            .bits = bits,
                            .q = q,
                            .scale = scale,
                            .offset = affine ? offset : NULL};
    for (size_t i = 0; i < out * in; i++) {
        const size_t at = i / in * groups + i % in / group;
        const float product = scale[at] * (float)q[i];
        w[i] = affine ? product + offset[at] : product;
    }
    p.expanded = (pare_weight){PARE_F32, out, in, w};
    pare_err err = {0};
    assert_ok(packed_integers(&p.w, p.arena, &p.g, &err), &err);
    p.m = packed_of(&p.w);
    return p;
}

static packed_job job_of(const problem *p, float *y, size_t ldy, size_t outs, bool add)
{
    return (packed_job){.p = {y, ldy, outs, p->m, p->bias, p->x, p->ldx, p->n, add},
                        .panels = (p->g.rows + PARE_PANEL - 1) / PARE_PANEL};
}

/* Scale and offset of entry (o, c). */
static double scale_at(const problem *p, size_t o, size_t c, double *offset)
{
    const size_t at = o * p->m->groups + c / p->m->group;
    *offset = p->g.offset ? (double)p->g.offset[at] : 0;
    return (double)p->g.scale[at];
}

/* ---- rows of f32 ------------------------------------------------------------------------------- */

/* sum_c x_c (s q + m) + bias, and the sum of the absolute values of all its terms. */
static double exact(const problem *p, size_t i, size_t o, double *size)
{
    double sum = (double)p->bias[o];
    *size = fabs(sum);
    for (size_t c = 0; c < p->g.cols; c++) {
        double m;
        const double s = scale_at(p, o, c, &m), x = (double)p->x[i * p->ldx + c];
        const double q = (double)p->g.q[o * p->g.cols + c];
        sum += x * s * q + x * m;
        *size += fabs(x * s * q) + fabs(x * m);
    }
    return sum;
}

static void check_f32(const problem *p, const kernel *k, bool padded, bool add)
{
    const size_t outs = padded ? pare_padded(p->g.rows) : p->g.rows, ldy = outs + 5;
    float *const y = pare_alloc(p->arena, p->n * ldy, sizeof *y);
    float *const sums = pare_alloc(p->arena, p->n * p->m->groups, sizeof *sums);
    packed_job j = job_of(p, y, ldy, outs, add);
    const double gamma = (double)(2 * p->g.cols + 8) * 0x1p-24 * 1.01;
    for (size_t i = 0; i < p->n * ldy; i++) y[i] = 7;
    for (size_t i = 0; i < p->n; i++)
        for (size_t c = 0; c < p->g.cols; c++)
            sums[i * p->m->groups + c / p->m->group] += p->x[i * p->ldx + c];
    j.sums = sums;
    k->f32(&j);
    for (size_t i = 0; i < p->n; i++)
        for (size_t o = 0; o < ldy; o++) {
            double size = 0, want = o < p->g.rows ? exact(p, i, o, &size) : 0;
            if (o >= outs || add) want += 7, size += 7;
            assert_near((double)y[i * ldy + o], want, gamma * size);
        }
}

static void every_kernel_gives_the_sum_of_a_plain_loop(void **state)
{
    (void)state;
    static const size_t in[] = {1, 7, 8, 20, 40, 72, 96}, out[] = {1, 15, 32, 33, 65, 130, 160},
                        n[] = {1, 2, 6, 7, 13}, group[] = {8, 16, 32, 96};
    kernel k[4];
    const size_t variants = kernels(k);
    for (size_t t = 0; t < 7 * 7 * 5 * 4; t += 1 + t % 3) {
        problem p = make(out[t % 7], in[t / 7 % 7], group[t / 49 % 4], (unsigned)(2 + t % 7),
                         t / 3 % 2, n[t / 196], false, t);
        for (size_t v = 0; v < variants; v++) check_f32(&p, &k[v], t % 2, t / 2 % 2);
        pare_arena_free(p.arena);
    }
}

/* ---- rows of integers -------------------------------------------------------------------------- */

typedef struct rounded {
    int8_t *q;
    float *scale;
    int32_t *sum;
} rounded;

static rounded round_with(const problem *p, const kernel *k)
{
    const size_t groups = p->m->groups, depth = p->m->depth;
    rounded r = {pare_alloc(p->arena, p->n * depth, 1),
                 pare_alloc(p->arena, p->n * groups, sizeof(float)),
                 pare_alloc(p->arena, p->n * groups, sizeof(int32_t))};
    for (size_t i = 0; i < p->n * depth; i++) r.q[i] = 99;
    for (size_t i = 0; i < p->n; i++) {
        const packed_rounding one = {p->x + i * p->ldx, p->g.cols,       depth,
                                     p->m->group,       r.q + i * depth, r.scale + i * groups,
                                     r.sum + i * groups};
        k->round(&one);
    }
    return r;
}

static void check_rounding(const problem *p, const rounded *r)
{
    const size_t groups = p->m->groups, depth = p->m->depth;
    for (size_t i = 0; i < p->n; i++)
        for (size_t g = 0; g < groups; g++) {
            float most = 0;
            int32_t sum = 0;
            const size_t from = g * p->m->group;
            const size_t end = from + p->m->group < p->g.cols ? from + p->m->group : p->g.cols;
            for (size_t c = from; c < end; c++) most = fmaxf(most, fabsf(p->x[i * p->ldx + c]));
            const double s = (double)r->scale[i * groups + g];
            assert_near(s, (double)most / 127, 1e-7 * (double)most);
            for (size_t c = from; c < end; c++) {
                const int8_t q = r->q[i * depth + c];
                sum += q;
                assert_true(q >= -127);
                assert_near((double)p->x[i * p->ldx + c], s * q, 0.5001 * s);
            }
            assert_int_equal(sum, r->sum[i * groups + g]);
            for (size_t c = p->g.cols; c < depth; c++) assert_int_equal(r->q[i * depth + c], 0);
        }
}

/* The integer sums are exact: what is left is a rounding for each group. */
static void check_int8(const problem *p, const kernel *k, bool padded, bool add)
{
    const size_t outs = padded ? pare_padded(p->g.rows) : p->g.rows, ldy = outs + 5;
    const size_t groups = p->m->groups;
    float *const y = pare_alloc(p->arena, p->n * ldy, sizeof *y);
    const rounded r = round_with(p, k);
    check_rounding(p, &r);
    packed_job j = job_of(p, y, ldy, outs, add);
    for (size_t i = 0; i < p->n * ldy; i++) y[i] = 7;
    j.q = r.q;
    j.scales = r.scale;
    j.qsums = r.sum;
    k->int8(&j);
    for (size_t i = 0; i < p->n; i++)
        for (size_t o = 0; o < ldy; o++) {
            double want = o < p->g.rows ? (double)p->bias[o] : 0, size = fabs(want);
            for (size_t g = 0; o < p->g.rows && g < groups; g++) {
                int64_t sum = 0, all = 0;
                const size_t from = g * p->m->group;
                const size_t end = from + p->m->group < p->g.cols ? from + p->m->group : p->g.cols;
                double m = 0;
                const double s = scale_at(p, o, from, &m), t = (double)r.scale[i * groups + g];
                for (size_t c = from; c < end; c++) {
                    sum += p->g.q[o * p->g.cols + c] * r.q[i * p->m->depth + c];
                    all += r.q[i * p->m->depth + c];
                }
                want += s * t * (double)sum + m * t * (double)all;
                size += fabs(s * t * (double)sum) + fabs(m * t * (double)all);
            }
            if (o >= outs || add) want += 7, size += 7;
            assert_near((double)y[i * ldy + o], want, (double)(4 * groups + 8) * 0x1p-24 * size);
        }
}

static void integer_sums_are_exact_in_every_kernel(void **state)
{
    (void)state;
    static const size_t in[] = {1, 7, 8, 20, 40, 72, 96}, out[] = {1, 15, 32, 33, 65, 130, 160},
                        n[] = {1, 3, 4, 12, 17}, group[] = {8, 16, 32, 96};
    kernel k[4];
    const size_t variants = kernels(k);
    for (size_t t = 0; t < 7 * 7 * 5 * 4; t += 1 + t % 3) {
        problem p = make(out[t % 7], in[t / 7 % 7], group[t / 49 % 4], (unsigned)(2 + t % 7),
                         t / 3 % 2, n[t / 196], false, t);
        for (size_t v = 0; v < variants; v++) check_int8(&p, &k[v], t % 2, t / 2 % 2);
        pare_arena_free(p.arena);
    }
}

/* All codes -128, or 127 and -128, against rows of -127 and 127, in groups so long that a sum of 16
 * bits, and a sum of 32 bits of more than 65536 of them, would overflow. */
static void the_largest_products_do_not_overflow(void **state)
{
    (void)state;
    kernel k[4];
    const size_t variants = kernels(k);
    for (size_t t = 0; t < 12; t++) {
        const size_t in = t < 8 ? 64 : PACKED_MOST_GROUP;
        problem p = make(33, in, in, t % 2 ? 8 : 4, t / 2 % 2, t < 8 ? 13 : 1, true, t);
        for (size_t v = 0; v < variants; v++) check_int8(&p, &k[v], true, false);
        pare_arena_free(p.arena);
    }
    assert_true(packed_takes(1 << 20, 32));
    assert_true(packed_takes(7, 7));
    assert_false(packed_takes(PACKED_MOST_GROUP + 1, PACKED_MOST_GROUP + 1));
    assert_false(packed_takes(64, 12));
}

/* Rows of zeros, of numbers too small to be told from them, and with a nan or an infinity. */
static void what_cannot_be_rounded_is_zero_or_nan(void **state)
{
    (void)state;
    kernel k[4];
    const size_t variants = kernels(k);
    const float first[] = {0, 1e-38f, -0x1p-101f, NAN, INFINITY, -INFINITY, 3e38f};
    for (size_t v = 0; v < variants; v++)
        for (size_t f = 0; f < 7; f++)
            for (size_t at = 0; at < 40; at += 13) {
                float x[40] = {0}, scale = 5;
                int8_t q[40];
                int32_t sum;
                x[at] = first[f];
                if (f >= 3) x[20] = 1;
                const packed_rounding one = {x, 40, 40, 40, q, &scale, &sum};
                k[v].round(&one);
                if (f < 3) assert_true(scale == 0 && sum == 0 && q[at] == 0);
                if (f >= 3 && f < 6) assert_true(isnan(scale) && sum == 0 && q[20] == 0);
                if (f == 6) assert_true(q[at] == 127 && sum == 127 && isfinite(scale));
            }
}

/* ---- the rest ---------------------------------------------------------------------------------- */

static void entries_are_the_expanded_numbers_to_the_bit(void **state)
{
    (void)state;
    for (unsigned bits = 2; bits <= 8; bits++)
        for (size_t t = 0; t < 4; t++) {
            problem p = make(37, t < 2 ? 41 : 64, t < 2 ? 41 : 16, bits, t % 2, 1, false, bits);
            float row[64];
            for (size_t o = 0; o < p.g.rows; o++) {
                packed_row(row, p.m, o);
                for (size_t c = 0; c < p.g.cols; c++) {
                    const double want = pare_weight_at(&p.expanded, o * p.g.cols + c);
                    assert_true((double)row[c] == want);
                    assert_true(pare_weight_at(&p.w, o * p.g.cols + c) == want);
                }
            }
            pare_arena_free(p.arena);
        }
}

/* Every number of f16 that is finite, and of bf16, comes out of every kernel as it is. */
static void half_precision_is_exact(void **state)
{
    (void)state;
    kernel k[4];
    const size_t variants = kernels(k), rows = 1 << 10, cols = 64;
    uint16_t *const h = malloc(rows * cols * sizeof *h);
    float *const y = calloc(2 * rows, sizeof *y);
    pare_err err = {0};
    for (size_t i = 0; i < rows * cols; i++) h[i] = (uint16_t)i;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        pare_arena *const arena = pare_arena_new();
        pare_weight w;
        const pare_dtype type = bf16 ? PARE_BF16 : PARE_F16;
        for (size_t i = 0; i < rows * cols; i++)
            if (!isfinite(bf16 ? pare_bf16_to_f32((uint16_t)i) : pare_f16_to_f32((uint16_t)i)))
                h[i] = 0;
        assert_ok(packed_halves(&w, arena, (const uint8_t *)h, rows, cols, type, &err), &err);
        for (size_t v = 0; v < variants; v++)
            for (size_t c = 0; c < cols; c++) {
                float x[2 * 64] = {0};
                x[c] = 1;
                x[64 + c] = -2;
                packed_job j = {.p = {y, rows, rows, packed_of(&w), NULL, x, 64, 2, false},
                                .panels = rows / PARE_PANEL};
                k[v].f32(&j);
                for (size_t o = 0; o < rows; o++) {
                    const double want = pare_weight_at(&w, o * cols + c);
                    const uint16_t bits = h[o * cols + c];
                    assert_true(want ==
                                (double)(bf16 ? pare_bf16_to_f32(bits) : pare_f16_to_f32(bits)));
                    assert_true((double)y[o] == want);
                    if (fabs(want) < 1e38) assert_true((double)y[rows + o] == -2 * want);
                }
            }
        pare_arena_free(arena);
    }
    free(h);
    free(y);
}

static void a_row_does_not_depend_on_its_company_or_on_threads(void **state)
{
    (void)state;
    const pare_exec three = {.threads = 3};
    for (size_t t = 0; t < 8; t++) {
        problem p = make(700, 320, t % 2 ? 32 : 320, t < 4 ? 8 : 4, t / 2 % 2, 40, false, t);
        const size_t out = pare_padded(p.g.rows);
        float *const all = pare_alloc(p.arena, p.n * out, sizeof *all);
        float *const one = pare_alloc(p.arena, out, sizeof *one);
        for (int int8 = 0; int8 < 2; int8++) {
            void *const scratch = pare_alloc(p.arena, packed_scratch(p.m, p.n, int8) + 1, 1);
            packed_product q = {all, out, out, p.m, p.bias, p.x, p.ldx, p.n, false};
            packed_apply(&q, &(packed_work){int8, scratch, &three});
            for (size_t i = 0; i < p.n; i++) {
                q = (packed_product){one, out, out, p.m, p.bias, p.x + i * p.ldx, p.ldx, 1, false};
                packed_apply(&q, &(packed_work){int8, scratch, i % 2 ? &three : NULL});
                assert_memory_equal(one, all + i * out, out * sizeof *one);
            }
        }
        pare_arena_free(p.arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_gives_the_sum_of_a_plain_loop),
        cmocka_unit_test(integer_sums_are_exact_in_every_kernel),
        cmocka_unit_test(the_largest_products_do_not_overflow),
        cmocka_unit_test(what_cannot_be_rounded_is_zero_or_nan),
        cmocka_unit_test(entries_are_the_expanded_numbers_to_the_bit),
        cmocka_unit_test(half_precision_is_exact),
        cmocka_unit_test(a_row_does_not_depend_on_its_company_or_on_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
