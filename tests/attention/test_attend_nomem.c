/* Tests src/attention when memory is out: every allocation fails once, and each time the status
 * says so and nothing leaks. */
#include "kernel_cases.h"
#include "fail_alloc.h"
#include "attention/attend.h"
#include "oracle_wrappers.h"

enum { N = 300, D = 4 };

typedef pare_status work_fn(head_case *h, const pare_graph *g, pare_err *err);

static const pare_exec TWO = {.threads = 2};

static pare_status tiled(head_case *h, const pare_graph *g, pare_err *err)
{
    (void)g;
    const pare_pattern p = {.kind = PARE_CAUSAL};
    return pare_attend_f32(
        &h->y,
        &(pare_attention_args32){.q = &h->q, .k = &h->k, .v = &h->v, .scale = 1, .pattern = &p},
        &TWO, err);
}

static pare_status sparse(head_case *h, const pare_graph *g, pare_err *err)
{
    const pare_pattern p = {.kind = PARE_GRAPH};
    return pare_attend_f32(
        &h->y,
        &(pare_attention_args32){
            .q = &h->q, .k = &h->k, .v = &h->v, .scale = 1, .pattern = &p, .graph = g},
        &TWO, err);
}

static pare_status short_window(head_case *h, const pare_graph *g, pare_err *err)
{
    (void)g;
    const pare_pattern p = {.kind = PARE_WINDOW, .window = 3};
    return pare_attend_f32(
        &h->y,
        &(pare_attention_args32){.q = &h->q, .k = &h->k, .v = &h->v, .scale = 1, .pattern = &p},
        &TWO, err);
}

/* All queries are the first one: by means, of ranges and of lists. */
static pare_status same_query(head_case *h, const pare_graph *g, pare_err *err)
{
    const pare_pattern kinds[] = {
        {.kind = PARE_FULL}, {.kind = PARE_WINDOW, .window = 3}, {.kind = PARE_GRAPH}};
    pare_mat32 q = h->q;
    q.ld = 0;
    pare_status st = PARE_OK;
    for (size_t k = 0; !st && k < 3; k++)
        st = pare_attend_same_f32(
            &h->y,
            &(pare_attention_args32){
                .q = &q, .k = &h->k, .v = &h->v, .scale = 1, .pattern = &kinds[k], .graph = g},
            &TWO, err);
    return st;
}

static pare_status partial(head_case *h, const pare_graph *g, pare_err *err)
{
    (void)g;
    static float m[N], l[N];
    pare_partial out = {h->y, m, l};
    return pare_attend_partial_f32(&out, &h->q, &h->k, &h->v, 1, 1, &TWO, err);
}

static pare_status keep(head_case *h, const pare_graph *g, pare_err *err)
{
    (void)g;
    static float lse[N];
    const pare_pattern p = {.kind = PARE_CAUSAL};
    const pare_saved32 saved = {.lse = lse};
    return pare_attend_saving_f32(&h->y, &saved, &h->q, &h->k, &h->v, 1, &p, NULL, NULL, &TWO, err);
}

static pare_status tiled_back(head_case *h, const pare_graph *g, pare_err *err)
{
    (void)g;
    static float buffer[3][N * D], lse[N];
    pare_mat32 dq = {N, D, D, buffer[0]}, dk = {N, D, D, buffer[1]}, dv = {N, D, D, buffer[2]};
    const pare_pattern p = {.kind = PARE_FULL};
    for (size_t i = 0; i < N; i++) lse[i] = 100;
    const pare_saved32 saved = {.lse = lse};
    return pare_attend_backward_f32(&dq, &dk, &dv, &h->v, &h->q, &h->k, &h->v, &h->v, &saved, 1, &p,
                                    NULL, NULL, &TWO, err);
}

static pare_status oracle(const head_case *h, pare_dtype t, pare_err *err)
{
    static double buffer[N * D], zeros[N * D];
    static const pare_fault fault = {0, PARE_FAULT_SHORT, 0}; /* after the check: not seen by it */
    pare_oracle o = {0}, cpu = {0}, counting = {0}, checked = {0};
    pare_oracle_count count = {0};
    pare_oracle_check check = {.fraction = 1};
    const bool f32 = t == PARE_F32;
    const pare_call c = {.kind = PARE_CALL_QKV,
                         .u.a = {.q = f32 ? (void *)h->q.v : zeros,
                                 .k = f32 ? (void *)h->k.v : zeros,
                                 .v = f32 ? (void *)h->v.v : zeros,
                                 .n = N,
                                 .dk = D,
                                 .dv = D,
                                 .causal = true,
                                 .y = buffer}};
    pare_status st = pare_oracle_cpu(&cpu, t, 0, &TWO, err);
    if (!st) st = pare_oracle_counting(&counting, cpu, &count, err);
    if (!st) st = pare_oracle_checked(&checked, counting, &check, err);
    if (!st) st = pare_oracle_faulty(&o, checked, &fault, 1, err);
    if (!st) st = o.ops->evaluate(o.self, &c, 1, err);
    if (!st) st = o.ops->barrier(o.self, err);
    pare_oracle_free(&o);
    return st;
}

static pare_status oracle_f32(head_case *h, const pare_graph *g, pare_err *err)
{
    (void)g;
    return oracle(h, PARE_F32, err);
}

static pare_status oracle_f64(head_case *h, const pare_graph *g, pare_err *err)
{
    (void)g;
    return oracle(h, PARE_F64, err);
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    work_fn *const works[] = {tiled, sparse,     short_window, same_query, partial,
                              keep,  tiled_back, oracle_f32,   oracle_f64};
    pare_arena *const a = pare_arena_new();
    head_case h = case_new(a, N, D, D, RANDOM, 1);
    const pare_graph g = odd_graph(a, N);
    for (size_t w = 0; w < sizeof works / sizeof *works; w++)
        for (long n = 0;; n++) {
            pare_err err = {0};
            fail_alloc_after(n);
            const pare_status st = works[w](&h, &g, &err);
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
