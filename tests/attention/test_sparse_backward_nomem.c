/* Tests src/attention/{sparse*,edge_schedule,graph_transpose,graph_order}.c when memory
 * is out: every allocation fails once, and each time the status says so and nothing leaks. */
#include "kernel_cases.h"
#include "attention/sparse.h"
#include "fail_alloc.h"

enum { N = 700, D = 420 }; /* more keys than one block has */

static const pare_exec TWO = {.threads = 2};
static float lse[N];

typedef pare_status work_fn(head_case *h, const pare_graph *g, const pare_pattern *p,
                            pare_err *err);

static pare_status forward(head_case *h, const pare_graph *g, const pare_pattern *p, pare_err *err)
{
    sparse_kernel kernels[3];
    sparse_kernels(kernels);
    const sparse_job w = {.y = h->y,
                          .lse = lse,
                          .q = &h->q,
                          .k = &h->k,
                          .v = &h->v,
                          .scale = 1,
                          .pattern = p,
                          .graph = p->kind == PARE_GRAPH ? g : NULL,
                          .kernel = &kernels[0]};
    return sparse_attend(&w, &TWO, err);
}

/* The gradients go to q, k, v of another case, which nobody reads. */
static pare_status backward(head_case *h, const pare_graph *g, const pare_pattern *p, pare_err *err)
{
    static head_case to;
    sparse_kernel kernels[3];
    sparse_kernels(kernels);
    pare_arena *const a = pare_arena_new();
    if (!a) return pare_no_memory(err);
    pare_transposed_graph transpose = {0};
    const bool graph = p->kind == PARE_GRAPH;
    pare_graph ordered;
    const uint32_t *order;
    pare_status st = graph ? pare_graph_order(&ordered, &order, a, g, 2 * D, err) : PARE_OK;
    if (!st && graph) assert_non_null(order);
    if (!st && graph) st = pare_graph_transpose(&transpose, a, g, 2 * D, err);
    float *const buffer = pare_alloc(a, 3 * (size_t)N * D, sizeof *buffer);
    if (!st && !buffer) st = pare_no_memory(err);
    to.q = to.k = to.v = (pare_mat32){N, D, D, buffer};
    if (buffer) to.k.v += (size_t)N * D, to.v.v += 2 * (size_t)N * D;
    const sparse_backward_job w = {.dq = to.q,
                                   .dk = to.k,
                                   .dv = to.v,
                                   .dy = &h->v,
                                   .q = &h->q,
                                   .k = &h->k,
                                   .v = &h->v,
                                   .y = &h->y,
                                   .saved = {.lse = lse},
                                   .scale = 1,
                                   .pattern = p,
                                   .graph = graph ? g : NULL,
                                   .transpose = graph ? &transpose : NULL,
                                   .kernel = &kernels[0]};
    const sparse_job f = {.y = h->y,
                          .lse = lse,
                          .q = &h->q,
                          .k = &h->k,
                          .v = &h->v,
                          .scale = 1,
                          .pattern = p,
                          .graph = graph ? g : NULL,
                          .schedule = graph ? transpose.queries : NULL,
                          .kernel = &kernels[0]};
    if (!st) st = sparse_attend(&f, &TWO, err);
    if (!st) st = sparse_backward(&w, &TWO, err);
    pare_arena_free(a);
    return st;
}

static void every_failed_allocation_is_reported(void **state)
{
    (void)state;
    work_fn *const works[] = {forward, backward};
    const pare_pattern patterns[] = {{.kind = PARE_GRAPH}, {.kind = PARE_WINDOW, .window = 3}};
    pare_arena *const a = pare_arena_new();
    head_case h = case_new(a, N, D, D, RANDOM, 1);
    const pare_graph g = odd_graph(a, N);
    assert_true(key_block_size(&g, D) < N);
    for (size_t w = 0; w < 4; w++)
        for (long n = 0;; n++) {
            pare_err err = {0};
            fail_alloc_after(n);
            const pare_status st = works[w / 2](&h, &g, &patterns[w % 2], &err);
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
