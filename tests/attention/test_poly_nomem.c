/* Tests src/attention/poly_*.c when memory is out: every allocation fails once, and each time the
 * status says so and nothing leaks. */
#include "kernel_cases.h"
#include "fail_alloc.h"
#include "attention/polynomial.h"
#include "linalg/matrix.h"
#include <pare/attention.h>

enum { N = 5000, D = 4 };

static pare_status forward(head_case *h, pare_pattern_kind kind, size_t heavy, int threads,
                           pare_err *err)
{
    const pare_exec exec = {.threads = threads};
    const pare_pattern p = {.kind = kind};
    const pare_poly_opts o = {
        .tolerance = 2e-4, .kind = PARE_POLY_TAYLOR, .degree = 3, .heavy = heavy, .always = true};
    pare_poly_report r;
    return pare_poly_f32(
        &h->y, &r,
        &(pare_attention_args32){.q = &h->q, .k = &h->k, .v = &h->v, .scale = 0.1, .pattern = &p},
        &o, &exec, err);
}

static pare_status full(head_case *h, pare_err *err)
{
    return forward(h, PARE_FULL, 0, 2, err);
}

static pare_status causal(head_case *h, pare_err *err)
{
    return forward(h, PARE_CAUSAL, 3, 2, err);
}

static pare_status alone(head_case *h, pare_err *err)
{
    return forward(h, PARE_CAUSAL, 0, 1, err);
}

static pare_status reference_form(head_case *h, pare_err *err)
{
    const pare_pattern p = {.kind = PARE_FULL};
    const pare_poly_opts o = {.tolerance = 1e-3, .kind = PARE_POLY_TAYLOR, .degree = 1, .heavy = 1};
    const pare_mat q = pare_mat_part(&h->q64, 0, 0, 40, D), k = pare_mat_part(&h->k64, 0, 0, 40, D);
    const pare_mat v = pare_mat_part(&h->v64, 0, 0, 40, D);
    pare_mat y = pare_mat_part(&h->y64, 0, 0, 40, D);
    pare_poly_plan plan;
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_status st = pare_poly_plan_f64(&plan, a, &q, &k, D, 0.1, &p, &o, err);
    if (!st) st = pare_poly_attend_f64(&y, NULL, NULL, &plan, &q, &k, &v, 0, err);
    pare_arena_free(a);
    return st;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    pare_status (*const works[])(head_case *, pare_err *) = {full, causal, alone, reference_form};
    pare_arena *const a = pare_arena_new();
    head_case h = case_new(a, N, D, D, RANDOM, 1);
    for (size_t w = 0; w < sizeof works / sizeof *works; w++)
        for (long n = 0;; n++) {
            pare_err err = {0};
            fail_alloc_after(n);
            const pare_status st = works[w](&h, &err);
            const bool hit = fail_alloc_hit();
            fail_alloc_after(-1);
            assert_int_equal(st, hit ? PARE_ERR_MEMORY : PARE_OK);
            if (hit) assert_contains(err.msg, "memory");
            if (!hit) {
                assert_true(n > 0); /* something did allocate */
                break;
            }
        }
    pare_arena_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_failed_allocation_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
