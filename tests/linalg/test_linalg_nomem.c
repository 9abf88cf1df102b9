/* Tests src/linalg when memory is out: every allocation fails once, and each time the status says
 * so, nothing leaks, and a bound that was not proven is +inf. */
#include "linalg/bounds.h"
#include "linalg_test.h"
#include "fail_alloc.h"

enum { big = 300 };

typedef struct fixture {
    pare_mat x, sym, out, out2; /* big x big */
    pare_weight w32, w64;
    double s[big];
    pare_ub bound;
} fixture;

typedef pare_status work_fn(fixture *f, pare_arena *scratch, pare_err *err);

static pare_status dense_f64(fixture *f, pare_arena *scratch, pare_err *err)
{
    (void)scratch;
    const pare_exec exec = {.threads = 2};
    return pare_dense_f64(&f->out, &f->x, &f->w32, NULL, &exec, err);
}

static pare_status dense_f32(fixture *f, pare_arena *scratch, pare_err *err)
{
    (void)scratch;
    const pare_exec exec = {.threads = 2};
    float *y = (float *)f->out.v;
    return pare_dense_f32(&(pare_mat32){big, big, big, y},
                          &(pare_mat32){big, big, big, (float *)(uintptr_t)f->w32.data}, &f->w64,
                          NULL, &exec, err);
}

/* 2048 rows of 40 numbers: cut into chunks, whose sums need memory. */
static pare_status dense_backward(fixture *f, pare_arena *scratch, pare_err *err)
{
    (void)scratch;
    enum { rows = 2048, side = 40 };
    const pare_exec exec = {.threads = 2};
    const pare_weight w = {PARE_F64, side, side, f->x.v};
    memset(f->out.v, 0, (size_t)side * side * sizeof(double));
    return pare_dense_backward_f64(NULL, 0, false, f->out.v, NULL, f->x.v, side, f->x.v, side, rows,
                                   &w, &exec, err);
}

static pare_status svd(fixture *f, pare_arena *scratch, pare_err *err)
{
    return pare_svd(&f->out, f->s, &f->out2, &f->x, scratch, err);
}

static pare_status eigh(fixture *f, pare_arena *scratch, pare_err *err)
{
    return pare_eigh(f->s, &f->out, &f->sym, scratch, err);
}

static pare_status qr(fixture *f, pare_arena *scratch, pare_err *err)
{
    return pare_qr(&f->out, &f->out2, &f->x, scratch, err);
}

static pare_status lstsq(fixture *f, pare_arena *scratch, pare_err *err)
{
    return pare_lstsq(&f->out, NULL, &f->x, &f->out2, 1e-12, scratch, err);
}

static pare_status spectral(fixture *f, pare_arena *scratch, pare_err *err)
{
    f->bound = pare_ub_exact(0);
    const pare_status st = pare_norm_spectral(&f->bound, &f->w64, scratch, err);
    assert_true(st == PARE_OK ? f->bound.v > 0 && isfinite(f->bound.v) : isinf(f->bound.v));
    return st;
}

static pare_status bilinear(fixture *f, pare_arena *scratch, pare_err *err)
{
    f->bound = pare_ub_exact(0);
    const pare_status st = pare_norm_bilinear_inf(&f->bound, &f->w64, scratch, err);
    assert_true(st == PARE_OK ? f->bound.v > 0 && isfinite(f->bound.v) : isinf(f->bound.v));
    return st;
}

/* How many allocations the work makes: each of them was refused once. */
static long refuse_each(work_fn *work, fixture *f, void (*refuse)(long n))
{
    for (long n = 0;; n++) {
        pare_err err = {0};
        pare_arena *scratch = pare_arena_new();
        assert_non_null(scratch);
        refuse(n);
        const pare_status st = work(f, scratch, &err);
        const bool hit = fail_alloc_hit();
        fail_alloc_after(-1);
        pare_arena_free(scratch);
        assert_int_equal(st, hit ? PARE_ERR_MEMORY : PARE_OK);
        assert_int_equal(err.code, st);
        if (!hit) return n;
        assert_true(n < 100);
    }
}

static void no_memory_is_said_wherever_it_runs_out(void **state)
{
    static fixture f;
    f.x = normal_mat(*state, big, big, 31);
    f.sym = pare_mat_new(*state, big, big);
    for (size_t i = 0; i < big; i++) f.sym.v[i * big + i] = (double)i;
    f.out = pare_mat_new(*state, big, big);
    f.out2 = pare_mat_new(*state, big, big);
    f.w64 = weight_of(&f.x);
    f.w32 = narrow_weight(*state, &f.x);
    work_fn *const all[] = {dense_f64, dense_f32, dense_backward, svd,     eigh,
                            qr,        lstsq,     spectral,       bilinear};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(refuse_each(all[i], &f, fail_alloc_after) > 0 &&
                  refuse_each(all[i], &f, fail_alloc_once) > 0,
              "work %zu never asked for memory", i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {ARENA_TEST(no_memory_is_said_wherever_it_runs_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
