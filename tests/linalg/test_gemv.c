/* Tests src/linalg/gemv*.c: panels give the product, by every kernel this machine can run. */
#include "linalg/matrix.h"
#include "linalg/gemv.h"
#include <pare_test.h>

static float noise(pare_rng *r)
{
    return (float)pare_rng_normal(r);
}

/* All kernels this CPU has. */
static size_t kernels(gemv_fn *fn[3])
{
    size_t n = 0;
    fn[n++] = gemv_portable;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) fn[n++] = gemv_avx2;
    if (__builtin_cpu_supports("avx512f")) fn[n++] = gemv_avx512;
#endif
    return n;
}

typedef struct problem {
    pare_arena *arena;
    pare_weight w, b;
    float *x;
    size_t in, out, n;
} problem;

static problem make(size_t in, size_t out, size_t n, bool wide, uint64_t seed)
{
    problem p = {.arena = pare_arena_new(), .in = in, .out = out, .n = n};
    pare_rng r = pare_rng_at(seed, 3);
    float *const w = pare_alloc(p.arena, out * in, sizeof *w), *const b = pare_alloc(p.arena, out,
                                                                                     sizeof *b);
    double *const d = pare_alloc(p.arena, out * in, sizeof *d);
    p.x = pare_alloc(p.arena, n * in, sizeof *p.x);
    for (size_t i = 0; i < out * in; i++) d[i] = (double)(w[i] = noise(&r));
    for (size_t i = 0; i < out; i++) b[i] = noise(&r);
    for (size_t i = 0; i < n * in; i++) p.x[i] = noise(&r);
    p.w = (pare_weight){wide ? PARE_F64 : PARE_F32, out, in, wide ? (void *)d : (void *)w};
    p.b = (pare_weight){PARE_F32, 1, out, b};
    return p;
}

/* Row i, column o of x w^T + b, and the sum of absolute values that bounds its rounding. */
static double exact(const problem *p, size_t i, size_t o, double *size)
{
    double sum = pare_weight_at(&p->b, o);
    *size = fabs(sum);
    for (size_t c = 0; c < p->in; c++) {
        const double t = (double)p->x[i * p->in + c] * pare_weight_at(&p->w, o * p->in + c);
        sum += t;
        *size += fabs(t);
    }
    return sum;
}

static void check(const problem *p, const float *y, size_t ldy, double before)
{
    const double gamma = (double)(p->in + 3) * 0x1p-24 * 1.01;
    for (size_t i = 0; i < p->n; i++) {
        for (size_t o = 0; o < p->out; o++) {
            double size;
            const double want = exact(p, i, o, &size) + before;
            assert_near((double)y[i * ldy + o], want, gamma * (size + fabs(before)));
        }
        for (size_t o = p->out; o < pare_padded(p->out); o++)
            assert_true(y[i * ldy + o] == (float)before);
    }
}

static void every_kernel_stays_within_the_bound_of_a_plain_sum(void **state)
{
    (void)state;
    static const size_t in[] = {1, 2, 17, 64}, out[] = {1, 31, 32, 33, 64, 96, 130},
                        n[] = {1, 2, 3, 11, 12, 13, 25};
    gemv_fn *fn[3];
    const size_t variants = kernels(fn);
    for (size_t k = 0; k < 4 * 7 * 7; k++) {
        problem p = make(in[k % 4], out[k / 4 % 7], n[k / 28], k % 3 == 0, k);
        const pare_part part = {&p.w, &p.b, 0};
        pare_panels w;
        pare_err err = {0};
        assert_ok(pare_panels_new(&w, p.arena, &part, 1, p.in, NULL, &err), &err);
        const size_t ld = w.out + 5;
        float *const y = pare_alloc(p.arena, p.n * ld, sizeof *y);
        for (size_t v = 0; v < 2 * variants; v++) {
            const bool add = v % 2;
            for (size_t i = 0; i < p.n * ld; i++) y[i] = 7;
            const gemv_job j = {y, w.v, p.x, w.bias, ld, p.in, p.in, p.n, w.out / PARE_PANEL, add};
            fn[v / 2](&j);
            check(&p, y, ld, add ? 7 : 0);
            for (size_t i = 0; i < p.n; i++) assert_true(y[i * ld + w.out] == 7);
        }
        pare_arena_free(p.arena);
    }
}

static void a_row_does_not_depend_on_its_company_or_on_threads(void **state)
{
    (void)state;
    problem p = make(300, 700, 40, false, 1);
    const pare_part part = {&p.w, NULL, 0};
    const pare_exec three = {.threads = 3};
    pare_panels w;
    pare_err err = {0};
    assert_ok(pare_panels_new(&w, p.arena, &part, 1, p.in, &three, &err), &err);
    assert_null(w.bias);
    float *const all = pare_alloc(p.arena, p.n * w.out, sizeof *all);
    float *const one = pare_alloc(p.arena, w.out, sizeof *one);
    pare_panels_apply(all, w.out, &w, p.x, p.in, p.n, false, &three);
    for (size_t i = 0; i < p.n; i++) {
        pare_panels_apply(one, w.out, &w, p.x + i * p.in, p.in, 1, false, i % 2 ? &three : NULL);
        assert_memory_equal(one, all + i * w.out, w.out * sizeof *one);
    }
    pare_arena_free(p.arena);
}

/* Two matrices and a range of columns: each part begins at a panel, and only its columns count. */
static void parts_lie_one_below_the_other(void **state)
{
    (void)state;
    problem p = make(9, 33, 2, false, 2), q = make(9, 5, 2, true, 3);
    const pare_part part[] = {{&p.w, NULL, 4}, {&q.w, &q.b, 4}};
    pare_panels w;
    pare_err err = {0};
    assert_ok(pare_panels_new(&w, p.arena, part, 2, 5, NULL, &err), &err);
    assert_int_equal(w.out, 64 + 32);
    float y[2 * 96];
    pare_panels_apply(y, 96, &w, p.x, 9, 2, false, NULL);
    for (size_t i = 0; i < 2; i++)
        for (size_t o = 0; o < 96; o++) {
            const problem *const from = o < 64 ? &p : &q;
            const size_t row = o < 64 ? o : o - 64;
            double want = o < 64 || row >= 5 ? 0 : pare_weight_at(&q.b, row);
            for (size_t c = 0; row < from->out && c < 5; c++)
                want += (double)p.x[i * 9 + c] * pare_weight_at(&from->w, row * 9 + 4 + c);
            assert_near((double)y[i * 96 + o], want, 1e-5);
        }
    pare_arena_free(p.arena);
    pare_arena_free(q.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_stays_within_the_bound_of_a_plain_sum),
        cmocka_unit_test(a_row_does_not_depend_on_its_company_or_on_threads),
        cmocka_unit_test(parts_lie_one_below_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
